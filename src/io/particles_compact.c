/* Writes compact particle files. particles_compact.h has the layout.
 *
 * Chunks are cut into planes and compressed on all threads into memory; then the file is written in one go. */
#include "io/particles_compact.h"

#include <math.h>
#include <stdio.h>
#include <zlib.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "io/particles_file.h"
#include "selkie_config.h"
#if SELKIE_HAVE_ZSTD
#include <zstd.h>
#endif

typedef struct compact_frame {
    const sk_frame *frame;
    double quantum;    /* m */
    int64_t lowest[3]; /* cell */
    int planes;        /* of a chunk */
    int64_t chunks;
    uint32_t *sizes;      /* [chunks][planes + 1]; the last is the checksum */
    unsigned char **data; /* [chunks] */
} compact_frame;

/* --- Numbers of the header --- */

static unsigned char *put_u32(unsigned char *to, uint32_t value)
{
    for (int b = 0; b < 4; b++)
        *to++ = (unsigned char)(value >> 8 * b);
    return to;
}

static unsigned char *put_u64(unsigned char *to, uint64_t value)
{
    return put_u32(put_u32(to, (uint32_t)value), (uint32_t)(value >> 32));
}

static unsigned char *put_double(unsigned char *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return put_u64(to, bits);
}

/* --- Planes --- */

static const float *vector_at(const float *first, size_t stride, int64_t i)
{
    return (const float *)((const char *)first + (size_t)i * stride);
}

static int64_t quanta_of(const compact_frame *c, int64_t i, int d)
{
    return llrint((double)vector_at(c->frame->position, c->frame->position_stride, i)[d] / c->quantum);
}

/* Positions of a chunk; returns the first plane behind them. */
static unsigned char *cut_positions(const compact_frame *c, int64_t first, int64_t count, unsigned char *plane)
{
    const int dimension = c->frame->dimension;
    unsigned char *fractions = plane + 4 * dimension * count, *high = fractions + dimension * count;
    memset(high, 0, (size_t)count);
    for (int d = 0; d < dimension; d++) {
        uint32_t before = 0;
        for (int64_t i = 0; i < count; i++) {
            const int64_t place = quanta_of(c, first + i, d);
            const uint32_t cell = (uint32_t)((place >> SK_COMPACT_FRACTION_BITS) - c->lowest[d]),
                           code = sk_zigzag32(cell - before), within = (uint32_t)(place & (SK_COMPACT_PARTS - 1));
            before = cell;
            for (int b = 0; b < 4; b++)
                plane[(4 * d + b) * count + i] = (unsigned char)(code >> 8 * b);
            fractions[d * count + i] = (unsigned char)within;
            high[i] |= (unsigned char)(within >> 8 << 2 * d);
        }
    }
    return high + count;
}

static unsigned char *cut_velocities(const sk_frame *frame, int64_t first, int64_t count, unsigned char *plane)
{
    for (int d = 0; d < frame->dimension; d++) {
        uint16_t before = 0x8000u;
        for (int64_t i = 0; i < count; i++) {
            const uint16_t now =
                sk_ordered_half(frame->velocity ? vector_at(frame->velocity, frame->velocity_stride, first + i)[d] : 0);
            const uint16_t code = sk_zigzag16((uint16_t)(now - before));
            before = now;
            plane[2 * d * count + i] = (unsigned char)code;
            plane[(2 * d + 1) * count + i] = (unsigned char)(code >> 8);
        }
    }
    return plane + 2 * frame->dimension * count;
}

/* Four planes of words; `data` NULL: numbers from `first` on. */
static unsigned char *cut_words(const char *data, size_t stride, int64_t first, int64_t count, unsigned char *plane)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = (uint32_t)(first + i);
        if (data)
            memcpy(&word, data + (size_t)(first + i) * stride, sizeof word);
        for (int b = 0; b < 4; b++)
            plane[b * count + i] = (unsigned char)(word >> 8 * b);
    }
    return plane + 4 * count;
}

