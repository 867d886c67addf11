/* Velocities on a lattice over a 2D scene: of the flow as it is, and of a drawing made free of divergence. */
#ifndef SELKIE_TOOL_STUDIO_FIELD_H
#define SELKIE_TOOL_STUDIO_FIELD_H

#include "studio_world.h"

typedef enum studio_field_kind { STUDIO_FIELD_FLOW, STUDIO_FIELD_DRAWING } studio_field_kind;

/* NULL: no memory. Where there is no liquid the velocity is 0. Layout: docs/manual/studio.md. */
studio_blob *studio_field_blob(const selkie_world *world, studio_field_kind kind);

/* The flow that a drawing (an element of reduced.drawn called "drawing") would be as a mode, 1 m/s where it is fastest.
 * Without a blob there is an error. */
selkie_code studio_drawing_blob(const studio_world *studio, const char *json, size_t length, studio_blob **blob,
                                selkie_error *error);

#endif
