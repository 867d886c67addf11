#include "methods/elastoplastic/elastic_materials.h"
#include "methods/elastoplastic/elastic_saved.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "defs/materials.h"

_Static_assert((int)SK_ELASTIC_SQUARED == (int)SELKIE_ELASTIC_SQUARED, "kernels and scenes number laws alike");
_Static_assert((int)SK_PLASTIC_DRUCKER_PRAGER == (int)SELKIE_PLASTICITY_DRUCKER_PRAGER, "and kinds of plasticity");

sk_elastic_material sk_elastic_material_of(const sk_step *step, int m)
{
    const selkie_elastoplastic_def *def = &step->scene->materials[m].elastoplastic;
    const double density = sk_scene_density(step->scene, m), d = step->dimension;
    const double mu = def->young / (2.0 * (1.0 + def->poisson));
    const double lambda = def->young * def->poisson / ((1.0 + def->poisson) * (1.0 - 2.0 * def->poisson));
    const double sine = sin(def->friction_angle * M_PI / 180.0);

    /* In 2D Mohr and Coulomb's law itself; in 3D the cone through its corners of compression. */
    const double cone = d == 2 ? sine / sqrt(2.0) : sqrt(2.0 / 3.0) * 2.0 * sine / (3.0 - sine);
    const int sand = def->plasticity == SELKIE_PLASTICITY_DRUCKER_PRAGER;
    return (sk_elastic_material){.law = sand ? SK_ELASTIC_HENCKY : (int)def->law,
                                 .plasticity = (int)def->plasticity,
                                 .keeps_volume = def->keeps_volume,
                                 .lambda = (float)lambda,
                                 .mu = (float)mu,
                                 .yield = (float)def->yield,
                                 .hardening = (float)def->hardening,
                                 .flow_time = (float)def->flow_time,
                                 .thickening = (float)def->thickening,
                                 .cone = (float)cone,
                                 .tip = (float)(d * def->cohesion / (d * lambda + 2.0 * mu)),
                                 .tear = (float)log1p(def->tear),
                                 .inverse_density = (float)(1.0 / density),
                                 .wave_speed = (float)sqrt((lambda + 2.0 * mu) / density),
                                 .relative_mass = (float)(density / step->density)};
}

void sk_elastic_soften(sk_elastic_material *material, int dimension, float share)
{
    const float d = (float)dimension, bulk = material->lambda + 2.0f / 3.0f * material->mu;
    const float cohesion = material->tip * (d * material->lambda + 2.0f * material->mu);
    material->mu *= share;
    material->lambda = bulk - 2.0f / 3.0f * material->mu;
    material->yield *= share;
    material->hardening *= share;
    material->tip = share * cohesion / (d * material->lambda + 2.0f * material->mu);
    material->wave_speed = sqrtf((material->lambda + 2.0f * material->mu) * material->inverse_density);
}

/* None at all: a world that is built anew gets its points from its state. Shapes without points are refused before. */
selkie_code sk_elastic_check_count(const sk_step *step, const char *form, selkie_error *error)
{
    const int64_t count = step->particles.count, least = step->dimension == 3 ? 8 : 4;
    if (count >= least || count == 0 || step->scene->source_count)
        return SELKIE_OK;
    return sk_fail(error, SELKIE_ERROR_INPUT,
                   "liquids: %lld points are too few for discretization \"%s\", a body needs at least %lld: make the "
                   "shapes larger, or the cells smaller (domain.resolution)",
                   (long long)count, form, (long long)least);
}

selkie_code sk_elastic_restore(sk_elastic_saved *saved, const sk_chunk_view *chunk, const char *file,
                               selkie_error *error)
{
    if (chunk->bytes != sizeof *saved)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the state of %s has %llu bytes, not %zu", file, chunk->name,
                       (unsigned long long)chunk->bytes, sizeof *saved);
    memcpy(saved, chunk->data, sizeof *saved);
    return SELKIE_OK;
}
