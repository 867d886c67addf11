/* `selkie run`: the loop around the world's step.
 *
 * After each step, in this order: the row of stats.csv, the row of probes.csv, the files of a frame if the step ends on
 * one, then a checkpoint if one is due. So a checkpoint is never ahead of the files: --resume cuts the tables to the
 * checkpoint's step, continues from it, and writes the later frames again, to the same bits.
 *
 * Frames and checkpoints are written in this order by a thread beside the simulation.
 *
 * A signal only sets a flag. The step in progress is finished and saved; a second signal ends the program at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timer.h"
#include "defs/materials.h"
#include "io/folder.h"
#include "io/table_file.h"
#include "io/writer.h"
#include "progress.h"
#include "resume.h"
#include "run_folder.h"
#include "run_tables.h"
#include "splash_pieces.h"
#include "statistics_text.h"
#include "tool.h"
#include "warnings.h"

/* --- Options --- */

enum {
    run_out,
    run_set,
    run_end,
    run_frames,
    run_threads,
    run_backend,
    run_from,
    run_resume,
    run_force,
    run_open_meshes,
    run_quiet,
    run_option_count
};

static const option_spec run_options[] = {
    [run_out] = {.name = "out",
                 .letter = 'o',
                 .kind = OPTION_TEXT,
                 .value = "DIR",
                 .help = "folder for the results; default out/NAME with the scene's file name"},
    [run_set] = {.name = "set",
                 .kind = OPTION_LIST,
                 .value = "KEY=VALUE",
                 .help = "change a key of the scene, as in --set time.end=2 or --set liquids[0].shape.radius=0.1; may "
                         "be given many times"},
    [run_end] = {.name = "end",
                 .kind = OPTION_NUMBER,
                 .value = "SECONDS",
                 .least = 0,
                 .most = 1e9,
                 .help = "simulate until this time; the same as --set time.end"},
    [run_frames] =
        {.name = "frames", .kind = OPTION_INTEGER, .value = "N", .least = 1, .most = 1e9, .help = "simulate N frames"},
    [run_threads] = {.name = "threads",
                     .letter = 'j',
                     .kind = OPTION_INTEGER,
                     .value = "N",
                     .least = 1,
                     .most = 1024,
                     .help = "threads to use; default all cores. Results do not depend on it"},
    [run_backend] = {.name = "backend",
                     .kind = OPTION_CHOICE,
                     .value = "NAME",
                     .choices = backend_names,
                     .help = "form of the numerics: tuned (the default) or plain, its simple and slow reference; the "
                             "same as --set backend"},
    [run_from] = {.name = "from",
                  .kind = OPTION_TEXT,
                  .value = "CHECKPOINT",
                  .help =
                      "start with the liquid of this checkpoint, or of the newest one of this run's folder, instead "
                      "of the scene's liquids; all else is the scene's"},
    [run_resume] = {.name = "resume",
                    .kind = OPTION_FLAG,
                    .help = "continue from the newest valid checkpoint in DIR, to the same bits as an uninterrupted "
                            "run; SCENE may be left out"},
    [run_force] = {.name = "force",
                   .kind = OPTION_FLAG,
                   .help = "start again in a folder that holds a run, and remove that run's files"},
    [run_open_meshes] = {.name = "allow-open-meshes",
                         .kind = OPTION_FLAG,
                         .help = "accept meshes with holes, whose inside is approximate"},
    [run_quiet] = {.name = "quiet",
                   .letter = 'q',
                   .kind = OPTION_FLAG,
                   .help = "print errors and warnings only; given twice, errors only"},
};

/* --- Signals --- */

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

static void catch_signals(void)
{
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND | SA_RESTART; /* the second one ends the program */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* Under nohup a closed terminal does not stop the run. */
    struct sigaction before;
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    /* `selkie run ... | head` continues to simulate. */
    signal(SIGPIPE, SIG_IGN);
}

/* --- One run --- */

