/* Liquid boundaries at one particle, for the CPU and the GPU: release and arrival, the exchange of samples, the
 * velocities of candidates and boundary particles, the hold. liquid_boundary.h says what they are for. */
#ifndef SK_METHODS_LIQUID_BOUNDARY_ROLES_PLAIN_H
#define SK_METHODS_LIQUID_BOUNDARY_ROLES_PLAIN_H

#include <math.h>

#include "base/random.h"
#include "geom/pose_kernels.h"
#include "geom/voxels_kernels.h"
#include "particles/store.h"
#include <selkie/scene.h>

#define SK_ROLES_SOON 1e-9 /* s  a time this close counts as reached */

enum { SK_ROLE_FLUID, SK_ROLE_CANDIDATE, SK_ROLE_BOUNDARY }; /* values of the attribute "role" */

/* Which samples of an object release their particles in a step. */
enum sk_object_release {
    SK_OBJECT_KEEPS,    /* none */
    SK_OBJECT_RELEASES, /* all */
    SK_OBJECT_SWEEPS,   /* those that the sweep has reached */
    SK_OBJECT_SCATTERS  /* those whose random time has come */
};

/* An object during a step. */
typedef struct sk_object_frame {
    sk_pose now, next;               /*      at the start and at the end of the step */
    sk_voxels voxels;                /*      samples, in the object's own frame */
    uint32_t first;                  /*      number of its first sample over all objects */
    int easing;                      /*      selkie_easing */
    double alpha, beta;              /* 1, m/s  of Eqs. 4 and 5 */
    double easing_distance, arrival; /* m */
    int release;                     /*      sk_object_release */
    double begin, duration;          /* s    of the release */
    double direction[3], ends[2];    /* 1, m of a sweep: along this, from the first to the last sample */
} sk_object_frame;

/* What the phases work on. */
typedef struct sk_roles {
    const sk_object_frame *objects;
    int object_count, dimension;
    uint32_t sample_count;
    uint32_t *holder; /* [samples] 1 + index of the particle of a sample, 0: none */
    uint8_t *solid;   /* [samples] that particle is boundary */
    double late, dt;  /* s  releases up to this time have come; length of the step */
    sk_particle *records;
    uint32_t *samples, *roles; /* attributes */
} sk_roles;

/* --- Roles --- */

SK_KERNEL const sk_object_frame *object_of(const sk_roles *roles, uint32_t sample)
{
    int o = roles->object_count - 1;
    while (o > 0 && sample - 1 < roles->objects[o].first)
        o--;
    return &roles->objects[o];
}

SK_KERNEL void set_role(const sk_roles *roles, size_t p, uint32_t sample, int role)
{
    sk_particle *particle = &roles->records[p];
    roles->samples[p] = sample;
    roles->roles[p] = (uint32_t)role;
    particle->flags &= ~(uint32_t)(SK_PARTICLE_CANDIDATE | SK_PARTICLE_BOUNDARY);
    particle->flags |= role == SK_ROLE_BOUNDARY    ? (uint32_t)SK_PARTICLE_BOUNDARY
                       : role == SK_ROLE_CANDIDATE ? (uint32_t)SK_PARTICLE_CANDIDATE
                                                   : 0u;
}

/* Position (m) of sample n of an object at a pose. */
SK_KERNEL void sample_position(const sk_object_frame *object, const sk_pose *pose, uint32_t n, double x[3])
{
    double local[3];
    for (int d = 0; d < 3; d++)
        local[d] = (double)object->voxels.centers[n][d];
    sk_pose_to_world(pose, local, x);
}

/* Has sample n released its particle by a time (s)? */
SK_KERNEL int is_released(const sk_object_frame *object, uint32_t n, double time)
{
    if (object->release == SK_OBJECT_KEEPS || object->release == SK_OBJECT_RELEASES)
        return object->release == SK_OBJECT_RELEASES;
    double order = (double)sk_random_float(0x72656c65617365ULL, n, 0);
    if (object->release == SK_OBJECT_SWEEPS) {
        const double *ends = object->ends, *d = object->direction;
        const float *x = object->voxels.centers[n];
        const double along = (double)x[0] * d[0] + (double)x[1] * d[1] + (double)x[2] * d[2];
        order = ends[1] > ends[0] ? (along - ends[0]) / (ends[1] - ends[0]) : 0.0;
    }
    return time >= object->begin + order * object->duration;
}

