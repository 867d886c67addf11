/* The material point method: elastoplastic points whose forces act on the nodes of a grid.
 *
 * A step has three phases. `to_grid`: plastic flow and stress of each point, momentum and mass to the nodes.
 * `nodes`: velocities of the nodes, gravity, walls and obstacles. `to_points`: velocity and its gradient back to the
 * points, their deformation and their move. mpm_kernels.h has the formulas, elastic_kernels.h the laws of materials.
 *
 * Points of a block add to a tile of the block's own: its nodes and a halo of one. A node then adds up the tiles that
 * hold it in the order of the blocks, so that results do not depend on threads.
 *
 * Attributes lag behind the sort (lagging.h): `to_grid` and `to_points` write them in the new order.
 *
 * Attributes of points: `deformation` (F - 1 of the elastic deformation gradient F, row-major: new points are at rest),
 * `velocity_gradient` (1/s), `plastic_strain`, `plastic_volume` (see sk_plastic_state), `stress` (Pa, equivalent).
 */
#ifndef SK_METHODS_MPM_H
#define SK_METHODS_MPM_H

#include "methods/elastoplastic/elastic_saved.h"
#include "methods/elastoplastic/lagging.h"

extern const sk_method sk_method_mpm;

typedef sk_elastic_saved sk_mpm_saved; /* the name in the GPU's code */

enum { SK_MPM_LEVELS = 65 }; /* of temperature, where a scene has heat: from softens_from to softens_to */

typedef struct sk_mpm {
    sk_elastic_saved saved;
    int material_count, levels;
    struct sk_elastic_material *materials; /* [material_count][levels] */
    float (*tiles)[4];                     /* [particle blocks][tile nodes] momentum and mass of a block's points */
    float (*nodes)[4];                     /* [blocks][cells] velocity (m/s) and mass, over the mass of a point */
    size_t tile_capacity, node_capacity;
    sk_lagging own; /* attributes (sk_mpm_own) */
} sk_mpm;

/* Attributes that mpm adds to the points. */
enum { SK_MPM_OWN = 5 };
extern const char *const sk_mpm_own[SK_MPM_OWN];

static inline sk_mpm *sk_mpm_of(const sk_step *step)
{
    return (sk_mpm *)sk_step_state(step, &sk_method_mpm);
}

#define SK_MPM_PHASES(dim)                                                                                             \
    selkie_code sk_mpm_sort_##dim(sk_step *step, selkie_error *error);                                                 \
    selkie_code sk_mpm_to_grid_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_mpm_to_grid_plain_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_mpm_nodes_##dim(sk_step *step, selkie_error *error);                                                \
    /* What walls and obstacles do to the velocities of the nodes; sk_mpm_nodes does it too. */                        \
    void sk_mpm_touch_##dim(sk_step *step);                                                                            \
    selkie_code sk_mpm_to_points_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_mpm_to_points_plain_##dim(sk_step *step, selkie_error *error);

SK_MPM_PHASES(2d)
SK_MPM_PHASES(3d)

#endif
