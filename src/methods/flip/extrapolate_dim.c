/* Velocities around the liquid and behind solid surfaces.
 *
 * Unknown faces (NaN) take the mean of their known neighbours, layer by layer, in existing blocks only: a band of a few
 * cells. Faces behind solids then lose the velocity component through the surface (free slip) or take the solid's
 * velocity (no slip). FLIP's change is extrapolated with the same mask. Otherwise the difference of two means would
 * push particles along walls. The velocity at the end of a reflected step is treated like the velocity.
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/barriers.h"
#include "grid/extrapolate.h"
#include "grid/extrapolate_kernels.h"
#include "grid/tile.h"
#include "methods/cells.h"
#include "methods/flip/flip.h"
#include "methods/flip/reflection.h"

enum { LAYERS = 2 };

/* Does the block have unknown faces, and known ones near them? */
static int needs_work(const sk_grid *grid, int block)
{
    if (!(grid->block_flags[block] & SK_BLOCK_UNKNOWN))
        return 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        if (grid->block_flags[grid->neighbours[block][n]] & SK_BLOCK_KNOWN)
            return 1;
    return 0;
}

typedef struct solid_view {
    float distance[SK_TILE_VALUES(1)];
    float velocity[SELKIE_DIM][SK_TILE_VALUES(1)];
} solid_view;

/* Component e at face (d, node): the value itself, or the mean of the four (2D: two) faces around. */
static float velocity_at_face(const solid_view *view, int d, int e, int node)
{
    if (d == e)
        return view->velocity[e][node];
    float sum = 0.0f, count = 0.0f;
    for (int a = -1; a <= 0; a++)
        for (int b = 0; b <= 1; b++) {
            float value = view->velocity[e][node + a * node_step[d] + b * node_step[e]];
            sum += value == value ? value : 0.0f;
            count += value == value ? 1.0f : 0.0f;
        }
    return count > 0.0f ? sum / count : 0.0f;
}

/* Outward normal of the nearest solid at a face, from the distances at the cell centres around it. */
static void normal_at_face(const solid_view *view, int d, int node, float normal[3])
{
    float length2 = 0.0f;
    normal[2] = 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float *own = view->distance + node, *below = own - node_step[d];
        const int up = node_step[e];
        normal[e] = e == d ? own[0] - below[0]
                           : sk_distance_slope(0.5f * ((own[0] - own[-up]) + (below[0] - below[-up])),
                                               0.5f * ((own[up] - own[0]) + (below[up] - below[0])));
        length2 += normal[e] * normal[e];
    }
    float scale = length2 > 1e-12f && length2 < 1e12f ? 1.0f / sqrtf(length2) : 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        normal[e] *= scale;
}

/* Which of eight faces across axis d from c on a solid constrains: open faces, unknown velocities and walls of the
 * domain stay unchanged. */
static unsigned constrained_faces(const sk_step *step, int block, int c, int d, const float *velocity,
                                  const float *fraction)
{
    const f8 u = f8_load(velocity + c);
    unsigned faces = i8_bits((f8_load(fraction + c) <= 0.0f) & (u == u));
    for (unsigned left = faces; left; left &= left - 1) {
        const int n = __builtin_ctz(left);
        faces &= ~((unsigned)on_wall(step, block, c + n, d) << n);
    }
    return faces;
}

/* The velocity at a closed face with free slip: it loses its part normal to the surface, relative to the solid, and
 * what a slip length holds. `own` is the solid's velocity across the face, 0 if the solid is at rest. `along` is the
 * component of the normal along the axis. */
static float slip_at_face(const sk_step *step, const solid_view *view, int block, int c, int d, float u, float own,
                          float *along)
{
    const sk_solids *solids = &step->solids;
    const size_t slot = (size_t)solids->block_slot[block], here = slot * SK_BLOCK_CELLS + (size_t)c;
    float normal[3], through = 0.0f;
    if (solids->barriers[here] >> d & 1)
        SK_DIM(sk_barriers_normal)(solids, &step->grid, block, c, d, normal);
    else
        normal_at_face(view, d, node_of(c), normal);
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float wall = slot >= solids->static_count ? solids->velocity[e][here] : 0.0f;
        through += normal[e] * (velocity_at_face(view, d, e, node_of(c)) - wall);
    }
    *along = normal[d];
    const float slipping = u - through * normal[d], grip = solids->grip ? solids->grip[here] : 0.0f;
    return grip > 0.0f ? sk_held_velocity(slipping, own, grip) : slipping;
}

