/* Light and ground of 3D pictures: a bright sky with a soft window of light, a low sun, a pale tiled floor that fades
 * into haze. Water shows mostly reflections and refractions, so the surroundings have gradients to reflect and lines to
 * refract. */
#include "render/stage.h"

#include "render/image.h"

vec3 sk_studio_sunlight(const sk_stage *stage)
{
    switch (stage->scene->render.sky) {
    case SELKIE_SKY_DAY:
        return v3(2.55f, 2.40f, 2.15f);
    case SELKIE_SKY_EVENING:
        return v3(2.40f, 1.45f, 0.75f);
    case SELKIE_SKY_OVERCAST:
        return v3(0.25f, 0.25f, 0.25f);
    default:
        return v3(2.35f, 2.15f, 1.85f);
    }
}

/* Colours of a clear or covered sky from the horizon to the zenith. */
typedef struct sky_colors {
    vec3 horizon, middle, zenith;
    float cloud, disc; /* bank of cloud, disc of the sun: 0 = none */
} sky_colors;

static const sky_colors skies[] = {
    [SELKIE_SKY_STUDIO] = {{0.74f, 0.81f, 0.88f}, {0.36f, 0.54f, 0.78f}, {0.12f, 0.26f, 0.54f}, 0.55f, 1.0f},
    [SELKIE_SKY_DAY] = {{0.62f, 0.76f, 0.92f}, {0.25f, 0.46f, 0.80f}, {0.07f, 0.19f, 0.50f}, 0.0f, 1.0f},
    [SELKIE_SKY_EVENING] = {{1.05f, 0.62f, 0.34f}, {0.52f, 0.44f, 0.52f}, {0.10f, 0.14f, 0.32f}, 0.15f, 0.8f},
    [SELKIE_SKY_OVERCAST] = {{0.72f, 0.74f, 0.76f}, {0.66f, 0.68f, 0.71f}, {0.58f, 0.61f, 0.65f}, 0.0f, 0.0f},
};

vec3 sk_studio_sky(const sk_stage *stage, vec3 d)
{
    float h = v3_dot(d, stage->up);
    if (stage->environment.width)
        return sk_environment_light(&stage->environment, h, v3_dot(d, stage->side), -v3_dot(d, stage->front));
    const sky_colors *colors = &skies[stage->scene->render.sky];
    if (h < 0.0f)
        h = 0.0f;
    vec3 sky = h < 0.35f ? v3_mix(colors->horizon, colors->middle, smoothstepf(0.0f, 0.35f, h))
                         : v3_mix(colors->middle, colors->zenith, smoothstepf(0.35f, 1.0f, h));
    /* A large bank of bright cloud opposite the viewer gives broad reflections on wave faces. */
    float across = v3_dot(d, stage->side), away = -v3_dot(d, stage->front);
    if (h > 0.10f && h < 0.75f && away > -0.2f) {
        float cloud = smoothstepf(0.10f, 0.35f, h) * (1.0f - smoothstepf(0.45f, 0.75f, h)) *
                      smoothstepf(-0.2f, 0.6f, away) * (0.65f + 0.35f * cosf(9.0f * across + 3.0f * h));
        sky = v3_mix(sky, v3(1.15f, 1.15f, 1.12f), colors->cloud * cloud);
    }
    float s = v3_dot(d, stage->sun);
    if (s > 0.0f) {
        /* Powers 24 and 296 by squares. */
        const float s8 = s * s * s * s * s * s * s * s, s32 = s8 * s8 * s8 * s8,
                    s256 = s32 * s32 * s32 * s32 * s32 * s32 * s32 * s32;
        float glow = s8 * s8 * s8, halo = s256 * s32 * s8, disc = smoothstepf(0.9988f, 0.9994f, s);
        sky = v3_add(sky, v3_scale(v3(1.0f, 0.93f, 0.80f), colors->disc * (0.18f * glow + 1.2f * halo + 40.0f * disc)));
    }
    return sky;
}

vec3 sk_studio_ambient(const sk_stage *stage, vec3 normal)
{
    float h = 0.5f + 0.5f * v3_dot(normal, stage->up);
    if (stage->environment.width)
        return v3_mix(stage->environment.below, stage->environment.above, h);
    const vec3 above = stage->scene->render.sky == SELKIE_SKY_EVENING    ? v3(0.44f, 0.40f, 0.42f)
                       : stage->scene->render.sky == SELKIE_SKY_OVERCAST ? v3(0.78f, 0.80f, 0.83f)
                                                                         : v3(0.56f, 0.63f, 0.72f);
    return v3_mix(v3(0.34f, 0.33f, 0.31f), above, h);
}

