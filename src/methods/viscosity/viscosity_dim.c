/* Implicit viscosity: the velocities that minimise kinetic energy of the change plus viscous work (linalg/stress.h).
 *
 * The liquid's share of a cell, face or edge is the mean of the sub-cells in the cube of a cell's size around it. Faces
 * that no particle reaches have mass 0 and take part where stress acts on them: extrapolated velocities would change
 * the damping of waves by 20 %. Closed faces have the velocity of the solid. Shear at a no-slip wall acts over half a
 * cell and the slip length; at a free-slip wall there is none.
 *
 * The pressure solve follows and would undo half of the bending stiffness of a thin sheet, since each solve ignores the
 * stress of the other. A bulk viscosity of four times the shear viscosity and a second pass with the remaining
 * divergence as its source keep the velocities nearly free of divergence (an augmented Lagrangian).
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "defs/heat.h"
#include "defs/materials.h"
#include "grid/plain.h"
#include "linalg/stress.h"
#include "linalg/stress_kernels.h"
#include "methods/liquid_plain.h"
#include "methods/viscosity/viscosity.h"
#include "methods/viscosity/viscosity_kernels.h"

enum { PASSES = 2 };
static const float bulk_share = 4.0f; /* bulk over shear viscosity */

/* Share of a sub-cell that holds a particle, at least. Particles may lie just outside the surface. Without a share no
 * stress would act on their faces: they would fall off a thread one by one, and slide on a floor that holds the liquid.
 */
static const float least_share = 0.05f;

typedef struct viscous_fields {
    float strength;             /* viscosity x time / cell size^2, if there is one viscosity */
    float *own_log, *log;       /* its logarithm a cell, from the cell's particles and smoothed; NULL = one viscosity */
    float (*share)[SK_CORNERS]; /* liquid's share of each sub-cell */
    uint8_t *filled; /* 1 = all sub-cells are full of liquid and no lower face is closed, 2 = all are empty */
    float *mass[3], *normal, *bulk, *shear[3], *velocity[3];
    uint8_t *fixed[3];
    uint8_t *solved[3], *carried[3]; /* faces that stress acted on; faces that followed them */
} viscous_fields;

static int is_solid(const sk_grid *grid, sk_plain_cell cell)
{
    return (grid->kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK) == SK_CELL_SOLID;
}

/* The sub-cells of a cell that hold a particle, one bit each. */
static unsigned occupied_sub_cells(const sk_step *step, sk_plain_cell cell)
{
    const float inverse = (float)(1.0 / step->grid.cell_size);
    uint32_t first, last;
    unsigned occupied = 0;
    sk_plain_particles(&step->grid, cell, &first, &last);
    for (uint32_t p = first; p < last; p++) {
        int n = 0;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float coordinate =
                sk_cell_coordinate(step->particles.records[p].position[d], (float)step->grid.corner[d], inverse);
            n |= (coordinate - floorf(coordinate) >= 0.5f) << d;
        }
        occupied |= 1u << n;
    }
    return occupied;
}

/* Shares of the sub-cells of a cell. Solid neighbours have no depth of their own. */
static void measure_cell(const sk_step *step, sk_plain_cell cell, int cut, float share[SK_CORNERS])
{
    static const int stride[3] = {1, 3, 9};
    const sk_grid *grid = &step->grid;
    const float *depth = grid->fields[SK_FIELD_DEPTH], own = depth[sk_plain_index(cell)];
    const unsigned occupied = occupied_sub_cells(step, cell);
    float depth_at[SK_NEIGHBOURS], distance_at[SK_NEIGHBOURS];
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const sk_plain_cell other = sk_plain_beside(grid, cell, offset);
        depth_at[n] = is_solid(grid, other) ? own : depth[sk_plain_index(other)];
        distance_at[n] = cut ? step->solids.distance[sk_plain_solid_index(&step->solids, other)] : 1.0f;
    }
    for (int n = 0; n < SK_CORNERS; n++) {
        float below[SK_CORNERS], outside[SK_CORNERS];
        for (int m = 0; m < SK_CORNERS; m++) {
            int other = SK_NEIGHBOURS / 2;
            for (int d = 0; d < SELKIE_DIM; d++)
                other += m >> d & 1 ? (n >> d & 1 ? stride[d] : -stride[d]) : 0;
            below[m] = depth_at[other];
            outside[m] = distance_at[other];
        }
        share[n] = fmaxf(sk_viscous_sub_share(sk_viscous_sub_value(below)), occupied >> n & 1 ? least_share : 0.0f);
        if (cut)
            share[n] *= sk_viscous_sub_share(sk_viscous_sub_value(outside));
    }
}