typedef struct run_state {
    const tool_arguments *arguments;
    selkie_scene *scene;
    selkie_world *world;
    run_folder folder;
    run_tables tables;
    sk_writer *writer; /* of frames and checkpoints; NULL = no thread, they are written at once */
    progress_line progress;
    int quiet;                  /* 1 = errors and warnings only, 2 = errors only (-qq) */
    int warned;                 /* of a key that spoils the run: once is enough */
    double checkpoint_wall;     /* ms, when the last one was written */
    _Atomic int64_t saved_step; /* of the newest checkpoint, -1 = none; set by the thread that writes */
    int writer_told;            /* its error has been printed */
} run_state;

/* Tells of a failure on a line of its own. Returns the exit code. */
static int tell(run_state *run, selkie_code code, const selkie_error *error)
{
    if (!code)
        return EXIT_GOOD;
    progress_break(&run->progress);
    return complain_error(error);
}

/* The same for the thread that writes, whose first error every later call returns. */
static int tell_writer(run_state *run, selkie_code code, const selkie_error *error)
{
    if (code && run->writer_told)
        return EXIT_BAD_INPUT;
    run->writer_told |= code != SELKIE_OK;
    return tell(run, code, error);
}

/* The files of a frame. */
typedef struct frame_files {
    int count;
    sk_writer_file files[SK_WRITER_MOST_FILES];
    char *paths[SK_WRITER_MOST_FILES];
} frame_files;

/* Adds one of a frame's files; with `only_missing` an existing one is left as it is. */
static int add_frame_file(const run_state *run, frame_files *files, sk_writer_kind kind, const char *ending,
                          int only_missing)
{
    const char *stem = kind == SK_WRITER_SURFACE ? "surfaces/surface" : "frames/particles";
    char *path = run_folder_path(&run->folder, "%s_%04lld.%s", stem, (long long)selkie_world_frame(run->world), ending);
    if (!path)
        return complain("out of memory");
    if (only_missing && !access(path, F_OK)) {
        free(path);
        return EXIT_GOOD;
    }
    files->paths[files->count] = path;
    files->files[files->count++] = (sk_writer_file){kind, path};
    return EXIT_GOOD;
}

/* A file of the frame that is written at once, beside those of the particles. */
typedef selkie_code frame_writer(const selkie_world *world, const char *path, selkie_error *error);

/* Writes frames/PREFIXNNNN.ENDING of the frame as it is now. */
static int write_beside(run_state *run, frame_writer *writer, const char *prefix, const char *ending, int only_missing)
{
    selkie_error error = {0};
    char *folder = run_folder_path(&run->folder, SK_FRAMES_FOLDER),
         *path = run_folder_path(&run->folder, "frames/%s%04lld.%s", prefix, (long long)selkie_world_frame(run->world),
                                 ending);
    int code = path && folder ? EXIT_GOOD : complain("out of memory");
    if (!code && !(only_missing && !access(path, F_OK)) &&
        (sk_folder_make(folder, &error) || writer(run->world, path, &error))) {
        progress_break(&run->progress);
        code = complain_error(&error);
    }
    free(folder);
    free(path);
    return code;
}

