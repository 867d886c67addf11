#define _GNU_SOURCE
#include "warnings.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "geom/frame.h"
#include "geom/shape.h"
#include "io/atomic_file.h"
#include "tool.h"

/* --- Lists --- */

void add_warning(warning_list *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (list->count < most_warnings)
        vsnprintf(list->lines[list->count], warning_length, format, arguments);
    va_end(arguments);
    list->count++;
}

static int kept(const warning_list *list)
{
    return list->count < most_warnings ? list->count : most_warnings;
}

void print_warnings(const warning_list *list)
{
    fflush(stdout);
    for (int i = 0; i < kept(list); i++)
        fprintf(stderr, "selkie: warning: %s\n", list->lines[i]);
    if (list->count > most_warnings)
        fprintf(stderr, "selkie: warning: %d more of these\n", list->count - most_warnings);
}

int record_warnings(const run_folder *folder, const warning_list *list)
{
    char *path = run_folder_path(folder, "warnings.txt"), *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    int code = path && stream ? EXIT_GOOD : complain("out of memory");
    for (int i = 0; stream && i < kept(list); i++)
        fprintf(stream, "%s\n", list->lines[i]);
    if (stream)
        fclose(stream);
    selkie_error error = {0};
    if (!code && !list->count && unlink(path) && errno != ENOENT)
        code = complain("%s: cannot be removed: %s", path, strerror(errno));
    if (!code && list->count && sk_file_write(path, text, length, &error))
        code = complain_error(&error);
    free(path);
    free(text);
    return code;
}

int print_recorded_warnings(const run_folder *folder)
{
    char *path = run_folder_path(folder, "warnings.txt"), *text = NULL;
    size_t length = 0;
    selkie_error error = {0};
    int code = path ? EXIT_GOOD : complain("out of memory");
    if (path && sk_file_exists(path) && sk_file_read(path, &text, &length, &error))
        code = complain_error(&error);
    char *rest = text;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line)
            printf("warning       %s\n", line);
    sk_release(NULL, text);
    free(path);
    return code;
}

/* --- A run --- */

/* Whether something in the scene may put energy into the liquid. */
static int has_drive(const selkie_scene *scene)
{
    int moves = scene->change_count || scene->gravity_key_count || sk_frame_moves(&scene->frame) ||
                (scene->frame.motion_file && *scene->frame.motion_file);
    for (int d = 0; d < scene->domain.dimension; d++) /* liquid falls round and round */
        moves |= scene->domain.periodic >> d & 1 && scene->gravity[d] != 0.0;
    for (int i = 0; i < scene->obstacle_count; i++)
        moves |= (scene->obstacles[i].motion_file && *scene->obstacles[i].motion_file) ||
                 sk_obstacle_moves(&scene->obstacles[i]);
    for (int i = 0; i < scene->liquid_count; i++) /* what is pushed out of obstacles raises the level */
        moves |= scene->liquids[i].fill_obstacles && scene->obstacle_count;
    int tension = scene->discretization == SELKIE_DISCRETIZATION_SPH &&
                  scene->sph.surface_tension != SELKIE_TENSION_NONE && scene->sph.tension > 0;
    tension |= scene->surface_tension > 0;
    for (int i = 0; i < scene->material_count; i++) {
        tension |= scene->materials[i].surface_tension > 0;
        moves |= scene->materials[i].thermal_expansion != 0.0; /* warm liquid rises */
    }
    moves |= scene->body_count && scene->discretization != SELKIE_DISCRETIZATION_GRID;
    return moves || tension || scene->source_count || scene->force_count || scene->object_count ||
           scene->reduced.excite_count || scene->pressure.start > 0;
}

/* Mechanical energy above its least value so far, where nothing puts energy in: liquid only loses it. Bodies bounce and
 * soft ones keep energy in their shape: with them the energy of the start is the limit. The part allowed is above the
 * swings when a dam break meets an obstacle (1.8 %). Steps after liquid has left through a drain or an open side are
 * not compared: it takes its energy along. */
static void judge_energy(const selkie_scene *scene, const sk_table *stats, warning_list *list)
{
    const double allowed = 0.03; /* of the energy at the start, against the domain's origin */
    const double *time = sk_table_column(stats, "time"), *kinetic = sk_table_column(stats, "kinetic_energy");
    const double *potential = sk_table_column(stats, "potential_energy"), *drained = sk_table_column(stats, "drained");
    /* Columns that some scenes have. */
    const double *more[] = {sk_table_column(stats, "elastic_energy"), sk_table_column(stats, "body_kinetic_energy"),
                            sk_table_column(stats, "body_potential_energy")};
    if (has_drive(scene) || !time || !kinetic || !potential || !drained || stats->row_count < 2)
        return;
    double scale = kinetic[0] + fabs(potential[0]), least = INFINITY, growth = 0, when = 0;
    for (int m = 1; m < 3; m++)
        scale += more[m] ? fabs(more[m][0]) : 0.0;
    for (int64_t i = 0; i < stats->row_count && drained[i] == 0; i++) {
        double energy = kinetic[i] + potential[i];
        for (int m = 0; m < 3; m++)
            energy += more[m] ? more[m][i] : 0.0;
        least = i && scene->body_count ? least : fmin(least, energy);
        if (energy - least > growth) {
            growth = energy - least;
            when = time[i];
        }
    }
    if (growth > allowed * scale)
        add_warning(
            list,
            "energy grew by %.3g J until %.3g s, %.3g %% of the start's, though nothing in the scene puts energy "
            "in: the motion is wrong; use shorter steps (time.cfl, time.step)",
            growth, when, 100 * growth / scale);
}

static void judge_volume(const selkie_scene *scene, const sk_table *stats, warning_list *list)
{
    const double allowed = 0.05;
    const double *volume = sk_table_column(stats, "volume_ratio");
    if (!volume || !stats->row_count || scene->discretization >= SELKIE_DISCRETIZATION_MPM)
        return;
    double end = volume[stats->row_count - 1];
    if (fabs(end - 1) <= allowed) /* not a NaN */
        return;
    int grid = scene->discretization == SELKIE_DISCRETIZATION_GRID;
    int plain = grid && selkie_scene_volume(scene) == SELKIE_VOLUME_NONE &&
                scene->incompressibility == SELKIE_INCOMPRESSIBILITY_BILATERAL;
    add_warning(list, "the volume of the liquid ended at %.3f of the start, more than 5 %% off; use %s", end,
                plain ? "\"volume\": \"idp\", which keeps it, or shorter steps (time.cfl, time.step)"
                      : "shorter steps (time.cfl, time.step)");
}

void judge_run(const selkie_scene *scene, const sk_table *stats, warning_list *list)
{
    judge_volume(scene, stats, list);
    judge_energy(scene, stats, list);
}
