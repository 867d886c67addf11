/* Values of the varied keys, and the runs that they make. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sweep.h"
#include "tool.h"

/* --- Values --- */

static int add_value(sweep_key *key, const char *text, size_t length)
{
    char **grown = realloc(key->values, sizeof *grown * (size_t)(key->count + 1));
    if (!grown)
        return complain("out of memory");
    key->values = grown;
    if (!(grown[key->count] = strndup(text, length)))
        return complain("out of memory");
    for (int i = 0; i < key->count; i++)
        if (!strcmp(grown[i], grown[key->count])) {
            key->count++;
            return complain("--vary %s: the value %s is there twice", key->name, grown[i]);
        }
    key->count++;
    return EXIT_GOOD;
}

/* Length of the value at `text`: up to a comma outside of brackets and quotes. */
static size_t value_length(const char *text)
{
    int depth = 0, quoted = 0;
    size_t length = 0;
    for (; text[length] && (text[length] != ',' || depth > 0 || quoted); length++) {
        if (text[length] == '"')
            quoted = !quoted;
        depth += !quoted && strchr("[{", text[length]);
        depth -= !quoted && strchr("]}", text[length]);
    }
    return length;
}

static int read_list(sweep_key *key, const char *text)
{
    for (;;) {
        size_t length = value_length(text);
        if (!length)
            return complain("--vary %s: an empty value; a list is %s=a,b,c", key->name, key->name);
        int code = add_value(key, text, length);
        if (code || !text[length])
            return code;
        text += length + 1;
    }
}

/* "from:to:count" or "from:to:count:log". Returns 0 if `text` is no range: it does not begin with a number and a
 * colon. */
static int is_range(const char *text)
{
    char *end;
    strtod(text, &end);
    return end != text && *end == ':';
}

static int read_range(sweep_key *key, const char *text)
{
    char *end = NULL, *rest = NULL;
    double from = strtod(text, &end), to = NAN;
    const char *second = end + 1;
    to = strtod(second, &rest);
    long count = 0;
    char *last = rest;
    if (rest != second && *rest == ':')
        count = strtol(rest + 1, &last, 10);
    key->logarithmic = !strcmp(last, ":log");
    if (last == rest || last == rest + 1 || (*last && !key->logarithmic))
        return complain("--vary %s=%s: is not a range; one is from:to:count or from:to:count:log, as in 1:8:4:log",
                        key->name, text);
    if (!isfinite(from) || !isfinite(to))
        return complain("--vary %s=%s: the ends of a range must be finite numbers", key->name, text);
    if (count < 2 || count > sweep_most_runs)
        return complain("--vary %s=%s: the count %ld is not from 2 to %d", key->name, text, count, sweep_most_runs);
    if (from == to)
        return complain("--vary %s=%s: the range is empty, it begins where it ends", key->name, text);
    if (key->logarithmic && !(from * to > 0))
        return complain("--vary %s=%s: a range with log needs two numbers of one sign, neither of them 0", key->name,
                        text);

    /* Both ends are exact. */
    int code = EXIT_GOOD;
    for (long i = 0; i < count && !code; i++) {
        double share = (double)i / (double)(count - 1);
        double value = key->logarithmic ? from * pow(to / from, share) : from + (to - from) * share;
        value = i == count - 1 ? to : value;
        /* Nine digits, so that steps of 0.1 are written as such. */
        char number[32];
        snprintf(number, sizeof number, "%.9g", fabs(value) < 1e-12 * fmax(fabs(from), fabs(to)) ? 0.0 : value);
        code = add_value(key, number, strlen(number));
    }
    return code;
}

static size_t key_length(const char *text)
{
    return strcspn(text, "=");
}

int sweep_read_key(sweep *work, const char *text)
{
    size_t length = key_length(text);
    if (!length || !text[length])
        return complain("--vary '%s': a key and its values are missing; it is KEY=a,b,c or KEY=from:to:count[:log]",
                        text);
    if (work->key_count == sweep_most_keys)
        return complain("--vary %s: at most %d keys can be varied", text, sweep_most_keys);
    for (int k = 0; k < work->key_count; k++)
        if (strlen(work->keys[k].name) == length && !strncmp(work->keys[k].name, text, length))
            return complain("--vary %s: the key is varied twice", work->keys[k].name);
    for (int s = 0; s < work->set->given; s++)
        if (key_length(work->set->list[s]) == length && !strncmp(work->set->list[s], text, length))
            return complain("--vary %s and --set %s give one key two values", text, work->set->list[s]);
    sweep_key *key = &work->keys[work->key_count++];
    if (!(key->name = strndup(text, length)))
        return complain("out of memory");
    const char *values = text + length + 1;
    return is_range(values) ? read_range(key, values) : read_list(key, values);
}

/* --- Runs --- */

