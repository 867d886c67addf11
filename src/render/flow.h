/* 2D pictures of the flow that the particles carry: dye, streamlines, line integral convolution.
 *
 * Dye shows the picture of a field of dye where there is one. Otherwise it gives every point the colour of the nearest
 * particle: its edges stay sharp, and filaments are as thin as the distance between particles. The other two sample the
 * particles' velocities to a grid and follow it.
 */
#ifndef SK_RENDER_FLOW_H
#define SK_RENDER_FLOW_H

#include "render/stage.h"

/* Where a picture of the plane lies. */
typedef struct sk_flat_view {
    const sk_stage *stage;
    const sk_picture_particles *particles;
    const sk_picture_options *options;
    sk_image *image;
    float left, top;   /* pixels of the domain's upper left corner */
    float scale;       /* pixels a metre */
    float speed_scale; /* m/s of the fastest colour */
} sk_flat_view;

typedef struct sk_flow sk_flow;

/* What a style needs: bins of particles, or velocities on a grid, with the noise or the lines. */
selkie_code sk_flow_create(const sk_flat_view *view, sk_flow **flow, selkie_error *error);
void sk_flow_destroy(sk_flow *flow);
/* The pixels of a row (dye, line integral convolution). Rows may be drawn by several threads. */
void sk_flow_row(const sk_flow *flow, int y);
/* The streamlines; nothing for the other styles. */
void sk_flow_lines(const sk_flow *flow);

#endif
