/* The stage: what all ways of drawing share. */
#ifndef SK_RENDER_STAGE_H
#define SK_RENDER_STAGE_H

#include "geom/shape.h"
#include "render/environment.h"
#include "render/picture.h"

typedef struct sk_stage_solid {
    const selkie_obstacle_def *def; /* NULL for a body */
    int owner;                      /* the solid itself, or the obstacle that this one is an image of */
    double image[3];                /* m  from the obstacle to its image beyond a periodic side */
    double center[3];               /* m  of mass, of a body as drawn */
    sk_shape *shape;
    size_t triangle_count; /* in 2D segments */
    float *points;         /* m local frame */
    int is_particles;      /* a body of particles: they are drawn, not the shape */
} sk_stage_solid;

struct sk_stage {
    const selkie_scene *scene; /* the caller's; must outlive the stage */
    int dimension;
    double low[3], high[3];     /* m the domain, in whole cells */
    double cell_size;           /* m */
    double spacing;             /* m between particles at rest */
    double diagonal;            /* m of the domain */
    vec3 up, side, front;       /* unit; front points from the domain towards the default viewer */
    float floor_height;         /* m along up */
    vec3 sun;                   /* unit, towards the sun */
    float speed_scale;          /* m/s; 0 = unknown */
    sk_environment environment; /* in place of the sky */
    int solid_count;
    sk_stage_solid *solids; /* obstacles, then bodies, then images of obstacles beyond periodic sides */
};

/* Camera of a picture. */
typedef struct sk_camera {
    vec3 eye;                      /* m */
    vec3 right, up, forward;       /* unit */
    float half_width, half_height; /* tangents of half the angles of view */
    int width, height;             /* pixels */
} sk_camera;

/* `time` (s) is that of the scene's camera keys; NaN = the first one. */
void sk_camera_frame(const sk_stage *stage, double time, int width, int height, sk_camera *camera);
/* Direction (unit) through a point of the picture, in pixels. */
vec3 sk_camera_ray(const sk_camera *camera, float x, float y);
/* Pixel of a point; returns the depth along forward (m), not above 0 behind the eye. */
float sk_camera_project(const sk_camera *camera, vec3 point, float *x, float *y);

/* Light and ground, linear light. */
vec3 sk_studio_sky(const sk_stage *stage, vec3 direction);
/* `footprint` (m): width of what a sample stands for. */
vec3 sk_studio_floor_color(const sk_stage *stage, vec3 point, float footprint);
vec3 sk_studio_sunlight(const sk_stage *stage);
/* Ambient light from the sky on a surface of this normal. */
vec3 sk_studio_ambient(const sk_stage *stage, vec3 normal);
/* Visible fraction of the floor at a distance from the eye; the rest is haze. */
float sk_studio_haze(const sk_stage *stage, float distance);
vec3 sk_studio_solid_color(int solid);
/* Linear light to display values, sRGB 0..1. */
vec3 sk_studio_tone(vec3 light);

/* The same from a table over the square root of light. */
enum { sk_tone_count = 1024 };
#define sk_tone_brightest 16.0f

typedef struct sk_tones {
    float values[sk_tone_count + 1];
} sk_tones;

void sk_tones_fill(sk_tones *tones);

static inline float sk_tone_of(const sk_tones *tones, float light)
{
    const float at = sqrtf(clampf(light / sk_tone_brightest, 0.0f, 1.0f)) * sk_tone_count;
    const int i = at < sk_tone_count - 1 ? (int)at : sk_tone_count - 1;
    return mixf(tones->values[i], tones->values[i + 1], at - (float)i);
}

static inline vec3 sk_tone(const sk_tones *tones, vec3 light)
{
    return v3(sk_tone_of(tones, light.x), sk_tone_of(tones, light.y), sk_tone_of(tones, light.z));
}

/* Pose of an obstacle or body in a picture with these options. */
void sk_stage_pose(const sk_stage *stage, int solid, const sk_picture_options *options, sk_pose *pose);
/* World-space triangles of all obstacles and bodies; the caller frees *points with sk_release(NULL, ...) and *solid. */
selkie_code sk_stage_triangles(const sk_stage *stage, const sk_picture_options *options, size_t *count, float **points,
                               int **solid, selkie_error *error);

/* Colour (sRGB) of a particle's speed (m/s), or of its role or material where these are coloured. */
vec3 sk_stage_speed_color(selkie_picture_color color, float speed, float scale);
/* m/s: the option, or the stage's, or the 99 % quantile of these particles. */
float sk_stage_speed_scale(const sk_stage *stage, const sk_picture_particles *particles,
                           const sk_picture_options *options);

/* Solids of particles in pictures have a number: that of their material for elastoplastic points and bodies of
 * particles, and for frozen liquid that of its material behind the last one. */

