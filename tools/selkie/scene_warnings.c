/* Warnings of a scene: what cannot be resolved, where it lies, and how long a step is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geom/mesh_import.h"
#include "geom/shape.h"
#include "tool.h"
#include "warnings.h"

/* --- Obstacles --- */

/* m: mean thickness of a mesh. A plate of area A on each side and thickness d has volume A d and surface 2 A. */
static double mesh_thickness(const selkie_scene *scene, const selkie_shape *shape)
{
    sk_mesh_placement placement;
    memcpy(placement.scale, shape->scale, sizeof placement.scale);
    memcpy(placement.rotate, shape->rotate, sizeof placement.rotate);
    memcpy(placement.translate, shape->translate, sizeof placement.translate);
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", scene->folder && shape->file[0] != '/' ? scene->folder : "",
             scene->folder && *scene->folder && shape->file[0] != '/' ? "/" : "", shape->file);
    sk_solid_mesh mesh = {0};
    if (sk_solid_mesh_import(path, &placement, "", NULL, &mesh, NULL))
        return INFINITY;
    double area = 0;
    for (size_t t = 0; t < mesh.triangle_count; t++) {
        const double *a = mesh.vertices[mesh.triangles[t][0]], *b = mesh.vertices[mesh.triangles[t][1]],
                     *c = mesh.vertices[mesh.triangles[t][2]];
        double u[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, v[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
        double x = u[1] * v[2] - u[2] * v[1], y = u[2] * v[0] - u[0] * v[2], z = u[0] * v[1] - u[1] * v[0];
        area += 0.5 * sqrt(x * x + y * y + z * z);
    }
    double thickness = mesh.open_edges ? 0 : 2 * fabs(sk_solid_mesh_volume(&mesh)) / area;
    sk_solid_mesh_release(&mesh);
    return thickness;
}

/* m: least width of a shape, INFINITY where it has no end or is not known. */
static double shape_thickness(const selkie_scene *scene, const selkie_shape *shape)
{
    int dimension = scene->domain.dimension;
    double thickness = INFINITY, length2 = 0;
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        for (int axis = 0; axis < dimension; axis++)
            thickness = fmin(thickness, shape->max[axis] - shape->min[axis]);
        return thickness;
    case SELKIE_SHAPE_SPHERE:
        return 2 * shape->radius;
    case SELKIE_SHAPE_CYLINDER:
        for (int axis = 0; axis < dimension; axis++)
            length2 += (shape->to[axis] - shape->from[axis]) * (shape->to[axis] - shape->from[axis]);
        return fmin(2 * shape->radius, sqrt(length2));
    case SELKIE_SHAPE_MESH:
        return dimension == 3 ? mesh_thickness(scene, shape) : INFINITY;
    case SELKIE_SHAPE_UNION:
        for (int i = 0; i < shape->child_count; i++)
            thickness = fmin(thickness, shape_thickness(scene, &shape->children[i]));
        return thickness;
    default:
        return INFINITY;
    }
}

static void judge_thickness(const selkie_scene *scene, const selkie_plan *plan, warning_list *list)
{
    int sph = scene->discretization == SELKIE_DISCRETIZATION_SPH;
    double resolved = sph ? selkie_scene_spacing(scene) : plan->cell_size;
    for (int i = 0; i < scene->obstacle_count; i++) {
        double thickness = shape_thickness(scene, &scene->obstacles[i].shape);
        if (thickness >= resolved * (1 - 1e-6))
            continue;
        add_warning(
            list,
            "obstacles[%d].shape: is about %.3g m thick, thinner than %s of %.3g m: flow and pressure beside it "
            "are not resolved; make it thicker, or use cells of %.3g m (domain.cell_size)",
            i, thickness, sph ? "the particles' spacing" : "a cell", resolved,
            thickness > 0 ? thickness * plan->cell_size / resolved : 0.5 * plan->cell_size);
    }
    for (int i = 0; i < scene->body_count; i++) {
        double thickness = shape_thickness(scene, &scene->bodies[i].shape);
        if (thickness < resolved * (1 - 1e-6))
            add_warning(
                list,
                "bodies[%d].shape: is about %.3g m thick, thinner than %s of %.3g m: the liquid hardly feels it, "
                "and it may not float; make it thicker, or use smaller cells (domain.cell_size)",
                i, thickness, sph ? "the particles' spacing" : "a cell", resolved);
    }
}

