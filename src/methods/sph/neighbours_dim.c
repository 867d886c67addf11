/* Lists of neighbours with kernel gradients, and all that one pass over them gives: density ratio, sum of gradients,
 * diagonal of the pressure system.
 *
 * A block and one cell around it are copied into a dense tile, x fastest, so that the candidates of a cell are nine (2D:
 * three) contiguous runs. What cannot reach the box around the cell's own particles is culled once for all of them: of
 * the 216 particles of 27 cells about 90 remain. Each particle then tests these, many at a time, keeps the third that is
 * in reach, and evaluates kernel and gradient eight at a time. Pairs are written to chunks of one long array; where a
 * particle's list lies depends on the threads, what is in it and in which order does not.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "methods/sph/sph.h"
#include "methods/sph/sph_kernels.h"

enum {
    TILE_N = SK_BLOCK_N + 2,
    TILE_CELLS = TILE_N * TILE_N * (SELKIE_DIM == 3 ? TILE_N : 1),
    ROWS = SELKIE_DIM == 3 ? 9 : 3,
    PAIR_CHUNK = 1 << 15,
    MOST_IN_CELL = 2048 /* a cell with more holds hundreds of times what it should */
};

typedef struct cloud { /* particles as lanes */
    float *x, *y, *z;
    uint32_t *index;
} cloud;

typedef struct worker { /* what one thread works with */
    cloud tile, near, accepted; /* accepted: x, y, z are differences */
    uint32_t start[TILE_CELLS + 1];
    uint32_t next_pair, end_pair;
    int wall_count;
    const sk_boundary_particle **walls;
} worker;

typedef struct builder { /* what all threads share */
    sk_step *step;
    sk_sph *sph;
    float reach2, inverse_support, weight, slope; /* weight: w W's factor; slope: w factor / H^2, times slope(q)/q */
    float self;
    int wendland;
    uint32_t pair_limit;
    int64_t next_chunk; /* shared */
    int overflow;
} builder;

SK_VECTOR f8 positive(f8 a)
{
    return f8_max(a, f8_splat(0.0f));
}

/* --- The tile ----------------------------------------------------------------------------------------------------- */

static uint32_t copy_records(const sk_particle *records, uint32_t from, uint32_t to, const cloud *tile, uint32_t at)
{
    for (uint32_t p = from; p < to; p++, at++) {
        tile->x[at] = records[p].position[0];
        tile->y[at] = records[p].position[1];
        if (SELKIE_DIM == 3)
            tile->z[at] = records[p].position[2];
        tile->index[at] = p;
    }
    return at;
}

static void load_tile(const sk_step *step, int block, worker *w)
{
    const sk_grid *grid = &step->grid;
    const sk_particle *records = step->particles.records;
    uint32_t at = 0;
    uint32_t *start = w->start;
    for (int tz = 0; tz < (SELKIE_DIM == 3 ? TILE_N : 1); tz++)
        for (int ty = 0; ty < TILE_N; ty++) {
            int by = ty == 0 ? 0 : ty == TILE_N - 1 ? 2 : 1, bz = tz == 0 ? 0 : tz == TILE_N - 1 ? 2 : 1;
            int row = SK_BLOCK_N * ((ty - 1) & SK_BLOCK_MASK) +
                      (SELKIE_DIM == 3 ? SK_BLOCK_N * SK_BLOCK_N * ((tz - 1) & SK_BLOCK_MASK) : 0);
            for (int bx = 0; bx < 3; bx++) {
                int slot = grid->neighbours[block][bx + 3 * by + (SELKIE_DIM == 3 ? 9 * bz : 0)];
                int first = bx == 0 ? SK_BLOCK_N - 1 : 0, count = bx == 1 ? SK_BLOCK_N : 1;
                if (slot < 1 || slot > grid->particle_blocks) {
                    for (int c = 0; c < count; c++)
                        *start++ = at;
                    continue;
                }
                const uint32_t *cell = grid->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS + row + first;
                for (int c = 0; c < count; c++)
                    *start++ = at + cell[c] - cell[0];
                at = copy_records(records, cell[0], cell[count], &w->tile, at);
            }
        }
    *start = at;
}

/* --- Candidates of one cell ------------------------------------------------------------------------------------------ */

