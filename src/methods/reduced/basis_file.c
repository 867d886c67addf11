#include "methods/reduced/basis_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = 2, ORDER = 0x01020304, MOST_MODES = 65536 };
static const char magic[8] = "SLKBASE\n";

/* Four lanes of FNV-1a over words of eight bytes: damage of a word changes its lane, and memory is the limit of its
 * speed. */
typedef struct sum {
    uint64_t lanes[4];
} sum;

static const uint64_t prime = 0x100000001b3u;

static void add_words(sum *s, const void *data, size_t bytes)
{
    const char *at = data;
    uint64_t a = s->lanes[0], b = s->lanes[1], c = s->lanes[2], d = s->lanes[3], words[4];
    for (; bytes >= sizeof words; bytes -= sizeof words, at += sizeof words) {
        memcpy(words, at, sizeof words);
        a = (a ^ words[0]) * prime;
        b = (b ^ words[1]) * prime;
        c = (c ^ words[2]) * prime;
        d = (d ^ words[3]) * prime;
    }
    memset(words, 0, sizeof words);
    if (bytes)
        memcpy(words, at, bytes);
    s->lanes[0] = ((a ^ words[0]) * prime ^ a >> 32) + bytes;
    s->lanes[1] = (b ^ words[1]) * prime ^ b >> 32;
    s->lanes[2] = (c ^ words[2]) * prime ^ c >> 32;
    s->lanes[3] = (d ^ words[3]) * prime ^ d >> 32;
}

static sum begin_sum(const sk_basis_header *header)
{
    sum s = {{0xcbf29ce484222325u, 1, 2, 3}};
    sk_basis_header h = *header;
    h.checksum = 0;
    add_words(&s, &h, sizeof h);
    return s;
}

static uint32_t end_sum(const sum *s)
{
    uint64_t all = 0;
    for (int n = 0; n < 4; n++)
        all = (all ^ s->lanes[n]) * prime;
    return (uint32_t)(all ^ all >> 32);
}

/* --- The parts of a file --- */

typedef struct part {
    void *data;
    size_t bytes;
} part;

enum { PARTS = 8 };

static void list_parts(const sk_basis_header *h, const sk_reduced *reduced, part parts[PARTS])
{
    const sk_reduced_spectrum *s = &reduced->spectrum;
    const size_t extra = (size_t)h->extra * sizeof(double), middles = (size_t)h->cells[0] * (size_t)h->cells[1] * extra,
                 nodes = (size_t)(h->cells[0] + 1) * (size_t)(h->cells[1] + 1) * extra, flows = (size_t)h->flows;
    const part all[PARTS] = {{s->lambda ? s->lambda + s->closed : NULL, extra},
                             {s->extra.u, middles},
                             {s->extra.v, middles},
                             {s->extra.omega, middles},
                             {s->extra.node_u, nodes},
                             {s->extra.node_v, nodes},
                             {reduced->names, flows * SK_FLOW_NAME},
                             {reduced->drawn, flows * (size_t)(h->closed + h->extra) * sizeof(double)}};
    memcpy(parts, all, sizeof all);
}

static size_t bytes_of(const sk_basis_header *h)
{
    static const sk_reduced none;
    part parts[PARTS];
    size_t bytes = sizeof *h;
    list_parts(h, &none, parts);
    for (int n = 0; n < PARTS; n++)
        bytes += parts[n].bytes;
    return bytes;
}

/* --- Writing --- */

/* Written beside and renamed: a file of that name is always whole. */
static int write_parts(const char *path, const sk_basis_header *h, const part parts[PARTS])
{
    char beside[4096];
    int good = snprintf(beside, sizeof beside, "%s.part", path) < (int)sizeof beside;
    FILE *file = good ? fopen(beside, "wb") : NULL;
    good = file && fwrite(h, sizeof *h, 1, file) == 1;
    for (int n = 0; n < PARTS && good; n++)
        good = parts[n].bytes == 0 || fwrite(parts[n].data, parts[n].bytes, 1, file) == 1;
    return file && fclose(file) == 0 && good && rename(beside, path) == 0;
}