/* --- Joined sides --- */

/* A shape to ask; NULL if it cannot be read. */
static sk_shape *make_shape(const selkie_scene *scene, const selkie_shape *def)
{
    double up[3];
    selkie_scene_up(scene, up);
    const sk_shape_options options = {
        .dimension = scene->domain.dimension, .up = up, .folder = scene->folder, .what = "shape"};
    sk_shape *shape = NULL;
    return sk_shape_create(def, &options, &shape, NULL) ? NULL : shape;
}

/* Share of a side's area where a shape is solid at one side of an axis and not at the other. `both` is set if it is
 * solid somewhere at each. Points lie on a grid just inside the sides. */
static double uneven_share(const sk_shape *shape, const selkie_plan *plan, const double origin[3], int axis,
                           int dimension, int *both)
{
    enum { POINTS = 64 };
    const int b = (axis + 1) % dimension, c = dimension == 3 ? (axis + 2) % 3 : -1, rows = c < 0 ? 1 : POINTS;
    int uneven = 0, found[2] = {0, 0};
    for (int n = 0; n < POINTS * rows; n++) {
        int solid[2];
        for (int side = 0; side < 2; side++) {
            double x[3] = {0, 0, 0};
            x[axis] = origin[axis] + plan->cell_size * (side ? plan->cells[axis] : 0);
            x[b] = origin[b] + plan->cell_size * plan->cells[b] * (n % POINTS + 0.5) / POINTS;
            if (c >= 0)
                x[c] = origin[c] + plan->cell_size * plan->cells[c] * (n / POINTS + 0.5) / POINTS;
            solid[side] = sk_shape_distance(shape, x) < 0.0;
            found[side] |= solid[side];
        }
        uneven += solid[0] != solid[1];
    }
    *both = found[0] && found[1];
    return (double)uneven / (POINTS * rows);
}

/* An obstacle that spans a periodic axis must end as it begins. */
static void judge_seams(const selkie_scene *scene, const selkie_plan *plan, warning_list *list)
{
    for (int i = 0; i < scene->obstacle_count && scene->domain.periodic; i++) {
        sk_shape *shape = make_shape(scene, &scene->obstacles[i].shape);
        for (int axis = 0; axis < scene->domain.dimension && shape; axis++) {
            int both = 0;
            if (!(scene->domain.periodic >> axis & 1))
                continue;
            const double share = uneven_share(shape, plan, scene->domain.origin, axis, scene->domain.dimension, &both);
            if (both && share > 0.02)
                add_warning(list,
                            "obstacles[%d].shape: differs at %c_min and %c_max over %.0f %% of the side, where "
                            "domain.periodic joins them: liquid meets a step there; let it end as it begins",
                            i, "xyz"[axis], "xyz"[axis], 100 * share);
        }
        sk_shape_destroy(shape);
    }
}

/* --- Sources --- */

typedef struct source_share {
    int inside, in_solid, outside; /* sample points of the source, of these in obstacles, and beyond the domain */
} source_share;

static int is_in_solid(const selkie_scene *scene, sk_shape *const *obstacles, double time, const double x[3])
{
    for (int i = 0; i < scene->obstacle_count; i++) {
        sk_pose pose;
        sk_pose_at(&scene->obstacles[i], time, &pose);
        if (obstacles[i] && sk_obstacle_distance(obstacles[i], &pose, x, NULL) < 0)
            return 1;
    }
    return 0;
}

