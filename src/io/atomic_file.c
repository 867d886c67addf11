#define _GNU_SOURCE /* fallocate; strerror_r as GNU has it */
#include "io/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"

struct sk_atomic_file {
    char *path;      /* as the caller named it, for messages */
    char *target;    /* final path: `path` with symbolic links followed */
    char *temporary; /* target.part; NULL if the target is written to directly */
    int descriptor;
    int seekable;
    int no_flush;      /* put in place without waiting for the disk */
    uint64_t position; /* bytes appended */
};

enum { largest_write = 1 << 30, batch_bytes = 1 << 20 };

const char *sk_file_reason(int reason, char *buffer, size_t size)
{
    switch (reason) {
    case ENOSPC:
        return "the disk is full";
    case EDQUOT:
        return "the disk quota is used up";
    case EFBIG:
        return "it would be larger than the limit for files (ulimit -f, or the file system's own)";
    case EACCES:
    case EPERM:
        return "no permission";
    case EROFS:
        return "the file system is read-only";
    case ENOENT:
        return "no such file or folder";
    case ENOTDIR:
        return "a part of the path is a file, not a folder";
    case EISDIR:
        return "it is a folder";
    case ENAMETOOLONG:
        return "the name is too long";
    case EIO:
        return "the disk reports an error";
    case EPIPE:
        return "the reader went away";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case EWOULDBLOCK:
        return "another process is writing it";
    case ESPIPE:
        return "a pipe can only be written in order; give a file";
    default:
        return strerror_r(reason, buffer, size);
    }
}

static selkie_code fail_write(const char *path, int reason, selkie_error *error)
{
    char buffer[128];
    if (reason == ENOMEM)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: cannot write: out of memory", path);
    return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot write: %s", path,
                   sk_file_reason(reason, buffer, sizeof buffer));
}

selkie_code sk_atomic_fail(const sk_atomic_file *file, int reason, selkie_error *error)
{
    struct statvfs disk;
    if (reason == ENOSPC && file->temporary && fstatvfs(file->descriptor, &disk) == 0)
        return sk_fail(
            error, SELKIE_ERROR_FILE,
            "%s: cannot write: the disk is full (%.1f MiB free after %.1f MiB of it); make room and run again",
            file->path, (double)disk.f_bavail * (double)disk.f_frsize / 1048576.0, (double)file->position / 1048576.0);
    return fail_write(file->path, reason, error);
}

static void release(sk_atomic_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->path);
    free(file->target);
    free(file->temporary);
    free(file);
}

/* --- Opening --- */

/* Opens and locks target.part. Between open and lock another writer may have renamed the opened file to its final name;
 * truncating it would destroy that result. So the lock is valid only if the name still refers to the opened file. */
static int open_temporary(const char *temporary, int *descriptor)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        int opened = open(temporary, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (opened < 0)
            return errno;
        if (flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(opened);
            return EWOULDBLOCK;
        } /* other failures: a file system without locks, which supports one writer a file */
        struct stat held, named;
        int same = fstat(opened, &held) == 0 && stat(temporary, &named) == 0 && held.st_dev == named.st_dev &&
                   held.st_ino == named.st_ino;
        if (same && ftruncate(opened, 0) == 0) {
            *descriptor = opened;
            return 0;
        }
        int reason = same ? errno : EWOULDBLOCK;
        close(opened);
        if (same)
            return reason;
    }
    return EWOULDBLOCK;
}

/* Whether the folder of `path` is there; copies its name. */
static int folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= PATH_MAX)
        length = PATH_MAX - 1;
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (!slash)
        strcpy(folder, ".");
    else if (length == 0)
        strcpy(folder, "/");
    struct stat status;
    return stat(folder, &status) == 0 && S_ISDIR(status.st_mode);
}

static int name_places(sk_atomic_file *file, const char *path, int *direct)
{
    struct stat status;
    int exists = stat(path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode))
        return EISDIR;
    *direct = exists && !S_ISREG(status.st_mode);
    file->path = strdup(path);
    file->target = exists && !*direct ? realpath(path, NULL) : strdup(path);
    if (!file->path || !file->target)
        return errno ? errno : ENOMEM;
    /* A read-only file must not be replaced: a rename checks only the permissions of the folder. */
    if (exists && !*direct && access(file->target, W_OK) != 0)
        return errno;
    if (!*direct) {
        size_t length = strlen(file->target);
        file->temporary = malloc(length + sizeof ".part");
        if (!file->temporary)
            return ENOMEM;
        memcpy(file->temporary, file->target, length);
        memcpy(file->temporary + length, ".part", sizeof ".part");
    }
    return 0;
}

