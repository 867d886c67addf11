/* Bodies of particles: which they are, and checks. */
#ifndef SK_DEFS_SOFT_H
#define SK_DEFS_SOFT_H

#include <selkie/scene.h>
#include "defs/text.h"

/* Is it a material of bodies? */
int sk_material_is_solid(const selkie_scene *scene, int material);
/* The material of a body of particles; -1 for a rigid shape. */
int sk_body_material(const selkie_scene *scene, int body);
/* The number of bodies of particles; the others are rigid shapes. */
int sk_scene_particle_bodies(const selkie_scene *scene);
/* The number of the body among those of its sort, and the body with a number among the rigid shapes. */
int sk_body_number(const selkie_scene *scene, int body);
int sk_rigid_shape(const selkie_scene *scene, int number);

/* Checks materials of bodies, and the bodies that are made of them. */
selkie_code sk_soft_check(const selkie_scene *scene, sk_path *where, selkie_error *error);

#endif
