/* Momentum and angular momentum of liquid that touches no wall: linalg/stress_rigid_dim.c.
 *
 * Parts of the liquid are found by joining faces: a root is the smallest face of its part in any order. Sums over the
 * faces of a part are whole numbers, so that their order does not matter either. The vectors p and q, which the solve
 * no longer needs, keep the roots and the numbers of the parts. */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/stress_parts.h"

enum { PART_NONE = 0, PART_HELD = -1 }; /* numbers of parts otherwise count from 1 */

SK_DEVICE int32_t *root_of(const sk_cuda_stress *stress, int face)
{
    return (int32_t *)(void *)stress->p[face % SELKIE_DIM] + face / SELKIE_DIM;
}

SK_DEVICE int32_t *part_of(const sk_cuda_stress *stress, int face)
{
    return (int32_t *)(void *)stress->q[face % SELKIE_DIM] + face / SELKIE_DIM;
}

/* The root, while others join parts. A face always points to a smaller one of its part, or to itself; on the way each
 * face gets a shorter path (Jaiganesh and Burtscher, HPDC 2018). */
SK_DEVICE int find_root(const sk_cuda_stress *stress, int face)
{
    int before = face, root = *(volatile int32_t *)root_of(stress, face);
    for (;;) {
        const int next = *(volatile int32_t *)root_of(stress, root);
        if (next == root)
            return root;
        *(volatile int32_t *)root_of(stress, before) = next;
        before = root;
        root = next;
    }
}

SK_DEVICE void join(const sk_cuda_stress *stress, int face, int other)
{
    for (;;) {
        const int a = find_root(stress, face), b = find_root(stress, other);
        if (a == b)
            return;
        face = a > b ? a : b;
        other = a > b ? b : a;
        if (atomicCAS(root_of(stress, face), face, other) == face)
            return;
    }
}

/* Each face points to a smaller one of its part, if it has such a neighbour. */
static __global__ void __launch_bounds__(CELLS) begin_parts(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const cells_around around = around_cell(level, block, (int)threadIdx.x);
        each_axis([&](auto axis) {
            constexpr int A = decltype(axis)::value;
            const int face = (int)around.here * SELKIE_DIM + A;
            int root = face;
            float coefficient[SK_STRESS_NEIGHBOURS];
            row_of<A>(level, around, coefficient);
            for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
                int offset[3];
                sk_stress_offset(A, m, offset);
                const int component = sk_stress_component(A, m);
                const size_t place = place_at(around, offset);
                const int other = (int)place * SELKIE_DIM + component;
                if (other < root && coefficient[m] != 0.0f && is_unknown(level, place, component))
                    root = other;
            }
            *root_of(stress, face) = is_unknown(level, around.here, A) ? root : face;
            *part_of(stress, face) = PART_NONE;
        });
    }
}

/* Joins faces between which stress acts. Of each pair the larger one does it. */
static __global__ void __launch_bounds__(CELLS) join_faces(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const cells_around around = around_cell(level, block, (int)threadIdx.x);
        each_axis([&](auto axis) {
            constexpr int A = decltype(axis)::value;
            if (!is_unknown(level, around.here, A))
                return;
            const int face = (int)around.here * SELKIE_DIM + A;
            float coefficient[SK_STRESS_NEIGHBOURS];
            row_of<A>(level, around, coefficient);
            for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
                int offset[3];
                sk_stress_offset(A, m, offset);
                const int component = sk_stress_component(A, m);
                const size_t place = place_at(around, offset);
                const int other = (int)place * SELKIE_DIM + component;
                if (other < face && coefficient[m] != 0.0f && is_unknown(level, place, component))
                    join(stress, face, other);
            }
        });
    }
}

/* Points each face to its root. Marks the roots of the parts that a wall holds. Finds the largest missing momentum. */
static __global__ void __launch_bounds__(CELLS) find_parts(const sk_step *step, sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    double largest = 0.0;
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const cells_around around = around_cell(level, block, (int)threadIdx.x);
        each_axis([&](auto axis) {
            constexpr int A = decltype(axis)::value;
            if (!is_unknown(level, around.here, A))
                return;
            const int face = (int)around.here * SELKIE_DIM + A, root = find_root(stress, face);
            float coefficient[SK_STRESS_NEIGHBOURS];
            int held = 0;
            row_of<A>(level, around, coefficient);
            for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
                int offset[3];
                sk_stress_offset(A, m, offset);
                held |= coefficient[m] != 0.0f && level.fixed[sk_stress_component(A, m)][place_at(around, offset)];
            }
            if (held)
                *part_of(stress, root) = PART_HELD;
            *root_of(stress, face) = root;
            const float mass = level.mass[A][around.here];
            if (mass > 0.0f)
                largest =
                    fmax(largest, fabs((double)mass * ((double)step->grid.fields[SK_FIELD_VELOCITY_X + A][around.here] -
                                                       stress->x[A][around.here])));
        });
    }
    union {
        double value;
        unsigned long long bits;
    } most;
    most.value = sk_cuda_largest(largest);
    if (threadIdx.x == 0 && most.value > 0.0)
        atomicMax(&stress->largest_momentum, most.bits);
}

