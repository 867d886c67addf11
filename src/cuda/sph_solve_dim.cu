/* Forces and solves of SPH on the GPU: the functions of its plain form, a thread a particle. The solver's sums decide
 * on the device how the solve goes on (sk_sph_judge): a conditional node repeats its kernels. */
#include "cuda/sph_parts.h"

/* --- Forces --- */

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    prepare_forces(const sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_cell_index index = index_of_grid(&step->grid);
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        prepare_forces_on_particle(step, &constants->forces, &index, &list, (uint32_t)i);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    find_forces(const sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_cell_index index = index_of_grid(&step->grid);
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        forces_on_particle(step, &constants->forces, &index, &list, (uint32_t)i);
    }
}

/* Adds the changes by neighbours, gravity and the force fields of the scene. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    add_forces(const sk_step *step, const sk_cuda_constants *scene, const sk_cuda_sph_constants *constants)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, step->particles.count)
    {
        sk_particle particle = load_particle(&step->particles.records[i]);
        float extra[3] = {0.0f, 0.0f, 0.0f};
        if (particle.flags & SK_PARTICLE_BOUNDARY)
            continue;
        for (int d = 0; constants->pair_forces && d < SELKIE_DIM; d++)
            particle.velocity[d] += step->sph->variable[d][i];
        if (scene->force_count)
            sk_force_fields_velocity_change(scene->forces, scene->force_count, particle.position, extra);
        for (int d = 0; d < SELKIE_DIM; d++)
            particle.velocity[d] += constants->gain[d] + extra[d];
        store_particle(&step->particles.records[i], particle);
    }
}

static void launch_forces(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants, *here = &cuda->sent->sph_constants;
    (void)host;
    /* The filter goes with XSPH, and is off while the start is relaxed without gravity: launches do not depend on it.
     */
    if (here->pair_forces && (here->forces.curvature > 0.0f || here->forces.xsph > 0.0f))
        SK_LAUNCH_SIMPLE(cuda, prepare_forces, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    if (here->pair_forces)
        SK_LAUNCH_SIMPLE(cuda, find_forces, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, add_forces, SK_CUDA_WIDE, SK_CUDA_THREADS, step, &cuda->device->constants, constants);
}

/* --- Viscosity --- */

/* No-slip walls near a particle. */
SK_DEVICE void find_rough_walls(const sk_step *step, const sk_cuda_data *data, const sk_plain_frame *frame,
                                const float position[3], near_walls *walls)
{
    int at[3];
    const sk_plain_cell cell = cell_of_particle(&step->grid, data, frame, position, at);
    find_rough_sides(step, cell.slot, walls);
    walls->range_count = 0;
    if (step->sph->boundary.count)
        find_points_near_cell(step, cell.slot, cell.local, walls);
}

/* Friction of walls after forces, where viscosity is explicit. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    rub(const sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    SK_CUDA_EACH(i, step->particles.count)
    {
        sk_particle particle = load_particle(&step->particles.records[i]);
        near_walls walls;
        if (particle.flags & SK_PARTICLE_BOUNDARY)
            continue;
        find_rough_walls(step, data, &frame, particle.position, &walls);
        slow_particle(&constants->friction, &step->sph->boundary, &walls, &particle);
        store_particle(&step->particles.records[i], particle);
    }
}

/* The part of the last thread block: the sum over the launch. */
SK_DEVICE void report_force(sk_cuda_data *data, const part_sums *sums, double to[6])
{
    double total[6] = {sums->force[0],  sums->force[1],  sums->force[2],
                       sums->torque[0], sums->torque[1], sums->torque[2]};
    if (sum_over_launch(data, total, nullptr) && threadIdx.x == 0)
        for (int n = 0; n < 6; n++)
            to[n] = total[n];
}

