/* The GPU form of the stress solver: conjugate gradients in double precision, preconditioned by one multigrid cycle in
 * single precision, or by one to three symmetric sweeps where the liquid is soft. See linalg/stress.h and
 * cuda/stress_parts.h.
 *
 * On the CPU a soft system has an iteration of its own, which keeps the residual behind a triangle of the matrix
 * (linalg/stress_soft_dim.c). In exact arithmetic it takes the same steps as the iteration here. Its stopping rule,
 * by the energy of the residual, is kept.
 *
 * The cycle is in stress_cycle_dim.cu. Scalars stay on the device: the last thread block of a launch adds up the sums
 * of all blocks in a fixed order and decides how the iteration goes on. */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/stress_parts.h"

/* --- Decisions of the iteration --- */

/* Has an iteration nothing to do? One of `lone` sweeps without coarse levels leaves a system that needs others to the
 * loop at the end. */
SK_DEVICE bool is_over(const sk_cuda_stress *stress, int lone)
{
    return stress->done || (lone && stress->soft != lone);
}

/* Is a pass over? The rules of `iterate` in linalg/stress_dim.c. */
SK_DEVICE void look_for_end(sk_cuda_stress *stress, int max_iterations)
{
    stress->residual = stress->size > 0.0 ? stress->norm / stress->size : 0.0;
    stress->converged = stress->residual <= stress->tolerance;
    stress->most_iterations = stress->iteration > stress->most_iterations ? stress->iteration : stress->most_iterations;
    stress->done = stress->converged || stress->iteration >= max_iterations || !(stress->norm < INFINITY);
}

/* After the first symmetric sweep of soft liquid: the energy of the residual, which tells when it is enough. As
 * `soften` in linalg/stress_soft_dim.c. */
SK_DEVICE void look_at_energy(sk_cuda_stress *stress, double energy, int max_iterations)
{
    if (!stress->fresh && !(energy > stress->enough && stress->iteration < max_iterations)) {
        look_for_end(stress, max_iterations);
        stress->fresh = !stress->done;
    }
    if (stress->fresh) {
        const double reduction =
            sk_stress_reduction(stress->tolerance * stress->size, stress->norm, stress->corrections++);
        stress->enough = reduction * reduction * energy;
        stress->energy = 0.0;
        stress->fresh = 0;
    }
}

/* After a cycle, or all sweeps: the products of its result with r and with q. */
SK_DEVICE void decide_direction(sk_cuda_stress *stress, double product, double old, int max_iterations)
{
    const double now = stress->scale * product;
    stress->visits++;
    if (stress->soft == 1) {
        look_at_energy(stress, now, max_iterations);
        if (stress->done)
            return;
    }
    /* The cycle is not the same linear function each time: rounding in single precision matters for stiff liquid. This
     * beta, of Polak and Ribiere, makes up for it: r fell by alpha q. */
    stress->beta = !(stress->energy > 0.0) ? 0.0
                   : stress->soft          ? now / stress->energy
                                           : -stress->alpha * stress->scale * old / stress->energy;
    stress->now = now;
}

/* --- Kernels of the conjugate gradients --- */

/* The values of a face's vectors are summed over the faces of a block, then over the blocks by the last thread block.
 * Returns whether this is the last one: it alone has the totals. */
SK_DEVICE bool sum_over_blocks(sk_cuda_stress *stress, double total[2])
{
    if (!sk_cuda_is_last(&stress->ticket))
        return false;
    total[0] = add_up(stress->partial[0], stress->count[0]);
    total[1] = add_up(stress->partial[1], stress->count[0]);
    return true;
}

SK_DEVICE void keep_sums(sk_cuda_stress *stress, int block, double first, double second)
{
    first = sk_cuda_sum(first);
    second = sk_cuda_sum(second);
    if (threadIdx.x == 0) {
        stress->partial[0][block] = first;
        stress->partial[1][block] = second;
    }
}

/* Of several sweeps: the product of the first one's result with r. */
static __global__ void __launch_bounds__(CELLS) take_energy(const sk_step *step, sk_cuda_stress *stress, int lone)
{
    SK_CUDA_WAIT();
    if (is_over(stress, lone) || stress->soft < 2)
        return;
    const stress_level &level = stress->level[0];
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        double energy = 0.0;
        for (int a = 0; a < SELKIE_DIM; a++)
            energy += stress->r[a][here] * (double)level.x[a][here];
        keep_sums(stress, block, energy, 0.0);
    }
    double total[2];
    if (!sum_over_blocks(stress, total) || threadIdx.x != 0)
        return;
    look_at_energy(stress, stress->scale * total[0], step->scene->pressure.max_iterations);
    stress->visits += stress->done;
}

