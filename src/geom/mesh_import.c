/* Mesh import: checks before and after, and the child process that reads the file.
 *
 * The importer runs in a child process. Debian's build of assimp has assertions that end the program, and a damaged
 * file triggers them (a misspelt property in a PLY header does). A library must not end its caller. The child reads the
 * file and writes the triangles, or a message, into a pipe. An abort, a crash, exhausted memory or a timeout becomes a
 * message here. The parent checks sizes, indices and coordinates from the pipe.
 *
 * The child is a plain fork: it needs no program beside the library. It calls only the loader, takes no lock that
 * another thread of the parent may hold (glibc resets its allocator after a fork), and ends by _exit().
 */
#define _GNU_SOURCE
#include "geom/mesh_import.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "base/timer.h"
#include "geom/mesh_assimp.h"
#include "geom/mesh_clean.h"
#include "geom/shape.h"
#include "selkie_config.h"

enum {
    file_bytes_limit = 1 << 30,
    seconds_least = 4,      /* of processor time that reading may take, */
    seconds_a_mebibyte = 1, /* and more for a large file */
    waiting_factor = 10,    /* wall time over processor time on a busy machine */
    head_bytes = 1 << 16,   /* looked at before the importer */
    piece_bytes = 1 << 20,  /* read from the pipe at once */
};

selkie_code sk_mesh_file_size(const char *path, const char *name, size_t *size, selkie_error *error)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be opened: %s", name, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: is no regular file", name);
    if (status.st_size > file_bytes_limit)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: is %.1f MiB large, more than the limit of %d MiB for a mesh",
                       name, (double)status.st_size / 1048576.0, file_bytes_limit >> 20);
    *size = (size_t)status.st_size;
    return SELKIE_OK;
}

#if SELKIE_HAVE_ASSIMP

static const uint64_t reply_mark = 0x73656c6b69654d31ULL;

/* The first record in the pipe; then the message, or vertices and triangles. */
typedef struct reply_head {
    uint64_t mark;
    uint64_t code;
    uint64_t message_bytes;
    uint64_t vertex_count, triangle_count;
} reply_head;

/* --- The child --- */

static void write_all(int pipe_end, const void *bytes, size_t count)
{
    const char *at = bytes;
    while (count > 0) {
        ssize_t written = write(pipe_end, at, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            _exit(1);
        at += written;
        count -= (size_t)written;
    }
}

static int seconds_allowed(size_t file_bytes)
{
    return seconds_least + seconds_a_mebibyte * (int)(file_bytes >> 20);
}

/* Default signal handlers, no output, and limits against hostile files: processor time, and memory beyond that of the
 * process at the fork. */
static void become_harmless(size_t file_bytes)
{
    static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGINT, SIGPIPE, SIGALRM, SIGXCPU};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
    int nowhere = open("/dev/null", O_RDWR);
    for (int stream = 0; stream <= 2 && nowhere >= 0; stream++)
        dup2(nowhere, stream);
    struct rlimit limit = {0, 0};
    setrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = (rlim_t)seconds_allowed(file_bytes);
    limit.rlim_max = limit.rlim_cur + 1;
    setrlimit(RLIMIT_CPU, &limit);
#if !defined(__SANITIZE_ADDRESS__) /* whose shadow is larger than any limit */
    unsigned long pages[6] = {0};
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm && fscanf(statm, "%lu %lu %lu %lu %lu %lu", &pages[0], &pages[1], &pages[2], &pages[3], &pages[4],
                        &pages[5]) == 6) {
        limit.rlim_cur = limit.rlim_max =
            (rlim_t)pages[5] * (rlim_t)sysconf(_SC_PAGESIZE) + 64 * (rlim_t)file_bytes + ((rlim_t)512 << 20);
        setrlimit(RLIMIT_DATA, &limit);
    }
    if (statm)
        fclose(statm);
#else
    (void)file_bytes;
#endif
}