selkie_code sk_atomic_open(const char *path, uint64_t expected_bytes, sk_atomic_file **result, selkie_error *error)
{
    *result = NULL;
    sk_atomic_file *file = calloc(1, sizeof *file);
    if (!file)
        return fail_write(path, ENOMEM, error);
    file->descriptor = -1;

    /* The file, or its temporary. */
    int direct = 0;
    int reason = name_places(file, path, &direct);
    if (reason == 0 && direct) {
        file->descriptor = open(path, O_WRONLY | O_CLOEXEC);
        reason = file->descriptor < 0 ? errno : 0;
    } else if (reason == 0) {
        reason = open_temporary(file->temporary, &file->descriptor);
    }

    if (reason != 0) {
        release(file);
        char folder[PATH_MAX];
        if (reason == ENOENT && !folder_of(path, folder))
            return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot write: the folder '%s' does not exist", path, folder);
        return fail_write(path, reason, error);
    }

    file->seekable = lseek(file->descriptor, 0, SEEK_CUR) >= 0;
    *result = file;
    /* Only a full disk is an error here: some file systems cannot reserve space. */
    if (expected_bytes > 0 && file->temporary && expected_bytes <= INT64_MAX &&
        fallocate(file->descriptor, FALLOC_FL_KEEP_SIZE, 0, (off_t)expected_bytes) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
        selkie_code code = sk_atomic_fail(file, errno, error);
        sk_atomic_abandon(result);
        return code;
    }
    return SELKIE_OK;
}

/* --- Writing --- */

uint64_t sk_atomic_position(const sk_atomic_file *file)
{
    return file->position;
}

int sk_atomic_write_at(sk_atomic_file *file, uint64_t offset, const void *data, size_t bytes)
{
    const char *from = data;
    if (!file->seekable && offset != file->position)
        return ESPIPE;
    while (bytes > 0) {
        size_t piece = bytes < (size_t)largest_write ? bytes : (size_t)largest_write;
        if (offset > (uint64_t)INT64_MAX - piece)
            return EFBIG;
        ssize_t written = file->seekable ? pwrite(file->descriptor, from, piece, (off_t)offset)
                                         : write(file->descriptor, from, piece);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno;
        if (written == 0)
            return EIO; /* avoids an endless loop */
        from += written;
        offset += (uint64_t)written;
        bytes -= (size_t)written;
        if (!file->seekable)
            file->position = offset;
    }
    return 0;
}

selkie_code sk_atomic_write(sk_atomic_file *file, const void *data, size_t bytes, selkie_error *error)
{
    uint64_t start = file->position;
    int reason = sk_atomic_write_at(file, start, data, bytes);
    if (reason != 0)
        return sk_atomic_fail(file, reason, error);
    file->position = start + bytes;
    return SELKIE_OK;
}

selkie_code sk_atomic_print(sk_atomic_file *file, selkie_error *error, const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line)
        return sk_fail(error, SELKIE_ERROR_INTERNAL, "%s: a header line of more than %zu characters", file->path,
                       sizeof line - 1);
    return sk_atomic_write(file, line, (size_t)length, error);
}

selkie_code sk_atomic_write_records(sk_atomic_file *file, int64_t count, size_t record_bytes, sk_record_fill fill,
                                    const void *context, selkie_error *error)
{
    int64_t batch = batch_bytes / (int64_t)record_bytes;
    batch = batch < 1 ? 1 : batch > count ? count : batch;
    int64_t batches = batch > 0 ? (count + batch - 1) / batch : 0;
    uint64_t start = file->position;
    int reason = 0;

    /* Batches go to a pipe in order, to a file at their offsets. */
#pragma omp parallel if (file->seekable && batches > 1)
    {
        unsigned char *buffer = batches > 0 ? malloc((size_t)batch * record_bytes) : NULL;
#pragma omp for schedule(dynamic, 1)
        for (int64_t b = 0; b < batches; b++) {
            int seen;
#pragma omp atomic read
            seen = reason;
            if (seen != 0)
                continue;
            int64_t first = b * batch;
            int64_t records = count - first < batch ? count - first : batch;
            int failed = ENOMEM;
            if (buffer) {
                fill(context, first, records, buffer);
                failed = sk_atomic_write_at(file, start + (uint64_t)first * record_bytes, buffer,
                                            (size_t)records * record_bytes);
            }
            if (failed != 0) {
#pragma omp atomic write
                reason = failed;
            }
        }
        free(buffer);
    }

    if (reason != 0)
        return sk_atomic_fail(file, reason, error);
    file->position = start + (uint64_t)count * record_bytes;
    return SELKIE_OK;
}

