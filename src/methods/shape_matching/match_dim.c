/* Goals of the particles of bodies, and their pull towards them. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "linalg/small_dense_kernels.h"
#include "methods/shape_matching/shape_kernels.h"
#include "methods/shape_matching/shape_matching.h"

enum {
    SPAN = 2048
}; /* points of a partial sum: spans are added in order, for the same bits on any number of threads */

static uint32_t point_of(const sk_soft_region *region, uint32_t n)
{
    return region->members ? region->members[region->first + n] : region->first + n;
}

/* The rest position of a point about the centre of its region, after plastic flow. */
static void rest_of(const sk_soft_region *region, const sk_soft_point *point, double q[3])
{
    double r[3] = {0.0, 0.0, 0.0};
    q[2] = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        r[d] = point->rest[d] - region->centre[d];
    for (int d = 0; d < SELKIE_DIM; d++)
        q[d] = region->flow[3 * d] * r[0] + region->flow[3 * d + 1] * r[1] + region->flow[3 * d + 2] * r[2];
}

static double share_of(const sk_soft *soft, uint32_t k)
{
    return (double)soft->shares[k];
}

/* Inverts a symmetric positive definite matrix of n rows by Gauss-Jordan. Returns 0 where it is close to singular. */
static int invert(int n, const double from[81], double inverse[81])
{
    double a[81];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            a[9 * i + j] = from[9 * i + j];
            inverse[9 * i + j] = i == j;
        }
    for (int j = 0; j < n; j++) {
        const double pivot = a[9 * j + j];
        if (!(pivot > 1e-9 * from[9 * j + j]))
            return 0;
        for (int k = 0; k < n; k++) {
            a[9 * j + k] /= pivot;
            inverse[9 * j + k] /= pivot;
        }
        for (int i = 0; i < n; i++) {
            const double factor = a[9 * i + j];
            for (int k = 0; k < n && i != j; k++) {
                a[9 * i + k] -= factor * a[9 * j + k];
                inverse[9 * i + k] -= factor * inverse[9 * j + k];
            }
        }
    }
    return 1;
}

static int is_there(const sk_soft *soft, uint32_t k)
{
    return soft->record[k] >= 0;
}

/* Centre and moments of the rest shape, over the particles that are left. */
void SK_DIM(sk_soft_prepare)(const sk_soft *soft, sk_soft_region *region)
{
    const selkie_soft_def *def = &soft->bodies[region->body].soft;
    double mass = 0.0, sum[3] = {0.0, 0.0, 0.0}, moments[81] = {0.0};
    for (uint32_t n = 0; n < region->count; n++) {
        const uint32_t k = point_of(region, n);
        if (!is_there(soft, k))
            continue;
        mass += share_of(soft, k);
        for (int d = 0; d < SELKIE_DIM; d++)
            sum[d] += share_of(soft, k) * soft->points[k].rest[d];
    }
    region->is_ready = 1;
    region->columns = 0;
    if (!(mass > 0.0))
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        region->centre[d] = sum[d] / mass;

    /* Means of the quadratic columns, then the moments of all. */
    memset(region->middle, 0, sizeof region->middle);
    for (int pass = 0; pass < 2; pass++) {
        double total[9] = {0.0};
        for (uint32_t n = 0; n < region->count; n++) {
            const uint32_t k = point_of(region, n);
            double q[3], columns[9] = {0.0};
            if (!is_there(soft, k))
                continue;
            rest_of(region, &soft->points[k], q);
            sk_shape_columns(SK_SHAPE_COLUMNS, q, region->middle, columns);
            for (int i = 0; i < SK_SHAPE_COLUMNS; i++) {
                total[i] += share_of(soft, k) * columns[i];
                for (int j = 0; pass && j < SK_SHAPE_COLUMNS; j++)
                    moments[9 * i + j] += share_of(soft, k) * columns[i] * columns[j];
            }
        }
        for (int i = SELKIE_DIM; !pass && i < SK_SHAPE_COLUMNS; i++)
            region->middle[i] = total[i] / mass;
    }
    if (def->mode == SELKIE_SOFT_QUADRATIC && invert(SK_SHAPE_COLUMNS, moments, region->inverse))
        region->columns = SK_SHAPE_COLUMNS;
    else if (invert(SK_SHAPE_LINEAR, moments, region->inverse))
        region->columns = SK_SHAPE_LINEAR;
}

