#include "methods/heat/heat.h"

#include <float.h>
#include <math.h>

#include "defs/heat.h"
#include "defs/materials.h"

/* --- Life cycle --- */

static void fill_curve(const sk_step *step, int material, sk_heat_curve *curve)
{
    const selkie_material_def *def = &step->scene->materials[material];
    const double solid_capacity = def->solid_heat_capacity > 0.0 ? def->solid_heat_capacity : def->heat_capacity;
    const double solid_conductivity = def->solid_conductivity > 0.0 ? def->solid_conductivity : def->conductivity;
    curve->melts = def->melting_point > 0.0;
    /* Rounded as the attribute is: a particle at this temperature has an enthalpy of exactly 0. */
    curve->melting = curve->melts ? (double)(float)def->melting_point : (double)273.15f;
    curve->latent = curve->melts ? def->latent_heat / def->heat_capacity : 0.0;
    curve->solid_slope = curve->melts ? def->heat_capacity / solid_capacity : 1.0;
    curve->capacity = step->particle_mass * def->density / step->density * def->heat_capacity;
    curve->resistance = def->conductivity > 0.0 ? 1.0 / def->conductivity : 0.0;
    curve->solid_resistance = curve->resistance;
    if (curve->melts)
        curve->solid_resistance = solid_conductivity > 0.0 ? 1.0 / solid_conductivity : 0.0;
    curve->expansion = def->thermal_expansion;
}

static int same_curve(const sk_heat_curve *a, const sk_heat_curve *b)
{
    return a->melting == b->melting && a->latent == b->latent && a->solid_slope == b->solid_slope &&
           a->capacity == b->capacity && a->resistance == b->resistance && a->melts == b->melts &&
           a->solid_resistance == b->solid_resistance && a->expansion == b->expansion;
}

static void fill_curves(const sk_step *step, sk_heat *heat)
{
    const int count = step->scene->material_count;
    double least = 0.0, lightest = 0.0;
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++) {
        sk_heat_curve *curve = &heat->curves[m];
        fill_curve(step, m < count ? m : 0, curve);
        heat->several |= !same_curve(curve, heat->curves);
        heat->melts |= curve->melts;
        const double both[2] = {curve->resistance, curve->solid_resistance};
        for (int i = 0; i < 2; i++)
            least = both[i] > 0.0 && (least == 0.0 || both[i] < least) ? both[i] : least;
        lightest = m == 0 || curve->capacity < lightest ? curve->capacity : lightest;
    }
    heat->least_resistance = least > 0.0 ? least : 1.0;
    heat->full_capacity = lightest * step->particles_per_cell;
}

static int expands(const sk_step *step)
{
    int any = 0;
    for (int m = 0; m < step->scene->material_count; m++)
        any |= step->scene->materials[m].thermal_expansion != 0.0;
    return any;
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    sk_heat *heat = sk_allocate_zeroed(step->memory, sizeof *heat);
    if (!heat)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "heat: no memory");
    sk_step_set_state(step, &sk_method_heat, heat);
    fill_curves(step, heat);
    static const sk_field_def lightness = {
        "expansion",
        "1",
        -1,
        SK_LIFETIME_STEP,
        __builtin_nanf(""),
        "loss of weight by thermal expansion over the weight; NaN in cells without heat"};
    heat->lightness = expands(step) ? sk_grid_add_field(&step->grid, &lightness, error) : -1;
    if (expands(step) && heat->lightness < 0)
        return SELKIE_ERROR_MEMORY;
    const int found = sk_particles_add_attribute(&step->particles, "temperature", 1, 0) &&
                      sk_particles_add_attribute(&step->particles, "enthalpy", 2, 1) &&
                      (!heat->melts || sk_particles_add_attribute(&step->particles, "liquid_fraction", 1, 0));
    if (!found)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "particles: no memory for the attribute \"temperature\"");
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_release(step->memory, sk_step_state(step, &sk_method_heat));
}

sk_heat_attributes sk_heat_find_attributes(const sk_step *step)
{
    const sk_particles *particles = &step->particles;
    const sk_attribute *liquid = sk_particles_find_attribute(particles, "liquid_fraction");
    const sk_attribute *material = sk_particles_find_attribute(particles, "material");
    return (sk_heat_attributes){.enthalpy = sk_particles_find_attribute(particles, "enthalpy")->data,
                                .temperature =
                                    (float *)(void *)sk_particles_find_attribute(particles, "temperature")->data,
                                .liquid_fraction = liquid ? (float *)(void *)liquid->data : NULL,
                                .material = material ? material->data : NULL};
}