/* velocity_at_face() of eight faces. */
SK_VECTOR f8 velocity_at_faces(const solid_view *view, int d, int e, int node)
{
    if (d == e)
        return f8_load(view->velocity[e] + node);
    f8 sum = f8_splat(0.0f), count = f8_splat(0.0f);
    for (int a = -1; a <= 0; a++)
        for (int b = 0; b <= 1; b++) {
            const f8 value = f8_load(view->velocity[e] + node + a * node_step[d] + b * node_step[e]);
            sum += f8_select(value == value, value, f8_splat(0.0f));
            count += f8_select(value == value, f8_splat(1.0f), f8_splat(0.0f));
        }
    return f8_select(count > 0.0f, sum / count, f8_splat(0.0f));
}

/* normal_at_face() of eight faces. */
SK_VECTOR void normal_at_faces(const solid_view *view, int d, int node, f8 normal[SELKIE_DIM])
{
    f8 length2 = f8_splat(0.0f);
    const float *own = view->distance + node, *below = own - node_step[d];
    const f8 here = f8_load(own), there = f8_load(below);
    for (int e = 0; e < SELKIE_DIM; e++) {
        const int up = node_step[e];
        normal[e] = here - there;
        if (e != d) { /* the tile has one cell of halo, and no cell below `below` along the axis */
            const f8 before = 0.5f * ((here - f8_load(own - up)) + (there - f8_load(below - up))),
                     after = 0.5f * ((f8_load(own + up) - here) + (f8_load(below + up) - there));
            normal[e] = f8_select(before * after > 0.0f, before * (2.0f * after / (before + after)), f8_splat(0.0f));
        }
        length2 += normal[e] * normal[e];
    }
    const f8 scale = f8_select((length2 > 1e-12f) & (length2 < 1e12f), 1.0f / f8_sqrt(length2), f8_splat(0.0f));
    for (int e = 0; e < SELKIE_DIM; e++)
        normal[e] *= scale;
}

/* slip_at_face() of eight faces that no wall between the samples closes, without slip lengths. */
static void slip_at_faces(const sk_step *step, const solid_view *view, int block, int c, int d, const float *velocity,
                          float result[8], float along[8])
{
    const sk_solids *solids = &step->solids;
    const size_t slot = (size_t)solids->block_slot[block], here = slot * SK_BLOCK_CELLS + (size_t)c;
    const int moving = slot >= solids->static_count;
    f8 normal[SELKIE_DIM], through = f8_splat(0.0f);
    normal_at_faces(view, d, node_of(c), normal);
    for (int e = 0; e < SELKIE_DIM; e++) {
        const f8 wall = moving ? f8_load(solids->velocity[e] + here) : f8_splat(0.0f);
        through += normal[e] * (velocity_at_faces(view, d, e, node_of(c)) - wall);
    }
    f8_store(along, normal[d]);
    f8_store(result, f8_load(velocity + c) - through * normal[d]);
}

/* Does a wall between the samples close one of eight faces? */
static int has_barrier(const sk_solids *solids, size_t first, int d)
{
    int any = 0;
    for (int l = 0; l < 8; l++)
        any |= solids->barriers[first + (size_t)l] >> d & 1;
    return any;
}

/* Constrains a velocity, the fields from `first` on, at a block's closed faces to the solid, into `result`. The
 * velocity that the particles take carries its change along. */
static void constrain_block(const sk_step *step, int first, int block, float *const result[3])
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    int moving = (size_t)solids->block_slot[block] >= solids->static_count;

    solid_view view;
    int loaded = 0;
    const int with_change = first == step->end_velocity;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *velocity = grid->fields[first + d] + base, *fraction = solids->fraction[d] + solid;
        const float *before = step->before_walls ? grid->fields[step->before_walls + d] + base : NULL;
        float *to = result[d] + base, *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        memcpy(to, velocity, SK_BLOCK_CELLS * sizeof *to);
        for (int begin = 0; begin < SK_BLOCK_CELLS; begin += 8) {
            unsigned left = constrained_faces(step, block, begin, d, velocity, fraction);
            float slipping[8], normals[8];
            int slip_alone = 0;
            if (left) {
                int any_slips = 0;
                for (unsigned some = left; some; some &= some - 1)
                    any_slips |= !solids->no_slip[solid + (size_t)(begin + __builtin_ctz(some))];
                /* Slip needs distance and velocity with a halo of one cell. */
                if (any_slips && !loaded) {
                    sk_tile_load_mapped(grid, solids->block_slot, solids->distance, block, 1, view.distance);
                    for (int e = 0; e < SELKIE_DIM; e++)
                        sk_tile_load(grid, grid->fields[first + e], block, 1, view.velocity[e]);
                    loaded = 1;
                }
                slip_alone = any_slips && !solids->grip && !has_barrier(solids, solid + (size_t)begin, d);
                if (slip_alone)
                    slip_at_faces(step, &view, block, begin, d, velocity, slipping, normals);
            }
            for (; left; left &= left - 1) {
                const int lane = __builtin_ctz(left), c = begin + lane;
                const float own = moving ? solids->velocity[d][solid + (size_t)c] : 0.0f;
                const int slips = !solids->no_slip[solid + (size_t)c];
                float along = 0.0f;
                if (!slips) { /* the face takes the velocity of the solid */
                    to[c] = own;
                } else if (slip_alone) {
                    to[c] = slipping[lane];
                    along = normals[lane];
                } else {
                    to[c] = slip_at_face(step, &view, block, c, d, velocity[c], own, &along);
                }
                if (with_change)
                    change[c] = sk_constrained_change(change[c], velocity[c], to[c], before ? before[c] : to[c],
                                                      before ? along : 0.0f);
            }
        }
    }
}

