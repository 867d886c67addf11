/* Training of the model of splashes, and how good it is. */
#ifndef SK_LEARN_SPLASH_TRAIN_H
#define SK_LEARN_SPLASH_TRAIN_H

#include "learn/splash_model.h"

/* Samples of one or more simulations, with the fill on stencils of 5^d cells, the velocity on 5^2 or 3^3. */
typedef struct sk_splash_data {
    int dimension, feature_count;
    int64_t count;
    const float *features; /* [count][feature_count] */
    const float *change;   /* [count][dimension] of the velocity of a splash, scaled, along the stencil's axes */
    const float *weight;   /* [count] candidates that a sample stands for */
    const uint8_t *label;  /* [count] 1 = splash */
    const int32_t *run;    /* [count] number of the simulation */
    double duration, cell_low, cell_high, tension, gravity;
} sk_splash_data;

/* Cells of the stencil of velocities, on each side of its middle, that samples of a dimension have. */
static inline int sk_splash_velocity_reach(int dimension)
{
    return dimension == 3 ? 1 : SK_SPLASH_REACH;
}

typedef enum sk_splash_split { SK_SPLIT_TRAIN, SK_SPLIT_VALIDATION, SK_SPLIT_HELD_OUT, SK_SPLIT_COUNT } sk_splash_split;

/* The split of a simulation: of ten, two are held out and one calibrates the rates. */
static inline sk_splash_split sk_splash_split_of(int32_t run)
{
    return run % 5 == 4 ? SK_SPLIT_HELD_OUT : run % 10 == 2 ? SK_SPLIT_VALIDATION : SK_SPLIT_TRAIN;
}

/* Keeps the state of a training, so that one that was interrupted goes on with the same bits. */
typedef struct sk_splash_keeper {
    void *context;
    /* The state of a network (sk_network_state_count floats) after so many steps. load returns the steps, 0 = none. */
    selkie_code (*save)(void *context, const char *network, int step, const float *state, size_t count,
                        selkie_error *error);
    int (*load)(void *context, const char *network, float *state, size_t count);
} sk_splash_keeper;

typedef struct sk_splash_recipe {
    int paper; /* networks and losses of Um et al. 2018 */
    int classifier_steps, modifier_steps, batch;
    int width; /* outputs of the first layer of ours; the second has half of it */
    double rate, decay, dropout;
    uint64_t seed;
    int threads;
    int64_t samples;                /* of the training runs that are used; 0 = all */
    const sk_splash_keeper *keeper; /* NULL = none */
} sk_splash_recipe;

sk_splash_recipe sk_splash_default_recipe(int paper);

typedef struct sk_splash_score {
    int64_t count, splashes;
    double auc, log_loss, prior_log_loss, calibration_error; /* of candidates, by their weights */
    double nll, nll_constant;                                /* of the changes, nat a splash */
    double predicted, decisions; /* splashes over those in the data: sum of p; candidates with p > 1/2 if balanced */
} sk_splash_score;

/* Losses while it learns: called after so many steps with the means since the last call. */
enum { SK_SPLASH_WATCHED = 20 };
typedef void (*sk_splash_watch)(void *context, const char *network, int step, int steps, double loss);

selkie_code sk_splash_train(const sk_splash_data *data, const sk_splash_recipe *recipe, sk_splash_watch watch,
                            void *context, sk_splash_model *model, selkie_error *error);
selkie_code sk_splash_judge(const sk_splash_data *data, const sk_splash_model *model, sk_splash_split split,
                            int threads, sk_splash_score *score, selkie_error *error);
/* A logistic model of the same features, for comparison: its area under the curve and its log loss. */
selkie_code sk_splash_judge_logistic(const sk_splash_data *data, const sk_splash_recipe *recipe,
                                     sk_splash_score score[SK_SPLIT_COUNT], selkie_error *error);
/* A threshold on one feature, the best one of the training runs: its area under the curve. */
selkie_code sk_splash_judge_threshold(const sk_splash_data *data, double area[SK_SPLIT_COUNT], selkie_error *error);

#endif
