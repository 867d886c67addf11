/* Stress and bonds of rest_shape, tuned: sites along x are lanes, half a row of a brick or all of it, and the
 * neighbours of a brick lie in a tile. */
#include "methods/elastoplastic/rest_frame.h"

#define SK_LANES_COUNT SK_REST_LANES
#include "methods/elastoplastic/point_lanes.h"

#define INLINE static inline __attribute__((always_inline))

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 27")
#endif

enum { PAD = 4, TILE = (SK_BRICK_TILE + PAD + 7) / 8 * 8 };

typedef uint32_t lane_bits __attribute__((vector_size(4 * SK_LANES_COUNT)));

/* Copies the components of the sites of a brick and its halo. */
static void load_tile(const sk_rest_shape *rest, int brick, const float *values, int components, float (*tile)[TILE])
{
    const size_t width = (size_t)components;
    for (int tz = 0; tz < SK_BRICK_TILE_NZ; tz++)
        for (int ty = 0; ty < SK_BRICK_TILE_N; ty++) {
            const int y = ty - 1, z = SELKIE_DIM == 3 ? tz - 1 : 0;
            const int by = y < 0 ? 0 : y < SK_BRICK_N ? 1 : 2, bz = z < 0 ? 0 : z < SK_BRICK_N ? 1 : 2;
            const int32_t *around = rest->around[brick] + 3 * by + (SELKIE_DIM == 3 ? 9 * bz : 0);
            const size_t row = (size_t)(SK_BRICK_N * ((y & SK_BRICK_MASK) + SK_BRICK_N * (z & SK_BRICK_MASK)));
            const float *first = values + row * width, *last = first + (size_t)(SK_BRICK_N - SK_LANES) * width;
            const float *low = last + (size_t)around[0] * SK_BRICK_SITES * width + SK_LANES - 1;
            const size_t middle = (size_t)around[1] * SK_BRICK_SITES * width;
            const float *high = first + (size_t)around[2] * SK_BRICK_SITES * width;
            float *to = tile[0] + SK_BRICK_TILE_N * (ty + SK_BRICK_TILE_N * tz);
            for (int c = 0; c < components; c++, to += TILE) {
                to[0] = low[SK_LANES * c];
                fl_store(to + 1, fl_load(first + middle + SK_LANES * c));
                if ((int)SK_LANES < (int)SK_BRICK_N)
                    fl_store(to + 1 + SK_LANES, fl_load(last + middle + SK_LANES * c));
                to[SK_BRICK_N + 1] = high[SK_LANES * c];
            }
        }
}

/* The tile of pushes, with those of the mean deformation that has been taken from the positions: B + s c mean. */
static void add_mean_push(float (*push)[TILE], float spacing, const float mean[SK_REST_MATRIX])
{
    const float *stiffness = push[SK_REST_MATRIX];
    for (int n = 0; n < SK_REST_MATRIX; n++)
        for (int at = 0; at < TILE; at += SK_LANES)
            fl_store(push[n] + at, sk_scaled_add(spacing * mean[n], fl_load(stiffness + at), fl_load(push[n] + at)));
}

/* Weight of bond n, 0 in lanes without that bond. */
INLINE fl weight_of(int n, lane_bits bonds)
{
    return sk_choose((sk_lane_mask)((bonds & (1u << n)) != 0), fl_splat(SK_DIM(sk_rest_weight)(n)), fl_splat(0.0f));
}

/* --- Sums over the bonds of points inside a body ---
 *
 * Weights are products: w(o) = g(x) g(y) g(z) / e with g(0) = 1, g(1) = g(-1) = e, the weight across edges. Sums over
 * all bonds are then filters along x, y and z: `smooth` adds up g f, `rise` adds up g o f. */

enum {
    ROWS = SK_BRICK_TILE_N * SK_BRICK_TILE_NZ, /* of a tile; a filter along x makes them SK_BRICK_N long */
    ALONG_X = ROWS * SK_BRICK_N,
    ALONG_Y = SK_BRICK_N * SK_BRICK_N * SK_BRICK_TILE_NZ
};

typedef struct filter_x {
    float smooth[ALONG_X], rise[ALONG_X];
} filter_x;