/* Constrains a velocity, the fields from `first` on, in some blocks. */
static void constrain(const sk_step *step, int first, const int32_t *blocks, int count, float *const result[3])
{
    const sk_grid *grid = &step->grid;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int w = 0; w < count; w++)
        constrain_block(step, first, blocks[w], result);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int w = 0; w < count; w++)
        for (int d = 0; d < SELKIE_DIM; d++) {
            const size_t base = (size_t)blocks[w] * SK_BLOCK_CELLS;
            memcpy(grid->fields[first + d] + base, result[d] + base, SK_BLOCK_CELLS * sizeof *result[d]);
        }
}

selkie_code SK_DIM(sk_flip_extrapolate)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    int32_t *blocks;
    SK_TRY(
        sk_step_scratch(step, (size_t)grid->block_count * 2 * sizeof *blocks, "extrapolate", (void **)&blocks, error));
    int32_t *solid_blocks = blocks + grid->block_count;

    /* Faces in the air beside the surface change like the liquid. */
    if (sk_step_has_pressure(step))
        SK_TRY(SK_DIM(sk_flip_move_shore)(step, error));

    /* Blocks with unknown faces, and those of them with solids. */
    int count = 0, solid_count = 0;
    for (int b = 1; b < grid->block_count; b++)
        if (needs_work(grid, b)) {
            blocks[count++] = b;
            if (step->solids.block_slot[b])
                solid_blocks[solid_count++] = b;
        }

    /* Means of known neighbours, for the velocity and for FLIP's change. */
    float *const result[3] = {grid->fields[SK_FIELD_FACE_X], grid->fields[SK_FIELD_FACE_Y],
                              grid->fields[SK_FIELD_FACE_Z]};
    float *velocities[2 * SELKIE_DIM];
    for (int d = 0; d < SELKIE_DIM; d++) {
        velocities[d] = grid->fields[SK_FIELD_VELOCITY_X + d];
        velocities[SELKIE_DIM + d] = grid->fields[step->end_velocity + d];
    }
    const sk_extrapolation of_velocity = {.fields = velocities,
                                          .scratch = result,
                                          .field_count = SELKIE_DIM,
                                          .groups = flip_reflects(step) ? 2 : 1,
                                          .blocks = blocks,
                                          .block_count = count,
                                          .layers = LAYERS,
                                          .threads = step->threads};
    SK_DIM(sk_extrapolate)(grid, &of_velocity);
    if (step->scene->transfer == SELKIE_TRANSFER_FLIP) {
        sk_extrapolation of_change = of_velocity;
        of_change.fields = grid->fields + SK_FIELD_CHANGE_X;
        of_change.groups = 1;
        of_change.blocks = solid_blocks;
        of_change.block_count = solid_count;
        of_change.layers = 1;
        SK_DIM(sk_extrapolate)(grid, &of_change);
    }

    /* Behind plain walls the means are right already: the tangential velocity slips, and the normal one is 0. */
    int constrained = 0;
    for (int w = 0; w < solid_count; w++)
        if (!step->solids.plain[step->solids.block_slot[solid_blocks[w]]])
            solid_blocks[constrained++] = solid_blocks[w];
    constrain(step, SK_FIELD_VELOCITY_X, solid_blocks, constrained, result);
    if (flip_reflects(step))
        constrain(step, step->end_velocity, solid_blocks, constrained, result);
    return SELKIE_OK;
}
