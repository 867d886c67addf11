/* Bodies of particles on the grid: two velocities a face, one pressure. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain_forms.h"
#include "grid/tile.h"
#include "grid/transfer_plain.h"
#include "methods/shape_matching/mix_plain.h"
#include "methods/shape_matching/response.h"
#include "methods/shape_matching/shape_matching.h"
#include "methods/sorting.h"

/* --- Records --- */

void SK_DIM(sk_soft_find_records)(sk_step *step)
{
    sk_soft *soft = step->soft;
    const sk_particles *particles = &step->particles;
    const uint32_t *owner = sk_particles_find_attribute(particles, "body")->data;
    int64_t left = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = 0; k < soft->point_count; k++)
        soft->record[k] = -1;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(+ : left)
    for (int64_t p = 0; p < particles->count; p++) {
        if (!owner[p])
            continue; /* most of them: their records are not read */
        const uint32_t k = particles->records[p].id - soft->first_id;
        if (k >= soft->point_count || particles->records[p].flags & SK_PARTICLE_DEAD)
            continue;
        soft->record[k] = p;
        left++;
    }

    /* Regions that lost particles need new moments. */
    for (int r = 0; left != soft->left && r < soft->region_count; r++)
        soft->regions[r].is_ready = 0;
    soft->left = left;
}

/* Positions have changed, those of particles in the blocks `touched` alone if `listed`: then the lists of migrating
 * particles of the other blocks stay, and the next sort begins with them. */
static void note_moves(sk_step *step, const uint8_t *touched, int listed)
{
    sk_grid *grid = &step->grid;
    sk_particles_moved(&step->particles);
    if (!listed)
        return;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= grid->particle_blocks; b++)
        if (touched[b])
            SK_DIM(sk_grid_list_again)(grid, &step->particles, b);
    grid->leavers_at = step->particles.moves;
    grid->moved = NULL;
}

/* Room for marks of blocks, none of them marked. */
static selkie_code clear_blocks(sk_step *step, uint8_t **touched, selkie_error *error)
{
    const size_t blocks = (size_t)step->grid.block_count;
    SK_TRY(sk_step_scratch(step, blocks, "bodies", (void **)touched, error));
    memset(*touched, 0, blocks);
    return SELKIE_OK;
}

/* Records of bodies that something moved go back to their points. Liquid inside bodies leaves them. The density
 * projection moves liquid, which is sorted after this. */
selkie_code SK_DIM(sk_soft_place)(sk_step *step, selkie_error *error)
{
    const int listed = sk_grid_leavers_known(&step->grid, &step->particles);
    int moved = 0;
    uint8_t *touched;
    SK_DIM(sk_soft_find_records)(step);
    step->soft->is_placed &= sk_soft_keeps_records(step);
    SK_TRY(SK_DIM(sk_soft_measure)(step, &moved, error));
    if (step->soft->is_placed)
        return SELKIE_OK;
    SK_TRY(clear_blocks(step, &touched, error));
    if (step->soft->is_stepping && step->soft->left < step->particles.count)
        SK_TRY(SK_DIM(sk_soft_push_out)(step, touched, error));
    note_moves(step, touched, listed && !moved);
    return SELKIE_OK;
}

/* The sort after `place`. */
selkie_code SK_DIM(sk_soft_sort)(sk_step *step, selkie_error *error)
{
    return step->soft->is_placed ? SELKIE_OK : SK_DIM(sk_sort_particles_again)(step, error);
}

selkie_code SK_DIM(sk_soft_sort_plain)(sk_step *step, selkie_error *error)
{
    return step->soft->is_placed ? SELKIE_OK : SK_DIM(sk_sort_particles_plain)(step, error);
}

/* --- The mixture --- */

/* The mixture at the faces of a block. In blocks without a share the fields of the mixture are those of the liquid, and
 * the other ones are not read. */
static void mix_block(const sk_step *step, const sk_mixture_faces *f, int block)
{
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    float *density = step->grid.fields[SK_FIELD_DENSITY];
    const float *solid_density = step->grid.fields[step->soft->mixture.solid_density];
    const int whole = sk_soft_is_unilateral(step); /* its faces hold the density of both */
    int shared = 0;
    if (!step->soft->shared[block])
        return; /* no particle of a body reaches it */
    for (size_t i = base; i < base + SK_BLOCK_CELLS; i++)
        density[i] += solid_density[i];
    for (int d = 0; d < SELKIE_DIM; d++)
        for (size_t i = base; i < base + SK_BLOCK_CELLS; i++)
            shared |= f->share[d][i] > 0.0f;
    step->soft->shared[block] = (uint8_t)shared;
    for (size_t i = base; i < base + SK_BLOCK_CELLS && shared; i++)
        for (int d = 0; d < SELKIE_DIM; d++)
            soft_mix_face(f, d, i, whole);
}

