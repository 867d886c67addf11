/* Contacts of points without a bond, walls and obstacles, and the move of rest_shape. */
#include "methods/elastoplastic/contact_kernels.h"
#include "methods/elastoplastic/elastic_materials.h"
#include "methods/elastoplastic/point_contact.h"
#include "methods/elastoplastic/point_lanes.h"
#include "methods/elastoplastic/rest_frame.h"
#include "particles/cell_index.h"
#include "particles/neighbour_kernels.h"
#include "particles/neighbours.h"

/* --- Points without a bond --- */

#define SKIN 0.5 /* spacings that points may move before the rows are made anew */

typedef struct touch_frame {
    const sk_step *step;
    sk_rest_shape *rest;
    sk_cell_index index;
    float radius2; /* m2  of the search */
} touch_frame;

/* Are two points of a bond that is there? Places on the lattice follow from rest positions. */
static int are_bonded(const touch_frame *frame, const float *a, const float *b, uint32_t bonds)
{
    const float per_spacing = (float)(1.0 / frame->rest->spacing);
    int n = 0, place = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const long offset = lroundf((b[d] - a[d]) * per_spacing);
        if (offset < -1 || offset > 1)
            return 0;
        n += place * (int)(offset + 1);
        place *= 3;
    }
    return (int)(bonds >> n & 1);
}

/* Neighbours of particle p among points at surfaces. Inner points cannot touch before those do. */
static uint32_t find_row(const touch_frame *frame, uint32_t p, const sk_cell_range *ranges, int range_count,
                         const float *rest_position, uint32_t *members)
{
    const sk_rest_shape *rest = frame->rest;
    const sk_particle *records = frame->step->particles.records;
    const uint32_t bonds = rest->bonds[rest->place[records[p].id]];
    uint32_t count = 0;
    float away[3];
    for (int r = 0; r < range_count; r++)
        for (uint32_t q = ranges[r].from; q < ranges[r].to; q++) {
            if (!(SK_DIM(sk_difference)(records[p].position, records[q].position, away) < frame->radius2) || q == p)
                continue;
            const uint32_t site = rest->place[records[q].id];
            if (rest->bonds[site] == SK_REST_FULL ||
                are_bonded(frame, rest_position + 3 * (size_t)p, rest_position + 3 * (size_t)q, bonds))
                continue;
            if (members)
                members[count] = site;
            count++;
        }
    return count;
}

/* Ascending order of sites: sums have one order, whenever the rows were made. */
static void sort_row(uint32_t *members, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t member = members[i];
        uint32_t k = i;
        for (; k > 0 && members[k - 1] > member; k--)
            members[k] = members[k - 1];
        members[k] = member;
    }
}

static selkie_code reserve_rows(sk_rest_shape *rest, sk_memory *memory, size_t rows, size_t members,
                                selkie_error *error)
{
    SK_TRY(sk_reserve(memory, (void **)&rest->row_site, &rest->row_capacity, rows + 1, sizeof *rest->row_site,
                      "contacts", error));
    SK_TRY(sk_reserve(memory, (void **)&rest->row_first, &rest->first_capacity, rows + 2, sizeof *rest->row_first,
                      "contacts", error));
    return sk_reserve(memory, (void **)&rest->row_members, &rest->member_capacity, members + 1,
                      sizeof *rest->row_members, "contacts", error);
}

/* One block: appends its rows. Blocks follow each other; few points are at surfaces. */
static selkie_code add_rows(const touch_frame *frame, int block, const float *rest_position, selkie_error *error)
{
    enum { CELLS = SELKIE_DIM == 3 ? 27 : 9 };
    sk_rest_shape *rest = frame->rest;
    const sk_particle *records = frame->step->particles.records;
    const uint32_t *start = frame->step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        sk_cell_range ranges[CELLS];
        int range_count = -1, cell[3] = {0, 0, 0};
        for (uint32_t p = start[c]; p < start[c + 1]; p++) {
            const uint32_t site = rest->place[records[p].id];
            if (rest->bonds[site] == SK_REST_FULL)
                continue;
            if (range_count < 0) {
                for (int d = 0; d < SELKIE_DIM; d++)
                    cell[d] =
                        frame->index.coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK);
                range_count = SK_DIM(sk_cells_around)(&frame->index, cell, 1, ranges);
            }
            const uint32_t found = find_row(frame, p, ranges, range_count, rest_position, NULL);
            if (!found)
                continue;
            const uint32_t first = rest->row_first[rest->row_count];
            SK_TRY(reserve_rows(rest, frame->step->memory, rest->row_count + 1, (size_t)first + found, error));
            find_row(frame, p, ranges, range_count, rest_position, rest->row_members + first);
            sort_row(rest->row_members + first, found);
            rest->row_site[rest->row_count++] = site;
            rest->row_first[rest->row_count] = first + found;
        }
    }
    return SELKIE_OK;
}

