/* Parts shared by both forms of the phase `forces`. For files compiled per dimension.
 *
 * Forces other than pressure change the velocities, and the pressure solve follows. Forces between particles are equal
 * and opposite in each pair and conserve momentum.
 *
 *   gravity and the scene's force fields
 *   viscosity        a_i = nu sum_j V_j (v_ij . x_ij) (a / (r^2 + 0.01 H^2) + b + c r^2) grad W_ij  (Monaghan 2005 has
 *                    b = c = 0; measure_viscosity in sph.c); implicit (Weiler et al. 2018) if an explicit step would be
 *                    unstable: viscosity_dim.c
 *   xsph             v_i += xi sum_j V_j (v_j - v_i) W_ij  (Monaghan 1989), more at the surface: sk_sph_calmed
 *   filter           l_i = sum_j V_j f_ij (v_j - v_i) W_ij, v_i -= phi sum_j V_j f_ij (l_j - l_i) W_ij; for f_ij see
 *                    sk_sph_filter_weight
 *   becker           a_i = -kappa sum_j (w W_ij) x_ij  (Becker and Teschner 2007)
 *   akinci           a_i = -gamma sum_j K_ij (m_j C_ij x_ij / r + (n_i - n_j)), n_i = H sum_j V_j grad W_ij,
 *                    K_ij = 2 / (D_i + D_j)  (Akinci et al. 2013)
 *
 * V_j is the particle volume over the mean density ratio of the two.
 */
#ifndef SK_METHODS_SPH_FORCE_PARTS_H
#define SK_METHODS_SPH_FORCE_PARTS_H

#include <math.h>

#include "defs/materials.h"
#include "methods/force_fields.h"
#include "methods/sph/sph.h"
#include "methods/sph/sph_pair_kernels.h"

/* Noise of the curvature stirs drops without viscosity: beside surface tension in N/m XSPH has at least this share. */
#define TENSION_XSPH 0.1

static double xsph_of(const selkie_scene *scene)
{
    return sk_scene_surface_tension(scene) > 0.0 ? fmax(scene->sph.xsph, TENSION_XSPH) : scene->sph.xsph;
}

static int any_pair_force(const sk_step *step)
{
    const selkie_sph_def *def = &step->scene->sph;
    return sk_scene_viscosity(step->scene) > 0.0 || xsph_of(step->scene) > 0.0 ||
           (def->surface_tension != SELKIE_TENSION_NONE && def->tension > 0.0);
}

/* The rate, 1/s, of XSPH that damps noise about as the scene's viscosity does. */
static double viscous_rate(const sk_step *step)
{
    return 3.0 * sk_scene_viscosity(step->scene) / (step->sph->spacing * step->sph->spacing);
}

/* More XSPH at the surface and the filter of noise, in scenes with gravity. Viscosity stands in for them. */
static void set_calming(const sk_step *step, double kick, sk_sph_force_constants *constants)
{
    const sk_sph *sph = step->sph;
    const double *g = step->scene->gravity, spacing = sph->spacing;
    const double pull = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) * spacing; /* m2/s2 */
    if (!(pull > 0.0) || !(constants->xsph > 0.0f) || !(sph->correction_time > 0.0))
        return;
    const double viscous = viscous_rate(step);
    const double share = kick * fmax(SK_SPH_CALMING / sph->correction_time - viscous, 0.0);
    constants->calming = (float)fmin(share, 0.5 - (double)constants->xsph);
    /* Akinci's curvature needs the array of the lags for its normals. Rigid bodies stick with it: one of density 900
     * two spacings over the floor rose by 8 % of the ideal way, without it by 30 % at least. */
    const double rate =
        constants->curvature > 0.0f || step->scene->body_count ? 0.0 : SK_SPH_FILTER / sph->correction_time - viscous;
    constants->filter = (float)fmin(kick * fmax(rate, 0.0), SK_SPH_MOST_FILTER);
    constants->calm_pressure = (float)(1.0 / (SK_SPH_CALM_DEPTH * step->density * pull));
    constants->calm_speed = (float)(1.0 / (SK_SPH_CALM_SPEED * SK_SPH_CALM_SPEED * pull));
}

static sk_sph_force_constants make_force_constants(const sk_step *step)
{
    const sk_sph *sph = step->sph;
    const selkie_scene *scene = step->scene;
    const double kick = sk_step_kick(step), tension = scene->sph.tension;
    const int wendland = sk_sph_is_wendland(scene);
    const double factor = sk_sph_kernel_factor(wendland, SELKIE_DIM, sph->support);
    sk_sph_force_constants constants = {
        .spacing = (float)sph->spacing,
        .wendland = wendland,
        .inverse_support = (float)(1.0 / sph->support),
        .weight = (float)(factor * sph->volume * sph->kernel_scale),
        .xsph = (float)fmin(xsph_of(scene) * (sph->correction_time > 0.0 ? kick / sph->correction_time : 1.0), 0.5)};
    constants.viscous = sk_scene_viscosity(scene) > 0.0 && !sk_sph_viscosity_is_implicit(step);
    constants.viscosity = sk_sph_viscous_shape_of(sph->viscous, sk_scene_viscosity(scene) * kick, sph->support);
    if (scene->sph.surface_tension == SELKIE_TENSION_BECKER)
        constants.becker = (float)(tension * kick);
    if (scene->sph.surface_tension == SELKIE_TENSION_AKINCI && tension > 0.0) {
        constants.cohesion =
            (float)(tension * kick * step->particle_mass * sk_sph_cohesion_factor(SELKIE_DIM, sph->support));
        constants.curvature = (float)(tension * kick);
    }
    set_calming(step, kick, &constants);
    /* XSPH is viscosity, too, and would slow small bodies: viscosity stands in for as much of it. */
    if (scene->body_count)
        constants.xsph = (float)fmax((double)constants.xsph - kick * viscous_rate(step), 0.0);
    return constants;
}

/* Adds the velocity changes in sph->variable to all particles at once. */
static void take_up_changes(sk_step *step)
{
    const sk_sph *sph = step->sph;
    sk_particle *records = step->particles.records;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++)
        if (!(records[i].flags & SK_PARTICLE_BOUNDARY))
            for (int d = 0; d < SELKIE_DIM; d++)
                records[i].velocity[d] += sph->variable[d][i];
}

/* Gravity and the scene's force fields. */
static selkie_code add_outer_forces(sk_step *step, selkie_error *error)
{
    const double kick = sk_step_kick(step);
    float change[3];
    for (int d = 0; d < 3; d++)
        change[d] = d < SELKIE_DIM ? (float)(kick * step->scene->gravity[d]) : 0.0f;
    sk_force_field *fields;
    SK_TRY(sk_step_scratch(step, (size_t)(sk_force_fields_most(step->scene) + 1) * sizeof *fields, "forces",
                           (void **)&fields, error));
    const int field_count =
        sk_force_fields_most(step->scene) ? sk_force_fields_in(step->scene, sk_step_force_window(step), fields) : 0;
    sk_particle *records = step->particles.records;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++) {
        if (records[i].flags & SK_PARTICLE_BOUNDARY)
            continue;
        float extra[3] = {0, 0, 0};
        if (field_count)
            sk_force_fields_velocity_change(fields, field_count, records[i].position, extra);
        for (int d = 0; d < SELKIE_DIM; d++)
            records[i].velocity[d] += change[d] + extra[d];
    }
    return SELKIE_OK;
}

#endif
