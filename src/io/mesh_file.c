#include "io/mesh_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/atomic_file.h"
#include "io/number.h"
#include "io/particles_file.h"
#include "io/up_turn.h"

typedef struct mesh_writer {
    const sk_mesh *mesh;
    sk_up_turn turn;
    int vectors; /* 3 floats each: position, normal, velocity, as far as the mesh has them */
    const float *sources[3];
    double origin[3]; /* m  of the positions, in the axes of the file */
    int wide;         /* positions are doubles */
} mesh_writer;

static mesh_writer make_writer(const sk_mesh_frame *frame)
{
    mesh_writer writer = {.mesh = frame->mesh, .turn = sk_up_turn_make(frame->up, frame->scene_up)};
    writer.sources[writer.vectors++] = frame->mesh->positions;
    for (int k = 0; k < 3; k++)
        writer.origin[k] = writer.turn.sign[k] * frame->origin[writer.turn.axis[k]];
    writer.wide = sk_needs_doubles(frame->origin, frame->detail);
    if (frame->mesh->normals)
        writer.sources[writer.vectors++] = frame->mesh->normals;
    if (frame->mesh->velocities)
        writer.sources[writer.vectors++] = frame->mesh->velocities;
    return writer;
}

static selkie_code check_mesh(const sk_mesh *mesh, const char *path, selkie_error *error)
{
    /* Readers take indices as signed 32-bit numbers. */
    if (mesh->vertex_count > INT32_MAX)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: a surface of %zu points; at most %d can be written: use a coarser surface", path,
                       mesh->vertex_count, INT32_MAX);
    for (size_t i = 0; i < 3 * mesh->triangle_count; i++)
        if (mesh->triangles[i] >= mesh->vertex_count)
            return sk_fail(error, SELKIE_ERROR_INTERNAL,
                           "%s: triangle %zu of the surface has a corner %u of %zu points", path, i / 3,
                           mesh->triangles[i], mesh->vertex_count);
    return SELKIE_OK;
}

/* --- PLY --- */

static void put_word(unsigned char *out, uint32_t word)
{
    out[0] = (unsigned char)word;
    out[1] = (unsigned char)(word >> 8);
    out[2] = (unsigned char)(word >> 16);
    out[3] = (unsigned char)(word >> 24);
}

static unsigned char *put_place(const mesh_writer *writer, const float turned[3], unsigned char *out)
{
    for (int k = 0; k < 3; k++) {
        const double place = turned[k] + writer->origin[k];
        const float narrow = (float)place;
        uint64_t bits;
        uint32_t narrow_bits;
        memcpy(&bits, &place, sizeof bits);
        memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
        put_word(out, writer->wide ? (uint32_t)bits : narrow_bits);
        if (writer->wide)
            put_word(out + 4, (uint32_t)(bits >> 32));
        out += writer->wide ? 8 : 4;
    }
    return out;
}

static unsigned char *put_floats(const float *numbers, int count, unsigned char *out)
{
    for (int k = 0; k < count; k++, out += 4) {
        uint32_t bits;
        memcpy(&bits, &numbers[k], sizeof bits);
        put_word(out, bits);
    }
    return out;
}

static void fill_vertices(const void *context, int64_t first, int64_t count, unsigned char *out)
{
    const mesh_writer *writer = context;
    for (int64_t i = first; i < first + count; i++) {
        for (int v = 0; v < writer->vectors; v++) {
            float turned[3];
            sk_up_turn_apply(&writer->turn, writer->sources[v] + 3 * i, turned);
            if (v == 0) {
                out = put_place(writer, turned, out);
                continue;
            }
            out = put_floats(turned, 3, out);
        }
        for (int v = 0; v < writer->mesh->value_count; v++)
            out = put_floats(&writer->mesh->values[v].data[i], 1, out);
    }
}

enum { triangle_record_bytes = 13 };

static void fill_triangles(const void *context, int64_t first, int64_t count, unsigned char *out)
{
    const mesh_writer *writer = context;
    for (int64_t i = first; i < first + count; i++, out += triangle_record_bytes) {
        out[0] = 3;
        for (int k = 0; k < 3; k++)
            put_word(out + 1 + 4 * k, writer->mesh->triangles[3 * i + k]);
    }
}

