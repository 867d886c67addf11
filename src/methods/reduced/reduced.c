/* Phases of reduced fluids. */
#include "methods/reduced/reduced.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "defs/materials.h"
#include "geom/shape.h"
#include "methods/reduced/tracers.h"
#include "rigid/rigid.h"

static sk_reduced *reduced_of(const sk_step *step)
{
    return sk_step_state(step, &sk_method_reduced);
}

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_REDUCED;
}

/* --- Velocities at the nodes --- */

static int node_count(const sk_reduced_spectrum *s)
{
    return (s->cells[0] + 1) * (s->cells[1] + 1);
}

/* Evaluates the modes at the nodes. `between` receives the mean of these and the velocities before. */
static selkie_code show_velocities(sk_reduced *reduced, const sk_step *step, selkie_error *error)
{
    const int nodes = node_count(&reduced->spectrum);
    double fastest = 0.0;
    sk_reduced_velocities(&reduced->spectrum, reduced->r, reduced->node, step->threads);
    if (reduced->swim)
        sk_swim_show(reduced->swim, step, reduced->node);
    for (int n = 0; n < nodes; n++) {
        const double u = reduced->node[0][n], v = reduced->node[1][n], square = u * u + v * v;
        fastest = square <= fastest ? fastest : square; /* a NaN stays */
        for (int d = 0; d < 2; d++) {
            const float now = (float)(d ? v : u);
            reduced->between[2 * n + d] = 0.5f * (reduced->shown[2 * n + d] + now);
            reduced->shown[2 * n + d] = now;
        }
    }
    reduced->state[0] = sqrt(fastest);
    if (!(reduced->state[0] < 1e15))
        return sk_fail(error, SELKIE_ERROR_DIVERGED, "modes: the flow is not finite at %g s", step->time);
    return SELKIE_OK;
}

sk_reduced_view sk_reduced_view_of(const sk_reduced *reduced, const sk_step *step, const float *values)
{
    const selkie_periodic periodic = step->scene->reduced.periodic;
    sk_reduced_view view = {.values = values};
    for (int d = 0; d < 2; d++) {
        view.cells[d] = reduced->spectrum.cells[d];
        view.size[d] = (float)reduced->spectrum.size[d];
        view.inverse[d] = (float)(reduced->spectrum.cells[d] / reduced->spectrum.size[d]);
        view.periodic[d] = periodic == SELKIE_PERIODIC_BOTH || periodic == (d ? SELKIE_PERIODIC_Y : SELKIE_PERIODIC_X);
        for (int side = 0; side < 2; side++)
            view.open[2 * d + side] = step->scene->domain.walls[2 * d + side] == SELKIE_WALL_OPEN;
    }
    return view;
}

/* --- Start --- */

/* Adds what the modes carry of the field in s->grid[3] and s->grid[4] (m/s). The shortest waves are left out smoothly:
 * cut off sharply, the edge of a force would ring across the box and comb the dye. */
static void take_up(sk_reduced *reduced, const sk_step *step)
{
    sk_reduced_spectrum *s = &reduced->spectrum;
    double *part = s->stage;
    memset(part, 0, (size_t)s->count * sizeof *part);
    sk_reduced_project(s, (const double *const[2]){s->grid[3], s->grid[4]}, part, step->threads);
    for (int k = 0; k < s->count; k++) {
        const double q = s->lambda[k] / (reduced->largest * reduced->largest); /* of the squared wave number */
        reduced->r[k] += exp(-8.0 * q * q * q) * part[k];
    }
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    sk_reduced *reduced = sk_allocate_zeroed(step->memory, sizeof *reduced);
    if (!reduced)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory");
    sk_step_set_state(step, &sk_method_reduced, reduced);
    SK_TRY(sk_reduced_make_basis(reduced, step, error));

    sk_reduced_spectrum *s = &reduced->spectrum;
    const size_t nodes = (size_t)node_count(s);
    reduced->state = sk_allocate_zeroed(step->memory, (size_t)(s->count + 1) * sizeof(double));
    reduced->shown = sk_allocate_zeroed(step->memory, 2 * nodes * sizeof(float));
    reduced->between = sk_allocate_zeroed(step->memory, 2 * nodes * sizeof(float));
    for (int d = 0; d < 2; d++)
        reduced->node[d] = sk_allocate_zeroed(step->memory, nodes * sizeof(double));
    if (!reduced->state || !reduced->shown || !reduced->between || !reduced->node[0] || !reduced->node[1])
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for %d modes", s->count);
    reduced->r = reduced->state + 1;
    for (int k = 0; k < s->count; k++)
        reduced->largest = fmax(reduced->largest, sqrt(s->lambda[k]));
    if (!step->rigid)
        return SELKIE_OK;

    /* Bodies. */
    const sk_reduced_box box = sk_reduced_box_of(step);
    reduced->swim = sk_allocate_zeroed(step->memory, sizeof *reduced->swim);
    if (!reduced->swim)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory");
    SK_TRY(sk_swim_check(step, &box, error));
    return sk_swim_make(reduced->swim, step, s, error);
}

