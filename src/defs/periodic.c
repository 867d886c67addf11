/* Periodic axes: what a scene must have, and what it cannot have beside them. */
#include "defs/structs.h"

#include <stdio.h>

#include "base/status.h"
#include "defs/heat.h"
#include "defs/soft.h"

#define FAIL(place, ...) (sk_path_key(where, place), sk_fail(error, SELKIE_ERROR_INPUT, __VA_ARGS__))

static int frame_turns(const selkie_frame_def *frame)
{
    int turns = frame->motion_file && *frame->motion_file; /* not read yet */
    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < frame->keyframe_count; k++)
            turns |= frame->keyframes[k].rotate[axis] != 0.0;
        for (int o = 0; o < frame->oscillation_count; o++)
            turns |= frame->oscillations[o].rotate[axis] != 0.0;
    }
    return turns;
}

/* The part of a scene that does not know joined sides; NULL = none. */
static const char *unjoined_part(const selkie_scene *scene)
{
    const selkie_volume volume = selkie_scene_volume(scene);
    const struct {
        int is;
        const char *part;
    } parts[] = {
        {scene->discretization == SELKIE_DISCRETIZATION_REDUCED,
         "discretization \"reduced\" (it has reduced.periodic)"},
        {scene->discretization == SELKIE_DISCRETIZATION_SPH && scene->obstacle_count > 0,
         "an obstacle with discretization \"sph\""},
        {sk_scene_has_points(scene) || sk_scene_has_immersed_points(scene), "a liquid of elastoplastic points"},
        {volume == SELKIE_VOLUME_ANDO || volume == SELKIE_VOLUME_SATO, "volume \"ando\" or \"sato\""},
        {sk_scene_particle_bodies(scene), "a body of particles"},
        {scene->body_count > 0, "a rigid body"},
        {scene->object_count > 0, "an object of liquid"},
        {sk_scene_has_heat(scene), "heat"},
        {frame_turns(&scene->frame), "a frame that turns, or one with a motion_file,"},
    };
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++)
        if (parts[n].is)
            return parts[n].part;
    return NULL;
}

/* Blocks of the grid must fit, in pairs: the solvers visit neighbouring blocks in turn. */
static selkie_code check_cells(const selkie_scene *scene, int axis, sk_path *where, selkie_error *error)
{
    int cells[3];
    selkie_scene_cells(scene, cells);
    const int block = scene->domain.dimension == 3 ? 8 : 16, pair = 2 * block, n = cells[axis];
    if (n == block || n % pair == 0)
        return SELKIE_OK;
    const int less = n < pair ? block : n / pair * pair, more = n < block ? block : (n / pair + 1) * pair;
    return FAIL("periodic", "%d cells along %c: must be %d or a multiple of %d, such as %d; change domain.%s", n,
                "xyz"[axis], block, pair, n - less < more - n ? less : more,
                scene->domain.cell_size > 0.0 ? "cell_size" : "resolution");
}

selkie_code sk_periodic_check(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    static const char *const names[6] = {"x_min", "x_max", "y_min", "y_max", "z_min", "z_max"};
    const selkie_domain_def *domain = &scene->domain;
    if (!domain->periodic)
        return SELKIE_OK;
    const size_t before = sk_path_key(where, "domain");
    if (domain->dimension == 2 && domain->periodic & SELKIE_AXES_Z)
        return FAIL("periodic", "a domain in 2D has no z");
    const char *part = unjoined_part(scene);
    if (part)
        return FAIL("periodic", "%s cannot be in a periodic domain so far: leave it out, or set \"none\"", part);
    for (int axis = 0; axis < domain->dimension; axis++) {
        if (!(domain->periodic >> axis & 1))
            continue;
        SK_TRY(check_cells(scene, axis, where, error));
        for (int side = 2 * axis; side < 2 * axis + 2; side++)
            if (domain->walls[side] == SELKIE_WALL_NO_SLIP) {
                sk_path_key(where, "walls");
                return FAIL(names[side], "\"no_slip\" stands beside domain.periodic along that axis: give one of them");
            }
    }
    sk_path_cut(where, before);
    return SELKIE_OK;
}
