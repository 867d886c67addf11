/* Rays and their shading.
 *
 * A ray from the eye that meets water splits in two, weighted by Fresnel's equations. The refracted part continues
 * inside the liquid, loses light by the Beer-Lambert law and gains some by back scattering. Inside, the path does not
 * split again: it leaves unless the reflection is total, and the reflected part comes from the sky without a ray. So a
 * pixel costs few rays.
 *
 * Liquid that touches a solid or the floor leaves no air gap, although the two surfaces are a fraction of the particle
 * spacing apart: a path that would leave the liquid within `contact` of something opaque ends on it instead.
 */
#include "render/trace.h"

#if SELKIE_HAVE_EMBREE

/* --- Rays --- */

static struct RTCRayHit shoot(const sk_tracer *t, RTCScene scene, vec3 from, vec3 direction, float start, float end)
{
    struct RTCRayHit ray = {0};
    ray.ray.org_x = from.x;
    ray.ray.org_y = from.y;
    ray.ray.org_z = from.z;
    ray.ray.dir_x = direction.x;
    ray.ray.dir_y = direction.y;
    ray.ray.dir_z = direction.z;
    ray.ray.tnear = start;
    ray.ray.tfar = end;
    ray.ray.time = t->time;
    ray.ray.mask = 0xffffffffu;
    ray.hit.geomID = RTC_INVALID_GEOMETRY_ID;
    ray.hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
    sk_embree_intersect(&t->embree, scene, &ray);
    return ray;
}

/* Does the ray miss the box? Most rays do; this is cheaper than a query that finds nothing. */
static int misses(const float box[2][3], vec3 from, vec3 direction, float end)
{
    const float origin[3] = {from.x, from.y, from.z}, way[3] = {direction.x, direction.y, direction.z};
    float enter = 0.0f, leave = end;
    for (int a = 0; a < 3; ++a) {
        const float inverse = 1.0f / (fabsf(way[a]) > 1e-12f ? way[a] : 1e-12f);
        const float one = (box[0][a] - origin[a]) * inverse, other = (box[1][a] - origin[a]) * inverse;
        enter = largerf(enter, smallerf(one, other));
        leave = smallerf(leave, largerf(one, other));
    }
    /* Room for rounding. */
    return enter > leave * 1.00001f + 1e-6f;
}

static sk_hit no_hit(void)
{
    return (sk_hit){.kind = SK_HIT_SKY, .distance = INFINITY};
}

static sk_hit hit_from(const struct RTCRayHit *ray, sk_hit_kind kind, vec3 from, vec3 direction)
{
    sk_hit hit = {.kind = kind, .distance = ray->ray.tfar, .primitive = ray->hit.primID};
    hit.point = v3_along(from, hit.distance, direction);
    hit.face = v3_unit(v3(ray->hit.Ng_x, ray->hit.Ng_y, ray->hit.Ng_z));
    hit.normal = hit.face;
    return hit;
}

/* --- Cut-away views --- */

typedef sk_hit (*trace_function)(const sk_tracer *t, vec3 from, vec3 direction, float start, float end);

/* Follows a ray where the half space beyond the plane is empty. Closed things that the plane cuts get a lid there: the
 * ray is inside one if it would leave it behind the plane. */
static sk_hit trace_cut(const sk_tracer *t, trace_function trace, vec3 from, vec3 direction, float start, float end)
{
    if (!t->has_cut)
        return trace(t, from, direction, start, end);
    const float side = v3_dot(from, t->cut_normal) - t->cut_offset, slope = v3_dot(direction, t->cut_normal);
    const int beyond = side + start * slope > 0.0f;
    if (fabsf(slope) < 1e-9f)
        return beyond ? no_hit() : trace(t, from, direction, start, end);
    const float crossing = -side / slope;
    if (beyond && (slope >= 0.0f || crossing >= end))
        return no_hit();

    /* What the ray meets on this side of the plane. */
    const float first = beyond ? crossing : start, last = slope > 0.0f ? fminf(end, crossing) : end;
    sk_hit hit = trace(t, from, direction, first, beyond ? INFINITY : last);
    const int has_hit = hit.kind != SK_HIT_SKY;
    if (!beyond && (has_hit || !(slope > 0.0f && crossing < end)))
        return hit;
    const sk_hit exit = beyond ? hit : trace(t, from, direction, crossing, INFINITY);
    if (exit.kind == SK_HIT_SKY || v3_dot(exit.face, direction) <= 0.0f)
        return hit.distance < end ? hit : no_hit();

    /* The lid. */
    hit = exit;
    hit.distance = crossing;
    hit.point = v3_along(from, crossing, direction);
    hit.normal = hit.face = t->cut_normal;
    return hit;
}