vec3 sk_studio_floor_color(const sk_stage *stage, vec3 point, float footprint)
{
    /* Tiles counted from the domain's corner, about twelve along its longer side. */
    float tile = (float)stage->diagonal / 14.0f;
    vec3 from = v3_sub(point, v3_from(stage->low));
    float u = v3_dot(from, stage->side) / tile, v = v3_dot(from, stage->front) / tile;
    float du = fabsf(u - floorf(u + 0.5f)), dv = fabsf(v - floorf(v + 0.5f));
    float line = fminf(du, dv);
    int odd = ((int)floorf(u) + (int)floorf(v)) & 1;
    vec3 stone = odd ? v3(0.40f, 0.395f, 0.385f) : v3(0.47f, 0.465f, 0.455f);
    /* A line narrower than the footprint is drawn as wide as that, and fainter. */
    const float wide = fmaxf(0.028f, footprint / tile), faint = 0.028f / wide;
    stone = v3_mix(v3(0.25f, 0.25f, 0.25f), stone, 1.0f - faint * (1.0f - smoothstepf(0.36f * wide, wide, line)));
    /* The pattern fades away from the liquid. */
    vec3 middle = v3_scale(v3_add(v3_from(stage->low), v3_from(stage->high)), 0.5f);
    vec3 off = v3_sub(point, middle);
    float away = v3_length(v3_along(off, -v3_dot(off, stage->up), stage->up)) / (float)stage->diagonal;
    return v3_mix(stone, v3(0.435f, 0.43f, 0.42f), smoothstepf(0.55f, 1.5f, away));
}

float sk_studio_haze(const sk_stage *stage, float distance)
{
    float d = distance / (float)stage->diagonal;
    return 1.0f - smoothstepf(1.8f, 5.5f, d);
}

vec3 sk_studio_solid_color(int solid)
{
    static const vec3 colors[] = {{0.62f, 0.26f, 0.14f},
                                  {0.42f, 0.40f, 0.38f},
                                  {0.60f, 0.47f, 0.22f},
                                  {0.30f, 0.36f, 0.30f},
                                  {0.48f, 0.28f, 0.33f}};
    return colors[solid % 5];
}

/* Tone mapping by channel (Reinhard et al. 2002 with a white point): highlights stay white, middle tones keep their
 * contrast. */
vec3 sk_studio_tone(vec3 light)
{
    const float exposure = 0.92f, white = 3.2f;
    float c[3] = {light.x * exposure, light.y * exposure, light.z * exposure};
    for (int a = 0; a < 3; ++a) {
        float x = c[a] > 0.0f ? c[a] : 0.0f;
        c[a] = sk_to_srgb(x * (1.0f + x / (white * white)) / (1.0f + 0.35f * x));
        c[a] = mixf(c[a], smoothstepf(0.0f, 1.0f, c[a]), 0.30f); /* a little more contrast */
    }
    return v3(c[0], c[1], c[2]);
}

void sk_tones_fill(sk_tones *tones)
{
    for (int i = 0; i <= sk_tone_count; ++i) {
        const float root = (float)i / sk_tone_count, light = root * root * sk_tone_brightest;
        tones->values[i] = sk_studio_tone(v3(light, light, light)).x;
    }
}

/* --- The container --- */

void sk_draw_container(const sk_stage *stage, const sk_camera *camera, const float *depth, sk_image *image)
{
    /* Bits 0, 1 and 2 of a corner's number choose the high side along x, y and z. */
    static const int edge[12][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2}, {1, 3},
                                    {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}};
    enum { pieces = 64 };
    float width = fmaxf(1.0f, (float)image->height / 540.0f);
    for (int e = 0; e < 12; ++e) {
        vec3 end[2];
        for (int k = 0; k < 2; ++k) {
            int c = edge[e][k];
            end[k] =
                v3((float)(c & 1 ? stage->high[0] : stage->low[0]), (float)(c & 2 ? stage->high[1] : stage->low[1]),
                   (float)(c & 4 ? stage->high[2] : stage->low[2]));
        }

        /* Draw an edge in short pieces, since parts of it may be hidden. */
        for (int i = 0; i < pieces; ++i) {
            float x[2], y[2], z[2];
            for (int k = 0; k < 2; ++k)
                z[k] = sk_camera_project(camera, v3_mix(end[0], end[1], (float)(i + k) / pieces), &x[k], &y[k]);
            if (z[0] <= 0.0f || z[1] <= 0.0f)
                continue;

            /* A piece behind water or an obstacle is faint. */
            int px = (int)(0.5f * (x[0] + x[1])), py = (int)(0.5f * (y[0] + y[1]));
            float alpha = 0.38f;
            if (depth && px >= 0 && py >= 0 && px < image->width && py < image->height) {
                vec3 d = v3_sub(v3_mix(end[0], end[1], ((float)i + 0.5f) / pieces), camera->eye);
                if (v3_length(d) >
                    depth[(size_t)py * (size_t)image->width + (size_t)px] + 0.01f * (float)stage->diagonal)
                    alpha = 0.06f;
            }
            const sk_pen pen = {.width = width, .color = v3(0.30f, 0.36f, 0.42f), .alpha = alpha};
            sk_image_line(image, x[0], y[0], x[1], y[1], &pen);
        }
    }
}
