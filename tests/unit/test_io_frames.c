/* Particles and surfaces on their way to other programs, and back. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "io/atomic_file.h"
#include "io/mesh_file.h"
#include "io/particles_file.h"
#include "scratch_folder.h"

static char *read_text(const char *path, size_t *bytes)
{
    char *data;
    selkie_error error;
    assert_int_equal(sk_file_read(path, &data, bytes, &error), SELKIE_OK);
    return data;
}

static void assert_says(const selkie_error *error, const char *part)
{
    if (!strstr(error->message, part))
        fail_msg("'%s' does not say '%s'", error->message, part);
    assert_null(strchr(error->message, '\n'));
}

/* --- A frame out of packed records, as a world has them --- */

typedef struct record {
    float position[3];
    uint32_t id;
    float velocity[3];
    float temperature;
    float spin[3];
} record;

static record *make_records(int64_t count)
{
    record *records = malloc((size_t)(count > 0 ? count : 1) * sizeof *records);
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < 3; k++) {
            records[i].position[k] = sk_random_float(1, (uint64_t)i, (uint64_t)k) - 0.5f;
            records[i].velocity[k] = 10 * sk_random_float(2, (uint64_t)i, (uint64_t)k) - 5;
            records[i].spin[k] = (float)k;
        }
        records[i].id = (uint32_t)sk_hash64((uint64_t)i);
        records[i].temperature = 273.15f + (float)i;
    }
    return records;
}

static sk_frame make_frame(const record *records, int64_t count)
{
    return (sk_frame){
        .dimension = 3,
        .time = 0.1 + 0.2,
        .count = count,
        .position = records->position,
        .position_stride = sizeof *records,
        .velocity = records->velocity,
        .velocity_stride = sizeof *records,
        .id = &records->id,
        .id_stride = sizeof *records,
        .particle_radius = 0.0625,
        .scene_up = {0, 1, 0},
    };
}

static void ply_round_trip(void **state)
{
    (void)state;
    selkie_error error;
    int64_t count = 100003; /* several batches, the last one not full */
    record *records = make_records(count);
    sk_frame frame = make_frame(records, count);
    const char *path = in_root("a.ply");
    assert_int_equal(sk_particles_write(&frame, path, &error), SELKIE_OK);
    sk_particles_data *data;
    assert_int_equal(sk_particles_read_ply(path, &data, &error), SELKIE_OK);
    assert_int_equal(data->count, count);
    assert_int_equal(data->dimension, 3);
    assert_true(data->time == 0.1 + 0.2); /* to the last bit */
    assert_true(data->particle_radius == 0.0625);
    for (int64_t i = 0; i < count; i++) {
        assert_memory_equal(data->position + 3 * i, records[i].position, 12);
        assert_memory_equal(data->velocity + 3 * i, records[i].velocity, 12);
        assert_int_equal(data->id[i], records[i].id);
    }
    sk_particles_data_free(data);
    free(records);
}

static void empty_frames_are_files(void **state)
{
    (void)state;
    selkie_error error;
    record *records = make_records(0);
    sk_frame frame = make_frame(records, 0);
    assert_int_equal(sk_particles_write(&frame, in_root("empty.ply"), &error), SELKIE_OK);
    assert_int_equal(sk_particles_write(&frame, in_root("empty.vtp"), &error), SELKIE_OK);
    sk_particles_data *data;
    assert_int_equal(sk_particles_read_ply(in_root("empty.ply"), &data, &error), SELKIE_OK);
    assert_int_equal(data->count, 0);
    sk_particles_data_free(data);
    assert_int_equal(sk_particles_write(&frame, in_root("empty.abc"), &error), SELKIE_ERROR_INPUT);
    assert_says(&error, ".vtp");
    free(records);
}