static void destroy(sk_step *step)
{
    sk_reduced *reduced = reduced_of(step);
    if (!reduced)
        return;
    if (reduced->swim)
        sk_swim_free(reduced->swim, step->memory);
    sk_release(step->memory, reduced->swim);
    sk_reduced_spectrum_free(&reduced->spectrum);
    sk_release(step->memory, reduced->state);
    sk_release(step->memory, reduced->shown);
    sk_release(step->memory, reduced->between);
    sk_release(step->memory, reduced->node[0]);
    sk_release(step->memory, reduced->node[1]);
    sk_release(step->memory, reduced->names);
    sk_release(step->memory, reduced->drawn);
    sk_release(step->memory, reduced);
    sk_step_set_state(step, &sk_method_reduced, NULL);
}

/* Velocity of a liquid of the scene at a point, m/s. */
static void liquid_velocity(const selkie_liquid_def *liquid, const double x[2], double u[2])
{
    const double dx = x[0] - liquid->center[0], dy = x[1] - liquid->center[1], spin = liquid->angular_velocity[2];
    const double *g = liquid->velocity_gradient;
    u[0] = liquid->velocity[0] - spin * dy + g[0] * dx + g[1] * dy;
    u[1] = liquid->velocity[1] + spin * dx + g[3] * dx + g[4] * dy;
}

static int moves(const selkie_liquid_def *liquid)
{
    double sum = 0.0;
    for (int d = 0; d < 3; d++)
        sum += fabs(liquid->velocity[d]) + fabs(liquid->angular_velocity[d]);
    for (int d = 0; d < 9; d++)
        sum += fabs(liquid->velocity_gradient[d]);
    return sum > 0.0;
}

/* The flow at the start: the liquids' velocities inside their shapes and 0 elsewhere, as far as the modes carry it. */
static selkie_code add_liquid(sk_reduced *reduced, const sk_step *step, int l, selkie_error *error)
{
    const selkie_liquid_def *liquid = &step->scene->liquids[l];
    sk_reduced_spectrum *s = &reduced->spectrum;
    double *field[2] = {s->grid[3], s->grid[4]}, up[3];
    sk_shape *shape;
    selkie_scene_up(step->scene, up);
    const sk_shape_options options = {
        .dimension = 2, .up = up, .folder = step->scene->folder, .what = "liquids[].shape"};
    SK_TRY(sk_shape_create(&liquid->shape, &options, &shape, error));
    for (int i = 0; i < s->cells[0]; i++)
        for (int j = 0; j < s->cells[1]; j++) {
            const double x[3] = {s->size[0] * (i + 0.5) / s->cells[0], s->size[1] * (j + 0.5) / s->cells[1], 0.0};
            const size_t n = (size_t)i * (size_t)s->cells[1] + (size_t)j;
            double u[2] = {0.0, 0.0};
            if (sk_shape_inside(shape, x))
                liquid_velocity(liquid, x, u);
            field[0][n] = u[0];
            field[1][n] = u[1];
        }
    sk_shape_destroy(shape);
    take_up(reduced, step);
    return SELKIE_OK;
}

