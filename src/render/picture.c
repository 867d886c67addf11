#include "render/picture.h"

#include <omp.h>
#include <stdio.h>

#include "defs/cut_plane.h"
#include "render/stage.h"
#include "selkie_config.h"

int sk_picture_traces_rays(void)
{
    return SELKIE_HAVE_EMBREE;
}

void sk_picture_options_defaults(const selkie_scene *scene, sk_picture_options *options)
{
    *options =
        (sk_picture_options){.style = scene->render.style, .color = scene->render.color, .time = NAN, .label = 1};
    options->shutter = scene->render.shutter * sk_picture_interval(scene);
}

double sk_picture_interval(const selkie_scene *scene)
{
    return (scene->output.every > 1 ? scene->output.every : 1) / (scene->time.fps > 0 ? scene->time.fps : 30.0);
}

void sk_picture_cut(const char *text, const double origin[3], sk_picture_options *options)
{
    if (!text || !sk_cut_plane(text, options->cut))
        return;
    for (int d = 0; d < 3; d++)
        options->cut[3] -= options->cut[d] * origin[d];
}

int sk_picture_cuts(const sk_picture_options *options, const float x[3])
{
    const double *cut = options->cut;
    return (cut[0] != 0.0 || cut[1] != 0.0 || cut[2] != 0.0) &&
           cut[0] * (double)x[0] + cut[1] * (double)x[1] + cut[2] * (double)x[2] > cut[3];
}

/* Films want even sides. */
static int even(double x)
{
    int side = 2 * (int)(x / 2 + 0.5);
    return side < 16 ? 16 : side > SK_IMAGE_MAX_SIDE ? SK_IMAGE_MAX_SIDE : side;
}

void sk_picture_size(const sk_stage *stage, const sk_picture_options *options, int *width, int *height)
{
    const selkie_render_def *render = &stage->scene->render;
    *width = options->width > 0 ? options->width : render->width > 0 ? render->width : 960;
    *height = options->height > 0 ? options->height : options->width > 0 ? 0 : render->height;
    if (*height > 0)
        return;
    double ratio = 9.0 / 16.0;
    if (stage->dimension == 2) {
        ratio = (stage->high[1] - stage->low[1]) / (stage->high[0] - stage->low[0]);
        ratio = fmin(fmax(ratio, 0.3), 1.5);
    }
    *height = even(*width * ratio);
}

static void draw_time(const sk_picture_options *options, sk_image *image)
{
    if (!options->label || !isfinite(options->time))
        return;
    char text[48];
    float size = fmaxf(9.0f, (float)image->height / 45.0f);
    snprintf(text, sizeof text, "t = %.2f s", options->time);
    const sk_text_style style = {.size = size, .color = v3(0.12f, 0.16f, 0.20f), .alpha = 0.85f};
    sk_image_text(image, size, (float)image->height - size, text, &style);
}

selkie_code sk_picture_draw(const sk_stage *stage, const sk_picture_particles *particles,
                            const sk_picture_options *options, sk_image *image, selkie_error *error)
{
    int width, height, threads = options->threads > 0 ? options->threads : omp_get_max_threads();
    sk_picture_size(stage, options, &width, &height);
    SK_TRY(sk_image_create(image, width, height, error));
    selkie_code code;
    if (stage->dimension == 2)
        code = sk_draw_flat(stage, particles, options, threads, image, error);
    else if (options->preview)
        code = sk_draw_preview(stage, particles, options, threads, image, error);
    else if (sk_picture_traces_rays())
        code = sk_draw_traced(stage, particles, options, threads, image, error);
    else
        code = sk_draw_splats(stage, particles, options, threads, image, error);
    if (code)
        sk_image_free(image);
    else
        draw_time(options, image);
    return code;
}
