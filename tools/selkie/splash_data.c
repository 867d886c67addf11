/* `selkie splash data`: random scenes, their runs, and the samples of all of them in one file. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/timer.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "learn/tensors.h"
#include "progress.h"
#include "splash.h"
#include "splash_samples.h"

/* --- Random scenes --- */

/* Uniform between two values, by run and counter. */
static double between(const splash_data_options *options, int run, int *counter, double low, double high)
{
    return low + (high - low) * sk_random_float(options->seed, (uint64_t)run, (uint64_t)(*counter)++);
}

/* A box over the whole domain, to be cut. */
static selkie_liquid_def *add_box(const selkie_scene *scene, selkie_liquid_def *liquids, int *count)
{
    selkie_liquid_def *box = &liquids[(*count)++];
    selkie_liquid_defaults(box);
    selkie_shape_defaults(&box->shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < 3; d++) {
        box->shape.min[d] = scene->domain.origin[d];
        box->shape.max[d] = scene->domain.origin[d] + scene->domain.size[d];
    }
    return box;
}

/* A column beside a wall, of a width and a height over those of the domain. */
static void add_column(const selkie_scene *scene, selkie_liquid_def *liquids, int *count, int right, double width,
                       double height)
{
    selkie_shape *shape = &add_box(scene, liquids, count)->shape;
    const double *size = scene->domain.size, *origin = scene->domain.origin;
    shape->max[1] = origin[1] + height * size[1];
    if (right)
        shape->min[0] = origin[0] + (1.0 - width) * size[0];
    else
        shape->max[0] = origin[0] + width * size[0];
}

/* One to four drops that fly above the water of the template, and in three of ten runs a column beside a wall. Sizes
 * and speeds follow the tank: the fastest drop has the speed of a fall from three times its height. */
static int add_drops(const splash_data_options *options, int run, const selkie_scene *scene, selkie_liquid_def *liquids)
{
    const double *size = scene->domain.size, *origin = scene->domain.origin;
    const double fall = sqrt(2.0 * 9.81 * size[1]);
    int counter = 0, count = 0;
    const int drops = 1 + (int)between(options, run, &counter, 0.0, 3.999);
    for (int n = 0; n < drops; n++) {
        selkie_liquid_def *drop = &liquids[count++];
        selkie_liquid_defaults(drop);
        selkie_shape_defaults(&drop->shape, SELKIE_SHAPE_SPHERE);
        drop->shape.radius = between(options, run, &counter, 0.03, 0.13) * size[1];
        for (int d = 0; d < options->dimension; d++) {
            const double low = d == 1 ? 0.35 * size[1] : 1.1 * drop->shape.radius;
            drop->shape.center[d] =
                origin[d] + between(options, run, &counter, low, size[d] - 1.1 * drop->shape.radius);
            drop->velocity[d] = d == 1 ? -between(options, run, &counter, 0.0, 0.9) * fall
                                       : between(options, run, &counter, -0.5, 0.5) * fall;
        }
    }
    if (between(options, run, &counter, 0.0, 1.0) < 0.3) {
        const int right = between(options, run, &counter, 0.0, 1.0) < 0.5;
        const double width = between(options, run, &counter, 0.1, 0.25);
        add_column(scene, liquids, &count, right, width, between(options, run, &counter, 0.35, 0.7));
    }
    return count;
}

/* One or two columns that break. */
static int add_dams(const splash_data_options *options, int run, const selkie_scene *scene, selkie_liquid_def *liquids)
{
    int counter = 0, count = 0;
    const int both = between(options, run, &counter, 0.0, 1.0) < 0.3;
    const int right = between(options, run, &counter, 0.0, 1.0) < 0.5;
    for (int n = 0; n < 1 + both; n++) {
        const double width = between(options, run, &counter, 0.12, 0.3);
        add_column(scene, liquids, &count, n ? !right : right, width, between(options, run, &counter, 0.35, 0.8));
    }
    return count;
}

