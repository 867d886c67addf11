#include "learn/splash_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/network_kernels.h"

sk_splash_recipe sk_splash_default_recipe(int paper)
{
    if (paper)
        return (sk_splash_recipe){1, 3000, 3000, 5000, 0, 1e-4, 0.1, 0.1, 1, 1, 0, NULL};
    return (sk_splash_recipe){0, 1500, 900, 1200, 32, 2e-3, 0.02, 0.1, 1, 1, 0, NULL};
}

/* --- Samples --- */

/* Numbers of the samples of a split (SK_SPLIT_COUNT = all) with a label (-1 = any). */
typedef struct sample_list {
    int64_t count, *numbers;
} sample_list;

static selkie_code list_samples(const sk_splash_data *data, sk_splash_split split, int label, sample_list *list,
                                selkie_error *error)
{
    list->count = 0;
    list->numbers = sk_allocate(NULL, (size_t)(data->count + 1) * sizeof *list->numbers);
    if (!list->numbers)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "training: no memory for %lld samples", (long long)data->count);
    for (int64_t n = 0; n < data->count; n++)
        if ((split == SK_SPLIT_COUNT || sk_splash_split_of(data->run[n]) == split) &&
            (label < 0 || data->label[n] == label))
            list->numbers[list->count++] = n;
    return SELKIE_OK;
}

/* Leaves `wanted` of `all` samples, in the list's share of them, chosen by the seed. */
static void thin_list(sample_list *list, int64_t all, const sk_splash_recipe *recipe)
{
    const double share = recipe->samples > 0 ? (double)recipe->samples / (double)all : 1.0;
    int64_t count = 0;
    for (int64_t n = 0; n < list->count; n++)
        if (share >= 1.0 || sk_random_float(recipe->seed, (uint64_t)list->numbers[n], 5) < share)
            list->numbers[count++] = list->numbers[n];
    list->count = count;
}

/* The features of a sample that the model uses: those of its stencils, which may be smaller than the stored ones. */
static int copy_inputs(const sk_splash_model *model, const sk_splash_data *data, int64_t sample, float *to)
{
    const float *from = data->features + (size_t)sample * (size_t)data->feature_count;
    const int stored = SK_SPLASH_REACH, near = sk_splash_velocity_reach(data->dimension), d = data->dimension;
    const int planes = d == 3 ? stored : 0;
    int count = 0;
    for (int z = -planes; z <= planes; z++)
        for (int y = -stored; y <= stored; y++)
            for (int x = -stored; x <= stored; x++) {
                const int far_xy = abs(x) > abs(y) ? abs(x) : abs(y), far = far_xy > abs(z) ? far_xy : abs(z);
                for (int n = 0; n < d && far <= near; n++, from++)
                    if (far <= model->velocity_reach)
                        to[count++] = *from;
                if (far <= model->reach)
                    to[count++] = *from;
                from++;
            }
    const int rest = 1 + sk_splash_own_count(d);
    memcpy(to + count, from, (size_t)rest * sizeof *to);
    return count + rest;
}

/* Stencils and their features. */
static void shape_model(const sk_splash_data *data, int reach, sk_splash_model *model)
{
    const int near = sk_splash_velocity_reach(data->dimension);
    model->dimension = data->dimension;
    model->reach = reach;
    model->velocity_reach = near < reach ? near : reach;
    model->cell_count = sk_splash_cell_count(model->dimension, reach, model->velocity_reach);
    model->feature_count = model->cell_count + sk_splash_own_count(model->dimension);
}

/* Mean, scale and largest magnitude of the inputs over the training samples. */
static void measure_inputs(const sk_splash_data *data, const sample_list *list, sk_splash_model *model)
{
    double sum[SK_SPLASH_FEATURES] = {0}, square[SK_SPLASH_FEATURES] = {0};
    float row[SK_SPLASH_FEATURES];
    for (int64_t n = 0; n < list->count; n++) {
        copy_inputs(model, data, list->numbers[n], row);
        for (int f = 0; f < model->feature_count; f++) {
            sum[f] += row[f];
            square[f] += (double)row[f] * row[f];
            model->largest[f] = fmaxf(model->largest[f], fabsf(row[f]));
        }
    }
    for (int f = 0; f < model->feature_count; f++) {
        const double mean = sum[f] / (double)list->count, variance = square[f] / (double)list->count - mean * mean;
        model->mean[f] = (float)mean;
        model->scale[f] = variance > 1e-6 ? (float)sqrt(variance) : 1.0f;
    }
}

