/* Velocities of the sheets at the nodes of the cells.
 *
 * The sum over all images is split. A smooth part, of vortices with a Gaussian core, is a short sum of fine modes,
 * which contain the images. What the cores lack decays like exp(-r^2 / 2 core^2) and is added at the nodes around each
 * panel, with the exact velocity of the panel, and around its mirror images beside near walls.
 */
#include <math.h>

#include "methods/reduced/panel_kernels.h"
#include "methods/reduced/swim.h"
#include "rigid/rigid.h"

static const double core_cells = 1.1;  /* radius of a core, cells */
static const double reach_cores = 4.0; /* beyond, a core is a point */

/* One panel, or a mirror image of it. */
typedef struct piece {
    double begin[2], tangent[2]; /* m */
    double length, strength;     /* m, m/s */
    double at[3][2];             /* m     begin, middle and end, */
    double circulation[3];       /* m2/s  with Simpson's weights */
} piece;

typedef struct view {
    const sk_reduced_spectrum *fine;
    double *const *nodes;
    double h[2], core;
} view;

/* What the cores lack at a point: the panel itself less its three cores. */
static void lacking(const piece *p, double core, const double x[2], double velocity[2])
{
    const double dx = x[0] - p->begin[0], dy = x[1] - p->begin[1];
    double local[2];
    sk_panel_velocity(dx * p->tangent[0] + dy * p->tangent[1], dy * p->tangent[0] - dx * p->tangent[1], p->length,
                      local);
    velocity[0] = p->strength * (local[0] * p->tangent[0] - local[1] * p->tangent[1]);
    velocity[1] = p->strength * (local[0] * p->tangent[1] + local[1] * p->tangent[0]);
    for (int n = 0; n < 3; n++) {
        const double rx = x[0] - p->at[n][0], ry = x[1] - p->at[n][1], square = rx * rx + ry * ry + 1e-300;
        const double factor = -SK_INVERSE_TWO_PI * p->circulation[n] * expm1(-square / (2.0 * core * core)) / square;
        velocity[0] += factor * ry;
        velocity[1] -= factor * rx;
    }
}

static void add_piece(const view *v, const piece *p)
{
    int low[2], high[2];
    for (int d = 0; d < 2; d++) {
        const double from = fmin(p->at[0][d], p->at[2][d]) - reach_cores * v->core,
                     to = fmax(p->at[0][d], p->at[2][d]) + reach_cores * v->core;
        low[d] = (int)fmax(ceil(from / v->h[d]), 0.0);
        high[d] = (int)fmin(floor(to / v->h[d]), v->fine->cells[d]);
    }
    for (int i = low[0]; i <= high[0]; i++)
        for (int j = low[1]; j <= high[1]; j++) {
            const double x[2] = {i * v->h[0], j * v->h[1]};
            const size_t n = (size_t)i * (size_t)(v->fine->cells[1] + 1) + (size_t)j;
            double velocity[2];
            lacking(p, v->core, x, velocity);
            v->nodes[0][n] += velocity[0];
            v->nodes[1][n] += velocity[1];
        }
}

/* The image of a piece behind the low or high end of an axis: a mirror image runs the other way around; a periodic
 * image is a copy. */
static void mirror(const sk_coupling *c, int d, int high, piece *p)
{
    const double size = c->images.size[d];
    if (!c->images.closed[d]) {
        p->begin[d] += high ? size : -size;
        for (int n = 0; n < 3; n++)
            p->at[n][d] += high ? size : -size;
        return;
    }
    const double sum = high ? 2.0 * size : 0.0;
    p->begin[d] = sum - p->begin[d];
    p->tangent[d] = -p->tangent[d];
    p->strength = -p->strength;
    for (int n = 0; n < 3; n++) {
        p->at[n][d] = sum - p->at[n][d];
        p->circulation[n] = -p->circulation[n];
    }
}

/* A piece and its images within reach of the box: at most one along each axis. A periodic copy appears at the side
 * opposite to the near one. */