static sk_hit trace_solids(const sk_tracer *t, vec3 from, vec3 direction, float start, float end)
{
    if (!t->solids || misses(t->solid_box, from, direction, end))
        return no_hit();
    struct RTCRayHit ray = shoot(t, t->solids, from, direction, start, end);
    if (ray.hit.geomID == RTC_INVALID_GEOMETRY_ID)
        return no_hit();
    sk_hit hit = hit_from(&ray, SK_HIT_SOLID, from, direction);
    const float *n = t->solid_normals + 9 * (size_t)ray.hit.primID;
    float w = 1.0f - ray.hit.u - ray.hit.v, u = ray.hit.u, v = ray.hit.v;
    hit.normal =
        v3_unit(v3(w * n[0] + u * n[3] + v * n[6], w * n[1] + u * n[4] + v * n[7], w * n[2] + u * n[5] + v * n[8]));
    if (v3_dot(hit.normal, direction) * v3_dot(hit.face, direction) <= 0.0f)
        hit.normal = hit.face;
    return hit;
}

sk_hit sk_trace_solids(const sk_tracer *t, vec3 from, vec3 direction, float start, float end)
{
    /* The floor is a plane a little below the domain. */
    sk_hit hit = no_hit();
    const sk_stage *stage = t->stage;
    float down = v3_dot(direction, stage->up);
    float distance = (stage->floor_height - t->near - v3_dot(from, stage->up)) / (down < -1e-6f ? down : -1e-6f);
    if (down < -1e-6f && distance > start && distance < end) {
        hit = (sk_hit){.kind = SK_HIT_FLOOR, .distance = distance, .normal = stage->up, .face = stage->up};
        hit.point = v3_along(from, distance, direction);
        end = distance;
    }
    if (!t->solids)
        return hit;
    const sk_hit solid = trace_cut(t, trace_solids, from, direction, start, end);
    return solid.kind == SK_HIT_SOLID ? solid : hit;
}

/* The hit of a ray at barycentric coordinates of a triangle of the liquid's surface. */
static sk_hit water_hit(const sk_tracer *t, const struct RTCRayHit *ray, vec3 from, vec3 direction)
{
    sk_hit hit = hit_from(ray, SK_HIT_WATER, from, direction);
    float weight[3] = {1.0f - ray->hit.u - ray->hit.v, ray->hit.u, ray->hit.v};
    vec3 normal = v3(0, 0, 0);
    for (int c = 0; c < 3; ++c) {
        const float *n = t->water_normals[ray->hit.primID] + 3 * c;
        normal = v3_along(normal, weight[c], v3(n[0], n[1], n[2]));
    }
    hit.normal = v3_unit(normal);
    /* A smooth normal that faces away would refract light to the wrong side: the triangle's normal replaces it. */
    if (v3_dot(hit.normal, direction) * v3_dot(hit.face, direction) <= 0.0f)
        hit.normal = hit.face;
    return hit;
}

static sk_hit trace_water(const sk_tracer *t, vec3 from, vec3 direction, float start, float end)
{
    if (!t->water || misses(t->water_box, from, direction, end))
        return no_hit();
    const struct RTCRayHit ray = shoot(t, t->water, from, direction, start, end);
    return ray.hit.geomID == RTC_INVALID_GEOMETRY_ID ? no_hit() : water_hit(t, &ray, from, direction);
}

/* One ray of a packet with its hit. */
static struct RTCRayHit packet_hit(const struct RTCRayHit16 *rays, int i)
{
    struct RTCRayHit ray = {0};
    ray.ray.tfar = rays->ray.tfar[i];
    ray.hit.Ng_x = rays->hit.Ng_x[i];
    ray.hit.Ng_y = rays->hit.Ng_y[i];
    ray.hit.Ng_z = rays->hit.Ng_z[i];
    ray.hit.u = rays->hit.u[i];
    ray.hit.v = rays->hit.v[i];
    ray.hit.primID = rays->hit.primID[i];
    return ray;
}

