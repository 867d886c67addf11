/* A small picture of how a scene starts, for the list of scenes: its shapes, without particles. */
#ifndef SELKIE_TOOL_STUDIO_SKETCH_H
#define SELKIE_TOOL_STUDIO_SKETCH_H

#include <selkie/scene.h>
#include "studio_exchange.h"

/* NULL: no memory. A shape that cannot be made is left out. Layout: docs/manual/studio.md. */
studio_blob *studio_sketch_blob(const selkie_scene *scene, const char *name);

#endif