/* What has become of a particle. */
typedef struct role_change {
    int released, arrived;
} role_change;

/* Updates a particle that belongs to a sample. Returns the sample's number if the particle keeps it, else 0. */
SK_KERNEL uint32_t update_role(const sk_roles *roles, size_t p, role_change *change)
{
    sk_particle *particle = &roles->records[p];
    const uint32_t sample = roles->samples[p] > roles->sample_count ? 0 : roles->samples[p]; /* invalid checkpoints */
    const sk_object_frame *object = sample ? object_of(roles, sample) : 0;
    const uint32_t n = sample ? sample - 1 - object->first : 0;
    const double x[3] = {(double)particle->position[0], (double)particle->position[1], (double)particle->position[2]};

    /* A particle without a sample, or with a released one, becomes fluid. */
    if (!sample || is_released(object, n, roles->late)) {
        if (particle->flags & SK_PARTICLE_BOUNDARY && sample) {
            /* It leaves with the velocity of the solid. */
            double v[3];
            sk_pose_velocity(&object->now, x, v);
            for (int d = 0; d < roles->dimension; d++)
                particle->velocity[d] = (float)v[d];
        }
        set_role(roles, p, 0, SK_ROLE_FLUID);
        change->released++;
        return 0;
    }

    /* A candidate near its sample becomes a boundary particle. */
    if (roles->roles[p] == SK_ROLE_CANDIDATE) {
        double target[3], distance2 = 0.0;
        sample_position(object, &object->now, n, target);
        for (int d = 0; d < roles->dimension; d++)
            distance2 += (target[d] - x[d]) * (target[d] - x[d]);
        if (distance2 <= object->arrival * object->arrival) {
            set_role(roles, p, sample, SK_ROLE_BOUNDARY);
            change->arrived++;
        }
    }
    return sample;
}

/* --- Exchange --- */

SK_KERNEL double squared_distance(const double a[3], const double b[3])
{
    return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]);
}

/* A particle and a sample in the object's own frame. */
SK_KERNEL void local_position(const sk_roles *roles, const sk_object_frame *object, size_t p, double local[3])
{
    const float *x = roles->records[p].position;
    const double world[3] = {(double)x[0], (double)x[1], (double)x[2]};
    sk_pose_to_local(&object->now, world, local);
}

SK_KERNEL void local_sample(const sk_object_frame *object, uint32_t n, double local[3])
{
    for (int d = 0; d < 3; d++)
        local[d] = (double)object->voxels.centers[n][d];
}

/* Is it a candidate that may exchange its sample? */
SK_KERNEL int is_on_its_way(const sk_roles *roles, size_t p)
{
    return roles->samples[p] &&
           (roles->records[p].flags & (SK_PARTICLE_CANDIDATE | SK_PARTICLE_DEAD)) == SK_PARTICLE_CANDIDATE;
}

/* The sample one cell ahead of a candidate, if another particle has it; else 0. */
SK_KERNEL uint32_t sample_ahead(const sk_roles *roles, size_t p)
{
    const sk_object_frame *object = object_of(roles, roles->samples[p]);
    const uint32_t n = roles->samples[p] - 1 - object->first;
    const double cell = object->voxels.cell;
    double x[3], own[3], ahead[3];
    local_position(roles, object, p, x);
    local_sample(object, n, own);
    const double way2 = squared_distance(x, own);
    if (way2 <= cell * cell)
        return 0; /* it has nearly arrived */
    for (int d = 0; d < 3; d++)
        ahead[d] = x[d] + (own[d] - x[d]) * cell / sqrt(way2);
    const int32_t m = sk_voxels_at(&object->voxels, ahead);
    const int held = m >= 0 && (uint32_t)m != n && roles->holder[object->first + (uint32_t)m];
    return held ? object->first + (uint32_t)m + 1 : 0;
}

