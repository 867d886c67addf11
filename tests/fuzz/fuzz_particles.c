/* Particle files: any bytes as a PLY file or, where they start so, as a compact one. What is taken must be whole: every
 * number there, and a number. */
#include <math.h>
#include "fuzz.h"
#include "io/particles_compact.h"
#include "io/particles_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    selkie_error error;
    sk_particles_data *particles = NULL;
    const int compact = size >= 8 && memcmp(data, SK_COMPACT_MAGIC, 8) == 0;
    const selkie_code code = compact ? sk_particles_parse_compact(data, size, "input.skp", &particles, &error)
                                     : sk_particles_parse_ply(data, size, "input.ply", &particles, &error);
    if (code != SELKIE_OK) {
        fuzz_demand(particles == NULL && error.message[0] != 0, "a refused file needs a message and no object");
        return 0;
    }
    for (int64_t i = 0; i < particles->count * 3; i++) {
        fuzz_demand(isfinite(particles->position[i]), "a position is not a number");
        fuzz_demand(!particles->velocity || isfinite(particles->velocity[i]), "a velocity is not a number");
    }
    sk_particles_turn_back(particles);
    sk_particles_data_free(particles);
    return 0;
}
