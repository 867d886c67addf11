/* Momentum and angular momentum of liquid that touches no wall.
 *
 * Viscous forces are internal, so both stay what the target says. The conjugate gradients stop at a tolerance and leave
 * an error. A rigid motion removes it: it has no strain, so the stress does not change. Each connected part of the
 * liquid gets its own (Batty and Bridson 2008, sec. 4, keep it by tight tolerances).
 *
 * A speck, a part with less than a cell of liquid, keeps its target. Few of its faces have mass, so that its rotation
 * is free: the massless faces beside them may have any velocity, and a particle that reads them would lose its own. */
#include <math.h>
#include <string.h>

#include "base/simd.h"
#include "linalg/stress_strips.h"

enum { MODES = SK_STRESS_MODES, TRIANGLE = SK_STRESS_TRIANGLE };

/* Sums over the faces of a part. */
typedef struct part {
    double matrix[TRIANGLE]; /* of masses: lower triangle */
    double missing[MODES];   /* momentum and angular momentum; then the rigid motion */
    int speck;               /* less than a cell of liquid */
} part;

static int32_t find_root(int32_t *root, int32_t i)
{
    while (root[i] != i) {
        root[i] = root[root[i]];
        i = root[i];
    }
    return i;
}

/* Joins two nodes. What holds one of them holds both. */
static void join(int32_t *root, uint8_t *held, int32_t one, int32_t other)
{
    const int32_t a = find_root(root, one), b = find_root(root, other), least = a < b ? a : b, most = a < b ? b : a;
    root[most] = least;
    held[least] |= held[most];
}

/* --- Rows of bits --- */

/* The cells, edges and faces of a row of a block along x: bit n is that of cell n. Cells have a bulk weight, or only
 * one of normal strain; an edge has the number of the axis along it. */
enum {
    ROW_CELLS,
    ROW_PAIRS,
    ROW_SHEAR,
    ROW_UNKNOWN = ROW_SHEAR + 3,
    ROW_GIVEN = ROW_UNKNOWN + 3,
    ROW_LOOSE = ROW_GIVEN + 3,
    ROW_KINDS
};

/* The search for the parts. A part is made of nodes: cells with a bulk weight, which join all faces around them, and
 * faces beside none of those. The first cell of a run along x stands for all of the run. */
typedef struct part_search {
    const sk_stress_level *level;
    uint32_t (*rows)[ROW_KINDS]; /* [block_count x SK_STRESS_ROWS] */
    int32_t *root;               /* [nodes] a node of the same part with a smaller number; itself for the first */
    uint8_t *held;               /* [nodes] a wall acts on the part of a first node */
    int32_t *number;             /* [nodes] of the part of a first node; -1 = a wall holds it */
    int32_t values;              /* of a field */
} part_search;

/* The number of the row at y and z of the block `x` blocks further along x. */
static inline size_t row_at(const part_search *search, int block, int x, int y, int z)
{
    const int inside = !((y | z) & ~SK_BLOCK_MASK) && !x;
    if (inside)
        return (size_t)block * SK_STRESS_ROWS + (size_t)(y + (SELKIE_DIM == 3 ? SK_BLOCK_N * z : 0));
    return sk_stress_place(search->level->neighbours, block, (const int[3]){x * SK_BLOCK_N, y, z}) / SK_BLOCK_N;
}

/* A row of bits at an offset of -1 to 1 along each axis; bits of its cells have the numbers of those of the row at 0.
 */
static inline uint32_t bits_at(const part_search *search, int kind, int block, int r, const int offset[3])
{
    int at[3];
    sk_stress_cell(r * SK_BLOCK_N, at);
    const int y = at[1] + offset[1], z = at[2] + offset[2];
    const uint32_t own = search->rows[row_at(search, block, 0, y, z)][kind];
    if (!offset[0])
        return own;
    const uint32_t other = search->rows[row_at(search, block, offset[0], y, z)][kind];
    return offset[0] < 0 ? (own << 1 | other >> (SK_BLOCK_N - 1)) & ((1u << SK_BLOCK_N) - 1)
                         : own >> 1 | (other & 1) << (SK_BLOCK_N - 1);
}