/* Sections of a string have velocities that are linear between random ones at their ends, of the speed at which its
 * free ends draw back (Taylor 1959, Culick 1960) in the root mean square. */
int splash_add_string(const splash_string *string, const selkie_scene *scene, selkie_liquid_def *liquids)
{
    const double thickness = 0.04 * scene->domain.size[1], *size = scene->domain.size, *origin = scene->domain.origin;
    const double culick = sqrt(2.0 * string->surface_tension / (1000.0 * thickness)), most = sqrt(3.0) * culick;
    const int wanted = (int)lround(string->length / (10.0 * thickness)), sections = wanted < 1 ? 1
                                                                                    : wanted > SPLASH_MOST_LIQUIDS
                                                                                        ? SPLASH_MOST_LIQUIDS
                                                                                        : wanted;
    const double start = origin[0] + 0.5 * (size[0] - string->length), step = string->length / sections;
    double from = 0.0, to = 0.0;
    int count = 0;
    for (int n = 0; n <= sections; n++) {
        from = to;
        to = most * (2.0 * sk_random_float(string->seed, (uint64_t)string->run, 100u + (uint64_t)n) - 1.0);
        if (n == 0)
            continue;
        selkie_liquid_def *section = add_box(scene, liquids, &count);
        section->shape.min[0] = start + (n - 1) * step;
        section->shape.max[0] = start + n * step;
        section->shape.min[1] = origin[1] + 0.5 * (size[1] - thickness);
        section->shape.max[1] = section->shape.min[1] + thickness;
        section->velocity[0] = 0.5 * (from + to);
        section->center[0] = start + (n - 0.5) * step;
        section->velocity_gradient[0] = (to - from) / step;
    }
    return count;
}

/* A string of a random length. */
static int add_string(const splash_data_options *options, int run, const selkie_scene *scene,
                      selkie_liquid_def *liquids)
{
    int counter = 0;
    const double length = between(options, run, &counter, 0.08, 0.92) * scene->domain.size[0];
    const splash_string string = {options->seed, run, length, scene->surface_tension};
    return splash_add_string(&string, scene, liquids);
}

static int add_liquids(const splash_data_options *options, int run, const selkie_scene *scene,
                       selkie_liquid_def *liquids)
{
    return options->setup == SPLASH_STRINGS ? add_string(options, run, scene, liquids)
           : options->setup == SPLASH_DAMS  ? add_dams(options, run, scene, liquids)
                                            : add_drops(options, run, scene, liquids);
}

/* Makes all lengths of a template `factor` times as long; times and speeds follow gravity. */
static int scale_template(selkie_scene *scene, selkie_liquid_def *liquids, double factor)
{
    if (factor != 1.0 && (scene->obstacle_count || scene->source_count))
        return complain("splash data: a template with obstacles or sources can only be used with --scales 1");
    selkie_domain_def *domain = &scene->domain;
    domain->cell_size *= factor;
    scene->time.end *= sqrt(factor);
    for (int d = 0; d < 3; d++) {
        domain->size[d] *= factor;
        domain->origin[d] *= factor;
    }
    for (int l = 0; l < scene->liquid_count; l++) {
        selkie_shape *shape = &liquids[l].shape;
        if (factor != 1.0 && shape->kind != SELKIE_SHAPE_BOX && shape->kind != SELKIE_SHAPE_SPHERE)
            return complain("splash data: --scales: liquids of the template must be boxes or spheres");
        shape->radius *= factor;
        for (int d = 0; d < 3; d++) {
            shape->min[d] *= factor;
            shape->max[d] *= factor;
            shape->center[d] *= factor;
            liquids[l].velocity[d] *= sqrt(factor);
        }
    }
    return EXIT_GOOD;
}

/* --- Runs --- */

static int write_tensors(const sk_tensors *tensors, const char *path)
{
    selkie_error error = {0};
    char *bytes;
    size_t size;
    if (sk_tensors_encode(tensors, &bytes, &size, &error))
        return complain_error(&error);
    const selkie_code code = sk_file_write(path, bytes, size, &error);
    sk_release(NULL, bytes);
    return code ? complain_error(&error) : EXIT_GOOD;
}