/* Numbers the parts that no wall holds. Their order is arbitrary; nothing depends on it. */
static __global__ void __launch_bounds__(CELLS) number_parts(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const stress_level &level = stress->level[0];
    EACH_STRESS_BLOCK(block, stress, level, 0)
    for (int a = 0; a < SELKIE_DIM; a++) {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        const int face = (int)here * SELKIE_DIM + a;
        if (!is_unknown(level, here, a) || *root_of(stress, face) != face || *part_of(stress, face) != PART_NONE)
            continue;
        const int number = atomicAdd(&stress->part_count, 1);
        if (number >= stress->part_capacity) {
            stress->overflow = 1;
            *part_of(stress, face) = PART_HELD;
            continue;
        }
        memset(&stress->parts[number], 0, sizeof stress->parts[number]);
        stress->parts[number].root = face;
        *part_of(stress, face) = 1 + number;
    }
}

/* The number of the part of a face; PART_HELD if a wall holds it. */
SK_DEVICE int number_of_part(const sk_cuda_stress *stress, int face)
{
    return *part_of(stress, *root_of(stress, face));
}

/* Rigid motions at a face, about the cell of the root of its part. */
SK_DEVICE void modes_at(const stress_level &level, const rigid_part *part, int block, int cell, int a,
                        double mode[SK_STRESS_MODES])
{
    const int root = part->root / SELKIE_DIM;
    double x[3] = {0.0, 0.0, 0.0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int origin = level.coordinates[root / CELLS][d] * N + sk_plain_along(root % CELLS, d);
        x[d] = (double)(level.coordinates[block][d] * N + sk_plain_along(cell, d) - origin) + (d == a ? 0.0 : 0.5);
    }
    sk_stress_rigid_modes(x, a, 1, mode);
}

/* Units of the sums are powers of two, so large that a sum over all faces fits into 62 bits: of the matrix, and of the
 * momenta. */
typedef struct sum_units {
    double matrix, momenta;
} sum_units;

SK_DEVICE sum_units units_of_sums(const sk_cuda_stress *stress)
{
    union {
        unsigned bits;
        float value;
    } mass;
    union {
        unsigned long long bits;
        double value;
    } momentum;
    int cells = 1;
    mass.bits = stress->largest_mass;
    momentum.bits = stress->largest_momentum;
    for (int d = 0; d < SELKIE_DIM; d++)
        cells = stress->level[0].blocks[d] * N > cells ? stress->level[0].blocks[d] * N : cells;
    const int reach = ilogb((double)cells) + 1, count = ilogb((double)stress->unknowns[0] + 1.0) + 1;
    const int heaviest = mass.value > 0.0f ? ilogb((double)mass.value) + 1 : 0;
    const int largest = momentum.value > 0.0 ? ilogb(momentum.value) + 1 : 0;
    const sum_units units = {ldexp(1.0, 2 * reach + count + heaviest - 62), ldexp(1.0, reach + count + largest - 62)};
    return units;
}

/* What a face adds to the sums of its part. */
typedef struct face_sums {
    long long matrix[SK_STRESS_TRIANGLE], missing[SK_STRESS_MODES];
} face_sums;

SK_DEVICE void add_face(const sum_units &units, double mass, double change, const double mode[SK_STRESS_MODES],
                        face_sums *sums)
{
    for (int i = 0, n = 0; i < SK_STRESS_MODES; i++) {
        sums->missing[i] += llrint(mass * mode[i] * change / units.momenta);
        for (int j = 0; j <= i; j++, n++)
            sums->matrix[n] += llrint(mass * mode[i] * mode[j] / units.matrix);
    }
}

SK_DEVICE void add_sums(rigid_part *part, const face_sums *sums)
{
    for (int n = 0; n < SK_STRESS_TRIANGLE; n++)
        if (sums->matrix[n])
            atomicAdd(&part->matrix[n], (unsigned long long)sums->matrix[n]);
    for (int n = 0; n < SK_STRESS_MODES; n++)
        if (sums->missing[n])
            atomicAdd(&part->missing[n], (unsigned long long)sums->missing[n]);
}

/* Adds the faces of a cell to the sums of their parts. In most blocks there is one part: a warp or more would add to
 * the same sums, so the thread block adds them up before. */
