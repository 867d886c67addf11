/* A folder of a test's own: made before the group, removed after it. */
#ifndef SELKIE_TESTS_SCRATCH_FOLDER_H
#define SELKIE_TESTS_SCRATCH_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[64];

static inline const char *in_root(const char *name)
{
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static inline int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/selkie_test_XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static inline int remove_root(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

#endif
