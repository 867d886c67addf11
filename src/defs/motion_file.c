#include "defs/motion_file.h"

#include <stdio.h>

#include "base/csv.h"
#include "base/status.h"
#include "defs/structs.h"

/* The names of a table's columns, separated by commas. */
static const char *list_names(const sk_csv *table, char *text, size_t size)
{
    size_t length = 0;
    *text = 0;
    for (int c = 0; c < table->column_count && length < size; c++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", c ? ", " : "", table->names[c]);
    return text;
}

/* The rows of a table as keyframes in the scene's pool. */
static selkie_code make_keyframes(const sk_csv *table, const char *what, sk_pool *pool, selkie_keyframe **keyframes,
                                  selkie_error *error)
{
    static const char *const names[] = {"x", "y", "z", "rx", "ry", "rz"};
    const int time = sk_csv_column(table, "time");
    char text[200];
    int columns[6], found = 0;
    for (int c = 0; c < 6; c++) {
        columns[c] = sk_csv_column(table, names[c]);
        found += columns[c] >= 0;
    }
    if (time < 0 || !found || found + 1 != table->column_count)
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "%s: the columns are %s: they must be time and some of x, y, z (m), rx, ry and rz (deg)", what,
                       list_names(table, text, sizeof text));
    if (table->row_count > SK_MAX_ELEMENTS)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: more than %d keyframes", what, SK_MAX_ELEMENTS);
    *keyframes = sk_pool_take(pool, table->row_count * sizeof **keyframes);
    if (!*keyframes)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory", what);
    for (size_t r = 0; r < table->row_count; r++) {
        const double *row = table->values + r * (size_t)table->column_count;
        selkie_keyframe *key = &(*keyframes)[r];
        key->time = row[time];
        for (int c = 0; c < 6; c++)
            if (columns[c] >= 0)
                (c < 3 ? key->translate : key->rotate)[c % 3] = row[columns[c]];
        if (r && !(key->time > key[-1].time))
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: row %zu: the time %g s must be after the one before, %g s",
                           what, r + 1, key->time, key[-1].time);
    }
    return SELKIE_OK;
}

static selkie_code load_motion(selkie_scene *scene, const char *what, const char **file, int *count,
                               const selkie_keyframe **keyframes, selkie_error *error)
{
    sk_csv table;
    selkie_keyframe *made = NULL;
    char named[400]; /* key and file, for messages */
    if (!*file || !**file)
        return SELKIE_OK;
    snprintf(named, sizeof named, "%s: %.300s", what, *file);
    SK_TRY(sk_csv_read(scene->folder, *file, named, &table, error));
    selkie_code code = make_keyframes(&table, named, scene->owned, &made, error);
    if (!code) {
        *count = (int)table.row_count;
        *keyframes = made;
        *file = "";
    }
    sk_csv_free(&table);
    return code;
}

selkie_code sk_scene_load_motions(selkie_scene *scene, selkie_error *error)
{
    selkie_frame_def *frame = &scene->frame;
    SK_TRY(
        load_motion(scene, "frame.motion_file", &frame->motion_file, &frame->keyframe_count, &frame->keyframes, error));
    for (int o = 0; o < scene->obstacle_count; o++) {
        selkie_obstacle_def *obstacle = (selkie_obstacle_def *)&scene->obstacles[o];
        char what[64];
        snprintf(what, sizeof what, "obstacles[%d].motion_file", o);
        SK_TRY(
            load_motion(scene, what, &obstacle->motion_file, &obstacle->keyframe_count, &obstacle->keyframes, error));
    }
    return SELKIE_OK;
}
