/* Particle files: any bytes as a PLY file. What is taken must be whole: every number there, and a number. */
#include <math.h>
#include "fuzz.h"
#include "io/particles_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    selkie_error error;
    sk_particles_data *particles = NULL;
    if (sk_particles_parse_ply(data, size, "input.ply", &particles, &error) != SELKIE_OK) {
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