/* --- Closing --- */

void sk_atomic_abandon(sk_atomic_file **file)
{
    if (!*file)
        return;
    if ((*file)->temporary)
        unlink((*file)->temporary);
    release(*file);
    *file = NULL;
}

/* The rename is stored in the folder, so the folder is flushed too. Some network file systems cannot do this; their
 * errors are ignored. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    if (!folder_of(path, folder))
        return;
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    (void)!fsync(descriptor);
    close(descriptor);
}

void sk_atomic_no_flush(sk_atomic_file *file)
{
    file->no_flush = 1;
}

selkie_code sk_atomic_commit(sk_atomic_file **pointer, selkie_error *error)
{
    sk_atomic_file *file = *pointer;
    int reason = 0;
    if (file->temporary) {
        /* fsync reports late failures (network disks, quotas) that close does not. */
        if (!file->no_flush && fsync(file->descriptor) != 0 && errno != EINVAL && errno != ENOTSUP)
            reason = errno;
        /* Renamed while the lock is still held: see open_temporary. */
        if (reason == 0 && rename(file->temporary, file->target) != 0)
            reason = errno;
        if (reason == 0 && !file->no_flush)
            sync_folder(file->target);
    }
    if (reason != 0) {
        selkie_code code = sk_atomic_fail(file, reason, error);
        sk_atomic_abandon(pointer);
        return code;
    }
    release(file);
    *pointer = NULL;
    return SELKIE_OK;
}

selkie_code sk_atomic_finish(sk_atomic_file **file, selkie_code so_far, selkie_error *error)
{
    if (so_far == SELKIE_OK)
        return sk_atomic_commit(file, error);
    sk_atomic_abandon(file);
    return so_far;
}

/* --- Whole files --- */

selkie_code sk_file_write(const char *path, const void *data, size_t bytes, selkie_error *error)
{
    sk_atomic_file *file;
    SK_TRY(sk_atomic_open(path, bytes, &file, error));
    return sk_atomic_finish(&file, sk_atomic_write(file, data, bytes, error), error);
}

static selkie_code fail_read(const char *path, int reason, selkie_error *error)
{
    char buffer[128];
    return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot read: %s", path,
                   sk_file_reason(reason, buffer, sizeof buffer));
}

static selkie_code read_open(const char *path, int descriptor, char **data, size_t *bytes, selkie_error *error)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return fail_read(path, errno, error);
    if (!S_ISREG(status.st_mode))
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot read: it is not a plain file", path);

    /* Room for the whole file and a closing zero. */
    size_t size = (size_t)status.st_size;
    char *buffer = sk_allocate(NULL, size + 1);
    if (!buffer)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory to read it (%.1f MiB)", path,
                       (double)size / 1048576.0);

    /* One read may return less than it was asked for. */
    size_t got = 0;
    while (got < size) {
        size_t piece = size - got < (size_t)largest_write ? size - got : (size_t)largest_write;
        ssize_t chunk = read(descriptor, buffer + got, piece);
        if (chunk < 0 && errno == EINTR)
            continue;
        if (chunk < 0) {
            int reason = errno;
            sk_release(NULL, buffer);
            return fail_read(path, reason, error);
        }
        if (chunk == 0)
            break; /* the file was truncated meanwhile */
        got += (size_t)chunk;
    }

    buffer[got] = '\0';
    *data = buffer;
    *bytes = got;
    return SELKIE_OK;
}

selkie_code sk_file_read(const char *path, char **data, size_t *bytes, selkie_error *error)
{
    *data = NULL;
    *bytes = 0;
    /* O_NONBLOCK: open must not block on a pipe without a writer, which is refused below. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return fail_read(path, errno, error);
    selkie_code code = read_open(path, descriptor, data, bytes, error);
    close(descriptor);
    return code;
}