static const float edge = SK_REST_ACROSS_EDGES;

/* before + e (low + high), and e (high - low) added to it. */
INLINE fl smooth_of(fl low, fl middle, fl high)
{
    return fl_multiply_add(fl_splat(edge), low + high, middle);
}

INLINE fl rise_of(fl low, fl high)
{
    return edge * (high - low);
}

static void filter_along_x(const float *tile, filter_x *to)
{
    for (int row = 0; row < ROWS; row++)
        for (int x = 0; x < SK_BRICK_N; x += SK_LANES) {
            const float *from = tile + SK_BRICK_TILE_N * row + x;
            const fl low = fl_load(from), middle = fl_load(from + 1), high = fl_load(from + 2);
            fl_store(to->smooth + SK_BRICK_N * row + x, smooth_of(low, middle, high));
            fl_store(to->rise + SK_BRICK_N * row + x, rise_of(low, high));
        }
}

/* A value of the filtered rows at y, a group of sites; `at` counts sites of the result. */
INLINE const float *across_y(const float *rows, int at)
{
    const int plane = at / (SK_BRICK_N * SK_BRICK_N), rest = at % (SK_BRICK_N * SK_BRICK_N);
    return rows + SK_BRICK_N * SK_BRICK_TILE_N * plane + rest;
}

INLINE fl smooth_y(const float *rows, int at)
{
    const float *from = across_y(rows, at);
    return smooth_of(fl_load(from), fl_load(from + SK_BRICK_N), fl_load(from + 2 * SK_BRICK_N));
}

INLINE fl rise_y(const float *rows, int at)
{
    const float *from = across_y(rows, at);
    return rise_of(fl_load(from), fl_load(from + 2 * SK_BRICK_N));
}

/* Along z, over planes of SK_BRICK_N^2 sites; in 2D there is one plane. */
INLINE fl smooth_z(const float *planes, int at)
{
    enum { PLANE = SK_BRICK_N * SK_BRICK_N };
    const float *from = planes + at;
    return SELKIE_DIM == 2 ? fl_load(from) : smooth_of(fl_load(from), fl_load(from + PLANE), fl_load(from + 2 * PLANE));
}

INLINE fl rise_z(const float *planes, int at)
{
    enum { PLANE = SK_BRICK_N * SK_BRICK_N };
    return rise_of(fl_load(planes + at), fl_load(planes + at + 2 * PLANE));
}

/* Sum of w f, less the point's own value: all filters smooth. */
static void sum_bonds(const float *tile, float *sums)
{
    filter_x along;
    float planes[ALONG_Y];
    filter_along_x(tile, &along);
    for (int at = 0; at < ALONG_Y; at += SK_LANES)
        fl_store(planes + at, smooth_y(along.smooth, at));
    for (int at = 0; at < SK_BRICK_SITES; at += SK_LANES)
        fl_store(sums + at, (1.0f / edge) * smooth_z(planes, at));
}

/* Sums of w f o along the axes. */
static void sum_rises(const float *tile, float (*sums)[SK_BRICK_SITES])
{
    filter_x along;
    float planes[3][ALONG_Y];
    filter_along_x(tile, &along);
    for (int at = 0; at < ALONG_Y; at += SK_LANES) {
        fl_store(planes[0] + at, smooth_y(along.rise, at));
        fl_store(planes[1] + at, rise_y(along.smooth, at));
        if (SELKIE_DIM == 3)
            fl_store(planes[2] + at, smooth_y(along.smooth, at));
    }
    for (int at = 0; at < SK_BRICK_SITES; at += SK_LANES) {
        fl_store(sums[0] + at, (1.0f / edge) * smooth_z(planes[0], at));
        fl_store(sums[1] + at, (1.0f / edge) * smooth_z(planes[1], at));
        if (SELKIE_DIM == 3)
            fl_store(sums[SELKIE_DIM - 1] + at, (1.0f / edge) * rise_z(planes[2], at));
    }
}

