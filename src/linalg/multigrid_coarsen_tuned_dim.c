/* Coefficients of a coarse level, a vector of cells at a time. multigrid_setup_dim.c defines them. linalg_kernels.h
 * has the form for one cell. */
#include "linalg/multigrid.h"

SK_INLINE sk_half_row half_row(const float *field, int colour, int j, int k)
{
    return *(const sk_half_row *)(field + colour * SK_HALF + (j + SK_BLOCK_N * k) * SK_ROW);
}

SK_INLINE sk_half_row softened(sk_half_row excess, float by)
{
    return SK_RESTRICTION_SCALE * excess / (1.0f + by * excess);
}

/* Coarse row of the fine rows (j, k), (j + 1, k) and in 3D the same at k + 1. */
static void coarsen_rows(const float *const fine[SK_COEFFICIENT_ARRAYS], int j, int k, float by,
                         sk_half_row row[SELKIE_DIM + 1])
{
    const float mean = SK_COARSE_FACE_SHARE;
    for (int array = 0; array <= SELKIE_DIM; ++array)
        row[array] = (sk_half_row){0};
    for (int dk = 0; dk < (SELKIE_DIM == 3 ? 2 : 1); ++dk)
        for (int dj = 0; dj < 2; ++dj) {
            int even = (j + dj + k + dk) & 1;
            row[0] += mean * half_row(fine[0], even, j + dj, k + dk);
            for (int colour = 0; colour < 2; ++colour) {
                if (dj == 0)
                    row[1] += mean * half_row(fine[1], colour, j, k + dk);
#if SELKIE_DIM == 3
                if (dk == 0)
                    row[2] += mean * half_row(fine[2], colour, j + dj, k);
#endif
                row[SELKIE_DIM] += softened(half_row(fine[SK_COEFFICIENT_EXCESS], colour, j + dj, k + dk), by);
            }
        }
}

/* A face between a held cell and one that takes part becomes excess on both sides. */
SK_INLINE void part_vector(sk_place at, const sk_around *face, const sk_around *inverse, const float *excess,
                           float uniform_excess, float *const part[SELKIE_DIM + 1])
{
    const fs zero = {0};
    is own = fs_load(inverse->own + at.here) > zero;
    fs e = excess ? fs_load(excess + at.here) : fs_splat(uniform_excess);
#define SK_PART_OF_AXIS(axis, lower, upper)                                                                            \
    do {                                                                                                               \
        fs down = fs_load(face[axis].own + at.here), up = upper(&face[axis], at);                                      \
        is down_stays = lower(inverse, at) > zero, up_stays = upper(inverse, at) > zero;                               \
        fs_store(part[axis] + at.here, (fs)((is)down & own & down_stays));                                             \
        e += (fs)((is)down & ~down_stays) + (fs)((is)up & ~up_stays);                                                  \
    } while (0)
    SK_PART_OF_AXIS(0, sk_left_of, sk_right_of);
    SK_PART_OF_AXIS(1, sk_below, sk_above);
#if SELKIE_DIM == 3
    SK_PART_OF_AXIS(2, sk_back_of, sk_front_of);
#endif
#undef SK_PART_OF_AXIS
    fs_store(part[SELKIE_DIM] + at.here, (fs)((is)e & own));
}

/* Faces and excess of a block for the unknowns that take part. */
static void coefficients_of_part(const sk_level *level, int block, float *const part[SELKIE_DIM + 1])
{
    sk_around face[SELKIE_DIM], inverse;
    sk_look_around_faces(level, block, face);
    sk_look_around(level, level->part_inverse, block, &inverse);
    const float *excess =
        level->slot[block] == SK_SLOT_UNIFORM ? NULL : sk_slot_array(level, block, SK_COEFFICIENT_EXCESS);
    SK_EACH_VECTOR(SK_ALL_ACTIVE, part_vector, 0, face, &inverse, excess, level->excess[block], part);
    SK_EACH_VECTOR(SK_ALL_ACTIVE, part_vector, 1, face, &inverse, excess, level->excess[block], part);
}

