/* `selkie splash train`: a model from samples, its report and its learning curves. */
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
#include "render/plot.h"
#include "splash.h"

/* --- Samples --- */

static double number_text(const sk_tensors *tensors, const char *key)
{
    const char *text = sk_tensors_text(tensors, key);
    return text ? atof(text) : NAN;
}

int splash_read_data(const char *folder, splash_data_file *file)
{
    char *path = NULL;
    selkie_error error = {0};
    sk_tensors *tensors = malloc(sizeof *tensors);
    memset(file, 0, sizeof *file);
    if (!tensors || asprintf(&path, "%s/data.safetensors", folder) < 0)
        return complain("out of memory");
    if (sk_tensors_read(path, tensors, &error)) {
        free(path);
        free(tensors);
        return complain_error(&error);
    }
    file->tensors = tensors;
    const sk_tensor *features = sk_tensors_find(tensors, "features"), *change = sk_tensors_find(tensors, "change"),
                    *weight = sk_tensors_find(tensors, "weight"), *label = sk_tensors_find(tensors, "label"),
                    *run = sk_tensors_find(tensors, "run");
    sk_splash_data *data = &file->data;
    data->dimension = (int)number_text(tensors, "dimension");
    const int width =
        sk_splash_cell_count(data->dimension, SK_SPLASH_REACH, sk_splash_velocity_reach(data->dimension)) +
        sk_splash_own_count(data->dimension);
    if ((data->dimension != 2 && data->dimension != 3) || !features || features->axes != 2 ||
        features->shape[1] != width || !change || !weight || !label || !run || label->values != features->shape[0] ||
        label->type != SK_TENSOR_U8 || weight->values != label->values || run->values != label->values ||
        run->type != SK_TENSOR_I32 || change->values != label->values * data->dimension) {
        splash_data_free(file);
        complain("%s: holds no samples of splashes; make them with selkie splash data", path);
        free(path);
        return EXIT_BAD_INPUT;
    }
    free(path);
    data->feature_count = width;
    data->count = label->values;
    data->features = features->data;
    data->change = change->data;
    data->weight = weight->data;
    data->label = label->data;
    data->run = run->data;
    data->duration = number_text(tensors, "duration_s");
    data->cell_low = number_text(tensors, "cell_low_m");
    data->cell_high = number_text(tensors, "cell_high_m");
    data->tension = number_text(tensors, "surface_tension_N_per_m");
    data->gravity = number_text(tensors, "gravity_m_per_s2");
    return EXIT_GOOD;
}

void splash_data_free(splash_data_file *file)
{
    if (file->tensors)
        sk_tensors_free(file->tensors);
    free(file->tensors);
    memset(file, 0, sizeof *file);
}

/* --- Curves --- */

enum { CURVE_POINTS = 8192 };

typedef struct curves {
    double step[2][CURVE_POINTS], loss[2][CURVE_POINTS]; /* classifier, modifier */
    size_t count[2];
    int quiet;
} curves;

static void watch(void *context, const char *network, int step, int steps, double loss)
{
    curves *c = context;
    const int which = strcmp(network, "modifier") == 0;
    if (c->count[which] < CURVE_POINTS) {
        c->step[which][c->count[which]] = step;
        c->loss[which][c->count[which]++] = loss;
    }
    if (!c->quiet && step % 200 == 0)
        printf("%s: step %d of %d, loss %.4f\n", network, step, steps, loss);
}

