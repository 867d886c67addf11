/* Writers. A frame first becomes a list of columns: name, address, rotation. PLY interleaves them into records, .vtp
 * writes one array after the other; both convert batches on all threads and write them in place
 * (sk_atomic_write_records), in batches of megabytes, without a second copy in memory. */
#include "io/particles_file.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strided.h"
#include "io/atomic_file.h"
#include "io/number.h"

enum { max_components = 16, max_columns = SK_MAX_EXTRA_ATTRIBUTES + 4 };

typedef struct column {
    char name[64];
    selkie_attribute_type type;
    int components; /* written; each has four bytes, or eight if wide */
    int stored;     /* components that the source has; the others are zero */
    int turns;      /* a vector */
    int wide;       /* doubles: positions far from 0 */
    size_t stride;
    const char *data; /* NULL: `constant` for every particle */
    float constant;
} column;

typedef struct table {
    int count;
    column columns[max_columns];
    int offsets[max_columns]; /* bytes into a PLY record */
    int record_bytes;
    sk_up_turn turn;
    int turned;
    double origin[3]; /* m  of the positions, in the axes of the file */
    int moved;        /* it is not 0 */
    int may_be_wide;  /* the format has doubles */
} table;

/* --- From a frame to columns --- */

static column *add_column(table *to, const char *name, selkie_attribute_type type, int components, const void *data,
                          size_t stride)
{
    column *added = &to->columns[to->count];
    *added = (column){.type = type, .components = components, .stored = components, .data = data, .stride = stride};
    snprintf(added->name, sizeof added->name, "%s", name);
    /* Names end at a blank in PLY and need escaping in XML. */
    for (char *letter = added->name; *letter; letter++)
        if (!isascii((unsigned char)*letter) || (!isalnum((unsigned char)*letter) && *letter != '_'))
            *letter = '_';
    to->offsets[to->count++] = to->record_bytes;
    to->record_bytes += 4 * components;
    return added;
}

static size_t column_bytes(const column *source)
{
    return (source->wide ? 8 : 4) * (size_t)source->components;
}

int sk_needs_doubles(const double origin[3], double length)
{
    const double far = fmax(fmax(fabs(origin[0]), fabs(origin[1])), fabs(origin[2]));
    return far * 0x1p-24 > 1e-3 * length;
}

/* Positions come first, so that a wide one shifts the other columns. */
static void place_origin(const sk_frame *frame, table *to)
{
    column *position = &to->columns[0];
    for (int k = 0; k < 3; k++) {
        to->origin[k] = to->turn.sign[k] * frame->origin[to->turn.axis[k]];
        to->moved |= to->origin[k] != 0.0;
    }
    if (!to->moved)
        return;
    position->wide = to->may_be_wide && sk_needs_doubles(frame->origin, frame->particle_radius);
    for (int c = 1; c < to->count && position->wide; c++)
        to->offsets[c] += 12;
    to->record_bytes += position->wide ? 12 : 0;
}

static const char *velocity_name(selkie_attribute_names names)
{
    return names == SELKIE_NAMES_HOUDINI ? "v" : "velocity";
}

void sk_ply_velocity_names(selkie_attribute_names names, const char *components[3])
{
    static const char *const short_names[3] = {"vx", "vy", "vz"};
    static const char *const long_names[3] = {"velocity_x", "velocity_y", "velocity_z"};
    for (int k = 0; k < 3; k++)
        components[k] = names == SELKIE_NAMES_HOUDINI ? short_names[k] : long_names[k];
}

