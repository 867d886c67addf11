/* Viscosity at no-slip walls, obstacles and bodies.
 *
 * A boundary particle stands as far behind the surface as a particle of liquid before it; the velocity that makes the
 * surface's own in the middle between them is 2 v_wall - v (Takeda et al. 1994), so that the difference to it is twice
 * that to the wall. With Morris et al. (1997) the particle's velocity changes by dv = 2 nu t sum_b V_b x.gradW / (r^2 +
 * 0.01 H^2) 2 (v - v_b) =: -c (v - u), scaled such that a flat wall drags as it does in finite differences, and taken
 * at the end of the step, v' = (v + c u) / (1 + c): stable however viscous the liquid is. What the liquid loses the
 * part that wants to know gains. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "defs/materials.h"
#include "methods/sph/sph_kernels.h"
#include "methods/sph/walls.h"

typedef struct friction {
    sk_step *step;
    const sk_sph_boundary *boundary;
    float reach2, inverse_support, slope, softening, strength;
    float at_spacing; /* c of a sheet over its kernel's value */
    int wendland;
} friction;

/* First and last boundary particle of a cell of the grid; nothing outside. */
static void particles_of_cell(const friction *f, const int cell[3], uint32_t range[2])
{
    const sk_grid *grid = &f->step->grid;
    size_t place = 0, stride = 1, local = 0;
    range[0] = range[1] = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (cell[d] < 0 || cell[d] >= grid->blocks[d] * SK_BLOCK_N)
            return;
        place += (size_t)(cell[d] >> SK_BLOCK_LOG) * stride;
        stride *= (size_t)grid->blocks[d];
        local += (size_t)(cell[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    int slot = f->boundary->table[place];
    if (slot < 1)
        return;
    const uint32_t *start = f->boundary->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS + local;
    range[0] = start[0];
    range[1] = start[1];
}

/* What one boundary particle counts for a particle: its part of c; 0 out of reach. */
static float weight_of(const friction *f, const sk_boundary_particle *wall, const float x[3])
{
    float r2 = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        r2 += (x[d] - wall->position[d]) * (x[d] - wall->position[d]);
    if (r2 >= f->reach2 || !f->boundary->bodies[wall->body].no_slip)
        return 0.0f;
    float q = fmaxf(sqrtf(r2) * f->inverse_support, 1e-6f);
    float slope = (f->wendland ? sk_sph_wendland_slope(q) : sk_sph_cubic_slope(q)) / q * f->slope;
    return -f->strength * wall->volume * slope * r2 / (r2 + f->softening);
}

/* What the sum makes of a flat wall one spacing away from a particle, over the 1 / spacing^2 of finite differences. */
static double flat_wall(const friction *f, const sk_sph *sph)
{
    const double fine = sph->point_spacing;
    const int reach = (int)ceil(sph->support / fine), deep = SELKIE_DIM == 3 ? reach : 0;
    double sum = 0.0;
    for (int z = -deep; z <= deep; z++)
        for (int x = -reach; x <= reach; x++) {
            double r2 = sph->spacing * sph->spacing + (x * x + z * z) * fine * fine;
            float q = (float)(sqrt(r2) / sph->support);
            if (q < 1.0f)
                sum -= (f->wendland ? sk_sph_wendland_slope(q) : sk_sph_cubic_slope(q)) / q * f->slope * r2 /
                       (r2 + f->softening);
        }
    return 2.0 * sum * sph->volume * pow(fine / sph->spacing, SELKIE_DIM - 1) * sph->spacing * sph->spacing;
}

typedef struct near_walls {
    int count;
    uint32_t from[SK_NEIGHBOURS], to[SK_NEIGHBOURS];
    int side_count;
    const sk_sph_side *sides[6];
} near_walls;

/* The same c of a sheet: in 3D a plane of boundary particles sums up to the kernel at its distance. */
static float side_weight(const friction *f, const sk_sph_side *side, const float x[3])
{
    float q = sk_sph_side_distance(side, x, f->inverse_support);
    return f->at_spacing * (f->wendland ? sk_sph_wendland(q) : sk_sph_cubic(q));
}

/* Slows a particle down, or drags it along. */
static void rub(const friction *f, const near_walls *near, sk_particle *particle, double *sums)
{
    float total = 0.0f, velocity[3] = {0, 0, 0};
    for (int n = 0; n < near->count; n++)
        for (uint32_t b = near->from[n]; b < near->to[n]; b++) {
            const sk_boundary_particle *wall = &f->boundary->particles[b];
            float weight = weight_of(f, wall, particle->position);
            total += weight;
            for (int d = 0; d < SELKIE_DIM; d++)
                velocity[d] += weight * wall->velocity[d];
        }
    for (int s = 0; s < near->side_count; s++)
        total += side_weight(f, near->sides[s], particle->position);
    if (!(total > 0.0f))
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->velocity[d] = (particle->velocity[d] + velocity[d]) / (1.0f + total);
    /* What it gave: w_b (v' - v_b) to each of them, which adds up to what it lost. */
    for (int n = 0; sums && n < near->count; n++)
        for (uint32_t b = near->from[n]; b < near->to[n]; b++) {
            const sk_boundary_particle *wall = &f->boundary->particles[b];
            const sk_sph_body *body = &f->boundary->bodies[wall->body];
            float weight = body->wants_force ? weight_of(f, wall, particle->position) : 0.0f;
            if (weight == 0.0f)
                continue;
            double force[3] = {0, 0, 0}, arm[3], *sum = sums + 6 * (size_t)wall->body;
            for (int d = 0; d < 3; d++) {
                force[d] = d < SELKIE_DIM ? (double)(weight * (particle->velocity[d] - wall->velocity[d])) : 0.0;
                arm[d] = wall->position[d] - body->center[d];
                sum[d] += force[d];
            }
            for (int d = 0; d < 3; d++)
                sum[3 + d] += arm[(d + 1) % 3] * force[(d + 2) % 3] - arm[(d + 2) % 3] * force[(d + 1) % 3];
        }
    for (int s = 0; sums && s < near->side_count; s++) {
        float weight = side_weight(f, near->sides[s], particle->position);
        for (int d = 0; d < SELKIE_DIM; d++)
            sums[6 * (size_t)near->sides[s]->part + (size_t)d] += (double)(weight * particle->velocity[d]);
    }
}

static void rub_block(const friction *f, int block, double *sums)
{
    const sk_grid *grid = &f->step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    near_walls near = {.count = 0};
    int sides = sk_sph_sides_near(f->step->sph, grid, block, f->step->sph->support, near.sides);
    for (int s = 0; s < sides; s++)
        if (f->boundary->bodies[near.sides[s]->part].no_slip)
            near.sides[near.side_count++] = near.sides[s];
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (start[c] == start[c + 1])
            continue;
        near.count = 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
            int cell[3] = {0, 0, 0};
            uint32_t range[2];
            for (int d = 0; d < SELKIE_DIM; d++)
                cell[d] =
                    grid->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) + offset[d];
            particles_of_cell(f, cell, range);
            if (range[1] > range[0]) {
                near.from[near.count] = range[0];
                near.to[near.count++] = range[1];
            }
        }
        for (uint32_t i = start[c]; (near.count || near.side_count) && i < start[c + 1]; i++)
            if (!(f->step->particles.records[i].flags & SK_PARTICLE_BOUNDARY))
                rub(f, &near, &f->step->particles.records[i], sums);
    }
}

