/* The part of mesh import that calls assimp; mesh_import.c runs it in a child process. */
#ifndef SK_GEOM_MESH_ASSIMP_H
#define SK_GEOM_MESH_ASSIMP_H

#include "geom/mesh_import.h"

struct aiFileIO;
struct aiScene;

/* The functions of the library, which is loaded before the child process starts: the loader takes locks. */
typedef struct sk_assimp {
    const struct aiScene *(*aiImportFileEx)(const char *file, unsigned flags, struct aiFileIO *files);
    void (*aiReleaseImport)(const struct aiScene *scene);
    const char *(*aiGetErrorString)(void);
    unsigned (*aiGetVersionMajor)(void);
    unsigned (*aiGetVersionMinor)(void);
    unsigned (*aiGetVersionPatch)(void);
} sk_assimp;

/* `name` is for the message. */
selkie_code sk_assimp_open(sk_assimp *assimp, const char *name, selkie_error *error);

/* All triangles of a file, with the transforms of their nodes and then `placement` (rows of a 3x4 matrix) applied;
 * neither welded nor cleaned. */
selkie_code sk_assimp_load(const sk_assimp *assimp, const char *path, const double placement[12], const char *name,
                           sk_solid_mesh *mesh, selkie_error *error);
/* The size of a regular file within the limit for meshes. */
selkie_code sk_mesh_file_size(const char *path, const char *name, size_t *size, selkie_error *error);

#endif
