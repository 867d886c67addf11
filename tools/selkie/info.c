/* `selkie info`: contents of a file or of a run's folder. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "geom/mesh_import.h"
#include "io/atomic_file.h"
#include "io/container.h"
#include "io/particles_file.h"
#include "io/table_file.h"
#include "methods/reduced/basis_file.h"
#include "run_folder.h"
#include "statistics_text.h"
#include "tool.h"
#include "warnings.h"
#include "world/world_internal.h"

/* --- Points and meshes --- */

typedef struct point_bounds {
    double low[3], high[3];
} point_bounds;

static point_bounds bounds_empty(void)
{
    return (point_bounds){{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
}

static void bounds_include(point_bounds *bounds, const double point[3])
{
    for (int axis = 0; axis < 3; axis++) {
        bounds->low[axis] = fmin(bounds->low[axis], point[axis]);
        bounds->high[axis] = fmax(bounds->high[axis], point[axis]);
    }
}

static void print_bounds(const point_bounds *bounds)
{
    double far = 0.0;
    for (int d = 0; d < 3; d++)
        far = fmax(far, fmax(fabs(bounds->low[d]), fabs(bounds->high[d])));
    const int digits = far < 1e4 ? 6 : 12;
    if (bounds->low[0] <= bounds->high[0])
        printf("bounds        (%.*g, %.*g, %.*g) to (%.*g, %.*g, %.*g) m\n", digits, bounds->low[0], digits,
               bounds->low[1], digits, bounds->low[2], digits, bounds->high[0], digits, bounds->high[1], digits,
               bounds->high[2]);
}

/* Positions and, if there are any, velocities of particles. */
static void print_particles(int64_t count, const float *position, const double origin[3], const float *velocity)
{
    point_bounds box = bounds_empty();
    double fastest = 0;
    for (int64_t i = 0; i < count; i++) {
        const float *x = position + 3 * i;
        bounds_include(&box, (double[3]){x[0] + origin[0], x[1] + origin[1], x[2] + origin[2]});
        if (velocity) {
            const float *u = velocity + 3 * i;
            fastest = fmax(fastest, (double)u[0] * u[0] + (double)u[1] * u[1] + (double)u[2] * u[2]);
        }
    }
    char text[32];
    printf("particles     %s\n", format_count(count, text));
    print_bounds(&box);
    if (velocity)
        printf("fastest       %.6g m/s\n", sqrt(fastest));
}

static int info_particles(const char *path, const char *kind)
{
    sk_particles_data *data = NULL;
    selkie_error error = {0};
    if (sk_particles_read(path, &data, &error))
        return complain_error(&error);
    printf("file          %s: particles, %s\n", path, kind);
    if (isfinite(data->time))
        printf("time          %g s\n", data->time);
    print_particles(data->count, data->position, data->origin, data->velocity);
    sk_particles_data_free(data);
    return EXIT_GOOD;
}

/* Reads the files that `selkie run` writes: raw appended data with the positions first. */
static int info_particles_vtp(const char *path)
{
    char *data = NULL;
    size_t size = 0;
    selkie_error error = {0};
    if (sk_file_read(path, &data, &size, &error))
        return complain_error(&error);

    /* Header, then the length of the first array. */
    const char *points = memmem(data, size, "NumberOfPoints=\"", 16);
    const char *start = memmem(data, size, "<AppendedData encoding=\"raw\">", 29);
    const char *underscore = start ? memchr(start, '_', size - (size_t)(start - data)) : NULL;
    long long count = points ? strtoll(points + 16, NULL, 10) : -1;
    uint64_t bytes = 0;
    const char *first = memmem(data, size, "<Points>", 8);
    const char *wide = first ? memmem(first, size - (size_t)(first - data), "Float64", 7) : NULL;
    const size_t each = wide && start && wide < start ? 24 : 12; /* bytes of a position */
    int good = underscore && count >= 0 && count < (1LL << 40) && (size_t)(data + size - underscore) > 9;
    if (good) {
        memcpy(&bytes, underscore + 1, sizeof bytes);
        good = bytes == (uint64_t)count * each && (uint64_t)(data + size - underscore) - 9 >= bytes;
    }

    point_bounds box = bounds_empty();
    int code = EXIT_GOOD;
    if (!good) {
        code = complain("%s: is not a .vtp file as selkie writes them (raw appended data, positions first), or it is "
                        "damaged",
                        path);
    } else {
        char text[32];
        for (long long i = 0; i < count; i++) {
            const char *at = underscore + 9 + (size_t)i * each;
            float narrow[3];
            double x[3];
            memcpy(narrow, at, sizeof narrow);
            for (int k = 0; k < 3; k++)
                x[k] = narrow[k];
            if (each == sizeof x)
                memcpy(x, at, sizeof x);
            bounds_include(&box, x);
        }
        printf("file          %s: particles, VTK XML\n", path);
        printf("particles     %s\n", format_count(count, text));
        print_bounds(&box);
    }
    sk_release(NULL, data);
    return code;
}

static int info_mesh(const char *path)
{
    sk_solid_mesh mesh = {0};
    sk_mesh_placement placement = {.scale = {1, 1, 1}};
    selkie_error error = {0};
    if (sk_solid_mesh_import(path, &placement, "", NULL, &mesh, &error))
        return complain_error(&error);
    char vertices[32], triangles[32];
    point_bounds box = bounds_empty();
    for (size_t i = 0; i < mesh.vertex_count; i++)
        bounds_include(&box, mesh.vertices[i]);
    printf("file          %s: mesh\n", path);
    printf("triangles     %s, of %s points\n", format_count((int64_t)mesh.triangle_count, triangles),
           format_count((int64_t)mesh.vertex_count, vertices));
    if (mesh.open_edges)
        printf("closed        no: %zu open edges\n", mesh.open_edges);
    else
        printf("closed        yes, volume %.6g m3\n", sk_solid_mesh_volume(&mesh));
    print_bounds(&box);
    sk_solid_mesh_release(&mesh);
    return EXIT_GOOD;
}

/* Faces of a PLY file; -1 without such an element: a file of particles. The surface of an empty frame has 0. */
static long long ply_faces(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    char line[256];
    long long faces = -1;
    for (int i = 0; i < 200 && fgets(line, sizeof line, file) && strncmp(line, "end_header", 10); i++)
        sscanf(line, "element face %lld", &faces);
    fclose(file);
    return faces;
}

static int info_empty_mesh(const char *path)
{
    printf("file          %s: mesh\ntriangles     0, of 0 points\n", path);
    return EXIT_GOOD;
}

/* --- Files for other programs --- */

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Formats that Selkie writes and does not read: kind, size, and what their first bytes say. */
static int info_export(const char *path, const char *ending)
{
    unsigned char start[64] = {0};
    char size[32], text[32];
    struct stat status;
    FILE *file = fopen(path, "rb");
    if (!file || stat(path, &status)) {
        if (file)
            fclose(file);
        return complain("%s: cannot be opened", path);
    }
    const size_t bytes = fread(start, 1, sizeof start, file);
    fclose(file);

    if (!strcasecmp(ending, "abc") && bytes >= 16 && !memcmp(start, "Ogawa", 5)) {
        printf("file          %s: Alembic (Ogawa)\n", path);
        printf("complete      %s\n", start[5] == 0xff ? "yes" : "no: its writing was not finished");
    } else if (!strcasecmp(ending, "vdb") && bytes >= 12 && !memcmp(start, " BDV", 4)) {
        printf("file          %s: OpenVDB, file version %u\n", path,
               (unsigned)start[8] | (unsigned)start[9] << 8 | (unsigned)start[10] << 16);
    } else if (!strcasecmp(ending, "bgeo") && bytes >= 13 && !memcmp(start, "BgeoV", 5)) {
        printf("file          %s: particles, Houdini geometry version %u\n", path, (unsigned)big_endian(start + 5));
        printf("particles     %s\n", format_count((int64_t)big_endian(start + 9), text));
    } else if (!strncasecmp(ending, "usd", 3) && bytes >= 10 && !memcmp(start, "#usda 1.0", 9)) {
        printf("file          %s: USD in text\n", path);
    } else if (!strcasecmp(ending, "basis")) {
        sk_basis_header header;
        selkie_error error = {0};
        if (sk_basis_check(path, &header, &error))
            return complain_error(&error);
        printf("file          %s: basis of modes (selkie basis), undamaged\n", path);
        printf("modes         %d in closed form, %d further, %d flows\n", header.closed, header.extra, header.flows);
        printf("domain        %g x %g m, %d x %d cells\n", header.size[0], header.size[1], header.cells[0],
               header.cells[1]);
    } else {
        return complain("%s: is not a .%s file as selkie writes them, or it is damaged", path, ending);
    }
    printf("size          %s\n", format_bytes((double)status.st_size, size));
    return EXIT_GOOD;
}

/* --- Checkpoints and scenes --- */

static int info_checkpoint(const char *path)
{
    sk_container *container = NULL;
    selkie_error error = {0};
    if (sk_container_read(path, &container, &error))
        return complain_error(&error);
    char size[32];
    printf("file          %s: checkpoint, undamaged\n", path);
    double all = 0;
    for (int i = 0; i < sk_container_count(container); i++)
        all += (double)sk_container_at(container, i)->bytes;

    /* The header of the state: step, time and size. */
    const sk_chunk *header_chunk = sk_container_find(container, "header");
    sk_state_header header;
    if (header_chunk && header_chunk->bytes == sizeof header) {
        memcpy(&header, header_chunk->data, sizeof header);
        printf("step          %lld\ntime          %.9g s, frame %lld\n", (long long)header.step_count, header.time,
               (long long)header.frame);
        printf("particles     %s\n", format_count(header.particle_count, size));
        if (header.dimension == 2)
            printf("domain        2D, %d x %d cells of %g m\n", header.cells[0], header.cells[1], header.cell_size);
        else
            printf("domain        3D, %d x %d x %d cells of %g m\n", header.cells[0], header.cells[1], header.cells[2],
                   header.cell_size);
    }

    /* The chunks and their sizes. */
    printf("chunks        %d, %s\n", sk_container_count(container), format_bytes(all, size));
    for (int i = 0; i < sk_container_count(container); i++) {
        const sk_chunk *chunk = sk_container_at(container, i);
        printf("              %-24s%s\n", chunk->name, format_bytes((double)chunk->bytes, size));
    }
    sk_container_close(container);
    return EXIT_GOOD;
}

static void print_scene(const selkie_scene *scene)
{
    int cells[3];
    double cell_size = selkie_scene_cells(scene, cells);
    printf("title         %s\n", scene->title && *scene->title ? scene->title : "untitled");
    if (scene->domain.dimension == 2)
        printf("domain        2D, %g x %g m, %d x %d cells of %g m\n", scene->domain.size[0], scene->domain.size[1],
               cells[0], cells[1], cell_size);
    else
        printf("domain        3D, %g x %g x %g m, %d x %d x %d cells of %g m\n", scene->domain.size[0],
               scene->domain.size[1], scene->domain.size[2], cells[0], cells[1], cells[2], cell_size);
    printf(
        "parts         liquids %d, obstacles %d, sources %d, drains %d, bodies %d, forces %d, objects %d, probes %d\n",
        scene->liquid_count, scene->obstacle_count, scene->source_count, scene->drain_count, scene->body_count,
        scene->force_count, scene->object_count, scene->probe_count);
    printf("time          %g s, %g frames a second\n", scene->time.end, scene->time.fps);
}

static int info_scene(const char *path)
{
    selkie_scene *scene = NULL;
    int code = load_scene(path, NULL, &scene);
    if (code)
        return code;
    printf("file          %s: scene\n", path);
    print_scene(scene);
    selkie_scene_free(scene);
    return EXIT_GOOD;
}

/* --- Folders of runs --- */

static int print_stats(const run_folder *folder)
{
    char *path = run_folder_path(folder, "stats.csv");
    if (!path || !sk_file_exists(path)) {
        free(path);
        return EXIT_GOOD;
    }

    sk_table *stats = NULL;
    selkie_error error = {0};
    int code = sk_table_read(path, &stats, &error) ? complain_error(&error) : EXIT_GOOD;
    free(path);
    int64_t count = code ? 0 : stats->row_count;
    const double *time = count ? sk_table_column(stats, "time") : NULL;
    const double *step = count ? sk_table_column(stats, "step") : NULL;
    if (time && step)
        printf("reached       step %.0f, %g s\n", step[count - 1], time[count - 1]);

    /* What the table of statistics says; an older run may lack a column. */
    for (int i = 0; count && i < selkie_statistic_count(); i++) {
        const selkie_statistic *row = selkie_statistic_info(i);
        const double *column = row->summary ? sk_table_column(stats, row->name) : NULL;
        char text[4 * statistic_text_length];
        if (column)
            printf("%-14s%s\n", statistic_brief(row), format_summary(row, column, count, text));
    }
    sk_table_free(stats);
    return code;
}

static void print_folder(const run_folder *folder, const char *label, const char *name, const char *ending)
{
    double bytes;
    char size[32];
    int64_t count = run_folder_count(folder, name, ending, &bytes);
    if (count)
        printf("%-14s%lld files, %s\n", label, (long long)count, format_bytes(bytes, size));
}

static int info_run(const char *path)
{
    run_folder folder = {.lock = -1};
    sk_run_state state = {0};
    selkie_error error = {0};

    /* The folder must hold a run. */
    int code = run_folder_name(&folder, path);
    if (!code && sk_run_look(folder.path, &state, &error))
        code = complain_error(&error);
    if (!code && !state.exists)
        code = complain("%s: has no scene.json, so it is not the folder of a run", folder.path);

    /* The scene as it was recorded. */
    if (!code) {
        printf("folder        %s: a run, %s\n", folder.path, state.finished ? "finished" : "not finished");
        char *scene_path = run_folder_path(&folder, "scene.json");
        selkie_scene *scene = NULL;
        code = scene_path ? load_scene(scene_path, NULL, &scene) : complain("out of memory");
        free(scene_path);
        if (!code)
            print_scene(scene);
        if (scene)
            selkie_scene_free(scene);
    }

    /* Statistics, warnings and files of the run. */
    if (!code)
        code = print_stats(&folder);
    if (!code)
        code = print_recorded_warnings(&folder);
    if (!code) {
        print_folder(&folder, "frames", "frames", "");
        print_folder(&folder, "surfaces", "surfaces", "");
        print_folder(&folder, "pictures", "pictures", ".png");
        print_folder(&folder, "checkpoints", "checkpoints", ".selkie");
    }
    run_folder_close(&folder);
    return code;
}

/* --- The command --- */

static int run_info(const tool_arguments *arguments)
{
    const char *path = arguments->operands[0];
    struct stat status;
    char *found = NULL;
    if (stat(path, &status)) {
        /* Accepts the name of a known scene too. */
        if (strchr(path, '.') || !(found = find_scene(path)))
            return strchr(path, '.') ? complain("%s: no such file or folder", path) : EXIT_BAD_INPUT;
        path = found;
    } else if (S_ISDIR(status.st_mode)) {
        return info_run(path);
    }

    /* By the ending of the name. */
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const char *ending = dot ? dot + 1 : "";
    int code;
    if (!strcasecmp(ending, "json"))
        code = info_scene(path);
    else if (!strcasecmp(ending, "selkie"))
        code = info_checkpoint(path);
    else if (!strcasecmp(ending, "vtp"))
        code = info_particles_vtp(path);
    else if (!strcasecmp(ending, "ply") && ply_faces(path) < 0)
        code = info_particles(path, "PLY");
    else if (!strcasecmp(ending, "ply") && ply_faces(path) == 0)
        code = info_empty_mesh(path);
    else if (!strcasecmp(ending, "skp"))
        code = info_particles(path, "compact");
    else if (!strcasecmp(ending, "ply") || !strcasecmp(ending, "obj") || !strcasecmp(ending, "stl") ||
             !strcasecmp(ending, "gltf") || !strcasecmp(ending, "glb"))
        code = info_mesh(path);
    else if (!strcasecmp(ending, "abc") || !strcasecmp(ending, "vdb") || !strcasecmp(ending, "bgeo") ||
             !strcasecmp(ending, "usda") || !strcasecmp(ending, "basis"))
        code = info_export(path, ending);
    else
        code = complain("%s: is of an unknown kind; known are folders of runs, .json, .selkie, .ply, .vtp, .skp, "
                        ".obj, .stl, .gltf, .glb, .abc, .vdb, .bgeo, .usda and .basis",
                        path);
    free(found);
    return code;
}

const tool_command info_command = {
    .name = "info",
    .synopsis = "FILE|DIR",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "describe a file or the folder of a run",
    .description =
        "Of the folder of a run: how far it is, volume, iterations, warnings and what was written. Of a particle file "
        "(.ply, .vtp, .skp): count and bounds. Of a checkpoint (.selkie): whether it is undamaged, and its parts. "
        "Of a scene (.json): title and sizes. Of a mesh (.ply, .obj, .stl, .gltf, .glb): triangles, "
        "whether it is closed, bounds. Of .abc, .vdb, .bgeo, .usda and .basis: kind and size.",
    .examples = "  selkie info out/dam\n  selkie info out/dam/frames/particles_0010.ply\n",
    .run = run_info,
};
