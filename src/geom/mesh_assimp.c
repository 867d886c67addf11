/* Mesh files through assimp (https://github.com/assimp/assimp), which reads the formats. Runs in the child process of
 * mesh_import.c, so that a crash becomes a message.
 *
 * assimp gets its files from here, not from the disk: a file is opened only if it is a regular one within the size
 * limit and is the mesh itself or lies beside or below it (the buffers of a glTF). Materials and pictures are not
 * loaded, so a mesh cannot make assimp open any other file.
 */
#include "geom/mesh_assimp.h"
#include "selkie_config.h"

#if SELKIE_HAVE_ASSIMP

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <assimp/cfileio.h>
#include <assimp/cimport.h>
#include <assimp/postprocess.h>
#include <assimp/scene.h>
#include <assimp/version.h>

#include "base/library.h"
#include "base/status.h"
#include "geom/mesh_clean.h"

/* clang-format off */
#define ASSIMP(F) \
    F(aiImportFileEx) F(aiReleaseImport) F(aiGetErrorString) F(aiGetVersionMajor) F(aiGetVersionMinor) \
    F(aiGetVersionPatch)
/* clang-format on */

enum { node_depth_limit = 256 };

/* --- Files for assimp --- */

typedef struct file_source {
    const char *path; /* of the mesh itself */
    size_t folder;    /* bytes of it that name the folder, with the slash */
} file_source;

typedef struct memory_file {
    struct aiFile callbacks;
    size_t size, position;
    char bytes[];
} memory_file;

static size_t file_read(struct aiFile *handle, char *out, size_t size, size_t count)
{
    memory_file *file = (memory_file *)handle->UserData;
    size_t left = file->size - file->position;
    size_t whole = size == 0 ? 0 : left / size;
    if (whole > count)
        whole = count;
    memcpy(out, file->bytes + file->position, whole * size);
    file->position += whole * size;
    return whole;
}

static size_t file_write(struct aiFile *handle, const char *bytes, size_t size, size_t count)
{
    (void)handle, (void)bytes, (void)size, (void)count;
    return 0;
}

static size_t file_tell(struct aiFile *handle)
{
    return ((memory_file *)handle->UserData)->position;
}

static size_t file_size(struct aiFile *handle)
{
    return ((memory_file *)handle->UserData)->size;
}

static aiReturn file_seek(struct aiFile *handle, size_t offset, enum aiOrigin origin)
{
    memory_file *file = (memory_file *)handle->UserData;
    size_t base = origin == aiOrigin_SET ? 0 : origin == aiOrigin_CUR ? file->position : file->size;
    size_t target = base + offset; /* negative offsets arrive wrapped around, and wrap back here */
    if (target > file->size)
        return aiReturn_FAILURE;
    file->position = target;
    return aiReturn_SUCCESS;
}

static void file_flush(struct aiFile *handle)
{
    (void)handle;
}

/* Files that may be opened: the mesh, and names in its folder or below it without "..". */
static int may_open(const file_source *source, const char *path)
{
    if (strcmp(path, source->path) == 0)
        return 1;
    size_t length = strlen(path);
    if (strncmp(path, source->path, source->folder) != 0 || length <= source->folder)
        return 0;
    const char *name = path + source->folder;
    const char *dot = strrchr(name, '.');
    return name[0] != '/' && !strstr(name, "..") && dot && strcasecmp(dot, ".mtl") != 0;
}

static struct aiFile *file_open(struct aiFileIO *io, const char *path, const char *mode)
{
    const file_source *source = (const file_source *)io->UserData;
    size_t size;
    if (mode[0] != 'r' || !may_open(source, path) || sk_mesh_file_size(path, path, &size, NULL) != SELKIE_OK)
        return NULL;
    FILE *stream = fopen(path, "rb");
    memory_file *file = stream ? malloc(sizeof *file + size) : NULL;
    if (file && fread(file->bytes, 1, size, stream) != size) {
        free(file);
        file = NULL;
    }
    if (stream)
        fclose(stream);
    if (!file)
        return NULL;
    file->size = size;
    file->position = 0;
    struct aiFile callbacks = {file_read, file_write, file_tell, file_size, file_seek, file_flush, (char *)file};
    file->callbacks = callbacks;
    return &file->callbacks;
}

static void file_close(struct aiFileIO *io, struct aiFile *handle)
{
    (void)io;
    free((memory_file *)handle->UserData);
}