typedef struct box {
    float low[3], high[3];
} box;

static box bounds_of(const cloud *tile, uint32_t from, uint32_t to)
{
    box b = {{tile->x[from], tile->y[from], SELKIE_DIM == 3 ? tile->z[from] : 0.0f}, {0, 0, 0}};
    memcpy(b.high, b.low, sizeof b.low);
    for (uint32_t p = from + 1; p < to; p++) {
        float x[3] = {tile->x[p], tile->y[p], SELKIE_DIM == 3 ? tile->z[p] : 0.0f};
        for (int d = 0; d < SELKIE_DIM; d++) {
            b.low[d] = x[d] < b.low[d] ? x[d] : b.low[d];
            b.high[d] = x[d] > b.high[d] ? x[d] : b.high[d];
        }
    }
    return b;
}

SK_VECTOR f8 outside(f8 x, float low, float high)
{
    return positive(f8_max(low - x, x - high));
}

/* Appends those of eight lanes whose bit is set. */
SK_VECTOR uint32_t keep(const cloud *to, uint32_t n, unsigned bits, f8 x, f8 y, f8 z, i8 index)
{
#if defined(__AVX512VL__)
    __mmask8 mask = (__mmask8)bits;
    _mm256_storeu_ps(to->x + n, _mm256_maskz_compress_ps(mask, (__m256)x));
    _mm256_storeu_ps(to->y + n, _mm256_maskz_compress_ps(mask, (__m256)y));
    if (SELKIE_DIM == 3)
        _mm256_storeu_ps(to->z + n, _mm256_maskz_compress_ps(mask, (__m256)z));
    _mm256_storeu_si256((__m256i *)(void *)(to->index + n), _mm256_maskz_compress_epi32(mask, (__m256i)index));
    return n + (uint32_t)__builtin_popcount(bits);
#else
    for (; bits; bits &= bits - 1, n++) {
        int l = __builtin_ctz(bits);
        to->x[n] = x[l];
        to->y[n] = y[l];
        if (SELKIE_DIM == 3)
            to->z[n] = z[l];
        to->index[n] = (uint32_t)index[l];
    }
    return n;
#endif
}

