/* Height fields as ESRI ASCII grids: the first byte chooses dimension, up and how far distances must be exact, the rest
 * is the file. A table that was taken must answer with numbers, and agree with itself on what is inside. */
#include <math.h>
#include "fuzz.h"
#include "geom/heightfield.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const double ups[4][3] = {{0, 1, 0}, {0, 0, 1}, {1, 0, 0}, {0, -1, 0}};
    static const double reaches[4] = {0.0, 0.5, 2.0, 8.0};
    if (size < 1)
        return 0;
    const double *up = ups[data[0] & 3];
    sk_heightfield_def def = {.path = fuzz_file("asc", data + 1, size - 1),
                              .name = "liquids[0].shape",
                              .dimension = data[0] & 4 && up[2] == 0.0 ? 2 : 3,
                              .up = {up[0], up[1], up[2]},
                              .scale = {1, 1, 1},
                              .reach = reaches[data[0] >> 3 & 3]};
    selkie_error error;
    sk_memory memory = {0, 0, (size_t)512 << 20};
    sk_heightfield *field = NULL;
    if (sk_heightfield_create(&def, &memory, &field, &error) != SELKIE_OK) {
        fuzz_demand(field == NULL && error.message[0] != 0, "a refused height field needs a message and no object");
        fuzz_demand(memory.used == 0, "a refused height field keeps memory");
        return 0;
    }
    const double points[4][3] = {{0, 0, 0}, {0.5, 0.25, 0.125}, {3, 1, -2}, {100, -100, 100}};
    for (int i = 0; i < 4; i++) {
        double normal[3], x[3] = {points[i][0], points[i][1], def.dimension == 3 ? points[i][2] : 0.0};
        double distance = sk_heightfield_distance(field, x, normal);
        fuzz_demand(isfinite(distance), "the distance to a height field is not a number");
        fuzz_demand(fabs(hypot(hypot(normal[0], normal[1]), normal[2]) - 1.0) < 1e-6, "a normal is not of length one");
        /* Within round-off of the surface both answers are right. */
        fuzz_demand(fabs(distance) < 1e-5 * (1.0 + fabs(distance)) ||
                        sk_heightfield_inside(field, x) == (distance < 0.0),
                    "a point is inside and has a distance of those outside, or the other way round");
    }
    double low[3], high[3];
    sk_heightfield_bounds(field, low, high);
    sk_heightfield_destroy(field);
    fuzz_demand(memory.used == 0, "a destroyed height field keeps memory");
    return 0;
}
