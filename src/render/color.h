/* Colours for numbers. */
#ifndef SK_RENDER_COLOR_H
#define SK_RENDER_COLOR_H

#include "render/vector.h"

typedef enum sk_color_map {
    SK_MAP_WATER, /* deep blue to white: the look of water by its speed */
    SK_MAP_SPEED, /* dark violet, blue, green, yellow */
    SK_MAP_RATIO  /* blue below 1, light at 1, red above; t = ratio / 2 */
} sk_color_map;

/* sRGB, 0..1. t outside of 0..1 is taken to the nearer end. Lightness runs evenly: the stops are joined by straight
 * lines in Oklab (Ottosson 2020), where equal steps look equal. */
vec3 sk_color(sk_color_map map, float t);

#endif
