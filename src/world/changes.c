/* Changes of a scene while it runs.
 *
 * The log holds the changes of the scene and those of callers in the order of their steps. A change edits the world's
 * scene. Small edits are made in place. Others build the world anew of the edited scene and its own state, as a
 * resumed run does, so that the bits do not depend on who made the change. A change of liquid or of a body's velocity
 * edits the state alone.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "cuda/cuda.h"
#include "defs/relative.h"
#include "defs/soft.h"
#include "geom/shape.h"
#include "rigid/rigid.h"
#include "world/change_bodies.h"
#include "world/scene_changes.h"
#include "world/world_internal.h"

static const double degrees_per_radian = 57.295779513082320877;

/* --- Edits of a scene --- */

/* A list of a scene: where its elements and their number are. */
typedef struct scene_list {
    void *elements; /* address of the pointer */
    int *count;
    const sk_struct *type;
    const char *what;
} scene_list;

static scene_list list_of(selkie_scene *scene, selkie_change_list list)
{
    switch (list) {
    case SELKIE_LIST_FORCES:
        return (scene_list){&scene->forces, &scene->force_count, &sk_force_struct, "force"};
    case SELKIE_LIST_SOURCES:
        return (scene_list){&scene->sources, &scene->source_count, &sk_source_struct, "source"};
    case SELKIE_LIST_DRAINS:
        return (scene_list){&scene->drains, &scene->drain_count, &sk_drain_struct, "drain"};
    case SELKIE_LIST_BODIES:
        return (scene_list){&scene->bodies, &scene->body_count, &sk_body_struct, "body"};
    default:
        return (scene_list){&scene->obstacles, &scene->obstacle_count, &sk_obstacle_struct, "obstacle"};
    }
}

static char *elements_of(const scene_list *list)
{
    char *elements;
    memcpy(&elements, list->elements, sizeof elements);
    return elements;
}

/* Replaces the element of a list that has the name of the new one, or adds it. Returns the element, NULL if there is no
 * memory. */
static void *put(selkie_scene *scene, const scene_list *list, const void *element)
{
    const size_t size = list->type->size;
    const char *name;
    char *elements = elements_of(list);
    memcpy(&name, element, sizeof name);
    int at = name && *name ? sk_change_find(elements, *list->count, size, name) : -1;
    if (at < 0) {
        char *longer = sk_pool_take(scene->owned, ((size_t)*list->count + 1) * size);
        if (!longer)
            return NULL;
        if (elements)
            memcpy(longer, elements, (size_t)*list->count * size);
        memcpy(list->elements, &longer, sizeof longer);
        elements = longer;
        at = (*list->count)++;
    }
    memcpy(elements + (size_t)at * size, element, size);
    return sk_struct_own(scene->owned, list->type, elements + (size_t)at * size) ? elements + (size_t)at * size : NULL;
}

static selkie_code take_away(const scene_list *list, const char *name, selkie_error *error)
{
    const size_t size = list->type->size;
    char *elements = elements_of(list);
    const int at = sk_change_find(elements, *list->count, size, name);
    if (at < 0)
        return sk_fail(error, SELKIE_ERROR_INPUT, "changes: no %s has the name or number \"%s\"; the scene has %d",
                       list->what, name, *list->count);
    memmove(elements + (size_t)at * size, elements + ((size_t)at + 1) * size, (size_t)(--*list->count - at) * size);
    return SELKIE_OK;
}

/* Angles (deg) about x, then y, then z, of a rotation. */
static void angles_of(const double rotation[9], double degrees[3])
{
    const double sine = fmin(fmax(-rotation[6], -1.0), 1.0);
    degrees[1] = asin(sine) * degrees_per_radian;
    if (fabs(sine) > 1.0 - 1e-12) { /* x and z turn about the same axis: all of it about z */
        degrees[0] = 0.0;
        degrees[2] = atan2(-rotation[1], rotation[4]) * degrees_per_radian;
        return;
    }
    degrees[0] = atan2(rotation[7], rotation[8]) * degrees_per_radian;
    degrees[2] = atan2(rotation[3], rotation[0]) * degrees_per_radian;
}