static void turned(selkie_up_axis wanted, double x, double y, double z, const float in[3], float out[3])
{
    double up[3] = {x, y, z};
    sk_up_turn turn = sk_up_turn_make(wanted, up);
    sk_up_turn_apply(&turn, in, out);
    float back[3];
    sk_up_turn inverse = sk_up_turn_inverse(turn);
    sk_up_turn_apply(&inverse, out, back);
    for (int k = 0; k < 3; k++)
        assert_true(back[k] == in[k]);
    /* A rotation: takes up to the axis that is wanted, and no mirror. */
    double matrix[9] = {0};
    for (int k = 0; k < 3; k++)
        matrix[3 * k + turn.axis[k]] = turn.sign[k];
    sk_up_turn same;
    assert_true(sk_up_turn_from_matrix(matrix, &same));
    float direction[3] = {(float)x, (float)y, (float)z}, axis[3];
    sk_up_turn_apply(&turn, direction, axis);
    if (wanted != SELKIE_UP_SCENE)
        assert_true(axis[wanted == SELKIE_UP_Y ? 1 : 2] > 0.5f);
}

static void up_turns(void **state)
{
    (void)state;
    const float in[3] = {1, 2, 3};
    float out[3];
    turned(SELKIE_UP_Z, 0, 1, 0, in, out);
    assert_true(out[0] == 1 && out[1] == -3 && out[2] == 2);
    turned(SELKIE_UP_Y, 0, 0, 1, in, out);
    assert_true(out[0] == 1 && out[1] == 3 && out[2] == -2);
    turned(SELKIE_UP_Z, 0.3, 0.9, -0.2, in, out); /* tilted gravity: walls stay along the axes */
    assert_true(out[0] == 1 && out[1] == -3 && out[2] == 2);
    turned(SELKIE_UP_SCENE, 0, 0, 1, in, out);
    assert_true(out[0] == 1 && out[1] == 2 && out[2] == 3);
    static const double ups[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    for (int i = 0; i < 6; i++) {
        turned(SELKIE_UP_Y, ups[i][0], ups[i][1], ups[i][2], in, out);
        turned(SELKIE_UP_Z, ups[i][0], ups[i][1], ups[i][2], in, out);
    }
    sk_up_turn turn;
    static const double mirror[9] = {1, 0, 0, 0, 0, 1, 0, 1, 0}, not_a_turn[9] = {1, 0, 0, 1, 0, 0, 0, 0, 1};
    assert_false(sk_up_turn_from_matrix(mirror, &turn));
    assert_false(sk_up_turn_from_matrix(not_a_turn, &turn));
}

static void turned_frames_come_back(void **state)
{
    (void)state;
    selkie_error error;
    record *records = make_records(5);
    sk_frame frame = make_frame(records, 5);
    frame.up = SELKIE_UP_Z;
    frame.names = SELKIE_NAMES_BLENDER;
    assert_int_equal(sk_particles_write(&frame, in_root("z.ply"), &error), SELKIE_OK);
    sk_particles_data *data;
    assert_int_equal(sk_particles_read_ply(in_root("z.ply"), &data, &error), SELKIE_OK);
    for (int i = 0; i < 5; i++) {
        assert_true(data->position[3 * i + 1] == -records[i].position[2]);
        assert_true(data->position[3 * i + 2] == records[i].position[1]);
        assert_true(data->velocity[3 * i + 1] == -records[i].velocity[2]);
    }
    sk_particles_turn_back(data);
    for (int i = 0; i < 5; i++) {
        assert_memory_equal(data->position + 3 * i, records[i].position, 12);
        assert_memory_equal(data->velocity + 3 * i, records[i].velocity, 12);
    }
    sk_particles_data_free(data);
    free(records);
}

static void two_dimensions_leave_the_third_alone(void **state)
{
    (void)state;
    selkie_error error;
    float flat[2][2] = {{1, 2}, {3, 4}};
    sk_frame frame = {.dimension = 2,
                      .count = 2,
                      .position = flat[0],
                      .position_stride = sizeof flat[0],
                      .up = SELKIE_UP_Z,
                      .scene_up = {0, 1, 0}};
    assert_int_equal(sk_particles_write(&frame, in_root("flat.ply"), &error), SELKIE_OK);
    sk_particles_data *data;
    assert_int_equal(sk_particles_read_ply(in_root("flat.ply"), &data, &error), SELKIE_OK);
    assert_int_equal(data->dimension, 2);
    assert_null(data->velocity);
    assert_null(data->id);
    float expected[6] = {1, 0, 2, 3, 0, 4};
    assert_memory_equal(data->position, expected, sizeof expected); /* and no -0 */
    sk_particles_data_free(data);
}

static void names_for_each_program(void **state)
{
    (void)state;
    selkie_error error;
    record *records = make_records(3);
    sk_frame frame = make_frame(records, 3);
    selkie_attribute_view extra[2] = {
        {"temperature", SELKIE_FLOAT32, 1, sizeof(record), &records->temperature, {0, 0, 0}},
        {"spin <1/s>", SELKIE_FLOAT32, 3, sizeof(record), records->spin, {0, 0, 0}},
    };
    frame.extra_count = 2;
    frame.extra = extra;
    static const char *const expected[3] = {
        ("element vertex 3\nproperty float x\nproperty float y\nproperty float z\nproperty float velocity_x\nproperty "
         "float velocity_y\nproperty float velocity_z\nproperty uint id\nproperty float temperature\nproperty float "
         "spin__1_s__x\nproperty float spin__1_s__y\nproperty float spin__1_s__z\nend_header\n"),
        ("element vertex 3\nproperty float x\nproperty float y\nproperty float z\nproperty float vx\nproperty float "
         "vy\nproperty float vz\nproperty float pscale\nproperty uint id\nproperty float temperature\n"),
        "element vertex 3\nproperty float x\nproperty float y\nproperty float z\nproperty float velocity_x\n"};
    static const char *const arrays[3] = {"Name=\"velocity\"", "Name=\"v\"", "Name=\"velocity\""};
    for (int names = 0; names < 3; names++) {
        frame.names = (selkie_attribute_names)names;
        size_t bytes;
        assert_int_equal(sk_particles_write(&frame, in_root("n.ply"), &error), SELKIE_OK);
        char *text = read_text(in_root("n.ply"), &bytes);
        assert_non_null(strstr(text, expected[names]));
        sk_release(NULL, text);
        assert_int_equal(sk_particles_write(&frame, in_root("n.vtp"), &error), SELKIE_OK);
        text = read_text(in_root("n.vtp"), &bytes);
        assert_non_null(strstr(text, arrays[names]));
        assert_true((strstr(text, "Name=\"pscale\"") != NULL) == (names == SELKIE_NAMES_HOUDINI));
        sk_release(NULL, text);
        sk_particles_data *data;
        assert_int_equal(sk_particles_read_ply(in_root("n.ply"), &data, &error), SELKIE_OK);
        assert_memory_equal(data->velocity + 6, records[2].velocity, 12);
        assert_int_equal(data->id[2], records[2].id);
        sk_particles_data_free(data);
    }
    extra[0].components = 17;
    assert_int_equal(sk_particles_write(&frame, in_root("n.ply"), &error), SELKIE_ERROR_INTERNAL);
    free(records);
}

/* --- .vtp, by hand and by VTK --- */

/* The raw bytes of an array, found as its reader would: offset from the tag, then a 64-bit length. */
static const char *vtp_array(const char *text, size_t bytes, const char *name, uint64_t expected_bytes)
{
    char tag[64];
    snprintf(tag, sizeof tag, "Name=\"%s\"", name);
    const char *at = strstr(text, tag);
    assert_non_null(at);
    at = strstr(at, "offset=\"");
    assert_non_null(at);
    uint64_t offset = strtoull(at + 8, NULL, 10), length;
    const char *raw = strstr(text, "<AppendedData encoding=\"raw\">\n_");
    assert_non_null(raw);
    raw += strlen("<AppendedData encoding=\"raw\">\n_") + offset;
    memcpy(&length, raw, sizeof length);
    assert_int_equal(length, expected_bytes);
    assert_true(raw + 8 + length <= text + bytes);
    return raw + 8;
}

static void vtp_by_hand(void **state)
{
    (void)state;
    selkie_error error;
    record *records = make_records(1000);
    sk_frame frame = make_frame(records, 1000);
    assert_int_equal(sk_particles_write(&frame, in_root("a.vtp"), &error), SELKIE_OK);
    size_t bytes;
    char *text = read_text(in_root("a.vtp"), &bytes);
    const char *position = vtp_array(text, bytes, "position", 12000);
    const char *velocity = vtp_array(text, bytes, "velocity", 12000);
    const char *id = vtp_array(text, bytes, "id", 4000);
    const char *connectivity = vtp_array(text, bytes, "connectivity", 4000);
    const char *offsets = vtp_array(text, bytes, "offsets", 4000);
    for (int i = 0; i < 1000; i++) {
        int32_t first = i, end = i + 1;
        assert_memory_equal(position + 12 * i, records[i].position, 12);
        assert_memory_equal(velocity + 12 * i, records[i].velocity, 12);
        assert_memory_equal(id + 4 * i, &records[i].id, 4);
        assert_memory_equal(connectivity + 4 * i, &first, 4);
        assert_memory_equal(offsets + 4 * i, &end, 4);
    }
    const char *ending = "\n  </AppendedData>\n</VTKFile>\n";
    assert_string_equal(text + bytes - strlen(ending), ending);
    sk_release(NULL, text);
    free(records);
}

static const char vtk_script[] =
    "import sys\n"
    "from vtkmodules.vtkIOXML import vtkXMLPolyDataReader\n"
    "for path, count in ((sys.argv[1], 1000), (sys.argv[2], 0)):\n"
    "    reader = vtkXMLPolyDataReader()\n"
    "    reader.SetFileName(path)\n"
    "    reader.Update()\n"
    "    data = reader.GetOutput()\n"
    "    assert reader.GetErrorCode() == 0\n"
    "    assert data.GetNumberOfPoints() == count and data.GetNumberOfVerts() == count, data.GetNumberOfVerts()\n"
    "    time = data.GetFieldData().GetArray('TimeValue').GetValue(0)\n"
    "    assert time == 0.1 + 0.2, time\n"
    "    if count:\n"
    "        assert data.GetPointData().GetVectors().GetName() == 'velocity'\n"
    "        assert data.GetPointData().GetArray('id').GetValue(7) == int(sys.argv[3])\n"
    "        assert abs(data.GetPoint(7)[1] - float(sys.argv[4])) < 1e-6\n"
    "        assert data.GetVerts().GetNumberOfConnectivityIds() == count\n";

static void vtp_by_vtk(void **state)
{
    (void)state;
    if (system("/usr/bin/python3 -c 'import vtkmodules.vtkIOXML' 2>/dev/null") != 0)
        skip(); /* python3-vtk9 is not installed */
    selkie_error error;
    record *records = make_records(1000);
    sk_frame frame = make_frame(records, 1000);
    assert_int_equal(sk_particles_write(&frame, in_root("v.vtp"), &error), SELKIE_OK);
    frame.count = 0;
    assert_int_equal(sk_particles_write(&frame, in_root("v0.vtp"), &error), SELKIE_OK);
    assert_int_equal(sk_file_write(in_root("read.py"), vtk_script, strlen(vtk_script), &error), SELKIE_OK);
    char command[1024];
    snprintf(command, sizeof command, "/usr/bin/python3 '%s' '%s' '%s' %u %.9g", in_root("read.py"), in_root("v.vtp"),
             in_root("v0.vtp"), records[7].id, (double)records[7].position[1]);
    assert_int_equal(system(command), 0);
    free(records);
}

/* --- PLY of others --- */

static sk_particles_data *parse_good(const char *bytes, size_t size)
{
    selkie_error error = {0, ""};
    sk_particles_data *data;
    if (sk_particles_parse_ply(bytes, size, "text", &data, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return data;
}

static void ply_of_others(void **state)
{
    (void)state;
    const char *ascii =
        "ply\r\nformat ascii 1.0\r\nobj_info made elsewhere\r\ncomment hello\r\nelement camera 1\r\nproperty "
        "list uchar int a\r\nelement vertex 2\r\nproperty uchar red\r\nproperty double z\r\nproperty float "
        "y\r\nproperty float x\r\nproperty int id\r\nproperty float vx\r\nproperty float vz\r\nproperty float "
        "vy\r\nelement face 1\r\nproperty list uchar int vertex_indices\r\nend_header\r\n3 1 2 3\r\n255 3 2 1 7 "
        "10 30 20\r\n0 -3e0 .5 1 8 0 0 0\r\n3 0 1 0\r\n";
    sk_particles_data *data = parse_good(ascii, strlen(ascii));
    float positions[6] = {1, 2, 3, 1, 0.5f, -3}, velocities[6] = {10, 20, 30, 0, 0, 0};
    assert_int_equal(data->count, 2);
    assert_memory_equal(data->position, positions, sizeof positions);
    assert_memory_equal(data->velocity, velocities, sizeof velocities);
    assert_int_equal(data->id[1], 8);
    assert_true(isnan(data->time));
    sk_particles_data_free(data);

    const char *header =
        "ply\nformat binary_big_endian 1.0\nelement other 2\nproperty short a\nelement vertex 1\nproperty "
        "float x\nproperty short y\nproperty double z\nproperty float vx\nend_header\n";
    char big[512];
    size_t length = strlen(header);
    memcpy(big, header, length);
    static const unsigned char body[18] = {9, 9, 9, 9, 0x3f, 0x80, 0, 0, 0xff, 0xfe, 0x40, 0x08, 0, 0, 0, 0, 0, 0};
    memcpy(big + length, body, sizeof body);
    memset(big + length + sizeof body, 0, 4);
    data = parse_good(big, length + sizeof body + 4);
    float one[3] = {1, -2, 3};
    assert_memory_equal(data->position, one, sizeof one);
    assert_null(data->velocity); /* a component alone is no velocity */
    sk_particles_data_free(data);
}

static void bad_ply_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "ply",
        "solid cube\n",
        "ply\nformat ascii 1.0\n",
        "ply\nelement vertex 0\nproperty float x\nproperty float y\nproperty float z\nend_header\n",
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nend_header\n1 2\n",
        "ply\nformat ascii 1.0\nelement vertex -1\nproperty float x\nproperty float y\nproperty float z\nend_header\n",
        "ply\nformat ascii 1.0\nelement vertex 99999999999999999999\nproperty float x\nend_header\n",
        "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\nend_header\n1 "
        "2 3\n4 5\n",
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n1 "
        "nan 3\n",
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n1 "
        "1e39 3\n",
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float x\nproperty float y\nproperty float "
        "z\nend_header\n1 1 1 1\n",
        "ply\nformat binary_little_endian 1.0\nelement vertex 4611686018427387904\nproperty float x\nproperty float "
        "y\nproperty float z\nend_header\n",
        "ply\nformat binary_little_endian 1.0\nelement vertex 0\nproperty list uchar float x\nend_header\n",
        "ply\nformat binary_little_endian 1.0\nelement a 9000000000000000000\nproperty int b\nproperty int c\nelement "
        "vertex "
        "0\nproperty float x\nproperty float y\nproperty float z\nend_header\n",
        "ply\nformat ascii 1.0\ncomment selkie_turn 1 0 0 0 1 0 0 0 -1\nelement vertex 0\nproperty float x\nproperty "
        "float "
        "y\nproperty float z\nend_header\n",
        "ply\nformat ascii 1.0\nwhat is this\nend_header\n",
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nproperty int "
        "id\nend_header\n1 1 1 -1\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        selkie_error error;
        sk_particles_data *data;
        size_t length = strlen(bad[i]);
        char *copy = malloc(length + 1); /* its own block: a sanitizer sees every step too far */
        memcpy(copy, bad[i], length);
        assert_int_equal(sk_particles_parse_ply(copy, length, "bad.ply", &data, &error), SELKIE_ERROR_FORMAT);
        assert_null(data);
        assert_says(&error, "bad.ply");
        free(copy);
    }
}

static void damaged_ply_does_no_harm(void **state)
{
    (void)state;
    selkie_error error;
    record *records = make_records(4);
    sk_frame frame = make_frame(records, 4);
    assert_int_equal(sk_particles_write(&frame, in_root("d.ply"), &error), SELKIE_OK);
    size_t bytes;
    char *text = read_text(in_root("d.ply"), &bytes);
    sk_particles_data *data;
    for (size_t length = 0; length < bytes; length++) {
        char *cut = malloc(length + 1);
        memcpy(cut, text, length);
        assert_int_equal(sk_particles_parse_ply(cut, length, "cut.ply", &data, &error), SELKIE_ERROR_FORMAT);
        free(cut);
    }
    for (size_t i = 0; i < bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            text[i] ^= (char)(1 << bit);
            if (sk_particles_parse_ply(text, bytes, "flipped.ply", &data, &error) == SELKIE_OK) {
                sk_particles_turn_back(data);
                sk_particles_data_free(data);
            }
            text[i] ^= (char)(1 << bit);
        }
    sk_release(NULL, text);
    free(records);
}

/* --- Surfaces --- */

static void surfaces(void **state)
{
    (void)state;
    selkie_error error;
    float positions[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0.1f};
    float normals[12] = {0, 0, -1, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    float velocities[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    uint32_t triangles[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
    sk_mesh mesh = {.vertex_count = 4,
                    .positions = positions,
                    .normals = normals,
                    .velocities = velocities,
                    .triangle_count = 4,
                    .triangles = triangles};
    sk_mesh_frame frame = {&mesh, 0.25, SELKIE_NAMES_SELKIE, SELKIE_UP_Z, {0, 1, 0}, {0, 0, 0}, 0.0};
    assert_int_equal(sk_mesh_write(&frame, in_root("s.ply"), &error), SELKIE_OK);
    sk_particles_data *data; /* its points can be read as any PLY's */
    assert_int_equal(sk_particles_read_ply(in_root("s.ply"), &data, &error), SELKIE_OK);
    assert_int_equal(data->count, 4);
    sk_particles_turn_back(data);
    assert_memory_equal(data->position, positions, sizeof positions);
    assert_memory_equal(data->velocity, velocities, sizeof velocities);
    assert_true(data->time == 0.25);
    sk_particles_data_free(data);
    size_t bytes;
    char *text = read_text(in_root("s.ply"), &bytes);
    assert_non_null(strstr(text, "property float nx"));
    for (int t = 0; t < 4; t++) {
        const char *face = text + bytes - 13 * (4 - t);
        assert_int_equal(face[0], 3);
        assert_memory_equal(face + 1, triangles + 3 * t, 12);
    }
    sk_release(NULL, text);
    assert_int_equal(sk_mesh_write(&frame, in_root("s.obj"), &error), SELKIE_OK);
    text = read_text(in_root("s.obj"), &bytes);
    assert_non_null(strstr(text, "\nv 0 0 0\nv 1 0 0\nv 0 0 1\nv 0 -0.100000001 0\nvn 0 1 0\n"));
    assert_non_null(strstr(text, "\nf 1//1 3//3 2//2\n"));
    sk_release(NULL, text);
    assert_int_equal(sk_mesh_write(&frame, in_root("s.stl"), &error), SELKIE_ERROR_INPUT);
    triangles[5] = 4;
    assert_int_equal(sk_mesh_write(&frame, in_root("s.ply"), &error), SELKIE_ERROR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ply_round_trip),
        cmocka_unit_test(empty_frames_are_files),
        cmocka_unit_test(up_turns),
        cmocka_unit_test(turned_frames_come_back),
        cmocka_unit_test(two_dimensions_leave_the_third_alone),
        cmocka_unit_test(names_for_each_program),
        cmocka_unit_test(vtp_by_hand),
        cmocka_unit_test(vtp_by_vtk),
        cmocka_unit_test(ply_of_others),
        cmocka_unit_test(bad_ply_is_refused),
        cmocka_unit_test(damaged_ply_does_no_harm),
        cmocka_unit_test(surfaces),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