static selkie_code write_curves(const curves *c, const char *folder, selkie_error *error)
{
    char *path = NULL;
    const sk_plot_series series[2] = {
        {.label = "classifier", .x = c->step[0], .y = c->loss[0], .count = c->count[0]},
        {.label = "modifier", .x = c->step[1], .y = c->loss[1], .count = c->count[1], .color = 1}};
    const sk_plot_panel panels[2] = {
        {"classifier", "step", {"loss (nat)", NULL}, {0, 0}, {0, 0}, 0, &series[0], 1},
        {"modifier", "step", {"negative log likelihood (nat)", NULL}, {0, 0}, {0, 0}, 0, &series[1], 1}};
    const sk_plot_figure figure = {"learning curves", panels, 2, 2};
    sk_atomic_file *file = NULL;
    if (asprintf(&path, "%s/curves.csv", folder) < 0)
        return SELKIE_ERROR_MEMORY;
    selkie_code code = sk_atomic_open(path, 0, &file, error);
    if (!code)
        code = sk_atomic_print(file, error, "network,step,loss\n");
    for (int w = 0; w < 2; w++)
        for (size_t n = 0; n < c->count[w] && !code; n++)
            code = sk_atomic_print(file, error, "%s,%g,%.6g\n", w ? "modifier" : "classifier", c->step[w][n],
                                   c->loss[w][n]);
    if (file)
        code = sk_atomic_finish(&file, code, error);
    free(path);
    if (!code && asprintf(&path, "%s/curves.png", folder) > 0) {
        selkie_error ignored = {0}; /* a build without PNG has no picture */
        sk_plot_write(&figure, path, &ignored);
        free(path);
    }
    return code;
}

/* --- A training that goes on --- */

/* Files OUT/training_NETWORK.safetensors hold the networks while they learn. They belong to one recipe and one set of
 * samples, and go when the model is there. */
typedef struct kept_training {
    const char *folder;
    curves *curves;
    char recipe[SK_TENSOR_TEXT];
} kept_training;

static char *kept_path(const kept_training *kept, const char *network)
{
    char *path = NULL;
    return asprintf(&path, "%s/training_%s.safetensors", kept->folder, network) > 0 ? path : NULL;
}

static uint64_t add_to_sum(uint64_t sum, const float *values, int64_t count)
{
    for (int64_t n = 0; n < count; n++) {
        uint32_t bits;
        memcpy(&bits, &values[n], sizeof bits);
        sum = sk_hash64(sum ^ bits);
    }
    return sum;
}

/* Says which training it is: the recipe, and a sum over the samples: features of some thousands, all else of all. */
static void name_training(const sk_splash_recipe *r, const sk_splash_data *data, char text[SK_TENSOR_TEXT])
{
    uint64_t sum = (uint64_t)data->count;
    const int64_t stride = data->count / 4096 + 1;
    for (int64_t n = 0; n < data->count; n += stride)
        sum = add_to_sum(sum, &data->features[n * data->feature_count], data->feature_count);
    for (int64_t n = 0; n < data->count; n++)
        sum = sk_hash64(sum ^ ((uint64_t)data->label[n] << 32 | (uint32_t)data->run[n]));
    sum = add_to_sum(sum, data->weight, data->count);
    sum = add_to_sum(sum, data->change, data->count * data->dimension);
    snprintf(text, SK_TENSOR_TEXT, "%d %d %d %d %d %.9g %.9g %.9g %llu %lld %016llx", r->paper, r->classifier_steps,
             r->modifier_steps, r->batch, r->width, r->rate, r->decay, r->dropout, (unsigned long long)r->seed,
             (long long)r->samples, (unsigned long long)sum);
}

static selkie_code save_training(void *context, const char *network, int step, const float *state, size_t count,
                                 selkie_error *error)
{
    const kept_training *kept = context;
    const int which = strcmp(network, "modifier") == 0;
    const size_t points = kept->curves->count[which];
    sk_tensors *tensors = calloc(1, sizeof *tensors);
    char *path = kept_path(kept, network), *bytes = NULL;
    float *losses = malloc((points + 1) * sizeof *losses);
    size_t size;
    selkie_code code = tensors && path && losses ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "out of memory");
    if (!code) {
        for (size_t n = 0; n < points; n++)
            losses[n] = (float)kept->curves->loss[which][n];
        sk_tensors_add_text(tensors, "recipe", "%s", kept->recipe);
        sk_tensors_add_text(tensors, "step", "%d", step);
        sk_tensors_add(tensors, "state", SK_TENSOR_F32, state, (int64_t)count, 0);
        sk_tensors_add(tensors, "losses", SK_TENSOR_F32, losses, (int64_t)points, 0);
        code = sk_tensors_encode(tensors, &bytes, &size, error);
    }
    if (!code)
        code = sk_file_write(path, bytes, size, error);
    sk_release(NULL, bytes);
    free(losses);
    free(path);
    free(tensors);
    return code;
}

