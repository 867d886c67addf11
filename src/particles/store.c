#include "particles/store.h"

#include <string.h>

void sk_particles_init(sk_particles *particles, sk_memory *memory)
{
    memset(particles, 0, sizeof *particles);
    particles->memory = memory;
}

void sk_particles_free(sk_particles *particles)
{
    sk_release(particles->memory, particles->records);
    sk_release(particles->memory, particles->spare);
    for (int a = 0; a < particles->attribute_count; a++) {
        sk_release(particles->memory, particles->attributes[a].data);
        sk_release(particles->memory, particles->attributes[a].spare);
    }
    sk_particles_init(particles, particles->memory);
}

/* Grows one of a pair of arrays and keeps the first `content_bytes`. */
static int grow(sk_memory *memory, void **array, size_t content_bytes, size_t bytes)
{
    void *fresh = sk_allocate(memory, bytes);
    if (!fresh)
        return 0;
    if (*array && content_bytes)
        memcpy(fresh, *array, content_bytes);
    memset((char *)fresh + content_bytes, 0, bytes - content_bytes);
    sk_release(memory, *array);
    *array = fresh;
    return 1;
}

selkie_code sk_particles_reserve(sk_particles *particles, int64_t count, selkie_error *error)
{
    if ((size_t)count <= particles->capacity)
        return SELKIE_OK;
    particles->carried = NULL;
    if (count > (int64_t)UINT32_MAX / 2)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%lld particles: at most %lld can be held", (long long)count,
                       (long long)UINT32_MAX / 2);
    size_t capacity = particles->capacity ? (size_t)count + (size_t)count / 4 : (size_t)count;
    size_t kept = (size_t)particles->count, room = capacity + SK_PARTICLES_BEYOND;
    sk_memory *memory = particles->memory;
    int ok = grow(memory, (void **)&particles->records, kept * sizeof(sk_particle), room * sizeof(sk_particle)) &&
             grow(memory, (void **)&particles->spare, 0, room * sizeof(sk_particle));
    for (int a = 0; ok && a < particles->attribute_count; a++) {
        sk_attribute *attribute = &particles->attributes[a];
        size_t bytes = (size_t)attribute->components * 4;
        ok = grow(memory, (void **)&attribute->data, kept * bytes, room * bytes) &&
             grow(memory, (void **)&attribute->spare, 0, room * bytes);
    }
    if (!ok)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%lld particles need %.1f MiB, which are not available",
                       (long long)count, 2.0 * (double)capacity * sizeof(sk_particle) / 1048576.0);
    particles->capacity = capacity;
    return SELKIE_OK;
}

sk_attribute *sk_particles_find_attribute(const sk_particles *particles, const char *name)
{
    for (int a = 0; a < particles->attribute_count; a++)
        if (strcmp(particles->attributes[a].name, name) == 0)
            return (sk_attribute *)&particles->attributes[a];
    return NULL;
}

sk_attribute *sk_particles_add_attribute(sk_particles *particles, const char *name, int components, int is_integer)
{
    sk_attribute *attribute = sk_particles_find_attribute(particles, name);
    if (attribute)
        return attribute->components == components ? attribute : NULL;
    if (particles->attribute_count == SK_MAX_ATTRIBUTES || strlen(name) >= sizeof attribute->name)
        return NULL;
    attribute = &particles->attributes[particles->attribute_count];
    memset(attribute, 0, sizeof *attribute);
    strcpy(attribute->name, name);
    attribute->components = components;
    attribute->is_integer = is_integer;
    if (particles->capacity) {
        size_t bytes = (particles->capacity + SK_PARTICLES_BEYOND) * (size_t)components * 4;
        attribute->data = sk_allocate_zeroed(particles->memory, bytes);
        attribute->spare = sk_allocate_zeroed(particles->memory, bytes);
        if (!attribute->data || !attribute->spare) {
            sk_release(particles->memory, attribute->data);
            sk_release(particles->memory, attribute->spare);
            return NULL;
        }
    }
    particles->attribute_count++;
    return attribute;
}

sk_particle *sk_particles_append(sk_particles *particles, const double position[3], const double velocity[3])
{
    size_t index = (size_t)particles->count++;
    sk_particles_moved(particles); /* it follows behind those in order */
    sk_particle *particle = &particles->records[index];
    for (int d = 0; d < 3; d++) {
        particle->position[d] = (float)position[d];
        particle->velocity[d] = (float)velocity[d];
    }
    particle->id = particles->next_id++;
    particle->flags = 0;
    for (int a = 0; a < particles->attribute_count; a++) {
        sk_attribute *attribute = &particles->attributes[a];
        memset(attribute->data + index * (size_t)attribute->components, 0, (size_t)attribute->components * 4);
    }
    return particle;
}

void sk_particles_drop_dead(sk_particles *particles)
{
    int64_t kept = 0;
    for (int64_t p = 0; p < particles->count; p++) {
        if (particles->records[p].flags & SK_PARTICLE_DEAD)
            continue;
        if (kept < p) {
            particles->records[kept] = particles->records[p];
            for (int a = 0; a < particles->attribute_count; a++) {
                sk_attribute *attribute = &particles->attributes[a];
                size_t n = (size_t)attribute->components;
                memcpy(attribute->data + (size_t)kept * n, attribute->data + (size_t)p * n, n * sizeof(uint32_t));
            }
        }
        kept++;
    }
    particles->count = kept;
    sk_particles_moved(particles);
    particles->in_order = 0;
}

/* Copies the living ones of a stretch to the second copy, from a place on. */
static void copy_living(sk_particles *particles, int64_t first, int64_t last, int64_t to)
{
    for (int64_t p = first; p < last; p++) {
        if (particles->records[p].flags & SK_PARTICLE_DEAD)
            continue;
        particles->spare[to] = particles->records[p];
        for (int a = 0; a < particles->attribute_count; a++) {
            sk_attribute *attribute = &particles->attributes[a];
            const size_t n = (size_t)attribute->components;
            memcpy(attribute->spare + (size_t)to * n, attribute->data + (size_t)p * n, n * sizeof(uint32_t));
        }
        to++;
    }
}

void sk_particles_drop_dead_by(sk_particles *particles, int threads)
{
    enum { MOST = 256 };
    const int64_t count = particles->count;
    int64_t living[MOST + 1] = {0}; /* of the stretches before */
    const int stretches = threads < MOST ? threads : MOST;
    if (stretches < 2) {
        sk_particles_drop_dead(particles);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int n = 0; n < stretches; n++) {
        int64_t alive = 0;
        for (int64_t p = n * count / stretches; p < (n + 1) * count / stretches; p++)
            alive += !(particles->records[p].flags & SK_PARTICLE_DEAD);
        living[n + 1] = alive;
    }
    for (int n = 0; n < stretches; n++)
        living[n + 1] += living[n];
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int n = 0; n < stretches; n++)
        copy_living(particles, n * count / stretches, (n + 1) * count / stretches, living[n]);
    sk_particles_swap(particles);
    particles->count = living[stretches];
    sk_particles_moved(particles);
}

void sk_particles_swap(sk_particles *particles)
{
    sk_particle *records = particles->records;
    particles->records = particles->spare;
    particles->spare = records;
    particles->carried = NULL;
    particles->in_order = 0; /* a cell sort sets it again */
    for (int a = 0; a < particles->attribute_count; a++) {
        uint32_t *data = particles->attributes[a].data;
        particles->attributes[a].data = particles->attributes[a].spare;
        particles->attributes[a].spare = data;
    }
}