static int write_frame(run_state *run, int only_missing)
{
    const selkie_output_def *output = &run->scene->output;
    if (output->every > 1 && selkie_world_frame(run->world) % output->every != 0)
        return EXIT_GOOD;
    frame_files files = {0};
    selkie_error error = {0};
    int code = EXIT_GOOD;
    if (output->ply)
        code = add_frame_file(run, &files, SK_WRITER_PARTICLES, "ply", only_missing);
    if (!code && output->vtp)
        code = add_frame_file(run, &files, SK_WRITER_PARTICLES, "vtp", only_missing);
    if (!code && output->skp)
        code = add_frame_file(run, &files, SK_WRITER_PARTICLES, "skp", only_missing);
    if (!code && output->surface != SELKIE_SURFACE_FORMAT_NONE)
        code = add_frame_file(run, &files, SK_WRITER_SURFACE,
                              output->surface == SELKIE_SURFACE_FORMAT_OBJ ? "obj" : "ply", only_missing);
    if (!code && files.count)
        code = tell_writer(run, sk_writer_add(run->writer, run->world, files.count, files.files, &error), &error);
    for (int i = 0; i < files.count; i++)
        free(files.paths[i]);
    if (!code && run->scene->discretization == SELKIE_DISCRETIZATION_REDUCED && run->scene->reduced.dye_count)
        code = write_beside(run, selkie_write_dye, SK_DYE_PREFIX, "png", only_missing);
    const int has_splashes =
        run->scene->discretization == SELKIE_DISCRETIZATION_GRID && run->scene->splashes && run->scene->splashes[0];
    if (!code && files.count && has_splashes && run->scene->splash.pairs)
        code = write_beside(run, write_splash_pieces, SK_DROPLETS_PREFIX, "ply", only_missing);
    return code;
}

/* Notes a checkpoint that is on the disk; then older ones may go. Called by the thread that writes. */
static void note_checkpoint(void *context, int64_t step)
{
    run_state *run = context;
    atomic_store(&run->saved_step, step);
    run_folder_prune(&run->folder, run->scene->output.checkpoint_keep);
}

/* A checkpoint of the world as it is; `waits`: until it is on the disk. */
static int save_checkpoint(run_state *run, int waits)
{
    const int64_t step = selkie_world_step_count(run->world);
    selkie_error error = {0};
    selkie_code code = waits ? sk_writer_wait(run->writer, &error) : SELKIE_OK;
    if (!code && atomic_load(&run->saved_step) != step) {
        char *path = run_folder_checkpoint(&run->folder, step);
        if (!path)
            return complain("out of memory");
        /* One that is waited for needs no copy. */
        const sk_writer_checkpoint file = {path, run->folder.path, step, note_checkpoint, run};
        code = sk_writer_add_checkpoint(waits ? NULL : run->writer, run->world, &file, &error);
        free(path);
        run->checkpoint_wall = sk_wall_ms();
    }
    return tell_writer(run, code, &error);
}

/* After an interruption: prints the saved state and the command that resumes. */
static void say_how_to_resume(const run_state *run, FILE *out)
{
    const int64_t step = atomic_load(&run->saved_step);
    if (step < 0)
        fprintf(out, "selkie: no checkpoint has been written yet; start again with --force\n");
    else
        fprintf(out, "selkie: saved up to step %lld; go on with: selkie run --resume --out %s\n", (long long)step,
                run->folder.path);
}

/* The loop. Returns an exit code; EXIT_INTERRUPTED where a signal stopped it. */
static int step_to_end(run_state *run)
{
    double interval_ms = run->scene->output.checkpoint_interval * 1e3;
    while (!selkie_world_finished(run->world)) {
        if (stop_signal)
            return EXIT_INTERRUPTED;

        /* Advance, and print the first warning. */
        selkie_error error = {0};
        if (selkie_world_step(run->world, &error)) {
            progress_break(&run->progress);
            return complain_error(&error);
        }
        if (selkie_world_warning(run->world) && !run->warned) {
            progress_break(&run->progress);
            fprintf(stderr, "selkie: note: %s\n", selkie_world_warning(run->world));
            run->warned = 1;
        }

        /* Write tables, frame and checkpoint where they are due. */
        int at_frame = selkie_world_at_frame(run->world);
        int code = tell(run, run_tables_write(&run->tables, run->world, &error), &error);
        if (!code && at_frame)
            code = write_frame(run, 0);
        if (!code && at_frame)
            code = tell(run, run_tables_write_bodies(&run->tables, run->world, &error), &error);
        if (!code && interval_ms > 0 && sk_wall_ms() - run->checkpoint_wall >= interval_ms)
            code = save_checkpoint(run, 0);
        if (code)
            return code;
        progress_step(&run->progress, selkie_world_statistics(run->world), selkie_world_frame(run->world), at_frame);
    }
    return EXIT_GOOD;
}

