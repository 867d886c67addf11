/* Networks: slopes against finite differences, bits over threads, learning, and the files of weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/network.h"
#include "learn/network_kernels.h"
#include "learn/tensors.h"

enum { ROWS = 24, INPUTS = 6, OUTPUTS = 4 };

static void fill_random(float *values, size_t count, uint64_t seed)
{
    for (size_t n = 0; n < count; n++)
        values[n] = 2.0f * sk_random_float(seed, n, 0) - 1.0f;
}

static sk_network *small_network(sk_activation activation, float dropout)
{
    const sk_network_def def = {3, {INPUTS, 10, 8, OUTPUTS}, activation, 1, dropout};
    sk_network *network = sk_network_create(&def, 11);
    assert_non_null(network);
    return network;
}

/* A sum over the outputs of a batch with fixed weights, and its slopes. */
static double weighted_outputs(sk_network *network, const float *inputs, const float *weights)
{
    float outputs[ROWS * OUTPUTS];
    selkie_error error = {0};
    assert_int_equal(sk_network_train(network, inputs, ROWS, outputs, 5, 1, &error), SELKIE_OK);
    double sum = 0.0;
    for (int n = 0; n < ROWS * OUTPUTS; n++)
        sum += (double)outputs[n] * weights[n];
    return sum;
}

/* Central differences of floats: a step of 1e-2 leaves about 1e-4 of rounding and 1e-4 of curvature. */
static void slopes_are_derivatives(void **state)
{
    (void)state;
    for (int activation = 0; activation < 2; activation++) {
        sk_network *network = small_network((sk_activation)activation, 0.2f);
        float inputs[ROWS * INPUTS], weights[ROWS * OUTPUTS], input_slopes[ROWS * INPUTS];
        fill_random(inputs, ROWS * INPUTS, 1);
        fill_random(weights, ROWS * OUTPUTS, 2);
        weighted_outputs(network, inputs, weights);
        sk_network_backward(network, weights, input_slopes, 1);
        double worst = 0.0, largest = 0.0;
        float *slopes = malloc(network->parameter_count * sizeof *slopes);
        memcpy(slopes, network->slopes, network->parameter_count * sizeof *slopes);
        for (size_t n = 0; n < network->parameter_count + ROWS * INPUTS; n++) {
            const int is_input = n >= network->parameter_count;
            float *value = is_input ? &inputs[n - network->parameter_count] : &network->parameters[n];
            const float before = *value, step = 1e-2f;
            *value = before + step;
            const double up = weighted_outputs(network, inputs, weights);
            *value = before - step;
            const double down = weighted_outputs(network, inputs, weights);
            *value = before;
            const double slope = is_input ? input_slopes[n - network->parameter_count] : slopes[n];
            worst = fmax(worst, fabs((up - down) / (2.0 * step) - slope));
            largest = fmax(largest, fabs(slope));
        }
        print_message("activation %d: largest slope %g, error %g\n", activation, largest, worst);
        assert_true(worst < 2e-3 * largest);
        free(slopes);
        sk_network_destroy(network);
    }
}

static void losses_have_slopes(void **state)
{
    (void)state;
    const float h = 1e-2f;
    for (int n = 0; n < 20; n++) {
        const float z = 0.31f * (float)(n - 10), s = 0.1f * (float)(n - 9), y = 0.7f;
        float d[2], unused[2];
        sk_learn_logistic_loss(z, (float)(n % 2), d);
        assert_float_equal(d[0],
                           (sk_learn_logistic_loss(z + h, (float)(n % 2), unused) -
                            sk_learn_logistic_loss(z - h, (float)(n % 2), unused)) /
                               (2 * h),
                           1e-3f);
        sk_learn_student_loss(y, z, s, d);
        assert_float_equal(
            d[0], (sk_learn_student_loss(y, z + h, s, unused) - sk_learn_student_loss(y, z - h, s, unused)) / (2 * h),
            3e-3f);
        assert_float_equal(
            d[1], (sk_learn_student_loss(y, z, s + h, unused) - sk_learn_student_loss(y, z, s - h, unused)) / (2 * h),
            3e-3f);
        sk_learn_normal_loss(y, z, s, d);
        assert_float_equal(
            d[0], (sk_learn_normal_loss(y, z + h, s, unused) - sk_learn_normal_loss(y, z - h, s, unused)) / (2 * h),
            3e-3f);
        assert_float_equal(
            d[1], (sk_learn_normal_loss(y, z, s + h, unused) - sk_learn_normal_loss(y, z, s - h, unused)) / (2 * h),
            3e-3f);
    }
    for (int n = -100; n <= 100; n++)
        assert_float_equal(sk_learn_tanh(0.1f * (float)n), tanhf(0.1f * (float)n), 1e-6f);
}