SK_VECTOR i8 load_index(const uint32_t *from)
{
    i8 value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* The particles of the cells around that may reach the box, into w->near; padded to a multiple of eight with particles
 * far away. Returns their number without the padding. */
static uint32_t cull(const builder *b, worker *w, int cell, const box *own)
{
    const cloud *tile = &w->tile;
    uint32_t n = 0;
    for (int r = 0; r < ROWS; r++) {
        int row = cell + TILE_N * (r % 3 - 1) + (SELKIE_DIM == 3 ? TILE_N * TILE_N * (r / 3 - 1) : 0);
        uint32_t from = w->start[row - 1], to = w->start[row + 2];
        for (uint32_t p = from; p < to; p += 8) {
            f8 x = f8_load(tile->x + p), y = f8_load(tile->y + p), z = f8_splat(0.0f);
            f8 dx = outside(x, own->low[0], own->high[0]), dy = outside(y, own->low[1], own->high[1]);
            f8 distance2 = dx * dx + dy * dy;
            if (SELKIE_DIM == 3) {
                z = f8_load(tile->z + p);
                f8 dz = outside(z, own->low[2], own->high[2]);
                distance2 += dz * dz;
            }
            unsigned bits = i8_bits(distance2 < b->reach2);
            if (to - p < 8)
                bits &= (1u << (to - p)) - 1;
            n = keep(&w->near, n, bits, x, y, z, load_index(tile->index + p));
        }
    }
    f8_store(w->near.x + n, f8_splat(1e18f));
    f8_store(w->near.y + n, f8_splat(0.0f));
    if (SELKIE_DIM == 3)
        f8_store(w->near.z + n, f8_splat(0.0f));
    memset(w->near.index + n, 0xff, 8 * sizeof(uint32_t));
    return n;
}

/* --- One particle ---------------------------------------------------------------------------------------------------- */

/* Differences to the neighbours in reach and their indices, into w->accepted. */
static uint32_t accept(const builder *b, worker *w, uint32_t candidates, uint32_t self, const float x[3])
{
    const cloud *near = &w->near;
    uint32_t n = 0;
    for (uint32_t k = 0; k < candidates; k += 8) {
        f8 dx = x[0] - f8_load(near->x + k), dy = x[1] - f8_load(near->y + k), dz = f8_splat(0.0f);
        f8 distance2 = dx * dx + dy * dy;
        if (SELKIE_DIM == 3) {
            dz = x[2] - f8_load(near->z + k);
            distance2 += dz * dz;
        }
        i8 index = load_index(near->index + k);
        n = keep(&w->accepted, n, i8_bits((distance2 < b->reach2) & (index != (int32_t)self)), dx, dy, dz, index);
    }
    return n;
}

/* slope(q) / q and w(q) of the kernel. */
SK_VECTOR void evaluate(int wendland, f8 q2, f8 *value, f8 *slope_over_q)
{
    f8 q = f8_sqrt(q2), a = positive(1.0f - q);
    if (wendland) {
        f8 a2 = a * a;
        *value = a2 * a2 * (4.0f * q + 1.0f);
        *slope_over_q = -20.0f * a2 * a;
    } else {
        f8 c = positive(0.5f - q);
        *value = 2.0f * a * a * a - 8.0f * c * c * c;
        *slope_over_q = (24.0f * c * c - 6.0f * a * a) / q;
    }
}

typedef struct sums {
    f8 density, x, y, z, squares;
} sums;

SK_VECTOR float f8_sum(f8 a)
{
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* Gradients of the accepted ones, written as pairs. */
static void write_pairs(const builder *b, worker *w, uint32_t n, sk_sph_pair *pairs, sums *total)
{
    const cloud *a = &w->accepted;
    const f8 scale2 = f8_splat(b->inverse_support * b->inverse_support);
    for (uint32_t k = 0; k < n; k += 8) {
        i8 lanes = i8_first((int)(n - k));
        const f8 zero = f8_splat(0.0f); /* beyond the last one lies what was there before */
        f8 dx = f8_select(lanes, f8_load(a->x + k), zero), dy = f8_select(lanes, f8_load(a->y + k), zero);
        f8 dz = SELKIE_DIM == 3 ? f8_select(lanes, f8_load(a->z + k), zero) : zero;
        f8 r2 = dx * dx + dy * dy;
        if (SELKIE_DIM == 3)
            r2 += dz * dz;
        f8 value, slope;
        /* Two particles at one place have no direction, and their gradient is 0 then: dx is. */
        evaluate(b->wendland, f8_max(r2 * scale2, f8_splat(1e-12f)), &value, &slope);
        value = f8_select(lanes, value, zero);
        slope *= b->slope;
        f8 gx = slope * dx, gy = slope * dy, gz = slope * dz;
        total->density += value;
        total->x += gx;
        total->y += gy;
        total->z += gz;
        total->squares += gx * gx + gy * gy + gz * gz;
        f8 index = (f8)load_index(a->index + k);
        f8 low = __builtin_shufflevector(gx, gy, 0, 8, 1, 9, 4, 12, 5, 13), low2 = __builtin_shufflevector(gz, index, 0, 8, 1, 9, 4, 12, 5, 13);
        f8 high = __builtin_shufflevector(gx, gy, 2, 10, 3, 11, 6, 14, 7, 15), high2 = __builtin_shufflevector(gz, index, 2, 10, 3, 11, 6, 14, 7, 15);
        float *to = (float *)(pairs + k); /* the list's end has room for a whole vector of pairs */
        f8_store(to, __builtin_shufflevector(low, low2, 0, 1, 8, 9, 2, 3, 10, 11));
        f8_store(to + 8, __builtin_shufflevector(high, high2, 0, 1, 8, 9, 2, 3, 10, 11));
        f8_store(to + 16, __builtin_shufflevector(low, low2, 4, 5, 12, 13, 6, 7, 14, 15));
        f8_store(to + 24, __builtin_shufflevector(high, high2, 4, 5, 12, 13, 6, 7, 14, 15));
    }
}

/* --- Walls ----------------------------------------------------------------------------------------------------------- */

/* Boundary particles of the cells around one cell of a block, into w->walls. */
static void find_walls(const builder *b, worker *w, int block, int c)
{
    const sk_grid *grid = &b->step->grid;
    const sk_sph_boundary *boundary = &b->sph->boundary;
    w->wall_count = 0;
    int cell[3];
    for (int d = 0; d < 3; d++)
        cell[d] = d < SELKIE_DIM ? grid->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) : 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        int at[3] = {cell[0] + n % 3 - 1, cell[1] + n / 3 % 3 - 1, SELKIE_DIM == 3 ? cell[2] + n / 9 - 1 : 0};
        size_t place = 0, stride = 1, local = 0;
        int inside = 1;
        for (int d = 0; d < SELKIE_DIM; d++) {
            inside &= at[d] >= 0 && at[d] < grid->blocks[d] * SK_BLOCK_N;
            place += (size_t)(at[d] >> SK_BLOCK_LOG) * stride;
            stride *= (size_t)grid->blocks[d];
            local += (size_t)(at[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        }
        int slot = inside ? boundary->table[place] : 0;
        if (slot < 1)
            continue;
        const uint32_t *start = boundary->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS + local;
        for (uint32_t p = start[0]; p < start[1]; p++)
            w->walls[w->wall_count++] = &boundary->particles[p];
    }
}

/* What walls add to a particle: density, gradients, and the flux that their motion brings. */
static void add_walls(const builder *b, const worker *w, const float x[3], float *density, float sum[3], float *flux)
{
    const float inverse_volume = (float)(1.0 / b->sph->volume);
    for (int n = 0; n < w->wall_count; n++) {
        const sk_boundary_particle *wall = w->walls[n];
        float difference[3] = {0, 0, 0}, r2 = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++) {
            difference[d] = x[d] - wall->position[d];
            r2 += difference[d] * difference[d];
        }
        if (r2 >= b->reach2)
            continue;
        float q = sqrtf(r2) * b->inverse_support, share = wall->volume * inverse_volume;
        q = q > 1e-6f ? q : 1e-6f;
        float slope = (b->wendland ? sk_sph_wendland_slope(q) : sk_sph_cubic_slope(q)) / q * b->slope * share;
        *density += (b->wendland ? sk_sph_wendland(q) : sk_sph_cubic(q)) * b->weight * share;
        for (int d = 0; d < SELKIE_DIM; d++) {
            sum[d] += slope * difference[d];
            *flux += slope * difference[d] * wall->velocity[d];
        }
    }
}

static int any_walls(const builder *b, int block)
{
    const sk_grid *grid = &b->step->grid;
    for (int n = 0; b->sph->boundary.count && n < SK_NEIGHBOURS; n++) {
        int slot = grid->neighbours[block][n];
        /* A block without a slot may hold boundary particles all the same: ask its place. */
        int at[3] = {grid->coordinates[block][0] + n % 3 - 1, grid->coordinates[block][1] + n / 3 % 3 - 1,
                     SELKIE_DIM == 3 ? grid->coordinates[block][2] + n / 9 - 1 : 0};
        (void)slot;
        if (at[0] < 0 || at[1] < 0 || at[2] < 0 || at[0] >= grid->blocks[0] || at[1] >= grid->blocks[1] || at[2] >= grid->blocks[2])
            continue;
        if (b->sph->boundary.table[(size_t)at[0] + (size_t)grid->blocks[0] * ((size_t)at[1] + (size_t)grid->blocks[1] * (size_t)at[2])])
            return 1;
    }
    return 0;
}

/* --- The pass -------------------------------------------------------------------------------------------------------- */

/* Room for n pairs and a vector beyond them; NULL if there is none left. */
static sk_sph_pair *room(builder *b, worker *w, uint32_t n)
{
    if (w->next_pair + (uint64_t)n + 8 > w->end_pair) {
        int64_t wanted = n + 8 > PAIR_CHUNK ? n + 8 : PAIR_CHUNK;
        int64_t at = __atomic_fetch_add(&b->next_chunk, wanted, __ATOMIC_RELAXED);
        if (at + wanted > (int64_t)b->pair_limit) {
            w->next_pair = w->end_pair = 0;
            return NULL;
        }
        w->next_pair = (uint32_t)at;
        w->end_pair = (uint32_t)(at + wanted);
    }
    return b->sph->pairs + w->next_pair;
}

static void do_cell(builder *b, worker *w, int block, int c, int walls, double *partial)
{
    sk_sph *sph = b->sph;
    int tile_cell = 1 + (c & SK_BLOCK_MASK) + TILE_N * (1 + (c >> SK_BLOCK_LOG & SK_BLOCK_MASK)) +
                    (SELKIE_DIM == 3 ? TILE_N * TILE_N * (1 + (c >> (2 * SK_BLOCK_LOG))) : 0);
    uint32_t from = w->start[tile_cell], to = w->start[tile_cell + 1];
    if (from == to)
        return;
    box own = bounds_of(&w->tile, from, to);
    uint32_t candidates = cull(b, w, tile_cell, &own);
    if (walls)
        find_walls(b, w, block, c);
    for (uint32_t p = from; p < to; p++) {
        uint32_t i = w->tile.index[p];
        float x[3] = {w->tile.x[p], w->tile.y[p], SELKIE_DIM == 3 ? w->tile.z[p] : 0.0f};
        uint32_t n = accept(b, w, candidates, i, x);
        sk_sph_pair *pairs = room(b, w, n);
        partial[0] += n;
        if (!pairs) {
            b->overflow = 1; /* the pass goes on to count, and is done again with room enough */
            continue;
        }
        sums total;
        memset(&total, 0, sizeof total);
        write_pairs(b, w, n, pairs, &total);
        sph->first[i] = w->next_pair;
        sph->number[i] = n;
        w->next_pair += n;
        float density = b->weight * f8_sum(total.density) + b->self;
        float sum[3] = {f8_sum(total.x), f8_sum(total.y), SELKIE_DIM == 3 ? f8_sum(total.z) : 0.0f}, flux = 0.0f;
        if (walls)
            add_walls(b, w, x, &density, sum, &flux);
        float diagonal = f8_sum(total.squares) + sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2];
        sph->sum_gradient[i] = (f4){sum[0], sum[1], sum[2], 1.0f};
        sph->density[i] = density;
        sph->diagonal[i] = diagonal;
        sph->wall_flux[i] = flux;
        double over = (double)density - 1.0;
        partial[1] += over > 0.0 ? over : 0.0;
        partial[2] = over > partial[2] ? over : partial[2];
        partial[3] += density < 1.0f ? 1.0 : 1.0 / density;
    }
}

