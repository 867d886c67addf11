/* The unilateral pressure: predicted density, pressure, and the new velocities. */
#include <math.h>

#include "base/dimension.h"
#include "grid/barriers.h"
#include "grid/deal.h"
#include "grid/extrapolate.h"
#include "grid/predict.h"
#include "methods/balance.h"
#include "methods/uic/uic.h"
#include "methods/uic/uic_system.h"

/* --- prediction --- */

/* Planes of faces on the domain's closed walls: local index in the block, or -1. */
static int wall_plane(const sk_step *step, int block, int d, int side)
{
    const sk_grid *grid = &step->grid;
    if (step->solids.walls[2 * d + side] == SELKIE_WALL_OPEN)
        return -1;
    int local = grid->padding[d] + (side ? grid->cells[d] : 0) - grid->coordinates[block][d] * SK_BLOCK_N;
    return local >= 0 && local < SK_BLOCK_N ? local : -1;
}

/* Liquid may leave the domain's walls but not enter them. Under pressure it does neither. `potential` covers the block
 * with a halo of one cell; NULL before the solve. */
static void stop_at_walls(const sk_step *step, int block, const float *potential)
{
    const sk_grid *grid = &step->grid;
    if (!step->solids.block_slot[block])
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int side = 0; side < 2; side++) {
            int plane = wall_plane(step, block, d, side);
            if (plane < 0)
                continue;
            float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + (size_t)block * SK_BLOCK_CELLS;
            for (int c = 0; c < SK_BLOCK_CELLS; c++) {
                if ((c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) != plane || velocity[c] != velocity[c])
                    continue;
                int held = potential && potential[node_of(c) - (side ? node_step[d] : 0)] > 0.0f;
                if (held || (side ? velocity[c] > 0.0f : velocity[c] < 0.0f))
                    velocity[c] = 0.0f;
            }
        }
}

/* Faces that a thin wall closes move with it. Pressure does not act on them. */
static void stop_at_thin_walls(const sk_step *step, int block)
{
    const sk_solids *solids = &step->solids;
    const size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    const int moving = (size_t)solids->block_slot[block] >= solids->static_count;
    for (int d = 0; solid && !solids->plain[solids->block_slot[block]] && d < SELKIE_DIM; d++) {
        float *velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            if (solids->barriers[solid + (size_t)c] & SK_BARRIER_THIN << d && velocity[c] == velocity[c])
                velocity[c] = moving ? solids->velocity[d][solid + (size_t)c] : 0.0f;
    }
}

static void stop_before_pressure(const sk_step *step, int block)
{
    stop_at_walls(step, block, NULL);
    stop_at_thin_walls(step, block);
}

/* The density minus the outward mass fluxes of the step, as in the source. */
static void predict_by_flux(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    const float scale = (float)(step->dt / grid->cell_size);
    float *predicted = grid->fields[SK_FIELD_PREDICTED] + base;
    float velocity[SK_TILE_VALUES(1)], density[SK_TILE_VALUES(1)];
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_tile_load(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, 1, velocity);
        sk_tile_load(grid, grid->fields[SK_FIELD_FACE_DENSITY_X + d], block, 1, density);
        for (int n = 0; n < SK_TILE_VALUES(1); n++)
            density[n] *= velocity[n] == velocity[n] ? velocity[n] : 0.0f;
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            int n = node_of(c);
            f8_store(predicted + c,
                     f8_load(predicted + c) + scale * (f8_load(density + n) - f8_load(density + n + node_step[d])));
        }
    }
}

/* --- full cells --- */

/* Is the cell at node n full, by the level in it, in any direction? -1 where no level says so. */
static int filled_by_level(const uic_rooms *rooms, const float mass[SELKIE_DIM][SK_TILE_VALUES(1)], const float *fill,
                           int n)
{
    int filled = -1;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2, up = node_step[d], near = side % 2 ? n + up : n, far = side % 2 ? n : n + up;
        const float rooms_of[2] = {rooms->face[d][near], rooms->face[d][far]},
                    masses[2] = {mass[d][near], mass[d][far]};
        const int fills = sk_uic_level_fills(rooms_of, masses, fill[side % 2 ? n + up : n - up]);
        filled = fills > filled ? fills : filled;
    }
    return filled;
}