/* Numbers of all that a scene can have. */
int sk_stage_solid_numbers(const sk_stage *stage);
/* Are there solids of particles beside liquid? Pictures then show them as solids, and liquid lets them through. */
int sk_stage_has_solid_points(const sk_stage *stage, const sk_picture_particles *particles);
/* Is a material one of elastoplastic points or bodies? */
int sk_stage_is_solid_material(const sk_stage *stage, uint32_t material);
/* Colour (sRGB) of a solid: clay and dough, sand; frozen liquid as ice, wax or rock; else that of the material. */
vec3 sk_stage_points_color(const sk_stage *stage, int solid);

static inline uint32_t sk_particle_material(const sk_picture_particles *p, size_t i)
{
    return p->material ? *(const uint32_t *)((const char *)p->material + i * p->material_stride) : 0;
}

/* The number of the solid that particle i is drawn as, -1 = liquid. Where stress, material and the like are coloured,
 * it keeps those colours. */
static inline int sk_particle_solid(const sk_stage *stage, const sk_picture_particles *p, size_t i)
{
    const uint32_t material = sk_particle_material(p, i);
    if (sk_stage_is_solid_material(stage, material))
        return (int)material;
    return p->liquid_fraction && p->liquid_fraction[i] < 0.5f ? sk_stage_solid_numbers(stage) / 2 + (int)material : -1;
}

static inline int sk_is_solid_point(const sk_stage *stage, const sk_picture_particles *p, size_t i)
{
    return sk_particle_solid(stage, p, i) >= 0;
}

static inline int sk_colors_flow(selkie_picture_color color)
{
    return color == SELKIE_COLOR_SPEED || color == SELKIE_COLOR_WATER;
}

static inline const float *sk_particle_position(const sk_picture_particles *p, size_t i)
{
    return (const float *)((const char *)p->position + i * p->position_stride);
}

static inline float sk_particle_speed(const sk_picture_particles *p, size_t i, int dimension)
{
    if (!p->velocity)
        return 0.0f;
    const float *v = (const float *)((const char *)p->velocity + i * p->velocity_stride);
    return sqrtf(v[0] * v[0] + v[1] * v[1] + (dimension == 3 ? v[2] * v[2] : 0.0f));
}

/* What a particle's colour shows: stress, plastic strain, role or material where these are coloured, else its speed,
 * m/s. */
static inline float sk_particle_value(const sk_picture_particles *p, size_t i, int dimension,
                                      selkie_picture_color color)
{
    if (color == SELKIE_COLOR_STRESS)
        return p->stress ? *(const float *)((const char *)p->stress + i * p->stress_stride) : 0.0f;
    if (color == SELKIE_COLOR_PLASTIC_STRAIN)
        return p->plastic_strain ? *(const float *)((const char *)p->plastic_strain + i * p->plastic_strain_stride)
                                 : 0.0f;
    if (color == SELKIE_COLOR_MATERIAL)
        return (float)sk_particle_material(p, i);
    if (color == SELKIE_COLOR_TEMPERATURE) { /* from 0 to 1; solid particles from 2 to 3 */
        const float range = p->warmest > p->coldest ? p->warmest - p->coldest : 1.0f;
        const float place = p->temperature ? (p->temperature[i] - p->coldest) / range : 0.0f;
        const int solid = p->liquid_fraction && p->liquid_fraction[i] < 0.5f;
        return (place < 0.0f ? 0.0f : place > 1.0f ? 1.0f : place) + (solid ? 2.0f : 0.0f);
    }
    if (color != SELKIE_COLOR_ROLE)
        return sk_particle_speed(p, i, dimension);
    return p->role ? (float)*(const uint32_t *)((const char *)p->role + i * p->role_stride) : 0.0f;
}

/* Whitewater over a picture; `depth` (m) is the distance from the eye to what each pixel shows. */
selkie_code sk_draw_foam(const sk_stage *stage, const sk_camera *camera, const sk_picture_options *options,
                         const float *depth, int threads, sk_image *image, selkie_error *error);

/* The ways of drawing. */
selkie_code sk_draw_traced(const sk_stage *stage, const sk_picture_particles *particles,
                           const sk_picture_options *options, int threads, sk_image *image, selkie_error *error);
/* A quick look: the nearest particles of each pixel as a smoothed surface. */
selkie_code sk_draw_preview(const sk_stage *stage, const sk_picture_particles *particles,
                            const sk_picture_options *options, int threads, sk_image *image, selkie_error *error);
selkie_code sk_draw_splats(const sk_stage *stage, const sk_picture_particles *particles,
                           const sk_picture_options *options, int threads, sk_image *image, selkie_error *error);
selkie_code sk_draw_flat(const sk_stage *stage, const sk_picture_particles *particles,
                         const sk_picture_options *options, int threads, sk_image *image, selkie_error *error);

/* Container's edges over a finished 3D picture; `depth` (may be NULL): m to the visible surface, per pixel. */
void sk_draw_container(const sk_stage *stage, const sk_camera *camera, const float *depth, sk_image *image);

#endif