static void add_description(sk_tensors *tensors, int dimension, double duration, const double cells[2], double tension,
                            double gravity)
{
    sk_tensors_add_text(tensors, "data", "selkie splash samples 1");
    sk_tensors_add_text(tensors, "dimension", "%d", dimension);
    sk_tensors_add_text(tensors, "duration_s", "%.9g", duration);
    sk_tensors_add_text(tensors, "cell_low_m", "%.9g", cells[0]);
    sk_tensors_add_text(tensors, "cell_high_m", "%.9g", cells[1]);
    sk_tensors_add_text(tensors, "surface_tension_N_per_m", "%.9g", tension);
    sk_tensors_add_text(tensors, "gravity_m_per_s2", "%.9g", gravity);
}

/* Simulates one scene and takes its samples. */
static int simulate_run(const selkie_scene *scene, const splash_data_options *options, int run, int threads,
                        splash_samples *samples)
{
    selkie_world_options world_options;
    selkie_world_options_defaults(&world_options);
    world_options.threads = threads;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(scene, &world_options, &world, &error))
        return complain_error(&error);
    splash_sampler *sampler =
        splash_sampler_open(scene, options->ratio, options->keep, options->seed + 1000u * (uint64_t)run);
    int code = sampler && splash_sampler_frame(sampler, world, samples) ? EXIT_GOOD : complain("out of memory");
    while (!code && selkie_world_time(world) < scene->time.end * (1.0 - 1e-9)) {
        if (selkie_world_step(world, &error))
            code = complain_error(&error);
        else if (selkie_world_at_frame(world) && !splash_sampler_frame(sampler, world, samples))
            code = complain("out of memory");
    }
    splash_sampler_close(sampler);
    selkie_world_destroy(world);
    return code;
}

static int write_run(const selkie_scene *scene, const splash_data_options *options, const splash_samples *samples,
                     const char *path)
{
    int cells[3];
    const double coarse = selkie_scene_cells(scene, cells) * options->ratio, both[2] = {coarse, coarse};
    const double *g = scene->gravity;
    sk_tensors *tensors = calloc(1, sizeof *tensors);
    if (!tensors)
        return complain("out of memory");
    add_description(tensors, options->dimension, 1.0 / scene->time.fps, both, scene->surface_tension,
                    sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]));
    sk_tensors_add(tensors, "features", SK_TENSOR_F32, samples->features, samples->count, samples->feature_count);
    sk_tensors_add(tensors, "change", SK_TENSOR_F32, samples->change, samples->count, options->dimension);
    sk_tensors_add(tensors, "weight", SK_TENSOR_F32, samples->weight, samples->count, 0);
    sk_tensors_add(tensors, "label", SK_TENSOR_U8, samples->label, samples->count, 0);
    const int code = write_tensors(tensors, path);
    free(tensors);
    return code;
}

/* Simulates run number `run`: the template with random liquids. */
static int make_run(const splash_data_options *options, const char *template_path, int run, int threads,
                    const char *path)
{
    selkie_scene *scene = NULL;
    selkie_error error = {0};
    if (selkie_scene_load(template_path, 0, NULL, &scene, &error))
        return complain_error(&error);
    if (scene->domain.dimension != options->dimension) {
        selkie_scene_free(scene);
        return complain("%s: is not a scene in %dD", template_path, options->dimension);
    }
    selkie_scene whole = *scene;
    selkie_liquid_def *liquids = calloc((size_t)scene->liquid_count + SPLASH_MOST_LIQUIDS, sizeof *liquids);
    if (!liquids) {
        selkie_scene_free(scene);
        return complain("out of memory");
    }
    memcpy(liquids, scene->liquids, (size_t)scene->liquid_count * sizeof *liquids);
    whole.liquids = liquids;
    int code = scale_template(&whole, liquids, options->scales[run % options->scale_count]);
    const int kept = options->setup == SPLASH_DROPS ? scene->liquid_count : 0; /* others replace the template's */
    whole.liquid_count = kept + add_liquids(options, run, &whole, liquids + kept);
    whole.seed = options->seed + (uint64_t)run;
    splash_samples samples = {0};
    if (!code)
        code = simulate_run(&whole, options, run, threads, &samples);
    if (!code)
        code = write_run(&whole, options, &samples, path);
    splash_samples_free(&samples);
    free(liquids);
    selkie_scene_free(scene);
    return code;
}

