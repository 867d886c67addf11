/* `selkie run --from`: the liquid of a checkpoint as the start of another scene. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/atomic_file.h"
#include "resume.h"

/* A checkpoint, or the newest one of a run's folder; free() it. */
static char *find_checkpoint(const char *path)
{
    if (!sk_folder_exists(path))
        return strdup(path);
    run_folder folder = {.path = (char *)path, .lock = -1};
    sk_file_list list;
    if (run_folder_checkpoints(&folder, &list))
        return NULL;
    char *found = list.count ? strdup(list.files[list.count - 1].path) : NULL;
    if (!list.count)
        complain("--from %s: the folder has no checkpoint; it must be a checkpoint or the folder of a run", path);
    sk_file_list_free(&list);
    return found;
}

static void print_report(const char *path, const selkie_restart_report *report, int quiet)
{
    char before[32], after[32];
    format_count(report->in_checkpoint, before);
    format_count(report->taken, after);
    if (!quiet && report->resampled)
        printf("  from %s at %g s: %s particles, sampled again as %s (cells there: %g m)\n", path, report->time, before,
               after, report->cell_size);
    else if (!quiet)
        printf("  from %s at %g s: %s of %s particles\n", path, report->time, after, before);
    if (!quiet && report->pushed_out)
        printf("  %lld particles inside solids were pushed out\n", (long long)report->pushed_out);
    fflush(stdout);
    if (report->outside)
        fprintf(stderr, "selkie: note: %lld particles of %s lie outside the domain and are dropped\n",
                (long long)report->outside, path);
    if (report->inside_solids)
        fprintf(stderr, "selkie: note: %lld particles of %s lie deep inside solids and are dropped\n",
                (long long)report->inside_solids, path);
    if (report->no_room)
        fprintf(stderr, "selkie: note: for %lld particles there is no room near the liquid of %s; they are dropped\n",
                (long long)report->no_room, path);
}

int start_from_checkpoint(const char *path, const selkie_scene *scene, const selkie_world_options *options, int quiet,
                          selkie_world **world)
{
    char *checkpoint = find_checkpoint(path);
    *world = NULL;
    if (!checkpoint)
        return EXIT_BAD_INPUT;
    selkie_restart_report report;
    selkie_error error = {0};
    int code = EXIT_GOOD;
    if (selkie_world_create_from(scene, options, checkpoint, &report, world, &error))
        code = complain_error(&error);
    else
        print_report(checkpoint, &report, quiet);
    free(checkpoint);
    return code;
}

int record_start(const run_folder *folder, const char *path)
{
    char *file = run_folder_path(folder, "from.txt"), *text = NULL;
    selkie_error error = {0};
    int code = file && asprintf(&text, "%s\n", path) >= 0 ? EXIT_GOOD : complain("out of memory");
    if (!code && sk_file_write(file, text, strlen(text), &error))
        code = complain_error(&error);
    free(file);
    free(text);
    return code;
}

int started_from_checkpoint(const run_folder *folder)
{
    char *file = run_folder_path(folder, "from.txt");
    int there = file && sk_file_exists(file);
    free(file);
    return there;
}