selkie_code sk_basis_write(const char *path, const sk_reduced *reduced, uint32_t obstacles, selkie_error *error)
{
    const sk_reduced_spectrum *s = &reduced->spectrum;
    sk_basis_header h = {.order = ORDER,
                         .version = VERSION,
                         .obstacles = obstacles,
                         .closed = s->closed,
                         .extra = s->extra.count,
                         .flows = reduced->flow_count,
                         .are_eigenfunctions = s->extra.are_eigenfunctions};
    memcpy(h.magic, magic, sizeof magic);
    for (int d = 0; d < 2; d++) {
        h.size[d] = s->size[d];
        h.family[d] = s->family[d];
        h.cells[d] = s->cells[d];
    }
    part parts[PARTS];
    list_parts(&h, reduced, parts);
    sum total = begin_sum(&h);
    for (int n = 0; n < PARTS; n++)
        add_words(&total, parts[n].data, parts[n].bytes);
    h.checksum = end_sum(&total);
    return write_parts(path, &h, parts)
               ? SELKIE_OK
               : sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno));
}

/* --- Reading --- */

static int is_plausible(const sk_basis_header *h)
{
    int good = h->closed >= 0 && h->extra >= 0 && h->flows >= 0 && h->closed <= MOST_MODES && h->extra <= MOST_MODES &&
               h->flows <= MOST_MODES && h->closed + h->extra > 0;
    for (int d = 0; d < 2; d++)
        good &= h->cells[d] > 0 && h->cells[d] <= 65536 && h->size[d] > 0.0 && isfinite(h->size[d]);
    return good;
}

/* The header, and whether the file has the size that it says. */
static selkie_code read_header(FILE *file, const char *path, sk_basis_header *h, selkie_error *error)
{
    if (fread(h, sizeof *h, 1, file) != 1 || memcmp(h->magic, magic, sizeof magic) != 0)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "reduced.basis: %.300s is no basis; make one by selkie basis", path);
    if (h->order != ORDER || h->version != VERSION)
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "reduced.basis: %.300s is of another version or machine; make it again by selkie basis", path);
    if (!is_plausible(h))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "reduced.basis: %.300s is damaged: its header is wrong", path);
    const long end = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (end < 0 || (size_t)end != bytes_of(h))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "reduced.basis: %.300s is cut off: %ld bytes of %zu", path, end,
                       bytes_of(h));
    return fseek(file, (long)sizeof *h, SEEK_SET) == 0
               ? SELKIE_OK
               : sk_fail(error, SELKIE_ERROR_FILE, "reduced.basis: cannot read %.300s", path);
}

static selkie_code compare(const char *path, const sk_basis_header *h, const sk_reduced_box *box, uint32_t obstacles,
                           selkie_error *error)
{
    int same_cells = 1, same_sides = 1;
    for (int d = 0; d < 2; d++) {
        same_cells &= h->cells[d] == box->cells[d] && fabs(h->size[d] / box->size[d] - 1.0) < 1e-9;
        same_sides &= h->family[d] == box->family[d];
    }
    if (!same_cells)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "reduced.basis: %.300s is for %g x %g m and %d x %d cells, the domain has %g x %g m and %d x %d",
                       path, h->size[0], h->size[1], h->cells[0], h->cells[1], box->size[0], box->size[1],
                       box->cells[0], box->cells[1]);
    if (!same_sides)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "reduced.basis: %.300s is for other sides; walls and reduced.periodic must be as it was made",
                       path);
    if (h->obstacles != obstacles)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "reduced.basis: %.300s is for other obstacles; make it again by selkie basis", path);
    return SELKIE_OK;
}