/* --- Sums --- */

static void sum_span(const sk_soft *soft, const sk_soft_region *region, int columns, uint32_t span, sk_shape_sums *sums)
{
    const double *about = soft->states[region->body].position;
    const uint32_t begin = span * SPAN, end = region->count - begin < SPAN ? region->count : begin + SPAN;
    memset(sums, 0, sizeof *sums);
    for (uint32_t n = begin; n < end; n++) {
        const uint32_t k = point_of(region, n);
        const sk_soft_point *point = &soft->points[k];
        double q[3], y[3] = {0.0, 0.0, 0.0}, column[9] = {0.0};
        if (!is_there(soft, k))
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            y[d] = point->position[d] - about[d];
        rest_of(region, point, q);
        sk_shape_columns(columns, q, region->middle, column);
        sk_shape_add(columns, share_of(soft, k), y, point->velocity, column, sums);
    }
}

static void add_sums(sk_shape_sums *to, const sk_shape_sums *from)
{
    double *a = (double *)(void *)to;
    const double *b = (const double *)(const void *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
        a[i] += b[i];
}

/* From moments about a point to those about the centre. */
static void centre_sums(const sk_shape_sums *sums, sk_shape_goal *goal, double inertia[6], double spin[3])
{
    const double m = sums->mass;
    double c[3] = {0.0, 0.0, 0.0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        goal->centre[d] = c[d] = sums->first[d] / m;
        goal->velocity[d] = sums->momentum[d] / m;
    }
    static const int rows[6] = {0, 0, 0, 1, 1, 2}, cells[6] = {0, 1, 2, 1, 2, 2};
    for (int i = 0; i < 6; i++)
        inertia[i] = sums->second[i] - m * c[rows[i]] * c[cells[i]];
    for (int d = 0; d < 3; d++)
        spin[d] = sums->spin[d] -
                  (c[(d + 1) % 3] * sums->momentum[(d + 2) % 3] - c[(d + 2) % 3] * sums->momentum[(d + 1) % 3]);
}

/* Angular velocity of the spin: the inertia is tr(second) - second. */
static void turn_of(const double second[6], const double spin[3], double turn[3])
{
    memset(turn, 0, 3 * sizeof *turn);
#if SELKIE_DIM == 3
    const double trace = second[0] + second[3] + second[5];
    const double a[81] = {[0] = trace - second[0], [1] = -second[1],         [2] = -second[2],
                          [9] = -second[1],        [10] = trace - second[3], [11] = -second[4],
                          [18] = -second[2],       [19] = -second[4],        [20] = trace - second[5]};
    double inverse[81];
    if (!invert(3, a, inverse))
        return;
    for (int d = 0; d < 3; d++)
        turn[d] = inverse[9 * d] * spin[0] + inverse[9 * d + 1] * spin[1] + inverse[9 * d + 2] * spin[2];
#else
    const double inertia = second[0] + second[3];
    turn[2] = inertia > 0.0 ? spin[2] / inertia : 0.0;
#endif
}

/* The rotation nearest to the moments of positions and rest positions, row-major. */
static void find_rotation(const sk_shape_sums *sums, double rotation[9])
{
    memset(rotation, 0, 9 * sizeof *rotation);
#if SELKIE_DIM == 3
    double a[9], stretch[6];
    for (int d = 0; d < 3; d++)
        for (int e = 0; e < 3; e++)
            a[3 * d + e] = sums->match[9 * d + e];
    sk_polar_double_3d(a, rotation, stretch);
#else
    const double a[4] = {sums->match[0], sums->match[1], sums->match[9], sums->match[10]};
    double turned[4], stretch[3];
    sk_polar_double_2d(a, turned, stretch);
    rotation[0] = turned[0];
    rotation[1] = turned[1];
    rotation[3] = turned[2];
    rotation[4] = turned[3];
    rotation[8] = 1.0;
#endif
}

static double determinant(const double map[27])
{
#if SELKIE_DIM == 3
    return map[0] * (map[10] * map[20] - map[11] * map[19]) - map[1] * (map[9] * map[20] - map[11] * map[18]) +
           map[2] * (map[9] * map[19] - map[10] * map[18]);
#else
    return map[0] * map[10] - map[1] * map[9];
#endif
}

/* Plastic flow of the rest shape (Mueller et al. 2005, section 4.6): beyond the yield the rest shape follows the
 * stretch S = R^T A, at a rate that does not depend on the step. Its volume stays. */
static void flow(const selkie_soft_def *def, double dt, const double rotation[9], const double map[27],
                 sk_soft_region *region)
{
    double stretch[9] = {0.0}, next[9] = {0.0}, size2 = 0.0;
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            for (int k = 0; k < SELKIE_DIM; k++)
                stretch[3 * i + j] += rotation[3 * k + i] * map[9 * k + j];
            stretch[3 * i + j] -= i == j;
            size2 += stretch[3 * i + j] * stretch[3 * i + j];
        }
    if (!(def->yield > 0.0) || !(size2 > def->yield * def->yield))
        return;
    const double part = 1.0 - exp(-def->creep * dt);
    double full[27] = {0.0}, change2 = 0.0;
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            next[3 * i + j] = region->flow[3 * i + j];
            for (int k = 0; k < SELKIE_DIM; k++)
                next[3 * i + j] += part * stretch[3 * i + k] * region->flow[3 * k + j];
            full[9 * i + j] = next[3 * i + j];
        }
    const double scale = pow(fmax(determinant(full), 1e-3), -1.0 / SELKIE_DIM);
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            next[3 * i + j] = scale * next[3 * i + j] - (i == j);
            change2 += next[3 * i + j] * next[3 * i + j];
        }
    const double limit = change2 > def->max_flow * def->max_flow ? def->max_flow / sqrt(change2) : 1.0;
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++)
            full[9 * i + j] = limit * next[3 * i + j] + (i == j);

    /* The limit changes the volume. */
    const double again = limit < 1.0 ? pow(fmax(determinant(full), 1e-3), -1.0 / SELKIE_DIM) : 1.0;
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++)
            region->flow[3 * i + j] = again * full[9 * i + j];
    region->is_ready = 0;
}