/* Is the sum of the squared distances smaller if a candidate and the particle of the sample ahead exchange samples? */
SK_KERNEL int exchange_is_shorter(const sk_roles *roles, size_t p, uint32_t ahead)
{
    const sk_object_frame *object = object_of(roles, ahead);
    double x[3], y[3], own[3], other[3];
    local_position(roles, object, p, x);
    local_position(roles, object, (size_t)roles->holder[ahead - 1] - 1, y);
    local_sample(object, roles->samples[p] - 1 - object->first, own);
    local_sample(object, ahead - 1 - object->first, other);
    return squared_distance(x, other) + squared_distance(y, own) <
           squared_distance(x, own) + squared_distance(y, other);
}

SK_KERNEL void exchange_samples_of(const sk_roles *roles, size_t p, uint32_t ahead)
{
    const uint32_t own = roles->samples[p];
    const size_t q = (size_t)roles->holder[ahead - 1] - 1;
    set_role(roles, p, ahead, SK_ROLE_CANDIDATE);
    set_role(roles, q, own, SK_ROLE_CANDIDATE);
    roles->holder[ahead - 1] = (uint32_t)p + 1;
    roles->holder[own - 1] = (uint32_t)q + 1;
    roles->solid[ahead - 1] = roles->solid[own - 1] = 0;
}

/* --- Velocities --- */

/* Velocity (m/s) towards a target `offset` (m) away: beta, eased, and never past the target in a step (Eq. 4). */
SK_KERNEL void candidate_velocity(const sk_object_frame *object, double dt, const double offset[3], double velocity[3])
{
    const double distance = sqrt(offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2]);
    const double q = fmin(distance / object->easing_distance, 1.0);
    double speed = object->beta;
    if (object->easing == SELKIE_EASING_LINEAR)
        speed *= 0.1 + 0.9 * q;
    else if (object->easing == SELKIE_EASING_SMOOTH)
        speed *= 0.1 + 0.9 * q * q * (3.0 - 2.0 * q);
    if (dt > 0.0)
        speed = fmin(speed, distance / dt);
    for (int d = 0; d < 3; d++)
        velocity[d] = distance > 0.0 ? speed * offset[d] / distance : 0.0;
}

/* Eq. 5, without the part of the old velocity that would carry the candidate past its target in this step. The
 * animation is relative to the object; otherwise an object faster than the eased speed would leave its candidates
 * behind. */
SK_KERNEL void lead_candidate(const sk_roles *roles, const sk_object_frame *object, const double offset[3],
                              const double x[3], sk_particle *particle)
{
    double target[3], rigid[3], way[3] = {0, 0, 0}, animated[3], along = 0.0, distance = 0.0;
    for (int d = 0; d < 3; d++)
        target[d] = x[d] + offset[d];
    sk_pose_velocity(&object->next, target, rigid);
    for (int d = 0; d < roles->dimension; d++) {
        way[d] = offset[d] - roles->dt * rigid[d];
        distance += way[d] * way[d];
    }
    distance = sqrt(distance);
    candidate_velocity(object, roles->dt, way, animated);
    double blended[3] = {0, 0, 0};
    for (int d = 0; d < roles->dimension; d++) {
        blended[d] = (1.0 - object->alpha) * (double)particle->velocity[d] + object->alpha * (rigid[d] + animated[d]);
        along += distance > 0.0 ? (blended[d] - rigid[d]) * way[d] / distance : 0.0;
    }
    const double excess = roles->dt > 0.0 ? along - distance / roles->dt : 0.0;
    for (int d = 0; d < roles->dimension; d++) {
        if (excess > 0.0 && distance > 0.0)
            blended[d] -= excess * way[d] / distance;
        particle->velocity[d] = (float)blended[d];
    }
}

/* Moves a boundary particle to the position of its sample at the end of the step. The distance left at its arrival is
 * closed at the speed of the animation, not at once. */
