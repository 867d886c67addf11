/* Messages of a page to the studio: JSON objects with a fixed set of verbs (docs/manual/studio.md). */
#ifndef SELKIE_TOOL_STUDIO_MESSAGE_H
#define SELKIE_TOOL_STUDIO_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum {
    STUDIO_MAX_MESSAGE = 1 << 20, /* bytes of a message */
    STUDIO_MAX_NAME = 200,        /* bytes of a scene's name */
    STUDIO_MAX_CHANGE = 16 << 10  /* bytes of a change */
};

typedef enum studio_verb {
    STUDIO_OPEN,     /* scene: name of a scene of the list */
    STUDIO_OPEN_RUN, /* run: name of a run of the list */
    STUDIO_SEEK,     /* frame: of that run, from 0 */
    STUDIO_LOAD,     /* text: a scene file, in place of the one that is open */
    STUDIO_CHECK,    /* text: the same, checked only */
    STUDIO_RUN,      /* until pause */
    STUDIO_PAUSE,    /* */
    STUDIO_STEP,     /* one step */
    STUDIO_RESET,    /* back to the start */
    STUDIO_SPEED,    /* value: simulated seconds a second; 0 = as fast as it goes */
    STUDIO_CHANGE,   /* change: an element of a scene's `changes` */
    STUDIO_RECORD,   /* asks for the scene with all changes so far */
    STUDIO_DRAW,     /* drawn: an element of reduced.drawn; asks for its flow */
    STUDIO_FLOW,     /* asks for the velocity of the flow */
    STUDIO_SKETCH,   /* scene: name of a scene of the list; asks for its picture */
    STUDIO_SEEN,     /* frame: number of a frame that was drawn */
    STUDIO_CONTROL,  /* the sender becomes the controller */
    STUDIO_VERB_COUNT
} studio_verb;

typedef struct studio_message {
    studio_verb verb;
    char *text; /* [length] name, text or change (as JSON) of the verb, with a '\0' behind it; else NULL */
    size_t length;
    double value;  /* speed */
    int64_t frame; /* seen */
} studio_message;

/* Reads a message; `text` must have a '\0' at text[length]. Returns 0, or -1 with one line in `problem`. */
int studio_message_parse(const char *text, size_t length, studio_message *message, char *problem, size_t problem_size);
void studio_message_free(studio_message *message);

const char *studio_verb_name(studio_verb verb);
/* Watchers may send it too. */
int studio_verb_is_free(studio_verb verb);

/* Whether each file that a JSON text names is one of `allowed`: values of keys that hold file names ("file",
 * "motion_file"). Returns 0, or -1 with one line in `problem`. A text that is no JSON passes: the reader refuses it. */
int studio_check_files(const char *text, size_t length, const char *const *allowed, int allowed_count, char *problem,
                       size_t problem_size);
/* Adds the files that a text names to a list of strdup()ed names; returns their number. */
int studio_collect_files(const char *text, size_t length, char ***files);

#endif
