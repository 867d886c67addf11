/* The cell sort with attributes that lag. */
#include <string.h>

#include "base/dimension.h"
#include "methods/elastoplastic/lagging.h"
#include "methods/sorting.h"

static int is_lagging(const sk_lagging *lagging, const char *name)
{
    for (int n = 0; n < lagging->count; n++)
        if (strcmp(name, lagging->names[n]) == 0)
            return 1;
    return 0;
}

/* Room for the order, and the numbers 0, 1, 2 .. of the points before the sort. */
static selkie_code reserve_order(sk_step *step, sk_lagging *lagging, selkie_error *error)
{
    const size_t count = (size_t)step->particles.count + SK_LAGGING_BEYOND;
    SK_TRY(sk_reserve(step->memory, (void **)&lagging->order, &lagging->order_capacity, count, sizeof *lagging->order,
                      "order of points", error));
    SK_TRY(sk_reserve(step->memory, (void **)&lagging->identity, &lagging->identity_capacity, count,
                      sizeof *lagging->identity, "order of points", error));
    for (; lagging->counted < count; lagging->counted++)
        lagging->identity[lagging->counted] = (uint32_t)lagging->counted;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_lagging_sort)(sk_step *step, sk_lagging *lagging, selkie_error *error)
{
    sk_particles *all = &step->particles;
    sk_lagging_settle(step, lagging);
    SK_TRY(reserve_order(step, lagging, error));

    /* The numbers of the points take the place of the attributes that lag. */
    const sk_particles before = *all;
    int kept[SK_MAX_ATTRIBUTES];
    all->attribute_count = 0;
    for (int a = 0; a < before.attribute_count; a++)
        if (!is_lagging(lagging, before.attributes[a].name)) {
            kept[all->attribute_count] = a;
            all->attributes[all->attribute_count++] = before.attributes[a];
        }
    const int last = all->attribute_count++;
    all->attributes[last] = (sk_attribute){"order", 1, 1, lagging->identity, lagging->order};
    const selkie_code code = SK_DIM(sk_sort_particles)(step, error);

    /* The sort exchanged the copies of what it moved. */
    sk_attribute moved[SK_MAX_ATTRIBUTES];
    memcpy(moved, all->attributes, sizeof moved);
    memcpy(all->attributes, before.attributes, sizeof moved);
    all->attribute_count = before.attribute_count;
    for (int a = 0; a < last; a++)
        all->attributes[kept[a]] = moved[a];
    lagging->lags = code == SELKIE_OK && moved[last].data == lagging->order;
    if (lagging->lags)
        memset(lagging->order + all->count, 0, SK_LAGGING_BEYOND * sizeof *lagging->order);
    return code;
}
