/* The tree is a heap of nodes over one array of points. Node n halves its range at the median along the longest side
 * of its bounding box, down to leaves of a few points. Each node stores the bounding box of its points, for pruning,
 * and the number of points left below it. Taking a point moves the last remaining point of the leaf into its place. */
#include "particles/kd_tree.h"

#include <float.h>
#include <string.h>

#include "base/status.h"

enum {
    leaf_points = 8,       /* at most */
    task_points = 1 << 14, /* smaller ranges are not worth a task */
    stack_size = 64        /* levels of a tree of 2^32 points, with a margin */
};

typedef struct kd_node {
    float low[3], high[3]; /* m  box of the points, including taken ones */
    uint32_t begin;        /*    first point */
    uint32_t left;         /*    points that have not been taken */
} kd_node;

struct sk_kd_tree {
    sk_memory *memory;
    int levels; /* of inner nodes; leaves are the nodes 2^levels - 1 and up */
    size_t node_count;
    kd_node *nodes;
    sk_kd_point *points;
};

/* A total order along an axis: the id decides between equal coordinates. */
static inline int before(const sk_kd_point *a, const sk_kd_point *b, int axis)
{
    return a->position[axis] < b->position[axis] || (a->position[axis] == b->position[axis] && a->id < b->id);
}

static inline void exchange(sk_kd_point *a, sk_kd_point *b)
{
    sk_kd_point c = *a;
    *a = *b;
    *b = c;
}

/* Partitions the points at the `middle`-th one along the axis (Hoare's selection, pivot by the median of three). */
static void select_median(sk_kd_point *points, size_t count, size_t middle, int axis)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        /* Sort the first, middle and last point. The middle one is the pivot. */
        size_t half = low + (high - low) / 2;
        if (before(&points[half], &points[low], axis))
            exchange(&points[half], &points[low]);
        if (before(&points[high], &points[low], axis))
            exchange(&points[high], &points[low]);
        if (before(&points[high], &points[half], axis))
            exchange(&points[high], &points[half]);

        /* Exchange pairs of points that are on the wrong side of the pivot. */
        sk_kd_point pivot = points[half];
        size_t i = low, j = high;
        for (;;) {
            while (before(&points[i], &pivot, axis))
                i++;
            while (before(&pivot, &points[j], axis))
                j--;
            if (i >= j)
                break;
            exchange(&points[i++], &points[j--]);
        }

        /* Points up to j are at most the pivot, points from i on at least. A point between the two equals the pivot. */
        if (i == j) {
            if (middle == i)
                return;
            i++;
            j--;
        }
        if (middle <= j)
            high = j;
        else
            low = i;
    }
}

static void build(sk_kd_tree *tree, size_t node_index, size_t begin, size_t count, int levels)
{
    kd_node *node = &tree->nodes[node_index];
    node->begin = (uint32_t)begin;
    node->left = (uint32_t)count;
    sk_kd_point *points = tree->points + begin;

    /* Bounding box of the points. */
    for (int d = 0; d < 3; d++) {
        node->low[d] = FLT_MAX;
        node->high[d] = -FLT_MAX;
    }
    for (size_t p = 0; p < count; p++)
        for (int d = 0; d < 3; d++) {
            float x = points[p].position[d];
            node->low[d] = x < node->low[d] ? x : node->low[d];
            node->high[d] = x > node->high[d] ? x : node->high[d];
        }
    if (levels == 0)
        return;

    /* Split at the median of the longest axis. */
    int axis = 0;
    for (int d = 1; d < 3; d++)
        if (node->high[d] - node->low[d] > node->high[axis] - node->low[axis])
            axis = d;
    size_t half = count / 2;
    if (half)
        select_median(points, count, half, axis);

    /* Build the children, large ones as tasks. */
    int worth_it = count > task_points;
#pragma omp task if (worth_it)
    build(tree, 2 * node_index + 1, begin, half, levels - 1);
    build(tree, 2 * node_index + 2, begin + half, count - half, levels - 1);
#pragma omp taskwait
}

selkie_code sk_kd_tree_create(size_t count, const sk_kd_point *points, int threads, const char *what, sk_memory *memory,
                              sk_kd_tree **out, selkie_error *error)
{
    *out = NULL;
    if (count > UINT32_MAX / 2)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: %zu points to search; at most %u", what, count, UINT32_MAX / 2);
    int levels = 0;
    while (count >> levels > leaf_points)
        levels++;
    sk_kd_tree *tree = sk_allocate_zeroed(memory, sizeof *tree);
    if (tree) {
        tree->memory = memory;
        tree->levels = levels;
        tree->node_count = ((size_t)2 << levels) - 1;
        tree->nodes = sk_allocate(memory, tree->node_count * sizeof *tree->nodes);
        tree->points = sk_allocate(memory, (count + 1) * sizeof *tree->points);
    }
    if (!tree || !tree->nodes || !tree->points) {
        sk_kd_tree_destroy(tree);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory to search %zu points", what, count);
    }
    if (count)
        memcpy(tree->points, points, count * sizeof *points);
#pragma omp parallel num_threads(threads > 0 ? threads : 1) if (count > task_points)
#pragma omp single
    build(tree, 0, 0, count, levels);
    *out = tree;
    return SELKIE_OK;
}