/* The products of the cycle's result with r and q. */
static __global__ void __launch_bounds__(CELLS) take_products(const sk_step *step, sk_cuda_stress *stress, int lone)
{
    SK_CUDA_WAIT();
    if (is_over(stress, lone))
        return;
    const stress_level &level = stress->level[0];
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        double now = 0.0, old = 0.0;
        for (int a = 0; a < SELKIE_DIM; a++) {
            now += stress->r[a][here] * (double)level.x[a][here];
            old += stress->q[a][here] * (double)level.x[a][here];
        }
        keep_sums(stress, block, now, old);
    }
    double total[2];
    if (sum_over_blocks(stress, total) && threadIdx.x == 0)
        decide_direction(stress, total[0], total[1], step->scene->pressure.max_iterations);
}

/* p = z + beta p. */
static __global__ void __launch_bounds__(CELLS) turn(sk_cuda_stress *stress, int lone)
{
    SK_CUDA_WAIT();
    if (is_over(stress, lone))
        return;
    const stress_level &level = stress->level[0];
    const double scale = stress->scale, beta = stress->beta;
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        for (int a = 0; a < SELKIE_DIM; a++)
            stress->p[a][here] = scale * (double)level.x[a][here] + beta * stress->p[a][here];
    }
}

/* q = A p, and the length of the step along p; or q = A x at the start. */
static __global__ void __launch_bounds__(CELLS) multiply(sk_cuda_stress *stress, int of_start, int lone)
{
    SK_CUDA_WAIT();
    if (is_over(stress, lone) && !of_start)
        return;
    const stress_level &level = stress->level[0];
    double *const *from = of_start ? stress->x : stress->p;
    double *const vectors[3] = {from[0], from[1], SELKIE_DIM == 3 ? from[2] : nullptr};
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const cells_around around = around_cell(level, block, (int)threadIdx.x);
        double sum = 0.0;
        each_axis([&](auto axis) {
            constexpr int A = decltype(axis)::value;
            if (!is_unknown(level, around.here, A))
                return;
            float coefficient[SK_STRESS_NEIGHBOURS];
            const double diagonal = (double)row_of<A>(level, around, coefficient), own = vectors[A][around.here];
            const double result = diagonal * own + neighbour_sum<A, double>(around, coefficient, vectors);
            stress->q[A][around.here] = result;
            sum += own * result;
        });
        keep_sums(stress, block, sum, 0.0);
    }
    double total[2];
    if (!of_start && sum_over_blocks(stress, total) && threadIdx.x == 0)
        stress->alpha = stress->soft && !(total[0] > 0.0) ? 0.0 : stress->now / total[0];
}

/* x += alpha p, r -= alpha q, or at the start of a pass r -= q if it is the first. The level gets r over the size it
 * had before: in single precision neither large nor small values are lost. */
static __global__ void __launch_bounds__(CELLS)
    advance_stress(const sk_step *step, sk_cuda_stress *stress, sk_cuda_condition handle, int starts, int lone)
{
    SK_CUDA_WAIT();
    if (is_over(stress, lone) && !starts) {
        if (blockIdx.x == 0 && threadIdx.x == 0)
            SK_CUDA_SET_CONDITION(handle, 0);
        return;
    }
    const stress_level &level = stress->level[0];
    const double alpha = !starts ? stress->alpha : stress->pass ? 0.0 : 1.0;
    const double scale = starts ? stress->size : stress->norm, up = scale > 0.0 ? 1.0 / scale : 0.0;
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        double sum = 0.0;
        for (int a = 0; a < SELKIE_DIM; a++) {
            if (!starts)
                stress->x[a][here] += alpha * stress->p[a][here];
            const double left = stress->r[a][here] - alpha * stress->q[a][here];
            stress->r[a][here] = left;
            sum += left * left;
            level.b[a][here] = (float)(left * up);
            level.x[a][here] = 0.0f;
        }
        keep_sums(stress, block, sum, 0.0);
    }
    double total[2];
    if (!sum_over_blocks(stress, total) || threadIdx.x != 0)
        return;
    const int most = step->scene->pressure.max_iterations;
    stress->norm = sqrt(total[0]);
    stress->scale = scale;
    stress->energy = starts ? 0.0 : stress->now;
    stress->iteration = starts ? 0 : stress->iteration + 1;
    if (starts) {
        stress->alpha = stress->now = 0.0;
        stress->visits = stress->corrections = 0;
        stress->done = stress->failed;
        stress->fresh = stress->soft;
    }
    if (!stress->done && (starts || !stress->soft || !(stress->norm < INFINITY)))
        look_for_end(stress, most);
    if (!starts)
        SK_CUDA_SET_CONDITION(handle, !stress->done);
}

