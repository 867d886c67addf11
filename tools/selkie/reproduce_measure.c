/* Measurements of reports in the folders of runs, and their pictures and plots. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "geom/shape.h"
#include "io/folder.h"
#include "io/particles_file.h"
#include "render/plot.h"
#include "render/render_run.h"
#include "reproduce.h"
#include "tool.h"

/* --- Tables --- */

const double *stats_column(const run_results *results, const char *name)
{
    return results->stats ? sk_table_column(results->stats, name) : NULL;
}

/* Mean of a table's column over the last seconds. */
static double late_mean(const sk_table *table, const char *name, double seconds)
{
    const double *values = table ? sk_table_column(table, name) : NULL;
    const double *time = table ? sk_table_column(table, "time") : NULL;
    if (!values || !time || !table->row_count)
        return NAN;
    double end = time[table->row_count - 1], sum = 0;
    int64_t count = 0;
    for (int64_t i = table->row_count - 1; i >= 0 && (count == 0 || time[i] >= end - seconds); i--, count++)
        sum += values[i];
    return sum / (double)count;
}

double stats_late_mean(const run_results *results, const char *column, double seconds)
{
    return late_mean(results->stats, column, seconds);
}

double stats_largest(const run_results *results, const char *column)
{
    const double *values = stats_column(results, column);
    double largest = NAN;
    for (int64_t i = 0; values && i < results->stats->row_count; i++)
        largest = fmax(largest, values[i]); /* fmax passes a NaN over */
    return largest;
}

double stats_first_time(const run_results *results, const char *column, double least, double from)
{
    const double *values = stats_column(results, column), *time = stats_column(results, "time");
    for (int64_t i = 0; values && time && i < results->stats->row_count; i++)
        if (time[i] >= from && values[i] >= least)
            return time[i];
    return NAN;
}

static int per_cell(const selkie_scene *scene)
{
    return selkie_scene_particles_per_cell(scene);
}

/* m  The probe "level" over the last seconds or, without it, the mean of those called level_...; NaN without any. */
static double late_level(const sk_table *probes, double seconds)
{
    if (sk_table_column(probes, "level"))
        return late_mean(probes, "level", seconds);
    double sum = 0;
    int count = 0;
    for (int i = 0; i < probes->column_count; i++)
        if (!strncmp(probes->names[i], "level_", 6)) {
            sum += late_mean(probes, probes->names[i], seconds);
            count++;
        }
    return count ? sum / count : NAN;
}

double level_ratio(const run_results *results, double seconds, double solid)
{
    const selkie_scene *scene = results->scene;
    if (!scene || !results->probes)
        return NAN;
    double up[3];
    int cells[3], dimension = scene->domain.dimension;
    double h = selkie_scene_cells(scene, cells), floor_area = 1;
    selkie_scene_up(scene, up);
    for (int d = 0; d < dimension; d++)
        if (fabs(up[d]) < 0.5)
            floor_area *= cells[d] * h;
    double liquid = stats_late_mean(results, "particles", 0) * pow(h, dimension) / per_cell(scene);
    return late_level(results->probes, seconds) * floor_area / (liquid + solid);
}

double mean_step_ms(const run_results *results, int (*accept)(const char *phase))
{
    if (!results->stats || results->stats->row_count < 2)
        return NAN;
    double sum = 0;
    for (int c = 0; c < results->stats->column_count; c++) {
        const char *name = results->stats->names[c];
        if (accept ? !(has_ending(name, "_ms") && strcmp(name, "step_ms") && accept(name))
                   : strcmp(name, "step_ms") != 0)
            continue;
        for (int64_t i = 1; i < results->stats->row_count; i++)
            sum += results->stats->columns[c][i];
    }
    return sum / (double)(results->stats->row_count - 1);
}

/* --- Frames --- */

/* The number of the frame nearest to a time; -1 if there is none. */
static int64_t frame_near(const run_results *results, double time, char *path, size_t size)
{
    sk_file_list list = {0};
    char *folder = NULL;
    int64_t best = -1;
    if (!results->scene || asprintf(&folder, "%s/" SK_FRAMES_FOLDER, results->folder) < 0)
        return -1;
    if (sk_folder_list_frames(folder, &list, NULL) == SELKIE_OK && list.count) {
        size_t nearest = list.count - 1;
        double wanted = time < 0 ? INFINITY : time * results->scene->time.fps;
        for (size_t i = 0; i < list.count; i++)
            if (fabs((double)list.files[i].number - wanted) < fabs((double)list.files[nearest].number - wanted))
                nearest = i;
        best = list.files[nearest].number;
        snprintf(path, size, "%s", list.files[nearest].path);
    }
    sk_file_list_free(&list);
    free(folder);
    return best;
}

