/* The viscosity phase on the GPU: weights from the liquid's shares, the solve, and faces that follow it. A thread a
 * cell runs the functions of methods/viscosity/viscosity_plain.h. */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
#include "defs/heat.h"
#include "defs/materials.h"
}
#include "cuda/stress_parts.h"

/* --- Weights --- */

/* Before a solve: nothing is counted, and the places of coarse levels have no blocks. */
static __global__ void begin_stress(const sk_step *step, sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    for (int depth = 1; depth < stress->level_count; depth++)
        SK_CUDA_EACH(i, stress->level[depth].places)
    stress->level[depth].map[i] = 0;
    if (blockIdx.x > 0 || threadIdx.x > 0)
        return;
    for (int depth = 0; depth < SK_STRESS_LEVELS; depth++) {
        stress->count[depth] = depth ? 1 : step->grid.block_count;
        stress->unknowns[depth] = stress->loose[depth] = 0;
        stress->stiffness[depth] = 0;
    }
    stress->overflow = stress->part_count = stress->pass = stress->failed = stress->most_iterations = 0;
    stress->largest_mass = 0;
    stress->largest_momentum = 0;
}

/* Several viscosities: the logarithm of a cell's own particles, then the mean around it. */
static __global__ void measure_logs(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_stress *stress,
                                    int smoothed)
{
    SK_CUDA_WAIT();
    viscosity_logs logs;
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++)
        logs.of[m] = constants->viscosity.logs[m];
    const sk_attribute *attributes = step->particles.attributes;
    logs.law = stress->laws;
    logs.lowest = constants->viscosity.lowest;
    logs.inverse = constants->viscosity.inverse;
    logs.temperature =
        stress->laws ? (const float *)(const void *)attributes[constants->heat.temperature].data : nullptr;
    logs.material = constants->viscosity.has_material ? attributes[constants->material].data : nullptr;
    SK_CUDA_EACH(i, (size_t)step->grid.block_count * CELLS)
    {
        const sk_plain_cell cell = {(int)(i / CELLS), (int)(i % CELLS)};
        if (smoothed)
            stress->fields.log[i] =
                cell.slot ? smooth_log(&step->grid, stress->fields.own_log, cell) : __builtin_nanf("");
        else
            stress->fields.own_log[i] = own_log_of(step, cell, &logs);
    }
}

/* Depths of the cells around a cell, NaN in solid ones, and distances from obstacles. Returns whether some are near. */
SK_DEVICE int gather_around(const sk_step *step, sk_plain_cell cell, float depth[SK_NEIGHBOURS],
                            float outside[SK_NEIGHBOURS])
{
    const int cut = step->solids.obstacle_count > 0 && step->solids.block_slot[cell.slot];
#pragma unroll
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const sk_plain_cell other = sk_plain_beside(&step->grid, cell, offset);
        depth[n] = stressed_depth(&step->grid, sk_plain_index(other));
        outside[n] = cut ? step->solids.distance[sk_plain_solid_index(&step->solids, other)] : 1.0f;
    }
    return cut;
}

/* The liquid's share of the sub-cells, and closed faces. */
static __global__ void measure_shares(const sk_step *step, sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const sk_viscous_fields &f = stress->fields;
    SK_CUDA_EACH(i, (size_t)step->grid.block_count * CELLS)
    {
        const sk_plain_cell cell = {(int)(i / CELLS), (int)(i % CELLS)};
        const size_t solid = sk_plain_solid_index(&step->solids, cell);
        float depth[SK_NEIGHBOURS], outside[SK_NEIGHBOURS], share[SK_CORNERS];
        int closed = 0;
        for (int d = 0; d < SELKIE_DIM; d++)
            closed |= (step->solids.fraction[d][solid] == 0.0f) << d;
        f.closed[i] = (uint8_t)closed;
        for (int n = 0; n < SK_CORNERS; n++)
            share[n] = 0.0f;
        if (cell.slot && !is_solid(&step->grid, cell)) {
            const int cut = gather_around(step, cell, depth, outside);
            const float least = sk_viscous_liquid_shares(depth, share);
            const unsigned occupied = least < SK_VISCOUS_LEAST_SHARE ? occupied_sub_cells(step, cell) : 0;
            sk_viscous_open_shares(cut ? outside : nullptr, occupied, share);
        }
        for (int n = 0; n < SK_CORNERS; n++)
            f.share[n][i] = share[n];
    }
}

