/* Light on the floor, computed once a frame on a map of texels, without the noise of rays at every pixel.
 *
 * Sunlight that meets no liquid: a few rays to the sun's (widened) disc a texel. Sunlight through liquid: photons on an
 * even grid across the sun's beam are refracted at the surface and collected on the floor: the caustics of waves. Sky:
 * a few rays over the hemisphere. A narrow blur at the end hides the grid.
 */
#include "render/trace.h"

#if SELKIE_HAVE_EMBREE

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { sun_rays = 6, sky_rays = 6, photon_bounces = 4 };

static vec3 texel_point(const sk_tracer *t, float i, float j)
{
    const sk_stage *s = t->stage;
    float u = t->floor_low[0] + i / (float)t->map_side * t->floor_size[0];
    float v = t->floor_low[1] + j / (float)t->map_side * t->floor_size[1];
    return v3_add(v3_add(v3_scale(s->side, u), v3_scale(s->front, v)), v3_scale(s->up, s->floor_height));
}

static void place_map(sk_tracer *t)
{
    const sk_stage *s = t->stage;
    float low[3] = {1e30f, 1e30f, 1e30f}, high[3] = {-1e30f, -1e30f, -1e30f};
    for (int c = 0; c < 8; ++c) {
        vec3 p = v3((float)(c & 1 ? s->high[0] : s->low[0]), (float)(c & 2 ? s->high[1] : s->low[1]),
                    (float)(c & 4 ? s->high[2] : s->low[2]));
        float place[3] = {v3_dot(p, s->side), v3_dot(p, s->front), v3_dot(p, s->up)};
        for (int a = 0; a < 3; ++a) {
            low[a] = fminf(low[a], place[a]);
            high[a] = fmaxf(high[a], place[a]);
        }
    }
    /* Room for shadows: their length at the domain's height, at most the domain's width. */
    float height = high[2] - low[2], sun_up = v3_dot(s->sun, s->up);
    for (int a = 0; a < 2; ++a) {
        float extent = high[a] - low[a], margin = 0.08f * extent;
        float throw = v3_dot(s->sun, a ? s->front : s->side) / sun_up * height;
        throw = clampf(throw, -extent, extent);
        t->floor_low[a] = low[a] - margin - fmaxf(throw, 0.0f);
        t->floor_size[a] = extent + 2.0f * margin + fabsf(throw);
    }
}

/* Directions of a circle: cosines and sines. */
enum { turns = 256 };
typedef struct circle {
    float cosine[turns], sine[turns];
} circle;

static void fill_circle(circle *c)
{
    for (int i = 0; i < turns; ++i) {
        c->cosine[i] = cosf(6.2831853f * (float)i / turns);
        c->sine[i] = sinf(6.2831853f * (float)i / turns);
    }
}

/* Part of the sun that is seen from a point of the floor past solids and liquid. Rays go to a disc of about two
 * degrees, for soft edges. Three that agree end the search: few points lie in half shadow. */
static float seen_sun(const sk_tracer *t, const circle *c, vec3 point, int i, int j)
{
    const sk_stage *s = t->stage;
    const vec3 across = v3_unit(v3_cross(s->sun, s->front)), other = v3_cross(s->sun, across);
    int seen = 0;
    for (int n = 0; n < sun_rays; ++n) {
        const unsigned k = (unsigned)(sun_rays - 1 - n); /* the rim of the disc first */
        const float a = sk_sample((unsigned)i, (unsigned)j, 2 * k), b = sk_sample((unsigned)i, (unsigned)j, 2 * k + 1);
        const float radius = 0.035f * sqrtf(((float)k + a) / sun_rays);
        const int turn = (int)(b * turns);
        const vec3 d =
            v3_unit(v3_along(v3_along(s->sun, radius * c->cosine[turn], across), radius * c->sine[turn], other));
        seen += !sk_trace_blocked(t, point, d, INFINITY) && !sk_trace_meets_water(t, point, d);
        if (n == 2 && (seen == 0 || seen == 3))
            return seen ? 1.0f : 0.0f;
    }
    return (float)seen / sun_rays;
}

/* One row of texels: sunlight that meets no liquid, and sky. */
static void light_row(sk_tracer *t, const circle *c, int j)
{
    const sk_stage *s = t->stage;
    for (int i = 0; i < t->map_side; ++i) {
        vec3 p = texel_point(t, (float)i + 0.5f, (float)j + 0.5f);
        const float sun = seen_sun(t, c, p, i, j);
        float sky = 0.0f;
        for (unsigned k = 0; k < sky_rays; ++k) {
            float a = ((float)k + sk_sample((unsigned)i, (unsigned)j, 100 + k)) / sky_rays;
            const int turn = (int)(sk_sample((unsigned)i, (unsigned)j, 200 + k) * turns);
            const float flat = sqrtf(a);
            vec3 d = v3_add(v3_scale(s->up, sqrtf(1.0f - a)), v3_add(v3_scale(s->side, flat * c->cosine[turn]),
                                                                     v3_scale(s->front, flat * c->sine[turn])));
            sky += sk_trace_blocked(t, p, d, (float)s->diagonal) ? 0.15f : 1.0f;
        }
        size_t texel = (size_t)i + (size_t)j * (size_t)t->map_side;
        t->sunlight[texel] = v3(sun, sun, sun);
        t->openness[texel] = sky / sky_rays;
    }
}

