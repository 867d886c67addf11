#include "world/fronts.h"

#include <math.h>

static void insert(sk_front *front, float place, int enough)
{
    int n = front->count < enough ? front->count++ : enough - 1;
    for (; n > 0 && front->ahead[n - 1] < place; n--)
        front->ahead[n] = front->ahead[n - 1];
    front->ahead[n] = place;
}

/* Places behind it do not count. */
static float last_place(const sk_front *front, int enough)
{
    return front->count < enough ? -HUGE_VALF : front->ahead[enough - 1];
}

void sk_front_see(sk_front *front, const selkie_probe_def *probe, int enough, const sk_moved_block *block)
{
    const int axis = (int)probe->axis;
    const float sign = probe->direction >= 0 ? 1.0f : -1.0f;
    float last = last_place(front, enough);
    if (sign * (probe->direction >= 0 ? block->high[axis] : block->low[axis]) <= last)
        return;
    for (int64_t p = 0; p < block->count; p++) {
        const float place = sign * block->records[p].position[axis];
        if (place > last && !(block->records[p].flags & SK_PARTICLE_DEAD)) {
            insert(front, place, enough);
            last = last_place(front, enough);
        }
    }
}

void sk_front_join(sk_front *front, const sk_front *other, int enough)
{
    for (int n = 0; n < other->count; n++)
        if (other->ahead[n] > last_place(front, enough))
            insert(front, other->ahead[n], enough);
}