static const int steps[4][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

/* The row of bits of the cells after (sign 1) or before (-1) those of a row along an axis. */
static inline uint32_t bits_along(const part_search *search, int kind, int block, int r, int axis, int sign)
{
    const int offset[3] = {sign * steps[axis + 1][0], sign * steps[axis + 1][1], sign * steps[axis + 1][2]};
    return bits_at(search, kind, block, r, offset);
}

static inline const uint32_t *row_of(const part_search *search, int block, int r)
{
    return search->rows[(size_t)block * SK_STRESS_ROWS + (size_t)r];
}

/* Bits of the weights of a row that are not 0. */
static uint32_t weighted(const float *weights)
{
    uint32_t bits = 0;
    for (int n = 0; weights && n < SK_BLOCK_N; n += 8)
        bits |= i8_bits(f8_load(weights + n) != 0.0f) << n;
    return bits;
}

static void find_rows(const part_search *search, const sk_stress_system *system, int block)
{
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        uint32_t *row = search->rows[(size_t)block * SK_STRESS_ROWS + (size_t)r];
        const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N;
        memset(row, 0, sizeof *search->rows);
        row[ROW_CELLS] = weighted(system->bulk ? system->bulk + here : NULL);
        row[ROW_PAIRS] = weighted(system->normal + here) & ~row[ROW_CELLS];
        for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++)
            row[ROW_SHEAR + edge] = weighted(system->shear[edge] + here);
        for (int a = 0; a < SELKIE_DIM; a++) {
            row[ROW_UNKNOWN + a] = search->level->bits[block][a][r].unknown;
            row[ROW_GIVEN + a] = search->level->bits[block][a][r].given;
        }
    }
}

/* Cell, and the row of bits to begin with it: place of a cell at an offset from bit n of a row. */
static inline int32_t cell_at(const part_search *search, int block, int r, int n, int axis, int sign)
{
    int at[3];
    sk_stress_cell(r * SK_BLOCK_N + n, at);
    if (axis >= 0)
        at[axis] += sign;
    return (int32_t)sk_stress_place(search->level->neighbours, block, at);
}

/* The node of an unknown face: a cell beside it, or its own. */
static int32_t node_of(const part_search *search, int32_t place, int a)
{
    const int block = place / SK_BLOCK_CELLS, c = place % SK_BLOCK_CELLS, r = c / SK_BLOCK_N, n = c % SK_BLOCK_N;
    if (row_of(search, block, r)[ROW_CELLS] >> n & 1)
        return place;
    const int32_t before = cell_at(search, block, r, n, a, -1);
    const int at = before % SK_BLOCK_CELLS;
    if (row_of(search, before / SK_BLOCK_CELLS, at / SK_BLOCK_N)[ROW_CELLS] >> (at % SK_BLOCK_N) & 1)
        return before;
    return (1 + a) * search->values + place;
}

/* --- Parts --- */

/* Cells that an unknown face joins to the one before them along x. */
static inline uint32_t joined_cells(const part_search *search, int block, int r)
{
    const uint32_t *row = row_of(search, block, r);
    return row[ROW_CELLS] & row[ROW_CELLS] << 1 & row[ROW_UNKNOWN];
}

/* Faces across axis a of a row without a cell that joins them to others. */
static inline uint32_t lone_faces(const part_search *search, int block, int r, int a)
{
    const uint32_t *row = row_of(search, block, r), open = row[ROW_UNKNOWN + a] & ~row[ROW_CELLS];
    return open ? open & ~bits_along(search, ROW_CELLS, block, r, a, -1) : 0;
}

/* Begins the parts of a block: a node for each run of cells and for each lone face. */
static void begin_nodes(const part_search *search, int block)
{
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        const uint32_t *row = row_of(search, block, r), joined = joined_cells(search, block, r);
        uint32_t unknown = row[ROW_CELLS];
        for (int a = 0; a < SELKIE_DIM; a++)
            unknown |= row[ROW_UNKNOWN + a];
        if (!unknown)
            continue;
        const int32_t first = block * SK_BLOCK_CELLS + r * SK_BLOCK_N;
        for (int n = 0; n < SK_BLOCK_N && row[ROW_CELLS]; n++)
            search->root[first + n] = n && joined >> n & 1 ? search->root[first + n - 1] : first + n;
        for (int a = 0; a < SELKIE_DIM; a++)
            for (uint32_t left = lone_faces(search, block, r, a); left; left &= left - 1) {
                const int32_t node = (1 + a) * search->values + first + sk_stress_lowest(left);
                search->root[node] = node;
            }
    }
}