typedef struct photon {
    vec3 weight; /* 0: lost */
    float u, v;  /* texels */
} photon;

/* Follows sunlight through the liquid to the floor. */
static photon follow(const sk_tracer *t, vec3 from)
{
    const sk_stage *s = t->stage;
    photon none = {{0, 0, 0}, 0, 0}, result = {{1, 1, 1}, 0, 0};
    vec3 d = v3_scale(s->sun, -1.0f);
    int wet = 0, inside = 0;
    for (int bounce = 0; bounce < photon_bounces; ++bounce) {
        sk_hit water = sk_trace_water(t, from, d, t->near, INFINITY);
        sk_hit opaque = sk_trace_solids(t, from, d, t->near, water.distance + (inside ? t->contact : 0.0f));
        if (opaque.kind == SK_HIT_SOLID || (opaque.kind == SK_HIT_SKY && water.kind == SK_HIT_SKY))
            return none;

        /* The path ends at the floor. */
        if (opaque.kind == SK_HIT_FLOOR) {
            if (inside)
                result.weight = v3_mul(result.weight, sk_transmittance(t, fminf(opaque.distance, water.distance)));
            result.u = (v3_dot(opaque.point, s->side) - t->floor_low[0]) / t->floor_size[0] * (float)t->map_side;
            result.v = (v3_dot(opaque.point, s->front) - t->floor_low[1]) / t->floor_size[1] * (float)t->map_side;
            return wet ? result : none;
        }

        /* At the surface, light is absorbed, refracted and in part reflected. */
        int entering = v3_dot(water.face, d) < 0.0f;
        if (!entering)
            result.weight = v3_mul(result.weight, sk_transmittance(t, water.distance));
        vec3 n = v3_dot(water.normal, d) < 0.0f ? water.normal : v3_scale(water.normal, -1.0f), bent;
        float ratio = entering ? 1.0f / 1.333f : 1.333f;
        if (!sk_refract(d, n, ratio, &bent))
            return none;
        result.weight = v3_scale(result.weight, 1.0f - sk_fresnel(d, n, ratio));
        from = water.point;
        d = bent;
        wet = 1;
        inside = entering;
    }
    return none;
}

static void drop_photon(sk_tracer *t, const photon *p, float share)
{
    float u = p->u - 0.5f, v = p->v - 0.5f;
    int i = (int)floorf(u), j = (int)floorf(v);
    for (int b = 0; b < 2; ++b)
        for (int a = 0; a < 2; ++a) {
            if (i + a < 0 || j + b < 0 || i + a >= t->map_side || j + b >= t->map_side)
                continue;
            float weight = (a ? u - (float)i : 1.0f - u + (float)i) * (b ? v - (float)j : 1.0f - v + (float)j);
            vec3 *texel = &t->sunlight[(size_t)(i + a) + (size_t)(j + b) * (size_t)t->map_side];
            *texel = v3_along(*texel, share * weight, p->weight);
        }
}

/* Photons start above the domain on an even grid of the floor's plane, moved up along the sun's direction. They are
 * traced in parallel and added in order, so that sums do not depend on threads. */
static selkie_code light_through_water(sk_tracer *t, selkie_error *error)
{
    const int photon_side = t->map_side * 7 / 5;
    photon *photons = sk_allocate(NULL, sizeof *photons * (size_t)photon_side * (size_t)photon_side);
    if (!photons)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: not enough memory for the light through the liquid");
    float up = v3_dot(t->stage->sun, t->stage->up), rise = 1.01f * (float)t->stage->diagonal / up;
#pragma omp parallel for num_threads(t->threads) schedule(dynamic, 4)
    for (int j = 0; j < photon_side; ++j)
        for (int i = 0; i < photon_side; ++i) {
            float a = ((float)i + sk_sample((unsigned)i, (unsigned)j, 7)) / (float)photon_side * (float)t->map_side;
            float b = ((float)j + sk_sample((unsigned)i, (unsigned)j, 8)) / (float)photon_side * (float)t->map_side;
            photons[i + j * photon_side] = follow(t, v3_along(texel_point(t, a, b), rise, t->stage->sun));
        }
    float share = (float)(t->map_side * t->map_side) / (float)(photon_side * photon_side);
    for (int i = 0; i < photon_side * photon_side; ++i)
        if (photons[i].weight.x + photons[i].weight.y + photons[i].weight.z > 0.0f)
            drop_photon(t, &photons[i], share);
    sk_release(NULL, photons);
    return SELKIE_OK;
}

