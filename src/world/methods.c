/* The list of methods, and the composition of their phases into a step. */
#include <string.h>

#include "cuda/cuda.h"
#include "methods/bodies/bodies.h"
#include "methods/elastoplastic/fitted.h"
#include "methods/elastoplastic/mpm.h"
#include "methods/elastoplastic/rest_shape.h"
#include "methods/flip/flip.h"
#include "methods/heat/frozen.h"
#include "methods/heat/heat.h"
#include "methods/idp/idp.h"
#include "methods/liquid_boundary/liquid_boundary.h"
#include "methods/materials/materials.h"
#include "methods/particle_forces/particle_forces.h"
#include "methods/particle_spacing/particle_spacing.h"
#include "methods/rigid_liquid/rigid_liquid.h"
#include "methods/reduced/dye.h"
#include "methods/reduced/reduced.h"
#include "methods/shape_matching/shape_matching.h"
#include "methods/sorting.h"
#include "methods/sources/sources.h"
#include "methods/sph/sph.h"
#include "methods/splashes/splashes.h"
#include "methods/surface_tension/surface_tension.h"
#include "methods/uic/uic.h"
#include "methods/viscosity/viscosity.h"
#include "methods/volume_terms/volume_terms.h"
#include "world/world_internal.h"

/* The order matters within a slot, and for `replaces`. Densities weigh what sources emitted. Splashes take their
 * droplets out of the particles before others see them. */
/* clang-format off */
static const sk_method *const all_methods[] = {
    &sk_method_sorting,
    &sk_method_splashes,
    &sk_method_particle_forces,
    &sk_method_materials,
    &sk_method_sources,
    &sk_method_densities,
    &sk_method_bodies,
    &sk_method_flip,
    &sk_method_heat,
    &sk_method_sph,
    &sk_method_idp,
    &sk_method_ando,
    &sk_method_sato,
    &sk_method_eq8,
    &sk_method_losasso,
    &sk_method_uic,
    &sk_method_liquid_boundary,
    &sk_method_viscosity,
    &sk_method_surface_tension,
    &sk_method_shape_matching,
    &sk_method_rigid_liquid,
    &sk_method_frozen,
    &sk_method_reduced,
    &sk_method_dye,
    &sk_method_mpm,
    &sk_method_rest_shape,
    &sk_method_fitted,
};
/* clang-format on */

sk_method_list sk_all_methods(void)
{
    return (sk_method_list){sizeof all_methods / sizeof *all_methods, all_methods};
}

sk_method_list sk_choose_methods(sk_method_list from, const selkie_scene *scene, const sk_method **chosen)
{
    sk_method_list list = {0, chosen};
    int with_particles = 0;
    for (int m = 0; m < from.count; m++)
        with_particles |= from.methods[m]->takes_part && from.methods[m]->takes_part(scene) &&
                          from.methods[m]->needs & SK_NEEDS_PARTICLES;
    for (int m = 0; m < from.count && list.count < SK_STEP_MAX_METHODS; m++) {
        const sk_method *method = from.methods[m];
        if (method->takes_part ? method->takes_part(scene) : with_particles)
            chosen[list.count++] = method;
    }
    return list;
}

int sk_methods_need(sk_method_list list, const selkie_scene *scene)
{
    int needs = 0;
    for (int m = 0; m < list.count; m++) {
        needs |= list.methods[m]->needs;
        if (list.methods[m]->also_needs)
            needs |= list.methods[m]->also_needs(scene);
    }
    return needs;
}

uint64_t sk_methods_fields(sk_method_list list)
{
    uint64_t fields = 0;
    for (int m = 0; m < list.count; m++)
        fields |= list.methods[m]->fields;
    return fields;
}

/* The phase that a definition becomes: a new one at the end, or the one of its name in the slot that it replaces. */
static int find_position(const selkie_world *world, const sk_phase_def *def, int slot_begin)
{
    for (int p = slot_begin; def->flags & SK_PHASE_REPLACES && p < world->phase_count; p++)
        if (strcmp(world->phases[p].name, def->name) == 0)
            return p;
    return world->phase_count;
}

