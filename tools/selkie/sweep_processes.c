/* The runs of a sweep as processes of this program.
 *
 * A process a run keeps the runs apart: a crash or a lack of memory ends one of them. Each has its own process group,
 * so that Ctrl-C on a terminal reaches the sweep alone, which passes one signal on: a second one would end a run before
 * it has saved its state.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/timer.h"
#include "io/folder.h"
#include "progress.h"
#include "sweep.h"
#include "tool.h"

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

static void catch_signals(void)
{
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND; /* the second one ends the program */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* --- One process --- */

/* In the child. Output goes to `log`. Returns only if the program could not be started. */
static void become_run(char **arguments, int log, pid_t parent)
{
    setpgid(0, 0);
    /* A sweep that is killed takes its runs along, with their state saved. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_INTERRUPTED);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv("/proc/self/exe", arguments);
    _exit(EXIT_INTERNAL);
}

static int open_log(const sweep_run *run)
{
    char *path = NULL;
    selkie_error error = {0};
    if (sk_folder_make(run->folder, &error)) {
        complain_error(&error);
        return -1;
    }
    if (asprintf(&path, "%s/log.txt", run->folder) < 0)
        return -1;
    int log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (log < 0)
        complain("%s: cannot be written: %s", path, strerror(errno));
    free(path);
    return log;
}

static int start_run(const sweep *work, sweep_run *run)
{
    /* The command line. */
    char threads[16];
    snprintf(threads, sizeof threads, "%d", work->threads);
    char **arguments = calloc((size_t)(2 * run->set_count + 12), sizeof *arguments);
    if (!arguments)
        return complain("out of memory");
    int count = 0;
    char *words[] = {"selkie", "run",       (char *)work->scene, work->force ? "--force" : "--resume",
                     "--out",  run->folder, "--threads",         threads};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        arguments[count++] = words[i];
    for (int s = 0; s < run->set_count; s++) {
        arguments[count++] = "--set";
        arguments[count++] = run->sets[s];
    }
    if (work->open_meshes)
        arguments[count++] = "--allow-open-meshes";

    /* The process. */
    int log = open_log(run);
    int code = log < 0 ? EXIT_BAD_INPUT : EXIT_GOOD;
    if (!code) {
        pid_t parent = getpid();
        fflush(NULL);
        run->begin_ms = sk_wall_ms();
        run->process = fork();
        if (run->process == 0)
            become_run(arguments, log, parent);
        if (run->process < 0) {
            run->process = 0;
            code = complain("runs/%s: no process could be started: %s", run->name, strerror(errno));
        }
    }
    if (log >= 0)
        close(log);
    free(arguments);
    return code;
}

/* Whether the run's process has ended; its exit code is then noted. */
static int has_ended(sweep_run *run)
{
    int status = 0;
    if (!run->process || waitpid(run->process, &status, WNOHANG) != run->process)
        return 0;
    run->process = 0;
    run->wall_ms = sk_wall_ms() - run->begin_ms;
    run->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run->finished = run->exit_code == EXIT_GOOD;
    return 1;
}

/* The first line "selkie: ..." of a log that is neither a warning nor a note. */
static void print_cause(const sweep_run *run)
{
    char *path = NULL, line[1024];
    FILE *log = asprintf(&path, "%s/log.txt", run->folder) < 0 ? NULL : fopen(path, "r");
    int found = 0;
    while (log && !found && fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = 0;
        found = !strncmp(line, "selkie: ", 8) && strncmp(line + 8, "warning", 7) && strncmp(line + 8, "note", 4);
    }
    if (log)
        fclose(log);
    complain("%s: failed with exit code %d: %s", run->name, run->exit_code, found ? line + 8 : "see its log.txt");
    free(path);
}

/* --- All of them --- */

typedef struct sweep_progress {
    progress_line line;
    int done, running, failed, all;
    double cost_left, cost_done, wall_done_ms;
} sweep_progress;

/* Time left, s: the work left at the mean speed of the runs that have ended; negative if none has. */
static double time_left(const sweep *work, const sweep_progress *progress)
{
    if (!(progress->cost_done > 0))
        return -1;
    double left_ms = progress->cost_left * progress->wall_done_ms / progress->cost_done;
    for (int i = 0; i < work->run_count; i++)
        if (work->runs[i].process)
            left_ms -= sk_wall_ms() - work->runs[i].begin_ms;
    return left_ms > 0 ? left_ms * 1e-3 / work->jobs : 0;
}

/* On a terminal one line that is written again and again. */
static void show_progress(const sweep *work, sweep_progress *progress)
{
    double now = sk_wall_ms(), left = time_left(work, progress);
    if (work->quiet || !progress->line.terminal || now - progress->line.shown_wall < 200)
        return;
    char text[32];
    progress->line.shown_wall = now;
    progress->line.line_is_open = 1;
    printf("\rruns %d/%d  %d running  %d failed  left %s\033[K", progress->done, progress->all, progress->running,
           progress->failed, left < 0 ? "?" : format_duration(left, text));
    fflush(stdout);
}

static void note_end(const sweep *work, sweep_progress *progress, sweep_run *run)
{
    progress->running--;
    if (run->exit_code == EXIT_INTERRUPTED)
        return;
    progress->done++;
    progress->failed += !run->finished;
    progress->cost_left -= run->cost;
    if (run->finished) {
        progress->cost_done += run->cost;
        progress->wall_done_ms += run->wall_ms;
    }
    progress_break(&progress->line);
    if (!run->finished)
        print_cause(run);
    char wall[32], left[32];
    double seconds = time_left(work, progress);
    if (!work->quiet) {
        printf("run %d/%d  %s: %s after %s", progress->done, progress->all, run->name,
               run->finished ? "finished" : "failed", format_duration(run->wall_ms * 1e-3, wall));
        printf(progress->done < progress->all && seconds >= 0 ? "  left %s\n" : "\n", format_duration(seconds, left));
    }
    fflush(stdout);
}

static void stop_runs(const sweep *work)
{
    for (int i = 0; i < work->run_count; i++)
        if (work->runs[i].process)
            kill(work->runs[i].process, SIGTERM);
}

int sweep_simulate(sweep *work)
{
    sweep_progress progress = {0};
    for (int i = 0; i < work->run_count; i++)
        if (!work->runs[i].finished) {
            progress.all++;
            progress.cost_left += work->runs[i].cost;
        }
    progress_start(&progress.line, work->quiet, progress.all, 0, 0);
    if (!work->quiet && progress.all < work->run_count)
        printf("%d of %d runs are finished already\n", work->run_count - progress.all, work->run_count);
    catch_signals();

    /* As many at a time as wanted, in their order. */
    int code = EXIT_GOOD, stopped = 0;
    for (int next = 0; progress.running || (next < work->run_count && !stopped);) {
        if ((stop_signal || code) && !stopped) {
            stop_runs(work);
            stopped = 1;
        }
        for (; !stopped && !code && next < work->run_count && progress.running < work->jobs; next++)
            if (!work->runs[next].finished && !(code = start_run(work, &work->runs[next])))
                progress.running++;
        int ended = 0;
        for (int i = 0; i < next; i++)
            if (has_ended(&work->runs[i])) {
                note_end(work, &progress, &work->runs[i]);
                ended = 1;
            }
        show_progress(work, &progress);
        if (!ended && progress.running)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    progress_break(&progress.line);
    return stop_signal ? EXIT_INTERRUPTED : code;
}
