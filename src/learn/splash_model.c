#include "learn/splash_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/simd.h"
#include "learn/network_kernels.h"
#include "learn/splash_change_kernels.h"
#include "learn/tensors.h"
#include "selkie_config.h"

/* --- Writing --- */

/* Adds the tensors of a network. Weights are turned to [outputs][inputs], as PyTorch has them, into `turned`. */
static float *add_network(sk_tensors *tensors, const sk_network *network, const char *name, float *turned)
{
    char full[SK_TENSOR_NAME];
    for (int l = 0; l < network->def.layer_count; l++) {
        const sk_network_layer *layer = &network->layers[l];
        const int64_t in = layer->inputs, out = layer->outputs;
        for (int64_t o = 0; o < out; o++)
            for (int64_t i = 0; i < in; i++)
                turned[o * in + i] = network->parameters[layer->weight + (size_t)(i * out + o)];
        snprintf(full, sizeof full, "%s.%d.weight", name, l);
        sk_tensors_add(tensors, full, SK_TENSOR_F32, turned, out, in);
        turned += in * out;
        snprintf(full, sizeof full, "%s.%d.bias", name, l);
        sk_tensors_add(tensors, full, SK_TENSOR_F32, network->parameters + layer->bias, out, 0);
        if (l + 1 == network->def.layer_count || !network->def.normalises)
            continue;
        const struct {
            const char *what;
            const float *values;
        } norms[] = {{"weight", network->parameters + layer->gain},
                     {"bias", network->parameters + layer->offset},
                     {"running_mean", layer->mean},
                     {"running_var", layer->variance}};
        for (int n = 0; n < 4; n++) {
            snprintf(full, sizeof full, "%s.norm%d.%s", name, l, norms[n].what);
            sk_tensors_add(tensors, full, SK_TENSOR_F32, norms[n].values, out, 0);
        }
    }
    return turned;
}

static void describe(const sk_splash_model *model, const char *made_by, sk_tensors *tensors)
{
    sk_tensors_add_text(tensors, "model", "selkie splash 2");
    sk_tensors_add_text(tensors, "made_by", "%s", made_by);
    sk_tensors_add_text(tensors, "dimension", "%d", model->dimension);
    sk_tensors_add_text(tensors, "stencil", "%d", 2 * model->reach + 1);
    sk_tensors_add_text(tensors, "velocity_stencil", "%d", 2 * model->velocity_reach + 1);
    sk_tensors_add_text(tensors, "duration_s", "%.9g", model->duration);
    sk_tensors_add_text(tensors, "cell_low_m", "%.9g", model->cell_low);
    sk_tensors_add_text(tensors, "cell_high_m", "%.9g", model->cell_high);
    sk_tensors_add_text(tensors, "bond_low", "%.9g", model->bond_low);
    sk_tensors_add_text(tensors, "bond_high", "%.9g", model->bond_high);
    sk_tensors_add_text(tensors, "prior", "%.9g", model->prior);
    sk_tensors_add_text(tensors, "surface_tension_N_per_m", "%.9g", model->tension);
    sk_tensors_add_text(tensors, "gravity_m_per_s2", "%.9g", model->gravity);
    sk_tensors_add_text(tensors, "law", "%s", model->law == SK_SPLASH_NORMAL ? "normal" : "student3");
    sk_tensors_add_text(tensors, "activation", "%s",
                        model->classifier->def.activation == SK_ACTIVATION_TANH ? "tanh" : "gelu");
}