/* A file that is not of this training, or broken, is none: the network begins anew. */
static int load_training(void *context, const char *network, float *state, size_t count)
{
    kept_training *kept = context;
    const int which = strcmp(network, "modifier") == 0;
    sk_tensors *tensors = calloc(1, sizeof *tensors);
    char *path = kept_path(kept, network);
    selkie_error ignored = {0};
    int step = 0;
    if (tensors && path && sk_file_exists(path) && !sk_tensors_read(path, tensors, &ignored)) {
        const sk_tensor *kept_state = sk_tensors_find(tensors, "state"), *losses = sk_tensors_find(tensors, "losses");
        const char *recipe = sk_tensors_text(tensors, "recipe"), *steps = sk_tensors_text(tensors, "step");
        if (recipe && steps && !strcmp(recipe, kept->recipe) && kept_state && kept_state->type == SK_TENSOR_F32 &&
            kept_state->values == (int64_t)count && losses && losses->type == SK_TENSOR_F32 &&
            losses->values <= CURVE_POINTS) {
            curves *c = kept->curves;
            step = atoi(steps);
            memcpy(state, kept_state->data, count * sizeof *state);
            c->count[which] = (size_t)losses->values;
            for (size_t n = 0; n < c->count[which]; n++) {
                c->step[which][n] = SK_SPLASH_WATCHED * (double)(n + 1);
                c->loss[which][n] = ((const float *)losses->data)[n];
            }
            if (!c->quiet)
                printf("%s: goes on after step %d\n", network, step);
        }
        sk_tensors_free(tensors);
    }
    free(path);
    free(tensors);
    return step;
}

static void end_training(const kept_training *kept)
{
    static const char *const networks[2] = {"classifier", "modifier"};
    for (int n = 0; n < 2; n++) {
        char *path = kept_path(kept, networks[n]);
        if (path)
            remove(path);
        free(path);
    }
}

/* --- Report --- */

static const char *const split_names[SK_SPLIT_COUNT + 1] = {"train", "validation", "held_out", "all"};

static selkie_code write_report(const char *folder, const sk_splash_score *scores, const sk_splash_score *logistic,
                                const double *threshold, selkie_error *error)
{
    char *path = NULL;
    sk_atomic_file *file = NULL;
    if (asprintf(&path, "%s/report.csv", folder) < 0)
        return SELKIE_ERROR_MEMORY;
    selkie_code code = sk_atomic_open(path, 0, &file, error);
    if (!code)
        code = sk_atomic_print(
            file, error,
            "split,auc,log_loss,prior_log_loss,calibration_error,nll,nll_constant,samples,splashes,logistic_auc,"
            "logistic_log_loss,predicted,decisions,threshold_auc\n");
    for (int s = 0; s < SK_SPLIT_COUNT && !code; s++)
        code = sk_atomic_print(file, error, "%s,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%lld,%lld,%.6g,%.6g,%.6g,%.6g,%.6g\n",
                               split_names[s], scores[s].auc, scores[s].log_loss, scores[s].prior_log_loss,
                               scores[s].calibration_error, scores[s].nll, scores[s].nll_constant,
                               (long long)scores[s].count, (long long)scores[s].splashes, logistic[s].auc,
                               logistic[s].log_loss, scores[s].predicted, scores[s].decisions, threshold[s]);
    if (file)
        code = sk_atomic_finish(&file, code, error);
    free(path);
    return code;
}

