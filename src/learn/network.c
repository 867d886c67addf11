#include "learn/network.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/network_kernels.h"

#define NORM_EPSILON 1e-5f
#define RUNNING_SHARE 0.1f

/* Values of the last batch, a layer each. */
typedef struct sk_network_tape {
    int capacity, count;
    uint64_t batch;
    float *input[SK_NETWORK_LAYERS];     /* [count][inputs] of the layer */
    float *normal[SK_NETWORK_LAYERS];    /* [count][outputs] normalised */
    float *before[SK_NETWORK_LAYERS];    /* [count][outputs] before the activation */
    float *deviation[SK_NETWORK_LAYERS]; /* [outputs] of the batch */
    float *slope, *other, *turned;       /* scratch: slopes of a layer, and a transposed matrix */
    float *memory;
} sk_network_tape;

/* --- Life --- */

static size_t place_layers(sk_network *network, size_t *running)
{
    size_t at = 0;
    *running = 0;
    for (int l = 0; l < network->def.layer_count; l++) {
        sk_network_layer *layer = &network->layers[l];
        const int hidden = l + 1 < network->def.layer_count;
        layer->inputs = network->def.sizes[l];
        layer->outputs = network->def.sizes[l + 1];
        layer->weight = at;
        at += (size_t)layer->inputs * (size_t)layer->outputs;
        layer->bias = at;
        layer->gain = at + (size_t)layer->outputs;
        layer->offset = at + 2 * (size_t)layer->outputs;
        at += (size_t)layer->outputs * (hidden && network->def.normalises ? 3 : 1);
        *running += hidden ? 2 * (size_t)layer->outputs : 0;
    }
    return at;
}

static void start_values(sk_network *network, uint64_t seed)
{
    float *running = network->running;
    for (int l = 0; l < network->def.layer_count; l++) {
        sk_network_layer *layer = &network->layers[l];
        const size_t weights = (size_t)layer->inputs * (size_t)layer->outputs;
        const float width = sqrtf(3.0f / (float)layer->inputs);
        for (size_t n = 0; n < weights; n++) {
            network->parameters[layer->weight + n] =
                width * (2.0f * sk_random_float(seed, layer->weight + n, 7) - 1.0f);
            network->decays[layer->weight + n] = 1;
        }
        if (l + 1 == network->def.layer_count)
            continue;
        layer->mean = running;
        layer->variance = running + layer->outputs;
        running += 2 * layer->outputs;
        for (int o = 0; o < layer->outputs; o++) {
            layer->variance[o] = 1.0f;
            if (network->def.normalises)
                network->parameters[layer->gain + (size_t)o] = 1.0f;
        }
    }
}

sk_network *sk_network_create(const sk_network_def *def, uint64_t seed)
{
    sk_network *network = sk_allocate_zeroed(NULL, sizeof *network);
    if (!network)
        return NULL;
    network->def = *def;
    const size_t count = network->parameter_count = place_layers(network, &network->running_count);
    network->parameters = sk_allocate_zeroed(NULL, 4 * count * sizeof(float));
    network->decays = sk_allocate_zeroed(NULL, count);
    network->running = sk_allocate_zeroed(NULL, (network->running_count + 1) * sizeof(float));
    if (!network->parameters || !network->decays || !network->running) {
        sk_network_destroy(network);
        return NULL;
    }
    network->slopes = network->parameters + count;
    network->first = network->slopes + count;
    network->second = network->first + count;
    start_values(network, seed);
    return network;
}

void sk_network_destroy(sk_network *network)
{
    if (!network)
        return;
    if (network->tape)
        sk_release(NULL, network->tape->memory);
    sk_release(NULL, network->tape);
    sk_release(NULL, network->parameters);
    sk_release(NULL, network->decays);
    sk_release(NULL, network->running);
    sk_release(NULL, network);
}

/* Parameters, slopes and both moments are one array. */
size_t sk_network_state_count(const sk_network *network)
{
    return 4 * network->parameter_count + network->running_count;
}

void sk_network_get_state(const sk_network *network, float *state)
{
    memcpy(state, network->parameters, 4 * network->parameter_count * sizeof *state);
    memcpy(state + 4 * network->parameter_count, network->running, network->running_count * sizeof *state);
}

void sk_network_set_state(sk_network *network, const float *state, int64_t updates)
{
    memcpy(network->parameters, state, 4 * network->parameter_count * sizeof *state);
    memcpy(network->running, state + 4 * network->parameter_count, network->running_count * sizeof *state);
    network->updates = updates;
}

/* --- Use --- */