/* A site of the brick in the middle of its points, whose place values count from; -1 = no point inside a body. */
static int find_inner_site(const sk_rest_shape *rest, int brick)
{
    for (int n = 0; n < SK_BRICK_SITES; n++) {
        const int site = (n + SK_BRICK_SITES / 2) % SK_BRICK_SITES;
        if (rest->bonds[(size_t)brick * SK_BRICK_SITES + (size_t)site] == SK_REST_FULL)
            return site;
    }
    return -1;
}

/* A site with a point. */
static int find_any_site(const sk_rest_shape *rest, int brick)
{
    int site = 0;
    while (site < SK_BRICK_SITES - 1 && !rest->bonds[(size_t)brick * SK_BRICK_SITES + (size_t)site])
        site++;
    return site;
}

INLINE int tile_site_of(int local)
{
    return sk_rest_tile_site(local & SK_BRICK_MASK, local >> SK_BRICK_LOG & SK_BRICK_MASK, local >> (2 * SK_BRICK_LOG));
}

/* F - 1 of an inner site, from positions. */
static void fit_site(float (*tile)[TILE], int site, float spacing, float mean[SK_REST_MATRIX])
{
    const int t = tile_site_of(site);
    memset(mean, 0, SK_REST_MATRIX * sizeof *mean);
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        float e[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            e[d] = tile[d][t + sk_rest_tile_step(n)] - tile[d][t] - spacing * (float)sk_rest_offset(n, d);
        SK_DIM(sk_rest_fit)(n, e, mean);
    }
    for (int n = 0; n < SK_REST_MATRIX; n++)
        mean[n] *= 1.0f / (spacing * SK_REST_MOMENT);
}

/* Positions become displacements against the rest shape, moved and deformed as at a site inside the body: they are
 * small, and sums keep their digits also where a body has turned. `mean` gets F - 1 of that site, 0 without one. */
static void centre_tile(float (*tile)[TILE], const sk_rest_shape *rest, int brick, int inner,
                        float mean[SK_REST_MATRIX])
{
    const int site = inner < 0 ? find_any_site(rest, brick) : inner;
    const float spacing = (float)rest->spacing;
    float x[SK_BRICK_TILE_N];
    memset(mean, 0, SK_REST_MATRIX * sizeof *mean);
    if (inner >= 0)
        fit_site(tile, site, spacing, mean);
    for (int n = 0; n < SK_BRICK_TILE_N; n++)
        x[n] = (float)(n - 1 - (site & SK_BRICK_MASK));

    /* Along x in lanes; y and z move the start of a row. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float from = tile[d][tile_site_of(site)];
        float f[3] = {0, 0, 0};
        for (int j = 0; j < SELKIE_DIM; j++)
            f[j] = spacing * (mean[SELKIE_DIM * d + j] + (d == j ? 1.0f : 0.0f));
        for (int row = 0; row < ROWS; row++) {
            const float y = (float)(row % SK_BRICK_TILE_N - 1 - (site >> SK_BRICK_LOG & SK_BRICK_MASK));
            const float z = (float)(row / SK_BRICK_TILE_N - 1 - (site >> (2 * SK_BRICK_LOG)));
            const float start = f[1] * y + (SELKIE_DIM == 3 ? f[2] * z : 0.0f);
            float *to = tile[d] + SK_BRICK_TILE_N * row;
            for (int n = 0; n < SK_BRICK_N; n += SK_LANES)
                fl_store(to + n, fl_load(to + n) - from - sk_scaled_add(f[0], fl_load(x + n), fl_splat(start)));
            for (int n = SK_BRICK_N; n < SK_BRICK_TILE_N; n++)
                to[n] = to[n] - from - (f[0] * x[n] + start);
        }
    }
}

/* --- Stress --- */

typedef struct stress_frame {
    sk_rest_shape *rest;
    float dt, spacing, per_spacing;
    float mean[SK_REST_MATRIX];                          /*    F - 1 that has been taken from the positions */
    float tile[SELKIE_DIM][TILE];                        /* m  positions */
    float rises[SELKIE_DIM][SELKIE_DIM][SK_BRICK_SITES]; /* m  sums of w u o^T, of points inside a body */
} stress_frame;

/* F - 1 of a group of points inside a body. */
INLINE void fit_inside(const stress_frame *frame, size_t local, fl *deformation)
{
    const float factor = frame->per_spacing / SK_REST_MOMENT;
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++)
            deformation[SELKIE_DIM * i + j] = fl_multiply_add(fl_splat(factor), fl_load(frame->rises[i][j] + local),
                                                              fl_splat(frame->mean[SELKIE_DIM * i + j]));
}

