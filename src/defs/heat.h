/* Heat of a scene: whether it is simulated, viscosity over temperature, and checks of the keys. */
#ifndef SK_DEFS_HEAT_H
#define SK_DEFS_HEAT_H

#include <selkie/scene.h>
#include "base/status.h"
#include "defs/text.h"

/* Is heat simulated? */
int sk_scene_has_heat(const selkie_scene *scene);
/* Does some material melt? */
int sk_scene_melts(const selkie_scene *scene);
/* The lowest and highest temperature (K) that the scene names. */
void sk_scene_temperatures(const selkie_scene *scene, double *lowest, double *highest);

/* Does the viscosity of a material, or of some material, depend on temperature? */
int sk_material_has_law(const selkie_material_def *material);
int sk_scene_has_viscosity_law(const selkie_scene *scene);
/* m2/s: of a material of the table at a temperature (K). */
double sk_viscosity_at(const selkie_scene *scene, int material, double temperature);

/* Checks the keys of heat; others pass. */
selkie_code sk_heat_check(const selkie_scene *scene, sk_path *where, selkie_error *error);

#endif
