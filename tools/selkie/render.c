/* `selkie render`: pictures and a film of a run's folder. */
#define _GNU_SOURCE
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defs/cut_plane.h"
#include "progress.h"
#include "render/environment.h"
#include "render/film.h"
#include "render/render_run.h"
#include "run_folder.h"
#include "tool.h"

enum {
    render_width,
    render_height,
    render_style,
    render_color,
    render_frames,
    render_fps,
    render_force,
    render_no_film,
    render_preview,
    render_shutter,
    render_cut,
    render_environment,
    render_threads,
    render_quiet,
    render_option_count
};

/* In the order of selkie_picture_style and selkie_picture_color. */
static const char *const styles[] = {"surface", "particles", "dye", "streamlines", "lic", NULL};
static const char *const colors[] = {"water",       "speed",  "density",        "role", "material",
                                     "temperature", "stress", "plastic_strain", NULL};

static const option_spec render_options[] = {
    [render_width] = {.name = "width",
                      .kind = OPTION_INTEGER,
                      .value = "N",
                      .least = 16,
                      .most = 16384,
                      .help = "width of the pictures in pixels; default as in the scene"},
    [render_height] = {.name = "height",
                       .kind = OPTION_INTEGER,
                       .value = "N",
                       .least = 16,
                       .most = 16384,
                       .help = "height in pixels; default as in the scene, or from the domain's proportions"},
    [render_style] =
        {.name = "style",
         .kind = OPTION_CHOICE,
         .value = "STYLE",
         .choices = styles,
         .help = "surface: the liquid's surface as water; particles: a ball a particle; 2D also dye: the colour "
                 "of the nearest particle, streamlines, lic: line integral convolution"},
    [render_color] =
        {.name = "color",
         .kind = OPTION_CHOICE,
         .value = "COLOR",
         .choices = colors,
         .help = "water, speed, density, role, material, temperature, stress or plastic_strain: what the colours show"},
    [render_frames] = {.name = "frames",
                       .kind = OPTION_TEXT,
                       .value = "A:B",
                       .help = "only frames A to B; A: and :B leave one end open, a single number is one frame"},
    [render_fps] = {.name = "fps",
                    .kind = OPTION_NUMBER,
                    .value = "N",
                    .least = 0.1,
                    .most = 1000,
                    .help = "pictures a second of the film; default as time passes in the scene"},
    [render_force] = {.name = "force", .kind = OPTION_FLAG, .help = "draw pictures again that are up to date"},
    [render_no_film] = {.name = "no-film", .kind = OPTION_FLAG, .help = "make pictures only"},
    [render_preview] = {.name = "preview",
                        .kind = OPTION_FLAG,
                        .help = "3D: quick pictures without rays, to look at a run while it goes on"},
    [render_shutter] = {.name = "shutter",
                        .kind = OPTION_NUMBER,
                        .value = "S",
                        .least = 0,
                        .most = 1,
                        .help = "3D: motion blur; part of the time between frames that a picture is exposed, 0.5 in "
                                "most films. Default render.shutter of the scene"},
    [render_cut] = {.name = "cut",
                    .kind = OPTION_TEXT,
                    .value = "PLANE",
                    .help = "3D: cut-away view; 'z>0.4' leaves out what lies beyond 0.4 m along z, 'z<0.4' what lies "
                            "before it"},
    [render_environment] = {.name = "environment",
                            .kind = OPTION_TEXT,
                            .value = "FILE",
                            .help = "3D: picture of the surroundings (PNG, PPM or Radiance HDR); default "
                                    "render.environment of the scene"},
    [render_threads] = {.name = "threads",
                        .letter = 'j',
                        .kind = OPTION_INTEGER,
                        .value = "N",
                        .least = 1,
                        .most = 1024,
                        .help = "threads to use; default all cores"},
    [render_quiet] = {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "print errors only"},
};

/* Says which options a run of this dimension does not use. */
static void note_unused(const run_folder *folder, const option_value *values)
{
    char *path = run_folder_path(folder, "scene.json");
    selkie_scene *scene = NULL;
    const int loaded = path && sk_file_exists(path) && selkie_scene_load(path, 0, NULL, &scene, NULL) == SELKIE_OK;
    free(path);
    if (!loaded)
        return; /* the renderer says why */
    const int flat = scene->domain.dimension == 2;
    const long long style = values[render_style].given ? values[render_style].integer : 0;
    selkie_scene_free(scene);
    if (flat && (values[render_shutter].given || values[render_cut].given || values[render_preview].given ||
                 values[render_environment].given))
        fprintf(stderr, "selkie: note: --shutter, --cut, --environment and --preview have no effect on a 2D run\n");
    if (!flat && style >= SELKIE_STYLE_DYE)
        fprintf(stderr, "selkie: note: --style %s is for 2D runs; the surface is drawn\n", styles[style]);
}

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

