/* The simulation of the studio: a thread that owns the world, takes commands between steps and publishes blobs. */
#ifndef SELKIE_TOOL_STUDIO_SIMULATION_H
#define SELKIE_TOOL_STUDIO_SIMULATION_H

#include "studio_exchange.h"
#include "tool.h"

typedef struct studio_simulation studio_simulation;

/* Starts the thread. `scenes` must outlive it. `first` is the name of the scene to open, or NULL. */
studio_simulation *studio_simulation_start(studio_exchange *exchange, const known_scenes *scenes, const char *first,
                                           int threads);
/* Ends the thread after the step that it is in. */
void studio_simulation_stop(studio_simulation *simulation);

#endif
