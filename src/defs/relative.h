/* A scene in coordinates relative to its domain's origin.
 *
 * A world works in these coordinates, because particles have single precision: at 10^6 m from 0 a float is 6 cm wide.
 * Fields that are positions are marked as such in the field table (sk_field.place). */
#ifndef SK_DEFS_RELATIVE_H
#define SK_DEFS_RELATIVE_H

#include <selkie/scene.h>
#include "defs/fields.h"

/* value - origin. Both are taken as the shortest decimal numbers that give their bits, so that 1000000.3 - 1000000 is
 * 0.3 to the bit: a scene file that is shifted by decimal numbers describes the same world. */
double sk_relative(double value, double origin);

/* Moves everything in an own copy of a scene (sk_scene_copy) by its domain.origin, which becomes 0. Joined sides
 * (domain.periodic) become open: no wall is there. */
void sk_scene_make_relative(selkie_scene *scene);
/* Moves the positions in a struct by `origin` (m), as in a scene whose up direction is `up`. */
void sk_struct_make_relative(const sk_struct *type, void *base, const double origin[3], const double up[3]);

#endif
