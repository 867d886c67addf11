/* Elastoplastic points and liquid on the grid: two velocities a face, one pressure. */
#include <math.h>
#include <string.h>

#include "grid/plain_forms.h"
#include "grid/transfer_plain.h"
#include "methods/elastoplastic/immersed.h"
#include "methods/elastoplastic/immersed_kernels.h"
#include "methods/elastoplastic/mpm_frame.h"
#include "methods/part_kernels.h"

static float gain_of(const sk_step *step, int d)
{
    return (float)(step->scene->gravity[d] * sk_step_kick(step));
}

/* --- The mixture --- */

/* Stress, forces and walls of the points, at the nodes. Force fields act on the mixture. */
static selkie_code fill_nodes(sk_step *step, sk_phase_function to_grid, selkie_error *error)
{
    sk_immersed *immersed = sk_immersed_of(step);
    SK_TRY(SK_DIM(sk_immersed_collect)(step, error));
    selkie_scene scene = *step->scene;
    scene.force_count = 0;
    memset(&scene.frame, 0, sizeof scene.frame);
    sk_step view = *step;
    view.scene = &scene;
    view.particles = immersed->own;
    view.grid.cell_start = immersed->cell_start;
    selkie_code code = to_grid(&view, error);
    if (code == SELKIE_OK)
        code = SK_DIM(sk_mpm_nodes)(&view, error);
    immersed->own = view.particles;
    step->arena = view.arena;
    return code;
}

/* Are there points in a block or beside it? Nodes elsewhere have no mass. */
static int is_near(const sk_step *step, int block)
{
    const sk_immersed *immersed = sk_immersed_of(step);
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int other = step->grid.neighbours[block][n];
        if (other < 1 || other > step->grid.particle_blocks)
            continue;
        const uint32_t *start = immersed->cell_start + (size_t)(other - 1) * SK_BLOCK_CELLS;
        if (start[SK_BLOCK_CELLS] > start[0])
            return 1;
    }
    return 0;
}

/* The mixture at the lower faces of a cell. Gravity acts on it later, and on the nodes it has acted. */
static void mix_cell(const sk_step *step, const sk_mixture_faces *f, sk_plain_cell cell)
{
    const sk_immersed *immersed = sk_immersed_of(step);
    const float(*nodes)[4] = (const float(*)[4])sk_mpm_of(step)->nodes;
    const size_t i = sk_plain_index(cell);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *below = nodes[sk_plain_index(sk_plain_next(&step->grid, cell, d, -1))], *above = nodes[i];
        const float own = f->share[d][i] > 0.0f ? f->before[d][i] : immersed->lightness;
        float mass;
        const float solid = sk_immersed_face(below[d], below[3], above[d], above[3], &mass) - gain_of(step, d);
        const float volume = mass * own / (float)step->particles_per_cell;
        const float share = sk_solid_share(volume, f->liquid_density[d][i]);
        f->share[d][i] = share;
        f->liquid[d][i] = f->velocity[d][i];
        f->velocity[d][i] = f->change[d][i] = sk_mixed_velocity(share, solid, f->velocity[d][i]);
        f->solid[d][i] = own;
        if (share > 0.0f)
            f->lightness[d][i] =
                sk_mixed_lightness(share, own, f->liquid_density[d][i] > 0.0f ? f->lightness[d][i] : own);
    }
}