/* No tracers start inside bodies. */
static void drop_covered(sk_step *step)
{
    for (int64_t p = 0; p < step->particles.count; p++) {
        sk_particle *tracer = &step->particles.records[p];
        const double x[3] = {tracer->position[0], tracer->position[1], 0.0};
        for (int b = 0; b < step->rigid->body_count; b++)
            if (sk_shape_inside(step->rigid->bodies[b].shape, x))
                tracer->flags |= SK_PARTICLE_DEAD;
    }
    sk_particles_drop_dead(&step->particles);
}

static selkie_code populate(sk_step *step, selkie_error *error)
{
    sk_reduced *reduced = reduced_of(step);
    sk_reduced_spectrum *s = &reduced->spectrum;
    for (int l = 0; l < step->scene->liquid_count; l++)
        if (moves(&step->scene->liquids[l]))
            SK_TRY(add_liquid(reduced, step, l, error));

    /* The mean flow. */
    const double *flow = step->scene->reduced.mean_flow;
    const int values = s->cells[0] * s->cells[1];
    for (int n = 0; n < values && (flow[0] != 0.0 || flow[1] != 0.0); n++) {
        s->grid[3][n] = flow[0];
        s->grid[4][n] = flow[1];
    }
    if (flow[0] != 0.0 || flow[1] != 0.0)
        take_up(reduced, step);
    if (reduced->swim) {
        sk_swim_solve(reduced->swim, step, s, reduced->r);
        drop_covered(step);
    }
    SK_TRY(show_velocities(reduced, step, error));

    /* Tracers have the velocity of the flow. */
    const sk_reduced_view view = sk_reduced_view_of(reduced, step, reduced->shown);
    for (int64_t p = 0; p < step->particles.count; p++) {
        sk_particle *tracer = &step->particles.records[p];
        sk_reduced_sample(&view, tracer->position[0], tracer->position[1], tracer->velocity);
    }
    return SELKIE_OK;
}

/* --- Phases --- */

/* Tracers need no order. The phase takes the place of the sort. */
static selkie_code drop_dead(sk_step *step, selkie_error *error)
{
    (void)error;
    for (int64_t p = 0; p < step->particles.count; p++)
        if (step->particles.records[p].flags & SK_PARTICLE_DEAD) {
            sk_particles_drop_dead(&step->particles);
            break;
        }
    return SELKIE_OK;
}

/* Obstacles stay where they are. The phase takes the place of the one that moves them. */
static selkie_code no_solids(sk_step *step, selkie_error *error)
{
    (void)step;
    (void)error;
    return SELKIE_OK;
}

/* Drawn modes that are driven during the step. */
static void excite(sk_reduced *reduced, const sk_step *step)
{
    const selkie_reduced_def *def = &step->scene->reduced;
    for (int e = 0; e < def->excite_count; e++) {
        const selkie_excite_def *excitation = &def->excite[e];
        const double end = excitation->end < 0.0 ? INFINITY : excitation->end;
        const double time = fmin(step->end_time, end) - fmax(step->time, excitation->start);
        for (int m = 0; m < reduced->flow_count && time > 0.0; m++)
            if (strcmp(reduced->names[m], excitation->mode) == 0)
                for (int k = 0; k < reduced->spectrum.count; k++)
                    reduced->r[k] += excitation->strength * time * reduced->drawn[m * reduced->spectrum.count + k];
    }
}

/* Force fields of the step, projected (Eqs. 5.4 and 5.5). Gravity is a gradient: pressure carries it. */
static selkie_code add_force_fields(sk_step *step, selkie_error *error)
{
    sk_reduced *reduced = reduced_of(step);
    sk_reduced_spectrum *s = &reduced->spectrum;
    const sk_force_window window = {step->time, step->end_time};
    if (step->scene->force_count == 0)
        return SELKIE_OK;
    void *memory;
    SK_TRY(sk_step_scratch(step, (size_t)step->scene->force_count * sizeof(sk_force_field), "forces", &memory, error));
    sk_force_field *fields = memory;
    const int count = sk_force_fields_in(step->scene, window, fields);
    if (count == 0)
        return SELKIE_OK;

#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int i = 0; i < s->cells[0]; i++)
        for (int j = 0; j < s->cells[1]; j++) {
            const size_t n = (size_t)i * (size_t)s->cells[1] + (size_t)j;
            const float x[3] = {(float)(s->size[0] * (i + 0.5) / s->cells[0]),
                                (float)(s->size[1] * (j + 0.5) / s->cells[1]), 0.0f};
            float change[3];
            sk_force_fields_velocity_change(fields, count, x, change);
            s->grid[3][n] = change[0];
            s->grid[4][n] = change[1];
        }
    take_up(reduced, step);
    return SELKIE_OK;
}

