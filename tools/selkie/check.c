/* `selkie check`: reads a scene as `run` does and prints a summary. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defs/fields.h"
#include "defs/materials.h"
#include "defs/motion_file.h"
#include "render/environment.h"
#include "tool.h"
#include "warnings.h"
#include "world/world_internal.h"
#include "world/flow.h"

enum { check_set, check_end, check_frames, check_threads, check_backend, check_open_meshes, check_option_count };

static const option_spec check_options[] = {
    [check_set] = {.name = "set",
                   .kind = OPTION_LIST,
                   .value = "KEY=VALUE",
                   .help = "change a key, as of 'selkie run'"},
    [check_end] = {.name = "end",
                   .kind = OPTION_NUMBER,
                   .value = "SECONDS",
                   .least = 0,
                   .most = 1e9,
                   .help = "simulate until this time"},
    [check_frames] =
        {.name = "frames", .kind = OPTION_INTEGER, .value = "N", .least = 1, .most = 1e9, .help = "simulate N frames"},
    [check_threads] = {.name = "threads",
                       .letter = 'j',
                       .kind = OPTION_INTEGER,
                       .value = "N",
                       .least = 1,
                       .most = 1024,
                       .help = "threads to plan for"},
    [check_backend] = {.name = "backend",
                       .kind = OPTION_CHOICE,
                       .value = "NAME",
                       .choices = backend_names,
                       .help = "form of the numerics, as of 'selkie run'"},
    [check_open_meshes] = {.name = "allow-open-meshes",
                           .kind = OPTION_FLAG,
                           .help = "a mesh with holes is no error, as of 'selkie run'"},
};

typedef struct mesh_report {
    const selkie_scene *scene;
    int allow_open;
    int count;
    int code; /* of the first complaint */
    char complaint[1024];
} mesh_report;

static int report_mesh(const char *what, const selkie_shape *mesh, void *context)
{
    mesh_report *report = context;
    char warning[256];
    selkie_error error = {0};
    if (inspect_mesh(report->scene, what, mesh, warning, &error))
        return complain_error(&error);
    printf("%s%s (%s): %s\n", report->count++ ? "              " : "meshes        ", mesh->file, what,
           warning[0] ? "not closed" : "closed");
    if (warning[0] && !report->allow_open && !report->code) {
        report->code = EXIT_BAD_INPUT;
        snprintf(report->complaint, sizeof report->complaint, "%s", warning);
    }
    return EXIT_GOOD;
}

/* The word in scene files for the value of an enumeration at the top of a scene. */
static const char *choice_name(const selkie_scene *scene, const char *key)
{
    const sk_field *field = sk_struct_find(&sk_scene_struct, key);
    const char *name = field && field->choices ? sk_enum_name(field->choices, sk_field_int(field, scene)) : NULL;
    return name ? name : "?";
}

static void print_method(const selkie_scene *scene)
{
    printf("method        %s", choice_name(scene, "discretization"));
    if (scene->discretization == SELKIE_DISCRETIZATION_GRID)
        printf(", transfer %s", choice_name(scene, "transfer"));
    if (scene->discretization == SELKIE_DISCRETIZATION_GRID && scene->transfer == SELKIE_TRANSFER_FLIP)
        printf(" of ratio %g", scene->flip_ratio);
    if (scene->discretization == SELKIE_DISCRETIZATION_GRID)
        printf(", volume %s, incompressibility %s", choice_name(scene, "volume"),
               choice_name(scene, "incompressibility"));
    if (sk_scene_viscosity(scene) > 0)
        printf(", viscosity %g m2/s", sk_scene_viscosity(scene));
    if (scene->discretization == SELKIE_DISCRETIZATION_SPH) {
        printf("\nnumerics      particles %g m apart, pressure (%s) to a density error of %g, %s\n",
               selkie_scene_spacing(scene), scene->sph.solver == SELKIE_SPH_IISPH ? "iisph" : "accelerated",
               scene->sph.density_error,
               scene->sph.kernel == SELKIE_SPH_WENDLAND || (scene->sph.kernel == SELKIE_SPH_KERNEL_AUTO &&
                                                            scene->domain.dimension == 3 && !scene->object_count)
                   ? "Wendland's kernel"
                   : "cubic spline");
        return;
    }
    if (scene->discretization == SELKIE_DISCRETIZATION_REDUCED) {
        printf("\nnumerics      %d modes and %d drawn flows, %s\n", scene->reduced.modes, scene->reduced.drawn_count,
               scene->reduced.integrator == SELKIE_REDUCED_EXPONENTIAL ? "exponential" : "Runge-Kutta 4");
        return;
    }
    printf("\nnumerics      Runge-Kutta %d, pressure to %g (%s), %s surface\n", scene->advection.order,
           scene->pressure.tolerance, scene->pressure.norm == SELKIE_NORM_MAX ? "largest cell" : "relative",
           scene->pressure.surface == SELKIE_SURFACE_VOXEL ? "voxel" : "ghost fluid");
}