/* F - 1 of a group of points. */
INLINE void fit(const stress_frame *frame, int t, lane_bits bonds, const fl *inverse, fl *deformation)
{
    fl moment[SK_REST_MATRIX], own[SELKIE_DIM];
    for (int k = 0; k < SK_REST_MATRIX; k++)
        moment[k] = fl_splat(0.0f);
    for (int d = 0; d < SELKIE_DIM; d++)
        own[d] = fl_load(frame->tile[d] + t);
    UNROLL
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        if (n == SK_REST_CENTRE)
            continue;
        const fl weight = weight_of(n, bonds);
        for (int i = 0; i < SELKIE_DIM; i++) {
            const fl other = fl_load(frame->tile[i] + t + sk_rest_tile_step(n));
            const fl e = weight * (other - own[i]);
            for (int j = 0; j < SELKIE_DIM; j++)
                if (sk_rest_offset(n, j) != 0)
                    moment[SELKIE_DIM * i + j] += sk_rest_offset(n, j) > 0 ? e : -e;
        }
    }
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            fl sum = fl_splat(0.0f);
            for (int k = 0; k < SELKIE_DIM; k++)
                sum += moment[SELKIE_DIM * i + k] * inverse[SELKIE_DIM * k + j];
            deformation[SELKIE_DIM * i + j] =
                sk_scaled_add(frame->per_spacing, sum,
                              sk_choose(inverse[0] != 0.0f, fl_splat(frame->mean[SELKIE_DIM * i + j]), fl_splat(0.0f)));
        }
}

INLINE fl product_entry(const fl *a, const fl *b, int i, int j)
{
    fl sum = a[SELKIE_DIM * i] * b[j];
    for (int k = 1; k < SELKIE_DIM; k++)
        sum = fl_multiply_add(a[SELKIE_DIM * i + k], b[SELKIE_DIM * k + j], sum);
    return sum;
}

/* sk_rest_inverse */
INLINE fl invert(const fl *a, fl *inverse)
{
#if SELKIE_DIM == 2
    const fl determinant = a[0] * a[3] - a[1] * a[2], scale = 1.0f / sk_larger(determinant, fl_splat(0.01f));
    inverse[0] = scale * a[3];
    inverse[1] = -scale * a[1];
    inverse[2] = -scale * a[2];
    inverse[3] = scale * a[0];
#else
    const fl c0 = a[4] * a[8] - a[5] * a[7], c1 = a[5] * a[6] - a[3] * a[8], c2 = a[3] * a[7] - a[4] * a[6];
    const fl determinant = a[0] * c0 + a[1] * c1 + a[2] * c2;
    const fl scale = 1.0f / sk_larger(determinant, fl_splat(0.01f));
    inverse[0] = scale * c0;
    inverse[1] = scale * (a[2] * a[7] - a[1] * a[8]);
    inverse[2] = scale * (a[1] * a[5] - a[2] * a[4]);
    inverse[3] = scale * c1;
    inverse[4] = scale * (a[0] * a[8] - a[2] * a[6]);
    inverse[5] = scale * (a[2] * a[3] - a[0] * a[5]);
    inverse[6] = scale * c2;
    inverse[7] = scale * (a[1] * a[6] - a[0] * a[7]);
    inverse[8] = scale * (a[0] * a[4] - a[1] * a[3]);
#endif
    return determinant;
}

/* sk_rest_softening */
INLINE fl soften(const sk_rest_material *material, fl strain)
{
    if (material->yield < 0.0f)
        return fl_splat(1.0f);
    const fl stress = material->yield + material->hardening * strain;
    return (stress + 0.02f * material->shear) / (stress + material->shear * (strain + 0.02f));
}