static int count_runs(const sweep *work, int together, int yes, int *count)
{
    double product = 1;
    for (int k = 0; k < work->key_count; k++) {
        product *= work->keys[k].count;
        if (together && work->keys[k].count != work->keys[0].count)
            return complain("--together needs as many values of each key: %s has %d, %s has %d", work->keys[0].name,
                            work->keys[0].count, work->keys[k].name, work->keys[k].count);
    }
    if (together)
        product = work->keys[0].count;
    if (product > sweep_most_runs)
        return complain("these values make %.0f runs; at most %d are possible", product, sweep_most_runs);
    if (product > sweep_many_runs && !yes)
        return complain("these values make %.0f runs; --yes starts more than %d", product, sweep_many_runs);
    *count = (int)product;
    return EXIT_GOOD;
}

/* A readable name for a folder: "domain.resolution=64,liquids.0.shape.radius=0.1". */
static char *make_name(const sweep *work, const sweep_run *run)
{
    char *name = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&name, &length);
    if (!out)
        return NULL;
    for (int k = 0; k < work->key_count; k++) {
        const char *parts[] = {work->keys[k].name, "=", work->keys[k].values[run->choices[k]]};
        if (k)
            fputc(',', out);
        for (int p = 0; p < 3; p++)
            for (const char *c = parts[p]; *c; c++)
                if (p == 0 && *c == '[')
                    fputc('.', out);
                else if ((unsigned char)*c >= 0x80 || strchr("=,.+-_", *c) || (*c >= '0' && *c <= '9') ||
                         ((*c | 32) >= 'a' && (*c | 32) <= 'z'))
                    fputc(*c, out);
                else if (*c == '/' || *c == ' ')
                    fputc('_', out);
    }
    if (fclose(out)) {
        free(name);
        return NULL;
    }
    return name;
}

/* A long name, and one that another run has, is told apart by a hash of the values. */
static int name_run(const sweep *work, int index)
{
    sweep_run *run = &work->runs[index];
    run->name = make_name(work, run);
    if (!run->name)
        return complain("out of memory");
    int taken = strlen(run->name) > sweep_name_length;
    for (int i = 0; i < index && !taken; i++)
        taken = !strcmp(work->runs[i].name, run->name);
    if (taken) {
        uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
        for (int s = work->set->given; s < work->set->given + work->key_count; s++)
            for (const char *c = run->sets[s]; *c; c++)
                hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        char *longer = NULL;
        if (asprintf(&longer, "%.*s-%016llx", sweep_name_length, run->name, (unsigned long long)hash) < 0)
            return complain("out of memory");
        free(run->name);
        run->name = longer;
    }
    return asprintf(&run->folder, "%s/runs/%s", work->folder, run->name) < 0 ? complain("out of memory") : EXIT_GOOD;
}

/* The "KEY=VALUE" of a run, with room for its end. */
static int make_sets(const sweep *work, sweep_run *run)
{
    run->sets = calloc((size_t)(work->set->given + work->key_count + 1), sizeof *run->sets);
    if (!run->sets)
        return complain("out of memory");
    for (int s = 0; s < work->set->given; s++)
        if (!(run->sets[run->set_count++] = strdup(work->set->list[s])))
            return complain("out of memory");
    for (int k = 0; k < work->key_count; k++)
        if (asprintf(&run->sets[run->set_count++], "%s=%s", work->keys[k].name, work->keys[k].values[run->choices[k]]) <
            0)
            return complain("out of memory");
    return EXIT_GOOD;
}

int sweep_make_runs(sweep *work, int together, int yes)
{
    int count = 0, code = count_runs(work, together, yes, &count);
    if (code)
        return code;
    work->runs = calloc((size_t)count, sizeof *work->runs);
    if (!work->runs)
        return complain("out of memory");
    work->run_count = count;
    for (int i = 0; i < count && !code; i++) {
        sweep_run *run = &work->runs[i];
        run->exit_code = -1;
        for (int k = work->key_count - 1, rest = i; k >= 0; k--) {
            run->choices[k] = together ? i : rest % work->keys[k].count;
            rest /= work->keys[k].count;
        }
        code = make_sets(work, run);
        if (!code)
            code = name_run(work, i);
    }
    return code;
}

void sweep_free(sweep *work)
{
    for (int k = 0; k < work->key_count; k++) {
        for (int i = 0; i < work->keys[k].count; i++)
            free(work->keys[k].values[i]);
        free(work->keys[k].values);
        free(work->keys[k].name);
    }
    for (int i = 0; i < work->run_count; i++) {
        sweep_run *run = &work->runs[i];
        for (int s = 0; s < run->set_count; s++)
            free(run->sets[s]);
        free(run->sets);
        free(run->name);
        free(run->folder);
    }
    free(work->runs);
    free(work->folder);
}
