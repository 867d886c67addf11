#include "methods/reduced/panels.h"

#include <math.h>
#include <string.h>

#include "linalg/dense.h"
#include "methods/reduced/panel_kernels.h"

static void to_panel(const sk_panels *p, int j, const double x[2], double local[2])
{
    const double dx = x[0] - p->corner[j][0], dy = x[1] - p->corner[j][1];
    local[0] = dx * p->tangent[j][0] + dy * p->tangent[j][1];
    local[1] = dy * p->tangent[j][0] - dx * p->tangent[j][1];
}

double sk_panels_stream(const sk_panels *p, int j, const double x[2])
{
    double local[2];
    to_panel(p, j, x, local);
    return sk_panel_stream(local[0], local[1], p->length[j]);
}

double sk_panels_stream_beside(const sk_panels *p, int j, const double x[2], double gap)
{
    double local[2];
    to_panel(p, j, x, local);
    return sk_panel_stream(local[0], sqrt(local[1] * local[1] + gap * gap), p->length[j]);
}

void sk_panels_velocity(const sk_panels *p, int j, const double x[2], double velocity[2])
{
    double local[2], u[2];
    to_panel(p, j, x, local);
    sk_panel_velocity(local[0], local[1], p->length[j], u);
    velocity[0] = u[0] * p->tangent[j][0] - u[1] * p->tangent[j][1];
    velocity[1] = u[0] * p->tangent[j][1] + u[1] * p->tangent[j][0];
}

void sk_panels_strengths(const sk_panels *p, const double *minus_stream, double *strengths)
{
    for (int i = 0; i < p->count; i++) {
        const double *row = p->inverse + (size_t)i * (size_t)p->count;
        double sum = 0.0;
        for (int j = 0; j < p->count; j++)
            sum += row[j] * minus_stream[j];
        strengths[i] = sum;
    }
}

/* --- Making --- */

static void measure(sk_panels *p, const double (*corners)[2], const double center[2])
{
    for (int j = 0; j < p->count; j++)
        for (int d = 0; d < 2; d++)
            p->corner[j][d] = corners[j][d] - center[d];
    for (int j = 0; j < p->count; j++) {
        const double *a = p->corner[j], *b = p->corner[(j + 1) % p->count];
        p->length[j] = hypot(b[0] - a[0], b[1] - a[1]);
        for (int d = 0; d < 2; d++) {
            p->middle[j][d] = 0.5 * (a[d] + b[d]);
            p->tangent[j][d] = (b[d] - a[d]) / p->length[j];
        }
        p->arm[j] = -p->middle[j][0] * p->tangent[j][0] - p->middle[j][1] * p->tangent[j][1];
        p->area += 0.5 * (a[0] * b[1] - a[1] * b[0]);
        p->perimeter += p->length[j];
        p->reach = fmax(p->reach, hypot(a[0], a[1]));
        p->longest = fmax(p->longest, p->length[j]);
    }
}

/* Panel j at middle i. On its own middle the logarithm is taken along the panel. */
static double stream_on(const sk_panels *p, int i, int j)
{
    return i == j ? sk_panel_stream(0.5 * p->length[j], 0.0, p->length[j]) : sk_panels_stream(p, j, p->middle[i]);
}

/* The inverse of the collocation, without the row and column of the constant. */
static selkie_code invert(sk_panels *p, const char *what, selkie_error *error)
{
    const int n = p->count + 1;
    const size_t width = (size_t)n;
    double *matrix = sk_allocate_zeroed(p->memory, width * width * sizeof *matrix);
    double *vector = sk_allocate(p->memory, 2 * width * sizeof *vector);
    int *rows = sk_allocate(p->memory, width * sizeof *rows);
    selkie_code code = SELKIE_OK;
    if (!matrix || !vector || !rows)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %d panels", what, p->count);

    for (int i = 0; i < p->count && code == SELKIE_OK; i++) {
        for (int j = 0; j < p->count; j++)
            matrix[(size_t)i * width + (size_t)j] = stream_on(p, i, j);
        matrix[(size_t)i * width + (size_t)p->count] = -p->perimeter;
        matrix[(size_t)p->count * width + (size_t)i] = p->length[i];
    }
    if (code == SELKIE_OK && !sk_lu_factor(n, matrix, rows))
        code = sk_fail(error, SELKIE_ERROR_INPUT, "%s: the outline is degenerate; its corners must be apart", what);
    for (int j = 0; j < p->count && code == SELKIE_OK; j++) {
        memset(vector, 0, width * sizeof *vector);
        vector[j] = 1.0;
        sk_lu_solve(n, matrix, rows, vector, vector + n);
        for (int i = 0; i < p->count; i++)
            p->inverse[(size_t)i * (size_t)p->count + (size_t)j] = vector[i];
    }
    sk_release(p->memory, matrix);
    sk_release(p->memory, vector);
    sk_release(p->memory, rows);
    return code;
}

