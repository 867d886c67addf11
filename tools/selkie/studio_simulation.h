/* The simulation of the studio: a thread that owns the world, takes commands between steps and publishes blobs. */
#ifndef SELKIE_TOOL_STUDIO_SIMULATION_H
#define SELKIE_TOOL_STUDIO_SIMULATION_H

#include "studio_exchange.h"
#include "tool.h"

typedef struct studio_simulation studio_simulation;

typedef struct studio_simulation_options {
    const known_scenes *scenes, *runs; /* must outlive it */
    const char *first;                 /* name of the scene to open, or NULL */
    int runs_at_once;                  /* it runs as soon as a page shows it */
    int threads;                       /* 0 = all cores */
} studio_simulation_options;

/* Starts the thread. */
studio_simulation *studio_simulation_start(studio_exchange *exchange, const studio_simulation_options *options);
/* Ends the thread after the step that it is in. */
void studio_simulation_stop(studio_simulation *simulation);

/* The same without a thread: the caller gives it turns. A turn takes a command or a step; it returns the seconds until
 * the next step is due, -1 where only a command makes a difference. */
studio_simulation *studio_simulation_open(studio_exchange *exchange, const studio_simulation_options *options);
double studio_simulation_turn(studio_simulation *simulation);
/* Of the positions and velocities of all particles; 0 without any. */
uint32_t studio_simulation_checksum(const studio_simulation *simulation);

#endif