/* Contacts that gravity would close act before the pressure solve as well: the liquid under a body at rest must not
 * feel one that falls. The records, which the grid gathers, take the mean velocity of the change, as that of gravity.
 */
selkie_code SK_DIM(sk_soft_foresee)(sk_step *step, selkie_error *error)
{
    sk_soft *soft = step->soft;
    const double part = 1.0 / (1.0 + step->reflection), kick = sk_step_kick(step) / part;
    const double *g = step->scene->gravity, ahead[3] = {kick * g[0], kick * g[1], kick * g[2]};
    struct soft_response *answers = NULL;
    if (soft->is_stepping)
        SK_TRY(SK_DIM(sk_soft_find_answers)(step, ahead, &answers, error));
    if (!answers && step->is_dry)
        return SELKIE_OK; /* no grid gathers the records */
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < soft->span_count; s++)
        for (uint32_t k = soft->spans[s].begin; k < soft->spans[s].end; k++) {
            sk_soft_point *point = &soft->points[k];
            double change[3] = {0.0, 0.0, 0.0};
            if (answers)
                soft_change_at(&answers[soft->spans[s].body], point->position, change);
            for (int d = 0; d < SELKIE_DIM && soft->record[k] >= 0; d++)
                step->particles.records[soft->record[k]].velocity[d] = (float)(point->velocity[d] + part * change[d]);
            for (int d = 0; d < SELKIE_DIM; d++)
                point->velocity[d] += change[d];
        }
    return SELKIE_OK;
}

/* Without liquid the cells of the bodies count for statistics alone. */
static selkie_code weigh_cells(sk_step *step, sk_mixture_transfer transfer, selkie_error *error)
{
    const sk_transfer_options options = {.density_per_particle = 1.0f / (float)step->particles_per_cell,
                                         .material_mask = step->soft->solid_mask,
                                         .threads = step->threads};
    memset(step->soft->shared, 0, (size_t)step->grid.block_count);
    return transfer(&step->grid, &step->particles, &options, error);
}

static selkie_code mix(sk_step *step, sk_mixture_transfer transfer, sk_mixture_transfer density, selkie_error *error)
{
    const int64_t before = step->soft->left;
    if (!step->soft->is_placed)
        SK_DIM(sk_soft_find_records)(step);
    step->is_dry = sk_soft_is_dry(step);
    if (step->soft->left != before)
        SK_TRY(SK_DIM(sk_soft_measure)(step, NULL, error));
    SK_TRY(SK_DIM(sk_soft_foresee)(step, error));
    SK_TRY(sk_reserve(step->memory, (void **)&step->soft->shared, &step->soft->shared_capacity,
                      (size_t)step->grid.block_count, 1, "bodies", error));
    if (step->is_dry)
        return weigh_cells(step, density, error);
    SK_TRY(sk_mixture_gather(&step->soft->mixture, step, step->soft->solid_mask, step->soft->shared, transfer, error));
    const sk_mixture_faces f = sk_mixture_faces_of(&step->soft->mixture, step);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < step->grid.block_count; b++)
        mix_block(step, &f, b);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_soft_mix)(sk_step *step, selkie_error *error)
{
    return mix(step, SK_DIM(sk_transfer_to_grid), SK_DIM(sk_transfer_density), error);
}

selkie_code SK_DIM(sk_soft_mix_plain)(sk_step *step, selkie_error *error)
{
    return mix(step, SK_DIM(sk_transfer_to_grid_plain), SK_DIM(sk_transfer_density_plain), error);
}

selkie_code SK_DIM(sk_soft_remember)(sk_step *step, selkie_error *error)
{
    const sk_mixture_faces f = sk_mixture_faces_of(&step->soft->mixture, step);
    (void)error;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < step->grid.block_count; b++) {
        if (!step->soft->shared[b])
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            for (size_t i = (size_t)b * SK_BLOCK_CELLS; i < (size_t)(b + 1) * SK_BLOCK_CELLS; i++)
                soft_remember_face(&f, d, i);
    }
    return SELKIE_OK;
}

/* --- After the pressure --- */