static void __attribute__((noreturn)) child(int pipe_end, const sk_assimp *assimp, const char *path, size_t file_bytes,
                                            const double placement[12], const char *name)
{
    become_harmless(file_bytes);
    sk_solid_mesh mesh;
    selkie_error error = {0};
    selkie_code code = sk_assimp_load(assimp, path, placement, name, &mesh, &error);
    reply_head head = {reply_mark, (uint64_t)code, 0, 0, 0};
    if (code != SELKIE_OK) {
        head.message_bytes = strlen(error.message);
        write_all(pipe_end, &head, sizeof head);
        write_all(pipe_end, error.message, head.message_bytes);
    } else {
        head.vertex_count = mesh.vertex_count;
        head.triangle_count = mesh.triangle_count;
        write_all(pipe_end, &head, sizeof head);
        write_all(pipe_end, mesh.vertices, mesh.vertex_count * sizeof *mesh.vertices);
        write_all(pipe_end, mesh.triangles, mesh.triangle_count * sizeof *mesh.triangles);
    }
    _exit(0);
}

/* --- The parent --- */

typedef struct reader {
    int pipe_end;
    double deadline_ms;
    int late;
} reader;

/* Whether all of it came. */
static int read_all(reader *from, void *bytes, size_t count)
{
    char *at = bytes;
    while (count > 0) {
        double left_ms = from->deadline_ms - sk_wall_ms();
        struct pollfd waiting = {from->pipe_end, POLLIN, 0};
        int ready = left_ms > 0.0 ? poll(&waiting, 1, (int)fmin(left_ms + 1.0, 1e6)) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0) {
            from->late = ready == 0;
            return 0;
        }
        ssize_t got = read(from->pipe_end, at, count < piece_bytes ? count : piece_bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        at += got;
        count -= (size_t)got;
    }
    return 1;
}

static selkie_code take_mesh(reader *from, const reply_head *head, const char *name, sk_solid_mesh *mesh, int *whole,
                             selkie_error *error)
{
    if (head->triangle_count == 0)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: holds no triangles: a mesh needs faces", name);
    mesh->vertices = sk_allocate(mesh->memory, head->vertex_count * sizeof *mesh->vertices);
    mesh->triangles = sk_allocate(mesh->memory, head->triangle_count * sizeof *mesh->triangles);
    if (!mesh->vertices || !mesh->triangles)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu triangles (%.1f MiB needed)", name,
                       (size_t)head->triangle_count,
                       ((double)head->vertex_count * 24.0 + (double)head->triangle_count * 12.0) / 1048576.0);
    mesh->vertex_count = head->vertex_count;
    mesh->triangle_count = head->triangle_count;
    *whole = read_all(from, mesh->vertices, mesh->vertex_count * sizeof *mesh->vertices) &&
             read_all(from, mesh->triangles, mesh->triangle_count * sizeof *mesh->triangles);
    return SELKIE_OK;
}

/* Reads the child's reply. `whole`: it is complete. */
static selkie_code take_reply(reader *from, const char *name, sk_solid_mesh *mesh, int *whole, selkie_error *error)
{
    reply_head head;
    *whole = 0;
    if (!read_all(from, &head, sizeof head) || head.mark != reply_mark)
        return SELKIE_OK;
    if (head.code == SELKIE_OK) {
        if (head.triangle_count > sk_mesh_triangle_limit || head.vertex_count > 3 * (uint64_t)sk_mesh_triangle_limit)
            return SELKIE_OK;
        *whole = 1;
        return take_mesh(from, &head, name, mesh, whole, error);
    }
    char message[sizeof error->message] = {0};
    if (head.code > SELKIE_ERROR_INTERNAL || head.message_bytes >= sizeof message ||
        !read_all(from, message, head.message_bytes))
        return SELKIE_OK;
    *whole = 1;
    return sk_fail(error, (selkie_code)head.code, "%s", message);
}

