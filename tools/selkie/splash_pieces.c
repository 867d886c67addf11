/* Droplets below a particle's size around the droplets of a run (splash.pairs), in frames of their own. */
#include "splash_pieces.h"

#include <math.h>
#include <stdlib.h>

#include "io/output.h"
#include "io/particles_file.h"
#include "methods/splashes/splashes.h"
#include "world/world_internal.h"

selkie_code write_splash_pieces(const selkie_world *world, const char *path, selkie_error *error)
{
    selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES];
    sk_frame frame;
    const sk_splashes *s = sk_step_state(&world->step, &sk_method_splashes);
    SK_TRY(sk_world_frame(world, &frame, extras, error));
    sk_splash_piece *pieces = calloc(2 * s->pair_count + 1, sizeof *pieces);
    if (!pieces)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory", path);

    const size_t stride = sizeof *pieces;
    const selkie_attribute_view own[] = {{"splash", SELKIE_FLOAT32, 1, stride, &pieces->age, {0}},
                                         {"droplet", SELKIE_UINT32, 1, stride, &pieces->particle, {0}}};
    frame.count = (int64_t)sk_splash_list_pieces(&world->step, pieces);
    frame.position = pieces->position;
    frame.velocity = pieces->velocity;
    frame.id = &pieces->id;
    frame.position_stride = frame.velocity_stride = frame.id_stride = stride;
    frame.particle_radius *= pow(1.0 + 2.0 * world->step.scene->splash.pairs, -1.0 / frame.dimension);
    frame.extra_count = 2;
    frame.extra = own;
    const selkie_code code = sk_particles_write(&frame, path, error);
    free(pieces);
    return code;
}
