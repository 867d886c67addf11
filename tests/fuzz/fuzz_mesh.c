/* Mesh files: the first byte chooses the format, the rest is the file. Ends where a world would start to ask for
 * distances: a shape that was taken must answer, and with a number. */
#include <math.h>
#include "fuzz.h"
#include "geom/shape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const endings[] = {"obj", "stl", "ply", "gltf"};
    if (size < 1)
        return 0;
    selkie_shape def;
    selkie_shape_defaults(&def, SELKIE_SHAPE_MESH);
    def.file = fuzz_file(endings[data[0] % 4], data + 1, size - 1);
    const double up[3] = {0, 1, 0};
    char warning[256];
    selkie_error error;
    sk_memory memory = {0, 0, (size_t)512 << 20};
    sk_shape *shape = NULL;
    const sk_shape_options options = {
        .dimension = 3, .up = up, .what = "liquids[0].shape", .memory = &memory, .warning = warning};
    if (sk_shape_create(&def, &options, &shape, &error) != SELKIE_OK) {
        fuzz_demand(shape == NULL && error.message[0] != 0, "a refused mesh needs a message and no object");
        fuzz_demand(memory.used == 0, "a refused mesh keeps memory");
        return 0;
    }
    const double points[3][3] = {{0, 0, 0}, {0.5, 0.25, 0.125}, {100, -100, 100}};
    for (int i = 0; i < 3; i++)
        fuzz_demand(isfinite(sk_shape_distance(shape, points[i])), "the distance to a mesh is not a number");
    sk_shape_destroy(shape);
    fuzz_demand(memory.used == 0, "a destroyed mesh keeps memory");
    return 0;
}
