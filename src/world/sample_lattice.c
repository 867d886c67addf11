#include "world/sample_lattice.h"

#include <math.h>

/* What a liquid asks for along an axis. */
enum wish { NOTHING, MOVE, STAY };

/* A box of liquid, within the domain. */
typedef struct liquid_box {
    double low[3], high[3]; /* m */
} liquid_box;

/* Does the box end at an obstacle there? The middle of its side lies on a surface: a quarter of a spacing before it is
 * free, a quarter behind it is not. */
static int ends_at_obstacle(const sk_sampling *sampling, const liquid_box *box, int axis, int high, double spacing)
{
    double before[3], behind[3], normal[3];
    int obstacle;
    for (int d = 0; d < 3; d++)
        before[d] = behind[d] = d < sampling->grid->dimension ? 0.5 * (box->low[d] + box->high[d]) : 0.0;
    const double side = high ? box->high[axis] : box->low[axis], outwards = high ? 0.25 : -0.25;
    before[axis] = side - outwards * spacing;
    behind[axis] = side + outwards * spacing;
    return sk_solids_distance(sampling->solids, before, normal, &obstacle) > 0.0 &&
           sk_solids_distance(sampling->solids, behind, normal, &obstacle) < 0.0;
}

/* `move` (m): from the nearest place of the lattice. */
static enum wish wish_of(const sk_sampling *sampling, const sk_shape *shape, int is_box, int axis, double spacing,
                         double *move)
{
    const sk_grid *grid = sampling->grid;
    const double near = 1e-3 * spacing;
    liquid_box box;
    sk_shape_bounds(shape, box.low, box.high);
    for (int d = 0; d < grid->dimension; d++) {
        box.low[d] = fmax(box.low[d], grid->low[d]);
        box.high[d] = fmin(box.high[d], grid->high[d]);
    }
    if (box.low[axis] < grid->low[axis] + near || box.high[axis] > grid->high[axis] - near)
        return STAY;

    /* The floor first: the side against the axis, then the other one. */
    for (int high = 0; is_box && high < 2; high++)
        if (ends_at_obstacle(sampling, &box, axis, high, spacing)) {
            const double place = ((high ? box.high[axis] : box.low[axis]) - grid->low[axis]) / spacing;
            *move = (place - nearbyint(place)) * spacing;
            return MOVE;
        }
    return NOTHING;
}

void sk_sample_lattice_shift(const sk_sampling *sampling, sk_shape *const *shapes, double spacing, double shift[3])
{
    const selkie_scene *scene = sampling->scene;
    for (int d = 0; d < 3; d++) {
        int moves = 0, agree = 1;
        shift[d] = 0.0;
        for (int l = 0; d < sampling->grid->dimension && agree && l < scene->liquid_count; l++) {
            double move = 0.0;
            if (scene->liquids[l].count)
                continue;
            const enum wish wish =
                wish_of(sampling, shapes[l], scene->liquids[l].shape.kind == SELKIE_SHAPE_BOX, d, spacing, &move);
            agree = wish == NOTHING || (wish == MOVE && (!moves || fabs(move - shift[d]) < 1e-3 * spacing));
            if (wish == MOVE && !moves) {
                shift[d] = move;
                moves = 1;
            }
        }
        shift[d] = agree ? shift[d] : 0.0;
    }
}