static selkie_code write_ply(sk_atomic_file *file, const sk_mesh_frame *frame, const mesh_writer *writer,
                             selkie_error *error)
{
    const sk_mesh *mesh = frame->mesh;
    double matrix[9] = {0};
    for (int k = 0; k < 3; k++)
        matrix[3 * k + writer->turn.axis[k]] = writer->turn.sign[k];

    /* Header. */
    SK_TRY(sk_atomic_print(file, error,
                           "ply\nformat binary_little_endian 1.0\ncomment Selkie surface: metres, seconds\n"));
    SK_TRY(sk_atomic_print(file, error, "comment selkie_time %.17g\n", frame->time));
    SK_TRY(sk_atomic_print(file, error, "comment selkie_turn %g %g %g %g %g %g %g %g %g\n", matrix[0], matrix[1],
                           matrix[2], matrix[3], matrix[4], matrix[5], matrix[6], matrix[7], matrix[8]));

    /* Columns of the vertices. */
    const char *type = writer->wide ? "double" : "float";
    SK_TRY(sk_atomic_print(file, error, "element vertex %zu\nproperty %s x\nproperty %s y\nproperty %s z\n",
                           mesh->vertex_count, type, type, type));
    if (mesh->normals)
        SK_TRY(sk_atomic_print(file, error, "property float nx\nproperty float ny\nproperty float nz\n"));
    if (mesh->velocities) {
        const char *names[3];
        sk_ply_velocity_names(frame->names, names);
        SK_TRY(sk_atomic_print(file, error, "property float %s\nproperty float %s\nproperty float %s\n", names[0],
                               names[1], names[2]));
    }
    for (int v = 0; v < mesh->value_count; v++)
        SK_TRY(sk_atomic_print(file, error, "property float %s\n", mesh->values[v].name));

    SK_TRY(sk_atomic_print(file, error, "element face %zu\nproperty list uchar int vertex_indices\nend_header\n",
                           mesh->triangle_count));

    /* Vertices and triangles. */
    SK_TRY(
        sk_atomic_write_records(file, (int64_t)mesh->vertex_count,
                                (size_t)writer->vectors * 12 + 4 * (size_t)mesh->value_count + (writer->wide ? 12 : 0),
                                fill_vertices, writer, error));
    return sk_atomic_write_records(file, (int64_t)mesh->triangle_count, triangle_record_bytes, fill_triangles, writer,
                                   error);
}

/* --- OBJ --- */

/* Lines vary in length, so blocks of them are formatted in parallel and written in order. */
enum { lines_per_block = 4096, blocks_per_round = 16, line_room = 3 * SK_NUMBER_LENGTH + 8 };

typedef size_t (*line_maker)(const mesh_writer *writer, size_t index, char *line);

static size_t vector_line(const mesh_writer *writer, const float *source, size_t index, const char *key, char *line)
{
    float turned[3];
    sk_up_turn_apply(&writer->turn, source + 3 * index, turned);
    return (size_t)snprintf(line, line_room, "%s %.9g %.9g %.9g\n", key, (double)turned[0], (double)turned[1],
                            (double)turned[2]);
}

static size_t position_line(const mesh_writer *writer, size_t index, char *line)
{
    float turned[3];
    sk_up_turn_apply(&writer->turn, writer->mesh->positions + 3 * index, turned);
    if (!writer->wide) {
        for (int k = 0; k < 3; k++)
            turned[k] = (float)(turned[k] + writer->origin[k]);
        return (size_t)snprintf(line, line_room, "v %.9g %.9g %.9g\n", (double)turned[0], (double)turned[1],
                                (double)turned[2]);
    }
    return (size_t)snprintf(line, line_room, "v %.15g %.15g %.15g\n", turned[0] + writer->origin[0],
                            turned[1] + writer->origin[1], turned[2] + writer->origin[2]);
}

static size_t normal_line(const mesh_writer *writer, size_t index, char *line)
{
    return vector_line(writer, writer->mesh->normals, index, "vn", line);
}

static size_t triangle_line(const mesh_writer *writer, size_t index, char *line)
{
    unsigned corner[3]; /* counted from 1 */
    for (int k = 0; k < 3; k++)
        corner[k] = writer->mesh->triangles[3 * index + (size_t)k] + 1;
    if (writer->mesh->normals)
        return (size_t)snprintf(line, line_room, "f %u//%u %u//%u %u//%u\n", corner[0], corner[0], corner[1], corner[1],
                                corner[2], corner[2]);
    return (size_t)snprintf(line, line_room, "f %u %u %u\n", corner[0], corner[1], corner[2]);
}

