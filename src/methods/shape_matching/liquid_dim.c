/* Liquid particles inside bodies of particles go back to the surface (Gao et al. 2017, Eqs. 7 and 8, as a joint
 * inelastic contact).
 *
 * The liquid particles of a body that move into it and the body take a common velocity along the normals:
 *
 *   (M + sum m J J^T) delta = sum m J v_n,   J = (n, r x n),   v_n = n . (v - v_body) < 0,
 *
 * then v -= v_n(new) n. The momentum is that before, and the result does not depend on the number of particles.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/plain.h"
#include "grid/tile.h"
#include "grid/transfer_plain.h"
#include "methods/shape_matching/inside_plain.h"
#include "methods/shape_matching/response.h"
#include "methods/shape_matching/shape_matching.h"

enum { MODES = SELKIE_DIM == 3 ? 6 : 3 };

/* Marks the cells with points of bodies. */
static selkie_code mark_cells(sk_step *step, selkie_error *error)
{
    sk_soft *soft = step->soft;
    const sk_grid *grid = &step->grid;
    const size_t blocks = (size_t)grid->block_count, cells = blocks * SK_BLOCK_CELLS;
    SK_TRY(sk_step_scratch(step, cells, "bodies", (void **)&soft->crowded, error));
    SK_TRY(sk_step_scratch(step, blocks, "bodies", (void **)&soft->crowded_blocks, error));
    memset(soft->crowded, 0, cells);
    memset(soft->crowded_blocks, 0, blocks);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= grid->particle_blocks; b++) {
        const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        uint32_t any = 0;
        for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++)
            any |= soft->owner[p];
        soft->crowded_blocks[b] = any != 0;
        for (int c = 0; any && c < SK_BLOCK_CELLS; c++) {
            uint32_t owners = 0;
            for (uint32_t p = start[c]; p < start[c + 1]; p++)
                owners |= soft->owner[p];
            soft->crowded[(size_t)b * SK_BLOCK_CELLS + (size_t)c] = owners != 0;
        }
    }
    return SELKIE_OK;
}

/* --- Points near liquid --- */

/* The points in the cells around one. LOOK places beyond the last are far away. */
enum { MOST_AROUND = 1024, LOOK = 32 };
typedef struct points_around {
    int count; /* -1 = more than fit */
    _Alignas(64) float x[SELKIE_DIM][MOST_AROUND];
    uint32_t point[MOST_AROUND];
} points_around;

static void gather_points(const sk_step *step, sk_plain_cell cell, points_around *around)
{
    const sk_soft *soft = step->soft;
    around->count = 0;
    for (int n = 0; n < SK_AROUND; n++) {
        int offset[3];
        sk_plain_offset(n, offset);
        const sk_plain_cell other = sk_plain_beside(&step->grid, cell, offset);
        uint32_t begin, end;
        if (!soft->crowded[sk_plain_index(other)])
            continue;
        sk_plain_particles(&step->grid, other, &begin, &end);
        for (uint32_t p = begin; p < end; p++) {
            const uint32_t k = step->particles.records[p].id - soft->first_id;
            if (!soft->owner[p] || k >= soft->point_count)
                continue;
            if (around->count == MOST_AROUND - LOOK) {
                around->count = -1;
                return;
            }
            for (int d = 0; d < SELKIE_DIM; d++)
                around->x[d][around->count] = (float)soft->points[k].position[d];
            around->point[around->count++] = k;
        }
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int i = around->count; i < around->count + LOOK; i++)
            around->x[d][i] = 1e15f;
}

/* Eight squared distances to x (m2). */
static inline f8 distances2(const points_around *around, int n, const float x[3])
{
    f8 sum = f8_splat(0.0f);
    for (int d = 0; d < SELKIE_DIM; d++) {
        f8 way;
        memcpy(&way, around->x[d] + n, sizeof way);
        way -= f8_splat(x[d]);
        sum += way * way;
    }
    return sum;
}

/* All squared distances to x (m2). Returns the least, infinity if there are none. */
static inline float find_squares(const points_around *around, const float x[3], float squares[MOST_AROUND])
{
    f8 least = f8_splat(INFINITY);
    for (int n = 0; n < around->count; n += LOOK)
        for (int i = n; i < n + LOOK; i += 8) {
            const f8 these = distances2(around, i, x);
            least = f8_min(these, least);
            memcpy(squares + i, &these, sizeof these);
        }
    float smallest = least[0];
    for (int i = 1; i < 8; i++)
        smallest = least[i] < smallest ? least[i] : smallest;
    return smallest;
}