/* Looks at a lattice of points in the bounds of a source, cut to the domain where these have no end. */
static source_share look_at_source(const selkie_scene *scene, const selkie_source_def *source,
                                   sk_shape *const *obstacles)
{
    enum { side = 16 };
    source_share share = {0, 0, 0};
    sk_shape *shape = make_shape(scene, &source->shape);
    if (!shape)
        return share;

    /* Bounds of the source. */
    double low[3], high[3];
    sk_shape_bounds(shape, low, high);
    int deep = scene->domain.dimension == 3;
    for (int axis = 0; axis < 2 + deep; axis++) {
        double from = scene->domain.origin[axis], to = from + scene->domain.size[axis];
        low[axis] = isfinite(low[axis]) ? low[axis] : from;
        high[axis] = isfinite(high[axis]) ? high[axis] : to;
    }

    /* Count the points inside the source that lie outside the domain or in a solid. */
    for (int n = 0; n < (deep ? side * side * side : side * side); n++) {
        const int at[3] = {n % side, n / side % side, n / side / side};
        double x[3] = {0, 0, 0};
        int outside = 0;
        for (int axis = 0; axis < 2 + deep; axis++) {
            x[axis] = low[axis] + (at[axis] + 0.5) / side * (high[axis] - low[axis]);
            outside |=
                x[axis] < scene->domain.origin[axis] || x[axis] > scene->domain.origin[axis] + scene->domain.size[axis];
        }
        if (!sk_shape_inside(shape, x))
            continue;
        share.inside++;
        share.outside += outside;
        share.in_solid += !outside && is_in_solid(scene, obstacles, source->start, x);
    }

    sk_shape_destroy(shape);
    return share;
}

/* A source may reach into a nozzle or a wall; one that mostly lies there emits little or nothing. */
static void judge_sources(const selkie_scene *scene, warning_list *list)
{
    const double allowed = 0.5;
    sk_shape **obstacles = calloc((size_t)scene->obstacle_count + 1, sizeof *obstacles);
    for (int i = 0; obstacles && scene->source_count && i < scene->obstacle_count; i++)
        obstacles[i] = make_shape(scene, &scene->obstacles[i].shape);
    for (int i = 0; obstacles && i < scene->source_count; i++) {
        source_share share = look_at_source(scene, &scene->sources[i], obstacles);
        double all = share.inside ? share.inside : 1;
        if (share.in_solid > allowed * all)
            add_warning(list,
                        "sources[%d].shape: %.0f %% of it lies inside obstacles, where nothing comes out; move it into "
                        "the open",
                        i, 100 * share.in_solid / all);
        if (share.outside > allowed * all)
            add_warning(
                list,
                "sources[%d].shape: %.0f %% of it lies outside the domain, where nothing comes out; move it, or "
                "enlarge the domain",
                i, 100 * share.outside / all);
    }
    for (int i = 0; obstacles && i < scene->obstacle_count; i++)
        sk_shape_destroy(obstacles[i]);
    free(obstacles);
}

/* --- Bodies --- */

/* Do two shapes share a point that lies deeper than a tenth of a cell in both? Looks at a lattice in the common bounds.
 */
static int shapes_overlap(const selkie_scene *scene, const sk_shape *a, const sk_shape *b, const sk_pose *pose_b,
                          double cell)
{
    enum { POINTS = 13 };
    double low[3], high[3], low_b[3], high_b[3];
    const int layers = scene->domain.dimension == 3 ? POINTS : 1;
    sk_shape_bounds(a, low, high);
    sk_shape_bounds(b, low_b, high_b);
    for (int d = 0; !pose_b && d < scene->domain.dimension; d++)
        if (high[d] < low_b[d] || low[d] > high_b[d])
            return 0;
    for (int k = 0; k < layers; k++)
        for (int j = 0; j < POINTS; j++)
            for (int i = 0; i < POINTS; i++) {
                const int at[3] = {i, j, k};
                double x[3] = {0, 0, 0};
                for (int d = 0; d < scene->domain.dimension; d++)
                    x[d] = low[d] + (at[d] + 0.5) / POINTS * (high[d] - low[d]);
                const double in_b = pose_b ? sk_obstacle_distance(b, pose_b, x, NULL) : sk_shape_distance(b, x);
                if (sk_shape_distance(a, x) < -0.1 * cell && in_b < -0.1 * cell)
                    return 1;
            }
    return 0;
}

