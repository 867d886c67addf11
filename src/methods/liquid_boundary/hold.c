/* The phase "hold": moves particles back that a too long step has moved into a solid cell. */
#include "methods/liquid_boundary/liquid_boundary.h"

#include <math.h>
#include <string.h>

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
    const sk_roles roles = sk_roles_of(step);
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(+ : stopped)
    for (int64_t p = 0; p < particles->count; p++)
        stopped += hold_particle(&roles, &particles->records[p]);
    boundary->stopped = stopped;
    if (!stopped)
        return SELKIE_OK;
    sk_particles_moved(particles);
    return sum_again(step, error);
}
