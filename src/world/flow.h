/* Velocity fields of liquids at the start (liquids[].flow). */
#ifndef SK_WORLD_FLOW_H
#define SK_WORLD_FLOW_H

#include <selkie/scene.h>

typedef struct sk_flow {
    const selkie_liquid_def *liquid;
    int dimension;
    double origin[3];  /* m    the scene's domain.origin: positions of files are the scene's */
    int counts[3];     /*      points of the file's grid along each axis */
    double *places[3]; /* m    [counts] ascending */
    double *values;    /* m/s  [points][3], x fastest; NULL = no file */
} sk_flow;

/* `what` names the liquid in messages. */
selkie_code sk_flow_open(sk_flow *flow, const selkie_liquid_def *liquid, int dimension, const double origin[3],
                         const char *folder, const char *what, selkie_error *error);
void sk_flow_close(sk_flow *flow);
/* Adds the velocity at a point (m, relative to the origin) to v (m/s). */
void sk_flow_add(const sk_flow *flow, const double x[3], double v[3]);

#endif
