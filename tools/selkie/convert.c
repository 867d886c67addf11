/* `selkie convert`: particle files of a run, or one file, in another format. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/alembic_file.h"
#include "io/particles_file.h"
#include "progress.h"
#include "run_folder.h"
#include "tool.h"

enum { convert_to, convert_out, convert_names, convert_up, convert_force, convert_quiet, convert_option_count };

static const char *const formats[] = {"ply", "vtp", "skp", "bgeo", "abc", NULL};
/* In the order of selkie_attribute_names and selkie_up_axis. */
static const char *const name_choices[] = {"selkie", "houdini", "blender", NULL};
static const char *const up_choices[] = {"scene", "y", "z", NULL};

static const option_spec convert_options[] = {
    [convert_to] = {.name = "to",
                    .kind = OPTION_CHOICE,
                    .value = "FORMAT",
                    .choices = formats,
                    .help =
                        "ply: binary PLY; vtp: VTK XML; skp: compact; bgeo: Houdini; abc: Alembic, all frames in one "
                        "file. Default ply"},
    [convert_out] = {.name = "out",
                     .letter = 'o',
                     .kind = OPTION_TEXT,
                     .value = "PLACE",
                     .help = "a folder for the files of a run, the name of the new file for one file; default beside "
                             "what is read"},
    [convert_names] = {.name = "names",
                       .kind = OPTION_CHOICE,
                       .value = "NAMES",
                       .choices = name_choices,
                       .help = "names of the attributes: selkie, houdini or blender; default as in the scene"},
    [convert_up] = {.name = "up",
                    .kind = OPTION_CHOICE,
                    .value = "AXIS",
                    .choices = up_choices,
                    .help = "up axis in the files: scene, y or z; default as in the scene"},
    [convert_force] = {.name = "force", .kind = OPTION_FLAG, .help = "write files again that are there"},
    [convert_quiet] = {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "print errors only"},
};

typedef struct converter {
    const char *ending; /* of the new files */
    selkie_attribute_names names;
    selkie_up_axis up;
    double scene_up[3], cell_size; /* 1, m; 0 = unknown */
    int force;
    int64_t written, kept, failed;
    sk_alembic *archive; /* of all frames, NULL for other formats */
    double bytes[2];     /* read, written */
} converter;

static double file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) ? 0.0 : (double)status.st_size;
}

static int convert_file(converter *c, const char *from, const char *to)
{
    sk_particles_data *data = NULL;
    selkie_error error = {0};
    struct stat status;
    if (!strcmp(from, to))
        return complain("%s: it has this format already", from);
    if (!c->archive && !c->force && !stat(to, &status)) {
        c->kept++;
        return EXIT_GOOD;
    }
    if (sk_particles_read(from, &data, &error))
        return complain_error(&error);
    sk_particles_turn_back(data);

    /* The frame, as a world would give it. */
    selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES];
    sk_frame frame = {.dimension = data->dimension,
                      .time = isfinite(data->time) ? data->time : 0.0,
                      .count = data->count,
                      .position = data->position,
                      .position_stride = 12,
                      .velocity = data->velocity,
                      .velocity_stride = 12,
                      .id = data->id,
                      .id_stride = 4,
                      .particle_radius = data->particle_radius,
                      /* Eight particles a cell have a radius of a quarter of it. */
                      .cell_size = data->cell_size > 0.0 ? data->cell_size
                                   : c->cell_size > 0.0  ? c->cell_size
                                                         : 4.0 * data->particle_radius,
                      .names = c->names,
                      .up = c->up,
                      .extra = extras};
    frame.extra_count = sk_particles_extras(data, extras);
    memcpy(frame.origin, data->origin, sizeof frame.origin);
    memcpy(frame.scene_up, c->scene_up, sizeof frame.scene_up);
    int code = EXIT_GOOD;
    if (!(frame.cell_size > 0.0) && !strcmp(c->ending, "skp"))
        code = complain(
            "%s: it does not say how large its particles are, so no precision can be chosen for a compact file", from);
    else if (c->archive ? sk_alembic_add_points(c->archive, &frame, &error) : sk_particles_write(&frame, to, &error))
        code = complain_error(&error);
    c->bytes[0] += file_bytes(from);
    c->bytes[1] += c->archive ? 0.0 : file_bytes(to);
    c->written += !code;
    sk_particles_data_free(data);
    return code;
}

