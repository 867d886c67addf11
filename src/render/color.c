#include "render/color.h"

#include "render/image.h"

/* Stops in Oklab: lightness, green-red, blue-yellow. */
typedef struct color_stops {
    int count;
    vec3 stop[5];
} color_stops;

static const color_stops maps[] = {
    [SK_MAP_WATER] =
        {4,
         {{0.34f, -0.020f, -0.130f}, {0.52f, -0.045f, -0.125f}, {0.76f, -0.050f, -0.075f}, {0.97f, -0.005f, -0.010f}}},
    [SK_MAP_SPEED] = {5,
                      {{0.27f, 0.045f, -0.120f},
                       {0.44f, -0.010f, -0.130f},
                       {0.61f, -0.100f, -0.020f},
                       {0.78f, -0.110f, 0.120f},
                       {0.93f, 0.000f, 0.165f}}},
    [SK_MAP_RATIO] = {5,
                      {{0.36f, -0.010f, -0.150f},
                       {0.64f, -0.040f, -0.100f},
                       {0.92f, 0.000f, 0.010f},
                       {0.64f, 0.120f, 0.080f},
                       {0.36f, 0.130f, 0.060f}}},
};

static vec3 oklab_to_srgb(vec3 lab)
{
    float l = lab.x + 0.3963377774f * lab.y + 0.2158037573f * lab.z;
    float m = lab.x - 0.1055613458f * lab.y - 0.0638541728f * lab.z;
    float s = lab.x - 0.0894841775f * lab.y - 1.2914855480f * lab.z;
    l = l * l * l;
    m = m * m * m;
    s = s * s * s;
    return v3(sk_to_srgb(4.0767416621f * l - 3.3077115913f * m + 0.2309699292f * s),
              sk_to_srgb(-1.2684380046f * l + 2.6097574011f * m - 0.3413193965f * s),
              sk_to_srgb(-0.0041960863f * l - 0.7034186147f * m + 1.7076147010f * s));
}

vec3 sk_color(sk_color_map map, float t)
{
    const color_stops *stops = &maps[map];
    float place = clampf(isnan(t) ? 0.0f : t, 0.0f, 1.0f) * (float)(stops->count - 1);
    int index = (int)place;
    if (index > stops->count - 2)
        index = stops->count - 2;
    return oklab_to_srgb(v3_mix(stops->stop[index], stops->stop[index + 1], place - (float)index));
}
