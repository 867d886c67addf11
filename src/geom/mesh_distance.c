/* A binary hierarchy of boxes over the pieces (triangles, or segments in 2D) of a mesh.
 *
 * Layout: nodes in depth-first order, so that the left child of node n is n + 1; a leaf holds up to four pieces, whose
 * corners lie in the order of the leaves. Split at the median of the longest side: the tree is balanced (a walk needs a
 * stack of about log2 of the pieces) and depends on nothing but the input.
 *
 * Side: the generalized winding number w(x) (Jacobson, Kavan and Sorkine-Hornung 2013), the sum of the solid angles of
 * the pieces over 4 pi. It is 1 inside and 0 outside a closed mesh, even one that overlaps itself, and falls off
 * smoothly over a hole. A mesh with a few missing triangles therefore remains a solid, which normals or ray parity
 * would not give. A far branch is approximated by one dipole, its area-weighted normal at its area-weighted centre
 * (Barill, Dickson, Schmidt, Levin and Jacobson 2018, first order). The absolute value decides: a single part that was
 * modelled inside out is solid, and an inner shell of opposite direction is a cavity.
 */
#include "geom/mesh_distance.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"

enum { leaf_pieces = 4 };

struct sk_mesh_distance {
    sk_memory *memory;
    int closed;
    sk_mesh_tree tree;
};

/* --- Building --- */

typedef struct builder {
    sk_mesh_distance *mesh;
    const double (*corners)[3]; /* as given */
    double (*middles)[3];       /* [piece_count] */
    uint32_t *order;            /* [piece_count] */
} builder;

/* Puts the `rank`-th piece along an axis in its place, smaller ones before it (Hoare's selection). Ties are broken by
 * the piece's number, so that the order is unique. */
static inline int before(const builder *b, int axis, uint32_t p, uint32_t q)
{
    double x = b->middles[p][axis], y = b->middles[q][axis];
    return x < y || (x == y && p < q);
}

static void select_rank(const builder *b, int axis, size_t low, size_t high, size_t rank)
{
    uint32_t *order = b->order;
    while (low + 1 < high) {
        uint32_t pivot = order[low + (high - low) / 2];
        size_t i = low, j = high - 1;
        for (;;) {
            while (before(b, axis, order[i], pivot))
                i++;
            while (before(b, axis, pivot, order[j]))
                j--;
            if (i >= j)
                break;
            uint32_t kept = order[i];
            order[i++] = order[j];
            order[j--] = kept;
        }
        /* [low, i) is no greater than the pivot, [j + 1, high) no less; the pivot itself may be at i == j. */
        if (rank < i)
            high = i;
        else if (rank > j)
            low = j + 1;
        else
            return;
    }
}

static void bound_node(const builder *b, sk_mesh_node *node, size_t low, size_t high)
{
    size_t dimension = (size_t)b->mesh->tree.dimension;
    for (int i = 0; i < 3; i++) {
        node->low[i] = INFINITY;
        node->high[i] = -INFINITY;
    }
    for (size_t n = low; n < high; n++)
        for (size_t c = 0; c < dimension; c++) {
            const double *p = b->corners[b->order[n] * dimension + c];
            for (int i = 0; i < 3; i++) {
                node->low[i] = p[i] < node->low[i] ? p[i] : node->low[i];
                node->high[i] = p[i] > node->high[i] ? p[i] : node->high[i];
            }
        }
}

static void build_node(builder *b, size_t low, size_t high)
{
    size_t self = b->mesh->tree.node_count++;
    sk_mesh_node *node = &b->mesh->tree.nodes[self];
    bound_node(b, node, low, high);
    if (high - low <= leaf_pieces) {
        node->first = (uint32_t)low;
        node->count = (uint32_t)(high - low);
        return;
    }
    int axis = 0;
    for (int i = 1; i < 3; i++)
        if (node->high[i] - node->low[i] > node->high[axis] - node->low[axis])
            axis = i;
    size_t middle = low + (high - low) / 2;
    select_rank(b, axis, low, high, middle);
    node->count = 0;
    build_node(b, low, middle); /* as deep as log2 of the pieces */
    node->first = (uint32_t)b->mesh->tree.node_count;
    build_node(b, middle, high);
}

