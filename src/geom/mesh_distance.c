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

enum { leaf_pieces = 4, stack_limit = 64 };

/* A branch is far if its distance is more than this many of its radii: the error of the winding number then stays below
 * 0.03 on the meshes of the tests, and the threshold is 0.5. */
static const double far_radii = 2.3;

typedef struct box_node {
    double low[3], high[3];
    uint32_t first; /* leaf: first piece; else: right child */
    uint32_t count; /* leaf: pieces; else 0 */
} box_node;

typedef struct dipole {
    double center[3]; /* m   */
    double moment[3]; /* m2  sum of area x normal (2D: m) */
    double radius;    /* m   the pieces lie within it of the center */
} dipole;

struct sk_mesh_distance {
    sk_memory *memory;
    int dimension;
    int closed;
    size_t piece_count;
    double (*corners)[3]; /* [piece_count * dimension] */
    size_t node_count;
    box_node *nodes;
    dipole *dipoles; /* [node_count] */
};

static inline double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void subtract(const double a[3], const double b[3], double c[3])
{
    for (int i = 0; i < 3; i++)
        c[i] = a[i] - b[i];
}

static inline void cross(const double a[3], const double b[3], double c[3])
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

/* Area times outward normal; for a segment, with the inside on its left, length times the normal to its right. */
static void piece_moment(const sk_mesh_distance *mesh, size_t piece, double moment[3])
{
    const double(*p)[3] = (const double(*)[3])(mesh->corners + piece * (size_t)mesh->dimension);
    double u[3], v[3];
    subtract(p[1], p[0], u);
    if (mesh->dimension == 2) {
        moment[0] = u[1];
        moment[1] = -u[0];
        moment[2] = 0.0;
        return;
    }
    subtract(p[2], p[0], v);
    cross(u, v, moment);
    for (int i = 0; i < 3; i++)
        moment[i] *= 0.5;
}

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

static void bound_node(const builder *b, box_node *node, size_t low, size_t high)
{
    size_t dimension = (size_t)b->mesh->dimension;
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
    size_t self = b->mesh->node_count++;
    box_node *node = &b->mesh->nodes[self];
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
    node->first = (uint32_t)b->mesh->node_count;
    build_node(b, middle, high);
}

/* Pieces of a node, all of its branches. */
static void node_range(const sk_mesh_distance *mesh, size_t node, size_t *first, size_t *end)
{
    size_t left = node, right = node;
    while (mesh->nodes[left].count == 0)
        left++;
    while (mesh->nodes[right].count == 0)
        right = mesh->nodes[right].first;
    *first = mesh->nodes[left].first;
    *end = mesh->nodes[right].first + mesh->nodes[right].count;
}

