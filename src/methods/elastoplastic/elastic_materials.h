/* The laws of a scene's materials. */
#ifndef SK_METHODS_ELASTIC_MATERIALS_H
#define SK_METHODS_ELASTIC_MATERIALS_H

#ifndef SELKIE_DIM
#define SELKIE_DIM 3 /* the struct is the same in both dimensions */
#endif
#include "methods/elastoplastic/elastic_kernels.h"
#include "methods/step.h"

/* The law of material number m with its derived constants. */
sk_elastic_material sk_elastic_material_of(const sk_step *step, int m);

/* Softens a material: shear modulus and yield stress keep `share` of their values, the bulk modulus its own. */
void sk_elastic_soften(sk_elastic_material *material, int dimension, float share);

/* A body of fewer points has no shape that could deform: refuses a start of too few points. */
selkie_code sk_elastic_check_count(const sk_step *step, const char *form, selkie_error *error);

#endif