void sk_trace_first_water(const sk_tracer *t, vec3 from, int count, const vec3 *directions, sk_hit *hits)
{
    _Alignas(64) int valid[sk_ray_group] = {0};
    _Alignas(64) struct RTCRayHit16 rays = {0};
    int used = 0;
    for (int i = 0; i < count; ++i) {
        hits[i] = no_hit();
        valid[i] = t->water && !t->has_cut && !misses(t->water_box, from, directions[i], INFINITY) ? -1 : 0;
        used -= valid[i];
    }

    /* A packet of a few rays costs more than these rays. */
    if (used < 3 || t->has_cut) {
        for (int i = 0; i < count; ++i)
            if (valid[i] || t->has_cut)
                hits[i] = sk_trace_water(t, from, directions[i], 0.0f, INFINITY);
        return;
    }
    for (int i = 0; i < sk_ray_group; ++i) {
        const vec3 d = i < count ? directions[i] : directions[0];
        rays.ray.org_x[i] = from.x;
        rays.ray.org_y[i] = from.y;
        rays.ray.org_z[i] = from.z;
        rays.ray.dir_x[i] = d.x;
        rays.ray.dir_y[i] = d.y;
        rays.ray.dir_z[i] = d.z;
        rays.ray.tfar[i] = INFINITY;
        rays.ray.time[i] = t->time;
        rays.ray.mask[i] = 0xffffffffu;
        rays.hit.geomID[i] = RTC_INVALID_GEOMETRY_ID;
        rays.hit.instID[0][i] = RTC_INVALID_GEOMETRY_ID;
    }
    sk_embree_intersect16(&t->embree, t->water, valid, &rays);
    for (int i = 0; i < count; ++i)
        if (valid[i] && rays.hit.geomID[i] != RTC_INVALID_GEOMETRY_ID) {
            const struct RTCRayHit ray = packet_hit(&rays, i);
            hits[i] = water_hit(t, &ray, from, directions[i]);
        }
}

sk_hit sk_trace_water(const sk_tracer *t, vec3 from, vec3 direction, float start, float end)
{
    return trace_cut(t, trace_water, from, direction, start, end);
}

sk_hit sk_trace_balls(const sk_tracer *t, vec3 from, vec3 direction, float start, float end)
{
    if (!t->balls)
        return no_hit();
    struct RTCRayHit ray = shoot(t, t->balls, from, direction, start, end);
    return ray.hit.geomID == RTC_INVALID_GEOMETRY_ID ? no_hit() : hit_from(&ray, SK_HIT_BALL, from, direction);
}

static int occluded(const sk_tracer *t, RTCScene scene, vec3 from, vec3 direction, float start, float end)
{
    if (!scene)
        return 0;
    struct RTCRay ray = {0};
    ray.org_x = from.x;
    ray.org_y = from.y;
    ray.org_z = from.z;
    ray.dir_x = direction.x;
    ray.dir_y = direction.y;
    ray.dir_z = direction.z;
    ray.tnear = start;
    ray.tfar = end;
    ray.time = t->time;
    ray.mask = 0xffffffffu;
    sk_embree_occluded(&t->embree, scene, &ray);
    return ray.tfar < 0.0f;
}

int sk_trace_meets_water(const sk_tracer *t, vec3 from, vec3 direction)
{
    if (t->has_cut)
        return sk_trace_water(t, from, direction, t->near, INFINITY).kind == SK_HIT_WATER;
    return !misses(t->water_box, from, direction, INFINITY) &&
           occluded(t, t->water, from, direction, t->near, INFINITY);
}

int sk_trace_blocked(const sk_tracer *t, vec3 from, vec3 direction, float end)
{
    if (t->has_cut && trace_cut(t, trace_solids, from, direction, t->near, end).kind == SK_HIT_SOLID)
        return 1;
    return (!t->has_cut && !misses(t->solid_box, from, direction, end) &&
            occluded(t, t->solids, from, direction, t->near, end)) ||
           occluded(t, t->balls, from, direction, t->near, end);
}

/* --- Optics --- */