/* Has a row a weight? All parts have some in the rows of their faces or in those after them. */
static inline int has_weights(const part_search *search, int block, int r)
{
    const uint32_t *row = row_of(search, block, r);
    return (row[ROW_CELLS] | row[ROW_PAIRS] | row[ROW_SHEAR] | row[ROW_SHEAR + 1] | row[ROW_SHEAR + 2]) != 0;
}

/* Joins the cells of a row to those before them along an axis, across unknown faces. Of neighbours that are joined in
 * both rows one does for all. */
static void join_cells(const part_search *search, int block, int r, int axis)
{
    const uint32_t *row = row_of(search, block, r);
    uint32_t both = row[ROW_CELLS] & row[ROW_UNKNOWN + axis] & bits_along(search, ROW_CELLS, block, r, axis, -1);
    if (axis == 0) {
        both &= 1;
    } else if (both) {
        const int32_t below = cell_at(search, block, r, 0, axis, -1);
        both &= ~(both << 1 & joined_cells(search, block, r) &
                  joined_cells(search, below / SK_BLOCK_CELLS, below % SK_BLOCK_CELLS / SK_BLOCK_N));
    }
    for (; both; both &= both - 1) {
        const int n = sk_stress_lowest(both);
        join(search->root, search->held, cell_at(search, block, r, n, -1, 0), cell_at(search, block, r, n, axis, -1));
    }
}

/* Joins the unknown ones of some faces. A given face among them holds them. */
static void join_faces(const part_search *search, const int32_t *places, const int *axes, int count)
{
    int32_t first = -1;
    int held = 0;
    for (int n = 0; n < count; n++) {
        const int block = places[n] / SK_BLOCK_CELLS, c = places[n] % SK_BLOCK_CELLS;
        const uint32_t *row = row_of(search, block, c / SK_BLOCK_N);
        held |= row[ROW_GIVEN + axes[n]] >> (c % SK_BLOCK_N) & 1;
        if (!(row[ROW_UNKNOWN + axes[n]] >> (c % SK_BLOCK_N) & 1))
            continue;
        const int32_t node = node_of(search, places[n], axes[n]);
        if (first >= 0)
            join(search->root, search->held, first, node);
        first = first >= 0 ? first : node;
    }
    if (held && first >= 0)
        search->held[find_root(search->root, first)] = 1;
}

/* Edges across axes a and b of a row whose stress joins what its cells do not, or where a face is given. */
static uint32_t odd_edges(const part_search *search, int block, int r, int a, int b)
{
    const uint32_t *row = row_of(search, block, r), edges = row[ROW_SHEAR + sk_stress_edge(a, b)];
    if (!edges)
        return 0;
    const int both[3] = {-(a == 0), -(a == 1 || b == 1), -(b == 2)};
    const uint32_t cells = row[ROW_CELLS] & bits_along(search, ROW_CELLS, block, r, a, -1) &
                           bits_along(search, ROW_CELLS, block, r, b, -1) & bits_at(search, ROW_CELLS, block, r, both);
    const uint32_t faces = row[ROW_UNKNOWN + a] & row[ROW_UNKNOWN + b] &
                           bits_along(search, ROW_UNKNOWN + a, block, r, b, -1) &
                           bits_along(search, ROW_UNKNOWN + b, block, r, a, -1);
    return edges & ~(cells & faces);
}

/* Joins what edges, and cells without bulk weight, join in a row. */
static void join_odd(const part_search *search, int block, int r)
{
    for (int a = 0; a < SELKIE_DIM; a++) {
        for (uint32_t left = row_of(search, block, r)[ROW_PAIRS]; left; left &= left - 1) {
            const int n = sk_stress_lowest(left);
            const int32_t places[2] = {cell_at(search, block, r, n, -1, 0), cell_at(search, block, r, n, a, 1)};
            join_faces(search, places, (const int[2]){a, a}, 2);
        }
        for (int b = a + 1; b < SELKIE_DIM; b++)
            for (uint32_t left = odd_edges(search, block, r, a, b); left; left &= left - 1) {
                const int n = sk_stress_lowest(left);
                const int32_t here = cell_at(search, block, r, n, -1, 0);
                const int32_t places[4] = {here, cell_at(search, block, r, n, b, -1), here,
                                           cell_at(search, block, r, n, a, -1)};
                join_faces(search, places, (const int[4]){a, a, b, b}, 4);
            }
    }
}