/* Weight of the shear at the lower edge of a cell across axes a and b, over viscosity and density. A wall ends at an
 * edge if one of the faces beside it is closed and the next one is open. */
SK_DEVICE float shear_share(const sk_step *step, const sk_viscous_fields *f, sk_plain_cell cell, int a, int b)
{
    const sk_grid *grid = &step->grid;
    const float share = mean_share(grid, f, cell, 1 << a | 1 << b);
    if (is_cut(step, cell.slot) && is_near(step, cell))
        return cut_shear(step, f, cell, a, b, share);
    const int closed = f->closed[sk_plain_index(cell)];
    const int before_a = f->closed[sk_plain_index(sk_plain_next(grid, cell, a, -1))];
    const int before_b = f->closed[sk_plain_index(sk_plain_next(grid, cell, b, -1))];
    const int wall = ((closed ^ before_b) >> a | (closed ^ before_a) >> b) & 1;
    return wall && share != 0.0f ? wall_weight(step, cell, a, b, share) : share;
}

/* Weights and velocities of a cell and its lower faces and edges. */
static __global__ void weigh_stress(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const sk_viscous_fields &f = stress->fields;
    const sk_grid *grid = &step->grid;
    const int moving = sk_solids_have_velocity(&step->solids);
    const float unit = constants->viscosity.several ? 1.0f : constants->viscosity.strength;
    SK_CUDA_EACH_CELL(cell, step)
    {
        const size_t here = sk_plain_index(cell), solid = sk_plain_solid_index(&step->solids, cell);
        const int cut = is_cut(step, cell.slot) && is_near(step, cell);
        float whole = mean_share(grid, &f, cell, 0);
        float all = f.normal[here] = unit * (cut ? cut_normal(step, &f, cell, whole, &whole) : whole);
        f.bulk[here] = SK_VISCOUS_BULK_SHARE * unit * whole;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float velocity = grid->fields[SK_FIELD_VELOCITY_X + d][here];
            const int closed = f.closed[here] >> d & 1;
            const float share = mean_share(grid, &f, cell, 1 << d);
            const int fixed = closed && wall_holds(step, &f, cell, d, share);
            f.fixed[d][here] = (uint8_t)fixed;
            f.velocity[d][here] = fixed ? (moving ? step->solids.velocity[d][solid] : 0.0f) : velocity;
            f.mass[d][here] = closed || velocity != velocity ? 0.0f : share;
            all += f.mass[d][here];
        }
        for (int a = 0; a < SELKIE_DIM; a++)
            for (int b = a + 1; b < SELKIE_DIM; b++) {
                const float shear = shear_share(step, &f, cell, a, b);
                f.shear[sk_stress_edge(a, b)][here] = unit * shear;
                all += shear;
            }
        if (all > 0.0f && (constants->viscosity.several || step->relative_density))
            weigh_liquids(step, &f, cell);
    }
}

/* --- The faces after the solve --- */

/* Minus the normal stress of a cell along each axis, for the friction of walls. */
static __global__ void find_push(const sk_step *step, sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const sk_viscous_fields &f = stress->fields;
    SK_CUDA_EACH_CELL(cell, step)
    {
        const size_t here = sk_plain_index(cell);
        const int stressed = f.normal[here] > 0.0f;
        float difference[3] = {0.0f, 0.0f, 0.0f}, divergence = 0.0f;
        for (int d = 0; d < SELKIE_DIM && stressed; d++) {
            const float change =
                f.velocity[d][sk_plain_index(sk_plain_next(&step->grid, cell, d, 1))] - f.velocity[d][here];
            difference[d] = change == change ? change : 0.0f;
            divergence += difference[d];
        }
        const float even = stress->source[here] - (stressed ? f.bulk[here] * divergence : 0.0f);
        for (int d = 0; d < SELKIE_DIM; d++)
            step->grid.fields[step->viscous_push + d][here] = even - 2.0f * f.normal[here] * difference[d];
    }
}

/* Faces beside those that stress acted on change like them. */
static __global__ void carry(const sk_step *step, sk_cuda_stress *stress, int layer)
{
    SK_CUDA_WAIT();
    const sk_viscous_fields &f = stress->fields;
    SK_CUDA_EACH_CELL(cell, step)
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t here = sk_plain_index(cell);
        const float before = step->grid.fields[SK_FIELD_VELOCITY_X + d][here];
        if (before == before && !(f.solved[d][here] | f.fixed[d][here] | f.carried[d][here]))
            carry_face(step, &f, cell, d, layer);
    }
}

