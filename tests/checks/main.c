/* selkie_checks: runs the list of checks, each case in a process of its own, so that a crash is one failure and several
 * can run at once. */
#define _GNU_SOURCE
#include "checks.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

const family *const families[] = {&rest_family, &motion_family, &solids_family, &bits_family, &running_family};
const int family_count = sizeof families / sizeof *families;

enum { MAX_CASES = 8192, MAX_JOBS = 256, CASE_SECONDS = 3600 };

typedef struct options {
    const char *method, *check; /* patterns */
    const char *record, *markdown;
    int whole, list, jobs;
} options;

static const char usage[] =
    "usage: selkie_checks [OPTIONS]\n"
    "  --list           name the methods, the checks and the cases; run nothing\n"
    "  --method NAME    only these methods (a pattern: 'flip*')\n"
    "  --check NAME     only this family, check or case (a pattern: 'rest', 'rest-*', 'rest-ball/2d/20ms')\n"
    "  --quick          the quick half (default)\n"
    "  --long           every case\n"
    "  --jobs N         cases at once, each on one thread (default 1)\n"
    "  --record FILE    append results to a file\n"
    "  --markdown FILE  print the manual's tables from such a file; run nothing\n"
    "Exit status: 0 when every case passes or fails as listed, 1 when not, 2 for a wrong option.\n";

/* --- Cases --- */

static const exception *find_exception(const method *m, const char *name)
{
    for (const exception *e = m->exceptions; e->cases; e++)
        if (fnmatch(e->cases, name, 0) == 0)
            return e;
    for (const exception *e = untried; e->cases; e++)
        if (fnmatch(e->cases, name, 0) == 0)
            return e;
    return NULL;
}

static int is_wanted(const options *o, const check_case *c)
{
    const int flat = c->run.dimension == 2 ? 0 : 1;
    const method_class kind = c->run.method->kind;
    const int *quick = kind == CLASS_SPH || kind == CLASS_MIXED ? c->check->quick_sph : c->check->quick;
    if (!o->whole && !(quick[flat] >> c->step_index & 1))
        return 0;
    if (o->method && fnmatch(o->method, c->run.method->name, 0) != 0)
        return 0;
    return !o->check || fnmatch(o->check, c->name, 0) == 0 || fnmatch(o->check, c->check->name, 0) == 0 ||
           fnmatch(o->check, c->family->name, 0) == 0;
}

static void add_cases(const options *o, const method *m, const family *f, const check *k, check_case *cases, int *count)
{
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int s = 0; s < STEP_LENGTHS && *count < MAX_CASES; s++) {
            check_case *c = &cases[*count];
            memset(c, 0, sizeof *c);
            if (!(k->steps[dimension - 2] >> s & 1))
                continue;
            c->family = f;
            c->check = k;
            c->step_index = s;
            c->run = (check_run){.method = m, .dimension = dimension, .step = step_seconds[s]};
            snprintf(c->name, sizeof c->name, "%s/%dd/%s", k->name, dimension, step_names[s]);
            c->listed = find_exception(m, c->name);
            if (c->listed && c->listed->kind == EXCEPTION_NO_MEANING)
                c->verdict = VERDICT_NO_MEANING;
            *count += is_wanted(o, c);
        }
}

static int make_cases(const options *o, check_case *cases)
{
    int count = 0;
    for (int f = 0; f < family_count; f++)
        for (int k = 0; k < families[f]->count; k++)
            for (int m = 0; m < method_count; m++)
                add_cases(o, &methods[m], families[f], &families[f]->checks[k], cases, &count);
    return count;
}

/* A pattern that matches no case hides a spelling mistake, and with it a failure. */
static int unused_patterns(void)
{
    static check_case cases[MAX_CASES];
    const options everything = {.whole = 1};
    const int count = make_cases(&everything, cases);
    int unused = 0;
    for (int m = 0; m < method_count; m++)
        for (const exception *e = methods[m].exceptions; e->cases; e++) {
            int used = 0;
            for (int n = 0; n < count; n++)
                used |= cases[n].run.method == &methods[m] && cases[n].listed == e;
            if (!used)
                printf("%s: the pattern \"%s\" in methods.c names no case, or only cases of earlier patterns\n",
                       methods[m].name, e->cases);
            unused += !used;
        }
    return unused;
}

/* --- Processes --- */

typedef struct job {
    pid_t process;
    int pipe;
    check_case *c;
} job;

static int start_job(job *j, check_case *c)
{
    int ends[2];
    if (pipe(ends) != 0)
        return 0;
    fflush(stdout);
    *j = (job){.pipe = ends[0], .c = c};
    j->process = fork();
    if (j->process < 0) {
        close(ends[0]);
        close(ends[1]);
        return 0;
    }
    if (j->process == 0) {
        alarm(CASE_SECONDS);
        c->check->run(&c->run);
        const int written = write(ends[1], &c->run, sizeof c->run) == (ssize_t)sizeof c->run;
        _exit(written ? 0 : 1);
    }
    close(ends[1]);
    return 1;
}

