/* Lists of neighbours with kernel gradients, and all that one pass over them gives: density ratio, sum of gradients,
 * diagonal of the pressure system.
 *
 * A block and one cell around it are copied into a dense tile, x fastest, so that the candidates of a cell are nine
 * (2D: three) contiguous runs. What cannot reach the box around the cell's own particles is culled once for all of
 * them: of the 216 particles of 27 cells about 90 remain. Each particle then tests these, many at a time, keeps the
 * third that is in reach, and evaluates kernel and gradient eight at a time. Lists are written to chunks of one long
 * array; where a particle's list lies depends on the threads, what is in it and in which order does not.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "methods/sph/sph_kernels.h"
#include "methods/sph/sph_tile.h"
#include "methods/sph/walls.h"

enum {
    ROWS = SELKIE_DIM == 3 ? 9 : 3,
    CHUNK = 1 << 15, /* lines that a thread takes at once */
    BEYOND = ENTRIES * (int)sizeof(wide_entry) / LINE_BYTES,
    MOST_IN_CELL = 2048, /* a cell with more holds hundreds of times what it should */
    WORKER_ARRAYS = 11
};

typedef struct cloud { /* particles as lanes */
    float *x, *y, *z;
    uint32_t *index;
} cloud;

typedef struct worker { /* what one thread works with */
    const sph_tile *tile;
    cloud all, near, accepted; /* accepted: x, y, z are differences */
    uint32_t next_line, end_line;
    size_t wall_count;
    const sk_boundary_particle **walls;
    int side_count;
    const sk_sph_side *sides[6]; /* that the block may touch */
} worker;

typedef struct builder { /* what all threads share */
    sk_step *step;
    sk_sph *sph;
    float reach2, inverse_support;
    float weight, slope; /* weight: w x the kernel's factor; slope: the same x spacing / H^2, to be times slope(q)/q */
    int wendland;
    int64_t line_limit;
    int64_t next_chunk; /* shared */
    int overflow;
} builder;

SK_VECTOR f8 positive(f8 a)
{
    return f8_max(a, f8_splat(0.0f));
}

/* --- Candidates of one cell --- */

typedef struct box {
    float low[3], high[3];
} box;

static box bounds_of(const cloud *all, uint32_t from, uint32_t to)
{
    box b = {{all->x[from], all->y[from], SELKIE_DIM == 3 ? all->z[from] : 0.0f}, {0, 0, 0}};
    memcpy(b.high, b.low, sizeof b.low);
    for (uint32_t p = from + 1; p < to; p++) {
        float x[3] = {all->x[p], all->y[p], SELKIE_DIM == 3 ? all->z[p] : 0.0f};
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
    const cloud *all = &w->all;
    const uint32_t *start = w->tile->start;
    uint32_t n = 0;
    for (int r = 0; r < ROWS; r++) {
        int row = cell + TILE_N * (r % 3 - 1) + (SELKIE_DIM == 3 ? TILE_N * TILE_N * (r / 3 - 1) : 0);
        uint32_t from = start[row - 1], to = start[row + 2];
        for (uint32_t p = from; p < to; p += 8) {
            f8 x = f8_load(all->x + p), y = f8_load(all->y + p), z = f8_splat(0.0f);
            f8 dx = outside(x, own->low[0], own->high[0]), dy = outside(y, own->low[1], own->high[1]);
            f8 distance2 = dx * dx + dy * dy;
            if (SELKIE_DIM == 3) {
                z = f8_load(all->z + p);
                f8 dz = outside(z, own->low[2], own->high[2]);
                distance2 += dz * dz;
            }
            unsigned bits = i8_bits(distance2 < b->reach2);
            if (to - p < 8)
                bits &= (1u << (to - p)) - 1;
            n = keep(&w->near, n, bits, x, y, z, (i8){0, 1, 2, 3, 4, 5, 6, 7} + (int32_t)p);
        }
    }
    f8_store(w->near.x + n, f8_splat(1e18f));
    f8_store(w->near.y + n, f8_splat(0.0f));
    if (SELKIE_DIM == 3)
        f8_store(w->near.z + n, f8_splat(0.0f));
    memset(w->near.index + n, 0xff, 8 * sizeof(uint32_t));
    return n;
}

/* --- One particle --- */

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
    f8 density, gradient[3], squares;
} sums;

