/* Embree 3 or 4, whichever the build found. The two differ in the names of their headers and in how a ray is sent off;
 * both differences stay in this header. Only for builds with embree. */
#ifndef SK_RENDER_EMBREE_H
#define SK_RENDER_EMBREE_H

#include "selkie_config.h"

#if SELKIE_HAVE_EMBREE
#if SELKIE_EMBREE_MAJOR == 3
#include <embree3/rtcore.h>
#else
#include <embree4/rtcore.h>
#endif

#include <stddef.h>

/* Finds the first hit of a ray. */
static inline void sk_embree_intersect(RTCScene scene, struct RTCRayHit *ray)
{
#if SELKIE_EMBREE_MAJOR == 3
    struct RTCIntersectContext context;
    rtcInitIntersectContext(&context);
    rtcIntersect1(scene, &context, ray);
#else
    rtcIntersect1(scene, ray, NULL);
#endif
}

/* Finds the first hits of 16 rays that go the same way, about. valid[i] is -1 for those in use, 0 for the others. */
static inline void sk_embree_intersect16(RTCScene scene, const int *valid, struct RTCRayHit16 *rays)
{
#if SELKIE_EMBREE_MAJOR == 3
    struct RTCIntersectContext context;
    rtcInitIntersectContext(&context);
    context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
    rtcIntersect16(valid, scene, &context, rays);
#else
    struct RTCIntersectArguments arguments;
    rtcInitIntersectArguments(&arguments);
    arguments.flags = RTC_RAY_QUERY_FLAG_COHERENT;
    rtcIntersect16(valid, scene, rays, &arguments);
#endif
}

/* Finds any hit of a ray; ray->tfar is then negative. */
static inline void sk_embree_occluded(RTCScene scene, struct RTCRay *ray)
{
#if SELKIE_EMBREE_MAJOR == 3
    struct RTCIntersectContext context;
    rtcInitIntersectContext(&context);
    rtcOccluded1(scene, &context, ray);
#else
    rtcOccluded1(scene, ray, NULL);
#endif
}

#endif
#endif