/* A group of points and where its values are. */
typedef struct group_place {
    size_t site, local; /* the first site, and its place in the brick */
    int full;
    lane_bits bonds;
    int material;
} group_place;

/* Loads the inverse of K; inside a body it is a number. */
INLINE void load_inverse(const sk_rest_shape *rest, const group_place *at, fl *inverse)
{
    for (int n = 0; n < SK_REST_MATRIX; n++)
        inverse[n] = at->full ? fl_splat(0.0f) /* not used */
                              : fl_load(rest->inverse + at->site * SK_REST_MATRIX + (size_t)n * SK_LANES);
}

/* sk_rest_push_of: forces on bonds from stress. */
INLINE void store_push(const stress_frame *frame, const group_place *at, const sk_elastic_group *group,
                       const fl *deformation, const fl *f_inverse, const fl *inverse)
{
    const sk_rest_material *material = &frame->rest->bonds_of[at->material];
    fl piola[SK_REST_MATRIX];
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            fl sum = group->stress[sk_entry(i, 0)] * f_inverse[SELKIE_DIM * j];
            for (int k = 1; k < SELKIE_DIM; k++)
                sum = fl_multiply_add(group->stress[sk_entry(i, k)], f_inverse[SELKIE_DIM * j + k], sum);
            piola[SELKIE_DIM * i + j] = sum;
        }
    const fl stiffness = material->stiffness * soften(material, group->strain), back = stiffness * material->spacing;
    float *push = frame->rest->push + at->site * SK_REST_PUSH;
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            const int n = SELKIE_DIM * i + j;
            const fl sum = at->full ? piola[n] * (1.0f / SK_REST_MOMENT) : product_entry(piola, inverse, i, j);
            fl_store(push + (size_t)n * SK_LANES, material->push * sum - back * deformation[n]);
        }
    fl_store(push + SK_REST_MATRIX * SK_LANES, stiffness);
}

/* The elastic part of the deformation, before flow, and what flow leaves of it. */
INLINE void load_elastic(const sk_rest_shape *rest, const group_place *at, const fl *f, const fl *deformation,
                         sk_elastic_group *group)
{
    const float *flow = rest->flow + at->site * SK_REST_MATRIX;
    fl inverse[SK_REST_MATRIX];
    for (int n = 0; n < SK_REST_MATRIX; n++)
        inverse[n] = fl_load(flow + (size_t)n * SK_LANES);
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++)
            group->deformation[SELKIE_DIM * i + j] = deformation[SELKIE_DIM * i + j] + product_entry(f, inverse, i, j);
}

INLINE void store_elastic(const sk_rest_shape *rest, const group_place *at, const fl *f_inverse,
                          sk_elastic_group *group)
{
    float *flow = rest->flow + at->site * SK_REST_MATRIX;
    for (int d = 0; d < SELKIE_DIM; d++)
        group->deformation[(SELKIE_DIM + 1) * d] += 1.0f;
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++)
            fl_store(flow + (size_t)(SELKIE_DIM * i + j) * SK_LANES,
                     product_entry(f_inverse, group->deformation, i, j) - (i == j ? 1.0f : 0.0f));
}

/* Sums of a brick, a point in each lane, and those of points that took the kernels. */
typedef struct lane_sums {
    sk_lane_doubles energy, work, volume;
    fl wave_square;
    sk_rest_sums single;
} lane_sums;

INLINE void add_sums(const sk_elastic_group *group, fl determinant, lane_bits bonds, lane_sums *sums)
{
    const sk_lane_mask busy = (sk_lane_mask)(bonds != 0);
    const fl zero = fl_splat(0.0f);
    sums->energy += sk_doubles(sk_choose(busy, group->energy, zero));
    sums->work += sk_doubles(sk_choose(busy, group->work, zero));
    sums->volume += sk_doubles(sk_choose(busy, determinant, zero));
    sums->wave_square = sk_larger(sk_choose(busy, group->wave_square, zero), sums->wave_square);
}

static sk_rest_sums total_of(const lane_sums *sums)
{
    return (sk_rest_sums){.energy = sums->single.energy + sk_lane_sum(sums->energy),
                          .work = sums->single.work + sk_lane_sum(sums->work),
                          .volume = sums->single.volume + sk_lane_sum(sums->volume),
                          .wave_speed = fmaxf(sums->single.wave_speed, sqrtf(sk_lane_most(sums->wave_square)))};
}

