/* `selkie mesh`: surfaces of a run's frames, finished or still in progress. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/alembic_file.h"
#include "io/frame_parts.h"
#include "io/made_with.h"
#include "io/output.h"
#include "progress.h"
#include "run_folder.h"
#include "tool.h"
#include "world/mesher.h"

enum {
    mesh_to,
    mesh_out,
    mesh_resolution,
    mesh_radius,
    mesh_smoothing,
    mesh_decimate,
    mesh_frames,
    mesh_attributes,
    mesh_by_material,
    mesh_no_by_material,
    mesh_threads,
    mesh_backend,
    mesh_force,
    mesh_quiet,
    mesh_option_count
};

static const char *const formats[] = {"ply", "obj", "abc", "vdb", "usd", NULL};
static const char *const endings[] = {"ply", "obj", "abc", "vdb", "usda"};

static const char *const backends[] = {"tuned", "cuda", "auto", NULL};
static const selkie_backend backend_of[] = {SELKIE_BACKEND_TUNED, SELKIE_BACKEND_CUDA, SELKIE_BACKEND_AUTO};

static const option_spec mesh_options[] = {
    [mesh_to] = {.name = "to",
                 .kind = OPTION_CHOICE,
                 .value = "FORMAT",
                 .choices = formats,
                 .help =
                     "ply: binary, with normals and velocities; obj: text, with normals; abc: Alembic, all frames in "
                     "one file; vdb: OpenVDB, the level set 'surface' and the velocity 'vel'; usd: USD in text. "
                     "Default ply"},
    [mesh_out] = {.name = "out",
                  .letter = 'o',
                  .kind = OPTION_TEXT,
                  .value = "FOLDER",
                  .help = "folder for the meshes; default DIR/surfaces"},
    [mesh_resolution] = {.name = "resolution",
                         .kind = OPTION_NUMBER,
                         .value = "N",
                         .least = 0.8,
                         .most = 4,
                         .help = "voxels a cell along an axis; default mesh.resolution of the scene"},
    [mesh_radius] = {.name = "radius",
                     .kind = OPTION_NUMBER,
                     .value = "R",
                     .least = 0.3,
                     .most = 2,
                     .help = "radius of the drop of a lone particle, in particle spacings; default "
                             "mesh.particle_radius of the scene"},
    [mesh_smoothing] = {.name = "smoothing",
                        .kind = OPTION_NUMBER,
                        .value = "S",
                        .least = 0,
                        .most = 2,
                        .help = "0 = none, 1 = calm water is flat; default mesh.smoothing of the scene"},
    [mesh_decimate] = {.name = "decimate",
                       .kind = OPTION_NUMBER,
                       .value = "D",
                       .least = 0,
                       .most = 1,
                       .help = "fewer triangles where the surface is flat: voxels that it may move, as 0.05; default "
                               "mesh.decimation of the scene"},
    [mesh_frames] = {.name = "frames",
                     .kind = OPTION_TEXT,
                     .value = "A:B",
                     .help = "only frames A to B; A: and :B leave one end open, a single number is one frame"},
    [mesh_attributes] = {.name = "attributes",
                         .kind = OPTION_FLAG,
                         .help = "also the vorticity (not in vdb, where it is the curl of 'vel'), and temperature, "
                                 "material and other numbers of the particles; OBJ files have none"},
    [mesh_by_material] = {.name = "by-material",
                          .kind = OPTION_FLAG,
                          .help = "a mesh for each material, in a folder of its name; frozen liquid is one of its own. "
                                  "Default mesh.by_material of the scene"},
    [mesh_no_by_material] = {.name = "no-by-material",
                             .kind = OPTION_FLAG,
                             .help = "one mesh of all materials, also where the scene has mesh.by_material"},
    [mesh_threads] = {.name = "threads",
                      .letter = 'j',
                      .kind = OPTION_INTEGER,
                      .value = "N",
                      .least = 1,
                      .most = 1024,
                      .help = "threads to use; default all cores. Meshes do not depend on it"},
    [mesh_backend] = {.name = "backend",
                      .kind = OPTION_CHOICE,
                      .value = "NAME",
                      .choices = backends,
                      .help = "where level sets and triangles are made: tuned, the default, on the CPU; cuda on a GPU, "
                              "with the same bits; auto takes a GPU that is here."},
    [mesh_force] = {.name = "force", .kind = OPTION_FLAG, .help = "make meshes again that are there"},
    [mesh_quiet] = {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "print errors only"},
};

typedef struct mesher {
    const sk_frame_part *part; /* NULL = all particles */
    selkie_scene *scene;
    sk_file_list frames;
    const char *ending;
    char *out; /* folder */
    int threads, force, attributes;
    sk_mesher *on; /* where meshes are made; NULL = by the CPU */
    int64_t made, kept;
    sk_alembic *archive;   /* of all frames, NULL for other formats */
    int64_t *frame_number; /* of the frames so far */
    size_t frame_count;
} mesher;