static selkie_code make_rows(sk_step *step, sk_rest_shape *rest, selkie_error *error)
{
    const double radius = (1.0 + SKIN) * rest->spacing;
    sk_lagging_settle(step, &rest->own);
    touch_frame frame = {
        .step = step, .rest = rest, .index = sk_grid_cell_index(&step->grid), .radius2 = (float)(radius * radius)};
    const float *rest_position =
        (const float *)(void *)sk_particles_find_attribute(&step->particles, "rest_position")->data;
    SK_TRY(reserve_rows(rest, step->memory, 0, 0, error));
    rest->row_count = 0;
    rest->row_first[0] = 0;
    for (int block = 1; block <= step->grid.particle_blocks; block++)
        SK_TRY(add_rows(&frame, block, rest_position, error));
    rest->reach_left = SKIN * rest->spacing;
    return SELKIE_OK;
}

/* Stiffness of a contact over the mass of the first point, 1/s2: the softer of the two, over a spacing. */
static float contact_stiffness(const sk_rest_shape *rest, size_t a, size_t b)
{
    const sk_elastic_material *first = &rest->materials[rest->material[a]];
    const sk_elastic_material *second = &rest->materials[rest->material[b]];
    const float stiff = first->lambda + 2.0f * first->mu, other = second->lambda + 2.0f * second->mu;
    return (stiff < other ? stiff : other) * first->inverse_density / (float)(rest->spacing * rest->spacing);
}

selkie_code SK_DIM(sk_rest_touch)(sk_step *step, selkie_error *error)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    if (rest->reach_left < 0.0)
        SK_TRY(make_rows(step, rest, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (size_t r = 0; r < rest->row_count; r++) {
        const size_t site = rest->row_site[r];
        float acceleration[3] = {0, 0, 0};
        for (uint32_t m = rest->row_first[r]; m < rest->row_first[r + 1]; m++) {
            const size_t other = rest->row_members[m];
            float away[3];
            for (int d = 0; d < SELKIE_DIM; d++)
                away[d] =
                    rest->position[sk_rest_at(SELKIE_DIM, d, site)] - rest->position[sk_rest_at(SELKIE_DIM, d, other)];
            SK_DIM(sk_rest_contact)
            (contact_stiffness(rest, site, other), (float)rest->spacing, away, acceleration);
        }
        for (int d = 0; d < SELKIE_DIM; d++)
            rest->acceleration[sk_rest_at(SELKIE_DIM, d, site)] += acceleration[d];
    }
    return SELKIE_OK;
}

/* --- The move --- */

typedef struct move_frame {
    sk_step *step;
    sk_rest_shape *rest;
    sk_point_kick kick;
    sk_point_moving moving;
    float *flow, *strain, *volume, *stress; /* attributes, in the order of the records */
    const uint32_t *order;                  /* rows of the attributes now; NULL = in order */
    const float *rest_position;             /* m  now */
    float *next_rest_position;              /* m  in the order of the records */
    double *drift;                          /* [blocks][4] sum of velocities, and the largest square of a speed against
                                               the mean of the last step */
} move_frame;

/* Values of the site back to the particle. */
static void keep_state(const move_frame *frame, size_t site, size_t p)
{
    const sk_rest_shape *rest = frame->rest;
    frame->stress[p] = rest->state[sk_rest_at(3, 2, site)];
    if (frame->order)
        memcpy(frame->next_rest_position + 3 * p, frame->rest_position + 3 * (size_t)frame->order[p],
               3 * sizeof(float));
    if (!rest->flow && !frame->order)
        return;
    frame->strain[p] = rest->state[sk_rest_at(3, 0, site)];
    frame->volume[p] = rest->state[sk_rest_at(3, 1, site)];
    for (int n = 0; rest->flow && n < SK_REST_MATRIX; n++)
        frame->flow[SK_REST_MATRIX * p + (size_t)n] = rest->flow[sk_rest_at(SK_REST_MATRIX, n, site)];
}

/* The new position of a point at its site, for the next step. */
static void place_point(const move_frame *frame, size_t site, const float position[3])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        frame->rest->position[sk_rest_at(SELKIE_DIM, d, site)] = position[d];
}

