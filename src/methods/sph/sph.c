/* The state of SPH: create, grow, free. */
#include "methods/sph/boundary.h"

#include <math.h>
#include <string.h>

#include "defs/materials.h"
#include "methods/sph/sph_kernels.h"
#include "rigid/rigid.h"
#include "methods/sph/sph_list_kernels.h"

/* The kernel's sum over a lattice with the particle spacing (the density ratio there is 1 by definition), and the
 * diagonal of the pressure system there, 1/m2. */
static void measure_lattice(const sk_step *step, sk_sph *sph)
{
    int wendland = sk_sph_is_wendland(step->scene), dimension = step->dimension;
    double factor = sk_sph_kernel_factor(wendland, dimension, sph->support);
    int reach = (int)ceil(sph->support / sph->spacing);
    double sum = 0.0, squares = 0.0;
    for (int z = dimension == 3 ? -reach : 0; z <= (dimension == 3 ? reach : 0); z++)
        for (int y = -reach; y <= reach; y++)
            for (int x = -reach; x <= reach; x++) {
                float q = (float)(sqrt((double)(x * x + y * y + z * z)) * sph->spacing / sph->support);
                double slope = sk_sph_kernel_slope(wendland, q) / sph->support;
                sum += sk_sph_kernel(wendland, q);
                squares += slope * slope;
            }
    sph->kernel_scale = 1.0 / (sum * factor * sph->volume);
    sph->lattice_diagonal = squares * sph->spacing * sph->spacing / (sum * sum);
}

/* The viscous force of a pair acts along it, so it conserves angular momentum, and its strength depends on the distance
 * alone. Such forces resist all directions of shear alike if the fourth moments over the neighbours are isotropic: sum
 * f x^4 = 3 sum f x^2 y^2. Over the few neighbours of a kernel of two spacings, slope / r^2 (Monaghan 2005) is far from
 * it: shear along the lattice meets 0.65 of the viscosity, shear across 1.31. Mixed with one or r^2, it is isotropic.
 * Acceleration in a shear flow u(y) is then sum f x^2 y^2 / 2 u'', which sets the strength. */
static void measure_viscosity(const sk_step *step, sk_sph *sph)
{
    const int wendland = sk_sph_is_wendland(step->scene), dimension = step->dimension;
    const double scale = sk_sph_kernel_factor(wendland, dimension, sph->support) * sph->kernel_scale * sph->volume;
    const double s2 = sph->spacing * sph->spacing, softening = SK_SPH_SOFTENING * sph->support * sph->support;
    const int reach = (int)ceil(sph->support / sph->spacing);

    /* Moments of the three shapes: shear, and what is too much along the axes. */
    double shear[3] = {0, 0, 0}, excess[3] = {0, 0, 0};
    for (int z = dimension == 3 ? -reach : 0; z <= (dimension == 3 ? reach : 0); z++)
        for (int y = -reach; y <= reach; y++)
            for (int x = -reach; x <= reach; x++) {
                const double r2 = (x * x + y * y + z * z) * s2;
                const float q = (float)(sqrt(r2) / sph->support);
                if (!(r2 > 0.0) || q >= 1.0f)
                    continue;
                const double f = -scale * sk_sph_kernel_slope(wendland, q) / (sph->support * sqrt(r2)) * s2 * s2;
                const double shape[3] = {s2 / (r2 + softening), 1.0, r2 / s2};
                for (int k = 0; k < 3; k++) {
                    shear[k] += f * shape[k] * x * x * y * y;
                    excess[k] += f * shape[k] * (x * x * x * x - 3.0 * x * x * y * y);
                }
            }

    /* Mix the two shapes between which the excess is zero, and make the shear right. */
    const int low = excess[1] > 0.0 ? 1 : 0;
    const double share = fmin(fmax(excess[low] / (excess[low] - excess[low + 1]), 0.0), 1.0);
    const double strength = 2.0 / (sph->spacing * ((1.0 - share) * shear[low] + share * shear[low + 1]));
    const double unit[3] = {s2, 1.0, 1.0 / s2};
    for (int k = 0; k < 3; k++)
        sph->viscous[k] = strength * unit[k] * (k == low ? 1.0 - share : k == low + 1 ? share : 0.0);
}