/* Reads the parts to where they belong: there is no copy. */
static selkie_code read_parts(FILE *file, const char *path, const sk_basis_header *h, sk_reduced *reduced,
                              selkie_error *error)
{
    part parts[PARTS];
    sum total = begin_sum(h);
    list_parts(h, reduced, parts);
    int good = 1;
    for (int n = 0; n < PARTS && good; n++) {
        good = parts[n].bytes == 0 || fread(parts[n].data, parts[n].bytes, 1, file) == 1;
        if (good)
            add_words(&total, parts[n].data, parts[n].bytes);
    }
    if (!good || end_sum(&total) != h->checksum)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "reduced.basis: %.300s is damaged: its checksum is wrong", path);
    return SELKIE_OK;
}

static selkie_code take(FILE *file, const char *path, const sk_basis_header *h, sk_reduced *reduced,
                        const sk_reduced_box *box, sk_memory *memory, selkie_error *error)
{
    sk_reduced_spectrum *s = &reduced->spectrum;
    sk_reduced_box whole = *box;
    whole.modes = h->closed;
    whole.extra = h->extra;
    SK_TRY(sk_reduced_spectrum_make(s, &whole, memory, error));
    reduced->flow_count = h->flows;
    reduced->names = sk_allocate_zeroed(memory, ((size_t)h->flows + 1) * sizeof *reduced->names);
    reduced->drawn =
        sk_allocate_zeroed(memory, ((size_t)h->flows * (size_t)(h->closed + h->extra) + 1) * sizeof(double));
    if (!reduced->names || !reduced->drawn)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for %d flows", h->flows);
    SK_TRY(read_parts(file, path, h, reduced, error));
    sk_reduced_spectrum_take(s, h->extra);
    s->extra.are_eigenfunctions = h->are_eigenfunctions;
    for (int m = 0; m < h->flows; m++)
        reduced->names[m][SK_FLOW_NAME - 1] = 0;
    return SELKIE_OK;
}

selkie_code sk_basis_read(const char *path, sk_reduced *reduced, const sk_reduced_box *box, uint32_t obstacles,
                          sk_memory *memory, selkie_error *error)
{
    sk_basis_header h;
    FILE *file = fopen(path, "rb");
    if (!file)
        return sk_fail(error, SELKIE_ERROR_FILE, "reduced.basis: cannot open %.300s: %s", path, strerror(errno));
    selkie_code code = read_header(file, path, &h, error);
    if (code == SELKIE_OK)
        code = compare(path, &h, box, obstacles, error);
    if (code == SELKIE_OK)
        code = take(file, path, &h, reduced, box, memory, error);
    fclose(file);
    return code;
}

selkie_code sk_basis_check(const char *path, sk_basis_header *header, selkie_error *error)
{
    static const sk_reduced none;
    FILE *file = fopen(path, "rb");
    if (!file)
        return sk_fail(error, SELKIE_ERROR_FILE, "reduced.basis: cannot open %.300s: %s", path, strerror(errno));
    selkie_code code = read_header(file, path, header, error);
    part parts[PARTS];
    size_t largest = 1;
    if (!code)
        list_parts(header, &none, parts);
    for (int n = 0; n < PARTS && !code; n++)
        largest = parts[n].bytes > largest ? parts[n].bytes : largest;

    /* Every part goes through the same memory. */
    char *memory = code ? NULL : sk_allocate(NULL, largest);
    if (!code && !memory)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.basis: no memory to read %.300s", path);
    if (!code) {
        sum total = begin_sum(header);
        int good = 1;
        for (int n = 0; n < PARTS && good; n++) {
            good = parts[n].bytes == 0 || fread(memory, parts[n].bytes, 1, file) == 1;
            if (good)
                add_words(&total, memory, parts[n].bytes);
        }
        if (!good || end_sum(&total) != header->checksum)
            code = sk_fail(error, SELKIE_ERROR_FORMAT, "reduced.basis: %.300s is damaged: its checksum is wrong", path);
    }
    sk_release(NULL, memory);
    fclose(file);
    return code;
}
