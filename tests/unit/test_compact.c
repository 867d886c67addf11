/* Compact particle files: what is lost is bounded, all else comes back, and damage is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "io/particles_compact.h"
#include "io/particles_file.h"
#include "scratch_folder.h"

enum { COUNT = 70001 }; /* two chunks */
static float position[COUNT][3], velocity[COUNT][3], temperature[COUNT];
static uint32_t id[COUNT], material[COUNT];

static double unit_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) / 16777216.0;
}

/* Particles of many cells in the order of cells, some far out, velocities of many sizes. */
static sk_frame make_frame(int dimension, int64_t count, double cell, selkie_attribute_view extras[2])
{
    uint32_t state = 7;
    for (int64_t i = 0; i < count; i++) {
        for (int d = 0; d < dimension; d++) {
            position[i][d] = (float)(cell * ((double)(i / 8 % 100) + unit_random(&state) - (d ? 50.0 : 0.0)));
            velocity[i][d] = (float)((unit_random(&state) - 0.5) * pow(10.0, 8.0 * unit_random(&state) - 5.0));
        }
        id[i] = (uint32_t)(count - i) * 2654435761u;
        material[i] = (uint32_t)(i % 3);
        temperature[i] = (float)(273.0 + unit_random(&state));
    }
    velocity[0][0] = 0.0f;
    velocity[1][0] = 1e9f; /* beyond a half */
    extras[0] = (selkie_attribute_view){"material", SELKIE_UINT32, 1, 4, material, {0}};
    extras[1] = (selkie_attribute_view){"temperature", SELKIE_FLOAT32, 1, 4, temperature, {0}};
    return (sk_frame){.dimension = dimension,
                      .time = 1.25,
                      .count = count,
                      .position = position[0],
                      .position_stride = sizeof position[0],
                      .velocity = velocity[0],
                      .velocity_stride = sizeof velocity[0],
                      .id = id,
                      .id_stride = 4,
                      .particle_radius = 0.25 * cell,
                      .cell_size = cell,
                      .origin = {1e6, -3.0, 0.5},
                      .extra_count = 2,
                      .extra = extras};
}

static void round_trip(int dimension, int64_t count, double cell)
{
    selkie_attribute_view extras[2];
    const sk_frame frame = make_frame(dimension, count, cell, extras);
    selkie_error error = {0};
    sk_particles_data *data;
    const char *path = in_root("frame.skp");
    assert_int_equal(sk_particles_write(&frame, path, &error), SELKIE_OK);
    assert_int_equal(sk_particles_read(path, &data, &error), SELKIE_OK);
    assert_int_equal(data->count, count);
    assert_int_equal(data->dimension, dimension);
    assert_true(data->time == 1.25 && data->particle_radius == 0.25 * cell && data->origin[0] == 1e6);

    /* Half a quantum, and the rounding of the positions' floats. */
    const double bound = 0.5 * cell / 1024 + 100.0 * cell * 0x1p-23;
    for (int64_t i = 0; i < count; i++) {
        for (int d = 0; d < dimension; d++) {
            const double v = velocity[i][d], back = data->velocity[3 * i + d];
            assert_true(fabs(data->position[3 * i + d] - (double)position[i][d]) <= bound);
            if (v > 65504.0)
                assert_true(back == 65504.0);
            else
                assert_true(fabs(back - v) <= fmax(fabs(v) * 0x1p-11, 0x1p-25));
        }
        assert_int_equal(data->id[i], id[i]);
        assert_int_equal(data->material[i], material[i]);
        assert_memory_equal(&data->extra[1].data[i], &temperature[i], 4);
    }
    sk_particles_data_free(data);
}

static void what_comes_back(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        round_trip(dimension, COUNT, 0.01);
        round_trip(dimension, SK_COMPACT_CHUNK, 3.0);
        round_trip(dimension, 1, 1e-6);
        round_trip(dimension, 0, 0.01);
    }
}

static void halves(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7c00u; bits++) {
        const float value = sk_float_from_half((uint16_t)bits);
        assert_int_equal(sk_half_from_float(value), bits);
        if (bits)
            assert_int_equal(sk_half_from_float(-value), bits | 0x8000u);
        assert_true(sk_value_of_ordered(sk_ordered_half(-value)) == -value);
    }
    assert_int_equal(sk_half_from_float(1.0f + 0x1p-11f), 0x3c00u); /* a tie, to even */
    assert_int_equal(sk_half_from_float(1.0f + 3 * 0x1p-11f), 0x3c02u);
    assert_int_equal(sk_half_from_float(INFINITY), 0x7bffu);
    assert_int_equal(sk_unzigzag32(sk_zigzag32(0xfffffff0u)), 0xfffffff0u);
    assert_int_equal(sk_unzigzag16(sk_zigzag16(0x8000u)), 0x8000u);
}

/* Every byte changed and every truncation of a small file is refused with a message. */
static void damage(void **state)
{
    (void)state;
    selkie_attribute_view extras[2];
    const sk_frame frame = make_frame(3, 40, 0.01, extras);
    selkie_error error = {0};
    sk_particles_data *data;
    const char *path = in_root("damage.skp");
    char *bytes;
    size_t size;
    assert_int_equal(sk_particles_write_compact(&frame, path, &error), SELKIE_OK);
    assert_int_equal(sk_file_read(path, &bytes, &size, &error), SELKIE_OK);
    for (size_t b = 0; b < size; b++) {
        bytes[b] = (char)(bytes[b] ^ 0x41);
        assert_int_not_equal(sk_particles_parse_compact(bytes, size, "damage.skp", &data, &error), SELKIE_OK);
        assert_null(data);
        bytes[b] = (char)(bytes[b] ^ 0x41);
        assert_int_not_equal(sk_particles_parse_compact(bytes, b, "damage.skp", &data, &error), SELKIE_OK);
    }
    assert_int_equal(sk_particles_parse_compact(bytes, size, "damage.skp", &data, &error), SELKIE_OK);
    sk_particles_data_free(data);
    sk_release(NULL, bytes);
}

static void refusals(void **state)
{
    (void)state;
    selkie_attribute_view extras[2];
    sk_frame frame = make_frame(3, 100, 0.01, extras);
    selkie_error error = {0};
    position[50][1] = NAN;
    assert_int_equal(sk_particles_write(&frame, in_root("nan.skp"), &error), SELKIE_ERROR_INPUT);
    position[50][1] = 1e30f;
    assert_int_equal(sk_particles_write(&frame, in_root("far.skp"), &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "far.skp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_comes_back), cmocka_unit_test(halves),
                                       cmocka_unit_test(damage), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