/* --- Walls ---
 *
 * In Akinci et al. 2012 a liquid particle sees a wall through the kernel, and only its own pressure acts against the
 * wall. The wall's term p_b of the pair is missing, so particles beside a wall need twice the pressure to stay off it.
 * Along a side wall this is a column of water with twice the weight. Its pressure pushes the particles beside the wall
 * up, the roughness of the wall holds them down, and the pressure in the middle is wrong.
 *
 * A wall that mirrors the liquid, pressure and motion, pushes twice as hard at the same density: a particle that
 * approaches also moves its image. So walls add to the density by a function of their own. At the rest position of the
 * first layer it has the value of the lattice layers behind the wall, and twice their slope. Force and density remain
 * derivatives of each other, and the system remains symmetric.
 */

/* The contribution of the lattice layers beyond a wall to a particle of the first layer: density ratio, and minus its
 * slope times the spacing. */
static void measure_layers(const sk_step *step, const sk_sph *sph, double *value, double *slope)
{
    int wendland = sk_sph_is_wendland(step->scene), dimension = step->dimension;
    double factor = sk_sph_kernel_factor(wendland, dimension, sph->support) * sph->kernel_scale * sph->volume;
    int reach = (int)ceil(sph->support / sph->spacing);
    *value = *slope = 0.0;
    for (int z = dimension == 3 ? -reach : 0; z <= (dimension == 3 ? reach : 0); z++)
        for (int y = 1; y <= reach; y++)
            for (int x = -reach; x <= reach; x++) {
                double r = sqrt((double)(x * x + y * y + z * z)) * sph->spacing;
                float q = (float)(r / sph->support);
                *value += factor * sk_sph_kernel(wendland, q);
                *slope -=
                    factor * sk_sph_kernel_slope(wendland, q) / sph->support * y * sph->spacing / r * sph->spacing;
            }
}

/* The same for a wall of unit weight: a sheet, or a plane of points. */
static double wall_value(const sk_step *step, const sk_sph *sph, int points, double reach, int slope)
{
    const double height = sph->spacing, fine = sph->point_spacing;
    if (!points)
        return slope ? -sk_sph_sheet_slope((float)(height / reach)) * height / reach
                     : sk_sph_sheet((float)(height / reach));
    int around = (int)ceil(reach / fine), deep = step->dimension == 3 ? around : 0;
    double sum = 0.0;
    for (int z = -deep; z <= deep; z++)
        for (int x = -around; x <= around; x++) {
            double r = sqrt(height * height + (x * x + z * z) * fine * fine);
            float q = (float)(r / reach);
            sum += slope ? -sk_sph_point_slope(q) * height / reach * height / r : sk_sph_point(q);
        }
    return sum * pow(fine / sph->spacing, step->dimension - 1);
}

/* Finds the reach at which slope over value is twice that of the layers, and the weight that gives the right value. */
static sk_sph_wall_kernel make_wall_kernel(const sk_step *step, const sk_sph *sph, int points)
{
    double value, slope, low = 1.05 * sph->spacing, high = 4.0 * sph->spacing;
    measure_layers(step, sph, &value, &slope);
    for (int n = 0; n < 60; n++) {
        double middle = 0.5 * (low + high);
        if (wall_value(step, sph, points, middle, 1) * value > 2.0 * slope * wall_value(step, sph, points, middle, 0))
            low = middle;
        else
            high = middle;
    }
    return (sk_sph_wall_kernel){low, value / wall_value(step, sph, points, low, 0)};
}

/* Two walls of a lattice share a line of its points, three share a point. Measured at the first particle of the corner.
 */