static void judge_body(const selkie_scene *scene, const selkie_plan *plan, sk_shape *const *shapes,
                       sk_shape *const *obstacles, int body, warning_list *list)
{
    for (int other = 0; other < body; other++)
        if (shapes[other] && shapes_overlap(scene, shapes[body], shapes[other], NULL, plan->cell_size))
            add_warning(list, "bodies[%d].shape: overlaps bodies[%d] at the start: contacts will throw them apart",
                        body, other);
    for (int o = 0; o < scene->obstacle_count; o++) {
        sk_pose pose;
        sk_pose_at(&scene->obstacles[o], 0.0, &pose);
        if (obstacles[o] && shapes_overlap(scene, shapes[body], obstacles[o], &pose, plan->cell_size))
            add_warning(list, "bodies[%d].shape: lies in obstacles[%d] at the start: contacts will throw it out", body,
                        o);
    }

    double low[3], high[3];
    sk_shape_bounds(shapes[body], low, high);
    for (int d = 0; d < scene->domain.dimension; d++) {
        const double start = scene->domain.origin[d], end = start + scene->domain.size[d];
        if ((low[d] < start - 0.1 * plan->cell_size && scene->domain.walls[2 * d] != SELKIE_WALL_OPEN) ||
            (high[d] > end + 0.1 * plan->cell_size && scene->domain.walls[2 * d + 1] != SELKIE_WALL_OPEN)) {
            add_warning(list, "bodies[%d].shape: reaches through a wall of the domain at the start", body);
            return;
        }
    }
}

static void judge_bodies(const selkie_scene *scene, const selkie_plan *plan, warning_list *list)
{
    if (scene->discretization == SELKIE_DISCRETIZATION_REDUCED)
        return; /* it refuses such bodies */
    sk_shape **shapes = calloc((size_t)scene->body_count + 1, sizeof *shapes);
    sk_shape **obstacles = calloc((size_t)scene->obstacle_count + 1, sizeof *obstacles);
    for (int o = 0; obstacles && scene->body_count && o < scene->obstacle_count; o++)
        obstacles[o] = make_shape(scene, &scene->obstacles[o].shape);
    for (int i = 0; shapes && obstacles && i < scene->body_count; i++) {
        shapes[i] = make_shape(scene, &scene->bodies[i].shape);
        if (shapes[i])
            judge_body(scene, plan, shapes, obstacles, i, list);
    }
    for (int i = 0; shapes && i < scene->body_count; i++)
        sk_shape_destroy(shapes[i]);
    for (int o = 0; obstacles && o < scene->obstacle_count; o++)
        sk_shape_destroy(obstacles[o]);
    free(obstacles);
    free(shapes);
}

/* --- Steps --- */

