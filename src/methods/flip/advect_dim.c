/* Advection: every particle goes along the grid's velocity with Runge-Kutta steps of its own.
 *
 * No stage may cross more than a cell: at a large step the midpoint of a falling drop would otherwise lie in the still
 * pool below it and the drop would hover. So a fast particle takes as many sub-steps as it needs, each with the solids
 * asked again. Where no velocity is known (out in the air, beyond the band) a particle keeps its own and flies.
 *
 * The velocities of a block and four cells around it are copied into one dense piece; the few particles that get farther
 * move on to a piece fetched around where they are.
 */
#include <math.h>

#include "base/dimension.h"
#include "grid/grid_kernels.h"
#include "grid/tile.h"
#include "methods/flip/advect_kernels.h"
#include "methods/flip/flip.h"

enum { HALO = 4, WIDTH = SK_TILE_N(HALO) };

typedef struct advect_frame {
    const sk_step *step;
    float inverse;        /* 1/m */
    float corner[3];      /* m   of the grid */
    float low[3], high[3];/* m   where closed walls let particles be; open sides are infinite */
    int open[6];
    float dt;             /* s   */
    int order;
} advect_frame;

typedef struct local_piece {
    sk_velocity_piece piece;
    float origin[3];       /* cells of the grid at the piece's corner */
    float values[SELKIE_DIM][SK_TILE_VALUES(HALO)];
} local_piece;

static void load_piece(const sk_grid *grid, int block, local_piece *local)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_tile_load(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, HALO, local->values[d]);
        local->piece.component[d] = local->values[d];
    }
    local->piece.pitch = WIDTH;
    local->piece.dimension = SELKIE_DIM;
    for (int d = 0; d < 3; d++)
        local->origin[d] = d < SELKIE_DIM ? (float)(grid->coordinates[block][d] * SK_BLOCK_N - HALO) : 0.0f;
}