static selkie_code make_table(const sk_frame *frame, const char *path, int may_be_wide, table *to, selkie_error *error)
{
    *to = (table){.turn = sk_up_turn_make(frame->up, frame->scene_up), .may_be_wide = may_be_wide};
    to->turned = !sk_up_turn_is_none(to->turn);
    if ((frame->dimension != 2 && frame->dimension != 3) || frame->count < 0 ||
        (frame->count > 0 && !frame->position) || frame->extra_count < 0 ||
        frame->extra_count > SK_MAX_EXTRA_ATTRIBUTES)
        return sk_fail(error, SELKIE_ERROR_INTERNAL,
                       "%s: a frame of dimension %d with %lld particles and %d extra attributes", path,
                       frame->dimension, (long long)frame->count, frame->extra_count);

    /* Vectors have three components in the file, also in 2D. */
    column *position = add_column(to, "position", SELKIE_FLOAT32, 3, frame->position, frame->position_stride);
    position->stored = frame->dimension;
    position->turns = 1;
    if (frame->velocity) {
        column *velocity =
            add_column(to, velocity_name(frame->names), SELKIE_FLOAT32, 3, frame->velocity, frame->velocity_stride);
        velocity->stored = frame->dimension;
        velocity->turns = 1;
    }

    /* Scalars and further attributes. */
    if (frame->names == SELKIE_NAMES_HOUDINI)
        add_column(to, "pscale", SELKIE_FLOAT32, 1, NULL, 0)->constant = (float)frame->particle_radius;
    if (frame->id)
        add_column(to, "id", SELKIE_UINT32, 1, frame->id, frame->id_stride);
    for (int e = 0; e < frame->extra_count; e++) {
        const selkie_attribute_view *extra = &frame->extra[e];
        if (extra->components < 1 || extra->components > max_components)
            return sk_fail(error, SELKIE_ERROR_INTERNAL, "%s: attribute '%s' has %d components; 1 to %d can be written",
                           path, extra->name, extra->components, max_components);
        column *added = add_column(to, extra->name, extra->type, extra->components, extra->data, extra->stride);
        added->turns = extra->type == SELKIE_FLOAT32 && extra->components == 3;
    }
    place_origin(frame, to);
    return SELKIE_OK;
}

/* --- Conversion --- */

static void fill_vectors(const table *from, const column *source, int64_t first, int64_t count, unsigned char *out,
                         size_t out_stride)
{
    const char *data = source->data + (size_t)first * source->stride;
    size_t stored_bytes = (size_t)source->stored * sizeof(float);
    if (!from->turned && source->stored == 3) {
        sk_copy_strided(out, out_stride, data, source->stride, stored_bytes, count);
        return;
    }
    for (int64_t i = 0; i < count; i++, data += source->stride, out += out_stride) {
        float vector[3] = {0, 0, 0};
        memcpy(vector, data, stored_bytes);
        if (from->turned) {
            float turned[3];
            sk_up_turn_apply(&from->turn, vector, turned);
            memcpy(vector, turned, sizeof vector);
        }
        memcpy(out, vector, sizeof vector);
    }
}

/* Positions in the scene. */
static void fill_places(const table *from, const column *source, int64_t first, int64_t count, unsigned char *out,
                        size_t out_stride)
{
    for (int64_t i = 0; i < count; i++, out += out_stride) {
        float relative[3], narrow[3];
        double place[3];
        fill_vectors(from, source, first + i, 1, (unsigned char *)relative, sizeof relative);
        for (int k = 0; k < 3; k++)
            narrow[k] = (float)(place[k] = relative[k] + from->origin[k]);
        memcpy(out, source->wide ? (const void *)place : narrow, column_bytes(source));
    }
}

static void fill_column(const table *from, const column *source, int64_t first, int64_t count, unsigned char *out,
                        size_t out_stride)
{
    if (!source->data) {
        for (int64_t i = 0; i < count; i++)
            memcpy(out + (size_t)i * out_stride, &source->constant, sizeof source->constant);
    } else if (source == &from->columns[0] && from->moved) {
        fill_places(from, source, first, count, out, out_stride);
    } else if (source->turns) {
        fill_vectors(from, source, first, count, out, out_stride);
    } else {
        sk_copy_strided(out, out_stride, source->data + (size_t)first * source->stride, source->stride,
                        4 * (size_t)source->components, count);
    }
}

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
static void to_little_endian(const table *from, unsigned char *records, int64_t count)
{
    for (int64_t r = 0; r < count; r++, records += from->record_bytes) {
        int at = 0;
        for (; from->columns[0].wide && at < 24; at += 8) {
            uint64_t word;
            memcpy(&word, records + at, 8);
            word = __builtin_bswap64(word);
            memcpy(records + at, &word, 8);
        }
        for (; at < from->record_bytes; at += 4) {
            uint32_t word;
            memcpy(&word, records + at, 4);
            word = __builtin_bswap32(word);
            memcpy(records + at, &word, 4);
        }
    }
}
#else
static void to_little_endian(const table *from, unsigned char *records, int64_t count)
{
    (void)from;
    (void)records;
    (void)count;
}
#endif

static void fill_ply(const void *context, int64_t first, int64_t count, unsigned char *out)
{
    const table *from = context;
    for (int c = 0; c < from->count; c++)
        fill_column(from, &from->columns[c], first, count, out + from->offsets[c], (size_t)from->record_bytes);
    to_little_endian(from, out, count);
}

/* --- PLY --- */