static double norm(const double v[3])
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* m/s: what the scene prescribes, or a fall from the top of the liquid to the floor. */
static double expected_speed(const selkie_scene *scene)
{
    double speed = 0, fall = 0, up[3];
    selkie_scene_up(scene, up);
    for (int i = 0; i < scene->source_count; i++)
        speed = fmax(speed, norm(scene->sources[i].velocity));
    for (int i = 0; i < scene->obstacle_count; i++)
        speed = fmax(speed, norm(scene->obstacles[i].velocity));
    for (int i = 0; i < scene->liquid_count; i++) {
        speed = fmax(speed, norm(scene->liquids[i].velocity));
        sk_shape *shape = make_shape(scene, &scene->liquids[i].shape);
        if (!shape)
            continue;
        double low[3], high[3], top = 0;
        sk_shape_bounds(shape, low, high);
        sk_shape_destroy(shape);
        for (int axis = 0; axis < scene->domain.dimension; axis++) {
            double from = scene->domain.origin[axis], to = from + scene->domain.size[axis];
            double best = up[axis] > 0 ? fmin(high[axis], to) - from : to - fmax(low[axis], from);
            top += fabs(up[axis]) * fmax(best, 0);
        }
        fall = fmax(fall, top);
    }
    return fmax(speed, sqrt(2 * norm(scene->gravity) * fall));
}

/* A step is far too long where it is several times what the CFL number, or the waves of a cell's length, allow. The
 * expected speed is that of a fall, which calm water does not reach. */
static void judge_step(const selkie_scene *scene, const selkie_plan *plan, warning_list *list)
{
    const double speed_factor = 4, wave_factor = 2, longest_cfl = 10, longest_sph = 0.8;
    const selkie_time_def *time = &scene->time;
    int sph = scene->discretization == SELKIE_DISCRETIZATION_SPH;
    double length = sph ? selkie_scene_spacing(scene) : plan->cell_size, gravity = norm(scene->gravity);
    double speed = expected_speed(scene), step = time->step > 0 ? time->step : time->min_step;
    step = fmin(step, 1 / time->fps);
    /* Water at rest, 32 particles deep: calm at 0.7; at 0.8 its centre rises by a fifth of the depth. */
    if (sph && time->cfl > longest_sph)
        add_warning(list,
                    "time.cfl: %g is too much for discretization sph: particles under pressure slip past each other, "
                    "and water at rest leaps; use at most 0.5, or leave it out",
                    time->cfl);
    else if (time->cfl > longest_cfl && !(time->step > 0))
        add_warning(
            list,
            "time.cfl: %g lets particles cross %g cells in a step: the surface tears and energy is lost; use at "
            "most 6, or leave it out",
            time->cfl, time->cfl);
    double by_speed = speed > 0 ? selkie_scene_cfl(scene) * length / speed : INFINITY;
    double by_waves = gravity > 0 ? sqrt(length / gravity) : INFINITY;
    double right = fmin(by_speed, by_waves);
    if (!(step > speed_factor * by_speed || step > wave_factor * by_waves))
        return;
    char waves[80] = "";
    if (isfinite(by_waves))
        snprintf(waves, sizeof waves, ", and waves of that length need steps below %.2g s", by_waves);
    add_warning(
        list,
        "time.%s: %g s is far too long: at the %.2g m/s to be expected a particle crosses %.2g %s in a step%s; use "
        "at most %.2g s, or leave it out",
        time->step > 0 ? "step" : "min_step", time->step > 0 ? time->step : time->min_step, speed,
        speed * step / length, sph ? "spacings" : "cells", waves, right);
}

static void judge_frames(const selkie_scene *scene, const selkie_plan *plan, warning_list *list)
{
    if (plan->frames == 0 && scene->time.end > 0)
        add_warning(
            list, "time.fps: %g makes no frame until %g s, so there is nothing to see but the start; use at least %.3g",
            scene->time.fps, scene->time.end, 1 / scene->time.end);
    else if (scene->output.every > plan->frames && plan->frames > 0)
        add_warning(list,
                    "output.every: %d is more than the %lld frames of the run, so only the start is written; use less",
                    scene->output.every, (long long)plan->frames);
}

void judge_scene(const selkie_scene *scene, const selkie_plan *plan, warning_list *list)
{
    judge_thickness(scene, plan, list);
    judge_seams(scene, plan, list);
    judge_sources(scene, list);
    judge_bodies(scene, plan, list);
    judge_step(scene, plan, list);
    judge_frames(scene, plan, list);
}
