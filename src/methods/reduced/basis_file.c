#include "methods/reduced/basis_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/crc.h"

enum { VERSION = 1, ORDER = 0x01020304, MOST_MODES = 65536 };
static const char magic[8] = "SLKBASE\n";

/* Doubles behind the header: lambda, midpoints, nodes. */
static size_t values_of(const sk_basis_header *h)
{
    const size_t middles = (size_t)h->cells[0] * (size_t)h->cells[1],
                 nodes = (size_t)(h->cells[0] + 1) * (size_t)(h->cells[1] + 1);
    return (size_t)h->extra * (1 + 3 * middles + 2 * nodes);
}

static size_t bytes_of(const sk_basis_header *h)
{
    return sizeof *h + values_of(h) * sizeof(double) +
           (size_t)h->flows * (SK_FLOW_NAME + (size_t)(h->closed + h->extra) * sizeof(double));
}

static uint32_t checksum(const char *bytes, size_t size)
{
    const size_t first = offsetof(sk_basis_header, obstacles);
    return sk_crc32(bytes + first, size - first);
}

/* --- Writing --- */

static char *put(char *to, const void *from, size_t bytes)
{
    if (bytes)
        memcpy(to, from, bytes);
    return to + bytes;
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
    const size_t size = bytes_of(&h), middles = (size_t)h.cells[0] * (size_t)h.cells[1] * sizeof(double),
                 nodes = (size_t)(h.cells[0] + 1) * (size_t)(h.cells[1] + 1) * sizeof(double), extra = (size_t)h.extra;
    char *bytes = sk_allocate(NULL, size), *at = bytes;
    if (!bytes)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for a basis of %zu bytes", path, size);
    at = put(at, &h, sizeof h);
    at = put(at, s->lambda + s->closed, extra * sizeof(double));
    const double *const at_middles[3] = {s->extra.u, s->extra.v, s->extra.omega};
    for (int n = 0; n < 3; n++)
        at = put(at, at_middles[n], extra * middles);
    at = put(at, s->extra.node_u, extra * nodes);
    at = put(at, s->extra.node_v, extra * nodes);
    at = put(at, reduced->names, (size_t)h.flows * SK_FLOW_NAME);
    put(at, reduced->drawn, (size_t)h.flows * (size_t)s->count * sizeof(double));
    h.checksum = checksum(bytes, size);
    memcpy(bytes, &h, sizeof h);

    /* Written beside and renamed: a file of that name is always whole. */
    char beside[4096];
    int good = snprintf(beside, sizeof beside, "%s.part", path) < (int)sizeof beside;
    FILE *file = good ? fopen(beside, "wb") : NULL;
    good = file && fwrite(bytes, 1, size, file) == size;
    good = file && fclose(file) == 0 && good && rename(beside, path) == 0;
    sk_release(NULL, bytes);
    return good ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno));
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

/* The whole file, checked. */
static selkie_code read_file(const char *path, sk_memory *memory, char **bytes, selkie_error *error)
{
    sk_basis_header h;
    FILE *file = fopen(path, "rb");
    if (!file)
        return sk_fail(error, SELKIE_ERROR_FILE, "reduced.basis: cannot open %.300s: %s", path, strerror(errno));
    selkie_code code = SELKIE_OK;
    *bytes = NULL;
    if (fread(&h, sizeof h, 1, file) != 1 || memcmp(h.magic, magic, sizeof magic) != 0)
        code = sk_fail(error, SELKIE_ERROR_FORMAT, "reduced.basis: %.300s is no basis; make one by selkie basis", path);
    else if (h.order != ORDER || h.version != VERSION)
        code = sk_fail(error, SELKIE_ERROR_FORMAT,
                       "reduced.basis: %.300s is of another version or machine; make it again by selkie basis", path);
    else if (!is_plausible(&h))
        code = sk_fail(error, SELKIE_ERROR_FORMAT, "reduced.basis: %.300s is damaged: its header is wrong", path);
    long end = code == SELKIE_OK && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (code == SELKIE_OK && (end < 0 || (size_t)end != bytes_of(&h)))
        code = sk_fail(error, SELKIE_ERROR_FORMAT, "reduced.basis: %.300s is cut off: %ld bytes of %zu", path, end,
                       bytes_of(&h));
    if (code == SELKIE_OK && !(*bytes = sk_allocate(memory, bytes_of(&h))))
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.basis: no memory for %zu bytes", bytes_of(&h));
    if (code == SELKIE_OK && (fseek(file, 0, SEEK_SET) != 0 || fread(*bytes, 1, bytes_of(&h), file) != bytes_of(&h) ||
                              checksum(*bytes, bytes_of(&h)) != h.checksum))
        code = sk_fail(error, SELKIE_ERROR_FORMAT, "reduced.basis: %.300s is damaged: its checksum is wrong", path);
    fclose(file);
    if (code != SELKIE_OK) {
        sk_release(memory, *bytes);
        *bytes = NULL;
    }
    return code;
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

static const char *get(const char *from, void *to, size_t bytes)
{
    if (bytes)
        memcpy(to, from, bytes);
    return from + bytes;
}

static selkie_code take(const sk_basis_header *h, const char *at, sk_reduced *reduced, const sk_reduced_box *box,
                        sk_memory *memory, selkie_error *error)
{
    sk_reduced_spectrum *s = &reduced->spectrum;
    const size_t middles = (size_t)h->cells[0] * (size_t)h->cells[1],
                 nodes = (size_t)(h->cells[0] + 1) * (size_t)(h->cells[1] + 1), extra = (size_t)h->extra;
    sk_reduced_box whole = *box;
    whole.modes = h->closed;
    whole.extra = h->extra;
    SK_TRY(sk_reduced_spectrum_make(s, &whole, memory, error));
    const double *lambda = (const double *)(const void *)at, *u = lambda + extra, *v = u + extra * middles,
                 *omega = v + extra * middles, *node_u = omega + extra * middles, *node_v = node_u + extra * nodes;
    for (size_t e = 0; e < extra; e++)
        sk_reduced_spectrum_add(s, lambda[e],
                                (const double *const[3]){u + e * middles, v + e * middles, omega + e * middles},
                                (const double *const[2]){node_u + e * nodes, node_v + e * nodes});
    s->extra.are_eigenfunctions = h->are_eigenfunctions;

    SK_TRY(sk_reduced_name_flows(reduced, h->flows, memory, error));
    at = get(at + values_of(h) * sizeof(double), reduced->names, (size_t)h->flows * SK_FLOW_NAME);
    get(at, reduced->drawn, (size_t)h->flows * (size_t)s->count * sizeof(double));
    for (int m = 0; m < h->flows; m++)
        reduced->names[m][SK_FLOW_NAME - 1] = 0;
    return SELKIE_OK;
}

selkie_code sk_basis_read(const char *path, sk_reduced *reduced, const sk_reduced_box *box, uint32_t obstacles,
                          sk_memory *memory, selkie_error *error)
{
    char *bytes = NULL;
    sk_basis_header h;
    SK_TRY(read_file(path, memory, &bytes, error));
    memcpy(&h, bytes, sizeof h);
    selkie_code code = compare(path, &h, box, obstacles, error);
    if (code == SELKIE_OK)
        code = take(&h, bytes + sizeof h, reduced, box, memory, error);
    sk_release(memory, bytes);
    return code;
}