selkie_code sk_splash_model_encode(const sk_splash_model *model, const char *made_by, char **bytes, size_t *size,
                                   selkie_error *error)
{
    sk_tensors *tensors = sk_allocate_zeroed(NULL, sizeof *tensors);
    float *turned =
        sk_allocate(NULL, (model->classifier->parameter_count + model->modifier->parameter_count) * sizeof(float));
    if (!tensors || !turned) {
        sk_release(NULL, tensors);
        sk_release(NULL, turned);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "model: no memory");
    }
    describe(model, made_by, tensors);
    float *next = add_network(tensors, model->classifier, "classifier", turned);
    add_network(tensors, model->modifier, "modifier", next);
    sk_tensors_add(tensors, "features.mean", SK_TENSOR_F32, model->mean, model->feature_count, 0);
    sk_tensors_add(tensors, "features.scale", SK_TENSOR_F32, model->scale, model->feature_count, 0);
    sk_tensors_add(tensors, "features.largest", SK_TENSOR_F32, model->largest, model->feature_count, 0);
    sk_tensors_add(tensors, "calibration", SK_TENSOR_F32, model->calibration, 2, 0);
    sk_tensors_add(tensors, "change.spread", SK_TENSOR_F32, model->spread, model->dimension, 0);
    const selkie_code code = sk_tensors_encode(tensors, bytes, size, error);
    sk_release(NULL, tensors);
    sk_release(NULL, turned);
    return code;
}

/* --- Reading --- */

void sk_splash_model_find(const char *name, const char *folder, int dimension, char *path, size_t size)
{
    static const char *const places[] = {SELKIE_SOURCE_SCENES, SELKIE_INSTALLED_SCENES};
    const int within = folder && folder[0] && name[0] != '/';
    if (strcmp(name, "default") != 0) {
        snprintf(path, size, "%s%s%s", within ? folder : "", within ? "/" : "", name);
        return;
    }
    for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
        snprintf(path, size, "%s/splash/weights/splash_%dd.safetensors", places[n], dimension);
        if (access(path, R_OK) == 0)
            return;
    }
}

/* A number of the metadata; NaN if it is not there. */
static double number_of(const sk_tensors *tensors, const char *key)
{
    const char *text = sk_tensors_text(tensors, key);
    char *end;
    const double value = text ? strtod(text, &end) : NAN;
    return text && end != text && *end == '\0' ? value : NAN;
}

/* Copies a tensor of floats of exactly this length; 0 if there is none, or a value is not finite. */
static int copy_values(const sk_tensors *tensors, const char *name, int64_t count, float *to)
{
    const sk_tensor *tensor = sk_tensors_find(tensors, name);
    if (!tensor || tensor->type != SK_TENSOR_F32 || tensor->values != count)
        return 0;
    memcpy(to, tensor->data, (size_t)count * sizeof *to);
    for (int64_t n = 0; n < count; n++)
        if (!isfinite(to[n]))
            return 0;
    return 1;
}

static int read_layer(const sk_tensors *tensors, const char *name, int l, sk_network *network)
{
    const sk_network_layer *layer = &network->layers[l];
    const int64_t in = layer->inputs, out = layer->outputs;
    char full[SK_TENSOR_NAME];
    float *turned = network->slopes; /* as long as all parameters */
    snprintf(full, sizeof full, "%s.%d.weight", name, l);
    if (!copy_values(tensors, full, in * out, turned))
        return 0;
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            network->parameters[layer->weight + (size_t)(i * out + o)] = turned[o * in + i];
    snprintf(full, sizeof full, "%s.%d.bias", name, l);
    int good = copy_values(tensors, full, out, network->parameters + layer->bias);
    if (l + 1 == network->def.layer_count || !network->def.normalises)
        return good;
    snprintf(full, sizeof full, "%s.norm%d.weight", name, l);
    good = good && copy_values(tensors, full, out, network->parameters + layer->gain);
    snprintf(full, sizeof full, "%s.norm%d.bias", name, l);
    good = good && copy_values(tensors, full, out, network->parameters + layer->offset);
    snprintf(full, sizeof full, "%s.norm%d.running_mean", name, l);
    good = good && copy_values(tensors, full, out, layer->mean);
    snprintf(full, sizeof full, "%s.norm%d.running_var", name, l);
    return good && copy_values(tensors, full, out, layer->variance);
}