static selkie_code write_lines(sk_atomic_file *file, const mesh_writer *writer, size_t count, line_maker make,
                               char *buffers, selkie_error *error)
{
    size_t lengths[blocks_per_round];
    for (size_t start = 0; start < count; start += (size_t)lines_per_block * blocks_per_round) {
        int failed = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(| : failed)
        for (int block = 0; block < blocks_per_round; block++) {
            size_t first = start + (size_t)block * lines_per_block;
            size_t end = first + lines_per_block < count ? first + lines_per_block : count;
            char *to = buffers + (size_t)block * lines_per_block * line_room;
            lengths[block] = 0;
            sk_number_scope scope;
            if (sk_number_begin(&scope, NULL) != SELKIE_OK) {
                failed = 1;
                continue;
            }
            for (size_t i = first; i < end; i++)
                lengths[block] += make(writer, i, to + lengths[block]);
            sk_number_end(&scope);
        }
        if (failed)
            return sk_atomic_fail(file, ENOMEM, error);
        for (int block = 0; block < blocks_per_round; block++)
            SK_TRY(sk_atomic_write(file, buffers + (size_t)block * lines_per_block * line_room, lengths[block], error));
    }
    return SELKIE_OK;
}

static selkie_code write_obj(sk_atomic_file *file, const sk_mesh_frame *frame, const mesh_writer *writer,
                             selkie_error *error)
{
    const sk_mesh *mesh = frame->mesh;
    char *buffers = malloc((size_t)blocks_per_round * lines_per_block * line_room);
    if (!buffers)
        return sk_atomic_fail(file, ENOMEM, error);
    selkie_code code = sk_atomic_print(file, error, "# Selkie surface, metres, time %.17g s\no liquid\n", frame->time);
    if (code == SELKIE_OK)
        code = write_lines(file, writer, mesh->vertex_count, position_line, buffers, error);
    if (code == SELKIE_OK && mesh->normals)
        code = write_lines(file, writer, mesh->vertex_count, normal_line, buffers, error);
    if (code == SELKIE_OK && mesh->triangle_count > 0)
        code = sk_atomic_print(file, error, "s 1\n"); /* smooth shading, by the normals */
    if (code == SELKIE_OK)
        code = write_lines(file, writer, mesh->triangle_count, triangle_line, buffers, error);
    free(buffers);
    return code;
}

/* --- Files --- */

typedef selkie_code (*surface_writer)(sk_atomic_file *file, const sk_mesh_frame *frame, const mesh_writer *writer,
                                      selkie_error *error);

static selkie_code write_surface(const sk_mesh_frame *frame, const char *path, surface_writer write,
                                 selkie_error *error)
{
    SK_TRY(check_mesh(frame->mesh, path, error));
    mesh_writer writer = make_writer(frame);
    sk_atomic_file *file;
    SK_TRY(sk_atomic_open(path, 0, &file, error));
    sk_number_scope scope;
    selkie_code code = sk_number_begin(&scope, error);
    if (code == SELKIE_OK) {
        code = write(file, frame, &writer, error);
        sk_number_end(&scope);
    }
    return sk_atomic_finish(&file, code, error);
}

selkie_code sk_mesh_write_ply(const sk_mesh_frame *frame, const char *path, selkie_error *error)
{
    return write_surface(frame, path, write_ply, error);
}

selkie_code sk_mesh_write_obj(const sk_mesh_frame *frame, const char *path, selkie_error *error)
{
    return write_surface(frame, path, write_obj, error);
}

selkie_code sk_mesh_write(const sk_mesh_frame *frame, const char *path, selkie_error *error)
{
    size_t length = strlen(path);
    const char *ending = length > 4 ? path + length - 4 : "";
    if (strcmp(ending, ".ply") == 0)
        return sk_mesh_write_ply(frame, path, error);
    if (strcmp(ending, ".obj") == 0)
        return sk_mesh_write_obj(frame, path, error);
    if (length > 5 && strcmp(path + length - 5, ".usda") == 0)
        return sk_mesh_write_usd(frame, path, error);
    return sk_fail(error, SELKIE_ERROR_INPUT,
                   "%s: a surface is written as .ply, .obj or .usda; end the name with one of these", path);
}
