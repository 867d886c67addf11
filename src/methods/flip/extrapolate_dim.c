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
#include "grid/slivers_lanes.h"
#include "grid/tile.h"
#include "methods/cells.h"
#include "methods/flip/flip.h"
#include "methods/flip/reflection.h"
#include "methods/flip/sliver_plain.h"
#include "methods/vents.h"

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

/* What slip at closed faces needs, with a halo of one cell. The last two are FLIP's alone. */
typedef struct solid_view {
    float distance[SK_TILE_VALUES(1)];
    float velocity[SELKIE_DIM][SK_TILE_VALUES(1)];
    float before[SELKIE_DIM][SK_TILE_VALUES(1)]; /* of the particles */
    float change[SELKIE_DIM][SK_TILE_VALUES(1)];
} solid_view;

/* Component e of a velocity at face (d, node): the value itself, or the mean of the four (2D: two) faces around; NaN if
 * none of them is known. */
static float mean_at_face(float field[][SK_TILE_VALUES(1)], int d, int e, int node)
{
    if (d == e)
        return field[e][node];
    float sum = 0.0f, count = 0.0f;
    for (int a = -1; a <= 0; a++)
        for (int b = 0; b <= 1; b++) {
            float value = field[e][node + a * node_step[d] + b * node_step[e]];
            sum += value == value ? value : 0.0f;
            count += value == value ? 1.0f : 0.0f;
        }
    return count > 0.0f ? sum / count : NAN;
}

static float known_or_zero(float value)
{
    return value == value ? value : 0.0f;
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

/* Which of eight faces across axis d from c on a solid constrains: open faces, slivers that keep theirs, unknown
 * velocities and walls of the domain stay unchanged, and so do vents where the velocity leads away from the wall. */
static unsigned constrained_faces(const sk_step *step, int block, int vents, int c, int d, const float *velocity,
                                  const float *fraction)
{
    const f8 u = f8_load(velocity + c), open = f8_load(fraction + c);
    const i8 slivers = sk_are_slivers(open);
    unsigned faces = i8_bits((open <= 0.0f) & ~slivers & (u == u));
    for (unsigned some = all_slivers_keep(step) ? 0 : i8_bits(slivers & (u == u)); some; some &= some - 1) {
        const int n = __builtin_ctz(some);
        faces |= (unsigned)!keeps_velocity(step, (sk_plain_cell){block, c + n}, d) << n;
    }
    for (unsigned left = faces; left; left &= left - 1) {
        const int n = __builtin_ctz(left);
        const int leaves = vents && velocity[c + n] * (float)way_of_vent(step, (sk_plain_cell){block, c + n}, d) > 0.0f;
        faces &= ~((unsigned)(leaves || on_wall(step, block, c + n, d)) << n);
    }
    return faces;
}

/* What crosses the surface at a closed face. */
static sk_slip slip_at_face(const sk_step *step, solid_view *view, int block, int c, int d, int with_change)
{
    const sk_solids *solids = &step->solids;
    const size_t slot = (size_t)solids->block_slot[block], here = slot * SK_BLOCK_CELLS + (size_t)c;
    const int node = node_of(c);
    float normal[3], velocity[3], before[3], change[3];
    if (solids->barriers[here] >> d & 1)
        SK_DIM(sk_barriers_normal)(solids, &step->grid, block, c, d, normal);
    else
        normal_at_face(view, d, node, normal);
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float wall = slot >= solids->static_count ? solids->velocity[e][here] : 0.0f;
        velocity[e] = known_or_zero(mean_at_face(view->velocity, d, e, node)) - wall;
        before[e] = with_change ? known_or_zero(mean_at_face(view->before, d, e, node) - wall) : 0.0f;
        change[e] = with_change ? known_or_zero(mean_at_face(view->change, d, e, node)) : 0.0f;
    }
    return (sk_slip){normal[d], sk_across(velocity, normal), sk_across(before, normal), sk_across(change, normal)};
}

