/* Spacing, one pair at a time. */
#include "methods/particle_spacing/spacing_parts.h"
#include "particles/neighbour_kernels.h"

/* Displacement of particle p by its neighbours and the solids. */
static pushed push_particle(const spacing_frame *frame, law rule, const sk_neighbour_lists *lists, uint32_t p)
{
    const sk_particle *records = frame->step->particles.records;
    const float together = 1e-10f * (frame->radius * frame->radius);
    const float own_pairs = rule == LAW_CONSTRAIN ? pairs_of(frame, p) : 1.0f;
    pushed sum = {{0, 0, 0}, 0};
    for (uint64_t n = lists->first[p]; n < lists->first[p + 1]; n++) {
        const uint32_t other = lists->neighbours[n];
        const float pairs = rule == LAW_CONSTRAIN ? fmaxf(pairs_of(frame, other), own_pairs) : 1.0f;
        float direction[3], r = 0.0f;
        const float squared = SK_DIM(sk_difference)(records[p].position, records[other].position, direction);
        if (squared >= range_of(frame, rule) * range_of(frame, rule))
            continue;
        if (squared > together) {
            r = sqrtf(squared);
            for (int d = 0; d < SELKIE_DIM; d++)
                direction[d] /= r;
        } else {
            SK_DIM(sk_spacing_direction)(records[p].id, records[other].id, direction);
        }
        push_along(frame, rule, r, pairs, direction, &sum);
    }
    push_by_solids(frame, rule, records[p].position, own_pairs, &sum);
    return sum;
}

/* Both laws of a sweep use the same lists, because particles move only after both. */
static selkie_code push_plain(const spacing_frame *frame, law rule, void *scratch, selkie_error *error)
{
    const sk_step *step = frame->step;
    sk_neighbour_lists *lists = scratch;
    if (rule != LAW_CONSTRAIN) {
        const sk_neighbour_search search = {.index = &frame->index,
                                            .records = step->particles.records,
                                            .radius2 = frame->outer * frame->outer,
                                            .reach = frame->reach,
                                            .group = frame->group};
        SK_TRY(SK_DIM(sk_neighbour_lists_build)(lists, &search, step->threads, error));
    }
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++) {
        const pushed sum = push_particle(frame, rule, lists, (uint32_t)p);
        store_push(frame, rule, (uint32_t)p, &sum);
    }
    return SELKIE_OK;
}

static selkie_code space_particles(sk_step *step, double radius, double strength, int sweeps, selkie_error *error)
{
    if (!spacing_acts(step))
        return SELKIE_OK;
    const spacing_frame frame = make_spacing_frame(step, radius, strength);
    sk_neighbour_lists lists = {.memory = step->memory};
    selkie_code code = run_laws(&frame, sweeps, push_plain, &lists, error);
    sk_neighbour_lists_free(&lists);
    return code;
}

selkie_code SK_DIM(sk_spacing_ando_plain)(sk_step *step, selkie_error *error)
{
    const selkie_ando_def *def = &step->scene->ando;
    return space_particles(step, def->radius, def->stiffness * step->dt, 0, error);
}

selkie_code SK_DIM(sk_spacing_sato_plain)(sk_step *step, selkie_error *error)
{
    const selkie_sato_def *def = &step->scene->sato;
    return space_particles(step, def->radius, 0.0, def->iterations, error);
}
