/* Alembic's layout in an Ogawa file (AbcCoreOgawa of Alembic 1.7): archive -> objects -> compound properties ->
 * properties -> samples. An array's sample is a key of 16 bytes and its values, followed by (empty) dimensions. Headers
 * of the children stand in the last data of their parent.
 */
#include "io/alembic_file.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "io/ogawa.h"

enum { most_properties = 8 };
/* Numbers of Alembic's types. */
enum { pod_bool = 0, pod_int32 = 6, pod_uint64 = 7, pod_float = 10, pod_double = 11 };
enum { kind_scalar = 1, kind_array = 2 };

typedef struct property {
    const char *name, *metadata;
    int kind, pod, extent;
    uint32_t samples;
    sk_ogawa_group group;
} property;

struct sk_alembic {
    sk_atomic_file *file;
    int points;
    int property_count;
    property properties[most_properties];
    int value_count; /* further numbers of the vertices or points */
    property values[SK_MESH_MOST_VALUES];
    char value_names[SK_MESH_MOST_VALUES][32];
    size_t time_count, time_capacity;
    double *times;  /* s */
    float *scratch; /* vectors in the axes of the file */
    size_t scratch_count;
};

/* --- Headers --- */

typedef struct text {
    unsigned char bytes[8192];
    size_t count;
} text;

static void put_bytes(text *t, const void *bytes, size_t count)
{
    if (t->count + count <= sizeof t->bytes) /* headers are short: names of ours */
        memcpy(t->bytes + t->count, bytes, count);
    t->count += count;
}

/* `size` bytes, little endian. */
static void put_whole(text *t, uint64_t number, int size)
{
    for (int k = 0; k < size; k++)
        put_bytes(t, &(unsigned char){(unsigned char)(number >> 8 * k)}, 1);
}

static void put_real(text *t, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_whole(t, bits, 8);
}

static void put_object_header(text *t, const char *name, const char *metadata)
{
    put_whole(t, strlen(name), 4);
    put_bytes(t, name, strlen(name));
    put_whole(t, 0xff, 1); /* metadata follow */
    put_whole(t, strlen(metadata), 4);
    put_bytes(t, metadata, strlen(metadata));
}

/* Bytes of the numbers in a property's header: 1, 2 or 4. */
static int size_hint(size_t largest)
{
    return largest < 256 ? 0 : largest < 65536 ? 1 : 2;
}

/* `p` NULL: a compound property. */
static void put_property_header(text *t, const char *name, const char *metadata, const property *p)
{
    size_t largest = strlen(metadata) > strlen(name) ? strlen(metadata) : strlen(name);
    largest = p && p->samples > largest ? p->samples : largest;
    const int hint = size_hint(largest), bytes = 1 << hint;
    uint32_t info = (uint32_t)hint << 2 | (uint32_t)(*metadata ? 0xff : 0) << 20;
    if (p) {
        const int constant = p->samples <= 1;
        info |= (uint32_t)p->kind | (uint32_t)p->pod << 4 | (uint32_t)p->extent << 12 | (constant ? 0x800u : 0u);
        info |= p->name[0] == '.' && p->pod == pod_bool ? 0u : 0x100u; /* samples have the times of the frames */
    }
    put_whole(t, info, 4);
    if (p) {
        put_whole(t, p->samples, bytes);
        if (info & 0x100u)
            put_whole(t, 1, bytes);
    }
    put_whole(t, strlen(name), bytes);
    put_bytes(t, name, strlen(name));
    if (*metadata) {
        put_whole(t, strlen(metadata), bytes);
        put_bytes(t, metadata, strlen(metadata));
    }
}

/* --- Samples --- */

/* Readers keep samples by this key, so different values must have different ones. */
static void make_key(const void *data, size_t bytes, unsigned char key[16])
{
    uint64_t a = 0x9e3779b97f4a7c15u ^ bytes, b = 0xc2b2ae3d27d4eb4fu;
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, bytes - i < 8 ? bytes - i : 8);
        a = (a ^ word) * 0xff51afd7ed558ccdu;
        a ^= a >> 32;
        b = (b + word) * 0xc4ceb9fe1a85ec53u;
        b ^= b >> 29;
    }
    memcpy(key, &a, 8);
    memcpy(key + 8, &b, 8);
}

