/* FLIP, PIC and APIC as a method: the base of every grid scene. */
#include "defs/materials.h"
#include "defs/structs.h"
#include "methods/balance.h"
#include "methods/classify.h"
#include "methods/flip/flip.h"
#include "methods/flip/reflection.h"

selkie_code sk_flip_judge_pressure(const sk_step *step, selkie_error *error)
{
    const selkie_pressure_def *def = &step->scene->pressure;
    if (step->pressure.converged)
        return SELKIE_OK;
    return sk_fail(error, SELKIE_ERROR_DIVERGED,
                   "step %lld at %g s: the pressure solve stopped at a residual of %.3g after %d iterations (asked: "
                   "pressure.tolerance %g, pressure.max_iterations %d); raise one of the two",
                   (long long)step->step_count + 1, step->time, step->pressure.residual, step->pressure.iterations,
                   def->tolerance, def->max_iterations);
}

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID;
}

/* Does FLIP meet obstacles, now or after a change of the scene? */
static int follows_walls(const selkie_scene *scene)
{
    return scene->transfer == SELKIE_TRANSFER_FLIP && scene->incompressibility == SELKIE_INCOMPRESSIBILITY_BILATERAL;
}

/* Adds the fields of a vector on faces. `first` becomes the first of them. */
static selkie_code add_fields(sk_step *step, const sk_field_def defs[3], int *first, selkie_error *error)
{
    for (int d = 0; d < step->dimension; d++) {
        const int field = sk_grid_add_field(&step->grid, &defs[d], error);
        if (field < 0)
            return SELKIE_ERROR_MEMORY;
        *first = d ? *first : field;
    }
    return SELKIE_OK;
}

/* The fields of the velocity at the end of a reflected step. */
static selkie_code add_end_velocity(sk_step *step, selkie_error *error)
{
    static const sk_field_def defs[3] = {
        {"end_velocity_x", "m/s", 0, SK_LIFETIME_STEP, __builtin_nanf(""), "velocity at the end of a reflected step"},
        {"end_velocity_y", "m/s", 1, SK_LIFETIME_STEP, __builtin_nanf(""), "velocity at the end of a reflected step"},
        {"end_velocity_z", "m/s", 2, SK_LIFETIME_STEP, __builtin_nanf(""), "velocity at the end of a reflected step"}};
    return add_fields(step, defs, &step->end_velocity, error);
}

/* The fields of the change by the pressure that balances gravity. */
static selkie_code add_balance(sk_step *step, selkie_error *error)
{
    static const sk_field_def defs[3] = {
        {"balance_x", "m/s", 0, SK_LIFETIME_STEP, 0.0f, "change by pressure while viscosity acts"},
        {"balance_y", "m/s", 1, SK_LIFETIME_STEP, 0.0f, "change by pressure while viscosity acts"},
        {"balance_z", "m/s", 2, SK_LIFETIME_STEP, 0.0f, "change by pressure while viscosity acts"}};
    return add_fields(step, defs, &step->balance, error);
}

/* The fields of the particles' velocity beside obstacles. Unilateral incompressibility closes its faces otherwise. */
static selkie_code add_before_walls(sk_step *step, selkie_error *error)
{
    static const sk_field_def defs[3] = {{"before_walls_x", "m/s", 0, SK_LIFETIME_STEP, __builtin_nanf(""),
                                          "velocity of the particles beside obstacles"},
                                         {"before_walls_y", "m/s", 1, SK_LIFETIME_STEP, __builtin_nanf(""),
                                          "velocity of the particles beside obstacles"},
                                         {"before_walls_z", "m/s", 2, SK_LIFETIME_STEP, __builtin_nanf(""),
                                          "velocity of the particles beside obstacles"}};
    return add_fields(step, defs, &step->before_walls, error);
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    if (follows_walls(step->scene))
        SK_TRY(add_before_walls(step, error));
    if (flip_reflects(step))
        SK_TRY(add_end_velocity(step, error));
    if (sk_step_balances(step))
        SK_TRY(add_balance(step, error));
    if (step->scene->transfer == SELKIE_TRANSFER_APIC && !sk_particles_add_attribute(&step->particles, "affine", 9, 0))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "particles: no memory for the attribute \"affine\"");
    step->solver = step->dimension == 2 ? sk_poisson_create_2d(step->memory) : sk_poisson_create_3d(step->memory);
    if (!step->solver)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "pressure: no memory for the solver");
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    if (step->solver && step->dimension == 2)
        sk_poisson_destroy_2d(step->solver);
    if (step->solver && step->dimension == 3)
        sk_poisson_destroy_3d(step->solver);
    step->solver = NULL;
}

/* rho of the step that begins: 0 in the first one, whose velocities are those of the positions. If steps grow, the
 * change covers the longer step. In a viscous liquid a mode that decays by 1 / (1 + x / (1 + rho)) in the solve would
 * change its sign if rho x > 1 + rho. x is at most 8 nu dt d / h^2, at the scale of a cell in d dimensions. */