static const char *backend_name(const selkie_world *world)
{
    return world->step.backend == SK_BACKEND_CUDA ? "cuda" : "plain";
}

/* The function of a phase for the world's backend and dimension; NULL = none. */
static sk_phase_function form_of(const selkie_world *world, const sk_method *method, const sk_phase_def *def)
{
    const int dimension = world->step.dimension;
    return world->step.backend == SK_BACKEND_CUDA ? sk_cuda_phase(method->name, def->name, dimension)
                                                  : def->run[world->step.backend][dimension - 2];
}

/* Adds the phases that a method has in a slot. */
static selkie_code add_phases(selkie_world *world, const sk_method *method, sk_slot slot, int slot_begin,
                              selkie_error *error)
{
    const int own_begin = world->phase_count;
    for (const sk_phase_def *def = method->phases; def < method->phases + SK_METHOD_MAX_PHASES && def->name; def++) {
        if (def->slot != slot || (def->when && !def->when(&world->step)))
            continue;

        /* A new phase at the end, or one that this phase replaces. */
        const int position = find_position(world, def, slot_begin);
        if (position == SELKIE_MAX_PHASES)
            return sk_fail(error, SELKIE_ERROR_INPUT, "the methods of the scene have more than %d phases together",
                           SELKIE_MAX_PHASES);

        /* Fill in the phase, with the function of this backend and dimension. */
        sk_phase *phase = &world->phases[position];
        *phase = (sk_phase){.name = def->name,
                            .run = form_of(world, method, def),
                            .again_from = -1,
                            .again = def->again,
                            .slot = slot,
                            .flags = def->flags};
        if (!phase->run)
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "backend: \"%s\" cannot run this scene: the phase \"%s\" (%s) has no %s form; use \"tuned\"",
                           backend_name(world), def->name, method->name, backend_name(world));

        /* A phase that repeats goes back to an earlier phase of the method. */
        world->phase_count += position == world->phase_count;
        for (int p = own_begin; def->again && p < world->phase_count; p++)
            if (strcmp(world->phases[p].name, def->again_from) == 0)
                phase->again_from = p;
    }
    return SELKIE_OK;
}

/* Does a method have a phase with a CUDA form, or none at all? Phases of methods that have some depend on the world. */
static const char *phase_without_gpu(const sk_method *method, int dimension)
{
    for (int p = 0; p < SK_METHOD_MAX_PHASES && method->phases[p].name; p++)
        if (sk_cuda_phase(method->name, method->phases[p].name, dimension))
            return NULL;
    return method->phases[0].name;
}

selkie_code sk_methods_check_gpu(const selkie_scene *scene, selkie_error *error)
{
    const sk_method *chosen[SK_STEP_MAX_METHODS];
    sk_cuda_info info;
    SK_TRY(sk_cuda_find(&info, error));
    SK_TRY(sk_cuda_check(scene, error));
    const sk_method_list list = sk_choose_methods(sk_all_methods(), scene, chosen);
    for (int m = 0; m < list.count; m++) {
        const char *phase = phase_without_gpu(list.methods[m], scene->domain.dimension);
        if (phase)
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "backend: \"cuda\" cannot run this scene: the phase \"%s\" (%s) has no cuda form; use "
                           "\"tuned\"",
                           phase, list.methods[m]->name);
    }
    return SELKIE_OK;
}

selkie_code sk_world_compose(selkie_world *world, selkie_error *error)
{
    world->phase_count = 0;
    for (int slot = 0; slot < SK_SLOT_COUNT; slot++) {
        int begin = world->phase_count;
        for (int m = 0; m < world->methods.count; m++)
            SK_TRY(add_phases(world, world->methods.methods[m], (sk_slot)slot, begin, error));
    }
    return SELKIE_OK;
}