static void find_dipole(const sk_mesh_distance *mesh, size_t node)
{
    dipole *d = &mesh->dipoles[node];
    memset(d, 0, sizeof *d);
    size_t first, end, corners = (size_t)mesh->dimension;
    node_range(mesh, node, &first, &end);

    /* Sum the moments; the center is the mean of the corners, weighted by area. */
    double weight = 0.0;
    for (size_t piece = first; piece < end; piece++) {
        double moment[3];
        piece_moment(mesh, piece, moment);
        double area = sqrt(dot(moment, moment));
        weight += area;
        for (int i = 0; i < 3; i++) {
            d->moment[i] += moment[i];
            for (size_t c = 0; c < corners; c++)
                d->center[i] += area * mesh->corners[piece * corners + c][i] / (double)corners;
        }
    }
    for (int i = 0; i < 3; i++)
        d->center[i] =
            weight > 0.0 ? d->center[i] / weight : 0.5 * (mesh->nodes[node].low[i] + mesh->nodes[node].high[i]);

    /* The radius reaches the farthest corner. */
    double farthest = 0.0;
    for (size_t n = first * corners; n < end * corners; n++) {
        double arm[3];
        subtract(mesh->corners[n], d->center, arm);
        farthest = fmax(farthest, dot(arm, arm));
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
        mesh->dimension = pieces->dimension;
        mesh->closed = pieces->closed;
        mesh->piece_count = piece_count;
        mesh->corners = sk_allocate(memory, piece_count * dimension * sizeof *mesh->corners);
        mesh->nodes = sk_allocate(memory, node_limit * sizeof *mesh->nodes);
        mesh->dipoles = sk_allocate(memory, node_limit * sizeof *mesh->dipoles);
    }
    if (!mesh || !b.middles || !b.order || !mesh->corners || !mesh->nodes || !mesh->dipoles) {
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
        memcpy(mesh->corners[piece * dimension], pieces->corners[b.order[piece] * dimension],
               sizeof *mesh->corners * dimension);
    sk_release(memory, b.middles);
    sk_release(memory, b.order);

    /* Dipoles. Each level costs one pass over all pieces; the order of a node's sum is fixed. */
    long long node_count = (long long)mesh->node_count;
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
    sk_release(mesh->memory, mesh->corners);
    sk_release(mesh->memory, mesh->nodes);
    sk_release(mesh->memory, mesh->dipoles);
    sk_release(mesh->memory, mesh);
}

/* --- Nearest piece --- */

static inline double clamp_unit(double t)
{
    return t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t;
}

/* Squared distance from x to the segment, whose nearest point goes to `nearest`. */
static double segment_squared(const double a[3], const double b[3], const double x[3], double nearest[3])
{
    double along[3], arm[3];
    subtract(b, a, along);
    subtract(x, a, arm);
    double squared_length = dot(along, along);
    double t = squared_length > 0.0 ? clamp_unit(dot(arm, along) / squared_length) : 0.0;
    for (int i = 0; i < 3; i++)
        nearest[i] = a[i] + t * along[i];
    subtract(x, nearest, arm);
    return dot(arm, arm);
}

static double sides_squared(const double p[3][3], const double x[3], double nearest[3])
{
    double best = INFINITY;
    for (int side = 0; side < 3; side++) {
        double candidate[3];
        double d = segment_squared(p[side], p[(side + 1) % 3], x, candidate);
        if (d < best) {
            best = d;
            memcpy(nearest, candidate, sizeof candidate);
        }
    }
    return best;
}

/* Squared distance from x to a triangle. The projections of x, seen from each corner, on the sides u and v that leave
 * the first corner give the nearest feature (Voronoi regions of a triangle, Ericson 2005, section 5.1.5). The areas
 * between x's foot and the sides decide the remaining cases. They are inaccurate in needles, which test each side
 * instead. */
static double triangle_squared(const double p[3][3], const double x[3], double nearest[3])
{
    double u[3], v[3], arm[3];
    subtract(p[1], p[0], u);
    subtract(p[2], p[0], v);
    subtract(x, p[0], arm);
    double uv = dot(u, v), along_u = dot(u, arm), along_v = dot(v, arm);

    /* Projections of x seen from corner 0, 1, 2. */
    double on_u[3] = {along_u, along_u - dot(u, u), along_u - uv};
    double on_v[3] = {along_v, along_v - uv, along_v - dot(v, v)};

    double s, t; /* the nearest point is p0 + s u + t v */
    double area_2 = on_u[0] * on_v[1] - on_u[1] * on_v[0];
    double area_1 = on_u[2] * on_v[0] - on_u[0] * on_v[2];
    double area_0 = on_u[1] * on_v[2] - on_u[2] * on_v[1];
    double from_1 = on_v[1] - on_u[1], from_2 = on_u[2] - on_v[2]; /* along the third side, from either end */

    /* Corners, sides, inside. */
    if (on_u[0] <= 0.0 && on_v[0] <= 0.0) {
        s = t = 0.0;
    } else if (on_u[1] >= 0.0 && from_1 <= 0.0) {
        s = 1.0;
        t = 0.0;
    } else if (on_v[2] >= 0.0 && from_2 <= 0.0) {
        s = 0.0;
        t = 1.0;
    } else if (area_2 <= 0.0 && on_u[0] >= 0.0 && on_u[1] <= 0.0) {
        s = on_u[0] / (on_u[0] - on_u[1]);
        t = 0.0;
    } else if (area_1 <= 0.0 && on_v[0] >= 0.0 && on_v[2] <= 0.0) {
        s = 0.0;
        t = on_v[0] / (on_v[0] - on_v[2]);
    } else if (area_0 <= 0.0 && from_1 >= 0.0 && from_2 >= 0.0) {
        t = from_1 / (from_1 + from_2);
        s = 1.0 - t;
    } else {
        double whole = area_0 + area_1 + area_2;
        s = area_1 / whole;
        t = area_2 / whole;
    }

    /* Needles: test each side. */
    if (!(s >= 0.0 && t >= 0.0 && s + t <= 1.0 + 1e-12))
        return sides_squared(p, x, nearest);
    for (int i = 0; i < 3; i++)
        nearest[i] = p[0][i] + s * u[i] + t * v[i];
    subtract(x, nearest, arm);
    return dot(arm, arm);
}

static inline double box_squared(const box_node *node, const double x[3])
{
    double sum = 0.0;
    for (int i = 0; i < 3; i++) {
        double below = node->low[i] - x[i], above = x[i] - node->high[i];
        double beyond = below > above ? below : above;
        beyond = beyond > 0.0 ? beyond : 0.0;
        sum += beyond * beyond;
    }
    return sum;
}

typedef struct nearest_piece {
    double squared; /* m2 */
    double point[3];
    size_t piece; /* SIZE_MAX: none within the bound */
} nearest_piece;

static inline void try_piece(const sk_mesh_distance *mesh, size_t piece, const double x[3], nearest_piece *best)
{
    const double(*p)[3] = (const double(*)[3])(mesh->corners + piece * (size_t)mesh->dimension);
    double point[3];
    double squared = mesh->dimension == 3 ? triangle_squared(p, x, point) : segment_squared(p[0], p[1], x, point);
    if (squared < best->squared || best->piece == SIZE_MAX) {
        best->squared = squared;
        best->piece = piece;
        memcpy(best->point, point, sizeof point);
    }
}

static void search(const sk_mesh_distance *mesh, const double x[3], nearest_piece *best)
{
    struct {
        uint32_t node;
        double squared;
    } stack[stack_limit];

    /* Start at the root; the stack holds nodes with their squared distance from x. */
    int height = 0;
    stack[height].node = 0;
    stack[height++].squared = box_squared(&mesh->nodes[0], x);
    while (height > 0) {
        height--;
        double to_node = stack[height].squared;
        uint32_t node = stack[height].node;

        /* Descends to a leaf, the nearer child first; pushes the other one unless it is too far. */
        while (to_node <= best->squared && mesh->nodes[node].count == 0) {
            uint32_t left = node + 1, right = mesh->nodes[node].first;
            double to_left = box_squared(&mesh->nodes[left], x), to_right = box_squared(&mesh->nodes[right], x);
            int left_first = to_left <= to_right;
            double later = left_first ? to_right : to_left;
            if (later <= best->squared) {
                stack[height].node = left_first ? right : left;
                stack[height++].squared = later;
            }
            node = left_first ? left : right;
            to_node = left_first ? to_left : to_right;
        }

        /* Try the pieces of the leaf unless a nearer one is known. */
        if (to_node <= best->squared)
            for (uint32_t i = 0; i < mesh->nodes[node].count; i++)
                try_piece(mesh, mesh->nodes[node].first + i, x, best);
    }
}

double sk_mesh_distance_unsigned(const sk_mesh_distance *mesh, const double x[3], size_t *hint)
{
    nearest_piece best = {INFINITY, {0.0, 0.0, 0.0}, SIZE_MAX};
    if (hint && *hint < mesh->piece_count)
        try_piece(mesh, *hint, x, &best);
    search(mesh, x, &best);
    if (hint)
        *hint = best.piece;
    return sqrt(best.squared);
}

/* --- Side --- */

/* Signed solid angle of a triangle over 4 pi (Van Oosterom and Strackee 1983), angle of a segment over 2 pi. */
static double piece_winding(const sk_mesh_distance *mesh, size_t piece, const double x[3])
{
    const double(*p)[3] = (const double(*)[3])(mesh->corners + piece * (size_t)mesh->dimension);
    double a[3], b[3], c[3], normal[3];
    subtract(p[0], x, a);
    subtract(p[1], x, b);
    if (mesh->dimension == 2)
        return atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1]) * (1.0 / 6.28318530717958647692);
    subtract(p[2], x, c);
    cross(b, c, normal);
    double la = sqrt(dot(a, a)), lb = sqrt(dot(b, b)), lc = sqrt(dot(c, c));
    double numerator = dot(a, normal);
    double denominator = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb;
    return atan2(numerator, denominator) * (1.0 / 6.28318530717958647692);
}