/* The goal of a region from its sums. */
static void find_goal(sk_step *step, sk_soft_region *region, const sk_shape_sums *sums, sk_shape_goal *goal)
{
    const sk_soft_body *body = &step->soft->bodies[region->body];
    const selkie_soft_def *def = &body->soft;
    double second[6], spin[3], rotation[9];
    memset(goal, 0, sizeof *goal);
    centre_sums(sums, goal, second, spin);
    turn_of(second, spin, goal->turn);
    find_rotation(sums, rotation);
    if (!region->members) {
        memcpy(step->soft->states[region->body].rotation, rotation, sizeof rotation);
        memcpy(step->soft->states[region->body].angular_velocity, goal->turn, sizeof goal->turn);
    }

    /* The best map, and its linear part with the volume of the rest shape. */
    double map[27] = {0.0};
    goal->count = region->columns;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int c = 0; c < region->columns; c++)
            for (int e = 0; e < region->columns; e++)
                map[9 * d + c] += sums->match[9 * d + e] * region->inverse[9 * e + c];
    const double volume = determinant(map);
    const double beta = def->mode == SELKIE_SOFT_RIGID || !(volume > 0.1) ? 0.0 : def->deformation;
    const double scale = volume > 0.1 && region->columns == SK_SHAPE_LINEAR ? pow(volume, -1.0 / SELKIE_DIM) : 1.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int c = 0; c < region->columns; c++)
            goal->map[9 * d + c] =
                beta * scale * map[9 * d + c] + (c < SELKIE_DIM ? (1.0 - beta) * rotation[3 * d + c] : 0.0);
    if (volume > 0.1 && !region->is_frame)
        flow(def, step->dt, rotation, map, region);

    /* Strength by frequency: independent of the step as long as it resolves the frequency (at most 60 degrees). */
    const double angle = fmin(def->stiffness * step->dt, SK_SOFT_ANGLE);
    const double alpha = 4.0 * sin(0.5 * angle) * sin(0.5 * angle);
    /* A deviation that a long step left is no speed of a short one: the next long step would carry it on by that. */
    goal->pull = alpha / fmax(step->dt, step->last_dt);
    goal->damping = 1.0 - exp(-2.0 * def->damping * angle);
}

