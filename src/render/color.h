/* Colours for numbers. */
#ifndef SK_RENDER_COLOR_H
#define SK_RENDER_COLOR_H

#include "render/vector.h"

typedef enum sk_color_map {
    SK_MAP_WATER, /* deep blue to white: the look of water by its speed */
    SK_MAP_SPEED, /* dark violet, blue, green, yellow */
    SK_MAP_RATIO  /* blue below 1, light at 1, red above; t = ratio / 2 */
} sk_color_map;

/* sRGB, 0..1. t is clamped to 0..1. Colours between the stops are linear in Oklab (Ottosson 2020), so lightness changes
 * evenly. */
vec3 sk_color(sk_color_map map, float t);

#endif
