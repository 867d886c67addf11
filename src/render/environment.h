/* A picture of the surroundings: the whole sphere of directions, equirectangular. */
#ifndef SK_RENDER_ENVIRONMENT_H
#define SK_RENDER_ENVIRONMENT_H

#include "base/status.h"
#include "render/vector.h"

typedef struct sk_environment {
    int width, height; /* pixels; 0 = none */
    float *light;      /* [height][width][3] linear, the zenith first */
    vec3 above, below; /* mean light of both halves */
} sk_environment;

/* PNG, PGM and PPM (sRGB) or Radiance HDR (linear). */
selkie_code sk_environment_read(const char *file, const char *folder, const char *key, sk_environment *environment,
                                selkie_error *error);
void sk_environment_free(sk_environment *environment);
/* Light from a direction: `up`, `right` and `ahead` are its components; the picture's middle is ahead. */
vec3 sk_environment_light(const sk_environment *environment, float up, float right, float ahead);

#endif