/* Parts the change of a block's faces. Returns whether a face of the liquid is unknown now. */
static int part_block(const sk_step *step, const sk_mixture_faces *f, const soft_parting *parting, int block)
{
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    const int has_solids = step->solids.block_slot[block] != 0;
    int unknown = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        int shared = 0;
        for (size_t i = base; i < base + SK_BLOCK_CELLS; i++)
            shared |= f->share[d][i] > 0.0f;
        for (size_t i = base; i < base + SK_BLOCK_CELLS && !shared; i++)
            f->solid[d][i] = __builtin_nanf("");
        for (size_t i = base; i < base + SK_BLOCK_CELLS && shared; i++)
            unknown |= soft_part_face(f, parting, has_solids, d, i);
    }
    return unknown;
}

/* Marks the cells of a block with a lower face that liquid and bodies share. Returns whether there are any. */
static int mark_mixed(const sk_mixture_faces *f, int block, uint8_t *mixed)
{
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    int any = 0;
    memset(mixed + base, 0, SK_BLOCK_CELLS);
    for (int d = 0; d < SELKIE_DIM; d++)
        for (size_t i = base; i < base + SK_BLOCK_CELLS; i++) {
            const uint8_t shared = (uint8_t)soft_is_mixed(f, d, i);
            mixed[i] |= shared;
            any |= shared;
        }
    return any;
}

/* Component d at a position (m) of the tile of a block whose first cell is `first`: linear between the faces. */
static float sample_tile(const sk_plain_frame *frame, const float *tile, int d, const int first[3], const float x[3])
{
    static const int strides[3] = {1, SK_TILE_N(1), SK_TILE_N(1) * SK_TILE_N(1)};
    int base = 0, low[3];
    float above[3], sum = 0.0f;
    soft_faces_around(frame, d, first, x, low, above);
    for (int e = 0; e < SELKIE_DIM; e++)
        base += (low[e] + 1) * strides[e];
    for (int c = 0; c < (SELKIE_DIM == 3 ? 8 : 4); c++) {
        int node = base;
        for (int e = 0; e < SELKIE_DIM; e++)
            node += c >> e & 1 ? strides[e] : 0;
        sum += soft_corner_weight(above, c) * tile[node];
    }
    return sum;
}

/* A body is wet once any thread finds liquid at it. */
static int is_wet(const uint8_t *wet, uint32_t owner)
{
    uint8_t value;
#pragma omp atomic read
    value = wet[owner];
    return value;
}

/* Marks the bodies of the points in a block with liquid at a face around their cells. */
static void find_wet(const sk_step *step, const uint8_t *mixed, int block, uint8_t *wet)
{
    const uint32_t *owner = step->soft->owner, *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    int dry = 0;
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS] && !dry; p++)
        dry = owner[p] && !is_wet(wet, owner[p]);
    if (!dry)
        return;
    uint8_t tile[SK_TILE_VALUES(1)];
    sk_tile_load_bytes(&step->grid, mixed, block, 1, tile);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int i = sk_plain_along(c, 0), j = sk_plain_along(c, 1), k = SELKIE_DIM == 3 ? sk_plain_along(c, 2) : 0;
        int touches = 0;
        if (start[c] == start[c + 1])
            continue;
        for (int n = 0; n < (SELKIE_DIM == 3 ? 9 : 3); n++) {
            const uint8_t *row = tile + i + SK_TILE_N(1) * (j + n % 3 + SK_TILE_N(1) * (k + n / 3));
            touches |= row[0] | row[1] | row[2];
        }
        for (uint32_t p = start[c]; touches && p < start[c + 1]; p++)
            if (owner[p] && !is_wet(wet, owner[p])) {
#pragma omp atomic write
                wet[owner[p]] = 1;
            }
    }
}

/* Finds the bodies that liquid touches. `mixed` marks cells with faces that liquid and bodies share, `any` their
 * blocks. Returns whether there is a body. */
static int find_wet_bodies(sk_step *step, const uint8_t *mixed, const uint8_t *any)
{
    sk_soft *soft = step->soft;
    int found = 0;
    uint8_t *wet = soft->wet;
    memset(wet, 0, (size_t)soft->wet_count);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= step->grid.particle_blocks; b++) {
        int near = 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++)
            near |= any[step->grid.neighbours[b][n]];
        if (near)
            find_wet(step, mixed, b, wet);
    }
    for (int b = 0; b < soft->body_count; b++)
        found |= soft->bodies[b].is_wet = wet[soft->bodies[b].number + 1];
    return found;
}

