/* The layout, from OpenVDB 10 (io/Archive.cc, tree/): header, then for each grid a descriptor with its places in the
 * file, compression, metadata, transform, topology (masks and tiles from the root down) and buffers (values of the
 * leaves). Linear places in a node have z fastest. Little endian.
 */
#include "io/vdb_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/atomic_file.h"

enum {
    leaf_values = 512,
    lower_log = 4, /* children of a lower node along an axis: 16 leaves */
    upper_log = 5, /* of an upper node: 32 lower nodes */
    lower_count = 1 << 3 * lower_log,
    upper_count = 1 << 3 * upper_log,
    compress_zip = 1
};

/* A block of the volume and where it is in the tree. */
typedef struct leaf {
    uint64_t key;   /* upper node, lower node in it, leaf in that: in the order of the file */
    uint32_t block; /* of the volume */
} leaf;

typedef struct vdb_writer {
    sk_atomic_file *file;
    const sk_volume_frame *frame;
    size_t leaf_count;
    leaf *leaves; /* sorted by key */
    const char *name;
    const float
        *data; /* [block_count][512][components] of the grid; NaN = not active, in other grids than the surface */
    int components;
    int is_surface;
    float *values; /* of a node; upper_count * 3 */
    unsigned char *packed;
    uLong packed_room;
} vdb_writer;

/* --- Small parts --- */

static selkie_code put(vdb_writer *w, const void *bytes, size_t count, selkie_error *error)
{
    return sk_atomic_write(w->file, bytes, count, error);
}

static selkie_code put_word(vdb_writer *w, uint32_t word, selkie_error *error)
{
    return put(w, &word, sizeof word, error);
}

static selkie_code put_string(vdb_writer *w, const char *string, selkie_error *error)
{
    SK_TRY(put_word(w, (uint32_t)strlen(string), error));
    return put(w, string, strlen(string), error);
}

static selkie_code put_text_entry(vdb_writer *w, const char *name, const char *value, selkie_error *error)
{
    SK_TRY(put_string(w, name, error));
    SK_TRY(put_string(w, "string", error));
    return put_string(w, value, error);
}

/* All values of a node, compressed. */
static selkie_code put_values(vdb_writer *w, size_t count, selkie_error *error)
{
    const char all_values = 6;
    const size_t bytes = count * (size_t)w->components * sizeof(float);
    uLong packed = w->packed_room;
    SK_TRY(put(w, &all_values, 1, error));
    if (compress2(w->packed, &packed, (const Bytef *)w->values, (uLong)bytes, 1) == Z_OK && packed < bytes) {
        const int64_t size = (int64_t)packed;
        SK_TRY(put(w, &size, sizeof size, error));
        return put(w, w->packed, packed, error);
    }
    const int64_t size = -(int64_t)bytes;
    SK_TRY(put(w, &size, sizeof size, error));
    return put(w, w->values, bytes, error);
}

/* --- Leaves --- */

/* Place in a node of 2^log children along an axis, z fastest. */
static uint64_t place_in_node(const int32_t at[3], int shift, int log)
{
    const int32_t mask = (1 << log) - 1;
    return (uint64_t)((at[0] >> shift & mask) << 2 * log | (at[1] >> shift & mask) << log | (at[2] >> shift & mask));
}

static uint64_t leaf_key(const int32_t block[3])
{
    const int32_t root[3] = {block[0] >> 9, block[1] >> 9, block[2] >> 9};
    return place_in_node(root, 0, 12) << 3 * (lower_log + upper_log) |
           place_in_node(block, lower_log, upper_log) << 3 * lower_log | place_in_node(block, 0, lower_log);
}

static int compare_leaves(const void *a, const void *b)
{
    const leaf *left = a, *right = b;
    return left->key < right->key ? -1 : left->key > right->key;
}