/* Range of the Bond numbers: they are the last feature of a cell, as B / (1 + B). */
static void measure_bond(const sk_splash_data *data, sk_splash_model *model)
{
    const int place = data->feature_count - sk_splash_own_count(data->dimension) - 1;
    double low = 1.0, high = 0.0;
    for (int64_t n = 0; n < data->count; n++) {
        const double share = data->features[(size_t)n * (size_t)data->feature_count + (size_t)place];
        low = fmin(low, share);
        high = fmax(high, share);
    }
    model->bond_low = low / fmax(1.0 - low, 1e-9);
    model->bond_high = high / fmax(1.0 - high, 1e-9);
}

/* --- Networks --- */

typedef struct trainer {
    const sk_splash_data *data;
    const sk_splash_recipe *recipe;
    sk_splash_model *model;
    sk_network *network;
    float *inputs, *outputs, *slopes;
    float *state;                           /* of the network, for the keeper */
    const sk_splash_keeper *keeper;         /* NULL = none */
    const sample_list *positive, *negative; /* negative NULL: splashes only */
    int mean_only;                          /* normal: the variance stays as it is */
} trainer;

static selkie_code open_trainer(trainer *t, selkie_error *error)
{
    const size_t rows = (size_t)t->recipe->batch, outputs = 2 * 3;
    const size_t inputs = (size_t)t->model->feature_count;
    t->inputs = sk_allocate(NULL, rows * inputs * sizeof(float));
    t->outputs = sk_allocate(NULL, 2 * rows * outputs * sizeof(float));
    t->slopes = t->outputs ? t->outputs + rows * outputs : NULL;
    t->state = sk_allocate(NULL, sk_network_state_count(t->network) * sizeof(float));
    return t->inputs && t->outputs && t->state ? SELKIE_OK
                                               : sk_fail(error, SELKIE_ERROR_MEMORY, "training: no memory for a batch");
}

static void close_trainer(trainer *t)
{
    sk_release(NULL, t->inputs);
    sk_release(NULL, t->outputs);
    sk_release(NULL, t->state);
}

/* Sample number n of a batch, drawn by the seed. Half of a classifier's samples are splashes. */
static int64_t draw(const trainer *t, int step, int n)
{
    const sample_list *list = t->negative && n % 2 ? t->negative : t->positive;
    const uint64_t bits = sk_hash64(sk_hash64(t->recipe->seed ^ (uint64_t)step * 2654435761u) ^ (uint64_t)n);
    return list->numbers[bits % (uint64_t)list->count];
}

/* Loss of a row, and its slopes over the batch. */
static double classifier_loss(const trainer *t, int64_t sample, const float *output, float *slope)
{
    return sk_learn_logistic_loss(output[0], t->data->label[sample], slope);
}

static double modifier_loss(const trainer *t, int64_t sample, const float *output, float *slope)
{
    const int n = t->data->dimension;
    double loss = 0.0;
    for (int d = 0; d < n; d++) {
        const float target = t->data->change[(size_t)sample * (size_t)n + (size_t)d] / t->model->spread[d];
        float both[2];
        loss += t->model->law == SK_SPLASH_NORMAL
                    ? sk_learn_normal_loss(target, output[d], t->mean_only ? 0.0f : output[n + d], both)
                    : sk_learn_student_loss(target, output[d], output[n + d], both);
        slope[d] = both[0];
        slope[n + d] = t->mean_only ? 0.0f : both[1];
    }
    return loss;
}

