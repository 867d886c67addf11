/* Films through the program ffmpeg.
 *
 * The program is started without a shell, with a socket as its standard input. A library must not raise SIGPIPE in its
 * caller; a write to a closed socket can suppress it, a write to a pipe cannot. Paths are passed as "file:PATH", so
 * that no name is taken for an option or a protocol. ffmpeg's messages go to an unnamed file and are quoted if it
 * fails.
 *
 * Frames are PNG (the bytes of a file) or binary PPM (an image in memory), one kind a film.
 */
#define _GNU_SOURCE
#include "render/film.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/atomic_file.h"

extern char **environ;

typedef enum frame_kind { FRAMES_UNKNOWN, FRAMES_PNG, FRAMES_PPM } frame_kind;

struct sk_film {
    char *path, *part; /* the film, and its name until it is complete */
    double fps;
    int threads;
    frame_kind kind;
    int width, height; /* of the first frame; 0 = none yet */
    pid_t child;       /* 0 = not started */
    int input;         /* write end of its standard input, -1 = none */
    int log;           /* its standard error, -1 = none */
};

static const char how_to_get[] = "install ffmpeg (Debian: apt-get install ffmpeg)";

int sk_film_possible(void)
{
    const char *path = getenv("PATH");
    char file[4096];
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        size_t length = strcspn(at, ":");
        if (length && snprintf(file, sizeof file, "%.*s/ffmpeg", (int)length, at) < (int)sizeof file &&
            access(file, X_OK) == 0)
            return 1;
        at += length + (at[length] == ':');
    }
    return 0;
}

static char *join(const char *prefix, const char *path, const char *suffix)
{
    size_t bytes = strlen(prefix) + strlen(path) + strlen(suffix) + 1;
    char *text = malloc(bytes);
    if (text)
        snprintf(text, bytes, "%s%s%s", prefix, path, suffix);
    return text;
}

selkie_code sk_film_begin(const char *path, double frames_per_second, int threads, sk_film **result,
                          selkie_error *error)
{
    *result = NULL;
    if (!(frames_per_second > 0 && frames_per_second <= 1000))
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: %g frames per second cannot be filmed, must be above 0, at most 1000", path,
                       frames_per_second);
    if (!sk_film_possible())
        return sk_fail(error, SELKIE_ERROR_UNSUPPORTED, "%s: the program ffmpeg is not installed; %s", path,
                       how_to_get);
    sk_film *film = calloc(1, sizeof *film);
    if (film) {
        film->path = join("", path, "");
        film->part = join("", path, ".part");
        film->input = film->log = -1;
        film->fps = frames_per_second;
        film->threads = threads;
    }
    if (!film || !film->path || !film->part) {
        sk_film_abandon(film);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: not enough memory for a film", path);
    }
    *result = film;
    return SELKIE_OK;
}

/* --- The program --- */

