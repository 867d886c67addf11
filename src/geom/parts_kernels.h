/* Parts: the primitives, meshes, waves and ground of a shape or of a union, for kernels. Compiled by the C compiler and
 * by nvcc. */
#ifndef SK_GEOM_PARTS_KERNELS_H
#define SK_GEOM_PARTS_KERNELS_H

#include "geom/ground_kernels.h"
#include "geom/mesh_sample_kernels.h"
#include "geom/wave_kernels.h"

/* --- a mesh as a solid --- */

typedef struct sk_mesh_solid {
    const sk_mesh_tree *tree;
    const sk_mesh_samples *samples; /* NULL: not sampled */
    int sheet;                      /* a surface without an inside */
} sk_mesh_solid;

/* A sheet has two outer sides: where the sign of its distance says inside, it is turned round. */
SK_KERNEL_CALLED double sk_mesh_solid_distance(const sk_mesh_solid *mesh, const double x[3], double normal[3])
{
    const double distance = mesh->samples ? sk_samples_distance(mesh->samples, mesh->tree, x, normal)
                                          : sk_mesh_signed(mesh->tree, x, normal);
    if (!mesh->sheet || distance >= 0.0)
        return distance;
    for (int i = 0; normal && i < 3; i++)
        normal[i] = -normal[i];
    return -distance;
}

/* The samples decide beyond the radius. Their sign may be wrong at walls thinner than two samples: what is not clearly
 * inside counts as outside. */
SK_KERNEL_CALLED double sk_mesh_solid_within(const sk_mesh_solid *mesh, const double x[3], double radius,
                                             double normal[3])
{
    double sampled = INFINITY, clearly = 0.0;
    if (mesh->samples) {
        clearly = 2.0 * mesh->samples->cell;
        sampled = sk_samples_distance(mesh->samples, mesh->tree, x, normal);
        if (fabs(sampled) > radius + clearly)
            return mesh->sheet ? fabs(sampled) : sampled;
    }
    const double found = sk_mesh_within(mesh->tree, x, radius, normal);
    if (found <= radius) {
        for (int i = 0; mesh->sheet && found < 0.0 && normal && i < 3; i++)
            normal[i] = -normal[i];
        return mesh->sheet ? fabs(found) : found;
    }
    if (!mesh->samples)
        sampled = sk_mesh_signed(mesh->tree, x, normal);
    const double beyond = fmax(fabs(sampled), radius);
    return !mesh->sheet && sampled < -0.5 * clearly ? -beyond : beyond;
}

SK_KERNEL_CALLED int sk_mesh_solid_first_hit(const sk_mesh_solid *mesh, const double a[3], const double b[3],
                                             sk_surface_hit *hit)
{
    const int front = sk_mesh_first_hit(mesh->tree, a, b, &hit->at, hit->normal);
    return mesh->sheet ? front != 0 : front > 0;
}

/* --- parts --- */

enum sk_part_kind {
    SK_PART_BOX,
    SK_PART_SPHERE,
    SK_PART_CYLINDER,
    SK_PART_HALF_SPACE,
    SK_PART_MESH,
    SK_PART_WAVE,
    SK_PART_GROUND
};

typedef struct sk_shape_part {
    int kind, dimension;
    double center[3], half[3], radius; /* m */
    double axis[3], side[3];           /*    units: see struct sk_shape */
    double half_length;                /* m */
    sk_mesh_solid mesh;
    sk_wave wave;
    const sk_ground *ground;
} sk_shape_part;

