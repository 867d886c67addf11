/* Reduced fluids: time of the right side, of a Runge-Kutta step, of the velocities at the nodes and of a million
 * tracers, for several numbers of modes. The least of a few runs, in ms: wall time, or processor time where there is
 * one thread, so that a busy machine does not count. Usage: bench_reduced [threads [game]] */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/timer.h"
#include "geom/outline.h"
#include "methods/reduced/coupling.h"
#include "methods/reduced/points.h"
#include "methods/reduced/quadtree.h"
#include "methods/reduced/spectrum.h"
#include "methods/reduced/tracers.h"
#include "particles/store.h"

enum { RUNS = 5, TRACERS = 1000000, CHUNK = 4096 };

typedef struct bench {
    sk_reduced_spectrum s;
    double *r, *rate, *node[2];
    float *values;
    sk_particle *tracers;
    int threads;
} bench;

static double now_ms(int threads)
{
    struct timespec time;
    if (threads > 1)
        return sk_wall_ms();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static void right_side(bench *b)
{
    sk_reduced_advect(&b->s, b->r, b->rate, b->threads);
}

static void step(bench *b)
{
    sk_reduced_step(&b->s, b->r, 1e-4, 1e-5, b->threads);
}

static void nodes(bench *b)
{
    sk_reduced_velocities(&b->s, b->r, b->node, b->threads);
}

static void tracers(bench *b)
{
    sk_reduced_view view = {.values = b->values};
    for (int d = 0; d < 2; d++) {
        view.cells[d] = b->s.cells[d];
        view.inverse[d] = (float)b->s.cells[d];
        view.size[d] = 1.0f;
    }
#pragma omp parallel for num_threads(b->threads) schedule(static) firstprivate(view)
    for (int p = 0; p < TRACERS; p += CHUNK)
        sk_reduced_move_tracers(&view, 0.016f, b->tracers + p, TRACERS - p < CHUNK ? TRACERS - p : CHUNK);
}

static double least(bench *b, void (*run)(bench *))
{
    double best = 1e30;
    for (int n = 0; n < RUNS; n++) {
        const double begin = now_ms(b->threads);
        run(b);
        best = fmin(best, now_ms(b->threads) - begin);
    }
    return best;
}

static int measure(int modes, int threads)
{
    const int cells = (int)(1.5 * sqrt(4.0 * modes / 3.14159)) + 24;
    const sk_reduced_box box = {.size = {1.0, 1.0}, .cells = {cells, cells}, .modes = modes};
    const size_t count = (size_t)(cells + 1) * (size_t)(cells + 1);
    bench b = {.threads = threads};
    if (sk_reduced_spectrum_make(&b.s, &box, NULL, NULL) != SELKIE_OK)
        return 1;
    b.r = calloc((size_t)modes, sizeof *b.r);
    b.rate = calloc((size_t)modes, sizeof *b.rate);
    b.node[0] = calloc(count, sizeof(double));
    b.node[1] = calloc(count, sizeof(double));
    b.values = calloc(2 * count, sizeof *b.values);
    b.tracers = calloc(TRACERS, sizeof *b.tracers);
    if (!b.r || !b.rate || !b.node[0] || !b.node[1] || !b.values || !b.tracers)
        return 1;
    for (int k = 0; k < modes; k++)
        b.r[k] = 0.1 * sin(7.0 * k) / sqrt(b.s.lambda[k]);
    nodes(&b);
    for (size_t n = 0; n < count; n++)
        for (int d = 0; d < 2; d++)
            b.values[2 * n + (size_t)d] = (float)b.node[d][n];
    for (int p = 0; p < TRACERS; p++)
        for (int d = 0; d < 2; d++)
            b.tracers[p].position[d] = (float)fmod((d ? 0.5698402910 : 0.7548776662) * p, 1.0);

    const double side = least(&b, right_side), whole = least(&b, step), shown = least(&b, nodes),
                 moved = least(&b, tracers);
    printf("%7d %7d %11.3f %11.3f %11.3f %11.3f %11.3f\n", modes, cells, side, whole, shown, moved,
           whole + shown + moved);
    free(b.r);
    free(b.rate);
    free(b.node[0]);
    free(b.node[1]);
    free(b.values);
    free(b.tracers);
    sk_reduced_spectrum_free(&b.s);
    return 0;
}

/* --- Bodies of the game: 11 discs of 9 panels and 4 boxes of 12 --- */

enum { BODIES = 15, MOST_POINTS = 512 };

typedef struct game {
    sk_reduced_spectrum s;
    sk_coupling c;
    sk_mode_points points;
    sk_quadtree tree;
    int threads;
    double r[128], rate[128], stream[MOST_POINTS], circulation[MOST_POINTS], weight[BODIES];
    double threshold; /* of the quadtree; below 0 = every cell */
} game;

static void place_game(game *g)
{
    for (int b = 0; b < BODIES; b++)
        sk_coupling_place(&g->c, b, (const double[2]){0.12 + 0.19 * (b % 5), 0.25 + 0.2 * (b / 5)}, 0.1 * b);
#pragma omp parallel for num_threads(g->threads) schedule(static) if (g->threads > 1)
    for (int n = 0; n < g->c.count; n++) {
        sk_mode_points_place(&g->points, &g->s, n, g->c.middle[n]);
        sk_mode_points_place(&g->points, &g->s, g->c.count + n, g->c.corner[n]);
    }
}

static void assemble_game(game *g)
{
    sk_coupling_assemble(&g->c, g->threads);
}

static void sweep_game(game *g)
{
    sk_mode_points_stream(&g->points, &g->s, g->r, 0, g->c.count, g->stream);
    for (int n = 0; n < g->c.count; n++)
        g->c.wanted[n] = 0.1 * g->c.middle[n][1] - g->stream[n];
    sk_coupling_solve(&g->c, 1e-5);
}

static void feed_back_game(game *g)
{
    sk_mode_points_add(&g->points, &g->s, g->circulation, g->stream);
}

static void advect_game(game *g)
{
    sk_reduced_step(&g->s, g->r, 1e-4, 0.0, g->threads);
}

static void diffuse_game(game *g)
{
    for (int k = 0; k < 73; k++)
        g->rate[k] = exp(-1e-9 * g->s.lambda[k]) * g->r[k];
}

/* The source's ways from the panels to the modes. */
static void feed_back_by_tree(game *g)
{
    double *const field[2] = {g->s.grid[3], g->s.grid[4]};
    for (int n = 0; n < 65 * 65; n++)
        field[0][n] = field[1][n] = 0.0;
    sk_quadtree_add(&g->tree, &g->c, g->weight, g->threshold, field);
    sk_reduced_project(&g->s, (const double *const[2]){field[0], field[1]}, g->rate, g->threads);
}

static double least_of(game *g, void (*run)(game *))
{
    double best = 1e30;
    for (int n = 0; n < (run == feed_back_by_tree ? RUNS : 20 * RUNS); n++) {
        const double begin = now_ms(g->threads);
        run(g);
        best = fmin(best, now_ms(g->threads) - begin);
    }
    return best;
}

static int measure_game(int threads)
{
    static game g;
    g.threads = threads;
    const sk_reduced_box box = {.size = {1.0, 1.0}, .cells = {65, 65}, .modes = 73};
    sk_panels *panels = sk_allocate(NULL, BODIES * sizeof *panels);
    const double zero[2] = {0.0, 0.0}, h = 0.022, corners[4][2] = {{-h, -h}, {h, -h}, {h, h}, {-h, h}};
    if (!panels || sk_reduced_spectrum_make(&g.s, &box, NULL, NULL) != SELKIE_OK)
        return 1;
    for (int b = 0; b < BODIES; b++) {
        sk_outline outline;
        selkie_code code = b % 4 == 0 ? sk_outline_polygon(4, corners, h, NULL, &outline, NULL)
                                      : sk_outline_circle(zero, h, 9, NULL, &outline, NULL);
        if (code == SELKIE_OK)
            code = sk_panels_make(&panels[b], outline.count, (const double(*)[2])outline.corners, zero, "", NULL, NULL);
        sk_outline_free(&outline);
        if (code != SELKIE_OK)
            return 1;
    }
    if (sk_coupling_make(&g.c, BODIES, panels, box.size, (const int[2]){1, 1}, NULL, NULL) != SELKIE_OK ||
        sk_mode_points_make(&g.points, &g.s, 2 * g.c.count, NULL) != SELKIE_OK)
        return 1;
    for (int k = 0; k < 73; k++)
        g.r[k] = 0.1 * sin(7.0 * k) / sqrt(g.s.lambda[k]);
    const double place = least_of(&g, place_game), assemble = least_of(&g, assemble_game),
                 sweep = least_of(&g, sweep_game), feed_back = least_of(&g, feed_back_game);
    printf("\ngame, %d bodies, %d panels, 73 modes: the source takes 5.6 ms for the panels and 5.8 ms for the "
           "feedback\n",
           BODIES, g.c.count);
    printf("%11s %11s %11s %11s %11s\n", "place", "matrix", "sweeps", "feedback", "coupling");
    printf("%11.4f %11.4f %11.4f %11.4f %11.4f   (%d sweeps)\n", place, assemble, sweep, feed_back,
           place + assemble + sweep + feed_back, g.c.sweeps);

    /* Table 5.1. */
    sk_quadtree_make(&g.tree, box.cells, box.size, h);
    for (int b = 0; b < BODIES; b++)
        g.weight[b] = 1.0;
    g.threshold = -1.0;
    const double naive = least_of(&g, feed_back_by_tree);
    g.threshold = 0.01;
    const double tree = least_of(&g, feed_back_by_tree);
    printf("\n%-38s %11s %11s\n", "ms", "Table 5.1", "ours");
    printf("%-38s %11.3f %11.4f\n", "advect", 0.744, least_of(&g, advect_game));
    printf("%-38s %11.5f %11.5f\n", "diffuse", 0.00536, least_of(&g, diffuse_game));
    printf("%-38s %11.3f %11.4f\n", "panel solves", 5.626, place + assemble + sweep);
    printf("%-38s %11.3f %11.4f\n", "feedback, every panel at every cell", 41.175, naive);
    printf("%-38s %11.3f %11.4f\n", "feedback, quadtree (error 0.01)", 5.825, tree);
    printf("%-38s %11s %11.4f\n", "feedback, integrals over the panels", "-", feed_back);
    sk_coupling_free(&g.c);
    sk_mode_points_free(&g.points);
    sk_reduced_spectrum_free(&g.s);
    return 0;
}

int main(int argument_count, char **arguments)
{
    static const int modes[] = {73, 256, 1024, 4096, 16384};
    const int threads = argument_count > 1 ? atoi(arguments[1]) : omp_get_num_procs();
    if (argument_count > 2)
        return measure_game(threads);
    printf("%d threads; 73 modes: the source (Table 5.1) takes 0.744 ms for advection and 0.005 ms for diffusion\n",
           threads);
    printf("%7s %7s %11s %11s %11s %11s %11s\n", "modes", "cells", "right side", "step", "nodes", "tracers", "frame");
    for (size_t n = 0; n < sizeof modes / sizeof *modes; n++)
        if (measure(modes[n], threads))
            return 1;
    return measure_game(threads);
}