static float activate(sk_activation activation, float x)
{
    return activation == SK_ACTIVATION_GELU ? sk_learn_gelu(x) : sk_learn_tanh(x);
}

static void activate_row(sk_activation activation, const float *from, int count, float *to)
{
    if (activation == SK_ACTIVATION_GELU)
        for (int n = 0; n < count; n++)
            to[n] = sk_learn_gelu(from[n]);
    else
        for (int n = 0; n < count; n++)
            to[n] = sk_learn_tanh(from[n]);
}

enum { EVALUATED = 16, WIDEST = 1024 }; /* rows at a time, outputs of a layer */

/* Normalisation and activation of the products of a hidden layer, in place. */
static void finish_layer(const sk_network *network, int l, int rows, float *values)
{
    const sk_network_layer *layer = &network->layers[l];
    const int n = layer->outputs;
    for (int r = 0; r < rows && network->def.normalises; r++) {
        float *row = values + (size_t)r * (size_t)n;
        for (int o = 0; o < n; o++)
            row[o] = (row[o] - layer->mean[o]) / sqrtf(layer->variance[o] + NORM_EPSILON) *
                         network->parameters[layer->gain + (size_t)o] +
                     network->parameters[layer->offset + (size_t)o];
    }
    activate_row(network->def.activation, values, rows * n, values);
}

/* A few rows through the layers from `first` on; `values` holds the rows of two layers. */
static void evaluate_rows(const sk_network *network, int first, const float *inputs, int rows, float *const values[2],
                          float *outputs)
{
    const float *from = inputs;
    for (int l = first; l < network->def.layer_count; l++) {
        const sk_network_layer *layer = &network->layers[l];
        const int last = l + 1 == network->def.layer_count;
        float *to = last ? outputs : values[l % 2];
        sk_learn_product(from, network->parameters + layer->weight, network->parameters + layer->bias, rows,
                         layer->inputs, layer->outputs, to, 1);
        if (!last)
            finish_layer(network, l, rows, to);
        from = to;
    }
}

void sk_network_evaluate(const sk_network *network, const float *inputs, int count, float *outputs, int threads)
{
    const int in = network->def.sizes[0], out = network->def.sizes[network->def.layer_count];
    const int batches = (count + EVALUATED - 1) / EVALUATED;
    (void)threads;
#pragma omp parallel num_threads(threads) if (threads > 1 && batches > 1)
    {
        _Alignas(64) float first[EVALUATED * WIDEST], second[EVALUATED * WIDEST];
        float *const values[2] = {first, second};
#pragma omp for schedule(static)
        for (int b = 0; b < batches; b++) {
            const int begin = b * EVALUATED, rows = count - begin < EVALUATED ? count - begin : EVALUATED;
            evaluate_rows(network, 0, inputs + (size_t)begin * (size_t)in, rows, values,
                          outputs + (size_t)begin * (size_t)out);
        }
    }
}

void sk_network_continue(const sk_network *network, float *products, int count, float *outputs)
{
    _Alignas(64) float other[EVALUATED * WIDEST];
    float *const values[2] = {products, other}; /* of even and odd layers */
    finish_layer(network, 0, count, products);
    evaluate_rows(network, 1, products, count, values, outputs);
}

void sk_network_fold(sk_network *network)
{
    float *values = network->parameters;
    for (int l = 0; l + 1 < network->def.layer_count && network->def.normalises; l++) {
        const sk_network_layer *layer = &network->layers[l];
        const size_t n = (size_t)layer->outputs;
        for (size_t o = 0; o < n; o++) {
            const float factor = values[layer->gain + o] / sqrtf(layer->variance[o] + NORM_EPSILON);
            for (size_t i = 0; i < (size_t)layer->inputs; i++)
                values[layer->weight + i * n + o] *= factor;
            values[layer->bias + o] = (values[layer->bias + o] - layer->mean[o]) * factor + values[layer->offset + o];
        }
    }
    network->def.normalises = 0;
}

/* --- Training --- */