int sk_refract(vec3 d, vec3 n, float ratio, vec3 *bent)
{
    float cosine = -v3_dot(d, n), square = 1.0f - ratio * ratio * (1.0f - cosine * cosine);
    if (square <= 0.0f)
        return 0;
    *bent = v3_unit(v3_along(v3_scale(d, ratio), ratio * cosine - sqrtf(square), n));
    return 1;
}

float sk_fresnel(vec3 d, vec3 n, float ratio)
{
    float in = clampf(-v3_dot(d, n), 0.0f, 1.0f), square = 1.0f - ratio * ratio * (1.0f - in * in);
    if (square <= 0.0f)
        return 1.0f;
    float out = sqrtf(square);
    float parallel = (in - ratio * out) / (in + ratio * out), across = (ratio * in - out) / (ratio * in + out);
    return 0.5f * (parallel * parallel + across * across);
}

vec3 sk_transmittance(const sk_tracer *t, float distance)
{
    return v3(expf(-t->absorption.x * distance), expf(-t->absorption.y * distance), expf(-t->absorption.z * distance));
}

/* --- What opaque things look like --- */

static vec3 shade_floor(const sk_tracer *t, const sk_hit *hit, vec3 direction, float travelled)
{
    vec3 light = v3_mul(sk_studio_floor_color(t->stage, hit->point, 0.0f), sk_floor_light(t, hit->point));
    const float seen = sk_studio_haze(t->stage, travelled + hit->distance);
    if (seen >= 1.0f)
        return light; /* near ground is without haze */
    vec3 flat = v3_unit(v3_along(direction, -v3_dot(direction, t->stage->up), t->stage->up));
    return v3_mix(sk_studio_sky(t->stage, flat), light, seen);
}

/* Fraction of the sun at a point of a solid: none behind solids, tinted behind liquid. */
static vec3 sun_at(const sk_tracer *t, vec3 point)
{
    if (sk_trace_blocked(t, point, t->stage->sun, INFINITY))
        return v3(0, 0, 0);
    sk_hit water = sk_trace_water(t, point, t->stage->sun, t->near, INFINITY);
    if (water.kind != SK_HIT_WATER)
        return v3(1, 1, 1);
    float length = v3_dot(water.face, t->stage->sun) > 0.0f ? water.distance : 0.5f * t->contact;
    return v3_scale(sk_transmittance(t, length), 0.85f);
}

static vec3 shade_lit(const sk_tracer *t, vec3 albedo, vec3 point, vec3 normal, vec3 direction, float gloss)
{
    const sk_stage *stage = t->stage;
    float facing = v3_dot(normal, stage->sun);
    vec3 light = sk_studio_ambient(stage, normal);
    /* Near the floor less of the sky is seen. */
    float height = (v3_dot(point, stage->up) - stage->floor_height) / (0.12f * (float)stage->diagonal);
    light = v3_scale(light, 0.72f + 0.28f * clampf(height, 0.0f, 1.0f));
    vec3 shine = v3(0, 0, 0);
    if (facing > 0.0f) {
        vec3 sun = v3_mul(sun_at(t, v3_along(point, 4.0f * t->near, normal)), sk_studio_sunlight(stage));
        light = v3_along(light, 0.42f * facing, sun);
        vec3 half = v3_unit(v3_sub(stage->sun, direction));
        shine = v3_scale(sun, gloss * powf(fmaxf(v3_dot(normal, half), 0.0f), 60.0f));
    }
    vec3 mirrored = v3_reflect(direction, normal);
    float edge = 0.03f + 0.35f * powf(1.0f - clampf(-v3_dot(direction, normal), 0.0f, 1.0f), 5.0f);
    return v3_add(v3_add(v3_mul(albedo, light), shine), v3_scale(sk_studio_sky(stage, mirrored), edge * gloss * 2.0f));
}

/* Polished metal shows the sky and the floor. */
static vec3 shade_metal(const sk_tracer *t, vec3 point, vec3 normal, vec3 direction)
{
    const vec3 tint = v3(0.80f, 0.79f, 0.77f), back = v3_reflect(direction, normal);
    vec3 seen = sk_studio_sky(t->stage, back);
    const float down = v3_dot(back, t->stage->up);
    if (down < -0.02f) {
        const float distance = (v3_dot(point, t->stage->up) - t->stage->floor_height) / -down;
        const vec3 floor = v3_along(point, distance, back);
        seen = v3_mul(sk_studio_floor_color(t->stage, floor, 0.0f), sk_floor_light(t, floor));
    }
    return v3_add(v3_scale(v3_mul(tint, seen), 0.85f),
                  shade_lit(t, v3(0.06f, 0.06f, 0.06f), point, normal, direction, 0.5f));
}