/* Adds the surface of a frame to the archive of all frames. */
static selkie_code add_to_archive(mesher *m, const sk_frame *frame, selkie_error *error)
{
    sk_mesh mesh = {0};
    sk_mesh_frame surface;
    SK_TRY(sk_frame_surface(frame, m->scene, m->threads, &mesh, &surface, error));
    selkie_code code = m->attributes ? sk_frame_add_values(frame, m->scene, m->threads, &mesh, error) : SELKIE_OK;
    if (!code)
        code = sk_alembic_add_mesh(m->archive, &surface, error);
    sk_mesh_free(&mesh);
    return code;
}

/* A file with the further numbers of the particles. */
static selkie_code write_with_attributes(const mesher *m, const sk_frame *frame, const char *path, selkie_error *error)
{
    if (!strcmp(m->ending, "vdb"))
        return sk_frame_write_volume(frame, m->scene, m->threads, 1, path, error);
    sk_mesh mesh = {0};
    sk_mesh_frame surface;
    SK_TRY(sk_frame_surface(frame, m->scene, m->threads, &mesh, &surface, error));
    selkie_code code = sk_frame_add_values(frame, m->scene, m->threads, &mesh, error);
    if (!code)
        code = sk_mesh_write(&surface, path, error);
    sk_mesh_free(&mesh);
    return code;
}

static int mesh_frame(mesher *m, const sk_numbered_file *file)
{
    char path[4096];
    selkie_error error = {0};
    if (snprintf(path, sizeof path, "%s/" SK_SURFACE_PREFIX "%04lld.%s", m->out, (long long)file->number, m->ending) >=
        (int)sizeof path)
        return complain("%s: the name is too long", m->out);
    m->frame_number[m->frame_count++] = file->number;
    if (!m->archive && !m->force && sk_file_exists(path) && !sk_made_with_stale(path)) {
        m->kept++;
        return EXIT_GOOD;
    }

    /* The frame, as the world had it. */
    sk_particles_data *data = NULL;
    if (sk_particles_read(file->path, &data, &error))
        return complain_error(&error);
    sk_particles_turn_back(data);
    sk_particles_rebase(data, m->scene->domain.origin);
    sk_frame frame = {.dimension = data->dimension,
                      .time = isfinite(data->time) ? data->time : 0.0,
                      .count = data->count,
                      .position = data->position,
                      .position_stride = 12,
                      .velocity = data->velocity,
                      .velocity_stride = 12,
                      .names = m->scene->output.names,
                      .mesher = m->on,
                      .up = m->scene->output.up};
    memcpy(frame.origin, m->scene->domain.origin, sizeof frame.origin);
    selkie_scene_up(m->scene, frame.scene_up);
    selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES];
    frame.extra = extras;
    frame.extra_count = sk_particles_extras(data, extras);
    int code = EXIT_GOOD;
    sk_frame taken = {0};
    selkie_attribute_view chosen[SK_MAX_EXTRA_ATTRIBUTES];
    if (m->part && sk_frame_take_part(&frame, m->part, &taken, chosen, &error)) {
        sk_particles_data_free(data);
        return complain_error(&error);
    }
    if (m->part)
        frame = taken;
    if (m->archive      ? add_to_archive(m, &frame, &error)
        : m->attributes ? write_with_attributes(m, &frame, path, &error)
                        : sk_frame_write_surface(&frame, m->scene, m->threads, path, &error))
        code = complain_error(&error);
    m->made += !code;
    if (m->part)
        sk_frame_part_free(&taken);
    sk_particles_data_free(data);
    return code;
}

/* Options that meshes depend on, as a line of text. */
static void describe_options(const mesher *m, int attributes, char line[256])
{
    const selkie_mesh_def *mesh = &m->scene->mesh;
    snprintf(line, 256, "resolution %.9g radius %.9g smoothing %.9g decimation %.9g names %d up %d attributes %d\n",
             mesh->resolution, mesh->particle_radius, mesh->smoothing, mesh->decimation, (int)m->scene->output.names,
             (int)m->scene->output.up, attributes);
}

