/* Checks of a scene of reduced fluids. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "defs/structs.h"
#include "defs/text.h"

#define FAIL(place, ...) (sk_path_key(where, place), sk_fail(error, SELKIE_ERROR_INPUT, __VA_ARGS__))

static int has_basis(const selkie_reduced_def *def)
{
    return def->basis && *def->basis;
}

static int find_drawn(const selkie_reduced_def *def, const char *name)
{
    for (int m = 0; name && m < def->drawn_count; m++)
        if (def->drawn[m].name && strcmp(def->drawn[m].name, name) == 0)
            return m;
    return -1;
}

static selkie_code check_drawn(const selkie_reduced_def *def, int m, sk_path *where, selkie_error *error)
{
    const selkie_drawn_def *drawn = &def->drawn[m];
    const size_t before = sk_path_key(where, "drawn");
    sk_path_index(where, m);
    if (!drawn->name || !*drawn->name)
        return FAIL("name", "is empty: excitations name their mode");
    if (find_drawn(def, drawn->name) < m)
        return FAIL("name", "is the name of drawn[%d] already: choose another one", find_drawn(def, drawn->name));
    if (drawn->stroke_count == 0 && !(drawn->picture && *drawn->picture))
        return FAIL("strokes", "is empty: a drawing needs at least one stroke, or a picture");
    for (int k = 0; k < drawn->stroke_count; k++) {
        const selkie_stroke_def *stroke = &drawn->strokes[k];
        if (stroke->from[0] == stroke->to[0] && stroke->from[1] == stroke->to[1]) {
            sk_path_key(where, "strokes");
            sk_path_index(where, k);
            return FAIL("to", "is the same point as from: a stroke must have a length");
        }
    }
    if (drawn->snapshots > 1 && !(drawn->time > 0.0))
        return FAIL("snapshots", "%d of a drawing that does not move: set time, or 1", drawn->snapshots);
    sk_path_cut(where, before);
    return SELKIE_OK;
}

static selkie_code check_excitation(const selkie_reduced_def *def, int e, sk_path *where, selkie_error *error)
{
    const selkie_excite_def *excite = &def->excite[e];
    const size_t before = sk_path_key(where, "excite");
    char quoted[96];
    sk_path_index(where, e);
    if (!has_basis(def) && find_drawn(def, excite->mode) < 0)
        return FAIL("mode", "%s is not known: must be the name of a drawn mode",
                    sk_quote(quoted, sizeof quoted, excite->mode));
    if (excite->end >= 0.0 && excite->end <= excite->start)
        return FAIL("end", "%g s is not after start, %g s; below 0 means never", excite->end, excite->start);
    sk_path_cut(where, before);
    return SELKIE_OK;
}

static int repeats(const selkie_scene *scene, int d)
{
    const selkie_periodic periodic = scene->reduced.periodic;
    return periodic == SELKIE_PERIODIC_BOTH || periodic == (d ? SELKIE_PERIODIC_Y : SELKIE_PERIODIC_X);
}

/* Sides of the box. */
static selkie_code check_sides(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    static const char *const names[4] = {"x_min", "x_max", "y_min", "y_max"};
    for (int side = 0; side < 4; side++) {
        const selkie_wall wall = scene->domain.walls[side];
        const size_t before = sk_path_key(where, "domain");
        sk_path_key(where, "walls");
        if (wall == SELKIE_WALL_NO_SLIP)
            return FAIL(names[side], "\"no_slip\" with discretization \"reduced\": its modes slide along walls; must "
                                     "be \"free_slip\" or \"open\"");
        if (wall == SELKIE_WALL_OPEN && repeats(scene, side / 2))
            return FAIL(names[side], "\"open\" stands beside reduced.periodic along that axis: give one of them");
        sk_path_cut(where, before);
    }
    const size_t before = sk_path_key(where, "reduced");
    for (int d = 0; d < 2; d++)
        if (scene->reduced.mean_flow[d] != 0.0 && !repeats(scene, d) &&
            (scene->domain.walls[2 * d] != SELKIE_WALL_OPEN || scene->domain.walls[2 * d + 1] != SELKIE_WALL_OPEN))
            return FAIL("mean_flow",
                        "%g m/s along %c: liquid must get through both ends, so set reduced.periodic, or "
                        "open walls",
                        scene->reduced.mean_flow[d], "xy"[d]);
    sk_path_cut(where, before);
    return SELKIE_OK;
}