/* The change that the grid gives to the points in a block, of bodies that liquid touches. */
static void move_block(const sk_step *step, const sk_plain_frame *frame, const sk_mixture_faces *f, int block,
                       double *changes)
{
    const sk_soft *soft = step->soft;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    float tiles[SELKIE_DIM][SK_TILE_VALUES(1)];
    int loaded = 0, first[3];
    sk_plain_coordinates(frame->grid, (sk_plain_cell){block, 0}, first);
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++) {
        const sk_particle *record = &step->particles.records[p];
        const uint32_t k = record->id - soft->first_id;
        if (!soft->owner[p] || k >= soft->point_count || !soft->wet[soft->owner[p]])
            continue;
        for (int d = 0; d < SELKIE_DIM && !loaded; d++) {
            sk_tile_load(frame->grid, f->solid[d], block, 1, tiles[d]);
            for (int n = 0; n < SK_TILE_VALUES(1); n++)
                tiles[d][n] = sk_known_or_zero(tiles[d][n]);
        }
        loaded = 1;
        for (int d = 0; d < SELKIE_DIM; d++)
            changes[3 * (size_t)k + (size_t)d] = (double)sample_tile(frame, tiles[d], d, first, record->position);
    }
}

/* Where the paths of the liquid begin, which bodies stop: in blocks with points and beside them. Unilateral pressure
 * shifts particles before it moves them. */
static selkie_code keep_places(sk_step *step, selkie_error *error)
{
    sk_soft *soft = step->soft;
    const sk_grid *grid = &step->grid;
    const uint32_t *owner = sk_particles_find_attribute(&step->particles, "body")->data;
    uint8_t *crowded;
    SK_TRY(sk_reserve(step->memory, (void **)&soft->from, &soft->from_capacity, (size_t)step->particles.count + 1,
                      sizeof *soft->from, "bodies", error));
    SK_TRY(clear_blocks(step, &crowded, error));
#pragma omp parallel num_threads(step->threads)
    {
#pragma omp for schedule(static)
        for (int b = 1; b <= grid->particle_blocks; b++) {
            const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
            uint32_t any = 0;
            for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
                any |= owner[p];
            crowded[b] = any != 0;
        }
#pragma omp for schedule(static)
        for (int b = 1; b <= grid->particle_blocks; b++) {
            const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
            int near = 0;
            for (int n = 0; n < SK_NEIGHBOURS; n++)
                near |= crowded[grid->neighbours[b][n]];
            for (uint32_t p = start[0]; near && p < start[SK_BLOCK_CELLS]; p++)
                memcpy(soft->from[p], step->particles.records[p].position, sizeof *soft->from);
        }
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_soft_part)(sk_step *step, selkie_error *error)
{
    sk_soft *soft = step->soft;
    const sk_mixture_faces f = sk_mixture_faces_of(&step->soft->mixture, step);
    const sk_plain_frame frame = sk_plain_frame_of(&step->grid);
    const soft_parting parting = soft_parting_of(step);
    const size_t blocks = (size_t)step->grid.block_count;
    double *changes;
    uint8_t *mixed, *any;
    SK_TRY(sk_step_scratch(step, ((size_t)soft->point_count + 1) * 3 * sizeof *changes, "bodies", (void **)&changes,
                           error));
    SK_TRY(sk_step_scratch(step, blocks * SK_BLOCK_CELLS, "bodies", (void **)&mixed, error));
    SK_TRY(sk_step_scratch(step, blocks, "bodies", (void **)&any, error));
    soft->owner = sk_particles_find_attribute(&step->particles, "body")->data;
    memset(mixed, 0, SK_BLOCK_CELLS);
    any[0] = 0;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < step->grid.block_count; b++) {
        any[b] = 0;
        if (!soft->shared[b]) {
            memset(mixed + (size_t)b * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS);
            continue;
        }
        any[b] = (uint8_t)mark_mixed(&f, b, mixed);
        if (part_block(step, &f, &parting, b))
            step->grid.block_flags[b] |= SK_BLOCK_UNKNOWN;
    }
    if (find_wet_bodies(step, mixed, any)) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
        for (int b = 1; b <= step->grid.particle_blocks; b++)
            move_block(step, &frame, &f, b, changes);
    }
    SK_TRY(SK_DIM(sk_soft_spread)(step, changes, error));
    return sk_soft_is_unilateral(step) ? keep_places(step, error) : SELKIE_OK;
}

/* --- The move --- */

