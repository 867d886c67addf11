/* Viscosity at no-slip walls, obstacles and bodies.
 *
 * A boundary particle lies as far behind the surface as a liquid particle before it. Its velocity is mirrored to 2
 * v_wall - v (Takeda et al. 1994), so that the mean of the two is the velocity of the surface. The difference in
 * velocity is then 2 (v - v_wall). With Morris et al. (1997) the particle's velocity changes by dv = 2 nu t sum_b V_b
 * x.gradW / (r^2 + 0.01 H^2) 2 (v - v_b) =: -c (v - u). c is scaled such that a flat wall drags as in finite
 * differences. A slip length b lowers it to (s/2) / (s/2 + b) of that, with the spacing s. The change is implicit, v' =
 * (v + c u) / (1 + c), and therefore stable at any viscosity. If the viscosity between particles is implicit too, c and
 * c u are part of its system: one after the other, the solve would first carry momentum from the middle to the wall
 * unhindered, and a channel's flow would be too fast by about 4 nu dt / (spacing x height). Parts with forces gain the
 * momentum that the liquid loses.
 */
#include <math.h>
#include <string.h>

#include "defs/materials.h"
#include "methods/sph/friction_plain.h"

typedef struct friction {
    sk_step *step;
    const sk_sph_boundary *boundary;
    sk_sph_friction_frame frame;
    const sk_sph_friction_terms *terms; /* if they are asked for, not their effect */
    int solved;                         /* the viscosity solve has slowed the particles */
} friction;

/* The sum at a particle one spacing away from a flat wall, over the 1 / spacing^2 of finite differences. */
static double flat_wall(const sk_sph_friction_constants *constants, const sk_sph *sph)
{
    const double fine = sph->point_spacing;
    const int reach = (int)ceil(sph->support / fine), deep = SELKIE_DIM == 3 ? reach : 0;
    double sum = 0.0;
    for (int z = -deep; z <= deep; z++)
        for (int x = -reach; x <= reach; x++) {
            double r2 = sph->spacing * sph->spacing + (x * x + z * z) * fine * fine;
            float q = (float)(sqrt(r2) / sph->support);
            if (q < 1.0f)
                sum -= sk_sph_kernel_slope(constants->wendland, q) / q * constants->slope * r2 /
                       (r2 + constants->softening);
        }
    return 2.0 * sum * sph->volume * pow(fine / sph->spacing, SELKIE_DIM - 1) * sph->spacing * sph->spacing;
}

/* Reactions to a particle's change on all parts. */
static void add_reactions(const friction *f, const near_walls *near, const sk_particle *particle, part_sums *sums)
{
    for (int r = 0; r < near->range_count; r++)
        for (uint32_t b = near->ranges[r].from; b < near->ranges[r].to; b++) {
            const sk_boundary_particle *wall = &f->boundary->particles[b];
            add_point_reaction(&f->frame, f->boundary, wall, particle, &sums[wall->body]);
        }
    for (int s = 0; s < near->side_count; s++)
        add_side_reaction(&f->frame, near->sides[s], particle, &sums[near->sides[s]->part]);
}

/* Applies the friction to a particle, unless the viscosity solve has done so. */
static void rub(const friction *f, const near_walls *near, uint32_t i, part_sums *sums)
{
    sk_particle *particle = &f->step->particles.records[i];
    float velocity[3];
    if (f->terms) {
        f->terms->drag[i] = friction_terms(&f->frame, f->boundary, near, particle->position, velocity);
        for (int d = 0; d < SELKIE_DIM; d++)
            f->terms->pull[d][i] = velocity[d];
        return;
    }
    if (!f->solved)
        slow_particle(&f->frame, f->boundary, near, particle);
    if (sums)
        add_reactions(f, near, particle, sums);
}

static void rub_block(const friction *f, int block, part_sums *sums)
{
    const sk_grid *grid = &f->step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    near_walls near = {0};
    find_rough_sides(f->step, block, &near);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (start[c] == start[c + 1])
            continue;
        find_points_near_cell(f->step, block, c, &near);
        for (uint32_t i = start[c]; (near.range_count || near.side_count) && i < start[c + 1]; i++)
            if (!(f->step->particles.records[i].flags & SK_PARTICLE_BOUNDARY))
                rub(f, &near, i, sums);
    }
}