static selkie_code mix(sk_step *step, sk_mixture_transfer transfer, sk_phase_function to_grid, selkie_error *error)
{
    const sk_immersed *immersed = sk_immersed_of(step);
    SK_TRY(sk_mixture_gather(&immersed->mixture, step, immersed->point_mask, NULL, transfer, error));
    if (immersed->is_stepping)
        SK_TRY(fill_nodes(step, to_grid, error));
    const sk_mixture_faces f = sk_mixture_faces_of(&sk_immersed_of(step)->mixture, step);
    float *density = step->grid.fields[SK_FIELD_DENSITY];
    const float *points = step->grid.fields[immersed->mixture.solid_density];
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < step->grid.block_count; b++) {
        const int mixes = immersed->is_stepping && is_near(step, b);
        for (int d = 0; d < SELKIE_DIM && immersed->is_stepping && !mixes; d++)
            memset(f.share[d] + (size_t)b * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
        SK_PLAIN_EACH_CELL(cell, b)
        {
            density[sk_plain_index(cell)] += points[sk_plain_index(cell)];
            if (mixes)
                mix_cell(step, &f, cell);
        }
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_immersed_mix)(sk_step *step, selkie_error *error)
{
    return mix(step, SK_DIM(sk_transfer_to_grid), SK_DIM(sk_mpm_to_grid), error);
}

selkie_code SK_DIM(sk_immersed_mix_plain)(sk_step *step, selkie_error *error)
{
    return mix(step, SK_DIM(sk_transfer_to_grid_plain), SK_DIM(sk_mpm_to_grid_plain), error);
}

/* Lightness that an eased face has beyond its own. */
static float ease_of(const sk_step *step, const sk_mixture_faces *f, sk_plain_cell cell, int d)
{
    const sk_immersed *immersed = sk_immersed_of(step);
    const size_t i = sk_plain_index(cell), below = sk_plain_index(sk_plain_next(&step->grid, cell, d, -1));
    if (!(f->share[d][i] > 0.9f))
        return 0.0f;
    const float grains = fminf(immersed->grains[i], immersed->grains[below]);
    return sk_immersed_ease(f->share[d][i], grains, 8.0f * f->solid[d][i]);
}

/* The velocity before the pressure solve, and the change by forces. */
selkie_code SK_DIM(sk_immersed_remember)(sk_step *step, selkie_error *error)
{
    (void)error;
    const sk_mixture_faces f = sk_mixture_faces_of(&sk_immersed_of(step)->mixture, step);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < step->grid.block_count; b++) {
        if (!is_near(step, b))
            continue;
        SK_PLAIN_EACH_CELL(cell, b)
        {
            const size_t i = sk_plain_index(cell);
            for (int d = 0; d < SELKIE_DIM; d++) {
                f.before[d][i] = f.velocity[d][i];
                f.forced[d][i] = f.velocity[d][i] - f.change[d][i];
                f.lightness[d][i] += ease_of(step, &f, cell, d);
            }
        }
    }
    return SELKIE_OK;
}

/* --- After the pressure --- */

/* Lightness of the liquid at the lower face of a cell. */
static float liquid_lightness(const sk_step *step, const sk_mixture_faces *f, sk_plain_cell cell, int d)
{
    const size_t i = sk_plain_index(cell);
    const float share = f->share[d][i], own = f->solid[d][i], mixed = f->lightness[d][i] - ease_of(step, f, cell, d);
    return share < 0.999f ? (mixed - (share > 0.0f ? share * own : 0.0f)) / (1.0f - (share > 0.0f ? share : 0.0f))
                          : own;
}

/* Parts the change of the lower face of a cell: that of the liquid goes to its fields, that of the points beyond the
 * forces at the nodes to `before`. Returns whether the velocity of the liquid is unknown now. */
static int part_face(const sk_step *step, const sk_mixture_faces *f, sk_plain_cell cell, int d)
{
    const size_t i = sk_plain_index(cell);
    const float share = f->share[d][i], own = f->solid[d][i], mixed = f->lightness[d][i];
    const float u = f->velocity[d][i], b = f->before[d][i], forces = f->forced[d][i];
    if (!(share > 0.0f)) {
        f->before[d][i] = 0.0f;
        return 0;
    }
    const float pressure = u == u && b == b ? u - b : 0.0f;
    const float acted = forces == forces ? forces - gain_of(step, d) : 0.0f;
    f->before[d][i] = sk_parted_change(acted, pressure, own, mixed);
    if (u != u || !(step->solids.block_slot[cell.slot] == 0 || u != 0.0f))
        return u != u;

    /* The liquid. */
    const float liquid = share < 0.999f ? f->liquid[d][i] : __builtin_nanf("");
    if (liquid != liquid) {
        f->velocity[d][i] = f->change[d][i] = f->end[d][i] = liquid;
        return 1;
    }
    const float change = sk_parted_change(forces, pressure, liquid_lightness(step, f, cell, d), mixed);
    f->velocity[d][i] = f->end[d][i] = liquid + change;
    f->change[d][i] = change;
    return 0;
}

/* Nodes take the mean of the changes of their faces. */
static void push_node(const sk_step *step, const sk_mixture_faces *f, sk_plain_cell cell)
{
    const size_t i = sk_plain_index(cell);
    float *node = sk_mpm_of(step)->nodes[i];
    if (!(node[3] > 0.0f))
        return;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const sk_plain_cell next = sk_plain_next(&step->grid, cell, d, 1);
        node[d] += 0.5f * (f->before[d][i] + (next.slot ? f->before[d][sk_plain_index(next)] : 0.0f));
    }
}

/* Coulomb's coefficient of the points in a cell, or of the first material. */
static float friction_of(const sk_step *step, sk_plain_cell cell)
{
    const sk_immersed *immersed = sk_immersed_of(step);
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    int m = 0;
    while (m < step->scene->material_count - 1 && !immersed->point_mask[m])
        m++;
    if (material && cell.slot <= step->grid.particle_blocks) {
        const uint32_t *start = immersed->cell_start + (size_t)(cell.slot - 1) * SK_BLOCK_CELLS + cell.local;
        if (start[1] > start[0])
            m = (int)material->data[immersed->sources[start[0]]];
    }
    return (float)step->scene->materials[m].elastoplastic.liquid_friction;
}

