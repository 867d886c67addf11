/* The phase "hold": moves particles back that a too long step has moved into a solid cell. */
#include "methods/liquid_boundary/liquid_boundary.h"

#include <math.h>
#include <string.h>

static int in_solid(const sk_liquid_boundary *boundary, const sk_object *object, const double local[3])
{
    int32_t place = sk_voxels_at(&object->voxels, local);
    return place >= 0 && boundary->solid[object->first + (uint32_t)place];
}

/* The pressure against fluid depends on the current positions, not on the next ones. A particle that crosses a spacing
 * in a step may end between boundary particles, which push it on to either side. It returns to its old place relative
 * to the object and loses the velocity into the object. Particles that were inside before are left to the pressure. */
static int hold_particle(const sk_liquid_boundary *boundary, const sk_object *object, const sk_step *step,
                         sk_particle *particle)
{
    double x[3] = {0, 0, 0}, before[3] = {0, 0, 0}, local[3];
    for (int d = 0; d < step->dimension; d++) {
        x[d] = particle->position[d];
        before[d] = x[d] - step->dt * particle->velocity[d];
    }
    sk_pose_to_local(&object->next, x, local);
    if (!in_solid(boundary, object, local))
        return 0;
    sk_pose_to_local(&object->now, before, local);
    if (in_solid(boundary, object, local))
        return 0;
    sk_pose_to_world(&object->next, local, x);
    for (int d = 0; d < step->dimension; d++) {
        particle->velocity[d] = (float)((x[d] - before[d]) / step->dt);
        particle->position[d] = (float)x[d];
    }
    return 1;
}

/* Recomputes the position sums, since some particles have moved back. Spans of one size are added in order, for the
 * same bits on any number of threads. */
static selkie_code sum_again(sk_step *step, selkie_error *error)
{
    enum { PIECE = 4096 };
    typedef struct piece_sums {
        double position[3], kinetic, fastest2;
    } piece_sums;
    const sk_particles *particles = &step->particles;
    const int64_t pieces = (particles->count + PIECE - 1) / PIECE;
    piece_sums *sums;
    SK_TRY(sk_step_scratch(step, ((size_t)pieces + 1) * sizeof *sums, "hold", (void **)&sums, error));

    /* Sums of each piece. */
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t piece = 0; piece < pieces; piece++) {
        piece_sums sum = {0};
        const int64_t to = (piece + 1) * PIECE < particles->count ? (piece + 1) * PIECE : particles->count;
        for (int64_t p = piece * PIECE; p < to; p++) {
            const sk_particle *particle = &particles->records[p];
            double speed2 = 0.0;
            for (int d = 0; d < step->dimension && !(particle->flags & SK_PARTICLE_DEAD); d++) {
                speed2 += (double)particle->velocity[d] * particle->velocity[d];
                sum.position[d] += particle->position[d];
            }
            sum.kinetic += 0.5 * speed2;
            sum.fastest2 = fmax(sum.fastest2, speed2);
        }
        sums[piece] = sum;
    }

    /* Add the pieces in order. */
    double fastest2 = step->sums.kinetic = 0.0;
    memset(step->positions, 0, sizeof step->positions);
    for (int64_t piece = 0; piece < pieces; piece++) {
        step->sums.kinetic += sums[piece].kinetic;
        fastest2 = fmax(fastest2, sums[piece].fastest2);
        for (int d = 0; d < step->dimension; d++)
            step->positions[d] += sums[piece].position[d];
    }
    step->sums.max_speed = sqrt(fastest2);
    return SELKIE_OK;
}

selkie_code sk_liquid_boundary_hold(sk_step *step, selkie_error *error)
{
    sk_liquid_boundary *boundary = step->objects;
    sk_particles *particles = &step->particles;
    int64_t stopped = 0;
    boundary->stopped = 0;
    if (!boundary->boundaries || !(step->dt > 0.0))
        return SELKIE_OK;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(+ : stopped)
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        if (particle->flags & (SK_PARTICLE_CANDIDATE | SK_PARTICLE_BOUNDARY | SK_PARTICLE_DEAD))
            continue;
        for (int o = 0; o < boundary->object_count; o++)
            stopped += hold_particle(boundary, &boundary->objects[o], step, particle);
    }
    boundary->stopped = stopped;
    if (!stopped)
        return SELKIE_OK;
    sk_particles_moved(particles);
    return sum_again(step, error);
}