/* Marks of cells, and of blocks with marked cells. */
typedef struct cell_marks {
    const uint8_t *cells, *blocks;
} cell_marks;

/* Marks the cells of a block with marked ones in them or beside them. Returns whether there may be any. */
static int mark_beside(const sk_grid *grid, cell_marks marks, int block, uint8_t beside[SK_BLOCK_CELLS])
{
    uint8_t tile[SK_TILE_VALUES(1)], rows[SK_TILE_VALUES(1)];
    int any = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        any |= marks.blocks[grid->neighbours[block][n]];
    if (!any)
        return 0;
    sk_tile_load_bytes(grid, marks.cells, block, 1, tile);
    rows[0] = rows[SK_TILE_VALUES(1) - 1] = 0;
    for (int n = 1; n < SK_TILE_VALUES(1) - 1; n++) /* the first and the last of a row are not used */
        rows[n] = tile[n - 1] | tile[n] | tile[n + 1];
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int j = sk_plain_along(c, 1), k = SELKIE_DIM == 3 ? sk_plain_along(c, 2) : 0;
        const uint8_t *at = rows + sk_plain_along(c, 0) + 1 + SK_TILE_N(1) * (j + SK_TILE_N(1) * k);
        beside[c] = 0;
        for (int n = 0; n < (SELKIE_DIM == 3 ? 9 : 3); n++)
            beside[c] |= at[SK_TILE_N(1) * (n % 3 + SK_TILE_N(1) * (n / 3))];
    }
    return 1;
}

/* --- Points kept by cell --- */

/* Points around cells with particles or on their paths, by the last bits of the cell's coordinates: the particles of a
 * block share them. */
enum { KEPT_LOG = 2, KEPT = 1 << SELKIE_DIM * KEPT_LOG };
typedef struct kept_points {
    sk_plain_cell cell;
    points_around around;
} kept_points;

/* What the tests of places and paths share. */
typedef struct path_search {
    const sk_step *step;
    cell_marks near;   /* points in the cell or beside it */
    kept_points *kept; /* [threads][KEPT] */
    float unsure;      /* m2  error of a squared distance in single precision */
} path_search;

static const points_around *keep_points(const path_search *in, kept_points *kept, sk_plain_cell cell, const int at[3])
{
    int place = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        place |= (at[d] & ((1 << KEPT_LOG) - 1)) << (d * KEPT_LOG);
    kept += place;
    if (kept->cell.slot != cell.slot || kept->cell.local != cell.local)
        gather_points(in->step, cell, &kept->around);
    kept->cell = cell;
    return &kept->around;
}

/* As soft_nearest_point(): the distances in double precision of those that may be the nearest. */
static int64_t nearest_exactly(const path_search *in, const points_around *around, const float x[3])
{
    const sk_soft *soft = in->step->soft;
    _Alignas(64) float squares[MOST_AROUND];
    const float most = find_squares(around, x, squares) + in->unsure;
    double least = INFINITY;
    int64_t best = -1;
    if (most > 4.0f * (float)(soft->spacing * soft->spacing) + 2.0f * in->unsure)
        return -1;
    for (int n = 0; n < around->count; n += LOOK) {
        int any = 0;
        for (int i = n; i < n + LOOK; i++)
            any |= squares[i] <= most;
        for (int i = n; any && i < n + LOOK && i < around->count; i++) {
            const int64_t k = around->point[i];
            double square = 0.0;
            if (!(squares[i] <= most))
                continue;
            for (int d = 0; d < SELKIE_DIM; d++)
                square += (soft->points[k].position[d] - (double)x[d]) * (soft->points[k].position[d] - (double)x[d]);
            if (square < least || (square == least && k < best)) {
                least = square;
                best = k;
            }
        }
    }
    return best;
}

/* soft_find_inside() by the points kept around the cell of x. */
static int is_inside(const path_search *in, kept_points *kept, uint32_t p, const float x[3], sk_soft_inside *found)
{
    const sk_step *step = in->step;
    int at[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++)
        at[d] = (int)floor(((double)x[d] - step->grid.corner[d]) / step->grid.cell_size);
    const sk_plain_cell cell = sk_plain_find(&step->grid, at);
    if (!in->near.cells[sk_plain_index(cell)])
        return 0;
    const points_around *around = keep_points(in, kept, cell, at);
    if (around->count < 0)
        return soft_find_inside(step, cell, p, x, found);
    return soft_is_behind(step->soft, p, x, nearest_exactly(in, around, x), found);
}

