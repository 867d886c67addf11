/* Checks of the changes of a scene while it runs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "defs/structs.h"
#include "defs/text.h"

int sk_change_find(const void *elements, int count, size_t size, const char *name)
{
    for (int e = 0; name && *name && e < count; e++) {
        const char *label;
        memcpy(&label, (const char *)elements + (size_t)e * size, sizeof label);
        if (label && strcmp(label, name) == 0)
            return e;
    }
    if (!name || !isdigit((unsigned char)*name))
        return -1;
    char *end;
    const long number = strtol(name, &end, 10);
    return *end == 0 && number < count ? (int)number : -1;
}

/* The element of a change as the only one of its list. */
typedef struct trial_element {
    const char *key;  /* in the change; NULL: it has none */
    const char *path; /* in the scene */
} trial_element;

static trial_element put_element(selkie_scene *trial, const selkie_change_def *change)
{
    switch (change->kind) {
    case SELKIE_CHANGE_FORCE:
        trial->forces = &change->force;
        trial->force_count = 1;
        return (trial_element){"force", "forces[0]"};
    case SELKIE_CHANGE_OBSTACLE:
        trial->obstacles = &change->obstacle;
        trial->obstacle_count = 1;
        return (trial_element){"obstacle", "obstacles[0]"};
    case SELKIE_CHANGE_SOURCE:
        trial->sources = &change->source;
        trial->source_count = 1;
        return (trial_element){"source", "sources[0]"};
    case SELKIE_CHANGE_DRAIN:
        trial->drains = &change->drain;
        trial->drain_count = 1;
        return (trial_element){"drain", "drains[0]"};
    case SELKIE_CHANGE_LIQUID:
        trial->liquids = &change->liquid;
        trial->liquid_count = 1;
        return (trial_element){"liquid", "liquids[0]"};
    case SELKIE_CHANGE_BODY:
        trial->bodies = &change->body;
        trial->body_count = 1;
        trial->joint_count = 0; /* they name other bodies */
        return (trial_element){"body", "bodies[0]"};
    case SELKIE_CHANGE_EXCITE:
        trial->reduced.excite = &change->excite;
        trial->reduced.excite_count = 1;
        return (trial_element){"excite", "reduced.excite[0]"};
    case SELKIE_CHANGE_DYE:
        trial->reduced.dye = &change->dye;
        trial->reduced.dye_count = 1;
        return (trial_element){"dye", "reduced.dye[0]"};
    default:
        return (trial_element){NULL, NULL};
    }
}

/* Checks the element of a change as one of the scene's. The path "forces[0].radius" becomes "force.radius". */
static selkie_code check_element(const selkie_scene *scene, const selkie_change_def *change, sk_path *where,
                                 selkie_error *error)
{
    selkie_scene trial = *scene;
    trial.change_count = trial.probe_count = 0;
    const trial_element element = put_element(&trial, change);
    if (!element.key)
        return SELKIE_OK;
    sk_path inner;
    const selkie_code code = sk_scene_check_rules(&trial, &inner, error);
    if (code == SELKIE_OK)
        return SELKIE_OK;
    sk_path_key(where, element.key);
    const size_t length = strlen(element.path);
    if (strncmp(inner.text, element.path, length) == 0 && inner.text[length] == '.')
        sk_path_key(where, inner.text + length + 1);
    return code;
}

/* --- Names: which elements a list has when a change happens --- */

enum { LIST_COUNT = SELKIE_LIST_BODIES + 1 };

typedef struct roster {
    int count, capacity;
    const char **names; /* "" or NULL: the element has none */
} roster;

static int add_name(roster *names, const char *name)
{
    if (names->count == names->capacity) {
        const int capacity = names->capacity ? 2 * names->capacity : 16;
        const char **longer = realloc(names->names, (size_t)capacity * sizeof *longer);
        if (!longer)
            return 0;
        names->names = longer;
        names->capacity = capacity;
    }
    names->names[names->count++] = name;
    return 1;
}

static int add_names(roster *names, const void *elements, int count, size_t size)
{
    int good = 1;
    for (int e = 0; e < count && good; e++) {
        const char *name;
        memcpy(&name, (const char *)elements + (size_t)e * size, sizeof name);
        good = add_name(names, name);
    }
    return good;
}

static int make_rosters(const selkie_scene *scene, roster rosters[LIST_COUNT])
{
    return add_names(&rosters[SELKIE_LIST_OBSTACLES], scene->obstacles, scene->obstacle_count,
                     sizeof *scene->obstacles) &&
           add_names(&rosters[SELKIE_LIST_FORCES], scene->forces, scene->force_count, sizeof *scene->forces) &&
           add_names(&rosters[SELKIE_LIST_SOURCES], scene->sources, scene->source_count, sizeof *scene->sources) &&
           add_names(&rosters[SELKIE_LIST_DRAINS], scene->drains, scene->drain_count, sizeof *scene->drains) &&
           add_names(&rosters[SELKIE_LIST_BODIES], scene->bodies, scene->body_count, sizeof *scene->bodies);
}