/* "PLACE/NAME.ENDING" for "FOLDER/NAME.x"; PLACE NULL = FOLDER. free() it. */
static char *new_name(const char *from, const char *place, const char *ending)
{
    const char *slash = strrchr(from, '/'), *name = slash ? slash + 1 : from, *dot = strrchr(name, '.');
    const int stem = dot ? (int)(dot - name) : (int)strlen(name);
    char *to = NULL;
    int length;
    if (place)
        length = asprintf(&to, "%s/%.*s.%s", place, stem, name, ending);
    else
        length = asprintf(&to, "%.*s%.*s.%s", (int)(name - from), from, stem, name, ending);
    return length < 0 ? NULL : to;
}

/* Axes, names and cells of the scene of a run. */
static int read_scene(converter *c, const run_folder *folder, const option_value *values)
{
    char *path = run_folder_path(folder, "scene.json");
    selkie_scene *scene = NULL;
    selkie_error error = {0};
    if (!path)
        return complain("out of memory");
    const selkie_code code = selkie_scene_load(path, 0, NULL, &scene, &error);
    free(path);
    if (code)
        return complain_error(&error);
    int cells[3];
    c->cell_size = selkie_scene_cells(scene, cells);
    selkie_scene_up(scene, c->scene_up);
    if (!values[convert_names].given)
        c->names = scene->output.names;
    if (!values[convert_up].given)
        c->up = scene->output.up;
    selkie_scene_free(scene);
    return EXIT_GOOD;
}

static int list_run(const run_folder *folder, const char *ending, sk_file_list *list)
{
    selkie_error error = {0};
    char *frames = run_folder_path(folder, SK_FRAMES_FOLDER);
    if (!frames)
        return complain("out of memory");
    /* Compact files become others, and PLY files become compact ones or .vtp. */
    const char *first = !strcmp(ending, "ply") ? ".skp" : ".ply";
    selkie_code code = sk_folder_list(frames, SK_PARTICLES_PREFIX, first, list, &error);
    if (!code && !list->count && strcmp(ending, "ply") && strcmp(ending, "skp")) {
        sk_file_list_free(list);
        code = sk_folder_list(frames, SK_PARTICLES_PREFIX, ".skp", list, &error);
    }
    int result = EXIT_GOOD;
    if (code)
        result = complain_error(&error);
    else if (!list->count)
        result = complain("%s: no particle files in it that can become .%s (%s)", frames, ending,
                          strcmp(ending, "ply") ? ".ply or .skp" : ".skp");
    free(frames);
    return result;
}

/* Opens the file of all frames, beside the frames or at --out. */
static int begin_archive(converter *c, const run_folder *folder, const char *out, char **path)
{
    selkie_error error = {0};
    char *frames = run_folder_path(folder, SK_FRAMES_FOLDER);
    const int length = frames ? asprintf(path, "%s/particles.abc", out ? out : frames) : -1;
    free(frames);
    if (length < 0) {
        *path = NULL;
        return complain("out of memory");
    }
    return sk_alembic_begin(*path, 1, &c->archive, &error) ? complain_error(&error) : EXIT_GOOD;
}

/* One damaged frame does not stop the others. */
static void convert_list(converter *c, const sk_file_list *list, const char *out, progress_line *progress)
{
    for (size_t i = 0; i < list->count; i++) {
        char *to = new_name(list->files[i].path, out, c->ending);
        c->failed += (to ? convert_file(c, list->files[i].path, to) : complain("out of memory")) != EXIT_GOOD;
        free(to);
        progress_count(progress, "file", (int64_t)i + 1);
    }
}

