/* Regions of bodies of particles: the whole body, and overlapping clusters for large deformations. */
#include <math.h>

#include "methods/shape_matching/shape_matching.h"

/* A lattice of clusters. Each reaches to the centres of its neighbours. */
typedef struct cluster_lattice {
    double low[3], size; /* m */
    int count[3];
} cluster_lattice;

static void find_lattice(const sk_step *step, const sk_soft_body *body, const sk_particle *records,
                         cluster_lattice *lattice)
{
    double high[3] = {0.0, 0.0, 0.0}, longest = 0.0;
    for (int d = 0; d < 3; d++) {
        lattice->low[d] = INFINITY;
        high[d] = -INFINITY;
    }
    for (uint32_t k = 0; k < body->count; k++)
        for (int d = 0; d < 3; d++) {
            lattice->low[d] = fmin(lattice->low[d], (double)records[body->first + k].position[d]);
            high[d] = fmax(high[d], (double)records[body->first + k].position[d]);
        }
    for (int d = 0; d < step->dimension; d++)
        longest = fmax(longest, high[d] - lattice->low[d]);
    lattice->size = fmax(longest / body->soft.clusters, 1e-30);
    for (int d = 0; d < 3; d++)
        lattice->count[d] =
            d < step->dimension ? (int)fmax(1.0, nearbyint((high[d] - lattice->low[d]) / lattice->size)) : 1;
}

/* Is a position in cluster n of the lattice? */
static int is_member(const cluster_lattice *lattice, int n, const float position[3])
{
    const int at[3] = {n % lattice->count[0], n / lattice->count[0] % lattice->count[1],
                       n / lattice->count[0] / lattice->count[1]};
    int inside = 1;
    for (int d = 0; d < 3; d++)
        inside &= lattice->count[d] == 1 ||
                  fabs((double)position[d] - lattice->low[d] - (at[d] + 0.5) * lattice->size) <= lattice->size;
    return inside;
}

/* Counts the regions and members of a body, or writes them if there is room. */
static void list_body(const sk_step *step, sk_soft *soft, int b, const sk_particle *records, size_t *members)
{
    const sk_soft_body *body = &soft->bodies[b];
    sk_soft_region *regions = soft->regions;
    cluster_lattice lattice;
    if (regions)
        regions[soft->region_count] = (sk_soft_region){
            .body = b, .is_frame = body->soft.clusters > 1, .first = body->first, .count = body->count};
    soft->region_count++;
    if (body->soft.clusters <= 1)
        return;
    find_lattice(step, body, records, &lattice);
    for (int n = 0; n < lattice.count[0] * lattice.count[1] * lattice.count[2]; n++) {
        const size_t first = *members;
        for (uint32_t k = body->first; k < body->first + body->count; k++)
            if (is_member(&lattice, n, records[k].position)) {
                if (regions) {
                    soft->members[*members] = k;
                    soft->shares[k] += 1.0f;
                }
                (*members)++;
            }
        if (regions)
            regions[soft->region_count] = (sk_soft_region){
                .body = b, .members = soft->members, .first = (uint32_t)first, .count = (uint32_t)(*members - first)};
        soft->region_count++;
    }
}

selkie_code sk_soft_make_regions(sk_step *step, const sk_particle *records, selkie_error *error)
{
    sk_soft *soft = step->soft;
    for (int pass = 0; pass < 2; pass++) {
        size_t members = 0;
        soft->region_count = 0;
        for (int b = 0; b < soft->body_count; b++)
            list_body(step, soft, b, records, &members);
        if (pass == 1)
            break;
        soft->regions = sk_allocate_zeroed(step->memory, ((size_t)soft->region_count + 1) * sizeof *soft->regions);
        soft->members = sk_allocate_zeroed(step->memory, (members + 1) * sizeof *soft->members);
        soft->shares = sk_allocate_zeroed(step->memory, ((size_t)soft->point_count + 1) * sizeof *soft->shares);
        if (!soft->regions || !soft->members || !soft->shares)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %zu members of clusters", members);
    }
    for (uint32_t k = 0; k < soft->point_count; k++)
        soft->shares[k] = soft->shares[k] > 0.0f ? 1.0f / soft->shares[k] : 1.0f;
    return SELKIE_OK;
}
