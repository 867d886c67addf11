/* The materials of a scene: lookup, what the table must hold, and which of its keys have no effect yet.
 *
 * A scene without a table has one material, whose density is that of its liquids. A material's index in the table is
 * what a particle carries (attribute "material"), where a scene has more than one. */
#ifndef SK_DEFS_MATERIALS_H
#define SK_DEFS_MATERIALS_H

#include <selkie/scene.h>
#include "base/status.h"
#include "defs/text.h"

enum { SK_MAX_MATERIALS = 255 };

/* Index of the material that a liquid or source names; 0 if it names none, -1 if there is none of that name. */
int sk_scene_find_material(const selkie_scene *scene, const char *name);
/* kg/m3 */
double sk_scene_density(const selkie_scene *scene, int material);
/* Do the materials differ in density? */
int sk_scene_has_densities(const selkie_scene *scene);
/* m2/s: the scene's viscosity, or the largest of its materials. */
double sk_scene_viscosity(const selkie_scene *scene);
/* m2/s: the scene's viscosity, or that of the material; of a table over temperature the largest, of a law that at its
 * reference. */
double sk_scene_viscosity_of(const selkie_scene *scene, int material);
/* N/m: the scene's surface tension, or the largest of its materials. */
double sk_scene_surface_tension(const selkie_scene *scene);
/* N/m: the scene's surface tension, or that of the material. */
double sk_scene_surface_tension_of(const selkie_scene *scene, int material);
/* m/s: the fastest pressure wave in elastoplastic points at rest; 0 = there are none. `material`, if not NULL, becomes
 * the one that has it. */
double sk_scene_wave_speed(const selkie_scene *scene, int *material);
/* Do the materials differ in viscosity? */
int sk_scene_has_viscosities(const selkie_scene *scene);

/* The rules of the table and of who names its materials; where says at which key one is broken. */
selkie_code sk_materials_check(const selkie_scene *scene, sk_path *where, selkie_error *error);

/* Longest step in cells with splashes, whatever time.cfl says. The flow itself has fewer thin sheets and jets in longer
 * ones: at 4 cells a dam break makes 28 % fewer droplets, while the rates of one and the same flow do not depend on the
 * step. */
#define SK_SPLASH_MOST_CELLS 2.5

/* What a scene says without effect, or without its full effect, one line each: "materials[0].surface_tension: has no
 * effect yet ...". Writes number `index` of these notes; returns 0 if there are not so many. */
int sk_scene_note(const selkie_scene *scene, int index, char *buffer, size_t size);

#endif