/* --- Cells full of liquid, and empty ones --- */

/* A block's values and those of the cells around it. */
enum { TILE_N = SK_BLOCK_N + 2, TILE_NZ = SELKIE_DIM == 3 ? TILE_N : 1, TILE_VALUES = TILE_N * TILE_N * TILE_NZ };

/* Least and largest value of the cells around each cell of a block. */
typedef struct value_range {
    float least[SK_BLOCK_CELLS], most[SK_BLOCK_CELLS];
} value_range;

static inline float lesser(float a, float b)
{
    return a < b ? a : b;
}

static inline float greater(float a, float b)
{
    return a > b ? a : b;
}

/* Depths below the surface, of which solid cells have none; among the least also distances from obstacles. `count`
 * cells in a row from `cell` on. */
static void load_depths(const sk_step *step, sk_plain_cell cell, int count, int cut, float *least, float *most)
{
    const sk_grid *grid = &step->grid;
    const float *depth = grid->fields[SK_FIELD_DEPTH] + sk_plain_index(cell);
    const float *outside = cut ? step->solids.distance + sk_plain_solid_index(&step->solids, cell) : NULL;
    const uint8_t *kind = grid->kinds + sk_plain_index(cell);
    for (int i = 0; i < count; i++) {
        const int solid = (kind[i] & SK_CELL_KIND_MASK) == SK_CELL_SOLID;
        least[i] = lesser(solid ? 1.0f : depth[i], outside ? outside[i] : 1.0f);
        most[i] = solid ? -1.0f : depth[i];
    }
}

/* The same for a block and the cells around it. */
static void load_depth_tiles(const sk_step *step, int block, int cut, float *least, float *most)
{
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k <= (SELKIE_DIM == 3 ? SK_BLOCK_N : 0); k++)
        for (int j = -1; j <= SK_BLOCK_N; j++, least += TILE_N, most += TILE_N)
            for (int part = 0; part < 3; part++) {
                const int first = part == 0 ? -1 : part == 1 ? 0 : SK_BLOCK_N;
                const sk_plain_cell cell =
                    sk_plain_beside(&step->grid, (sk_plain_cell){block, 0}, (const int[3]){first, j, k});
                load_depths(step, cell, part == 1 ? SK_BLOCK_N : 1, cut, least + first + 1, most + first + 1);
            }
}

/* Ranges over the 3^dim cells around each cell, an axis at a time, in place. */
static void find_ranges(float *least, float *most, value_range *range)
{
    static const int stride[3] = {1, TILE_N, TILE_N * TILE_N};
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int n = 0; n + 2 * stride[d] < TILE_VALUES; n++) {
            least[n] = lesser(least[n], lesser(least[n + stride[d]], least[n + 2 * stride[d]]));
            most[n] = greater(most[n], greater(most[n + stride[d]], most[n + 2 * stride[d]]));
        }
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
        const int row = TILE_N * (sk_plain_along(c, 1) + (SELKIE_DIM == 3 ? TILE_N * sk_plain_along(c, 2) : 0));
        memcpy(range->least + c, least + row, SK_BLOCK_N * sizeof(float));
        memcpy(range->most + c, most + row, SK_BLOCK_N * sizeof(float));
    }
}

/* Faces are closed by fraction 0. Bits by axis. */
static int closed_faces(const sk_step *step, sk_plain_cell cell)
{
    int closed = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        closed |= (open_fraction_at(step, cell, d) == 0.0f) << d;
    return closed;
}

/* Shares of the sub-cells of a block. Interpolated values lie between those of the cells around: most cells are full
 * or empty by their range. */
static void measure_block(const sk_step *step, const viscous_fields *f, int block)
{
    const sk_grid *grid = &step->grid;
    const int cut = step->solids.obstacle_count > 0 && step->solids.block_slot[block];
    const float far = 0.251f; /* cells; a sub-cell that far from the surface is full or empty */
    float least[TILE_VALUES], most[TILE_VALUES];
    value_range range;
    load_depth_tiles(step, block, cut, least, most);
    find_ranges(least, most, &range);
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const size_t here = sk_plain_index(cell);
        float *share = f->share[here];
        uint32_t first, last;
        sk_plain_particles(grid, cell, &first, &last);
        const int empty = is_solid(grid, cell) || (first == last && range.most[cell.local] < -far);
        const int full = !empty && range.least[cell.local] > far;
        f->filled[here] = (uint8_t)(empty ? 2 : full && !closed_faces(step, cell));
        if (empty || full)
            for (int n = 0; n < SK_CORNERS; n++)
                share[n] = full ? 1.0f : 0.0f;
        else
            measure_cell(step, cell, cut, share);
    }
}