/* Inside (-1), outside (1) or crossed by the band (0)? */
static int block_side(const sk_volume *volume, size_t block)
{
    const float *phi = volume->surface + block * leaf_values;
    int below = 1, above = 1;
    for (int i = 0; i < leaf_values; i++) {
        below &= phi[i] <= -0.9999f * volume->background;
        above &= phi[i] >= 0.9999f * volume->background;
    }
    return below ? -1 : above ? 1 : 0;
}

static int is_leaf(const vdb_writer *w, const leaf *l)
{
    if (w->is_surface)
        return block_side(w->frame->volume, l->block) == 0;
    const float *v = w->data + (size_t)l->block * (size_t)w->components * leaf_values;
    for (int i = 0; i < leaf_values; i++)
        if (!isnan(v[w->components * i]))
            return 1;
    return 0;
}

/* Values of a leaf with z fastest, in the axes of the file, and the bits of the active ones. */
static void load_leaf(vdb_writer *w, const leaf *l, uint64_t mask[leaf_values / 64])
{
    memset(mask, 0, leaf_values / 8);
    for (int i = 0; i < leaf_values; i++) {
        const int n = (i & 7) << 6 | (i >> 3 & 7) << 3 | i >> 6; /* x fastest from z fastest */
        const float *v = w->data + ((size_t)l->block * leaf_values + (size_t)n) * (size_t)w->components;
        const int active = w->is_surface ? fabsf(v[0]) < 0.9999f * w->frame->volume->background : !isnan(v[0]);
        if (w->components == 3) {
            const float own[3] = {active ? v[0] : 0.0f, active ? v[1] : 0.0f, active ? v[2] : 0.0f};
            sk_up_turn_apply(&w->frame->turn, own, w->values + 3 * i);
        } else {
            w->values[i] = active || w->is_surface ? v[0] : 0.0f;
        }
        mask[i >> 6] |= (uint64_t)active << (i & 63);
    }
}

/* --- Topology --- */

/* Leaves from `first` with the same key above `shift` bits. */
static size_t count_same(const vdb_writer *w, size_t first, int shift)
{
    size_t end = first;
    while (end < w->leaf_count && w->leaves[end].key >> shift == w->leaves[first].key >> shift)
        end++;
    return end - first;
}

static selkie_code put_lower(vdb_writer *w, size_t first, size_t count, selkie_error *error)
{
    uint64_t children[lower_count / 64] = {0}, none[lower_count / 64] = {0}, mask[leaf_values / 64];
    const float outside = w->is_surface ? w->frame->volume->background : 0.0f;
    for (int i = 0; i < lower_count * w->components; i++)
        w->values[i] = outside;

    /* Leaves, and tiles inside the liquid. */
    for (size_t l = first; l < first + count; l++) {
        const unsigned place = (unsigned)(w->leaves[l].key & (lower_count - 1));
        if (is_leaf(w, &w->leaves[l])) {
            children[place >> 6] |= (uint64_t)1 << (place & 63);
            w->values[place * (unsigned)w->components] = 0.0f;
        } else if (w->is_surface && block_side(w->frame->volume, w->leaves[l].block) < 0) {
            w->values[place] = -outside;
        }
    }
    SK_TRY(put(w, children, sizeof children, error));
    SK_TRY(put(w, none, sizeof none, error));
    SK_TRY(put_values(w, lower_count, error));
    for (size_t l = first; l < first + count; l++)
        if (is_leaf(w, &w->leaves[l])) {
            load_leaf(w, &w->leaves[l], mask);
            SK_TRY(put(w, mask, sizeof mask, error));
        }
    return SELKIE_OK;
}

