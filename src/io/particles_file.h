/* Particles of one frame as files that other programs read: binary PLY, VTK XML (.vtp)
 * and compact files (.skp); PLY and compact files back again.
 *
 * docs/manual/output.md describes the formats and the programs that read them. Positions are in metres, velocities in
 * metres per second. Files have scene coordinates. Where single precision would blur them (sk_needs_doubles), positions
 * are doubles, and a comment of the PLY file names the origin that our reader subtracts again.
 */
#ifndef SK_IO_PARTICLES_FILE_H
#define SK_IO_PARTICLES_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <selkie/scene.h>
#include <selkie/world.h>
#include "base/status.h"
#include "io/up_turn.h"

/* Input of a writer: one frame. Strides are bytes from one particle to the next. In 2D two components of positions and
 * velocities are read; three are written. */
typedef struct sk_frame {
    int dimension;
    double time; /* s  */
    int64_t count;
    const float *position; /* m  relative to origin */
    size_t position_stride;
    const float *velocity; /* m/s, NULL = none */
    size_t velocity_stride;
    const uint32_t *id; /*    NULL = none */
    size_t id_stride;
    double particle_radius; /* m  for pscale */
    double cell_size;       /* m  compact files have positions to 1/1024 of it */
    double origin[3];       /* m  of the positions in the scene */
    selkie_attribute_names names;
    selkie_up_axis up;
    double scene_up[3];
    struct sk_cuda_mesher *mesher;      /* where its surface is made: world/mesher.h; NULL = by the CPU */
    const selkie_world *here;           /* its particles are those of this world on a device; NULL = the arrays above */
    int extra_count;                    /* more attributes; those of three floats are vectors and turn along */
    const selkie_attribute_view *extra; /* at most SK_MAX_EXTRA_ATTRIBUTES, of 1 to 16 components */
} sk_frame;

enum { SK_MAX_EXTRA_ATTRIBUTES = 32 };

/* Do floats at this distance from 0 have an error above 0.1 % of a length (m)? */
int sk_needs_doubles(const double origin[3], double length);

selkie_code sk_particles_write_ply(const sk_frame *frame, const char *path, selkie_error *error);
selkie_code sk_particles_write_vtp(const sk_frame *frame, const char *path, selkie_error *error);
/* Compact (.skp): positions to 1/1024 of a cell, half-precision velocities, compressed. particles_compact.h has the
 * layout. */
selkie_code sk_particles_write_compact(const sk_frame *frame, const char *path, selkie_error *error);
/* Houdini's classic binary geometry (.bgeo), names as Houdini has them. */
selkie_code sk_particles_write_bgeo(const sk_frame *frame, const char *path, selkie_error *error);
/* By the ending: .ply, .vtp, .skp or .bgeo. */
selkie_code sk_particles_write(const sk_frame *frame, const char *path, selkie_error *error);

/* Names of the velocity's components as properties of a PLY file. */
void sk_ply_velocity_names(selkie_attribute_names names, const char *components[3]);

/* An attribute beyond position, velocity and id. */
typedef struct sk_particles_extra {
    char name[32];
    selkie_attribute_type type;
    int components;
    uint32_t *data; /* [count][components]: the words of either type */
} sk_particles_extra;

typedef struct sk_particles_data {
    int dimension;          /*    3 where the file does not say */
    double time;            /* s  NaN where the file does not say */
    double particle_radius; /* m  0 where the file does not say */
    double cell_size;       /* m  of compact files; 0 where the file does not say */
    sk_up_turn turn;        /*    scene axes -> axes of position and velocity below */
    int64_t count;
    double origin[3];       /* m   of the positions, in the axes of the file; 0 where the file does not say */
    float *position;        /* m   [count][3] relative to origin */
    float *velocity;        /* m/s [count][3], NULL = none */
    uint32_t *id;           /*     [count], NULL = none */
    uint32_t *role;         /*     [count] of liquid boundaries, NULL = none */
    uint32_t *material;     /*     [count] index in the scene's table, NULL = none */
    float *stress;          /* Pa  [count] of elastoplastic points, NULL = none */
    float *plastic_strain;  /*     [count] likewise */
    float *temperature;     /* K   [count], NULL = none */
    float *liquid_fraction; /*     [count] 0 = solid, NULL = none */
    int extra_count;        /*     of compact files: all further attributes, those above too */
    sk_particles_extra extra[SK_MAX_EXTRA_ATTRIBUTES];
} sk_particles_data;

/* Points of a PLY file of any program: binary of either byte order or ASCII; x y z of any type, in any order among any
 * other scalars; velocity (velocity_x, vx, v_x, ...) and id are optional. A file that is truncated, has a wrong size or
 * holds a NaN is refused. */
selkie_code sk_particles_read_ply(const char *path, sk_particles_data **data, selkie_error *error);
selkie_code sk_particles_parse_ply(const void *bytes, size_t size, const char *name, sk_particles_data **data,
                                   selkie_error *error);
/* A compact file (.skp). Its origin and axes are those of the scene. */
selkie_code sk_particles_parse_compact(const void *bytes, size_t size, const char *name, sk_particles_data **data,
                                       selkie_error *error);
/* By the ending: .skp is compact, all else is read as PLY. */
selkie_code sk_particles_read(const char *path, sk_particles_data **data, selkie_error *error);
/* Attributes beyond position, velocity and id, as a frame wants them. Returns their number. */
int sk_particles_extras(const sk_particles_data *data, selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES]);
/* Rotates positions and velocities back to the scene's axes if the file has other axes. */
void sk_particles_turn_back(sk_particles_data *data);
/* Makes positions relative to another origin, in the current axes. */
void sk_particles_rebase(sk_particles_data *data, const double origin[3]);
void sk_particles_data_free(sk_particles_data *data);

#endif
