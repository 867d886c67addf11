/* What the checks print: a line a case, a table of methods and checks, the same for the manual, and a file of results.
 */
#include "checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double step_seconds[STEP_LENGTHS] = {0.0, 0.001, 0.005, 0.01, 0.02};
const char *const step_names[STEP_LENGTHS] = {"default", "1ms", "5ms", "10ms", "20ms"};

static const char *const words[] = {
    [VERDICT_NOT_RUN] = "not run",     [VERDICT_PASS] = "pass",
    [VERDICT_FAIL] = "FAIL",           [VERDICT_KNOWN] = "known",
    [VERDICT_UNSTABLE] = "borderline", [VERDICT_NOW_PASSES] = "NOW PASSES: remove it from the list",
    [VERDICT_UNTRIED] = "untried",     [VERDICT_NO_MEANING] = "no meaning"};

/* The largest figure that a reason gives, "0.01 to 0.3 of 0.002"; infinite without one. */
static double listed_figure(const char *reason)
{
    const char *end = NULL;
    for (const char *of = strstr(reason, " of "); of; of = strstr(of + 1, " of "))
        end = of[4] >= '0' && of[4] <= '9' ? of : end;
    const char *start = end;
    while (start && start > reason && strchr("0123456789.e-", start[-1]))
        start--;
    return start && start < end ? strtod(start, NULL) : INFINITY;
}

verdict case_verdict(const check_case *c)
{
    const check_run *run = &c->run;
    if (c->listed && c->listed->kind == EXCEPTION_UNSTABLE)
        return VERDICT_UNSTABLE;
    if (c->listed && c->listed->kind == EXCEPTION_UNTRIED)
        return VERDICT_UNTRIED;
    const int passes = !run->failed && run->value <= run->bound; /* false for a NaN */
    /* What is listed may scatter, but not become twice as bad. */
    const double figure = listed_figure(c->listed ? c->listed->reason : "");
    const int known = figure == INFINITY || (!run->failed && run->value <= 2.0 * figure);
    if (c->listed && c->listed->kind == EXCEPTION_FAILS)
        return passes ? VERDICT_NOW_PASSES : known ? VERDICT_KNOWN : VERDICT_FAIL;
    return passes ? VERDICT_PASS : VERDICT_FAIL;
}

/* "0.013 of 0.01", or why nothing was measured. */
static void describe(const check_case *c, char *text, size_t size)
{
    if (c->run.failed)
        snprintf(text, size, "%s", c->run.measure);
    else
        snprintf(text, size, "%s %.3g (at most %g)", c->run.measure, c->run.value, c->run.bound);
}

void report_case(const check_case *c, int done, int count)
{
    char text[256];
    describe(c, text, sizeof text);
    printf("[%4d/%d] %-16s %-24s %5.1f s  %-10s %s\n", done, count, c->run.method->name, c->name, c->run.seconds,
           words[c->verdict], c->verdict == VERDICT_NO_MEANING ? c->listed->reason : text);
    if (c->verdict == VERDICT_KNOWN || c->verdict == VERDICT_UNSTABLE)
        printf("%-62s %s\n", "", c->listed->reason);
    fflush(stdout);
}

/* --- The table --- */

/* Verdicts of the cases of one method and one check. */
typedef struct cell {
    int count[VERDICT_NO_MEANING + 1];
    int run; /* cases that ran */
} cell;

static cell gather(const check_case *cases, int count, const method *m, const check *k)
{
    cell sum = {{0}, 0};
    for (int n = 0; n < count; n++)
        if (cases[n].run.method == m && cases[n].check == k) {
            sum.count[cases[n].verdict]++;
            sum.run += cases[n].verdict != VERDICT_NOT_RUN && cases[n].verdict != VERDICT_NO_MEANING;
        }
    return sum;
}

/* The worst first. */
static const char *cell_text(const cell *sum, char *text, size_t size)
{
    const int known = sum->count[VERDICT_KNOWN];
    if (sum->count[VERDICT_FAIL] || sum->count[VERDICT_NOW_PASSES])
        snprintf(text, size, "FAIL %d/%d", sum->count[VERDICT_FAIL] + sum->count[VERDICT_NOW_PASSES], sum->run);
    else if (known)
        snprintf(text, size, "known %d/%d", known, sum->run);
    else if (sum->count[VERDICT_UNSTABLE])
        snprintf(text, size, "near %d/%d", sum->count[VERDICT_UNSTABLE], sum->run);
    else if (sum->run > sum->count[VERDICT_UNTRIED])
        snprintf(text, size, "pass %d", sum->run - sum->count[VERDICT_UNTRIED]);
    else if (sum->run)
        snprintf(text, size, "untried");
    else
        snprintf(text, size, "%s", sum->count[VERDICT_NO_MEANING] ? "-" : "");
    return text;
}

