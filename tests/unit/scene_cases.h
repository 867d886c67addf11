/* Scene files as texts: read, refused with a message, and each one that comes with the project. */
#ifndef SELKIE_TESTS_SCENE_CASES_H
#define SELKIE_TESTS_SCENE_CASES_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <selkie/scene.h>
#include "selkie_config.h"
#include "defs/text.h"
#include "scene/read.h"
#include "scratch_folder.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static inline char *read_text(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read", path);
    char *text = calloc(1, 1 << 20);
    *length = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

static inline void write_text(const char *path, const void *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static inline selkie_scene *parse(const char *text, int count, const char *const *overrides)
{
    selkie_scene *scene;
    selkie_error error;
    const sk_scene_text source = {.text = text,
                                  .length = strlen(text),
                                  .name = "test.json",
                                  .folder = ".",
                                  .override_count = count,
                                  .overrides = overrides};
    if (sk_scene_parse(&source, &scene, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return scene;
}

/* The message must hold `expected`, be one line and leave no scene. */
static inline void expect_bytes(const char *text, size_t length, int count, const char *const *overrides,
                                const char *expected)
{
    selkie_scene *scene = (selkie_scene *)&scene;
    selkie_error error;
    const sk_scene_text source = {.text = text,
                                  .length = length,
                                  .name = "test.json",
                                  .folder = ".",
                                  .override_count = count,
                                  .overrides = overrides};
    selkie_code code = sk_scene_parse(&source, &scene, &error);
    if (code == SELKIE_OK)
        fail_msg("accepted, but should say: %s", expected);
    assert_null(scene);
    assert_int_equal(code, error.code);
    if (!strstr(error.message, expected) || strchr(error.message, '\n'))
        fail_msg("says: %s\nshould say: %s", error.message, expected);
    assert_int_equal(sk_scene_parse(&source, &scene, NULL), code);
}

static inline void expect(const char *text, const char *expected)
{
    expect_bytes(text, strlen(text), 0, NULL, expected);
}

static const char small[] = "{\n"
                            "  \"domain\": {\"size\": [4, 4, 4]},\n"
                            "  \"liquids\": [\n"
                            "    {\"shape\": {\"type\": \"box\", \"min\": [0, 0, 0], \"max\": [3, 3, 3]}}\n"
                            "  ]\n"
                            "}\n";

static inline void expect_set(const char *override, const char *expected)
{
    expect_bytes(small, strlen(small), 1, &override, expected);
}

/* Each scene that comes with the project. */
static inline void for_each_scene(void (*visit)(const char *path))
{
    static const char *const folders[] = {SELKIE_SCENES "/examples", SELKIE_SCENES "/validation", SELKIE_SCENES "/idp",
                                          SELKIE_SCENES "/uic"};
    int count = 0;
    for (int i = 0; i < COUNT(folders); i++) {
        DIR *folder = opendir(folders[i]);
        assert_non_null(folder);
        for (struct dirent *entry; (entry = readdir(folder));) {
            char path[1024];
            size_t length = strlen(entry->d_name);
            if (length < 5 || strcmp(entry->d_name + length - 5, ".json") != 0)
                continue;
            snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name);
            visit(path);
            count++;
        }
        closedir(folder);
    }
    assert_true(count >= 27);
}

#endif
