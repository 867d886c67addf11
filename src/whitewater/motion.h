/* The motion of whitewater through the liquid of a frame (Ihmsen et al. 2012, Eqs. 9 to 11). */
#ifndef SK_WHITEWATER_MOTION_H
#define SK_WHITEWATER_MOTION_H

#include "geom/cloud_field.h"
#include "whitewater/whitewater.h"

/* Density of the liquid around a particle, relative to the bulk, below which it flies and above which it is a bubble. A
 * flat surface has 0.5. */
#define SK_FOAM_SPRAY_BELOW 0.15f
#define SK_FOAM_BUBBLE_ABOVE 0.80f

/* What a step knows. */
typedef struct sk_foam_step {
    sk_whitewater *w;
    const sk_cloud_field *field;
    float dt, cell_size, low[3], high[3]; /* s, m */
    int open[6];                          /* [side] does whitewater leave there? */
    float gravity[3];
    const sk_surface_particles *liquid;
    int64_t frame;
} sk_foam_step;

static inline uint32_t sk_foam_kind(float density)
{
    return density < SK_FOAM_SPRAY_BELOW    ? SK_WHITEWATER_SPRAY
           : density > SK_FOAM_BUBBLE_ABOVE ? SK_WHITEWATER_BUBBLE
                                            : SK_WHITEWATER_FOAM;
}

/* Keeps a particle in the domain. Returns 0 if it has left through an open side. */
int sk_foam_confine(const sk_foam_step *s, float position[3], float velocity[3]);
/* Keeps a particle that comes from `before` out of the obstacles, if there are any. Returns 0 if there is no way out.
 */
int sk_foam_keep_out(const sk_foam_step *s, const float before[3], float position[3], float velocity[3]);
/* Moves all particles. keys[i] receives the block of the field that particle i lies in, SK_NO_KEY if it has ended. If
 * `keys` is NULL, those that have ended are left out; particles from the end of the array take their places. */
selkie_code sk_foam_move(const sk_foam_step *s, uint32_t *keys, selkie_error *error);

/* A part of the array of particles, of which only the first ones are left. */
typedef struct sk_foam_part {
    size_t first, kept;
} sk_foam_part;

/* Fills the gaps behind the kept particles of the parts, which are in ascending order, with particles from the end of
 * the array. Returns their number in all. Few are moved, and the result does not depend on the threads. */
size_t sk_foam_close_gaps(sk_whitewater_particle *particles, const sk_foam_part *parts, size_t part_count);

#endif
