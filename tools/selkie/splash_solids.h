/* Obstacles of a scene beside the samples and droplets of `selkie splash`. Points are relative to the scene's origin.
 */
#ifndef SELKIE_TOOL_SPLASH_SOLIDS_H
#define SELKIE_TOOL_SPLASH_SOLIDS_H

#include <selkie/selkie.h>

typedef struct splash_solids splash_solids;

/* The obstacles of a scene at the time 0; its array of obstacles must outlive them. NULL without memory or a mesh that
 * cannot be read.
 */
splash_solids *splash_solids_open(const selkie_scene *scene, selkie_error *error);
void splash_solids_close(splash_solids *solids);
/* Moves the obstacles to their poses at a time (s). Returns 0 where none has moved. */
int splash_solids_move(splash_solids *solids, double time);
/* Distance (m) to the nearest obstacle, below 0 inside; infinite without obstacles. */
double splash_solids_distance(const splash_solids *solids, const float position[3]);

#endif
