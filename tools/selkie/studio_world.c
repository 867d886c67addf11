#define _GNU_SOURCE
#include "studio_world.h"

#include "selkie_config.h"

#if SELKIE_HAVE_JSON

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/status.h"
#include "defs/fields.h"
#include "scene/read.h"
#include "studio_text.h"
#include "world/world_internal.h"

/* A scene goes on beyond its end for as long as somebody plays with it. A scene takes at most 1e7 frames. */
static const double most_frames = 9e6;

/* --- Opening --- */

static void free_files(char **files, int count)
{
    for (int i = 0; i < count; i++)
        free(files[i]);
    free(files);
}

static void forget(studio_world *studio)
{
    selkie_world_destroy(studio->world);
    free(studio->name);
    free(studio->text);
    free(studio->folder);
    free(studio->head);
    free_files(studio->files, studio->file_count);
    studio_solids_free(&studio->solids);
}

void studio_world_close(studio_world *studio)
{
    forget(studio);
    memset(studio, 0, sizeof *studio);
}

static selkie_code parse(const studio_world *studio, const char *text, size_t length, selkie_scene **scene,
                         selkie_error *error)
{
    char problem[256];
    *scene = NULL;
    if (studio_check_files(text, length, (const char *const *)studio->files, studio->file_count, problem,
                           sizeof problem))
        return sk_fail(error, SELKIE_ERROR_INPUT, "scene:1:1: %s", problem);
    const sk_scene_text source = {.text = text, .length = length, .name = "scene", .folder = studio->folder};
    return sk_scene_parse(&source, scene, error);
}

/* The scene that a change is read with: the meaning of its keys depends on it. */
static selkie_code make_head(studio_world *studio, const selkie_scene *scene, selkie_error *error)
{
    selkie_scene without = *scene;
    char *text;
    size_t length;
    without.change_count = 0;
    SK_TRY(sk_scene_text_of(&without, NULL, &text, &length, error));
    char *head = strndup(text, length);
    sk_release(NULL, text);
    if (!head)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
    free(studio->head);
    studio->head = head;
    studio->head_length = length;
    return SELKIE_OK;
}

/* Does a change add or remove an element, so that later ones can name it or no longer? */
static int changes_names(const selkie_change_def *change)
{
    return change->kind != SELKIE_CHANGE_GRAVITY && change->kind != SELKIE_CHANGE_MOVE &&
           change->kind != SELKIE_CHANGE_PUSH && change->kind != SELKIE_CHANGE_STEP &&
           change->kind != SELKIE_CHANGE_LIQUID && change->kind != SELKIE_CHANGE_CLEAR;
}

static int changes_solids(const selkie_change_def *change)
{
    return change->kind == SELKIE_CHANGE_OBSTACLE || change->kind == SELKIE_CHANGE_BODY ||
           (change->kind == SELKIE_CHANGE_REMOVE &&
            (change->list == SELKIE_LIST_OBSTACLES || change->list == SELKIE_LIST_BODIES));
}

/* `names`: later changes can name other elements now. */
static void note_changes(studio_world *studio, int names)
{
    studio->changes_applied = studio->world->log.applied;
    if (names)
        make_head(studio, selkie_world_scene(studio->world), NULL);
}

/* Makes the world of `fresh`, whose text, name, folder and files are there. */
static selkie_code build(studio_world *fresh, selkie_error *error)
{
    selkie_scene *scene;
    selkie_world_options options;
    SK_TRY(parse(fresh, fresh->text, fresh->text_length, &scene, error));
    fresh->end = scene->time.end;
    scene->time.end = fmax(fmin(most_frames / scene->time.fps, 1e6), scene->time.end);
    selkie_world_options_defaults(&options);
    options.threads = fresh->threads;
    selkie_code code = selkie_world_create(scene, &options, &fresh->world, error);
    if (code == SELKIE_OK)
        code = make_head(fresh, scene, error);
    selkie_scene_free(scene);
    return code;
}

/* Puts a world that was built in the place of the old one. */
static selkie_code take_over(studio_world *studio, studio_world *fresh, selkie_error *error)
{
    fresh->threads = studio->threads;
    fresh->numbers = studio->numbers;
    selkie_code code =
        fresh->name && fresh->text && fresh->folder ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
    if (code == SELKIE_OK)
        code = build(fresh, error);
    if (code != SELKIE_OK) {
        forget(fresh);
        return code;
    }
    forget(studio);
    *studio = *fresh;
    studio->numbers.scene++;
    return SELKIE_OK;
}