static void pull_span(const sk_soft *soft, const sk_soft_region *region, const sk_shape_goal *goal, uint32_t span)
{
    const double *about = soft->states[region->body].position;
    const uint32_t begin = span * SPAN, end = region->count - begin < SPAN ? region->count : begin + SPAN;
    for (uint32_t n = begin; n < end; n++) {
        const uint32_t k = point_of(region, n);
        sk_soft_point *point = &soft->points[k];
        double q[3], y[3] = {0.0, 0.0, 0.0}, columns[9] = {0.0};
        if (!is_there(soft, k))
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            y[d] = point->position[d] - about[d];
        rest_of(region, point, q);
        sk_shape_columns(goal->count, q, region->middle, columns);
        sk_shape_pull(goal, share_of(soft, k), y, columns, point->velocity);
    }
}

/* --- Four points at a time --- */

typedef double lanes __attribute__((vector_size(32)));

enum { LANES = 4, BATCH = 32, GROUPS = BATCH / LANES }; /* points between load and sums, in the first cache */

/* Points of a batch, one array a component. Gone points and those beyond the end have mass 0. */
typedef struct soft_batch {
    lanes mass[GROUPS];
    lanes y[SELKIE_DIM][GROUPS], v[SELKIE_DIM][GROUPS], columns[SK_SHAPE_COLUMNS][GROUPS];
} soft_batch;

static double sum_of(lanes a)
{
    return (a[0] + a[1]) + (a[2] + a[3]);
}

static inline __attribute__((always_inline)) void load_batch(const sk_soft *soft, const sk_soft_region *region,
                                                             uint32_t begin, uint32_t end, soft_batch *batch)
{
    const double *about = soft->states[region->body].position;
    for (uint32_t g = 0; g < GROUPS; g++) {
        const sk_soft_point *p[LANES];
        double mass[LANES];
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t n = begin + LANES * g + l, k = point_of(region, n < end ? n : end - 1);
            p[l] = &soft->points[k];
            mass[l] = n < end && is_there(soft, k) ? share_of(soft, k) : 0.0;
        }
        batch->mass[g] = (lanes){mass[0], mass[1], mass[2], mass[3]};
        for (int d = 0; d < SELKIE_DIM; d++) {
            batch->y[d][g] =
                (lanes){p[0]->position[d], p[1]->position[d], p[2]->position[d], p[3]->position[d]} - about[d];
            batch->v[d][g] = (lanes){p[0]->velocity[d], p[1]->velocity[d], p[2]->velocity[d], p[3]->velocity[d]};
            batch->columns[d][g] =
                (lanes){p[0]->rest[d], p[1]->rest[d], p[2]->rest[d], p[3]->rest[d]} - region->centre[d];
        }
    }
}

