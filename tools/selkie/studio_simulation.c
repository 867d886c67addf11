/* The loop: commands, one step, blobs. Nothing here waits for the server. */
#define _GNU_SOURCE
#include "studio_simulation.h"

#include "selkie_config.h"

#if SELKIE_HAVE_JSON

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <omp.h>

#include "base/timer.h"
#include "studio_field.h"
#include "studio_run.h"
#include "studio_sketch.h"
#include "studio_text.h"
#include "studio_world.h"

static const double state_interval = 0.05, longest_debt = 0.25, slow_step = 1.0 / 30; /* s */

struct studio_simulation {
    pthread_t thread;
    studio_exchange *exchange;
    const known_scenes *scenes, *runs;
    char *first;
    studio_world studio;
    studio_run run; /* without frames: the world is shown */
    studio_state state;
    char message[1024];
    uint32_t state_number;
    int end_announced;             /* it paused at the end of the scene once */
    int starts;                    /* the first frame that a page takes makes it run */
    double step_wall, step_length; /* s  end of the last step; mean time between two */
    double base_time, base_wall;   /* s  where the pace is counted from */
    double frame_wall, state_wall; /* s  when the last ones were due */
    double rate_time, rate_wall;   /* s  where the rate is counted from */
    int frame_is_old, state_is_old;
};

static double now(void)
{
    return sk_wall_ms() / 1000;
}

static int shows_run(const studio_simulation *s)
{
    return s->run.frames.count > 0;
}

/* s  of what is shown */
static double shown_time(const studio_simulation *s)
{
    if (shows_run(s))
        return (double)s->run.at / selkie_world_scene(s->studio.world)->time.fps;
    return s->studio.world ? selkie_world_time(s->studio.world) : 0;
}

static void count_anew(studio_simulation *s)
{
    s->base_time = s->rate_time = shown_time(s);
    s->base_wall = s->rate_wall = now();
    s->state.is_behind = 0;
}

static void say(studio_simulation *s, const char *message)
{
    snprintf(s->message, sizeof s->message, "%s", message);
    s->state_is_old = 1;
}

/* --- Publishing --- */

static void publish_solids(studio_simulation *s)
{
    selkie_error error = {0};
    const selkie_scene *scene = shows_run(s) ? s->run.scene : selkie_world_scene(s->studio.world);
    studio_blob *blob = studio_solids_blob(scene, ++s->studio.numbers.solids, &s->studio.solids, &error);
    studio_publish(s->exchange, STUDIO_SOLIDS, blob);
    s->frame_is_old = s->state_is_old = 1;
}

static void publish_scene(studio_simulation *s)
{
    studio_publish(s->exchange, STUDIO_SCENE, studio_scene_blob(&s->studio));
    publish_solids(s);
    s->state.is_running = s->state.is_finished = 0;
    s->end_announced = 0;
    say(s, "");
    count_anew(s);
}

static studio_blob *make_frame(studio_simulation *s)
{
    selkie_error error = {0};
    int changed;
    if (!shows_run(s))
        return studio_frame_blob(s->studio.world, &s->studio.solids, s->studio.numbers,
                                 s->state.is_running && s->step_length > slow_step);
    if (studio_run_read(&s->run, &changed, &error) != SELKIE_OK) {
        say(s, error.message);
        return NULL;
    }
    s->state.run_time = s->run.time;
    if (changed)
        publish_solids(s);
    return studio_run_blob(&s->run, &s->studio.solids, s->studio.numbers);
}

static int frame_is_wanted(studio_simulation *s)
{
    pthread_mutex_lock(&s->exchange->lock);
    const int wanted = s->exchange->frame_wanted;
    pthread_mutex_unlock(&s->exchange->lock);
    return wanted;
}

/* Seconds between two frames. Large ones cost the simulation a tenth of its time at 45 a second, so they come less
 * often, a little more than 30 times. */
static double frame_interval(const studio_simulation *s)
{
    enum { many = 100000 }; /* particles */
    return s->studio.world && selkie_world_particle_count(s->studio.world) > many ? 1.0 / 34 : 1.0 / 60;
}

/* What is old and due. */
static void publish(studio_simulation *s)
{
    const double wall = now(), interval = frame_interval(s);
    const int is_still = !s->state.is_running;
    if (s->studio.world && s->frame_is_old && (is_still || wall - s->frame_wall >= interval) && frame_is_wanted(s)) {
        s->studio.numbers.frame++;
        studio_publish(s->exchange, STUDIO_FRAME, make_frame(s));
        /* Steps end when they end: counting from when the frame was due keeps the mean interval. */
        s->frame_wall = wall - s->frame_wall < 2 * interval ? s->frame_wall + interval : wall;
        s->frame_is_old = 0;
        if (s->starts) {
            s->starts = 0;
            s->state.is_running = s->state_is_old = 1;
            count_anew(s);
        }
    }
    if (s->state_is_old && (is_still || wall - s->state_wall >= state_interval)) {
        s->state.message = s->message;
        s->state.run_frames = (int64_t)s->run.frames.count;
        s->state.run_frame = s->run.at;
        studio_publish(s->exchange, STUDIO_STATE, studio_state_blob(&s->studio, &s->state, ++s->state_number));
        s->state_wall = wall;
        s->state_is_old = 0;
    }
}

