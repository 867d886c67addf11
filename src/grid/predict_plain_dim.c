/* The plain form of the prediction: see predict.h. Particles move one by one into lists of their new cells. Each cell
 * then gathers from the lists of the cells around it. */
#include <string.h>

#include "base/dimension.h"
#include "grid/plain_forms.h"
#include "grid/predict_kernels.h"
#include "grid/sweep.h"
#include "grid/transfer_plain.h"

typedef struct moved_particle {
    float coordinate[3]; /* cells from the grid's corner */
    int next;            /* next in the list of its cell, -1 = none */
} moved_particle;

typedef struct cell_lists {
    moved_particle *particles; /* [particles] */
    int *first;                /* [blocks][cells of a block] -1 = none */
} cell_lists;

/* Motion of a particle by the velocity, and by the shift, m. */
typedef struct motion {
    float velocity[SELKIE_DIM][SK_AROUND], shift[SELKIE_DIM][SK_AROUND];
} motion;

static void load_motion(const sk_grid *grid, const sk_predict_options *options, sk_plain_cell cell, motion *m)
{
    memset(m, 0, sizeof *m);
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (options->dt > 0.0f)
            sk_plain_load_known(grid, grid->fields[SK_FIELD_VELOCITY_X + d], cell, d, m->velocity[d]);
        if (options->shifted)
            sk_plain_load_known(grid, grid->fields[SK_FIELD_SHIFT_X + d], cell, d, m->shift[d]);
    }
}

/* Position of a particle at the end of the step, m. */
static void predict_position(const sk_plain_frame *frame, const sk_predict_options *options, const motion *m,
                             const int at[3], const float low[3], const float high[3], float x[3])
{
    float fraction[3];
    const float from[3] = {x[0], x[1], x[2]};
    sk_plain_fractions(frame, x, at, fraction);
    for (int d = 0; d < SELKIE_DIM; d++) {
        x[d] += options->dt * sk_interpolate(d, m->velocity[d], fraction) +
                frame->cell_size * sk_interpolate_nearest(d, m->shift[d], fraction);
        x[d] = sk_clamp(x[d], low[d], high[d]);
    }
    if (options->solids->obstacle_count)
        sk_sweep_displacement(options->solids, low, high, from, x, options->dt > 0.0f ? 1.0 : 0.0);
}

static void predict_block(const sk_plain_frame *frame, const sk_predict_options *options, const sk_particles *particles,
                          int block, moved_particle *moved)
{
    const sk_grid *grid = frame->grid;
    float low[3], high[3];
    sk_solids_bounds(options->solids, grid, low, high);
    SK_PLAIN_EACH_CELL(cell, block)
    {
        motion m;
        uint32_t begin, end;
        int at[3];
        sk_plain_particles(grid, cell, &begin, &end);
        if (begin == end)
            continue;
        load_motion(grid, options, cell, &m);
        sk_plain_coordinates(grid, cell, at);
        for (uint32_t p = begin; p < end; p++) {
            float x[3] = {0.0f, 0.0f, 0.0f};
            memcpy(x, particles->records[p].position, SELKIE_DIM * sizeof *x);
            predict_position(frame, options, &m, at, low, high, x);
            for (int d = 0; d < SELKIE_DIM; d++) {
                const float found = sk_cell_coordinate(x[d], frame->corner[d], frame->inverse);
                moved[p].coordinate[d] = sk_within_reach(found, grid->coordinates[block][d] * SK_BLOCK_N);
            }
        }
    }
}

/* The cell that holds a moved particle. */
static sk_plain_cell cell_of(const sk_grid *grid, const moved_particle *moved, int at[3])
{
    at[2] = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        at[d] = (int)__builtin_floorf(moved->coordinate[d]);
    return sk_plain_find(grid, at);
}

/* Pushes to the front from the last particle on, so that lists keep the order of the particles. */
static void list_particles(const sk_grid *grid, int64_t count, const cell_lists *lists)
{
    memset(lists->first, -1, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof *lists->first);
    for (int64_t p = count - 1; p >= 0; p--) {
        int at[3];
        const sk_plain_cell cell = cell_of(grid, &lists->particles[p], at);
        int *first = &lists->first[sk_plain_index(cell)];
        lists->particles[p].next = *first;
        *first = (int)p;
    }
    /* A cell without a block has no list. */
    memset(lists->first, -1, SK_BLOCK_CELLS * sizeof *lists->first);
}

static uint32_t weigh_cell(const sk_grid *grid, const cell_lists *lists, sk_plain_cell cell)
{
    uint32_t sum = 0;
    for (int n = 0; n < SK_AROUND; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        for (int p = lists->first[sk_plain_index(sk_plain_beside(grid, cell, offset))]; p >= 0;
             p = lists->particles[p].next) {
            float fraction[3];
            int at[3];
            cell_of(grid, &lists->particles[p], at);
            for (int d = 0; d < SELKIE_DIM; d++)
                fraction[d] = lists->particles[p].coordinate[d] - (float)at[d];
            sum += sk_fixed_weight(sk_centre_weight(fraction, offset));
        }
    }
    return sum;
}

selkie_code SK_DIM(sk_predict_density_plain)(sk_grid *grid, const sk_particles *particles,
                                             const sk_predict_options *options, selkie_error *error)
{
    const sk_plain_frame frame = sk_plain_frame_of(grid);
    const size_t cells = (size_t)grid->block_count * SK_BLOCK_CELLS;
    cell_lists lists = {NULL, NULL};
    size_t room = 0, list_room = 0;
    selkie_code code = sk_reserve(grid->memory, (void **)&lists.particles, &room, (size_t)particles->count + 1,
                                  sizeof *lists.particles, "prediction", error);
    if (code == SELKIE_OK)
        code = sk_reserve(grid->memory, (void **)&lists.first, &list_room, cells, sizeof *lists.first, "prediction",
                          error);
    if (code == SELKIE_OK) {
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
        for (int b = 1; b <= grid->particle_blocks; b++)
            predict_block(&frame, options, particles, b, lists.particles);
        list_particles(grid, particles->count, &lists);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
        for (int b = 1; b < grid->block_count; b++)
            SK_PLAIN_EACH_CELL(cell, b)
        grid->fields[SK_FIELD_PREDICTED][sk_plain_index(cell)] =
            sk_float_weight(weigh_cell(grid, &lists, cell)) * options->density_per_particle;
    }
    sk_release(grid->memory, lists.particles);
    sk_release(grid->memory, lists.first);
    return code;
}