/* Cells that a level lies in are full or not by its height; `spare` has what their fill says. `fill` covers the block
 * with a halo of one cell, `densest` is the largest fill in and around each cell. */
static void mark_levels(const sk_step *step, int block, const uic_rooms *rooms, const float *fill, const float *densest,
                        float *spare)
{
    const sk_grid *grid = &step->grid;
    float mass[SELKIE_DIM][SK_TILE_VALUES(1)];
    int loaded = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int n = node_of(c);
        const float room = rooms->cell[n];
        if (!sk_uic_may_hold_level(fill[n], room))
            continue;
        for (int d = 0; !loaded && d < SELKIE_DIM; d++) {
            sk_tile_load(grid, grid->fields[SK_FIELD_FACE_DENSITY_X + d], block, 1, mass[d]);
            fold_at_walls(&rooms->walls, d, mass[d]);
        }
        loaded = 1;
        const int filled = filled_by_level(rooms, (const float(*)[SK_TILE_VALUES(1)])mass, fill, n);
        if (filled >= 0)
            spare[c] = filled ? sk_uic_spare(fill[n], densest[c], room, 0.0f) : -1.0f;
    }
}

/* The spare room of full cells; -1 in other cells. */
static void mark_full(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    float *spare = sk_uic_spare_of(step) + (size_t)block * SK_BLOCK_CELLS;
    float fill[SK_TILE_VALUES(1)], most[SK_BLOCK_CELLS];
    uic_rooms rooms;
    uic_load_rooms(step, block, &rooms);
    sk_tile_load(grid, grid->fields[SK_FIELD_DENSITY], block, 1, fill);
    fold_at_walls(&rooms.walls, -1, fill);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        fill[n] = rooms.cell[n] >= UIC_LEAST_ROOM ? fill[n] / rooms.cell[n] : 0.0f;

    const float full = sk_uic_full(sk_uic_has_gravity(step->scene->gravity));
    const f8 not_full = f8_splat(-1.0f), none = f8_splat(0.0f);
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        const int here = node_of(c);
        f8 densest = none, emptiest = f8_splat(1.0f), room = f8_load(rooms.cell + here), own = f8_load(fill + here);
#pragma GCC unroll 27
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const int at = here + (n % 3 - 1) + (n / 3 % 3 - 1) * N1 + (SELKIE_DIM == 3 ? (n / 9 - 1) * N1 * N1 : 0);
            f8 beside = f8_load(fill + at);
            densest = f8_max(densest, beside);
            emptiest = f8_select(f8_load(rooms.cell + at) < 0.99f, emptiest, f8_min(emptiest, beside));
        }
        f8 open = f8_select(own < full, not_full, f8_max((UIC_PACKED - densest) * room, none));
        i8 is_gap = (room < 0.99f) & (own < UIC_PACKED) & (densest > UIC_PACKED) & (emptiest > UIC_SUBMERGED);
        open = f8_select(is_gap, UIC_REFILL * (UIC_PACKED - own) * room, open);
        f8 closed = f8_select(densest >= full, none, not_full);
        f8_store(spare + c, f8_select(room < UIC_LEAST_ROOM, closed, open));
        f8_store(most + c, densest);
    }
    if (sk_uic_fills_by_levels(step->scene->gravity, step->soft != NULL, step->capillary > 0))
        mark_levels(step, block, &rooms, fill, most, spare);
}

/* Masses of the faces next to the surface. */
static void weigh_surface(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    float spare[SK_TILE_VALUES(1)], mass[SK_TILE_VALUES(1)];
    uic_rooms rooms;
    uic_load_rooms(step, block, &rooms);
    sk_tile_load(grid, sk_uic_spare_of(step), block, 1, spare);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = node_step[d];
        const float *room = rooms.face[d];
        float *at_surface = sk_uic_surface_mass_of(step, d) + (size_t)block * SK_BLOCK_CELLS;
        sk_tile_load(grid, grid->fields[SK_FIELD_FACE_DENSITY_X + d], block, 1, mass);
        fold_at_walls(&rooms.walls, d, mass);
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            const int first = node_of(c);
            f8_store(at_surface + c, f8_splat(-1.0f));
            /* Of three faces in a row, some are at least half full and some are not. */
            f8 low = f8_load(mass + first - up) - 0.5f * f8_load(room + first - up),
               own = f8_load(mass + first) - 0.5f * f8_load(room + first),
               high = f8_load(mass + first + up) - 0.5f * f8_load(room + first + up);
            if (!i8_any((f8_min(low, f8_min(own, high)) < 0.0f) & (f8_max(low, f8_max(own, high)) >= 0.0f)))
                continue;
            for (int n = first; n < first + 8; n++) {
                const float rooms_of[3] = {room[n - up], room[n], room[n + up]},
                            masses[3] = {mass[n - up], mass[n], mass[n + up]};
                at_surface[c + n - first] =
                    sk_uic_surface_mass(rooms_of, masses, spare[n - up] >= 0.0f, spare[n] >= 0.0f);
            }
        }
    }
}