static property *find_property(sk_alembic *archive, const property *like)
{
    for (int p = 0; p < archive->property_count; p++)
        if (!strcmp(archive->properties[p].name, like->name))
            return &archive->properties[p];
    archive->properties[archive->property_count] = *like;
    return &archive->properties[archive->property_count++];
}

static selkie_code add_sample_to(sk_alembic *archive, property *p, const void *data, size_t bytes, selkie_error *error)
{
    unsigned char key[16];
    uint64_t child;
    make_key(data, bytes, key);
    SK_TRY(sk_ogawa_data(archive->file, key, bytes ? sizeof key : 0, data, bytes, &child, error));
    SK_TRY(sk_ogawa_add(&p->group, child, error));
    if (p->kind == kind_array) /* dimensions follow from the size */
        SK_TRY(sk_ogawa_add(&p->group, SK_OGAWA_EMPTY_DATA, error));
    p->samples++;
    return SELKIE_OK;
}

static selkie_code add_sample(sk_alembic *archive, const property *like, const void *data, size_t bytes,
                              selkie_error *error)
{
    return add_sample_to(archive, find_property(archive, like), data, bytes, error);
}

/* A further number (`extent` 1) or vector (3) of each vertex or point. */
static selkie_code add_value(sk_alembic *archive, const char *name, int extent, const float *data, size_t count,
                             selkie_error *error)
{
    int v = 0;
    while (v < archive->value_count && strcmp(archive->value_names[v], name))
        v++;
    if (v == archive->value_count) {
        /* A value that begins in a later frame would belong to the wrong times. */
        if (v == SK_MESH_MOST_VALUES || archive->time_count > 1)
            return SELKIE_OK;
        snprintf(archive->value_names[v], sizeof archive->value_names[v], "%s", name);
        archive->values[v] = (property){archive->value_names[v],
                                        extent == 3 ? "geoScope=vtx;interpretation=vector;isGeomParam=true;podExtent=3;"
                                                      "podName=float32_t"
                                                    : "geoScope=vtx;isGeomParam=true;podExtent=1;podName=float32_t",
                                        kind_array,
                                        pod_float,
                                        extent,
                                        0,
                                        {0}};
        archive->value_count++;
    }
    return add_sample_to(archive, &archive->values[v], data, 4 * (size_t)extent * count, error);
}

static selkie_code add_time(sk_alembic *archive, double time, selkie_error *error)
{
    if (archive->time_count == archive->time_capacity) {
        const size_t more = 2 * archive->time_capacity + 64;
        double *times = sk_allocate(NULL, more * sizeof *times);
        if (!times)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for the times of an Alembic file");
        if (archive->time_count)
            memcpy(times, archive->times, archive->time_count * sizeof *times);
        sk_release(NULL, archive->times);
        archive->times = times;
        archive->time_capacity = more;
    }
    archive->times[archive->time_count++] = time;
    return SELKIE_OK;
}

static selkie_code reserve(sk_alembic *archive, size_t floats, selkie_error *error)
{
    if (archive->scratch_count >= floats)
        return SELKIE_OK;
    sk_release(NULL, archive->scratch);
    archive->scratch = sk_allocate(NULL, (floats + 1) * sizeof *archive->scratch);
    archive->scratch_count = archive->scratch ? floats : 0;
    return archive->scratch ? SELKIE_OK
                            : sk_fail(error, SELKIE_ERROR_MEMORY, "no memory, %.1f MiB for a frame of an Alembic file",
                                      (double)floats * 4 / 1048576.0);
}

/* Vectors (`stored` components each) in the axes of the file; `origin` (m, may be NULL) is added. */
typedef struct vectors {
    const float *data;
    size_t stride; /* bytes */
    size_t count;
    int stored;
    const double *origin;
    sk_up_turn turn;
} vectors;

static selkie_code turn_vectors(sk_alembic *archive, const vectors *v, selkie_error *error)
{
    SK_TRY(reserve(archive, 3 * v->count, error));
    for (size_t i = 0; i < v->count; i++) {
        float own[3] = {0, 0, 0};
        memcpy(own, (const char *)v->data + i * v->stride, (size_t)v->stored * sizeof(float));
        for (int k = 0; k < 3; k++) {
            own[k] += v->origin ? (float)v->origin[k] : 0.0f;
            own[k] = isfinite(own[k]) ? own[k] : 0.0f;
        }
        sk_up_turn_apply(&v->turn, own, archive->scratch + 3 * i);
    }
    return SELKIE_OK;
}