/* Marks the cells near points, and gets memory for the points around them. */
static selkie_code begin_paths(sk_step *step, path_search *in, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const size_t cells = (size_t)grid->block_count * SK_BLOCK_CELLS, kept = (size_t)step->threads * KEPT;
    uint8_t *near, *near_blocks;
    double farthest = 0.0;
    SK_TRY(mark_cells(step, error));
    SK_TRY(sk_step_scratch(step, cells, "bodies", (void **)&near, error));
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count, "bodies", (void **)&near_blocks, error));
    SK_TRY(sk_step_scratch(step, kept * sizeof *in->kept, "bodies", (void **)&in->kept, error));
    const cell_marks crowded = {step->soft->crowded, step->soft->crowded_blocks};
    memset(near, 0, SK_BLOCK_CELLS);
    near_blocks[0] = 0;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++) {
        near_blocks[b] = (uint8_t)mark_beside(grid, crowded, b, near + (size_t)b * SK_BLOCK_CELLS);
        if (!near_blocks[b])
            memset(near + (size_t)b * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS);
    }
    for (size_t n = 0; n < kept; n++)
        in->kept[n].cell = (sk_plain_cell){-1, -1};

    /* Points within three cells, in coordinates of at most `farthest`. */
    for (int d = 0; d < SELKIE_DIM; d++)
        farthest = fmax(farthest, fmax(fabs(grid->low[d]), fabs(grid->high[d])) + 3.0 * grid->cell_size);
    in->step = step;
    in->near = (cell_marks){near, near_blocks};
    in->unsure = (float)(2e-6 * grid->cell_size * (farthest + grid->cell_size));
    return SELKIE_OK;
}

/* --- Liquid inside bodies --- */

/* Marks the cells of a block whose particles may be near points. The density projection moves particles by a cell
 * before they are sorted. Returns whether there are any. */
static int find_candidates(const path_search *in, int block, uint8_t cells[SK_BLOCK_CELLS])
{
    return mark_beside(&in->step->grid, in->near, block, cells);
}

/* Liquid particles of these cells. */
static uint32_t count_candidates(const path_search *in, int block)
{
    const sk_step *step = in->step;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    uint8_t cells[SK_BLOCK_CELLS] = {0};
    uint32_t count = 0;
    if (!find_candidates(in, block, cells))
        return 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        for (uint32_t p = start[c]; cells[c] && p < start[c + 1]; p++)
            count += !step->soft->owner[p];
    return count;
}

/* Is a particle of a block near points? `tile` has the marks of the block's cells and one cell around. */
static int is_near(const sk_grid *grid, const uint8_t *tile, int block, const float x[3])
{
    const float inverse = (float)(1.0 / grid->cell_size);
    int node = 0, stride = 1, beyond = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float at = floorf((x[d] - (float)grid->corner[d]) * inverse);
        const int i = (int)at - grid->coordinates[block][d] * SK_BLOCK_N + 1;
        beyond |= i < 0 || i >= SK_TILE_N(1);
        node += i * stride;
        stride *= SK_TILE_N(1);
    }
    return beyond || tile[node];
}

/* Writes the liquid particles of a block that are inside bodies. Returns their number. */
static uint32_t list_inside(const path_search *in, kept_points *kept, int block, sk_soft_inside *to)
{
    const sk_step *step = in->step;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    uint8_t cells[SK_BLOCK_CELLS] = {0}, tile[SK_TILE_VALUES(1)];
    uint32_t count = 0;
    find_candidates(in, block, cells);
    sk_tile_load_bytes(&step->grid, in->near.cells, block, 1, tile);
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        for (uint32_t p = start[c]; cells[c] && p < start[c + 1]; p++) {
            const float *x = step->particles.records[p].position;
            if (!step->soft->owner[p] && is_near(&step->grid, tile, block, x))
                count += (uint32_t)is_inside(in, kept, p, x, &to[count]);
        }
    return count;
}
/* --- The joint contact --- */

