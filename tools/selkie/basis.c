/* `selkie basis`: the modes of a reduced fluid as a file. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/timer.h"
#include "io/folder.h"
#include "io/output.h"
#include "io/particles_file.h"
#include "methods/reduced/basis_file.h"
#include "methods/reduced/data.h"
#include "tool.h"
#include "world/world_internal.h"

enum {
    basis_out,
    basis_snapshots,
    basis_modes,
    basis_frames,
    basis_every,
    basis_set,
    basis_threads,
    basis_quiet,
    basis_option_count
};

static const option_spec basis_options[] = {
    [basis_out] = {.name = "out",
                   .letter = 'o',
                   .kind = OPTION_TEXT,
                   .value = "FILE",
                   .help = "file to write; default the scene's name with .basis"},
    [basis_snapshots] = {.name = "snapshots",
                         .kind = OPTION_LIST,
                         .value = "DIR",
                         .help = "add modes from the frames of a 2D run, by a singular value decomposition; may be "
                                 "repeated"},
    [basis_modes] = {.name = "modes",
                     .kind = OPTION_INTEGER,
                     .value = "N",
                     .least = 1,
                     .most = 1024,
                     .help = "at most so many modes from snapshots; default 16"},
    [basis_frames] = {.name = "frames",
                      .kind = OPTION_TEXT,
                      .value = "A:B",
                      .help = "snapshots from frames A to B only; A: and :B leave one end open"},
    [basis_every] = {.name = "every",
                     .kind = OPTION_INTEGER,
                     .value = "N",
                     .least = 1,
                     .most = 1000000,
                     .help = "take every Nth of these frames; default 1"},
    [basis_set] = {.name = "set",
                   .kind = OPTION_LIST,
                   .value = "KEY=VALUE",
                   .help = "change a key, as of 'selkie run'"},
    [basis_threads] = {.name = "threads",
                       .letter = 'j',
                       .kind = OPTION_INTEGER,
                       .value = "N",
                       .least = 1,
                       .most = 1024,
                       .help = "threads to use; default all cores"},
    [basis_quiet] = {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "print errors only"},
};

/* --- Snapshots --- */

typedef struct collector {
    const sk_step *step;
    int64_t first, last, every;
    double *fields; /* m/s [count][2][x][y] */
    double *weight; /*     [x][y] */
    int count;
} collector;

static size_t cells_of(const sk_step *step)
{
    return (size_t)step->grid.cells[0] * (size_t)step->grid.cells[1];
}

/* Mean velocity of the particles in each cell; 0 where there are none. */
static void average(collector *c, const sk_particles_data *data, double *field)
{
    const size_t cells = cells_of(c->step);
    const double inverse = 1.0 / c->step->grid.cell_size;
    memset(c->weight, 0, cells * sizeof *c->weight);
    memset(field, 0, 2 * cells * sizeof *field);
    for (size_t p = 0; p < (size_t)data->count; p++) {
        const float *x = data->position + 3 * p, *v = data->velocity + 3 * p;
        const int i = (int)floor(x[0] * inverse), j = (int)floor(x[1] * inverse);
        if (i < 0 || j < 0 || i >= c->step->grid.cells[0] || j >= c->step->grid.cells[1])
            continue;
        const size_t n = (size_t)i * (size_t)c->step->grid.cells[1] + (size_t)j;
        c->weight[n] += 1.0;
        field[n] += v[0];
        field[cells + n] += v[1];
    }
    for (size_t n = 0; n < cells; n++)
        for (int d = 0; d < 2 && c->weight[n] > 0.0; d++)
            field[(size_t)d * cells + n] /= c->weight[n];
}

static int take_frame(collector *c, const char *path, const selkie_scene *run)
{
    selkie_error error = {0};
    sk_particles_data *data = NULL;
    if (sk_particles_read(path, &data, &error))
        return complain_error(&error);
    sk_particles_turn_back(data);
    sk_particles_rebase(data, run->domain.origin);
    const size_t cells = cells_of(c->step);
    double *larger = data->velocity ? realloc(c->fields, 2 * cells * ((size_t)c->count + 1) * sizeof *larger) : NULL;
    int code = EXIT_GOOD;
    if (!data->velocity)
        code = complain("%s: has no velocities", path);
    else if (!larger)
        code = complain("out of memory");
    if (larger) {
        c->fields = larger;
        average(c, data, larger + 2 * cells * (size_t)c->count++);
    }
    sk_particles_data_free(data);
    return code;
}

/* The frames of a run whose domain has the size of the scene's. */
static int take_run(collector *c, const char *folder)
{
    char path[4096], frames[4096];
    selkie_error error = {0};
    selkie_scene *run = NULL;
    sk_file_list list = {0};
    snprintf(path, sizeof path, "%s/scene.json", folder);
    snprintf(frames, sizeof frames, "%s/" SK_FRAMES_FOLDER, folder);
    int code = EXIT_GOOD;
    if (selkie_scene_load(path, 0, NULL, &run, &error) || sk_folder_list_frames(frames, &list, &error))
        code = complain_error(&error);
    for (int d = 0; d < 2 && !code; d++)
        if (run->domain.dimension != 2 ||
            fabs(run->domain.size[d] - c->step->grid.cells[d] * c->step->grid.cell_size) > c->step->grid.cell_size)
            code = complain("%s: the run must be in 2D, in a domain of the scene's size", folder);
    const int before = c->count;
    for (size_t f = 0; f < list.count && !code; f++) {
        const int64_t number = list.files[f].number;
        if (number >= c->first && (c->last < 0 || number <= c->last) && (number - c->first) % c->every == 0)
            code = take_frame(c, list.files[f].path, run);
    }
    if (!code && c->count == before)
        code = complain("%s: no frames to take (output.ply or output.skp must be true)", frames);
    sk_file_list_free(&list);
    selkie_scene_free(run);
    return code;
}