static selkie_code train_step(trainer *t, int step, int steps, double *loss, selkie_error *error)
{
    const int batch = t->recipe->batch, inputs = t->model->feature_count, threads = t->recipe->threads;
    const int outputs = t->network->def.sizes[t->network->def.layer_count];
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int n = 0; n < batch; n++) {
        float *row = t->inputs + (size_t)n * (size_t)inputs;
        copy_inputs(t->model, t->data, draw(t, step, n), row);
        sk_splash_scale(t->model, row, 1);
    }
    SK_TRY(
        sk_network_train(t->network, t->inputs, batch, t->outputs, t->recipe->seed + (uint64_t)step, threads, error));
    *loss = 0.0;
    for (int n = 0; n < batch; n++) {
        float *slope = t->slopes + (size_t)n * (size_t)outputs;
        const float *output = t->outputs + (size_t)n * (size_t)outputs;
        const int64_t sample = draw(t, step, n);
        *loss +=
            (t->negative ? classifier_loss(t, sample, output, slope) : modifier_loss(t, sample, output, slope)) / batch;
        for (int o = 0; o < outputs; o++)
            slope[o] /= (float)batch;
    }
    sk_network_backward(t->network, t->slopes, NULL, threads);
    const double rate = t->recipe->paper ? t->recipe->rate : sk_one_cycle(t->recipe->rate, step, steps);
    sk_network_update(t->network, (float)rate, (float)t->recipe->decay, threads);
    return SELKIE_OK;
}

/* Goes on where an earlier training was interrupted. Returns the steps that are done. */
static int go_on(trainer *t, const char *name, int steps)
{
    const size_t count = sk_network_state_count(t->network);
    const int done = t->keeper ? t->keeper->load(t->keeper->context, name, t->state, count) : 0;
    if (done <= 0 || done > steps)
        return 0;
    sk_network_set_state(t->network, t->state, done);
    return done;
}

static selkie_code keep_state(trainer *t, const char *name, int step, selkie_error *error)
{
    sk_network_get_state(t->network, t->state);
    return t->keeper->save(t->keeper->context, name, step, t->state, sk_network_state_count(t->network), error);
}

static selkie_code train_network(trainer *t, const char *name, int steps, sk_splash_watch watch, void *context,
                                 selkie_error *error)
{
    enum { EVERY = SK_SPLASH_WATCHED, KEPT_EVERY = 10 * EVERY }; /* steps */
    double sum = 0.0;
    selkie_code code = open_trainer(t, error);
    for (int step = code ? steps : go_on(t, name, steps); !code && step < steps; step++) {
        double loss;
        t->mean_only = t->model->law == SK_SPLASH_NORMAL && !t->negative && step < steps / 2;
        code = train_step(t, step, steps, &loss, error);
        sum += code ? 0.0 : loss;
        if ((step + 1) % EVERY == 0 && watch && !code)
            watch(context, name, step + 1, steps, sum / EVERY);
        sum = (step + 1) % EVERY == 0 ? 0.0 : sum;
        if (!code && t->keeper && ((step + 1) % KEPT_EVERY == 0 || step + 1 == steps))
            code = keep_state(t, name, step + 1, error);
    }
    close_trainer(t);
    return code;
}

static sk_network *new_network(const sk_splash_recipe *recipe, int inputs, int outputs, uint64_t seed)
{
    const int width = recipe->width;
    const sk_network_def ours = {3, {inputs, width, width / 2, outputs}, SK_ACTIVATION_GELU, 1, (float)recipe->dropout};
    const sk_network_def theirs = {2, {inputs, 2 * inputs, outputs}, SK_ACTIVATION_TANH, 1, (float)recipe->dropout};
    return sk_network_create(recipe->paper ? &theirs : &ours, seed);
}

/* --- Calibration --- */

/* Logits of the samples of a list. */
static selkie_code logits_of(const sk_splash_data *data, const sk_splash_model *model, const sample_list *list,
                             int threads, float *logits, selkie_error *error)
{
    enum { ROWS = 4096 };
    float *rows = sk_allocate(NULL, (size_t)ROWS * (size_t)model->feature_count * sizeof *rows);
    if (!rows)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "training: no memory");
    for (int64_t first = 0; first < list->count; first += ROWS) {
        const int count = list->count - first < ROWS ? (int)(list->count - first) : ROWS;
        for (int n = 0; n < count; n++)
            copy_inputs(model, data, list->numbers[first + n], rows + (size_t)n * (size_t)model->feature_count);
        sk_splash_scale(model, rows, count);
        sk_network_evaluate(model->classifier, rows, count, logits + first, threads);
    }
    sk_release(NULL, rows);
    return SELKIE_OK;
}