/* Distance to one part; `radius` (m): a mesh is exact up to it, or sampled if it is below 0. */
SK_KERNEL double sk_part_distance(const sk_shape_part *part, const double x[3], double radius, double normal[3])
{
    double offset[3];
    for (int i = 0; i < 3; i++)
        offset[i] = (i < part->dimension ? x[i] : 0.0) - part->center[i];
    if (part->kind == SK_PART_BOX)
        return sk_box_distance(part->half, part->dimension, offset, normal);
    if (part->kind == SK_PART_SPHERE)
        return sk_sphere_distance(part->radius, offset, normal);
    if (part->kind == SK_PART_CYLINDER)
        return sk_cylinder_distance(part->axis, part->side, part->radius, part->half_length, offset, normal);
    if (part->kind == SK_PART_HALF_SPACE)
        return sk_half_space_distance(part->axis, offset, normal);
    if (part->kind == SK_PART_WAVE)
        return sk_wave_distance(&part->wave, offset, normal);
    if (part->kind == SK_PART_GROUND)
        return sk_ground_distance(part->ground, offset, normal);
    return radius < 0.0 ? sk_mesh_solid_distance(&part->mesh, offset, normal)
                        : sk_mesh_solid_within(&part->mesh, offset, radius, normal);
}

/* Distance to the nearest of some parts: sk_shape_distance_within, or sk_shape_distance_normal if `radius` is below 0.
 */
SK_KERNEL double sk_parts_distance(const sk_shape_part *parts, int count, const double x[3], double radius,
                                   double normal[3])
{
    double least = 1.7e308;
    for (int n = 0; n < count; n++) {
        double candidate[3];
        const double distance = sk_part_distance(&parts[n], x, radius, normal ? candidate : 0);
        if (n > 0 && !(distance < least))
            continue;
        least = distance;
        for (int i = 0; normal && i < 3; i++)
            normal[i] = candidate[i];
    }
    return least;
}

/* Waves and ground: steps by the distance, which no surface can be nearer than. The last one ends within `near` of the
 * surface or at the end of the path. A path that only grazes the surface is no hit. */
SK_KERNEL_CALLED int sk_part_advance(const sk_shape_part *part, const double a[3], const double way[3],
                                     sk_surface_hit *hit)
{
    enum { ADVANCES = 256 };
    const double length = sqrt(sk_hit_dot(way, way));
    double x[3], at = 0.0, distance = sk_part_distance(part, a, -1.0, hit->normal);
    if (distance < 0.0 || !(length > 0.0))
        return 0;
    const double near = 1e-9 * (length + distance);
    for (int advance = 0; advance < ADVANCES && at < 1.0; advance++) {
        at = fmin(1.0, at + fmax(distance, near) / length);
        for (int i = 0; i < 3; i++)
            x[i] = a[i] + at * way[i];
        distance = sk_part_distance(part, x, -1.0, hit->normal);
        if (distance <= near && sk_hit_dot(hit->normal, way) < 0.0) {
            hit->at = at;
            return 1;
        }
    }
    return 0;
}

/* The first hit of a segment on any part. A start inside one of several is inside their union: no hit. */
SK_KERNEL int sk_parts_first_hit(const sk_shape_part *parts, int count, const double a[3], const double b[3],
                                 sk_surface_hit *hit)
{
    int found = 0;
    for (int n = 0; n < count; n++) {
        const sk_shape_part *part = &parts[n];
        double offset[3], way[3], end[3];
        sk_surface_hit own;
        for (int i = 0; i < 3; i++) {
            offset[i] = (i < part->dimension ? a[i] : 0.0) - part->center[i];
            way[i] = i < part->dimension ? b[i] - a[i] : 0.0;
            end[i] = i < part->dimension ? b[i] : 0.0;
        }
        const int hits = part->kind == SK_PART_BOX      ? sk_hit_box(part->half, part->dimension, offset, way, &own)
                         : part->kind == SK_PART_SPHERE ? sk_hit_sphere(part->radius, offset, way, &own)
                         : part->kind == SK_PART_CYLINDER
                             ? sk_hit_cylinder(part->axis, part->radius, part->half_length, offset, way, &own)
                         : part->kind == SK_PART_HALF_SPACE ? sk_hit_plane(part->axis, offset, way, &own)
                         : part->kind == SK_PART_WAVE || part->kind == SK_PART_GROUND
                             ? sk_part_advance(part, offset, way, &own)
                             : sk_mesh_solid_first_hit(&part->mesh, offset, end, &own);
        if (hits && (!found || own.at < hit->at)) {
            *hit = own;
            found = 1;
        }
    }
    return found && (count == 1 || sk_parts_distance(parts, count, a, 0.0, 0) >= 0.0);
}

#endif
