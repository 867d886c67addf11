/* A method, whole: air drag on the particles of a scene.
 *
 * It shows all that a new method needs: a folder of its own (here one file), a descriptor, and a line in the list of
 * methods (src/world/methods.c). Every particle slows down as dv/dt = -v / time, exactly integrated, before the
 * transfer to the grid. A test compiles this file and runs it beside the methods of the library.
 */
#include "drag_method.h"

#include <math.h>

/* State of the method: made with the world, found again by its descriptor, saved in checkpoints. */
typedef struct drag {
    double time;     /* s  in which speeds fall to 1/e */
    double momentum; /* kg m/s  taken out so far, along x */
} drag;

/* A real method asks the scene: return scene->drag.time > 0.0; */
static int takes_part(const selkie_scene *scene)
{
    (void)scene;
    return 1;
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    drag *state = sk_allocate_zeroed(step->memory, sizeof *state);
    if (!state)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "drag: no memory");
    state->time = 0.5;
    sk_step_set_state(step, &sk_method_drag, state);
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_release(step->memory, sk_step_state(step, &sk_method_drag));
}

/* The phase. What happens to one particle stands in the kernel header, for every backend. Sums are added in the order
 * of the particles, so that they do not depend on the number of threads. */
static selkie_code slow_down(sk_step *step, selkie_error *error)
{
    (void)error;
    drag *state = sk_step_state(step, &sk_method_drag);
    const float keep = sk_drag_keep((float)step->dt, (float)state->time);
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    double taken = 0.0; /* kg m/s */
    for (int64_t p = 0; p < step->particles.count; p++) {
        float *velocity = step->particles.records[p].velocity;
        taken += sk_step_mass(step, material, p) * (1.0 - keep) * velocity[0];
        for (int d = 0; d < 3; d++)
            velocity[d] = sk_drag_velocity(velocity[d], keep);
    }
    state->momentum += taken;
    return SELKIE_OK;
}

static sk_chunk_view state_of(const sk_step *step)
{
    return (sk_chunk_view){"drag", sk_step_state(step, &sk_method_drag), sizeof(drag)};
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    if (chunk->bytes != sizeof(drag))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the state of drag has %llu bytes, not %zu", file,
                       (unsigned long long)chunk->bytes, sizeof(drag));
    memcpy(sk_step_state(step, &sk_method_drag), chunk->data, sizeof(drag));
    return SELKIE_OK;
}

/* Drag must not be asked to take out more than a step can resolve. */
static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    const drag *state = sk_step_state(step, &sk_method_drag);
    limits->speed = fmax(limits->speed, step->grid.cell_size / state->time);
}

double sk_drag_momentum(const sk_step *step)
{
    const drag *state = sk_step_state(step, &sk_method_drag);
    return state->momentum;
}

const sk_method sk_method_drag = {
    .name = "drag",
    .needs = SK_NEEDS_PARTICLES,
    .takes_part = takes_part,
    .create = create,
    .destroy = destroy,
    .phases = {{.name = "drag", .slot = SK_SLOT_SOLIDS, .run = SK_ONE_FORM_ANY_DIMENSION(slow_down)}},
    .limit_step = limit_step,
    .state = state_of,
    .restore = restore,
};