static selkie_code write_ply_column(sk_atomic_file *file, const table *from, int index, const sk_frame *frame,
                                    selkie_error *error)
{
    const column *source = &from->columns[index];
    const char *type = source->type == SELKIE_UINT32 ? "uint" : "float";
    static const char *const axes[3] = {"x", "y", "z"};
    const char *names[3];
    sk_ply_velocity_names(frame->names, names);
    for (int k = 0; k < source->components; k++) {
        if (index == 0)
            SK_TRY(sk_atomic_print(file, error, "property %s %s\n", source->wide ? "double" : "float", axes[k]));
        else if (index == 1 && frame->velocity)
            SK_TRY(sk_atomic_print(file, error, "property float %s\n", names[k]));
        else if (source->components == 1)
            SK_TRY(sk_atomic_print(file, error, "property %s %s\n", type, source->name));
        else if (source->components <= 3)
            SK_TRY(sk_atomic_print(file, error, "property %s %s_%s\n", type, source->name, axes[k]));
        else
            SK_TRY(sk_atomic_print(file, error, "property %s %s_%d\n", type, source->name, k));
    }
    return SELKIE_OK;
}

static selkie_code write_ply(sk_atomic_file *file, const table *from, const sk_frame *frame, selkie_error *error)
{
    double matrix[9] = {0};
    for (int k = 0; k < 3; k++)
        matrix[3 * k + from->turn.axis[k]] = from->turn.sign[k];
    SK_TRY(sk_atomic_print(file, error,
                           "ply\nformat binary_little_endian 1.0\ncomment Selkie particles: metres, seconds\n"));
    SK_TRY(sk_atomic_print(file, error, "comment selkie_time %.17g\n", frame->time));
    SK_TRY(sk_atomic_print(file, error, "comment selkie_dimension %d\n", frame->dimension));
    SK_TRY(sk_atomic_print(file, error, "comment selkie_radius %.9g\n", frame->particle_radius));
    SK_TRY(sk_atomic_print(file, error, "comment selkie_turn %g %g %g %g %g %g %g %g %g\n", matrix[0], matrix[1],
                           matrix[2], matrix[3], matrix[4], matrix[5], matrix[6], matrix[7], matrix[8]));
    if (from->columns[0].wide)
        SK_TRY(sk_atomic_print(file, error, "comment selkie_origin %.17g %.17g %.17g\n", from->origin[0],
                               from->origin[1], from->origin[2]));
    SK_TRY(sk_atomic_print(file, error, "element vertex %lld\n", (long long)frame->count));
    for (int c = 0; c < from->count; c++)
        SK_TRY(write_ply_column(file, from, c, frame, error));
    SK_TRY(sk_atomic_print(file, error, "end_header\n"));
    return sk_atomic_write_records(file, frame->count, (size_t)from->record_bytes, fill_ply, from, error);
}

/* --- VTK XML --- */

typedef struct vtp_array {
    const table *from;
    const column *source;
} vtp_array;

static void fill_vtp_array(const void *context, int64_t first, int64_t count, unsigned char *out)
{
    const vtp_array *array = context;
    fill_column(array->from, array->source, first, count, out, column_bytes(array->source));
}

/* One vertex cell a particle: connectivity i, offsets i + 1. ParaView shows and filters cells, not bare points. */
typedef struct vtp_cells {
    int64_t start;
    int wide; /* eight bytes a number; four otherwise, which every frame of less than 2^31 particles needs */
} vtp_cells;

static void fill_vtp_cells(const void *context, int64_t first, int64_t count, unsigned char *out)
{
    const vtp_cells *cells = context;
    for (int64_t i = 0; i < count; i++) {
        int64_t wide = cells->start + first + i;
        int32_t narrow = (int32_t)wide;
        if (cells->wide)
            memcpy(out + 8 * i, &wide, sizeof wide);
        else
            memcpy(out + 4 * i, &narrow, sizeof narrow);
    }
}

static selkie_code write_vtp_array_tag(sk_atomic_file *file, const column *source, int64_t count, uint64_t *offset,
                                       selkie_error *error)
{
    SK_TRY(sk_atomic_print(file, error,
                           "        <DataArray type=\"%s\" Name=\"%s\" NumberOfComponents=\"%d\" format=\"appended\" "
                           "offset=\"%llu\"/>\n",
                           source->wide                    ? "Float64"
                           : source->type == SELKIE_UINT32 ? "UInt32"
                                                           : "Float32",
                           source->name, source->components, (unsigned long long)*offset));
    *offset += 8 + column_bytes(source) * (uint64_t)count;
    return SELKIE_OK;
}