/* --- From assimp's scene to one mesh --- */

typedef struct collector {
    const struct aiScene *scene;
    sk_solid_mesh *mesh;
    double placement[12]; /* rows of a 3x4 matrix */
    const char *name;
    size_t point_count; /* used vertices, before welding */
    size_t triangle_count;
    uint32_t *moved_to; /* of the vertices of the part at hand; NULL while counting */
} collector;

/* c = a after b, both 3x4. */
static void compose(const double a[12], const double b[12], double c[12])
{
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 4; column++) {
            double sum = column == 3 ? a[4 * row + 3] : 0.0;
            for (int i = 0; i < 3; i++)
                sum += a[4 * row + i] * b[4 * i + column];
            c[4 * row + column] = sum;
        }
}

static int mirrors(const double m[12])
{
    return m[0] * (m[5] * m[10] - m[6] * m[9]) - m[1] * (m[4] * m[10] - m[6] * m[8]) +
               m[2] * (m[4] * m[9] - m[5] * m[8]) <
           0.0;
}

static int is_triangle(const struct aiMesh *part, unsigned int face)
{
    const struct aiFace *f = &part->mFaces[face];
    return f->mNumIndices == 3 && f->mIndices[0] < part->mNumVertices && f->mIndices[1] < part->mNumVertices &&
           f->mIndices[2] < part->mNumVertices;
}

static selkie_code collect_part(collector *to, const struct aiMesh *part, const double transform[12],
                                selkie_error *error)
{
    sk_solid_mesh *mesh = to->mesh;
    if (!to->moved_to) { /* counting */
        to->point_count += part->mNumVertices;
        to->triangle_count += part->mNumFaces;
        if (to->triangle_count > sk_mesh_triangle_limit || to->point_count > 3 * (size_t)sk_mesh_triangle_limit)
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s: has more than the limit of %d million triangles", to->name,
                           sk_mesh_triangle_limit / 1000000);
        return SELKIE_OK;
    }

    int mirrored = mirrors(transform);
    uint32_t first = (uint32_t)to->point_count; /* now: points taken so far */
    for (unsigned int v = 0; v < part->mNumVertices; v++)
        to->moved_to[first + v] = UINT32_MAX;

    /* Takes only vertices that a triangle uses: the others may hold invalid numbers. */
    for (unsigned int f = 0; f < part->mNumFaces; f++) {
        if (!is_triangle(part, f))
            continue;
        uint32_t *out = mesh->triangles[mesh->triangle_count++];
        for (int c = 0; c < 3; c++) {
            unsigned int v = part->mFaces[f].mIndices[mirrored && c > 0 ? 3 - c : c];
            if (to->moved_to[first + v] == UINT32_MAX) {
                const struct aiVector3D *p = &part->mVertices[v];
                double *point = mesh->vertices[mesh->vertex_count];
                for (int i = 0; i < 3; i++)
                    point[i] = transform[4 * i] * (double)p->x + transform[4 * i + 1] * (double)p->y +
                               transform[4 * i + 2] * (double)p->z + transform[4 * i + 3];
                SK_TRY(sk_clean_check_point(point, v, to->name, error));
                to->moved_to[first + v] = (uint32_t)mesh->vertex_count++;
            }
            out[c] = to->moved_to[first + v];
        }
    }

    to->point_count += part->mNumVertices;
    return SELKIE_OK;
}

static selkie_code collect_node(collector *to, const struct aiNode *node, const double above[12], int depth,
                                selkie_error *error)
{
    if (depth > node_depth_limit)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: nodes nested more than %d deep", to->name, node_depth_limit);
    const struct aiMatrix4x4 *m = &node->mTransformation;
    const double own[12] = {(double)m->a1, (double)m->a2, (double)m->a3, (double)m->a4, (double)m->b1, (double)m->b2,
                            (double)m->b3, (double)m->b4, (double)m->c1, (double)m->c2, (double)m->c3, (double)m->c4};
    double transform[12];
    compose(above, own, transform);
    for (unsigned int i = 0; i < node->mNumMeshes; i++)
        if (node->mMeshes[i] < to->scene->mNumMeshes && to->scene->mMeshes[node->mMeshes[i]]->mVertices)
            SK_TRY(collect_part(to, to->scene->mMeshes[node->mMeshes[i]], transform, error));
    for (unsigned int i = 0; i < node->mNumChildren; i++)
        SK_TRY(collect_node(to, node->mChildren[i], transform, depth + 1, error));
    return SELKIE_OK;
}

