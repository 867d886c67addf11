/* `selkie run`: the loop around the world's step.
 *
 * After each step, in this order: the row of stats.csv, the row of probes.csv, the files of a frame if the step ends on
 * one, then a checkpoint if one is due. So a checkpoint is never ahead of the files: --resume cuts the tables to the
 * checkpoint's step, continues from it, and writes the later frames again, to the same bits.
 *
 * Frames are written by a thread beside the simulation; a checkpoint waits for them.
 *
 * A signal only sets a flag. The step in progress is finished and saved; a second signal ends the program at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
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

enum { most_columns = 128, phase_name_length = 64 };

typedef struct run_state {
    const tool_arguments *arguments;
    selkie_scene *scene;
    selkie_world *world;
    run_folder folder;
    sk_table_writer *stats, *probes, *bodies; /* bodies NULL where there are none */
    sk_writer *writer;                        /* of frames; NULL = no thread, they are written at once */
    double *probe_row;
    progress_line progress;
    int quiet;              /* 1 = errors and warnings only, 2 = errors only (-qq) */
    int warned;             /* of a key that spoils the run: once is enough */
    double checkpoint_wall; /* ms, when the last one was written */
    int64_t saved_step;     /* of the newest checkpoint, -1 = none */
    int phase_count;        /* columns of phases in stats.csv: those of the start, whatever changes add */
    char phases[SELKIE_MAX_PHASES][phase_name_length];
} run_state;

/* Opens one table: a new one, or an old one cut to the world's step. */
static int open_table(run_state *run, const char *name, int column_count, const char *const *columns, int continued,
                      sk_table_writer **table)
{
    char *path = run_folder_path(&run->folder, "%s", name);
    selkie_error error = {0};
    if (!path)
        return complain("out of memory");
    selkie_code code =
        continued ? sk_table_resume(path, column_count, columns, selkie_world_step_count(run->world), table, &error)
                  : sk_table_create(path, column_count, columns, table, &error);
    free(path);
    return code ? complain_error(&error) : EXIT_GOOD;
}

/* The columns of phases of a table that is continued: a change since the start may have added or removed phases.
 * Returns 0 if the table cannot be read; opening it says why. */
static int read_phases(run_state *run)
{
    char *path = run_folder_path(&run->folder, "stats.csv"), *line = NULL;
    size_t room = 0;
    FILE *file = path ? fopen(path, "r") : NULL;
    const int read = file && getline(&line, &room, file) > 0;
    int column = 0;
    run->phase_count = 0;
    for (char *rest = line, *name; read && (name = strtok_r(rest, ",\r\n", &rest)) != NULL; column++)
        if (column >= selkie_statistic_count() && run->phase_count < SELKIE_MAX_PHASES)
            snprintf(run->phases[run->phase_count++], phase_name_length, "%s", name);
    if (file)
        fclose(file);
    free(line);
    free(path);
    return run->phase_count > 0;
}

/* The table of statistics, then a column of milliseconds a phase. */
static int open_stats(run_state *run, int continued)
{
    const char *columns[most_columns + SELKIE_MAX_PHASES];
    int count = selkie_statistic_count();
    for (int column = 0; column < count; column++)
        columns[column] = selkie_statistic_info(column)->name;
    if (!continued || !read_phases(run)) {
        run->phase_count = selkie_world_phase_count(run->world);
        for (int phase = 0; phase < run->phase_count; phase++)
            snprintf(run->phases[phase], phase_name_length, "%s_ms", selkie_world_phase_name(run->world, phase));
    }
    for (int phase = 0; phase < run->phase_count; phase++)
        columns[count++] = run->phases[phase];
    return open_table(run, "stats.csv", count, columns, continued, &run->stats);
}

