/* Private data behind sk_sph_boundary; for files of this folder. */
#ifndef SK_METHODS_SPH_WALLS_H
#define SK_METHODS_SPH_WALLS_H

#include "methods/sph/boundary.h"
#include "methods/sph/sph_kernels.h"

typedef struct wall_part {
    size_t first, count;
    int obstacle, body; /* -1: none; both: the domain's walls */
    int moves, no_slip;
    double slip_length, friction; /* m, 1  of an obstacle or body; sides have their own */
    int wants_force;              /* a probe measures it */
} wall_part;

typedef struct sk_sph_walls {
    int part_count;
    wall_part *parts;
    sk_sph_body *bodies;          /* [part_count] */
    size_t count, local_capacity; /* boundary particles, part after part */
    float (*local)[3];            /* m  in the part's own frame */
    float *volume;
    sk_boundary_particle *unsorted, *sorted;
    uint64_t *places; /* key of the block; SK_NO_BLOCK outside */
    uint16_t *cells;
    sk_block_list blocks; /* blocks with boundary particles */
    uint32_t *cell_start;
    size_t cell_capacity;
    int moving, placed;
    /* The forces of the parts are impulses over the length of the step. Times this they are forces. */
    double force_share;

    sk_sph_contact *contacts;
    size_t contact_capacity;
    uint32_t *block_contacts; /* [particle_blocks + 1] */
    size_t block_capacity;
    float *body_term;
    size_t term_capacity;
} sk_sph_walls;

/* The sides whose sheets may reach particles of a block. */
SK_KERNEL int sk_sph_sides_near(const sk_sph *sph, const sk_grid *grid, int block, double reach,
                                const sk_sph_side *near[6])
{
    const double size = grid->cell_size * (1 << grid->block_log);
    int count = 0;
    for (int s = 0; s < sph->boundary.side_count; s++) {
        const sk_sph_side *side = &sph->boundary.sides[s];
        double low = grid->corner[side->axis] + grid->coordinates[block][side->axis] * size;
        double distance = side->inward > 0.0f ? low - side->sheet : side->sheet - (low + size);
        if (distance < reach)
            near[count++] = side;
    }
    return count;
}

/* A particle's distance to a sheet over the reach, at least 0.25, where the sheet pushes most strongly: a particle
 * behind a wall must be pushed back. */
SK_KERNEL float sk_sph_side_distance(const sk_sph_side *side, const float x[3], float inverse_reach)
{
    float q = side->inward * (x[side->axis] - side->sheet) * inverse_reach;
    return q > 0.25f ? q : 0.25f;
}

/* The contribution of the sheets of some sides to a particle. Returns the density ratio; gradient[s] is along the axis
 * of each side, in units of 1 / spacing. Sheets overlap in edges and corners: D = sum f - edge sum f f + corner f f f.
 */
SK_KERNEL float sk_sph_add_sides(const sk_sph *sph, int count, const sk_sph_side *const sides[6], const float x[3],
                                 float gradient[6])
{
    const float inverse_reach = (float)(1.0 / sph->sheet.reach), weight = (float)sph->sheet.weight;
    const float steepness = weight * (float)(sph->spacing / sph->sheet.reach), edge = (float)sph->edge,
                corner = (float)sph->corner;
    float value[6] = {0, 0, 0, 0, 0, 0}, sum = 0.0f, all = 0.0f, pairs = 0.0f;
    for (int s = 0; s < count; s++) {
        float q = sk_sph_side_distance(sides[s], x, inverse_reach);
        value[s] = weight * sk_sph_sheet(q);
        gradient[s] = q < 1.0f ? steepness * sk_sph_sheet_slope(q) * sides[s]->inward : 0.0f;
        all += pairs * value[s];
        pairs += sum * value[s];
        sum += value[s];
    }
    if (pairs > 0.0f)
        for (int s = 0; s < count; s++) {
            float others = sum - value[s], other_pairs = pairs - value[s] * others;
            gradient[s] *= 1.0f - edge * others + corner * other_pairs;
        }
    return sum - edge * pairs + corner * all;
}

#endif