static selkie_code write_vtp_header(sk_atomic_file *file, const table *from, const sk_frame *frame,
                                    const vtp_cells *cells, selkie_error *error)
{
    long long count = (long long)frame->count;
    const char *order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "LittleEndian" : "BigEndian";
    const char *integer = cells->wide ? "Int64" : "Int32";
    uint64_t offset = 0;

    /* Header, time and positions. */
    SK_TRY(sk_atomic_print(
        file, error,
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\" version=\"1.0\" byte_order=\"%s\" "
        "header_type=\"UInt64\">\n  <PolyData>\n    <FieldData>\n      <DataArray type=\"Float64\" "
        "Name=\"TimeValue\" NumberOfTuples=\"1\" format=\"ascii\">%.17g</DataArray>\n    </FieldData>\n",
        order, frame->time));
    SK_TRY(sk_atomic_print(file, error,
                           "    <Piece NumberOfPoints=\"%lld\" NumberOfVerts=\"%lld\" NumberOfLines=\"0\" "
                           "NumberOfStrips=\"0\" NumberOfPolys=\"0\">\n      <Points>\n",
                           count, count));
    SK_TRY(write_vtp_array_tag(file, &from->columns[0], frame->count, &offset, error));
    SK_TRY(sk_atomic_print(file, error, "      </Points>\n"));

    /* Other attributes. */
    if (frame->velocity)
        SK_TRY(sk_atomic_print(file, error, "      <PointData Vectors=\"%s\">\n", from->columns[1].name));
    else
        SK_TRY(sk_atomic_print(file, error, "      <PointData>\n"));
    for (int c = 1; c < from->count; c++)
        SK_TRY(write_vtp_array_tag(file, &from->columns[c], frame->count, &offset, error));
    SK_TRY(sk_atomic_print(file, error, "      </PointData>\n      <Verts>\n"));

    /* One vertex cell for each particle. */
    static const char *const names[2] = {"connectivity", "offsets"};
    for (int a = 0; a < 2; a++) {
        SK_TRY(sk_atomic_print(file, error,
                               "        <DataArray type=\"%s\" Name=\"%s\" format=\"appended\" offset=\"%llu\"/>\n",
                               integer, names[a], (unsigned long long)offset));
        offset += 8 + (cells->wide ? 8 : 4) * (uint64_t)frame->count;
    }
    return sk_atomic_print(file, error,
                           "      </Verts>\n    </Piece>\n  </PolyData>\n  <AppendedData encoding=\"raw\">\n_");
}

static selkie_code write_vtp_block(sk_atomic_file *file, int64_t count, size_t bytes, sk_record_fill fill,
                                   const void *context, selkie_error *error)
{
    uint64_t total = (uint64_t)count * bytes;
    SK_TRY(sk_atomic_write(file, &total, sizeof total, error));
    return sk_atomic_write_records(file, count, bytes, fill, context, error);
}

static selkie_code write_vtp(sk_atomic_file *file, const table *from, const sk_frame *frame, selkie_error *error)
{
    vtp_cells cells = {0, frame->count >= INT32_MAX};
    SK_TRY(write_vtp_header(file, from, frame, &cells, error));
    for (int c = 0; c < from->count; c++) {
        vtp_array array = {from, &from->columns[c]};
        SK_TRY(write_vtp_block(file, frame->count, column_bytes(array.source), fill_vtp_array, &array, error));
    }
    for (int a = 0; a < 2; a++) {
        cells.start = a;
        SK_TRY(write_vtp_block(file, frame->count, cells.wide ? 8 : 4, fill_vtp_cells, &cells, error));
    }
    return sk_atomic_print(file, error, "\n  </AppendedData>\n</VTKFile>\n");
}

/* --- BGEO --- */

/* Big-endian words: place and 1, then the columns. */
static void fill_bgeo(const void *context, int64_t first, int64_t count, unsigned char *out)
{
    const table *from = context;
    const float one = 1.0f;
    const size_t bytes = (size_t)from->record_bytes + 4;
    for (int c = 0; c < from->count; c++)
        fill_column(from, &from->columns[c], first, count, out + (c ? from->offsets[c] + 4 : 0), bytes);
    for (int64_t i = 0; i < count; i++) {
        unsigned char *record = out + (size_t)i * bytes;
        memcpy(record + 12, &one, sizeof one);
        for (size_t at = 0; at < bytes; at += 4) {
            uint32_t word;
            memcpy(&word, record + at, 4);
            const unsigned char big[4] = {(unsigned char)(word >> 24), (unsigned char)(word >> 16),
                                          (unsigned char)(word >> 8), (unsigned char)word};
            memcpy(record + at, big, 4);
        }
    }
}