static vec3 lit(const sk_tracer *t, int i, int j, float *open)
{
    i = i < 0 ? 0 : i >= t->map_side ? t->map_side - 1 : i;
    j = j < 0 ? 0 : j >= t->map_side ? t->map_side - 1 : j;
    size_t texel = (size_t)i + (size_t)j * (size_t)t->map_side;
    *open = t->openness[texel];
    return t->sunlight[texel];
}

static selkie_code blur_map(sk_tracer *t, selkie_error *error)
{
    const size_t texels = (size_t)t->map_side * (size_t)t->map_side;
    static const float taps[3] = {0.25f, 0.5f, 0.25f};
    vec3 *sun = sk_allocate(NULL, texels * sizeof *sun);
    float *sky = sk_allocate(NULL, texels * sizeof *sky);
    if (!sun || !sky) {
        sk_release(NULL, sun);
        sk_release(NULL, sky);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: not enough memory for the light on the floor");
    }

    /* Blur sunlight little, so that caustics stay sharp. */
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int j = 0; j < t->map_side; ++j)
        for (int i = 0; i < t->map_side; ++i) {
            vec3 sum = v3(0, 0, 0);
            float open_sum = 0.0f, open;
            for (int b = -1; b <= 1; ++b)
                for (int a = -1; a <= 1; ++a)
                    sum = v3_along(sum, taps[a + 1] * taps[b + 1], lit(t, i + a, j + b, &open));

            /* The sky's light is smooth: a wide blur hides the small number of rays. */
            for (int b = -3; b <= 3; ++b)
                for (int a = -3; a <= 3; ++a) {
                    lit(t, i + a, j + b, &open);
                    open_sum += open / 49.0f;
                }
            sun[i + j * t->map_side] = sum;
            sky[i + j * t->map_side] = open_sum;
        }

    /* Replace the maps by the blurred ones. */
    memcpy(t->sunlight, sun, texels * sizeof *sun);
    memcpy(t->openness, sky, texels * sizeof *sky);
    sk_release(NULL, sun);
    sk_release(NULL, sky);
    return SELKIE_OK;
}

selkie_code sk_trace_light_floor(sk_tracer *t, selkie_error *error)
{
    /* As fine as the picture can show. */
    t->map_side = (int)clampf(0.42f * (float)t->camera.height, 48.0f, 512.0f);
    const size_t texels = (size_t)t->map_side * (size_t)t->map_side;
    t->sunlight = sk_allocate(NULL, texels * sizeof *t->sunlight);
    t->openness = sk_allocate(NULL, texels * sizeof *t->openness);
    if (!t->sunlight || !t->openness)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "picture: not enough memory for the light on the floor");
    place_map(t);
    circle c;
    fill_circle(&c);
#pragma omp parallel for num_threads(t->threads) schedule(dynamic, 4)
    for (int j = 0; j < t->map_side; ++j)
        light_row(t, &c, j);
    if (t->water)
        SK_TRY(light_through_water(t, error));
    return blur_map(t, error);
}

vec3 sk_floor_light(const sk_tracer *t, vec3 point)
{
    const sk_stage *s = t->stage;
    float u = (v3_dot(point, s->side) - t->floor_low[0]) / t->floor_size[0] * (float)t->map_side - 0.5f;
    float v = (v3_dot(point, s->front) - t->floor_low[1]) / t->floor_size[1] * (float)t->map_side - 0.5f;
    vec3 sun = v3(1, 1, 1);
    float open = 1.0f;
    if (u > -1.0f && v > -1.0f && u < (float)t->map_side && v < (float)t->map_side) {
        int i = (int)floorf(u), j = (int)floorf(v);
        float a = u - (float)i, b = v - (float)j, o[4];
        vec3 low = v3_mix(lit(t, i, j, &o[0]), lit(t, i + 1, j, &o[1]), a);
        vec3 high = v3_mix(lit(t, i, j + 1, &o[2]), lit(t, i + 1, j + 1, &o[3]), a);
        /* Towards the map's border the light blends into that of open ground. */
        float inside = fminf(fminf(u, (float)t->map_side - 1 - u), fminf(v, (float)t->map_side - 1 - v));
        float keep = smoothstepf(-1.0f, 10.0f, inside);
        sun = v3_mix(sun, v3_mix(low, high, b), keep);
        open = mixf(1.0f, mixf(mixf(o[0], o[1], a), mixf(o[2], o[3], a), b), keep);
    }
    vec3 light = v3_scale(sk_studio_ambient(s, s->up), open);
    return v3_along(light, 0.42f * v3_dot(s->sun, s->up), v3_mul(sun, sk_studio_sunlight(s)));
}

#endif
