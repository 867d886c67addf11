/* Small fully connected networks: layers of products with batch normalisation, an activation and dropout; the last
 * layer is the product alone. Training and use give the same bits on any number of threads: a thread owns whole rows of
 * a product, and sums run in a fixed order.
 */
#ifndef SK_LEARN_NETWORK_H
#define SK_LEARN_NETWORK_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

typedef enum sk_activation { SK_ACTIVATION_GELU, SK_ACTIVATION_TANH } sk_activation;

enum { SK_NETWORK_LAYERS = 4 };

typedef struct sk_network_def {
    int layer_count;
    int sizes[SK_NETWORK_LAYERS + 1]; /* inputs, hidden layers, outputs */
    sk_activation activation;
    int normalises; /* batch normalisation of the hidden layers */
    float dropout;  /* of the hidden layers */
} sk_network_def;

/* Where the values of a layer begin in the parameters. */
typedef struct sk_network_layer {
    int inputs, outputs;
    size_t weight;          /* [inputs][outputs] */
    size_t bias;            /* [outputs] */
    size_t gain, offset;    /* [outputs] of the normalisation */
    float *mean, *variance; /* [outputs] running; NULL for the last layer */
} sk_network_layer;

typedef struct sk_network {
    sk_network_def def;
    sk_network_layer layers[SK_NETWORK_LAYERS];
    size_t parameter_count;
    float *parameters, *slopes, *first, *second; /* [parameter_count] the last two: moments of the optimiser */
    uint8_t *decays;                             /* [parameter_count] 1 for weights */
    float *running;                              /* [running_count] */
    size_t running_count;
    int64_t updates;
    struct sk_network_tape *tape; /* values of the last batch; NULL until the first one */
} sk_network;

/* Weights are uniform with the variance 1 / inputs, from the seed. NULL without memory. */
sk_network *sk_network_create(const sk_network_def *def, uint64_t seed);
void sk_network_destroy(sk_network *network);

/* Outputs for `count` rows of inputs, as after training. */
void sk_network_evaluate(const sk_network *network, const float *inputs, int count, float *outputs, int threads);

/* The same from the products of the first layer on, for at most 16 rows. They are overwritten. */
void sk_network_continue(const sk_network *network, float *products, int count, float *outputs);

/* Moves the normalisation into the products, for use only. */
void sk_network_fold(sk_network *network);

/* A batch in training: outputs with the batch's own mean and variance, and dropout by the number of the batch. Then
 * the slopes of the parameters from those of the outputs; `input_slopes` may be NULL. */
selkie_code sk_network_train(sk_network *network, const float *inputs, int count, float *outputs, uint64_t batch,
                             int threads, selkie_error *error);
void sk_network_backward(sk_network *network, const float *output_slopes, float *input_slopes, int threads);
/* A step of AdamW along the slopes. */
void sk_network_update(sk_network *network, float rate, float decay, int threads);

/* The state of a training, for going on with it: so many floats, and the number of updates. */
size_t sk_network_state_count(const sk_network *network);
void sk_network_get_state(const sk_network *network, float *state);
void sk_network_set_state(sk_network *network, const float *state, int64_t updates);

/* Rate of the one-cycle schedule (Smith and Topin 2019): up over 30 % of the steps, down as a cosine. */
double sk_one_cycle(double largest, int64_t step, int64_t steps);

/* result[rows][columns] = left[rows][inner] right[inner][columns] (+ bias[columns] or NULL). */
void sk_learn_product(const float *left, const float *right, const float *bias, int rows, int inner, int columns,
                      float *result, int threads);

#endif