static char *run_path(const splash_data_options *options, int run)
{
    char *path = NULL;
    return asprintf(&path, "%s/runs/run_%03d.safetensors", options->out, run) < 0 ? NULL : path;
}

/* Makes the runs that are not there, side by side: a run on few threads wastes less of them. */
static int make_runs(const splash_data_options *options, const char *template_path)
{
    const int beside = options->threads < options->runs ? options->threads : options->runs;
    const double start = sk_wall_ms();
    progress_line progress;
    int code = EXIT_GOOD, done = 0;
    progress_start(&progress, options->quiet, options->runs, 0.0, 1.0);
#pragma omp parallel for num_threads(beside) schedule(dynamic, 1)
    for (int run = 0; run < options->runs; run++) {
        char *path = run_path(options, run);
        int stop, own = path ? EXIT_GOOD : complain("out of memory");
#pragma omp critical(splash_runs)
        stop = code != EXIT_GOOD;
        stop |= options->seconds > 0.0 && sk_wall_ms() - start > 1000.0 * options->seconds;
        if (!own && !stop && !sk_file_exists(path))
            own = make_run(options, template_path, run, options->threads / beside, path);
        free(path);
#pragma omp critical(splash_runs)
        {
            code = code ? code : own;
            if (!own && !stop)
                progress_count(&progress, "runs", ++done);
        }
    }
    progress_break(&progress);
    return code;
}

/* --- One file of all runs --- */

typedef struct joined {
    float *values[3]; /* features, change, weight */
    uint8_t *label;
    int32_t *run;
    int64_t count;
    int feature_count;
    double numbers[5]; /* duration, smallest and largest cell, tension, gravity */
} joined;

static double number_text(const sk_tensors *tensors, const char *key)
{
    const char *text = sk_tensors_text(tensors, key);
    return text ? atof(text) : NAN;
}

static int join_run(joined *all, const char *path, int run, int dimension)
{
    static const char *const names[3] = {"features", "change", "weight"};
    sk_tensors *file = malloc(sizeof *file);
    selkie_error error = {0};
    if (!file || sk_tensors_read(path, file, &error)) {
        free(file);
        return complain_error(&error);
    }
    const sk_tensor *label = sk_tensors_find(file, "label");
    const int64_t more = label ? label->values : -1;
    int good = more >= 0 && number_text(file, "dimension") == dimension;
    for (int n = 0; n < 3 && good; n++) {
        const sk_tensor *tensor = sk_tensors_find(file, names[n]);
        const int64_t width = tensor && tensor->axes == 2 ? tensor->shape[1] : 1;
        good = tensor && tensor->shape[0] == more && tensor->type == SK_TENSOR_F32;
        if (!good)
            break;
        all->feature_count = n == 0 ? (int)width : all->feature_count;
        float *grown = realloc(all->values[n], (size_t)((all->count + more) * width + 1) * sizeof *grown);
        good = grown != NULL;
        all->values[n] = grown ? grown : all->values[n];
        if (grown)
            memcpy(grown + all->count * width, tensor->data, (size_t)(more * width) * sizeof *grown);
    }
    uint8_t *labels = realloc(all->label, (size_t)(all->count + more + 1));
    int32_t *runs = realloc(all->run, (size_t)(all->count + more + 1) * sizeof *runs);
    all->label = labels ? labels : all->label;
    all->run = runs ? runs : all->run;
    good = good && labels && runs;
    if (good) {
        memcpy(all->label + all->count, label->data, (size_t)more);
        for (int64_t n = 0; n < more; n++)
            all->run[all->count + n] = run;
        all->count += more;
        const double cell = number_text(file, "cell_low_m");
        all->numbers[0] = number_text(file, "duration_s");
        all->numbers[1] = all->numbers[1] > 0.0 && all->numbers[1] < cell ? all->numbers[1] : cell;
        all->numbers[2] = fmax(all->numbers[2], cell);
        all->numbers[3] = number_text(file, "surface_tension_N_per_m");
        all->numbers[4] = number_text(file, "gravity_m_per_s2");
    }
    sk_tensors_free(file);
    free(file);
    return good ? EXIT_GOOD : complain("%s: is no file of samples, or is not whole; remove it and run again", path);
}