/* Learns the sign of a product, which no linear model can; the same bits on 1 and 3 threads. */
static void learns_on_any_threads(void **state)
{
    (void)state;
    enum { BATCH = 128, STEPS = 300 };
    float after[2][64];
    double loss = 0.0;
    for (int run = 0; run < 2; run++) {
        const sk_network_def def = {3, {2, 32, 16, 1}, SK_ACTIVATION_GELU, 1, 0.05f};
        sk_network *network = sk_network_create(&def, 3);
        selkie_error error = {0};
        for (int step = 0; step < STEPS; step++) {
            float inputs[2 * BATCH], outputs[BATCH], slopes[BATCH];
            fill_random(inputs, 2 * BATCH, 100 + (uint64_t)step);
            assert_int_equal(sk_network_train(network, inputs, BATCH, outputs, (uint64_t)step, run ? 3 : 1, &error),
                             SELKIE_OK);
            loss = 0.0;
            for (int n = 0; n < BATCH; n++) {
                const float label = inputs[2 * n] * inputs[2 * n + 1] > 0.0f;
                loss += sk_learn_logistic_loss(outputs[n], label, &slopes[n]) / BATCH;
                slopes[n] /= BATCH;
            }
            sk_network_backward(network, slopes, NULL, run ? 3 : 1);
            sk_network_update(network, (float)sk_one_cycle(1e-2, step, STEPS), 0.01f, run ? 3 : 1);
        }
        memcpy(after[run], network->parameters, sizeof after[run]);

        /* Use after training, also folded. */
        float inputs[200], plain[100], folded[100];
        fill_random(inputs, 200, 9);
        sk_network_evaluate(network, inputs, 100, plain, run ? 3 : 1);
        sk_network_fold(network);
        sk_network_evaluate(network, inputs, 100, folded, 1);
        int right = 0;
        for (int n = 0; n < 100; n++) {
            assert_float_equal(plain[n], folded[n], 1e-3f);
            right += (plain[n] > 0.0f) == (inputs[2 * n] * inputs[2 * n + 1] > 0.0f);
        }
        assert_true(right >= 90);
        sk_network_destroy(network);
    }
    assert_true(loss < 0.25);
    assert_memory_equal(after[0], after[1], sizeof after[0]);
}

static void weights_in_files(void **state)
{
    (void)state;
    const float weights[6] = {1, 2, 3, 4, 5, 6};
    const uint8_t labels[3] = {1, 0, 1};
    sk_tensors tensors = {0}, back;
    char *bytes;
    size_t size;
    selkie_error error = {0};
    sk_tensors_add(&tensors, "weight", SK_TENSOR_F32, weights, 2, 3);
    sk_tensors_add(&tensors, "label", SK_TENSOR_U8, labels, 3, 0);
    sk_tensors_add_text(&tensors, "stencil", "%d", 5);
    assert_int_equal(sk_tensors_encode(&tensors, &bytes, &size, &error), SELKIE_OK);

    char path[] = "/tmp/selkie-test-tensors-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    for (size_t cut = 0; cut < size; cut++) { /* every shorter file is refused */
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        fwrite(bytes, 1, cut, out);
        fclose(out);
        assert_int_equal(sk_tensors_read(path, &back, &error), SELKIE_ERROR_INPUT);
        assert_non_null(strstr(error.message, path));
        cut += cut > 40 && cut + 40 < size ? 6 : 0;
    }
    FILE *out = fopen(path, "wb");
    fwrite(bytes, 1, size, out);
    fclose(out);
    assert_int_equal(sk_tensors_read(path, &back, &error), SELKIE_OK);
    assert_int_equal(back.count, 2);
    assert_string_equal(sk_tensors_text(&back, "stencil"), "5");
    const sk_tensor *weight = sk_tensors_find(&back, "weight");
    assert_int_equal(weight->shape[1], 3);
    assert_memory_equal(weight->data, weights, sizeof weights);
    assert_memory_equal(sk_tensors_find(&back, "label")->data, labels, sizeof labels);
    sk_tensors_free(&back);

    /* one that goes on behind its tensors */
    out = fopen(path, "ab");
    fputc('x', out);
    fclose(out);
    assert_int_equal(sk_tensors_read(path, &back, &error), SELKIE_ERROR_INPUT);

    /* a foreign file */
    out = fopen(path, "wb");
    fputs("{\"a scene\": \"is no file of weights\"}", out);
    fclose(out);
    assert_int_equal(sk_tensors_read(path, &back, &error), SELKIE_ERROR_INPUT);
    sk_release(NULL, bytes);
    unlink(path);
}