static void say_summary(const run_state *run)
{
    const selkie_statistics *s = selkie_world_statistics(run->world);
    char time[32], size[32], memory[32], text[statistic_text_length];
    double bytes;
    double seconds = progress_wall_seconds(&run->progress);
    printf("done: %.4g s, %lld frames, %lld steps, in %s of wall time, %s of memory\n", selkie_world_time(run->world),
           (long long)selkie_world_frame(run->world), (long long)selkie_world_step_count(run->world),
           format_duration(seconds, time), format_bytes((double)selkie_world_memory_peak(run->world), memory));
    for (int i = 0; s->step > 0 && i < selkie_statistic_count(); i++) {
        const selkie_statistic *row = selkie_statistic_info(i);
        if (row->summary == SELKIE_SUMMARY_LAST || row->summary == SELKIE_SUMMARY_RANGE)
            printf("  %-10s%s\n", statistic_brief(row), format_statistic(row, selkie_statistic_value(s, i), text));
    }
    printf("  tables    %s/stats.csv, %s/probes.csv\n", run->folder.path, run->folder.path);
    int64_t frames = run_folder_count(&run->folder, "frames", "", &bytes);
    if (frames)
        printf("  frames    %s/frames: %lld files, %s\n", run->folder.path, (long long)frames,
               format_bytes(bytes, size));
    int64_t surfaces = run_folder_count(&run->folder, "surfaces", "", &bytes);
    if (surfaces)
        printf("  surfaces  %s/surfaces: %lld files, %s\n", run->folder.path, (long long)surfaces,
               format_bytes(bytes, size));
    printf("  pictures  selkie render %s\n  plots     selkie plot %s\n", run->folder.path, run->folder.path);
}

/* --- Start --- */

static int refuse_open_mesh(const char *what, const selkie_shape *mesh, void *context)
{
    run_state *run = context;
    char warning[256];
    selkie_error error = {0};
    if (inspect_mesh(run->scene, what, mesh, warning, &error))
        return complain_error(&error);
    if (!warning[0])
        return EXIT_GOOD;
    if (!run->arguments->values[run_open_meshes].given)
        return complain("%s; close it, or use --allow-open-meshes to accept an approximate inside", warning);
    fprintf(stderr, "selkie: note: %s\n", warning);
    return EXIT_GOOD;
}

/* Prints a summary of the run; refuses what cannot run. */
static int look_before(run_state *run, const char *scene_path, selkie_plan *plan)
{
    int threads = (int)run->arguments->values[run_threads].integer;
    int code = visit_meshes(run->scene, refuse_open_mesh, run);
    size_t available = 0;
    if (!code)
        code = plan_scene(run->scene, threads, plan, &available);
    if (code)
        return code;
    warning_list warnings = {0};
    judge_scene(run->scene, plan, &warnings);
    if (run->quiet < 2)
        print_warnings(&warnings);
    if (run->quiet)
        return code;
    char particles[32], memory[32];
    printf("%s (%s)\n", run->scene->title && *run->scene->title ? run->scene->title : "untitled", scene_path);
    if (run->scene->domain.dimension == 2)
        printf("  %d x %d cells of %g m", plan->cells[0], plan->cells[1], plan->cell_size);
    else
        printf("  %d x %d x %d cells of %g m", plan->cells[0], plan->cells[1], plan->cells[2], plan->cell_size);
    printf(", %s particles", format_count(plan->particles, particles));
    if (plan->body_particles)
        printf(", %s of bodies", format_count(plan->body_particles, particles));
    printf(", %lld frames to %g s, about %s of memory\n", (long long)plan->frames, run->scene->time.end,
           format_bytes((double)plan->memory_bytes, memory));
    printf("  into %s\n", run->folder.path);
    char note[256];
    for (int n = 0; sk_scene_note(run->scene, n, note, sizeof note); n++)
        printf("  note: %s\n", note);
    fflush(stdout);
    return EXIT_GOOD;
}