static void cut_chunk(const compact_frame *c, int64_t first, int64_t count, unsigned char *plane)
{
    const sk_frame *frame = c->frame;
    plane = cut_positions(c, first, count, plane);
    plane = cut_velocities(frame, first, count, plane);
    plane = cut_words((const char *)frame->id, frame->id_stride, first, count, plane);
    for (int e = 0; e < frame->extra_count; e++)
        for (int k = 0; k < frame->extra[e].components; k++)
            plane = cut_words((const char *)frame->extra[e].data + 4 * k, frame->extra[e].stride, first, count, plane);
}

/* Bytes of a compressed plane at `to`, which has room for `count`; `count` where it did not shrink. */
static uint32_t compress_plane(const unsigned char *plane, int64_t count, unsigned char *to)
{
#if SELKIE_HAVE_ZSTD
    const size_t bytes = ZSTD_compress(to, (size_t)count, plane, (size_t)count, 1);
    if (!ZSTD_isError(bytes) && bytes < (size_t)count)
        return (uint32_t)bytes;
#else
    uLongf bytes = (uLongf)count;
    if (compress2(to, &bytes, plane, (uLong)count, 1) == Z_OK && bytes < (uLongf)count)
        return (uint32_t)bytes;
#endif
    memcpy(to, plane, (size_t)count);
    return (uint32_t)count;
}

/* Returns 0 without memory. */
static int compress_chunk(const compact_frame *c, int64_t chunk)
{
    const int64_t first = chunk * SK_COMPACT_CHUNK, left = c->frame->count - first,
                  count = left < SK_COMPACT_CHUNK ? left : SK_COMPACT_CHUNK;
    uint32_t *sizes = c->sizes + chunk * (c->planes + 1);
    unsigned char *raw = sk_allocate(NULL, (size_t)(c->planes * count));
    unsigned char *out = c->data[chunk] = sk_allocate(NULL, (size_t)(c->planes * count));
    if (!raw || !out) {
        sk_release(NULL, raw);
        return 0;
    }
    cut_chunk(c, first, count, raw);
    uint32_t at = 0;
    for (int p = 0; p < c->planes; p++) {
        sizes[p] = compress_plane(raw + p * count, count, out + at);
        at += sizes[p];
    }
    sizes[c->planes] = (uint32_t)crc32(0, out, at);
    sk_release(NULL, raw);
    return 1;
}

/* --- The file --- */

/* Finds the lowest cell. A position that is not a number, or too far for 32 bits of cells, is an error. */
static selkie_code find_bounds(compact_frame *c, const char *path, selkie_error *error)
{
    for (int d = 0; d < c->frame->dimension && c->frame->count; d++) {
        double low = INFINITY, high = -INFINITY;
        int bad = 0;
#pragma omp parallel for schedule(static) reduction(min : low) reduction(max : high) reduction(| : bad)
        for (int64_t i = 0; i < c->frame->count; i++) {
            const double x = vector_at(c->frame->position, c->frame->position_stride, i)[d];
            low = x < low ? x : low;
            high = x > high ? x : high;
            bad |= !isfinite(x);
        }
        const double cell = c->quantum * SK_COMPACT_PARTS;
        if (bad || !((high - low) / cell < 4e9) || !(fmax(fabs(low), fabs(high)) / c->quantum < 4e18))
            return sk_fail(
                error, SELKIE_ERROR_INPUT,
                "%s: particles from %g to %g m along axis %d do not fit into a compact file with cells of %g "
                "m; write .ply",
                path, low, high, d, cell);
        c->lowest[d] = llrint(low / c->quantum) >> SK_COMPACT_FRACTION_BITS;
    }
    return SELKIE_OK;
}

/* The header at `at`, which has room for it. Returns its end. */
static unsigned char *put_header(const compact_frame *c, unsigned char *at)
{
    const sk_frame *frame = c->frame;
    memcpy(at, SK_COMPACT_MAGIC, 8);
    at = put_u32(at + 8, SELKIE_HAVE_ZSTD ? SK_COMPACT_ZSTD : SK_COMPACT_ZLIB);
    at = put_u32(put_u32(at, (uint32_t)frame->dimension), (uint32_t)frame->extra_count);
    at = put_u64(at, (uint64_t)frame->count);
    at = put_double(put_double(put_double(at, frame->time), frame->particle_radius), c->quantum);
    for (int d = 0; d < 3; d++)
        at = put_double(at, frame->origin[d]);
    for (int d = 0; d < 3; d++)
        at = put_u64(at, (uint64_t)c->lowest[d]);

    /* Attributes beyond position, velocity and id. */
    for (int e = 0; e < frame->extra_count; e++) {
        const selkie_attribute_view *extra = &frame->extra[e];
        memset(at, 0, SK_COMPACT_NAME);
        snprintf((char *)at, SK_COMPACT_NAME, "%s", extra->name);
        at = put_u32(at + SK_COMPACT_NAME, extra->type == SELKIE_UINT32);
        at = put_u32(at, (uint32_t)extra->components);
    }
    return at;
}