static __global__ void __launch_bounds__(CELLS) sum_parts(const sk_step *step, sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    __shared__ int common;
    if (!stress->part_count)
        return;
    const stress_level &level = stress->level[0];
    const sum_units units = units_of_sums(stress);
    EACH_STRESS_BLOCK(block, stress, level, 0)
    {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        int number[3] = {PART_HELD, PART_HELD, PART_HELD}, own = 0;
        for (int a = 0; a < SELKIE_DIM; a++)
            if (is_unknown(level, here, a) && level.mass[a][here] > 0.0f) {
                number[a] = number_of_part(stress, (int)here * SELKIE_DIM + a);
                own = number[a] > own ? number[a] : own;
            }
        __syncthreads();
        if (threadIdx.x == 0)
            common = 0;
        __syncthreads();
        if (own)
            atomicCAS(&common, 0, own);
        __syncthreads();
        const int shared = common;
        int differs = 0;
        for (int a = 0; a < SELKIE_DIM; a++)
            differs |= number[a] > 0 && number[a] != shared;
        differs = __syncthreads_or(differs);
        if (!shared)
            continue;
        face_sums sums = {{0}, {0}};
        for (int a = 0; a < SELKIE_DIM; a++) {
            if (number[a] <= 0)
                continue;
            rigid_part *part = &stress->parts[number[a] - 1];
            double mode[SK_STRESS_MODES];
            modes_at(level, part, block, (int)threadIdx.x, a, mode);
            const double change = (double)step->grid.fields[SK_FIELD_VELOCITY_X + a][here] - stress->x[a][here];
            add_face(units, (double)level.mass[a][here], change, mode, &sums);
            if (!differs)
                continue;
            add_sums(part, &sums);
            memset(&sums, 0, sizeof sums);
        }
        if (differs)
            continue;
        for (int n = 0; n < SK_STRESS_TRIANGLE; n++)
            sums.matrix[n] = sk_cuda_sum(sums.matrix[n]);
        for (int n = 0; n < SK_STRESS_MODES; n++)
            sums.missing[n] = sk_cuda_sum(sums.missing[n]);
        if (threadIdx.x == 0)
            add_sums(&stress->parts[shared - 1], &sums);
    }
}

/* The rigid motions of the parts. */
static __global__ void solve_parts(sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    const int count = stress->part_count < stress->part_capacity ? stress->part_count : stress->part_capacity;
    const sum_units units = units_of_sums(stress);
    SK_CUDA_EACH(p, count)
    {
        rigid_part *part = &stress->parts[p];
        double matrix[SK_STRESS_TRIANGLE];
        for (int n = 0; n < SK_STRESS_TRIANGLE; n++)
            matrix[n] = (double)(long long)part->matrix[n] * units.matrix;
        for (int n = 0; n < SK_STRESS_MODES; n++)
            part->motion[n] = (double)(long long)part->missing[n] * units.momenta;
        double mass = 0.0;
        for (int d = 0; d < SELKIE_DIM; d++)
            mass += matrix[d * (d + 3) / 2];
        part->speck = mass < SELKIE_DIM;
        sk_stress_rigid_motion(matrix, 64.0 * units.matrix, part->motion);
    }
}

/* Adds the rigid motion of its part to each face. Faces of specks take their target where there is one. */
static __global__ void __launch_bounds__(CELLS) move_parts(const sk_step *step, sk_cuda_stress *stress)
{
    SK_CUDA_WAIT();
    if (!stress->part_count)
        return;
    const stress_level &level = stress->level[0];
    EACH_STRESS_BLOCK(block, stress, level, 0)
    for (int a = 0; a < SELKIE_DIM; a++) {
        const size_t here = (size_t)block * CELLS + threadIdx.x;
        if (!is_unknown(level, here, a))
            continue;
        const int number = number_of_part(stress, (int)here * SELKIE_DIM + a);
        if (number <= 0)
            continue;
        const float target = step->grid.fields[SK_FIELD_VELOCITY_X + a][here];
        if (stress->parts[number - 1].speck && target == target) {
            stress->x[a][here] = (double)target;
            continue;
        }
        double mode[SK_STRESS_MODES];
        modes_at(level, &stress->parts[number - 1], block, (int)threadIdx.x, a, mode);
        for (int i = 0; i < SK_STRESS_MODES; i++)
            stress->x[a][here] += stress->parts[number - 1].motion[i] * mode[i];
    }
}

void SK_DIM(sk_cuda_launch_momenta)(sk_cuda *cuda)
{
    const sk_step *step = &cuda->device->step;
    sk_cuda_stress *stress = cuda->stress;
    const int wide = width_of_level(cuda, &cuda->stress_shadow->level[0], 0);
    SK_LAUNCH_SIMPLE(cuda, begin_parts, wide, CELLS, stress);
    SK_LAUNCH_SIMPLE(cuda, join_faces, wide, CELLS, stress);
    SK_LAUNCH(cuda, find_parts, wide, CELLS, step, stress);
    SK_LAUNCH_SIMPLE(cuda, number_parts, wide, CELLS, stress);
    SK_LAUNCH(cuda, sum_parts, wide, CELLS, step, stress);
    SK_LAUNCH_SIMPLE(cuda, solve_parts, SK_CUDA_WIDE, SK_CUDA_THREADS, stress);
    SK_LAUNCH_SIMPLE(cuda, move_parts, wide, CELLS, step, stress);
}