/* What is common to each cell of a block and those before it along all axes. */
static void find_common(const viscous_fields *f, const sk_grid *grid, int block, uint8_t common[SK_BLOCK_CELLS])
{
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
        uint8_t row[SK_BLOCK_N + 1];
        memset(row, 0xff, sizeof row);
        for (int n = 0; n < SK_CORNERS / 2; n++) {
            const int y = n & 1 ? -1 : 0, z = n & 2 ? -1 : 0;
            const sk_plain_cell first = {block, c};
            const size_t before = sk_plain_index(sk_plain_beside(grid, first, (const int[3]){-1, y, z}));
            const uint8_t *filled = f->filled + sk_plain_index(sk_plain_beside(grid, first, (const int[3]){0, y, z}));
            row[0] &= f->filled[before];
            for (int i = 0; i < SK_BLOCK_N; i++)
                row[i + 1] &= filled[i];
        }
        for (int i = 0; i < SK_BLOCK_N; i++)
            common[c + i] = row[i] & row[i + 1];
    }
}

/* The mean of the sub-cells around the lower face (axes has one bit) or edge (two bits) of a cell, or in it (none). */
static float share_around(const viscous_fields *f, const sk_grid *grid, sk_plain_cell cell, int axes)
{
    float sum = 0.0f;
    for (int n = 0; n < SK_CORNERS; n++) {
        /* Below the face lies the upper half of the cell before it. */
        int offset[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            offset[d] = axes >> d & 1 && n >> d & 1 ? -1 : 0;
        sum += f->share[sk_plain_index(sk_plain_beside(grid, cell, offset))][n];
    }
    return sum / SK_CORNERS;
}

static int is_closed(const sk_step *step, sk_plain_cell cell, int d)
{
    return open_fraction_at(step, cell, d) == 0.0f;
}

/* Density at a face over the reference density. */
static float density_at(const sk_step *step, sk_plain_cell cell, int d)
{
    return step->relative_density ? 1.0f / lightness_at(step, cell, d) : 1.0f;
}

/* Weight of the shear between axes a and b at the lower edge of a cell, over viscosity and density. */
static float shear_weight(const sk_step *step, const viscous_fields *f, sk_plain_cell cell, int a, int b)
{
    const sk_grid *grid = &step->grid;
    const sk_plain_cell before_a = sk_plain_next(grid, cell, a, -1), before_b = sk_plain_next(grid, cell, b, -1);
    const float share = share_around(f, grid, cell, 1 << a | 1 << b);
    const int wall = is_closed(step, cell, a) != is_closed(step, before_b, a) ||
                     is_closed(step, cell, b) != is_closed(step, before_a, b);
    const sk_solids *solids = &step->solids;
    if (!wall || share == 0.0f)
        return share;

    /* Cells inside the solid know its surface. In a corner, the liquid's cell may be nearest to the other wall. */
    const sk_plain_cell around[3] = {cell, before_a, before_b};
    float inside = -1.0f, beside = 0.0f;
    for (int n = 0; n < 3; n++) {
        const float grip = sk_solids_grip(solids, sk_plain_solid_index(solids, around[n]));
        if (around[n].slot && is_solid(grid, around[n]))
            inside = fmaxf(inside, grip);
        beside = fmaxf(beside, grip);
    }
    return sk_viscous_wall_weight(share, inside >= 0.0f ? inside : beside);
}

/* --- Several viscosities --- */

/* Logarithms of viscosity x time / cell size^2: of each material, and over temperature where it depends on it. */
enum { LAW_POINTS = 256 };
typedef struct viscosity_logs {
    float of[SK_TRANSFER_MATERIALS];
    float (*law)[LAW_POINTS + 1]; /* [materials] at even temperatures; NULL = constant */
    float lowest, inverse;        /* K, 1/K  temperature of the first, and one over their distance */
    const uint32_t *material;     /* of each particle; NULL = one */
    const float *temperature;     /* K  likewise */
} viscosity_logs;

static float log_of_particle(const viscosity_logs *logs, uint32_t p)
{
    const uint32_t m = logs->material ? logs->material[p] % SK_TRANSFER_MATERIALS : 0;
    return logs->law ? sk_viscous_law(logs->law[m], LAW_POINTS, (logs->temperature[p] - logs->lowest) * logs->inverse)
                     : logs->of[m];
}

/* The mean of the particles' logarithms in a cell; NaN without particles. */
static float own_log_of(const sk_step *step, sk_plain_cell cell, const viscosity_logs *logs)
{
    uint32_t first, last;
    double sum = 0.0;
    sk_plain_particles(&step->grid, cell, &first, &last);
    for (uint32_t p = first; p < last; p++)
        sum += (double)log_of_particle(logs, p);
    return last > first ? (float)(sum / (double)(last - first)) : __builtin_nanf("");
}

/* Above this strength a liquid is rigid in a step, and the solver needs many iterations for more. */
static const double most_strength = 1e5;

/* Tables over the range of temperatures of the scene. */
static selkie_code find_laws(sk_step *step, viscosity_logs *logs, double scale, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    double lowest, highest;
    SK_TRY(sk_step_scratch(step, (size_t)scene->material_count * sizeof *logs->law, "viscosity", (void **)&logs->law,
                           error));
    sk_scene_temperatures(scene, &lowest, &highest);
    highest = fmax(highest, lowest + 1e-3);
    logs->lowest = (float)lowest;
    logs->inverse = (float)(LAW_POINTS / (highest - lowest));
    for (int m = 0; m < scene->material_count; m++)
        for (int n = 0; n <= LAW_POINTS; n++) {
            const double viscosity = sk_viscosity_at(scene, m, lowest + n * (highest - lowest) / LAW_POINTS);
            logs->law[m][n] = (float)log(fmin(fmax(viscosity * scale, 1e-12), most_strength));
        }
    return SELKIE_OK;
}

/* The mean of the cells around, weights 1 2 1 along each axis: the solver needs many iterations for a jump between two
 * cells. NaN if no cell around has particles. */
static float smooth_log(const sk_grid *grid, const float *own_log, sk_plain_cell cell)
{
    float sum = 0.0f, weights = 0.0f;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const sk_plain_cell other = sk_plain_beside(grid, cell, offset);
        const float value = own_log[sk_plain_index(other)];
        if (!other.slot || value != value)
            continue;
        float weight = 1.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            weight *= offset[d] ? 1.0f : 2.0f;
        sum += weight * value;
        weights += weight;
    }
    return weights > 0.0f ? sum / weights : __builtin_nanf("");
}