sk_particles_data *read_frame(const run_results *results, double time)
{
    char path[4096];
    sk_particles_data *data = NULL;
    if (frame_near(results, time, path, sizeof path) < 0 || sk_particles_read(path, &data, NULL) != SELKIE_OK)
        return NULL;
    sk_particles_turn_back(data);
    return data;
}

/* Adds a particle's share to the centres around it (Eq. 12 of Kugelstadt et al. 2019), in units of a full cell. */
static void splat(float *density, unsigned char *held, const int cells[3], int dimension, const double place[3],
                  float share)
{
    int base[3] = {0, 0, 0};
    double weight[3] = {0, 0, 0};
    size_t own = 0, stride = 1;

    /* The particle's cell, and the weights of the centres around the particle. */
    for (int d = 0; d < dimension; d++) {
        int cell = (int)fmin(fmax(place[d], 0), cells[d] - 1);
        own += (size_t)cell * stride;
        stride *= (size_t)cells[d];
        base[d] = (int)floor(place[d] - 0.5);
        weight[d] = place[d] - 0.5 - base[d];
    }
    held[own] = 1;

    /* Add the share to each centre inside the grid. */
    for (int corner = 0; corner < 1 << dimension; corner++) {
        size_t at = 0;
        int inside = 1;
        double w = share;
        stride = 1;
        for (int d = 0; d < dimension; d++) {
            int upper = corner >> d & 1, i = base[d] + upper;
            inside &= i >= 0 && i < cells[d];
            w *= upper ? weight[d] : 1 - weight[d];
            at += (size_t)(i < 0 ? 0 : i) * stride;
            stride *= (size_t)cells[d];
        }
        if (inside)
            density[at] += (float)w;
    }
}

/* Whether a cell has particles in all cells up to `reach` away, so that neither air nor a wall is near. */
static int is_bulk(const unsigned char *held, const int cells[3], int dimension, const int cell[3], int reach)
{
    int low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
    for (int d = 0; d < dimension; d++) {
        low[d] = cell[d] - reach;
        high[d] = cell[d] + reach;
        if (low[d] < 0 || high[d] >= cells[d])
            return 0;
    }
    for (int k = low[2]; k <= high[2]; k++)
        for (int j = low[1]; j <= high[1]; j++)
            for (int i = low[0]; i <= high[0]; i++)
                if (!held[(size_t)i + (size_t)cells[0] * ((size_t)j + (size_t)cells[1] * (size_t)k)])
                    return 0;
    return 1;
}

double density_spread(const run_results *results)
{
    sk_particles_data *data = read_frame(results, -1);
    if (!data)
        return NAN;
    int cells[3], dimension = results->scene->domain.dimension;
    double h = selkie_scene_cells(results->scene, cells);
    size_t all = (size_t)cells[0] * (size_t)cells[1] * (size_t)cells[2];
    float *density = calloc(all, sizeof *density);
    unsigned char *held = calloc(all, 1);
    double sum = 0, squares = 0, count = 0;

    /* Density of all cells, then its mean and variance in the interior ones. */
    if (density && held) {
        for (int64_t p = 0; p < data->count; p++) {
            double place[3] = {0, 0, 0};
            for (int d = 0; d < dimension; d++)
                place[d] = (data->position[3 * p + d] - results->scene->domain.origin[d]) / h;
            splat(density, held, cells, dimension, place, 1.0f / (float)per_cell(results->scene));
        }
        for (int k = 0; k < cells[2]; k++)
            for (int j = 0; j < cells[1]; j++)
                for (int i = 0; i < cells[0]; i++) {
                    const int cell[3] = {i, j, k};
                    if (!is_bulk(held, cells, dimension, cell, 2))
                        continue;
                    double value = density[(size_t)i + (size_t)cells[0] * ((size_t)j + (size_t)cells[1] * (size_t)k)];
                    sum += value;
                    squares += value * value;
                    count++;
                }
    }

    free(density);
    free(held);
    sk_particles_data_free(data);
    return count > 0 ? sqrt(fmax(squares / count - sum / count * (sum / count), 0)) : NAN;
}