/* From the pose that an obstacle has now to another one. */
static selkie_code move_obstacle(selkie_scene *scene, const selkie_change_def *change, double time, selkie_error *error)
{
    const int at = sk_change_find(scene->obstacles, scene->obstacle_count, sizeof *scene->obstacles, change->name);
    if (at < 0)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "changes: no obstacle has the name or number \"%s\"; the scene has %d", change->name,
                       scene->obstacle_count);
    selkie_obstacle_def *obstacle = (selkie_obstacle_def *)&scene->obstacles[at];
    sk_pose pose;
    sk_pose_at(obstacle, time, &pose);

    /* Two keyframes; those of an earlier move are written over. */
    selkie_keyframe keys[2] = {{.time = time}, {.time = time + change->duration}};
    memcpy(keys[0].translate, pose.translation, sizeof keys[0].translate);
    angles_of(pose.rotation, keys[0].rotate);
    memcpy(keys[1].translate, change->translate, sizeof keys[1].translate);
    memcpy(keys[1].rotate, change->rotate, sizeof keys[1].rotate);
    selkie_keyframe *room = obstacle->keyframe_count >= 2 ? (selkie_keyframe *)obstacle->keyframes
                                                          : sk_pool_take(scene->owned, sizeof keys);
    if (!room)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    memcpy(room, keys, sizeof keys);
    obstacle->keyframes = room;
    obstacle->keyframe_count = 2;
    obstacle->oscillation_count = 0;
    memset(obstacle->velocity, 0, sizeof obstacle->velocity);
    memset(obstacle->angular_velocity, 0, sizeof obstacle->angular_velocity);
    return SELKIE_OK;
}

/* Gravity over time with one value: `gravity` itself still says what is up. */
static selkie_code set_gravity(selkie_scene *scene, const double gravity[3], selkie_error *error)
{
    selkie_gravity_key *key =
        scene->gravity_key_count ? (selkie_gravity_key *)scene->gravity_keys : sk_pool_take(scene->owned, sizeof *key);
    if (!key)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    key->time = 0.0;
    memcpy(key->gravity, gravity, sizeof key->gravity);
    scene->gravity_keys = key;
    scene->gravity_key_count = 1;
    return SELKIE_OK;
}

/* Adds a dye that begins now. What has been dyed keeps its colour, so a dye of the same name is not replaced: it ends.
 */
static selkie_code add_dye(selkie_scene *scene, const scene_list *list, const selkie_dye_def *dye, double time,
                           selkie_error *error)
{
    selkie_dye_def *dyes = (selkie_dye_def *)scene->reduced.dye;
    if (*list->count >= SK_MAX_DYES)
        return sk_fail(error, SELKIE_ERROR_INPUT, "changes: the scene has %d dyes already, at most %d", *list->count,
                       SK_MAX_DYES);
    for (int n = 0; dye->name && *dye->name && n < *list->count; n++)
        if (dyes[n].name && strcmp(dyes[n].name, dye->name) == 0 && dyes[n].end > time)
            dyes[n].end = time;
    selkie_dye_def *longer = sk_pool_take(scene->owned, ((size_t)*list->count + 1) * sizeof *longer);
    if (!longer)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    if (*list->count)
        memcpy(longer, dyes, (size_t)*list->count * sizeof *longer);
    longer[*list->count] = *dye;
    longer[*list->count].start = fmax(dye->start, time);
    scene->reduced.dye = longer;
    scene->reduced.dye_count++;
    return sk_struct_own(scene->owned, list->type, &longer[scene->reduced.dye_count - 1])
               ? SELKIE_OK
               : sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
}

