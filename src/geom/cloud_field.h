/* Density and velocity of a cloud of particles as fields that can be sampled anywhere.
 *
 * Particles give their weight and velocity to sparse nodes by quadratic B-splines (surface_sums.c); samples are linear
 * between nodes. Density is relative to that of the liquid at rest: 1 in the bulk, 0.5 at a flat surface. Walls mirror
 * the liquid.
 *
 * A block keeps 9 x 9 x 9 nodes: its own 8 x 8 x 8 and the first ones of the blocks behind it. The eight nodes around a
 * point so lie in one block, and a sample needs one look into the table of blocks.
 */
#ifndef SK_GEOM_CLOUD_FIELD_H
#define SK_GEOM_CLOUD_FIELD_H

#include <string.h>
#include "base/simd.h"
#include "geom/surface.h"

enum {
    SK_CLOUD_BLOCK_LOG = 3,
    SK_CLOUD_BLOCK_MASK = 7,
    SK_CLOUD_SIDE = 9, /* nodes of a block along an axis */
    SK_CLOUD_NODES = SK_CLOUD_SIDE * SK_CLOUD_SIDE * SK_CLOUD_SIDE
};

typedef struct sk_cloud_field {
    float offset[3], inverse[3]; /* node coordinates: x times inverse plus offset */
    float last[3];               /* largest node coordinates; the least are 1 */
    int blocks[3];
    size_t block_count; /* of nodes */
    int32_t *table;     /* [blocks] of the container: block of nodes, -1 = none */
    f4 *nodes;          /* [blocks of nodes][SK_CLOUD_NODES] density, density times velocity (m/s) */
    int32_t *touched;   /* [block_count] block of contacts, -1 = none; NULL = all of them */
    f4 *contacts;       /* [touched blocks][SK_CLOUD_NODES] normal, density times clash (m/s) */
    uint64_t (*lively)[SK_CLOUD_BLOCK_MASK + 1]; /* [touched blocks][z] a bit a cell between nodes, see below */
} sk_cloud_field;

/* A cell between nodes is lively if a point in it may have a normal of this length, or a clash of this part of the
 * speed that contacts are kept for. Most of the liquid is not, and need not be sampled. */
#define SK_CLOUD_LEAST_NORMAL 0.25f
#define SK_CLOUD_LEAST_CLASH 0.25f

/* How the liquid meets the air and itself. */
typedef struct sk_cloud_contact {
    float normal[3]; /*     decrease of the density over two nodes: outward */
    float clash;     /* m/s spread of the velocities, times 1 to 2 where they converge, times 0 to 1 where they part */
} sk_cloud_contact;

/* Nodes are voxel_size apart. Contacts are kept near particles faster than `contact_speed` (m/s); INFINITY = none. */
selkie_code sk_cloud_field_create(const sk_surface_particles *particles, const sk_surface_options *options,
                                  double contact_speed, sk_cloud_field **field, selkie_error *error);
void sk_cloud_field_destroy(sk_cloud_field *field);

/* --- Samples: inlined, because one is a few dozen instructions ---
 * Points are in the coordinates of the particles (m). Beyond the walls the field is as at the walls. */

/* Where a point lies: block, first of its eight nodes, and its place between them. */
typedef struct sk_cloud_place {
    int32_t block;
    int first;
    int cell[3]; /* in the block */
    float part[3];
} sk_cloud_place;

SK_VECTOR sk_cloud_place sk_cloud_field_place(const sk_cloud_field *f, const float x[3])
{
    sk_cloud_place p;
    int base[3], block[3];
    for (int a = 0; a < 3; ++a) {
        float at = x[a] * f->inverse[a] + f->offset[a];
        at = at > 1.0f ? at : 1.0f; /* not a number: 1 */
        at = at < f->last[a] ? at : f->last[a];
        base[a] = (int)at;
        block[a] = base[a] >> SK_CLOUD_BLOCK_LOG;
        p.cell[a] = base[a] & SK_CLOUD_BLOCK_MASK;
        p.part[a] = at - (float)base[a];
    }
    p.block = f->table[(size_t)block[0] + (size_t)f->blocks[0] * (size_t)(block[1] + (int64_t)f->blocks[1] * block[2])];
    p.first = p.cell[0] + SK_CLOUD_SIDE * (p.cell[1] + SK_CLOUD_SIDE * p.cell[2]);
    return p;
}

SK_VECTOR f4 sk_cloud_between(const f4 *nodes, const float part[3])
{
    f4 row[4];
    for (int n = 0; n < 4; ++n) {
        const f4 *at = nodes + SK_CLOUD_SIDE * ((n & 1) + SK_CLOUD_SIDE * (n >> 1));
        row[n] = at[0] + part[0] * (at[1] - at[0]);
    }
    const f4 low = row[0] + part[1] * (row[1] - row[0]), high = row[2] + part[1] * (row[3] - row[2]);
    return low + part[2] * (high - low);
}

/* Density, relative to the bulk, and density times velocity (m/s). */
SK_VECTOR f4 sk_cloud_field_at(const sk_cloud_field *f, const sk_cloud_place *p)
{
    return sk_cloud_between(f->nodes + (size_t)p->block * SK_CLOUD_NODES + p->first, p->part);
}

/* Is the cell of the place lively? */
SK_VECTOR int sk_cloud_field_is_lively(const sk_cloud_field *f, const sk_cloud_place *p)
{
    const int32_t block = f->touched ? f->touched[p->block] : -1;
    return block >= 0 && f->lively[block][p->cell[2]] >> (p->cell[0] + (p->cell[1] << SK_CLOUD_BLOCK_LOG)) & 1;
}

/* Returns the density. Without contacts near the point, `contact` is 0. */
SK_VECTOR float sk_cloud_field_contact(const sk_cloud_field *f, const sk_cloud_place *p, sk_cloud_contact *contact)
{
    memset(contact, 0, sizeof *contact);
    const float density = sk_cloud_field_at(f, p)[0];
    if (!f->touched || f->touched[p->block] < 0)
        return density;
    const f4 sum = sk_cloud_between(f->contacts + (size_t)f->touched[p->block] * SK_CLOUD_NODES + p->first, p->part);
    for (int a = 0; a < 3; ++a)
        contact->normal[a] = sum[a];
    contact->clash = density > 1e-7f ? sum[3] / density : 0.0f;
    return density;
}

#endif