static selkie_code explain_end(int status, int late, int seconds, const char *name, selkie_error *error)
{
    if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "%s: cannot be read as a mesh: the importer came to no end within %d s", name, seconds);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: the importer was killed, probably for lack of memory", name);
    if (WIFSIGNALED(status))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: cannot be read as a mesh: the importer broke down on it (%s)",
                       name, strsignal(WTERMSIG(status)));
    return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: cannot be read as a mesh: the importer gave up", name);
}

/* One child at a time: a second one would inherit this one's pipe and keep it open. */
static pthread_mutex_t import_turn = PTHREAD_MUTEX_INITIALIZER;

static selkie_code import_apart(const char *path, size_t file_bytes, const double placement[12], const char *name,
                                sk_solid_mesh *mesh, selkie_error *error)
{
    int ends[2];
    sk_assimp assimp;
    SK_TRY(sk_assimp_open(&assimp, name, error));
    if (pipe2(ends, O_CLOEXEC) != 0)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be read: no pipe: %s", name, strerror(errno));
    pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        child(ends[1], &assimp, path, file_bytes, placement, name);
    }
    int reason = errno;
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: cannot be read: no process for the importer: %s", name,
                       strerror(reason));
    }
    int seconds = seconds_allowed(file_bytes);
    reader from = {ends[0], sk_wall_ms() + 1e3 * waiting_factor * seconds, 0};
    int whole, status = 0;
    selkie_code code = take_reply(&from, name, mesh, &whole, error);
    close(ends[0]);
    if (from.late)
        kill(process, SIGKILL);
    while (waitpid(process, &status, 0) < 0 && errno == EINTR)
        continue;
    return code == SELKIE_OK && !whole ? explain_end(status, from.late, seconds, name, error) : code;
}

#endif

/* Welds and cleans what the child sent, after checking it. */
static selkie_code finish(sk_solid_mesh *mesh, const char *name, selkie_error *error)
{
    uint32_t *corners = &mesh->triangles[0][0];
    for (size_t i = 0; i < 3 * mesh->triangle_count; i++)
        if (corners[i] >= mesh->vertex_count)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: triangle %zu uses vertex %u of %zu", name, i / 3,
                           corners[i], mesh->vertex_count);
    for (size_t i = 0; i < mesh->vertex_count; i++)
        SK_TRY(sk_clean_check_point(mesh->vertices[i], i, name, error));
    uint32_t *moved_to = sk_allocate(mesh->memory, mesh->vertex_count * sizeof *moved_to);
    if (!moved_to)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu vertices", name, mesh->vertex_count);
    selkie_code code =
        sk_clean_weld(mesh->vertex_count, mesh->vertices, moved_to, &mesh->vertex_count, name, mesh->memory, error);
    for (size_t i = 0; i < 3 * mesh->triangle_count && code == SELKIE_OK; i++)
        corners[i] = moved_to[corners[i]];
    sk_release(mesh->memory, moved_to);
    return code == SELKIE_OK ? sk_clean_mesh(mesh, name, error) : code;
}

/* --- The import --- */

static const char *const endings[] = {".obj", ".stl", ".ply", ".gltf", ".glb"};

static int known_ending(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return 1;
    return 0;
}

static void place(const sk_mesh_placement *placement, double matrix[12])
{
    double rotation[9];
    sk_rotation_from_degrees(placement->rotate, rotation);
    for (int row = 0; row < 3; row++) {
        for (int i = 0; i < 3; i++)
            matrix[4 * row + i] = rotation[3 * row + i] * placement->scale[i];
        matrix[4 * row + 3] = placement->translate[row];
    }
}

static const void *find_text(const char *head, size_t count, const char *text)
{
    return memmem(head, count, text, strlen(text));
}

/* Finds truncated files and other formats early, with a better message than the importer's. The importer does not
 * return from a PLY whose header does not end. */
