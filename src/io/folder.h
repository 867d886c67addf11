/* Folders of results: made, listed, measured. */
#ifndef SK_IO_FOLDER_H
#define SK_IO_FOLDER_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

/* Makes a folder and those above it. An existing one is no error. */
selkie_code sk_folder_make(const char *path, selkie_error *error);

int sk_folder_exists(const char *path);
/* No entries but . and .. (a folder that does not exist is empty too). */
int sk_folder_is_empty(const char *path);
int sk_file_exists(const char *path);

/* The files prefixNNNNsuffix of a folder, sorted by number; others are skipped. A missing folder gives an empty list.
 */
typedef struct sk_numbered_file {
    int64_t number;
    char *path; /* folder/name */
} sk_numbered_file;

typedef struct sk_file_list {
    size_t count;
    sk_numbered_file *files;
} sk_file_list;

selkie_code sk_folder_list(const char *folder, const char *prefix, const char *suffix, sk_file_list *list,
                           selkie_error *error);
/* The particle files of a frames folder that can be read back: .ply, or .skp where there is no .ply. */
selkie_code sk_folder_list_frames(const char *folder, sk_file_list *list, selkie_error *error);
void sk_file_list_free(sk_file_list *list);

/* Waits until all files on the disk of a folder have been written. A system that cannot is no error. */
void sk_folder_flush(const char *folder);

/* "folder/prefix0042suffix": at least four digits. Fails if it does not fit. */
selkie_code sk_numbered_path(char *path, size_t size, const char *folder, const char *prefix, int64_t number,
                             const char *suffix, selkie_error *error);

/* Bytes that an ordinary user may still write on the disk of `path`, which need not exist yet. */
selkie_code sk_folder_free_space(const char *path, uint64_t *bytes, selkie_error *error);

/* --- The folder of a run: see docs/manual/output.md --- */

/* Names of the numbered files of a run. */
#define SK_FRAMES_FOLDER "frames"
#define SK_PARTICLES_PREFIX "particles_"   /* + .ply, .vtp */
#define SK_WHITEWATER_PREFIX "whitewater_" /* + .ply */
#define SK_DROPLETS_PREFIX "splash_"       /* + .ply */
#define SK_DYE_PREFIX "dye_"               /* + .png */
#define SK_SURFACES_FOLDER "surfaces"
#define SK_SURFACE_PREFIX "surface_" /* + .ply, .obj */
#define SK_CHECKPOINTS_FOLDER "checkpoints"
#define SK_CHECKPOINT_PREFIX "checkpoint_"
#define SK_CHECKPOINT_SUFFIX ".selkie"

typedef struct sk_run_state {
    int exists;         /* there is a scene.json: a run was started here */
    int finished;       /* it reached its end (DIR/finished) */
    int64_t last_frame; /* highest number among the frames' files, -1 = none */
    size_t frame_count; /* particle files of different numbers */
    size_t checkpoint_count;
} sk_run_state;

selkie_code sk_run_look(const char *folder, sk_run_state *state, selkie_error *error);
/* DIR/finished, one line: the steps and the time (s) reached, and the most memory (bytes) that the world took. Written
 * last: once it exists, all other files are complete. */
selkie_code sk_run_mark_finished(const char *folder, int64_t steps, double time, size_t memory, selkie_error *error);
/* That memory; 0 if the run is not finished. */
size_t sk_run_memory(const char *folder);
/* Removes the mark, for a run that is resumed. */
selkie_code sk_run_mark_unfinished(const char *folder, selkie_error *error);

#endif