/* Scale and offset of the logits that make the likelihood of weighted labels largest (Platt 1999), by Newton's method
 * from the shift by the prior. */
static void calibrate(const sk_splash_data *data, const sample_list *list, const float *logits, sk_splash_model *model)
{
    double a = 1.0, b = log(model->prior / (1.0 - model->prior));
    for (int round = 0; round < 30; round++) {
        double ga = 0, gb = 0, haa = 1e-9, hab = 0, hbb = 1e-9;
        for (int64_t n = 0; n < list->count; n++) {
            const int64_t s = list->numbers[n];
            const double z = logits[n], w = data->weight[s], p = 1.0 / (1.0 + exp(-(a * z + b))),
                         r = p - data->label[s];
            ga += w * r * z;
            gb += w * r;
            haa += w * p * (1.0 - p) * z * z;
            hab += w * p * (1.0 - p) * z;
            hbb += w * p * (1.0 - p);
        }
        const double det = haa * hbb - hab * hab;
        if (!(det > 0.0))
            break;
        a -= fmin(fmax((hbb * ga - hab * gb) / det, -0.5), 0.5);
        b -= fmin(fmax((haa * gb - hab * ga) / det, -1.0), 1.0);
    }
    if (isfinite(a) && isfinite(b) && a > 0.0) {
        model->calibration[0] = (float)a;
        model->calibration[1] = (float)b;
    }
}

/* --- Training --- */

static double weight_of(const sk_splash_data *data, const sample_list *list)
{
    double sum = 0.0;
    for (int64_t n = 0; n < list->count; n++)
        sum += data->weight[list->numbers[n]];
    return sum;
}

/* Root mean square of the changes of velocity, cut at its fourfold once, so that outliers do not decide. */
static void measure_changes(const sk_splash_data *data, const sample_list *list, sk_splash_model *model)
{
    for (int d = 0; d < data->dimension; d++) {
        double limit = INFINITY;
        for (int round = 0; round < 3; round++) {
            double sum = 0.0;
            for (int64_t n = 0; n < list->count; n++) {
                const double x = data->change[list->numbers[n] * data->dimension + d];
                sum += fmin(x * x, limit);
            }
            const double square = sum / (double)list->count;
            limit = 16.0 * square;
            model->spread[d] = (float)fmax(sqrt(square), 1e-6);
        }
    }
}

static selkie_code train_both(const sk_splash_data *data, const sk_splash_recipe *recipe, sk_splash_watch watch,
                              void *context, const sample_list lists[2], sk_splash_model *model, selkie_error *error)
{
    const double splashes = weight_of(data, &lists[1]), others = weight_of(data, &lists[0]);
    model->prior = splashes / (splashes + others);
    model->calibration[0] = 1.0f;
    model->calibration[1] = (float)log(model->prior / (1.0 - model->prior));
    measure_inputs(data, &lists[0], model);
    measure_bond(data, model);
    measure_changes(data, &lists[1], model);
    model->classifier = new_network(recipe, model->feature_count, 1, recipe->seed);
    model->modifier = new_network(recipe, model->feature_count, 2 * data->dimension, recipe->seed + 1);
    if (!model->classifier || !model->modifier)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "training: no memory for the networks");
    trainer t = {.data = data, .recipe = recipe, .model = model, .positive = &lists[1], .negative = &lists[0]};
    t.keeper = recipe->keeper;
    t.network = model->classifier;
    SK_TRY(train_network(&t, "classifier", recipe->classifier_steps, watch, context, error));
    t.network = model->modifier;
    t.negative = NULL;
    return train_network(&t, "modifier", recipe->modifier_steps, watch, context, error);
}