/* Points of a group that need the kernels: several materials, or beyond the reach of the lanes. */
static __attribute__((noinline)) void single_points(const stress_frame *frame, const group_place *at,
                                                    const fl *deformation, sk_rest_sums *sums)
{
    for (int l = 0; l < SK_LANES; l++) {
        float own[SK_REST_MATRIX];
        for (int n = 0; n < SK_REST_MATRIX; n++)
            own[n] = deformation[n][l];
        if (at->bonds[l])
            sk_rest_point(frame->rest, frame->dt, at->site + (size_t)l, own, sums);
    }
}

INLINE void stress_group(const stress_frame *frame, const group_place *at, int t, lane_sums *sums)
{
    sk_rest_shape *rest = frame->rest;
    const sk_elastic_material *law = at->material < 0 ? NULL : &rest->materials[at->material];
    float *state = rest->state + at->site * 3;
    fl deformation[SK_REST_MATRIX], inverse[SK_REST_MATRIX], f[SK_REST_MATRIX], f_inverse[SK_REST_MATRIX];
    sk_elastic_group group;

    /* Deformation. */
    load_inverse(rest, at, inverse);
    if (at->full)
        fit_inside(frame, at->local, deformation);
    else
        fit(frame, t, at->bonds, inverse, deformation);
    for (int n = 0; n < SK_REST_MATRIX; n++)
        f[n] = n % (SELKIE_DIM + 1) == 0 ? 1.0f + deformation[n] : deformation[n];
    const fl determinant = invert(f, f_inverse);

    /* Flow and stress. */
    const int flows = law && law->plasticity != SK_PLASTIC_NONE;
    memcpy(group.deformation, deformation, sizeof deformation);
    if (flows)
        load_elastic(rest, at, f, deformation, &group);
    group.strain = fl_load(state);
    group.volume = fl_load(state + SK_LANES);
    if (!law || !sk_lanes_law(law, frame->dt, &group)) {
        single_points(frame, at, deformation, &sums->single);
        return;
    }
    if (flows) {
        store_elastic(rest, at, f_inverse, &group);
        fl_store(state, group.strain);
        fl_store(state + SK_LANES, group.volume);
    }
    fl_store(state + 2 * SK_LANES, group.equivalent);
    store_push(frame, at, &group, deformation, f_inverse, inverse);
    add_sums(&group, determinant, at->bonds, sums);
}

/* The bonds of a group of sites; the material of the points, -1 = several. Returns whether there are any points. */
INLINE int find_group(const sk_rest_shape *rest, size_t site, group_place *at)
{
    memcpy(&at->bonds, rest->bonds + site, sizeof at->bonds);
    at->site = site;
    at->local = site % SK_BRICK_SITES;
    at->full = 1;
    at->material = -2;
    int any = 0;

    /* Inside a body of one material. */
    uint64_t materials = 0;
    memcpy(&materials, rest->material + site, SK_LANES);
    const uint64_t same = SK_LANES == 8 ? 0x0101010101010101u : 0x01010101u;
    if (!sk_any((sk_lane_mask)(at->bonds != SK_REST_FULL)) && materials == (materials & 0xff) * same) {
        at->material = (int)(materials & 0xff);
        return 1;
    }
    for (int l = 0; l < SK_LANES; l++) {
        at->full &= at->bonds[l] == SK_REST_FULL;
        if (!at->bonds[l])
            continue;
        const int own = rest->material[site + (size_t)l];
        any = 1;
        at->material = at->material == -2 || at->material == own ? own : -1;
    }
    return any;
}

static sk_rest_sums stress_brick(stress_frame *frame, int brick)
{
    group_place at;
    lane_sums sums = {0};
    load_tile(frame->rest, brick, frame->rest->position, SELKIE_DIM, frame->tile);
    const int inner = find_inner_site(frame->rest, brick);
    centre_tile(frame->tile, frame->rest, brick, inner, frame->mean);
    for (int d = 0; d < SELKIE_DIM && inner >= 0; d++)
        sum_rises(frame->tile[d], frame->rises[d]);
    for (int local = 0; local < SK_BRICK_SITES; local += SK_LANES) {
        if (find_group(frame->rest, (size_t)brick * SK_BRICK_SITES + (size_t)local, &at))
            stress_group(frame, &at, tile_site_of(local), &sums);
    }
    return total_of(&sums);
}