/* Normal velocity of a particle relative to its body, and the modes of the contact. */
static double approach(const sk_step *step, const sk_soft_inside *c, const double centre[3], const double change[MODES],
                       double modes[MODES])
{
    const sk_particle *particle = &step->particles.records[c->particle];
    const sk_soft_point *point = &step->soft->points[c->point];
    double arm[3] = {0.0, 0.0, 0.0}, sum = 0.0;
    const double n[3] = {(double)c->normal[0], (double)c->normal[1], SELKIE_DIM == 3 ? (double)c->normal[2] : 0.0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        arm[d] = point->position[d] - centre[d];
        modes[d] = n[d];
        sum += n[d] * ((double)particle->velocity[d] - point->velocity[d]);
    }
#if SELKIE_DIM == 3
    for (int d = 0; d < 3; d++)
        modes[3 + d] = arm[(d + 1) % 3] * n[(d + 2) % 3] - arm[(d + 2) % 3] * n[(d + 1) % 3];
#else
    modes[2] = arm[0] * n[1] - arm[1] * n[0];
#endif
    for (int k = 0; k < MODES; k++)
        sum -= modes[k] * change[k];
    return sum;
}

/* Solves a x = b for a positive definite matrix. */
static void solve(double a[MODES][MODES], double x[MODES])
{
    for (int j = 0; j < MODES; j++)
        for (int i = j + 1; i < MODES; i++) {
            const double factor = a[j][j] > 0.0 ? a[i][j] / a[j][j] : 0.0;
            for (int k = j; k < MODES; k++)
                a[i][k] -= factor * a[j][k];
            x[i] -= factor * x[j];
        }
    for (int i = MODES - 1; i >= 0; i--) {
        for (int k = i + 1; k < MODES; k++)
            x[i] -= a[i][k] * x[k];
        x[i] = a[i][i] > 0.0 ? x[i] / a[i][i] : 0.0;
    }
}

/* The matrix of a body's mass and inertia about its centre. */
static void find_mass(const sk_soft *soft, int b, double centre[3], double matrix[MODES][MODES])
{
    const sk_soft_body *body = &soft->bodies[b];
    const sk_soft_moments *m = &body->moments;
    double second[3][3];
    memcpy(centre, soft->states[b].position, 3 * sizeof *centre);
    for (int d = 0; d < 3; d++)
        for (int e = 0; e < 3; e++)
            second[d][e] = soft_entry(m->second, d, e);
    const double trace = second[0][0] + second[1][1] + second[2][2];
    for (int d = 0; d < SELKIE_DIM; d++)
        matrix[d][d] = body->mass * m->count;
#if SELKIE_DIM == 3
    for (int d = 0; d < 3; d++)
        for (int e = 0; e < 3; e++)
            matrix[3 + d][3 + e] = body->mass * ((d == e ? trace : 0.0) - second[d][e]);
#else
    matrix[2][2] = body->mass * trace;
#endif
}

static void meet(sk_step *step, int b, const sk_soft_inside *list, size_t count)
{
    sk_soft *soft = step->soft;
    const sk_soft_body *body = &soft->bodies[b];
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    double matrix[MODES][MODES] = {{0.0}}, change[MODES] = {0.0}, centre[3], modes[MODES] = {0.0};
    const double none[MODES] = {0.0};
    int found = 0;
    find_mass(soft, b, centre, matrix);
    for (size_t n = 0; n < count; n++) {
        const double into = list[n].body == b ? approach(step, &list[n], centre, none, modes) : 0.0;
        const double mass = sk_step_mass(step, material, list[n].particle);
        if (!(into < 0.0))
            continue;
        found = 1;
        for (int i = 0; i < MODES; i++) {
            change[i] += mass * modes[i] * into;
            for (int j = 0; j < MODES; j++)
                matrix[i][j] += mass * modes[i] * modes[j];
        }
    }
    if (!found)
        return;
    solve(matrix, change);

    /* Particles take the new velocity along the normal, the body its change. */
    for (size_t n = 0; n < count; n++) {
        if (list[n].body != b || !(approach(step, &list[n], centre, none, modes) < 0.0))
            continue;
        const double left = approach(step, &list[n], centre, change, modes);
        for (int d = 0; d < SELKIE_DIM; d++)
            step->particles.records[list[n].particle].velocity[d] -= (float)(left * modes[d]);
    }
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = body->first; k < body->first + body->count; k++) {
        sk_soft_point *point = &soft->points[k];
        double y[3] = {0.0, 0.0, 0.0}, turn[3] = {0.0, 0.0, 0.0};
        for (int d = 0; d < 3; d++) {
            y[d] = d < SELKIE_DIM ? point->position[d] - centre[d] : 0.0;
            if (SELKIE_DIM == 3 || d == 2)
                turn[d] = change[SELKIE_DIM == 3 ? 3 + d : 2];
        }
        for (int d = 0; d < SELKIE_DIM; d++)
            point->velocity[d] += change[d] + turn[(d + 1) % 3] * y[(d + 2) % 3] - turn[(d + 2) % 3] * y[(d + 1) % 3];
    }
}

