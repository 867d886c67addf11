#include "io/frame_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "defs/heat.h"

/* The name of a material as that of a folder; other letters than those of file names become "_". */
static void folder_name(const selkie_scene *scene, int material, int is_frozen, char name[64])
{
    const char *own = material < scene->material_count ? scene->materials[material].name : NULL;
    snprintf(name, 56, "%s", own && *own ? own : "liquid");
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-')
            *c = '_';
    if (is_frozen)
        strcat(name, "_frozen");
}

/* Materials whose folders would have one name: later ones get a number. */
static void number_name(const sk_frame_part *parts, int count, char name[64])
{
    enum { most = 52 }; /* characters: room for any number */
    char plain[64];
    snprintf(plain, sizeof plain, "%.*s", most, name);
    for (int n = 0, number = 2; n < count; n++)
        if (!strcmp(parts[n].name, name)) {
            snprintf(name, 64, "%.*s_%d", most, plain, number++);
            n = -1; /* the new name may stand before */
        }
}

int sk_scene_parts(const selkie_scene *scene, sk_frame_part parts[SK_MOST_PARTS])
{
    const int materials = scene->material_count ? scene->material_count : 1, melts = sk_scene_melts(scene);
    int count = 0;
    for (int m = 0; m < materials; m++) {
        const int kind = scene->material_count ? (int)scene->materials[m].kind : (int)SELKIE_MATERIAL_LIQUID;
        for (int frozen = 0; frozen <= (melts && kind == (int)SELKIE_MATERIAL_LIQUID) && count < SK_MOST_PARTS;
             frozen++) {
            sk_frame_part *part = &parts[count];
            *part = (sk_frame_part){.material = m, .is_frozen = frozen, .melts = melts};
            folder_name(scene, m, frozen, part->name);
            number_name(parts, count++, part->name);
        }
    }
    return count;
}

static const selkie_attribute_view *find_extra(const sk_frame *frame, const char *name)
{
    for (int e = 0; e < frame->extra_count; e++)
        if (!strcmp(frame->extra[e].name, name) && frame->extra[e].components == 1)
            return &frame->extra[e];
    return NULL;
}

/* Does a particle belong to a part? Without the attribute all particles are of the first material. */
static int belongs(const sk_frame_part *part, const selkie_attribute_view *material,
                   const selkie_attribute_view *fraction, int64_t p)
{
    uint32_t own = 0;
    float liquid = 1.0f;
    if (material)
        memcpy(&own, (const char *)material->data + (size_t)p * material->stride, sizeof own);
    if (fraction && part->melts)
        memcpy(&liquid, (const char *)fraction->data + (size_t)p * fraction->stride, sizeof liquid);
    return own == (uint32_t)part->material && (liquid < 0.5f) == part->is_frozen;
}

/* Copies a value of the chosen particles; returns NULL without memory. */
static void *copy_values(const void *from, size_t stride, size_t bytes, const int64_t *chosen, int64_t count)
{
    char *copy = sk_allocate(NULL, (size_t)(count + 1) * bytes);
    for (int64_t n = 0; copy && n < count; n++)
        memcpy(copy + (size_t)n * bytes, (const char *)from + (size_t)chosen[n] * stride, bytes);
    return copy;
}

selkie_code sk_frame_take_part(const sk_frame *frame, const sk_frame_part *part, sk_frame *taken,
                               selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES], selkie_error *error)
{
    const selkie_attribute_view *material = find_extra(frame, "material"),
                                *fraction = find_extra(frame, "liquid_fraction");
    int64_t *chosen = sk_allocate(NULL, (size_t)(frame->count + 1) * sizeof *chosen), count = 0;
    for (int64_t p = 0; chosen && p < frame->count; p++)
        if (belongs(part, material, fraction, p))
            chosen[count++] = p;
    *taken = *frame;
    taken->count = chosen ? count : 0;
    taken->id = NULL;
    taken->extra = extras;
    taken->position_stride = taken->velocity_stride = 3 * sizeof(float);
    taken->position =
        chosen ? copy_values(frame->position, frame->position_stride, 3 * sizeof(float), chosen, count) : NULL;
    taken->velocity = chosen && frame->velocity
                          ? copy_values(frame->velocity, frame->velocity_stride, 3 * sizeof(float), chosen, count)
                          : NULL;
    int complete = taken->position && (taken->velocity || !frame->velocity);
    for (int e = 0; e < frame->extra_count; e++) {
        const size_t bytes = 4 * (size_t)frame->extra[e].components;
        extras[e] = frame->extra[e];
        extras[e].stride = bytes;
        extras[e].data =
            complete ? copy_values(frame->extra[e].data, frame->extra[e].stride, bytes, chosen, count) : NULL;
        complete = complete && extras[e].data;
    }
    sk_release(NULL, chosen);
    if (complete)
        return SELKIE_OK;
    sk_frame_part_free(taken);
    return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for the particles of a material");
}

void sk_frame_part_free(sk_frame *taken)
{
    sk_release(NULL, (void *)(uintptr_t)taken->position);
    sk_release(NULL, (void *)(uintptr_t)taken->velocity);
    for (int e = 0; e < taken->extra_count; e++)
        sk_release(NULL, (void *)(uintptr_t)taken->extra[e].data);
}