/* The columns of sk_shape_columns(), from rest positions in the first of them. */
static inline __attribute__((always_inline)) void find_columns(const sk_soft_region *region, const int count,
                                                               const int flows, soft_batch *batch)
{
    for (int i = 0; i < GROUPS; i++) {
        lanes q[SELKIE_DIM];
        for (int d = 0; d < SELKIE_DIM; d++) {
            q[d] = batch->columns[d][i];
            if (flows) {
                q[d] = region->flow[3 * d] * batch->columns[0][i];
                for (int e = 1; e < SELKIE_DIM; e++)
                    q[d] += region->flow[3 * d + e] * batch->columns[e][i];
            }
        }
        for (int d = 0; d < SELKIE_DIM; d++)
            batch->columns[d][i] = q[d];
        if (count == SELKIE_DIM)
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            batch->columns[SELKIE_DIM + d][i] = q[d] * q[d] - region->middle[SELKIE_DIM + d];
        for (int d = 0; d < SK_SHAPE_COLUMNS - 2 * SELKIE_DIM; d++)
            batch->columns[2 * SELKIE_DIM + d][i] = q[d] * q[(d + 1) % SELKIE_DIM] - region->middle[2 * SELKIE_DIM + d];
    }
}

/* Moments of the positions with some of the columns. */
static inline __attribute__((always_inline)) void add_moments(const soft_batch *batch, const int from, const int count,
                                                              sk_shape_sums *sums)
{
    lanes match[SELKIE_DIM][3] = {{{0.0}}};
    for (int i = 0; i < GROUPS; i++)
        for (int d = 0; d < SELKIE_DIM; d++)
            for (int c = 0; c < count; c++)
                match[d][c] += batch->mass[i] * batch->y[d][i] * batch->columns[from + c][i];
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int c = 0; c < count; c++)
            sums->match[9 * d + from + c] += sum_of(match[d][c]);
}

/* Mass, momentum and moments of a batch, as sk_shape_add(). */
static inline __attribute__((always_inline)) void add_motion(const soft_batch *batch, sk_shape_sums *sums)
{
    lanes mass = {0.0}, first[3] = {{0.0}}, momentum[3] = {{0.0}}, spin[3] = {{0.0}}, second[6] = {{0.0}};
    for (int i = 0; i < GROUPS; i++) {
        lanes y[3] = {{0.0}}, v[3] = {{0.0}}, my[3] = {{0.0}};
        mass += batch->mass[i];
        for (int d = 0; d < SELKIE_DIM; d++) {
            y[d] = batch->y[d][i];
            v[d] = batch->v[d][i];
            my[d] = batch->mass[i] * y[d];
            first[d] += my[d];
            momentum[d] += batch->mass[i] * v[d];
        }
        for (int d = SELKIE_DIM == 3 ? 0 : 2; d < 3; d++)
            spin[d] += my[(d + 1) % 3] * v[(d + 2) % 3] - my[(d + 2) % 3] * v[(d + 1) % 3];
        second[0] += my[0] * y[0];
        second[1] += my[0] * y[1];
        second[3] += my[1] * y[1];
#if SELKIE_DIM == 3
        second[2] += my[0] * y[2];
        second[4] += my[1] * y[2];
        second[5] += my[2] * y[2];
#endif
    }
    sums->mass += sum_of(mass);
    for (int d = 0; d < 3; d++) {
        sums->first[d] += sum_of(first[d]);
        sums->momentum[d] += sum_of(momentum[d]);
        sums->spin[d] += sum_of(spin[d]);
    }
    for (int n = 0; n < 6; n++)
        sums->second[n] += sum_of(second[n]);
}

