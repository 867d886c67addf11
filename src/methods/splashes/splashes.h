/* Splashes by a trained model (Um et al. 2018) in any grid method.
 *
 * After the projection the model gives each particle near the surface the probability that it becomes a droplet within
 * the model's duration. Its hazard is -ln(1 - p) dt / duration; beyond a threshold drawn from Exp(1) it becomes a
 * droplet. So counts do not depend on the step. A cell makes at most one droplet within the
 * duration: a droplet of the training runs holds many particles. The droplet's change of velocity comes from
 * the model too, and the particles around it take the opposite impulse.
 *
 * Droplets fly by themselves: they have an age in the attribute "splash" and are apart from the others within a step.
 * At its end new ones are where they were in the store, and the others are its last particles: nothing else moves, so
 * that the next cell sort needs no full pass. A droplet that meets liquid or a solid becomes an ordinary particle
 * again. No particle is made or lost.
 */
#ifndef SK_METHODS_SPLASHES_SPLASHES_H
#define SK_METHODS_SPLASHES_SPLASHES_H

#include "learn/splash_model.h"
#include "methods/method.h"

extern const sk_method sk_method_splashes;

/* A particle that becomes a droplet at the end of the step. */
typedef struct sk_splash_event {
    int64_t particle;
    int32_t block, cell; /* its cell at the start of the step */
    float change[3];     /* m/s */
} sk_splash_event;

typedef struct sk_splashes {
    sk_splash_model model;
    sk_splash_options options;
    float speed;      /* m/s  that scales velocities */
    int every;        /*      steps: blocks take turns, and count so many steps at once. 1 where steps are long */
    float calm_logit; /*      expectation: cells whose outermost particle is below it are left out */

    /* Droplets while they are apart: records, then attributes, of each. */
    char *apart;
    size_t apart_count, apart_capacity, apart_bytes;

    /* The store at the end of the last step. */
    struct sk_splash_new {
        int64_t particle;
        int block;
    } * fresh; /* [fresh_count] new droplets, in the order of the store */
    size_t fresh_count, fresh_capacity;
    int64_t count_after;
    uint64_t moves_after;
    int were_in_order;

    sk_splash_event *events;
    size_t event_count, event_capacity;
    uint8_t *chosen; /* [particles] of this step */
    float (*change)[3];
    size_t chosen_capacity, change_capacity;

    struct sk_splash_counts {
        int64_t made, reverted, returned;
    } counts; /* since the start, in checkpoints */

    /* Cells that have made a droplet within the last duration, by key, in checkpoints: they make no other. */
    struct sk_splash_cell {
        uint64_t key;
        double until; /* s */
    } * recent;
    size_t recent_count, recent_capacity;
    char *saved; /* counts and recent cells in one piece */
    size_t saved_capacity;
    int64_t flying; /* with new ones */
    int counted;    /* `flying` is that of the particles; not so after a checkpoint */
    int beyond;     /* features beyond those of training were seen */
} sk_splashes;

/* Marks the particles that become droplets, with their changes of velocity. */
selkie_code sk_splash_find_2d(sk_step *step, selkie_error *error);
selkie_code sk_splash_find_3d(sk_step *step, selkie_error *error);
/* Takes the droplets out of the particles; moves them and puts them back. */
selkie_code sk_splash_part(sk_step *step, selkie_error *error);
selkie_code sk_splash_fly(sk_step *step, selkie_error *error);

/* Attributes: seconds in flight, 0 in the liquid; for splash.sampling expectation, the sum of Eq. 7 and the part of the
 * duration that it covers. */
#define SK_SPLASH_AGE "splash"
#define SK_SPLASH_WINDOW "splash_window"

#endif