/* --- Particles --- */

/* Before a step: the range of temperatures of particles, surfaces, air and sources. Changes of the scene come before
 * it. */
static void begin_step(sk_step *step)
{
    sk_heat *heat = sk_step_state(step, &sk_method_heat);
    selkie_scene scene = *step->scene;
    scene.liquid_count = scene.change_count = 0;
    sk_scene_temperatures(&scene, &heat->coldest, &heat->warmest);
    heat->coldest = heat->warmest > 0.0 ? heat->coldest : DBL_MAX;
    heat->coldest = fmin(heat->coldest, heat->sums.coldest);
    heat->warmest = fmax(heat->warmest, heat->sums.warmest);
}

/* New particles have a temperature and no enthalpy. */
static selkie_code begin_particles(sk_step *step, selkie_error *error)
{
    (void)error;
    const sk_heat *heat = sk_step_state(step, &sk_method_heat);
    const sk_heat_attributes a = sk_heat_find_attributes(step);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++)
        sk_heat_begin(heat, &a, p);
    return SELKIE_OK;
}

enum { SPAN = 16384 }; /* particles of a partial sum: spans are added in order */

int sk_heat_any_new(const sk_heat_attributes *a, int64_t begin, int64_t end)
{
    uint32_t none = 0;
    for (int64_t p = begin; p < end; p++)
        none |= (a->enthalpy[2 * p] | a->enthalpy[2 * p + 1]) == 0;
    return (int)none;
}

/* The same for one material, several particles at a time; none is dead. Temperature grows with enthalpy. */
static void sum_alike(const sk_heat *heat, const sk_heat_attributes *a, int64_t begin, int64_t end, sk_heat_sums *sums)
{
    enum { BATCH = 8 };
    const sk_heat_curve *curve = heat->curves;
    double total[BATCH] = {0.0}, least[BATCH], most[BATCH];
    for (int i = 0; i < BATCH; i++) {
        least[i] = DBL_MAX;
        most[i] = -DBL_MAX;
    }
    for (int64_t p = sk_heat_any_new(a, begin, end) ? begin : end; p < end; p++)
        sk_heat_begin(heat, a, p);
    for (int64_t p = begin; p + BATCH <= end; p += BATCH) {
        double enthalpy[BATCH];
        memcpy(enthalpy, a->enthalpy + 2 * p, sizeof enthalpy);
        for (int i = 0; i < BATCH; i++) {
            total[i] += enthalpy[i];
            least[i] = enthalpy[i] < least[i] ? enthalpy[i] : least[i];
            most[i] = enthalpy[i] > most[i] ? enthalpy[i] : most[i];
        }
    }
    for (int i = 0; end - begin >= BATCH && i < BATCH; i++)
        sk_heat_sums_add(sums, &(sk_heat_sums){curve->capacity * total[i], sk_heat_temperature(curve, least[i]),
                                               sk_heat_temperature(curve, most[i])});
}

/* Sums of a span. `alike`: one material, and no particle is dead. */
static void sum_span(const sk_heat *heat, const sk_step *step, const sk_heat_attributes *a, int64_t span, int alike,
                     sk_heat_sums *sums)
{
    const int64_t begin = span * SPAN,
                  end = begin + SPAN < step->particles.count ? begin + SPAN : step->particles.count;
    *sums = (sk_heat_sums){0.0, DBL_MAX, -DBL_MAX};
    if (alike)
        sum_alike(heat, a, begin, end, sums);
    for (int64_t p = alike ? end - (end - begin) % 8 : begin; p < end; p++) {
        const sk_heat_curve *curve = sk_heat_curve_of(heat, a, p);
        sk_heat_begin(heat, a, p);
        const double enthalpy = sk_heat_get(a, p), temperature = sk_heat_temperature(curve, enthalpy);
        const sk_heat_sums own = {curve->capacity * enthalpy, temperature, temperature};
        if (!(step->particles.records[p].flags & SK_PARTICLE_DEAD))
            sk_heat_sums_add(sums, &own);
    }
}

/* The move listed migrating particles, and met no dead one. */
static int all_live(const sk_step *step)
{
    int live = sk_grid_leavers_known(&step->grid, &step->particles);
    for (int b = 1; live && b <= step->grid.particle_blocks; b++)
        live = step->grid.leavers[b] >= 0;
    return live;
}

