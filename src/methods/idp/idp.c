/* Implicit density projection as a method: corrections of positions before the transfer to the grid. */
#include "defs/structs.h"
#include "methods/classify.h"
#include "methods/idp/idp.h"
#include "methods/sorting.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID && selkie_scene_volume(scene) == SELKIE_VOLUME_IDP;
}

static void begin(sk_step *step)
{
    step->density_passes = step->correct_again = 0;
}

static int once_more(const sk_step *step)
{
    return step->correct_again;
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    s->density_iterations = step->density_report.iterations;
    s->density_residual = step->density_report.residual;
    s->density_passes = step->density_passes;
    s->redistributed = step->redistributed;
    s->pushed_out = step->pushed_out;
}

const sk_method sk_method_idp = {
    .name = "idp",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID,
    .takes_part = takes_part,
    .begin = begin,
    .phases =
        {
            {.name = "density", .slot = SK_SLOT_POSITIONS, .run = SK_FORMS(sk_idp_density, sk_idp_density_plain)},
            {.name = "density_classify",
             .slot = SK_SLOT_POSITIONS,
             .flags = SK_PHASE_CORRECTS,
             .run = SK_FORMS(sk_classify_cells, sk_classify_cells_plain)},
            {.name = "density_correct",
             .slot = SK_SLOT_POSITIONS,
             .flags = SK_PHASE_CORRECTS,
             .run = SK_FORMS(sk_idp_correct, sk_idp_correct_plain)},
            {.name = "sort_again", .slot = SK_SLOT_POSITIONS, .run = SK_FORMS(sk_idp_sort, sk_idp_sort_plain)},
            {.name = "solids_again",
             .slot = SK_SLOT_POSITIONS,
             .run = SK_ONE_FORM(sk_move_solids),
             .again = once_more,
             .again_from = "density"},
        },
    .settle_rounds = sk_scene_settle_rounds,
    .keeps_rest_volume = 1,
    .statistics = statistics,
};