/* Adds the weights of a network as [outputs][inputs], turned into `room`. Returns the rest of the room. */
static float *add_weights(sk_tensors *tensors, const sk_network *network, const char *when, float *room)
{
    char name[SK_TENSOR_NAME];
    for (int l = 0; l < network->def.layer_count; l++) {
        const sk_network_layer *layer = &network->layers[l];
        const int in = layer->inputs, out = layer->outputs, last = l + 1 == network->def.layer_count;
        for (int o = 0; o < out; o++)
            for (int i = 0; i < in; i++)
                room[o * in + i] = network->parameters[layer->weight + (size_t)(i * out + o)];
        snprintf(name, sizeof name, "%s.%d.weight", when, l);
        sk_tensors_add(tensors, name, SK_TENSOR_F32, room, out, in);
        room += in * out;
        const size_t places[3] = {layer->bias, layer->gain, layer->offset};
        static const char *const names[3] = {"%s.%d.bias", "%s.norm%d.weight", "%s.norm%d.bias"};
        for (int n = 0; n < (last ? 1 : 3); n++) {
            memcpy(room, network->parameters + places[n], (size_t)out * sizeof *room);
            snprintf(name, sizeof name, names[n], when, l);
            sk_tensors_add(tensors, name, SK_TENSOR_F32, room, out, 0);
            room += out;
        }
        for (int n = 0; n < 2 && !last; n++) {
            memcpy(room, n ? layer->variance : layer->mean, (size_t)out * sizeof *room);
            snprintf(name, sizeof name, n ? "%s.norm%d.running_var" : "%s.norm%d.running_mean", when, l);
            sk_tensors_add(tensors, name, SK_TENSOR_F32, room, out, 0);
            room += out;
        }
    }
    return room;
}

/* Two steps of training. With SELKIE_STEP_FILE they are written, and tests/check_torch.py repeats them in PyTorch. */
static void steps_for_torch(void **state)
{
    (void)state;
    static float room[2000];
    const sk_network_def def = {3, {INPUTS, 10, 8, 1}, SK_ACTIVATION_GELU, 1, 0.0f};
    sk_network *network = sk_network_create(&def, 5);
    float inputs[ROWS * INPUTS], labels[ROWS], outputs[ROWS], slopes[ROWS];
    sk_tensors *tensors = calloc(1, sizeof *tensors);
    selkie_error error = {0};
    fill_random(inputs, ROWS * INPUTS, 21);
    float *next = add_weights(tensors, network, "before", room);
    for (int step = 0; step < 2; step++) {
        assert_int_equal(sk_network_train(network, inputs, ROWS, outputs, 1, 1, &error), SELKIE_OK);
        for (int n = 0; n < ROWS; n++) {
            labels[n] = (float)(n % 3 == 0);
            sk_learn_logistic_loss(outputs[n], labels[n], &slopes[n]);
            slopes[n] /= ROWS;
        }
        sk_network_backward(network, slopes, NULL, 1);
        sk_network_update(network, 1e-2f, 0.02f, 1);
    }
    add_weights(tensors, network, "after", next);
    sk_tensors_add(tensors, "inputs", SK_TENSOR_F32, inputs, ROWS, INPUTS);
    sk_tensors_add(tensors, "labels", SK_TENSOR_F32, labels, ROWS, 0);
    const char *path = getenv("SELKIE_STEP_FILE");
    char *bytes;
    size_t size;
    assert_int_equal(sk_tensors_encode(tensors, &bytes, &size, &error), SELKIE_OK);
    FILE *file = path ? fopen(path, "wb") : NULL;
    if (file) {
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        fclose(file);
    }
    sk_release(NULL, bytes);
    free(tensors);
    sk_network_destroy(network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slopes_are_derivatives), cmocka_unit_test(losses_have_slopes),
                                       cmocka_unit_test(learns_on_any_threads), cmocka_unit_test(weights_in_files),
                                       cmocka_unit_test(steps_for_torch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