/* Takes over the options. Meshes that were made with others are made again; a run makes its own as the scene says. */
static int take_options(mesher *m, const option_value *values)
{
    char before[256], now[256], record[64], ending[16];
    describe_options(m, 0, before);
    if (values[mesh_resolution].given)
        m->scene->mesh.resolution = values[mesh_resolution].number;
    if (values[mesh_radius].given)
        m->scene->mesh.particle_radius = values[mesh_radius].number;
    if (values[mesh_smoothing].given)
        m->scene->mesh.smoothing = values[mesh_smoothing].number;
    if (values[mesh_decimate].given)
        m->scene->mesh.decimation = values[mesh_decimate].number;
    describe_options(m, m->attributes, now);
    snprintf(record, sizeof record, "made_with_%s.txt", m->ending);
    snprintf(ending, sizeof ending, ".%s", m->ending);
    const sk_made_with made = {
        .record = record, .prefix = SK_SURFACE_PREFIX, .ending = ending, .line = now, .assumed = before};
    selkie_error error = {0};
    if (!strcmp(m->ending, "abc")) /* one file, which is always made again */
        return EXIT_GOOD;
    return sk_made_with_update(m->out, &made, &error) ? complain_error(&error) : EXIT_GOOD;
}

/* Scene and frames of the run, and the folder for the meshes. */
static int open_run(mesher *m, const run_folder *folder, const option_value *values)
{
    selkie_error error = {0};
    char *scene = run_folder_path(folder, "scene.json"), *frames = run_folder_path(folder, SK_FRAMES_FOLDER);
    m->out = values[mesh_out].given ? strdup(values[mesh_out].text) : run_folder_path(folder, SK_SURFACES_FOLDER);
    int code = scene && frames && m->out ? EXIT_GOOD : complain("out of memory");
    if (!code && (selkie_scene_load(scene, 0, NULL, &m->scene, &error) ||
                  sk_folder_list_frames(frames, &m->frames, &error) || sk_folder_make(m->out, &error)))
        code = complain_error(&error);
    if (!code && m->scene->domain.dimension != 3)
        code = complain("%s: a surface needs a run with domain.dimension 3; this one has %d", folder->path,
                        m->scene->domain.dimension);
    if (!code && !m->frames.count)
        code = complain("%s: no particle files to make meshes of (.ply or .skp; output.ply or output.skp must be true)",
                        frames);
    free(scene);
    free(frames);
    return code;
}

/* Keeps the frames that were asked for. */
static int choose_frames(mesher *m, int64_t first, int64_t last, const char *range)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->frames.count; i++) {
        sk_numbered_file *file = &m->frames.files[i];
        if (file->number >= first && (last < 0 || file->number <= last)) {
            const sk_numbered_file swap = m->frames.files[kept];
            m->frames.files[kept++] = *file;
            *file = swap;
        }
    }
    for (size_t i = kept; i < m->frames.count; i++)
        free(m->frames.files[i].path);
    m->frames.count = kept;
    m->frame_number = calloc(kept + 1, sizeof *m->frame_number);
    if (!m->frame_number)
        return complain("out of memory");
    return kept ? EXIT_GOOD : complain("--frames '%s': the run has no such frame", range);
}

static int begin_archive(mesher *m)
{
    char path[4096];
    selkie_error error = {0};
    if (strcmp(m->ending, "abc"))
        return EXIT_GOOD;
    if (snprintf(path, sizeof path, "%s/surface.abc", m->out) >= (int)sizeof path)
        return complain("%s: the name is too long", m->out);
    return sk_alembic_begin(path, 0, &m->archive, &error) ? complain_error(&error) : EXIT_GOOD;
}

/* Ends the archive, or writes the stage that shows the USD files. */
static int end_files(mesher *m, int code)
{
    char path[4096];
    selkie_error error = {0};
    if (m->archive && sk_alembic_end(m->archive, code ? SELKIE_ERROR_FILE : SELKIE_OK, &error) && !code)
        return complain_error(&error);
    if (code || strcmp(m->ending, "usda"))
        return code;
    double up[3];
    selkie_scene_up(m->scene, up);
    const sk_usd_stage stage = {.prefix = SK_SURFACE_PREFIX,
                                .count = m->frame_count,
                                .frames = m->frame_number,
                                .fps = m->scene->time.fps,
                                .up = sk_usd_up(m->scene->output.up, up)};
    if (snprintf(path, sizeof path, "%s/surface.usda", m->out) >= (int)sizeof path)
        return complain("%s: the name is too long", m->out);
    return sk_mesh_write_usd_stage(path, &stage, &error) ? complain_error(&error) : EXIT_GOOD;
}