/* Adds a velocity to the drift of a block. */
static void add_drift(const move_frame *frame, const float velocity[3], double drift[4])
{
    double square = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double relative = (double)velocity[d] - frame->rest->mean[d];
        drift[d] += velocity[d];
        square += relative * relative;
    }
    drift[3] = square > drift[3] ? square : drift[3];
}

static void move_block(const move_frame *frame, int block)
{
    const uint32_t *start = frame->step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    const float clearance = frame->step->solids.clearance[block];
    const int near_wall = sk_is_near_wall(&frame->kick, block);
    double *drift = frame->drift + 4 * (size_t)block;
    sk_point_move_sums sums = {0};
    memset(drift, 0, 4 * sizeof *drift);
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++) {
        sk_particle *record = &frame->step->particles.records[p];
        const size_t site = frame->rest->place[record->id];
        float acceleration[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            acceleration[d] = frame->rest->acceleration[sk_rest_at(SELKIE_DIM, d, site)];
        sk_kick_point(&frame->kick, block, near_wall, acceleration, record);
        keep_state(frame, site, p);
        sk_move_point(&frame->moving, clearance, record, &sums);
        if (frame->moving.lists)
            sk_note_cell(&frame->moving, block, p, -1, record->position);
        place_point(frame, site, record->position);
        add_drift(frame, record->velocity, drift);
    }
    frame->moving.sums[block] = sums;
}

/* --- Tuned: four points at a time, away from walls and obstacles --- */

/* Sums of drift, a point in each lane. */
typedef struct lane_drift {
    sk_lane_doubles velocity[SELKIE_DIM];
    f4 fastest2;
} lane_drift;

/* Velocities of a group after forces; values of the sites back to the particles. */
static inline void kick_group(const move_frame *frame, const sk_point_rows *rows, const size_t site[SK_LANES],
                              sk_lane_records *records, lane_drift *drift)
{
    const sk_point_kick *kick = &frame->kick;
    const sk_lane_mask busy = rows->busy;
    f4 square = fl_splat(0.0f);
    for (int l = 0; l < SK_LANES; l++)
        if (rows->points >> l & 1)
            keep_state(frame, site[l], rows->at[l]);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *from = frame->rest->acceleration;
        const f4 acceleration = {from[sk_rest_at(SELKIE_DIM, d, site[0])], from[sk_rest_at(SELKIE_DIM, d, site[1])],
                                 from[sk_rest_at(SELKIE_DIM, d, site[2])], from[sk_rest_at(SELKIE_DIM, d, site[3])]};
        const f4 velocity = records->column[3 + d] + (kick->time * acceleration + kick->gain[d]);
        const f4 relative = velocity - (float)frame->rest->mean[d];
        records->column[3 + d] = velocity;
        square = f4_multiply_add(relative, relative, square);
        drift->velocity[d] += sk_doubles(sk_choose(busy, velocity, fl_splat(0.0f)));
    }
    drift->fastest2 = sk_larger(square, drift->fastest2);
}

/* The cells of a group from p on: that of its first point, if it has them all. `cell` is that of an earlier point, with
 * its place. */
static inline sk_lane_homes find_homes(const sk_grid *grid, int block, const uint32_t *start, uint32_t p,
                                       const sk_lane_records *group, int *cell, sk_lane_place *place)
{
    const int before = *cell;
    while (start[*cell + 1] <= p)
        ++*cell;
    if (*cell != before)
        *place = sk_place_lanes(grid, block, *cell, 0);
    if (p + SK_LANES > start[*cell + 1])
        return (sk_lane_homes){NULL, sk_cells_in_block(grid, block, group->column)};
    return (sk_lane_homes){place, sk_lane_numbers() * 0 + *cell};
}