/* NULL if the tensors are not those of such a network. */
static sk_network *read_network(const sk_tensors *tensors, const char *name, int inputs, int outputs)
{
    const char *activation = sk_tensors_text(tensors, "activation");
    sk_network_def def = {.sizes = {inputs}};
    char full[SK_TENSOR_NAME];
    for (int l = 0; l < SK_NETWORK_LAYERS; l++) {
        snprintf(full, sizeof full, "%s.%d.weight", name, l);
        const sk_tensor *weight = sk_tensors_find(tensors, full);
        if (!weight)
            break;
        if (weight->axes != 2 || weight->shape[1] != def.sizes[l] || weight->shape[0] < 1 || weight->shape[0] > 1024)
            return NULL;
        def.sizes[++def.layer_count] = (int)weight->shape[0];
    }
    snprintf(full, sizeof full, "%s.norm0.weight", name);
    def.normalises = sk_tensors_find(tensors, full) != NULL;
    def.activation = activation && strcmp(activation, "tanh") == 0 ? SK_ACTIVATION_TANH : SK_ACTIVATION_GELU;
    if (!def.layer_count || def.sizes[def.layer_count] != outputs)
        return NULL;
    sk_network *network = sk_network_create(&def, 0);
    int good = network != NULL;
    for (int l = 0; good && l < def.layer_count; l++)
        good = read_layer(tensors, name, l, network);
    if (good) {
        sk_network_fold(network);
        return network;
    }
    sk_network_destroy(network);
    return NULL;
}

static int read_description(const sk_tensors *tensors, sk_splash_model *model)
{
    const char *what = sk_tensors_text(tensors, "model"), *law = sk_tensors_text(tensors, "law");
    const double dimension = number_of(tensors, "dimension"), stencil = number_of(tensors, "stencil"),
                 inner = number_of(tensors, "velocity_stencil");
    if (!what || strcmp(what, "selkie splash 2") != 0 || (dimension != 2.0 && dimension != 3.0) ||
        (stencil != 3.0 && stencil != 5.0) || (inner != 3.0 && inner != 5.0) || inner > stencil)
        return 0;
    model->dimension = (int)dimension;
    model->reach = (int)stencil / 2;
    model->velocity_reach = (int)inner / 2;
    model->duration = number_of(tensors, "duration_s");
    model->cell_low = number_of(tensors, "cell_low_m");
    model->cell_high = number_of(tensors, "cell_high_m");
    model->bond_low = number_of(tensors, "bond_low");
    model->bond_high = number_of(tensors, "bond_high");
    model->prior = number_of(tensors, "prior");
    model->tension = number_of(tensors, "surface_tension_N_per_m");
    model->gravity = number_of(tensors, "gravity_m_per_s2");
    model->law = law && strcmp(law, "normal") == 0 ? SK_SPLASH_NORMAL : SK_SPLASH_STUDENT;
    model->cell_count = sk_splash_cell_count(model->dimension, model->reach, model->velocity_reach);
    model->feature_count = model->cell_count + sk_splash_own_count(model->dimension);
    return model->bond_high >= model->bond_low && model->duration > 0.0 && model->cell_high >= model->cell_low &&
           model->cell_low > 0.0 && model->prior > 0.0;
}

/* Moves the scaling of the inputs into the first layer. */
static void fold_scaling(const sk_splash_model *model, sk_network *network)
{
    const sk_network_layer *layer = &network->layers[0];
    float *weights = network->parameters + layer->weight, *bias = network->parameters + layer->bias;
    for (int o = 0; o < layer->outputs; o++) {
        double shift = 0.0;
        for (int i = 0; i < layer->inputs; i++) {
            float *weight = &weights[(size_t)i * (size_t)layer->outputs + (size_t)o];
            *weight /= model->scale[i];
            shift += (double)*weight * model->mean[i];
        }
        bias[o] = (float)(bias[o] - shift);
    }
}