int splash_judge_model(const char *folder, const char *model, int threads, FILE *to)
{
    splash_data_file file;
    sk_splash_model own = {0};
    selkie_error error = {0};
    char path[4096];
    int code = splash_read_data(folder, &file);
    if (code)
        return code;
    sk_splash_model_find(model ? model : "default", NULL, file.data.dimension, path, sizeof path);
    selkie_code result = sk_splash_model_read(path, &own, &error);
    if (!result && own.dimension != file.data.dimension)
        result = sk_fail(&error, SELKIE_ERROR_INPUT, "%s: was trained in %dD, but the samples are in %dD", path,
                         own.dimension, file.data.dimension);
    if (!result)
        fprintf(to,
                "split,auc,log_loss,prior_log_loss,calibration_error,nll,nll_constant,samples,splashes,predicted\n");
    for (int s = 0; s <= SK_SPLIT_COUNT && !result; s++) {
        sk_splash_score score;
        result = sk_splash_judge(&file.data, &own, (sk_splash_split)s, threads, &score, &error);
        if (!result && !score.count) /* nothing to judge: no numbers */
            fprintf(to, "%s,,,,,,,0,0,\n", split_names[s]);
        else if (!result)
            fprintf(to, "%s,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%lld,%lld,%.6g\n", split_names[s], score.auc, score.log_loss,
                    score.prior_log_loss, score.calibration_error, score.nll, score.nll_constant,
                    (long long)score.count, (long long)score.splashes, score.predicted);
    }
    sk_splash_model_free(&own);
    splash_data_free(&file);
    return result ? complain_error(&error) : EXIT_GOOD;
}

static selkie_code write_model(const sk_splash_model *model, const char *folder, const char *made_by,
                               selkie_error *error)
{
    char *path = NULL, *bytes = NULL;
    size_t size;
    SK_TRY(sk_splash_model_encode(model, made_by, &bytes, &size, error));
    selkie_code code = SELKIE_ERROR_MEMORY;
    if (asprintf(&path, "%s/model.safetensors", folder) > 0)
        code = sk_file_write(path, bytes, size, error);
    free(path);
    sk_release(NULL, bytes);
    return code;
}

int splash_train_model(const char *folder, const char *out, const sk_splash_recipe *recipe, int quiet)
{
    splash_data_file file;
    sk_splash_model model = {0};
    sk_splash_score scores[SK_SPLIT_COUNT], logistic[SK_SPLIT_COUNT];
    double threshold[SK_SPLIT_COUNT];
    selkie_error error = {0};
    int code = splash_read_data(folder, &file);
    if (code)
        return code;
    curves *c = calloc(1, sizeof *c);
    char made_by[128];
    snprintf(made_by, sizeof made_by, "selkie splash train%s, %d + %d steps of %d",
             recipe->paper ? " --recipe paper" : "", recipe->classifier_steps, recipe->modifier_steps, recipe->batch);
    const double start = sk_wall_ms();
    selkie_code result = c ? SELKIE_OK : SELKIE_ERROR_MEMORY;
    if (c)
        c->quiet = quiet;
    if (!result)
        result = sk_folder_make(out, &error);
    kept_training kept = {.folder = out, .curves = c};
    const sk_splash_keeper keeper = {&kept, save_training, load_training};
    sk_splash_recipe going_on = *recipe;
    going_on.keeper = &keeper;
    name_training(recipe, &file.data, kept.recipe);
    if (!result)
        result = sk_splash_train(&file.data, &going_on, watch, c, &model, &error);
    const double seconds = (sk_wall_ms() - start) / 1000.0;
    for (int s = 0; s < SK_SPLIT_COUNT && !result; s++)
        result = sk_splash_judge(&file.data, &model, (sk_splash_split)s, recipe->threads, &scores[s], &error);
    if (!result)
        result = sk_splash_judge_logistic(&file.data, recipe, logistic, &error);
    if (!result)
        result = sk_splash_judge_threshold(&file.data, threshold, &error);
    if (!result)
        result = write_report(out, scores, logistic, threshold, &error);
    if (!result)
        result = write_curves(c, out, &error);
    if (!result)
        result = write_model(&model, out, made_by, &error);
    if (!result)
        end_training(&kept);
    if (!result && !quiet) {
        const sk_splash_score *held = &scores[SK_SPLIT_HELD_OUT];
        printf("%s/model.safetensors: trained in %.1f s on %lld samples\n"
               "held out: AUC %.4f, log loss %.4f (prior %.4f), calibration error %.4f, likelihood of the change %.2f "
               "nat (constant %.2f)\n",
               out, seconds, (long long)file.data.count, held->auc, held->log_loss, held->prior_log_loss,
               held->calibration_error, -held->nll, -held->nll_constant);
    }
    sk_splash_model_free(&model);
    splash_data_free(&file);
    free(c);
    return result ? complain_error(&error) : EXIT_GOOD;
}