/* Share of light that passes a solid. */
static float clearness(const sk_tracer *t, const sk_hit *hit)
{
    if (hit->kind != SK_HIT_SOLID || t->solid_owner[hit->primitive] < 0)
        return 0.0f;
    const sk_stage_solid *solid = &t->stage->solids[t->solid_owner[hit->primitive]];
    const selkie_look look = solid->def ? solid->def->look : SELKIE_LOOK_PAINTED;
    return look == SELKIE_LOOK_GLASS ? 0.93f : look == SELKIE_LOOK_ICE ? 0.45f : 0.0f;
}

static vec3 shade_solid(const sk_tracer *t, const sk_hit *hit, vec3 direction)
{
    vec3 normal = v3_dot(hit->normal, direction) < 0.0f ? hit->normal : v3_scale(hit->normal, -1.0f);
    const int owner = t->solid_owner[hit->primitive];
    if (owner < 0) { /* a solid of particles */
        const vec3 color = sk_stage_points_color(t->stage, -1 - owner);
        const vec3 albedo = v3(sk_from_srgb(color.x), sk_from_srgb(color.y), sk_from_srgb(color.z));
        return shade_lit(t, albedo, hit->point, normal, direction, 0.1f);
    }
    const sk_stage_solid *solid = &t->stage->solids[owner];
    switch (solid->def ? solid->def->look : SELKIE_LOOK_PAINTED) {
    case SELKIE_LOOK_STONE:
        return shade_lit(t, v3(0.36f, 0.35f, 0.33f), hit->point, normal, direction, 0.05f);
    case SELKIE_LOOK_RUBBER:
        return shade_lit(t, v3(0.025f, 0.025f, 0.028f), hit->point, normal, direction, 0.35f);
    case SELKIE_LOOK_METAL:
        return shade_metal(t, hit->point, normal, direction);
    case SELKIE_LOOK_ICE:
        return shade_lit(t, v3(0.62f, 0.76f, 0.84f), hit->point, normal, direction, 0.6f);
    default:
        return shade_lit(t, sk_studio_solid_color(owner), hit->point, normal, direction, 0.25f);
    }
}

static vec3 shade_ball(const sk_tracer *t, const sk_hit *hit, vec3 direction)
{
    const float *ball = t->ball[hit->primitive];
    vec3 normal = v3_unit(v3_sub(hit->point, v3(ball[0], ball[1], ball[2])));
    const float value = t->ball_speed[hit->primitive];
    vec3 color = value < 0.0f ? sk_stage_points_color(t->stage, (int)(-1.0f - value))
                              : sk_stage_speed_color(t->color, value, t->speed_scale);
    vec3 albedo = v3(sk_from_srgb(color.x), sk_from_srgb(color.y), sk_from_srgb(color.z));
    /* Two rays a few balls long estimate the depth of the ball among the others. */
    vec3 across = v3_unit(v3_cross(normal, fabsf(normal.x) < 0.7f ? v3(1, 0, 0) : v3(0, 1, 0)));
    vec3 other = v3_cross(normal, across), from = v3_along(hit->point, 0.05f * ball[3], normal);
    float open = 1.0f;
    for (unsigned k = 0; k < 2; ++k) {
        float angle = 6.2831853f * sk_sample((unsigned)(long long)(hit->point.x * 7919.0f / ball[3]),
                                             (unsigned)(long long)(hit->point.y * 7919.0f / ball[3]), hit->primitive) +
                      3.1415927f * (float)k;
        vec3 d =
            v3_unit(v3_add(normal, v3_add(v3_scale(across, 0.8f * cosf(angle)), v3_scale(other, 0.8f * sinf(angle)))));
        open -= sk_trace_blocked(t, from, d, 12.0f * ball[3]) ? 0.27f : 0.0f;
    }
    return v3_scale(shade_lit(t, v3_scale(albedo, open), hit->point, normal, direction, 0.12f), 1.25f);
}