static selkie_code collect_all(collector *to, sk_memory *memory, selkie_error *error)
{
    sk_solid_mesh *mesh = to->mesh;
    SK_TRY(collect_node(to, to->scene->mRootNode, to->placement, 0, error));
    if (to->triangle_count == 0)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: holds no triangles: a mesh needs faces", to->name);
    size_t point_count = to->point_count;
    mesh->vertices = sk_allocate(memory, point_count * sizeof *mesh->vertices);
    mesh->triangles = sk_allocate(memory, to->triangle_count * sizeof *mesh->triangles);
    to->moved_to = sk_allocate(memory, point_count * sizeof *to->moved_to);
    if (!mesh->vertices || !mesh->triangles || !to->moved_to)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu triangles (%.1f MiB needed)", to->name,
                       to->triangle_count, ((double)point_count * 28 + (double)to->triangle_count * 12) / 1048576.0);
    to->point_count = 0;
    return collect_node(to, to->scene->mRootNode, to->placement, 0, error);
}

/* --- The load --- */

selkie_code sk_assimp_open(sk_assimp *assimp, const char *name, selkie_error *error)
{
#if SELKIE_LATE_ASSIMP
    static const char *const names[] = {ASSIMP(SK_LIBRARY_NAME)};
    return sk_library_load(SELKIE_LATE_ASSIMP_FILE, SELKIE_LATE_ASSIMP_FOLDER, names, sizeof *assimp, assimp, name,
                           error);
#else
    (void)name, (void)error;
    *assimp = (sk_assimp){ASSIMP(SK_LIBRARY_ADDRESS)};
    return SELKIE_OK;
#endif
}

static const struct aiScene *read_scene(const sk_assimp *assimp, const char *path, const char *name,
                                        selkie_error *error)
{
    const char *slash = strrchr(path, '/');
    file_source source = {path, slash ? (size_t)(slash - path) + 1 : 0};
    struct aiFileIO io = {file_open, file_close, (char *)&source};
    const struct aiScene *scene =
        assimp->aiImportFileEx(path, aiProcess_ValidateDataStructure | aiProcess_Triangulate, &io);
    if (!scene) {
        char reason[400];
        snprintf(reason, sizeof reason, "%s", assimp->aiGetErrorString());
        for (char *c = reason; *c; c++) /* it may quote the file */
            if ((unsigned char)*c < 32 || (unsigned char)*c > 126)
                *c = ' ';
        /* The importer makes room for what the header announces before it reads on. */
        int too_large =
            strstr(reason, "bad_alloc") || strstr(reason, "bad_array_new_length") || strstr(reason, "length_error");
        if (too_large)
            snprintf(reason, sizeof reason, "it announces more points or faces than memory can hold, or is damaged");
        sk_fail(error, SELKIE_ERROR_FORMAT, "%s: cannot be read as a mesh: %s", name,
                reason[0] ? reason : "no reason given");
    }
    return scene;
}

selkie_code sk_assimp_load(const sk_assimp *assimp, const char *path, const double placement[12], const char *name,
                           sk_solid_mesh *mesh, selkie_error *error)
{
    memset(mesh, 0, sizeof *mesh);
    const struct aiScene *scene = read_scene(assimp, path, name, error);
    if (!scene)
        return SELKIE_ERROR_FORMAT;
    collector to = {.scene = scene, .mesh = mesh, .name = name};
    memcpy(to.placement, placement, sizeof to.placement);
    selkie_code code = scene->mRootNode ? collect_all(&to, NULL, error)
                                        : sk_fail(error, SELKIE_ERROR_FORMAT, "%s: holds no scene", name);
    sk_release(NULL, to.moved_to);
    assimp->aiReleaseImport(scene);
    return code;
}

#else

#include "base/status.h"

selkie_code sk_assimp_open(sk_assimp *assimp, const char *name, selkie_error *error)
{
    (void)assimp;
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                   "%s: this build reads no meshes: install assimp (Debian: libassimp-dev) and build again", name);
}

selkie_code sk_assimp_load(const sk_assimp *assimp, const char *path, const double placement[12], const char *name,
                           sk_solid_mesh *mesh, selkie_error *error)
{
    (void)path, (void)placement, (void)mesh;
    return sk_assimp_open((sk_assimp *)(void *)(uintptr_t)assimp, name, error);
}

#endif