static const property bounds_property = {".selfBnds", "interpretation=box", kind_scalar, pod_double, 6, 0, {0}};
static const property place_property = {"P", "geoScope=vtx;interpretation=point", kind_array, pod_float, 3, 0, {0}};
static const property velocity_property = {
    ".velocities", "geoScope=vtx;interpretation=vector", kind_array, pod_float, 3, 0, {0}};
static const property normal_property = {
    "N",        "geoScope=vtx;interpretation=normal;isGeomParam=true;podExtent=3;podName=float32_t",
    kind_array, pod_float,
    3,          0,
    {0}};
static const property index_property = {".faceIndices", "", kind_array, pod_int32, 1, 0, {0}};
static const property count_property = {".faceCounts", "", kind_array, pod_int32, 1, 0, {0}};
static const property id_property = {".pointIds", "", kind_array, pod_uint64, 1, 0, {0}};
static const property width_property = {
    ".widths", "geoScope=con;isGeomParam=true;podExtent=1;podName=float32_t", kind_array, pod_float, 1, 0, {0}};

/* Places of a frame, and the box around them. */
static selkie_code add_places(sk_alembic *archive, const vectors *places, selkie_error *error)
{
    double box[6] = {0, 0, 0, 0, 0, 0};
    SK_TRY(turn_vectors(archive, places, error));
    for (size_t i = 0; i < places->count; i++)
        for (int k = 0; k < 3; k++) {
            const double x = (double)archive->scratch[3 * i + (size_t)k];
            box[k] = i ? fmin(box[k], x) : x;
            box[3 + k] = i ? fmax(box[3 + k], x) : x;
        }
    SK_TRY(add_sample(archive, &bounds_property, box, sizeof box, error));
    return add_sample(archive, &place_property, archive->scratch, 12 * places->count, error);
}

/* Corners clockwise from outside, and three of them a face. */
static selkie_code add_faces(sk_alembic *archive, const sk_mesh *mesh, selkie_error *error)
{
    SK_TRY(reserve(archive, 3 * mesh->triangle_count, error));
    int32_t *numbers = (int32_t *)(void *)archive->scratch;
    for (size_t t = 0; t < mesh->triangle_count; t++)
        for (size_t c = 0; c < 3; c++)
            numbers[3 * t + c] = (int32_t)mesh->triangles[3 * t + (c ? 3 - c : 0)];
    SK_TRY(add_sample(archive, &index_property, numbers, 12 * mesh->triangle_count, error));
    for (size_t t = 0; t < mesh->triangle_count; t++)
        numbers[t] = 3;
    return add_sample(archive, &count_property, numbers, 4 * mesh->triangle_count, error);
}

/* Whether three values are the components of a vector: NAME_x, NAME_y, NAME_z. */
static int is_vector(const sk_mesh *mesh, int first)
{
    const size_t length = strlen(mesh->values[first].name);
    if (first + 2 >= mesh->value_count || length < 3)
        return 0;
    for (int k = 0; k < 3; k++) {
        const char *name = mesh->values[first + k].name;
        if (strlen(name) != length || strncmp(name, mesh->values[first].name, length - 1) || name[length - 2] != '_' ||
            name[length - 1] != "xyz"[k])
            return 0;
    }
    return 1;
}

/* Values of the vertices; vectors have the axes of the file already. */
static selkie_code add_mesh_values(sk_alembic *archive, const sk_mesh *mesh, selkie_error *error)
{
    for (int v = 0; v < mesh->value_count;) {
        const int extent = is_vector(mesh, v) ? 3 : 1;
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strlen(mesh->values[v].name) - (extent == 3 ? 2 : 0),
                 mesh->values[v].name);
        SK_TRY(reserve(archive, (size_t)extent * mesh->vertex_count, error));
        for (size_t i = 0; i < mesh->vertex_count; i++)
            for (int k = 0; k < extent; k++) {
                const float value = mesh->values[v + k].data[i];
                archive->scratch[(size_t)extent * i + (size_t)k] = isfinite(value) ? value : 0.0f;
            }
        SK_TRY(add_value(archive, name, extent, archive->scratch, mesh->vertex_count, error));
        v += extent;
    }
    return SELKIE_OK;
}

