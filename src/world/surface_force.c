#include "world/surface_force.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "defs/materials.h"
#include "geom/frame.h"

/* --- Surfaces --- */

static selkie_code add_element(sk_surface *surface, sk_memory *memory, const double at[3], const double area[3],
                               selkie_error *error)
{
    SK_TRY(sk_reserve(memory, (void **)&surface->elements, &surface->capacity, surface->count + 1,
                      sizeof *surface->elements, "force probes", error));
    sk_surface_element *element = &surface->elements[surface->count++];
    memcpy(element->at, at, sizeof element->at);
    memcpy(element->area, area, sizeof element->area);
    return SELKIE_OK;
}

static double distance(const double a[3], const double b[3])
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

/* Does a piece of an obstacle at rest lie outside the grid, where it meets no liquid? */
static int is_outside(const sk_surface *surface, const sk_step *step, const double (*p)[3], int corners)
{
    const sk_grid *grid = &step->grid;
    if (step->solids.obstacles[surface->obstacle].moves)
        return 0;
    for (int d = 0; d < grid->dimension; d++) {
        if (grid->periodic >> d & 1)
            continue; /* beyond a joined side lies the opposite one */
        double low = p[0][d], high = p[0][d];
        for (int c = 1; c < corners; c++) {
            low = fmin(low, p[c][d]);
            high = fmax(high, p[c][d]);
        }
        if (high < grid->low[d] - grid->cell_size || low > grid->high[d] + grid->cell_size)
            return 1;
    }
    return 0;
}

/* A line of the outline, in pieces of at most half a cell; the inside lies on its left. */
static selkie_code add_segment(sk_surface *surface, const sk_step *step, const double a[3], const double b[3],
                               selkie_error *error)
{
    const double ends[2][3] = {{a[0], a[1], a[2]}, {b[0], b[1], b[2]}};
    if (is_outside(surface, step, ends, 2))
        return SELKIE_OK;
    /* Long ones are halved first, so that parts outside are left out. */
    if (distance(a, b) > 64.0 * step->grid.cell_size) {
        const double middle[3] = {0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.5 * (a[2] + b[2])};
        SK_TRY(add_segment(surface, step, a, middle, error));
        return add_segment(surface, step, middle, b, error);
    }
    const int pieces = (int)ceil(distance(a, b) / (0.5 * step->grid.cell_size));
    for (int p = 0; p < pieces; p++) {
        double at[3];
        for (int d = 0; d < 3; d++)
            at[d] = a[d] + (p + 0.5) / pieces * (b[d] - a[d]);
        const double area[3] = {(b[1] - a[1]) / pieces, -(b[0] - a[0]) / pieces, 0.0};
        SK_TRY(add_element(surface, step->memory, at, area, error));
    }
    return SELKIE_OK;
}

/* A triangle, cut until its edges are no longer than a cell. */
static selkie_code add_triangle(sk_surface *surface, const sk_step *step, double p[3][3], selkie_error *error)
{
    if (is_outside(surface, step, p, 3))
        return SELKIE_OK;
    int longest = 0;
    double length = 0.0;
    for (int e = 0; e < 3; e++)
        if (distance(p[e], p[(e + 1) % 3]) > length) {
            longest = e;
            length = distance(p[e], p[(e + 1) % 3]);
        }
    if (length > step->grid.cell_size) {
        double halves[2][3][3];
        for (int d = 0; d < 3; d++) {
            const double middle = 0.5 * (p[longest][d] + p[(longest + 1) % 3][d]), other = p[(longest + 2) % 3][d];
            halves[0][0][d] = p[longest][d], halves[0][1][d] = middle, halves[0][2][d] = other;
            halves[1][0][d] = middle, halves[1][1][d] = p[(longest + 1) % 3][d], halves[1][2][d] = other;
        }
        SK_TRY(add_triangle(surface, step, halves[0], error));
        return add_triangle(surface, step, halves[1], error);
    }

    double at[3], u[3], v[3];
    for (int d = 0; d < 3; d++) {
        at[d] = (p[0][d] + p[1][d] + p[2][d]) / 3.0;
        u[d] = p[1][d] - p[0][d];
        v[d] = p[2][d] - p[0][d];
    }
    const double area[3] = {0.5 * (u[1] * v[2] - u[2] * v[1]), 0.5 * (u[2] * v[0] - u[0] * v[2]),
                            0.5 * (u[0] * v[1] - u[1] * v[0])};
    return add_element(surface, step->memory, at, area, error);
}