void sk_kd_tree_destroy(sk_kd_tree *tree)
{
    if (!tree)
        return;
    sk_release(tree->memory, tree->nodes);
    sk_release(tree->memory, tree->points);
    sk_release(tree->memory, tree);
}

size_t sk_kd_tree_count(const sk_kd_tree *tree)
{
    return tree->nodes[0].left;
}

/* --- Search --- */

static inline float box_distance2(const kd_node *node, const float x[3])
{
    float sum = 0.0f;
    for (int d = 0; d < 3; d++) {
        float below = node->low[d] - x[d], above = x[d] - node->high[d];
        float off = below > above ? below : above;
        off = off > 0.0f ? off : 0.0f;
        sum += off * off;
    }
    return sum;
}

static inline float point_distance2(const sk_kd_point *point, const float x[3])
{
    float sum = 0.0f;
    for (int d = 0; d < 3; d++) {
        float off = point->position[d] - x[d];
        sum += off * off;
    }
    return sum;
}

typedef struct kd_found {
    float distance2; /* m2 */
    size_t leaf;     /* node */
    size_t place;    /* in the array of points */
} kd_found;

/* Branch and bound, nearer child first. Both distances round the same way, so that a box is never farther than a point
 * in it: subtraction, squaring and summing in one order are monotonic. */
static int find(const sk_kd_tree *tree, const float x[3], kd_found *found)
{
    struct {
        size_t node;
        float distance2;
    } stack[stack_size];
    int depth = 0;
    size_t first_leaf = ((size_t)1 << tree->levels) - 1;
    uint32_t best_id = UINT32_MAX;
    found->distance2 = FLT_MAX;
    found->leaf = SIZE_MAX;

    /* Start at the root. */
    if (!tree->nodes[0].left)
        return 0;
    stack[depth].node = 0;
    stack[depth++].distance2 = 0.0f;

    /* Visit the boxes on the stack, unless a nearer point was found meanwhile. */
    while (depth) {
        size_t n = stack[--depth].node;
        if (stack[depth].distance2 > found->distance2)
            continue;

        /* Descend into the nearer child. The farther child goes onto the stack. */
        while (n < first_leaf) {
            size_t near = 2 * n + 1, far = near + 1;
            const kd_node *a = &tree->nodes[near], *b = &tree->nodes[far];
            float near2 = a->left ? box_distance2(a, x) : FLT_MAX, far2 = b->left ? box_distance2(b, x) : FLT_MAX;
            if (far2 < near2 || !a->left) {
                size_t node = near;
                float distance2 = near2;
                near = far;
                near2 = far2;
                far = node;
                far2 = distance2;
            }
            if (tree->nodes[far].left && far2 <= found->distance2) {
                stack[depth].node = far;
                stack[depth++].distance2 = far2;
            }
            n = near;
            if (near2 > found->distance2)
                break;
        }
        if (n < first_leaf)
            continue;

        /* Compare the points of the leaf. The smallest id wins among equally near ones. */
        const kd_node *leaf = &tree->nodes[n];
        for (size_t p = leaf->begin; p < (size_t)leaf->begin + leaf->left; p++) {
            float distance2 = point_distance2(&tree->points[p], x);
            if (distance2 < found->distance2 ||
                (distance2 == found->distance2 && (found->leaf == SIZE_MAX || tree->points[p].id < best_id))) {
                found->distance2 = distance2;
                found->leaf = n;
                found->place = p;
                best_id = tree->points[p].id;
            }
        }
    }
    return found->leaf != SIZE_MAX;
}

int sk_kd_tree_nearest(const sk_kd_tree *tree, const float x[3], sk_kd_point *nearest)
{
    kd_found found;
    if (!find(tree, x, &found))
        return 0;
    *nearest = tree->points[found.place];
    return 1;
}

int sk_kd_tree_take(sk_kd_tree *tree, const float x[3], sk_kd_point *nearest)
{
    kd_found found;
    if (!find(tree, x, &found))
        return 0;
    *nearest = tree->points[found.place];
    const kd_node *leaf = &tree->nodes[found.leaf];
    tree->points[found.place] = tree->points[(size_t)leaf->begin + leaf->left - 1];
    for (size_t n = found.leaf;; n = (n - 1) / 2) {
        tree->nodes[n].left--;
        if (n == 0)
            break;
    }
    return 1;
}