/* What the method does not have. */
static selkie_code check_others(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    const struct {
        const char *key;
        int count;
    } lists[] = {{"sources", scene->source_count},
                 {"drains", scene->drain_count},
                 {"objects", scene->object_count},
                 {"gravity_over_time", scene->gravity_key_count},
                 {"frame", scene->frame.keyframe_count + scene->frame.oscillation_count}};
    if (scene->domain.dimension != 2) {
        sk_path_key(where, "domain");
        return FAIL("dimension", "3 with discretization \"reduced\": its modes are made in 2D only; must be 2");
    }
    for (size_t n = 0; n < sizeof lists / sizeof *lists; n++)
        if (lists[n].count)
            return FAIL(lists[n].key, "discretization \"reduced\" has none: a full box has walls, forces and tracers");
    if (scene->incompressibility != SELKIE_INCOMPRESSIBILITY_BILATERAL)
        return FAIL("incompressibility", "\"unilateral\" needs a grid: discretization must be \"grid\"");
    if (selkie_scene_volume(scene) != SELKIE_VOLUME_NONE)
        return FAIL("volume", "is for the grid methods: must be \"none\" beside discretization \"reduced\"");
    for (int l = 0; l < scene->liquid_count; l++)
        if (scene->liquids[l].flow.kind != SELKIE_FLOW_NONE) {
            sk_path_key(where, "liquids");
            sk_path_index(where, l);
            return FAIL("flow",
                        "discretization \"reduced\" starts with velocity, angular_velocity and drawn modes only");
        }
    for (int f = 0; f < scene->force_count; f++)
        if (scene->forces[f].kind == SELKIE_FORCE_SPONGE) {
            sk_path_key(where, "forces");
            sk_path_index(where, f);
            return FAIL("type",
                        "\"sponge\" absorbs waves of a free surface, which discretization \"reduced\" does not have");
        }
    for (int p = 0; p < scene->probe_count; p++) {
        const selkie_probe_kind kind = scene->probes[p].kind;
        const int of_body = (kind == SELKIE_PROBE_FORCE || kind == SELKIE_PROBE_TORQUE) && scene->body_count > 0;
        if (kind == SELKIE_PROBE_VELOCITY || kind == SELKIE_PROBE_FRONT || of_body)
            continue;
        sk_path_key(where, "probes");
        sk_path_index(where, p);
        return FAIL("type", "discretization \"reduced\" measures \"velocity\", the \"front\" of its tracers and the "
                            "\"force\" and \"torque\" on bodies only");
    }
    return SELKIE_OK;
}

/* Obstacles make the domain: eigenvectors of a closed box with solids at rest in it. */
static selkie_code check_obstacles(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    int open = scene->reduced.periodic != SELKIE_PERIODIC_NONE;
    for (int side = 0; side < 4; side++)
        open |= scene->domain.walls[side] == SELKIE_WALL_OPEN;
    for (int o = 0; o < scene->obstacle_count; o++) {
        const selkie_obstacle_def *obstacle = &scene->obstacles[o];
        int moves = obstacle->keyframe_count > 0 || obstacle->oscillation_count > 0;
        for (int d = 0; d < 3; d++)
            moves |= obstacle->velocity[d] != 0.0 || obstacle->angular_velocity[d] != 0.0;
        sk_path_key(where, "obstacles");
        sk_path_index(where, o);
        if (moves)
            return sk_fail(error, SELKIE_ERROR_INPUT, "moves: with discretization \"reduced\" it must stand still");
        if (obstacle->surface != SELKIE_WALL_FREE_SLIP)
            return FAIL("surface", "\"no_slip\" with discretization \"reduced\": must be \"free_slip\"");
        sk_path_cut(where, 0);
    }
    if (scene->obstacle_count && open)
        return FAIL("obstacles", "discretization \"reduced\" has them in closed boxes only: no open walls and no "
                                 "reduced.periodic");
    if (scene->obstacle_count && scene->reduced.drawn_count)
        return FAIL("obstacles", "discretization \"reduced\" has drawn modes in boxes without obstacles only");
    if (scene->obstacle_count && scene->reduced.modes > 1024 && !has_basis(&scene->reduced)) {
        sk_path_key(where, "reduced");
        return FAIL("modes", "%d beside obstacles: at most 1024, they are found one by one", scene->reduced.modes);
    }
    return SELKIE_OK;
}

