/* Spacing, eight candidates at a time. The particles of a cell share one list of candidates, copied from the cells
 * around it. */
#include <omp.h>

#include "base/simd.h"
#include "methods/particle_spacing/spacing_parts.h"

/* The candidates around a cell. */
typedef struct crowd {
    int count;
    int own;            /* index of the cell's first own particle */
    float *position[3]; /* m */
    float *pairs;       /* number of pairs of each, from LAW_COUNT */
    uint32_t *id;
    sk_cell_range *cells;
} crowd;

static size_t cell_capacity(const spacing_frame *frame)
{
    size_t width = 2 * (size_t)frame->reach + 1;
    return SELKIE_DIM == 3 ? width * width * width : width * width;
}

static size_t crowd_capacity(const spacing_frame *frame)
{
    return (cell_capacity(frame) * frame->group + 8 + 15) / 16 * 16;
}

/* Number of floats in a thread's buffer. */
static size_t crowd_room(const spacing_frame *frame)
{
    return 5 * crowd_capacity(frame) + (2 * cell_capacity(frame) + 15) / 16 * 16;
}

static void crowd_place(const spacing_frame *frame, float *buffer, crowd *around)
{
    size_t capacity = crowd_capacity(frame);
    for (int d = 0; d < 3; d++)
        around->position[d] = buffer + (size_t)d * capacity;
    around->pairs = buffer + 3 * capacity;
    around->id = (uint32_t *)(buffer + 4 * capacity);
    around->cells = (sk_cell_range *)(void *)(buffer + 5 * capacity);
}

/* Particles begin to end: group `group` of cell c of a block. */
typedef struct cell_group {
    int block, cell;
    uint32_t group, begin, end;
} cell_group;

/* The bounding box of a group, extended by the radius and by a margin for rounding. */
static void bounds_of(const spacing_frame *frame, const cell_group *of, float low[3], float high[3])
{
    const sk_particle *records = frame->step->particles.records;
    const float margin = frame->outer + 1e-3f * (float)frame->step->grid.cell_size;
    for (int d = 0; d < SELKIE_DIM; d++) {
        low[d] = high[d] = records[of->begin].position[d];
        for (uint32_t p = of->begin + 1; p < of->end; p++) {
            float x = records[p].position[d];
            low[d] = x < low[d] ? x : low[d];
            high[d] = x > high[d] ? x : high[d];
        }
        low[d] -= margin;
        high[d] += margin;
    }
}

/* Gathers the particles that may be near any of a group; most of those in the cells around are not. */
static void gather(const spacing_frame *frame, int with_pairs, const cell_group *of, crowd *around)
{
    const sk_grid *grid = &frame->step->grid;
    const sk_particles *particles = &frame->step->particles;
    const uint32_t first_own = grid->cell_start[(size_t)(of->block - 1) * SK_BLOCK_CELLS + (size_t)of->cell];
    float low[3], high[3];
    int cell[3] = {0, 0, 0}, count = 0;

    /* The box of positions within reach, and the cells that it may overlap. */
    bounds_of(frame, of, low, high);
    for (int d = 0; d < SELKIE_DIM; d++)
        cell[d] = grid->coordinates[of->block][d] * SK_BLOCK_N + (of->cell >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK);
    const int cells = SK_DIM(sk_cells_around)(&frame->index, cell, frame->reach, around->cells);

    /* Keep a particle if it lies in the box; the next one overwrites it otherwise. */
    for (int c = 0; c < cells; c++) {
        const sk_cell_range *range = &around->cells[c];
        uint64_t first = range->from + (uint64_t)of->group * frame->group, last = first + frame->group;
        last = last < range->to ? last : range->to;
        if (range->from == first_own)
            around->own = count;
        for (uint64_t p = first; p < last; p++) {
            const sk_particle *particle = &particles->records[p];
            int inside = 1;
            for (int d = 0; d < SELKIE_DIM; d++) {
                around->position[d][count] = particle->position[d];
                inside &= (particle->position[d] >= low[d]) & (particle->position[d] <= high[d]);
            }
            around->pairs[count] = with_pairs ? pairs_of(frame, (uint32_t)p) : 1.0f;
            around->id[count] = particle->id;
            count += inside;
        }
    }
    around->count = count;

    /* Fill whole vectors with particles that are too far away to push. */
    for (int n = count; n < count + 8; n++) {
        around->pairs[n] = 1.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            around->position[d][n] = 1e15f;
    }
}

/* Displacement (m) of a particle by neighbours at distance r < R; `pairs` is the larger number of pairs of the two. */
SK_VECTOR f8 push_of(const spacing_frame *frame, const law rule, f8 r, f8 pairs)
{
    const float radius = frame->radius;
    if (rule == LAW_SPRING)
        return frame->strength * (1.0f - r * r * (1.0f / (radius * radius)));
    return 0.5f * (radius - r) / f8_max(pairs, f8_splat(1.0f));
}

SK_VECTOR f8 weight_of(const spacing_frame *frame, f8 r)
{
    return f8_max(f8_min(1.0f + SK_SPACING_EDGE * (1.0f - r / frame->radius), f8_splat(1.0f)), f8_splat(0.0f));
}

SK_VECTOR float sum_of(f8 a)
{
    f4 half = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
    return (half[0] + half[2]) + (half[1] + half[3]);
}