/* Energy and range of temperatures at the end of a step. */
static selkie_code weigh(sk_step *step, selkie_error *error)
{
    sk_heat *heat = sk_step_state(step, &sk_method_heat);
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    const int64_t spans = (step->particles.count + SPAN - 1) / SPAN;
    const int alike = !heat->several && all_live(step);
    sk_heat_sums *partial;
    SK_TRY(sk_step_scratch(step, (size_t)(spans + 1) * sizeof *partial, "heat", (void **)&partial, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t s = 0; s < spans; s++)
        sum_span(heat, step, &a, s, alike, &partial[s]);
    heat->sums = (sk_heat_sums){0.0, DBL_MAX, -DBL_MAX};
    for (int64_t s = 0; s < spans; s++)
        sk_heat_sums_add(&heat->sums, &partial[s]);
    return SELKIE_OK;
}

int sk_heat_warm_obstacles(const sk_step *step, double (*own)[2])
{
    int any = 0;
    for (int o = 0; o < step->solids.obstacle_count; o++) {
        const selkie_obstacle_def *def = step->solids.obstacles[o].def;
        any |= def && def->temperature > 0.0;
        if (own) {
            own[o][0] = def ? def->temperature : 0.0;
            own[o][1] = def ? def->heat_exchange : 0.0;
        }
    }
    return any;
}

selkie_code sk_heat_judge(const sk_step *step, const sk_poisson_report *report, selkie_error *error)
{
    if (report->converged)
        return SELKIE_OK;
    return sk_fail(error, SELKIE_ERROR_DIVERGED,
                   "step %lld at %g s: the heat solve stopped at a residual of %.3g after %d iterations; raise "
                   "pressure.max_iterations (now %d) or heat.tolerance (now %g)",
                   (long long)step->step_count + 1, step->time, report->residual, report->iterations,
                   step->scene->pressure.max_iterations, step->scene->heat.tolerance);
}

static void statistics(const sk_step *step, selkie_statistics *statistics)
{
    const sk_heat *heat = sk_step_state(step, &sk_method_heat);
    const int any = heat->sums.warmest >= heat->sums.coldest;
    statistics->temperature_min = any ? heat->sums.coldest : 0.0;
    statistics->temperature_max = any ? heat->sums.warmest : 0.0;
    statistics->heat_energy = heat->sums.energy;
}

/* --- Mixing --- */

sk_heat_mixing sk_heat_find_mixing(const sk_step *step, const sk_heat *heat)
{
    const double size = step->grid.cell_size;
    sk_heat_mixing mixing = {.volume = pow(size, step->dimension) / step->particles_per_cell};
    for (int n = 0; n < SK_TRANSFER_MATERIALS; n++) {
        const sk_heat_curve *curve = &heat->curves[n];
        mixing.most = fmax(mixing.most, fmax(sk_heat_diffusivity(curve, curve->resistance, mixing.volume),
                                             sk_heat_diffusivity(curve, curve->solid_resistance, mixing.volume)));
    }
    const double rate = SK_HEAT_TICKS * M_PI * M_PI * mixing.most / (size * size); /* 1/s */
    mixing.ticks = floor((step->time + step->dt) * rate) - floor(step->time * rate);
    return mixing;
}

/* --- Plan --- */

/* Two copies of temperature, enthalpy and liquid fraction. */
static double bytes_per_particle(const selkie_scene *scene)
{
    (void)scene;
    return 2 * 16;
}

static double bytes_per_cell(const selkie_scene *scene)
{
    (void)scene;
    return 6 * 8 + 8 * 4 + 2 + 30;
}

const sk_method sk_method_heat = {
    .name = "heat",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = sk_scene_has_heat,
    .create = create,
    .populate = begin_particles,
    .destroy = destroy,
    .begin = begin_step,
    .phases = {{.name = "heat", .slot = SK_SLOT_TO_GRID, .run = SK_FORMS(sk_heat_step, sk_heat_step_plain)},
               {.name = "expansion", .slot = SK_SLOT_FORCES, .run = SK_ONE_FORM(sk_heat_expand), .when = expands},
               {.name = "heat_sums", .slot = SK_SLOT_AFTER, .run = SK_ONE_FORM_ANY_DIMENSION(weigh)}},
    .measure = weigh,
    .statistics = statistics,
    .bytes_per_particle = bytes_per_particle,
    .bytes_per_cell = bytes_per_cell,
};
