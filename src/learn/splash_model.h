/* A trained model of splashes (Um et al. 2018): a classifier and a modifier, with what their inputs were. */
#ifndef SK_LEARN_SPLASH_MODEL_H
#define SK_LEARN_SPLASH_MODEL_H

#include "learn/network.h"
#include "learn/splash_kernels.h"

typedef enum sk_splash_law { SK_SPLASH_STUDENT, SK_SPLASH_NORMAL } sk_splash_law;

typedef struct sk_splash_model {
    int dimension, reach, velocity_reach; /* cells of the stencils on each side of their middle */
    int cell_count, feature_count;        /* features of a cell; those and the candidate's own behind them */
    double duration;                      /* s    within which a splash forms */
    double cell_low, cell_high;           /* m cells of the coarse grids that it was trained for */
    double bond_low, bond_high;           /* Bond numbers of these */
    double prior;                         /*      share of splashes among the candidates */
    double tension, gravity;              /* N/m, m/s2 of the training runs */
    sk_splash_law law;
    float calibration[2];                                      /*      calibrated logit = [0] x logit + [1] */
    float mean[SK_SPLASH_FEATURES], scale[SK_SPLASH_FEATURES]; /* of the inputs: (feature - mean) / scale */
    float largest[SK_SPLASH_FEATURES];                         /* of |feature| in training */
    float spread[3]; /*      of the changes of velocity: targets are change / spread */
    sk_network *classifier, *modifier;
} sk_splash_model;

/* The file of a model: a path from a folder (NULL: as it is), or for "default" the one of the dimension that comes with
 * the program, which need not exist. */
void sk_splash_model_find(const char *name, const char *folder, int dimension, char *path, size_t size);
/* A broken or foreign file is refused with one message. Networks are folded, for use: the normalisation of inputs and
 * batches is in their weights, so that mean = 0 and scale = 1. */
selkie_code sk_splash_model_read(const char *path, sk_splash_model *model, selkie_error *error);
/* The file as bytes, to be released with sk_release(NULL, ...). */
selkie_code sk_splash_model_encode(const sk_splash_model *model, const char *made_by, char **bytes, size_t *size,
                                   selkie_error *error);
void sk_splash_model_free(sk_splash_model *model);

/* Logits in two parts, so that all candidates of a cell share the larger one: products of the first layer with the
 * features of cells, [count][first layer's outputs]; then logits of candidates with their own features and those of
 * cell[n]. At most SK_SPLASH_BATCH rows a call. */
enum { SK_SPLASH_BATCH = 16, SK_SPLASH_WIDEST = 1024 };
void sk_splash_begin_cells(const sk_splash_model *model, const float *cells, int count, float *products);
void sk_splash_logits(const sk_splash_model *model, const float *products, const int *cell, const float *own, int count,
                      float *logits);

/* Scales rows of features in place. */
void sk_splash_scale(const sk_splash_model *model, float *features, int count);
/* The logit below which the probability is less than p. */
float sk_splash_logit_of(const sk_splash_model *model, float p);
/* Probability of a splash within the duration, from a row's logit. */
float sk_splash_probability(const sk_splash_model *model, float logit);
/* Change of velocity over sqrt(g h + ...) in the stencil's axes, from the modifier's outputs and a random number in [0,
 * 1) for each axis; 0.5 gives the mean. */
void sk_splash_change(const sk_splash_model *model, const float *outputs, const float random[3], float change[3]);

#endif
