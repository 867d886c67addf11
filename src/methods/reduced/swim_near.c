/* Tracers beside bodies.
 *
 * Velocities at the nodes of the cells jump across a body: nodes inside move along with it, and both sides of a thin
 * one share a cell. Tracers within a shell around a body use the smooth part of the flow, by cubic interpolation
 * between the nodes, and the panels themselves.
 */
#include <math.h>
#include <string.h>

#include "geom/shape.h"
#include "methods/reduced/panel_kernels.h"
#include "methods/reduced/swim.h"
#include "rigid/rigid.h"

static const double core_cells = 1.1;  /* radius of a core, cells */
static const double reach_cores = 4.0; /* beyond, a core is a point */
static const double shell_cells = 2.5; /* within it, the nodes do not resolve the flow */

/* --- Life --- */

selkie_code sk_swim_near_make(sk_swim *swim, const sk_step *step, selkie_error *error)
{
    const sk_reduced_spectrum *fine = &swim->fine;
    const sk_coupling *c = &swim->coupling;
    sk_near_scale *scale = &swim->scale;
    double longest = 0.0, larger = 0.0;
    for (int d = 0; d < 2; d++) {
        scale->h[d] = fine->size[d] / fine->cells[d];
        larger = fmax(larger, scale->h[d]);
    }
    for (int b = 0; b < c->body_count; b++)
        for (int i = 0; i < c->panels[b].count; i++)
            longest = fmax(longest, c->panels[b].length[i]);
    scale->core = core_cells * larger;
    scale->reach = reach_cores * scale->core;
    scale->shell = shell_cells * larger;
    scale->bin = 2.0 * scale->reach + longest; /* a piece lies in at most four bins */
    for (int d = 0; d < 2; d++)
        swim->bins[d] = (int)(fine->size[d] / scale->bin) + 1;
    swim->most_pieces = 4 * c->count;
    swim->most_items = 4 * swim->most_pieces;

    const size_t nodes = (size_t)(fine->cells[0] + 1) * (size_t)(fine->cells[1] + 1),
                 bins = (size_t)swim->bins[0] * (size_t)swim->bins[1];
    for (int n = 0; n < 2; n++) {
        sk_swim_flow *f = &swim->flows[n];
        f->smooth = sk_allocate_zeroed(step->memory, 2 * nodes * sizeof *f->smooth);
        f->pieces = sk_allocate_zeroed(step->memory, (size_t)swim->most_pieces * sizeof *f->pieces);
        f->first = sk_allocate_zeroed(step->memory, (bins + 2) * sizeof *f->first);
        f->items = sk_allocate_zeroed(step->memory, (size_t)swim->most_items * sizeof *f->items);
        f->motion = sk_allocate_zeroed(step->memory, (size_t)c->body_count * sizeof *f->motion);
        f->poses = sk_allocate_zeroed(step->memory, (size_t)c->body_count * sizeof *f->poses);
        f->near = sk_allocate_zeroed(step->memory, nodes);
        if (!f->smooth || !f->pieces || !f->first || !f->items || !f->motion || !f->poses || !f->near)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for tracers beside %d panels", c->count);
    }
    return SELKIE_OK;
}

void sk_swim_near_free(sk_swim *swim, sk_memory *memory)
{
    for (int n = 0; n < 2; n++) {
        sk_swim_flow *f = &swim->flows[n];
        void *pieces[] = {f->smooth, f->pieces, f->first, f->items, f->motion, f->poses, f->near};
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
            sk_release(memory, pieces[p]);
    }
}

/* --- A new time --- */

sk_swim_flow *sk_swim_near_begin(sk_swim *swim)
{
    swim->now = !swim->now;
    swim->flows[swim->now].piece_count = 0;
    return &swim->flows[swim->now];
}

void sk_swim_near_add(sk_swim *swim, const sk_swim_piece *piece)
{
    sk_swim_flow *f = &swim->flows[swim->now];
    if (f->piece_count < swim->most_pieces)
        f->pieces[f->piece_count++] = *piece;
}

/* The bins that a piece reaches, from low to high along each axis. */
static void bins_of(const sk_swim *swim, const sk_swim_piece *p, int low[2], int high[2])
{
    for (int d = 0; d < 2; d++) {
        const double from = fmin(p->at[0][d], p->at[2][d]) - swim->scale.reach,
                     to = fmax(p->at[0][d], p->at[2][d]) + swim->scale.reach;
        low[d] = (int)fmax(floor(from / swim->scale.bin), 0.0);
        high[d] = (int)fmin(floor(to / swim->scale.bin), swim->bins[d] - 1.0);
    }
}