static selkie_code check_head(const char *head, size_t count, size_t size, const char *ending, const char *name,
                              selkie_error *error)
{
    if (strcasecmp(ending, ".ply") == 0) {
        if (count < 4 || memcmp(head, "ply", 3) != 0)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: is no PLY file: does not start with \"ply\"", name);
        if (!find_text(head, count, "\nend_header\n") && !find_text(head, count, "\nend_header\r\n"))
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: is no whole PLY file: no end_header in its first %zu bytes",
                           name, count);
    } else if (strcasecmp(ending, ".stl") == 0) {
        uint32_t triangles = 0;
        if (count >= 84)
            memcpy(&triangles, head + 80, sizeof triangles); /* little-endian, as the machines Selkie runs on */
        int binary = count >= 84 && size == 84 + 50 * (size_t)triangles;
        int text = find_text(head, count < 1024 ? count : 1024, "solid") && find_text(head, count, "facet");
        if (!binary && !text)
            return sk_fail(
                error, SELKIE_ERROR_FORMAT,
                "%s: is no whole STL file: neither text (\"solid\", \"facet\") nor binary (%zu bytes, where its "
                "%u triangles need %zu)",
                name, size, triangles, 84 + 50 * (size_t)triangles);
    } else if (strcasecmp(ending, ".glb") == 0) {
        uint32_t length = 0;
        if (count >= 12)
            memcpy(&length, head + 8, sizeof length);
        if (count < 20 || memcmp(head, "glTF", 4) != 0 || length > size)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: is no whole binary glTF file", name);
    } else if (strcasecmp(ending, ".gltf") == 0) {
        size_t first = 0;
        while (first < count && strchr(" \t\r\n\xef\xbb\xbf", head[first]) && head[first])
            first++;
        if (first == count || head[first] != '{')
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: is no glTF file: does not start with {", name);
    }
    return SELKIE_OK;
}

static selkie_code look_then_import(const char *path, const sk_mesh_placement *placement, const char *name,
                                    sk_solid_mesh *mesh, selkie_error *error)
{
    size_t size;
    SK_TRY(sk_mesh_file_size(path, name, &size, error));
    if (size == 0)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: is empty", name);
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be opened: %s", name, strerror(errno));
    char *head = malloc(head_bytes);
    size_t count = head ? fread(head, 1, head_bytes, stream) : 0;
    int failed = ferror(stream), reason = errno;
    fclose(stream);
    selkie_code code;
    if (!head)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory to look at it", name);
    else if (failed)
        code = sk_fail(error, SELKIE_ERROR_FILE, "%s: cannot be read: %s", name, strerror(reason));
    else
        code = check_head(head, count, size, strrchr(path, '.'), name, error);
    free(head);
    SK_TRY(code);

    double matrix[12];
    place(placement, matrix);
#if SELKIE_HAVE_ASSIMP
    pthread_mutex_lock(&import_turn);
    code = import_apart(path, size, matrix, name, mesh, error);
    pthread_mutex_unlock(&import_turn);
#else
    code = sk_assimp_load(NULL, path, matrix, name, mesh, error);
#endif
    return code == SELKIE_OK ? finish(mesh, name, error) : code;
}

selkie_code sk_solid_mesh_import(const char *path, const sk_mesh_placement *placement, const char *what,
                                 sk_memory *memory, sk_solid_mesh *mesh, selkie_error *error)
{
    memset(mesh, 0, sizeof *mesh);
    mesh->memory = memory;
    char name[600];
    snprintf(name, sizeof name, "%.200s%s%.380s", what, *what ? ".file: " : "", path);
    for (int i = 0; i < 3; i++) {
        if (!isfinite(placement->scale[i]) || placement->scale[i] == 0.0)
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s.scale: %g along %c must be a finite number other than 0",
                           what, placement->scale[i], "xyz"[i]);
        if (!isfinite(placement->rotate[i]) || !isfinite(placement->translate[i]))
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s.%s: must be finite numbers", what,
                           isfinite(placement->rotate[i]) ? "translate" : "rotate");
    }
    if (!known_ending(path))
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: its ending names no mesh format that is read: .obj, .stl, .ply, .gltf or .glb", name);
    selkie_code code = look_then_import(path, placement, name, mesh, error);
    if (code != SELKIE_OK)
        sk_solid_mesh_release(mesh);
    return code;
}
