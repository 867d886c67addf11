/* Pictures of particles in their scene, without a display.
 *
 * A stage is a scene prepared for drawing: obstacles as triangles, camera, light. One stage serves many frames. Drawing
 * does not change it, so frames may be drawn by several threads.
 *
 * 3D, style "surface": the liquid's surface ray traced (needs embree; without it the style "particles" is drawn).
 * 3D, style "particles": shaded balls coloured by speed (rays with embree, a depth buffer without).
 * 2D: filled liquid or discs, coloured by speed or density, with obstacles, frame and a scale of colours.
 */
#ifndef SK_RENDER_PICTURE_H
#define SK_RENDER_PICTURE_H

#include <stddef.h>
#include <stdint.h>
#include <selkie/scene.h>
#include "base/status.h"
#include "render/image.h"

typedef struct sk_picture_particles {
    size_t count;
    const float *position;        /* m   */
    size_t position_stride;       /* bytes */
    const float *velocity;        /* m/s, NULL = none */
    size_t velocity_stride;       /* bytes */
    const uint32_t *role;         /*     fluid 0, candidate 1, boundary 2; NULL = all fluid */
    size_t role_stride;           /* bytes */
    const uint32_t *material;     /*   index in the scene's table; NULL = all of the first */
    size_t material_stride;       /* bytes */
    const float *stress;          /* Pa  of elastoplastic points; NULL = none */
    size_t stress_stride;         /* bytes */
    const float *plastic_strain;  /*     likewise */
    size_t plastic_strain_stride; /* bytes */
    const float *temperature;     /* K   NULL = none; no stride: one behind the other */
    const float *liquid_fraction; /* likewise: below 0.5 it is solid; NULL = all liquid */
    float coldest, warmest;       /* K   ends of the colours */
} sk_picture_particles;

/* Pose of a rigid body. */
typedef struct sk_picture_body {
    double position[3];   /* m  of its centre of mass */
    double quaternion[4]; /*    w x y z */
} sk_picture_body;

/* Spray, foam and bubbles. */
typedef struct sk_picture_foam {
    size_t count;
    const float *position;  /* m     */
    size_t position_stride; /* bytes */
    const float *velocity;  /* m/s   NULL = none */
    size_t velocity_stride; /* bytes */
} sk_picture_foam;

typedef struct sk_picture_options {
    int width, height; /* pixels; 0 = the scene's; height 0 = from the domain's proportions */
    selkie_picture_style style;
    selkie_picture_color color;
    double time;    /* s   for moving obstacles and the label; NaN = not known */
    int body_count; /*     of `bodies`; other bodies are drawn at their initial poses */
    const struct sk_picture_body *bodies;
    const sk_picture_foam *foam; /* NULL = none; 3D only */
    const sk_image *dye;         /* style dye in 2D: what the dye of the domain looks like; NULL = by the particles */
    int preview;                 /*     3D: a quick look, without rays */
    double shutter;              /* s   3D: how long the picture is exposed; what moves is blurred. 0 = not at all */
    double cut[4];      /*     3D: unit normal n and offset d (m); liquid and obstacles where n x > d are left out.
                               n = 0: nothing is */
    double speed_scale; /* m/s the fastest colour; 0 = from gravity and the domain's height */
    int samples;        /*     rays a pixel where it matters; 0 = 4 */
    int label;          /*     write the time (and in 2D the scale of colours) into the picture */
    int threads;        /*     0 = all cores */
} sk_picture_options;

typedef struct sk_stage sk_stage;

selkie_code sk_stage_create(const selkie_scene *scene, sk_stage **stage, selkie_error *error);
void sk_stage_destroy(sk_stage *stage);

/* Options of the scene's render section, but for its cut. */
void sk_picture_options_defaults(const selkie_scene *scene, sk_picture_options *options);
/* s  between the frames of a run */
double sk_picture_interval(const selkie_scene *scene);
/* A cut-away view with a plane as in the scene's key `cut` ("" or NULL = none); the picture's coordinates begin at
 * `origin` (m). */
void sk_picture_cut(const char *text, const double origin[3], sk_picture_options *options);
/* Pixels that a picture with these options has. */
void sk_picture_size(const sk_stage *stage, const sk_picture_options *options, int *width, int *height);

/* Whether the cut of these options leaves out a point. */
int sk_picture_cuts(const sk_picture_options *options, const float x[3]);

selkie_code sk_picture_draw(const sk_stage *stage, const sk_picture_particles *particles,
                            const sk_picture_options *options, sk_image *image, selkie_error *error);

/* Whether this build traces rays (1) or draws with a depth buffer (0). */
int sk_picture_traces_rays(void);

#endif