static selkie_code feed_back(sk_step *step, selkie_error *error)
{
    sk_reduced *reduced = reduced_of(step);
    (void)error;
    sk_swim_feed_back(reduced->swim, step, &reduced->spectrum, reduced->r);
    return SELKIE_OK;
}

static selkie_code add_forces(sk_step *step, selkie_error *error)
{
    sk_reduced *reduced = reduced_of(step);
    excite(reduced, step);
    SK_TRY(add_force_fields(step, error));
    if (reduced->swim)
        sk_swim_remember(reduced->swim, step, &reduced->spectrum, reduced->r);
    return SELKIE_OK;
}

/* The speed that forces add in the step at most, m/s. */
static double added_speed(const sk_step *step)
{
    const sk_force_window window = {step->time, step->end_time};
    double speed =
        sk_force_fields_speed(step->scene, window) + step->dt * sk_force_fields_acceleration(step->scene, window);
    for (int e = 0; e < step->scene->reduced.excite_count; e++)
        speed += step->dt * fabs(step->scene->reduced.excite[e].strength);
    return speed;
}

/* Advection and viscosity. A step of any length is cut into parts in which the flow crosses at most twice the inverse
 * of the largest wave number: Runge-Kutta is stable up to 2.8 times that. */
static selkie_code advance(sk_step *step, selkie_error *error)
{
    enum { MOST_PARTS = 4096 };
    sk_reduced *reduced = reduced_of(step);
    const double nu = sk_scene_viscosity(step->scene);
    const double crossed = step->dt * (reduced->state[0] + added_speed(step)) * reduced->largest;
    if (!(crossed <= MOST_PARTS))
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "modes: the flow is too fast at %g s: %.3g m/s cross the shortest wave %.3g times in a step of "
                       "%.2g s; weaken the forces, raise viscosity or shorten time.step",
                       step->time, reduced->state[0] + added_speed(step), crossed, step->dt);
    const int parts = crossed > 2.0 ? (int)ceil(0.5 * crossed) : 1;
    for (int n = 0; n < parts; n++)
        if (step->scene->reduced.integrator == SELKIE_REDUCED_EXPONENTIAL)
            sk_reduced_step_exponential(&reduced->spectrum, reduced->r, step->dt / parts, nu);
        else
            sk_reduced_step(&reduced->spectrum, reduced->r, step->dt / parts, nu, step->threads);
    return reduced->swim ? SELKIE_OK : show_velocities(reduced, step, error);
}

static int has_bodies(const sk_step *step)
{
    return step->rigid != NULL;
}

static selkie_code move_bodies(sk_step *step, selkie_error *error)
{
    sk_reduced *reduced = reduced_of(step);
    return sk_swim_move(reduced->swim, step, &reduced->spectrum, reduced->r, error);
}

static selkie_code find_sheets(sk_step *step, selkie_error *error)
{
    sk_reduced *reduced = reduced_of(step);
    (void)error;
    sk_swim_solve(reduced->swim, step, &reduced->spectrum, reduced->r);
    return SELKIE_OK;
}

static selkie_code show(sk_step *step, selkie_error *error)
{
    return show_velocities(reduced_of(step), step, error);
}

/* The flow knows obstacles to within a cell; tracers stay out of them. */
static void push_out(const sk_solids *solids, float position[3])
{
    double x[3] = {position[0], position[1], 0.0}, normal[3];
    int obstacle;
    const double distance = sk_solids_distance(solids, x, normal, &obstacle);
    for (int d = 0; d < 2 && distance < 0.0 && obstacle >= 0; d++)
        position[d] = (float)(x[d] - distance * normal[d]);
}