/* Finds the full cells, if rows of full cells bound the flow or surface tension acts at their border. */
static void find_full(sk_step *step, const uic_pressure_form *form)
{
    if (!sk_uic_bounds_flow(step) && !step->capillary)
        return;
    float *spare = sk_uic_spare_of(step);
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        spare[c] = -1.0f; /* cells outside all blocks */
    const int levels = sk_uic_has_levels(step->scene->gravity, step->soft != NULL);
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *at_surface = sk_uic_surface_mass_of(step, d);
        const int64_t count = levels ? SK_BLOCK_CELLS : (int64_t)step->grid.block_count * SK_BLOCK_CELLS;
        for (int64_t c = 0; form->weigh_surface && c < count; c++)
            at_surface[c] = -1.0f;
    }
    sk_deal deal;
    sk_deal_blocks(&deal, &step->grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    form->mark_full(step, b);
    if (!form->weigh_surface || !levels)
        return;
    sk_deal_blocks(&deal, &step->grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    form->weigh_surface(step, b);
}

/* --- the phase --- */

selkie_code SK_DIM(sk_uic_predict_with)(sk_step *step, const uic_pressure_form *form, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    sk_deal deal;
    find_full(step, form);
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    form->stop_at_walls(step, b);
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    const selkie_unilateral_def *def = &step->scene->unilateral;
    if (def->prediction == SELKIE_PREDICTION_PARTICLES) {
        sk_predict_options options = {.density_per_particle = 1.0f / (float)step->particles_per_cell,
                                      .dt = (float)step->dt,
                                      .shifted = step->shifted,
                                      .solids = &step->solids,
                                      .threads = step->threads};
        SK_TRY(form->predict(grid, &step->particles, &options, error));
        const sk_transfer_options counted = {.density_per_particle = options.density_per_particle,
                                             .threads = step->threads};
        if (step->solids.obstacle_count)
            SK_DIM(sk_barriers_hide)(&step->solids, grid, &step->particles, &counted);
        return SELKIE_OK;
    }
    if (!def->density_correction)
        memcpy(grid->fields[SK_FIELD_PREDICTED], grid->fields[SK_FIELD_DENSITY],
               (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float));
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    form->predict_by_flux(step, b);
    return SELKIE_OK;
}

/* --- suction --- */

/* Marks surface cells: open cells less than half full. */
static void mark_surface(const sk_step *step, int block, float *marks)
{
    const float *fill = step->grid.fields[SK_FIELD_FILL] + (size_t)block * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        marks[(size_t)block * SK_BLOCK_CELLS + (size_t)c] = fill[c] >= 0.0f && fill[c] < 0.5f ? 1.0f : 0.0f;
}

/* Adds one layer of cells next to marked ones, from `from` into `to`. */
static void grow_surface(const sk_step *step, int block, const float *from, float *to)
{
    float tile[SK_TILE_VALUES(1)];
    sk_tile_load(&step->grid, from, block, 1, tile);
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        int n = node_of(c);
        f8 marked = f8_load(tile + n);
        for (int d = 0; d < SELKIE_DIM; d++)
            marked = f8_max(marked, f8_max(f8_load(tile + n - node_step[d]), f8_load(tile + n + node_step[d])));
        f8_store(to + (size_t)block * SK_BLOCK_CELLS + c, marked);
    }
}

