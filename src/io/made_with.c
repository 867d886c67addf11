#define _GNU_SOURCE
#include "io/made_with.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "io/folder.h"

/* A stale file has this time of its last change: it is older than everything that it could be made of. */
static const struct timespec long_ago = {0, 0};

int sk_made_with_stale(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_mtim.tv_sec == long_ago.tv_sec;
}

selkie_code sk_made_with_update(const char *folder, const sk_made_with *options, selkie_error *error)
{
    char path[4096], *old = NULL;
    size_t bytes = 0;
    if (snprintf(path, sizeof path, "%s/%s", folder, options->record) >= (int)sizeof path)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: the name is too long", folder);
    const int recorded = sk_file_exists(path) && sk_file_read(path, &old, &bytes, NULL) == SELKIE_OK;
    const char *before = recorded ? old : options->assumed;
    const int same = before && strcmp(before, options->line) == 0;
    sk_release(NULL, old);
    if (same)
        return SELKIE_OK;

    sk_file_list files;
    SK_TRY(sk_folder_list(folder, options->prefix, options->ending, &files, error));
    selkie_code code = SELKIE_OK;
    const struct timespec times[2] = {long_ago, long_ago};
    for (size_t i = 0; i < files.count && !code; ++i)
        if (utimensat(AT_FDCWD, files.files[i].path, times, 0))
            code = sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be marked as made with other options; remove it",
                           files.files[i].path);
    sk_file_list_free(&files);
    SK_TRY(code);
    return sk_file_write(path, options->line, strlen(options->line), error);
}
