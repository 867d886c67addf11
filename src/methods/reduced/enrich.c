#include "methods/reduced/enrich.h"

#include <math.h>
#include <string.h>

#include "methods/reduced/svd.h"

int sk_reduced_fine_modes(const sk_reduced_box *box)
{
    const double waves[2] = {2.0 * (box->cells[0] - 3) / 3.0, 2.0 * (box->cells[1] - 3) / 3.0};
    const double reach = fmin(waves[0] / box->size[0], waves[1] / box->size[1]);
    const double modes = 0.25 * 3.14159 * reach * reach * box->size[0] * box->size[1] - 2.0 * fmax(waves[0], waves[1]);
    return modes > 65536.0 ? 65536 : modes > box->modes ? (int)modes : box->modes;
}

selkie_code sk_enrich_begin(sk_enrichment *e, const sk_reduced_box *box, int room, int threads, sk_memory *memory,
                            selkie_error *error)
{
    sk_reduced_box fine = *box;
    memset(e, 0, sizeof *e);
    e->memory = memory;
    e->room = room;
    e->threads = threads;
    fine.modes = sk_reduced_fine_modes(box);
    fine.extra = 0;
    SK_TRY(sk_reduced_spectrum_make(&e->fine, &fine, memory, error));
    const size_t values = (size_t)room * (size_t)fine.modes;
    e->fields = sk_allocate(memory, values * sizeof(double));
    e->weighted = sk_allocate(memory, values * sizeof(double));
    e->values = sk_allocate_zeroed(memory, ((size_t)room + 1) * sizeof(double));
    return e->fields && e->weighted && e->values
               ? SELKIE_OK
               : sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for %d fields of %d modes", room, fine.modes);
}

void sk_enrich_end(sk_enrichment *e)
{
    sk_release(e->memory, e->fields);
    sk_release(e->memory, e->weighted);
    sk_release(e->memory, e->values);
    sk_reduced_spectrum_free(&e->fine);
    memset(e, 0, sizeof *e);
}

void sk_enrich_take(sk_enrichment *e, const double *r, double factor)
{
    double *to = e->fields + (size_t)e->columns++ * (size_t)e->fine.count;
    for (int k = 0; k < e->fine.count; k++)
        to[k] = factor * r[k];
}

/* Keeps the columns with a singular value above `least`, of unit length. Returns their number. */
static int keep_columns(sk_enrichment *e, double least)
{
    const int count = e->fine.count;
    int kept = 0;
    while (kept < e->columns && e->values[kept] > least) {
        double *column = e->fields + (size_t)kept * (size_t)count;
        for (int k = 0; k < count; k++)
            column[k] /= e->values[kept];
        kept++;
    }
    return kept;
}

/* Takes out what the further modes of the basis contain. Mean flows are no part of the fine spectrum. */
static void deflate(sk_enrichment *e, const sk_reduced_spectrum *s)
{
    const size_t count = (size_t)e->fine.count, middles = (size_t)s->cells[0] * (size_t)s->cells[1];
    double *mode = e->weighted;
    for (int x = 0; x < s->extra.count; x++) {
        if (s->lambda[s->closed + x] == 0.0)
            continue;
        memset(mode, 0, count * sizeof *mode);
        sk_reduced_project(&e->fine, (const double *const[2]){s->extra.u + x * middles, s->extra.v + x * middles}, mode,
                           e->threads);
        for (int c = 0; c < e->columns; c++) {
            double part = 0.0, *column = e->fields + (size_t)c * count;
            for (size_t k = 0; k < count; k++)
                part += mode[k] * column[k];
            for (size_t k = 0; k < count; k++)
                column[k] -= part * mode[k];
        }
    }
}

void sk_enrich_reduce(sk_enrichment *e, const sk_reduced_spectrum *s, double cut, int most)
{
    const int count = e->fine.count;
    if (e->columns == 0)
        return;
    sk_svd_columns(e->fields, count, e->columns, e->values, NULL, 0);
    e->columns = keep_columns(e, cut * e->values[0]);
    e->columns = e->columns < most ? e->columns : most;

    for (int c = 0; c < e->columns; c++)
        memset(e->fields + (size_t)c * (size_t)count, 0, (size_t)s->closed * sizeof(double));
    deflate(e, s);
    sk_svd_columns(e->fields, count, e->columns, e->values, NULL, 0);
    e->columns = keep_columns(e, cut);

    for (int c = 0; c < e->columns; c++)
        for (int k = 0; k < count; k++)
            e->weighted[(size_t)c * (size_t)count + (size_t)k] =
                sqrt(e->fine.lambda[k]) * e->fields[(size_t)c * (size_t)count + (size_t)k];
    sk_svd_columns(e->weighted, count, e->columns, e->values, e->fields, count);
}

void sk_enrich_add(sk_enrichment *e, sk_reduced_spectrum *s)
{
    sk_reduced_spectrum *fine = &e->fine;
    for (int c = 0; c < e->columns; c++) {
        const double *column = e->fields + (size_t)c * (size_t)fine->count;
        double *const middle[3] = {fine->grid[0], fine->grid[1], fine->grid[2]}, *const node[2] = {fine->grid[3],
                                                                                                   fine->grid[4]};
        sk_reduced_middles(fine, column, middle, e->threads);
        sk_reduced_velocities(fine, column, node, e->threads);
        sk_reduced_spectrum_add(s, e->values[c] * e->values[c],
                                (const double *const[3]){middle[0], middle[1], middle[2]},
                                (const double *const[2]){node[0], node[1]});
        s->extra.are_eigenfunctions = 0;
    }
}

void sk_enrich_express(const sk_enrichment *e, const sk_reduced_spectrum *s, const double *field, double *to)
{
    const size_t count = (size_t)e->fine.count;
    memcpy(to, field, (size_t)s->closed * sizeof *to);
    for (int c = 0; c < e->columns; c++) {
        double sum = 0.0;
        for (size_t k = 0; k < count; k++)
            sum += field[k] * e->fields[(size_t)c * count + k];
        to[s->count - e->columns + c] = sum;
    }
}