static void push_out_of_bodies(const sk_swim *swim, const sk_rigid *rigid, float position[3])
{
    for (int b = 0; b < rigid->body_count; b++) {
        const double x[3] = {position[0], position[1], 0.0}, *center = rigid->states[b].position;
        const double dx = x[0] - center[0], dy = x[1] - center[1], reach = swim->coupling.panels[b].reach;
        double normal[3];
        if (dx * dx + dy * dy > reach * reach)
            continue;
        const double distance = sk_obstacle_distance(rigid->bodies[b].shape, &rigid->bodies[b].pose, x, normal);
        for (int d = 0; d < 2 && distance < 0.0; d++)
            position[d] = (float)(x[d] - distance * normal[d]);
    }
}

/* One tracer among obstacles and bodies. Returns 0 if it has left. */
static int move_one(const sk_step *step, const sk_reduced_view *view, const sk_swim *swim, sk_particle *tracer)
{
    double x[2] = {tracer->position[0], tracer->position[1]}, velocity[2];
    int inside;
    const int body = swim ? sk_swim_near_body(swim, step, 0, x, NULL, NULL) : -1;
    if (body >= 0) {
        sk_swim_carry(swim, body, step->dt, x, velocity);
        for (int d = 0; d < 2; d++)
            tracer->velocity[d] = (float)velocity[d];
        inside = sk_reduced_place_tracer(view, (const float[2]){(float)x[0], (float)x[1]}, tracer->position);
    } else {
        inside = sk_reduced_move_tracer(view, (float)step->dt, tracer->position, tracer->velocity);
    }
    if (step->solids.obstacle_count)
        push_out(&step->solids, tracer->position);
    if (swim)
        push_out_of_bodies(swim, step->rigid, tracer->position);
    return inside;
}

static selkie_code move(sk_step *step, selkie_error *error)
{
    enum { CHUNK = 4096 };
    (void)error;
    const sk_reduced_view view = sk_reduced_view_of(reduced_of(step), step, reduced_of(step)->between);
    const sk_swim *swim = reduced_of(step)->swim;
    const int64_t count = step->particles.count, chunks = (count + CHUNK - 1) / CHUNK;
    const int alone = !swim && !step->solids.obstacle_count && sk_reduced_has_walls(&view);
    int64_t gone = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(+ : gone) firstprivate(view)
    for (int64_t c = 0; c < chunks; c++) {
        sk_particle *tracers = step->particles.records + c * CHUNK;
        const int64_t many = count - c * CHUNK < CHUNK ? count - c * CHUNK : CHUNK;
        if (alone)
            sk_reduced_move_tracers(&view, (float)step->dt, tracers, many);
        for (int64_t p = 0; p < many && !alone; p++)
            if (!move_one(step, &view, swim, &tracers[p])) {
                tracers[p].flags |= SK_PARTICLE_DEAD;
                gone++;
            }
    }
    step->drained += gone;
    step->sums.max_speed = reduced_of(step)->state[0];
    sk_particles_moved(&step->particles);
    return SELKIE_OK;
}

/* --- Reports --- */

static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    limits->speed = fmax(limits->speed, reduced_of(step)->state[0]);
}

/* A step may have any length for the modes. Tracers go straight from the middle of a step to its end. */
static int warn(const sk_step *step, char *text, size_t size)
{
    enum { MANY_CELLS = 12 };
    const double speed = reduced_of(step)->state[0], cells = speed * step->dt / step->grid.cell_size;
    if (cells > MANY_CELLS)
        snprintf(
            text, size,
            "reduced: at %.3g s the flow is too fast for the step: %.3g m/s cross %.0f cells in %.2g s, and tracers "
            "cut corners; choose a shorter time.step (%.2g s), or leave it out, so that time.cfl chooses",
            step->time, speed, cells, step->dt, 3.0 * step->grid.cell_size / speed);
    return cells > MANY_CELLS;
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    const sk_reduced *reduced = reduced_of(step);
    double energy, enstrophy;
    sk_reduced_moments(&reduced->spectrum, reduced->r, &energy, &enstrophy);
    s->kinetic_energy = 0.5 * step->density * energy;
    s->enstrophy = 0.5 * enstrophy;
    s->potential_energy = 0.0;
    s->volume_ratio = s->volume_eq19 = s->occupied_ratio = s->surface_volume_ratio = 1.0;
    s->max_speed = reduced->state[0];
    s->sheet_sweeps = reduced->swim ? reduced->swim->coupling.sweeps : 0;
}

