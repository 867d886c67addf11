/* Parts of `selkie splash`. */
#ifndef SELKIE_TOOL_SPLASH_H
#define SELKIE_TOOL_SPLASH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "learn/splash_train.h"
#include "tool.h"

/* Random liquids of data runs: drops and columns, dams that break, or a string of liquid. */
typedef enum splash_setup { SPLASH_DROPS, SPLASH_DAMS, SPLASH_STRINGS } splash_setup;

typedef struct splash_data_options {
    splash_setup setup;
    const char *out, *template_scene; /* template NULL: the one of the dimension */
    int dimension, runs, ratio;       /* coarse cell over fine cell */
    double keep;                      /* share of samples without a splash that are kept */
    double scales[8];                 /* factors of the template's lengths: run n has scale n % scale_count */
    int scale_count;
    double seconds; /* wall time after which no run is begun; 0 = none */
    uint64_t seed;
    int threads, quiet;
} splash_data_options;

int splash_make_data(const splash_data_options *options);

/* A string of liquid in the middle of a scene, 4 % of the domain's height thick, with random velocities along it. */
typedef struct splash_string {
    uint64_t seed;
    int run;
    double length, surface_tension; /* m, N/m */
} splash_string;

enum { SPLASH_MOST_LIQUIDS = 32 }; /* that a data run adds */

/* Adds its sections to liquids. Returns their number. */
int splash_add_string(const splash_string *string, const selkie_scene *scene, selkie_liquid_def *liquids);

/* The samples of D/data.safetensors; release with splash_data_free. */
typedef struct splash_data_file {
    sk_splash_data data;
    void *tensors;
} splash_data_file;

int splash_read_data(const char *folder, splash_data_file *file);
void splash_data_free(splash_data_file *file);

typedef struct splash_add_options {
    const char *folder, *model; /* model NULL: that of the scene, or "default" */
    int samples;                /* droplets for a particle that makes a splash */
    double rate, threshold;     /* as the keys of a scene */
    uint64_t seed;
    int threads, force, quiet;
    int64_t *made; /* takes the number of droplets; NULL = not asked for */
} splash_add_options;

/* Adds droplets to a run that is there, in files of their own. */
int splash_add(const splash_add_options *options);

/* Prints how good a model (NULL: the one of Selkie) is on the samples of a folder, as CSV. */
int splash_judge_model(const char *folder, const char *model, int threads, FILE *to);

int splash_train_model(const char *folder, const char *out, const sk_splash_recipe *recipe, int quiet);

#endif