static selkie_code add_obstacle(sk_surface *surface, const sk_step *step, selkie_error *error)
{
    const int corners = step->dimension; /* of a triangle, or of a segment */
    float *points = NULL;
    size_t count;
    selkie_code code = sk_shape_triangles(step->solids.obstacles[surface->obstacle].shape, step->grid.low,
                                          step->grid.high, &count, &points, error);
    for (size_t t = 0; code == SELKIE_OK && t < count; t++) {
        double p[3][3] = {{0}};
        for (int c = 0; c < corners; c++)
            for (int d = 0; d < 3; d++)
                p[c][d] = points[(t * (size_t)corners + (size_t)c) * 3 + (size_t)d];
        code = corners == 2 ? add_segment(surface, step, p[0], p[1], error) : add_triangle(surface, step, p, error);
    }
    free(points);
    return code;
}

/* The closed sides of the domain: a face of each cell there. The solid's outward normal points into the domain. */
static selkie_code add_walls(sk_surface *surface, const sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const double h = grid->cell_size;
    for (int side = 0; side < 2 * grid->dimension; side++) {
        const int axis = side / 2, e = (axis + 1) % grid->dimension, f = grid->dimension == 3 ? (axis + 2) % 3 : 2;
        if (step->solids.walls[side] == SELKIE_WALL_OPEN)
            continue;
        for (int k = 0; k < (grid->dimension == 3 ? grid->cells[f] : 1); k++)
            for (int j = 0; j < grid->cells[e]; j++) {
                double at[3] = {0, 0, 0}, area[3] = {0, 0, 0};
                at[axis] = side & 1 ? grid->high[axis] : grid->low[axis];
                at[e] = grid->low[e] + (j + 0.5) * h;
                if (grid->dimension == 3)
                    at[f] = grid->low[f] + (k + 0.5) * h;
                area[axis] = (side & 1 ? -1.0 : 1.0) * (grid->dimension == 3 ? h * h : h);
                SK_TRY(add_element(surface, step->memory, at, area, error));
            }
    }
    return SELKIE_OK;
}

selkie_code sk_surface_init(sk_surface *surface, const sk_step *step, const char *on, selkie_error *error)
{
    memset(surface, 0, sizeof *surface);
    surface->obstacle = -1;
    if (!on || !*on || strcmp(on, "walls") == 0)
        return add_walls(surface, step, error);
    for (int o = 0; o < step->solids.obstacle_count; o++) {
        const selkie_obstacle_def *def = step->solids.obstacles[o].def; /* NULL for a body */
        if (def && def->name && strcmp(def->name, on) == 0) {
            surface->obstacle = o;
            return add_obstacle(surface, step, error);
        }
    }
    return SELKIE_OK;
}

void sk_surface_free(sk_surface *surface, sk_memory *memory)
{
    sk_release(memory, surface->elements);
    memset(surface, 0, sizeof *surface);
}

/* --- Values at a point --- */

double sk_face_density(const sk_step *step, const int cell[3], int d)
{
    if (!step->relative_density)
        return step->density;
    int slot;
    size_t local = sk_grid_find_cell(&step->grid, cell, &slot);
    return step->density /
           step->grid.fields[SK_FIELD_LIGHTNESS_X + d][(size_t)slot * (size_t)step->grid.block_cells + local];
}

double sk_velocity_at(const sk_step *step, const double at[3], int d)
{
    const sk_grid *grid = &step->grid;
    double total = 0.0, weights = 0.0, weight[3] = {0, 0, 0};
    int base[3] = {0, 0, 0};
    for (int e = 0; e < grid->dimension; e++) {
        double g = (at[e] - grid->corner[e]) / grid->cell_size - (e == d ? 0.0 : 0.5);
        base[e] = (int)floor(g);
        weight[e] = g - base[e];
    }
    for (int corner = 0; corner < 1 << grid->dimension; corner++) {
        double w = 1.0;
        int cell[3] = {base[0], base[1], base[2]}, slot;
        for (int e = 0; e < grid->dimension; e++) {
            w *= corner >> e & 1 ? weight[e] : 1.0 - weight[e];
            cell[e] += corner >> e & 1;
        }
        size_t local = sk_grid_find_cell(grid, cell, &slot);
        float u = grid->fields[SK_FIELD_VELOCITY_X + d][(size_t)slot * (size_t)grid->block_cells + local];
        if (u == u) {
            total += w * u;
            weights += w;
        }
    }
    return weights > 1e-6 ? total / weights : NAN;
}

