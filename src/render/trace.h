/* Shared by the parts of the ray tracer. Only for builds with embree. */
#ifndef SK_RENDER_TRACE_H
#define SK_RENDER_TRACE_H

#include "selkie_config.h"

#if SELKIE_HAVE_EMBREE
#include "geom/surface.h"
#include "render/embree.h"
#include "render/stage.h"

typedef struct sk_tracer {
    const sk_stage *stage;
    sk_camera camera;
    sk_embree embree;
    RTCDevice device;
    RTCScene water;        /* the liquid's surface, NULL if none */
    RTCScene solids;       /* obstacles, NULL if none */
    RTCScene balls;        /* particles, NULL if none */
    float time;            /* of a ray, 0..1 over the exposure */
    float *moved[2];       /* m vertices at the start and the end of the exposure, NULL = not blurred */
    float *solid_moved[2]; /* m likewise of the solids */
    int has_cut;           /* what lies beyond the plane is left out */
    vec3 cut_normal;       /* unit */
    float cut_offset;      /* m */
    float water_box[2][3], solid_box[2][3]; /* m lower and upper corners */
    sk_mesh mesh;
    float (*water_normals)[9]; /* at the corners of the liquid's triangles: a hit reads one place of memory, not four */
    size_t solid_triangles;
    float *solid_points;
    int *solid_owner;     /* of a triangle: index in the stage's solids; -1 - m = the solid of particles m */
    float *solid_normals; /* at the corners, smooth where faces meet at less than 35 degrees */
    float (*ball)[4];     /* centre and radius */
    float *ball_speed;    /* what is coloured; -1 - m = the solid of particles m */
    float speed_scale;
    const sk_tones *tones;
    selkie_picture_color color;
    float near;         /* m offset of a ray's start from the surface that it leaves */
    float contact;      /* m liquid this close to a solid touches it */
    vec3 absorption;    /* 1/m of the liquid */
    vec3 scatter;       /* light that deep liquid sends back */
    float liquid_index; /* of refraction */
    float cloudy;       /* share of light that the liquid scatters at its surface, as milk does */
    int threads;

    /* Light on the floor, texels over a rectangle of it: sunlight and ambient, linear. */
    int map_side;                      /* texels along each side */
    float floor_low[2], floor_size[2]; /* m along side and front */
    vec3 *sunlight;                    /* fraction of the sun that arrives, coloured by the liquid it passed */
    float *openness;                   /* fraction of the sky that is seen */
} sk_tracer;

typedef enum sk_hit_kind { SK_HIT_SKY, SK_HIT_FLOOR, SK_HIT_SOLID, SK_HIT_WATER, SK_HIT_BALL } sk_hit_kind;

typedef struct sk_hit {
    sk_hit_kind kind;
    float distance; /* m; INFINITY for the sky */
    vec3 point;
    vec3 normal; /* unit, smooth for water, as the surface has it (outward) */
    vec3 face;   /* unit, of the triangle */
    unsigned primitive;
} sk_hit;

/* Particles of a solid, by its number; of -1: those of the liquid. */
typedef struct sk_trace_cloud {
    size_t count;
    float *position, *velocity; /* m, m/s; velocity may be NULL */
} sk_trace_cloud;

selkie_code sk_trace_select(const sk_tracer *t, const sk_picture_particles *particles, int solid, sk_trace_cloud *cloud,
                            selkie_error *error);
void sk_trace_cloud_free(sk_trace_cloud *cloud);
selkie_code sk_trace_surface(const sk_tracer *t, const sk_trace_cloud *cloud, sk_mesh *mesh, selkie_error *error);
/* Adds the surfaces of solids of particles to the triangles of the solids (trace_points.c). */
selkie_code sk_trace_add_points(sk_tracer *t, const sk_picture_particles *particles, double shutter,
                                selkie_error *error);

sk_hit sk_trace_solids(const sk_tracer *t, vec3 from, vec3 direction, float start, float end);
sk_hit sk_trace_water(const sk_tracer *t, vec3 from, vec3 direction, float start, float end);
sk_hit sk_trace_balls(const sk_tracer *t, vec3 from, vec3 direction, float start, float end);
/* Any liquid ahead? */
int sk_trace_meets_water(const sk_tracer *t, vec3 from, vec3 direction);
/* Anything opaque in the way? */
int sk_trace_blocked(const sk_tracer *t, vec3 from, vec3 direction, float end);

/* Refracts d at a surface with unit normal n against d; 0 for total reflection. `ratio` is the refractive index of this
 * side over that of the other. */
int sk_refract(vec3 d, vec3 n, float ratio, vec3 *bent);
/* Reflected fraction, for unpolarised light. */
float sk_fresnel(vec3 d, vec3 n, float ratio);
vec3 sk_transmittance(const sk_tracer *t, float distance);

/* Rays that are followed together to the first liquid. */
enum { sk_ray_group = 16 };

/* The first liquid that rays from the eye meet, at most sk_ray_group of them: packets cost less than single rays. */
void sk_trace_first_water(const sk_tracer *t, vec3 from, int count, const vec3 *directions, sk_hit *hits);
/* Light along a ray from the eye that meets this liquid first; *distance gets the distance of its first hit. */
vec3 sk_trace_light(const sk_tracer *t, vec3 from, vec3 direction, const sk_hit *water, float *distance);

/* Fills the floor's light (trace_light.c). */
selkie_code sk_trace_light_floor(sk_tracer *t, selkie_error *error);
vec3 sk_floor_light(const sk_tracer *t, vec3 point);

/* Deterministic numbers in [0, 1) for a pixel's k-th sample. */
static inline float sk_sample(unsigned a, unsigned b, unsigned k)
{
    unsigned h = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca77u ^ k * 0xc2b2ae3du;
    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    h ^= h >> 12;
    h *= 0x297a2d39u;
    h ^= h >> 15;
    return (float)(h >> 8) * (1.0f / 16777216.0f);
}

#endif
#endif
