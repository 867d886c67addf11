#define _GNU_SOURCE
#include "io/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/atomic_file.h"
#include "io/number.h"

static selkie_code fail(const char *path, const char *action, int reason, selkie_error *error)
{
    char buffer[128];
    return sk_fail(error, reason == ENOMEM ? SELKIE_ERROR_MEMORY : SELKIE_ERROR_FILE, "%s: %s: %s", path, action,
                   sk_file_reason(reason, buffer, sizeof buffer));
}

int sk_folder_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int sk_file_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

int sk_folder_is_empty(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT;
    int empty = 1;
    struct dirent *entry;
    while (empty && (entry = readdir(folder)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(folder);
    return empty;
}

/* Makes one folder; 0 or an errno. mkdir says EEXIST for files as well. */
static int make_one(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return 0;
    int reason = errno; /* the look at the path changes errno */
    if (sk_folder_exists(path))
        return 0;
    return reason == EEXIST ? ENOTDIR : reason;
}

selkie_code sk_folder_make(const char *path, selkie_error *error)
{
    if (!*path)
        return sk_fail(error, SELKIE_ERROR_INPUT, "a folder with an empty name cannot be made");
    if (sk_folder_exists(path))
        return SELKIE_OK;
    char *part = strdup(path);
    if (!part)
        return fail(path, "cannot make this folder", ENOMEM, error);
    int reason = 0;
    for (char *slash = part + 1; reason == 0 && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        reason = make_one(part);
        *slash = '/';
    }
    free(part);
    if (reason == 0)
        reason = make_one(path);
    return reason == 0 ? SELKIE_OK : fail(path, "cannot make this folder", reason, error);
}

/* --- Lists --- */

void sk_file_list_free(sk_file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->files[i].path);
    free(list->files);
    *list = (sk_file_list){0, NULL};
}

/* The number in prefixNNNsuffix, or -1 if the name is of another kind. */
static int64_t number_in(const char *name, const char *prefix, const char *suffix)
{
    size_t name_length = strlen(name), prefix_length = strlen(prefix), suffix_length = strlen(suffix);
    if (name_length <= prefix_length + suffix_length || strncmp(name, prefix, prefix_length) != 0 ||
        strcmp(name + name_length - suffix_length, suffix) != 0)
        return -1;
    int64_t number = 0;
    for (const char *digit = name + prefix_length; digit < name + name_length - suffix_length; digit++) {
        if (*digit < '0' || *digit > '9' || number > (INT64_MAX - 9) / 10)
            return -1;
        number = number * 10 + (*digit - '0');
    }
    return number;
}

static int by_number(const void *left, const void *right)
{
    const sk_numbered_file *a = left, *b = right;
    return a->number != b->number ? (a->number > b->number) - (a->number < b->number) : strcmp(a->path, b->path);
}

static int add_file(sk_file_list *list, size_t *capacity, const char *folder, const char *name, int64_t number)
{
    if (list->count == *capacity) {
        size_t grown = *capacity ? 2 * *capacity : 64;
        sk_numbered_file *files = realloc(list->files, grown * sizeof *files);
        if (!files)
            return ENOMEM;
        list->files = files;
        *capacity = grown;
    }
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path)
        return ENOMEM;
    snprintf(path, size, "%s/%s", folder, name);
    list->files[list->count++] = (sk_numbered_file){number, path};
    return 0;
}

selkie_code sk_folder_list(const char *folder, const char *prefix, const char *suffix, sk_file_list *list,
                           selkie_error *error)
{
    *list = (sk_file_list){0, NULL};
    DIR *stream = opendir(folder);
    if (!stream)
        return errno == ENOENT ? SELKIE_OK : fail(folder, "cannot list this folder", errno, error);
    size_t capacity = 0;
    int reason = 0;
    while (reason == 0) {
        errno = 0;
        struct dirent *entry = readdir(stream);
        if (!entry) {
            reason = errno;
            break;
        }
        int64_t number = number_in(entry->d_name, prefix, suffix);
        if (number >= 0)
            reason = add_file(list, &capacity, folder, entry->d_name, number);
    }
    closedir(stream);
    if (reason != 0) {
        sk_file_list_free(list);
        return fail(folder, "cannot list this folder", reason, error);
    }
    if (list->count > 1)
        qsort(list->files, list->count, sizeof *list->files, by_number);
    return SELKIE_OK;
}

selkie_code sk_numbered_path(char *path, size_t size, const char *folder, const char *prefix, int64_t number,
                             const char *suffix, selkie_error *error)
{
    int length = snprintf(path, size, "%s/%s%04lld%s", folder, prefix, (long long)number, suffix);
    if (length < 0 || (size_t)length >= size)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: the path of %s%04lld%s in it is too long", folder, prefix,
                       (long long)number, suffix);
    return SELKIE_OK;
}