static char *read_file(const char *path, size_t *length, selkie_error *error)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    *length = 0;
    if (file && !fstat(fileno(file), &status) && S_ISREG(status.st_mode) && status.st_size <= STUDIO_MAX_MESSAGE &&
        (text = malloc((size_t)status.st_size + 1))) {
        *length = fread(text, 1, (size_t)status.st_size, file);
        text[*length] = 0;
    }
    if (file)
        fclose(file);
    if (!text)
        sk_fail(error, SELKIE_ERROR_FILE, "%.300s: cannot be read, or is larger than 1 MiB", path);
    return text;
}

selkie_code studio_world_open(studio_world *studio, const char *name, const char *path, selkie_error *error)
{
    studio_world fresh = {0};
    const char *slash = strrchr(path, '/');
    fresh.text = read_file(path, &fresh.text_length, error);
    if (!fresh.text)
        return SELKIE_ERROR_FILE;
    fresh.name = strdup(name);
    fresh.folder = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
    fresh.file_count = studio_collect_files(fresh.text, fresh.text_length, &fresh.files);
    return take_over(studio, &fresh, error);
}

selkie_code studio_world_replace(studio_world *studio, const char *text, size_t length, selkie_error *error)
{
    studio_world fresh = {0};
    if (!studio->world)
        return sk_fail(error, SELKIE_ERROR_INPUT, "no scene is open");
    fresh.text = strndup(text, length);
    fresh.text_length = length;
    fresh.name = strdup(studio->name);
    fresh.folder = strdup(studio->folder);
    fresh.files = calloc((size_t)studio->file_count + 1, sizeof *fresh.files);
    for (int i = 0; fresh.files && i < studio->file_count; i++)
        if ((fresh.files[fresh.file_count] = strdup(studio->files[i])))
            fresh.file_count++;
    return take_over(studio, &fresh, error);
}

selkie_code studio_world_check(const studio_world *studio, const char *text, size_t length, selkie_error *error)
{
    selkie_scene *scene;
    SK_TRY(parse(studio, text, length, &scene, error));
    selkie_scene_free(scene);
    return SELKIE_OK;
}

/* --- Changes and record --- */

/* Reads a change as if it stood in the scene. */
static selkie_code parse_change(const studio_world *studio, const char *json, size_t length, selkie_scene **scene,
                                selkie_error *error)
{
    char problem[256], *set = NULL;
    *scene = NULL;
    if (studio_check_files(json, length, (const char *const *)studio->files, studio->file_count, problem,
                           sizeof problem))
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s", problem);
    if (asprintf(&set, "changes[0]={\"step\":0,%.*s", (int)length - 1, json + 1) < 0)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
    const sk_scene_text source = {.text = studio->head,
                                  .length = studio->head_length,
                                  .name = "scene",
                                  .folder = studio->folder,
                                  .override_count = 1,
                                  .overrides = (const char *const *)&set};
    const selkie_code code = sk_scene_parse(&source, scene, error);

    /* The message begins with the text of the change, cut after 200 characters; leave that out. */
    const size_t shown = strlen("--set ") + (strlen(set) > 200 ? 203 : strlen(set)) + strlen(": ");
    if (code != SELKIE_OK && strncmp(error->message, "--set ", 6) == 0 && strlen(error->message) > shown)
        memmove(error->message, error->message + shown, strlen(error->message + shown) + 1);
    free(set);
    return code;
}

selkie_code studio_world_change(studio_world *studio, const char *json, size_t length, int *solid,
                                selkie_change_report *report, selkie_error *error)
{
    selkie_scene *scene;
    *solid = 0;
    if (selkie_world_record(studio->world)->change_count >= STUDIO_MAX_CHANGES)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%d changes were made: go back to the start to make more",
                       STUDIO_MAX_CHANGES);
    SK_TRY(parse_change(studio, json, length, &scene, error));
    const selkie_change_def *change = &scene->changes[0];
    const selkie_code code = selkie_world_change(studio->world, change, report, error);
    *solid = code == SELKIE_OK && changes_solids(change);
    if (code == SELKIE_OK)
        note_changes(studio, changes_names(change));
    selkie_scene_free(scene);
    return code;
}

int studio_world_took_changes(studio_world *studio)
{
    const sk_change_log *log = &studio->world->log;
    int names = 0, solids = 0;
    for (int c = studio->changes_applied; c < log->applied; c++) {
        names |= changes_names(&log->changes[c]);
        solids |= changes_solids(&log->changes[c]);
    }
    note_changes(studio, names);
    return solids;
}

