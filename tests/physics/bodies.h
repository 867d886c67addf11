/* Rigid bodies in the scenes of tests. */
#ifndef PHYSICS_BODIES_H
#define PHYSICS_BODIES_H

#include "physics.h"

enum { MOST_BODIES = 64 };
static selkie_body_def bodies[MOST_BODIES];

UNUSED_IS_FINE selkie_body_def *add_body(test_scene *t, selkie_shape shape, double density)
{
    selkie_body_def *body = &bodies[t->scene.body_count++];
    t->scene.bodies = bodies;
    selkie_body_defaults(body);
    body->shape = shape;
    body->density = density;
    return body;
}

UNUSED_IS_FINE selkie_body_state body_of(const selkie_world *world, int body)
{
    selkie_body_state state;
    assert_int_equal(selkie_world_body(world, body, &state), SELKIE_OK);
    return state;
}

/* A wave that hits a light and a heavy body, which hit each other. */
UNUSED_IS_FINE void wave(test_scene *t, int dimension)
{
    tank(t, dimension, 1.0, 0.75, 0.5, dimension == 3 ? 1.0 / 16 : 1.0 / 32);
    t->scene.volume = SELKIE_VOLUME_IDP;
    t->scene.time.step = 0.01;
    add_liquid(t, box_shape(0, 0, 0, 0.4, 0.6, 0.5));
    add_liquid(t, box_shape(0.4, 0, 0, 1, 0.25, 0.5));
    add_body(t, box_shape(0.5, 0.2, 0.1, 0.7, 0.35, 0.4), 300);
    add_body(t, sphere_shape(0.8, 0.35, 0.25, 0.08), 20);
}

/* The momentum along y, kg m/s, of the particles and a body. */
UNUSED_IS_FINE double momentum_of(const selkie_world *world, int body)
{
    const selkie_body_state state = body_of(world, body);
    const double mass = selkie_world_particle_mass(world);
    const selkie_attribute_view velocity = attribute_of(world, "velocity");
    double sum = state.mass * state.velocity[1];
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        sum += mass * (double)particle_of(&velocity, p)[1];
    return sum;
}

/* A drop flies at a body in free space. */
UNUSED_IS_FINE void drop_on_body(test_scene *t)
{
    tank(t, 2, 1.0, 1.0, 1, 1.0 / 32);
    t->scene.gravity[1] = 0.0;
    t->scene.volume = SELKIE_VOLUME_NONE;
    t->scene.time.step = 0.005;
    add_liquid(t, sphere_shape(0.5, 0.75, 0, 0.1));
    t->liquids[0].velocity[1] = -2.0;
    add_body(t, box_shape(0.45, 0.4, 0, 0.7, 0.5, 1), 800);
}

#endif
