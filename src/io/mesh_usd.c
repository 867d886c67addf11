/* A surface as USD in text (.usda). Frames are single files. A stage beside them refers to all of them and shows each
 * at its time.
 *
 * Numbers have nine digits, enough to restore a float. USD wants faces counter-clockwise from outside, as ours are.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/atomic_file.h"
#include "io/mesh_file.h"
#include "io/number.h"
#include "io/up_turn.h"

enum { line_room = 128, lines_per_write = 4096 };

/* Writes an element with what stands before it; returns the bytes. */
typedef size_t (*print_function)(const void *context, size_t index, char line[line_room]);

static selkie_code put_elements(sk_atomic_file *file, size_t count, print_function print, const void *context,
                                selkie_error *error)
{
    char *lines = malloc((size_t)lines_per_write * line_room);
    if (!lines)
        return sk_atomic_fail(file, ENOMEM, error);
    selkie_code code = SELKIE_OK;
    for (size_t i = 0; i < count && !code;) {
        size_t length = 0;
        for (size_t n = 0; n < lines_per_write && i < count; n++, i++)
            length += print(context, i, lines + length);
        code = sk_atomic_write(file, lines, length, error);
    }
    free(lines);
    return code;
}

/* What separates an element from the one before; `row` of them stand in a line. */
static const char *between(size_t index, size_t row)
{
    return !index ? "" : index % row ? ", " : ",\n";
}

typedef struct vector_list {
    const float *vectors;
    const sk_up_turn *turn;
    const double *origin; /* m  added; NULL = none */
} vector_list;

static size_t print_vector(const void *context, size_t index, char line[line_room])
{
    const vector_list *list = context;
    float own[3], turned[3];
    for (size_t k = 0; k < 3; k++) {
        own[k] = list->vectors[3 * index + k] + (list->origin ? (float)list->origin[k] : 0.0f);
        own[k] = isfinite(own[k]) ? own[k] : 0.0f;
    }
    sk_up_turn_apply(list->turn, own, turned);
    return (size_t)snprintf(line, line_room, "%s(%.9g, %.9g, %.9g)", between(index, 1), (double)turned[0],
                            (double)turned[1], (double)turned[2]);
}

static selkie_code put_vectors(sk_atomic_file *file, const float *vectors, size_t count, const sk_up_turn *turn,
                               const double *origin, selkie_error *error)
{
    return put_elements(file, count, print_vector, &(vector_list){vectors, turn, origin}, error);
}

static size_t print_three(const void *context, size_t index, char line[line_room])
{
    (void)context;
    return (size_t)snprintf(line, line_room, "%s3", between(index, 24));
}

static size_t print_number(const void *context, size_t index, char line[line_room])
{
    return (size_t)snprintf(line, line_room, "%s%u", between(index, 24), ((const uint32_t *)context)[index]);
}

static size_t print_value(const void *context, size_t index, char line[line_room])
{
    const float value = ((const float *)context)[index];
    return (size_t)snprintf(line, line_room, "%s%.9g", between(index, 12), isfinite(value) ? (double)value : 0.0);
}

static void find_extent(const sk_mesh_frame *frame, const sk_up_turn *turn, float box[6])
{
    for (size_t i = 0; i < frame->mesh->vertex_count; i++) {
        float own[3], turned[3];
        for (size_t k = 0; k < 3; k++)
            own[k] = frame->mesh->positions[3 * i + k] + (float)frame->origin[k];
        sk_up_turn_apply(turn, own, turned);
        for (int k = 0; k < 3; k++) {
            box[k] = i ? fminf(box[k], turned[k]) : turned[k];
            box[3 + k] = i ? fmaxf(box[3 + k], turned[k]) : turned[k];
        }
    }
}

char sk_usd_up(selkie_up_axis wanted, const double scene_up[3])
{
    const sk_up_turn turn = sk_up_turn_make(wanted, scene_up);
    int up = 1;
    double most = 0.0;
    for (int k = 0; k < 3; k++)
        if (fabs(scene_up[turn.axis[k]]) > most) {
            most = fabs(scene_up[turn.axis[k]]);
            up = k;
        }
    return up == 2 ? 'Z' : 'Y';
}