static selkie_code measure_viscosity(sk_step *step, viscous_fields *f, double scale, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    const sk_attribute *temperature = sk_particles_find_attribute(&step->particles, "temperature");
    const int has_law = temperature && sk_scene_has_viscosity_law(step->scene);
    if (!has_law && (!sk_scene_has_viscosities(step->scene) || !material))
        return SELKIE_OK;
    const size_t bytes = (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float);
    SK_TRY(sk_step_scratch(step, bytes, "viscosity", (void **)&f->own_log, error));
    SK_TRY(sk_step_scratch(step, bytes, "viscosity", (void **)&f->log, error));

    /* A liquid without viscosity has a millionth of the largest. */
    viscosity_logs logs = {.material = material ? material->data : NULL,
                           .temperature = temperature ? (const float *)(const void *)temperature->data : NULL};
    const double least = 1e-6 * sk_scene_viscosity(step->scene);
    for (int m = 0; m < step->scene->material_count && m < SK_TRANSFER_MATERIALS; m++)
        logs.of[m] = (float)log(fmax(sk_scene_viscosity_of(step->scene, m), least) * scale);
    if (has_law)
        SK_TRY(find_laws(step, &logs, scale, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 0; b < grid->block_count; b++)
        SK_PLAIN_EACH_CELL(cell, b)
    f->own_log[sk_plain_index(cell)] = own_log_of(step, cell, &logs);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 0; b < grid->block_count; b++)
        SK_PLAIN_EACH_CELL(cell, b)
    f->log[sk_plain_index(cell)] = b ? smooth_log(grid, f->own_log, cell) : __builtin_nanf("");
    return SELKIE_OK;
}