selkie_code SK_DIM(sk_rest_stress)(sk_step *step, selkie_error *error)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    sk_rest_sums *sums;
    SK_TRY(SK_DIM(sk_rest_begin)(step, &sums, error));
#pragma omp parallel num_threads(step->threads)
    {
        stress_frame frame = {.rest = rest,
                              .dt = (float)step->last_dt,
                              .spacing = (float)rest->spacing,
                              .per_spacing = (float)(1.0 / rest->spacing)};
#pragma omp for schedule(dynamic, 1)
        for (int brick = 1; brick < rest->brick_count; brick++)
            sums[brick] = stress_brick(&frame, brick);
    }
    SK_DIM(sk_rest_end)(step, sums);
    return SELKIE_OK;
}

/* --- Bonds --- */

typedef struct bond_frame {
    sk_rest_shape *rest;
    float spacing;
    float position[SELKIE_DIM][TILE]; /* m */
    float push[SK_REST_PUSH][TILE];
    /* Sums over the bonds of points inside a body, from filters. */
    float places[SELKIE_DIM][SK_BRICK_SITES]; /* w u */
    float stiffness[SK_BRICK_SITES];          /* w c */
    float pulls[SELKIE_DIM][SK_BRICK_SITES];  /* w (c u + B o) */
} bond_frame;

/* One component of sum w (c u + B o): filters along an axis act on sums of what the others have made. */
static void sum_pulls(bond_frame *frame, int i)
{
    filter_x columns[SELKIE_DIM], weighed;
    float own[TILE], planes[2][ALONG_Y];
    const float *stiffness = frame->push[SK_REST_MATRIX];
    for (int j = 0; j < SELKIE_DIM; j++)
        filter_along_x(frame->push[SELKIE_DIM * i + j], &columns[j]);
    for (int n = 0; n < TILE; n++)
        own[n] = stiffness[n] * frame->position[i][n];
    filter_along_x(own, &weighed);
    for (int at = 0; at < ALONG_X; at += SK_LANES)
        fl_store(columns[0].rise + at, fl_load(columns[0].rise + at) + fl_load(weighed.smooth + at));
    for (int at = 0; at < ALONG_Y; at += SK_LANES) {
        fl_store(planes[0] + at, smooth_y(columns[0].rise, at) + rise_y(columns[1].smooth, at));
        if (SELKIE_DIM == 3)
            fl_store(planes[1] + at, smooth_y(columns[SELKIE_DIM - 1].smooth, at));
    }
    for (int at = 0; at < SK_BRICK_SITES; at += SK_LANES) {
        fl sum = smooth_z(planes[0], at);
        if (SELKIE_DIM == 3)
            sum += rise_z(planes[1], at);
        fl_store(frame->pulls[i] + at, (1.0f / edge) * sum);
    }
}

/* sk_rest_pull over all bonds of a group inside a body: e is a difference of displacements u, so that it splits
 * into the sums above. Weights times offsets cancel. Sums hold the point's own value with a weight of 1 / e. */
INLINE void pull_inside(const bond_frame *frame, int t, size_t local, fl *acceleration)
{
    const float own_weight = 1.0f / edge;
    const fl stiffness = fl_load(frame->push[SK_REST_MATRIX] + t), around = fl_load(frame->stiffness + local);
    fl weights = fl_splat(-own_weight), row = fl_splat(own_weight);
    for (int d = 0; d < SELKIE_DIM; d++)
        row *= 1.0f + 2.0f * edge;
    weights += row;
    for (int i = 0; i < SELKIE_DIM; i++) {
        const fl x = fl_load(frame->position[i] + t);
        const fl pulls = fl_load(frame->pulls[i] + local) - own_weight * stiffness * x;
        const fl places = fl_load(frame->places[i] + local) - own_weight * x;
        acceleration[i] = pulls - x * (around - own_weight * stiffness) + stiffness * (places - weights * x);
    }
}