/* The force of the liquid on a no-slip part, once friction has slowed it. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    add_reactions(const sk_step *step, const sk_cuda_sph_constants *constants, uint32_t part, sk_cuda_data *data,
                  double (*forces)[SK_CUDA_PART_FORCES][6])
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    const sk_sph_boundary *boundary = &step->sph->boundary;
    part_sums sums = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
    SK_CUDA_EACH(i, step->particles.count)
    {
        const sk_particle particle = load_particle(&step->particles.records[i]);
        near_walls walls;
        if (particle.flags & SK_PARTICLE_BOUNDARY)
            continue;
        find_rough_walls(step, data, &frame, particle.position, &walls);
        for (int r = 0; r < walls.range_count; r++)
            for (uint32_t b = walls.ranges[r].from; b < walls.ranges[r].to; b++)
                if (boundary->particles[b].body == part)
                    add_point_reaction(&constants->friction, boundary, &boundary->particles[b], &particle, &sums);
        for (int s = 0; s < walls.side_count; s++)
            if (walls.sides[s]->part == part)
                add_side_reaction(&constants->friction, walls.sides[s], &particle, &sums);
    }
    report_force(data, &sums, forces[part][SK_CUDA_FORCE_OF_VISCOSITY]);
}

static void launch_reactions(sk_cuda *cuda, const sk_step *host)
{
    const sk_sph_boundary *boundary = &host->sph->boundary;
    for (int b = 0; cuda->part_forces && b < boundary->body_count; b++)
        if (boundary->bodies[b].wants_force && boundary->bodies[b].no_slip)
            SK_LAUNCH(cuda, add_reactions, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step,
                      &cuda->device->sph_constants, (uint32_t)b, cuda->data, cuda->part_forces);
}

static void launch_friction(sk_cuda *cuda, const sk_step *host)
{
    SK_LAUNCH_SIMPLE(cuda, rub, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->sph_constants,
                     cuda->data);
    launch_reactions(cuda, host);
}

selkie_code SK_DIM(sk_cuda_sph_friction)(sk_step *step, selkie_error *error)
{
    const sk_sph_boundary *boundary = &step->sph->boundary;
    int wanted = 0;
    for (int b = 0; b < boundary->body_count; b++)
        wanted |= boundary->bodies[b].wants_force && boundary->bodies[b].no_slip;
    if (!SK_DIM(sk_sph_is_rough)(step))
        return SELKIE_OK;
    if (!sk_sph_viscosity_is_implicit(step))
        return sk_cuda_run(step, "sph_friction", launch_friction, error);
    return wanted ? sk_cuda_run(step, "sph_reactions", launch_reactions, error)
                  : SELKIE_OK; /* the solve has slowed it */
}

/* Sum over all particles in a fixed order: returns 1 to the last thread block, whose threads all get it. */
SK_DEVICE int sum_of_launch(sk_cuda_data *data, double own, double *sum)
{
    double total[1] = {own};
    const int last = sum_over_launch(data, total, nullptr);
    *sum = last ? total[0] : *sum;
    return last;
}