/* The density correction does not move bodies. */
static void return_to_points(sk_step *step)
{
    const sk_soft *soft = step->soft;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = 0; k < soft->point_count; k++)
        for (int d = 0; d < SELKIE_DIM && soft->record[k] >= 0; d++)
            step->particles.records[soft->record[k]].position[d] = (float)soft->points[k].position[d];
}

/* Records move with the velocity of their points. */
selkie_code SK_DIM(sk_soft_lead)(sk_step *step, selkie_error *error)
{
    sk_soft *soft = step->soft;
    if (sk_soft_is_unilateral(step))
        return_to_points(step);
    else
        SK_TRY(keep_places(step, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = 0; k < soft->point_count; k++) {
        if (soft->record[k] < 0)
            continue;
        sk_particle *record = &step->particles.records[soft->record[k]];
        record->flags |= SK_PARTICLE_FLYING;
        for (int d = 0; d < SELKIE_DIM; d++)
            record->velocity[d] = (float)soft->points[k].velocity[d];
    }
    return SELKIE_OK;
}

/* Sums over a span: points that are left, their way from the position of the state, and their velocities. */
typedef struct motion_sums {
    double count, way[3], velocity[3];
    int strays; /* does a record change its cell when it takes the place of its point? */
} motion_sums;

/* The points of a span move straight. One that met a wall or an obstacle is where its record stopped. The records take
 * the places of the points, which differ by rounding. */
static void follow_span(sk_step *step, const sk_soft_span *span, motion_sums *sums)
{
    sk_soft *soft = step->soft;
    const double near = 1e-3 * step->grid.cell_size, *about = soft->states[span->body].position;
    const float inverse = (float)(1.0 / step->grid.cell_size);
    memset(sums, 0, sizeof *sums);
    for (uint32_t k = span->begin; k < span->end; k++) {
        if (soft->record[k] < 0)
            continue;
        sk_particle *record = &step->particles.records[soft->record[k]];
        sk_soft_point *point = &soft->points[k];
        sums->count += 1.0;
        for (int d = 0; d < SELKIE_DIM; d++) {
            point->position[d] += step->dt * point->velocity[d];
            if (fabs(point->position[d] - (double)record->position[d]) > near) {
                point->position[d] = (double)record->position[d];
                point->velocity[d] = 0.0;
            } else if (soft->late) {
                point->velocity[d] += soft->late[k][d];
            }
            sums->way[d] += point->position[d] - about[d];
            sums->velocity[d] += point->velocity[d];
            const float before = record->position[d], corner = (float)step->grid.corner[d];
            record->position[d] = (float)point->position[d];
            sums->strays |= floorf((before - corner) * inverse) != floorf((record->position[d] - corner) * inverse);
        }
    }
}

selkie_code SK_DIM(sk_soft_move_points)(sk_step *step, int *strays, selkie_error *error)
{
    sk_soft *soft = step->soft;
    motion_sums *partial, total = {0};
    SK_TRY(sk_step_scratch(step, ((size_t)soft->span_count + 1) * sizeof *partial, "bodies", (void **)&partial, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < soft->span_count; s++)
        follow_span(step, &soft->spans[s], &partial[s]);
    for (int s = 0; s < soft->span_count; s++) {
        sk_soft_state *state = &soft->states[soft->spans[s].body];
        total.count += partial[s].count;
        *strays |= partial[s].strays;
        for (int d = 0; d < SELKIE_DIM; d++) {
            total.way[d] += partial[s].way[d];
            total.velocity[d] += partial[s].velocity[d];
        }
        if (s + 1 < soft->span_count && soft->spans[s + 1].body == soft->spans[s].body)
            continue;
        for (int d = 0; d < SELKIE_DIM && total.count > 0.0; d++) {
            state->position[d] += total.way[d] / total.count;
            state->velocity[d] = total.velocity[d] / total.count;
        }
        memset(&total, 0, sizeof total);
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_soft_follow)(sk_step *step, selkie_error *error)
{
    sk_soft *soft = step->soft;
    uint8_t *touched;
    int strays = 0;
    const int listed = sk_grid_leavers_known(&step->grid, &step->particles);
    SK_TRY(clear_blocks(step, &touched, error));
    if (soft->left < step->particles.count)
        SK_TRY(SK_DIM(sk_soft_stop)(step, touched, error));
    SK_TRY(SK_DIM(sk_soft_move_points)(step, &strays, error));
    note_moves(step, touched, listed && !strays);
    soft->is_placed = sk_soft_keeps_records(step);
    soft->is_stepping = 0;
    return SELKIE_OK;
}
