/* The phases that have a CUDA form, and what no phase says: parts of a scene that the GPU cannot run. */
#include "cuda/phases.h"
#include "cuda/cuda.h"
#include "defs/heat.h"
#include "defs/materials.h"
#include "defs/soft.h"
#include "defs/structs.h"
#include "methods/shape_matching/shape_matching.h"
#include "selkie_config.h"

#if SELKIE_HAVE_CUDA

#include <string.h>

static const struct {
    const char *method, *phase;
    sk_phase_function run[2]; /* 2D, 3D */
} forms[] = {
    {"sorting", "sort", {sk_cuda_sort_2d, sk_cuda_sort_3d}},
    {"sorting", "solids", {sk_cuda_solids_2d, sk_cuda_solids_3d}},
    {"idp", "density", {sk_cuda_density_2d, sk_cuda_density_3d}},
    {"idp", "density_classify", {sk_cuda_classify_cells_2d, sk_cuda_classify_cells_3d}},
    {"idp", "density_correct", {sk_cuda_correct_2d, sk_cuda_correct_3d}},
    {"idp", "sort_again", {sk_cuda_sort_again_2d, sk_cuda_sort_again_3d}},
    {"idp", "solids_again", {sk_cuda_solids_2d, sk_cuda_solids_3d}},
    {"flip", "to_grid", {sk_cuda_to_grid_2d, sk_cuda_to_grid_3d}},
    {"flip", "classify", {sk_cuda_classify_2d, sk_cuda_classify_3d}},
    {"flip", "forces", {sk_cuda_forces_2d, sk_cuda_forces_3d}},
    {"viscosity", "viscosity", {sk_cuda_viscosity_2d, sk_cuda_viscosity_3d}},
    {"heat", "heat", {sk_cuda_heat_2d, sk_cuda_heat_3d}},
    {"heat", "expansion", {sk_cuda_expand_2d, sk_cuda_expand_3d}},
    {"heat", "heat_sums", {sk_cuda_heat_sums_2d, sk_cuda_heat_sums_3d}},
    {"surface_tension", "surface_tension", {sk_cuda_tension_2d, sk_cuda_tension_3d}},
    {"surface_tension", "curvature", {sk_cuda_tension_of_particles_2d, sk_cuda_tension_of_particles_3d}},
    {"flip", "balance", {sk_cuda_balance_2d, sk_cuda_balance_3d}},
    {"flip", "release", {sk_cuda_release_2d, sk_cuda_release_3d}},
    {"flip", "pressure", {sk_cuda_pressure_2d, sk_cuda_pressure_3d}},
    {"flip", "wall_friction", {sk_cuda_friction_2d, sk_cuda_friction_3d}},
    {"flip", "extrapolate", {sk_cuda_extrapolate_2d, sk_cuda_extrapolate_3d}},
    {"flip", "move", {sk_cuda_move_2d, sk_cuda_move_3d}},
    {"flip", "wall_layer", {sk_cuda_wall_layer_2d, sk_cuda_wall_layer_3d}},
    {"flip", "to_particles", {sk_cuda_to_particles_2d, sk_cuda_to_particles_3d}},
    {"flip", "advect", {sk_cuda_advect_2d, sk_cuda_advect_3d}},
    {"unilateral", "solids", {sk_cuda_solids_2d, sk_cuda_solids_3d}},
    {"unilateral", "solids_again", {sk_cuda_uic_solids_2d, sk_cuda_uic_solids_3d}},
    {"unilateral", "density_correct", {sk_cuda_uic_correct_2d, sk_cuda_uic_correct_3d}},
    {"unilateral", "balance", {sk_cuda_uic_balance_2d, sk_cuda_uic_balance_3d}},
    {"unilateral", "predict", {sk_cuda_uic_predict_2d, sk_cuda_uic_predict_3d}},
    {"unilateral", "pressure", {sk_cuda_uic_pressure_2d, sk_cuda_uic_pressure_3d}},
    {"unilateral", "extrapolate", {sk_cuda_uic_extrapolate_2d, sk_cuda_uic_extrapolate_3d}},
    {"unilateral", "shift", {sk_cuda_uic_shift_2d, sk_cuda_uic_shift_3d}},
    {"particle_forces", "particle_forces", {sk_cuda_particle_forces, sk_cuda_particle_forces}},
    {"sources", "sources", {sk_cuda_sources, sk_cuda_sources}},
    {"sources", "emit", {sk_cuda_emit, sk_cuda_emit}},
    {"splashes", "droplets_apart", {sk_cuda_part_droplets_2d, sk_cuda_part_droplets_3d}},
    {"splashes", "splashes", {sk_cuda_find_splashes_2d, sk_cuda_find_splashes_3d}},
    {"splashes", "droplets", {sk_cuda_fly_droplets_2d, sk_cuda_fly_droplets_3d}},
    {"rigid_liquid", "couple", {sk_cuda_couple_2d, sk_cuda_couple_3d}},
    {"rigid_liquid", "drag", {sk_cuda_drag_2d, sk_cuda_drag_3d}},
    {"rigid_liquid", "bodies", {sk_cuda_bodies_2d, sk_cuda_bodies_3d}},
    {"rigid_liquid", "body_contacts", {sk_cuda_contacts_2d, sk_cuda_contacts_3d}},
    {"shape_matching", "match", {sk_soft_match_plain_2d, sk_soft_match_plain_3d}},
    {"shape_matching", "place", {sk_cuda_soft_place_2d, sk_cuda_soft_place_3d}},
    {"shape_matching", "sort_bodies", {sk_cuda_soft_sort_2d, sk_cuda_soft_sort_3d}},
    {"shape_matching", "solids_bodies", {sk_cuda_solids_2d, sk_cuda_solids_3d}},
    {"shape_matching", "mix", {sk_cuda_soft_mix_2d, sk_cuda_soft_mix_3d}},
    {"shape_matching", "remember", {sk_cuda_soft_remember_2d, sk_cuda_soft_remember_3d}},
    {"shape_matching", "part", {sk_cuda_soft_part_2d, sk_cuda_soft_part_3d}},
    {"shape_matching", "meet", {sk_cuda_soft_meet_2d, sk_cuda_soft_meet_3d}},
    {"shape_matching", "match_late", {sk_soft_match_late_2d, sk_soft_match_late_3d}},
    {"shape_matching", "lead", {sk_cuda_soft_lead_2d, sk_cuda_soft_lead_3d}},
    {"shape_matching", "follow", {sk_cuda_soft_follow_2d, sk_cuda_soft_follow_3d}},
    {"frozen", "frozen_hold", {sk_cuda_frozen_hold_2d, sk_cuda_frozen_hold_3d}},
    {"frozen", "frozen_find", {sk_cuda_frozen_find_2d, sk_cuda_frozen_find_3d}},
    {"frozen", "frozen_couple", {sk_cuda_frozen_couple_2d, sk_cuda_frozen_couple_3d}},
    {"frozen", "frozen_push", {sk_cuda_frozen_push_2d, sk_cuda_frozen_push_3d}},
    {"frozen", "frozen_move", {sk_cuda_frozen_move_2d, sk_cuda_frozen_move_3d}},
    {"immersed", "keep", {sk_cuda_immersed_keep_2d, sk_cuda_immersed_keep_3d}},
    {"immersed", "place", {sk_cuda_immersed_place_2d, sk_cuda_immersed_place_3d}},
    {"immersed", "sort_points", {sk_cuda_sort_2d, sk_cuda_sort_3d}},
    {"immersed", "solids_points", {sk_cuda_solids_2d, sk_cuda_solids_3d}},
    {"immersed", "mix", {sk_cuda_immersed_mix_2d, sk_cuda_immersed_mix_3d}},
    {"immersed", "remember", {sk_cuda_immersed_remember_2d, sk_cuda_immersed_remember_3d}},
    {"immersed", "part", {sk_cuda_immersed_part_2d, sk_cuda_immersed_part_3d}},
    {"immersed", "to_points", {sk_cuda_immersed_to_points_2d, sk_cuda_immersed_to_points_3d}},
    {"immersed", "expel", {sk_cuda_immersed_expel_2d, sk_cuda_immersed_expel_3d}},
    {"mpm", "sort", {sk_cuda_sort_2d, sk_cuda_sort_3d}},
    {"mpm", "to_grid", {sk_cuda_mpm_to_grid_2d, sk_cuda_mpm_to_grid_3d}},
    {"mpm", "nodes", {sk_cuda_mpm_nodes_2d, sk_cuda_mpm_nodes_3d}},
    {"mpm", "to_points", {sk_cuda_mpm_to_points_2d, sk_cuda_mpm_to_points_3d}},
    {"sph", "boundary", {sk_cuda_sph_boundary_2d, sk_cuda_sph_boundary_3d}},
    {"sph", "neighbours", {sk_cuda_sph_neighbours_2d, sk_cuda_sph_neighbours_3d}},
    {"sph", "forces", {sk_cuda_sph_forces_2d, sk_cuda_sph_forces_3d}},
    {"sph", "friction", {sk_cuda_sph_friction_2d, sk_cuda_sph_friction_3d}},
    {"sph", "correct", {sk_cuda_sph_correct_2d, sk_cuda_sph_correct_3d}},
    {"sph", "pressure", {sk_cuda_sph_pressure_2d, sk_cuda_sph_pressure_3d}},
    {"sph", "wall_friction", {sk_cuda_sph_wall_friction_2d, sk_cuda_sph_wall_friction_3d}},
    {"sph", "integrate", {sk_cuda_sph_integrate_2d, sk_cuda_sph_integrate_3d}},
    {"liquid_boundary", "roles", {sk_cuda_roles_of_particles, sk_cuda_roles_of_particles}},
    {"liquid_boundary", "animate", {sk_cuda_animate, sk_cuda_animate}},
    {"liquid_boundary", "hold", {sk_cuda_hold_2d, sk_cuda_hold_3d}},
    {"densities", "weigh", {sk_cuda_masses_2d, sk_cuda_masses_3d}},
};

