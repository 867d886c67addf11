/* Droplets below a particle's size, beside the frames of a run. */
#ifndef SELKIE_TOOL_SPLASH_PIECES_H
#define SELKIE_TOOL_SPLASH_PIECES_H

#include <selkie/selkie.h>

/* Writes those of the world's droplets as they are now; the scene has splashes and splash.pairs > 0. */
selkie_code write_splash_pieces(const selkie_world *world, const char *path, selkie_error *error);

#endif