SK_KERNEL void carry_boundary(const sk_roles *roles, const sk_object_frame *object, const double offset[3],
                              const double x[3], sk_particle *particle)
{
    const double dt = roles->dt;
    double solid[3], rest[3] = {0, 0, 0}, rigid[3] = {0, 0, 0}, length = 0.0;
    for (int d = 0; d < roles->dimension; d++)
        solid[d] = dt > 0.0 ? offset[d] / dt : 0.0;
    sk_pose_velocity(&object->now, x, rigid);
    for (int d = 0; d < roles->dimension; d++) {
        rest[d] = solid[d] - rigid[d];
        length += rest[d] * rest[d];
    }
    length = sqrt(length);
    /* The chord of a turn differs from its tangent by less than this if the steps are short. */
    const double way[3] = {rest[0] * dt, rest[1] * dt, rest[2] * dt};
    double eased[3];
    candidate_velocity(object, dt, way, eased);
    const double most = sqrt(eased[0] * eased[0] + eased[1] * eased[1] + eased[2] * eased[2]);
    const double share = length > most ? most / length : 1.0;
    for (int d = 0; d < roles->dimension; d++)
        particle->velocity[d] = (float)(rigid[d] + share * rest[d]);
}

/* The velocity of a candidate or a boundary particle. */
SK_KERNEL void animate_particle(const sk_roles *roles, size_t p)
{
    sk_particle *particle = &roles->records[p];
    if (!roles->samples[p] || !(particle->flags & (SK_PARTICLE_CANDIDATE | SK_PARTICLE_BOUNDARY)))
        return;
    const sk_object_frame *object = object_of(roles, roles->samples[p]);
    const double x[3] = {(double)particle->position[0], (double)particle->position[1], (double)particle->position[2]};
    double target[3], offset[3];
    sample_position(object, &object->next, roles->samples[p] - 1 - object->first, target);
    for (int d = 0; d < 3; d++)
        offset[d] = d < roles->dimension ? target[d] - x[d] : 0.0;
    if (particle->flags & SK_PARTICLE_BOUNDARY)
        carry_boundary(roles, object, offset, x, particle);
    else
        lead_candidate(roles, object, offset, x, particle);
}

/* --- Hold --- */

SK_KERNEL int in_solid(const sk_roles *roles, const sk_object_frame *object, const double local[3])
{
    const int32_t place = sk_voxels_at(&object->voxels, local);
    return place >= 0 && roles->solid[object->first + (uint32_t)place];
}

/* The pressure against fluid depends on the current positions, not on the next ones. A particle that crosses a spacing
 * in a step may end between boundary particles, which push it on to either side. It returns to its old place relative
 * to the object and loses the velocity into the object. Particles that were inside before are left to the pressure. */
SK_KERNEL int hold_beside(const sk_roles *roles, const sk_object_frame *object, sk_particle *particle)
{
    double x[3] = {0, 0, 0}, before[3] = {0, 0, 0}, local[3];
    for (int d = 0; d < roles->dimension; d++) {
        x[d] = (double)particle->position[d];
        before[d] = x[d] - roles->dt * (double)particle->velocity[d];
    }
    sk_pose_to_local(&object->next, x, local);
    if (!in_solid(roles, object, local))
        return 0;
    sk_pose_to_local(&object->now, before, local);
    if (in_solid(roles, object, local))
        return 0;
    sk_pose_to_world(&object->next, local, x);
    for (int d = 0; d < roles->dimension; d++) {
        particle->velocity[d] = (float)((x[d] - before[d]) / roles->dt);
        particle->position[d] = (float)x[d];
    }
    return 1;
}

/* Holds a particle back from every object. Returns how often it was moved. */
SK_KERNEL int hold_particle(const sk_roles *roles, sk_particle *particle)
{
    int stopped = 0;
    if (particle->flags & (SK_PARTICLE_CANDIDATE | SK_PARTICLE_BOUNDARY | SK_PARTICLE_DEAD))
        return 0;
    for (int o = 0; o < roles->object_count; o++)
        stopped += hold_beside(roles, &roles->objects[o], particle);
    return stopped;
}

#endif
