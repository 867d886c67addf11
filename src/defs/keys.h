/* What the files of rows (keys_*.c) share: each holds the keys of one part of a scene, and keys_scene.c those of the
 * scene itself, which names the others. The order of rows is their order in files and in the reference. */
#ifndef SK_DEFS_KEYS_H
#define SK_DEFS_KEYS_H

#include "defs/rows.h"

extern const sk_struct sk_time_struct;
extern const sk_struct sk_frame_struct;
extern const sk_struct sk_gravity_key_struct;
extern const sk_struct sk_particles_struct;
extern const sk_struct sk_pressure_struct;
extern const sk_struct sk_idp_struct;
extern const sk_struct sk_losasso_struct;
extern const sk_struct sk_ando_struct;
extern const sk_struct sk_sato_struct;
extern const sk_struct sk_unilateral_struct;
extern const sk_struct sk_sph_struct;
extern const sk_struct sk_advection_struct;
extern const sk_struct sk_reduced_struct;
extern const sk_struct sk_heat_struct;
extern const sk_struct sk_output_struct;
extern const sk_struct sk_render_struct;

/* End of the row of a file with a motion: of the frame, of obstacles. */
#define MOTION_FILE                                                                                                    \
    .text = "", .doc =                                                                                                 \
                    "CSV of keyframes: a line of names, time and some of x, y, z (m), rx, ry, rz (deg), then a line "  \
                    "for each keyframe; replaces keyframes"

#endif