/* Marks the parts of the cells of a row that have a given face. */
static void mark_held(const part_search *search, int block, int r)
{
    const uint32_t *row = row_of(search, block, r);
    uint32_t given = 0;
    for (int a = 0; a < SELKIE_DIM && row[ROW_CELLS] && search->level->near_given[block]; a++)
        given |= row[ROW_GIVEN + a] | bits_along(search, ROW_GIVEN + a, block, r, a, 1);
    for (uint32_t left = row[ROW_CELLS] & given; left; left &= left - 1)
        search->held[find_root(search->root, cell_at(search, block, r, sk_stress_lowest(left), -1, 0))] = 1;
}

/* Numbers a part at its first node. */
static void number_node(const part_search *search, int32_t node, int32_t *count)
{
    if (search->root[node] == node)
        search->number[node] = search->held[node] ? -1 : (*count)++;
}

/* Numbers the parts that no wall holds, and marks their cells. Returns how many there are. */
static int32_t number_parts(const part_search *search)
{
    int32_t count = 0;
    for (int b = 1; b < search->level->block_count; b++)
        for (int r = 0; r < SK_STRESS_ROWS; r++) {
            const uint32_t *row = row_of(search, b, r);
            for (uint32_t left = row[ROW_CELLS] & ~joined_cells(search, b, r); left; left &= left - 1)
                number_node(search, cell_at(search, b, r, sk_stress_lowest(left), -1, 0), &count);
            for (int a = 0; a < SELKIE_DIM; a++)
                for (uint32_t left = lone_faces(search, b, r, a); left; left &= left - 1)
                    number_node(search, (1 + a) * search->values + cell_at(search, b, r, sk_stress_lowest(left), -1, 0),
                                &count);
        }
    for (int b = 1; b < search->level->block_count && count; b++)
        for (int r = 0; r < SK_STRESS_ROWS; r++)
            for (uint32_t left = row_of(search, b, r)[ROW_CELLS]; left; left &= left - 1) {
                const int n = sk_stress_lowest(left);
                const int32_t root = find_root(search->root, cell_at(search, b, r, n, -1, 0));
                search->rows[(size_t)b * SK_STRESS_ROWS + (size_t)r][ROW_LOOSE] |= (uint32_t)(search->number[root] >= 0)
                                                                                   << n;
            }
    return count;
}

/* The parts: faces between which stress acts, at once or by way of others. Returns how many no wall holds. */
static selkie_code find_parts(part_search *search, const sk_stress_system *system, sk_arena *arena, int32_t *count,
                              selkie_error *error)
{
    const size_t nodes = (size_t)(1 + SELKIE_DIM) * (size_t)search->values;
    const int blocks = search->level->block_count;
    SK_STRESS_TAKE(arena, search->rows, (size_t)blocks * SK_STRESS_ROWS);
    SK_STRESS_TAKE(arena, search->root, nodes);
    SK_STRESS_TAKE(arena, search->number, nodes);
    SK_STRESS_TAKE(arena, search->held, nodes);
    memset(search->held, 0, nodes);
    memset(search->rows, 0, SK_STRESS_ROWS * sizeof *search->rows);
    for (int b = 1; b < blocks; b++)
        find_rows(search, system, b);
    for (int b = 1; b < blocks; b++)
        begin_nodes(search, b);
    for (int b = 1; b < blocks; b++)
        for (int r = 0; r < SK_STRESS_ROWS; r++) {
            if (!has_weights(search, b, r))
                continue;
            mark_held(search, b, r);
            for (int a = 0; a < SELKIE_DIM; a++)
                join_cells(search, b, r, a);
            join_odd(search, b, r);
        }
    *count = number_parts(search);
    return SELKIE_OK;
}

/* --- Motions --- */

/* Velocity of the rigid motions at a face across axis a. Where sides are joined there are no rotations: liquid that
 * crosses them turns about no centre. */
static void rigid_modes(const sk_stress_level *level, const double x[3], int a, double mode[MODES])
{
    sk_stress_rigid_modes(x, a, !(level->joined[0] || level->joined[1] || level->joined[2]), mode);
}

static void face_centre(const sk_stress_level *level, int block, int c, int a, double x[3])
{
    x[2] = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = level->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) +
               (d == a ? 0.0 : 0.5);
}