static selkie_code put_upper(vdb_writer *w, size_t first, size_t count, selkie_error *error)
{
    uint64_t children[upper_count / 64] = {0};
    static const uint64_t none[upper_count / 64];
    const float outside = w->is_surface ? w->frame->volume->background : 0.0f;
    for (int i = 0; i < upper_count * w->components; i++)
        w->values[i] = outside;
    for (size_t l = first; l < first + count; l++) {
        const unsigned place = (unsigned)(w->leaves[l].key >> 3 * lower_log & (upper_count - 1));
        children[place >> 6] |= (uint64_t)1 << (place & 63);
        w->values[place * (unsigned)w->components] = 0.0f;
    }
    SK_TRY(put(w, children, sizeof children, error));
    SK_TRY(put(w, none, sizeof none, error));
    SK_TRY(put_values(w, upper_count, error));
    for (size_t l = first; l < first + count;) {
        const size_t same = count_same(w, l, 3 * lower_log);
        SK_TRY(put_lower(w, l, same, error));
        l += same;
    }
    return SELKIE_OK;
}

static selkie_code put_topology(vdb_writer *w, selkie_error *error)
{
    const float background[3] = {w->is_surface ? w->frame->volume->background : 0.0f, 0.0f, 0.0f};
    const int shift = 3 * (lower_log + upper_log);
    uint32_t roots = 0;
    for (size_t l = 0; l < w->leaf_count; l += count_same(w, l, shift))
        roots++;
    SK_TRY(put_word(w, 1, error)); /* buffers */
    SK_TRY(put(w, background, (size_t)w->components * sizeof *background, error));
    SK_TRY(put_word(w, 0, error)); /* tiles */
    SK_TRY(put_word(w, roots, error));
    for (size_t l = 0; l < w->leaf_count;) {
        const size_t same = count_same(w, l, shift);
        const int32_t *block = w->frame->volume->coordinates[w->leaves[l].block];
        for (int a = 0; a < 3; a++)
            SK_TRY(put_word(w, (uint32_t)(block[a] >> 9 << 12), error)); /* first voxel of the upper node */
        SK_TRY(put_upper(w, l, same, error));
        l += same;
    }
    return SELKIE_OK;
}

static selkie_code put_buffers(vdb_writer *w, selkie_error *error)
{
    uint64_t mask[leaf_values / 64];
    for (size_t l = 0; l < w->leaf_count; l++)
        if (is_leaf(w, &w->leaves[l])) {
            load_leaf(w, &w->leaves[l], mask);
            SK_TRY(put(w, mask, sizeof mask, error));
            SK_TRY(put_values(w, leaf_values, error));
        }
    return SELKIE_OK;
}

/* --- Grids --- */

/* From nodes to metres in the axes of the file: rows of a matrix for row vectors. */
static selkie_code put_transform(vdb_writer *w, selkie_error *error)
{
    const sk_volume_frame *frame = w->frame;
    double matrix[4][4] = {{0}};
    for (int k = 0; k < 3; k++) {
        const int a = frame->turn.axis[k];
        matrix[a][k] = frame->turn.sign[k] * frame->volume->voxel[a];
        matrix[3][k] = frame->turn.sign[k] * (frame->volume->origin[a] + frame->origin[a]);
    }
    matrix[3][3] = 1.0;
    SK_TRY(put_string(w, "AffineMap", error));
    return put(w, matrix, sizeof matrix, error);
}

static selkie_code put_grid(vdb_writer *w, selkie_error *error)
{
    const int is_vector = w->components == 3;
    SK_TRY(put_string(w, w->name, error));
    SK_TRY(put_string(w, is_vector ? "Tree_vec3s_5_4_3" : "Tree_float_5_4_3", error));
    SK_TRY(put_string(w, "", error)); /* no instance of another grid */
    const uint64_t offsets = sk_atomic_position(w->file);
    int64_t places[3] = {0, 0, 0};
    SK_TRY(put(w, places, sizeof places, error));

    /* Compression, metadata, transform and tree. */
    places[0] = (int64_t)sk_atomic_position(w->file);
    SK_TRY(put_word(w, compress_zip, error));
    SK_TRY(put_word(w, is_vector ? 3 : 2, error));
    SK_TRY(put_text_entry(w, "class", w->is_surface ? "level set" : "unknown", error));
    SK_TRY(put_text_entry(w, "name", w->name, error));
    if (is_vector)
        SK_TRY(put_text_entry(w, "vector_type", "contravariant relative", error));
    SK_TRY(put_transform(w, error));
    SK_TRY(put_topology(w, error));
    places[1] = (int64_t)sk_atomic_position(w->file);
    SK_TRY(put_buffers(w, error));
    places[2] = (int64_t)sk_atomic_position(w->file);
    const int reason = sk_atomic_write_at(w->file, offsets, places, sizeof places);
    return reason ? sk_atomic_fail(w->file, reason, error) : SELKIE_OK;
}