/* Viscosity x time / cell size^2 at a cell (axes 0) or at the lower edge across two axes. */
static float strength_at(const viscous_fields *f, const sk_grid *grid, sk_plain_cell cell, int axes)
{
    float sum = 0.0f;
    int count = 0;
    if (!f->log)
        return f->strength;
    for (int n = 0; n < SK_CORNERS; n++) {
        int offset[3] = {0, 0, 0};
        if (n & ~axes)
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            offset[d] = n >> d & 1 ? -1 : 0;
        const float value = f->log[sk_plain_index(sk_plain_beside(grid, cell, offset))];
        sum += value == value ? value : 0.0f;
        count += value == value;
    }
    return count ? expf(sum / (float)count) : 0.0f;
}

/* Weights of a cell inside liquid of one density and viscosity (share 1), or where there is none (share 0). */
static void weigh_simply(const sk_step *step, const viscous_fields *f, sk_plain_cell cell, float share)
{
    const size_t here = sk_plain_index(cell);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d][here];
        const int fixed = is_closed(step, cell, d);
        f->fixed[d][here] = (uint8_t)fixed;
        f->velocity[d][here] = fixed ? solid_velocity_at(step, cell, d) : velocity;
        f->mass[d][here] = fixed || velocity != velocity ? 0.0f : share;
    }
    f->normal[here] = f->strength * share;
    f->bulk[here] = bulk_share * f->normal[here];
    for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++)
        f->shear[edge][here] = f->strength * share;
}

/* Weights and velocities of a block. */
static void weigh_block(const sk_step *step, const viscous_fields *f, int block)
{
    const sk_grid *grid = &step->grid;
    const int one_liquid = !f->log && !step->relative_density;
    uint8_t common[SK_BLOCK_CELLS];
    find_common(f, grid, block, common);
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const size_t here = sk_plain_index(cell);
        const int filled = common[cell.local];
        if (filled == 2 || (filled == 1 && one_liquid)) {
            weigh_simply(step, f, cell, filled == 1 ? 1.0f : 0.0f);
            continue;
        }
        float density = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float velocity = grid->fields[SK_FIELD_VELOCITY_X + d][here];
            const int fixed = is_closed(step, cell, d);
            density +=
                (density_at(step, cell, d) + density_at(step, sk_plain_next(grid, cell, d, 1), d)) / (2 * SELKIE_DIM);
            f->fixed[d][here] = (uint8_t)fixed;
            f->velocity[d][here] = fixed ? solid_velocity_at(step, cell, d) : velocity;
            f->mass[d][here] =
                fixed || velocity != velocity ? 0.0f : density_at(step, cell, d) * share_around(f, grid, cell, 1 << d);
        }
        f->normal[here] = strength_at(f, grid, cell, 0) * density * share_around(f, grid, cell, 0);
        f->bulk[here] = bulk_share * f->normal[here];
        for (int a = 0; a < SELKIE_DIM; a++)
            for (int b = a + 1; b < SELKIE_DIM; b++) {
                const float mean = 0.5f * (density_at(step, cell, a) + density_at(step, cell, b));
                const float strength = strength_at(f, grid, cell, 1 << a | 1 << b);
                f->shear[sk_stress_edge(a, b)][here] = strength * mean * shear_weight(step, f, cell, a, b);
            }
    }
}

/* The mean change by viscosity of the faces beside a face that stress acted on, or that followed such faces. */
static float change_beside(const sk_step *step, const viscous_fields *f, sk_plain_cell cell, int d, int layer)
{
    const sk_grid *grid = &step->grid;
    const float *before = grid->fields[SK_FIELD_VELOCITY_X + d];
    float sum = 0.0f;
    int count = 0;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const size_t other = sk_plain_index(sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1));
        const float change = f->velocity[d][other] - before[other];
        const int moved = f->solved[d][other] || (layer && f->carried[d][other]);
        if (!moved || f->fixed[d][other] || change != change)
            continue;
        sum += change;
        count++;
    }
    return count ? sum / (float)count : __builtin_nanf("");
}

/* Particles at the rim of the liquid reach faces beyond its stress. Such faces change like the faces beside them: they
 * would fall freely, and take the particles off the liquid. Two layers, as far as a particle reaches. A layer reads
 * nothing that it writes. */
static void carry_block(const sk_step *step, const viscous_fields *f, int block, int layer)
{
    SK_PLAIN_EACH_CELL(cell, block)
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t here = sk_plain_index(cell);
        const float before = step->grid.fields[SK_FIELD_VELOCITY_X + d][here];
        if (layer == 0)
            f->carried[d][here] = 0;
        if (f->solved[d][here] || f->fixed[d][here] || before != before || (layer && f->carried[d][here]))
            continue;
        const float change = change_beside(step, f, cell, d, layer);
        if (change != change)
            continue;
        f->velocity[d][here] = before + change;
        if (layer == 0)
            f->carried[d][here] = 1;
    }
}