static __global__ void take_velocities(const sk_step *step, sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_CELL(cell, step)
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t here = sk_plain_index(cell);
        float *velocity = &step->grid.fields[SK_FIELD_VELOCITY_X + d][here];
        if (*velocity == *velocity && !stress->fields.fixed[d][here])
            *velocity = stress->fields.velocity[d][here];
    }
}

/* --- Launches --- */

static int has_material(const sk_step *step)
{
    return sk_particles_find_attribute(&step->particles, "material") != NULL;
}

static int has_viscosities(const sk_step *step)
{
    return sk_scene_has_viscosity_law(step->scene) || (sk_scene_has_viscosities(step->scene) && has_material(step));
}

static void launch_shares(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    SK_LAUNCH_SIMPLE(cuda, begin_stress, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->stress);
    for (int smoothed = 0; smoothed < 2 && has_viscosities(host); smoothed++)
        SK_LAUNCH_SIMPLE(cuda, measure_logs, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->stress, smoothed);
    SK_LAUNCH_SIMPLE(cuda, measure_shares, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->stress);
}

static void launch_weights(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, weigh_stress, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants,
                     cuda->stress);
}

static void launch_levels(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_DIM(sk_cuda_launch_stress_levels)(cuda);
    SK_DIM(sk_cuda_start_stress)(cuda);
}

static void launch_system(sk_cuda *cuda, const sk_step *host)
{
    launch_shares(cuda, host);
    launch_weights(cuda, host);
    launch_levels(cuda, host);
}

/* The same with bodies that the liquid sticks to. */
static selkie_code make_system(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_run(step, "viscosity_shares", launch_shares, error));
    SK_TRY(SK_DIM(sk_cuda_close_bodies)(step, error));
    SK_TRY(sk_cuda_run(step, "viscosity_weights", launch_weights, error));
    SK_TRY(SK_DIM(sk_cuda_join_bodies)(step, error));
    return sk_cuda_run(step, "viscosity_levels", launch_levels, error);
}

static void launch_next_pass(sk_cuda *cuda, const sk_step *host)
{
    SK_DIM(sk_cuda_next_stress)(cuda, host);
}

static void launch_end(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    SK_DIM(sk_cuda_end_stress)(cuda, host);
    if (host->viscous_push)
        SK_LAUNCH_SIMPLE(cuda, find_push, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->stress);
    for (int layer = 0; layer < 2; layer++)
        SK_LAUNCH_SIMPLE(cuda, carry, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->stress, layer);
    SK_LAUNCH_SIMPLE(cuda, take_velocities, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->stress);
}

static double scale_of(const sk_step *step)
{
    return sk_step_kick(step) / (step->grid.cell_size * step->grid.cell_size);
}

/* Viscosity over temperature: tables for the length of this step, if it has changed. */
static selkie_code send_laws(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const double scale = scale_of(step);
    const size_t bytes = (size_t)step->scene->material_count * sizeof *cuda->stress_shadow->laws;
    float(*laws)[SK_VISCOUS_LAW_POINTS + 1], lowest, inverse;
    SK_TRY(sk_cuda_begin(step, error));
    if (!cuda->stress_shadow->laws || cuda->stress_shadow->law_scale == scale)
        return SELKIE_OK;
    SK_TRY(sk_step_scratch(step, bytes, "viscosity", (void **)&laws, error));
    sk_viscosity_laws(step->scene, scale, laws, &lowest, &inverse);
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->stress_shadow->laws, laws, bytes, cudaMemcpyHostToDevice, cuda->stream),
                "viscosity", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "viscosity", error); /* the scratch is the phase's */
    cuda->stress_shadow->law_scale = scale;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_viscosity)(sk_step *step, selkie_error *error)
{
    SK_TRY(send_laws(step, error));
    SK_TRY(step->cuda->drag ? make_system(step, error) : sk_cuda_run(step, "viscosity_system", launch_system, error));
    SK_TRY(SK_DIM(sk_cuda_iterate_stress)(step, SK_CUDA_VISCOSITY, error));
    SK_TRY(sk_cuda_run(step, "viscosity_pass", launch_next_pass, error));
    SK_TRY(SK_DIM(sk_cuda_iterate_stress)(step, SK_CUDA_VISCOSITY_AGAIN, error));
    SK_TRY(sk_cuda_run(step, "viscosity", launch_end, error));
    return step->cuda->drag ? SK_DIM(sk_cuda_give_drag)(step, error) : SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_report_viscosity)(sk_step *step, selkie_error *error)
{
    const sk_cuda_results *results = step->cuda->results;
    sk_cuda_remember_solve(step->cuda, SK_CUDA_VISCOSITY, results->viscosity.visits[0], 0);
    sk_cuda_remember_solve(step->cuda, SK_CUDA_VISCOSITY_AGAIN, results->viscosity.visits[1], 0);
    if (results->viscosity.overflow)
        return sk_fail(error, SELKIE_ERROR_MEMORY,
                       "step %lld: the GPU has no room for the drops of this viscous liquid; use backend \"tuned\"",
                       (long long)step->step_count + 1);
    const sk_stress_report report = {.iterations = results->viscosity.iterations,
                                     .converged = results->viscosity.converged,
                                     .levels = results->viscosity.levels,
                                     .unknowns = results->viscosity.unknowns,
                                     .residual = results->viscosity.residual};
    return sk_viscosity_report(step, &report, error);
}