/* The list that a change names an element of, or adds one to; -1 if none. `added` is the label of the new one. */
static int list_of_change(const selkie_change_def *change, const char **added)
{
    switch (change->kind) {
    case SELKIE_CHANGE_MOVE:
        return SELKIE_LIST_OBSTACLES;
    case SELKIE_CHANGE_PUSH:
        return SELKIE_LIST_BODIES;
    case SELKIE_CHANGE_REMOVE:
        return (int)change->list;
    case SELKIE_CHANGE_OBSTACLE:
        *added = change->obstacle.name ? change->obstacle.name : "";
        return SELKIE_LIST_OBSTACLES;
    case SELKIE_CHANGE_FORCE:
        *added = change->force.name ? change->force.name : "";
        return SELKIE_LIST_FORCES;
    case SELKIE_CHANGE_SOURCE:
        *added = change->source.name ? change->source.name : "";
        return SELKIE_LIST_SOURCES;
    case SELKIE_CHANGE_DRAIN:
        *added = change->drain.name ? change->drain.name : "";
        return SELKIE_LIST_DRAINS;
    case SELKIE_CHANGE_BODY:
        *added = change->body.name ? change->body.name : "";
        return SELKIE_LIST_BODIES;
    default:
        return -1;
    }
}

/* Makes a change in the rosters; refuses a name that is not there. */
static selkie_code follow_names(const selkie_change_def *change, roster rosters[LIST_COUNT], sk_path *where,
                                selkie_error *error)
{
    static const char *const what[LIST_COUNT] = {"obstacle", "force", "source", "drain", "body"};
    const char *added = NULL;
    const int list = list_of_change(change, &added);
    if (list < 0)
        return SELKIE_OK;
    roster *names = &rosters[list];
    const int at = sk_change_find(names->names, names->count, sizeof *names->names, added ? added : change->name);
    if (added)
        return (*added && at >= 0) || add_name(names, added) ? SELKIE_OK
                                                             : sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
    if (at < 0) {
        sk_path_key(where, "name");
        return sk_fail(error, SELKIE_ERROR_INPUT, "no %s has the name or number \"%.100s\"; the scene has %d then",
                       what[list], change->name, names->count);
    }
    if (change->kind == SELKIE_CHANGE_REMOVE)
        memmove(names->names + at, names->names + at + 1, (size_t)(--names->count - at) * sizeof *names->names);
    return SELKIE_OK;
}

/* --- All changes of a scene --- */

static int suits_modes(const selkie_change_def *change)
{
    switch (change->kind) {
    case SELKIE_CHANGE_FORCE:
    case SELKIE_CHANGE_PUSH:
    case SELKIE_CHANGE_STEP:
    case SELKIE_CHANGE_BODY:
    case SELKIE_CHANGE_EXCITE:
    case SELKIE_CHANGE_DYE:
        return 1;
    case SELKIE_CHANGE_REMOVE:
        return change->list == SELKIE_LIST_FORCES || change->list == SELKIE_LIST_BODIES;
    default:
        return 0;
    }
}

static selkie_code check_kind(const selkie_scene *scene, const selkie_change_def *change, sk_path *where,
                              selkie_error *error)
{
    const int is_reduced = scene->discretization == SELKIE_DISCRETIZATION_REDUCED;
    if (is_reduced && !suits_modes(change)) {
        sk_path_key(where, "type");
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "discretization \"reduced\" takes changes of forces, bodies, pushes, excitations, dyes and step "
                       "lengths only: its modes belong to the domain of the start");
    }
    if (!is_reduced && change->kind == SELKIE_CHANGE_EXCITE) {
        sk_path_key(where, "type");
        return sk_fail(error, SELKIE_ERROR_INPUT, "drives modes of discretization \"reduced\" only");
    }
    if (!is_reduced && change->kind == SELKIE_CHANGE_DYE) {
        sk_path_key(where, "type");
        return sk_fail(error, SELKIE_ERROR_INPUT, "dyes fluids of discretization \"reduced\" only");
    }
    if (change->kind == SELKIE_CHANGE_BODY && change->body.material && *change->body.material) {
        sk_path_key(where, "body");
        sk_path_key(where, "material");
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "a body of particles cannot be added while a scene runs: leave it out, or put the body into "
                       "bodies");
    }
    return SELKIE_OK;
}

static selkie_code check_change(const selkie_scene *scene, int c, roster rosters[LIST_COUNT], sk_path *where,
                                selkie_error *error)
{
    const selkie_change_def *change = &scene->changes[c];
    if (c > 0 && change->step < scene->changes[c - 1].step) {
        sk_path_key(where, "step");
        return sk_fail(error, SELKIE_ERROR_INPUT, "%d comes before that of the change before, %d: must be in order",
                       change->step, scene->changes[c - 1].step);
    }
    const int named = change->kind == SELKIE_CHANGE_MOVE || change->kind == SELKIE_CHANGE_PUSH ||
                      change->kind == SELKIE_CHANGE_REMOVE;
    if (named && (!change->name || !*change->name)) {
        sk_path_key(where, "name");
        return sk_fail(error, SELKIE_ERROR_INPUT, "is empty: must be a label, or a number in the list");
    }
    SK_TRY(check_kind(scene, change, where, error));
    SK_TRY(check_element(scene, change, where, error));
    return follow_names(change, rosters, where, error);
}

selkie_code sk_changes_check(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    roster rosters[LIST_COUNT] = {{0}};
    selkie_code code = !scene->change_count || make_rosters(scene, rosters)
                           ? SELKIE_OK
                           : sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory");
    for (int c = 0; c < scene->change_count && code == SELKIE_OK; c++) {
        const size_t before = sk_path_key(where, "changes");
        sk_path_index(where, c);
        code = check_change(scene, c, rosters, where, error);
        if (code == SELKIE_OK)
            sk_path_cut(where, before);
    }
    for (int l = 0; l < LIST_COUNT; l++)
        free(rosters[l].names);
    return code;
}