static selkie_code put_mesh(sk_atomic_file *file, const void *context, selkie_error *error)
{
    const sk_mesh_frame *frame = context;
    const sk_mesh *mesh = frame->mesh;
    const sk_up_turn turn = sk_up_turn_make(frame->up, frame->scene_up);
    float box[6] = {0, 0, 0, 0, 0, 0};
    find_extent(frame, &turn, box);
    SK_TRY(sk_atomic_print(file, error,
                           "#usda 1.0\n(\n    defaultPrim = \"surface\"\n    metersPerUnit = 1\n    upAxis = \"%c\"\n"
                           "    customLayerData = {\n        double selkie_time = %.17g\n    }\n)\n\n"
                           "def Mesh \"surface\"\n{\n    uniform token subdivisionScheme = \"none\"\n"
                           "    float3[] extent = [(%.9g, %.9g, %.9g), (%.9g, %.9g, %.9g)]\n",
                           sk_usd_up(frame->up, frame->scene_up), frame->time, (double)box[0], (double)box[1],
                           (double)box[2], (double)box[3], (double)box[4], (double)box[5]));

    /* Topology, then values of the vertices. */
    SK_TRY(sk_atomic_print(file, error, "    int[] faceVertexCounts = ["));
    SK_TRY(put_elements(file, mesh->triangle_count, print_three, NULL, error));
    SK_TRY(sk_atomic_print(file, error, "]\n    int[] faceVertexIndices = ["));
    SK_TRY(put_elements(file, 3 * mesh->triangle_count, print_number, mesh->triangles, error));
    SK_TRY(sk_atomic_print(file, error, "]\n    point3f[] points = ["));
    SK_TRY(put_vectors(file, mesh->positions, mesh->vertex_count, &turn, frame->origin, error));
    if (mesh->normals) {
        SK_TRY(sk_atomic_print(file, error, "]\n    normal3f[] normals = ["));
        SK_TRY(put_vectors(file, mesh->normals, mesh->vertex_count, &turn, NULL, error));
    }
    if (mesh->velocities) {
        SK_TRY(sk_atomic_print(file, error, "]\n    vector3f[] velocities = ["));
        SK_TRY(put_vectors(file, mesh->velocities, mesh->vertex_count, &turn, NULL, error));
    }
    SK_TRY(sk_atomic_print(file, error, "]\n"));
    for (int v = 0; v < mesh->value_count; v++) {
        SK_TRY(sk_atomic_print(file, error, "    float[] primvars:%s = [", mesh->values[v].name));
        SK_TRY(put_elements(file, mesh->vertex_count, print_value, mesh->values[v].data, error));
        SK_TRY(sk_atomic_print(file, error, "] (\n        interpolation = \"vertex\"\n    )\n"));
    }
    return sk_atomic_print(file, error, "}\n");
}

/* A file whose numbers have points, whatever the locale. */
static selkie_code write_file(const char *path, selkie_code (*put)(sk_atomic_file *, const void *, selkie_error *),
                              const void *context, selkie_error *error)
{
    sk_atomic_file *file;
    sk_number_scope scope;
    SK_TRY(sk_atomic_open(path, 0, &file, error));
    selkie_code code = sk_number_begin(&scope, error);
    if (!code) {
        code = put(file, context, error);
        sk_number_end(&scope);
    }
    return sk_atomic_finish(&file, code, error);
}

selkie_code sk_mesh_write_usd(const sk_mesh_frame *frame, const char *path, selkie_error *error)
{
    return write_file(path, put_mesh, frame, error);
}

static selkie_code put_stage(sk_atomic_file *file, const void *context, selkie_error *error)
{
    const sk_usd_stage *stage = context;
    const long long first = stage->count ? (long long)stage->frames[0] : 0,
                    last = stage->count ? (long long)stage->frames[stage->count - 1] : 0;
    SK_TRY(sk_atomic_print(file, error,
                           "#usda 1.0\n(\n    defaultPrim = \"liquid\"\n    metersPerUnit = 1\n    upAxis = \"%c\"\n"
                           "    startTimeCode = %lld\n    endTimeCode = %lld\n    timeCodesPerSecond = %.17g\n"
                           "    framesPerSecond = %.17g\n)\n\ndef Xform \"liquid\"\n{\n",
                           stage->up, first, last, stage->fps, stage->fps));
    for (size_t i = 0; i < stage->count; i++) {
        const long long frame = (long long)stage->frames[i];
        const long long next = i + 1 < stage->count ? (long long)stage->frames[i + 1] : frame + 1;
        SK_TRY(
            sk_atomic_print(file, error,
                            "    def \"frame_%04lld\" (\n        prepend references = @./%s%04lld.usda@\n    )\n    {\n"
                            "        token visibility.timeSamples = {\n",
                            frame, stage->prefix, frame));
        if (i)
            SK_TRY(sk_atomic_print(file, error, "            %lld: \"invisible\",\n", first));
        SK_TRY(sk_atomic_print(file, error, "            %lld: \"inherited\",\n", frame));
        if (i + 1 < stage->count)
            SK_TRY(sk_atomic_print(file, error, "            %lld: \"invisible\",\n", next));
        SK_TRY(sk_atomic_print(file, error, "        }\n    }\n"));
    }
    return sk_atomic_print(file, error, "}\n");
}

selkie_code sk_mesh_write_usd_stage(const char *path, const sk_usd_stage *stage, selkie_error *error)
{
    return write_file(path, put_stage, stage, error);
}