static selkie_code spawn(sk_film *film, int input, selkie_error *error)
{
    char fps[32], threads[16], *output = join("file:", film->part, "");
    snprintf(fps, sizeof fps, "%.6g", film->fps);
    snprintf(threads, sizeof threads, "%d", film->threads > 0 ? film->threads : 0);
    const char *const arguments[] = {"ffmpeg",
                                     "-hide_banner",
                                     "-nostdin",
                                     "-loglevel",
                                     "error",
                                     "-y",
                                     "-f",
                                     "image2pipe",
                                     "-framerate",
                                     fps,
                                     "-c:v",
                                     film->kind == FRAMES_PNG ? "png" : "ppm",
                                     "-i",
                                     "pipe:0",
                                     "-vf",
                                     "pad=ceil(iw/2)*2:ceil(ih/2)*2,scale=out_color_matrix=bt709:out_range=tv",
                                     "-c:v",
                                     "libx264",
                                     "-preset",
                                     "medium",
                                     "-crf",
                                     "17",
                                     "-pix_fmt",
                                     "yuv420p",
                                     "-colorspace",
                                     "bt709",
                                     "-color_primaries",
                                     "bt709",
                                     "-color_trc",
                                     "bt709",
                                     "-threads",
                                     threads,
                                     "-movflags",
                                     "+faststart",
                                     "-f",
                                     "mp4",
                                     output,
                                     NULL};

    /* Files and process group of the child, then its start. */
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int reason = output ? posix_spawn_file_actions_init(&actions) : ENOMEM;
    if (!reason) {
        posix_spawnattr_init(&attributes);
        /* Ctrl-C would reach the whole process group; the caller decides whether the film is finished or abandoned. */
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawn_file_actions_adddup2(&actions, input, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, film->log, 2);
        reason = posix_spawnp(&film->child, "ffmpeg", &actions, &attributes, (char *const *)arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }

    free(output);
    if (reason) {
        film->child = 0;
        return sk_fail(error, SELKIE_ERROR_UNSUPPORTED, "%s: the program ffmpeg cannot be started (%s); %s", film->path,
                       strerror(reason), how_to_get);
    }
    return SELKIE_OK;
}

static selkie_code start(sk_film *film, frame_kind kind, selkie_error *error)
{
    if (film->kind == kind)
        return SELKIE_OK;
    if (film->kind != FRAMES_UNKNOWN)
        return sk_fail(error, SELKIE_ERROR_INTERNAL, "%s: a film is made of PNG files or of images, not of both",
                       film->path);
    film->kind = kind;
    int ends[2];
    film->log = memfd_create("ffmpeg", MFD_CLOEXEC);
    if (film->log < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: no connection to ffmpeg can be made: %s", film->path,
                       strerror(errno));
    film->input = ends[0];
    shutdown(ends[0], SHUT_RD);
    selkie_code code = spawn(film, ends[1], error);
    close(ends[1]);
    return code;
}

/* The last line that ffmpeg wrote. */
static void last_words(const sk_film *film, char *text, size_t size)
{
    char tail[1024];
    off_t bytes = lseek(film->log, 0, SEEK_END);
    off_t from = bytes > (off_t)sizeof tail - 1 ? bytes - (off_t)sizeof tail + 1 : 0;
    ssize_t count = bytes > 0 ? pread(film->log, tail, sizeof tail - 1, from) : 0;
    tail[count > 0 ? count : 0] = '\0';
    while (count > 0 && (tail[count - 1] == '\n' || tail[count - 1] == ' '))
        tail[--count] = '\0';
    const char *line = strrchr(tail, '\n');
    line = line ? line + 1 : tail;
    snprintf(text, size, "%.*s", (int)size - 1, *line ? line : "no message");
}

/* Closes its input, waits for its end and returns its status. */
static selkie_code wait_for(sk_film *film, selkie_error *error)
{
    int status = 0;
    pid_t ended;
    if (film->input >= 0)
        close(film->input);
    film->input = -1;
    do
        ended = waitpid(film->child, &status, 0);
    while (ended < 0 && errno == EINTR);
    film->child = 0;
    /* If the caller ignores SIGCHLD there is no exit status; the file then decides. */
    if (ended < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return SELKIE_OK;
    char words[400];
    last_words(film, words, sizeof words);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return sk_fail(error, SELKIE_ERROR_UNSUPPORTED, "%s: the program ffmpeg cannot be run; %s", film->path,
                       how_to_get);
    return sk_fail(error, SELKIE_ERROR_FILE, "%s: ffmpeg failed: %s", film->path, words);
}

/* --- Frames --- */

static selkie_code send_all(sk_film *film, const void *data, size_t bytes, selkie_error *error)
{
    const char *from = data;
    while (bytes) {
        ssize_t sent = send(film->input, from, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            int reason = errno;
            /* ffmpeg has ended: its own message is the better one. */
            SK_TRY(wait_for(film, error));
            return sk_fail(error, SELKIE_ERROR_FILE, "%s: ffmpeg stopped reading: %s", film->path, strerror(reason));
        }
        from += sent;
        bytes -= (size_t)sent;
    }
    return SELKIE_OK;
}

static selkie_code same_size(sk_film *film, const char *name, int width, int height, selkie_error *error)
{
    if (film->width && (film->width != width || film->height != height))
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: has %d x %d pixels, the film's other frames %d x %d", name,
                       width, height, film->width, film->height);
    film->width = width;
    film->height = height;
    return SELKIE_OK;
}

selkie_code sk_film_add_png(sk_film *film, const char *path, selkie_error *error)
{
    int width, height;
    SK_TRY(sk_image_png_size(path, &width, &height, error));
    SK_TRY(same_size(film, path, width, height, error));
    SK_TRY(start(film, FRAMES_PNG, error));
    char *data;
    size_t bytes;
    SK_TRY(sk_file_read(path, &data, &bytes, error));
    selkie_code code = send_all(film, data, bytes, error);
    sk_release(NULL, data);
    return code;
}

selkie_code sk_film_add_image(sk_film *film, const sk_image *image, selkie_error *error)
{
    char header[64];
    SK_TRY(same_size(film, film->path, image->width, image->height, error));
    SK_TRY(start(film, FRAMES_PPM, error));
    int bytes = snprintf(header, sizeof header, "P6\n%d %d\n255\n", image->width, image->height);
    SK_TRY(send_all(film, header, (size_t)bytes, error));
    return send_all(film, image->pixels, (size_t)image->width * (size_t)image->height * 3, error);
}

/* --- The end --- */

void sk_film_abandon(sk_film *film)
{
    if (!film)
        return;
    if (film->child > 0) {
        kill(film->child, SIGKILL);
        wait_for(film, NULL);
    }
    if (film->input >= 0)
        close(film->input);
    if (film->log >= 0)
        close(film->log);
    if (film->part && film->kind != FRAMES_UNKNOWN)
        unlink(film->part);
    free(film->path);
    free(film->part);
    free(film);
}

selkie_code sk_film_finish(sk_film *film, selkie_error *error)
{
    selkie_code code = SELKIE_OK;
    if (!film->width)
        code = sk_fail(error, SELKIE_ERROR_INPUT, "%s: a film needs at least one frame", film->path);
    else if (film->child > 0)
        code = wait_for(film, error);
    if (!code && rename(film->part, film->path) != 0)
        code = sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be put in place: %s", film->path, strerror(errno));
    /* After the rename there is no .part, and unlink does nothing. */
    sk_film_abandon(film);
    return code;
}