selkie_code studio_world_record(const studio_world *studio, char **text, size_t *length, selkie_error *error)
{
    *text = NULL;
    if (!studio->world)
        return sk_fail(error, SELKIE_ERROR_INPUT, "no scene is open");
    /* Until a frame that has not been reached, at least to the scene's end: an end between frames shortens a step. */
    selkie_scene record = *selkie_world_record(studio->world);
    const double frames = floor(selkie_world_time(studio->world) * record.time.fps * (1 + 1e-9)) + 1;
    record.time.end = fmax(frames, ceil(studio->end * record.time.fps * (1 - 1e-9))) / record.time.fps;
    char *folder = realpath(studio->folder, NULL);
    selkie_code code = sk_scene_text_of(&record, folder, text, length, error);
    free(folder);
    return code;
}

/* --- Messages --- */

studio_blob *studio_record_blob(const studio_world *studio)
{
    char *record;
    size_t length;
    selkie_error error = {0};
    studio_text text;
    if (studio_world_record(studio, &record, &length, &error) != SELKIE_OK)
        return studio_problem("record", error.message);
    char *copy = strndup(record, length);
    sk_release(NULL, record);
    studio_blob *blob = NULL;
    if (copy && !studio_text_open(&text)) {
        const char *slash = strrchr(studio->name, '/');
        fputc('{', text.stream);
        studio_text_string(&text, "is", "record");
        studio_text_string(&text, "name", slash ? slash + 1 : studio->name);
        studio_text_string(&text, "text", copy);
        fputc('}', text.stream);
        blob = studio_text_close(&text, 0);
    }
    free(copy);
    return blob;
}

static void put_columns(studio_text *text, const selkie_world *world)
{
    studio_text_key(text, "columns");
    fputc('[', text->stream);
    for (int c = 0; c < selkie_statistic_count(); c++) {
        const selkie_statistic *info = selkie_statistic_info(c);
        studio_text_key(text, NULL);
        fputc('{', text->stream);
        studio_text_string(text, "name", info->name);
        studio_text_string(text, "unit", info->unit);
        studio_text_string(text, "meaning", info->meaning);
        fputc('}', text->stream);
    }
    for (int c = 0; c < selkie_world_probe_column_count(world); c++) {
        studio_text_key(text, NULL);
        fputc('{', text->stream);
        studio_text_string(text, "name", selkie_world_probe_column_name(world, c));
        studio_text_string(text, "unit", "");
        studio_text_string(text, "meaning", "probe");
        fputc('}', text->stream);
    }
    fputc(']', text->stream);
}

static void open_list(studio_text *text, const char *key)
{
    studio_text_key(text, key);
    fputc('[', text->stream);
}

/* Labels of what a page offers by name. */
static void put_names(studio_text *text, const selkie_scene *scene)
{
    open_list(text, "materials");
    for (int m = 0; m < scene->material_count; m++)
        studio_text_string(text, NULL, scene->materials[m].name);
    fputc(']', text->stream);
    open_list(text, "bodies");
    for (int b = 0; b < scene->body_count; b++)
        studio_text_string(text, NULL, scene->bodies[b].name);
    fputc(']', text->stream);
    open_list(text, "modes");
    for (int m = 0; m < scene->reduced.drawn_count; m++)
        studio_text_string(text, NULL, scene->reduced.drawn[m].name);
    fputc(']', text->stream);
}

/* Where probes are, from the corner of the domain. */
static void put_probes(studio_text *text, const selkie_scene *scene)
{
    const sk_field *list = sk_struct_find(&sk_scene_struct, "probes"), *kind = sk_struct_find(list->of, "type");
    open_list(text, "probes");
    for (int p = 0; p < scene->probe_count; p++) {
        const selkie_probe_def *probe = &scene->probes[p];
        double at[3];
        for (int d = 0; d < 3; d++)
            at[d] = probe->at[d] - scene->domain.origin[d];
        studio_text_key(text, NULL);
        fputc('{', text->stream);
        studio_text_string(text, "name", probe->name);
        studio_text_string(text, "kind", sk_enum_name(kind->choices, (int)probe->kind));
        studio_text_numbers(text, "at", at, 3);
        studio_text_number(text, "axis", (double)probe->axis);
        fputc('}', text->stream);
    }
    fputc(']', text->stream);
}

/* The speed of a fall through most of the domain: a colour has the same speed in every frame. */
static double natural_speed(const selkie_scene *scene)
{
    double up[3], g = 0, height = 0;
    selkie_scene_up(scene, up);
    for (int d = 0; d < scene->domain.dimension; d++) {
        g += scene->gravity[d] * scene->gravity[d];
        height += fabs(up[d]) * scene->domain.size[d];
    }
    return 0.7 * sqrt(2 * sqrt(g) * height);
}