/* Pieces of a node, all of its branches. */
static void node_range(const sk_mesh_distance *mesh, size_t node, size_t *first, size_t *end)
{
    size_t left = node, right = node;
    while (mesh->tree.nodes[left].count == 0)
        left++;
    while (mesh->tree.nodes[right].count == 0)
        right = mesh->tree.nodes[right].first;
    *first = mesh->tree.nodes[left].first;
    *end = mesh->tree.nodes[right].first + mesh->tree.nodes[right].count;
}

static void find_dipole(const sk_mesh_distance *mesh, size_t node)
{
    sk_mesh_dipole *d = &mesh->tree.dipoles[node];
    memset(d, 0, sizeof *d);
    size_t first, end, corners = (size_t)mesh->tree.dimension;
    node_range(mesh, node, &first, &end);

    /* Sum the moments; the center is the mean of the corners, weighted by area. */
    double weight = 0.0;
    for (size_t piece = first; piece < end; piece++) {
        double moment[3];
        sk_mesh_moment(&mesh->tree, piece, moment);
        double area = sqrt(sk_hit_dot(moment, moment));
        weight += area;
        for (int i = 0; i < 3; i++) {
            d->moment[i] += moment[i];
            for (size_t c = 0; c < corners; c++)
                d->center[i] += area * mesh->tree.corners[piece * corners + c][i] / (double)corners;
        }
    }
    for (int i = 0; i < 3; i++)
        d->center[i] = weight > 0.0 ? d->center[i] / weight
                                    : 0.5 * (mesh->tree.nodes[node].low[i] + mesh->tree.nodes[node].high[i]);

    /* The radius reaches the farthest corner. */
    double farthest = 0.0;
    for (size_t n = first * corners; n < end * corners; n++) {
        double arm[3];
        sk_mesh_subtract(mesh->tree.corners[n], d->center, arm);
        farthest = fmax(farthest, sk_hit_dot(arm, arm));
    }
    d->radius = sqrt(farthest);
}

selkie_code sk_mesh_distance_create(const sk_mesh_pieces *pieces, sk_memory *memory, sk_mesh_distance **mesh_out,
                                    selkie_error *error)
{
    const size_t piece_count = pieces->count, dimension = (size_t)pieces->dimension;
    const size_t node_limit = piece_count + 1; /* a leaf holds more than leaf_pieces / 2 pieces unless it is the root */
    *mesh_out = NULL;

    /* Arrays, all or none. */
    sk_mesh_distance *mesh = sk_allocate_zeroed(memory, sizeof *mesh);
    builder b = {mesh, pieces->corners, sk_allocate(memory, piece_count * sizeof *b.middles),
                 sk_allocate(memory, piece_count * sizeof *b.order)};
    if (mesh) {
        mesh->memory = memory;
        mesh->tree.dimension = pieces->dimension;
        mesh->closed = pieces->closed;
        mesh->tree.piece_count = piece_count;
        mesh->tree.corners = sk_allocate(memory, piece_count * dimension * sizeof *mesh->tree.corners);
        mesh->tree.nodes = sk_allocate(memory, node_limit * sizeof *mesh->tree.nodes);
        mesh->tree.dipoles = sk_allocate(memory, node_limit * sizeof *mesh->tree.dipoles);
    }
    if (!mesh || !b.middles || !b.order || !mesh->tree.corners || !mesh->tree.nodes || !mesh->tree.dipoles) {
        sk_release(memory, b.middles);
        sk_release(memory, b.order);
        sk_mesh_distance_destroy(mesh);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for the distance to %zu pieces (%.1f MiB needed)",
                       pieces->name, piece_count, (double)piece_count * 224.0 / 1048576.0);
    }

    /* The tree, split by the middles of the pieces (times `dimension`, which does not change their order). */
    for (size_t piece = 0; piece < piece_count; piece++) {
        b.order[piece] = (uint32_t)piece;
        for (int i = 0; i < 3; i++) {
            double sum = 0.0;
            for (size_t c = 0; c < dimension; c++)
                sum += pieces->corners[piece * dimension + c][i];
            b.middles[piece][i] = sum;
        }
    }
    build_node(&b, 0, piece_count);

    /* Corners in the order of the leaves. */
    for (size_t piece = 0; piece < piece_count; piece++)
        memcpy(mesh->tree.corners[piece * dimension], pieces->corners[b.order[piece] * dimension],
               sizeof *mesh->tree.corners * dimension);
    sk_release(memory, b.middles);
    sk_release(memory, b.order);

    /* Dipoles. Each level costs one pass over all pieces; the order of a node's sum is fixed. */
    long long node_count = (long long)mesh->tree.node_count;
