/* A dam break from C structs: make a world, step it, look at its particles, save it, load it, go on.
 *
 *   cc dam_break.c $(pkg-config --cflags --libs selkie) -o dam_break && ./dam_break
 *
 * Metres, seconds, kilograms. Every call that can fail returns a code and fills in a message. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <selkie/selkie.h>

/* The library never prints or exits; what to do about an error is the program's choice. This one gives up. */
static void must(selkie_code code, const selkie_error *error, const char *doing)
{
    if (code == SELKIE_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", doing, selkie_code_name(code), error->message);
    exit(1);
}

/* Fills in a scene: a column of water in the left of a 2 m x 1 m tank, and a post in its way. */
static void describe(selkie_scene *scene, selkie_liquid_def *water, selkie_obstacle_def *post)
{
    selkie_scene_defaults(scene);
    scene->title = "dam break from C";
    scene->domain.dimension = 2;
    scene->domain.size[0] = 2.0;
    scene->domain.size[1] = 1.0;
    scene->domain.resolution = 64; /* cells along the longest side */
    scene->gravity[0] = 0.0;
    scene->gravity[1] = -9.81;
    scene->gravity[2] = 0.0;
    scene->time.end = 0.5;
    scene->time.fps = 20.0;
    scene->transfer = SELKIE_TRANSFER_APIC;

    selkie_liquid_defaults(water);
    water->name = "column";
    selkie_shape_defaults(&water->shape, SELKIE_SHAPE_BOX);
    water->shape.max[0] = 0.5;
    water->shape.max[1] = 0.75;
    scene->liquid_count = 1;
    scene->liquids = water;

    selkie_obstacle_defaults(post);
    post->name = "post";
    selkie_shape_defaults(&post->shape, SELKIE_SHAPE_SPHERE);
    post->shape.center[0] = 1.2;
    post->shape.center[1] = 0.1;
    post->shape.radius = 0.12;
    scene->obstacle_count = 1;
    scene->obstacles = post;
}

/* How far the water has come, read from the particles where they lie, without copying. */
static double front(const selkie_world *world)
{
    selkie_error error;
    selkie_attribute_view position;
    must(selkie_world_find_attribute(world, "position", &position, &error), &error, "positions");
    double farthest = 0.0;
    for (int64_t i = 0; i < selkie_world_particle_count(world); i++) {
        const float *x = (const float *)((const char *)position.data + (size_t)i * position.stride);
        farthest = fmax(farthest, x[0] + position.origin[0]);
    }
    return farthest;
}

static void run_until(selkie_world *world, double seconds)
{
    selkie_error error;
    while (!selkie_world_finished(world) && selkie_world_time(world) < seconds - 1e-9) {
        must(selkie_world_step(world, &error), &error, "step");
        if (!selkie_world_at_frame(world))
            continue;
        const selkie_statistics *now = selkie_world_statistics(world);
        printf("%6.3f s  step %4lld  %lld particles  front %.3f m  fastest %.2f m/s  volume %.3f\n", now->time,
               (long long)now->step, (long long)now->particles, front(world), now->max_speed, now->volume_ratio);
    }
}

int main(void)
{
    selkie_error error;
    selkie_scene scene;
    selkie_liquid_def water;
    selkie_obstacle_def post;
    describe(&scene, &water, &post);
    must(selkie_scene_check(&scene, &error), &error, "scene");

    selkie_world_options options;
    selkie_world_options_defaults(&options);
    selkie_plan plan;
    must(selkie_scene_plan(&scene, &options, &plan, &error), &error, "plan");
    printf("selkie %s: %d x %d cells of %g m, about %lld particles, %.1f MiB\n", SELKIE_VERSION, plan.cells[0],
           plan.cells[1], plan.cell_size, (long long)plan.particles, (double)plan.memory_bytes / 1048576.0);

    /* The world keeps what it needs of the scene. */
    selkie_world *world = NULL;
    must(selkie_world_create(&scene, &options, &world, &error), &error, "world");
    run_until(world, 0.25);

    /* A saved state goes on bit for bit in another world of the same scene. */
    const char *path = "dam_break.checkpoint";
    must(selkie_world_save(world, path, &error), &error, "save");
    selkie_world *twin = NULL;
    must(selkie_world_create(&scene, &options, &twin, &error), &error, "second world");
    must(selkie_world_load(twin, path, &error), &error, "load");

    run_until(world, scene.time.end);
    run_until(twin, scene.time.end);
    int same = front(world) == front(twin) && selkie_world_particle_count(world) == selkie_world_particle_count(twin);
    printf("the resumed world %s\n", same ? "ends where the first one does" : "DIFFERS from the first one");

    selkie_world_destroy(twin);
    selkie_world_destroy(world);
    remove(path);
    return same ? 0 : 1;
}