/* Drag and pull of the walls, and the first guess. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    begin_viscosity(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    double sum = 0.0;
    SK_CUDA_EACH(i, step->particles.count)
    {
        const sk_particle particle = load_particle(&step->particles.records[i]);
        near_walls walls;
        float pull[3] = {0.0f, 0.0f, 0.0f}, drag = 0.0f;
        find_rough_walls(step, data, &frame, particle.position, &walls);
        if (!(particle.flags & SK_PARTICLE_BOUNDARY))
            drag = friction_terms(&constants->friction, &step->sph->boundary, &walls, particle.position, pull);
        s.drag[i] = drag;
        for (int d = 0; d < SELKIE_DIM; d++)
            s.residual[d][i] = pull[d];
        sum += begin_viscosity_at(&s, particle.velocity, i);
    }
    double scale;
    if (sum_of_launch(data, sum, &scale) && threadIdx.x == 0) {
        data->sph.viscosity.scale = scale;
        data->sph.viscosity.goal = SK_SPH_VISCOUS_TOLERANCE * SK_SPH_VISCOUS_TOLERANCE * scale;
        data->sph.viscosity.iterations = data->sph.viscosity.done = 0;
    }
}

/* The product with the direction, and the length of the step along it. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    apply_rows(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    const sk_cell_index index = index_of_grid(&step->grid);
    double sum = 0.0;
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        sum += apply_viscosity(step, &s, &index, &list, (uint32_t)i);
    }
    double curvature;
    if (sum_of_launch(data, sum, &curvature) && threadIdx.x == 0) {
        data->sph.viscosity.length = curvature > 0.0 ? data->sph.viscosity.squares / curvature : 0.0;
        data->sph.viscosity.done = !(curvature > 0.0);
    }
}

/* The first residual. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    begin_residual(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data,
                   sk_cuda_condition handle)
{
    SK_CUDA_WAIT();
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    double sum = 0.0;
    SK_CUDA_EACH(i, step->particles.count)
    {
        float still[3] = {0.0f, 0.0f, 0.0f};
        first_residual_at(&s, (step->particles.records[i].flags & SK_PARTICLE_BOUNDARY) != 0, i);
        sum += advance_viscosity_at(&s, 0.0, still, i);
    }
    double squares;
    if (sum_of_launch(data, sum, &squares) && threadIdx.x == 0) {
        data->sph.viscosity.squares = squares;
        data->sph.viscosity.done = !(squares > data->sph.viscosity.goal);
        SK_CUDA_SET_CONDITION(handle, !data->sph.viscosity.done);
    }
}

/* A step along the direction, and whether another one follows. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    advance_rows(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data,
                 sk_cuda_condition handle)
{
    SK_CUDA_WAIT();
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    const double length = data->sph.viscosity.length;
    double sum = 0.0;
    if (data->sph.viscosity.done) { /* without a curvature */
        if (blockIdx.x == 0 && threadIdx.x == 0)
            SK_CUDA_SET_CONDITION(handle, 0);
        return;
    }
    SK_CUDA_EACH(i, step->particles.count)
    sum += advance_viscosity_at(&s, length, step->particles.records[i].velocity, i);
    double squares;
    if (sum_of_launch(data, sum, &squares) && threadIdx.x == 0) {
        data->sph.viscosity.share = squares / data->sph.viscosity.squares;
        data->sph.viscosity.squares = squares;
        data->sph.viscosity.iterations++;
        data->sph.viscosity.done =
            !(squares > data->sph.viscosity.goal) || data->sph.viscosity.iterations >= SK_SPH_MOST_VISCOUS_ITERATIONS;
        SK_CUDA_SET_CONDITION(handle, !data->sph.viscosity.done);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    turn_rows(const sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    const double share = data->sph.viscosity.share;
    if (data->sph.viscosity.done)
        return;
    SK_CUDA_EACH(i, step->particles.count)
    turn_viscosity_at(&s, share, i);
}

static __global__ void end_viscosity(sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const double squares = data->sph.viscosity.squares;
    data->results.sph.viscosity_iterations = data->sph.viscosity.iterations;
    data->results.sph.viscosity_failed = !(squares <= 1e4 * data->sph.viscosity.goal) && squares > 0.0;
}

static void launch_conjugate_step(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants;
    (void)host;
    SK_LAUNCH(cuda, apply_rows, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH(cuda, advance_rows, SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data, cuda->condition);
    SK_LAUNCH_SIMPLE(cuda, turn_rows, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
}

static void launch_viscosity(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants;
    const sk_cuda_condition handle = sk_cuda_new_condition(cuda);
    SK_LAUNCH(cuda, begin_viscosity, SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH(cuda, apply_rows, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH(cuda, begin_residual, SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data, handle);
    sk_cuda_repeat(cuda, host, launch_conjugate_step, &cuda->data->sph.viscosity.done);
    SK_LAUNCH_SIMPLE(cuda, end_viscosity, 1, 1, cuda->data);
}

selkie_code SK_DIM(sk_cuda_sph_forces)(sk_step *step, selkie_error *error)
{
    step->cuda->particles_here = 0;
    SK_TRY(sk_cuda_run(step, "sph_forces", launch_forces, error));
    return sk_sph_viscosity_is_implicit(step) ? sk_cuda_run(step, "sph_viscosity", launch_viscosity, error) : SELKIE_OK;
}

/* --- Corrected gradients --- */

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    correct(sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame grid_frame = frame_of_grid(&step->grid);
    const list_frame frame = frame_of_lists(step, constants);
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        const corrected_sums sums = correct_list(step->sph, &list, (uint32_t)i);
        near_walls walls;
        walls.range_count = 0;
        if (step->sph->boundary.count) {
            int at[3];
            find_walls(step, cell_of_particle(&step->grid, data, &grid_frame, step->particles.records[i].position, at),
                       &walls);
        }
        finish_correction(&frame, &walls, (uint32_t)i, &sums);
    }
}

static void launch_correct(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, correct, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->sph_constants,
                     cuda->data);
}

selkie_code SK_DIM(sk_cuda_sph_correct)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "sph_correct", launch_correct, error);
}

/* --- Pressure --- */

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    prepare(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    /* Solid particles of liquid boundaries have no equation and must not dilute the mean: sk_sph_begin_solve. */
    const double solid = data->results.sph.boundaries;
    sk_sph_system system = constants->system;
    system.roles = solid > 0.0;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        data->sph.progress = constants->progress;
        data->sph.progress.unit = fmax((double)step->particles.count - solid, 1.0) * step->sph->spacing;
        data->sph.done = 0;
        data->sph.diverged = 0;
    }
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        prepare_particle(step, &system, &list, (uint32_t)i);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS) find_shifts(const sk_step *step, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_sph *sph = step->sph;
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, sph, i);
        shift_particle(sph, &list, sph->variable[SK_SPH_Y], (uint32_t)i);
    }
}

