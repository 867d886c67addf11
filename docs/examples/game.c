/* A game without a window: a script stirs a reduced fluid and kicks bodies that float in it, 60 steps a second.
 *
 *   cc game.c $(pkg-config --cflags --libs selkie) -lm -o game && ./game scenes/reduced/game.json end.png
 *
 * Metres, seconds, kilograms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <selkie/selkie.h>

static selkie_error error;

static void must(selkie_code code, const char *doing)
{
    if (code == SELKIE_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", doing, selkie_code_name(code), error.message);
    exit(1);
}

/* A jet for a quarter of a second: the player strokes the water from one point to another. */
static void stroke(selkie_world *world, const double from[2], const double to[2])
{
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_FORCE);
    selkie_force_defaults(&change.force, SELKIE_FORCE_JET);
    change.force.name = "stroke";
    for (int d = 0; d < 2; d++) {
        change.force.from[d] = from[d];
        change.force.to[d] = to[d];
    }
    change.force.radius = 0.08;
    change.force.strength = 4.0;
    change.force.start = selkie_world_time(world);
    change.force.end = change.force.start + 0.25;
    must(selkie_world_change(world, &change, NULL, &error), "stroke");
}

/* The brush leaves dye for as long. */
static void dye(selkie_world *world, const double at[2])
{
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_DYE);
    selkie_shape_defaults(&change.dye.shape, SELKIE_SHAPE_SPHERE);
    change.dye.name = "brush";
    for (int d = 0; d < 2; d++)
        change.dye.shape.center[d] = at[d];
    change.dye.shape.radius = 0.04;
    change.dye.end = selkie_world_time(world) + 0.25;
    must(selkie_world_change(world, &change, NULL, &error), "dye");
}

/* A kick: the body gains a velocity. */
static void kick(selkie_world *world, const char *name, double x, double y)
{
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_PUSH);
    change.name = name;
    change.velocity[0] = x;
    change.velocity[1] = y;
    must(selkie_world_change(world, &change, NULL, &error), "kick");
}

/* Bodies in the upper half count. */
static int score(const selkie_world *world)
{
    int points = 0;
    for (int b = 0; b < selkie_world_body_count(world); b++) {
        selkie_body_state body;
        must(selkie_world_body(world, b, &body), "body");
        points += body.position[1] > 0.5;
    }
    return points;
}

int main(int argument_count, char **arguments)
{
    selkie_scene *scene;
    selkie_world *world;
    const char *path = argument_count > 1 ? arguments[1] : "scenes/reduced/game.json";
    must(selkie_scene_load(path, 0, NULL, &scene, &error), "scene");
    must(selkie_world_create(scene, NULL, &world, &error), "world");

    const clock_t begin = clock();
    const int steps = 300;
    for (int n = 0; n < steps; n++) {
        const double angle = 0.02 * n, at[2] = {0.5 + 0.3 * cos(angle), 0.5 + 0.3 * sin(angle)}, centre[2] = {0.5, 0.5};
        if (n % 60 == 0) {
            stroke(world, at, centre);
            dye(world, at);
        }
        if (n % 60 == 30)
            kick(world, "body_3", 0.0, 0.5);
        must(selkie_world_step_for(world, 1.0 / 60.0, &error), "step");
        if (n % 60 == 59)
            printf("%4.1f s  score %2d of %d\n", selkie_world_time(world), score(world),
                   selkie_world_body_count(world));
    }
    if (argument_count > 2)
        must(selkie_write_dye(world, arguments[2], &error), "picture");
    printf("%.2f ms a step\n", 1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC / steps);
    selkie_world_destroy(world);
    selkie_scene_free(scene);
    return 0;
}