selkie_code sk_scene_edit(selkie_scene *scene, const selkie_change_def *change, double time, selkie_error *error)
{
    const void *element = NULL;
    scene_list list = {0};
    switch (change->kind) {
    case SELKIE_CHANGE_GRAVITY:
        return set_gravity(scene, change->gravity, error);
    case SELKIE_CHANGE_MOVE:
        return move_obstacle(scene, change, time, error);
    case SELKIE_CHANGE_REMOVE:
        list = list_of(scene, change->list);
        return take_away(&list, change->name, error);
    case SELKIE_CHANGE_FORCE:
        list = list_of(scene, SELKIE_LIST_FORCES);
        element = &change->force;
        break;
    case SELKIE_CHANGE_OBSTACLE:
        list = list_of(scene, SELKIE_LIST_OBSTACLES);
        element = &change->obstacle;
        break;
    case SELKIE_CHANGE_SOURCE:
        list = list_of(scene, SELKIE_LIST_SOURCES);
        element = &change->source;
        break;
    case SELKIE_CHANGE_DRAIN:
        list = list_of(scene, SELKIE_LIST_DRAINS);
        element = &change->drain;
        break;
    case SELKIE_CHANGE_BODY:
        list = list_of(scene, SELKIE_LIST_BODIES);
        element = &change->body;
        break;
    case SELKIE_CHANGE_EXCITE: /* the label of an excitation is its mode */
        list = (scene_list){&scene->reduced.excite, &scene->reduced.excite_count, &sk_excite_struct, "excitation"};
        element = &change->excite;
        break;
    case SELKIE_CHANGE_DYE:
        list = (scene_list){&scene->reduced.dye, &scene->reduced.dye_count, &sk_dye_struct, "dye"};
        return add_dye(scene, &list, &change->dye, time, error);
    default:
        return SELKIE_OK;
    }
    const int before = *list.count;
    void *own = put(scene, &list, element);
    if (!own)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    /* A new source begins now, with a filled shape. */
    if (change->kind == SELKIE_CHANGE_SOURCE && *list.count > before && ((selkie_source_def *)own)->start < time)
        ((selkie_source_def *)own)->start = time;
    return SELKIE_OK;
}

/* Can the change be made in place, without building the world anew? */
static int is_small(const selkie_world *world, const selkie_change_def *change)
{
    const sk_solids *solids = &world->step.solids;
    if (change->kind == SELKIE_CHANGE_GRAVITY || change->kind == SELKIE_CHANGE_FORCE ||
        change->kind == SELKIE_CHANGE_EXCITE || change->kind == SELKIE_CHANGE_DYE)
        return 1;
    if (change->kind == SELKIE_CHANGE_REMOVE)
        return change->list == SELKIE_LIST_FORCES;
    const int at = change->kind == SELKIE_CHANGE_MOVE
                       ? sk_change_find(world->scene->obstacles, world->scene->obstacle_count,
                                        sizeof *world->scene->obstacles, change->name)
                       : -1;
    return at >= 0 && at < solids->obstacle_count && solids->obstacles[at].moves;
}

/* --- The world --- */

/* A state in memory of its own. */
struct selkie_snapshot {
    int count, changes;
    sk_state_chunk chunks[SK_STATE_MAX_CHUNKS];
    void *memory;
};

void selkie_snapshot_free(selkie_snapshot *snapshot)
{
    if (snapshot)
        free(snapshot->memory);
    free(snapshot);
}

selkie_code selkie_world_snapshot(const selkie_world *world, selkie_snapshot **out, selkie_error *error)
{
    sk_state_header header;
    *out = NULL;
    SK_TRY(sk_world_fetch(world, 0, error));
    selkie_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "snapshot: no memory");
    snapshot->count = sk_world_state(world, &header, snapshot->chunks);
    snapshot->changes = world->log.applied;
    size_t bytes = 0;
    for (int c = 0; c < snapshot->count; c++)
        bytes += (snapshot->chunks[c].bytes + 15) / 16 * 16;
    char *at = snapshot->memory = malloc(bytes + 1);
    if (!at) {
        selkie_snapshot_free(snapshot);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "snapshot: no memory for %.1f MiB", (double)bytes / 1048576.0);
    }
    for (int c = 0; c < snapshot->count; c++) {
        sk_state_chunk *chunk = &snapshot->chunks[c];
        if (chunk->bytes)
            memcpy(at, chunk->data, chunk->bytes);
        chunk->data = at;
        at += (chunk->bytes + 15) / 16 * 16;
    }
    *out = snapshot;
    return SELKIE_OK;
}