/* Gravity of the last step at a point, with the forces of a turning frame (m/s2). */
static void acceleration_at(const sk_step *step, const double at[3], double acceleration[3])
{
    memcpy(acceleration, step->scene->gravity, 3 * sizeof *acceleration);
    if (!sk_frame_turns(&step->scene->frame))
        return;
    sk_frame_mean mean;
    const double middle = step->time - 0.5 * step->last_dt;
    sk_frame_mean_of(step->scene, step->scene->gravity, middle, middle, &mean);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < step->dimension; j++)
            acceleration[i] += mean.slope[3 * i + j] * (at[j] - step->scene->frame.center[j]);
}

/* Adds the pressure of a liquid cell (m/s, the unit of the solve is `unit`), extended to the point. Returns the cell's
 * kind. */
static int add_cell(const sk_step *step, const int cell[3], const double at[3], const double acceleration[3],
                    double unit, double *pressure)
{
    const sk_grid *grid = &step->grid;
    int slot;
    const size_t local = sk_grid_find_cell(grid, cell, &slot), place = (size_t)slot * (size_t)grid->block_cells + local;
    const int kind = slot ? grid->kinds[place] & SK_CELL_KIND_MASK : SK_CELL_AIR;
    if (kind != SK_CELL_LIQUID)
        return kind;
    *pressure = grid->fields[SK_FIELD_POTENTIAL][place] * unit;
    for (int d = 0; d < grid->dimension; d++) {
        const double centre = grid->corner[d] + (cell[d] + 0.5) * grid->cell_size;
        *pressure += sk_face_density(step, cell, d) * acceleration[d] * (at[d] - centre);
    }
    return kind;
}

double sk_pressure_near(const sk_step *step, const double at[3], const double normal[3], double kick)
{
    const sk_grid *grid = &step->grid;
    const double h = grid->cell_size, unit = kick > 0.0 ? step->density * h / kick : 0.0;
    double total = 0.0, weights = 0.0, acceleration[3];
    int base[3] = {0, 0, 0}, air = 0;
    acceleration_at(step, at, acceleration);
    for (int d = 0; d < grid->dimension; d++)
        base[d] = (int)floor((at[d] - grid->corner[d]) / h - 0.5) - 1;

    /* Hats of one and a half cells: some liquid cell is in reach of every wet point of a surface. */
    for (int c = 0; c < (grid->dimension == 3 ? 64 : 16); c++) {
        const int offset[3] = {c & 3, c >> 2 & 3, c >> 4};
        int cell[3] = {0, 0, 0};
        double w = 1.0, pressure = 0.0, ahead = 0.0;
        for (int d = 0; d < grid->dimension; d++) {
            cell[d] = base[d] + offset[d];
            const double way = (cell[d] + 0.5) - (at[d] - grid->corner[d]) / h, q = fabs(way) / 1.5;
            w *= q < 1.0 ? 1.0 - q : 0.0;
            ahead += normal ? way * normal[d] : 0.0;
        }
        if (!(w > 0.0) || ahead < 0.0) /* liquid behind a thin wall is not that of its front */
            continue;
        const int kind = add_cell(step, cell, at, acceleration, unit, &pressure);
        air |= kind == SK_CELL_AIR;
        if (kind == SK_CELL_LIQUID) {
            total += w * pressure;
            weights += w;
        }
    }
    if (!(weights > 0.0))
        return 0.0;
    return air ? fmax(total / weights, 0.0) : total / weights;
}

/* --- The force --- */

/* Shear stress of a no-slip surface at a point (Pa), one-sided and of second order: du/dn at the wall, where the liquid
 * slips by slip_length du/dn (Navier). */
