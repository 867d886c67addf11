/* The source's way from vortex sheets to modes: velocities of the panels on the cells, through a quadtree, which are
 * then projected (Gerszewski, ch. 5.3.4). The reference for the integrals over panels that the method uses.
 *
 * A node of the tree is a rectangle of cells. If the velocity of a panel changes by less than a threshold within it,
 * all of its cells take the velocity at the centre. The change is read from a table by the level of the node and its
 * distance from the panel (Eq. 5.19).
 */
#ifndef SK_METHODS_REDUCED_QUADTREE_H
#define SK_METHODS_REDUCED_QUADTREE_H

#include "methods/reduced/coupling.h"

enum { SK_QUADTREE_LEVELS = 16, SK_QUADTREE_BINS = 64 };

typedef struct sk_quadtree {
    int cells[2];
    double size[2];                                     /* m   of the box */
    double length;                                      /* m   of the panel that the table is for */
    double bin;                                         /* m   between distances of the table */
    int levels;                                         /*     the last one is that of the leaves */
    double error[SK_QUADTREE_LEVELS][SK_QUADTREE_BINS]; /* m/s for a strength of 1 m/s */
} sk_quadtree;

/* The table of errors. `length`: mean length of the panels, m. */
void sk_quadtree_make(sk_quadtree *tree, const int cells[2], const double size[2], double length);

/* Adds the velocities (m/s) of all panels, and of the nearest images of bodies at walls, to a field at the midpoints,
 * with a weight for each body. `threshold`: largest change of a panel's velocity within a node, over its strength;
 * below 0 every cell is evaluated. Returns the number of evaluations. */
long sk_quadtree_add(const sk_quadtree *tree, const sk_coupling *coupling, const double *weight, double threshold,
                     double *const field[2]);

#endif