static vec3 shade_opaque(const sk_tracer *t, const sk_hit *hit, vec3 direction, float travelled)
{
    switch (hit->kind) {
    case SK_HIT_FLOOR:
        return shade_floor(t, hit, direction, travelled);
    case SK_HIT_SOLID:
        return shade_solid(t, hit, direction);
    case SK_HIT_BALL:
        return shade_ball(t, hit, direction);
    default:
        return sk_studio_sky(t->stage, direction);
    }
}

/* --- Water --- */

/* The depth of a path counts surfaces of liquid in its lower four bits, clear solids above them. */
enum { inside_bounces = 5, deepest = 2, one_pane = 16, most_panes = 8 };

static int surfaces_passed(int depth)
{
    return depth % one_pane;
}

static vec3 light_in_air(const sk_tracer *t, vec3 from, vec3 direction, int depth, float travelled);

/* A clear solid: what lies behind it, without refraction, and the reflection of its surface. The path goes on where it
 * leaves the solid: liquid that touches the solid has its surface a little inside. */
static vec3 light_through_solid(const sk_tracer *t, const sk_hit *hit, vec3 direction, int depth, float travelled)
{
    const float clear = clearness(t, hit);
    const vec3 normal = v3_dot(hit->normal, direction) < 0.0f ? hit->normal : v3_scale(hit->normal, -1.0f);
    const float mirrored = sk_fresnel(direction, normal, 1.0f / 1.5f);
    vec3 surface = clear > 0.9f ? v3(0.30f, 0.36f, 0.36f) : shade_solid(t, hit, direction);
    vec3 from = hit->point;
    if (v3_dot(hit->face, direction) < 0.0f) {
        const sk_hit back = sk_trace_solids(t, hit->point, direction, t->near, INFINITY);
        if (back.kind == SK_HIT_SOLID && v3_dot(back.face, direction) > 0.0f)
            from = back.point;
    }
    vec3 behind = depth < most_panes * one_pane
                      ? light_in_air(t, from, direction, depth + one_pane, travelled + hit->distance)
                      : sk_studio_sky(t->stage, direction);
    vec3 through = v3_mix(surface, behind, clear);
    return v3_mix(through, sk_studio_sky(t->stage, v3_reflect(direction, normal)), mirrored);
}

/* Light along a path inside the liquid. */
static vec3 light_in_water(const sk_tracer *t, vec3 from, vec3 direction, int depth, float travelled)
{
    vec3 light = v3(0, 0, 0), weight = v3(1, 1, 1);
    for (int bounce = 0; bounce < inside_bounces; ++bounce) {
        sk_hit water = sk_trace_water(t, from, direction, t->near, INFINITY);
        sk_hit opaque = sk_trace_solids(t, from, direction, t->near, water.distance + t->contact);
        int ends = opaque.kind != SK_HIT_SKY;
        float length = ends ? fminf(opaque.distance, water.distance) : water.distance;
        if (!isfinite(length))
            return v3_add(light, v3_mul(weight, sk_studio_sky(t->stage, direction)));
        vec3 passed = sk_transmittance(t, length);
        vec3 lost = v3_sub(v3(1, 1, 1), passed);
        light = v3_add(light, v3_mul(weight, v3_mul(lost, t->scatter)));
        weight = v3_mul(weight, passed);
        travelled += length;
        if (ends)
            return v3_add(light, v3_mul(weight, clearness(t, &opaque) > 0.0f
                                                    ? light_through_solid(t, &opaque, direction, depth, travelled)
                                                    : shade_opaque(t, &opaque, direction, travelled)));

        vec3 normal = v3_dot(water.normal, direction) < 0.0f ? water.normal : v3_scale(water.normal, -1.0f), bent;
        from = water.point;
        if (!sk_refract(direction, normal, t->liquid_index, &bent)) {
            direction = v3_reflect(direction, normal);
            continue;
        }
        float mirrored = sk_fresnel(direction, normal, t->liquid_index);
        light = v3_add(light, v3_scale(v3_mul(weight, t->scatter), mirrored));
        weight = v3_scale(weight, 1.0f - mirrored);
        vec3 beyond = surfaces_passed(depth) < deepest ? light_in_air(t, from, bent, depth + 1, travelled)
                                                       : sk_studio_sky(t->stage, bent);
        return v3_add(light, v3_mul(weight, beyond));
    }
    return v3_add(light, v3_mul(weight, t->scatter));
}