static selkie_code fill_nothing(sk_step *step, void *context, selkie_error *error)
{
    (void)step, (void)context, (void)error;
    return SELKIE_OK;
}

static selkie_code build_with_state(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                                    selkie_error *error)
{
    const sk_filling empty = {fill_nothing, NULL};
    selkie_code code = sk_world_build(world, chunks ? &empty : NULL, error);
    if (code == SELKIE_OK && chunks)
        code = sk_world_restore_state(world, count, chunks, file, error);
    return code;
}

selkie_code sk_world_rebuild(selkie_world *world, selkie_scene *scene, int count, const sk_state_chunk *chunks,
                             const char *file, selkie_error *error)
{
    selkie_snapshot *now;
    selkie_code code = selkie_world_snapshot(world, &now, error);
    if (code != SELKIE_OK) {
        selkie_scene_free(scene);
        return code;
    }
    const double set_length = world->set_length;
    const int before = sk_threads_begin(world->options.threads);
    selkie_scene old = *world->scene;
    sk_world_empty(world);
    *world->scene = *scene;
    code = build_with_state(world, count, chunks, file, error);
    sk_pool *unused = old.owned;
    if (code != SELKIE_OK) {
        /* Back to the scene of before, which could be built. */
        sk_world_empty(world);
        unused = world->scene->owned;
        *world->scene = old;
        if (build_with_state(world, now->count, now->chunks, "world", NULL) != SELKIE_OK)
            world->failed = 1;
    }
    world->set_length = set_length;
    sk_pool_destroy(unused);
    sk_threads_end(before);
    selkie_snapshot_free(now);
    return code;
}

/* A copy of a change in the coordinates of the world; what it points to lies in the pool, which the caller destroys. */
static selkie_code copy_relative(const selkie_world *world, const selkie_change_def *change,
                                 selkie_change_def *relative, sk_pool **pool, selkie_error *error)
{
    double up[3], origin[3] = {0, 0, 0};
    *relative = *change;
    *pool = sk_pool_create();
    if (!*pool || !sk_struct_own(*pool, &sk_change_struct, relative)) {
        sk_pool_destroy(*pool);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    }
    selkie_scene_up(world->scene, up);
    memcpy(origin, world->scene->domain.origin, (size_t)world->step.dimension * sizeof *origin);
    sk_struct_make_relative(&sk_change_struct, relative, origin, up);
    return SELKIE_OK;
}

/* Makes a small change in place: in the scene and in the one of relative coordinates. */
static selkie_code edit_in_place(selkie_world *world, const selkie_change_def *change, selkie_error *error)
{
    selkie_change_def relative;
    sk_pool *pool;
    SK_TRY(copy_relative(world, change, &relative, &pool, error));
    selkie_code code = sk_scene_edit(world->scene, change, world->step.time, error);
    if (code == SELKIE_OK)
        code = sk_scene_edit(world->relative, &relative, world->step.time, error);
    if (code == SELKIE_OK && change->kind == SELKIE_CHANGE_MOVE)
        sk_solids_move(&world->step.solids, world->step.time);
    sk_pool_destroy(pool);
    return code;
}

/* Puts the states of the bodies after a change in place of those of a snapshot. */
static selkie_code change_bodies(selkie_world *world, const selkie_change_def *change, selkie_snapshot *snapshot,
                                 sk_body_chunk *bodies, selkie_error *error)
{
    selkie_change_def relative;
    sk_pool *pool;
    SK_TRY(copy_relative(world, change, &relative, &pool, error));
    const selkie_code code = sk_change_body_states(world, &relative, bodies, error);
    sk_pool_destroy(pool);
    if (code != SELKIE_OK)
        return code;
    int at = 0;
    while (at < snapshot->count && strcmp(snapshot->chunks[at].name, "bodies") != 0)
        at++;
    if (at == snapshot->count && snapshot->count++ == SK_STATE_MAX_CHUNKS) {
        snapshot->count--;
        return sk_fail(error, SELKIE_ERROR_INTERNAL, "changes: too many parts of a state");
    }
    strcpy(snapshot->chunks[at].name, "bodies");
    snapshot->chunks[at].data = bodies->states;
    snapshot->chunks[at].bytes = (uint64_t)bodies->count * sizeof *bodies->states;
    return SELKIE_OK;
}