/* Makes the world: from a checkpoint, or from the scene. */
static int make_world(run_state *run, int resume)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = (int)run->arguments->values[run_threads].integer;

    /* From the last checkpoint of the run. */
    if (resume) {
        int64_t saved = -1;
        int code = resume_from_checkpoint(&run->folder, run->scene, &options, &run->world, &saved);
        atomic_store(&run->saved_step, saved);
        if (code)
            return code;
        double reached = run->world ? selkie_world_time(run->world) : 0, end = run->scene->time.end;
        if (reached > end * (1 + 1e-9))
            return complain("%s: the run is already at %g s, beyond the requested end, %g s", run->folder.path, reached,
                            end);
        if (!run->quiet && run->world)
            printf("  going on from step %lld, %g s\n", (long long)selkie_world_step_count(run->world),
                   selkie_world_time(run->world));
        else if (!run->quiet)
            printf("  no checkpoint in %s: starting anew\n", run->folder.path);
        fflush(stdout);
    }

    /* From the checkpoint of another run, or from the scene. */
    selkie_error error = {0};
    const option_value *from = &run->arguments->values[run_from];
    if (from->given)
        return start_from_checkpoint(from->text, run->scene, &options, run->quiet, &run->world);
    if (!run->world && resume && started_from_checkpoint(&run->folder))
        return complain("%s: the run was started --from a checkpoint and has none of its own left; start it again with "
                        "--force",
                        run->folder.path);
    if (!run->world && selkie_world_create(run->scene, &options, &run->world, &error)) {
        run->world = NULL;
        const int code = complain_error(&error);
        if (code == EXIT_DIVERGED)
            fprintf(stderr, "selkie: try again with a larger pressure.max_iterations; idp.settle=0 leaves out the "
                            "correction before the first step\n");
        return code;
    }
    return EXIT_GOOD;
}

/* After all checks: makes the folder, or removes an earlier run from it. */
static int prepare_folder(run_state *run, run_start start)
{
    int code = run_folder_open(&run->folder, start);
    if (code)
        return code;

    /* scene.json, and the mark of a run in progress. */
    char *scene_path = run_folder_path(&run->folder, "scene.json");
    selkie_error error = {0};
    if (!scene_path)
        return complain("out of memory");
    if (selkie_scene_save(run->scene, scene_path, &error))
        code = complain_error(&error);
    free(scene_path);
    if (!code && sk_run_mark_unfinished(run->folder.path, &error))
        code = complain_error(&error);

    /* Folders. */
    if (!code && (run->scene->output.ply || run->scene->output.vtp || run->scene->output.skp))
        code = run_folder_make(&run->folder, "frames");
    if (!code && run->scene->output.surface != SELKIE_SURFACE_FORMAT_NONE)
        code = run_folder_make(&run->folder, "surfaces");
    if (!code)
        code = run_folder_make(&run->folder, "checkpoints");

    const int continued = atomic_load(&run->saved_step) >= 0;
    if (!code)
        code = tell(run, run_tables_open(&run->tables, &run->folder, run->world, continued, &error), &error);

    /* A resumed run has its frame already, unless a power cut lost it. */
    if (!code && (selkie_world_step_count(run->world) == 0 || selkie_world_at_frame(run->world)))
        code = write_frame(run, continued);
    return code;
}

/* Warnings about the whole run, from its table; printed and kept in the folder. */
static int warn_at_end(run_state *run)
{
    char *path = run_folder_path(&run->folder, "stats.csv");
    warning_list warnings = {0};
    sk_table *stats = NULL;
    selkie_error error = {0};
    int code = path ? EXIT_GOOD : complain("out of memory");
    if (path && sk_table_read(path, &stats, &error))
        code = complain_error(&error);
    free(path);
    if (!code)
        judge_run(run->scene, stats, &warnings);
    sk_table_free(stats);
    if (selkie_world_warning(run->world))
        add_warning(&warnings, "%s", selkie_world_warning(run->world));
    if (!code)
        code = record_warnings(&run->folder, &warnings);
    if (run->quiet < 2)
        print_warnings(&warnings);
    return code;
}

