/* Modes of a box with obstacles: eigenvectors of the discrete Laplacian of the stream function, by ARPACK.
 *
 * The stream function lives on the nodes of the cells. It is 0 on the walls and on solids that touch them, and one
 * unknown constant on each other solid (an island), such that the circulation around it is 0. Then the operator on the
 * free nodes is symmetric, and its inverse is a banded Cholesky solve with one correction for each island.
 */
#ifndef SK_METHODS_REDUCED_DOMAIN_H
#define SK_METHODS_REDUCED_DOMAIN_H

#include <stdint.h>
#include "base/memory.h"
#include "base/status.h"

typedef struct sk_domain {
    sk_memory *memory;
    int nodes[2]; /*      inner nodes along x and y */
    int turned;   /*      y is the long axis: the band follows x */
    int count, band;
    int32_t *kind;    /* [count] 0 = free, -1 = fixed to 0, s = island s from 1 on */
    int island_count; /*      */
    double *factor;   /* [count][band + 1] lower Cholesky factor of the free nodes; identity on others */
    double *edges;    /* [islands][count] number of links from a node to the island */
    double *answers;  /* [islands][count] the inverse times these */
    double *coupling; /* [islands][islands] inverse of the islands' own system */
    double *links;    /* [islands] links of an island */
} sk_domain;

/* Is this build able to find eigenvectors? */
int sk_domain_available(void);
/* The error of a build that is not. */
selkie_code sk_domain_missing(selkie_error *error);

/* `solid` has a byte for each inner node, [nodes[0]][nodes[1]]. */
selkie_code sk_domain_make(sk_domain *domain, const int nodes[2], const unsigned char *solid, sk_memory *memory,
                           selkie_error *error);
void sk_domain_free(sk_domain *domain);
/* The inverse of the operator, in units of a cell. Entries of nodes that are not free are 0. */
void sk_domain_solve(const sk_domain *domain, const double *from, double *to);
/* Values of the free nodes from a grid [nodes[0]][nodes[1]], by their numbers; 0 for others. */
void sk_domain_gather(const sk_domain *domain, const double *grid, double *vector);
/* The way back, times a scale. `islands`: those of a stream function, otherwise 0. */
void sk_domain_spread(const sk_domain *domain, const double *vector, double scale, int islands, double *grid);
/* The `modes` smallest eigenvalues (in units of a cell), and stream functions of unit energy with the islands' values:
 * psi[mode][nodes[0]][nodes[1]]. */
selkie_code sk_domain_modes(const sk_domain *domain, int modes, double *lambda, double *psi, selkie_error *error);

#endif
