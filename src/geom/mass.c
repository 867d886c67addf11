/* Mass properties of shapes.
 *
 * Every method sums volume, first and second moments about a nearby point. finish() turns these sums into the centre
 * and the inertia. */
#include "geom/mass.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "geom/shape_internal.h"

typedef struct moments {
    double about[3]; /* m */
    double volume;
    double first[3];
    double second[9]; /* sum of x x^T */
} moments;

static void add_point_mass(moments *m, double volume, const double x[3])
{
    m->volume += volume;
    for (int i = 0; i < 3; i++) {
        m->first[i] += volume * x[i];
        for (int j = 0; j < 3; j++)
            m->second[3 * i + j] += volume * x[i] * x[j];
    }
}

/* The simplex of the origin and `dimension` corners, of signed volume: the integral of x x^T over a simplex of n + 1
 * corners v is V / ((n + 1) (n + 2)) (s s^T + sum v v^T) with s their sum. */
static void add_simplex(moments *m, int dimension, double volume, double corners[3][3])
{
    double sum[3] = {0, 0, 0}, share = volume / ((dimension + 1.0) * (dimension + 2.0));
    for (int c = 0; c < dimension; c++)
        for (int i = 0; i < 3; i++)
            sum[i] += corners[c][i];
    m->volume += volume;
    for (int i = 0; i < 3; i++) {
        m->first[i] += volume * sum[i] / (dimension + 1.0);
        for (int j = 0; j < 3; j++) {
            double products = sum[i] * sum[j];
            for (int c = 0; c < dimension; c++)
                products += corners[c][i] * corners[c][j];
            m->second[3 * i + j] += share * products;
        }
    }
}

/* Divergence theorem: cones from one point over the surface, with their sign. */
static void mesh_moments(const sk_shape *shape, moments *m)
{
    size_t count = sk_mesh_distance_piece_count(shape->mesh);
    for (size_t p = 0; p < count; p++) {
        double c[3][3] = {{0}};
        sk_mesh_distance_piece(shape->mesh, p, c);
        for (int i = 0; i < shape->dimension; i++)
            for (int a = 0; a < 3; a++)
                c[i][a] = a < shape->dimension ? c[i][a] - m->about[a] : 0.0;
        double volume;
        if (shape->dimension == 2)
            volume = 0.5 * (c[0][0] * c[1][1] - c[0][1] * c[1][0]);
        else
            volume =
                (c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[2][1]) + c[0][1] * (c[1][2] * c[2][0] - c[1][0] * c[2][2]) +
                 c[0][2] * (c[1][0] * c[2][1] - c[1][1] * c[2][0])) /
                6.0;
        add_simplex(m, shape->dimension, volume, c);
    }
    if (m->volume < 0.0) { /* drawn inside out */
        m->volume = -m->volume;
        for (int i = 0; i < 3; i++)
            m->first[i] = -m->first[i];
        for (int i = 0; i < 9; i++)
            m->second[i] = -m->second[i];
    }
}

/* A lattice of small cells. The distance of a cell's centre gives its filled fraction: second order in the cell. */
static void sampled_moments(const sk_shape *shape, const double low[3], const double high[3], moments *m)
{
    const int along_longest = shape->dimension == 3 ? 80 : 500;
    double longest = 0.0;
    int count[3] = {1, 1, 1};
    for (int d = 0; d < shape->dimension; d++)
        longest = fmax(longest, high[d] - low[d]);
    double cell = longest / along_longest;
    double volume = shape->dimension == 3 ? cell * cell * cell : cell * cell;
    for (int d = 0; d < shape->dimension; d++)
        count[d] = (int)ceil((high[d] - low[d]) / cell - 1e-9) + 2;
    for (int k = 0; k < count[2]; k++)
        for (int j = 0; j < count[1]; j++)
            for (int i = 0; i < count[0]; i++) {
                const int index[3] = {i, j, k};
                double x[3] = {0, 0, 0}, from_center[3] = {0, 0, 0};
                for (int d = 0; d < shape->dimension; d++) {
                    x[d] = low[d] + (index[d] - 0.5) * cell;
                    from_center[d] = x[d] - m->about[d];
                }
                double share = 0.5 - sk_shape_distance(shape, x) / cell;
                if (share > 0.0)
                    add_point_mass(m, volume * fmin(share, 1.0), from_center);
            }
}