sk_phase_function sk_cuda_phase(const char *method, const char *phase, int dimension)
{
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        if (strcmp(forms[f].method, method) == 0 && strcmp(forms[f].phase, phase) == 0)
            return forms[f].run[dimension - 2];
    return NULL;
}

/* The members of a shape. */
static int parts_of(const selkie_shape *shape)
{
    int count = shape->kind != SELKIE_SHAPE_UNION;
    for (int c = 0; c < shape->child_count && count <= SK_CUDA_MOST_PARTS; c++)
        count += parts_of(&shape->children[c]);
    return count;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int has_large_union(const selkie_scene *scene)
{
    int most = 0;
    for (int o = 0; o < scene->obstacle_count; o++)
        most = larger(most, parts_of(&scene->obstacles[o].shape));
    for (int s = 0; s < scene->source_count; s++)
        most = larger(most, parts_of(&scene->sources[s].shape));
    for (int s = 0; s < scene->drain_count; s++)
        most = larger(most, parts_of(&scene->drains[s].shape));
    for (int o = 0; o < scene->object_count; o++)
        for (int r = 0; r < scene->objects[o].region_count; r++)
            most = larger(most, parts_of(&scene->objects[o].regions[r]));
    for (int b = 0; b < scene->body_count; b++)
        most = larger(most, parts_of(&scene->bodies[b].shape));
    for (int c = 0; c < scene->change_count; c++) {
        const selkie_change_def *change = &scene->changes[c];
        const selkie_shape *const shapes[] = {&change->obstacle.shape, &change->source.shape, &change->drain.shape,
                                              &change->body.shape};
        const selkie_change_kind kinds[] = {SELKIE_CHANGE_OBSTACLE, SELKIE_CHANGE_SOURCE, SELKIE_CHANGE_DRAIN,
                                            SELKIE_CHANGE_BODY};
        for (int n = 0; n < 4; n++)
            most = larger(most, change->kind == kinds[n] ? parts_of(shapes[n]) : 0);
    }
    return most > SK_CUDA_MOST_PARTS;
}

/* Blocks that touch must differ in colour for the solver's smoother, unless a block touches itself. */
static int has_odd_period(const selkie_scene *scene)
{
    const int extent = scene->domain.dimension == 3 ? 8 : 16; /* cells of a block */
    int cells[3], odd = 0;
    selkie_scene_cells(scene, cells);
    for (int d = 0; d < scene->domain.dimension; d++)
        odd |= (int)scene->domain.periodic >> d & 1 && cells[d] / extent % 2 && cells[d] / extent > 1;
    return odd;
}

/* Parts of unilateral incompressibility; NULL = none is missing. */
static const char *missing_in_unilateral(const selkie_scene *scene)
{
    const selkie_unilateral_def *def = &scene->unilateral;
    return def->prediction != SELKIE_PREDICTION_PARTICLES ? "unilateral.prediction \"flux\""
           : def->solver != SELKIE_UNILATERAL_ACTIVE_SET  ? "unilateral.solver \"mprgp\""
                                                          : NULL;
}

/* The modes of rigid bodies are dense matrices on the device: 0.3 GB each for so many bodies. */
enum { MOST_BODIES = 1024 };

/* Does a change of the run add an element of a kind? */
static int adds(const selkie_scene *scene, selkie_change_kind kind)
{
    int found = 0;
    for (int c = 0; c < scene->change_count; c++)
        found |= scene->changes[c].kind == kind;
    return found;
}

/* Parts of scenes with bodies; NULL = none is missing. */
static const char *missing_beside_bodies(const selkie_scene *scene)
{
    int rubs = 0;
    for (int b = 0; b < scene->body_count; b++)
        rubs |= scene->bodies[b].liquid_friction > 0.0;
    for (int c = 0; c < scene->change_count; c++)
        rubs |= scene->changes[c].kind == SELKIE_CHANGE_BODY && scene->changes[c].body.liquid_friction > 0.0;
    if (rubs)
        return "bodies with liquid_friction";
    return scene->discretization != SELKIE_DISCRETIZATION_GRID ? "bodies outside of the grid methods"
           : scene->body_count > MOST_BODIES                   ? "more than 1024 rigid bodies"
           : scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL
               ? "rigid bodies with unilateral incompressibility"
           : scene->domain.periodic ? "rigid bodies between periodic sides"
                                    : NULL;
}

/* Parts of scenes with bodies of particles; NULL = none is missing. */
static const char *missing_beside_particle_bodies(const selkie_scene *scene)
{
    return scene->discretization != SELKIE_DISCRETIZATION_GRID ? "bodies of particles outside of the grid methods"
           : scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL
               ? "bodies of particles with unilateral incompressibility"
           : sk_scene_viscosity(scene) > 0.0       ? "bodies of particles in a viscous liquid"
           : sk_scene_has_heat(scene)              ? "bodies of particles with heat"
           : sk_scene_surface_tension(scene) > 0.0 ? "bodies of particles with surface tension"
           : scene->splashes && scene->splashes[0] ? "bodies of particles with splashes"
           : scene->domain.periodic                ? "bodies of particles between periodic sides"
                                                   : NULL;
}

/* Parts of scenes with elastoplastic points beside liquids; NULL = none is missing. */
static const char *missing_beside_points(const selkie_scene *scene)
{
    return sk_scene_viscosity(scene) > 0.0         ? "elastoplastic materials in a viscous liquid"
           : sk_scene_surface_tension(scene) > 0.0 ? "elastoplastic materials with surface tension"
           : scene->splashes && scene->splashes[0] ? "elastoplastic materials with splashes"
                                                   : NULL;
}

/* The part of a scene that the GPU cannot run yet; NULL = none. What its changes add counts from the start, so that a
 * run does not end in the middle. */
static const char *missing_part(const selkie_scene *scene)
{
    const int has_points = scene->discretization == SELKIE_DISCRETIZATION_MPM;
    const int is_sph = scene->discretization == SELKIE_DISCRETIZATION_SPH;
    if (scene->discretization != SELKIE_DISCRETIZATION_GRID && !has_points && !is_sph)
        return "a discretization other than \"grid\", \"mpm\" and \"sph\"";
    const int has_streams = scene->source_count || scene->drain_count || adds(scene, SELKIE_CHANGE_SOURCE) ||
                            adds(scene, SELKIE_CHANGE_DRAIN);
    if (scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL && missing_in_unilateral(scene))
        return missing_in_unilateral(scene);
    const int of_particles = sk_scene_particle_bodies(scene);
    if ((scene->body_count > of_particles || adds(scene, SELKIE_CHANGE_BODY)) && missing_beside_bodies(scene))
        return missing_beside_bodies(scene);
    if (of_particles && missing_beside_particle_bodies(scene))
        return missing_beside_particle_bodies(scene);
    if (sk_scene_has_immersed_points(scene) && missing_beside_points(scene))
        return missing_beside_points(scene);
    if (scene->force_count >= SK_CUDA_MOST_FORCES)
        return "so many force fields";
    if (scene->domain.periodic && is_sph &&
        (scene->obstacle_count || adds(scene, SELKIE_CHANGE_OBSTACLE) || has_streams))
        return "periodic sides with obstacles, sources or drains in SPH";
    if (scene->domain.periodic && has_points)
        return "periodic sides with points";
    if (scene->domain.periodic && !has_points && !is_sph && sk_scene_viscosity(scene) > 0.0)
        return "viscosity between periodic sides";
    if (has_odd_period(scene))
        return "periodic sides with an odd number of blocks between them";
    if (has_large_union(scene))
        return "unions of more than 64 shapes";
    return NULL;
}

selkie_code sk_cuda_check(const selkie_scene *scene, selkie_error *error)
{
    const char *part = missing_part(scene);
    if (part)
        return sk_fail(error, SELKIE_ERROR_INPUT, "backend: \"cuda\" cannot run %s yet; use \"tuned\"", part);
    return SELKIE_OK;
}

#endif
