/* The cell sort of mpm: records and what other methods add move, own attributes lag (mpm.h). */
#include <string.h>

#include "base/dimension.h"
#include "methods/elastoplastic/mpm.h"
#include "methods/sorting.h"

/* Is it an attribute of mpm? */
static int is_own(const char *name)
{
    for (int n = 0; n < SK_MPM_OWN; n++)
        if (strcmp(name, sk_mpm_own[n]) == 0)
            return 1;
    return 0;
}

/* Room for the order, and the numbers 0, 1, 2 .. of the points before the sort. */
static selkie_code reserve_order(sk_step *step, sk_mpm *mpm, selkie_error *error)
{
    const size_t count = (size_t)step->particles.count + SK_PARTICLES_BEYOND;
    SK_TRY(sk_reserve(step->memory, (void **)&mpm->order, &mpm->order_capacity, count, sizeof *mpm->order,
                      "order of points", error));
    SK_TRY(sk_reserve(step->memory, (void **)&mpm->identity, &mpm->identity_capacity, count, sizeof *mpm->identity,
                      "order of points", error));
    for (; mpm->counted < count; mpm->counted++)
        mpm->identity[mpm->counted] = (uint32_t)mpm->counted;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_mpm_sort)(sk_step *step, selkie_error *error)
{
    sk_mpm *mpm = sk_mpm_of(step);
    sk_particles *all = &step->particles;
    sk_mpm_settle(step);
    SK_TRY(reserve_order(step, mpm, error));

    /* The numbers of the points take the place of own attributes. */
    const sk_particles before = *all;
    int kept[SK_MAX_ATTRIBUTES];
    all->attribute_count = 0;
    for (int a = 0; a < before.attribute_count; a++)
        if (!is_own(before.attributes[a].name)) {
            kept[all->attribute_count] = a;
            all->attributes[all->attribute_count++] = before.attributes[a];
        }
    const int last = all->attribute_count++;
    all->attributes[last] = (sk_attribute){"order", 1, 1, mpm->identity, mpm->order};
    const selkie_code code = SK_DIM(sk_sort_particles)(step, error);

    /* The sort exchanged the copies of what it moved. */
    sk_attribute moved[SK_MAX_ATTRIBUTES];
    memcpy(moved, all->attributes, sizeof moved);
    memcpy(all->attributes, before.attributes, sizeof moved);
    all->attribute_count = before.attribute_count;
    for (int a = 0; a < last; a++)
        all->attributes[kept[a]] = moved[a];
    mpm->lags = code == SELKIE_OK && moved[last].data == mpm->order;
    if (mpm->lags)
        memset(mpm->order + all->count, 0, SK_PARTICLES_BEYOND * sizeof *mpm->order);
    return code;
}
