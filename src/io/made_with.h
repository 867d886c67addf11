/* Files that depend on options, such as pictures. A line of text beside them holds the options that they were made
 * with. When it changes, older files count as stale: they stay until new ones replace them. */
#ifndef SK_IO_MADE_WITH_H
#define SK_IO_MADE_WITH_H

#include "base/status.h"

typedef struct sk_made_with {
    const char *record;          /* name of the file that holds the line */
    const char *prefix, *ending; /* of the files that depend on it: PREFIX_NUMBER.ENDING */
    const char *line;            /* the options now */
    const char *assumed;         /* those of files without a record; NULL = not known */
} sk_made_with;

/* Marks the files of a folder as stale if they were made with other options, then writes the new line: after an
 * interruption no old file passes for a new one. */
selkie_code sk_made_with_update(const char *folder, const sk_made_with *options, selkie_error *error);
/* Whether a file was made with other options than those of the last update. */
int sk_made_with_stale(const char *path);

#endif
