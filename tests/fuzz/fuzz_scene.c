/* The scene reader: any bytes as a scene file. What it takes, it must be able to write, and to read again. */
#include <selkie/scene.h>
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    selkie_error error;
    selkie_scene *scene = NULL;
    if (selkie_scene_load(fuzz_file("json", data, size), 0, NULL, &scene, &error) != SELKIE_OK) {
        fuzz_demand(scene == NULL, "a scene that failed to load is not NULL");
        fuzz_demand(error.message[0] != 0, "a scene failed to load without a message");
        return 0;
    }
    fuzz_demand(selkie_scene_check(scene, &error) == SELKIE_OK, "a loaded scene does not pass its own check");
    const char *saved = fuzz_scratch("saved.json");
    fuzz_demand(selkie_scene_save(scene, saved, &error) == SELKIE_OK, error.message);
    selkie_scene_free(scene);
    scene = NULL;
    fuzz_demand(selkie_scene_load(saved, 0, NULL, &scene, &error) == SELKIE_OK, error.message);
    selkie_scene_free(scene);
    return 0;
}