/* --- Memory and constants --- */

void SK_DIM(sk_cuda_fill_viscosity)(const sk_step *step, sk_cuda_constants *constants)
{
    const selkie_scene *scene = step->scene;
    const double scale = scale_of(step), most = sk_scene_viscosity(scene);
    constants->viscosity.strength = (float)(most * scale);
    constants->viscosity.several = has_viscosities(step);
    constants->viscosity.has_material = has_material(step);
    sk_viscosity_laws(scene, scale, NULL, &constants->viscosity.lowest, &constants->viscosity.inverse);
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++)
        constants->viscosity.logs[m] =
            m < scene->material_count ? sk_viscosity_log(sk_scene_viscosity_of(scene, m), most, scale) : 0.0f;
}

/* The places of a level: its cells reach `low` to `high`. */
static void place_level(stress_level *level, const int low[3], const int high[3])
{
    level->places = 1;
    for (int d = 0; d < 3; d++) {
        level->low[d] = d < SELKIE_DIM ? low[d] >> SK_BLOCK_LOG : 0;
        level->blocks[d] = d < SELKIE_DIM ? (high[d] >> SK_BLOCK_LOG) - level->low[d] + 1 : 1;
        level->places *= level->blocks[d];
    }
}

static selkie_code take_level(sk_cuda *cuda, stress_level *level, int depth, selkie_error *error)
{
    const size_t capacity = (size_t)level->capacity, cells = capacity * CELLS, bytes = cells * sizeof(float);
    float **fields[19];
    int count = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float **const own[5] = {&level->mass[d], &level->x[d], &level->b[d], &level->rest[d], &level->normal[d]};
        for (int n = 0; n < (depth || d == 0 ? 5 : 4); n++)
            fields[count++] = own[n];
        SK_TRY(sk_cuda_take(cuda, &level->fixed[d], cells, 1, error));
    }
    for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++)
        fields[count++] = &level->shear[edge];
    fields[count++] = &level->bulk;
    for (int n = 0; n < count; n++)
        SK_TRY(sk_cuda_take(cuda, fields[n], bytes, 1, error));
    for (int d = 1; d < SELKIE_DIM && !depth; d++)
        level->normal[d] = level->normal[0];
    SK_TRY(sk_cuda_take(cuda, &level->unknown, cells, 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->held, cells, 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->any, capacity, 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->parent, capacity * sizeof(int32_t), 1, error));
    if (!depth)
        return SELKIE_OK;
    SK_TRY(sk_cuda_take(cuda, &level->map, (size_t)level->places * sizeof(int32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->coordinates, capacity * sizeof *level->coordinates, 1, error));
    SK_TRY(sk_cuda_take(cuda, &level->neighbours, capacity * sizeof *level->neighbours, 1, error));
    return sk_cuda_take(cuda, &level->under, capacity * sizeof *level->under, 1, error);
}