/* The size of the right side: residuals are relative to it. */
static __global__ void __launch_bounds__(CELLS) measure_right_side(sk_cuda_stress *stress, double tolerance)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        double sum = 0.0;
        for (int a = 0; a < SELKIE_DIM; a++)
            sum += stress->right[a][here] * stress->right[a][here];
        keep_sums(stress, block, sum, 0.0);
    }
    double total[2];
    if (sum_over_blocks(stress, total) && threadIdx.x == 0) {
        stress->size = sqrt(total[0]);
        stress->tolerance = sk_stress_tolerance(tolerance, stress->pass + 1 == SK_VISCOUS_PASSES);
    }
}

/* --- In --- */

/* The right side and the start of a face; 0 at faces that are no unknowns. */
static __global__ void __launch_bounds__(CELLS) load(const sk_step *step, sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    for (int block = (int)blockIdx.x; block < stress->count[0]; block += (int)gridDim.x) {
        const cells_around around = around_cell(level, block, (int)threadIdx.x);
        const size_t here = around.here;
        if (block && threadIdx.x == 0 && !level.any[block])
            stress->partial[0][block] = stress->partial[1][block] = 0.0;
        each_axis([&](auto axis) {
            constexpr int A = decltype(axis)::value;
            const float mass = level.mass[A][here], target = step->grid.fields[SK_FIELD_VELOCITY_X + A][here];
            const int unknown = block && is_unknown(level, here, A), heavy = unknown && mass > 0.0f;
            double right = heavy ? (double)mass * (double)target : 0.0;
            if (unknown) {
                float coefficient[SK_STRESS_NEIGHBOURS];
                double given = 0.0;
                row_of<A>(level, around, coefficient);
                for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
                    int offset[3];
                    sk_stress_offset(A, m, offset);
                    const int component = sk_stress_component(A, m);
                    const size_t place = place_at(around, offset);
                    if (level.fixed[component][place])
                        given += (double)coefficient[m] * (double)stress->fields.velocity[component][place];
                }
                right -= given;
            }
            const float start = stress->fields.velocity[A][here];
            stress->right[A][here] = stress->r[A][here] = right;
            stress->x[A][here] = heavy && start == start ? (double)start : 0.0;
            stress->p[A][here] = stress->q[A][here] = 0.0;
            level.x[A][here] = level.b[A][here] = level.rest[A][here] = 0.0f;
        });
        stress->source[here] = stress->gain[here] = 0.0f;
    }
}

/* Faces without mass follow the stress of the faces beside them: start_massless in linalg/stress_dim.c. */
static __global__ void __launch_bounds__(FACES) start_massless(sk_cuda_stress *stress, int k)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const int cell = cell_of_colour((int)threadIdx.x, k & 1);
        const size_t here = (size_t)block * CELLS + (size_t)cell;
        with_axis(k / 2, [&](auto axis) {
            constexpr int A = decltype(axis)::value;
            if (!is_unknown(level, here, A) || level.mass[A][here] > 0.0f)
                return;
            const cells_around around = around_cell(level, block, cell);
            float coefficient[SK_STRESS_NEIGHBOURS];
            const double diagonal = (double)row_of<A>(level, around, coefficient);
            stress->x[A][here] =
                (stress->right[A][here] - neighbour_sum<A, double>(around, coefficient, stress->x)) / diagonal;
        });
    }
}

/* --- Between passes, and out --- */

/* The solution as the velocity of the faces. A pass that failed leaves the start. */
static __global__ void __launch_bounds__(CELLS) store(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    for (int block = (int)blockIdx.x; block < stress->count[0]; block += (int)gridDim.x) {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        const int any = block && level.any[block];
        for (int a = 0; a < SELKIE_DIM; a++) {
            const int unknown = any && is_unknown(level, here, a);
            stress->fields.solved[a][here] = (uint8_t)unknown;
            stress->fields.carried[a][here] = 0;
            if (unknown && !stress->failed)
                stress->fields.velocity[a][here] = (float)stress->x[a][here];
        }
    }
}