static void move_block_in_lanes(const move_frame *frame, int block)
{
    const sk_grid *grid = &frame->step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    sk_particle *records = frame->step->particles.records;
    sk_point_move_sums sums = {0};
    sk_lane_move_sums lane_sums = {0};
    lane_drift drift = {0};
    if (frame->kick.field_count || frame->step->solids.obstacle_count || sk_is_near_wall(&frame->kick, block)) {
        move_block(frame, block);
        return;
    }
    int cell = 0;
    sk_lane_place place = sk_place_lanes(grid, block, 0, 0);
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p += SK_LANES) {
        const sk_point_rows rows = sk_point_rows_of(p, start[SK_BLOCK_CELLS]);
        sk_lane_records group;
        size_t site[SK_LANES];
        sk_load_records(records, &rows, &group);
        for (int l = 0; l < SK_LANES; l++)
            site[l] = frame->rest->place[records[rows.at[l]].id];
        kick_group(frame, &rows, site, &group, &drift);
        const sk_lane_homes home = find_homes(grid, block, start, p, &group, &cell, &place);
        sk_move_group(&frame->moving, block, &rows, SK_LANES_ADJOIN, &home, &group, records, &lane_sums, &sums);
        for (int d = 0; d < SELKIE_DIM; d++)
            for (int l = 0; l < SK_LANES; l++)
                frame->rest->position[sk_rest_at(SELKIE_DIM, d, site[l])] = group.column[d][l];
    }

    /* Sums. */
    sk_add_lane_sums(&lane_sums, &sums);
    frame->moving.sums[block] = sums;
    for (int d = 0; d < 3; d++)
        frame->drift[4 * block + d] = d < SELKIE_DIM ? sk_lane_sum(drift.velocity[d]) : 0.0;
    frame->drift[4 * block + 3] = sk_lane_most(drift.fastest2);
}

/* --- The phase --- */

/* An attribute in the order of the records: its second copy while attributes lag. */
static float *attribute(const sk_step *step, const char *name)
{
    const sk_attribute *found = sk_particles_find_attribute(&step->particles, name);
    if (!found)
        return NULL;
    return (float *)(void *)(sk_rest_shape_of(step)->own.lags ? found->spare : found->data);
}

static selkie_code move_points(sk_step *step, void (*move)(const move_frame *frame, int block), selkie_error *error)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    move_frame frame = {.step = step,
                        .rest = rest,
                        .flow = attribute(step, "plastic_inverse"),
                        .strain = attribute(step, "plastic_strain"),
                        .volume = attribute(step, "plastic_volume"),
                        .stress = attribute(step, "stress"),
                        .order = rest->own.lags ? rest->own.order : NULL,
                        .next_rest_position = attribute(step, "rest_position")};
    frame.rest_position =
        (const float *)(const void *)sk_particles_find_attribute(&step->particles, "rest_position")->data;
    SK_TRY(sk_begin_moving(step, &frame.moving, error));
    if (move == move_block_in_lanes)
        SK_TRY(sk_begin_lists(step, &frame.moving, error));
    SK_TRY(sk_begin_kick(step, 0.5 * rest->spacing, &frame.kick, error));
    SK_TRY(sk_step_scratch(step, ((size_t)step->grid.particle_blocks + 1) * 4 * sizeof *frame.drift, "move",
                           (void **)&frame.drift, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        move(&frame, block);
        if (frame.moving.lists)
            sk_list_leavers(step, &frame.moving, block);
    }
    if (frame.order)
        sk_lagging_swap(step, &rest->own);

    /* How far points moved against each other, at most. */
    double square = 0.0, mean[3] = {0, 0, 0};
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        for (int d = 0; d < 3; d++)
            mean[d] += frame.drift[4 * block + d] / (double)step->particles.count;
        square = fmax(square, frame.drift[4 * block + 3]);
    }
    rest->reach_left -= 2.0 * sqrt(square) * step->dt;
    memcpy(rest->mean, mean, sizeof mean);
    const selkie_code code = sk_end_moving(step, &frame.moving, error);
    rest->placed_at = step->particles.moves;
    return code;
}

selkie_code SK_DIM(sk_rest_move)(sk_step *step, selkie_error *error)
{
    return move_points(step, move_block_in_lanes, error);
}

selkie_code SK_DIM(sk_rest_move_plain)(sk_step *step, selkie_error *error)
{
    return move_points(step, move_block, error);
}