/* Full cells may have the suction that surface tension holds. */
static const float *hold_together(sk_step *step)
{
    const sk_grid *grid = &step->grid;
    const float least = sk_uic_least_pressure(step, sk_uic_held_pressure(step));
    const float *spare = sk_uic_spare_of(step);
    float *lower = grid->fields[SK_FIELD_LOWER];
    const int64_t end = (int64_t)grid->block_count * SK_BLOCK_CELLS;
    const int suction = step->scene->unilateral.suction;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t c = 0; c < end; c++) {
        const float before = suction ? lower[c] : 0.0f;
        lower[c] = spare[c] >= 0.0f && least < before ? least : before;
    }
    return lower;
}

/* Bounds of the pressure: 0 within a few cells of the surface, negative elsewhere (sec. 3.1). */
static const float *find_bounds(sk_step *step, const uic_pressure_form *form, int has_tension)
{
    sk_grid *grid = &step->grid;
    const selkie_unilateral_def *def = &step->scene->unilateral;
    if (!def->suction)
        return has_tension ? hold_together(step) : NULL;
    float *marks = grid->fields[SK_FIELD_LOWER], *next = grid->fields[SK_FIELD_POTENTIAL];
    const int layers = sk_uic_suction_layers(def);

    /* Cells outside all blocks are air. */
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        marks[c] = next[c] = 1.0f;

    /* Mark cells at the surface and grow the marks by a layer of cells at a time. */
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    form->mark_surface(step, b, marks);
    for (int layer = 0; layer < layers; layer++) {
        sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
        SK_EACH_DEALT(b, &deal)
        form->grow_surface(step, b, marks, next);
        float *swapped = marks;
        marks = next;
        next = swapped;
    }

    /* Marked cells allow no suction. The potential of cells outside all blocks is 0 again. */
    const float least = sk_uic_least_pressure(step, -def->suction_pressure);
    float *lower = grid->fields[SK_FIELD_LOWER];
    int64_t end = (int64_t)grid->block_count * SK_BLOCK_CELLS;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t c = 0; c < end; c++)
        lower[c] = marks[c] > 0.0f ? 0.0f : least;
    memset(grid->fields[SK_FIELD_POTENTIAL], 0, SK_BLOCK_CELLS * sizeof(float));
    return has_tension ? hold_together(step) : lower;
}

/* --- velocities --- */

/* Gives the faces inside a no-slip solid its velocity. */
static void stick_to_solids(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    int moving = (size_t)solids->block_slot[block] >= solids->static_count;
    for (int d = 0; solid && d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            if (solids->no_slip[solid + (size_t)c] && solids->fraction[d][solid + (size_t)c] == 0.0f &&
                velocity[c] == velocity[c] && !on_wall(step, block, c, d))
                velocity[c] = moving ? solids->velocity[d][solid + (size_t)c] : 0.0f;
    }
}

/* sk_uic_flow_change for eight faces. */
SK_VECTOR f8 flow_change(f8 impulse, f8 room, f8 density, i8 full, f8 at_surface, float gain)
{
    f8 mass = uic_real_mass(room, density), solved = uic_solved_mass(room, mass, full, at_surface);
    f8 held = f8_max(f8_min(impulse / solved, f8_splat(gain)), f8_splat(-gain));
    return held + (impulse - held * solved) / f8_max(mass, 0.5f * solved);
}