selkie_code sk_splash_model_read(const char *path, sk_splash_model *model, selkie_error *error)
{
    sk_tensors *tensors = sk_allocate(NULL, sizeof *tensors);
    memset(model, 0, sizeof *model);
    if (!tensors)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory", path);
    const selkie_code code = sk_tensors_read(path, tensors, error);
    if (code) {
        sk_release(NULL, tensors);
        return code;
    }
    int good = read_description(tensors, model);
    const int n = model->feature_count;
    good = good && copy_values(tensors, "features.mean", n, model->mean) &&
           copy_values(tensors, "features.scale", n, model->scale) &&
           copy_values(tensors, "features.largest", n, model->largest) &&
           copy_values(tensors, "calibration", 2, model->calibration) &&
           copy_values(tensors, "change.spread", model->dimension, model->spread);
    if (good) {
        model->classifier = read_network(tensors, "classifier", n, 1);
        model->modifier = read_network(tensors, "modifier", n, 2 * model->dimension);
        good = model->classifier && model->modifier;
    }
    sk_tensors_free(tensors);
    sk_release(NULL, tensors);
    if (good) {
        fold_scaling(model, model->classifier);
        fold_scaling(model, model->modifier);
        for (int f = 0; f < n; f++) {
            model->mean[f] = 0.0f;
            model->scale[f] = 1.0f;
        }
        return SELKIE_OK;
    }
    sk_splash_model_free(model);
    return sk_fail(error, SELKIE_ERROR_INPUT, "%s: holds no model of splashes, or one that is not whole", path);
}

void sk_splash_model_free(sk_splash_model *model)
{
    sk_network_destroy(model->classifier);
    sk_network_destroy(model->modifier);
    memset(model, 0, sizeof *model);
}

/* --- Use --- */

void sk_splash_begin_cells(const sk_splash_model *model, const float *cells, int count, float *products)
{
    const sk_network *network = model->classifier;
    const sk_network_layer *layer = &network->layers[0];
    sk_learn_product(cells, network->parameters + layer->weight, network->parameters + layer->bias, count,
                     model->cell_count, layer->outputs, products, 1);
}

void sk_splash_logits(const sk_splash_model *model, const float *products, const int *cell, const float *own, int count,
                      float *logits)
{
    _Alignas(64) float rows[SK_SPLASH_BATCH * SK_SPLASH_WIDEST];
    const sk_network *network = model->classifier;
    const sk_network_layer *layer = &network->layers[0];
    const int width = layer->outputs, more = model->feature_count - model->cell_count;
    const float *weights = network->parameters + layer->weight + (size_t)model->cell_count * (size_t)width;
    for (int r = 0; r < count; r++) {
        const float *start = products + (size_t)cell[r] * (size_t)width, *values = own + (size_t)r * (size_t)more;
        float *row = rows + (size_t)r * (size_t)width;
        int o = 0;
        for (; o + 8 <= width; o += 8) {
            f8 sum = f8_load(start + o);
            for (int k = 0; k < more; k++)
                sum += values[k] * f8_load(weights + (size_t)k * (size_t)width + (size_t)o);
            f8_store(row + o, sum);
        }
        for (; o < width; o++) {
            float sum = start[o];
            for (int k = 0; k < more; k++)
                sum += values[k] * weights[(size_t)k * (size_t)width + (size_t)o];
            row[o] = sum;
        }
    }
    sk_network_continue(network, rows, count, logits);
}

void sk_splash_scale(const sk_splash_model *model, float *features, int count)
{
    const int n = model->feature_count;
    for (int r = 0; r < count; r++)
        for (int f = 0; f < n; f++) {
            float *value = &features[(size_t)r * (size_t)n + (size_t)f];
            *value = (*value - model->mean[f]) / model->scale[f];
        }
}

float sk_splash_probability(const sk_splash_model *model, float logit)
{
    return sk_learn_calibrated(model->calibration, logit);
}

float sk_splash_logit_of(const sk_splash_model *model, float p)
{
    return (logf(p / (1.0f - p)) - model->calibration[1]) / model->calibration[0];
}

void sk_splash_change(const sk_splash_model *model, const float *outputs, const float random[3], float change[3])
{
    const int n = model->dimension, normal = model->law == SK_SPLASH_NORMAL;
    for (int d = 0; d < n; d++)
        change[d] = sk_splash_change_along(normal, model->spread[d], outputs[d], outputs[n + d], random[d]);
}
