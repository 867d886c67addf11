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

static selkie_code put_vectors(sk_atomic_file *file, const float *vectors, size_t count, const sk_up_turn *turn,
                               const double *origin, selkie_error *error)
{
    char *lines = malloc((size_t)lines_per_write * line_room);
    if (!lines)
        return sk_atomic_fail(file, ENOMEM, error);
    selkie_code code = SELKIE_OK;
    for (size_t i = 0; i < count && !code;) {
        size_t length = 0;
        for (size_t n = 0; n < lines_per_write && i < count; n++, i++) {
            float own[3], turned[3];
            for (size_t k = 0; k < 3; k++) {
                own[k] = vectors[3 * i + k] + (origin ? (float)origin[k] : 0.0f);
                own[k] = isfinite(own[k]) ? own[k] : 0.0f;
            }
            sk_up_turn_apply(turn, own, turned);
            length += (size_t)snprintf(lines + length, line_room, "%s(%.9g, %.9g, %.9g)", i ? ",\n" : "",
                                       (double)turned[0], (double)turned[1], (double)turned[2]);
        }
        code = sk_atomic_write(file, lines, length, error);
    }
    free(lines);
    return code;
}

static selkie_code put_numbers(sk_atomic_file *file, const uint32_t *numbers, uint32_t constant, size_t count,
                               selkie_error *error)
{
    char *lines = malloc((size_t)lines_per_write * 16);
    if (!lines)
        return sk_atomic_fail(file, ENOMEM, error);
    selkie_code code = SELKIE_OK;
    for (size_t i = 0; i < count && !code;) {
        size_t length = 0;
        for (size_t n = 0; n < lines_per_write && i < count; n++, i++)
            length += (size_t)snprintf(lines + length, 16, "%s%u",
                                       !i       ? ""
                                       : i % 24 ? ", "
                                                : ",\n",
                                       numbers ? numbers[i] : constant);
        code = sk_atomic_write(file, lines, length, error);
    }
    free(lines);
    return code;
}

static selkie_code put_values(sk_atomic_file *file, const float *values, size_t count, selkie_error *error)
{
    char *lines = malloc((size_t)lines_per_write * 24);
    if (!lines)
        return sk_atomic_fail(file, ENOMEM, error);
    selkie_code code = SELKIE_OK;
    for (size_t i = 0; i < count && !code;) {
        size_t length = 0;
        for (size_t n = 0; n < lines_per_write && i < count; n++, i++) {
            const char *between = !i ? "" : i % 12 ? ", " : ",\n";
            const double value = isfinite(values[i]) ? (double)values[i] : 0.0;
            length += (size_t)snprintf(lines + length, 24, "%s%.9g", between, value);
        }
        code = sk_atomic_write(file, lines, length, error);
    }
    free(lines);
    return code;
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

static selkie_code put_mesh(sk_atomic_file *file, const sk_mesh_frame *frame, selkie_error *error)
{
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
    SK_TRY(put_numbers(file, NULL, 3, mesh->triangle_count, error));
    SK_TRY(sk_atomic_print(file, error, "]\n    int[] faceVertexIndices = ["));
    SK_TRY(put_numbers(file, mesh->triangles, 0, 3 * mesh->triangle_count, error));
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
        SK_TRY(put_values(file, mesh->values[v].data, mesh->vertex_count, error));
        SK_TRY(sk_atomic_print(file, error, "] (\n        interpolation = \"vertex\"\n    )\n"));
    }
    return sk_atomic_print(file, error, "}\n");
}

selkie_code sk_mesh_write_usd(const sk_mesh_frame *frame, const char *path, selkie_error *error)
{
    sk_atomic_file *file;
    sk_number_scope scope;
    SK_TRY(sk_atomic_open(path, 0, &file, error));
    selkie_code code = sk_number_begin(&scope, error);
    if (!code) {
        code = put_mesh(file, frame, error);
        sk_number_end(&scope);
    }
    return sk_atomic_finish(&file, code, error);
}

static selkie_code put_stage(sk_atomic_file *file, const sk_usd_stage *stage, selkie_error *error)
{
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
    sk_atomic_file *file;
    sk_number_scope scope;
    SK_TRY(sk_atomic_open(path, 0, &file, error));
    selkie_code code = sk_number_begin(&scope, error);
    if (!code) {
        code = put_stage(file, stage, error);
        sk_number_end(&scope);
    }
    return sk_atomic_finish(&file, code, error);
}