selkie_code sk_folder_free_space(const char *path, uint64_t *bytes, selkie_error *error)
{
    *bytes = 0;
    char part[PATH_MAX];
    int length = snprintf(part, sizeof part, "%s", path);
    if (length < 0 || (size_t)length >= sizeof part)
        return fail(path, "cannot measure the free space", ENAMETOOLONG, error);
    struct statvfs disk;
    while (statvfs(part, &disk) != 0) {
        if (errno != ENOENT || strcmp(part, ".") == 0 || strcmp(part, "/") == 0)
            return fail(path, "cannot measure the free space", errno, error);
        /* A path that does not exist yet is on the disk of its nearest ancestor. */
        char *slash = strrchr(part, '/');
        if (!slash)
            strcpy(part, ".");
        else if (slash == part)
            part[1] = '\0';
        else
            *slash = '\0';
    }
    *bytes = (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize;
    return SELKIE_OK;
}

/* --- Runs --- */

static selkie_code join(char path[PATH_MAX], const char *folder, const char *name, selkie_error *error)
{
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= PATH_MAX)
        return fail(folder, "cannot look into this folder", ENAMETOOLONG, error);
    return SELKIE_OK;
}

selkie_code sk_folder_list_frames(const char *folder, sk_file_list *list, selkie_error *error)
{
    SK_TRY(sk_folder_list(folder, SK_PARTICLES_PREFIX, ".ply", list, error));
    if (list->count)
        return SELKIE_OK;
    sk_file_list_free(list);
    return sk_folder_list(folder, SK_PARTICLES_PREFIX, ".skp", list, error);
}

void sk_folder_flush(const char *folder)
{
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return;
#if defined(__linux__)
    (void)!syncfs(descriptor);
#else
    sync();
#endif
    close(descriptor);
}

static selkie_code count_frames(const char *frames, const char *suffix, sk_run_state *state, selkie_error *error)
{
    sk_file_list list;
    SK_TRY(sk_folder_list(frames, SK_PARTICLES_PREFIX, suffix, &list, error));
    if (list.count > state->frame_count)
        state->frame_count = list.count;
    if (list.count > 0 && list.files[list.count - 1].number > state->last_frame)
        state->last_frame = list.files[list.count - 1].number;
    sk_file_list_free(&list);
    return SELKIE_OK;
}

selkie_code sk_run_look(const char *folder, sk_run_state *state, selkie_error *error)
{
    *state = (sk_run_state){.last_frame = -1};
    char path[PATH_MAX];
    SK_TRY(join(path, folder, "scene.json", error));
    state->exists = sk_file_exists(path);
    SK_TRY(join(path, folder, "finished", error));
    state->finished = state->exists && sk_file_exists(path);
    SK_TRY(join(path, folder, SK_FRAMES_FOLDER, error));
    SK_TRY(count_frames(path, ".ply", state, error));
    SK_TRY(count_frames(path, ".vtp", state, error));
    SK_TRY(count_frames(path, ".skp", state, error));
    SK_TRY(join(path, folder, SK_CHECKPOINTS_FOLDER, error));
    sk_file_list list;
    SK_TRY(sk_folder_list(path, SK_CHECKPOINT_PREFIX, SK_CHECKPOINT_SUFFIX, &list, error));
    state->checkpoint_count = list.count;
    sk_file_list_free(&list);
    return SELKIE_OK;
}

selkie_code sk_run_mark_finished(const char *folder, int64_t steps, double time, size_t memory, selkie_error *error)
{
    char path[PATH_MAX], number[SK_NUMBER_LENGTH], line[128];
    SK_TRY(join(path, folder, "finished", error));
    sk_number_scope scope;
    SK_TRY(sk_number_begin(&scope, error));
    sk_number_format(time, number);
    sk_number_end(&scope);
    int length = snprintf(line, sizeof line, "steps %lld time %s memory %zu\n", (long long)steps, number, memory);
    return sk_file_write(path, line, (size_t)length, error);
}

size_t sk_run_memory(const char *folder)
{
    char path[PATH_MAX], line[128];
    if (join(path, folder, "finished", NULL) != SELKIE_OK)
        return 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    const char *at = fgets(line, sizeof line, file) ? strstr(line, " memory ") : NULL;
    fclose(file);
    return at ? (size_t)strtoull(at + strlen(" memory "), NULL, 10) : 0;
}

selkie_code sk_run_mark_unfinished(const char *folder, selkie_error *error)
{
    char path[PATH_MAX];
    SK_TRY(join(path, folder, "finished", error));
    if (unlink(path) != 0 && errno != ENOENT)
        return fail(path, "cannot remove", errno, error);
    return SELKIE_OK;
}