static selkie_code reserve_pairs(sk_sph *sph, int64_t count, int threads, selkie_error *error)
{
    int64_t wanted = count + (int64_t)(threads + 1) * PAIR_CHUNK;
    if (wanted >= (int64_t)UINT32_MAX)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "sph: %lld pairs of neighbours; at most %lld can be held: the particles lie far too close",
                       (long long)count, (long long)UINT32_MAX);
    if ((size_t)wanted <= sph->pair_capacity)
        return SELKIE_OK;
    sk_release(sph->memory, sph->pairs);
    sph->pair_capacity = 0;
    sph->pairs = sk_allocate(sph->memory, (size_t)wanted * sizeof *sph->pairs);
    if (!sph->pairs)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: %.1f MiB for the lists of neighbours cannot be had",
                       (double)wanted * sizeof *sph->pairs / 1048576.0);
    sph->pair_capacity = (size_t)wanted;
    return SELKIE_OK;
}

/* How many particles a block's tile may hold, at most over all blocks; 0 if a cell is hopelessly full. */
static uint32_t largest_tile(const sk_grid *grid)
{
    uint32_t largest = 0;
    for (int b = 1; b <= grid->particle_blocks; b++) {
        const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        uint32_t total = 0;
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            if (start[c + 1] - start[c] > MOST_IN_CELL)
                return 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            int slot = grid->neighbours[b][n];
            if (slot >= 1 && slot <= grid->particle_blocks) {
                const uint32_t *other = grid->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS;
                total += other[SK_BLOCK_CELLS] - other[0];
            }
        }
        largest = total > largest ? total : largest;
    }
    return largest + 16;
}