/* Stream function (m2/s) of motion a at unit speed: along x, along y, rotation. */
static double stream_of(int a, const double x[2])
{
    return a == 0 ? x[1] : a == 1 ? -x[0] : -0.5 * (x[0] * x[0] + x[1] * x[1]);
}

/* Velocity along the outside of panel i (m/s) of motion a. Liquid inside the sheet of a translation moves along with
 * the body: the strength is all of the slip. In a rotation the outside has half of the own strength beyond the mean. */
static double slide_of(const sk_panels *p, int a, int i, const double *strength)
{
    if (a < 2)
        return strength[i] + p->tangent[i][a];
    double slide = 0.5 * strength[i];
    for (int j = 0; j < p->count; j++) {
        double u[2];
        if (j == i)
            continue;
        sk_panels_velocity(p, j, p->middle[i], u);
        slide += strength[j] * (u[0] * p->tangent[i][0] + u[1] * p->tangent[i][1]);
    }
    return slide;
}

/* Twice the kinetic energy outside is the closed integral of the stream function times the velocity along it. A
 * circulation left by rounding and quadrature is taken out. */
static selkie_code find_added_mass(sk_panels *p, const char *what, selkie_error *error)
{
    double *stream = sk_allocate(p->memory, 3 * (size_t)p->count * sizeof *stream), full[3][3] = {{0}};
    if (!stream)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %d panels", what, p->count);
    double *strength = stream + p->count, *slide = strength + p->count;
    for (int a = 0; a < 3; a++) {
        double circulation = 0.0;
        for (int i = 0; i < p->count; i++)
            stream[i] = stream_of(a, p->middle[i]);
        sk_panels_strengths(p, stream, strength);
        for (int i = 0; i < p->count; i++) {
            slide[i] = slide_of(p, a, i, strength);
            circulation += slide[i] * p->length[i];
        }
        for (int b = 0; b < 3; b++)
            for (int i = 0; i < p->count; i++)
                full[a][b] += stream_of(b, p->middle[i]) * (slide[i] - circulation / p->perimeter) * p->length[i];
    }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            p->added[a][b] = 0.5 * (full[a][b] + full[b][a]);
    p->added[2][2] = fmax(p->added[2][2], 0.0);
    sk_release(p->memory, stream);
    return SELKIE_OK;
}

selkie_code sk_panels_make(sk_panels *p, int count, const double (*corners)[2], const double center[2],
                           const char *what, sk_memory *memory, selkie_error *error)
{
    const size_t n = (size_t)count;
    memset(p, 0, sizeof *p);
    p->memory = memory;
    p->count = count;
    p->corner = sk_allocate(memory, n * sizeof *p->corner);
    p->middle = sk_allocate(memory, n * sizeof *p->middle);
    p->tangent = sk_allocate(memory, n * sizeof *p->tangent);
    p->length = sk_allocate(memory, n * sizeof *p->length);
    p->arm = sk_allocate(memory, n * sizeof *p->arm);
    p->inverse = sk_allocate(memory, n * n * sizeof *p->inverse);
    if (!p->corner || !p->middle || !p->tangent || !p->length || !p->arm || !p->inverse)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %d panels", what, count);
    measure(p, corners, center);
    for (int j = 0; j < count; j++)
        if (!(p->length[j] > 1e-9 * p->perimeter))
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s: two corners of the outline are in one place", what);
    if (!(p->area > 0.0))
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: the outline must go counter-clockwise around an area", what);
    SK_TRY(invert(p, what, error));
    return find_added_mass(p, what, error);
}

void sk_panels_free(sk_panels *p)
{
    void *pieces[] = {p->corner, p->middle, p->tangent, p->length, p->arm, p->inverse};
    for (size_t n = 0; n < sizeof pieces / sizeof *pieces; n++)
        sk_release(p->memory, pieces[n]);
    memset(p, 0, sizeof *p);
}
