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

#include "base/library.h"

/* clang-format off */
#define SK_EMBREE(F) \
    F(rtcNewDevice) F(rtcReleaseDevice) F(rtcGetDeviceError) F(rtcNewScene) F(rtcReleaseScene) F(rtcCommitScene) \
    F(rtcSetSceneBuildQuality) F(rtcNewGeometry) F(rtcReleaseGeometry) F(rtcCommitGeometry) F(rtcAttachGeometry) \
    F(rtcSetGeometryTimeStepCount) F(rtcSetSharedGeometryBuffer) F(rtcSetNewGeometryBuffer) F(rtcIntersect1) \
    F(rtcIntersect16) F(rtcOccluded1)
/* clang-format on */
SK_LIBRARY_TABLE(sk_embree, SK_EMBREE);

static inline selkie_code sk_embree_load(sk_embree *embree, selkie_error *error)
{
#if SELKIE_LATE_EMBREE
    static const char *const names[] = {SK_EMBREE(SK_LIBRARY_NAME)};
    return sk_library_load(SELKIE_LATE_EMBREE_FILE, SELKIE_LATE_EMBREE_FOLDER, names, sizeof *embree, embree,
                           "pictures", error);
#else
    (void)error;
    *embree = (sk_embree){SK_EMBREE(SK_LIBRARY_ADDRESS)};
    return SELKIE_OK;
#endif
}

/* Finds the first hit of a ray. */
static inline void sk_embree_intersect(const sk_embree *embree, RTCScene scene, struct RTCRayHit *ray)
{
#if SELKIE_EMBREE_MAJOR == 3
    struct RTCIntersectContext context;
    rtcInitIntersectContext(&context);
    embree->rtcIntersect1(scene, &context, ray);
#else
    embree->rtcIntersect1(scene, ray, NULL);
#endif
}

/* Finds the first hits of 16 rays that go the same way, about. valid[i] is -1 for those in use, 0 for the others. */
static inline void sk_embree_intersect16(const sk_embree *embree, RTCScene scene, const int *valid,
                                         struct RTCRayHit16 *rays)
{
#if SELKIE_EMBREE_MAJOR == 3
    struct RTCIntersectContext context;
    rtcInitIntersectContext(&context);
    context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
    embree->rtcIntersect16(valid, scene, &context, rays);
#else
    struct RTCIntersectArguments arguments;
    rtcInitIntersectArguments(&arguments);
    arguments.flags = RTC_RAY_QUERY_FLAG_COHERENT;
    embree->rtcIntersect16(valid, scene, rays, &arguments);
#endif
}

/* Finds any hit of a ray; ray->tfar is then negative. */
static inline void sk_embree_occluded(const sk_embree *embree, RTCScene scene, struct RTCRay *ray)
{
#if SELKIE_EMBREE_MAJOR == 3
    struct RTCIntersectContext context;
    rtcInitIntersectContext(&context);
    embree->rtcOccluded1(scene, &context, ray);
#else
    embree->rtcOccluded1(scene, ray, NULL);
#endif
}

#endif
#endif
