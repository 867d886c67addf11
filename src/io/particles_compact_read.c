/* Reads compact particle files. particles_compact.h has the layout.
 *
 * The sizes of the table are compared with that of the file, and the checksums with the data, before a plane is opened.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "io/particles_compact.h"
#include "io/particles_file.h"
#include "selkie_config.h"
#if SELKIE_HAVE_ZSTD
#include <zstd.h>
#endif

typedef struct compact_file {
    const char *name;
    const unsigned char *bytes, *table;
    size_t size;
    uint32_t codec;
    int planes;
    int64_t chunks;
    double quantum; /* m */
    int64_t lowest[3];
    size_t *start; /* [chunks] of a chunk's data */
    sk_particles_data *data;
} compact_file;

static selkie_code fail(const compact_file *file, selkie_error *error, const char *what)
{
    return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %s", file->name, what);
}

static uint32_t get_u32(const unsigned char *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static uint64_t get_u64(const unsigned char *from)
{
    return get_u32(from) | (uint64_t)get_u32(from + 4) << 32;
}

static double get_double(const unsigned char *from)
{
    const uint64_t bits = get_u64(from);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* --- Header and table --- */

static selkie_code read_attribute(compact_file *file, int index, selkie_error *error)
{
    const unsigned char *at = file->bytes + SK_COMPACT_FIXED + index * SK_COMPACT_ATTRIBUTE;
    sk_particles_extra *extra = &file->data->extra[index];
    memcpy(extra->name, at, SK_COMPACT_NAME);
    const uint32_t type = get_u32(at + SK_COMPACT_NAME), components = get_u32(at + SK_COMPACT_NAME + 4);
    if (extra->name[SK_COMPACT_NAME - 1] || !extra->name[0] || type > 1 || components < 1 || components > 16)
        return fail(file, error, "damaged header: an attribute that makes no sense");
    extra->type = type ? SELKIE_UINT32 : SELKIE_FLOAT32;
    extra->components = (int)components;
    file->planes += 4 * (int)components;
    return SELKIE_OK;
}

static selkie_code read_header(compact_file *file, selkie_error *error)
{
    sk_particles_data *data = file->data;
    if (file->size < SK_COMPACT_FIXED || memcmp(file->bytes, SK_COMPACT_MAGIC, 8) != 0)
        return fail(file, error, "not a compact particle file (it does not start with '" SK_COMPACT_MAGIC "')");
    const unsigned char *at = file->bytes + 8;
    file->codec = get_u32(at);
    const uint32_t dimension = get_u32(at + 4), extras = get_u32(at + 8);
    data->count = (int64_t)get_u64(at + 12);
    data->time = get_double(at + 20);
    data->particle_radius = get_double(at + 28);
    file->quantum = get_double(at + 36);
    int good = (dimension == 2 || dimension == 3) && extras <= SK_MAX_EXTRA_ATTRIBUTES && data->count >= 0 &&
               data->count < INT64_MAX / 1024 && data->particle_radius >= 0.0 && data->particle_radius < INFINITY &&
               file->quantum > 0.0 && file->quantum < 1e30;
    for (int d = 0; d < 3; d++) {
        data->origin[d] = get_double(at + 44 + 8 * d);
        file->lowest[d] = (int64_t)get_u64(at + 68 + 8 * d);
        good = good && isfinite(data->origin[d]) && file->lowest[d] > -(INT64_C(1) << 52) &&
               file->lowest[d] < INT64_C(1) << 52;
    }
    if (!good || file->size < SK_COMPACT_FIXED + extras * SK_COMPACT_ATTRIBUTE)
        return fail(file, error, "damaged header of a compact particle file");
    if (file->codec != SK_COMPACT_ZLIB && file->codec != SK_COMPACT_ZSTD)
        return fail(file, error, "its compression is of a later version of Selkie");
    if (file->codec == SK_COMPACT_ZSTD && !SELKIE_HAVE_ZSTD)
        return fail(file, error, "it is compressed by zstd, which this build lacks (Debian: libzstd-dev)");

    data->cell_size = file->quantum * SK_COMPACT_PARTS;
    data->dimension = (int)dimension;
    data->extra_count = (int)extras;
    file->planes = sk_compact_own_planes(data->dimension);
    for (int e = 0; e < data->extra_count; e++)
        SK_TRY(read_attribute(file, e, error));
    file->table = file->bytes + SK_COMPACT_FIXED + extras * SK_COMPACT_ATTRIBUTE;
    file->chunks = (data->count + SK_COMPACT_CHUNK - 1) / SK_COMPACT_CHUNK;
    return SELKIE_OK;
}

static int64_t chunk_count(const compact_file *file, int64_t chunk)
{
    const int64_t left = file->data->count - chunk * SK_COMPACT_CHUNK;
    return left < SK_COMPACT_CHUNK ? left : SK_COMPACT_CHUNK;
}

static const unsigned char *chunk_table(const compact_file *file, int64_t chunk)
{
    return file->table + (size_t)chunk * (size_t)(file->planes + 1) * 4;
}

static selkie_code read_table(compact_file *file, selkie_error *error)
{
    const size_t entry_bytes = (size_t)(file->planes + 1) * 4, rest = file->size - (size_t)(file->table - file->bytes);
    if (rest < 4 || (uint64_t)file->chunks > (rest - 4) / entry_bytes)
        return fail(file, error, "truncated: the file ends within its table");
    const unsigned char *end = file->table + (size_t)file->chunks * entry_bytes;
    if (crc32_z(0, file->bytes, (size_t)(end - file->bytes)) != get_u32(end))
        return fail(file, error, "damaged: the checksum of its header differs");
    file->start = sk_allocate(NULL, ((size_t)file->chunks + 1) * sizeof *file->start);
    if (!file->start)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: not enough memory", file->name);
    size_t at = (size_t)(end - file->bytes) + 4;
    for (int64_t chunk = 0; chunk < file->chunks; chunk++) {
        file->start[chunk] = at;
        size_t bytes = 0;
        for (int p = 0; p < file->planes; p++) {
            const uint32_t size = get_u32(chunk_table(file, chunk) + 4 * p);
            if (size < 1 || size > (uint64_t)chunk_count(file, chunk))
                return fail(file, error, "damaged: an impossible size in its table");
            bytes += size;
        }
        if (bytes > file->size - at)
            return fail(file, error, "truncated: the file is shorter than its table says");
        if (crc32(0, file->bytes + at, (uInt)bytes) != get_u32(chunk_table(file, chunk) + 4 * file->planes))
            return fail(file, error, "damaged: a checksum differs");
        at += bytes;
    }
    return at == file->size ? SELKIE_OK : fail(file, error, "damaged: bytes behind its end");
}

/* --- Planes --- */

/* Returns 0 where the data is not `count` bytes of a plane. */
static int expand_plane(const compact_file *file, const unsigned char *from, uint32_t size, int64_t count,
                        unsigned char *plane)
{
    if (size == (uint64_t)count) {
        memcpy(plane, from, (size_t)count);
        return 1;
    }
#if SELKIE_HAVE_ZSTD
    if (file->codec == SK_COMPACT_ZSTD)
        return ZSTD_decompress(plane, (size_t)count, from, size) == (size_t)count;
#endif
    uLongf bytes = (uLongf)count;
    return file->codec == SK_COMPACT_ZLIB && uncompress(plane, &bytes, from, size) == Z_OK && bytes == (uLongf)count;
}

static const unsigned char *join_positions(const compact_file *file, int64_t first, int64_t count,
                                           const unsigned char *plane)
{
    const int dimension = file->data->dimension;
    const unsigned char *fractions = plane + 4 * dimension * count, *high = fractions + dimension * count;
    for (int d = 0; d < dimension; d++) {
        uint32_t cell = 0;
        for (int64_t i = 0; i < count; i++) {
            uint32_t code = 0;
            for (int b = 0; b < 4; b++)
                code |= (uint32_t)plane[(4 * d + b) * count + i] << 8 * b;
            cell += sk_unzigzag32(code);
            const int64_t within = fractions[d * count + i] | (high[i] >> 2 * d & 3) << 8;
            const int64_t quanta = (file->lowest[d] + cell) * SK_COMPACT_PARTS + within;
            file->data->position[3 * (first + i) + d] = (float)((double)quanta * file->quantum);
        }
    }
    return high + count;
}

static const unsigned char *join_velocities(const compact_file *file, int64_t first, int64_t count,
                                            const unsigned char *plane)
{
    const int dimension = file->data->dimension;
    for (int d = 0; d < dimension; d++) {
        uint16_t ordered = 0x8000u;
        for (int64_t i = 0; i < count; i++) {
            const uint16_t code = (uint16_t)(plane[2 * d * count + i] | plane[(2 * d + 1) * count + i] << 8);
            ordered = (uint16_t)(ordered + sk_unzigzag16(code));
            file->data->velocity[3 * (first + i) + d] = sk_value_of_ordered(ordered);
        }
    }
    return plane + 2 * dimension * count;
}

static const unsigned char *join_words(uint32_t *to, int components, int64_t count, const unsigned char *plane)
{
    for (int64_t i = 0; i < count; i++)
        to[i * components] = (uint32_t)plane[i] | (uint32_t)plane[count + i] << 8 |
                             (uint32_t)plane[2 * count + i] << 16 | (uint32_t)plane[3 * count + i] << 24;
    return plane + 4 * count;
}

/* 0 = damaged or without memory. */
static int join_chunk(const compact_file *file, int64_t chunk)
{
    const int64_t first = chunk * SK_COMPACT_CHUNK, count = chunk_count(file, chunk);
    unsigned char *raw = sk_allocate(NULL, (size_t)(file->planes * count));
    const unsigned char *from = file->bytes + file->start[chunk];
    int good = raw != NULL;
    for (int p = 0; p < file->planes && good; p++) {
        const uint32_t size = get_u32(chunk_table(file, chunk) + 4 * p);
        good = expand_plane(file, from, size, count, raw + p * count);
        from += size;
    }
    if (good) {
        const unsigned char *plane = join_positions(file, first, count, raw);
        plane = join_velocities(file, first, count, plane);
        plane = join_words(file->data->id + first, 1, count, plane);
        for (int e = 0; e < file->data->extra_count; e++) {
            const sk_particles_extra *extra = &file->data->extra[e];
            for (int k = 0; k < extra->components; k++)
                plane = join_words(extra->data + first * extra->components + k, extra->components, count, plane);
        }
    }
    sk_release(NULL, raw);
    return good;
}

static selkie_code allocate(compact_file *file, selkie_error *error)
{
    sk_particles_data *data = file->data;
    const size_t count = (size_t)data->count + 1;
    data->position = sk_allocate_zeroed(NULL, count * 3 * sizeof(float));
    data->velocity = sk_allocate_zeroed(NULL, count * 3 * sizeof(float));
    data->id = sk_allocate(NULL, count * sizeof(uint32_t));
    int good = data->position && data->velocity && data->id;
    for (int e = 0; e < data->extra_count && good; e++)
        good = (data->extra[e].data =
                    sk_allocate(NULL, count * (size_t)data->extra[e].components * sizeof(uint32_t))) != NULL;
    return good ? SELKIE_OK
                : sk_fail(error, SELKIE_ERROR_MEMORY, "%s: not enough memory for %lld particles", file->name,
                          (long long)data->count);
}

/* The member of an attribute that has one, as of a PLY file; NULL if it has none. */
static void **own_member(sk_particles_data *data, const sk_particles_extra *extra)
{
    const struct {
        const char *name;
        selkie_attribute_type type;
        void *member;
    } members[] = {{"role", SELKIE_UINT32, &data->role},
                   {"material", SELKIE_UINT32, &data->material},
                   {"stress", SELKIE_FLOAT32, &data->stress},
                   {"plastic_strain", SELKIE_FLOAT32, &data->plastic_strain},
                   {"temperature", SELKIE_FLOAT32, &data->temperature},
                   {"liquid_fraction", SELKIE_FLOAT32, &data->liquid_fraction}};
    for (size_t m = 0; m < sizeof members / sizeof *members; m++)
        if (strcmp(extra->name, members[m].name) == 0 && extra->type == members[m].type && extra->components == 1)
            return members[m].member;
    return NULL;
}

static selkie_code name_columns(const compact_file *file, selkie_error *error)
{
    sk_particles_data *data = file->data;
    for (int e = 0; e < data->extra_count; e++) {
        const sk_particles_extra *extra = &data->extra[e];
        void **to = own_member(data, extra);
        if (!to || *to)
            continue;
        *to = sk_allocate(NULL, ((size_t)data->count + 1) * sizeof(uint32_t));
        if (!*to)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: not enough memory", file->name);
        memcpy(*to, extra->data, (size_t)data->count * sizeof(uint32_t));
    }
    return SELKIE_OK;
}

static selkie_code parse(compact_file *file, selkie_error *error)
{
    SK_TRY(read_header(file, error));
    SK_TRY(read_table(file, error));
    SK_TRY(allocate(file, error));
    int good = 1;
#pragma omp parallel for schedule(dynamic) reduction(& : good)
    for (int64_t chunk = 0; chunk < file->chunks; chunk++)
        good = join_chunk(file, chunk) && good;
    if (!good)
        return fail(file, error, "damaged: its data cannot be expanded");
    for (int64_t i = 0; i < 3 * file->data->count; i++)
        if (!isfinite(file->data->position[i]) || !isfinite(file->data->velocity[i]))
            return fail(file, error, "damaged: a position or velocity is not a number");
    return name_columns(file, error);
}

selkie_code sk_particles_parse_compact(const void *bytes, size_t size, const char *name, sk_particles_data **data,
                                       selkie_error *error)
{
    *data = NULL;
    compact_file file = {.name = name, .bytes = bytes, .size = size, .data = calloc(1, sizeof *file.data)};
    if (!file.data)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: not enough memory", name);
    file.data->turn = sk_up_turn_none();
    const selkie_code code = parse(&file, error);
    sk_release(NULL, file.start);
    if (code == SELKIE_OK)
        *data = file.data;
    else
        sk_particles_data_free(file.data);
    return code;
}

selkie_code sk_particles_read(const char *path, sk_particles_data **data, selkie_error *error)
{
    const size_t length = strlen(path);
    if (length < 4 || strcmp(path + length - 4, ".skp") != 0)
        return sk_particles_read_ply(path, data, error);
    *data = NULL;
    char *bytes;
    size_t size;
    SK_TRY(sk_file_read(path, &bytes, &size, error));
    const selkie_code code = sk_particles_parse_compact(bytes, size, path, data, error);
    sk_release(NULL, bytes);
    return code;
}
