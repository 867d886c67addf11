/* A tank that is steered while it runs: tilted, stirred, filled, and played again from its own record.
 *
 *   cc steering.c $(pkg-config --cflags --libs selkie) -o steering && ./steering
 *
 * Metres, seconds, kilograms. */
#include <stdio.h>
#include <stdlib.h>
#include <selkie/selkie.h>

static selkie_error error;

static void must(selkie_code code, const char *doing)
{
    if (code == SELKIE_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", doing, selkie_code_name(code), error.message);
    exit(1);
}

static int show(selkie_world *world, void *context)
{
    (void)context;
    printf("%5.2f s  %6lld particles  fastest %5.2f m/s\n", selkie_world_time(world),
           (long long)selkie_world_particle_count(world), selkie_world_statistics(world)->max_speed);
    return 0; /* another value would end the run */
}

/* A column of water in the left of a tank of 2 m x 1 m. */
static selkie_world *make_tank(void)
{
    selkie_scene scene;
    selkie_liquid_def water;
    selkie_world *world;
    selkie_scene_defaults(&scene);
    scene.domain.dimension = 2;
    scene.domain.size[0] = 2.0;
    scene.domain.size[1] = 1.0;
    scene.domain.resolution = 64;
    scene.time.fps = 10.0;
    selkie_liquid_defaults(&water);
    selkie_shape_defaults(&water.shape, SELKIE_SHAPE_BOX);
    water.shape.max[0] = 0.5;
    water.shape.max[1] = 0.6;
    scene.liquids = &water;
    scene.liquid_count = 1;
    must(selkie_world_create(&scene, NULL, &world, &error), "world");
    return world;
}

static void steer(selkie_world *world)
{
    const selkie_run_options run = {.until = 0.3, .after_frame = show};
    selkie_run_options later = run;
    must(selkie_world_run(world, &run, &error), "run");

    /* Tilt the tank by ten degrees. */
    const double tilted[3] = {1.7, -9.66, 0.0};
    must(selkie_world_set_gravity(world, tilted, &error), "gravity");

    /* A paddle that sweeps to the left. */
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_OBSTACLE);
    change.obstacle.name = "paddle";
    selkie_shape_defaults(&change.obstacle.shape, SELKIE_SHAPE_BOX);
    change.obstacle.shape.min[0] = 1.8;
    change.obstacle.shape.max[0] = 1.9;
    change.obstacle.shape.max[1] = 0.5;
    must(selkie_world_change(world, &change, NULL, &error), "paddle");
    selkie_change_defaults(&change, SELKIE_CHANGE_MOVE);
    change.name = "paddle";
    change.translate[0] = -1.0;
    change.duration = 1.0;
    must(selkie_world_change(world, &change, NULL, &error), "move");

    /* A bucket of water from above. */
    selkie_change_report report;
    selkie_change_defaults(&change, SELKIE_CHANGE_LIQUID);
    selkie_shape_defaults(&change.liquid.shape, SELKIE_SHAPE_BOX);
    change.liquid.shape.min[0] = 0.2;
    change.liquid.shape.min[1] = 0.7;
    change.liquid.shape.max[0] = 0.6;
    change.liquid.shape.max[1] = 0.9;
    must(selkie_world_change(world, &change, &report, &error), "bucket");
    printf("a bucket of %lld particles\n", (long long)report.added);
    later.until = 0.8;
    must(selkie_world_run(world, &later, &error), "run");
}

int main(void)
{
    selkie_world *world = make_tank(), *again;
    steer(world);

    /* A picture in memory, for a window of the program's own. */
    selkie_picture picture;
    must(selkie_world_picture(world, &picture, &error), "picture");
    printf("a picture of %d x %d pixels\n", picture.width, picture.height);
    selkie_picture_free(&picture);

    /* The record plays the same: the same scene, the same changes, the same bits. */
    must(selkie_world_create(selkie_world_record(world), NULL, &again, &error), "again");
    const selkie_run_options run = {.until = selkie_world_time(world)};
    must(selkie_world_run(again, &run, &error), "again");
    printf("played again: energies differ by %g J\n",
           selkie_world_statistics(again)->kinetic_energy - selkie_world_statistics(world)->kinetic_energy);
    selkie_world_destroy(world);
    selkie_world_destroy(again);
    return 0;
}
