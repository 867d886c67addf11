/* Output of a world: particle files, surfaces, pictures. A program can write with these the files that the command
 * writes. */
#ifndef SELKIE_OUTPUT_H
#define SELKIE_OUTPUT_H

#include <selkie/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The format follows the ending: .ply (binary), .vtp (VTK XML, binary appended), .skp (compact). Names and up axis as
 * in scene.output. Written under another name and renamed: a file appears whole or not at all. */
SELKIE_API selkie_code selkie_write_particles(const selkie_world *world, const char *path, selkie_error *error);

/* The liquid's surface as triangles with velocity at the points (.ply binary or .obj). 3D worlds only. */
SELKIE_API selkie_code selkie_write_surface(const selkie_world *world, const char *path, selkie_error *error);

/* A picture of the world as it is now (.png), with the scene's camera. */
SELKIE_API selkie_code selkie_write_picture(const selkie_world *world, const char *path, selkie_error *error);

#ifdef __cplusplus
}
#endif
#endif
