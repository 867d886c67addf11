/* Forces other than pressure: they change the velocities that the pressure then corrects. */
#include <string.h>

#include "base/dimension.h"
#include "methods/force_fields.h"
#include "methods/sph/sph.h"

selkie_code SK_DIM(sk_sph_forces)(sk_step *step, selkie_error *error)
{
    const double kick = sk_step_kick(step);
    float change[3];
    for (int d = 0; d < 3; d++)
        change[d] = d < SELKIE_DIM ? (float)(kick * step->scene->gravity[d]) : 0.0f;
    sk_force_field *fields;
    SK_TRY(sk_step_scratch(step, (size_t)(step->scene->force_count + 1) * sizeof *fields, "forces", (void **)&fields, error));
    const int field_count = step->scene->force_count ? sk_force_fields_in(step->scene, sk_step_force_window(step), fields) : 0;
    sk_particle *records = step->particles.records;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t i = 0; i < step->particles.count; i++) {
        if (records[i].flags & SK_PARTICLE_BOUNDARY)
            continue;
        float extra[3] = {0, 0, 0};
        if (field_count)
            sk_force_fields_velocity_change(fields, field_count, records[i].position, extra);
        for (int d = 0; d < SELKIE_DIM; d++)
            records[i].velocity[d] += change[d] + extra[d];
    }
    return SELKIE_OK;
}