static void measure_corners(const sk_step *step, sk_sph *sph)
{
    int wendland = sk_sph_is_wendland(step->scene), dimension = step->dimension;
    double factor = sk_sph_kernel_factor(wendland, dimension, sph->support) * sph->kernel_scale * sph->volume;
    int reach = (int)ceil(sph->support / sph->spacing);
    double two = 0.0, three = 0.0, one, slope;
    for (int z = dimension == 3 ? -reach : 0; z <= (dimension == 3 ? reach : 0); z++)
        for (int y = 1; y <= reach; y++)
            for (int x = 1; x <= reach; x++) {
                float q = (float)(sqrt((double)(x * x + y * y + z * z)) * sph->spacing / sph->support);
                double value = factor * sk_sph_kernel(wendland, q);
                two += value;
                three += z > 0 ? value : 0.0;
            }
    measure_layers(step, sph, &one, &slope);
    sph->edge = two / (one * one);
    sph->corner = three / (one * one * one);
}

/* The natural speed of the scene, m/s: free fall from the ceiling, the initial speed of liquids and sources, and
 * ripples of surface tension. */
static double natural_speed(const sk_step *step)
{
    const selkie_scene *scene = step->scene;
    double speed = 0.0, fall = 0.0;
    for (int l = 0; l < scene->liquid_count; l++)
        speed = fmax(speed, sqrt(pow(scene->liquids[l].velocity[0], 2) + pow(scene->liquids[l].velocity[1], 2) +
                                 pow(scene->liquids[l].velocity[2], 2)));
    for (int s = 0; s < scene->source_count; s++)
        speed = fmax(speed, sqrt(pow(scene->sources[s].velocity[0], 2) + pow(scene->sources[s].velocity[1], 2) +
                                 pow(scene->sources[s].velocity[2], 2)));
    for (int d = 0; d < step->dimension; d++)
        fall += 2.0 * fabs(scene->gravity[d]) * (step->grid.high[d] - step->grid.low[d]);
    /* The shortest ripple, two spacings long. */
    const double ripple = SK_SPH_PI * sk_scene_surface_tension(scene) / (step->density * step->sph->spacing);
    return speed + sqrt(fall) + sqrt(ripple);
}

selkie_code sk_sph_create(sk_step *step, selkie_error *error)
{
    sk_sph *sph = sk_allocate_zeroed(step->memory, sizeof *sph);
    if (!sph || !sk_particles_add_attribute(&step->particles, "pressure", 1, 0)) {
        sk_release(step->memory, sph);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: no memory");
    }
    step->sph = sph;
    sph->memory = step->memory;
    sph->pressure_sum = -1.0;
    sph->support = step->grid.cell_size;
    sph->spacing = step->grid.cell_size / pow(step->particles_per_cell, 1.0 / step->dimension);
    sph->volume = pow(sph->spacing, step->dimension);
    measure_lattice(step, sph);
    measure_viscosity(step, sph);
    sph->point_spacing = 0.5 * sph->spacing;
    sph->sheet = make_wall_kernel(step, sph, 0);
    sph->point = make_wall_kernel(step, sph, 1);
    measure_corners(step, sph);
    double speed = natural_speed(step), longest = 0.0;
    for (int d = 0; d < step->dimension; d++)
        longest = fmax(longest, step->grid.high[d] - step->grid.low[d]);
    sph->correction_time = speed > 0.0 ? 0.4 * sph->spacing / speed : 0.0;
    sph->rate = speed / longest;
    return SELKIE_OK;
}

/* Number of arrays with one value per particle. */
enum { ARRAYS = 2 + 4 + SK_SPH_VARIABLES };

static void list_arrays(sk_sph *sph, void **arrays[ARRAYS])
{
    int n = 0;
    arrays[n++] = (void **)&sph->first;
    arrays[n++] = (void **)&sph->number;
    arrays[n++] = (void **)&sph->density;
    arrays[n++] = (void **)&sph->diagonal;
    arrays[n++] = (void **)&sph->wall_flux;
    arrays[n++] = (void **)&sph->source;
    for (int v = 0; v < SK_SPH_VARIABLES; v++)
        arrays[n++] = (void **)&sph->variable[v];
}

static void free_particles(sk_sph *sph)
{
    void **arrays[ARRAYS];
    list_arrays(sph, arrays);
    for (int a = 0; a < ARRAYS; a++) {
        sk_release(sph->memory, *arrays[a]);
        *arrays[a] = NULL;
    }
    sk_release(sph->memory, sph->shift);
    sk_release(sph->memory, sph->sum_gradient);
    for (int c = 0; c < 3; c++) {
        sk_release(sph->memory, sph->correction[c]);
        sph->correction[c] = NULL;
    }
    sph->shift = NULL;
    sph->sum_gradient = NULL;
    sph->particle_capacity = 0;
}