/* Does the solve go on? By one thread. Without acceleration the new point replaces the old one. */
SK_DEVICE void judge(sk_sph *sph, sk_cuda_data *data, const sk_sph_solve_sums *sums)
{
    const int verdict = sk_sph_judge(&data->sph.progress, sums);
    data->sph.done = verdict != SK_SPH_GOES_ON;
    data->sph.diverged = verdict == SK_SPH_DIVERGES;
    if (verdict == SK_SPH_GOES_ON && !data->sph.progress.accelerated) {
        float *y = sph->variable[SK_SPH_Y];
        sph->variable[SK_SPH_Y] = sph->variable[SK_SPH_NEXT];
        sph->variable[SK_SPH_NEXT] = y;
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    iterate(const sk_step *step, sk_cuda_data *data, sk_cuda_condition handle)
{
    SK_CUDA_WAIT();
    sk_sph *sph = step->sph;
    const sk_sph_iteration iteration = sk_sph_next_iteration(&data->sph.progress);
    sk_sph_solve_sums sums = {0.0, 0.0, 0.0, 0.0};
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, sph, i);
        iterate_particle(sph, &iteration, shift_divergence(sph, &list, (uint32_t)i), (uint32_t)i, &sums);
    }
    double total[4] = {sums.error, sums.uphill, sums.curvature, sums.length};
    if (sum_over_launch(data, total, nullptr) && threadIdx.x == 0) {
        const sk_sph_solve_sums all = {total[0], total[1], total[2], total[3]};
        judge(sph, data, &all);
        SK_CUDA_SET_CONDITION(handle, !data->sph.done);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS) extrapolate(const sk_step *step, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_sph *sph = step->sph;
    const float momentum = data->sph.progress.momentum;
    if (data->sph.done)
        return;
    SK_CUDA_EACH(i, step->particles.count)
    sk_sph_extrapolate(sph->variable[SK_SPH_NEXT][i], momentum, &sph->variable[SK_SPH_Y][i],
                       &sph->variable[SK_SPH_X][i], &sph->variable[SK_SPH_BEFORE][i]);
}

/* Velocities and pressures. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    end_solve(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_sph *sph = step->sph;
    SK_CUDA_EACH(i, step->particles.count)
    sph->pressure[i] = sk_sph_end_particle(&constants->ending, sph->shift[i], sph->variable[SK_SPH_Y][i],
                                           sph->density[i], step->particles.records[i].velocity);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        data->results.sph.iterations = data->sph.progress.iterations;
        data->results.sph.error = data->sph.progress.error;
        data->results.sph.largest = data->sph.progress.largest;
        data->results.sph.diverged = data->sph.diverged;
    }
}

/* The contacts of a particle with wanted parts of the walls. Returns their number; none of a solid particle. */
SK_DEVICE int find_contacts(const sk_step *step, sk_cuda_data *data, const sk_plain_frame *frame,
                            const sk_particle *particle, size_t i, contact_list *list)
{
    const sk_sph *sph = step->sph;
    int at[3];
    const sk_plain_cell cell = cell_of_particle(&step->grid, data, frame, particle->position, at);
    near_walls walls;
    list->particle = (uint32_t)i;
    list->count = list->overflow = 0;
    walls.side_count = find_wanted_sides(step, cell.slot, walls.sides);
    walls.range_count = 0;
    if (sph->boundary.count)
        find_points_near_cell(step, cell.slot, cell.local, &walls);
    if (!(walls.side_count || walls.range_count) || particle->flags & SK_PARTICLE_BOUNDARY)
        return 0;
    find_contacts_of(sph, &walls, particle->position, list);
    if (list->overflow)
        data->results.sph.crowded = 1;
    return list->count;
}

/* The force of the pressure on a part: sk_sph_coupling_end. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    press_part(const sk_step *step, uint32_t part, sk_cuda_data *data, double (*forces)[SK_CUDA_PART_FORCES][6])
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    part_sums sums = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
    SK_CUDA_EACH(i, step->particles.count)
    {
        const sk_particle particle = load_particle(&step->particles.records[i]);
        const double value = (double)step->sph->variable[SK_SPH_Y][i];
        contact_list list;
        const int count = find_contacts(step, data, &frame, &particle, i, &list);
        for (int c = 0; c < count; c++)
            for (int d = 0; list.found[c].part == part && d < 3; d++) {
                sums.force[d] += value * (double)list.found[c].gradient[d];
                sums.torque[d] += value * (double)list.found[c].gradient[3 + d];
            }
    }
    report_force(data, &sums, forces[part][SK_CUDA_FORCE_OF_PRESSURE]);
}

static void launch_iteration(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, find_shifts, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data);
    SK_LAUNCH(cuda, iterate, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data, cuda->condition);
    if (cuda->sent->sph_constants.progress.accelerated)
        SK_LAUNCH_SIMPLE(cuda, extrapolate, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data);
}

static void launch_pressure(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants;
    sk_cuda_new_condition(cuda);
    SK_LAUNCH_SIMPLE(cuda, prepare, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    sk_cuda_repeat(cuda, host, launch_iteration, &cuda->data->sph.done);
    SK_LAUNCH_SIMPLE(cuda, end_solve, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    for (int b = 0; cuda->part_forces && b < host->sph->boundary.body_count; b++)
        if (host->sph->boundary.bodies[b].wants_force)
            SK_LAUNCH(cuda, press_part, SK_CUDA_SUMS, SK_CUDA_THREADS, step, (uint32_t)b, cuda->data,
                      cuda->part_forces);
}

selkie_code SK_DIM(sk_cuda_sph_pressure)(sk_step *step, selkie_error *error)
{
    sk_sph_system system;
    if (!sk_sph_system_begin(step, &system))
        return SELKIE_OK;
    return sk_cuda_run(step, "sph_pressure", launch_pressure, error);
}

/* --- Friction of walls --- */

/* Coulomb's friction of the walls that a particle touches, one after the other. Adds the reactions of one part, if
 * there are `sums`. Returns whether there is any friction. */
SK_DEVICE int rub_particle(const sk_step *step, const contact_list *list, uint32_t part, sk_particle *particle,
                           part_sums *sums)
{
    const sk_sph_body *bodies = step->sph->boundary.bodies;
    int rubbed = 0;
    for (int c = 0; c < list->count; c++) {
        const sk_sph_body *body = &bodies[list->found[c].part];
        float after[3] = {0.0f, 0.0f, 0.0f};
        if (!body->rubs || !rub_contact(step, &list->found[c], particle->velocity, after))
            continue;
        if (sums && list->found[c].part == part)
            add_rubbing(step, body, particle, after, sums->force, sums->torque);
        for (int d = 0; d < SELKIE_DIM; d++)
            particle->velocity[d] = after[d];
        rubbed = 1;
    }
    return rubbed;
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS) rub_on_walls(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    SK_CUDA_EACH(i, step->particles.count)
    {
        sk_particle particle = load_particle(&step->particles.records[i]);
        contact_list list;
        if (find_contacts(step, data, &frame, &particle, i, &list) && rub_particle(step, &list, 0, &particle, nullptr))
            store_particle(&step->particles.records[i], particle);
    }
}

/* The reactions on a part, before the particles are slowed. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    rub_part(const sk_step *step, uint32_t part, sk_cuda_data *data, double (*forces)[SK_CUDA_PART_FORCES][6])
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    part_sums sums = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
    SK_CUDA_EACH(i, step->particles.count)
    {
        sk_particle particle = load_particle(&step->particles.records[i]);
        contact_list list;
        if (find_contacts(step, data, &frame, &particle, i, &list))
            rub_particle(step, &list, part, &particle, &sums);
    }
    report_force(data, &sums, forces[part][SK_CUDA_FORCE_OF_RUBBING]);
}

static void launch_wall_friction(sk_cuda *cuda, const sk_step *host)
{
    const sk_sph_boundary *boundary = &host->sph->boundary;
    const sk_step *step = &cuda->device->step;
    for (int b = 0; cuda->part_forces && b < boundary->body_count; b++)
        if (boundary->bodies[b].wants_force && boundary->bodies[b].rubs)
            SK_LAUNCH(cuda, rub_part, SK_CUDA_SUMS, SK_CUDA_THREADS, step, (uint32_t)b, cuda->data, cuda->part_forces);
    SK_LAUNCH_SIMPLE(cuda, rub_on_walls, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data);
}

selkie_code SK_DIM(sk_cuda_sph_wall_friction)(sk_step *step, selkie_error *error)
{
    if (!(step->dt > 0.0) || !sk_step_has_pressure(step))
        return SELKIE_OK;
    return sk_cuda_run(step, "sph_wall_friction", launch_wall_friction, error);
}
