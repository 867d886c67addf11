/* Members of a shape. Only for the files of geom that implement shape.h. */
#ifndef SK_GEOM_SHAPE_INTERNAL_H
#define SK_GEOM_SHAPE_INTERNAL_H

#include "geom/heightfield.h"
#include "geom/mesh_distance.h"
#include "geom/mesh_sample.h"
#include "geom/parts_kernels.h"
#include "geom/shape.h"

struct sk_shape {
    selkie_shape_kind kind;
    int dimension;
    sk_memory *memory;
    double center[3];   /* m  box, sphere, cylinder: the middle; half space: a point of the plane */
    double half[3];     /* m  box: half the size */
    double radius;      /* m  sphere, cylinder */
    double axis[3];     /*    cylinder: unit; half space: outward unit normal; wave: unit, up */
    double side[3];     /*    cylinder: a unit vector across the axis; wave: unit, along the wave number */
    double half_length; /* m  cylinder */
    double level;       /* m  wave: height of the mean along `axis` */
    double amplitude;   /* m  wave */
    double wave_number; /* 1/m wave, along `side`; 0: flat */
    double phase;       /* rad wave */
    sk_mesh_distance *mesh;
    int sheet;              /*    mesh: a surface without an inside */
    sk_mesh_sample *sample; /* NULL: not sampled */
    sk_heightfield *heightfield;
    int child_count;
    sk_shape **children; /*    union */
};

/* The mesh of a shape, for its queries. */
sk_mesh_solid sk_shape_mesh_solid(const sk_shape *shape);
/* Polygons and pictures become meshes of segments. */
selkie_code sk_shape_make_polygon(const selkie_shape *def, const char *what, sk_shape *shape, selkie_error *error);
selkie_code sk_shape_make_picture(const selkie_shape *def, const char *folder, const char *what, sk_shape *shape,
                                  selkie_error *error);
static inline double sk_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

#endif