/* Around a place that the block's own piece does not cover: the 2^dim nodes of each component, fetched one by one. */
static void load_small_piece(const sk_grid *grid, const float coordinate[3], sk_velocity_piece *piece,
                             float values[SELKIE_DIM][27], float origin[3])
{
    int first[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        first[d] = (int)floorf(coordinate[d]) - 1;
        origin[d] = (float)first[d];
    }
    for (int n = 0; n < (SELKIE_DIM == 3 ? 27 : 9); n++) {
        int cell[3] = {first[0] + n % 3, first[1] + n / 3 % 3, SELKIE_DIM == 3 ? first[2] + n / 9 : 0};
        int slot = 0, inside = 1, local = 0;
        size_t place = 0, stride = 1;
        for (int d = 0; d < SELKIE_DIM; d++) {
            inside &= cell[d] >= 0 && cell[d] < grid->blocks[d] * SK_BLOCK_N;
            place += (size_t)(inside ? cell[d] >> SK_BLOCK_LOG : 0) * stride;
            stride *= (size_t)grid->blocks[d];
            local += (cell[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        }
        if (inside)
            slot = grid->table[place];
        for (int d = 0; d < SELKIE_DIM; d++)
            values[d][n] = grid->fields[SK_FIELD_VELOCITY_X + d][(size_t)slot * SK_BLOCK_CELLS + (size_t)local];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        piece->component[d] = values[d];
    piece->pitch = 3;
    piece->dimension = SELKIE_DIM;
}

/* Velocity at a position (m), in m/s. */
static inline __attribute__((always_inline)) void velocity_at(const advect_frame *frame, const local_piece *local,
                                                              const float x[3], const float own[3], float velocity[3])
{
    float coordinate[3] = {0, 0, 0}, in_piece[3] = {0, 0, 0};
    int covered = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        coordinate[d] = sk_cell_coordinate(x[d], frame->corner[d], frame->inverse);
        in_piece[d] = coordinate[d] - local->origin[d];
        covered &= in_piece[d] >= 0.5f && in_piece[d] < (float)(WIDTH - 1);
    }
    if (covered) {
        sk_sample_velocity(&local->piece, in_piece, SELKIE_DIM, own, velocity);
        return;
    }
    sk_velocity_piece piece;
    float values[SELKIE_DIM][27], origin[3] = {0, 0, 0};
    load_small_piece(&frame->step->grid, coordinate, &piece, values, origin);
    for (int d = 0; d < SELKIE_DIM; d++)
        in_piece[d] = coordinate[d] - origin[d];
    sk_sample_velocity(&piece, in_piece, SELKIE_DIM, own, velocity);
}

/* Is a solid near enough that the particle must ask? From the sampled distance of the cell, where it is known. */
static int near_solid(const advect_frame *frame, const float x[3])
{
    const sk_grid *grid = &frame->step->grid;
    const sk_solids *solids = &frame->step->solids;
    if (!solids->obstacle_count)
        return 0;
    size_t place = 0, stride = 1;
    int local = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        int cell = (int)sk_cell_coordinate(x[d], frame->corner[d], frame->inverse);
        if (cell < 0 || cell >= grid->blocks[d] * SK_BLOCK_N)
            return 0;
        place += (size_t)(cell >> SK_BLOCK_LOG) * stride;
        stride *= (size_t)grid->blocks[d];
        local += (cell & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    int block = grid->table[place];
    if (!block)
        return solids->table[place] >= 0 || solids->moving_count; /* not known: ask */
    return solids->distance[(size_t)solids->block_slot[block] * SK_BLOCK_CELLS + (size_t)local] < 1.0f;
}

/* Out of the solids, along the normal of the nearest one; a few times, for corners between two. */
static int push_out(const advect_frame *frame, float x[3])
{
    const sk_solids *solids = &frame->step->solids;
    const double gap = 1e-3 * solids->cell_size;
    int pushed = 0;
    for (int attempt = 0; attempt < 8; attempt++) {
        double point[3] = {x[0], x[1], x[2]}, normal[3];
        int obstacle;
        double distance = sk_solids_distance(solids, point, normal, &obstacle);
        if (distance >= 0.5 * gap || obstacle < 0)
            break;
        pushed = 1;
        for (int d = 0; d < SELKIE_DIM; d++) {
            x[d] = (float)(point[d] + (gap - distance) * normal[d]);
            x[d] = x[d] < frame->low[d] ? frame->low[d] : x[d] > frame->high[d] ? frame->high[d] : x[d];
        }
    }
    return pushed;
}

/* The part of a particle's velocity that goes into the solid it touches is lost. */
static void stop_at_solid(const advect_frame *frame, sk_particle *particle)
{
    const sk_solids *solids = &frame->step->solids;
    double point[3] = {particle->position[0], particle->position[1], particle->position[2]}, normal[3], wall[3];
    int obstacle;
    sk_solids_distance(solids, point, normal, &obstacle);
    sk_solids_velocity(solids, obstacle, point, wall);
    double into = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        into += (particle->velocity[d] - wall[d]) * normal[d];
    for (int d = 0; into < 0.0 && d < SELKIE_DIM; d++)
        particle->velocity[d] -= (float)(into * normal[d]);
}

/* Keeps a position within closed walls; says whether it left through an open one. */
static inline __attribute__((always_inline)) int leaves_domain(const advect_frame *frame, float x[3])
{
    int left = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        left |= (frame->open[2 * d] && x[d] < (float)frame->step->grid.low[d]) |
                (frame->open[2 * d + 1] && x[d] > (float)frame->step->grid.high[d]);
        x[d] = x[d] < frame->low[d] ? frame->low[d] : x[d] > frame->high[d] ? frame->high[d] : x[d];
    }
    return left;
}

static inline __attribute__((always_inline)) float largest(const float v[3])
{
    float m = fabsf(v[0]) > fabsf(v[1]) ? fabsf(v[0]) : fabsf(v[1]);
    return SELKIE_DIM == 3 && fabsf(v[2]) > m ? fabsf(v[2]) : m;
}

static void advect_particle(const advect_frame *frame, const local_piece *local, sk_particle *particle)
{
    float x[3] = {particle->position[0], particle->position[1], particle->position[2]};
    float own[3] = {particle->velocity[0], particle->velocity[1], particle->velocity[2]};
    float remaining = frame->dt;
    int touched = 0;
    /* A particle that would need more than this many sub-steps is far beyond any sensible step; it goes on in larger ones. */
    for (int sub_step = 0; sub_step < 1000 && remaining > 0.0f; sub_step++) {
        float k1[3], k2[3], k3[3], stage[3] = {0, 0, 0};
        velocity_at(frame, local, x, own, k1);
        float cells = largest(k1) * frame->inverse * remaining;
        float h = cells > 1.0f ? remaining / ceilf(cells) : remaining;
        for (int d = 0; d < SELKIE_DIM; d++)
            stage[d] = x[d] + 0.5f * h * k1[d];
        velocity_at(frame, local, stage, own, k2);
        if (frame->order == 3) {
            /* Ralston's third order scheme. */
            for (int d = 0; d < SELKIE_DIM; d++)
                stage[d] = x[d] + 0.75f * h * k2[d];
            velocity_at(frame, local, stage, own, k3);
            for (int d = 0; d < SELKIE_DIM; d++)
                x[d] += h * ((2.0f / 9.0f) * k1[d] + (3.0f / 9.0f) * k2[d] + (4.0f / 9.0f) * k3[d]);
        } else {
            for (int d = 0; d < SELKIE_DIM; d++)
                x[d] += h * k2[d];
        }
        remaining = h == remaining ? 0.0f : remaining - h;
        if (leaves_domain(frame, x)) {
            particle->flags |= SK_PARTICLE_DEAD;
            return;
        }
        if (near_solid(frame, x))
            touched |= push_out(frame, x);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->position[d] = x[d];
    if (touched)
        stop_at_solid(frame, particle);
}

selkie_code SK_DIM(sk_flip_advect)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    struct block_sums {
        double position[3];
        int64_t gone;
    } *sums = sk_allocate(step->memory, ((size_t)grid->particle_blocks + 1) * sizeof *sums);
    if (!sums)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "advect: no memory for the sums of %d blocks", grid->particle_blocks);
    advect_frame frame = {.step = step, .inverse = (float)(1.0 / grid->cell_size), .dt = (float)step->dt, .order = step->scene->advection.order};
    /* A hair off the walls, so that no particle sits in the cell behind. */
    for (int d = 0; d < 3; d++) {
        frame.corner[d] = (float)grid->corner[d];
        double gap = 1e-3 * grid->cell_size;
        frame.open[2 * d] = step->scene->domain.walls[2 * d] == SELKIE_WALL_OPEN;
        frame.open[2 * d + 1] = step->scene->domain.walls[2 * d + 1] == SELKIE_WALL_OPEN;
        frame.low[d] = frame.open[2 * d] ? -INFINITY : (float)(grid->low[d] + gap);
        frame.high[d] = frame.open[2 * d + 1] ? INFINITY : (float)(grid->high[d] - gap);
    }
#pragma omp parallel num_threads(step->threads)
    {
        local_piece local;
#pragma omp for schedule(dynamic, 2)
        for (int b = 1; b <= grid->particle_blocks; b++) {
            load_piece(grid, b, &local);
            const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
            memset(&sums[b], 0, sizeof sums[b]);
            for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++) {
                sk_particle *particle = &step->particles.records[p];
                advect_particle(&frame, &local, particle);
                sums[b].gone += particle->flags & SK_PARTICLE_DEAD;
                for (int d = 0; d < SELKIE_DIM; d++)
                    sums[b].position[d] += particle->position[d];
            }
        }
    }
    memset(step->moved_position, 0, sizeof step->moved_position);
    for (int b = 1; b <= grid->particle_blocks; b++) {
        step->drained += sums[b].gone;
        for (int d = 0; d < SELKIE_DIM; d++)
            step->moved_position[d] += sums[b].position[d];
    }
    sk_release(step->memory, sums);
    return SELKIE_OK;
}