static selkie_code edit_scene(selkie_world *world, const selkie_change_def *change, selkie_error *error)
{
    /* A trial on a copy: a refused change leaves the world as it was. */
    selkie_scene *trial;
    SK_TRY(sk_scene_copy(world->scene, &trial, error));
    selkie_code code = sk_scene_edit(trial, change, world->step.time, error);
    if (code == SELKIE_OK)
        code = selkie_scene_check(trial, error);
    if (code == SELKIE_OK && world->step.cuda && is_small(world, change))
        code = sk_cuda_check(trial, error); /* a world that is built anew checks it itself */
    if (code != SELKIE_OK || is_small(world, change)) {
        selkie_scene_free(trial);
        return code != SELKIE_OK ? code : edit_in_place(world, change, error);
    }
    selkie_snapshot *state;
    code = selkie_world_snapshot(world, &state, error);
    if (code != SELKIE_OK) {
        selkie_scene_free(trial);
        return code;
    }
    sk_body_chunk bodies = {0};
    if (sk_change_is_of_bodies(change))
        code = change_bodies(world, change, state, &bodies, error);
    if (code == SELKIE_OK)
        code = sk_world_rebuild(world, trial, state->count, state->chunks, "world", error);
    else
        selkie_scene_free(trial);
    free(bodies.states);
    selkie_snapshot_free(state);
    return code;
}

static selkie_code push_body(selkie_world *world, const selkie_change_def *change, selkie_error *error)
{
    const selkie_scene *scene = world->scene;
    const int body = sk_change_find(scene->bodies, scene->body_count, sizeof *scene->bodies, change->name);
    if (body < 0 || (!world->step.rigid && sk_body_material(scene, body) < 0))
        return sk_fail(error, SELKIE_ERROR_INPUT, "changes: no body has the name or number \"%s\"; the scene has %d",
                       change->name, scene->body_count);
    if (sk_body_material(scene, body) >= 0)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "changes: the body \"%s\" is made of particles, which cannot be pushed yet; rigid shapes can",
                       change->name);
    sk_rigid *rigid = world->step.rigid;
    const int number = sk_body_number(scene, body);
    for (int d = 0; d < 3; d++) {
        if (d < world->step.dimension)
            rigid->states[number].velocity[d] += change->velocity[d];
        if (world->step.dimension == 3 || d == 2)
            rigid->states[number].angular_velocity[d] += change->angular_velocity[d];
    }
    return sk_rigid_place(rigid, "changes", error);
}

/* Liquid and shapes in the coordinates of the world. */
static selkie_code change_liquid(selkie_world *world, const selkie_change_def *change, selkie_change_report *report,
                                 selkie_error *error)
{
    if (!(world->step.needs & SK_NEEDS_PARTICLES))
        return sk_fail(error, SELKIE_ERROR_INPUT, "changes: this discretization has no particles of liquid");
    if (world->scene->discretization == SELKIE_DISCRETIZATION_REST_SHAPE)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "changes: discretization \"rest_shape\" keeps the points of the start: use \"mpm\"");
    selkie_change_def relative;
    sk_pool *pool;
    SK_TRY(sk_world_fetch(world, 0, error));
    SK_TRY(copy_relative(world, change, &relative, &pool, error));
    const int before = sk_threads_begin(world->options.threads);
    selkie_code code = change->kind == SELKIE_CHANGE_LIQUID
                           ? sk_world_add_liquid(world, &relative.liquid, &report->added, error)
                           : sk_world_clear_liquid(world, &relative.shape, &report->removed, error);
    if (world->step.cuda)
        sk_cuda_particles_changed(&world->step);
    sk_threads_end(before);
    sk_pool_destroy(pool);
    return code;
}