static void add_with_images(const view *v, const sk_coupling *c, const piece *p)
{
    const double reach = reach_cores * v->core;
    int near[2], high[2] = {0, 0};
    for (int d = 0; d < 2; d++) {
        const double from = fmin(p->at[0][d], p->at[2][d]), to = fmax(p->at[0][d], p->at[2][d]);
        const int low_end = from<reach, high_end = to> c->images.size[d] - reach;
        near[d] = low_end || high_end;
        high[d] = c->images.closed[d] ? high_end : low_end;
    }
    for (int images = 0; images < 4; images++) {
        piece image = *p;
        if ((images & 1 && !near[0]) || (images & 2 && !near[1]))
            continue;
        for (int d = 0; d < 2; d++)
            if (images >> d & 1)
                mirror(c, d, high[d], &image);
        add_piece(v, &image);
    }
}

static void add_panel(const view *v, const sk_coupling *c, int b, int n)
{
    const int next = n + 1 < c->first[b + 1] ? n + 1 : c->first[b];
    const double length = c->panels[b].length[n - c->first[b]];
    piece p = {.length = length, .strength = c->strength[n]};
    for (int d = 0; d < 2; d++) {
        p.begin[d] = p.at[0][d] = c->corner[n][d];
        p.at[1][d] = c->middle[n][d];
        p.at[2][d] = c->corner[next][d];
        p.tangent[d] = (c->corner[next][d] - c->corner[n][d]) / length;
    }
    p.circulation[0] = p.circulation[2] = c->circulation[n] / 6.0;
    p.circulation[1] = 4.0 * c->circulation[n] / 6.0;
    add_with_images(v, c, &p);
}

/* Nodes inside a body move along with it. */
static void fill_body(const view *v, const sk_step *step, const sk_coupling *c, int b)
{
    const sk_rigid_state *state = &step->rigid->states[b];
    const double reach = c->panels[b].reach;
    int low[2], high[2];
    for (int d = 0; d < 2; d++) {
        low[d] = (int)fmax(ceil((state->position[d] - reach) / v->h[d]), 0.0);
        high[d] = (int)fmin(floor((state->position[d] + reach) / v->h[d]), v->fine->cells[d]);
    }
    for (int i = low[0]; i <= high[0]; i++)
        for (int j = low[1]; j <= high[1]; j++) {
            const double x[3] = {i * v->h[0], j * v->h[1], 0.0};
            const size_t n = (size_t)i * (size_t)(v->fine->cells[1] + 1) + (size_t)j;
            if (!(sk_obstacle_distance(step->rigid->bodies[b].shape, &step->rigid->bodies[b].pose, x, NULL) < 0.0))
                continue;
            v->nodes[0][n] = state->velocity[0] - state->angular_velocity[2] * (x[1] - state->position[1]);
            v->nodes[1][n] = state->velocity[1] + state->angular_velocity[2] * (x[0] - state->position[0]);
        }
}

void sk_swim_show(sk_swim *swim, const sk_step *step, double *const nodes[2])
{
    sk_coupling *c = &swim->coupling;
    sk_reduced_spectrum *fine = &swim->fine;
    const int count = (fine->cells[0] + 1) * (fine->cells[1] + 1);
    view v = {.fine = fine, .nodes = nodes};
    for (int d = 0; d < 2; d++)
        v.h[d] = fine->size[d] / fine->cells[d];
    v.core = core_cells * fmax(v.h[0], v.h[1]);

    /* The smooth part. */
    sk_swim_spread(swim);
    for (int n = 0; n < c->count; n++) {
        sk_mode_points_place(&swim->shown, fine, n, c->middle[n]);
        sk_mode_points_place(&swim->shown, fine, c->count + n, c->corner[n]);
    }
    for (int k = 0; k < fine->count; k++)
        swim->sheet[k] = 0.0;
    sk_mode_points_add(&swim->shown, fine, swim->circulation, swim->sheet);
    for (int k = 0; k < fine->count; k++)
        swim->sheet[k] *= exp(-0.5 * v.core * v.core * fine->lambda[k]);
    sk_reduced_velocities(fine, swim->sheet, (double *const[2]){fine->grid[0], fine->grid[1]}, step->threads);
    for (int d = 0; d < 2; d++)
        for (int n = 0; n < count; n++)
            nodes[d][n] += fine->grid[d][n];

    /* What is left of it near the panels, and the bodies themselves. */
    for (int b = 0; b < c->body_count; b++)
        for (int n = c->first[b]; n < c->first[b + 1]; n++)
            add_panel(&v, c, b, n);
    for (int b = 0; b < c->body_count; b++)
        fill_body(&v, step, c, b);
}
