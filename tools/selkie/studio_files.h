/* The files of web/, embedded by cmake/embed.cmake. */
#ifndef SELKIE_TOOL_STUDIO_FILES_H
#define SELKIE_TOOL_STUDIO_FILES_H

#include <stddef.h>

typedef struct studio_file {
    const char *path; /* "/index.html" */
    const char *type; /* MIME */
    const unsigned char *bytes;
    size_t length;
} studio_file;

extern const studio_file studio_files[];
extern const int studio_file_count;

#endif