double sk_mesh_distance_winding(const sk_mesh_distance *mesh, const double x[3])
{
    uint32_t stack[stack_limit];
    int height = 0;
    double winding = 0.0;
    stack[height++] = 0;
    while (height > 0) {
        uint32_t node = stack[--height];
        const dipole *d = &mesh->dipoles[node];
        double arm[3];
        subtract(d->center, x, arm);
        double squared = dot(arm, arm);
        if (squared > far_radii * far_radii * d->radius * d->radius && squared > 0.0) {
            double over = mesh->dimension == 2 ? 6.28318530717958647692 * squared
                                               : 12.56637061435917295385 * squared * sqrt(squared);
            winding += dot(d->moment, arm) / over;
        } else if (mesh->nodes[node].count > 0) {
            for (uint32_t i = 0; i < mesh->nodes[node].count; i++)
                winding += piece_winding(mesh, mesh->nodes[node].first + i, x);
        } else {
            stack[height++] = mesh->nodes[node].first;
            stack[height++] = node + 1;
        }
    }
    return winding;
}

int sk_mesh_distance_inside(const sk_mesh_distance *mesh, const double x[3])
{
    /* No point outside the box is inside the mesh, open or not. */
    const box_node *root = &mesh->nodes[0];
    for (int i = 0; i < mesh->dimension; i++)
        if (x[i] < root->low[i] || x[i] > root->high[i])
            return 0;
    return fabs(sk_mesh_distance_winding(mesh, x)) > 0.5;
}