/* Calibrates on the validation runs; the paper's networks keep the shift by the prior. */
static selkie_code calibrate_model(const sk_splash_data *data, const sk_splash_recipe *recipe, sk_splash_model *model,
                                   selkie_error *error)
{
    sample_list list = {0};
    SK_TRY(list_samples(data, SK_SPLIT_VALIDATION, -1, &list, error));
    float *logits = sk_allocate(NULL, (size_t)(list.count + 1) * sizeof *logits);
    selkie_code code = SELKIE_OK;
    if (logits && list.count && !recipe->paper) {
        code = logits_of(data, model, &list, recipe->threads, logits, error);
        if (!code)
            calibrate(data, &list, logits, model);
    }
    sk_release(NULL, logits);
    sk_release(NULL, list.numbers);
    return code;
}

selkie_code sk_splash_train(const sk_splash_data *data, const sk_splash_recipe *recipe, sk_splash_watch watch,
                            void *context, sk_splash_model *model, selkie_error *error)
{
    sample_list lists[2] = {{0}, {0}};
    memset(model, 0, sizeof *model);
    shape_model(data, recipe->paper ? 1 : SK_SPLASH_REACH, model);
    model->duration = data->duration;
    model->cell_low = data->cell_low;
    model->cell_high = data->cell_high;
    model->tension = data->tension;
    model->gravity = data->gravity;
    model->law = recipe->paper ? SK_SPLASH_NORMAL : SK_SPLASH_STUDENT;
    selkie_code code = list_samples(data, SK_SPLIT_TRAIN, 0, &lists[0], error);
    if (!code)
        code = list_samples(data, SK_SPLIT_TRAIN, 1, &lists[1], error);
    const int64_t all = lists[0].count + lists[1].count;
    for (int n = 0; n < 2 && !code; n++)
        thin_list(&lists[n], all, recipe);
    if (!code && (lists[0].count < 100 || lists[1].count < 100))
        code =
            sk_fail(error, SELKIE_ERROR_INPUT,
                    "training: %lld splashes and %lld other samples in the training runs are too few; make more data",
                    (long long)lists[1].count, (long long)lists[0].count);
    if (!code)
        code = train_both(data, recipe, watch, context, lists, model, error);
    if (!code)
        code = calibrate_model(data, recipe, model, error);
    for (int n = 0; n < 2; n++)
        sk_release(NULL, lists[n].numbers);
    return code;
}

/* --- Scores --- */

typedef struct scored {
    float logit;
    float weight;
    uint8_t label;
} scored;

static int compare_scored(const void *a, const void *b)
{
    const float x = ((const scored *)a)->logit, y = ((const scored *)b)->logit;
    return (x > y) - (x < y);
}

/* Area under the curve, log loss and calibration error of weighted samples, which it sorts. */
static void score_classifier(const sk_splash_model *model, scored *samples, int64_t count, sk_splash_score *score)
{
    enum { BINS = 15 };
    double positive = 0.0, negative = 0.0, area = 0.0, loss = 0.0, decisions = 0.0, expected = 0.0;
    qsort(samples, (size_t)count, sizeof *samples, compare_scored);
    for (int64_t n = 0; n < count; n++) {
        const double w = samples[n].weight, z = model->calibration[0] * samples[n].logit + model->calibration[1];
        float slope;
        loss += w * sk_learn_logistic_loss((float)z, samples[n].label, &slope);
        expected += w * sk_learn_sigmoid((float)z);
        decisions += samples[n].logit > 0.0f ? w : 0.0;
        if (samples[n].label) {
            area += w * negative;
            positive += w;
        } else {
            negative += w;
        }
    }
    const double all = positive + negative, share = positive / all;
    score->auc = positive > 0.0 && negative > 0.0 ? area / (positive * negative) : NAN;
    score->log_loss = loss / all;
    score->predicted = expected / fmax(positive, 1e-12);
    score->decisions = decisions / fmax(positive, 1e-12);
    score->prior_log_loss = -(share * log(fmax(share, 1e-12)) + (1.0 - share) * log(fmax(1.0 - share, 1e-12)));

    /* Bins of equal weight: |mean probability - share of splashes|. */
    double error = 0.0, done = 0.0, predicted = 0.0, seen = 0.0, weight = 0.0;
    for (int64_t n = 0; n < count; n++) {
        predicted += samples[n].weight * sk_splash_probability(model, samples[n].logit);
        seen += samples[n].label ? samples[n].weight : 0.0;
        weight += samples[n].weight;
        if (done + weight >= all * (1.0 - 1e-12) || weight >= all / BINS) {
            error += fabs(predicted - seen) / all;
            done += weight;
            predicted = seen = weight = 0.0;
        }
    }
    score->calibration_error = error;
}