static selkie_code apply(selkie_world *world, const selkie_change_def *change, selkie_change_report *report,
                         selkie_error *error)
{
    switch (change->kind) {
    case SELKIE_CHANGE_LIQUID:
    case SELKIE_CHANGE_CLEAR:
        return change_liquid(world, change, report, error);
    case SELKIE_CHANGE_PUSH:
        return push_body(world, change, error);
    case SELKIE_CHANGE_STEP:
        world->set_length = change->length;
        return SELKIE_OK;
    default:
        return edit_scene(world, change, error);
    }
}

/* --- The log --- */

/* Makes room for one more change. */
static int reserve(sk_change_log *log)
{
    if (log->count < log->capacity)
        return 1;
    const int capacity = log->capacity ? 2 * log->capacity : 16;
    selkie_change_def *changes = realloc(log->changes, (size_t)capacity * sizeof *changes);
    log->changes = changes ? changes : log->changes;
    double *times = realloc(log->times, (size_t)capacity * sizeof *times);
    log->times = times ? times : log->times;
    uint8_t *is_given = realloc(log->is_given, (size_t)capacity);
    log->is_given = is_given ? is_given : log->is_given;
    if (!changes || !times || !is_given)
        return 0;
    log->capacity = capacity;
    return 1;
}

/* Puts a change into the log at a place. */
static selkie_code insert(sk_change_log *log, int at, const selkie_change_def *change, int is_given,
                          selkie_error *error)
{
    selkie_change_def own = *change;
    if (log->count >= SK_MAX_ELEMENTS)
        return sk_fail(error, SELKIE_ERROR_INPUT, "changes: %d of them; a scene takes no more", log->count);
    if (!reserve(log) || !sk_struct_own(log->pool, &sk_change_struct, &own))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    const size_t behind = (size_t)(log->count - at);
    memmove(log->changes + at + 1, log->changes + at, behind * sizeof *log->changes);
    memmove(log->times + at + 1, log->times + at, behind * sizeof *log->times);
    memmove(log->is_given + at + 1, log->is_given + at, behind);
    log->changes[at] = own;
    log->is_given[at] = (uint8_t)is_given;
    log->times[at] = 0.0;
    log->count++;
    return SELKIE_OK;
}

static void take_out(sk_change_log *log, int at)
{
    const size_t behind = (size_t)(--log->count - at);
    memmove(log->changes + at, log->changes + at + 1, behind * sizeof *log->changes);
    memmove(log->times + at, log->times + at + 1, behind * sizeof *log->times);
    memmove(log->is_given + at, log->is_given + at + 1, behind);
}

/* Forgets the changes that callers made after the first `applied`. */
static void rewind_log(sk_change_log *log, int applied)
{
    for (int c = log->applied - 1; c >= applied; c--)
        if (!log->is_given[c])
            take_out(log, c);
    log->applied = applied;
}

selkie_code sk_changes_init(selkie_world *world, selkie_error *error)
{
    sk_change_log *log = &world->log;
    log->pool = sk_pool_create();
    if (!log->pool)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    for (int c = 0; c < world->original->change_count; c++)
        SK_TRY(insert(log, c, &world->original->changes[c], 1, error));
    return SELKIE_OK;
}

void sk_changes_free(selkie_world *world)
{
    sk_change_log *log = &world->log;
    free(log->changes);
    free(log->times);
    free(log->is_given);
    sk_pool_destroy(log->pool);
    free(world->change_state);
    memset(log, 0, sizeof *log);
}

/* Applies the next change of the log. */
static selkie_code apply_next(selkie_world *world, selkie_change_report *report, selkie_error *error)
{
    sk_change_log *log = &world->log;
    selkie_change_report unused = {0, 0};
    selkie_error inner;
    const selkie_change_def *change = &log->changes[log->applied];
    const selkie_code code = apply(world, change, report ? report : &unused, &inner);
    if (code != SELKIE_OK)
        return sk_fail(error, code, "changes[%d], before step %d: %s", log->applied, change->step, inner.message);
    log->times[log->applied++] = world->step.time;
    return SELKIE_OK;
}