static int unit(double v[3])
{
    double largest = fmax(fabs(v[0]), fmax(fabs(v[1]), fabs(v[2])));
    if (!(largest > 0.0) || !isfinite(largest))
        return 0;
    for (int i = 0; i < 3; i++)
        v[i] /= largest;
    double length = sqrt(dot(v, v));
    for (int i = 0; i < 3; i++)
        v[i] /= length;
    return 1;
}

double sk_mesh_distance_signed(const sk_mesh_distance *mesh, const double x[3], double normal[3])
{
    nearest_piece best = {INFINITY, {0.0, 0.0, 0.0}, SIZE_MAX};
    search(mesh, x, &best);
    double distance = sqrt(best.squared);
    int inside = sk_mesh_distance_inside(mesh, x);
    if (normal) {
        /* On the surface the vector to the nearest point is rounding error: the piece's normal is used. */
        double scale = fabs(best.point[0]) + fabs(best.point[1]) + fabs(best.point[2]);
        int usable = 0;
        if (distance > 1e-12 * scale) {
            subtract(x, best.point, normal);
            usable = unit(normal);
            for (int i = 0; i < 3 && inside; i++)
                normal[i] = -normal[i];
        }
        if (!usable && best.piece != SIZE_MAX) {
            piece_moment(mesh, best.piece, normal);
            usable = unit(normal);
        }
        if (!usable) {
            normal[0] = normal[2] = 0.0;
            normal[1] = 1.0;
        }
    }
    return inside ? -distance : distance;
}

double sk_mesh_distance_within(const sk_mesh_distance *mesh, const double x[3], double radius, double normal[3])
{
    nearest_piece best = {radius * radius, {0.0, 0.0, 0.0}, SIZE_MAX};
    double front[3], arm[3];
    search(mesh, x, &best);
    if (best.piece == SIZE_MAX || best.squared > radius * radius)
        return INFINITY;
    piece_moment(mesh, best.piece, front);
    subtract(x, best.point, arm);
    /* Beside a convex edge the point lies before both pieces, so that either may decide. */
    const double sign = dot(arm, front) < 0.0 ? -1.0 : 1.0;
    if (normal) {
        memcpy(normal, arm, sizeof arm);
        if (!unit(normal)) {
            memcpy(normal, front, sizeof front);
            if (!unit(normal))
                normal[0] = 1.0;
            return 0.0;
        }
        for (int i = 0; i < 3; i++)
            normal[i] *= sign;
    }
    return sign * sqrt(best.squared);
}

/* --- First hit --- */

typedef struct segment_query {
    double a[3], way[3], inverse[3];
    double at; /* of the first hit so far */
    size_t piece;
} segment_query;