/* sk_rest_pull over the bonds of a group. */
INLINE void pull(const bond_frame *frame, int t, lane_bits bonds, fl *acceleration)
{
    fl own[SELKIE_DIM], stretch[SELKIE_DIM], lean[SELKIE_DIM];
    for (int d = 0; d < SELKIE_DIM; d++) {
        own[d] = fl_load(frame->position[d] + t);
        acceleration[d] = stretch[d] = lean[d] = fl_splat(0.0f);
    }
    UNROLL
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        if (n == SK_REST_CENTRE)
            continue;
        const int at = t + sk_rest_tile_step(n);
        const fl weight = weight_of(n, bonds), stiffness = fl_load(frame->push[SK_REST_MATRIX] + at);
        for (int i = 0; i < SELKIE_DIM; i++) {
            const fl e = fl_load(frame->position[i] + at) - own[i];
            fl sum = stiffness * e;
            for (int j = 0; j < SELKIE_DIM; j++)
                if (sk_rest_offset(n, j) != 0) {
                    const fl entry = fl_load(frame->push[SELKIE_DIM * i + j] + at);
                    sum = sk_rest_offset(n, j) > 0 ? sum + entry : sum - entry;
                }
            acceleration[i] = fl_multiply_add(weight, sum, acceleration[i]);
            stretch[i] = fl_multiply_add(weight, e, stretch[i]);
            if (sk_rest_offset(n, i) != 0)
                lean[i] += sk_rest_offset(n, i) > 0 ? weight : -weight;
        }
    }
    const fl stiffness = fl_load(frame->push[SK_REST_MATRIX] + t);
    for (int i = 0; i < SELKIE_DIM; i++) {
        acceleration[i] += stiffness * stretch[i];
        for (int j = 0; j < SELKIE_DIM; j++)
            acceleration[i] += fl_load(frame->push[SELKIE_DIM * i + j] + t) * lean[j];
    }
}

static void load_bonds(bond_frame *frame, int brick)
{
    const sk_rest_shape *rest = frame->rest;
    const int inner = find_inner_site(rest, brick);
    float mean[SK_REST_MATRIX];
    load_tile(rest, brick, rest->position, SELKIE_DIM, frame->position);
    load_tile(rest, brick, rest->push, SK_REST_PUSH, frame->push);
    centre_tile(frame->position, rest, brick, inner, mean);
    if (inner >= 0)
        add_mean_push(frame->push, frame->spacing, mean);
    if (inner < 0)
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        sum_bonds(frame->position[d], frame->places[d]);
    sum_bonds(frame->push[SK_REST_MATRIX], frame->stiffness);
    for (int d = 0; d < SELKIE_DIM; d++)
        sum_pulls(frame, d);
}

static void pull_brick(bond_frame *frame, int brick)
{
    sk_rest_shape *rest = frame->rest;
    group_place at;
    load_bonds(frame, brick);
    for (int local = 0; local < SK_BRICK_SITES; local += SK_LANES) {
        fl acceleration[SELKIE_DIM];
        if (!find_group(rest, (size_t)brick * SK_BRICK_SITES + (size_t)local, &at))
            continue;
        if (at.full)
            pull_inside(frame, tile_site_of(local), at.local, acceleration);
        else
            pull(frame, tile_site_of(local), at.bonds, acceleration);
        for (int d = 0; d < SELKIE_DIM; d++)
            fl_store(rest->acceleration + at.site * SELKIE_DIM + (size_t)d * SK_LANES, acceleration[d]);
    }
}

selkie_code SK_DIM(sk_rest_bonds)(sk_step *step, selkie_error *error)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    (void)error;
#pragma omp parallel num_threads(step->threads)
    {
        bond_frame frame = {.rest = rest, .spacing = (float)rest->spacing};
#pragma omp for schedule(dynamic, 1)
        for (int brick = 1; brick < rest->brick_count; brick++)
            pull_brick(&frame, brick);
    }
    return SELKIE_OK;
}
