/* `selkie sweep`: runs a scene with many values of some keys, and compares the runs in one table and one plot. */
#define _GNU_SOURCE
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "resume.h"
#include "run_folder.h"
#include "tool.h"

enum {
    option_vary,
    option_together,
    option_set,
    option_out,
    option_jobs,
    option_threads,
    option_plot,
    option_yes,
    option_dry_run,
    option_force,
    option_open_meshes,
    option_quiet,
    sweep_option_count
};

static const option_spec sweep_options[] = {
    [option_vary] = {.name = "vary",
                     .kind = OPTION_LIST,
                     .value = "KEY=VALUES",
                     .help = "values of a key: a list a,b,c or a range from:to:count, with equal ratios "
                             "from:to:count:log; many of these make every combination"},
    [option_together] = {.name = "together",
                         .kind = OPTION_FLAG,
                         .help = "take the first values of all keys, then the second ones, and so on, instead of "
                                 "every combination"},
    [option_set] = {.name = "set",
                    .kind = OPTION_LIST,
                    .value = "KEY=VALUE",
                    .help = "change a key of the scene in all runs; may be given many times"},
    [option_out] = {.name = "out",
                    .letter = 'o',
                    .kind = OPTION_TEXT,
                    .value = "DIR",
                    .help = "folder for the runs, the table and the plot; default out/sweep_NAME"},
    [option_jobs] = {.name = "jobs",
                     .kind = OPTION_INTEGER,
                     .value = "N",
                     .least = 1,
                     .most = 1024,
                     .help = "runs at the same time; default 1"},
    [option_threads] = {.name = "threads",
                        .letter = 'j',
                        .kind = OPTION_INTEGER,
                        .value = "N",
                        .least = 1,
                        .most = 1024,
                        .help = "threads of each run; default all cores, shared by the jobs"},
    [option_plot] = {.name = "plot",
                     .kind = OPTION_LIST,
                     .value = "COLUMN",
                     .help = "plot this column of the table, or the last value of one of stats.csv or probes.csv; many "
                             "make a panel each; default volume_ratio"},
    [option_yes] = {.name = "yes", .kind = OPTION_FLAG, .help = "start more than 100 runs"},
    [option_dry_run] = {.name = "dry-run", .kind = OPTION_FLAG, .help = "check and list the runs, start none"},
    [option_force] = {.name = "force",
                      .kind = OPTION_FLAG,
                      .help = "start all runs again and remove the files of the earlier ones"},
    [option_open_meshes] = {.name = "allow-open-meshes",
                            .kind = OPTION_FLAG,
                            .help = "accept meshes with holes, whose inside is approximate"},
    [option_quiet] = {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "print errors only"},
};

/* --- Checks before the first run --- */

static int sets_end(const sweep_run *run)
{
    int found = 0;
    for (int s = 0; s < run->set_count; s++)
        found |= !strncmp(run->sets[s], "time.end=", 9);
    return found;
}

/* Reads the scene of a run: a bad key or value is named before any run starts. A run that goes on takes the end from
 * SCENE as it is now, so the end is set in any case. */
static int check_run(const sweep *work, sweep_run *run, selkie_scene **scene)
{
    selkie_error error = {0};
    *scene = NULL;
    selkie_code bad = selkie_scene_load(work->scene, run->set_count, (const char *const *)run->sets, scene, &error);
    if (!bad)
        bad = selkie_scene_check(*scene, &error);
    if (bad) {
        complain("%s: %s", run->name, error.message);
        return EXIT_BAD_INPUT;
    }
    selkie_plan plan = {0};
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = work->threads;
    if (selkie_scene_plan(*scene, &options, &plan, &error)) {
        complain("%s: %s", run->name, error.message);
        return EXIT_BAD_INPUT;
    }
    run->cost = (double)(plan.particles + plan.body_particles + 1) * (*scene)->time.end / plan.cell_size;
    if (!sets_end(run) && asprintf(&run->sets[run->set_count++], "time.end=%.17g", (*scene)->time.end) < 0)
        return complain("out of memory");
    return EXIT_GOOD;
}