void SK_DIM(sk_soft_return)(sk_step *step, const struct sk_soft_inside *list, size_t count)
{
    const sk_soft *soft = step->soft;
    for (int b = 0; count && b < soft->body_count; b++)
        meet(step, b, list, count);

    /* Positions to the surface, at most a cell a step. */
    for (size_t n = 0; n < count; n++) {
        float *x = step->particles.records[list[n].particle].position;
        const float way = fminf(list[n].depth + 1e-3f * (float)soft->spacing, (float)step->grid.cell_size);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float gap = 1e-3f * (float)step->grid.cell_size;
            x[d] = fminf(fmaxf(x[d] + way * list[n].normal[d], (float)step->grid.low[d] + gap),
                         (float)step->grid.high[d] - gap);
        }
    }
}

selkie_code SK_DIM(sk_soft_push_out)(sk_step *step, uint8_t *touched, selkie_error *error)
{
    sk_soft *soft = step->soft;
    path_search in;
    const int blocks = step->grid.particle_blocks;
    uint32_t *first;
    sk_soft_inside *list;
    soft->owner = sk_particles_find_attribute(&step->particles, "body")->data;
    SK_TRY(begin_paths(step, &in, error));

    /* Room for the particles near bodies; each block lists those inside, then the lists close up. */
    SK_TRY(sk_step_scratch(step, 2 * ((size_t)blocks + 2) * sizeof *first, "bodies", (void **)&first, error));
    uint32_t *found = first + blocks + 2;
    first[0] = first[1] = 0;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= blocks; b++)
        first[b + 1] = count_candidates(&in, b);
    for (int b = 1; b <= blocks; b++)
        first[b + 1] += first[b];
    SK_TRY(sk_step_scratch(step, ((size_t)first[blocks + 1] + 1) * sizeof *list, "bodies", (void **)&list, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= blocks; b++) {
        kept_points *kept = in.kept + (size_t)omp_get_thread_num() * KEPT;
        found[b] = first[b] < first[b + 1] ? list_inside(&in, kept, b, list + first[b]) : 0;
    }
    size_t count = 0;
    for (int b = 1; b <= blocks; b++) {
        memmove(list + count, list + first[b], found[b] * sizeof *list);
        count += found[b];
        touched[b] |= found[b] > 0;
    }
    SK_DIM(sk_soft_return)(step, list, count);
    soft->crowded = soft->crowded_blocks = NULL;
    return SELKIE_OK;
}

/* --- Paths --- */

/* What the test of a path's places needs. */
typedef struct path_test {
    const path_search *in;
    kept_points *kept;
} path_test;

static int is_path_inside(const void *test, uint32_t p, const float x[3], sk_soft_inside *found)
{
    const path_test *of = test;
    return is_inside(of->in, of->kept, p, x, found);
}

/* Fast liquid does not pass thin bodies: paths of the move are tested against the points. Marks the blocks `touched` of
 * particles that are stopped. */
selkie_code SK_DIM(sk_soft_stop)(sk_step *step, uint8_t *touched, selkie_error *error)
{
    sk_soft *soft = step->soft;
    const sk_grid *grid = &step->grid;
    path_search in;
    soft->owner = sk_particles_find_attribute(&step->particles, "body")->data;
    SK_TRY(begin_paths(step, &in, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= grid->particle_blocks; b++) {
        const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        const path_test test = {&in, in.kept + (size_t)omp_get_thread_num() * KEPT};
        int near = 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++)
            near |= soft->crowded_blocks[grid->neighbours[b][n]];
        for (uint32_t p = start[0]; near && p < start[SK_BLOCK_CELLS]; p++)
            if (!soft->owner[p] && !(step->particles.records[p].flags & SK_PARTICLE_DEAD))
                touched[b] |= (uint8_t)soft_stop_particle(step, p, soft->from[p], is_path_inside, &test);
    }
    soft->crowded = soft->crowded_blocks = NULL;
    return SELKIE_OK;
}
