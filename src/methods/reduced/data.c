#include "methods/reduced/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "methods/reduced/domain.h"
#include "methods/reduced/enrich.h"
#include "methods/reduced/svd.h"

static selkie_code at_rest(selkie_error *error)
{
    return sk_fail(error, SELKIE_ERROR_INPUT, "the snapshots are at rest: there is no mode in them");
}

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
    for (size_t n = 0; n < (x->stream ? 6u : 5u); n++) {
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

/* --- Beside obstacles --- */

/* Fields by their stream functions at the free nodes of the domain, and by the operator times them: the energy of two
 * fields is the product of one with the other. All in units of a cell. */
typedef struct beside {
    sk_domain domain;
    unsigned char *solid;
    size_t nodes;       /*      of the domain */
    int columns;        /*      fields now */
    double *fields;     /* m2/s [columns][2][nodes] */
    double *right;      /* m2/s [snapshots][nodes] operator times the snapshots */
    double *gram;       /*      [columns][columns] */
    double *values;     /*      [columns] */
    double *one, *grid; /*      scratch of a field */
} beside;

static void end_beside(beside *b, sk_memory *memory)
{
    sk_domain_free(&b->domain);
    void *pieces[] = {b->solid, b->fields, b->right, b->gram, b->values, b->one, b->grid};
    for (size_t n = 0; n < sizeof pieces / sizeof *pieces; n++)
        sk_release(memory, pieces[n]);
}

static selkie_code begin_beside(beside *b, const sk_step *step, int count, selkie_error *error)
{
    const int inner[2] = {step->grid.cells[0] - 1, step->grid.cells[1] - 1};
    const size_t nodes = (size_t)inner[0] * (size_t)inner[1], fields = (size_t)count;
    sk_memory *memory = step->memory;
    *b = (beside){.domain = {.memory = memory}, .nodes = nodes, .columns = count};
    b->solid = sk_allocate(memory, nodes + 1);
    b->fields = sk_allocate(memory, 2 * fields * nodes * sizeof(double));
    b->right = sk_allocate(memory, fields * nodes * sizeof(double));
    b->gram = sk_allocate(memory, fields * fields * sizeof(double));
    b->values = sk_allocate_zeroed(memory, (fields + 1) * sizeof(double));
    b->one = sk_allocate_zeroed(memory, (nodes + 1) * sizeof(double));
    b->grid = sk_allocate_zeroed(memory, (nodes + 1) * sizeof(double));
    if (!b->solid || !b->fields || !b->right || !b->gram || !b->values || !b->one || !b->grid)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for %d snapshots", count);
    sk_reduced_mark_solids(step, b->solid);
    return sk_domain_make(&b->domain, inner, b->solid, memory, error);
}

static double product(const double *a, const double *b, size_t count)
{
    double sum = 0.0;
    for (size_t n = 0; n < count; n++)
        sum += a[n] * b[n];
    return sum;
}

/* The circulation of a velocity field around the inner nodes, times h: what the operator makes of the stream function
 * of its part without divergence. Edges have the mean of the cells at both sides. */
static void circulations(const sk_reduced_spectrum *s, const double *u, const double *v, double *grid)
{
    const size_t row = (size_t)s->cells[1];
    const double h = s->size[0] / s->cells[0];
    for (size_t i = 1; i < (size_t)s->cells[0]; i++)
        for (size_t j = 1; j < row; j++) {
            const size_t a = (i - 1) * row + j - 1, b = a + 1, c = a + row, d = c + 1; /* cells around it */
            const double along = 0.5 * (u[a] + u[c] - u[b] - u[d]), up = 0.5 * (v[c] + v[d] - v[a] - v[b]);
            grid[(i - 1) * (row - 1) + j - 1] = h * (along + up);
        }
}

/* Takes the part of the snapshots that is free of divergence and enters no obstacle. Returns its energy. */
static double take_beside(beside *b, const sk_reduced_spectrum *s, const sk_snapshots *snapshots)
{
    const size_t middles = (size_t)s->cells[0] * (size_t)s->cells[1];
    double whole = 0.0;
    for (size_t f = 0; f < (size_t)snapshots->count; f++) {
        double *psi = b->fields + 2 * f * b->nodes, *right = psi + b->nodes;
        const double *u = snapshots->fields + f * 2 * middles;
        circulations(s, u, u + middles, b->grid);
        sk_domain_gather(&b->domain, b->grid, right);
        sk_domain_solve(&b->domain, right, psi);
        memcpy(b->right + f * b->nodes, right, b->nodes * sizeof *right);
        whole += product(psi, right, b->nodes);
    }
    return whole;
}

/* Turns the fields until products `of` them (0: energy, 1: enstrophy) are diagonal, the largest first. */
static void diagonalise(beside *b, int of)
{
    const size_t columns = (size_t)b->columns, nodes = b->nodes;
    for (size_t p = 0; p < columns; p++)
        for (size_t q = 0; q <= p; q++) {
            const double *left = b->fields + (2 * p + (size_t)of) * nodes, *right = b->fields + (2 * q + 1) * nodes;
            b->gram[p * columns + q] = b->gram[q * columns + p] = product(left, right, nodes);
        }
    sk_svd_columns(b->gram, b->columns, b->columns, b->values, b->fields, 2 * (int)nodes);
}

/* Orthonormal fields, of those with a singular value above `least`, at most `most`. */
static void keep_strongest(beside *b, double cut, int relative, int most)
{
    if (b->columns == 0)
        return;
    diagonalise(b, 0);
    const double least = cut * cut * (relative ? b->values[0] : 1.0);
    int kept = 0;
    while (kept < b->columns && kept < most && b->values[kept] > least) {
        const double scale = 1.0 / sqrt(b->values[kept]);
        for (size_t n = 0; n < 2 * b->nodes; n++)
            b->fields[2 * (size_t)kept * b->nodes + n] *= scale;
        kept++;
    }
    b->columns = kept;
}

/* The stream function of a further mode at the free nodes, from its velocities: along a diagonal of a cell it changes
 * by h (u - v), and it is 0 on the walls. */
static void recover(beside *b, const sk_reduced_spectrum *s, size_t mode)
{
    const size_t row = (size_t)s->cells[1], middles = (size_t)s->cells[0] * row;
    const double h = s->size[0] / s->cells[0], *u = s->extra.u + mode * middles, *v = s->extra.v + mode * middles;
    for (size_t i = 1; i < (size_t)s->cells[0]; i++)
        for (size_t j = 1; j < row; j++) {
            const size_t cell = (i - 1) * row + j - 1, node = (i - 1) * (row - 1) + j - 1;
            b->grid[node] = (i > 1 && j > 1 ? b->grid[node - row] : 0.0) + h * (u[cell] - v[cell]);
        }
    sk_domain_gather(&b->domain, b->grid, b->one);
}

/* Takes out what the eigenvectors contain (Eq. 5.10). Returns the energy of the snapshots in them. */
static double deflate_beside(beside *b, const sk_reduced_spectrum *s, int snapshots)
{
    const double h = s->size[0] / s->cells[0];
    double sum = 0.0;
    for (size_t k = 0; k < (size_t)s->extra.count; k++) {
        recover(b, s, k);
        for (size_t f = 0; f < (size_t)snapshots; f++) {
            const double part = product(b->one, b->right + f * b->nodes, b->nodes);
            sum += part * part;
        }
        for (size_t c = 0; c < (size_t)b->columns; c++) {
            double *psi = b->fields + 2 * c * b->nodes, *right = psi + b->nodes;
            const double part = product(b->one, right, b->nodes), lambda = s->lambda[s->closed + (int)k] * h * h;
            for (size_t n = 0; n < b->nodes; n++) {
                psi[n] -= part * b->one[n];
                right[n] -= part * lambda * b->one[n];
            }
        }
    }
    return sum;
}

/* Adds the fields as modes. Returns the energy of the snapshots in them. */
static double add_beside(beside *b, sk_reduced_spectrum *s, int snapshots)
{
    const double h = s->size[0] / s->cells[0];
    double sum = 0.0;
    for (size_t c = 0; c < (size_t)b->columns; c++) {
        const double *psi = b->fields + 2 * c * b->nodes, *right = psi + b->nodes;
        for (size_t f = 0; f < (size_t)snapshots; f++) {
            const double part = product(psi, b->right + f * b->nodes, b->nodes);
            sum += part * part;
        }
        sk_domain_spread(&b->domain, psi, 1.0, 1, b->one);
        sk_domain_spread(&b->domain, right, 1.0 / (h * h), 0, b->grid);
        sk_reduced_add_stream(s, b->values[c] / (h * h), b->one, b->grid, b->solid);
    }
    s->extra.are_eigenfunctions &= b->columns == 0;
    return sum;
}

static selkie_code add_snapshots_beside(sk_reduced *reduced, const sk_step *step, const sk_snapshots *snapshots,
                                        sk_snapshot_report *report, selkie_error *error)
{
    sk_reduced_spectrum *s = &reduced->spectrum;
    const int before = s->count;
    double whole = 0.0;
    beside b;
    selkie_code code = begin_beside(&b, step, snapshots->count, error);
    if (code == SELKIE_OK) {
        whole = take_beside(&b, s, snapshots);
        if (!(whole > 0.0))
            code = at_rest(error);
    }
    if (code == SELKIE_OK) {
        keep_strongest(&b, snapshots->cut, 1, snapshots->most);
        report->plain = deflate_beside(&b, s, snapshots->count) / whole;
        keep_strongest(&b, snapshots->cut, 0, b.columns);
        diagonalise(&b, 1);
        report->modes = b.columns;
        code = grow(s, b.columns, error);
    }
    if (code == SELKIE_OK) {
        report->kept = report->plain + add_beside(&b, s, snapshots->count) / whole;
        code = name_modes(reduced, before, report->modes, step->memory, error);
    }
    end_beside(&b, step->memory);
    return code;
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
        return add_snapshots_beside(reduced, step, snapshots, report, error);
    box.modes = s->closed;
    selkie_code code = sk_enrich_begin(&e, &box, snapshots->count, step->threads, step->memory, error);
    if (code == SELKIE_OK)
        code = take_fields(&e, snapshots, &whole, error);
    if (code == SELKIE_OK && !(whole > 0.0))
        code = at_rest(error);
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