/* What an earlier sweep left: a finished run is kept if it ends where this one should. */
static int look_at_folder(const sweep *work, sweep_run *run, const selkie_scene *scene)
{
    sk_run_state state;
    selkie_error error = {0};
    if (work->force || !sk_folder_exists(run->folder))
        return EXIT_GOOD;
    if (sk_run_look(run->folder, &state, &error))
        return complain_error(&error);
    if (!state.exists)
        return EXIT_GOOD;

    /* The scene must be the one that the run was started with. */
    run_folder folder = {.path = run->folder, .lock = -1};
    const option_value set = {.given = run->set_count, .list = (const char **)run->sets};
    const option_value none = {0};
    const scene_changes changes = {.set = &set, .backend = &none};
    selkie_scene *resumed = NULL, *recorded = NULL;
    int code = load_resumed_scene(&folder, work->scene, &changes, 1, &resumed);
    if (resumed)
        selkie_scene_free(resumed);
    char *path = code ? NULL : run_folder_path(&folder, "scene.json");
    if (!code)
        code = path ? load_scene(path, NULL, &recorded) : complain("out of memory");
    if (!code && state.finished && recorded->time.end == scene->time.end) {
        run->finished = 1;
        run->exit_code = EXIT_GOOD;
    }
    if (recorded)
        selkie_scene_free(recorded);
    free(path);
    return code;
}

/* --plot names a column of the table or one that a probe of the scene writes. */
static int check_columns(const option_value *plot, const selkie_scene *scene)
{
    for (int i = 0; i < plot->given; i++) {
        const char *name = plot->list[i];
        int known = sweep_knows_column(name);
        for (int p = 0; p < scene->probe_count && !known; p++)
            known = scene->probes[p].name && !strncmp(name, scene->probes[p].name, strlen(scene->probes[p].name));
        if (!known)
            return complain("--plot %s: is no column of the table, of stats.csv or of a probe of the scene; 'selkie "
                            "schema --statistics' names those of stats.csv",
                            name);
    }
    return EXIT_GOOD;
}

static int check_all(sweep *work, const option_value *plot)
{
    int code = EXIT_GOOD;
    for (int i = 0; i < work->run_count && !code; i++) {
        selkie_scene *scene = NULL;
        code = check_run(work, &work->runs[i], &scene);
        if (!code && i == 0)
            code = check_columns(plot, scene);
        if (!code)
            code = look_at_folder(work, &work->runs[i], scene);
        if (scene)
            selkie_scene_free(scene);
    }
    return code;
}

/* --- The command --- */

static int name_folder(sweep *work, const option_value *out)
{
    if (out->given && !*out->text)
        return complain("--out is empty; give it the name of a folder");
    char *name = out->given ? NULL : scene_name(work->scene);
    if (out->given)
        work->folder = strdup(out->text);
    else if (name && asprintf(&work->folder, "out/sweep_%s", name) < 0)
        work->folder = NULL;
    free(name);
    if (!work->folder)
        return complain("out of memory");
    for (size_t length = strlen(work->folder); length > 1 && work->folder[length - 1] == '/';)
        work->folder[--length] = 0;
    return EXIT_GOOD;
}

static int list_runs(const sweep *work)
{
    for (int i = 0; i < work->run_count; i++)
        printf("%s%s\n", work->runs[i].name, work->runs[i].finished ? "  (finished)" : "");
    return EXIT_GOOD;
}