/* Does the segment up to the first hit so far pass through a node's box? The margin covers rounding. */
static int meets_box(const box_node *node, const segment_query *q)
{
    double enter = 0.0, leave = q->at;
    for (int i = 0; i < 3; i++) {
        const double margin = 1e-12 * (fabs(node->low[i]) + fabs(node->high[i]));
        if (q->way[i] == 0.0) {
            if (q->a[i] < node->low[i] - margin || q->a[i] > node->high[i] + margin)
                return 0;
            continue;
        }
        const double low = (node->low[i] - margin - q->a[i]) * q->inverse[i],
                     high = (node->high[i] + margin - q->a[i]) * q->inverse[i];
        const double first = low < high ? low : high, last = low < high ? high : low;
        enter = first > enter ? first : enter;
        leave = last < leave ? last : leave;
    }
    return enter <= leave;
}

/* A triangle: the segment pierces its plane at a point inside (Moeller and Trumbore 1997). A segment of an outline: the
 * same in the plane. The borders belong to the piece with a margin, so that nothing passes between two pieces. */
static void cross_piece(const sk_mesh_distance *mesh, size_t piece, segment_query *q)
{
    static const double margin = 1e-9;
    const double(*p)[3] = (const double(*)[3])(mesh->corners + piece * (size_t)mesh->dimension);
    double u[3], v[3], arm[3], normal[3], turned[3], s, t, over;
    subtract(p[1], p[0], u);
    subtract(q->a, p[0], arm);

    /* Return unless the line of the query passes through the piece. */
    if (mesh->dimension == 2) {
        over = u[0] * q->way[1] - u[1] * q->way[0];
        if (over == 0.0)
            return;
        s = (arm[0] * q->way[1] - arm[1] * q->way[0]) / over;
        if (!(s >= -margin && s <= 1.0 + margin))
            return;
        normal[0] = u[1];
        normal[1] = -u[0];
        normal[2] = 0.0;
    } else {
        subtract(p[2], p[0], v);
        cross(u, v, normal);
        over = dot(normal, q->way);
        if (over == 0.0)
            return;
        cross(arm, q->way, turned);
        s = -dot(v, turned) / over;
        t = dot(u, turned) / over;
        if (!(s >= -margin && t >= -margin && s + t <= 1.0 + margin))
            return;
    }

    /* Keep the first crossing along the query. */
    const double at = -dot(normal, arm) / dot(normal, q->way);
    if (at >= 0.0 && at <= q->at) {
        q->at = at;
        q->piece = piece;
    }
}

int sk_mesh_distance_first_hit(const sk_mesh_distance *mesh, const double a[3], const double b[3], double *at,
                               double normal[3])
{
    segment_query q = {.at = 1.0, .piece = SIZE_MAX};
    memcpy(q.a, a, sizeof q.a);
    subtract(b, a, q.way);
    for (int i = 0; i < 3; i++)
        q.inverse[i] = q.way[i] != 0.0 ? 1.0 / q.way[i] : 0.0;

    uint32_t stack[stack_limit];
    int height = 0;
    stack[height++] = 0;
    while (height > 0) {
        const uint32_t node = stack[--height];
        if (!meets_box(&mesh->nodes[node], &q))
            continue;
        for (uint32_t i = 0; i < mesh->nodes[node].count; i++)
            cross_piece(mesh, mesh->nodes[node].first + i, &q);
        if (mesh->nodes[node].count == 0) {
            stack[height++] = mesh->nodes[node].first;
            stack[height++] = node + 1;
        }
    }
    if (q.piece == SIZE_MAX)
        return 0;
    *at = q.at;
    piece_moment(mesh, q.piece, normal);
    if (!unit(normal))
        return 0;
    const int front = dot(normal, q.way) > 0.0 ? -1 : 1;
    for (int i = 0; i < 3; i++)
        normal[i] *= front;
    return front;
}

/* --- The rest --- */

int sk_mesh_distance_closed(const sk_mesh_distance *mesh)
{
    return mesh->closed;
}

void sk_mesh_distance_bounds(const sk_mesh_distance *mesh, double low[3], double high[3])
{
    memcpy(low, mesh->nodes[0].low, sizeof mesh->nodes[0].low);
    memcpy(high, mesh->nodes[0].high, sizeof mesh->nodes[0].high);
}

size_t sk_mesh_distance_piece_count(const sk_mesh_distance *mesh)
{
    return mesh->piece_count;
}

void sk_mesh_distance_piece(const sk_mesh_distance *mesh, size_t piece, double corners[3][3])
{
    memcpy(corners, mesh->corners[piece * (size_t)mesh->dimension], sizeof(double[3]) * (size_t)mesh->dimension);
}
