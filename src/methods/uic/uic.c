/* Unilateral incompressibility as a method: replaces FLIP's pressure and extrapolation. */
#include "defs/structs.h"
#include "methods/sorting.h"
#include "methods/uic/uic.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID &&
           scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
}

/* Position shifts need a split move: they come between the velocity update and the advection. */
static int also_needs(const selkie_scene *scene)
{
    return scene->unilateral.density_correction ? SK_NEEDS_SPLIT_MOVE : 0;
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    static const sk_field_def spare = {
        "spare", "1",
        -1,      SK_LIFETIME_STEP,
        -1.0f,   "unilateral: density that a full cell may gain before pressure resists; -1 in other cells"};
    static const sk_field_def surface_mass = {
        "surface_mass",   "1",   -1,
        SK_LIFETIME_STEP, -1.0f, "unilateral: mass in the solve of a face next to the surface; -1 for other faces"};
    sk_uic_state *state = sk_allocate(step->memory, sizeof *state);
    if (!state)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "unilateral: no memory");
    sk_step_set_state(step, &sk_method_uic, state);
    state->spare = sk_grid_add_field(&step->grid, &spare, error);
    if (state->spare < 0)
        return SELKIE_ERROR_MEMORY;
    for (int d = 0; d < step->dimension; d++) {
        state->surface_mass[d] = sk_grid_add_field(&step->grid, &surface_mass, error);
        if (state->surface_mass[d] < 0)
            return SELKIE_ERROR_MEMORY;
    }
    step->full_cells = state->spare;
    step->solids.blur_faces = 1;
    step->bounded = step->dimension == 2 ? sk_bounded_create_2d(step->memory) : sk_bounded_create_3d(step->memory);
    if (!step->bounded)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "unilateral: no memory for the solver");
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_release(step->memory, sk_step_state(step, &sk_method_uic));
    sk_step_set_state(step, &sk_method_uic, NULL);
    if (step->bounded && step->dimension == 2)
        sk_bounded_destroy_2d(step->bounded);
    if (step->bounded && step->dimension == 3)
        sk_bounded_destroy_3d(step->bounded);
    step->bounded = NULL;
}

static void begin(sk_step *step)
{
    step->density_passes = 0;
}

static int corrects(const sk_step *step)
{
    return step->scene->unilateral.density_correction;
}

/* Beside walls and obstacles a jittered start is too dense. The first step would lift the liquid: energy from nothing.
 * So the correction is a part of a start at rest, as in the implicit density projection. Things that push or move by
 * themselves are left alone. */
static int relax_rounds(const sk_step *step, double *dt, double *still)
{
    const selkie_scene *scene = step->scene;
    int pushed = scene->source_count > 0 || scene->drain_count > 0 || scene->force_count > 0 ||
                 sk_scene_surface_tension(scene) > 0.0;
    for (int o = 0; o < step->solids.obstacle_count; o++)
        pushed |= step->solids.obstacles[o].moves;
    *dt = 1e-6;
    *still = 0.0;
    return corrects(step) && !pushed && sk_scene_starts_at_rest(scene);
}

/* The correction measures density with the solids at the start of the step, the pressure with those at its end. Rigid
 * bodies move after the pressure. */
static int needs_both_poses(const sk_step *step)
{
    return corrects(step) && step->solids.moving_count > step->solids.body_count;
}

static int balances(const sk_step *step)
{
    return step->balance > 0;
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    const sk_bounded_report *pressure = &step->unilateral, *correction = &step->correction;
    s->free_cells = pressure->free_cells;
    s->active_cells = pressure->active_cells;
    s->free_steps = pressure->free_steps;
    s->expansion_steps = pressure->expansion_steps;
    s->proportioning_steps = pressure->proportioning_steps;
    s->density_iterations = correction->iterations;
    s->density_residual = correction->residual;
    s->density_free_cells = correction->free_cells;
    s->density_active_cells = correction->active_cells;
    s->density_free_steps = correction->free_steps;
    s->density_expansion_steps = correction->expansion_steps;
    s->density_proportioning_steps = correction->proportioning_steps;
    s->density_passes = step->density_passes;
    s->overfull = step->overfull;
}

/* Its fields and its solver. */
static double bytes_per_cell(const selkie_scene *scene)
{
    (void)scene;
    return 12 * 4 + 60;
}

const sk_method sk_method_uic = {
    .name = "unilateral",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .fields = SK_FIELD_BITS(SK_FIELD_FACE_DENSITY_X, SK_FIELD_LOWER + 1 - SK_FIELD_FACE_DENSITY_X),
    .takes_part = takes_part,
    .also_needs = also_needs,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .relax_rounds = relax_rounds,
    .phases =
        {
            {.name = "solids",
             .slot = SK_SLOT_SOLIDS,
             .flags = SK_PHASE_REPLACES,
             .run = SK_ONE_FORM(sk_uic_solids_now),
             .when = needs_both_poses},
            {.name = "density_correct",
             .slot = SK_SLOT_CONSTRAIN,
             .flags = SK_PHASE_CORRECTS,
             .run = SK_FORMS(sk_uic_correct, sk_uic_correct_plain),
             .when = corrects},
            {.name = "solids_again",
             .slot = SK_SLOT_CONSTRAIN,
             .run = SK_ONE_FORM(sk_move_solids),
             .when = needs_both_poses},
            {.name = "balance",
             .slot = SK_SLOT_VISCOSITY,
             .flags = SK_PHASE_REPLACES,
             .run = SK_FORMS(sk_uic_balance, sk_uic_balance_plain),
             .when = balances},
            {.name = "predict", .slot = SK_SLOT_TARGET, .run = SK_FORMS(sk_uic_predict, sk_uic_predict_plain)},
            {.name = "pressure",
             .slot = SK_SLOT_PRESSURE,
             .flags = SK_PHASE_REPLACES,
             .run = SK_FORMS(sk_uic_pressure, sk_uic_pressure_plain)},
            {.name = "extrapolate",
             .slot = SK_SLOT_EXTRAPOLATE,
             .flags = SK_PHASE_REPLACES,
             .run = SK_FORMS(sk_uic_extrapolate, sk_uic_extrapolate_plain)},
            {.name = "shift",
             .slot = SK_SLOT_SHIFT,
             .run = SK_FORMS(sk_uic_shift, sk_uic_shift_plain),
             .when = corrects},
        },
    .statistics = statistics,
    .bytes_per_cell = bytes_per_cell,
};
