/* Copies between points, their records and arrays: for a device that has the records of the world. */
#include <string.h>

#include "methods/shape_matching/shape_matching.h"

void sk_soft_give_velocities(const sk_step *step, float (*velocities)[3])
{
    const sk_soft *soft = step->soft;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = 0; k < soft->point_count; k++)
        if (soft->record[k] >= 0)
            memcpy(velocities[k], step->particles.records[soft->record[k]].velocity, sizeof velocities[k]);
}

void sk_soft_take_places(sk_step *step, const float (*places)[3])
{
    const sk_soft *soft = step->soft;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = 0; k < soft->point_count; k++)
        if (soft->record[k] >= 0)
            memcpy(step->particles.records[soft->record[k]].position, places[k], sizeof places[k]);
}

void sk_soft_give_points(const sk_step *step, int of_velocity, double (*values)[3])
{
    const sk_soft *soft = step->soft;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = 0; k < soft->point_count; k++)
        memcpy(values[k], of_velocity ? soft->points[k].velocity : soft->points[k].position, sizeof values[k]);
}

void sk_soft_take_changes(const sk_step *step, const float (*from)[3], double *changes)
{
    const sk_soft *soft = step->soft;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (uint32_t k = 0; k < soft->point_count; k++)
        for (int d = 0; d < 3; d++)
            changes[3 * (size_t)k + (size_t)d] = (double)from[k][d];
}
