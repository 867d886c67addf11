/* The surface of a cloud of particles as a triangle mesh: particles -> smooth level set on sparse cells -> triangles.
 * Watertight (closed against the box it is clipped to), smooth, deterministic over threads. */
#ifndef SK_GEOM_SURFACE_H
#define SK_GEOM_SURFACE_H

#include <stddef.h>
#include <stdint.h>
#include <selkie/scene.h>
#include "base/memory.h"
#include "base/status.h"

typedef struct sk_surface_options {
    double particle_spacing; /* m  distance of neighbours at rest: cell_size / particles_per_cell^(1/dim) */
    double voxel_size;       /* m  of the extraction grid */
    double low[3], high[3];  /* m  the liquid's container; the surface is clipped to it */
    double smoothing;        /*    0 none .. 2 strongest */
    double particle_radius;  /*    spacings of the drop of a lone particle; 0 = its volume */
    int threads;             /*    0 = as OpenMP is set */
} sk_surface_options;

enum { SK_MESH_MOST_VALUES = 24 };

/* A number a vertex beyond normal and velocity. */
typedef struct sk_mesh_value {
    char name[32];
    float *data; /* [vertex_count] */
} sk_mesh_value;

typedef struct sk_mesh {
    size_t vertex_count;
    float *positions;  /* m   [vertex_count][3] */
    float *normals;    /*     [vertex_count][3] outward */
    float *velocities; /* m/s [vertex_count][3], NULL if none */
    size_t triangle_count;
    uint32_t *triangles; /*    [triangle_count][3], counter-clockwise seen from outside */
    int value_count;
    sk_mesh_value values[SK_MESH_MOST_VALUES];
} sk_mesh;

typedef struct sk_surface_particles {
    size_t count;
    const float *position;  /* m     xyz */
    size_t position_stride; /* bytes from one particle to the next */
    const float *velocity;  /* m/s   xyz; may be NULL */
    size_t velocity_stride; /* bytes from one particle to the next */
} sk_surface_particles;

/* The scene's keys for meshes; the container is its domain. */
void sk_surface_options_init(sk_surface_options *options, const selkie_scene *scene);

/* 3D only. */
selkie_code sk_surface_extract(const sk_surface_particles *particles, const sk_surface_options *options, sk_mesh *mesh,
                               selkie_error *error);
/* A value of the particles: floats, or whole numbers whose means are rounded. */
typedef struct sk_surface_value {
    const char *name;
    const void *data;
    size_t stride; /* bytes */
    int is_whole;
} sk_surface_value;

/* Adds means of these values over the particles near each vertex, and the vorticity (1/s) where the particles have
 * velocities. */
selkie_code sk_surface_add_values(const sk_surface_particles *particles, const sk_surface_options *options, int count,
                                  const sk_surface_value *values, sk_mesh *mesh, selkie_error *error);

/* The level set behind a surface: signed distances and velocities at nodes, in blocks of 8 x 8 x 8. Node (i, j, k) of
 * block c lies at origin + (8 c + (i, j, k)) voxel. Missing blocks are air. */
typedef struct sk_volume {
    double origin[3], voxel[3]; /* m */
    float background;           /* m   distances beyond this are not known */
    size_t block_count;
    int32_t (*coordinates)[3]; /*     not negative, in ascending order of z, y, x */
    float *surface;            /* m   [block_count][512], x fastest, negative inside */
    float *velocity;           /* m/s [block_count][512][3], NaN where no particle is near; NULL = none */
    int value_count;
    sk_mesh_value values[SK_MESH_MOST_VALUES]; /* [block_count][512] likewise */
} sk_volume;

/* With means of `count` values of the particles. */
selkie_code sk_surface_volume(const sk_surface_particles *particles, const sk_surface_options *options, int count,
                              const sk_surface_value *values, sk_volume *volume, selkie_error *error);
void sk_volume_free(sk_volume *volume);

/* Volume inside a closed mesh, m3. */
double sk_mesh_volume(const sk_mesh *mesh);
/* Edges that do not have exactly two triangles of opposite direction; 0 for a closed mesh. */
size_t sk_mesh_open_edges(const sk_mesh *mesh);
void sk_mesh_free(sk_mesh *mesh);

#endif
