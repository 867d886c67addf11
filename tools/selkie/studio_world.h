/* The world of the studio with what belongs to it: the scene's text, its files, its solids; and its messages. */
#ifndef SELKIE_TOOL_STUDIO_WORLD_H
#define SELKIE_TOOL_STUDIO_WORLD_H

#include <selkie/selkie.h>
#include "studio_frame.h"

enum { STUDIO_MAX_CHANGES = 50000 }; /* a record takes about 2.5 kB of memory for each */

typedef struct studio_world {
    selkie_world *world; /* NULL: nothing is open */
    char *name;          /* of the list */
    char *text;          /* as it was read, or as a page changed it */
    size_t text_length;
    char *folder;   /* that relative file names start at */
    char **files;   /* that the file on disk names: no others can be used */
    int file_count; /* */
    double end;     /* s  of the scene; the world goes on beyond it */
    char *head;     /* the scene of now without changes: each change is read with it */
    size_t head_length;
    int threads;         /* 0 = all cores */
    int changes_applied; /* of the world, those of pages among them */
    studio_solids solids;
    studio_frame_numbers numbers;
} studio_world;

/* Opens a scene file, or replaces the text of the open one. On failure what was open stays. */
selkie_code studio_world_open(studio_world *studio, const char *name, const char *path, selkie_error *error);
selkie_code studio_world_replace(studio_world *studio, const char *text, size_t length, selkie_error *error);
selkie_code studio_world_check(const studio_world *studio, const char *text, size_t length, selkie_error *error);
void studio_world_close(studio_world *studio);

/* Makes a change that a page sent. *solid is set where solids changed. */
selkie_code studio_world_change(studio_world *studio, const char *json, size_t length, int *solid,
                                selkie_change_report *report, selkie_error *error);
/* After a step: whether the scene's own changes, made before it, brought other solids. */
int studio_world_took_changes(studio_world *studio);
/* A scene file that replays everything so far; release it with sk_release(NULL, text). */
selkie_code studio_world_record(const studio_world *studio, char **text, size_t *length, selkie_error *error);

studio_blob *studio_scene_blob(const studio_world *studio);
studio_blob *studio_record_blob(const studio_world *studio);
/* The answer to `check`: good, or line, column and message of an error. */
studio_blob *studio_check_blob(const selkie_error *error);

/* How the simulation goes. */
typedef struct studio_state {
    int is_running, is_finished, is_behind;
    double speed; /* simulated seconds a second that are wished for; 0 = all it can */
    double rate;  /* and that are reached */
    const char *message;
    int64_t run_frames, run_frame; /* of a run that was made before; 0 frames: none is shown */
    double run_time;               /* s  of that frame */
} studio_state;
studio_blob *studio_state_blob(const studio_world *studio, const studio_state *state, uint32_t number);

#endif
