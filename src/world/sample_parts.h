/* The parts of sampling liquids (sample.c) that look at one place: which liquid, and which point of it, a sub-cell has.
 * Private to src/world. */
#ifndef SK_WORLD_SAMPLE_PARTS_H
#define SK_WORLD_SAMPLE_PARTS_H

#include "world/flow.h"
#include "world/sample_lattice.h"
#include "world/sample_level.h"
#include "world/world_internal.h"

enum {
    SK_SAMPLE_SPAN = 8,  /* cells per axis of a span, which is tested as a whole first */
    SK_SAMPLE_NEAR = 256 /* obstacles, or liquids, that reach into one span */
};

typedef struct sk_sampler {
    const selkie_scene *scene;
    const sk_sampling *sampling;
    const sk_grid *grid;
    const sk_solids *solids;
    sk_shape **shapes;
    sk_flow *flows;        /* [liquid_count] velocity fields */
    sk_level_rows *levels; /* [liquid_count] rows below level surfaces */
    sk_particle *records;  /* of all particles, where they are written */
    uint32_t *materials;   /* parallel to the records; NULL for a scene with one material */
    float *temperatures;   /* K  likewise; NULL without heat */
    int per_cell, per_axis, sub_cells;
    int jittered;    /* particles lie at random places in their sub-cells; a cut sub-cell has its share of them */
    double shift[3]; /* m  of the lattice, where particles are not jittered */
    int64_t stride;  /* of the cells that an estimate looks at; 1 = all */
    uint64_t *spans; /* [span_count] keys of the spans that liquids may reach, ascending */
    size_t span_count, span_capacity;
} sk_sampler;

/* Obstacles that can be within two cells of some places, ascending. */
typedef struct sk_near_solids {
    int count; /* all obstacles if there are more than SK_SAMPLE_NEAR */
    int32_t numbers[SK_SAMPLE_NEAR];
} sk_near_solids;

/* Those whose bounds a ball (m) reaches, with a margin of two cells. */
void sk_sample_list_solids(const sk_sampler *sampler, const double middle[3], double radius, sk_near_solids *near);

/* Is a point (m) in one of them? */
int sk_sample_in_solid(const sk_sampler *sampler, const sk_near_solids *solids, const double x[3]);

/* A span of cells, and what lies near it. */
typedef struct sk_sample_view {
    int begin[3], end[3];
    double middle[3], radius; /* m  of a ball around it */
    int liquids[SK_SAMPLE_NEAR], liquid_count;
    int has_solids;
    sk_near_solids solids;
} sk_sample_view;

void sk_sample_place_span(const sk_grid *grid, const int span[3], sk_sample_view *view);

/* Finds liquids and obstacles near the span; 0 = no liquid can be in it. */
int sk_sample_look_around(const sk_sampler *sampler, sk_sample_view *view);

/* Deep inside the first liquid and far from solids the count needs no test of single particles. Counting then costs
 * time in proportion to the surfaces. */
int sk_sample_is_whole(const sk_sampler *sampler, const sk_sample_view *view);

/* The liquid of sub-cell s of a cell, and its particle's place x (m); -1 = none. `cell` is the cell's number in the
 * domain. */
int sk_sample_sub_cell(const sk_sampler *sampler, const sk_sample_view *view, const int index[3], uint64_t cell, int s,
                       double x[3]);

#endif