void sk_sph_destroy(sk_step *step)
{
    sk_sph *sph = step->sph;
    if (!sph)
        return;
    sk_sph_boundary_free(sph);
    free_particles(sph);
    sk_release(sph->memory, sph->lists);
    sk_release(sph->memory, sph->block_sums);
    sk_release(sph->memory, sph->block_wide);
    sk_release(step->memory, sph);
    step->sph = NULL;
}

static selkie_code reserve_particles(sk_sph *sph, size_t count, selkie_error *error)
{
    if (count <= sph->particle_capacity)
        return SELKIE_OK;
    /* The content is recomputed in each step. Reserve more than needed, so that a source does not reallocate in each
     * step. */
    size_t capacity = sph->particle_capacity ? count + count / 4 : count;
    free_particles(sph);
    void **arrays[ARRAYS];
    list_arrays(sph, arrays);
    int ok = (sph->shift = sk_allocate_zeroed(sph->memory, capacity * sizeof *sph->shift)) != NULL &&
             (sph->sum_gradient = sk_allocate_zeroed(sph->memory, capacity * sizeof *sph->sum_gradient)) != NULL;
    for (int c = 0; c < 3; c++)
        ok &= (sph->correction[c] = sk_allocate_zeroed(sph->memory, capacity * sizeof *sph->correction[c])) != NULL;
    for (int a = 0; a < ARRAYS; a++)
        ok &=
            (*arrays[a] = sk_allocate_zeroed(sph->memory, (capacity + 8) * 4)) != NULL; /* loops read eight at a time */
    if (!ok) {
        free_particles(sph);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: no memory for %zu particles", count);
    }
    sph->particle_capacity = capacity;
    return SELKIE_OK;
}

selkie_code sk_sph_reserve(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    SK_TRY(reserve_particles(sph, (size_t)step->particles.count, error));
    size_t blocks = (size_t)step->grid.particle_blocks + 1;
    SK_TRY(sk_reserve(sph->memory, (void **)&sph->block_sums, &sph->block_capacity, blocks, sizeof *sph->block_sums,
                      "sph sums", error));
    SK_TRY(sk_reserve(sph->memory, (void **)&sph->block_wide, &sph->wide_capacity, blocks, 1, "sph blocks", error));
    sph->pressure = (float *)(void *)sk_particles_find_attribute(&step->particles, "pressure")->data;
    return SELKIE_OK;
}

selkie_code sk_sph_reserve_lists(sk_sph *sph, int64_t lines, selkie_error *error)
{
    if (lines >= (int64_t)UINT32_MAX)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "sph: the neighbour lists need %.1f GiB; at most 64 can be held: the particles lie far too close",
            (double)lines * SK_SPH_LINE_BYTES / 1073741824.0);
    size_t bytes = (size_t)lines * SK_SPH_LINE_BYTES;
    if (bytes <= sph->list_capacity)
        return SELKIE_OK;
    sk_release(sph->memory, sph->lists);
    sph->list_capacity = 0;
    sph->lists = sk_allocate(sph->memory, bytes);
    if (!sph->lists)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: no memory for the neighbour lists (%.1f MiB)",
                       (double)bytes / 1048576.0);
    sph->list_capacity = bytes;
    return SELKIE_OK;
}

int sk_sph_viscosity_is_implicit(const sk_step *step)
{
    return sk_scene_viscosity(step->scene) * sk_step_kick(step) > 0.05 * step->sph->spacing * step->sph->spacing;
}

selkie_code sk_sph_viscosity_failed(const sk_step *step, int iterations, selkie_error *error)
{
    return sk_fail(error, SELKIE_ERROR_DIVERGED,
                   "step %lld at %g s: the viscosity of SPH did not converge in %d iterations; use a smaller time.step "
                   "or viscosity",
                   (long long)step->step_count + 1, step->time, iterations);
}