/* Bodies: their images are known for walls and periodic sides. */
static selkie_code check_bodies(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    static const char *const names[4] = {"x_min", "x_max", "y_min", "y_max"};
    if (scene->body_count == 0)
        return SELKIE_OK;
    if (scene->obstacle_count)
        return FAIL("obstacles", "stand beside bodies: with discretization \"reduced\" give them as bodies that are "
                                 "held, with move and turn 0");
    for (int side = 0; side < 4; side++)
        if (scene->domain.walls[side] == SELKIE_WALL_OPEN) {
            sk_path_key(where, "domain");
            sk_path_key(where, "walls");
            return FAIL(names[side], "\"open\" beside bodies of discretization \"reduced\": must be \"free_slip\"");
        }
    for (int b = 0; b < scene->body_count; b++)
        if (scene->bodies[b].surface == SELKIE_WALL_NO_SLIP) {
            sk_path_key(where, "bodies");
            sk_path_index(where, b);
            return FAIL("surface", "\"no_slip\" with discretization \"reduced\": must be \"free_slip\"");
        }
    return SELKIE_OK;
}

static int find_body(const selkie_scene *scene, const char *name)
{
    for (int b = 0; name && *name && b < scene->body_count; b++)
        if (scene->bodies[b].name && strcmp(scene->bodies[b].name, name) == 0)
            return b;
    return -1;
}

static selkie_code check_joint(const selkie_scene *scene, int j, sk_path *where, selkie_error *error)
{
    const selkie_joint_def *joint = &scene->joints[j];
    const size_t before = sk_path_key(where, "joints");
    char quoted[96];
    sk_path_index(where, j);
    if (scene->discretization != SELKIE_DISCRETIZATION_REDUCED)
        return sk_fail(error, SELKIE_ERROR_INPUT, "joins bodies of discretization \"reduced\" only so far");
    if (find_body(scene, joint->first) < 0)
        return FAIL("first", "no body is called %s: must be the name of one",
                    sk_quote(quoted, sizeof quoted, joint->first ? joint->first : ""));
    if (joint->second && *joint->second && find_body(scene, joint->second) < 0)
        return FAIL("second", "no body is called %s: must be the name of one, or none",
                    sk_quote(quoted, sizeof quoted, joint->second));
    if (find_body(scene, joint->first) == find_body(scene, joint->second))
        return FAIL("second", "is the same body as first");
    if (joint->spin != 0.0 && joint->swing != 0.0)
        return FAIL("spin", "%g rad/s stands beside swing: give one of them", joint->spin);
    sk_path_cut(where, before);
    return SELKIE_OK;
}

selkie_code sk_reduced_check(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    const selkie_reduced_def *def = &scene->reduced;
    for (int j = 0; j < scene->joint_count; j++)
        SK_TRY(check_joint(scene, j, where, error));
    if (scene->discretization != SELKIE_DISCRETIZATION_REDUCED)
        return SELKIE_OK;
    SK_TRY(check_others(scene, where, error));
    SK_TRY(check_sides(scene, where, error));
    SK_TRY(check_bodies(scene, where, error));
    SK_TRY(check_obstacles(scene, where, error));
    const size_t before = sk_path_key(where, "reduced");
    if (def->dye_count > SK_MAX_DYES)
        return FAIL("dye", "%d of them: at most %d", def->dye_count, SK_MAX_DYES);
    if (has_basis(def) && def->drawn_count)
        return FAIL("drawn", "stands beside basis, which has modes of its own: give one of them");
    for (int m = 0; m < def->drawn_count; m++)
        SK_TRY(check_drawn(def, m, where, error));
    for (int e = 0; e < def->excite_count; e++)
        SK_TRY(check_excitation(def, e, where, error));
    if (def->integrator == SELKIE_REDUCED_EXPONENTIAL &&
        (def->modes > 256 || def->drawn_count || scene->obstacle_count || def->periodic != SELKIE_PERIODIC_NONE))
        return FAIL("integrator", "\"exponential\" is for at most 256 eigenfunctions of a closed box: must be \"rk4\"");
    for (int side = 0; side < 4; side++)
        if (def->integrator == SELKIE_REDUCED_EXPONENTIAL && scene->domain.walls[side] == SELKIE_WALL_OPEN)
            return FAIL("integrator", "\"exponential\" is for closed boxes: must be \"rk4\" beside open walls");
    sk_path_cut(where, before);
    return SELKIE_OK;
}