/* Eight entries of the lean form from their components. */
SK_VECTOR void write_lean(lean_entry *entry, const uint16_t component[4][8])
{
    typedef uint16_t shorts8 __attribute__((vector_size(16)));
    typedef uint16_t shorts16 __attribute__((vector_size(32)));
    shorts8 part[4];
    memcpy(part, component, sizeof part);
    const shorts16 xy = __builtin_shufflevector(part[0], part[1], 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    const shorts16 zi = __builtin_shufflevector(part[2], part[3], 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    const shorts16 low = __builtin_shufflevector(xy, zi, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
    const shorts16 high = __builtin_shufflevector(xy, zi, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
    memcpy(entry, &low, sizeof low);
    memcpy(entry + 4, &high, sizeof high);
}

/* Gradients of the accepted ones. The list has room for a multiple of eight: what is beyond its end is written over
 * next. */
SK_VECTOR void write_list(const builder *b, const worker *w, uint32_t n, void *list, const int wide, sums *total)
{
    typedef uint16_t shorts8 __attribute__((vector_size(16)));
    const cloud *a = &w->accepted;
    const f8 scale2 = f8_splat(b->inverse_support * b->inverse_support), zero = f8_splat(0.0f);
    for (uint32_t k = 0; k < n; k += 8) {
        i8 lanes = i8_first((int)(n - k)); /* beyond the last one lies what was there before */
        f8 d[3] = {f8_select(lanes, f8_load(a->x + k), zero), f8_select(lanes, f8_load(a->y + k), zero), zero};
        f8 r2 = d[0] * d[0] + d[1] * d[1];
        if (SELKIE_DIM == 3) {
            d[2] = f8_select(lanes, f8_load(a->z + k), zero);
            r2 += d[2] * d[2];
        }
        f8 value, slope;
        /* Two particles at one place have no direction, and their gradient is 0 then: d is. */
        evaluate(b->wendland, f8_max(r2 * scale2, f8_splat(1e-12f)), &value, &slope);
        total->density += f8_select(lanes, value, zero);
        slope *= b->slope;
        i8 index = load_index(a->index + k) & lanes;
        if (wide) {
            wide_entry *entry = (wide_entry *)list + k;
            for (int e = 0; e < 3; e++) {
                f8 g = slope * d[e];
                total->gradient[e] += g;
                total->squares += g * g;
                for (int l = 0; l < 8; l++)
                    entry[l].gradient[e] = g[l];
            }
            for (int l = 0; l < 8; l++)
                entry[l].index = (uint32_t)index[l];
        } else {
            uint16_t component[4][8] = {{0}};
            for (int e = 0; e < SELKIE_DIM; e++) {
                f8_to_halves(component[e], slope * d[e]);
                f8 g = f8_from_halves(component[e]); /* what the loops will see */
                total->gradient[e] += g;
                total->squares += g * g;
            }
            shorts8 shorts = __builtin_convertvector(index, shorts8);
            memcpy(component[3], &shorts, sizeof shorts);
            write_lean((lean_entry *)list + k, component);
        }
    }
}

/* --- Walls --- */

/* Boundary particles of the cells around one cell of a block, into w->walls. */
static void find_walls(const builder *b, worker *w, int block, int c)
{
    const sk_grid *grid = &b->step->grid;
    const sk_sph_boundary *boundary = &b->sph->boundary;
    w->wall_count = 0;
    int cell[3];
    for (int d = 0; d < 3; d++)
        cell[d] =
            d < SELKIE_DIM ? grid->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) : 0;
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
    const float inverse_spacing = (float)(1.0 / b->sph->spacing), inverse_reach = (float)(1.0 / b->sph->point.reach);
    const float weight = (float)(b->sph->point.weight / b->sph->volume),
                steepness = (float)(b->sph->spacing / b->sph->point.reach);
    const float reach2 = (float)(b->sph->point.reach * b->sph->point.reach);
    for (size_t n = 0; n < w->wall_count; n++) {
        const sk_boundary_particle *wall = w->walls[n];
        float difference[3] = {0, 0, 0}, r2 = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++) {
            difference[d] = x[d] - wall->position[d];
            r2 += difference[d] * difference[d];
        }
        if (r2 >= reach2)
            continue;
        float r = sqrtf(r2), share = weight * wall->volume, q = r * inverse_reach;
        float slope = sk_sph_point_slope(q) * steepness * share / (q > 1e-6f ? r : 1e-6f);
        *density += sk_sph_point(q) * share;
        for (int d = 0; d < SELKIE_DIM; d++) {
            sum[d] += slope * difference[d];
            *flux += slope * difference[d] * wall->velocity[d] * inverse_spacing;
        }
    }
}

static int any_walls(const builder *b, int block)
{
    const sk_grid *grid = &b->step->grid;
    for (int n = 0; b->sph->boundary.count && n < SK_NEIGHBOURS; n++) {
        int at[3] = {grid->coordinates[block][0] + n % 3 - 1, grid->coordinates[block][1] + n / 3 % 3 - 1,
                     SELKIE_DIM == 3 ? grid->coordinates[block][2] + n / 9 - 1 : 0};
        if (at[0] < 0 || at[1] < 0 || at[2] < 0 || at[0] >= grid->blocks[0] || at[1] >= grid->blocks[1] ||
            at[2] >= grid->blocks[2])
            continue;
        if (b->sph->boundary.table[(size_t)at[0] +
                                   (size_t)grid->blocks[0] * ((size_t)at[1] + (size_t)grid->blocks[1] * (size_t)at[2])])
            return 1;
    }
    return 0;
}

/* --- The pass --- */

/* Room for so many lines, and some that may be written beyond them; NULL if there is none left. */
static void *room(builder *b, worker *w, uint32_t lines)
{
    if ((uint64_t)w->next_line + lines + BEYOND > w->end_line) {
        int64_t wanted = lines + BEYOND > CHUNK ? lines + BEYOND : CHUNK;
        int64_t at = __atomic_fetch_add(&b->next_chunk, wanted, __ATOMIC_RELAXED);
        if (at + wanted > b->line_limit) {
            w->next_line = w->end_line = 0;
            return NULL;
        }
        w->next_line = (uint32_t)at;
        w->end_line = (uint32_t)(at + wanted);
    }
    return b->sph->lists + (size_t)w->next_line * LINE_BYTES;
}

static void do_cell(builder *b, worker *w, int block, int c, int walls, double *partial)
{
    sk_sph *sph = b->sph;
    const int wide = sph->block_wide[block];
    int tile_cell = 1 + (c & SK_BLOCK_MASK) + TILE_N * (1 + (c >> SK_BLOCK_LOG & SK_BLOCK_MASK)) +
                    (SELKIE_DIM == 3 ? TILE_N * TILE_N * (1 + (c >> (2 * SK_BLOCK_LOG))) : 0);
    uint32_t from = w->tile->start[tile_cell], to = w->tile->start[tile_cell + 1];
    if (from == to)
        return;
    uint32_t i = b->step->grid.cell_start[(size_t)(block - 1) * SK_BLOCK_CELLS + (size_t)c];
    box own = bounds_of(&w->all, from, to);
    uint32_t candidates = cull(b, w, tile_cell, &own);
    if (walls)
        find_walls(b, w, block, c);
    for (uint32_t p = from; p < to; p++, i++) {
        float x[3] = {w->all.x[p], w->all.y[p], SELKIE_DIM == 3 ? w->all.z[p] : 0.0f};
        uint32_t n = accept(b, w, candidates, p, x);
        uint32_t lines = (n + ENTRIES - 1) / ENTRIES * ENTRIES *
                         (uint32_t)(wide ? sizeof(wide_entry) : sizeof(lean_entry)) / LINE_BYTES;
        void *list = room(b, w, lines);
        partial[0] += n;
        partial[4] += lines;
        if (!list) {
            __atomic_store_n(&b->overflow, 1,
                             __ATOMIC_RELAXED); /* the pass goes on to count, and is done again with room enough */
            continue;
        }
        sums total;
        memset(&total, 0, sizeof total);
        if (wide)
            write_list(b, w, n, list, 1, &total);
        else
            write_list(b, w, n, list, 0, &total);
        sph->first[i] = w->next_line;
        sph->number[i] = n;
        w->next_line += lines;
        float density = b->weight * (f8_sum(total.density) + 1.0f);
        float sum[3] = {f8_sum(total.gradient[0]), f8_sum(total.gradient[1]),
                        SELKIE_DIM == 3 ? f8_sum(total.gradient[2]) : 0.0f};
        float flux = 0.0f, diagonal = f8_sum(total.squares);
        if (walls)
            add_walls(b, w, x, &density, sum, &flux);
        if (w->side_count) {
            float gradient[6];
            density += sk_sph_add_sides(sph, w->side_count, w->sides, x, gradient);
            for (int s = 0; s < w->side_count; s++)
                sum[w->sides[s]->axis] += gradient[s];
        }
        for (int d = 0; d < SELKIE_DIM; d++) {
            sph->sum_gradient[i][d] = sum[d];
            diagonal += sum[d] * sum[d];
        }
        sph->density[i] = density;
        sph->diagonal[i] = diagonal;
        sph->wall_flux[i] = flux;
        /* What is frozen into a boundary has no density of its own to keep. */
        if (b->step->particles.records[i].flags & SK_PARTICLE_BOUNDARY) {
            partial[5] += 1.0;
        } else {
            partial[1] += density > 1.0f ? (double)density - 1.0 : 0.0;
            partial[2] = fmax(partial[2], (double)density - 1.0);
        }
        partial[3] += density < 1.0f ? 1.0 : 1.0 / density;
    }
}

static selkie_code reserve_lists(sk_sph *sph, int64_t lines, int threads, selkie_error *error)
{
    int64_t wanted = lines + (int64_t)(threads + 1) * CHUNK;
    if (wanted >= (int64_t)UINT32_MAX)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "sph: the lists of neighbours need %.1f GiB; at most 64 can be held: the particles lie far too close",
            (double)lines * LINE_BYTES / 1073741824.0);
    size_t bytes = (size_t)wanted * LINE_BYTES;
    if (bytes <= sph->list_capacity)
        return SELKIE_OK;
    sk_release(sph->memory, sph->lists);
    sph->list_capacity = 0;
    sph->lists = sk_allocate(sph->memory, bytes);
    if (!sph->lists)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: %.1f MiB for the lists of neighbours cannot be had",
                       (double)bytes / 1048576.0);
    sph->list_capacity = bytes;
    return SELKIE_OK;
}

