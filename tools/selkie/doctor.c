/* `selkie doctor`: features of this build, missing ones, and how to get them. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/library.h"
#include "base/memory.h"
#include "cuda/cuda.h"
#include "geom/mesh_assimp.h"
#include "render/embree.h"
#include "selkie_config.h"
#include "tool.h"

#if SELKIE_HAVE_JSON
#include <json-c/json_c_version.h>
#endif
#if SELKIE_HAVE_ZSTD
#include <zstd.h>
#endif
#if SELKIE_HAVE_PNG
#include <png.h>
#endif
#if SELKIE_HAVE_CAIRO
#include <cairo.h>
#endif
#if SELKIE_HAVE_ODE
#include <ode/version.h>
#endif
#if SELKIE_HAVE_WEBSOCKETS
#include <libwebsockets.h>
#endif

/* The widest vectors that the compiler was allowed to use. */
static const char *instruction_set(void)
{
#if defined(__AVX512F__)
    return "x86-64 with AVX-512";
#elif defined(__AVX2__) && defined(__FMA__)
    return "x86-64 with AVX2 and FMA";
#elif defined(__AVX__)
    return "x86-64 with AVX";
#elif defined(__x86_64__)
    return "x86-64 with SSE2";
#elif defined(__ARM_FEATURE_SVE)
    return "arm64 with SVE";
#elif defined(__aarch64__)
    return "arm64 with NEON";
#else
    return "plain";
#endif
}

static void print_machine(void)
{
    char memory[32], all[32];
    double pages = (double)sysconf(_SC_PHYS_PAGES), page = (double)sysconf(_SC_PAGESIZE);
    printf("selkie        %s\n", SELKIE_VERSION);
#if defined(__clang__)
    printf("compiler      clang %s\n", __clang_version__);
#else
    printf("compiler      gcc %s\n", __VERSION__);
#endif
    printf("instructions  %s\n", instruction_set());
    printf("threads       %d of %ld cores\n", omp_get_max_threads(), sysconf(_SC_NPROCESSORS_ONLN));
    printf("memory        %s free of %s\n", format_bytes((double)sk_memory_available(), memory),
           format_bytes(pages * page, all));
    printf("scenes        %s%s%s\n", getenv("SELKIE_SCENES") ? getenv("SELKIE_SCENES") : "",
           getenv("SELKIE_SCENES") ? ":" : "", SELKIE_SOURCE_SCENES ":" SELKIE_INSTALLED_SCENES);
}

/* The device of the backend "cuda", or why there is none. */
static void print_gpu(void)
{
    sk_cuda_info info;
    selkie_error error = {0};
    char memory[32], all[32];
    if (sk_cuda_find(&info, &error) != SELKIE_OK) {
        printf("%-14snone: %s\n", "gpu", error.message);
        return;
    }
    printf("%-14s%s, %s free of %s, driver for CUDA %d.%d, built with CUDA %d.%d\n", "gpu", info.name,
           format_bytes(info.free, memory), format_bytes(info.memory, all), info.driver[0], info.driver[1],
           info.runtime[0], info.runtime[1]);
}

/* Returns 1 where it is missing. */
static int print_library(const char *name, int there, const char *version, const char *use, const char *package)
{
    if (there)
        printf("%-14sthere, %s: %s\n", name, version, use);
    else
        printf("%-14smissing: %s. Get it with: apt-get install %s\n", name, use, package);
    return !there;
}

/* A library that is loaded when it is first used may have gone since the build. `file` is empty if it is linked. */
static int is_there(int is_built_in, const char *file, const char *folder)
{
    return is_built_in && (!*file || sk_library_is_there(file, folder));
}

#define IS_THERE(name) is_there(SELKIE_HAVE_##name, SELKIE_LATE_##name##_FILE, SELKIE_LATE_##name##_FOLDER)

