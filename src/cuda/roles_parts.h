/* Liquid boundaries in kernels. Private to src/cuda. */
#ifndef SK_CUDA_ROLES_PARTS_H
#define SK_CUDA_ROLES_PARTS_H

#include "cuda/device.h"
#include "methods/liquid_boundary/roles_plain.h"

/* On the device, for as long as the world lives: a step that takes more memory goes on with it. */
struct sk_cuda_roles {
    sk_roles all;      /*           what does not change from step to step */
    int sample, role;  /*           attributes */
    uint32_t *looking; /* [samples] 1 + the last candidate that looks at the sample; data->order has those before */
    unsigned long long *held; /* [objects] samples with a particle */
    sk_cuda_role_counts counts;
};

/* With the particles and the times of the step. */
SK_DEVICE sk_roles roles_in_step(const sk_step *step, const sk_cuda_roles *there)
{
    sk_roles all = there->all;
    all.late = step->time + SK_ROLES_SOON;
    all.dt = step->dt;
    all.records = step->particles.records;
    all.samples = step->particles.attributes[there->sample].data;
    all.roles = step->particles.attributes[there->role].data;
    return all;
}

#endif