static int add_snapshots(selkie_world *world, sk_reduced *reduced, const option_value *values)
{
    selkie_error error = {0};
    sk_snapshot_report report;
    collector c = {
        .step = &world->step, .last = -1, .every = values[basis_every].given ? values[basis_every].integer : 1};
    if (values[basis_frames].given && read_frame_range(values[basis_frames].text, &c.first, &c.last))
        return EXIT_BAD_INPUT;
    c.weight = malloc(cells_of(c.step) * sizeof *c.weight);
    int code = c.weight ? EXIT_GOOD : complain("out of memory");
    for (int n = 0; n < values[basis_snapshots].given && !code; n++)
        code = take_run(&c, values[basis_snapshots].list[n]);
    const sk_snapshots snapshots = {.count = c.count,
                                    .fields = c.fields,
                                    .most = values[basis_modes].given ? (int)values[basis_modes].integer : 16,
                                    .cut = world->step.scene->reduced.cut};
    if (!code && sk_reduced_add_snapshots(reduced, &world->step, &snapshots, &report, &error))
        code = complain_error(&error);
    if (!code && !values[basis_quiet].given)
        printf("%d modes from %d snapshots: the basis holds %.2f %% of their energy, %.2f %% without them\n",
               report.modes, c.count, 100.0 * report.kept, 100.0 * report.plain);
    free(c.fields);
    free(c.weight);
    return code;
}

/* --- The command --- */

/* Loads the file as a run does, and tells what it took. */
static int report_file(const selkie_world *world, const sk_reduced *made, const char *path)
{
    selkie_error error = {0};
    struct stat file = {0};
    char bytes[32];
    sk_reduced loaded = {.spectrum = {.memory = world->step.memory}};
    const sk_reduced_box box = sk_reduced_box_of(&world->step);
    const double begin = sk_wall_ms();
    const selkie_code code =
        sk_basis_read(path, &loaded, &box, sk_reduced_obstacles(&world->step), world->step.memory, &error);
    const double taken = sk_wall_ms() - begin;
    sk_reduced_spectrum_free(&loaded.spectrum);
    sk_release(world->step.memory, loaded.names);
    sk_release(world->step.memory, loaded.drawn);
    if (code)
        return complain_error(&error);
    stat(path, &file);
    printf("%s: %d eigenfunctions in closed form, %d further modes, %d named flows; %s, loads in %.1f ms\n", path,
           made->spectrum.closed, made->spectrum.extra.count, made->flow_count,
           format_bytes((double)file.st_size, bytes), taken);
    return EXIT_GOOD;
}

static int make_basis(selkie_scene *scene, const char *path, const option_value *values)
{
    selkie_error error = {0};
    selkie_world_options options;
    selkie_world *world;
    if (scene->discretization != SELKIE_DISCRETIZATION_REDUCED)
        return complain("discretization: must be \"reduced\" for a basis");
    scene->reduced.basis = "";
    selkie_world_options_defaults(&options);
    options.threads = (int)values[basis_threads].integer;
    if (selkie_world_create(scene, &options, &world, &error))
        return complain_error(&error);
    sk_reduced *reduced = sk_step_state(&world->step, &sk_method_reduced);
    int code = values[basis_snapshots].given ? add_snapshots(world, reduced, values) : EXIT_GOOD;
    if (!code && sk_basis_write(path, reduced, sk_reduced_obstacles(&world->step), &error))
        code = complain_error(&error);
    if (!code && !values[basis_quiet].given)
        code = report_file(world, reduced, path);
    selkie_world_destroy(world);
    return code;
}

static int run_basis(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    char *path = find_scene(arguments->operands[0]), *name = path ? scene_name(path) : NULL, out[4096];
    selkie_scene *scene = NULL;
    int code = path && name ? EXIT_GOOD : EXIT_BAD_INPUT;
    if (!code)
        code = load_scene(path, &(scene_changes){.set = &values[basis_set]}, &scene);
    if (!code) {
        snprintf(out, sizeof out, "%s%s", values[basis_out].given ? values[basis_out].text : name,
                 values[basis_out].given ? "" : ".basis");
        code = make_basis(scene, out, values);
    }
    selkie_scene_free(scene);
    free(path);
    free(name);
    return code;
}

const tool_command basis_command = {
    .name = "basis",
    .synopsis = "SCENE",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "make the modes of a reduced fluid, as a file",
    .description =
        "Makes the basis of a scene with discretization reduced once: eigenfunctions, drawn modes, eigenvectors beside "
        "obstacles, and modes from snapshots of earlier runs. The key reduced.basis names the file; a run loads it in "
        "milliseconds. It must have the scene's domain, sides and obstacles. Snapshots may come from any 2D run in a "
        "domain of that size.",
    .options = basis_options,
    .option_count = basis_option_count,
    .examples = "  selkie basis reduced/rooms -o rooms.basis\n"
                "  selkie basis reduced/shear --snapshots out/shear --modes 8 -o shear.basis\n"
                "  selkie run reduced/shear --set reduced.basis=$PWD/shear.basis\n",
    .run = run_basis,
};