/* The folder of the sweep, locked; a folder with a run in it is refused. */
static int open_folder(const sweep *work, run_folder *folder)
{
    int code = run_folder_name(folder, work->folder);
    sk_run_state state = {0};
    selkie_error error = {0};
    if (!code && sk_folder_exists(folder->path) && sk_run_look(folder->path, &state, &error))
        code = complain_error(&error);
    if (!code && state.exists)
        code = complain("%s: holds a single run; choose another --out for the sweep", folder->path);
    return code ? code : run_folder_open(folder, RUN_RESUME);
}

/* Runs and report. The exit code is that of the first run that failed. */
static int work_through(sweep *work, const option_value *plot)
{
    static const char *const usual[] = {"volume_ratio"};
    run_folder folder = {.lock = -1};
    int code = open_folder(work, &folder);
    if (!code)
        code = sweep_simulate(work);
    if (!code || code == EXIT_INTERRUPTED) {
        int reported =
            sweep_report(work, plot->given ? plot->given : 1, plot->given ? (const char *const *)plot->list : usual);
        code = code ? code : reported;
    }
    int finished = 0, failed = EXIT_GOOD;
    for (int i = 0; i < work->run_count; i++) {
        finished += work->runs[i].finished;
        if (!failed && work->runs[i].exit_code > 0)
            failed = work->runs[i].exit_code > EXIT_DIVERGED ? EXIT_INTERNAL : work->runs[i].exit_code;
    }
    if (code == EXIT_INTERRUPTED)
        complain("interrupted with %d of %d runs finished; the same command, without --force, goes on", finished,
                 work->run_count);
    else if (!code && failed)
        complain("%d of %d runs failed; the same command tries them again", work->run_count - finished,
                 work->run_count);
    run_folder_close(&folder);
    return code ? code : failed;
}

static int run_sweep(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    sweep work = {.set = &values[option_set],
                  .jobs = values[option_jobs].given ? (int)values[option_jobs].integer : 1,
                  .quiet = values[option_quiet].given,
                  .force = values[option_force].given,
                  .open_meshes = values[option_open_meshes].given};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long share = cores / work.jobs > 1 ? cores / work.jobs : 1;
    work.threads = (int)(values[option_threads].given ? values[option_threads].integer : share);
    if (!values[option_vary].given)
        return complain("'selkie sweep' needs --vary KEY=VALUES, a list a,b,c or a range from:to:count");

    /* Values and runs. */
    char *path = find_scene(arguments->operands[0]);
    if (!path)
        return EXIT_BAD_INPUT;
    work.scene = path;
    int code = name_folder(&work, &values[option_out]);
    for (int i = 0; i < values[option_vary].given && !code; i++)
        code = sweep_read_key(&work, values[option_vary].list[i]);
    if (!code)
        code = sweep_make_runs(&work, values[option_together].given, values[option_yes].given);
    if (!code)
        code = check_all(&work, &values[option_plot]);

    if (!code)
        code = values[option_dry_run].given ? list_runs(&work) : work_through(&work, &values[option_plot]);
    sweep_free(&work);
    free(path);
    return code;
}

const tool_command sweep_command = {
    .name = "sweep",
    .synopsis = "SCENE",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "run a scene with many values of some keys",
    .description =
        "Runs SCENE once for each combination of the values of --vary, each run in a folder of its own, DIR/runs/..., "
        "and writes DIR/sweep.csv, a row a run: the varied keys, the exit code, the number of warnings, and the end "
        "and extremes of the statistics; and DIR/sweep.png, a plot of one of these columns over the first key.\n"
        "\nCtrl-C stops the runs after their steps in progress. The same command continues: finished runs are kept, "
        "interrupted ones resumed, failed ones tried again. A run that fails does not stop the others.",
    .options = sweep_options,
    .option_count = sweep_option_count,
    .examples = "  selkie sweep double_dam_2d --vary domain.resolution=32,64,128\n"
                "  selkie sweep viscous_2d --vary viscosity=0.001:1:4:log \\\n"
                "      --vary transfer=flip,apic --plot kinetic_energy --jobs 2\n",
    .run = run_sweep,
};