static void finish_job(job *j, int status, const struct rusage *used)
{
    check_run result;
    check_case *c = j->c;
    if (read(j->pipe, &result, sizeof result) == (ssize_t)sizeof result) {
        result.method = c->run.method;
        c->run = result;
    } else if (WIFSIGNALED(status)) {
        run_fail(&c->run, "ended by signal %d", WTERMSIG(status));
    } else {
        run_fail(&c->run, "ended without a result");
    }
    c->run.seconds = (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
                     1e-6 * (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec);
    c->verdict = case_verdict(c);
    close(j->pipe);
    j->process = 0;
}

/* Waits for one of the running jobs. */
static job *wait_job(job *jobs, int count)
{
    int status = 0;
    struct rusage used;
    const pid_t process = wait4(-1, &status, 0, &used);
    for (int n = 0; n < count; n++)
        if (jobs[n].process == process && process > 0) {
            finish_job(&jobs[n], status, &used);
            return &jobs[n];
        }
    return NULL;
}

static void run_cases(const options *o, check_case *cases, int count)
{
    static job jobs[MAX_JOBS];
    FILE *record = o->record ? fopen(o->record, "a") : NULL;
    int running = 0, done = 0;
    for (int n = 0; n < count || running;) {
        if (n < count && cases[n].verdict == VERDICT_NO_MEANING) {
            report_case(&cases[n++], ++done, count);
            continue;
        }
        if (n < count && running < o->jobs) {
            int place = 0;
            while (jobs[place].process)
                place++;
            if (start_job(&jobs[place], &cases[n])) {
                running++;
            } else {
                run_fail(&cases[n].run, "no process could be started");
                cases[n].verdict = case_verdict(&cases[n]);
                report_case(&cases[n], ++done, count);
            }
            n++;
            continue;
        }
        const job *finished = wait_job(jobs, o->jobs);
        if (!finished)
            break;
        running--;
        report_case(finished->c, ++done, count);
        if (record)
            report_record(record, finished->c);
    }
    if (record)
        fclose(record);
}

/* --- The command --- */

static void list(const check_case *cases, int count)
{
    printf("methods:\n");
    for (int m = 0; m < method_count; m++)
        printf("  %-16s %s\n", methods[m].name, methods[m].about);
    printf("checks:\n");
    for (int f = 0; f < family_count; f++)
        for (int k = 0; k < families[f]->count; k++)
            printf("  %-8s %-13s %s\n", families[f]->name, families[f]->checks[k].name, families[f]->checks[k].demands);
    printf("cases:\n");
    for (int n = 0; n < count; n++)
        printf("  %-16s %-24s %s\n", cases[n].run.method->name, cases[n].name,
               cases[n].listed ? cases[n].listed->reason : "");
}

static int parse(int argc, char **argv, options *o)
{
    const struct {
        const char *name;
        const char **value;
    } texts[] = {
        {"--method", &o->method}, {"--check", &o->check}, {"--record", &o->record}, {"--markdown", &o->markdown}};
    const char *jobs = NULL;
    for (int n = 1; n < argc; n++) {
        const char **value = strcmp(argv[n], "--jobs") == 0 ? &jobs : NULL;
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            value = strcmp(argv[n], texts[k].name) == 0 ? texts[k].value : value;
        if (value && n + 1 < argc)
            *value = argv[++n];
        else if (strcmp(argv[n], "--list") == 0)
            o->list = 1;
        else if (strcmp(argv[n], "--long") == 0)
            o->whole = 1;
        else if (strcmp(argv[n], "--quick") == 0)
            o->whole = 0;
        else
            return 0;
    }
    o->jobs = jobs ? atoi(jobs) : 1;
    o->whole |= o->markdown != NULL;
    return o->jobs >= 1 && o->jobs <= MAX_JOBS;
}

int main(int argc, char **argv)
{
    static check_case cases[MAX_CASES];
    options o = {0};
    if (!parse(argc, argv, &o)) {
        fputs(usage, stderr);
        return 2;
    }
    const int count = make_cases(&o, cases);
    if (count == 0) {
        fprintf(stderr, "no case of the %s half matches --method %s --check %s\n", o.whole ? "long" : "quick",
                o.method ? o.method : "*", o.check ? o.check : "*");
        return 2;
    }
    if (o.list) {
        list(cases, count);
        return 0;
    }
    if (o.markdown) {
        if (!report_read(o.markdown, cases, count)) {
            fprintf(stderr, "%s cannot be read\n", o.markdown);
            return 2;
        }
        report_markdown(cases, count);
        return 0;
    }

    int wrong = unused_patterns();
    run_cases(&o, cases, count);
    report_table(cases, count);
    for (int n = 0; n < count; n++)
        if (cases[n].verdict == VERDICT_FAIL || cases[n].verdict == VERDICT_NOW_PASSES ||
            cases[n].verdict == VERDICT_NOT_RUN) {
            if (wrong++ == 0)
                printf("\nnot as listed in tests/checks/methods.c:\n");
            report_case(&cases[n], n + 1, count);
        }
    printf("\n%d cases, %d not as listed\n", count, wrong);
    return wrong ? 1 : 0;
}