/* The pressure accelerates the faces. `potential` in m/s. */
static void accelerate(const sk_step *step, int block, const uic_rooms *rooms, const float *potential, int has_tension)
{
    const sk_grid *grid = &step->grid;
    const int bounds_flow = sk_uic_bounds_flow(step);
    const float gain = sk_uic_gain(step->scene->gravity, sk_step_kick(step));
    float density[SK_TILE_VALUES(1)], spare[SK_TILE_VALUES(1)];
    uic_capillary capillary;
    const int curved = has_tension && uic_load_capillary(step, block, &capillary);
    if (bounds_flow)
        sk_tile_load(grid, sk_uic_spare_of(step), block, 1, spare);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = node_step[d];
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + (size_t)block * SK_BLOCK_CELLS;
        const float *lightness =
            step->relative_density ? grid->fields[SK_FIELD_LIGHTNESS_X + d] + (size_t)block * SK_BLOCK_CELLS : NULL;
        const float *at_surface = sk_uic_surface_mass_of(step, d) + (size_t)block * SK_BLOCK_CELLS;
        sk_tile_load(grid, grid->fields[SK_FIELD_FACE_DENSITY_X + d], block, 1, density);
        fold_at_walls(&rooms->walls, d, density);
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            int n = node_of(c);
            f8 room = f8_load(rooms->face[d] + n), change, fall = f8_load(potential + n - up) - f8_load(potential + n);
            f8 impulse = room * (curved ? fall + uic_capillary_push(&capillary, n, up) : fall);
            impulse = lightness ? impulse * f8_load(lightness + c) : impulse;
            if (bounds_flow) {
                i8 full = (f8_load(spare + n) >= 0.0f) & (f8_load(spare + n - up) >= 0.0f);
                change = flow_change(impulse, room, f8_load(density + n), full, f8_load(at_surface + c), gain);
            } else {
                change =
                    impulse / f8_max(f8_load(density + n), f8_max(UIC_LEAST_PUSHED_DENSITY * room, f8_splat(1e-6f)));
            }
            f8_store(velocity + c, f8_load(velocity + c) + change);
        }
    }
}

/* Velocities after the solve, the change for FLIP, and the faces without particles. `potential` in m/s. */
static void push_block(const sk_step *step, int block, const uic_rooms *rooms, const float *potential)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    int known = 0;
    if (potential)
        accelerate(step, block, rooms, potential, step->capillary > 0);
    stop_at_walls(step, block, potential);
    stop_at_thin_walls(step, block);
    stick_to_solids(step, block);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        float *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            change[c] = velocity[c] - change[c];
            known += velocity[c] == velocity[c];
        }
    }
    int liquid = grid->block_flags[block] & SK_BLOCK_LIQUID;
    grid->block_flags[block] =
        (uint8_t)(liquid | (known ? SK_BLOCK_KNOWN : 0) | (known < SELKIE_DIM * SK_BLOCK_CELLS ? SK_BLOCK_UNKNOWN : 0));
}

/* Particles away from any pressure fly: only gravity acts on them, and their velocity includes it. The prediction is no
 * longer needed; its field passes the flight flags to the transfer to particles. */
static void mark_flying(const sk_step *step, int block, const float *potential)
{
    const sk_grid *grid = &step->grid;
    float *flying = grid->fields[SK_FIELD_PREDICTED] + (size_t)block * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        i8 pushed = i8_splat(0);
        if (potential) {
#pragma GCC unroll 27
            for (int n = 0; n < SK_NEIGHBOURS; n++) {
                int other =
                    node_of(c) + (n % 3 - 1) + (n / 3 % 3 - 1) * N1 + (SELKIE_DIM == 3 ? (n / 9 - 1) * N1 * N1 : 0);
                pushed |= f8_load(potential + other) != 0.0f;
            }
        }
        f8_store(flying + c, f8_select(pushed, f8_splat(0.0f), f8_splat(1.0f)));
    }
}

/* Does surface tension act in a block or beside it? */
static int has_capillary(const sk_step *step, int block)
{
    uic_capillary capillary;
    return uic_load_capillary(step, block, &capillary);
}

/* Loads POTENTIAL times `scale` with a halo of one cell. Returns whether any pressure acts; only then are the rooms
 * loaded. */
static int load_push(const sk_step *step, int block, float scale, int has_tension, uic_rooms *rooms, float *potential)
{
    const sk_grid *grid = &step->grid;
    int pushed = 0;
    sk_tile_load(grid, grid->fields[SK_FIELD_POTENTIAL], block, 1, potential);
    for (int n = 0; n < SK_TILE_VALUES(1); n++) {
        potential[n] *= scale;
        pushed |= potential[n] != 0.0f;
    }
    pushed |= has_tension && has_capillary(step, block);
    if (pushed) {
        uic_load_rooms(step, block, rooms);
        mirror_at_walls(&rooms->walls, potential);
    }
    return pushed;
}