static selkie_code put_big(sk_atomic_file *file, uint32_t number, int bytes, selkie_error *error)
{
    unsigned char big[4];
    for (int k = 0; k < bytes; k++)
        big[k] = (unsigned char)(number >> 8 * (bytes - 1 - k));
    return sk_atomic_write(file, big, (size_t)bytes, error);
}

/* Version 5: header, attributes of the points with their defaults, points; no primitives. */
static selkie_code write_bgeo(sk_atomic_file *file, const table *from, const sk_frame *frame, selkie_error *error)
{
    if (frame->count > INT32_MAX)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%lld particles are more than a .bgeo file can hold",
                       (long long)frame->count);
    const uint32_t header[9] = {5, (uint32_t)frame->count, 0, 0, 0, (uint32_t)from->count - 1, 0, 0, 0};
    SK_TRY(sk_atomic_write(file, "BgeoV", 5, error));
    for (int k = 0; k < 9; k++)
        SK_TRY(put_big(file, header[k], 4, error));
    for (int c = 1; c < from->count; c++) {
        const column *source = &from->columns[c];
        const size_t length = strlen(source->name);
        SK_TRY(put_big(file, (uint32_t)length, 2, error));
        SK_TRY(sk_atomic_write(file, source->name, length, error));
        SK_TRY(put_big(file, (uint32_t)source->components, 2, error));
        SK_TRY(put_big(file, source->turns ? 5 : source->type == SELKIE_UINT32 ? 1 : 0, 4, error));
        for (int k = 0; k < source->components; k++)
            SK_TRY(put_big(file, 0, 4, error));
    }
    SK_TRY(sk_atomic_write_records(file, frame->count, (size_t)from->record_bytes + 4, fill_bgeo, from, error));
    return sk_atomic_write(file, "\0\377", 2, error);
}

/* --- Files --- */

typedef selkie_code (*frame_writer)(sk_atomic_file *file, const table *from, const sk_frame *frame,
                                    selkie_error *error);

static selkie_code write_frame(const sk_frame *frame, const char *path, frame_writer writer, size_t extra_bytes,
                               selkie_error *error)
{
    table from;
    SK_TRY(make_table(frame, path, writer != write_bgeo, &from, error));
    uint64_t expected = (uint64_t)frame->count * ((uint64_t)from.record_bytes + extra_bytes);
    sk_atomic_file *file;
    SK_TRY(sk_atomic_open(path, expected, &file, error));
    sk_atomic_no_flush(file);
    sk_number_scope scope;
    selkie_code code = sk_number_begin(&scope, error);
    if (code == SELKIE_OK) {
        code = writer(file, &from, frame, error);
        sk_number_end(&scope);
    }
    return sk_atomic_finish(&file, code, error);
}

selkie_code sk_particles_write_ply(const sk_frame *frame, const char *path, selkie_error *error)
{
    return write_frame(frame, path, write_ply, 0, error);
}

selkie_code sk_particles_write_vtp(const sk_frame *frame, const char *path, selkie_error *error)
{
    return write_frame(frame, path, write_vtp, 8, error);
}

selkie_code sk_particles_write_bgeo(const sk_frame *frame, const char *path, selkie_error *error)
{
    sk_frame own = *frame;
    own.names = SELKIE_NAMES_HOUDINI;
    return write_frame(&own, path, write_bgeo, 4, error);
}

selkie_code sk_particles_write(const sk_frame *frame, const char *path, selkie_error *error)
{
    size_t length = strlen(path);
    const char *ending = length > 4 ? path + length - 4 : "";
    if (strcmp(ending, ".ply") == 0)
        return sk_particles_write_ply(frame, path, error);
    if (strcmp(ending, ".vtp") == 0)
        return sk_particles_write_vtp(frame, path, error);
    if (strcmp(ending, ".skp") == 0)
        return sk_particles_write_compact(frame, path, error);
    if (length > 5 && strcmp(path + length - 5, ".bgeo") == 0)
        return sk_particles_write_bgeo(frame, path, error);
    return sk_fail(error, SELKIE_ERROR_INPUT,
                   "%s: particles are written as .ply, .vtp, .skp or .bgeo; end the name with one of these", path);
}