/* How many particles a block's tile may hold, at most over all blocks; 0 if a cell is hopelessly full. Counts the cells
 * that hold any on the way. */
static uint32_t largest_tile(sk_sph *sph, const sk_grid *grid, int64_t *occupied)
{
    uint32_t largest = 0;
    *occupied = 0;
    for (int b = 1; b <= grid->particle_blocks; b++) {
        const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        uint32_t total = 0;
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            if (start[c + 1] - start[c] > MOST_IN_CELL)
                return 0;
            *occupied += start[c + 1] > start[c];
        }
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            int slot = grid->neighbours[b][n];
            if (slot >= 1 && slot <= grid->particle_blocks) {
                const uint32_t *other = grid->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS;
                total += other[SK_BLOCK_CELLS] - other[0];
            }
        }
        largest = total > largest ? total : largest;
        sph->block_wide[b] = 0;
    }
    return largest + 16;
}

static cloud cloud_at(float *const arrays[4])
{
    cloud c = {arrays[0], arrays[1], arrays[2], (uint32_t *)(void *)arrays[3]};
    return c;
}

static void do_blocks(builder *b, void *scratch, size_t wall_room, const sk_boundary_particle **wall_scratch)
{
    sk_step *step = b->step;
    sk_sph *sph = b->sph;
#pragma omp parallel num_threads(step->threads)
    {
        tile_worker *memory = worker_of(sph, scratch, omp_get_thread_num(), WORKER_ARRAYS);
        worker w = {.tile = &memory->tile, .walls = wall_scratch + wall_room * (size_t)omp_get_thread_num()};
        w.all = (cloud){memory->array[0], memory->array[1], memory->array[2], NULL};
        w.near = cloud_at(memory->array + 3);
        w.accepted = cloud_at(memory->array + 7);
#pragma omp for schedule(dynamic, 1)
        for (int block = 1; block <= step->grid.particle_blocks; block++) {
            double *partial = sph->block_sums + (size_t)block * 8;
            memset(partial, 0, 8 * sizeof *partial);
            make_tile(&step->grid, block, &memory->tile);
            load_vectors(&memory->tile, step->particles.records, 0, memory->array);
            sph->block_wide[block] = memory->tile.count > LEAN_LIMIT || sph->always_wide;
            int walls = any_walls(b, block);
            w.side_count = sk_sph_sides_near(sph, &step->grid, block, sph->sheet.reach, w.sides);
            for (int c = 0; c < SK_BLOCK_CELLS; c++)
                do_cell(b, &w, block, c, walls, partial);
        }
    }
}