/* The end of a pass: whether it failed, and what to remember of it. */
static __global__ void end_pass(sk_cuda_stress *stress, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    stress->pass_visits[stress->pass] = stress->visits;
    const int last = stress->pass + 1 == SK_VISCOUS_PASSES;
    stress->failed |= !(stress->residual < INFINITY) || (!stress->converged && !last);
    stress->pass++;
    if (!last)
        return;
    data->results.viscosity.iterations = stress->most_iterations;
    data->results.viscosity.converged = stress->converged && !stress->failed;
    data->results.viscosity.residual = stress->residual;
    data->results.viscosity.overflow = stress->overflow;
    data->results.viscosity.unknowns = stress->unknowns[0];
    data->results.viscosity.levels = stress->bottom + 1;
    data->results.viscosity.soft = stress->soft;
    for (int n = 0; n < SK_VISCOUS_PASSES; n++)
        data->results.viscosity.visits[n] = stress->pass_visits[n];
    for (int n = 0; n < 4; n++)
        data->results.viscosity.blocks[n] = stress->count[n];
}

/* Lowers the source by bulk viscosity times divergence. The gain is minus that. */
static __global__ void __launch_bounds__(CELLS) lower_source(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    for (int block = 1 + (int)blockIdx.x; block < stress->count[0]; block += (int)gridDim.x) {
        const cells_around around = around_cell(level, block, (int)threadIdx.x);
        const float bulk = level.bulk[around.here];
        if (!(bulk > 0.0f))
            continue;
        float divergence = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float *velocity = stress->fields.velocity[d];
            divergence += velocity[place_beside(around, d, 1)] - velocity[around.here];
        }
        const float more = divergence == divergence ? -bulk * divergence : 0.0f;
        stress->gain[around.here] = more;
        stress->source[around.here] += more;
    }
}

/* Takes what the sources of the cells beside them gained off the right side and the residual. */
static __global__ void __launch_bounds__(CELLS) add_source(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const cells_around around = around_cell(level, block, (int)threadIdx.x);
        for (int a = 0; a < SELKIE_DIM; a++) {
            if (!is_unknown(level, around.here, a))
                continue;
            const float change = stress->gain[around.here] - stress->gain[place_beside(around, a, -1)];
            stress->right[a][around.here] -= (double)change;
            stress->r[a][around.here] -= (double)change;
        }
    }
}

/* --- Launches --- */

static int width_of_grid(const sk_cuda *cuda)
{
    return width_of_level(cuda, &cuda->stress_shadow->level[0], 0);
}

static void launch_step(sk_cuda *cuda, int lone)
{
    const sk_step *step = &cuda->device->step;
    const int wide = width_of_grid(cuda);
    SK_LAUNCH(cuda, take_products, wide, CELLS, step, cuda->stress, lone);
    SK_LAUNCH_SIMPLE(cuda, turn, wide, CELLS, cuda->stress, lone);
    SK_LAUNCH(cuda, multiply, wide, CELLS, cuda->stress, 0, lone);
    SK_LAUNCH(cuda, advance_stress, wide, CELLS, step, cuda->stress, cuda->condition, 0, lone);
}

static void launch_iteration(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_DIM(sk_cuda_launch_stress_cycle)(cuda);
    launch_step(cuda, 0);
}

static void launch_look(sk_cuda *cuda, int lone)
{
    SK_LAUNCH(cuda, take_energy, width_of_grid(cuda), CELLS, &cuda->device->step, cuda->stress, lone);
}

/* An iteration of soft liquid, by the number of its sweeps. */
static void launch_sweep_iteration(sk_cuda *cuda, int sweeps)
{
    for (int n = 0; n < sweeps; n++) {
        SK_DIM(sk_cuda_launch_symmetric_sweep)(cuda, n, sweeps);
        if (n == 0 && sweeps > 1)
            launch_look(cuda, sweeps);
    }
    launch_step(cuda, sweeps);
}

static void launch_one_sweep(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    launch_sweep_iteration(cuda, 1);
}

static void launch_two_sweeps(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    launch_sweep_iteration(cuda, 2);
}

static void launch_three_sweeps(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    launch_sweep_iteration(cuda, 3);
}

