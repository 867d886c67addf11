/* The limit of a FLIP particle's velocity beside a no-slip surface: see wall_layer_dim.c. */
#ifndef SK_METHODS_FLIP_WALL_LAYER_KERNELS_H
#define SK_METHODS_FLIP_WALL_LAYER_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/sampler_kernels.h"

/* Component d of a velocity (m/s), within the range of the known nodes around a position (cells, from the piece's
 * corner). */
SK_KERNEL float sk_within_nodes(const sk_velocity_piece *piece, int d, const float position[3], float velocity)
{
    int steps[3], known = 0;
    float weight[3], least = 0.0f, most = 0.0f;
    const int base = sk_locate(piece, d, position, SELKIE_DIM, steps, weight);
    for (int corner = 0; corner < 1 << SELKIE_DIM; corner++) {
        int node = base;
        for (int e = 0; e < SELKIE_DIM; e++)
            node += corner >> e & 1 ? steps[e] : 0;
        const float value = piece->component[d][node];
        if (value != value)
            continue;
        least = !known || value < least ? value : least;
        most = !known || value > most ? value : most;
        known = 1;
    }
    if (!known)
        return velocity;
    return velocity < least ? least : velocity > most ? most : velocity;
}

#endif
