#include "base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *open_library(const char *file, const char *folder)
{
    /* All at once: a process that forked must not look up functions later, where another thread's lock may be held. */
    char path[1024];
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library && snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library;
}

int sk_library_is_there(const char *file, const char *folder)
{
    return open_library(file, folder) != NULL;
}

selkie_code sk_library_load(const char *file, const char *folder, const char *const names[], size_t table_bytes,
                            void *table, const char *what, selkie_error *error)
{
    void *library = open_library(file, folder);
    if (!library)
        return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                       "%s: %s, with which Selkie was built, cannot be loaded; install it again", what, file);

    /* ISO C has no conversion from the address of an object to that of a function; POSIX gives both the same form. */
    for (size_t n = 0; n < table_bytes / sizeof(void *); n++) {
        void *const address = dlsym(library, names[n]);
        if (!address) {
            memset(table, 0, table_bytes); /* a table is used as soon as its first function is there */
            return sk_fail(error, SELKIE_ERROR_UNSUPPORTED, "%s: %s has no function '%s'; build Selkie again", what,
                           file, names[n]);
        }
        memcpy((char *)table + n * sizeof address, &address, sizeof address);
    }
    return SELKIE_OK;
}