static inline __attribute__((always_inline)) void sum_lanes(const sk_soft *soft, const sk_soft_region *region,
                                                            const int columns, const int flows, uint32_t span,
                                                            sk_shape_sums *sums)
{
    const uint32_t begin = span * SPAN, end = region->count - begin < SPAN ? region->count : begin + SPAN;
    memset(sums, 0, sizeof *sums);
    for (uint32_t n = begin; n < end; n += BATCH) {
        soft_batch batch;
        load_batch(soft, region, n, end, &batch);
        find_columns(region, columns, flows, &batch);
        add_motion(&batch, sums);
        add_moments(&batch, 0, SELKIE_DIM, sums);
        if (columns > SELKIE_DIM)
            add_moments(&batch, SELKIE_DIM, 3, sums);
        if (columns > 6)
            add_moments(&batch, 6, 3, sums);
    }
}

/* Velocities after sk_shape_pull(): pull and damping are one linear map of the position, one of the columns. */
static inline __attribute__((always_inline)) void pull_lanes(const sk_soft *soft, const sk_soft_region *region,
                                                             const sk_shape_goal *goal, const int columns,
                                                             const int flows, uint32_t span)
{
    const uint32_t begin = span * SPAN, end = region->count - begin < SPAN ? region->count : begin + SPAN;
    const double *w = goal->turn;
    const double turn[9] = {0.0, -w[2], w[1], w[2], 0.0, -w[0], -w[1], w[0], 0.0};
    double along[9], base[3];
    for (int d = 0; d < 3; d++) {
        base[d] = goal->damping * goal->velocity[d];
        for (int e = 0; e < 3; e++) {
            along[3 * d + e] = goal->damping * turn[3 * d + e] - (d == e ? goal->pull : 0.0);
            base[d] -= e < SELKIE_DIM ? along[3 * d + e] * goal->centre[e] : 0.0;
        }
    }
    for (uint32_t n = begin; n < end; n += BATCH) {
        soft_batch batch;
        load_batch(soft, region, n, end, &batch);
        find_columns(region, columns, flows, &batch);
        for (int i = 0; i < GROUPS; i++)
            for (int d = 0; d < SELKIE_DIM; d++) {
                lanes change = base[d] - goal->damping * batch.v[d][i], mapped = {0.0};
                for (int e = 0; e < SELKIE_DIM; e++)
                    change += along[3 * d + e] * batch.y[e][i];
                for (int c = 0; c < columns; c++)
                    mapped += goal->map[9 * d + c] * batch.columns[c][i];
                batch.v[d][i] += batch.mass[i] * (change + goal->pull * mapped);
            }
        for (uint32_t i = 0; i < BATCH && n + i < end; i++)
            for (int d = 0; d < SELKIE_DIM; d++)
                soft->points[point_of(region, n + i)].velocity[d] = ((const double *)batch.v[d])[i];
    }
}

/* Is the rest shape as drawn? */
static int is_as_drawn(const sk_soft_region *region)
{
    int same = 1;
    for (int i = 0; i < 9; i++)
        same &= region->flow[i] == (i % 4 == 0);
    return same;
}

/* The tuned forms, compiled for each number of columns. */
static void sum_span_tuned(const sk_soft *soft, const sk_soft_region *region, int columns, uint32_t span,
                           sk_shape_sums *sums)
{
    const int is_drawn = is_as_drawn(region);
    if (columns != SK_SHAPE_LINEAR && is_drawn)
        sum_lanes(soft, region, SK_SHAPE_COLUMNS, 0, span, sums);
    else if (columns != SK_SHAPE_LINEAR)
        sum_lanes(soft, region, SK_SHAPE_COLUMNS, 1, span, sums);
    else if (is_drawn)
        sum_lanes(soft, region, SK_SHAPE_LINEAR, 0, span, sums);
    else
        sum_lanes(soft, region, SK_SHAPE_LINEAR, 1, span, sums);
}