/* The constant Student-t distribution that fits the changes of a list best: location and scale of each axis. */
static void fit_constant(const sk_splash_data *data, const sk_splash_model *model, const sample_list *list,
                         float best[3][2])
{
    for (int d = 0; d < data->dimension; d++) {
        double mean = 0.0, scale = 1.0;
        for (int round = 0; round < 50; round++) { /* expectation maximisation */
            double sum = 0.0, weights = 0.0, square = 0.0;
            for (int64_t n = 0; n < list->count; n++) {
                const double x = data->change[list->numbers[n] * data->dimension + d] / model->spread[d];
                const double w = 4.0 / (3.0 + (x - mean) * (x - mean) / (scale * scale));
                sum += w * x;
                weights += w;
                square += w * (x - mean) * (x - mean);
            }
            mean = sum / weights;
            scale = fmax(sqrt(square / (double)list->count), 1e-6);
        }
        best[d][0] = (float)mean;
        best[d][1] = (float)log(scale);
    }
}

static selkie_code score_modifier(const sk_splash_data *data, const sk_splash_model *model, sk_splash_split split,
                                  int threads, sk_splash_score *score, selkie_error *error)
{
    sample_list list = {0}, train = {0};
    float constant[3][2], unused[2];
    SK_TRY(list_samples(data, split, 1, &list, error));
    selkie_code code = list_samples(data, SK_SPLIT_TRAIN, 1, &train, error);
    const int n = data->dimension;
    float *row = sk_allocate(NULL, (size_t)model->feature_count * sizeof *row), outputs[6];
    score->nll = score->nll_constant = 0.0;
    if (!code && row) {
        fit_constant(data, model, &train, constant);
        for (int64_t s = 0; s < list.count; s++) {
            copy_inputs(model, data, list.numbers[s], row);
            sk_splash_scale(model, row, 1);
            sk_network_evaluate(model->modifier, row, 1, outputs, threads > 0);
            for (int d = 0; d < n; d++) {
                const float x = data->change[list.numbers[s] * n + d] / model->spread[d];
                score->nll +=
                    (model->law == SK_SPLASH_NORMAL ? sk_learn_normal_loss(x, outputs[d], outputs[n + d], unused)
                                                    : sk_learn_student_loss(x, outputs[d], outputs[n + d], unused)) /
                    (double)list.count;
                score->nll_constant +=
                    sk_learn_student_loss(x, constant[d][0], constant[d][1], unused) / (double)list.count;
            }
        }
    }
    sk_release(NULL, row);
    sk_release(NULL, list.numbers);
    sk_release(NULL, train.numbers);
    return code;
}

selkie_code sk_splash_judge(const sk_splash_data *data, const sk_splash_model *model, sk_splash_split split,
                            int threads, sk_splash_score *score, selkie_error *error)
{
    sample_list list = {0};
    memset(score, 0, sizeof *score);
    SK_TRY(list_samples(data, split, -1, &list, error));
    float *logits = sk_allocate(NULL, (size_t)(list.count + 1) * sizeof *logits);
    scored *samples = sk_allocate(NULL, (size_t)(list.count + 1) * sizeof *samples);
    selkie_code code = logits && samples ? logits_of(data, model, &list, threads, logits, error)
                                         : sk_fail(error, SELKIE_ERROR_MEMORY, "training: no memory");
    for (int64_t n = 0; !code && n < list.count; n++) {
        const int64_t s = list.numbers[n];
        samples[n] = (scored){logits[n], data->weight[s], data->label[s]};
        score->splashes += data->label[s];
    }
    score->count = list.count;
    if (!code && list.count)
        score_classifier(model, samples, list.count, score);
    if (!code && model->modifier && score->splashes)
        code = score_modifier(data, model, split, threads, score, error);
    sk_release(NULL, logits);
    sk_release(NULL, samples);
    sk_release(NULL, list.numbers);
    return code;
}