static vec3 light_at_water(const sk_tracer *t, const sk_hit *water, vec3 direction, int depth, float travelled)
{
    vec3 normal = v3_dot(water->normal, direction) < 0.0f ? water->normal : v3_scale(water->normal, -1.0f), bent;
    float mirrored = sk_fresnel(direction, normal, 1.0f / t->liquid_index);
    vec3 back = v3_reflect(direction, normal), seen;
    /* Smoothed normals can reflect a ray into the liquid; it is lifted along the face. */
    vec3 face = v3_dot(water->face, direction) < 0.0f ? water->face : v3_scale(water->face, -1.0f);
    float below = v3_dot(back, face);
    if (below < 0.02f)
        back = v3_unit(v3_along(back, 0.02f - below, face));
    if (surfaces_passed(depth) == 0) {
        sk_hit opaque = sk_trace_solids(t, water->point, back, t->near, INFINITY);
        sk_hit other = sk_trace_water(t, water->point, back, t->near, opaque.distance);
        if (other.kind == SK_HIT_WATER) {
            vec3 n = v3_dot(other.normal, back) < 0.0f ? other.normal : v3_scale(other.normal, -1.0f);
            float f = sk_fresnel(back, n, 1.0f / t->liquid_index);
            seen = v3_mix(v3_scale(t->scatter, 1.1f), sk_studio_sky(t->stage, v3_reflect(back, n)), f);
        } else {
            seen = shade_opaque(t, &opaque, back, travelled);
        }
    } else {
        seen = sk_studio_sky(t->stage, back);
    }
    if (!sk_refract(direction, normal, 1.0f / t->liquid_index, &bent))
        return seen;
    vec3 through = v3(0, 0, 0);
    if (t->cloudy < 1.0f)
        through = light_in_water(t, water->point, bent, depth, travelled);
    if (t->cloudy > 0.0f)
        through = v3_mix(through, shade_lit(t, t->scatter, water->point, normal, direction, 0.0f), t->cloudy);
    return v3_mix(through, seen, mirrored);
}

/* The first thing but liquid on a path. */
static sk_hit first_opaque(const sk_tracer *t, vec3 from, vec3 direction, float start)
{
    const sk_hit hit = sk_trace_solids(t, from, direction, start, INFINITY);
    const sk_hit ball = sk_trace_balls(t, from, direction, start, hit.distance);
    return ball.kind == SK_HIT_BALL ? ball : hit;
}

/* Light of the first thing on a path. */
static vec3 light_of(const sk_tracer *t, sk_hit hit, vec3 from, vec3 direction, int depth, float travelled)
{
    /* Behind a clear solid the path may begin in liquid that reaches into the next one. */
    if (depth >= one_pane && hit.kind != SK_HIT_WATER) {
        const sk_hit water = sk_trace_water(t, from, direction, t->near, INFINITY);
        if (water.kind == SK_HIT_WATER && v3_dot(water.face, direction) > 0.0f)
            return light_in_water(t, from, direction, depth, travelled);
    }
    if (clearness(t, &hit) > 0.0f)
        return light_through_solid(t, &hit, direction, depth, travelled);
    if (hit.kind != SK_HIT_WATER)
        return shade_opaque(t, &hit, direction, travelled);
    /* From inside: the eye is under water. */
    if (v3_dot(hit.face, direction) > 0.0f)
        return light_in_water(t, from, direction, depth, travelled);
    return light_at_water(t, &hit, direction, depth, travelled + hit.distance);
}

static vec3 light_in_air(const sk_tracer *t, vec3 from, vec3 direction, int depth, float travelled)
{
    const sk_hit opaque = first_opaque(t, from, direction, t->near);
    const sk_hit water = sk_trace_water(t, from, direction, t->near, opaque.distance);
    return light_of(t, water.kind == SK_HIT_WATER ? water : opaque, from, direction, depth, travelled);
}

vec3 sk_trace_light(const sk_tracer *t, vec3 from, vec3 direction, const sk_hit *water, float *distance)
{
    sk_hit hit = first_opaque(t, from, direction, 0.0f);
    if (water->kind == SK_HIT_WATER && water->distance < hit.distance)
        hit = *water;
    *distance = hit.distance;
    return light_of(t, hit, from, direction, 0, 0.0f);
}

#endif
