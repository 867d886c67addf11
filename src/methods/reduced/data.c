#include "methods/reduced/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "methods/reduced/enrich.h"

/* --- Room --- */

static selkie_code enlarge(sk_memory *memory, double **array, size_t values, size_t more, selkie_error *error)
{
    double *larger = sk_allocate_zeroed(memory, (values + more) * sizeof *larger);
    if (!larger)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for modes from snapshots");
    if (values)
        memcpy(larger, *array, values * sizeof *larger);
    sk_release(memory, *array);
    *array = larger;
    return SELKIE_OK;
}

/* Room for `more` further modes. */
static selkie_code grow(sk_reduced_spectrum *s, int more, selkie_error *error)
{
    sk_reduced_extra *x = &s->extra;
    const size_t count = (size_t)s->count, add = (size_t)more, used = (size_t)x->count;
    const size_t middles = (size_t)s->cells[0] * (size_t)s->cells[1],
                 nodes = (size_t)(s->cells[0] + 1) * (size_t)(s->cells[1] + 1);
    double **const scalars[] = {&s->lambda, &s->norm, &s->stage, &s->k[0], &s->k[1], &s->k[2], &s->k[3]};
    double **const fields[] = {&x->u, &x->v, &x->omega, &x->node_u, &x->node_v, &x->stream};
    for (size_t n = 0; n < sizeof scalars / sizeof *scalars; n++)
        SK_TRY(enlarge(s->memory, scalars[n], count, add, error));
    for (size_t n = 0; n < sizeof fields / sizeof *fields; n++) {
        const size_t size = n < 3 ? middles : nodes;
        SK_TRY(enlarge(s->memory, fields[n], used * size, add * size, error));
    }
    x->room = x->count + more;
    return SELKIE_OK;
}

/* --- Flows --- */

/* The names and coefficients of flows in a larger basis, with one flow for each new mode. */
static selkie_code name_modes(sk_reduced *reduced, int before, int added, sk_memory *memory, selkie_error *error)
{
    const sk_reduced_spectrum *s = &reduced->spectrum;
    const int flows = reduced->flow_count;
    char(*names)[SK_FLOW_NAME] = reduced->names;
    double *drawn = reduced->drawn;
    const size_t nodes = (size_t)(s->cells[0] + 1) * (size_t)(s->cells[1] + 1);
    reduced->names = NULL;
    reduced->drawn = NULL;
    selkie_code code = sk_reduced_name_flows(reduced, flows + added, memory, error);
    for (int m = 0; m < flows && code == SELKIE_OK; m++) {
        memcpy(reduced->names[m], names[m], SK_FLOW_NAME);
        memcpy(reduced->drawn + (size_t)m * (size_t)s->count, drawn + (size_t)m * (size_t)before,
               (size_t)before * sizeof(double));
    }
    for (int n = 0; n < added && code == SELKIE_OK; n++) {
        const size_t e = (size_t)(s->extra.count - added + n);
        double fastest = 0.0;
        for (size_t i = 0; i < nodes; i++)
            fastest = fmax(fastest, hypot(s->extra.node_u[e * nodes + i], s->extra.node_v[e * nodes + i]));
        snprintf(reduced->names[flows + n], SK_FLOW_NAME, "data_%d", n + 1);
        reduced->drawn[(size_t)(flows + n) * (size_t)s->count + (size_t)(before + n)] = 1.0 / fastest;
    }
    sk_release(memory, names);
    sk_release(memory, drawn);
    return code;
}

/* --- Energy --- */

static double square_of(const double *a, size_t count)
{
    double sum = 0.0;
    for (size_t n = 0; n < count; n++)
        sum += a[n] * a[n];
    return sum;
}

/* Energy of the fields in the first modes of the basis. */
static double energy_in(sk_reduced_spectrum *s, const sk_enrichment *e, const double *fields, int count)
{
    const size_t middles = (size_t)s->cells[0] * (size_t)s->cells[1];
    double *r = s->stage, sum = 0.0;
    for (int f = 0; f < count; f++) {
        const double *u = fields + (size_t)f * 2 * middles;
        memset(r, 0, (size_t)s->count * sizeof *r);
        sk_reduced_project(s, (const double *const[2]){u, u + middles}, r, e->threads);
        sum += square_of(r, (size_t)s->count);
    }
    return sum;
}

static selkie_code take_fields(sk_enrichment *e, const sk_snapshots *snapshots, double *whole, selkie_error *error)
{
    const size_t count = (size_t)e->fine.count, middles = (size_t)e->fine.cells[0] * (size_t)e->fine.cells[1];
    double *r = sk_allocate(e->memory, count * sizeof *r);
    if (!r)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for snapshots");
    *whole = 0.0;
    for (int f = 0; f < snapshots->count; f++) {
        const double *u = snapshots->fields + (size_t)f * 2 * middles;
        memset(r, 0, count * sizeof *r);
        sk_reduced_project(&e->fine, (const double *const[2]){u, u + middles}, r, e->threads);
        *whole += square_of(r, count);
        sk_enrich_take(e, r, 1.0);
    }
    sk_release(e->memory, r);
    return SELKIE_OK;
}

selkie_code sk_reduced_add_snapshots(sk_reduced *reduced, const sk_step *step, const sk_snapshots *snapshots,
                                     sk_snapshot_report *report, selkie_error *error)
{
    sk_reduced_spectrum *s = &reduced->spectrum;
    sk_reduced_box box = sk_reduced_box_of(step);
    const int before = s->count;
    double whole = 0.0;
    sk_enrichment e;
    if (step->scene->obstacle_count)
        return sk_fail(error, SELKIE_ERROR_INPUT, "obstacles: modes from snapshots are for boxes without them");
    box.modes = s->closed;
    selkie_code code = sk_enrich_begin(&e, &box, snapshots->count, step->threads, step->memory, error);
    if (code == SELKIE_OK)
        code = take_fields(&e, snapshots, &whole, error);
    if (code == SELKIE_OK && !(whole > 0.0))
        code = sk_fail(error, SELKIE_ERROR_INPUT, "the snapshots are at rest: there is no mode in them");
    if (code == SELKIE_OK) {
        report->plain = energy_in(s, &e, snapshots->fields, snapshots->count) / whole;
        sk_enrich_reduce(&e, s, snapshots->cut, snapshots->most);
        report->modes = e.columns;
        code = grow(s, e.columns, error);
    }
    if (code == SELKIE_OK) {
        sk_enrich_add(&e, s);
        report->kept = energy_in(s, &e, snapshots->fields, snapshots->count) / whole;
        code = name_modes(reduced, before, report->modes, step->memory, error);
    }
    sk_enrich_end(&e);
    return code;
}