static selkie_code put_file(vdb_writer *w, selkie_error *error)
{
    /* The number of a file need not be unique for readers. */
    static const char uuid[] = "5e1c1e00-0000-4000-8000-000000000000";
    const int64_t magic = 0x56444220;
    const char has_offsets = 1;
    const double time = w->frame->time;
    SK_TRY(put(w, &magic, sizeof magic, error));
    SK_TRY(put_word(w, 224, error)); /* of the format */
    SK_TRY(put_word(w, 10, error));  /* of the library */
    SK_TRY(put_word(w, 0, error));
    SK_TRY(put(w, &has_offsets, 1, error));
    SK_TRY(put(w, uuid, 36, error));

    /* Metadata of the file. */
    SK_TRY(put_word(w, 2, error));
    SK_TRY(put_text_entry(w, "creator", "Selkie", error));
    SK_TRY(put_string(w, "time", error));
    SK_TRY(put_string(w, "double", error));
    SK_TRY(put_word(w, sizeof time, error));
    SK_TRY(put(w, &time, sizeof time, error));

    /* Grids. */
    const sk_volume *volume = w->frame->volume;
    SK_TRY(put_word(w, (uint32_t)(1 + (volume->velocity != NULL) + volume->value_count), error));
    w->is_surface = w->components = 1;
    w->name = "surface";
    w->data = volume->surface;
    SK_TRY(put_grid(w, error));
    w->is_surface = 0;
    if (volume->velocity) {
        w->components = 3;
        w->name = "vel";
        w->data = volume->velocity;
        SK_TRY(put_grid(w, error));
    }
    for (int v = 0; v < volume->value_count; v++) {
        w->components = 1;
        w->name = volume->values[v].name;
        w->data = volume->values[v].data;
        SK_TRY(put_grid(w, error));
    }
    return SELKIE_OK;
}

selkie_code sk_volume_write_vdb(const sk_volume_frame *frame, const char *path, selkie_error *error)
{
    const sk_volume *volume = frame->volume;
    vdb_writer w = {.frame = frame, .leaf_count = volume->block_count};
    w.packed_room = compressBound(3 * upper_count * sizeof(float));
    w.leaves = sk_allocate(NULL, (volume->block_count + 1) * sizeof *w.leaves);
    w.values = sk_allocate(NULL, 3 * upper_count * sizeof *w.values);
    w.packed = sk_allocate(NULL, w.packed_room);
    selkie_code code = SELKIE_OK;
    if (!w.leaves || !w.values || !w.packed)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu blocks", path, volume->block_count);
    if (!code) {
        for (size_t b = 0; b < volume->block_count; b++)
            w.leaves[b] = (leaf){leaf_key(volume->coordinates[b]), (uint32_t)b};
        qsort(w.leaves, w.leaf_count, sizeof *w.leaves, compare_leaves);
        code = sk_atomic_open(path, 0, &w.file, error);
    }
    if (!code) {
        sk_atomic_no_flush(w.file);
        code = put_file(&w, error);
        code = sk_atomic_finish(&w.file, code, error);
    }
    sk_release(NULL, w.leaves);
    sk_release(NULL, w.values);
    sk_release(NULL, w.packed);
    return code;
}
