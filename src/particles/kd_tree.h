/* A k-d tree of points (Bentley 1975) for the nearest point, from which points can be taken.
 *
 * The smaller id decides between equal distances. Results depend on the points alone: not on their order, not on the
 * number of threads that built the tree. A point that was taken is never found again, and empty branches are skipped.
 * The caller selects the points, for example by a box or a role.
 */
#ifndef SK_PARTICLES_KD_TREE_H
#define SK_PARTICLES_KD_TREE_H

#include <stddef.h>
#include <stdint.h>
#include "base/memory.h"

typedef struct sk_kd_point {
    float position[3]; /* m; equal third coordinates make a tree of a plane */
    uint32_t id;       /* decides between equal distances; unique */
    uint32_t index;    /* the caller's own */
} sk_kd_point;

typedef struct sk_kd_tree sk_kd_tree;

/* Copies the points, whose coordinates must be finite. */
selkie_code sk_kd_tree_create(size_t count, const sk_kd_point *points, int threads, const char *what, sk_memory *memory,
                              sk_kd_tree **tree, selkie_error *error);
void sk_kd_tree_destroy(sk_kd_tree *tree);

/* How many points are left. */
size_t sk_kd_tree_count(const sk_kd_tree *tree);
/* The nearest point that is left; 0 if there is none. */
int sk_kd_tree_nearest(const sk_kd_tree *tree, const float x[3], sk_kd_point *nearest);
/* The same, and takes it out. */
int sk_kd_tree_take(sk_kd_tree *tree, const float x[3], sk_kd_point *nearest);

#endif