static cloud cloud_at(float **memory, size_t n)
{
    cloud c = {*memory, *memory + n, *memory + 2 * n, (uint32_t *)(*memory + 3 * n)};
    *memory += 4 * n;
    return c;
}

selkie_code SK_DIM(sk_sph_neighbours)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    sk_grid *grid = &step->grid;
    SK_TRY(sk_sph_reserve(step, error));
    memset(&sph->report, 0, sizeof sph->report);
    if (!step->particles.count)
        return SELKIE_OK;
    uint32_t tile = largest_tile(grid);
    if (!tile)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "step %lld at %g s: a cell holds more than %d particles; SPH cannot work with that: the simulation blew "
                       "up, or liquids overlap; try a smaller time.step or time.cfl", (long long)step->step_count + 1, step->time,
                       MOST_IN_CELL);
    int wendland = step->scene->sph.kernel == SELKIE_SPH_WENDLAND;
    double factor = (wendland ? sk_sph_wendland_factor(SELKIE_DIM, sph->support) : sk_sph_cubic_factor(SELKIE_DIM, sph->support)) *
                    sph->volume * sph->kernel_scale;
    builder b = {.step = step, .sph = sph, .reach2 = (float)(sph->support * sph->support),
                 .inverse_support = (float)(1.0 / sph->support), .weight = (float)factor,
                 .slope = (float)(factor / (sph->support * sph->support)), .self = (float)factor, .wendland = wendland};
    size_t per_thread = 3 * 4 * (size_t)tile + 64, wall_room = sph->boundary.count + 1;
    char *scratch;
    size_t bytes = per_thread * sizeof(float) + wall_room * sizeof(void *) + sizeof(worker) + 256;
    bytes = (bytes + 63) & ~(size_t)63;
    SK_TRY(sk_step_scratch(step, bytes * (size_t)step->threads, "sph lists", (void **)&scratch, error));
    int64_t pairs = sph->last_pairs ? sph->last_pairs + sph->last_pairs / 64 : step->particles.count * (SELKIE_DIM == 3 ? 34 : 14);
    for (int attempt = 0; attempt < 2; attempt++) {
        SK_TRY(reserve_pairs(sph, pairs, step->threads, error));
        b.pair_limit = (uint32_t)sph->pair_capacity;
        b.next_chunk = 0;
        b.overflow = 0;
#pragma omp parallel num_threads(step->threads)
        {
            char *mine = scratch + bytes * (size_t)omp_get_thread_num();
            worker *w = (worker *)(void *)mine;
            float *memory = (float *)(void *)(mine + ((sizeof *w + 63) & ~(size_t)63));
            w->walls = (const sk_boundary_particle **)(void *)memory;
            memory += (wall_room * sizeof(void *) + 63) / 64 * 16;
            w->tile = cloud_at(&memory, tile);
            w->near = cloud_at(&memory, tile);
            w->accepted = cloud_at(&memory, tile);
            w->next_pair = w->end_pair = 0;
#pragma omp for schedule(dynamic, 1)
            for (int block = 1; block <= grid->particle_blocks; block++) {
                double *partial = sph->block_sums + (size_t)block * 8;
                memset(partial, 0, 8 * sizeof *partial);
                load_tile(step, block, w);
                int walls = any_walls(&b, block);
                for (int c = 0; c < SK_BLOCK_CELLS; c++)
                    do_cell(&b, w, block, c, walls, partial);
            }
        }
        double total[4] = {0, 0, 0, 0};
        for (int block = 1; block <= grid->particle_blocks; block++) {
            const double *partial = sph->block_sums + (size_t)block * 8;
            total[0] += partial[0];
            total[1] += partial[1];
            total[2] = partial[2] > total[2] ? partial[2] : total[2];
            total[3] += partial[3];
        }
        pairs = (int64_t)total[0];
        /* Chunks are left with a rest that was too short for the next particle. */
        pairs += pairs / 64;
        if (b.overflow)
            continue;
        sph->last_pairs = (int64_t)total[0];
        sph->report.pairs = (int64_t)total[0];
        sph->report.compression = total[1] / (double)step->particles.count;
        sph->report.compression_max = total[2];
        step->kernel_volume = step->counted_volume = step->surface_volume = total[3] / step->particles_per_cell;
        return SELKIE_OK;
    }
    return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: the lists of %lld pairs found no room", (long long)pairs);
}