void SK_DIM(sk_sph_friction_frame_of)(const sk_step *step, sk_sph_friction_frame *f)
{
    const sk_sph *sph = step->sph;
    const int wendland = sk_sph_is_wendland(step->scene);
    const double factor = sk_sph_kernel_factor(wendland, SELKIE_DIM, sph->support);
    f->constants =
        (sk_sph_friction_constants){.reach2 = (float)(sph->support * sph->support),
                                    .inverse_support = (float)(1.0 / sph->support),
                                    .slope = (float)(factor * sph->kernel_scale / (sph->support * sph->support)),
                                    .softening = (float)(0.01 * sph->support * sph->support),
                                    .strength = (float)(4.0 * sk_scene_viscosity(step->scene) * sk_step_kick(step)),
                                    .wendland = wendland};
    f->constants.strength /= (float)flat_wall(&f->constants, sph);
    const float q = (float)(sph->spacing / sph->support);
    f->at_spacing =
        (float)(2.0 * sk_scene_viscosity(step->scene) * sk_step_kick(step) / (sph->spacing * sph->spacing)) /
        sk_sph_kernel(wendland, q);
}

static friction make_friction(sk_step *step)
{
    friction f = {.step = step, .boundary = &step->sph->boundary};
    SK_DIM(sk_sph_friction_frame_of)(step, &f.frame);
    return f;
}

int SK_DIM(sk_sph_is_rough)(const sk_step *step)
{
    const sk_sph_boundary *boundary = &step->sph->boundary;
    int rough = 0;
    for (int b = 0; b < boundary->body_count; b++)
        rough |= boundary->bodies[b].no_slip;
    return rough && (boundary->count || boundary->side_count) && sk_scene_viscosity(step->scene) > 0.0 &&
           step->dt > 0.0;
}

int SK_DIM(sk_sph_friction_of_walls)(sk_step *step, const sk_sph_friction_terms *terms)
{
    if (!SK_DIM(sk_sph_is_rough)(step))
        return 0;
    friction f = make_friction(step);
    f.terms = terms;
    memset(terms->drag, 0, (size_t)step->particles.count * sizeof *terms->drag);
    for (int d = 0; d < SELKIE_DIM; d++)
        memset(terms->pull[d], 0, (size_t)step->particles.count * sizeof *terms->pull[d]);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= step->grid.particle_blocks; block++)
        rub_block(&f, block, NULL);
    return 1;
}

/* Plain C: one form serves both backends. */
selkie_code SK_DIM(sk_sph_friction)(sk_step *step, selkie_error *error)
{
    sk_sph *sph = step->sph;
    const sk_grid *grid = &step->grid;
    const size_t parts = (size_t)sph->boundary.body_count, rows = (size_t)grid->particle_blocks + 1;

    /* Return if there is no friction; else find out whether a probe or body needs its force. */
    const int solved = sk_sph_viscosity_is_implicit(step);
    int wanted = 0;
    for (size_t b = 0; b < parts; b++)
        wanted |= sph->boundary.bodies[b].no_slip && sph->boundary.bodies[b].wants_force;
    if (!SK_DIM(sk_sph_is_rough)(step) || (solved && !wanted))
        return SELKIE_OK;

    /* Slow the particles of each block; sum the friction on its walls if wanted. */
    friction f = make_friction(step);
    f.solved = solved;
    part_sums *sums = NULL;
    if (wanted) {
        SK_TRY(sk_step_scratch(step, rows * parts * sizeof *sums, "friction", (void **)&sums, error));
        memset(sums, 0, rows * parts * sizeof *sums);
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= grid->particle_blocks; block++)
        rub_block(&f, block, sums ? sums + (size_t)block * parts : NULL);

    /* Add the blocks in order, for the same bits on any number of threads. */
    const double unit = step->particle_mass / step->dt;
    for (size_t block = 1; sums && block < rows; block++)
        for (size_t b = 0; b < parts; b++)
            for (int d = 0; d < 3; d++) {
                sph->boundary.bodies[b].force[d] += unit * sums[block * parts + b].force[d];
                sph->boundary.bodies[b].torque[d] += unit * sums[block * parts + b].torque[d];
            }
    return SELKIE_OK;
}