/* The faces across axis a of a row whose parts no wall holds, and the numbers of these parts. Returns how many. */
static int find_loose(const part_search *search, int block, int r, int a, int at[SK_BLOCK_N], int32_t parts[SK_BLOCK_N])
{
    const uint32_t *row = row_of(search, block, r);
    const uint32_t before = bits_along(search, ROW_LOOSE, block, r, a, -1) & ~row[ROW_CELLS];
    int count = 0;
    for (uint32_t left = (row[ROW_UNKNOWN + a] & (row[ROW_LOOSE] | before)) | lone_faces(search, block, r, a); left;
         left &= left - 1) {
        const int n = sk_stress_lowest(left);
        const int32_t node = node_of(search, cell_at(search, block, r, n, -1, 0), a);
        const int32_t number = search->number[find_root(search->root, node)];
        at[count] = n;
        parts[count] = number;
        count += number >= 0;
    }
    return count;
}

/* The solution, by strips or by numbers. */
typedef struct solution {
    const part_search *search;
    const sk_stress_system *system;
    const sk_stress_strips *strips;
    double *x;
    part *parts;
} solution;

static inline double *value_at(const solution *of, int block, int c, int a)
{
    if (of->strips)
        return of->x + sk_stress_strip_place(of->strips, block, c / SK_BLOCK_N, a, c % SK_BLOCK_N);
    return of->x + of->search->level->index[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
}

/* Adds a face to the sums of its part. */
static void sum_face(const solution *of, int block, int c, int a, part *p)
{
    const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
    const double mass = (double)of->system->mass[a][here];
    if (!(mass > 0.0))
        return;
    double centre[3], mode[MODES];
    face_centre(of->search->level, block, c, a, centre);
    rigid_modes(of->search->level, centre, a, mode);
    const double change = (double)of->system->target[a][here] - *value_at(of, block, c, a);
    for (int i = 0; i < MODES; i++) {
        p->missing[i] += mass * mode[i] * change;
        for (int j = 0; j <= i; j++)
            p->matrix[i * (i + 1) / 2 + j] += mass * mode[i] * mode[j];
    }
}

/* Has a part less than a cell of liquid? Its mass along each axis is that of its faces across it. */
static int is_speck(const part *p)
{
    double mass = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        mass += p->matrix[d * (d + 3) / 2];
    return mass < SELKIE_DIM;
}

/* Adds the rigid motion of its part to a face. Those of specks take their target where there is one. */
static void move_face(const solution *of, int block, int c, int a, part *p)
{
    const float target = of->system->target[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
    double *x = value_at(of, block, c, a);
    if (p->speck && target == target) {
        *x = (double)target;
        return;
    }
    double centre[3], mode[MODES];
    face_centre(of->search->level, block, c, a, centre);
    rigid_modes(of->search->level, centre, a, mode);
    for (int i = 0; i < MODES; i++)
        *x += p->missing[i] * mode[i];
}

/* Works on all faces of loose parts, in one order: the same bits. */
static void each_loose(const solution *of, void (*work)(const solution *, int, int, int, part *))
{
    for (int b = 1; b < of->search->level->block_count; b++)
        for (int r = 0; r < SK_STRESS_ROWS; r++)
            for (int a = 0; a < SELKIE_DIM; a++) {
                int at[SK_BLOCK_N];
                int32_t parts[SK_BLOCK_N];
                const int count = find_loose(of->search, b, r, a, at, parts);
                for (int n = 0; n < count; n++)
                    work(of, b, r * SK_BLOCK_N + at[n], a, &of->parts[parts[n]]);
            }
}

selkie_code SK_DIM(sk_stress_keep_momenta)(const sk_stress_system *system, const sk_stress_options *options,
                                           const sk_stress_level *level, const sk_stress_strips *strips, double *x,
                                           selkie_error *error)
{
    part_search search = {.level = level, .values = level->block_count * SK_BLOCK_CELLS};
    solution of = {&search, system, strips, x, NULL};
    int32_t count;
    SK_TRY(find_parts(&search, system, options->arena, &count, error));
    if (!count)
        return SELKIE_OK;
    SK_TRY(sk_arena_take(options->arena, (size_t)count * sizeof *of.parts, "viscosity", (void **)&of.parts, error));
    memset(of.parts, 0, (size_t)count * sizeof *of.parts);
    each_loose(&of, sum_face);
    for (int32_t n = 0; n < count; n++) {
        of.parts[n].speck = is_speck(&of.parts[n]);
        sk_stress_rigid_motion(of.parts[n].matrix, 0.0, of.parts[n].missing);
    }
    each_loose(&of, move_face);
    return SELKIE_OK;
}