static void sort_pieces(sk_swim *swim)
{
    sk_swim_flow *f = &swim->flows[swim->now];
    const int bins = swim->bins[0] * swim->bins[1];
    int low[2], high[2];
    memset(f->first, 0, ((size_t)bins + 2) * sizeof *f->first);
    for (int pass = 0; pass < 2; pass++) {
        for (int n = 0; n < f->piece_count; n++) {
            bins_of(swim, &f->pieces[n], low, high);
            for (int j = low[1]; j <= high[1]; j++)
                for (int i = low[0]; i <= high[0]; i++) {
                    const int b = j * swim->bins[0] + i;
                    if (pass == 0)
                        f->first[b + 2]++;
                    else if (f->first[b + 1] < swim->most_items)
                        f->items[f->first[b + 1]++] = n;
                }
        }
        for (int b = 2; b < bins + 2 && pass == 0; b++)
            f->first[b] += f->first[b - 1];
    }
}

static void mark_cells(sk_swim *swim, const sk_step *step)
{
    sk_swim_flow *f = &swim->flows[swim->now];
    const sk_coupling *c = &swim->coupling;
    const int *cells = swim->fine.cells;
    memset(f->near, 0, (size_t)cells[0] * (size_t)cells[1]);
    for (int b = 0; b < c->body_count; b++) {
        const double reach = c->panels[b].reach + swim->scale.shell;
        int low[2], high[2];
        const sk_rigid_state *s = &step->rigid->states[b];
        const double motion[6] = {s->position[0], s->position[1], c->place[b][2],
                                  s->velocity[0], s->velocity[1], s->angular_velocity[2]};
        f->poses[b] = step->rigid->bodies[b].pose;
        memcpy(f->motion[b], motion, sizeof motion);
        for (int d = 0; d < 2; d++) {
            const double x = step->rigid->states[b].position[d];
            low[d] = (int)fmax(floor((x - reach) / swim->scale.h[d]), 0.0);
            high[d] = (int)fmin(floor((x + reach) / swim->scale.h[d]), cells[d] - 1.0);
        }
        for (int i = low[0]; i <= high[0]; i++)
            for (int j = low[1]; j <= high[1]; j++)
                f->near[(size_t)i * (size_t)cells[1] + (size_t)j] = 1;
    }
}

void sk_swim_near_end(sk_swim *swim, const sk_step *step)
{
    sort_pieces(swim);
    mark_cells(swim, step);
}

/* --- Velocities --- */

void sk_swim_lacking(const sk_swim_piece *p, double core, const double x[2], double velocity[2])
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

/* Weights of four points at -1, 0, 1, 2 for a value at t: Lagrange's cubic. */
static void cubic_weights(double t, double w[4])
{
    w[0] = -t * (t - 1.0) * (t - 2.0) / 6.0;
    w[1] = (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0;
    w[2] = -(t + 1.0) * t * (t - 2.0) / 2.0;
    w[3] = (t + 1.0) * t * (t - 1.0) / 6.0;
}

static void smooth_velocity(const sk_swim *swim, const sk_swim_flow *f, const double x[2], double velocity[2])
{
    const int *cells = swim->fine.cells;
    double w[2][4];
    int first[2];
    for (int d = 0; d < 2; d++) {
        const double g = fmin(fmax(x[d] / swim->scale.h[d], 0.0), cells[d]);
        first[d] = (int)g - 1;
        first[d] = first[d] < 0 ? 0 : first[d] > cells[d] - 3 ? cells[d] - 3 : first[d];
        cubic_weights(g - (first[d] + 1), w[d]);
    }
    velocity[0] = velocity[1] = 0.0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const size_t n = (size_t)(first[0] + i) * (size_t)(cells[1] + 1) + (size_t)(first[1] + j);
            velocity[0] += w[0][i] * w[1][j] * f->smooth[2 * n];
            velocity[1] += w[0][i] * w[1][j] * f->smooth[2 * n + 1];
        }
}

static void velocity_at(const sk_swim *swim, const sk_swim_flow *f, const double x[2], double velocity[2])
{
    const double reach = swim->scale.reach;
    int bin[2];
    smooth_velocity(swim, f, x, velocity);
    for (int d = 0; d < 2; d++)
        bin[d] = (int)fmin(fmax(floor(x[d] / swim->scale.bin), 0.0), swim->bins[d] - 1.0);
    const int b = bin[1] * swim->bins[0] + bin[0];
    for (int n = f->first[b]; n < f->first[b + 1]; n++) {
        const sk_swim_piece *p = &f->pieces[f->items[n]];
        const double dx = x[0] - p->at[1][0], dy = x[1] - p->at[1][1], far = reach + 0.5 * p->length;
        double part[2];
        if (dx * dx + dy * dy > far * far)
            continue;
        sk_swim_lacking(p, swim->scale.core, x, part);
        velocity[0] += part[0];
        velocity[1] += part[1];
    }
}

