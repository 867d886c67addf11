/* Shared by the commands: exit codes, messages, and finding scenes. */
#ifndef SELKIE_TOOL_TOOL_H
#define SELKIE_TOOL_TOOL_H

#include <stddef.h>
#include <stdint.h>
#include <selkie/selkie.h>

#include "options.h"

/* Documented in docs/manual/command.md and selkie.1. */
enum exit_code {
    EXIT_GOOD = 0,
    EXIT_INTERNAL = 1,     /* an error of the program */
    EXIT_BAD_INPUT = 2,    /* usage, scene, file, memory, a missing library: the user can fix it */
    EXIT_DIVERGED = 3,     /* a NaN, a blow-up, a solve that did not converge */
    EXIT_INTERRUPTED = 130 /* stopped by SIGINT, SIGTERM or SIGHUP, state saved */
};

extern const tool_command run_command, check_command, render_command, plot_command, info_command, list_command,
    convert_command, mesh_command, whitewater_command, reproduce_command, sweep_command, doctor_command, schema_command,
    completion_command, splash_command, studio_command, basis_command;

/* All commands, in the order of the help; ends with NULL. */
extern const tool_command *const commands[];

/* `selkie run SCENE --resume --out OUT --set ...`: starts a run, or resumes an interrupted one. */
int simulate(const char *scene, int set_count, const char *const *sets, const char *out, int threads, int quiet);

/* One line "selkie: ..." on stderr; returns EXIT_BAD_INPUT. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for an error of the library; returns the exit code that belongs to it. */
int complain_error(const selkie_error *error);
/* The scene that later errors are about: a message that begins with a key of scenes gets this file in front. */
void complain_of_scene(const char *path);

int has_ending(const char *text, const char *ending);

/* Human sizes and times. They return `text`. */
char *format_bytes(double bytes, char text[32]);
char *format_duration(double seconds, char text[32]);
char *format_count(int64_t count, char text[32]); /* 1,234,567 */

/* "A:B", "A:", ":B" or "A"; *last -1 = to the end. Prints an error and returns its exit code where it is none. */
int read_frame_range(const char *text, int64_t *first, int64_t *last);

/* Makes the whitewater of a run from its frames, all of it; returns an exit code. */
int make_whitewater(const char *folder, int threads, int force, int quiet);

/* The part of the help of `run` and `check` that names every key of scene files. */
void print_key_help(FILE *out);

/* --- Scenes --- */

/* A scene that comes with the program. */
typedef struct known_scene {
    char *path;
    char *name;             /* folder/file without .json, relative to the scenes' folder */
    const char *short_name; /* within `name`: the file alone */
} known_scene;

typedef struct known_scenes {
    known_scene *items; /* by name; the first place wins where two have the same */
    size_t count;
} known_scenes;

/* Looks into the folders of $SELKIE_SCENES (separated by ':'), the source tree and the installation. */
void find_known_scenes(known_scenes *scenes);
void free_known_scenes(known_scenes *scenes);

/* The path of SCENE, a file or the name of a known scene; free() it. On failure prints the error and returns NULL. */
char *find_scene(const char *scene);
/* "dam" of "scenes/examples/dam.json"; free() it. */
char *scene_name(const char *path);

/* Options that change a scene after it was read. Members may be NULL. */
typedef struct scene_changes {
    const option_value *set, *end, *frames, *backend;
} scene_changes;

/* The values of --backend; the index is a selkie_backend. */
extern const char *const backend_names[];

/* Loads SCENE, applies the changes and checks it. Returns an exit code. */
int load_scene(const char *path, const scene_changes *changes, selkie_scene **scene);

/* Calls `visit` for each mesh of the scene's shapes, with its path ("obstacles[1].shape"), until it returns non-zero;
 * returns that. */
int visit_meshes(const selkie_scene *scene, int (*visit)(const char *what, const selkie_shape *mesh, void *context),
                 void *context);
/* Whether a mesh of the scene can be read and is closed: SELKIE_OK, and *warning "" or a line that says it is not. */
selkie_code inspect_mesh(const selkie_scene *scene, const char *what, const selkie_shape *mesh, char warning[256],
                         selkie_error *error);

/* The plan of a scene; the library refuses one that needs more memory than the machine has. *available: bytes the
 * machine has left, 0 if unknown. Returns an exit code. */
int plan_scene(const selkie_scene *scene, int threads, selkie_plan *plan, size_t *available);

#endif