/* After the loop: final files, messages and the exit code. */
static int finish(run_state *run, int code)
{
    selkie_error error = {0};
    progress_break(&run->progress);

    /* Final files; a checkpoint also after an interruption. */
    if (code == EXIT_GOOD || code == EXIT_INTERRUPTED) {
        int saved = save_checkpoint(run, 1);
        if (saved)
            code = saved;
    } else if (sk_writer_wait(run->writer, &error))
        tell_writer(run, SELKIE_ERROR_FILE, &error);
    if (code == EXIT_GOOD)
        code = tell(run, run_tables_close(&run->tables, &error), &error);
    if (code == EXIT_GOOD && run->scene->whitewater.enabled && run->scene->domain.dimension == 3)
        code = make_whitewater(run->folder.path, (int)run->arguments->values[run_threads].integer, 1, run->quiet);
    if (code == EXIT_GOOD)
        code = warn_at_end(run);
    if (code == EXIT_GOOD &&
        sk_run_mark_finished(run->folder.path, selkie_world_step_count(run->world), selkie_world_time(run->world),
                             selkie_world_memory_peak(run->world), &error))
        code = complain_error(&error);

    /* Summary of a finished run. */
    if (code == EXIT_GOOD) {
        if (!run->quiet)
            say_summary(run);
        return code;
    }

    /* What to do after a run that did not finish. */
    if (code == EXIT_DIVERGED)
        fprintf(stderr,
                "selkie: try again with a smaller time.cfl or time.step, %s; 'selkie plot %s' shows what led to it\n",
                selkie_world_scene(run->world)->discretization == SELKIE_DISCRETIZATION_SPH
                    ? "or a larger sph.max_iterations"
                    : "a larger pressure.max_iterations, or transfer=apic",
                run->folder.path);
    if (code == EXIT_INTERRUPTED)
        fprintf(stderr, "selkie: interrupted at %.6g s\n", selkie_world_time(run->world));
    say_how_to_resume(run, stderr);
    return code;
}

static int run_scene(run_state *run, const char *scene_path, run_start start)
{
    selkie_plan plan = {0};
    int code = look_before(run, scene_path, &plan);
    if (code)
        return code;
    catch_signals();
    progress_start(&run->progress, run->quiet, plan.frames, 0, run->scene->time.end);
    code = make_world(run, start == RUN_RESUME);
    /* Without a thread of the writer, frames are written between the steps: -j 1 is one thread. */
    if (run->arguments->values[run_threads].integer != 1 || run->scene->backend == SELKIE_BACKEND_CUDA)
        sk_writer_create(&run->writer, NULL);
    if (!code)
        code = prepare_folder(run, start);
    if (!code && run->arguments->values[run_from].given) {
        code = record_start(&run->folder, run->arguments->values[run_from].text);
        code = code ? code : save_checkpoint(run, 1);
    }
    if (code)
        return code;
    progress_begin_work(&run->progress, selkie_world_time(run->world));
    run->checkpoint_wall = sk_wall_ms();
    if (atomic_load(&run->saved_step) >= 0 && selkie_world_finished(run->world) && !run->quiet)
        printf("  the run had already reached its end; --end or --frames take it further\n");
    return finish(run, step_to_end(run));
}

/* The scene: DIR/scene.json of a resumed run, else the given one. */
static int choose_scene(run_state *run, const char *scene_path, run_start start)
{
    const option_value *values = run->arguments->values;
    const scene_changes changes = {&values[run_set], &values[run_end], &values[run_frames], &values[run_backend]};
    if (start == RUN_RESUME && sk_folder_exists(run->folder.path)) {
        int code = run_folder_open(&run->folder, start);
        if (!code)
            code = load_resumed_scene(&run->folder, scene_path, &changes, run->quiet, &run->scene);
        if (code || run->scene)
            return code;
    }
    if (!scene_path)
        return complain("%s: there is no run to resume in it (no scene.json); name a SCENE to start one",
                        run->folder.path);
    int code = load_scene(scene_path, &changes, &run->scene);
    if (!code && start == RUN_FRESH)
        code = run_folder_refuse(&run->folder);
    return code;
}