void SK_DIM(sk_coarsen_block)(const sk_level *fine, const sk_level *coarse, int block)
{
    float part[SELKIE_DIM + 1][SK_BLOCK_CELLS] __attribute__((aligned(64)));
    float *target =
        coarse->coefficients + (size_t)coarse->slot[fine->parent[block]] * SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS;
    int origin[3];
    sk_place_in_parent(fine, block, origin);

    /* Fine coefficients, only of unknowns that take part. */
    int uniform = fine->slot[block] == SK_SLOT_UNIFORM;
    const float *source[SK_COEFFICIENT_ARRAYS];
    for (int array = 0; array < SK_COEFFICIENT_ARRAYS; ++array)
        source[array] = sk_slot_array(fine, block, array);
    if (!SK_DIM(sk_level_is_whole)(fine, block)) {
        float *target_of[SELKIE_DIM + 1];
        for (int array = 0; array <= SELKIE_DIM; ++array)
            source[array] = target_of[array] = part[array];
        coefficients_of_part(fine, block, target_of);
        uniform = 0;
    }

    /* Two fine rows (3D: four) become half a row of the parent. */
    float mass = fine->excess[block] * SK_RESTRICTION_SCALE * SK_CORNERS;
    for (int k = 0; k < SK_PLANES; k += 2)
        for (int j = 0; j < SK_BLOCK_N; j += 2) {
            sk_half_row row[SELKIE_DIM + 1];
            if (uniform) {
                for (int axis = 0; axis < SELKIE_DIM; ++axis)
                    row[axis] = 1.0f - (sk_half_row){0};
                row[SELKIE_DIM] = mass - (sk_half_row){0};
            } else {
                coarsen_rows(source, j, k, coarse->softness, row);
            }
            for (int array = 0; array <= SELKIE_DIM; ++array)
                sk_split_half_row(target + array * SK_BLOCK_CELLS, origin[0] != 0, origin[1] + j / 2, origin[2] + k / 2,
                                  row[array]);
        }
}

SK_INLINE void invert_vector(sk_place at, const sk_around *face, const float *excess, float *inverse, is *unlike,
                             is *unknowns)
{
    fs e = fs_load(excess + at.here), sum = e;
    fs side[6] = {fs_load(face[0].own + at.here), sk_right_of(&face[0], at), fs_load(face[1].own + at.here),
                  sk_above(&face[1], at)};
#if SELKIE_DIM == 3
    side[4] = fs_load(face[2].own + at.here);
    side[5] = sk_front_of(&face[2], at);
#endif
    for (int s = 0; s < SK_SIDES; ++s) {
        sum += side[s];
        *unlike |= side[s] != fs_splat(1.0f);
    }
    *unlike |= e != fs_splat(excess[0]);
    is positive = sum > fs_splat(0.0f);
    *unknowns -= positive;
    fs safe = fs_select(positive, sum, fs_splat(1.0f));
    fs_store(inverse + at.here, fs_select(positive, 1.0f / safe, fs_splat(0.0f)));
}

int SK_DIM(sk_invert_block)(const sk_level *level, int block, int *unknowns)
{
    sk_around face[SELKIE_DIM];
    sk_look_around_faces(level, block, face);
    float *own = level->coefficients + (size_t)level->slot[block] * SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS;
    const float *excess = own + SK_COEFFICIENT_EXCESS * SK_BLOCK_CELLS;
    float *inverse = own + SK_COEFFICIENT_INVERSE * SK_BLOCK_CELLS;
    is unlike = {0}, counts = {0};
    SK_EACH_VECTOR(SK_ALL_ACTIVE, invert_vector, 0, face, excess, inverse, &unlike, &counts);
    SK_EACH_VECTOR(SK_ALL_ACTIVE, invert_vector, 1, face, excess, inverse, &unlike, &counts);
    level->active[block] = 0;
    for (int bit = 0; bit < SK_ACTIVE_BITS; ++bit) {
        int32_t found = 0;
        is any = (is)fs_load(inverse + bit * SK_LANES) | (is)fs_load(inverse + SK_HALF + bit * SK_LANES);
        for (int lane = 0; lane < SK_LANES; ++lane)
            found |= any[lane];
        level->active[block] |= (sk_active)(found != 0) << bit;
    }
    int different = 0, count = 0;
    for (int lane = 0; lane < SK_LANES; ++lane) {
        different |= unlike[lane];
        count += counts[lane];
    }
    *unknowns = count;
    level->excess[block] = excess[0];
    level->inverse[block] = inverse[0];
    return !different;
}
