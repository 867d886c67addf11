/* Pictures and a film of a run's folder, finished or not. */
#ifndef SK_RENDER_RENDER_RUN_H
#define SK_RENDER_RENDER_RUN_H

#include <stddef.h>
#include <stdint.h>
#include <selkie/scene.h>
#include "base/status.h"

#define SK_PICTURES_FOLDER "pictures"
#define SK_PICTURE_PREFIX "frame_"
#define SK_FILM_NAME "film.mp4"

typedef struct sk_render_run_options {
    int width, height;       /* pixels; 0 = as the scene says */
    int style;               /* selkie_picture_style, -1 = as the scene says */
    int color;               /* selkie_picture_color, -1 = as the scene says */
    int64_t first, last;     /* frames; last < 0 = to the end */
    double fps;              /* of the film; 0 = the scene's, over output.every */
    double speed_scale;      /* m/s of the fastest colour; 0 = from the scene */
    int samples;             /* rays a pixel where it matters; 0 = 4 */
    int label;               /* the time in the corner */
    int threads;             /* 0 = all cores */
    int force;               /* draw again what is up to date */
    int film;                /* 0 = pictures only */
    int preview;             /* 3D: quick pictures without rays */
    double shutter;          /* 3D: exposure, over the time between frames: motion blur; below 0 = as the scene says */
    const char *cut;         /* 3D: cut-away view, a plane of the scene as in its key; NULL = as the scene says */
    const char *environment; /* 3D: picture of the surroundings, an absolute path; NULL = as the scene says */
} sk_render_run_options;

void sk_render_run_defaults(sk_render_run_options *options);

typedef struct sk_render_run_progress {
    int64_t frame;      /* its number */
    size_t done, total; /* frames */
    int skipped;        /* it was up to date */
    int filming;        /* pictures are done, the film is being made */
    double draw_ms;     /* this frame took */
    const char *path;   /* of the picture or the film */
} sk_render_run_progress;

/* Called after every picture. A result other than 0 stops with SELKIE_ERROR_INTERRUPTED; finished pictures stay. */
typedef int (*sk_render_run_callback)(void *context, const sk_render_run_progress *progress);

/* Reads FOLDER/scene.json and FOLDER/frames/particles_NNNN.ply, writes FOLDER/pictures/frame_NNNN.png and
 * FOLDER/film.mp4. A picture newer than its particles and of the right size is kept, so that repeated calls during a
 * run draw only new frames. Pictures drawn with other options (recorded in a file beside them) are drawn again, and
 * stay until then. */
selkie_code sk_render_run(const char *folder, const sk_render_run_options *options, sk_render_run_callback callback,
                          void *context, selkie_error *error);

#endif