int sk_swim_near_body(const sk_swim *swim, const sk_step *step, int after, const double x[2], double normal[3],
                      double *gap)
{
    const sk_swim_flow *f = &swim->flows[after ? swim->now : !swim->now];
    const int *cells = swim->fine.cells;
    int at[2], nearest = -1;
    double least = swim->scale.shell;
    for (int d = 0; d < 2; d++)
        at[d] = (int)fmin(fmax(floor(x[d] / swim->scale.h[d]), 0.0), cells[d] - 1.0);
    if (!f->near[(size_t)at[0] * (size_t)cells[1] + (size_t)at[1]])
        return -1;
    for (int b = 0; b < swim->coupling.body_count; b++) {
        const double place[3] = {x[0], x[1], 0.0}, reach = swim->coupling.panels[b].reach + swim->scale.shell;
        const double dx = x[0] - f->motion[b][0], dy = x[1] - f->motion[b][1];
        if (dx * dx + dy * dy > reach * reach)
            continue;
        double outward[3];
        const double distance =
            sk_obstacle_distance(step->rigid->bodies[b].shape, &f->poses[b], place, normal ? outward : NULL);
        if (distance < least) {
            least = distance;
            nearest = b;
            if (normal)
                memcpy(normal, outward, sizeof outward);
        }
    }
    if (gap)
        *gap = least;
    return nearest;
}

/* --- Motion in the frame of a body --- */

/* To the axes of a body, or back. */
static void turn(double angle, const double from[2], double to[2])
{
    const double c = cos(angle), s = sin(angle), x = from[0], y = from[1];
    to[0] = c * x - s * y;
    to[1] = s * x + c * y;
}

/* Velocity past the body at a place of its frame, in its axes. */
static void slip_at(const sk_swim *swim, const sk_swim_flow *f, int b, const double local[2], double slip[2])
{
    const double *m = f->motion[b];
    double arm[2], u[2];
    turn(m[2], local, arm);
    velocity_at(swim, f, (const double[2]){m[0] + arm[0], m[1] + arm[1]}, u);
    turn(-m[2], (const double[2]){u[0] - m[3] + m[5] * arm[1], u[1] - m[4] - m[5] * arm[0]}, slip);
}

/* The same at a part of the way between two flows. */
static void slip_between(const sk_swim *swim, const sk_swim_flow *const flows[2], int b, double part,
                         const double local[2], double slip[2])
{
    double first[2] = {0.0, 0.0}, second[2] = {0.0, 0.0};
    if (part < 1.0)
        slip_at(swim, flows[0], b, local, first);
    if (part > 0.0)
        slip_at(swim, flows[1], b, local, second);
    for (int d = 0; d < 2; d++)
        slip[d] = (1.0 - part) * first[d] + part * second[d];
}

/* From the first flow to the second one, dt (s) apart; dt < 0 goes back in time. */
static void carry(const sk_swim *swim, const sk_swim_flow *const flows[2], int b, double dt, double x[2])
{
    enum { MOST_PARTS = 6 };
    const double *from = flows[0]->motion[b], *to = flows[1]->motion[b];
    double local[2], slip[2], end[2];
    turn(-from[2], (const double[2]){x[0] - from[0], x[1] - from[1]}, local);
    slip_at(swim, flows[0], b, local, slip);

    /* Parts in which it passes at most a sixth of the shell. */
    const double way = fabs(dt) * hypot(slip[0], slip[1]);
    const int parts = (int)fmin(ceil(6.0 * way / swim->scale.shell + 1e-9), MOST_PARTS);
    const double part = dt / (parts > 0 ? parts : 1);
    for (int n = 0; n < parts; n++) {
        double later[2];
        if (n > 0)
            slip_between(swim, flows, b, (double)n / parts, local, slip);
        const double ahead[2] = {local[0] + part * slip[0], local[1] + part * slip[1]};
        slip_between(swim, flows, b, (n + 1.0) / parts, ahead, later);
        for (int d = 0; d < 2; d++)
            local[d] += 0.5 * part * (slip[d] + later[d]);
    }
    turn(to[2], local, end);
    for (int d = 0; d < 2; d++)
        x[d] = to[d] + end[d];
}

void sk_swim_carry(const sk_swim *swim, int b, double dt, double x[2], double velocity[2])
{
    const sk_swim_flow *const flows[2] = {&swim->flows[!swim->now], &swim->flows[swim->now]};
    const double start[2] = {x[0], x[1]};
    carry(swim, flows, b, dt, x);
    for (int d = 0; d < 2; d++)
        velocity[d] = (x[d] - start[d]) / dt;
}

void sk_swim_carry_back(const sk_swim *swim, int b, double dt, double x[2])
{
    const sk_swim_flow *const flows[2] = {&swim->flows[swim->now], &swim->flows[!swim->now]};
    carry(swim, flows, b, -dt, x);
}