static void store_block(const sk_step *step, const viscous_fields *f, int block)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        for (size_t n = (size_t)block * SK_BLOCK_CELLS; n < (size_t)(block + 1) * SK_BLOCK_CELLS; n++) {
            float *velocity = &step->grid.fields[SK_FIELD_VELOCITY_X + d][n];
            if (*velocity == *velocity && !f->fixed[d][n])
                *velocity = f->velocity[d][n];
        }
}

/* Scratch for all fields, with the empty block 0. */
static selkie_code take_fields(sk_step *step, viscous_fields *f, selkie_error *error)
{
    const size_t values = (size_t)step->grid.block_count * SK_BLOCK_CELLS;
    float **floats[11] = {&f->normal, &f->bulk};
    int count = 2;
    for (int d = 0; d < SELKIE_DIM; d++) {
        floats[count++] = &f->mass[d];
        floats[count++] = &f->velocity[d];
        uint8_t **bytes[3] = {&f->fixed[d], &f->solved[d], &f->carried[d]};
        for (int n = 0; n < 3; n++) {
            SK_TRY(sk_step_scratch(step, values, "viscosity", (void **)bytes[n], error));
            memset(*bytes[n], 0, SK_BLOCK_CELLS);
        }
    }
    for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++)
        floats[count++] = &f->shear[edge];
    for (int n = 0; n < count; n++) {
        SK_TRY(sk_step_scratch(step, values * sizeof(float), "viscosity", (void **)floats[n], error));
        memset(*floats[n], 0, SK_BLOCK_CELLS * sizeof(float));
    }
    SK_TRY(sk_step_scratch(step, values * sizeof *f->share, "viscosity", (void **)&f->share, error));
    memset(f->share, 0, SK_BLOCK_CELLS * sizeof *f->share);
    SK_TRY(sk_step_scratch(step, values, "viscosity", (void **)&f->filled, error));
    memset(f->filled, 2, SK_BLOCK_CELLS);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_viscosity)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    viscous_fields f = {.share = NULL};
    SK_TRY(take_fields(step, &f, error));
    const double scale = sk_step_kick(step) / (grid->cell_size * grid->cell_size);
    f.strength = (float)(sk_scene_viscosity(step->scene) * scale);
    SK_TRY(measure_viscosity(step, &f, scale, error));

    /* Shares of the sub-cells, then the weights, which read those of the cells around. */
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < grid->block_count; b++)
        measure_block(step, &f, b);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < grid->block_count; b++)
        weigh_block(step, &f, b);

    sk_stress_system system = {.block_count = grid->block_count,
                               .coordinates = (const int32_t(*)[4])grid->coordinates,
                               .joined = {sk_grid_joined(grid, 0), sk_grid_joined(grid, 1), sk_grid_joined(grid, 2)},
                               .neighbours = (const int32_t(*)[SK_MAX_NEIGHBOURS])grid->neighbours,
                               .normal = f.normal,
                               .bulk = f.bulk};
    for (int d = 0; d < 3; d++) {
        system.mass[d] = f.mass[d];
        system.shear[d] = f.shear[d];
        system.fixed[d] = f.fixed[d];
        system.target[d] = grid->fields[SK_FIELD_VELOCITY_X + d];
        system.velocity[d] = f.velocity[d];
        system.solved[d] = f.solved[d];
        system.push[d] = step->viscous_push && d < SELKIE_DIM ? grid->fields[step->viscous_push + d] : NULL;
    }
    const sk_stress_options options = {.tolerance = 1e-5,
                                       .max_iterations = step->scene->pressure.max_iterations,
                                       .passes = PASSES,
                                       .threads = step->threads,
                                       .arena = &step->arena};
    sk_stress_report report;
    SK_TRY(SK_DIM(sk_stress_solve)(&system, &options, &report, error));
    if (!report.converged)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the viscosity solve stopped at a residual of %.3g after %d iterations; raise "
            "pressure.max_iterations (now %d) or lower time.cfl",
            (long long)step->step_count + 1, step->time, report.residual, report.iterations, options.max_iterations);
    for (int layer = 0; layer < 2; layer++) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
        for (int b = 1; b < grid->block_count; b++)
            carry_block(step, &f, b, layer);
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++)
        store_block(step, &f, b);
    return SELKIE_OK;
}