static void pull_span_tuned(const sk_soft *soft, const sk_soft_region *region, const sk_shape_goal *goal, uint32_t span)
{
    const int is_drawn = is_as_drawn(region);
    if (goal->count != SK_SHAPE_LINEAR && is_drawn)
        pull_lanes(soft, region, goal, SK_SHAPE_COLUMNS, 0, span);
    else if (goal->count != SK_SHAPE_LINEAR)
        pull_lanes(soft, region, goal, SK_SHAPE_COLUMNS, 1, span);
    else if (is_drawn)
        pull_lanes(soft, region, goal, SK_SHAPE_LINEAR, 0, span);
    else
        pull_lanes(soft, region, goal, SK_SHAPE_LINEAR, 1, span);
}

/* --- The phase --- */

typedef struct match_forms {
    void (*sum)(const sk_soft *, const sk_soft_region *, int, uint32_t, sk_shape_sums *);
    void (*pull)(const sk_soft *, const sk_soft_region *, const sk_shape_goal *, uint32_t);
} match_forms;

/* The regions of the bodies with a scheme. */
static selkie_code match(sk_step *step, const match_forms *forms, selkie_soft_scheme scheme, selkie_error *error)
{
    sk_soft *soft = step->soft;
    soft->is_stepping = 1;
    for (int r = 0; r < soft->region_count; r++) {
        sk_soft_region *region = &soft->regions[r];
        const int spans = (int)((region->count + SPAN - 1) / SPAN);
        sk_shape_sums *partial, total = {0};
        sk_shape_goal goal;
        if (soft->bodies[region->body].soft.scheme != scheme)
            continue;
        if (!region->is_ready)
            SK_DIM(sk_soft_prepare)(soft, region);
        if (!region->columns)
            continue;
        SK_TRY(sk_step_scratch(step, (size_t)(spans + 1) * sizeof *partial, "bodies", (void **)&partial, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int s = 0; s < spans; s++)
            forms->sum(soft, region, region->columns, (uint32_t)s, &partial[s]);
        for (int s = 0; s < spans; s++)
            add_sums(&total, &partial[s]);
        const sk_soft_region before = *region; /* plastic flow acts from the next step on */
        find_goal(step, region, &total, &goal);
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int s = 0; s < (region->is_frame ? 0 : spans); s++)
            forms->pull(soft, &before, &goal, (uint32_t)s);
        memcpy(soft->flows[r], region->flow, sizeof region->flow);
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_soft_match)(sk_step *step, selkie_error *error)
{
    static const match_forms tuned = {sum_span_tuned, pull_span_tuned};
    return match(step, &tuned, SELKIE_SOFT_VELOCITY, error);
}

selkie_code SK_DIM(sk_soft_match_plain)(sk_step *step, selkie_error *error)
{
    static const match_forms plain = {sum_span, pull_span};
    return match(step, &plain, SELKIE_SOFT_VELOCITY, error);
}

/* The order of Gao et al. 2017 (Eqs. 1 to 4): goals of the predicted positions x + dt v, particles at x* = x + dt v +
 * alpha (goal - x - dt v), and the mean of v and (x* - x) / dt as the new velocity. The points move by the second. */
selkie_code SK_DIM(sk_soft_match_late)(sk_step *step, selkie_error *error)
{
    static const match_forms plain = {sum_span, pull_span};
    sk_soft *soft = step->soft;
    double(*start)[3];
    SK_TRY(sk_step_scratch(step, ((size_t)soft->point_count + 1) * sizeof *start, "bodies", (void **)&start, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = 0; k < soft->point_count; k++) {
        sk_soft_point *point = &soft->points[k];
        memcpy(start[k], point->position, sizeof start[k]);
        for (int d = 0; d < 3; d++) {
            soft->late[k][d] = 0.5 * point->velocity[d];
            point->position[d] += step->dt * point->velocity[d];
        }
    }

    SK_TRY(match(step, &plain, SELKIE_SOFT_POSITION, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = 0; k < soft->point_count; k++) {
        memcpy(soft->points[k].position, start[k], sizeof start[k]);
        for (int d = 0; d < 3; d++)
            soft->late[k][d] -= 0.5 * soft->points[k].velocity[d];
    }
    return SELKIE_OK;
}