/* Attributes of the particles of one component. */
static selkie_code add_point_values(sk_alembic *archive, const sk_frame *frame, selkie_error *error)
{
    const size_t count = (size_t)frame->count;
    for (int e = 0; e < frame->extra_count; e++) {
        const selkie_attribute_view *view = &frame->extra[e];
        if (view->components != 1)
            continue;
        SK_TRY(reserve(archive, count, error));
        for (size_t i = 0; i < count; i++) {
            const void *at = (const char *)view->data + i * view->stride;
            uint32_t whole;
            float value;
            memcpy(&whole, at, sizeof whole);
            memcpy(&value, at, sizeof value);
            value = view->type == SELKIE_UINT32 ? (float)whole : value;
            archive->scratch[i] = isfinite(value) ? value : 0.0f;
        }
        SK_TRY(add_value(archive, view->name, 1, archive->scratch, count, error));
    }
    return SELKIE_OK;
}

selkie_code sk_alembic_add_mesh(sk_alembic *archive, const sk_mesh_frame *frame, selkie_error *error)
{
    const sk_mesh *mesh = frame->mesh;
    vectors v = {
        mesh->positions, 12, mesh->vertex_count, 3, frame->origin, sk_up_turn_make(frame->up, frame->scene_up)};
    SK_TRY(add_time(archive, frame->time, error));
    SK_TRY(add_places(archive, &v, error));
    SK_TRY(add_faces(archive, mesh, error));
    v.origin = NULL;
    if (mesh->velocities) {
        v.data = mesh->velocities;
        SK_TRY(turn_vectors(archive, &v, error));
        SK_TRY(add_sample(archive, &velocity_property, archive->scratch, 12 * v.count, error));
    }
    if (mesh->normals) {
        v.data = mesh->normals;
        SK_TRY(turn_vectors(archive, &v, error));
        SK_TRY(add_sample(archive, &normal_property, archive->scratch, 12 * v.count, error));
    }
    return add_mesh_values(archive, mesh, error);
}

selkie_code sk_alembic_add_points(sk_alembic *archive, const sk_frame *frame, selkie_error *error)
{
    const size_t count = (size_t)frame->count;
    vectors v = {frame->position,  frame->position_stride, count,
                 frame->dimension, frame->origin,          sk_up_turn_make(frame->up, frame->scene_up)};
    const float width = (float)(2.0 * frame->particle_radius);
    SK_TRY(add_time(archive, frame->time, error));
    SK_TRY(add_places(archive, &v, error));
    SK_TRY(reserve(archive, 2 * count, error));
    uint64_t *ids = (uint64_t *)(void *)archive->scratch;
    for (size_t i = 0; i < count; i++)
        ids[i] = frame->id ? *(const uint32_t *)(const void *)((const char *)frame->id + i * frame->id_stride) : i;
    SK_TRY(add_sample(archive, &id_property, ids, 8 * count, error));
    SK_TRY(add_sample(archive, &width_property, &width, sizeof width, error));
    SK_TRY(add_point_values(archive, frame, error));
    if (!frame->velocity)
        return SELKIE_OK;
    v.origin = NULL;
    v.data = frame->velocity;
    v.stride = frame->velocity_stride;
    SK_TRY(turn_vectors(archive, &v, error));
    return add_sample(archive, &velocity_property, archive->scratch, 12 * count, error);
}

/* --- The archive --- */

selkie_code sk_alembic_begin(const char *path, int points, sk_alembic **result, selkie_error *error)
{
    *result = NULL;
    sk_alembic *archive = sk_allocate_zeroed(NULL, sizeof *archive);
    if (!archive)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for an Alembic file", path);
    archive->points = points;
    const selkie_code code = sk_ogawa_begin(path, &archive->file, error);
    if (code)
        return sk_alembic_end(archive, code, error);
    *result = archive;
    return SELKIE_OK;
}