selkie_code sk_splash_judge_logistic(const sk_splash_data *data, const sk_splash_recipe *recipe,
                                     sk_splash_score score[SK_SPLIT_COUNT], selkie_error *error)
{
    sample_list lists[2] = {{0}, {0}};
    sk_splash_model model = {0};
    shape_model(data, SK_SPLASH_REACH, &model);
    selkie_code code = list_samples(data, SK_SPLIT_TRAIN, 0, &lists[0], error);
    if (!code)
        code = list_samples(data, SK_SPLIT_TRAIN, 1, &lists[1], error);
    if (!code) {
        const double splashes = weight_of(data, &lists[1]), others = weight_of(data, &lists[0]);
        const sk_network_def def = {1, {model.feature_count, 1}, SK_ACTIVATION_GELU, 0, 0.0f};
        model.prior = splashes / (splashes + others);
        measure_inputs(data, &lists[0], &model);
        model.classifier = sk_network_create(&def, recipe->seed);
        trainer t = {.data = data,
                     .recipe = recipe,
                     .model = &model,
                     .network = model.classifier,
                     .positive = &lists[1],
                     .negative = &lists[0]};
        code = model.classifier ? train_network(&t, "logistic", recipe->classifier_steps, NULL, NULL, error)
                                : sk_fail(error, SELKIE_ERROR_MEMORY, "training: no memory");
    }
    if (!code)
        code = calibrate_model(data, recipe, &model, error);
    for (int split = 0; !code && split < SK_SPLIT_COUNT; split++)
        code = sk_splash_judge(data, &model, (sk_splash_split)split, recipe->threads, &score[split], error);
    for (int n = 0; n < 2; n++)
        sk_release(NULL, lists[n].numbers);
    sk_splash_model_free(&model);
    return code;
}

/* --- A threshold on one feature --- */

/* Area under the curve of one feature over every `stride`-th sample of a list; `samples` is scratch. */
static double area_of_feature(const sk_splash_data *data, const sample_list *list, int feature, int64_t stride,
                              scored *samples)
{
    const sk_splash_model model = {.calibration = {1.0f, 0.0f}};
    sk_splash_score score;
    int64_t count = 0;
    for (int64_t n = 0; n < list->count; n += stride) {
        const int64_t at = list->numbers[n];
        samples[count++] =
            (scored){data->features[at * data->feature_count + feature], data->weight[at], data->label[at]};
    }
    score_classifier(&model, samples, count, &score);
    return score.auc;
}

selkie_code sk_splash_judge_threshold(const sk_splash_data *data, double area[SK_SPLIT_COUNT], selkie_error *error)
{
    enum { ENOUGH = 20000 }; /* samples to choose by */
    sample_list lists[SK_SPLIT_COUNT] = {{0}};
    scored *samples = sk_allocate(NULL, (size_t)(data->count + 1) * sizeof *samples);
    selkie_code code = samples ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "training: no memory");
    for (int split = 0; !code && split < SK_SPLIT_COUNT; split++)
        code = list_samples(data, (sk_splash_split)split, -1, &lists[split], error);

    /* The training runs choose the feature. */
    int best = 0;
    double largest = -1.0;
    for (int f = 0; f < data->feature_count && !code; f++) {
        const double found = area_of_feature(data, &lists[0], f, lists[0].count / ENOUGH + 1, samples);
        if (fabs(found - 0.5) > largest) {
            largest = fabs(found - 0.5);
            best = f;
        }
    }
    for (int split = 0; !code && split < SK_SPLIT_COUNT; split++) {
        const double found = area_of_feature(data, &lists[split], best, 1, samples);
        area[split] = fmax(found, 1.0 - found);
    }
    for (int split = 0; split < SK_SPLIT_COUNT; split++)
        sk_release(NULL, lists[split].numbers);
    sk_release(NULL, samples);
    return code;
}
