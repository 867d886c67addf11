/* Shared libraries that are loaded when they are first used.
 *
 * A program that is linked with a library loads it at each start, with all that it needs in turn: the libraries for
 * meshes, pictures, bodies and sockets take as much memory as 40,000 particles and a share of the start. Their
 * functions are called through a table that is filled at the first use instead. A list names the functions:
 *
 *     #define SK_EMBREE(F) F(rtcNewDevice) F(rtcNewScene)
 *     SK_LIBRARY_TABLE(sk_embree, SK_EMBREE);
 *
 * Builds that do not know a library by the name of its file (cmake/late.cmake) link it and fill the table with its
 * addresses.
 */
#ifndef SK_BASE_LIBRARY_H
#define SK_BASE_LIBRARY_H

#include <stddef.h>
#include "base/status.h"

#define SK_LIBRARY_MEMBER(function) __typeof__(function) *function;
#define SK_LIBRARY_NAME(function) #function,
#define SK_LIBRARY_ADDRESS(function) .function = function,

/* A struct with a pointer for each function of the list, of its type and name. */
#define SK_LIBRARY_TABLE(type, list)                                                                                   \
    typedef struct type {                                                                                              \
        list(SK_LIBRARY_MEMBER)                                                                                        \
    } type

/* Fills a table by the names of its functions. `file` is the library's name for the loader, as in "libode.so.8";
 * `folder` is where the build found it, for a loader that does not look there. A library stays loaded until the program
 * ends: threads of its own may still run. `what` is for the message. */
selkie_code sk_library_load(const char *file, const char *folder, const char *const names[], size_t table_bytes,
                            void *table, const char *what, selkie_error *error);
/* Whether it can be loaded; it is afterwards. */
int sk_library_is_there(const char *file, const char *folder);

#endif