static int open_probes(run_state *run, int continued)
{
    int count = selkie_world_probe_column_count(run->world);
    const char **columns = calloc((size_t)count + 2, sizeof *columns);
    run->probe_row = calloc((size_t)count + 2, sizeof *run->probe_row);
    if (!columns || !run->probe_row) {
        free(columns);
        return complain("out of memory");
    }
    columns[0] = "step";
    columns[1] = "time";
    for (int column = 0; column < count; column++)
        columns[2 + column] = selkie_world_probe_column_name(run->world, column);
    int code = open_table(run, "probes.csv", count + 2, columns, continued, &run->probes);
    free(columns);
    return code;
}

static const char *const body_columns[] = {"step", "time", "frame", "body", "x",  "y",  "z",  "qw",
                                           "qx",   "qy",   "qz",    "vx",   "vy", "vz", "wx", "wy",
                                           "wz",   "fx",   "fy",    "fz",   "tx", "ty", "tz"};
enum { body_column_count = sizeof body_columns / sizeof *body_columns };

/* The bodies of a frame, a row each. */
static int write_bodies(run_state *run)
{
    const selkie_statistics *s = selkie_world_statistics(run->world);
    selkie_error error = {0};
    for (int b = 0; run->bodies && b < selkie_world_body_count(run->world); b++) {
        selkie_body_state body;
        double row[body_column_count] = {(double)s->step, selkie_world_time(run->world),
                                         (double)selkie_world_frame(run->world), b};
        selkie_world_body(run->world, b, &body);
        memcpy(row + 4, body.position, sizeof body.position);
        memcpy(row + 7, body.quaternion, sizeof body.quaternion);
        memcpy(row + 11, body.velocity, sizeof body.velocity);
        memcpy(row + 14, body.angular_velocity, sizeof body.angular_velocity);
        memcpy(row + 17, body.force, sizeof body.force);
        memcpy(row + 20, body.torque, sizeof body.torque);
        if (sk_table_row(run->bodies, row, &error)) {
            progress_break(&run->progress);
            return complain_error(&error);
        }
    }
    return EXIT_GOOD;
}

/* ms that the phase of a column took in the last step; 0 where the world has it no more. */
static double phase_time(const run_state *run, int column)
{
    const size_t length = strlen(run->phases[column]) - strlen("_ms");
    for (int phase = 0; phase < selkie_world_phase_count(run->world); phase++) {
        const char *name = selkie_world_phase_name(run->world, phase);
        if (strlen(name) == length && strncmp(name, run->phases[column], length) == 0)
            return selkie_world_statistics(run->world)->phase_ms[phase];
    }
    return 0.0;
}