/* The meshes of all frames, in one folder. */
static int make_meshes(mesher *m, const option_value *values)
{
    progress_line progress;
    int code = take_options(m, values);
    m->frame_count = 0;
    m->archive = NULL;
    if (!code)
        code = begin_archive(m);
    progress_start(&progress, values[mesh_quiet].given, 0, 0, 0);
    progress.total_frames = (int64_t)m->frames.count;
    for (size_t i = 0; i < m->frames.count && !code; i++) {
        code = mesh_frame(m, &m->frames.files[i]);
        progress_count(&progress, "mesh", (int64_t)i + 1);
    }
    progress_break(&progress);
    return end_files(m, code);
}

/* The same for each material, in folders of their names. */
static int make_parts(mesher *m, const option_value *values)
{
    sk_frame_part parts[SK_MOST_PARTS];
    const int count = sk_scene_parts(m->scene, parts);
    char *out = m->out, folder[4096];
    int code = EXIT_GOOD;
    m->scene->mesh.by_material = 0;
    for (int n = 0; n < count && !code; n++) {
        selkie_error error = {0};
        if (snprintf(folder, sizeof folder, "%s/%s", out, parts[n].name) >= (int)sizeof folder)
            code = complain("%s: the name is too long", out);
        else if (sk_folder_make(folder, &error))
            code = complain_error(&error);
        m->out = folder;
        m->part = &parts[n];
        if (!code)
            code = make_meshes(m, values);
    }
    m->out = out;
    return code;
}

static int run_mesh(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    mesher m = {.ending = endings[values[mesh_to].given ? values[mesh_to].integer : 0],
                .threads = (int)values[mesh_threads].integer,
                .force = values[mesh_force].given,
                .attributes = values[mesh_attributes].given};
    if (m.attributes && !strcmp(m.ending, "obj"))
        return complain("--attributes: OBJ files have none; use ply, abc, vdb or usd");
    if (values[mesh_by_material].given && values[mesh_no_by_material].given)
        return complain("--by-material and --no-by-material exclude each other");
    const selkie_backend backend =
        values[mesh_backend].given ? backend_of[values[mesh_backend].integer] : SELKIE_BACKEND_TUNED;
    int64_t first = 0, last = -1;
    if (values[mesh_frames].given && read_frame_range(values[mesh_frames].text, &first, &last))
        return EXIT_BAD_INPUT;
    run_folder folder = {.lock = -1};
    int code = run_folder_name(&folder, arguments->operands[0]);
    if (!code)
        code = open_run(&m, &folder, values);
    if (!code)
        code = choose_frames(&m, first, last, values[mesh_frames].given ? values[mesh_frames].text : ":");
    const int apart =
        !code && !values[mesh_no_by_material].given && (values[mesh_by_material].given || m.scene->mesh.by_material);
    if (!code)
        m.scene->mesh.by_material = apart;
    selkie_error error = {0};
    if (!code && sk_mesher_create(backend, &m.on, &error))
        code = complain_error(&error);
    if (!code)
        code = apart ? make_parts(&m, values) : make_meshes(&m, values);
    if (!code && !values[mesh_quiet].given)
        printf("%lld meshes made, %lld were there: %s\n", (long long)m.made, (long long)m.kept, m.out);

    sk_mesher_destroy(m.on);
    sk_file_list_free(&m.frames);
    selkie_scene_free(m.scene);
    free(m.out);
    free(m.frame_number);
    run_folder_close(&folder);
    return code;
}

const tool_command mesh_command = {
    .name = "mesh",
    .synopsis = "DIR",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "make surfaces of a run's frames",
    .description =
        "Makes the liquid's surface of each frame that the 3D run in DIR has written so far; the run may still be "
        "active. Meshes that are there are kept, so a repeated call makes the missing ones. Keys of the scene (mesh) "
        "are used unless an option sets them.",
    .options = mesh_options,
    .option_count = mesh_option_count,
    .examples = "  selkie mesh out/dam\n"
                "  selkie mesh out/dam --to obj --resolution 3 --out fine --frames 10:20\n"
                "  selkie mesh out/dam --to abc\n",
    .run = run_mesh,
};
