#include "methods/elastoplastic/lagging.h"

#include <string.h>

void sk_lagging_swap(sk_step *step, sk_lagging *lagging)
{
    for (int n = 0; n < lagging->count; n++) {
        sk_attribute *attribute = sk_particles_find_attribute(&step->particles, lagging->names[n]);
        uint32_t *data = attribute->data;
        attribute->data = attribute->spare;
        attribute->spare = data;
    }
    lagging->lags = 0;
}

void sk_lagging_settle(sk_step *step, sk_lagging *lagging)
{
    if (!lagging->lags)
        return;
    for (int n = 0; n < lagging->count; n++) {
        const sk_attribute *attribute = sk_particles_find_attribute(&step->particles, lagging->names[n]);
        const size_t width = (size_t)attribute->components;
        for (int64_t p = 0; p < step->particles.count; p++)
            memcpy(attribute->spare + (size_t)p * width, attribute->data + lagging->order[p] * width,
                   width * sizeof *attribute->data);
    }
    sk_lagging_swap(step, lagging);
}

void sk_lagging_release(sk_step *step, sk_lagging *lagging)
{
    sk_release(step->memory, lagging->order);
    sk_release(step->memory, lagging->identity);
}