static double value_at(const sk_step *step, const double at[3], int component)
{
    const sk_reduced *reduced = reduced_of(step);
    const sk_reduced_view view = sk_reduced_view_of(reduced, step, reduced->shown);
    float velocity[2];
    sk_reduced_sample(&view, (float)at[0], (float)at[1], velocity);
    return component == 0 || component == 1 ? velocity[component] : NAN;
}

/* --- Checkpoints --- */

static sk_chunk_view state(const sk_step *step)
{
    const sk_reduced *reduced = reduced_of(step);
    return (sk_chunk_view){"reduced", reduced->state, (uint64_t)(reduced->spectrum.count + 1) * sizeof(double)};
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    sk_reduced *reduced = reduced_of(step);
    const size_t bytes = (size_t)(reduced->spectrum.count + 1) * sizeof(double);
    if (chunk->bytes != bytes)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the modes are missing or of another number than the scene's %d",
                       file, reduced->spectrum.count);
    for (int k = 0; k <= reduced->spectrum.count; k++) {
        double value;
        memcpy(&value, (const char *)chunk->data + (size_t)k * sizeof value, sizeof value);
        if (!(fabs(value) < 1e15))
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: mode %d is not a number of reasonable size", file, k);
    }
    memcpy(reduced->state, chunk->data, bytes);
    if (reduced->swim)
        sk_swim_solve(reduced->swim, step, &reduced->spectrum, reduced->r);
    return show_velocities(reduced, step, error);
}

static double bytes_per_cell(const selkie_scene *scene)
{
    (void)scene;
    return 5 * 8 + 2 * 8 + 4 * 4;
}

const sk_method sk_method_reduced = {
    .name = "reduced",
    .needs = SK_NEEDS_PARTICLES,
    .takes_part = takes_part,
    .check = sk_reduced_check_basis,
    .create = create,
    .populate = populate,
    .destroy = destroy,
    .phases =
        {
            {.name = "sort",
             .slot = SK_SLOT_SORT,
             .flags = SK_PHASE_REPLACES,
             .run = SK_ONE_FORM_ANY_DIMENSION(drop_dead)},
            {.name = "solids",
             .slot = SK_SLOT_SOLIDS,
             .flags = SK_PHASE_REPLACES,
             .run = SK_ONE_FORM_ANY_DIMENSION(no_solids)},
            {.name = "feedback",
             .slot = SK_SLOT_FORCES,
             .run = SK_ONE_FORM_ANY_DIMENSION(feed_back),
             .when = has_bodies},
            {.name = "forces", .slot = SK_SLOT_FORCES, .run = SK_ONE_FORM_ANY_DIMENSION(add_forces)},
            {.name = "modes", .slot = SK_SLOT_PRESSURE, .run = SK_ONE_FORM_ANY_DIMENSION(advance)},
            {.name = "bodies",
             .slot = SK_SLOT_BODIES,
             .run = SK_ONE_FORM_ANY_DIMENSION(move_bodies),
             .when = has_bodies},
            {.name = "sheets",
             .slot = SK_SLOT_BODIES,
             .run = SK_ONE_FORM_ANY_DIMENSION(find_sheets),
             .when = has_bodies},
            {.name = "show", .slot = SK_SLOT_TO_PARTICLES, .run = SK_ONE_FORM_ANY_DIMENSION(show), .when = has_bodies},
            {.name = "move", .slot = SK_SLOT_MOVE, .run = SK_ONE_FORM_ANY_DIMENSION(move)},
        },
    .limit_step = limit_step,
    .warn = warn,
    .state = state,
    .restore = restore,
    .statistics = statistics,
    .value_at = value_at,
    .bytes_per_cell = bytes_per_cell,
};