/* Liquid and points at a node of a cell meet. Writes the impulse on the liquid over the volume of a full cell. */
static int meet_node(const sk_step *step, const sk_mixture_faces *f, sk_plain_cell cell, float impulse[3])
{
    const sk_grid *grid = &step->grid;
    float(*nodes)[4] = sk_mpm_of(step)->nodes;
    const size_t i = sk_plain_index(cell);
    const float full = (float)step->particles_per_cell;
    const float volume =
        grid->fields[SK_FIELD_DENSITY][i] - grid->fields[sk_immersed_of(step)->mixture.solid_density][i];
    float normal[3] = {0.0f, 0.0f, 0.0f}, liquid[3] = {0.0f, 0.0f, 0.0f}, was[3], steep2 = 0.0f, light = 0.0f;
    memset(impulse, 0, 3 * sizeof *impulse);
    if (!(nodes[i][3] > 0.01f * full) || !(volume > 0.01f))
        return 0;

    /* Normal, velocity and lightness of the liquid. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t below = sk_plain_index(sk_plain_next(grid, cell, d, -1)),
                     above = sk_plain_index(sk_plain_next(grid, cell, d, 1));
        const float a = f->velocity[d][i], b = f->velocity[d][above];
        normal[d] = nodes[above][3] - nodes[below][3];
        steep2 += normal[d] * normal[d];
        liquid[d] = a == a ? (b == b ? 0.5f * (a + b) : a) : b == b ? b : nodes[i][d];
        was[d] = liquid[d];
        light += liquid_lightness(step, f, cell, d) / SELKIE_DIM;
    }
    if (!(steep2 > 1e-6f * full * full))
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        normal[d] /= sqrtf(steep2);

    const float mass[2] = {volume / light, nodes[i][3] / full};
    if (!sk_immersed_meet(SELKIE_DIM, normal, friction_of(step, cell), mass, liquid, nodes[i]))
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        impulse[d] = mass[0] * (liquid[d] - was[d]);
    return 1;
}

/* The liquid at a face takes half of the impulses of the nodes beside it. */
static void push_face(const sk_step *step, const sk_mixture_faces *f, const float (*impulse)[3], sk_plain_cell cell)
{
    const size_t i = sk_plain_index(cell);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t below = sk_plain_index(sk_plain_next(&step->grid, cell, d, -1));
        const float sum = 0.5f * (impulse[below][d] + impulse[i][d]);
        if (sum == 0.0f || f->velocity[d][i] != f->velocity[d][i])
            continue;
        const float change = sum * liquid_lightness(step, f, cell, d) / fmaxf(f->liquid_density[d][i], 0.1f);
        f->velocity[d][i] += change;
        f->change[d][i] += change;
        if (f->end[d] != f->velocity[d])
            f->end[d][i] += change;
    }
}

selkie_code SK_DIM(sk_immersed_part)(sk_step *step, selkie_error *error)
{
    const sk_mixture_faces f = sk_mixture_faces_of(&sk_immersed_of(step)->mixture, step);
    sk_grid *grid = &step->grid;
    float(*impulse)[3];
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof *impulse, "part",
                           (void **)&impulse, error));
    memset(impulse, 0, SK_BLOCK_CELLS * sizeof *impulse);
    for (int d = 0; d < SELKIE_DIM; d++)
        memset(f.before[d], 0, SK_BLOCK_CELLS * sizeof(float));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++) {
        int unknown = 0;
        if (!is_near(step, b)) {
            memset(impulse + (size_t)b * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof *impulse);
            continue;
        }
        SK_PLAIN_EACH_CELL(cell, b)
        for (int d = 0; d < SELKIE_DIM; d++)
            unknown |= part_face(step, &f, cell, d);
        if (unknown)
            grid->block_flags[b] |= SK_BLOCK_UNKNOWN;
    }

    /* Nodes take their changes and meet the liquid, then faces take the impulses of the nodes. */
    for (int pass = 0; pass < 3; pass++) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
        for (int b = 1; b < grid->block_count; b++) {
            if (!is_near(step, b))
                continue;
            SK_PLAIN_EACH_CELL(cell, b)
            {
                if (pass == 0)
                    push_node(step, &f, cell);
                else if (pass == 1)
                    meet_node(step, &f, cell, impulse[sk_plain_index(cell)]);
                else
                    push_face(step, &f, (const float(*)[3])impulse, cell);
            }
        }
    }
    SK_DIM(sk_mpm_touch)(step);
    return SELKIE_OK;
}