selkie_code sk_changes_due(selkie_world *world, selkie_error *error)
{
    const sk_change_log *log = &world->log;
    while (log->applied < log->count && log->changes[log->applied].step <= world->step.step_count)
        SK_TRY(apply_next(world, NULL, error));
    return SELKIE_OK;
}

/* --- Checkpoints --- */

/* The chunk: the number of changes so far, then the times (s) of each. */
sk_chunk_view sk_changes_state(const selkie_world *world)
{
    const sk_change_log *log = &world->log;
    const size_t bytes = ((size_t)log->applied + 1) * sizeof(int64_t);
    selkie_world *owner = (selkie_world *)world;
    if (!log->count)
        return (sk_chunk_view){"changes", NULL, 0};
    int64_t *state = realloc(owner->change_state, bytes);
    if (!state)
        return (sk_chunk_view){"changes", NULL, 0};
    owner->change_state = state;
    state[0] = log->applied;
    memcpy(state + 1, log->times, (size_t)log->applied * sizeof *log->times);
    return (sk_chunk_view){"changes", state, bytes};
}

void sk_changes_leave_out(selkie_scene *scene)
{
    int first = 0;
    while (first < scene->change_count && scene->changes[first].kind != SELKIE_CHANGE_SOURCE &&
           scene->changes[first].kind != SELKIE_CHANGE_DRAIN)
        first++;
    const int found = first < scene->change_count;
    scene->changes = found ? &scene->changes[first] : NULL;
    scene->change_count = found;
}

/* The scene after the first changes of the log, which happened at `times` (s). */
static selkie_code edited_scene(const selkie_world *world, int applied, const double *times, selkie_scene **out,
                                selkie_error *error)
{
    selkie_scene without_changes = *world->original;
    sk_changes_leave_out(&without_changes);
    SK_TRY(sk_scene_copy(&without_changes, out, error));
    selkie_code code = SELKIE_OK;
    for (int c = 0; c < applied && code == SELKIE_OK; c++)
        code = sk_scene_edit(*out, &world->log.changes[c], times[c], error);
    if (code == SELKIE_OK)
        code = selkie_scene_check(*out, error);
    if (code != SELKIE_OK) {
        selkie_scene_free(*out);
        *out = NULL;
    }
    return code;
}

selkie_code sk_changes_restore(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                               int *rebuilt, selkie_error *error)
{
    const sk_state_chunk *chunk = NULL;
    sk_change_log *log = &world->log;
    for (int c = 0; c < count && !chunk; c++)
        if (strncmp(chunks[c].name, "changes", sizeof chunks[c].name) == 0)
            chunk = &chunks[c];

    /* How many changes had happened, and when? */
    int64_t applied = 0;
    if (chunk && chunk->bytes >= sizeof applied)
        memcpy(&applied, chunk->data, sizeof applied);
    if (chunk && (applied < 0 || chunk->bytes != ((uint64_t)applied + 1) * sizeof applied))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: its list of changes makes no sense", file);
    if (applied > log->count)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: was written after %lld changes of the scene, and this scene has %d; load it with the scene "
                       "that selkie_world_record() gave",
                       file, (long long)applied, log->count);
    if (!log->applied && !applied)
        return SELKIE_OK;

    /* The scene as it was then, and its world. */
    double *times = malloc(((size_t)applied + 1) * sizeof *times);
    selkie_scene *scene = NULL;
    if (!times)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    if (applied)
        memcpy(times, (const char *)chunk->data + sizeof applied, (size_t)applied * sizeof *times);
    selkie_code code = edited_scene(world, (int)applied, times, &scene, error);
    if (code == SELKIE_OK)
        code = sk_world_rebuild(world, scene, count, chunks, file, error);
    if (code == SELKIE_OK) {
        rewind_log(log, (int)applied);
        memcpy(log->times, times, (size_t)applied * sizeof *times);
        *rebuilt = 1;
    }
    free(times);
    return code;
}