/* Particles of the crowd from n on at the same place as `self`. Rare, so kept out of the hot loop. */
static __attribute__((noinline)) void push_coincident(const spacing_frame *frame, law rule, const crowd *around,
                                                      int self, int n, i8 same, pushed *sum)
{
    for (int l = 0; l < 8; l++)
        if (same[l]) {
            float direction[3];
            SK_DIM(sk_spacing_direction)(around->id[self], around->id[n + l], direction);
            push_along(frame, rule, 0.0f, fmaxf(around->pairs[n + l], around->pairs[self]), direction, sum);
        }
}

/* Displacement of particle `self` of the crowd by its neighbours and the solids. */
static inline __attribute__((always_inline)) pushed push(const spacing_frame *frame, const law rule,
                                                         const crowd *around, int self)
{
    const float limit = range_of(frame, rule) * range_of(frame, rule);
    const float together = 1e-10f * (frame->radius * frame->radius);
    const float own_pairs = around->pairs[self];
    pushed sum = {{0, 0, 0}, 0};
    f8 moved[3] = {f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f)};
    f8 counted = f8_splat(0.0f);

    /* Sum over the neighbours, eight at a time. */
    for (int n = 0; n < around->count; n += 8) {
        f8 away[3], squared = f8_splat(0.0f);
        for (int d = 0; d < SELKIE_DIM; d++) {
            away[d] = around->position[d][self] - f8_load(around->position[d] + n);
            squared += away[d] * away[d];
        }
        i8 near = (squared < limit) & ((i8){0, 1, 2, 3, 4, 5, 6, 7} != self - n);
        if (!i8_any(near))
            continue;

        /* Coincident particles have no direction and are pushed separately. */
        i8 apart = near & (squared > together), same = near & ~apart;
        const f8 r = f8_sqrt(f8_max(squared, f8_splat(together)));
        if (rule == LAW_COUNT) {
            counted += f8_select(apart, weight_of(frame, r), f8_splat(0.0f));
        } else {
            f8 share = push_of(frame, rule, r, f8_max(f8_load(around->pairs + n), f8_splat(own_pairs))) / r;
            share = f8_select(apart, share, f8_splat(0.0f));
            for (int d = 0; d < SELKIE_DIM; d++)
                moved[d] += share * away[d];
        }
        if (i8_any(same))
            push_coincident(frame, rule, around, self, n, same, &sum);
    }

    /* Add up the lanes, then the push by the solids. */
    sum.pairs += sum_of(counted);
    float x[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        x[d] = around->position[d][self];
        sum.displacement[d] += rule == LAW_COUNT ? 0.0f : sum_of(moved[d]);
    }
    push_by_solids(frame, rule, x, own_pairs, &sum);
    return sum;
}

static inline __attribute__((always_inline)) void push_block(const spacing_frame *frame, const law rule, int block,
                                                             crowd *around)
{
    const uint32_t *start = frame->step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        cell_group of = {.block = block, .cell = c, .begin = start[c]};
        for (; of.begin < start[c + 1]; of.group++, of.begin = of.end) {
            of.end = start[c + 1] - of.begin < frame->group ? start[c + 1] : of.begin + frame->group;
            gather(frame, rule == LAW_CONSTRAIN, &of, around);
            for (uint32_t p = of.begin; p < of.end; p++) {
                const pushed sum = push(frame, rule, around, around->own + (int)(p - of.begin));
                store_push(frame, rule, p, &sum);
            }
        }
    }
}

static selkie_code push_tuned(const spacing_frame *frame, law rule, void *scratch, selkie_error *error)
{
    (void)error;
    const sk_step *step = frame->step;
#pragma omp parallel num_threads(step->threads)
    {
        crowd around;
        crowd_place(frame, (float *)scratch + (size_t)omp_get_thread_num() * crowd_room(frame), &around);
#pragma omp for schedule(dynamic, 2)
        for (int b = 1; b <= step->grid.particle_blocks; b++) {
            if (rule == LAW_COUNT)
                push_block(frame, LAW_COUNT, b, &around);
            else if (rule == LAW_CONSTRAIN)
                push_block(frame, LAW_CONSTRAIN, b, &around);
            else
                push_block(frame, LAW_SPRING, b, &around);
        }
    }
    return SELKIE_OK;
}

static selkie_code space_particles(sk_step *step, double radius, double strength, int sweeps, selkie_error *error)
{
    if (!spacing_acts(step))
        return SELKIE_OK;
    const spacing_frame frame = make_spacing_frame(step, radius, strength);
    const size_t bytes = (size_t)step->threads * crowd_room(&frame) * sizeof(float);
    float *buffers = sk_allocate(step->memory, bytes);
    if (!buffers)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "spacing: no memory for the neighbours of particles (%.1f MiB)",
                       (double)bytes / 1048576.0);
    selkie_code code = run_laws(&frame, sweeps, push_tuned, buffers, error);
    sk_release(step->memory, buffers);
    return code;
}

selkie_code SK_DIM(sk_spacing_ando)(sk_step *step, selkie_error *error)
{
    const selkie_ando_def *def = &step->scene->ando;
    return space_particles(step, def->radius, def->stiffness * step->dt, 0, error);
}

selkie_code SK_DIM(sk_spacing_sato)(sk_step *step, selkie_error *error)
{
    const selkie_sato_def *def = &step->scene->sato;
    return space_particles(step, def->radius, 0.0, def->iterations, error);
}