selkie_code SK_DIM(sk_sph_friction)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
    const int parts = sph->boundary.body_count;
    int rough = 0, wanted = 0;
    for (int b = 0; b < parts; b++) {
        rough |= sph->boundary.bodies[b].no_slip;
        wanted |= sph->boundary.bodies[b].no_slip && sph->boundary.bodies[b].wants_force;
    }
    if (!rough || (!sph->boundary.count && !sph->boundary.side_count) || !(sk_scene_viscosity(step->scene) > 0.0) ||
        !(step->dt > 0.0))
        return SELKIE_OK;
    friction f = {.step = step,
                  .boundary = &sph->boundary,
                  .reach2 = (float)(sph->support * sph->support),
                  .inverse_support = (float)(1.0 / sph->support),
                  .softening = (float)(0.01 * sph->support * sph->support),
                  .strength = (float)(4.0 * sk_scene_viscosity(step->scene) * sk_step_kick(step)),
                  .wendland = step->scene->sph.kernel == SELKIE_SPH_WENDLAND};
    double factor =
        f.wendland ? sk_sph_wendland_factor(SELKIE_DIM, sph->support) : sk_sph_cubic_factor(SELKIE_DIM, sph->support);
    f.slope = (float)(factor * sph->kernel_scale / (sph->support * sph->support));
    f.strength /= (float)flat_wall(&f, sph);
    const float q = (float)(sph->spacing / sph->support);
    f.at_spacing = (float)(2.0 * sk_scene_viscosity(step->scene) * sk_step_kick(step) / (sph->spacing * sph->spacing)) /
                   (f.wendland ? sk_sph_wendland(q) : sk_sph_cubic(q));
    double *sums = NULL;
    size_t row = 6 * (size_t)parts;
    if (wanted) {
        SK_TRY(sk_step_scratch(step, ((size_t)grid->particle_blocks + 1) * row * sizeof *sums, "friction",
                               (void **)&sums, error));
        memset(sums, 0, ((size_t)grid->particle_blocks + 1) * row * sizeof *sums);
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= grid->particle_blocks; block++)
        rub_block(&f, block, sums ? sums + (size_t)block * row : NULL);
    const double unit = step->particle_mass / step->dt;
    for (int block = 1; sums && block <= grid->particle_blocks; block++)
        for (int b = 0; b < parts; b++)
            for (int d = 0; d < 3; d++) {
                sph->boundary.bodies[b].force[d] += unit * sums[(size_t)block * row + 6 * (size_t)b + (size_t)d];
                sph->boundary.bodies[b].torque[d] += unit * sums[(size_t)block * row + 6 * (size_t)b + 3 + (size_t)d];
            }
    return SELKIE_OK;
}