/* A group of properties and behind them their headers; `others` of them are values, in a group of their own. */
static selkie_code write_group(sk_alembic *archive, int count, property *properties, int others, uint64_t *child,
                               selkie_error *error)
{
    sk_ogawa_group group = {0};
    text headers = {.count = 0};
    selkie_code code = SELKIE_OK;
    for (int p = 0; p < count && !code; p++) {
        put_property_header(&headers, properties[p].name, properties[p].metadata, &properties[p]);
        code = sk_ogawa_group_end(archive->file, &properties[p].group, child, error);
        if (!code)
            code = sk_ogawa_add(&group, *child, error);
    }
    if (!code && others) {
        put_property_header(&headers, ".arbGeomParams", "", NULL);
        code = write_group(archive, others, archive->values, 0, child, error);
        if (!code)
            code = sk_ogawa_add(&group, *child, error);
    }
    if (!code)
        code = sk_ogawa_data(archive->file, headers.bytes, headers.count, NULL, 0, child, error);
    if (!code)
        code = sk_ogawa_add(&group, *child, error);
    if (!code)
        code = sk_ogawa_group_end(archive->file, &group, child, error);
    sk_ogawa_group_free(&group);
    return code;
}

/* A compound property of these properties, as the only one of an object, whose group is left open for children. */
static selkie_code write_compound(sk_alembic *archive, const char *name, const char *metadata, int count,
                                  property *properties, sk_ogawa_group *object, selkie_error *error)
{
    sk_ogawa_group top = {0};
    text own = {.count = 0};
    uint64_t child;
    selkie_code code = write_group(archive, count, properties,
                                   properties == archive->properties ? archive->value_count : 0, &child, error);
    if (!code)
        code = sk_ogawa_add(&top, child, error);
    put_property_header(&own, name, metadata, NULL);
    if (!code)
        code = sk_ogawa_data(archive->file, own.bytes, own.count, NULL, 0, &child, error);
    if (!code)
        code = sk_ogawa_add(&top, child, error);
    if (!code)
        code = sk_ogawa_group_end(archive->file, &top, &child, error);
    if (!code)
        code = sk_ogawa_add(object, child, error);
    sk_ogawa_group_free(&top);
    return code;
}

/* Headers of an object's children, with room for two hashes, end its group. */
static selkie_code end_object(sk_alembic *archive, sk_ogawa_group *object, text *children, uint64_t *child,
                              selkie_error *error)
{
    uint64_t data;
    for (int k = 0; k < 4; k++)
        put_whole(children, 0, 8);
    SK_TRY(sk_ogawa_data(archive->file, children->bytes, children->count, NULL, 0, &data, error));
    SK_TRY(sk_ogawa_add(object, data, error));
    return sk_ogawa_group_end(archive->file, object, child, error);
}

static const char *const mesh_schema = "schema=AbcGeom_PolyMesh_v1;schemaBaseType=AbcGeom_GeomBase_v1",
                         *const mesh_object = "schema=AbcGeom_PolyMesh_v1;schemaBaseType=AbcGeom_GeomBase_v1;"
                                              "schemaObjTitle=AbcGeom_PolyMesh_v1:.geom",
                         *const point_schema = "schema=AbcGeom_Points_v1;schemaBaseType=AbcGeom_GeomBase_v1",
                         *const point_object = "schema=AbcGeom_Points_v1;schemaBaseType=AbcGeom_GeomBase_v1;"
                                               "schemaObjTitle=AbcGeom_Points_v1:.geom",
                         *const turn_schema = "schema=AbcGeom_Xform_v3",
                         *const turn_object = "schema=AbcGeom_Xform_v3;schemaObjTitle=AbcGeom_Xform_v3:.xform";

/* The shape, the transform above it and the top object, from below. */
static selkie_code write_objects(sk_alembic *archive, uint64_t *child, selkie_error *error)
{
    sk_ogawa_group groups[3] = {{0}, {0}, {0}};
    text none = {.count = 0}, shape = {.count = 0}, liquid = {.count = 0};
    property inherits = {".inherits", "", kind_scalar, pod_bool, 1, 0, {0}};
    unsigned char yes = 1, key[16];
    selkie_code code = write_compound(archive, ".geom", archive->points ? point_schema : mesh_schema,
                                      archive->property_count, archive->properties, &groups[0], error);
    if (!code)
        code = end_object(archive, &groups[0], &none, child, error);

    /* A transform without operations hands on its parent's. */
    make_key(&yes, 1, key);
    uint64_t sample = 0;
    if (!code)
        code = sk_ogawa_data(archive->file, key, sizeof key, &yes, 1, &sample, error);
    if (!code)
        code = sk_ogawa_add(&inherits.group, sample, error);
    inherits.samples = 1;
    if (!code)
        code = write_compound(archive, ".xform", turn_schema, 1, &inherits, &groups[1], error);
    if (!code)
        code = sk_ogawa_add(&groups[1], *child, error);
    put_object_header(&shape, archive->points ? "particles" : "surface", archive->points ? point_object : mesh_object);
    if (!code)
        code = end_object(archive, &groups[1], &shape, child, error);

    /* The top: no properties. */
    if (!code)
        code = sk_ogawa_add(&groups[2], 0, error);
    if (!code)
        code = sk_ogawa_add(&groups[2], *child, error);
    put_object_header(&liquid, "liquid", turn_object);
    if (!code)
        code = end_object(archive, &groups[2], &liquid, child, error);
    sk_ogawa_group_free(&inherits.group);
    for (int g = 0; g < 3; g++)
        sk_ogawa_group_free(&groups[g]);
    return code;
}