/* An iteration of any liquid. */
static void launch_any_iteration(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_DIM(sk_cuda_launch_stress_cycle)(cuda);
    launch_look(cuda, 0);
    SK_DIM(sk_cuda_launch_symmetric_sweep)(cuda, 1, 0);
    SK_DIM(sk_cuda_launch_symmetric_sweep)(cuda, 2, 0);
    launch_step(cuda, 0);
}

/* Does the loop have anything to do? */
static __global__ void look_at_stress(sk_cuda_stress *stress, sk_cuda_condition handle)
{
    SK_CUDA_WAIT();
    (void)stress;
    SK_CUDA_SET_CONDITION(handle, !stress->done);
}

static void launch_rest_of_pass(sk_cuda *cuda, const sk_step *host)
{
    const sk_cuda_condition handle = sk_cuda_new_condition(cuda);
    SK_LAUNCH_SIMPLE(cuda, look_at_stress, 1, 1, cuda->stress, handle);
    sk_cuda_repeat(cuda, host, launch_any_iteration, &cuda->stress->done);
    SK_LAUNCH_SIMPLE(cuda, end_pass, 1, 1, cuda->stress, cuda->data);
}

void SK_DIM(sk_cuda_start_stress)(sk_cuda *cuda)
{
    const sk_step *step = &cuda->device->step;
    const int wide = width_of_grid(cuda);
    SK_LAUNCH_SIMPLE(cuda, load, wide, CELLS, step, cuda->stress);
    for (int sweep = 0; sweep < SK_STRESS_MASSLESS_SWEEPS; sweep++)
        for (int n = 0; n < SK_STRESS_COLOURS; n++)
            SK_LAUNCH_SIMPLE(cuda, start_massless, wide, FACES, cuda->stress,
                             sweep % 2 ? SK_STRESS_COLOURS - 1 - n : n);
    SK_LAUNCH(cuda, multiply, wide, CELLS, cuda->stress, 1, 0);
    SK_LAUNCH(cuda, measure_right_side, wide, CELLS, cuda->stress, SK_VISCOUS_TOLERANCE);
    SK_LAUNCH(cuda, advance_stress, wide, CELLS, step, cuda->stress, 0, 1, 0);
}

void SK_DIM(sk_cuda_next_stress)(sk_cuda *cuda, const sk_step *host)
{
    const int wide = width_of_grid(cuda);
    launch_rest_of_pass(cuda, host);
    SK_LAUNCH_SIMPLE(cuda, store, wide, CELLS, cuda->stress);
    SK_LAUNCH_SIMPLE(cuda, lower_source, wide, CELLS, cuda->stress);
    SK_LAUNCH_SIMPLE(cuda, add_source, wide, CELLS, cuda->stress);
    SK_LAUNCH(cuda, measure_right_side, wide, CELLS, cuda->stress, SK_VISCOUS_TOLERANCE);
    SK_LAUNCH(cuda, advance_stress, wide, CELLS, &cuda->device->step, cuda->stress, 0, 1, 0);
}

void SK_DIM(sk_cuda_end_stress)(sk_cuda *cuda, const sk_step *host)
{
    launch_rest_of_pass(cuda, host);
    SK_DIM(sk_cuda_launch_momenta)(cuda);
    SK_LAUNCH_SIMPLE(cuda, store, width_of_grid(cuda), CELLS, cuda->stress);
}

selkie_code SK_DIM(sk_cuda_iterate_stress)(sk_step *step, int kind, selkie_error *error)
{
    /* One graph for each first level of the cluster. */
    static const char *const names[1 + SK_CUDA_TAIL_DEPTHS] = {"", "viscosity_iteration_1", "viscosity_iteration_2",
                                                               "viscosity_iteration_3", "viscosity_iteration_4"};
    static const char *const soft_names[4] = {"", "viscosity_one_sweep", "viscosity_two_sweeps",
                                              "viscosity_three_sweeps"};
    static void (*const soft_launch[4])(sk_cuda *, const sk_step *) = {NULL, launch_one_sweep, launch_two_sweeps,
                                                                       launch_three_sweeps};
    const int *before = step->cuda->last[kind].iterations;
    const int visits = before[0] > before[1] ? before[0] : before[1], sweeps = step->cuda->results->viscosity.soft;
    for (int n = 0; n < visits; n++) {
        step->cuda->condition = 0;
        SK_TRY(sweeps ? sk_cuda_run(step, soft_names[sweeps], soft_launch[sweeps], error)
                      : sk_cuda_run(step, names[SK_DIM(sk_cuda_stress_tail)(step->cuda)], launch_iteration, error));
    }
    return SELKIE_OK;
}