/* The levels: until the domain is a cell or two wide. A level has the blocks of the finer one at most, by far. */
static selkie_code take_levels(sk_step *step, sk_cuda_stress *stress, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    int low[3] = {0, 0, 0}, high[3] = {0, 0, 0}, wide = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        high[d] = step->grid.blocks[d] * N - 1;
        wide = high[d] > wide ? high[d] : wide;
    }
    for (int depth = 0; depth < SK_STRESS_LEVELS; depth++) {
        stress_level *level = &stress->level[depth];
        place_level(level, low, high);
        level->capacity =
            depth && level->places + 1 < cuda->shadow.capacity ? level->places + 1 : cuda->shadow.capacity;
        if (depth == 0) {
            level->map = cuda->shadow.slot_of_place;
            level->coordinates = cuda->sent->step.grid.coordinates;
            level->neighbours = cuda->sent->step.grid.neighbours;
        }
        SK_TRY(take_level(cuda, level, depth, error));
        stress->level_count = depth + 1;
        if (wide <= 1)
            break;
        wide /= 2;
        for (int d = 0; d < SELKIE_DIM; d++) {
            low[d] = (low[d] - 2) >> 1;
            high[d] = (high[d] + 3) >> 1;
        }
    }
    return SELKIE_OK;
}

/* The fields of the phase: weights are those of level 0. The shares of the sub-cells are there before its vectors, the
 * logarithms before the sources. */
static selkie_code take_fields(sk_cuda *cuda, sk_cuda_stress *stress, int several, selkie_error *error)
{
    const stress_level *level = &stress->level[0];
    sk_viscous_fields *f = &stress->fields;
    const size_t cells = (size_t)level->capacity * CELLS;
    float *const spare[9] = {level->x[0],    level->x[1], level->b[0], level->b[1],   level->rest[0],
                             level->rest[1], level->x[2], level->b[2], level->rest[2]};
    SK_TRY(sk_cuda_take(cuda, &stress->source, cells * sizeof(float), 1, error));
    SK_TRY(sk_cuda_take(cuda, &stress->gain, cells * sizeof(float), 1, error));
    SK_TRY(sk_cuda_take(cuda, &f->closed, cells, 1, error));
    for (int n = 0; n < SK_CORNERS; n++)
        f->share[n] = spare[n];
    f->own_log = several ? stress->gain : NULL;
    f->log = several ? stress->source : NULL;
    f->normal = level->normal[0];
    f->bulk = level->bulk;
    for (int d = 0; d < 3; d++) {
        f->mass[d] = level->mass[d];
        f->shear[d] = level->shear[d];
        f->fixed[d] = level->fixed[d];
        if (d == SELKIE_DIM)
            break;
        SK_TRY(sk_cuda_take(cuda, &f->velocity[d], cells * sizeof(float), 1, error));
        SK_TRY(sk_cuda_take(cuda, &f->solved[d], cells, 1, error));
        SK_TRY(sk_cuda_take(cuda, &f->carried[d], cells, 1, error));
        double **const vectors[5] = {&stress->x[d], &stress->r[d], &stress->p[d], &stress->q[d], &stress->right[d]};
        for (int n = 0; n < 5; n++)
            SK_TRY(sk_cuda_take(cuda, vectors[n], cells * sizeof(double), 1, error));
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_take_viscosity)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_stress *stress = (sk_cuda_stress *)calloc(1, sizeof *stress);
    if (!stress)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory");
    cuda->stress_shadow = stress;
    const size_t blocks = (size_t)cuda->shadow.capacity, direct = SK_STRESS_DIRECT;
    SK_TRY(take_levels(step, stress, error));
    SK_TRY(take_fields(cuda, stress, has_viscosities(step), error));
    SK_TRY(SK_DIM(sk_cuda_take_viscous_bodies)(step, error));
    for (int n = 0; n < 2; n++)
        SK_TRY(sk_cuda_take(cuda, &stress->partial[n], blocks * sizeof(double), 1, error));
    SK_TRY(sk_cuda_take(cuda, &stress->factor, direct * direct * sizeof(double), 1, error));
    SK_TRY(sk_cuda_take(cuda, &stress->inverse, direct * direct * sizeof(double), 1, error));
    SK_TRY(sk_cuda_take(cuda, &stress->bottom_face, direct * sizeof(int32_t), 1, error));
    stress->part_capacity = (int)blocks * PARTS_A_BLOCK;
    SK_TRY(sk_cuda_take(cuda, &stress->parts, (size_t)stress->part_capacity * sizeof *stress->parts, 0, error));
    if (sk_scene_has_viscosity_law(step->scene))
        SK_TRY(sk_cuda_take(cuda, &stress->laws, (size_t)step->scene->material_count * sizeof *stress->laws, 0, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->stress, sizeof *stress, 0, error));
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->stress, stress, sizeof *stress, cudaMemcpyHostToDevice, cuda->stream),
                "the viscosity", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the viscosity", error);
    return SELKIE_OK;
}