long particles_in_solids(const run_results *results, double time, double depth)
{
    sk_particles_data *data = read_frame(results, time);
    if (!data)
        return -1;
    const selkie_scene *scene = results->scene;
    double up[3];
    selkie_scene_up(scene, up);
    const sk_shape_options options = {
        .dimension = scene->domain.dimension, .up = up, .folder = scene->folder, .what = "obstacle"};
    long inside = 0;
    for (int o = 0; o < scene->obstacle_count; o++) {
        sk_shape *shape = NULL;
        if (sk_shape_create(&scene->obstacles[o].shape, &options, &shape, NULL) != SELKIE_OK)
            continue;
        sk_pose pose;
        sk_pose_at(&scene->obstacles[o], isnan(data->time) ? time : data->time, &pose);
        for (int64_t p = 0; p < data->count; p++) {
            double x[3] = {data->position[3 * p], data->position[3 * p + 1], data->position[3 * p + 2]};
            inside += sk_obstacle_distance(shape, &pose, x, NULL) < -depth;
        }
        sk_shape_destroy(shape);
    }
    sk_particles_data_free(data);
    return inside;
}

/* --- Splashes --- */

double wall_for_a_second(const run_results *results, int (*accept)(const char *phase))
{
    const double *time = stats_column(results, "time");
    if (!time || results->stats->row_count < 1 || !(time[results->stats->row_count - 1] > 0))
        return NAN;
    double rows = (double)results->stats->row_count, first = time[0], last = time[results->stats->row_count - 1];
    /* Leaves out the first step, which allocates memory, and its simulated time. */
    return mean_step_ms(results, accept) * 1e-3 * (rows - 1) / (last - first);
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Squared distance from the nearest of the box's axes; from the scene's axis x = z = 0 without one. */
static double sideways2(const splash_box *box, const float x[3])
{
    double nearest = INFINITY;
    for (int a = 0; a < box->axis_count; a++) {
        double dx = x[0] - box->axes[a][0], dz = x[2] - box->axes[a][1];
        nearest = fmin(nearest, dx * dx + dz * dz);
    }
    return box->axis_count ? nearest : (double)x[0] * x[0] + (double)x[2] * x[2];
}

/* One frame's particles in the box; `held` has a byte for each cell of the domain and comes back cleared. */
static void splash_of_frame(const sk_particles_data *data, const selkie_scene *scene, const splash_box *box,
                            unsigned char *held, float *heights, splash *sums)
{
    int cells[3];
    double h = selkie_scene_cells(scene, cells), mean[3] = {0, 0, 0}, squares = 0, sideways = 0;
    size_t all = (size_t)cells[0] * (size_t)cells[1] * (size_t)cells[2], count = 0, occupied = 0;

    /* Particles in the box. */
    for (int64_t p = 0; p < data->count; p++) {
        const float *x = data->position + 3 * p;
        size_t cell = 0, stride = 1;
        int inside = 1;
        for (int d = 0; d < 3; d++) {
            inside &= x[d] >= box->low[d] && x[d] <= box->high[d];
            double at = floor((x[d] - scene->domain.origin[d]) / h);
            cell += (size_t)fmin(fmax(at, 0), cells[d] - 1) * stride;
            stride *= (size_t)cells[d];
        }
        if (!inside)
            continue;
        occupied += !held[cell];
        held[cell] = 1;
        heights[count++] = (float)(x[1] - box->low[1]);
        squares += (double)x[1] * x[1];
        sideways += sideways2(box, x);
        for (int d = 0; d < 3; d++)
            mean[d] += x[d];
    }
    memset(held, 0, all);
    if (!count)
        return;

    /* Moments of their positions. */
    qsort(heights, count, sizeof *heights, compare_floats);
    double n = (double)count;
    for (int d = 0; d < 3; d++)
        mean[d] /= n;
    sums->particles += n;
    sums->share += n / (double)data->count;
    sums->height += mean[1] - box->low[1];
    sums->deviation += sqrt(fmax(squares / n - mean[1] * mean[1], 0));
    sums->high_tenth += heights[count - 1 - count / 10];
    sums->sideways += sqrt(fmax(sideways / n - (box->axis_count ? 0 : mean[0] * mean[0] + mean[2] * mean[2]), 0));
    sums->expansion += (double)occupied * per_cell(scene) / n;
}

splash measure_splash(const run_results *results, const splash_box *box)
{
    splash sums = {0};
    const splash none = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    int cells[3], frames = 0;
    if (!results->scene || results->scene->domain.dimension != 3)
        return none;

    /* Frames of the run. */
    selkie_scene_cells(results->scene, cells);
    unsigned char *held = calloc((size_t)cells[0] * (size_t)cells[1] * (size_t)cells[2], 1);
    char *folder = NULL;
    sk_file_list list = {0};
    if (held && asprintf(&folder, "%s/" SK_FRAMES_FOLDER, results->folder) >= 0)
        (void)sk_folder_list_frames(folder, &list, NULL);
    for (size_t i = 0; i < list.count; i++) {
        double time = (double)list.files[i].number / results->scene->time.fps;
        sk_particles_data *data = NULL;
        if (time < box->from - 1e-6 || time > box->to + 1e-6 ||
            sk_particles_read(list.files[i].path, &data, NULL) != SELKIE_OK)
            continue;
        sk_particles_turn_back(data);
        float *heights = calloc((size_t)data->count + 1, sizeof *heights);
        if (heights)
            splash_of_frame(data, results->scene, box, held, heights, &sums);
        free(heights);
        frames++;
        sk_particles_data_free(data);
    }

    sk_file_list_free(&list);
    free(folder);
    free(held);
    if (!frames)
        return none;
    return (splash){.particles = sums.particles / frames,
                    .share = sums.share / frames,
                    .height = sums.height / frames,
                    .deviation = sums.deviation / frames,
                    .high_tenth = sums.high_tenth / frames,
                    .sideways = sums.sideways / frames,
                    .expansion = sums.expansion / frames};
}

/* --- Pictures and plots --- */

void report_frame(reproduce_report *report, const run_results *results, double time, const char *caption)
{
    char path[4096];
    int64_t frame = frame_near(results, time, path, sizeof path);
    if (frame < 0)
        return;
    sk_render_run_options options;
    sk_render_run_defaults(&options);
    options.first = options.last = frame;
    options.film = 0;
    options.width = 720;
    if (results->scene->render.height > 0) /* the scene's proportions */
        options.height = (int)fmax(16, 720.0 * results->scene->render.height / results->scene->render.width);
    options.threads = report->threads;
    options.label = 1;
    selkie_error error = {0};
    char *picture = NULL;
    if (sk_render_run(results->folder, &options, NULL, NULL, &error)) {
        complain_error(&error);
        report->failed = 1;
    } else if (asprintf(&picture, "%s/" SK_PICTURES_FOLDER "/" SK_PICTURE_PREFIX "%04lld.png", results->relative,
                        (long long)frame) >= 0) {
        report_image(report, picture, caption);
        free(picture);
    }
}

void report_plot(reproduce_report *report, run_results *const *results, const report_curves *curves)
{
    sk_plot_series series[REPRODUCE_MAX_RUNS] = {0};
    sk_plot_panel panels[REPRODUCE_MAX_RUNS] = {0};
    int groups = 0;

    /* A panel for each group of runs. */
    for (int first = 0; first < curves->run_count; first += curves->group_size) {
        sk_plot_panel *panel = &panels[groups];
        *panel = (sk_plot_panel){.title = curves->group_titles ? curves->group_titles[groups] : NULL,
                                 .x_label = "time (s)",
                                 .y_label = {curves->y_label},
                                 .series = &series[first]};
        for (int i = first; i < first + curves->group_size && i < curves->run_count; i++) {
            const double *values = stats_column(results[i], curves->column), *time = stats_column(results[i], "time");
            if (!values || !time)
                continue;
            series[first + panel->series_count] = (sk_plot_series){.label = results[i]->run->label,
                                                                   .x = time,
                                                                   .y = values,
                                                                   .count = (size_t)results[i]->stats->row_count,
                                                                   .color = i - first};
            panel->series_count++;
        }
        groups += panel->series_count > 0;
    }

    /* The picture, and its line in the report. */
    char *path = NULL, *relative = NULL;
    selkie_error error = {0};
    sk_plot_figure figure = {.title = curves->title, .panels = panels, .panel_count = groups};
    if (!groups)
        return;
    if (asprintf(&relative, "plots/%s.png", curves->name) < 0 ||
        asprintf(&path, "%s/%s", report->folder, relative) < 0) {
        report->failed = 1;
    } else if (sk_plot_write(&figure, path, &error)) {
        complain_error(&error);
        report->failed = 1;
    } else {
        report_image(report, relative, curves->title);
    }
    free(path);
    free(relative);
}
