/* Attributes that lag behind the cell sort.
 *
 * Points change cells in many steps, and the attributes of a method may be most of their bytes. The sort then moves the
 * records and what other methods add, and notes in which row each point's attributes lie. The phase that rewrites them
 * reads them there and writes the second copy in the new order. The order of the points is that of the full sort.
 */
#ifndef SK_METHODS_LAGGING_H
#define SK_METHODS_LAGGING_H

#include "methods/method.h"

/* Entries of the order beyond the last that may be read. */
enum { SK_LAGGING_BEYOND = 2 * SK_PARTICLES_BEYOND };

typedef struct sk_lagging {
    int count;
    const char *const *names; /* [count] of the attributes */
    int lags;
    uint32_t *order;    /* [particles] rows of the attributes, while they lag; then more that may be read */
    uint32_t *identity; /* [particles] 0, 1, 2 .. */
    size_t order_capacity, identity_capacity, counted;
} sk_lagging;

/* Sorts the attributes as the records are, if they lag. */
void sk_lagging_settle(sk_step *step, sk_lagging *lagging);
/* Exchanges the copies of the attributes, and nothing lags. */
void sk_lagging_swap(sk_step *step, sk_lagging *lagging);
void sk_lagging_release(sk_step *step, sk_lagging *lagging);

/* The phase `sort`. */
selkie_code sk_lagging_sort_2d(sk_step *step, sk_lagging *lagging, selkie_error *error);
selkie_code sk_lagging_sort_3d(sk_step *step, sk_lagging *lagging, selkie_error *error);

#endif
