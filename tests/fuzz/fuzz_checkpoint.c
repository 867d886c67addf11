/* A checkpoint with sound checksums and senseless content, loaded into a world: it must be refused with a message, or
 * leave a world that can be looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <selkie/world.h>
#include "fuzz.h"

static selkie_scene scene;
static selkie_liquid_def liquid;
static uint8_t *sample;
static size_t sample_size;

static selkie_world *make_world(void)
{
    selkie_error error;
    selkie_world *world = NULL;
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = 1;
    options.memory_limit = (size_t)256 << 20;
    fuzz_demand(selkie_world_create(&scene, &options, &world, &error) == SELKIE_OK, error.message);
    return world;
}

/* The smallest world that has everything: a drop of a few particles, one step old. */
static void prepare(void)
{
    if (sample)
        return;
    selkie_error error;
    selkie_scene_defaults(&scene);
    scene.volume = SELKIE_VOLUME_NONE;
    scene.domain.dimension = 2;
    scene.domain.size[0] = scene.domain.size[1] = 1.0;
    scene.domain.resolution = 8;
    selkie_scene_set_method(&scene, SELKIE_METHOD_APIC);
    selkie_liquid_defaults(&liquid);
    selkie_shape_defaults(&liquid.shape, SELKIE_SHAPE_BOX);
    liquid.shape.max[0] = liquid.shape.max[1] = 0.25;
    scene.liquid_count = 1;
    scene.liquids = &liquid;
    selkie_world *world = make_world();
    fuzz_demand(selkie_world_step(world, &error) == SELKIE_OK, error.message);
    const char *path = fuzz_scratch("sample");
    fuzz_demand(selkie_world_save(world, path, &error) == SELKIE_OK, error.message);
    selkie_world_destroy(world);
    FILE *file = fopen(path, "rb");
    fuzz_demand(file != NULL, "the sample checkpoint cannot be opened");
    sample = malloc(1 << 20);
    sample_size = fread(sample, 1, 1 << 20, file);
    fclose(file);
    fuzz_demand(sample_size > 0 && sample_size < 1 << 20, "the sample checkpoint has a strange size");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    prepare();
    selkie_error error;
    selkie_world *world = make_world();
    if (selkie_world_load(world, fuzz_file("checkpoint", data, size), &error) == SELKIE_OK) {
        selkie_attribute_view position;
        fuzz_demand(selkie_world_find_attribute(world, "position", &position, &error) == SELKIE_OK, error.message);
        /* A state that cannot go on must say so; it may not crash. */
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fuzz_demand(error.message[0] != 0, "a step failed without a message");
    } else {
        fuzz_demand(error.message[0] != 0, "a checkpoint was refused without a message");
    }
    selkie_world_destroy(world);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    prepare();
    return fuzz_mutate_container(data, size, max_size, seed, sample, sample_size);
}
