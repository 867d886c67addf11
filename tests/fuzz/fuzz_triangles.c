/* What comes after a mesh file has been read: welding, turning, sections, distances, with any triangles. The file
 * readers run in a child process and are slow to fuzz (fuzz_mesh.c); this reaches the code behind them a thousand times
 * faster.
 *
 * The first byte chooses how coordinates are made: from single bytes on a coarse lattice, where points and edges
 * coincide and triangles degenerate all the time, or from the raw bits of floats, with all their NaN and extremes. */
#include <math.h>
#include <string.h>
#include "fuzz.h"
#include "geom/mesh_distance.h"
#include "geom/mesh_import.h"

enum { most_triangles = 200 };

static size_t make_corners(const uint8_t *data, size_t size, double (*corners)[3])
{
    int raw = data[0] & 1;
    size_t width = raw ? sizeof(float) : 1;
    size_t count = (size - 1) / (9 * width);
    count = count > most_triangles ? most_triangles : count;
    for (size_t i = 0; i < count * 9; i++) {
        float value;
        if (raw)
            memcpy(&value, data + 1 + i * sizeof value, sizeof value);
        else
            value = (float)((int)(data[1 + i] % 9) - 4) * 0.25f;
        corners[i / 3][i % 3] = value;
    }
    return count;
}

static void ask(const sk_mesh_distance *distance)
{
    double low[3], high[3], normal[3];
    sk_mesh_distance_bounds(distance, low, high);
    for (int i = 0; i < 8; i++) {
        double x[3] = {i & 1 ? high[0] : 0.1, i & 2 ? low[1] - 0.3 : 0.2, i & 4 ? high[2] : -0.05};
        double answer = sk_mesh_distance_signed(distance, x, normal);
        fuzz_demand(isfinite(answer), "the distance to a mesh is not a number");
        fuzz_demand(isfinite(normal[0]) && isfinite(normal[1]) && isfinite(normal[2]), "a normal is not a number");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    double corners[3 * most_triangles][3];
    size_t count = make_corners(data, size, corners);
    selkie_error error = {SELKIE_OK, ""};
    sk_memory memory = {0, 0, (size_t)256 << 20};
    sk_solid_mesh mesh;
    if (sk_solid_mesh_from_corners(count, (const double(*)[3])corners, "input", &memory, &mesh, &error) != SELKIE_OK) {
        fuzz_demand(error.message[0] != 0, "triangles were refused without a message");
        fuzz_demand(memory.used == 0, "refused triangles keep memory");
        return 0;
    }
    for (size_t t = 0; t < mesh.triangle_count; t++)
        for (int k = 0; k < 3; k++) {
            fuzz_demand(mesh.triangles[t][k] < mesh.vertex_count, "a triangle names a vertex that is not there");
            memcpy(corners[3 * t + (size_t)k], mesh.vertices[mesh.triangles[t][k]], sizeof corners[0]);
        }
    fuzz_demand(isfinite(sk_solid_mesh_volume(&mesh)), "the volume of a mesh is not a number");
    sk_mesh_distance *distance = NULL;
    sk_mesh_pieces pieces = {.dimension = 3,
                             .count = mesh.triangle_count,
                             .corners = (const double(*)[3])corners,
                             .closed = mesh.open_edges == 0,
                             .name = "input"};
    if (sk_mesh_distance_create(&pieces, &memory, &distance, &error) == SELKIE_OK) {
        ask(distance);
        sk_mesh_distance_destroy(distance);
    }
    size_t segment_count = 0;
    double(*segments)[2][3] = NULL;
    if (sk_solid_mesh_outline(&mesh, "input", &memory, &segment_count, &segments, &error) == SELKIE_OK) {
        pieces = (sk_mesh_pieces){
            .dimension = 2, .count = segment_count, .corners = (const double(*)[3])segments, .name = "input"};
        if (segment_count > 0 && sk_mesh_distance_create(&pieces, &memory, &distance, &error) == SELKIE_OK) {
            ask(distance);
            sk_mesh_distance_destroy(distance);
        }
        sk_release(&memory, segments);
    }
    sk_solid_mesh_release(&mesh);
    fuzz_demand(memory.used == 0, "a released mesh keeps memory");
    return 0;
}