typedef struct render_job {
    progress_line progress;
    int64_t drawn, kept;
    int filming;
} render_job;

static int on_progress(void *context, const sk_render_run_progress *state)
{
    render_job *job = context;
    if (state->filming) {
        if (!job->filming && !job->progress.quiet) {
            progress_break(&job->progress);
            printf("making the film\n");
            fflush(stdout);
        }
        job->filming = 1;
        return stop_signal != 0;
    }
    job->drawn += !state->skipped;
    job->kept += state->skipped;
    job->progress.total_frames = (int64_t)state->total;
    progress_count(&job->progress, "picture", (int64_t)state->done);
    return stop_signal != 0;
}

static void say_summary(const render_job *job, const char *folder, int film)
{
    char time[32];
    printf("%lld pictures drawn, %lld were up to date, in %s\n", (long long)job->drawn, (long long)job->kept,
           format_duration(progress_wall_seconds(&job->progress), time));
    printf("  pictures  %s/%s/%s*.png\n", folder, SK_PICTURES_FOLDER, SK_PICTURE_PREFIX);
    if (film)
        printf("  film      %s/%s\n", folder, SK_FILM_NAME);
}

/* The options of the command; `environment` has room for the whole path of that file. Returns an exit code, 0 = good.
 */
static int read_options(const option_value *values, sk_render_run_options *options, char environment[PATH_MAX])
{
    sk_render_run_defaults(options);
    options->width = (int)values[render_width].integer;
    options->height = (int)values[render_height].integer;
    if (values[render_style].given)
        options->style = (int)values[render_style].integer;
    if (values[render_color].given)
        options->color = (int)values[render_color].integer;
    if (values[render_frames].given && read_frame_range(values[render_frames].text, &options->first, &options->last))
        return EXIT_BAD_INPUT;
    options->fps = values[render_fps].number;
    options->threads = (int)values[render_threads].integer;
    options->force = values[render_force].given;
    options->film = !values[render_no_film].given;
    options->preview = values[render_preview].given;
    if (values[render_shutter].given)
        options->shutter = values[render_shutter].number;
    double plane[4];
    if (values[render_cut].given && !sk_cut_plane(values[render_cut].text, plane))
        return complain("--cut '%s' is not a plane such as 'z>0.4' or 'x<1'", values[render_cut].text);
    options->cut = values[render_cut].given ? values[render_cut].text : NULL;

    if (values[render_environment].given) {
        if (!realpath(values[render_environment].text, environment))
            return complain("--environment '%s': cannot be opened", values[render_environment].text);
        sk_environment surroundings;
        selkie_error error = {0};
        if (sk_environment_read(environment, NULL, "--environment", &surroundings, &error))
            return complain_error(&error);
        sk_environment_free(&surroundings);
        options->environment = environment;
    }
    return 0;
}

static int run_render(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    sk_render_run_options options;
    char environment[PATH_MAX];
    int code = read_options(values, &options, environment);
    if (code)
        return code;

    /* The folder, and whether a film can be made. */
    run_folder folder = {.lock = -1};
    code = run_folder_name(&folder, arguments->operands[0]);
    if (code)
        return code;
    if (!sk_folder_exists(folder.path)) {
        code = complain("%s: no such folder; 'selkie render' needs the folder of a run", folder.path);
        run_folder_close(&folder);
        return code;
    }
    note_unused(&folder, values);
    if (options.film && !sk_film_possible()) {
        fprintf(stderr, "selkie: note: no film, because the program ffmpeg is missing (apt-get install ffmpeg)\n");
        options.film = 0;
    }

    /* Pictures, until a signal stops them. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    render_job job = {0};
    progress_start(&job.progress, values[render_quiet].given, 0, 0, 0);
    selkie_error error = {0};
    selkie_code result = sk_render_run(folder.path, &options, on_progress, &job, &error);
    progress_break(&job.progress);
    if (result)
        code = complain_error(&error);
    else if (!values[render_quiet].given)
        say_summary(&job, folder.path, options.film);
    run_folder_close(&folder);
    return code;
}

const tool_command render_command = {
    .name = "render",
    .synopsis = "DIR",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "make pictures and a film of a run",
    .description =
        "Draws the frames that the run in DIR has written so far into DIR/pictures (PNG) and makes DIR/film.mp4 of "
        "them; the run may still be active. No display is needed. Pictures that are up to date are kept. Size, "
        "style, colours and camera come from the scene's render keys unless an option sets them.",
    .options = render_options,
    .option_count = render_option_count,
    .examples = "  selkie render out/dam\n"
                "  selkie render out/dam --width 1280 --frames 0:20 --no-film\n"
                "  selkie render out/dam --shutter 0.5 --cut 'z>0.4'\n",
    .run = run_render,
};