static void balance_block(const sk_step *step, int block, float scale)
{
    const sk_grid *grid = &step->grid;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    float potential[SK_TILE_VALUES(1)];
    uic_rooms rooms;
    const int pushed = load_push(step, block, scale, 0, &rooms, potential);
    for (int d = 0; d < SELKIE_DIM; d++)
        memcpy(grid->fields[step->balance + d] + base, grid->fields[SK_FIELD_VELOCITY_X + d] + base,
               SK_BLOCK_CELLS * sizeof(float));
    if (pushed)
        accelerate(step, block, &rooms, potential, 0);

    /* The change is the balance; the velocity is again that before. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        float *balance = grid->fields[step->balance + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const float before = balance[c], change = velocity[c] - before;
            balance[c] = change == change ? change : 0.0f;
            velocity[c] = before;
        }
    }
}

static void finish_block(const sk_step *step, int block, float scale)
{
    const sk_grid *grid = &step->grid;
    float potential[SK_TILE_VALUES(1)];
    uic_rooms rooms;
    const int pushed = load_push(step, block, scale, step->capillary > 0, &rooms, potential);
    push_block(step, block, &rooms, pushed ? potential : NULL);
    if (block <= grid->particle_blocks && step->scene->unilateral.flight == SELKIE_FLIGHT_OWN)
        mark_flying(step, block, pushed ? potential : NULL);
}

/* A rigid body closes the gap below it before it meets resistance: in the cells that it covers in part, the density of
 * the cell itself counts. Liquid below the gap would hold a light body up at half a cell. */
static void loosen_beside_bodies(const sk_step *step, int block)
{
    const sk_solids *solids = &step->solids;
    const size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    const float *density = step->grid.fields[SK_FIELD_DENSITY] + base;
    float *spare = sk_uic_spare_of(step) + base;
    const float full = sk_uic_full(sk_uic_has_gravity(step->scene->gravity));
    for (uint32_t n = solids->piece_first[block]; n < solids->piece_first[block + 1]; n++) {
        const sk_body_piece *piece = &solids->pieces[n];
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int at[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG};
            const float room = 1.0f - solids->blurred[solid + (size_t)c];
            int covered = spare[c] >= 0.0f && room >= UIC_LEAST_ROOM && room < 1.0f;
            for (int d = 0; d < SELKIE_DIM; d++)
                covered &= at[d] >= piece->low[d] && at[d] < piece->high[d];
            if (covered)
                spare[c] = sk_uic_spare(density[c] / room, density[c] / room, room, full);
        }
    }
}

/* Loosens the full cells beside rigid bodies. */
static void loosen_all(sk_step *step)
{
    sk_deal deal;
    if (!sk_uic_bounds_flow(step) || !step->modes || !step->solids.body_count)
        return;
    sk_deal_blocks(&deal, &step->grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    loosen_beside_bodies(step, b);
}

/* The pressure, in the unit of the unknowns. `name` is that of the solve in messages, `target` the density of cells
 * that are not full. */
static selkie_code solve_pressure(sk_step *step, const char *name, const uic_pressure_form *form, const float *target,
                                  int has_tension, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    double excess = 0.0;
    loosen_all(step);
    uic_problem problem = {.name = name,
                           .target = target,
                           .presence = grid->fields[SK_FIELD_DENSITY],
                           .lower = find_bounds(step, form, has_tension),
                           .spare = sk_uic_bounds_flow(step) ? sk_uic_spare_of(step) : NULL,
                           .has_tension = has_tension,
                           .modes = step->modes,
                           .tolerance = step->scene->unilateral.tolerance,
                           /* there was no correction, or nothing to correct, and no balance */
                           .is_first = !step->shifted && !step->balanced,
                           .build = form->build};
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * sizeof *problem.blocks, "pressure",
                           (void **)&problem.blocks, error));
    return SK_DIM(sk_uic_solve)(step, &problem, &step->unilateral, &excess, error);
}

/* Other phases read the potential in the unit of the bilateral pressure, m/s. */
static void scale_potential(sk_step *step, float unit)
{
    float *potential = step->grid.fields[SK_FIELD_POTENTIAL];
    const int64_t end = (int64_t)step->grid.block_count * SK_BLOCK_CELLS;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t c = SK_BLOCK_CELLS; c < end; c++)
        potential[c] *= unit;
}

/* Gravity in balance with the pressure while viscosity acts (methods/balance.h). The pressure must be that of the phase
 * `pressure`: with the bilateral one, which differs beside the surface, thick liquid circulated. Liquid that only
 * arrives in this step does not count yet, so that the density need not be predicted twice. Surface tension follows
 * later, as with the bilateral pressure. */