/* Times at equal distances are a start and a step; others are listed. The first sampling is the default one. */
static selkie_code write_times(sk_alembic *archive, uint64_t *child, selkie_error *error)
{
    const size_t count = archive->time_count;
    const double *times = archive->times, step = count > 1 ? (times[count - 1] - times[0]) / (double)(count - 1) : 1.0;
    int uniform = step > 0.0;
    for (size_t i = 0; i < count; i++)
        uniform &= fabs(times[i] - times[0] - step * (double)i) < 1e-5 * step;
    text head = {.count = 0};
    put_whole(&head, 0, 4);
    put_real(&head, 1.0);
    put_whole(&head, 1, 4);
    put_real(&head, 0.0);

    const size_t stored = uniform || !count ? 1 : count;
    put_whole(&head, count, 4);
    put_real(&head, uniform || !count ? step : DBL_MAX / 32.0);
    put_whole(&head, stored, 4);
    const double start = 0.0;
    return sk_ogawa_data(archive->file, head.bytes, head.count, count ? times : &start, stored * sizeof(double), child,
                         error);
}

static selkie_code write_archive(sk_alembic *archive, selkie_error *error)
{
    static const char metadata[] = "_ai_AlembicVersion=Alembic 1.7.16;_ai_Application=Selkie";
    sk_ogawa_group root = {0};
    uint64_t child;
    text version = {.count = 0}, library = {.count = 0};
    put_whole(&version, 0, 4);
    put_whole(&library, 10716, 4);
    selkie_code code = sk_ogawa_data(archive->file, version.bytes, 4, NULL, 0, &child, error);
    if (!code)
        code = sk_ogawa_add(&root, child, error);
    if (!code)
        code = sk_ogawa_data(archive->file, library.bytes, 4, NULL, 0, &child, error);
    if (!code)
        code = sk_ogawa_add(&root, child, error);
    if (!code)
        code = write_objects(archive, &child, error);
    if (!code)
        code = sk_ogawa_add(&root, child, error);
    if (!code)
        code = sk_ogawa_data(archive->file, metadata, strlen(metadata), NULL, 0, &child, error);
    if (!code)
        code = sk_ogawa_add(&root, child, error);
    if (!code)
        code = write_times(archive, &child, error);
    if (!code)
        code = sk_ogawa_add(&root, child, error);
    if (!code)
        code = sk_ogawa_add(&root, SK_OGAWA_EMPTY_DATA, error); /* no metadata that several headers share */
    if (!code)
        code = sk_ogawa_group_end(archive->file, &root, &child, error);
    sk_ogawa_group_free(&root);
    return code ? code : sk_ogawa_end(archive->file, child, error);
}

selkie_code sk_alembic_end(sk_alembic *archive, selkie_code so_far, selkie_error *error)
{
    if (!archive)
        return so_far;
    selkie_code code = so_far;
    if (!code)
        code = write_archive(archive, error);
    if (archive->file)
        code = sk_atomic_finish(&archive->file, code, error);
    for (int p = 0; p < archive->property_count; p++)
        sk_ogawa_group_free(&archive->properties[p].group);
    for (int v = 0; v < archive->value_count; v++)
        sk_ogawa_group_free(&archive->values[v].group);
    sk_release(NULL, archive->times);
    sk_release(NULL, archive->scratch);
    sk_release(NULL, archive);
    return code;
}