/* mean_at_face() of eight faces. */
SK_VECTOR f8 mean_at_faces(float field[][SK_TILE_VALUES(1)], int d, int e, int node)
{
    if (d == e)
        return f8_load(field[e] + node);
    f8 sum = f8_splat(0.0f), count = f8_splat(0.0f);
    for (int a = -1; a <= 0; a++)
        for (int b = 0; b <= 1; b++) {
            const f8 value = f8_load(field[e] + node + a * node_step[d] + b * node_step[e]);
            sum += f8_select(value == value, value, f8_splat(0.0f));
            count += f8_select(value == value, f8_splat(1.0f), f8_splat(0.0f));
        }
    return f8_select(count > 0.0f, sum / count, f8_splat(NAN));
}

SK_VECTOR f8 known_or_zeros(f8 values)
{
    return f8_select(values == values, values, f8_splat(0.0f));
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

/* slip_at_face() of eight faces that no wall between the samples closes. */
static void slip_at_faces(const sk_step *step, solid_view *view, int block, int c, int d, int with_change,
                          sk_slip slips[8])
{
    const sk_solids *solids = &step->solids;
    const size_t slot = (size_t)solids->block_slot[block], here = slot * SK_BLOCK_CELLS + (size_t)c;
    const int moving = slot >= solids->static_count, node = node_of(c);
    f8 normal[SELKIE_DIM], through = f8_splat(0.0f), before = through, change = through;
    normal_at_faces(view, d, node, normal);
    for (int e = 0; e < SELKIE_DIM; e++) {
        const f8 wall = moving ? f8_load(solids->velocity[e] + here) : f8_splat(0.0f);
        through += normal[e] * (known_or_zeros(mean_at_faces(view->velocity, d, e, node)) - wall);
        if (!with_change)
            continue;
        before += normal[e] * known_or_zeros(mean_at_faces(view->before, d, e, node) - wall);
        change += normal[e] * known_or_zeros(mean_at_faces(view->change, d, e, node));
    }
    float values[4][8];
    f8_store(values[0], normal[d]);
    f8_store(values[1], through);
    f8_store(values[2], before);
    f8_store(values[3], change);
    for (int l = 0; l < 8; l++)
        slips[l] = (sk_slip){values[0][l], values[1][l], values[2][l], values[3][l]};
}

/* Does a wall between the samples close one of eight faces? */
static int has_barrier(const sk_solids *solids, size_t first, int d)
{
    int any = 0;
    for (int l = 0; l < 8; l++)
        any |= solids->barriers[first + (size_t)l] >> d & 1;
    return any;
}

static void load_view(const sk_step *step, int first, int block, int with_change, solid_view *view)
{
    const sk_grid *grid = &step->grid;
    sk_tile_load_mapped(grid, step->solids.block_slot, step->solids.distance, block, 1, view->distance);
    for (int e = 0; e < SELKIE_DIM; e++)
        sk_tile_load(grid, grid->fields[first + e], block, 1, view->velocity[e]);
    for (int e = 0; e < SELKIE_DIM * with_change; e++) {
        sk_tile_load(grid, grid->fields[step->before_walls + e], block, 1, view->before[e]);
        sk_tile_load(grid, grid->fields[SK_FIELD_CHANGE_X + e], block, 1, view->change[e]);
    }
}

/* The faces of a block that a solid constrains, a bit for each, and the changes of FLIP there. */
typedef struct constrained_block {
    float change[SELKIE_DIM][SK_BLOCK_CELLS];
    uint8_t faces[SELKIE_DIM][SK_BLOCK_CELLS / 8];
} constrained_block;

/* Constrains a velocity, the fields from `first` on, at a block's closed faces to the solid, into `result`. The
 * velocity that the particles take carries its change along. */
static void constrain_block(const sk_step *step, int first, int block, float *const result[3], constrained_block *own)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    const size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    const int moving = (size_t)solids->block_slot[block] >= solids->static_count;
    const int with_change = step->before_walls && first == step->end_velocity;
    const int vents = block_has_vented_faces(step, block);

    solid_view view;
    int loaded = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *velocity = grid->fields[first + d] + base, *fraction = solids->fraction[d] + solid;
        const float *before = with_change ? grid->fields[step->before_walls + d] + base : NULL;
        const float *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        float *to = result[d] + base;
        for (int begin = 0; begin < SK_BLOCK_CELLS; begin += 8) {
            unsigned left = constrained_faces(step, block, vents, begin, d, velocity, fraction);
            sk_slip slips[8];
            int together = 0;
            own->faces[d][begin / 8] = (uint8_t)left;
            if (left) {
                int any_slips = 0;
                for (unsigned some = left; some; some &= some - 1)
                    any_slips |= !solids->no_slip[solid + (size_t)(begin + __builtin_ctz(some))];
                if (any_slips && !loaded)
                    load_view(step, first, block, with_change, &view);
                loaded |= any_slips;
                together = any_slips && !has_barrier(solids, solid + (size_t)begin, d);
                if (together)
                    slip_at_faces(step, &view, block, begin, d, with_change, slips);
            }
            for (; left; left &= left - 1) {
                const int lane = __builtin_ctz(left), c = begin + lane;
                const float wall = moving ? solids->velocity[d][solid + (size_t)c] : 0.0f;
                sk_slip slip = {0.0f, 0.0f, 0.0f, 0.0f};
                to[c] = wall; /* a face that sticks takes the velocity of the solid */
                if (!solids->no_slip[solid + (size_t)c]) {
                    slip = together ? slips[lane] : slip_at_face(step, &view, block, c, d, with_change);
                    const float slipping = velocity[c] - slip.through * slip.normal,
                                grip = solids->grip ? solids->grip[solid + (size_t)c] : 0.0f;
                    to[c] = grip > 0.0f ? sk_held_velocity(slipping, wall, grip) : slipping;
                }
                if (first != step->end_velocity)
                    continue;
                slip.normal = with_change ? slip.normal : 0.0f;
                own->change[d][c] =
                    sk_constrained_change(change[c], velocity[c], to[c], with_change ? before[c] : 0.0f, &slip);
            }
        }
    }
}