/* --out, or out/NAME. */
static int name_folder(run_state *run, const char *scene_path)
{
    const option_value *out = &run->arguments->values[run_out];
    if (out->given)
        return run_folder_name(&run->folder, out->text);
    char *name = scene_name(scene_path), *path = NULL;
    if (!name || asprintf(&path, "out/%s", name) < 0)
        path = NULL;
    int code = path ? run_folder_name(&run->folder, path) : complain("out of memory");
    free(name);
    free(path);
    return code;
}

static int run_run(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    int resume = values[run_resume].given, force = values[run_force].given;

    /* Options that contradict each other. */
    if (resume && force)
        return complain("--resume continues a run and --force removes it; give one of them");
    if (resume && values[run_from].given)
        return complain("--from starts a run and --resume continues one; give one of them");
    if (!arguments->operand_count && !(resume && values[run_out].given))
        return complain("'selkie run' needs a SCENE; 'selkie list' shows those that come with the program");

    /* Choose the folder and the scene, and run it. */
    run_state run = {.arguments = arguments,
                     .quiet = values[run_quiet].given,
                     .saved_step = -1,

                     .folder = {.lock = -1}};
    run_start start = resume ? RUN_RESUME : force ? RUN_FORCE : RUN_FRESH;
    char *scene_path = NULL;
    if (arguments->operand_count && !(scene_path = find_scene(arguments->operands[0])))
        return EXIT_BAD_INPUT;
    int code = name_folder(&run, scene_path);
    if (!code)
        code = choose_scene(&run, scene_path, start);
    if (!code)
        code = run_scene(&run, scene_path ? scene_path : run.folder.path, start);

    /* Clean up after any result. */
    sk_writer_destroy(run.writer);
    run_tables_close(&run.tables, NULL);
    if (run.world)
        selkie_world_destroy(run.world);
    if (run.scene)
        selkie_scene_free(run.scene);
    run_folder_close(&run.folder);
    free(scene_path);
    return code;
}

int simulate(const char *scene, int set_count, const char *const *sets, const char *out, int threads, int quiet)
{
    const char *operands[] = {scene};
    tool_arguments arguments = {.operands = operands, .operand_count = 1};
    arguments.values[run_out] = (option_value){.given = 1, .text = out};
    arguments.values[run_set] = (option_value){.given = set_count, .list = (const char **)sets};
    arguments.values[run_threads] = (option_value){.given = threads > 0, .integer = threads};
    arguments.values[run_resume].given = 1;
    arguments.values[run_quiet].given = quiet ? 2 : 0; /* the report shows what the runs lose */
    return run_run(&arguments);
}

const tool_command run_command = {
    .name = "run",
    .synopsis = "SCENE",
    .least_operands = 0,
    .most_operands = 1,
    .summary = "simulate a scene",
    .description =
        "Simulates SCENE, a JSON file or the name of a scene that comes with the program (selkie list), and writes "
        "into DIR: scene.json (the scene with all defaults), stats.csv (a row a step), probes.csv, frames/ (particles "
        "a frame), surfaces/ with output.surface, and checkpoints/.\n"
        "\nCtrl-C ends the run after the step in progress and saves it; --resume continues to the same bits as an "
        "uninterrupted run. A resumed run keeps the scene in DIR/scene.json; only its end and its output may be "
        "changed.",
    .options = run_options,
    .option_count = run_option_count,
    .examples = "  selkie run double_dam_2d\n"
                "  selkie run my_scene.json --out out/fine --set domain.resolution=256 --end 2\n"
                "  selkie run --resume --out out/fine\n",
    .more_help = print_key_help,
    .run = run_run,
};