static int convert_run(converter *c, const char *path, const option_value *values)
{
    run_folder folder = {.lock = -1};
    sk_file_list list = {0};
    selkie_error error = {0};
    const char *out = values[convert_out].text;
    int code = run_folder_name(&folder, path);
    if (!code)
        code = read_scene(c, &folder, values);
    if (!code)
        code = list_run(&folder, c->ending, &list);
    if (!code && out && sk_folder_make(out, &error))
        code = complain_error(&error);

    progress_line progress;
    progress_start(&progress, values[convert_quiet].given, 0, 0, 0);
    progress.total_frames = (int64_t)list.count;
    char *archive = NULL;
    if (!code && !strcmp(c->ending, "abc"))
        code = begin_archive(c, &folder, out, &archive);
    if (!code)
        convert_list(c, &list, out, &progress);
    progress_break(&progress);
    if (c->archive && sk_alembic_end(c->archive, SELKIE_OK, &error))
        code = complain_error(&error);
    c->bytes[1] += archive ? file_bytes(archive) : 0.0;
    free(archive);
    if (!code && c->failed)
        code = complain("%lld of %zu files could not be converted; the others were", (long long)c->failed, list.count);
    sk_file_list_free(&list);
    run_folder_close(&folder);
    return code;
}

static int run_convert(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    const char *path = arguments->operands[0];
    converter c = {.ending = formats[values[convert_to].given ? values[convert_to].integer : 0],
                   .names = (selkie_attribute_names)values[convert_names].integer,
                   .up = (selkie_up_axis)values[convert_up].integer,
                   .scene_up = {0, 1, 0},
                   .force = values[convert_force].given};
    struct stat status;
    if (stat(path, &status))
        return complain("%s: no such file or folder; 'selkie convert' needs a particle file or the folder of a run",
                        path);
    int code;
    if (S_ISDIR(status.st_mode)) {
        code = convert_run(&c, path, values);
    } else {
        const char *out = values[convert_out].text;
        char *to = out ? strdup(out) : new_name(path, NULL, c.ending);
        const char *dot = to ? strrchr(to, '.') : NULL;
        if (dot && out)
            c.ending = dot + 1;
        code = EXIT_GOOD;
        selkie_error error = {0};
        if (to && !strcmp(c.ending, "abc") && sk_alembic_begin(to, 1, &c.archive, &error))
            code = complain_error(&error);
        if (!code)
            code = to ? convert_file(&c, path, to) : complain("out of memory");
        if (c.archive && sk_alembic_end(c.archive, code ? SELKIE_ERROR_FILE : SELKIE_OK, &error) && !code)
            code = complain_error(&error);
        c.bytes[1] += c.archive && to ? file_bytes(to) : 0.0;
        free(to);
    }

    if (!code && !values[convert_quiet].given) {
        char before[32], after[32];
        printf("%lld files written, %lld were there: %s became %s\n", (long long)c.written, (long long)c.kept,
               format_bytes(c.bytes[0], before), format_bytes(c.bytes[1], after));
    }
    return code;
}

const tool_command convert_command = {
    .name = "convert",
    .synopsis = "DIR|FILE",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "write particle files in another format",
    .description =
        "Reads the particle files of the run in DIR, or one FILE (.ply, .skp), and writes them in another format. "
        "Compact files (.skp) hold positions to 1/1024 of a cell and half-precision velocities; PLY and VTK files have "
        "every bit. Files that are there are kept.",
    .options = convert_options,
    .option_count = convert_option_count,
    .examples = "  selkie run double_dam_2d --set output.skp=true --out out/dam\n"
                "  selkie convert out/dam --to vtp --up z\n",
    .run = run_convert,
};