static int has_cases(const check_case *cases, int count, const method *m)
{
    for (int n = 0; n < count; n++)
        if (cases[n].run.method == m && cases[n].verdict != VERDICT_NOT_RUN)
            return 1;
    return 0;
}

void report_table(const check_case *cases, int count)
{
    char text[32];
    for (int f = 0; f < family_count; f++) {
        printf("\n%-16s", families[f]->name);
        for (int k = 0; k < families[f]->count; k++)
            printf(" %12s", families[f]->checks[k].name);
        printf("\n");
        for (int m = 0; m < method_count; m++) {
            if (!has_cases(cases, count, &methods[m]))
                continue;
            printf("%-16s", methods[m].name);
            for (int k = 0; k < families[f]->count; k++) {
                const cell sum = gather(cases, count, &methods[m], &families[f]->checks[k]);
                printf(" %12s", cell_text(&sum, text, sizeof text));
            }
            printf("\n");
        }
    }
    printf(
        "\npass N: all N cases; known F/N: F of N fail and are listed with a reason; near: borderline, not counted;\n"
        "-: no meaning for the method; FAIL: not listed, or listed and now passing\n");
}

/* --- For the manual --- */

static void markdown_list(const check_case *cases, int count, const method *m)
{
    const exception *last = NULL;
    int listed = 0;
    for (int n = 0; n < count; n++)
        listed += cases[n].run.method == m && cases[n].listed;
    if (!listed)
        return;
    printf("\n### %s (%s)\n\n", m->name, m->about);
    for (const exception *e = m->exceptions; e->cases; e++)
        for (int n = 0; n < count; n++) {
            const check_case *c = &cases[n];
            char text[256];
            if (c->run.method != m || c->listed != e || e->kind == EXCEPTION_UNTRIED)
                continue;
            if (e != last)
                printf("- %s%s\n", e->kind == EXCEPTION_UNSTABLE ? "Borderline: " : "", e->reason);
            last = e;
            if (e->kind == EXCEPTION_NO_MEANING)
                continue;
            describe(c, text, sizeof text);
            printf("  - `%s`: %s\n", c->name, c->verdict == VERDICT_NOT_RUN ? "not run" : text);
        }
}

void report_markdown(const check_case *cases, int count)
{
    char text[32];
    for (int f = 0; f < family_count; f++) {
        printf("\n| %s |", families[f]->name);
        for (int k = 0; k < families[f]->count; k++)
            printf(" %s |", families[f]->checks[k].name);
        printf("\n| --- |");
        for (int k = 0; k < families[f]->count; k++)
            printf(" --- |");
        for (int m = 0; m < method_count; m++) {
            printf("\n| %s |", methods[m].name);
            for (int k = 0; k < families[f]->count; k++) {
                const cell sum = gather(cases, count, &methods[m], &families[f]->checks[k]);
                printf(" %s |", cell_text(&sum, text, sizeof text));
            }
        }
        printf("\n");
    }
    int not_tried = 0;
    for (int n = 0; n < count; n++)
        not_tried += cases[n].listed && cases[n].listed->kind == EXCEPTION_UNTRIED;
    printf("\n%d of %d cases are listed as untried: they were not run to their end so far and are not counted.\n",
           not_tried, count);
    for (int m = 0; m < method_count; m++)
        markdown_list(cases, count, &methods[m]);
}

/* --- Results in a file --- */

void report_record(FILE *file, const check_case *c)
{
    fprintf(file, "%s\t%s\t%d\t%.9g\t%.9g\t%.2f\t%s\n", c->run.method->name, c->name, c->run.failed, c->run.value,
            c->run.bound, c->run.seconds, c->run.measure);
    fflush(file);
}

/* Later lines count. Lines of cases that no longer exist are passed over. */
int report_read(const char *path, check_case *cases, int count)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    char line[512], name[64], what[64], measure[160];
    int failed;
    double value, bound, seconds;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%63[^\t]\t%63[^\t]\t%d\t%lf\t%lf\t%lf\t%159[^\n]", name, what, &failed, &value, &bound,
                   &seconds, measure) != 7)
            continue;
        for (int n = 0; n < count; n++) {
            check_case *c = &cases[n];
            if (strcmp(c->run.method->name, name) != 0 || strcmp(c->name, what) != 0 ||
                c->verdict == VERDICT_NO_MEANING)
                continue;
            c->run.failed = failed;
            c->run.value = value;
            c->run.bound = bound;
            c->run.seconds = seconds;
            memcpy(c->run.measure, measure, sizeof measure);
            c->verdict = case_verdict(c);
        }
    }
    fclose(file);
    return 1;
}