static void add_shear(const sk_step *step, const double at[3], const double normal[3], const double wall[3],
                      double viscosity, double slip_length, double stress[3])
{
    const double h = step->grid.cell_size;
    double near[3], far[3], u[3] = {0, 0, 0}, along = 0.0;
    for (int d = 0; d < 3; d++) {
        near[d] = at[d] + h * normal[d];
        far[d] = at[d] + 2.0 * h * normal[d];
    }
    for (int d = 0; d < step->dimension; d++) {
        const double first = sk_velocity_at(step, near, d), second = sk_velocity_at(step, far, d);
        if (isnan(first) || isnan(second))
            return;
        u[d] = (4.0 * first - second - 3.0 * wall[d]) / (2.0 * h + 3.0 * slip_length);
        along += u[d] * normal[d];
    }
    for (int d = 0; d < step->dimension; d++)
        stress[d] += viscosity * (u[d] - along * normal[d]);
}

/* Is the surface no-slip at an element? Sets its slip length (m). */
static int has_no_slip(const sk_surface *surface, const sk_step *step, const double area[3], double *slip_length)
{
    if (surface->obstacle >= 0) {
        const selkie_obstacle_def *def = step->solids.obstacles[surface->obstacle].def;
        *slip_length = def->slip_length;
        return def->surface == SELKIE_WALL_NO_SLIP;
    }
    for (int d = 0; d < step->dimension; d++)
        if (area[d] != 0.0) {
            const int side = 2 * d + (area[d] < 0.0);
            *slip_length = step->scene->domain.slip_length[side];
            return step->solids.walls[side] == SELKIE_WALL_NO_SLIP;
        }
    return 0;
}

/* Does a place of the surface meet no liquid of its own? Beyond a joined side it meets that at the opposite one, as far
 * as the obstacle has an image there, which lies one domain away. If it is longer than the domain, another part of it
 * is there already. */
static int is_away(const sk_step *step, const sk_obstacle *obstacle, const double at[3])
{
    const sk_grid *grid = &step->grid;
    for (int d = 0; d < step->dimension; d++) {
        const double size = grid->high[d] - grid->low[d];
        const int joined = grid->periodic >> d & 1 && obstacle && obstacle->high[d] - obstacle->low[d] < size;
        const double beyond = joined ? size : 0.0;
        if (at[d] < grid->low[d] - beyond || at[d] > grid->high[d] + beyond)
            return 1;
    }
    return 0;
}

void sk_surface_force(const sk_surface *surface, const sk_step *step, double kick, const double about[3],
                      double force[3], double torque[3])
{
    const sk_obstacle *obstacle = surface->obstacle >= 0 ? &step->solids.obstacles[surface->obstacle] : NULL;
    /* The liquid and its pressure saw the obstacle where it was in the solve. */
    const int at_end = step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    const sk_pose *now = obstacle ? at_end ? &obstacle->end : &obstacle->start : NULL;
    const sk_pose *pose = obstacle && obstacle->placed ? now : NULL;
    const double viscosity = step->density * sk_scene_viscosity(step->scene);
    memset(force, 0, 3 * sizeof *force);
    memset(torque, 0, 3 * sizeof *torque);
    for (size_t i = 0; i < surface->count; i++) {
        double at[3], area[3], part[3] = {0, 0, 0}, wall[3] = {0, 0, 0}, size = 0.0, slip_length = 0.0;
        memcpy(at, surface->elements[i].at, sizeof at);
        memcpy(area, surface->elements[i].area, sizeof area);
        if (pose) {
            sk_pose_to_world(pose, surface->elements[i].at, at);
            sk_pose_rotate(pose, area, area);
            sk_pose_velocity(pose, at, wall);
        }
        if (is_away(step, obstacle, at))
            continue;

        /* Pressure and shear. */
        const double pressure = sk_pressure_near(step, at, area, kick);
        for (int d = 0; d < 3; d++)
            size += area[d] * area[d];
        size = sqrt(size);
        if (viscosity > 0.0 && size > 0.0 && has_no_slip(surface, step, area, &slip_length)) {
            const double normal[3] = {area[0] / size, area[1] / size, area[2] / size};
            add_shear(step, at, normal, wall, viscosity, slip_length, part);
        }
        for (int d = 0; d < 3; d++)
            part[d] = part[d] * size - pressure * area[d];

        /* Sums. */
        const double arm[3] = {at[0] - about[0], at[1] - about[1], step->dimension == 3 ? at[2] - about[2] : 0.0};
        for (int d = 0; d < 3; d++) {
            force[d] += part[d];
            torque[d] += arm[(d + 1) % 3] * part[(d + 2) % 3] - arm[(d + 2) % 3] * part[(d + 1) % 3];
        }
    }
}
