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

/* --- The same into memory --- */

/* Triangles with normals and velocities at their corners. Positions are relative to `origin`: single precision would
 * lose them far from 0. */
typedef struct selkie_surface {
    int64_t vertex_count;
    float *positions;  /* m   [vertex_count][3] */
    float *normals;    /*     [vertex_count][3] outward */
    float *velocities; /* m/s [vertex_count][3] */
    int64_t triangle_count;
    uint32_t *triangles; /*   [triangle_count][3], counterclockwise seen from outside */
    double origin[3];    /* m add it to the positions to get scene coordinates */
} selkie_surface;

/* 3D worlds only. Release it with selkie_surface_free(). */
SELKIE_API selkie_code selkie_world_surface(const selkie_world *world, selkie_surface *surface, selkie_error *error);
SELKIE_API void selkie_surface_free(selkie_surface *surface);

typedef struct selkie_picture {
    int width, height;
    uint8_t *pixels; /* [height][width][3] red, green, blue (sRGB), the top row first */
} selkie_picture;

/* A picture with the scene's camera and size. Release it with selkie_picture_free(). */
SELKIE_API selkie_code selkie_world_picture(const selkie_world *world, selkie_picture *picture, selkie_error *error);
SELKIE_API void selkie_picture_free(selkie_picture *picture);

/* The dye of a reduced fluid as it is now, over the whole domain: reduced.dye_pixels for each cell. Bodies and
 * obstacles are grey. Release it with selkie_picture_free(). A scene without reduced.dye is refused. */
SELKIE_API selkie_code selkie_world_dye(const selkie_world *world, selkie_picture *picture, selkie_error *error);
/* The same as a file (.png). */
SELKIE_API selkie_code selkie_write_dye(const selkie_world *world, const char *path, selkie_error *error);

#ifdef __cplusplus
}
#endif
#endif