/* Gravity times the extent of the liquid along it, m2/s2: twice the mean pressure of a column over its density. */
static double hydrostatic_speed2(const sk_step *step)
{
    const double *g = step->scene->gravity;
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < step->particles.count; i++) {
        const float *x = step->particles.records[i].position;
        double height = 0.0;
        for (int d = 0; d < step->dimension; d++)
            height -= g[d] * x[d];
        low = fmin(low, height);
        high = fmax(high, height);
    }
    return high > low ? high - low : 0.0;
}

double sk_sph_pressure_speed(const sk_step *step)
{
    if (step->step_count == 0)
        return sqrt(hydrostatic_speed2(step));
    const sk_attribute *attribute = sk_particles_find_attribute(&step->particles, "pressure");
    const float *pressure = (const float *)(const void *)attribute->data;
    const sk_sph *sph = step->sph;
    const double unit = sk_sph_pressure_unit(step->density, sph->spacing, sph->correction_time);
    const int known = step->cuda && sph->pressure_sum >= 0.0;
    double sum = known ? sph->pressure_sum : 0.0;
    for (int64_t i = 0; !known && i < step->particles.count; i++)
        sum += sk_sph_whole_pressure(pressure[i], unit);
    sum *= unit;
    return step->particles.count ? sqrt(2.0 * sum / ((double)step->particles.count * step->density)) : 0.0;
}

double sk_sph_tension_speed(const sk_step *step)
{
    const selkie_sph_def *def = &step->scene->sph;
    const sk_sph *sph = step->sph;
    /* Cohesion presses liquid together with K = factor gamma rho^2 H. The factor is (1 / d) sum m C r / (2 gamma rho H)
     * as an integral over the kernel: 16 x 0.9896 x 1.837e-3 in 2D, 64 / 3 x 1.151e-3 in 3D. */
    const double factor = step->dimension == 2 ? 0.0291 : 0.0246;
    if (def->surface_tension == SELKIE_TENSION_AKINCI)
        return sqrt(2.0 * factor * def->tension * step->density * sph->support);
    return def->surface_tension == SELKIE_TENSION_BECKER ? sqrt(def->tension) * sph->spacing : 0.0;
}

double sk_sph_order_pressure(const sk_step *step)
{
    const double *g = step->scene->gravity;
    const double pull = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) * step->sph->spacing; /* m2/s2 */
    double fastest2 = 0.0;
    for (int b = 0; step->rigid && b < step->rigid->body_count; b++) {
        const double *v = step->rigid->states[b].velocity;
        fastest2 = fmax(fastest2, v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    }
    if (!(pull > 0.0 && fastest2 > 0.0))
        return INFINITY;
    const double least = SK_SPH_ORDER_DEPTH * step->density * pull;
    return least / fmin(sqrt(fastest2 / pull) / SK_SPH_ORDER_SPEED, 1.0);
}

double sk_sph_bytes_per_particle(int dimension)
{
    double arrays = 4.0 * ARRAYS + 32 + 48, attribute = 2 * 4;
    return arrays + attribute + (dimension == 3 ? 34 * 8 : 16 * 8);
}

double sk_sph_at(const sk_step *step, const double at[3], int component)
{
    const sk_sph *sph = step->sph;
    const sk_attribute *pressure = sk_particles_find_attribute(&step->particles, "pressure");
    double sum = 0.0, weights = 0.0;
    for (int64_t p = 0; p < step->particles.count; p++) {
        const sk_particle *particle = &step->particles.records[p];
        double r2 = 0.0;
        for (int d = 0; d < step->dimension; d++) {
            double way = particle->position[d] - at[d];
            if (step->grid.periodic >> d & 1)
                way = sk_wrap_difference((float)way, step->grid.period[d]);
            r2 += way * way;
        }
        if (r2 >= sph->support * sph->support)
            continue;
        double w = sk_sph_cubic((float)(sqrt(r2) / sph->support)), value;
        if (component < 0) {
            float p_here;
            memcpy(&p_here, &pressure->data[p], sizeof p_here);
            value = p_here;
        } else {
            value = particle->velocity[component];
        }
        sum += w * value;
        weights += w;
    }
    return weights > 0.0 ? sum / weights : component < 0 ? 0.0 : NAN;
}