static selkie_code reserve_tape(sk_network *network, int count, selkie_error *error)
{
    if (network->tape && network->tape->capacity >= count)
        return SELKIE_OK;
    size_t rows = (size_t)count, values = 0, widest = 0, largest = 0;
    for (int l = 0; l < network->def.layer_count; l++) {
        const sk_network_layer *layer = &network->layers[l];
        const size_t in = (size_t)layer->inputs, out = (size_t)layer->outputs, wide = in > out ? in : out;
        values += rows * in + 2 * rows * out + out;
        widest = wide > widest ? wide : widest;
        largest = in * out > largest ? in * out : largest;
    }
    const size_t turned = rows * widest > largest ? rows * widest : largest;
    sk_network_tape *tape = network->tape ? network->tape : sk_allocate_zeroed(NULL, sizeof *tape);
    if (!tape)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "network: no memory");
    network->tape = tape;
    sk_release(NULL, tape->memory);
    tape->capacity = 0;
    float *at = tape->memory = sk_allocate(NULL, (values + 2 * rows * widest + turned) * sizeof(float));
    if (!at)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "network: no memory for a batch of %d", count);
    for (int l = 0; l < network->def.layer_count; l++) {
        const sk_network_layer *layer = &network->layers[l];
        tape->input[l] = at;
        at += rows * (size_t)layer->inputs;
        tape->normal[l] = at;
        at += rows * (size_t)layer->outputs;
        tape->before[l] = at;
        at += rows * (size_t)layer->outputs;
        tape->deviation[l] = at;
        at += layer->outputs;
    }
    tape->slope = at;
    tape->other = at + rows * widest;
    tape->turned = at + 2 * rows * widest;
    tape->capacity = count;
    return SELKIE_OK;
}

/* Mean over the rows of each column of a[r][c] (b[r][c] or 1), in double. */
static void column_means(const float *a, const float *b, int rows, int columns, double *means, int threads)
{
    (void)threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int first = 0; first < columns; first += 16) {
        const int count = columns - first < 16 ? columns - first : 16;
        double sums[16] = {0.0};
        for (int r = 0; r < rows; r++) {
            const size_t at = (size_t)r * (size_t)columns + (size_t)first;
            for (int c = 0; c < count; c++)
                sums[c] += (double)a[at + (size_t)c] * (b ? (double)b[at + (size_t)c] : 1.0);
        }
        for (int c = 0; c < count; c++)
            means[first + c] = sums[c] / rows;
    }
}

/* Normalises the product of a layer by the batch's mean and variance, in place, and keeps running means. */
static void normalise(sk_network *network, int l, int threads)
{
    const sk_network_layer *layer = &network->layers[l];
    sk_network_tape *tape = network->tape;
    const int rows = tape->count, n = layer->outputs;
    double mean[1024], square[1024];
    column_means(tape->normal[l], NULL, rows, n, mean, threads);
    column_means(tape->normal[l], tape->normal[l], rows, n, square, threads);
    for (int o = 0; o < n; o++) {
        const double variance = fmax(square[o] - mean[o] * mean[o], 0.0);
        const double unbiased = rows > 1 ? variance * rows / (rows - 1) : variance;
        layer->mean[o] += RUNNING_SHARE * ((float)mean[o] - layer->mean[o]);
        layer->variance[o] += RUNNING_SHARE * ((float)unbiased - layer->variance[o]);
        tape->deviation[l][o] = sqrtf((float)variance + NORM_EPSILON);
    }
    const float *gain = network->parameters + layer->gain, *offset = network->parameters + layer->offset;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int r = 0; r < rows; r++) {
        float *normal = tape->normal[l] + (size_t)r * (size_t)n, *before = tape->before[l] + (size_t)r * (size_t)n;
        for (int o = 0; o < n; o++) {
            normal[o] = (normal[o] - (float)mean[o]) / tape->deviation[l][o];
            before[o] = gain[o] * normal[o] + offset[o];
        }
    }
}

/* 0, or the factor of a value that dropout keeps. */
static float kept(const sk_network *network, int l, size_t index)
{
    const float share = network->def.dropout;
    if (!(share > 0.0f))
        return 1.0f;
    return sk_random_float(network->tape->batch, index, (uint64_t)l) < share ? 0.0f : 1.0f / (1.0f - share);
}

selkie_code sk_network_train(sk_network *network, const float *inputs, int count, float *outputs, uint64_t batch,
                             int threads, selkie_error *error)
{
    SK_TRY(reserve_tape(network, count, error));
    sk_network_tape *tape = network->tape;
    tape->count = count;
    tape->batch = batch;
    memcpy(tape->input[0], inputs, (size_t)count * (size_t)network->def.sizes[0] * sizeof *inputs);
    for (int l = 0; l < network->def.layer_count; l++) {
        const sk_network_layer *layer = &network->layers[l];
        const int last = l + 1 == network->def.layer_count, n = layer->outputs;
        sk_learn_product(tape->input[l], network->parameters + layer->weight, network->parameters + layer->bias, count,
                         layer->inputs, n, last ? outputs : tape->normal[l], threads);
        if (last)
            break;
        if (network->def.normalises)
            normalise(network, l, threads);
        else
            memcpy(tape->before[l], tape->normal[l], (size_t)count * (size_t)n * sizeof(float));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int r = 0; r < count; r++)
            for (int o = 0; o < n; o++) {
                const size_t at = (size_t)r * (size_t)n + (size_t)o;
                tape->input[l + 1][at] = activate(network->def.activation, tape->before[l][at]) * kept(network, l, at);
            }
    }
    return SELKIE_OK;
}

