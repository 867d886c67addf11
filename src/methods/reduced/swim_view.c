/* Velocities of the sheets at the nodes of the cells.
 *
 * The sum over all images is split. A smooth part, of vortices with a Gaussian core, is a short sum of fine modes,
 * which contain the images. What the cores lack decays like exp(-r^2 / 2 core^2) and is added at the nodes around each
 * panel, with the exact velocity of the panel, and around its mirror images beside near walls.
 */
#include <math.h>

#include "methods/reduced/swim.h"
#include "rigid/rigid.h"

typedef sk_swim_piece piece;

typedef struct view {
    sk_swim *swim;
    const sk_reduced_spectrum *fine;
    double *const *nodes;
    const double *h;
    double core, reach;
} view;

static void add_piece(const view *v, const piece *p)
{
    int low[2], high[2];
    for (int d = 0; d < 2; d++) {
        const double from = fmin(p->at[0][d], p->at[2][d]) - v->reach, to = fmax(p->at[0][d], p->at[2][d]) + v->reach;
        low[d] = (int)fmax(ceil(from / v->h[d]), 0.0);
        high[d] = (int)fmin(floor(to / v->h[d]), v->fine->cells[d]);
    }
    for (int i = low[0]; i <= high[0]; i++)
        for (int j = low[1]; j <= high[1]; j++) {
            const double x[2] = {i * v->h[0], j * v->h[1]};
            const size_t n = (size_t)i * (size_t)(v->fine->cells[1] + 1) + (size_t)j;
            double velocity[2];
            sk_swim_lacking(p, &v->swim->scale, x, velocity);
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
    const double reach = v->reach;
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
        sk_swim_near_add(v->swim, &image);
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
    const view v = {.swim = swim,
                    .fine = fine,
                    .nodes = nodes,
                    .h = swim->scale.h,
                    .core = swim->scale.core,
                    .reach = swim->scale.reach};
    sk_swim_flow *flow = sk_swim_near_begin(swim);

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
        for (int n = 0; n < count; n++) {
            nodes[d][n] += fine->grid[d][n];
            flow->smooth[2 * n + d] = (float)nodes[d][n];
        }

    /* What is left of it near the panels, and the bodies themselves. */
    for (int b = 0; b < c->body_count; b++)
        for (int n = c->first[b]; n < c->first[b + 1]; n++)
            add_panel(&v, c, b, n);
    for (int b = 0; b < c->body_count; b++)
        fill_body(&v, step, c, b);
    sk_swim_near_end(swim, step);
}
