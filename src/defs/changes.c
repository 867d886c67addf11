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

/* The scene with the element of a change as the only one of its list. Returns the key of the element; NULL if the
 * change has none. */
static const char *put_element(selkie_scene *trial, const selkie_change_def *change)
{
    switch (change->kind) {
    case SELKIE_CHANGE_FORCE:
        trial->forces = &change->force;
        trial->force_count = 1;
        return "force";
    case SELKIE_CHANGE_OBSTACLE:
        trial->obstacles = &change->obstacle;
        trial->obstacle_count = 1;
        return "obstacle";
    case SELKIE_CHANGE_SOURCE:
        trial->sources = &change->source;
        trial->source_count = 1;
        return "source";
    case SELKIE_CHANGE_DRAIN:
        trial->drains = &change->drain;
        trial->drain_count = 1;
        return "drain";
    case SELKIE_CHANGE_LIQUID:
        trial->liquids = &change->liquid;
        trial->liquid_count = 1;
        return "liquid";
    default:
        return NULL;
    }
}

/* Checks the element of a change as one of the scene's. The path "forces[0].radius" becomes "force.radius". */
static selkie_code check_element(const selkie_scene *scene, const selkie_change_def *change, sk_path *where,
                                 selkie_error *error)
{
    selkie_scene trial = *scene;
    trial.change_count = trial.probe_count = 0;
    const char *key = put_element(&trial, change);
    if (!key)
        return SELKIE_OK;
    sk_path inner;
    const selkie_code code = sk_scene_check_rules(&trial, &inner, error);
    if (code == SELKIE_OK)
        return SELKIE_OK;
    sk_path_key(where, key);
    const char *rest = strstr(inner.text, "[0].");
    if (strncmp(inner.text, key, strlen(key)) == 0 && rest)
        sk_path_key(where, rest + strlen("[0]."));
    return code;
}

static selkie_code check_change(const selkie_scene *scene, int c, sk_path *where, selkie_error *error)
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
    const int for_modes = change->kind == SELKIE_CHANGE_FORCE || change->kind == SELKIE_CHANGE_PUSH ||
                          change->kind == SELKIE_CHANGE_STEP ||
                          (change->kind == SELKIE_CHANGE_REMOVE && change->list == SELKIE_LIST_FORCES);
    if (scene->discretization == SELKIE_DISCRETIZATION_REDUCED && !for_modes) {
        sk_path_key(where, "type");
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "discretization \"reduced\" takes changes of forces, pushes and step lengths only: its modes "
                       "belong to the domain of the start");
    }
    return check_element(scene, change, where, error);
}

selkie_code sk_changes_check(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    for (int c = 0; c < scene->change_count; c++) {
        const size_t before = sk_path_key(where, "changes");
        sk_path_index(where, c);
        SK_TRY(check_change(scene, c, where, error));
        sk_path_cut(where, before);
    }
    return SELKIE_OK;
}
