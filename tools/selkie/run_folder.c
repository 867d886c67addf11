#define _GNU_SOURCE
#include "run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/atomic_file.h"
#include "tool.h"

/* --- Opening --- */

/* scene.json is removed last, so that an interrupted removal can be repeated. */
static const char *const written_files[] = {"finished",     "stats.csv", "probes.csv", "bodies.csv",
                                            "warnings.txt", "film.mp4",  "from.txt",   "scene.json"};
static const char *const written_folders[] = {"frames", "checkpoints", "surfaces", "pictures"};
enum {
    written_file_count = sizeof written_files / sizeof *written_files,
    written_folder_count = sizeof written_folders / sizeof *written_folders
};

char *run_folder_path(const run_folder *folder, const char *format, ...)
{
    char *rest = NULL, *path = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&rest, format, arguments);
    va_end(arguments);
    if (length < 0)
        return NULL;
    if (asprintf(&path, "%s/%s", folder->path, rest) < 0)
        path = NULL;
    free(rest);
    return path;
}

/* Says in our words what errno means for a path: "PATH: WHAT: no permission". */
static int complain_errno(const char *path, const char *what)
{
    char buffer[128];
    return complain("%s: %s: %s", path, what, sk_file_reason(errno, buffer, sizeof buffer));
}

static int make_folder(const char *path)
{
    selkie_error error = {0};
    return sk_folder_make(path, &error) ? complain_error(&error) : EXIT_GOOD;
}

/* Removes the files of a folder of a run, which is flat, and the folder if nothing else is in it. Links are
 * removed, not followed. */
static int remove_written_folder(const char *path)
{
    DIR *entries = opendir(path);
    if (!entries)
        return errno == ENOENT ? EXIT_GOOD : complain_errno(path, "cannot be opened");
    int code = EXIT_GOOD;
    for (struct dirent *entry; !code && (entry = readdir(entries));) {
        struct stat status;
        if (fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) || S_ISDIR(status.st_mode))
            continue;
        if (unlinkat(dirfd(entries), entry->d_name, 0))
            code = complain("%s/%s: cannot be removed: %s", path, entry->d_name, strerror(errno));
    }
    closedir(entries);
    rmdir(path);
    return code;
}

/* --force: removes only files of a run, and only from a folder with a run. */
static int remove_earlier_run(const run_folder *folder)
{
    char *scene = run_folder_path(folder, "scene.json");
    int is_run = scene && !access(scene, F_OK);
    free(scene);
    int code = EXIT_GOOD;
    for (int i = 0; i < written_folder_count && !code; i++) {
        char *path = run_folder_path(folder, "%s", written_folders[i]);
        if (!path)
            code = complain("out of memory");
        else if (is_run)
            code = remove_written_folder(path);
        else if (!sk_folder_is_empty(path))
            code = complain("%s: has files in %s/ but no scene.json, so no run wrote it; choose another --out",
                            folder->path, written_folders[i]);
        free(path);
    }
    for (int i = 0; i < written_file_count && is_run && !code; i++) {
        char *path = run_folder_path(folder, "%s", written_files[i]);
        if (path && unlink(path) && errno != ENOENT)
            code = complain_errno(path, "cannot be removed");
        free(path);
    }
    return code;
}

/* Partial files of a killed run. */
static void remove_unfinished_files(const run_folder *folder)
{
    for (int i = 0; i < written_folder_count; i++) {
        char *path = run_folder_path(folder, "%s", written_folders[i]);
        DIR *entries = path ? opendir(path) : NULL;
        free(path);
        for (struct dirent *entry; entries && (entry = readdir(entries));) {
            if (has_ending(entry->d_name, ".part"))
                unlinkat(dirfd(entries), entry->d_name, 0);
        }
        if (entries)
            closedir(entries);
    }
}

int run_folder_name(run_folder *folder, const char *path)
{
    folder->lock = -1;
    if (!*path)
        return complain("--out is empty; give it the name of a folder");
    folder->path = strdup(path);
    if (!folder->path)
        return complain("out of memory");
    for (size_t length = strlen(folder->path); length > 1 && folder->path[length - 1] == '/';)
        folder->path[--length] = 0;
    return EXIT_GOOD;
}

int run_folder_refuse(const run_folder *folder)
{
    struct stat status;
    if (stat(folder->path, &status))
        return EXIT_GOOD;
    if (!S_ISDIR(status.st_mode))
        return complain("%s: is a file, --out needs a folder", folder->path);
    if (!sk_folder_is_empty(folder->path))
        return complain("%s: exists and is not empty; --resume continues the run in it, --force replaces "
                        "it, --out DIR names another folder",
                        folder->path);
    return EXIT_GOOD;
}

int run_folder_open(run_folder *folder, run_start start)
{
    if (folder->lock >= 0)
        return EXIT_GOOD;
    int code = make_folder(folder->path);
    if (code)
        return code;
    folder->lock = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->lock < 0)
        return complain_errno(folder->path, "the folder cannot be opened");
    /* File systems without locks: no lock. */
    if (flock(folder->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return complain("%s: another run is writing into this folder; wait for it or choose another --out",
                        folder->path);
    if (access(folder->path, W_OK | X_OK))
        return complain_errno(folder->path, "the folder cannot be written to");
    if (start == RUN_FORCE)
        return remove_earlier_run(folder);
    if (start == RUN_FRESH)
        return run_folder_refuse(folder);
    remove_unfinished_files(folder);
    return EXIT_GOOD;
}

int run_folder_make(const run_folder *folder, const char *name)
{
    char *path = run_folder_path(folder, "%s", name);
    int code = path ? make_folder(path) : complain("out of memory");
    free(path);
    return code;
}

void run_folder_close(run_folder *folder)
{
    if (folder->lock >= 0)
        close(folder->lock);
    folder->lock = -1;
    free(folder->path);
    folder->path = NULL;
}

int64_t run_folder_count(const run_folder *folder, const char *name, const char *ending, double *bytes)
{
    char *path = run_folder_path(folder, "%s", name);
    DIR *entries = path ? opendir(path) : NULL;
    free(path);
    int64_t count = 0;
    *bytes = 0;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        struct stat status;
        if (!has_ending(entry->d_name, ending) || fstatat(dirfd(entries), entry->d_name, &status, 0) ||
            !S_ISREG(status.st_mode))
            continue;
        count++;
        *bytes += (double)status.st_size;
    }
    if (entries)
        closedir(entries);
    return count;
}

/* --- Checkpoints --- */

int run_folder_checkpoints(const run_folder *folder, sk_file_list *list)
{
    char *path = run_folder_path(folder, "checkpoints");
    selkie_error error = {0};
    int code = EXIT_GOOD;
    memset(list, 0, sizeof *list);
    if (!path)
        code = complain("out of memory");
    else if (sk_folder_list(path, "checkpoint_", ".selkie", list, &error))
        code = complain_error(&error);
    free(path);
    return code;
}

char *run_folder_checkpoint(const run_folder *folder, int64_t step)
{
    return run_folder_path(folder, "checkpoints/checkpoint_%08lld.selkie", (long long)step);
}

void run_folder_prune(const run_folder *folder, int keep)
{
    sk_file_list list;
    if (run_folder_checkpoints(folder, &list))
        return;
    for (size_t i = 0; i + (size_t)keep < list.count; i++)
        unlink(list.files[i].path);
    sk_file_list_free(&list);
}
