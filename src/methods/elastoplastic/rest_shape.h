/* Elastoplastic points with a rest shape, as a method: bonds between neighbours on the lattice of the start.
 *
 * Points lie on a lattice at rest. Its sites are kept in bricks of 8^dimension, so that the neighbours of a site are
 * known without lists. A brick is processed with a halo of one site. Arrays are [sites / lanes][components][lanes]:
 * what a halo needs of a site lies close together. Brick 0 is empty. The particles of the store move among each other;
 * `place` has the site of each by its id.
 *
 * A step has four phases. `stress`: positions to the sites, deformation, plastic flow and stress. `bonds`: forces of
 * the bonds. `touch`: forces between points without a bond that come closer than a spacing. `move`: velocities,
 * walls and obstacles, positions. rest_kernels.h has the formulas.
 *
 * Attributes of points: `rest_position` (m), `stress` (Pa, equivalent), `plastic_strain`, `plastic_volume` and, if
 * a material flows, `plastic_inverse` (inverse of the plastic part of the deformation, less 1, row-major).
 */
#ifndef SK_METHODS_REST_SHAPE_H
#define SK_METHODS_REST_SHAPE_H

#include "methods/elastoplastic/elastic_saved.h"
#include "methods/elastoplastic/lagging.h"

extern const sk_method sk_method_rest_shape;

/* Sites along x that are processed together: half a row of a brick, or all of it where registers hold as many. */
#if defined(__AVX2__)
#define SK_REST_LANES 8
#else
#define SK_REST_LANES 4
#endif

enum { SK_BRICK_LOG = 3, SK_BRICK_N = 1 << SK_BRICK_LOG, SK_BRICK_MASK = SK_BRICK_N - 1 };

typedef struct sk_rest_shape {
    sk_elastic_saved saved;
    int material_count, is_plastic;
    struct sk_elastic_material *materials; /* [material_count] */
    struct sk_rest_material *bonds_of;     /* [material_count] */
    double spacing;                        /* m  of the lattice */
    int is_laid;                           /* the lattice is that of the particles */
    int is_current;                        /* the sites hold the state and the flow of the particles */
    uint64_t placed_at;                    /* particles->moves when the sites got their positions; 0 = never */
    sk_lagging own;                        /* attributes of the points */

    /* The lattice. */
    uint32_t id_count; /* ids are below this */
    uint32_t *place;   /* [id_count] site of a point; 0 = none */
    int brick_count, brick_sites;
    int32_t (*around)[27]; /* [bricks] the 3^dimension bricks around, x fastest; 0 = empty */
    uint32_t *bonds;       /* [bricks][sites] bit n: bond of offset n; the middle one: there is a point */
    uint8_t *material;     /* [bricks][sites] */

    /* Values of points, [sites / lanes][components][lanes]. */
    float *position;     /* m     [dimension] */
    float *inverse;      /*       [dimension^2] of K */
    float *push;         /*       [dimension^2 + 1] sk_rest_push */
    float *flow;         /*       [dimension^2] plastic_inverse; NULL = nothing flows */
    float *state;        /*       [3] plastic_strain, plastic_volume, stress */
    float *acceleration; /* m/s2  [dimension] */

    /* Points that may touch without a bond: rows of neighbours, in the order of sites. */
    double reach_left;     /* m     that points may still move against each other; below 0 = the rows are old */
    double mean[3];        /* m/s   mean velocity at the last step */
    uint32_t *row_site;    /* [rows] */
    uint32_t *row_first;   /* [rows + 1] */
    uint32_t *row_members; /* sites */
    size_t row_count, row_capacity, first_capacity, member_capacity;
} sk_rest_shape;

static inline sk_rest_shape *sk_rest_shape_of(const sk_step *step)
{
    return sk_step_state(step, &sk_method_rest_shape);
}

/* Releases the lattice and the values of its sites. */
void sk_rest_release_sites(sk_step *step, sk_rest_shape *rest);

#define SK_REST_PHASES(dim)                                                                                            \
    selkie_code sk_rest_lay_##dim(sk_step *step, selkie_error *error);                                                 \
    selkie_code sk_rest_sort_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_rest_stress_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_rest_stress_plain_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_rest_bonds_##dim(sk_step *step, selkie_error *error);                                               \
    selkie_code sk_rest_bonds_plain_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_rest_touch_##dim(sk_step *step, selkie_error *error);                                               \
    selkie_code sk_rest_move_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_rest_move_plain_##dim(sk_step *step, selkie_error *error);

SK_REST_PHASES(2d)
SK_REST_PHASES(3d)

#endif