static void finish(const moments *m, int dimension, sk_mass_properties *mass)
{
    double spread[9], trace = 0.0;
    mass->volume = m->volume;
    for (int i = 0; i < 3; i++) {
        double offset = m->first[i] / m->volume;
        mass->center[i] = i < dimension ? m->about[i] + offset : 0.0;
        for (int j = 0; j < 3; j++)
            spread[3 * i + j] = m->second[3 * i + j] - offset * m->first[j];
        trace += spread[4 * i];
    }
    for (int i = 0; i < 9; i++)
        mass->inertia[i] = (i % 4 == 0 ? trace : 0.0) - spread[i];
}

static void set_inertia(sk_mass_properties *mass, const double axes[3][3], const double spread[3])
{
    double trace = spread[0] + spread[1] + spread[2];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double sum = i == j ? trace : 0.0;
            for (int a = 0; a < 3; a++)
                sum -= spread[a] * axes[a][i] * axes[a][j];
            mass->inertia[3 * i + j] = sum;
        }
}

/* `spread`: mean square of the coordinate along each axis of the body, times the volume. */
static void primitive_mass(const sk_shape *shape, sk_mass_properties *mass)
{
    double axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, spread[3] = {0, 0, 0};
    const double pi = 3.14159265358979323846;
    int solid = shape->dimension == 3;
    memcpy(mass->center, shape->center, sizeof mass->center);

    /* Volume, axes and spread, by the kind of shape. */
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        mass->volume = 4.0 * shape->half[0] * shape->half[1] * (solid ? 2.0 * shape->half[2] : 1.0);
        for (int i = 0; i < shape->dimension; i++)
            spread[i] = mass->volume * shape->half[i] * shape->half[i] / 3.0;
        break;
    case SELKIE_SHAPE_SPHERE:
        mass->volume = solid ? 4.0 / 3.0 * pi * pow(shape->radius, 3) : pi * shape->radius * shape->radius;
        for (int i = 0; i < shape->dimension; i++)
            spread[i] = mass->volume * shape->radius * shape->radius / (solid ? 5.0 : 4.0);
        break;
    default: /* a cylinder; in 2D a bar */
        memcpy(axes[0], shape->axis, sizeof axes[0]);
        memcpy(axes[1], shape->side, sizeof axes[1]);
        for (int i = 0; i < 3; i++)
            axes[2][i] = axes[0][(i + 1) % 3] * axes[1][(i + 2) % 3] - axes[0][(i + 2) % 3] * axes[1][(i + 1) % 3];
        mass->volume = 2.0 * shape->half_length * (solid ? pi * shape->radius * shape->radius : 2.0 * shape->radius);
        spread[0] = mass->volume * shape->half_length * shape->half_length / 3.0;
        spread[1] = mass->volume * shape->radius * shape->radius / (solid ? 4.0 : 3.0);
        spread[2] = solid ? spread[1] : 0.0;
        break;
    }

    /* The inertia in the axes of the scene. */
    set_inertia(mass, (const double(*)[3])axes, spread);
}

selkie_code sk_shape_mass(const sk_shape *shape, const char *what, sk_mass_properties *mass, selkie_error *error)
{
    double low[3], high[3];

    /* Infinite shapes have no mass. */
    memset(mass, 0, sizeof *mass);
    sk_shape_bounds(shape, low, high);
    for (int d = 0; d < shape->dimension; d++)
        if (!isfinite(low[d]) || !isfinite(high[d]))
            return sk_fail(
                error, SELKIE_ERROR_INPUT,
                "%s: an infinite shape (half space, wave, height field) has no mass: a body needs a finite one", what);

    /* Exact for primitives, closed meshes and 2D meshes, sampled for other shapes. */
    if (shape->kind == SELKIE_SHAPE_UNION && shape->child_count == 1)
        return sk_shape_mass(shape->children[0], what, mass, error);
    if (shape->kind != SELKIE_SHAPE_MESH && shape->kind != SELKIE_SHAPE_UNION) {
        primitive_mass(shape, mass);
    } else {
        moments m = {.volume = 0.0};
        for (int d = 0; d < shape->dimension; d++)
            m.about[d] = 0.5 * (low[d] + high[d]);
        if (shape->kind == SELKIE_SHAPE_MESH && (shape->dimension == 2 || sk_mesh_distance_closed(shape->mesh)))
            mesh_moments(shape, &m);
        else
            sampled_moments(shape, low, high, &m);
        if (m.volume > 0.0)
            finish(&m, shape->dimension, mass);
    }

    /* Flat shapes have no volume. */
    if (!(mass->volume > 0.0) || !isfinite(mass->volume))
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: a body needs a volume above 0, this one has %g", what,
                       mass->volume);
    return SELKIE_OK;
}