/* Header and table, with their checksum. */
static selkie_code write_front(sk_atomic_file *file, const compact_frame *c, selkie_error *error)
{
    const size_t entries = (size_t)c->chunks * (size_t)(c->planes + 1);
    unsigned char *front =
        sk_allocate(NULL, SK_COMPACT_FIXED + SK_MAX_EXTRA_ATTRIBUTES * (size_t)SK_COMPACT_ATTRIBUTE + 4 * entries + 4);
    if (!front)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "not enough memory for the table of a compact file");
    unsigned char *at = put_header(c, front);
    for (size_t e = 0; e < entries; e++)
        at = put_u32(at, c->sizes[e]);
    at = put_u32(at, (uint32_t)crc32_z(0, front, (size_t)(at - front)));
    const selkie_code code = sk_atomic_write(file, front, (size_t)(at - front), error);
    sk_release(NULL, front);
    return code;
}

static selkie_code write_file(const compact_frame *c, const char *path, selkie_error *error)
{
    sk_atomic_file *file;
    SK_TRY(sk_atomic_open(path, 0, &file, error));
    sk_atomic_no_flush(file);
    selkie_code code = write_front(file, c, error);
    for (int64_t chunk = 0; chunk < c->chunks && code == SELKIE_OK; chunk++) {
        size_t bytes = 0;
        for (int p = 0; p < c->planes; p++)
            bytes += c->sizes[chunk * (c->planes + 1) + p];
        code = sk_atomic_write(file, c->data[chunk], bytes, error);
    }
    return sk_atomic_finish(&file, code, error);
}

selkie_code sk_particles_write_compact(const sk_frame *frame, const char *path, selkie_error *error)
{
    if ((frame->dimension != 2 && frame->dimension != 3) || frame->count < 0 || !(frame->cell_size > 0.0) ||
        frame->extra_count < 0 || frame->extra_count > SK_MAX_EXTRA_ATTRIBUTES)
        return sk_fail(error, SELKIE_ERROR_INTERNAL,
                       "%s: a frame of dimension %d with %lld particles, %d extra attributes and cells of %g m", path,
                       frame->dimension, (long long)frame->count, frame->extra_count, frame->cell_size);
    compact_frame c = {.frame = frame, .quantum = frame->cell_size / SK_COMPACT_PARTS};
    c.planes = sk_compact_own_planes(frame->dimension);
    for (int e = 0; e < frame->extra_count; e++)
        c.planes += 4 * frame->extra[e].components;
    SK_TRY(find_bounds(&c, path, error));

    /* Compress. */
    c.chunks = (frame->count + SK_COMPACT_CHUNK - 1) / SK_COMPACT_CHUNK;
    c.sizes = sk_allocate_zeroed(NULL, (size_t)(c.chunks + 1) * (size_t)(c.planes + 1) * sizeof *c.sizes);
    c.data = sk_allocate_zeroed(NULL, (size_t)(c.chunks + 1) * sizeof *c.data);
    int good = c.sizes && c.data;
#pragma omp parallel for schedule(dynamic) reduction(& : good) if (good)
    for (int64_t chunk = 0; chunk < c.chunks; chunk++)
        good = good && compress_chunk(&c, chunk);

    /* Write and release. */
    selkie_code code = good ? write_file(&c, path, error)
                            : sk_fail(error, SELKIE_ERROR_MEMORY, "%s: not enough memory to compress %lld particles",
                                      path, (long long)frame->count);
    for (int64_t chunk = 0; c.data && chunk < c.chunks; chunk++)
        sk_release(NULL, c.data[chunk]);
    sk_release(NULL, c.data);
    sk_release(NULL, c.sizes);
    return code;
}