static int write_joined(const joined *all, int dimension, const char *path)
{
    sk_tensors *tensors = calloc(1, sizeof *tensors);
    if (!tensors)
        return complain("out of memory");
    add_description(tensors, dimension, all->numbers[0], &all->numbers[1], all->numbers[3], all->numbers[4]);
    sk_tensors_add(tensors, "features", SK_TENSOR_F32, all->values[0], all->count, all->feature_count);
    sk_tensors_add(tensors, "change", SK_TENSOR_F32, all->values[1], all->count, dimension);
    sk_tensors_add(tensors, "weight", SK_TENSOR_F32, all->values[2], all->count, 0);
    sk_tensors_add(tensors, "run", SK_TENSOR_I32, all->run, all->count, 0);
    sk_tensors_add(tensors, "label", SK_TENSOR_U8, all->label, all->count, 0);
    const int code = write_tensors(tensors, path);
    free(tensors);
    return code;
}

/* Joins the runs that are there; `count` of them. */
static int join_runs(const splash_data_options *options, joined *all, int *count)
{
    int code = EXIT_GOOD;
    *count = 0;
    for (int run = 0; run < options->runs && !code; run++) {
        char *path = run_path(options, run);
        if (!path)
            code = complain("out of memory");
        else if (sk_file_exists(path))
            code = join_run(all, path, run, options->dimension);
        *count += all->count > 0 && path && sk_file_exists(path);
        free(path);
    }
    if (!code && !*count)
        code = complain("splash data: no run is done; give it more time");
    return code;
}

int splash_make_data(const splash_data_options *options)
{
    char *runs = NULL, *path = NULL, *template_path = NULL;
    selkie_error error = {0};
    joined all = {0};
    int code = EXIT_GOOD, count = 0;
    static const char *const usual[2][3] = {
        {"splash/templates/drops_2d", "splash/templates/dams_2d", "splash/templates/strings_2d"},
        {"splash/templates/drops_3d", NULL, NULL}};
    const char *template_scene =
        options->template_scene ? options->template_scene : usual[options->dimension == 3][options->setup];
    if (!template_scene)
        return complain("splash data: dams and strings come in 2D; for 3D give your own --template");
    template_path = find_scene(template_scene);
    if (!template_path)
        return EXIT_BAD_INPUT;
    if (asprintf(&runs, "%s/runs", options->out) < 0 || sk_folder_make(options->out, &error) ||
        sk_folder_make(runs, &error))
        code = complain_error(&error);
    if (!code)
        code = make_runs(options, template_path);
    if (!code)
        code = join_runs(options, &all, &count);
    if (!code && asprintf(&path, "%s/data.safetensors", options->out) > 0) {
        code = write_joined(&all, options->dimension, path);
        int64_t splashes = 0;
        for (int64_t n = 0; n < all.count; n++)
            splashes += all.label[n];
        if (!code && !options->quiet)
            printf("%s: %lld samples of %d runs, %lld splashes\n", path, (long long)all.count, count,
                   (long long)splashes);
        free(path);
    }
    for (int n = 0; n < 3; n++)
        free(all.values[n]);
    free(all.label);
    free(all.run);
    free(runs);
    free(template_path);
    return code;
}