/* Can a solid constrain a face of the block? Those that rigid bodies close are slivers, as a rule. */
static int has_closed_faces(const sk_step *step, int block)
{
    const sk_solids *solids = &step->solids;
    const i8 keeps = i8_splat(-all_slivers_keep(step));
    i8 any = i8_splat(0);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *fraction = solids->fraction[d] + (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            const f8 open = f8_load(fraction + c);
            any |= (open <= 0.0f) & ~(sk_are_slivers(open) & keeps);
        }
    }
    return i8_any(any);
}

/* Takes the constrained values of a block. */
static void take_constrained(const sk_step *step, int first, int block, float *const result[3],
                             const constrained_block *own)
{
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = step->grid.fields[first + d] + base,
              *change = step->grid.fields[SK_FIELD_CHANGE_X + d] + base;
        for (int begin = 0; begin < SK_BLOCK_CELLS; begin += 8)
            for (unsigned left = own->faces[d][begin / 8]; left; left &= left - 1) {
                const int c = begin + __builtin_ctz(left);
                velocity[c] = result[d][base + (size_t)c];
                if (first == step->end_velocity)
                    change[c] = own->change[d][c];
            }
    }
}

/* Constrains a velocity, the fields from `first` on, in some blocks. `results` is scratch. */
static void constrain(const sk_step *step, int first, const int32_t *blocks, int count, float *const result[3],
                      constrained_block *results)
{
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int w = 0; w < count; w++)
        constrain_block(step, first, blocks[w], result, &results[w]);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int w = 0; w < count; w++)
        take_constrained(step, first, blocks[w], result, &results[w]);
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

    /* Behind plain walls the means are right already: the tangential velocity slips, and the normal one is 0. Faces in
     * bodies keep the means: contacts act on their particles. */
    int constrained = 0;
    for (int w = 0; w < solid_count; w++)
        if (!step->solids.plain[step->solids.block_slot[solid_blocks[w]]] && has_closed_faces(step, solid_blocks[w]))
            solid_blocks[constrained++] = solid_blocks[w];
    constrained_block *results;
    SK_TRY(sk_step_scratch(step, ((size_t)constrained + 1) * sizeof *results, "extrapolate", (void **)&results, error));
    constrain(step, SK_FIELD_VELOCITY_X, solid_blocks, constrained, result, results);
    if (flip_reflects(step))
        constrain(step, step->end_velocity, solid_blocks, constrained, result, results);
    return SELKIE_OK;
}