selkie_code SK_DIM(sk_uic_balance_with)(sk_step *step, const uic_pressure_form *form, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    const float unit = (float)(grid->cell_size / step->dt); /* m/s of q = 1 */
    sk_deal deal;
    step->balanced = 0;
    if (!sk_step_has_pressure(step))
        return SK_DIM(sk_balance_add)(step, 1.0, error);

    /* The pressure. */
    find_full(step, form);
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    form->stop_at_walls(step, b);
    SK_TRY(solve_pressure(step, "balance", form, grid->fields[SK_FIELD_DENSITY], 0, error));

    /* What it changes. */
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    form->balance(step, b, unit);
    scale_potential(step, unit);
    step->balanced = 1;
    step->balanced_modes = step->modes;
    return SK_DIM(sk_balance_add)(step, 1.0, error);
}

selkie_code SK_DIM(sk_uic_pressure_with)(sk_step *step, const uic_pressure_form *form, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    const float unit = (float)(grid->cell_size / step->dt); /* m/s of q = 1 */
    memset(&step->unilateral, 0, sizeof step->unilateral);

    /* Solve for the potential. */
    if (sk_step_has_pressure(step)) {
        SK_TRY(solve_pressure(step, "pressure", form, grid->fields[SK_FIELD_PREDICTED], step->capillary > 0, error));
        step->balanced = 0;
    } else {
        memset(grid->fields[SK_FIELD_POTENTIAL], 0, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float));
    }

    /* Apply it to the velocities. */
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    form->finish(step, b, unit);

    scale_potential(step, unit);
    step->pressure.iterations = step->unilateral.iterations;
    step->pressure.residual = step->unilateral.residual;
    return SELKIE_OK;
}

static const uic_pressure_form tuned = {.build = SK_DIM(sk_uic_build),
                                        .stop_at_walls = stop_before_pressure,
                                        .predict_by_flux = predict_by_flux,
                                        .predict = SK_DIM(sk_predict_density),
                                        .mark_full = mark_full,
                                        .weigh_surface = weigh_surface,
                                        .mark_surface = mark_surface,
                                        .grow_surface = grow_surface,
                                        .balance = balance_block,
                                        .finish = finish_block};

selkie_code SK_DIM(sk_uic_balance)(sk_step *step, selkie_error *error)
{
    return SK_DIM(sk_uic_balance_with)(step, &tuned, error);
}

selkie_code SK_DIM(sk_uic_predict)(sk_step *step, selkie_error *error)
{
    return SK_DIM(sk_uic_predict_with)(step, &tuned, error);
}

selkie_code SK_DIM(sk_uic_pressure)(sk_step *step, selkie_error *error)
{
    return SK_DIM(sk_uic_pressure_with)(step, &tuned, error);
}

/* Extrapolates the velocity beyond the particles' faces, for the second stage of the advection. Unknown faces take the
 * mean of their known neighbours, layer by layer. This is the source's sweep (sec. 3.2.2), but in the order of
 * distance. */
selkie_code SK_DIM(sk_uic_extrapolate)(sk_step *step, selkie_error *error)
{
    enum { LAYERS = 2 };
    sk_grid *grid = &step->grid;
    int32_t *blocks;
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * sizeof *blocks, "extrapolate", (void **)&blocks, error));
    int count = 0;
    for (int b = 1; b < grid->block_count; b++) {
        int near = 0;
        for (int n = 0; (grid->block_flags[b] & SK_BLOCK_UNKNOWN) && !near && n < SK_NEIGHBOURS; n++)
            near = grid->block_flags[grid->neighbours[b][n]] & SK_BLOCK_KNOWN;
        if (near)
            blocks[count++] = b;
    }
    const sk_extrapolation velocity = {.fields = grid->fields + SK_FIELD_VELOCITY_X,
                                       .scratch = grid->fields + SK_FIELD_FACE_X,
                                       .field_count = SELKIE_DIM,
                                       .blocks = blocks,
                                       .block_count = count,
                                       .layers = LAYERS,
                                       .threads = step->threads};
    SK_DIM(sk_extrapolate)(grid, &velocity);
    return SELKIE_OK;
}