static int write_rows(run_state *run)
{
    const selkie_statistics *s = selkie_world_statistics(run->world);
    double row[most_columns + SELKIE_MAX_PHASES];
    int count = selkie_statistic_count();
    for (int column = 0; column < count; column++)
        row[column] = selkie_statistic_value(s, column);
    for (int column = 0; column < run->phase_count; column++)
        row[count + column] = phase_time(run, column);
    run->probe_row[0] = (double)s->step;
    run->probe_row[1] = s->time;
    for (int column = 0; column < selkie_world_probe_column_count(run->world); column++)
        run->probe_row[2 + column] = selkie_world_probe_value(run->world, column);
    selkie_error error = {0};
    if (sk_table_row(run->stats, row, &error) || sk_table_row(run->probes, run->probe_row, &error)) {
        progress_break(&run->progress);
        return complain_error(&error);
    }
    return EXIT_GOOD;
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
    if (!code && files.count && sk_writer_add(run->writer, run->world, files.count, files.files, &error)) {
        progress_break(&run->progress);
        code = complain_error(&error);
    }
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

static int save_checkpoint(run_state *run)
{
    int64_t step = selkie_world_step_count(run->world);
    if (run->saved_step == step)
        return EXIT_GOOD;
    char *path = run_folder_checkpoint(&run->folder, step);
    selkie_error error = {0};
    if (!path)
        return complain("out of memory");
    /* Frames are not flushed one by one, but a run resumes only behind frames that have reached the disk. */
    selkie_code code = sk_writer_wait(run->writer, &error);
    sk_folder_flush(run->folder.path);
    if (code || selkie_world_save(run->world, path, &error)) {
        progress_break(&run->progress);
        free(path);
        return complain_error(&error);
    }
    free(path);
    run->saved_step = step;
    run->checkpoint_wall = sk_wall_ms();
    run_folder_prune(&run->folder, run->scene->output.checkpoint_keep);
    return EXIT_GOOD;
}

/* After an interruption: prints the saved state and the command that resumes. */
static void say_how_to_resume(const run_state *run, FILE *out)
{
    if (run->saved_step < 0)
        fprintf(out, "selkie: no checkpoint has been written yet; start again with --force\n");
    else
        fprintf(out, "selkie: saved up to step %lld; go on with: selkie run --resume --out %s\n",
                (long long)run->saved_step, run->folder.path);
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
        int code = write_rows(run);
        if (!code && at_frame)
            code = write_frame(run, 0);
        if (!code && at_frame)
            code = write_bodies(run);
        if (!code && interval_ms > 0 && sk_wall_ms() - run->checkpoint_wall >= interval_ms)
            code = save_checkpoint(run);
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
    printf(", %s particles, %lld frames to %g s, about %s of memory\n", format_count(plan->particles, particles),
           (long long)plan->frames, run->scene->time.end, format_bytes((double)plan->memory_bytes, memory));
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
        int code = resume_from_checkpoint(&run->folder, run->scene, &options, &run->world, &run->saved_step);
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
        return complain_error(&error);
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

    /* Tables, continued or new. */
    int continued = run->saved_step >= 0;
    if (!code)
        code = open_stats(run, continued);
    if (!code)
        code = open_probes(run, continued);
    int has_bodies = run->scene->body_count > 0 || selkie_world_body_count(run->world) > 0;
    for (int n = 0; n < run->scene->change_count; n++)
        has_bodies |= run->scene->changes[n].kind == SELKIE_CHANGE_BODY;
    if (!code && has_bodies)
        code = open_table(run, "bodies.csv", body_column_count, body_columns, continued, &run->bodies);
    if (!code && !continued)
        code = write_bodies(run);

    /* A resumed run has its frame already, unless a power cut lost it. */
    if (!code && (selkie_world_step_count(run->world) == 0 || selkie_world_at_frame(run->world)))
        code = write_frame(run, continued);
    return code;
}

static int close_tables(run_state *run)
{
    selkie_error error = {0};
    int code = EXIT_GOOD;
    if (sk_table_close(&run->stats, &error))
        code = complain_error(&error);
    if (sk_table_close(&run->probes, &error) && !code)
        code = complain_error(&error);
    if (sk_table_close(&run->bodies, &error) && !code)
        code = complain_error(&error);
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
        int saved = save_checkpoint(run);
        if (saved)
            code = saved;
    }
    if (code == EXIT_GOOD)
        code = close_tables(run);
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
    /* Without a thread frames are written between the steps. */
    sk_writer_create(&run->writer, NULL);
    if (!code)
        code = prepare_folder(run, start);
    if (!code && run->arguments->values[run_from].given) {
        code = record_start(&run->folder, run->arguments->values[run_from].text);
        code = code ? code : save_checkpoint(run);
    }
    if (code)
        return code;
    progress_begin_work(&run->progress, selkie_world_time(run->world));
    run->checkpoint_wall = sk_wall_ms();
    if (run->saved_step >= 0 && selkie_world_finished(run->world) && !run->quiet)
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
    run_state run = {
        .arguments = arguments, .quiet = values[run_quiet].given, .saved_step = -1, .folder = {.lock = -1}};
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
    sk_table_close(&run.stats, NULL);
    sk_table_close(&run.probes, NULL);
    sk_table_close(&run.bodies, NULL);
    free(run.probe_row);
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