static void print_plan(const selkie_scene *scene, const selkie_plan *plan, size_t available)
{
    char count[32], liquid[32], memory[32], there[32], solid[32];

    /* Title, domain, particles and memory. */
    printf("scene         %s\n", scene->title && *scene->title ? scene->title : "untitled");
    if (scene->domain.dimension == 2)
        printf("domain        2D, %d x %d cells of %g m\n", plan->cells[0], plan->cells[1], plan->cell_size);
    else
        printf("domain        3D, %d x %d x %d cells of %g m\n", plan->cells[0], plan->cells[1], plan->cells[2],
               plan->cell_size);
    printf("particles     %s in %s liquid cells at the start", format_count(plan->particles, count),
           format_count(plan->liquid_cells, liquid));
    if (plan->body_particles)
        printf(", %s of bodies", format_count(plan->body_particles, solid));
    putchar('\n');
    printf("memory        about %s", format_bytes((double)plan->memory_bytes, memory));
    if (available)
        printf(", %s are free", format_bytes((double)available, there));

    /* Time, method, materials and parts. */
    printf("\ntime          %g s in %lld frames, ", scene->time.end, (long long)plan->frames);
    if (scene->time.step > 0)
        printf("fixed step %g s\n", scene->time.step);
    else
        printf("CFL number %g, first step %.3g s\n", selkie_scene_cfl(scene), plan->first_step);
    print_method(scene);
    for (int m = 0; m < scene->material_count; m++)
        printf("%s%s, %s, %g kg/m3\n", m ? "              " : "materials     ", scene->materials[m].name,
               sk_enum_name(sk_struct_find(&sk_material_struct, "kind")->choices, (int)scene->materials[m].kind),
               scene->materials[m].density);
    printf(
        "parts         liquids %d, obstacles %d, sources %d, drains %d, bodies %d, forces %d, objects %d, probes %d\n",
        scene->liquid_count, scene->obstacle_count, scene->source_count, scene->drain_count, scene->body_count,
        scene->force_count, scene->object_count, scene->probe_count);
}

/* Reads the files of motions, flows and surroundings, as a run and `render` do. The scene then has their keyframes. */
static int read_tables(selkie_scene *scene)
{
    static const double origin[3] = {0, 0, 0};
    selkie_error error = {0};
    selkie_code code = sk_scene_load_motions(scene, &error);
    for (int l = 0; l < scene->liquid_count && !code; l++) {
        char what[32];
        sk_flow flow;
        snprintf(what, sizeof what, "liquids[%d]", l);
        code = sk_flow_open(&flow, &scene->liquids[l], scene->domain.dimension, origin, scene->folder, what, &error);
        if (!code)
            sk_flow_close(&flow);
    }
    if (!code && scene->domain.dimension == 3 && scene->render.environment && scene->render.environment[0]) {
        sk_environment environment;
        code =
            sk_environment_read(scene->render.environment, scene->folder, "render.environment", &environment, &error);
        if (!code)
            sk_environment_free(&environment);
    }
    return code ? complain_error(&error) : EXIT_GOOD;
}

static int run_check(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    char *path = find_scene(arguments->operands[0]);
    if (!path)
        return EXIT_BAD_INPUT;

    /* Load the scene and plan its run. */
    selkie_scene *scene = NULL;
    selkie_plan plan = {0};
    size_t available = 0;
    const scene_changes changes = {&values[check_set], &values[check_end], &values[check_frames],
                                   &values[check_backend]};
    int code = load_scene(path, &changes, &scene);
    if (!code)
        code = read_tables(scene);
    if (!code)
        code = plan_scene(scene, (int)values[check_threads].integer, &plan, &available);

    selkie_error error;
    if (!code && scene->backend == SELKIE_BACKEND_CUDA && sk_methods_check_gpu(scene, &error) != SELKIE_OK)
        code = complain_error(&error);

    /* Print the plan, the meshes and the notes; then the warnings. */
    if (!code) {
        print_plan(scene, &plan, available);
        mesh_report report = {.scene = scene, .allow_open = values[check_open_meshes].given};
        code = visit_meshes(scene, report_mesh, &report);
        char note[256];
        for (int n = 0; !code && sk_scene_note(scene, n, note, sizeof note); n++)
            printf("%s%s\n", n ? "              " : "notes         ", note);
        if (!code && report.code)
            code =
                complain("%s; close it, or use --allow-open-meshes to accept an approximate inside", report.complaint);
        if (!code) {
            warning_list warnings = {0};
            judge_scene(scene, &plan, &warnings);
            print_warnings(&warnings);
            printf(warnings.count ? "can run, with %d warning%s\n" : "good\n", warnings.count,
                   warnings.count == 1 ? "" : "s");
        }
    }

    if (scene)
        selkie_scene_free(scene);
    free(path);
    return code;
}

const tool_command check_command = {
    .name = "check",
    .synopsis = "SCENE",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "validate a scene and print a summary",
    .description = "Reads SCENE as 'selkie run' would and prints what it would run: cells, particles, expected memory, "
                   "time step, frames, method, and whether meshes are closed. Nothing is simulated or written. The "
                   "first error is printed in one line, with exit code 2. Warnings name obstacles that are too thin "
                   "for the cells, sources inside solids and steps that are far too long, and leave the exit code 0.",
    .options = check_options,
    .option_count = check_option_count,
    .examples = "  selkie check dam_break_3d --set domain.resolution=256\n",
    .run = run_check,
};