selkie_code SK_DIM(sk_sph_neighbours)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    sk_grid *grid = &step->grid;
    SK_TRY(sk_sph_reserve(step, error));
    memset(&sph->report, 0, sizeof sph->report);
    step->exchanged = step->emitted - step->drained;
    step->kernel_volume = step->counted_volume = step->surface_volume = 0.0;
    step->occupied_cells = 0;
    if (!step->particles.count)
        return SELKIE_OK;
    sph->tile_room = (largest_tile(sph, grid, &step->occupied_cells) + 31) & ~(size_t)15;
    if (sph->tile_room < 32)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: a cell holds more than %d particles; SPH cannot work with that: the simulation blew "
            "up, or liquids overlap; try a smaller time.step or time.cfl",
            (long long)step->step_count + 1, step->time, MOST_IN_CELL);
    int wendland = step->scene->sph.kernel == SELKIE_SPH_WENDLAND;
    double factor =
        (wendland ? sk_sph_wendland_factor(SELKIE_DIM, sph->support) : sk_sph_cubic_factor(SELKIE_DIM, sph->support)) *
        sph->volume * sph->kernel_scale;
    builder b = {.step = step,
                 .sph = sph,
                 .reach2 = (float)(sph->support * sph->support),
                 .inverse_support = (float)(1.0 / sph->support),
                 .weight = (float)factor,
                 .slope = (float)(factor * sph->spacing / (sph->support * sph->support)),
                 .wendland = wendland};
    size_t wall_room = sph->boundary.count + 1,
           wall_bytes = (wall_room * sizeof(void *) * (size_t)step->threads + 63) & ~(size_t)63;
    char *scratch;
    SK_TRY(sk_step_scratch(step, wall_bytes + worker_bytes(sph, WORKER_ARRAYS) * (size_t)step->threads, "sph lists",
                           (void **)&scratch, error));
    int64_t lines =
        sph->last_lines ? sph->last_lines + sph->last_lines / 64 : step->particles.count * (SELKIE_DIM == 3 ? 17 : 9);
    for (int attempt = 0; attempt < 2; attempt++) {
        SK_TRY(reserve_lists(sph, lines, step->threads, error));
        b.line_limit = (int64_t)(sph->list_capacity / LINE_BYTES);
        b.next_chunk = 0;
        b.overflow = 0;
        do_blocks(&b, scratch + wall_bytes, wall_room, (const sk_boundary_particle **)(void *)scratch);
        double total[6] = {0, 0, 0, 0, 0, 0};
        for (int block = 1; block <= grid->particle_blocks; block++) {
            const double *partial = sph->block_sums + (size_t)block * 8;
            for (int k = 0; k < 6; k++)
                total[k] = k == 2 ? fmax(total[k], partial[k]) : total[k] + partial[k];
        }
        sph->last_lines = (int64_t)total[4];
        /* Chunks are left with a rest that was too short for the next particle. */
        lines = sph->last_lines + sph->last_lines / 64;
        if (b.overflow)
            continue;
        sph->report.pairs = (int64_t)total[0];
        sph->report.list_bytes = sph->last_lines * LINE_BYTES;
        sph->report.boundaries = (int64_t)total[5];
        sph->report.compression = total[1] / fmax((double)(step->particles.count - sph->report.boundaries), 1.0);
        sph->report.compression_max = total[2];
        step->kernel_volume = step->counted_volume = step->surface_volume = total[3] / step->particles_per_cell;
        return SELKIE_OK;
    }
    return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: the lists of neighbours found no room");
}