static int print_libraries(void)
{
    char assimp[32] = "", embree[32] = "", png[32] = "";
    const char *json = "", *cairo = "", *ode = "", *zstd = "", *websockets = "";

    /* Versions; empty for a library that the program was built without. */
#if SELKIE_HAVE_JSON
    json = json_c_version();
#endif
#if SELKIE_HAVE_ASSIMP
    sk_assimp functions;
    if (sk_assimp_open(&functions, "meshes", NULL) == SELKIE_OK)
        snprintf(assimp, sizeof assimp, "%u.%u.%u", functions.aiGetVersionMajor(), functions.aiGetVersionMinor(),
                 functions.aiGetVersionPatch());
#endif
#if SELKIE_HAVE_EMBREE
    snprintf(embree, sizeof embree, "%s", RTC_VERSION_STRING);
#endif
#if SELKIE_HAVE_PNG
    snprintf(png, sizeof png, "%s", png_get_libpng_ver(NULL));
#endif
#if SELKIE_HAVE_CAIRO
    cairo = cairo_version_string();
#endif
#if SELKIE_HAVE_ODE
    ode = dODE_VERSION;
#endif
#if SELKIE_HAVE_ZSTD
    zstd = ZSTD_versionString();
#endif
#if SELKIE_HAVE_WEBSOCKETS
    websockets = LWS_LIBRARY_VERSION;
#endif

    /* zlib is always there; the others may be missing. */
    int missing = 0;
    print_library("zlib", 1, zlibVersion(), "compression and checksums", "zlib1g-dev");
    missing += print_library("json-c", SELKIE_HAVE_JSON, json, "scene files", "libjson-c-dev");
    missing +=
        print_library("assimp", IS_THERE(ASSIMP), assimp, "meshes in scenes (OBJ, STL, PLY, glTF)", "libassimp-dev");
    missing += print_library("embree", IS_THERE(EMBREE), embree, "ray-traced pictures", "libembree-dev");
    missing += print_library("libpng", SELKIE_HAVE_PNG, png, "pictures", "libpng-dev");
    missing += print_library("cairo", SELKIE_HAVE_CAIRO, cairo, "plots and 2D pictures", "libcairo2-dev");
    missing += print_library("arpack", IS_THERE(ARPACK), SELKIE_ARPACK_VERSION, "reduced fluids beside obstacles",
                             "libarpack2-dev");
    missing += print_library("lapack", IS_THERE(LAPACK), SELKIE_LAPACK_VERSION,
                             "fast bases of reduced fluids from snapshots", "liblapack-dev");
    missing += print_library("ode", IS_THERE(ODE), ode, "rigid bodies that float and sink", "libode-dev");
    missing += print_library("zstd", SELKIE_HAVE_ZSTD, zstd, "fast compression of compact frames", "libzstd-dev");
    missing +=
        print_library("websockets", IS_THERE(WEBSOCKETS), websockets, "studio in the browser", "libwebsockets-dev");
    return missing;
}

/* The file that `name` would start, or NULL. */
static char *find_program(const char *name)
{
    const char *places = getenv("PATH");
    char *copy = places ? strdup(places) : NULL, *found = NULL;
    for (char *rest = copy, *place; copy && !found && (place = strsep(&rest, ":"));) {
        if (asprintf(&found, "%s/%s", *place ? place : ".", name) < 0)
            found = NULL;
        else if (access(found, X_OK)) {
            free(found);
            found = NULL;
        }
    }
    free(copy);
    return found;
}

static int run_doctor(const tool_arguments *arguments)
{
    (void)arguments;
    print_machine();
    print_gpu();
    printf("\n");
    int missing = print_libraries();
    char *ffmpeg = find_program("ffmpeg");
    print_library("ffmpeg", ffmpeg != NULL, ffmpeg ? ffmpeg : "", "films of pictures (a program, found at run time)",
                  "ffmpeg");
    free(ffmpeg);
    if (missing)
        printf("\nAfter installing a library, build again: rm -rf build && make\n");
    return EXIT_GOOD;
}

const tool_command doctor_command = {
    .name = "doctor",
    .synopsis = "",
    .summary = "list the features of this build, and how to get missing ones",
    .description = "Prints the version, the compiler, the instruction set, threads and memory, and for each optional "
                   "library and program whether it is there, what for, and how to get it on Debian.",
    .run = run_doctor,
};
