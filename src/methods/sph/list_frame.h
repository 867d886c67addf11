/* Constants of sums over neighbours and walls. For files compiled per dimension. */
#ifndef SK_METHODS_SPH_LIST_FRAME_H
#define SK_METHODS_SPH_LIST_FRAME_H

#include "methods/sph/near_walls.h"
#include "methods/sph/sph_pair_kernels.h"

typedef struct list_frame {
    sk_step *step;
    sk_sph *sph;
    sk_sph_list_constants constants;
    sk_sph_point_constants points;
} list_frame;

static inline list_frame make_list_frame(sk_step *step)
{
    sk_sph *sph = step->sph;
    const int wendland = sk_sph_is_wendland(step->scene);
    const double reach = sph->point.reach,
                 factor = sk_sph_kernel_factor(wendland, SELKIE_DIM, sph->support) * sph->volume * sph->kernel_scale;
    const list_frame frame = {.step = step,
                              .sph = sph,
                              .constants = {.reach2 = (float)(sph->support * sph->support),
                                            .inverse_support = (float)(1.0 / sph->support),
                                            .weight = (float)factor,
                                            .slope = (float)(factor * sph->spacing / (sph->support * sph->support)),
                                            .inverse_spacing = (float)(1.0 / sph->spacing),
                                            .order = (float)sk_sph_order_pressure(step),
                                            .wendland = wendland},
                              .points = {.reach2 = (float)(reach * reach),
                                         .inverse_reach = (float)(1.0 / reach),
                                         .weight = (float)(sph->point.weight / sph->volume),
                                         .steepness = (float)(sph->spacing / reach),
                                         .inverse_spacing = (float)(1.0 / sph->spacing)}};
    return frame;
}

#endif