/* --- Commands --- */

static const char *path_of(const known_scenes *list, const char *name)
{
    for (size_t i = 0; list && i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return list->items[i].path;
    return NULL;
}

static selkie_code refuse(selkie_error *error, const char *why)
{
    snprintf(error->message, sizeof error->message, "%s", why);
    return error->code = SELKIE_ERROR_INPUT;
}

static selkie_code open_scene(studio_simulation *s, const char *name, selkie_error *error)
{
    const char *path = path_of(s->scenes, name);
    if (!path)
        return refuse(error, "there is no scene of that name");
    selkie_code code = studio_world_open(&s->studio, name, path, error);
    if (code == SELKIE_OK) {
        studio_run_close(&s->run);
        publish_scene(s);
    }
    return code;
}

/* The world of a run's scene stands at its start; the frames are those of the files. */
static selkie_code open_run(studio_simulation *s, const char *name, selkie_error *error)
{
    studio_run run;
    const char *path = path_of(s->runs, name);
    if (!path)
        return refuse(error, "there is no run of that name");
    selkie_code code = studio_run_open(&run, path, error);
    if (code != SELKIE_OK)
        return code;
    code = studio_world_open(&s->studio, name, path, error);
    if (code != SELKIE_OK) {
        studio_run_close(&run);
        return code;
    }
    studio_run_close(&s->run);
    s->run = run;
    publish_scene(s);
    return SELKIE_OK;
}

static void seek(studio_simulation *s, int64_t frame)
{
    const int64_t last = (int64_t)s->run.frames.count - 1;
    s->run.at = frame < 0 ? 0 : frame > last ? last : frame;
    s->state.is_finished = s->run.at == last;
    s->frame_is_old = s->state_is_old = 1;
    count_anew(s);
}

static selkie_code reset(studio_simulation *s, selkie_error *error)
{
    /* The text once more: a world that failed, or lost its solids, starts as new. */
    char *text = s->studio.text ? strndup(s->studio.text, s->studio.text_length) : NULL;
    selkie_code code = studio_world_replace(&s->studio, text ? text : "", text ? s->studio.text_length : 0, error);
    free(text);
    if (code == SELKIE_OK) {
        studio_run_close(&s->run);
        publish_scene(s);
    }
    return code;
}

/* The next frame of a run. */
static void take_frame(studio_simulation *s)
{
    s->state.is_finished = s->run.at + 1 >= (int64_t)s->run.frames.count;
    s->run.at += !s->state.is_finished;
    s->state.is_running &= !s->state.is_finished;
    s->frame_is_old = s->state_is_old = 1;
}

static void take_step(studio_simulation *s)
{
    selkie_error error = {0};
    if (shows_run(s)) {
        take_frame(s);
        return;
    }
    selkie_world *world = s->studio.world;
    if (selkie_world_step(world, &error) != SELKIE_OK) {
        s->state.is_running = 0;
        say(s, error.message[0] ? error.message : selkie_code_name(error.code));
    }
    if (studio_world_took_changes(&s->studio))
        publish_solids(s);
    const double wall = now(), length = fmin(wall - s->step_wall, 1.0);
    s->step_length += 0.2 * (length - s->step_length);
    s->step_wall = wall;
    s->frame_is_old = s->state_is_old = 1;
    s->state.is_finished = selkie_world_time(world) >= s->studio.end * (1 - 1e-12);
    if (s->state.is_finished && !s->end_announced) {
        s->end_announced = 1;
        s->state.is_running = 0;
        say(s, "The end of the scene is reached. Run goes on.");
    }
}

static selkie_code change(studio_simulation *s, const studio_order *command, selkie_error *error)
{
    int solid;
    selkie_change_report report = {0, 0};
    const selkie_code code =
        studio_world_change(&s->studio, command->message.text, command->message.length, &solid, &report, error);
    if (code == SELKIE_OK) {
        if (solid)
            publish_solids(s);
        s->frame_is_old = s->state_is_old = 1;
    }
    return code;
}

static selkie_code sketch(studio_simulation *s, const studio_order *command, selkie_error *error)
{
    const char *path = path_of(s->scenes, command->message.text);
    selkie_scene *scene = NULL;
    if (!path)
        return refuse(error, "there is no scene of that name");
    const selkie_code code = selkie_scene_load(path, 0, NULL, &scene, error);
    if (code == SELKIE_OK)
        studio_answer(s->exchange, command->sender, studio_sketch_blob(scene, command->message.text));
    selkie_scene_free(scene);
    return code;
}

static void check(studio_simulation *s, const studio_order *command)
{
    selkie_error error = {0};
    if (studio_world_check(&s->studio, command->message.text, command->message.length, &error) == SELKIE_OK)
        error.code = SELKIE_OK;
    studio_answer(s->exchange, command->sender, studio_check_blob(&error));
}

static selkie_code draw(studio_simulation *s, const studio_order *command, selkie_error *error)
{
    studio_blob *blob;
    const selkie_code code =
        studio_drawing_blob(&s->studio, command->message.text, command->message.length, &blob, error);
    studio_answer(s->exchange, command->sender, blob);
    return code;
}

static selkie_code need_world(const studio_simulation *s, selkie_error *error)
{
    return s->studio.world ? SELKIE_OK : refuse(error, "no scene is open");
}

static void set_running(studio_simulation *s, int is_running)
{
    s->state.is_running = is_running;
    say(s, "");
    count_anew(s);
}

static selkie_code load(studio_simulation *s, const studio_order *command, selkie_error *error)
{
    const studio_message *message = &command->message;
    if (studio_world_replace(&s->studio, message->text, message->length, error) == SELKIE_OK) {
        studio_run_close(&s->run);
        publish_scene(s);
    }
    studio_answer(s->exchange, command->sender, studio_check_blob(error));
    return SELKIE_OK;
}

/* Commands to a world, or to a run that is shown. */
static selkie_code obey_in_scene(studio_simulation *s, const studio_order *command, selkie_error *error)
{
    const studio_message *message = &command->message;
    switch (message->verb) {
    case STUDIO_LOAD:
        return load(s, command, error);
    case STUDIO_SEEK:
        if (!shows_run(s))
            return refuse(error, "no run is open");
        set_running(s, 0);
        seek(s, message->frame);
        return SELKIE_OK;
    case STUDIO_RUN:
    case STUDIO_PAUSE:
        if (shows_run(s) && message->verb == STUDIO_RUN && s->state.is_finished)
            seek(s, 0);
        set_running(s, message->verb == STUDIO_RUN);
        return SELKIE_OK;
    case STUDIO_STEP:
        set_running(s, 0);
        take_step(s);
        return SELKIE_OK;
    case STUDIO_RESET:
        if (!shows_run(s))
            return reset(s, error);
        set_running(s, 0);
        seek(s, 0);
        return SELKIE_OK;
    case STUDIO_CHANGE:
        if (shows_run(s))
            return refuse(error, "this run was made before and cannot be steered: open its scene");
        return change(s, command, error);
    case STUDIO_DRAW:
        return draw(s, command, error);
    case STUDIO_FLOW:
        studio_answer(s->exchange, command->sender, studio_field_blob(s->studio.world, STUDIO_FIELD_FLOW));
        return SELKIE_OK;
    case STUDIO_RECORD:
        studio_answer(s->exchange, command->sender, studio_record_blob(&s->studio));
        return SELKIE_OK;
    default:
        return SELKIE_OK;
    }
}

static selkie_code obey(studio_simulation *s, const studio_order *command, selkie_error *error)
{
    const studio_message *message = &command->message;
    switch (message->verb) {
    case STUDIO_OPEN:
        return open_scene(s, message->text, error);
    case STUDIO_OPEN_RUN:
        return open_run(s, message->text, error);
    case STUDIO_SKETCH:
        return sketch(s, command, error);
    case STUDIO_CHECK:
        check(s, command);
        return SELKIE_OK;
    case STUDIO_SPEED:
        s->state.speed = message->value;
        s->state_is_old = 1;
        count_anew(s);
        return SELKIE_OK;
    default:
        return need_world(s, error) == SELKIE_OK ? obey_in_scene(s, command, error) : error->code;
    }
}

/* --- The thread --- */

/* s until the next step is due; 0 = now. */
static double time_to_wait(studio_simulation *s)
{
    if (!s->state.is_running || !(s->state.speed > 0))
        return 0;
    const double ahead = (shown_time(s) - s->base_time) / s->state.speed - (now() - s->base_wall);
    const int behind = ahead < -longest_debt;
    if (behind) { /* what was missed is not made up for */
        s->base_time = shown_time(s);
        s->base_wall = now();
    }
    s->state.is_behind = behind || (s->state.is_behind && ahead < 0);
    return fmax(ahead, 0);
}

static struct timespec time_after(double seconds)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += (time_t)floor(seconds);
    time.tv_nsec += (long)(1e9 * (seconds - floor(seconds)));
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

/* Waits for a command, a wish or the next step, and takes the first command. Returns 0 at the end. */
static int await(studio_simulation *s, studio_order *command, int *got)
{
    studio_exchange *exchange = s->exchange;
    const double to_frame = s->state.is_running ? fmax(s->frame_wall + frame_interval(s) - now(), 0) : 0;
    const int frame_is_due = s->frame_is_old && !(to_frame > 0);
    double wait = time_to_wait(s);
    if (s->frame_is_old && to_frame > 0)
        wait = fmin(wait, to_frame);
    const struct timespec until = time_after(wait);
    pthread_mutex_lock(&exchange->lock);
    while (!exchange->quit && !exchange->command_count && !(exchange->frame_wanted && frame_is_due)) {
        if (!s->state.is_running)
            pthread_cond_wait(&exchange->arrived, &exchange->lock);
        else if (!(wait > 0) || pthread_cond_timedwait(&exchange->arrived, &exchange->lock, &until))
            break;
    }
    *got = exchange->command_count > 0;
    if (*got) {
        *command = exchange->commands[0];
        memmove(exchange->commands, exchange->commands + 1,
                (size_t)(--exchange->command_count) * sizeof *exchange->commands);
    }
    const int quit = exchange->quit;
    pthread_mutex_unlock(&exchange->lock);
    return !quit;
}

static void measure_rate(studio_simulation *s)
{
    const double wall = now(), time = shown_time(s);
    if (wall - s->rate_wall < 0.5)
        return;
    s->state.rate = (time - s->rate_time) / (wall - s->rate_wall);
    s->rate_time = time;
    s->rate_wall = wall;
}

static void begin(studio_simulation *s)
{
    selkie_error error = {0};
    if (s->studio.threads)
        omp_set_num_threads(s->studio.threads);
    s->state_is_old = 1;
    if (s->first && open_scene(s, s->first, &error) != SELKIE_OK)
        say(s, error.message);
    publish(s);
}

/* A command, or a step that is due; then what is to be published. */
static void take_turn(studio_simulation *s, studio_order *command)
{
    selkie_error error = {0};
    if (command) {
        if (obey(s, command, &error) != SELKIE_OK)
            studio_answer(s->exchange, command->sender,
                          studio_problem(studio_verb_name(command->message.verb), error.message));
        studio_message_free(&command->message);
    } else if (s->state.is_running && !(time_to_wait(s) > 0)) {
        take_step(s);
        measure_rate(s);
    }
    publish(s);
}

static void *work(void *context)
{
    studio_simulation *s = context;
    studio_order command;
    int got;
    begin(s);
    while (await(s, &command, &got))
        take_turn(s, got ? &command : NULL);
    return NULL;
}

static studio_simulation *create(studio_exchange *exchange, const studio_simulation_options *options)
{
    studio_simulation *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->exchange = exchange;
    s->scenes = options->scenes;
    s->runs = options->runs;
    s->first = options->first ? strdup(options->first) : NULL;
    s->studio.threads = options->threads;
    s->starts = options->runs_at_once;
    s->state.speed = 1;
    return s;
}

static void destroy(studio_simulation *simulation)
{
    studio_world_close(&simulation->studio);
    studio_run_close(&simulation->run);
    free(simulation->first);
    free(simulation);
}

studio_simulation *studio_simulation_start(studio_exchange *exchange, const studio_simulation_options *options)
{
    studio_simulation *s = create(exchange, options);
    if (s && pthread_create(&s->thread, NULL, work, s)) {
        destroy(s);
        return NULL;
    }
    return s;
}

void studio_simulation_stop(studio_simulation *simulation)
{
    if (!simulation)
        return;
    studio_quit(simulation->exchange);
    pthread_join(simulation->thread, NULL);
    destroy(simulation);
}

/* --- Without a thread of its own --- */

studio_simulation *studio_simulation_open(studio_exchange *exchange, const studio_simulation_options *options)
{
    studio_simulation *s = create(exchange, options);
    if (s)
        begin(s);
    return s;
}

double studio_simulation_turn(studio_simulation *s)
{
    studio_exchange *exchange = s->exchange;
    studio_order command;
    const int got = exchange->command_count > 0;
    if (got) {
        command = exchange->commands[0];
        memmove(exchange->commands, exchange->commands + 1,
                (size_t)(--exchange->command_count) * sizeof *exchange->commands);
    }
    take_turn(s, got ? &command : NULL);
    if (exchange->command_count)
        return 0;
    return s->state.is_running ? time_to_wait(s) : -1;
}

uint32_t studio_simulation_checksum(const studio_simulation *simulation)
{
    return simulation->studio.world ? studio_particles_checksum(simulation->studio.world) : 0;
}

#endif