#pragma omp parallel for schedule(dynamic, 64)
    for (long long node = 0; node < node_count; node++)
        find_dipole(mesh, (size_t)node);
    *mesh_out = mesh;
    return SELKIE_OK;
}

void sk_mesh_distance_destroy(sk_mesh_distance *mesh)
{
    if (!mesh)
        return;
    sk_release(mesh->memory, mesh->tree.corners);
    sk_release(mesh->memory, mesh->tree.nodes);
    sk_release(mesh->memory, mesh->tree.dipoles);
    sk_release(mesh->memory, mesh);
}

/* --- Queries --- */

double sk_mesh_distance_unsigned(const sk_mesh_distance *mesh, const double x[3], size_t *hint)
{
    sk_mesh_nearest best = {INFINITY, {0.0, 0.0, 0.0}, SIZE_MAX};
    if (hint && *hint < mesh->tree.piece_count)
        sk_mesh_try_piece(&mesh->tree, *hint, x, &best);
    sk_mesh_search(&mesh->tree, x, &best);
    if (hint)
        *hint = best.piece;
    return sqrt(best.squared);
}

double sk_mesh_distance_winding(const sk_mesh_distance *mesh, const double x[3])
{
    return sk_mesh_winding(&mesh->tree, x);
}

int sk_mesh_distance_inside(const sk_mesh_distance *mesh, const double x[3])
{
    return sk_mesh_inside(&mesh->tree, x);
}

double sk_mesh_distance_signed(const sk_mesh_distance *mesh, const double x[3], double normal[3])
{
    return sk_mesh_signed(&mesh->tree, x, normal);
}

int sk_mesh_distance_first_hit(const sk_mesh_distance *mesh, const double a[3], const double b[3], double *at,
                               double normal[3])
{
    return sk_mesh_first_hit(&mesh->tree, a, b, at, normal);
}

const sk_mesh_tree *sk_mesh_distance_tree(const sk_mesh_distance *mesh)
{
    return &mesh->tree;
}

/* --- The rest --- */

int sk_mesh_distance_closed(const sk_mesh_distance *mesh)
{
    return mesh->closed;
}

void sk_mesh_distance_bounds(const sk_mesh_distance *mesh, double low[3], double high[3])
{
    memcpy(low, mesh->tree.nodes[0].low, sizeof mesh->tree.nodes[0].low);
    memcpy(high, mesh->tree.nodes[0].high, sizeof mesh->tree.nodes[0].high);
}

size_t sk_mesh_distance_piece_count(const sk_mesh_distance *mesh)
{
    return mesh->tree.piece_count;
}

void sk_mesh_distance_piece(const sk_mesh_distance *mesh, size_t piece, double corners[3][3])
{
    memcpy(corners, mesh->tree.corners[piece * (size_t)mesh->tree.dimension],
           sizeof(double[3]) * (size_t)mesh->tree.dimension);
}