static double flip_reflection(const sk_step *step)
{
    if (!flip_reflects(step) || !(step->last_dt > 0.0))
        return 0.0;
    const double rho = fmin(1.0, sk_scene_reflection(step->scene) * step->dt / step->last_dt), h = step->grid.cell_size;
    const double x =
        8.0 * step->dimension * sk_scene_viscosity(step->scene) * 0.5 * (step->dt + step->last_dt) / (h * h);
    return x > 1.0 ? fmin(rho, 1.0 / (x - 1.0)) : rho;
}

static void begin(sk_step *step)
{
    step->reflection = flip_reflection(step);
}

static int moves_at_once(const sk_step *step)
{
    return !(step->needs & SK_NEEDS_SPLIT_MOVE);
}

static int moves_in_two(const sk_step *step)
{
    return !moves_at_once(step);
}

/* Has a surface friction? */
static int rubs(const sk_step *step)
{
    return step->solids.has_friction;
}

/* Do FLIP's particles meet a surface that holds liquid? */
static int holds(const sk_step *step)
{
    const sk_solids *solids = &step->solids;
    int held = 0;
    for (int side = 0; side < 2 * step->dimension; side++)
        held |= solids->walls[side] == SELKIE_WALL_NO_SLIP;
    for (int o = 0; o < solids->obstacle_count; o++)
        held |= solids->obstacles[o].surface == SELKIE_WALL_NO_SLIP;
    return held && step->scene->transfer == SELKIE_TRANSFER_FLIP;
}

static int balances(const sk_step *step)
{
    return step->balance > 0;
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    s->pressure_iterations = step->pressure.iterations;
    s->pressure_residual = step->pressure.residual;
    s->density_error_mean = step->density_error_mean;
    s->density_error_max = step->density_error_max;
    s->density_error_std = step->density_error_std;
}

static double bytes_per_particle(const selkie_scene *scene)
{
    const double affine = 9 * 4;
    return scene->transfer == SELKIE_TRANSFER_APIC ? 2 * affine : 0.0; /* the sort keeps two copies */
}

static double bytes_per_cell(const selkie_scene *scene)
{
    const double of_end = sk_scene_reflection(scene) > 0.0 ? 3 * sizeof(float) : 0.0;
    return of_end + (sk_scene_balances(scene) ? 3 * sizeof(float) : 0.0) +
           (follows_walls(scene) ? 3 * sizeof(float) : 0.0);
}

const sk_method sk_method_flip = {
    .name = "flip",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .fields = SK_FIELDS_LIQUID,
    .takes_part = takes_part,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .phases =
        {
            {.name = "to_grid", .slot = SK_SLOT_TO_GRID, .run = SK_FORMS(sk_flip_to_grid, sk_flip_to_grid_plain)},
            {.name = "classify", .slot = SK_SLOT_CLASSIFY, .run = SK_FORMS(sk_classify, sk_classify_plain)},
            {.name = "forces", .slot = SK_SLOT_FORCES, .run = SK_ONE_FORM(sk_flip_forces)},
            {.name = "balance", .slot = SK_SLOT_VISCOSITY, .run = SK_ONE_FORM(sk_flip_balance), .when = balances},
            {.name = "release", .slot = SK_SLOT_TARGET, .run = SK_ONE_FORM(sk_balance_release), .when = balances},
            {.name = "pressure", .slot = SK_SLOT_PRESSURE, .run = SK_FORMS(sk_flip_pressure, sk_flip_pressure_plain)},
            {.name = "wall_friction", .slot = SK_SLOT_PRESSURE, .run = SK_ONE_FORM(sk_flip_friction), .when = rubs},
            {.name = "extrapolate",
             .slot = SK_SLOT_EXTRAPOLATE,
             .run = SK_FORMS(sk_flip_extrapolate, sk_flip_extrapolate_plain)},
            {.name = "move",
             .slot = SK_SLOT_MOVE,
             .run = SK_FORMS(sk_flip_move, sk_flip_move_plain),
             .when = moves_at_once},
            {.name = "to_particles",
             .slot = SK_SLOT_TO_PARTICLES,
             .run = SK_FORMS(sk_flip_to_particles, sk_flip_to_particles_plain),
             .when = moves_in_two},
            {.name = "advect",
             .slot = SK_SLOT_MOVE,
             .run = SK_FORMS(sk_flip_advect, sk_flip_advect_plain),
             .when = moves_in_two},
            {.name = "wall_layer", .slot = SK_SLOT_MOVE, .run = SK_ONE_FORM(sk_flip_wall_layer), .when = holds},
        },
    .statistics = statistics,
    .bytes_per_particle = bytes_per_particle,
    .bytes_per_cell = bytes_per_cell,
};