static void transpose(const float *from, int rows, int columns, float *to)
{
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < rows; r++)
            to[(size_t)c * (size_t)rows + (size_t)r] = from[(size_t)r * (size_t)columns + (size_t)c];
}

/* From slopes after the activation and dropout of hidden layer l to slopes of its product, in place. */
static void pass_activation(sk_network *network, int l, float *slope, int threads)
{
    const sk_network_layer *layer = &network->layers[l];
    const sk_network_tape *tape = network->tape;
    const int rows = tape->count, n = layer->outputs, gelu = network->def.activation == SK_ACTIVATION_GELU;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < n; o++) {
            const size_t at = (size_t)r * (size_t)n + (size_t)o;
            const float x = tape->before[l][at], t = gelu ? 0.0f : sk_learn_tanh(x);
            slope[at] *= kept(network, l, at) * (gelu ? sk_learn_gelu_slope(x) : 1.0f - t * t);
        }
    if (!network->def.normalises)
        return;

    /* Through the normalisation (Ioffe and Szegedy 2015). */
    double mean[1024], product[1024];
    column_means(slope, NULL, rows, n, mean, threads);
    column_means(slope, tape->normal[l], rows, n, product, threads);
    const float *gain = network->parameters + layer->gain;
    for (int o = 0; o < n; o++) {
        network->slopes[layer->gain + (size_t)o] = (float)(product[o] * rows);
        network->slopes[layer->offset + (size_t)o] = (float)(mean[o] * rows);
    }
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < n; o++) {
            const size_t at = (size_t)r * (size_t)n + (size_t)o;
            slope[at] = gain[o] / tape->deviation[l][o] *
                        (slope[at] - (float)mean[o] - tape->normal[l][at] * (float)product[o]);
        }
}

void sk_network_backward(sk_network *network, const float *output_slopes, float *input_slopes, int threads)
{
    sk_network_tape *tape = network->tape;
    const int rows = tape->count, outputs = network->def.sizes[network->def.layer_count];
    float *slope = tape->slope, *other = tape->other;
    memcpy(slope, output_slopes, (size_t)rows * (size_t)outputs * sizeof *slope);
    for (int l = network->def.layer_count - 1; l >= 0; l--) {
        const sk_network_layer *layer = &network->layers[l];
        const int n = layer->outputs;
        double mean[1024];
        if (l + 1 < network->def.layer_count)
            pass_activation(network, l, slope, threads);

        /* Slopes of weights and biases. */
        transpose(tape->input[l], rows, layer->inputs, tape->turned);
        sk_learn_product(tape->turned, slope, NULL, layer->inputs, rows, n, network->slopes + layer->weight, threads);
        column_means(slope, NULL, rows, n, mean, threads);
        for (int o = 0; o < n; o++)
            network->slopes[layer->bias + (size_t)o] = (float)(mean[o] * rows);

        /* Slopes of the inputs. */
        if (l == 0 && !input_slopes)
            break;
        transpose(network->parameters + layer->weight, layer->inputs, n, tape->turned);
        sk_learn_product(slope, tape->turned, NULL, rows, n, layer->inputs, l ? other : input_slopes, threads);
        float *swap = slope;
        slope = other;
        other = swap;
    }
}

void sk_network_update(sk_network *network, float rate, float decay, int threads)
{
    const int64_t t = ++network->updates;
    const sk_learn_adam adam = {rate, decay, (float)(1.0 - pow(0.9, (double)t)), (float)(1.0 - pow(0.999, (double)t))};
    (void)threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (size_t n = 0; n < network->parameter_count; n++)
        network->parameters[n] = sk_learn_adam_value(&adam, network->parameters[n], network->slopes[n],
                                                     &network->first[n], &network->second[n], network->decays[n]);
}

double sk_one_cycle(double largest, int64_t step, int64_t steps)
{
    const double at = (double)step / (double)(steps > 1 ? steps - 1 : 1), top = 0.3, low = 1.0 / 25.0, end = 1e-4;
    if (at < top)
        return largest * (low + (1.0 - low) * 0.5 * (1.0 - cos(M_PI * at / top)));
    return largest * (end + (1.0 - end) * 0.5 * (1.0 + cos(M_PI * (at - top) / (1.0 - top))));
}