studio_blob *studio_scene_blob(const studio_world *studio)
{
    const sk_field *kind = sk_struct_find(&sk_scene_struct, "discretization");
    const selkie_scene *scene = selkie_world_scene(studio->world);
    studio_text text;
    int cells[3];
    double up[3], size[3];
    if (studio_text_open(&text))
        return NULL;
    const double cell = selkie_scene_cells(scene, cells);
    selkie_scene_up(scene, up);
    for (int d = 0; d < 3; d++)
        size[d] = d < scene->domain.dimension ? cells[d] * cell : 0;
    fputc('{', text.stream);
    studio_text_string(&text, "is", "scene");
    studio_text_number(&text, "number", studio->numbers.scene);
    studio_text_string(&text, "name", studio->name);
    studio_text_string(&text, "title", scene->title);
    studio_text_string(&text, "discretization", sk_enum_name(kind->choices, (int)scene->discretization));
    studio_text_number(&text, "dimension", scene->domain.dimension);
    studio_text_numbers(&text, "origin", scene->domain.origin, 3);
    studio_text_numbers(&text, "size", size, 3);
    studio_text_numbers(&text, "up", up, 3);
    studio_text_numbers(&text, "gravity", scene->gravity, 3);
    studio_text_number(&text, "cell", cell);
    studio_text_number(&text, "spacing", selkie_scene_spacing(scene));
    studio_text_number(&text, "natural_speed", natural_speed(scene));
    studio_text_number(&text, "end", studio->end);
    studio_text_number(&text, "fps", scene->time.fps);
    put_names(&text, scene);
    put_probes(&text, scene);
    put_columns(&text, studio->world);
    studio_text_string(&text, "text", studio->text);
    fputc('}', text.stream);
    return studio_text_close(&text, studio->numbers.scene);
}

studio_blob *studio_check_blob(const selkie_error *error)
{
    studio_text text;
    int line = 0, column = 0, used = 0;
    const char *message = error->message;
    if (studio_text_open(&text))
        return NULL;
    if (error->code != SELKIE_OK && sscanf(message, "scene:%d:%d: %n", &line, &column, &used) == 2 && used)
        message += used;
    fputc('{', text.stream);
    studio_text_string(&text, "is", "check");
    studio_text_bool(&text, "good", error->code == SELKIE_OK);
    studio_text_number(&text, "line", line);
    studio_text_number(&text, "column", column);
    studio_text_string(&text, "message", error->code == SELKIE_OK ? "" : message);
    fputc('}', text.stream);
    return studio_text_close(&text, 0);
}

studio_blob *studio_state_blob(const studio_world *studio, const studio_state *state, uint32_t number)
{
    const selkie_world *world = studio->world;
    studio_text text;
    if (studio_text_open(&text))
        return NULL;
    fputc('{', text.stream);
    studio_text_string(&text, "is", "state");
    studio_text_bool(&text, "running", state->is_running);
    studio_text_bool(&text, "finished", state->is_finished);
    studio_text_bool(&text, "behind", state->is_behind);
    studio_text_number(&text, "speed", state->speed);
    studio_text_number(&text, "rate", state->rate);
    studio_text_string(&text, "message", state->message);
    if (world) {
        studio_text_number(&text, "scene", studio->numbers.scene);
        studio_text_number(&text, "time", state->run_frames ? state->run_time : selkie_world_time(world));
        studio_text_number(&text, "run_frames", (double)state->run_frames);
        studio_text_number(&text, "run_frame", (double)state->run_frame);
        studio_text_number(&text, "step", (double)selkie_world_step_count(world));
        studio_text_number(&text, "particles", (double)selkie_world_particle_count(world));
        studio_text_number(&text, "changes", selkie_world_record(world)->change_count);
        studio_text_string(&text, "warning", selkie_world_warning(world));
        studio_text_key(&text, "values");
        fputc('[', text.stream);
        for (int c = 0; c < selkie_statistic_count(); c++)
            studio_text_number(&text, NULL, selkie_statistic_value(selkie_world_statistics(world), c));
        for (int c = 0; c < selkie_world_probe_column_count(world); c++)
            studio_text_number(&text, NULL, selkie_world_probe_value(world, c));
        fputc(']', text.stream);
    }
    fputc('}', text.stream);
    return studio_text_close(&text, number);
}

#endif