/* --- Calls of users --- */

selkie_code selkie_world_change(selkie_world *world, const selkie_change_def *change, selkie_change_report *report,
                                selkie_error *error)
{
    selkie_change_report unused = {0, 0};
    report = report ? report : &unused;
    memset(report, 0, sizeof *report);
    if (world->failed)
        return sk_fail(error, SELKIE_ERROR_DIVERGED, "the world failed in an earlier step and cannot go on");
    if (world->step.step_count > 2000000000)
        return sk_fail(error, SELKIE_ERROR_INPUT, "changes: too many steps");
    selkie_change_def now = *change;
    now.step = (int)world->step.step_count;
    selkie_scene checked = *world->scene;
    checked.changes = &now;
    checked.change_count = 1;
    SK_TRY(selkie_scene_check(&checked, error));
    sk_change_log *log = &world->log;
    SK_TRY(sk_changes_due(world, error)); /* those of the scene come first */
    SK_TRY(insert(log, log->applied, &now, 0, error));
    const selkie_code code = apply_next(world, report, error);
    if (code != SELKIE_OK)
        take_out(log, log->applied);
    return code;
}

selkie_code selkie_world_set_gravity(selkie_world *world, const double gravity[3], selkie_error *error)
{
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_GRAVITY);
    memcpy(change.gravity, gravity, sizeof change.gravity);
    return selkie_world_change(world, &change, NULL, error);
}

const selkie_scene *selkie_world_record(const selkie_world *world)
{
    selkie_scene *recorded = &((selkie_world *)world)->recorded;
    *recorded = *world->original;
    recorded->owned = NULL;
    recorded->changes = world->log.changes;
    recorded->change_count = world->log.count;
    return recorded;
}

selkie_code selkie_world_step_for(selkie_world *world, double seconds, selkie_error *error)
{
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_STEP);
    change.length = seconds;
    SK_TRY(selkie_world_change(world, &change, NULL, error));
    return selkie_world_step(world, error);
}

void selkie_world_cancel(selkie_world *world)
{
    atomic_store(&world->cancelled, 1);
}

selkie_code selkie_world_run(selkie_world *world, const selkie_run_options *options, selkie_error *error)
{
    const selkie_run_options none = {0};
    const selkie_run_options *run = options ? options : &none;
    const double end = run->until > 0.0 ? run->until : world->scene->time.end;
    int stop =
        world->at_frame && world->step.step_count == 0 && run->after_frame ? run->after_frame(world, run->context) : 0;
    while (!stop && world->step.time < end * (1.0 - 1e-12) && !atomic_load(&world->cancelled)) {
        SK_TRY(selkie_world_step(world, error));
        stop = run->after_step ? run->after_step(world, run->context) : 0;
        if (world->at_frame && run->after_frame)
            stop |= run->after_frame(world, run->context);
    }
    if (atomic_exchange(&world->cancelled, 0) || stop)
        return sk_fail(error, SELKIE_ERROR_INTERRUPTED, "stopped at %g s by the caller", world->step.time);
    return SELKIE_OK;
}

selkie_code selkie_world_go_back(selkie_world *world, const selkie_snapshot *snapshot, selkie_error *error)
{
    if (snapshot->changes > world->log.count)
        return sk_fail(error, SELKIE_ERROR_INPUT, "snapshot: the world has been at an earlier one since then");
    SK_TRY(sk_world_restore(world, snapshot->count, snapshot->chunks, "snapshot", error));
    world->set_length = 0.0;
    return SELKIE_OK;
}

selkie_code selkie_world_reset(selkie_world *world, selkie_error *error)
{
    selkie_scene *scene;
    SK_TRY(edited_scene(world, 0, NULL, &scene, error));
    SK_TRY(sk_world_rebuild(world, scene, 0, NULL, "start", error));
    world->set_length = 0.0;
    rewind_log(&world->log, 0);
    return SELKIE_OK;
}
