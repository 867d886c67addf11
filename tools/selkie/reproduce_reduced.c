/* The report on reduced fluids (Gerszewski's dissertation, chapter 5). */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "geom/outline.h"
#include "io/folder.h"
#include "methods/reduced/coupling.h"
#include "render/picture.h"
#include "reproduce.h"
#include "tool.h"

/* --- Runs --- */

#define JET(id, words, cost_of, ...)                                                                                   \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "reduced/jet", .cost = cost_of, .quick_cost = 0.4 * cost_of,              \
        .sets = {"output.every=6", "render.style=dye", __VA_ARGS__}, .quick = {                                        \
            "domain.resolution=96",                                                                                    \
            "time.end=1.5",                                                                                            \
            "particles.per_cell=4",                                                                                    \
        }                                                                                                              \
    }
#define DRAFTING(id, words, step)                                                                                      \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "reduced/drafting", .cost = 20, .quick_cost = 5,                          \
        .sets = {"time.step=" step, "output.every=15"}, .quick = {                                                     \
            "domain.resolution=64",                                                                                    \
        }                                                                                                              \
    }
#define GAME(id, words, way)                                                                                           \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "reduced/game", .cost = 20, .quick_cost = 5,                              \
        .sets = {"reduced.feedback_by=" way, "output.every=30"}, .quick = {                                            \
            "time.end=3",                                                                                              \
        }                                                                                                              \
    }

static const reproduce_run runs[] = {
    {.name = "wall_image",
     .label = "disc at a wall",
     .scene = "reduced/wall_image",
     .cost = 5,
     .quick_cost = 3,
     .sets = {"render.style=lic", "time.end=0.5", "output.every=5"}},
    JET("jet_plain", "63 eigenfunctions", 4, "reduced.cut=1"),
    JET("jet_drawn", "63 eigenfunctions and the drawn mode", 5, "reduced.cut=0.001"),
    JET("jet_many", "2,500 eigenfunctions", 25, "reduced.modes=2500", "reduced.cut=1"),
    {.name = "jet_field",
     .label = "the drawing as a flow",
     .scene = "reduced/jet",
     .cost = 2,
     .quick_cost = 1,
     .sets = {"reduced.modes=2500", "reduced.cut=1", "time.end=0.1", "output.every=3", "render.style=lic",
              "render.color=speed"},
     .quick = {"domain.resolution=96"}},
    DRAFTING("drafting", "1/60 s", "0.016666666666666666"),
    DRAFTING("drafting_fine", "1/240 s", "0.004166666666666667"),
    GAME("game", "integrals over the panels", "panels"),
    GAME("game_quadtree", "quadtree", "quadtree"),
    {.name = "game_grid",
     .label = "every panel at every cell",
     .scene = "reduced/game",
     .cost = 40,
     .quick_cost = 10,
     .sets = {"reduced.feedback_by=grid", "time.end=0.5", "output.every=30"}},
};

/* --- Figure 5.2: the wall --- */

/* Largest normal velocity along the wall of a disc that slides along it at 1 m/s, 0.2 radii away, with so many copies
 * of the box around it. NaN if it cannot be computed. */
static double wall_flux(int copies)
{
    enum { PANELS = 33, POINTS = 101 };
    const double size[2] = {1.0, 0.5}, center[2] = {0.0, 0.0}, place[2] = {0.5, 0.072};
    const int closed[2] = {1, 1};
    double most = 0.0;
    selkie_error error;
    sk_coupling c;
    sk_outline outline;
    sk_panels *panels = sk_allocate_zeroed(NULL, sizeof *panels);
    if (!panels || sk_outline_circle(center, 0.06, PANELS, NULL, &outline, &error))
        return NAN;
    int code = sk_panels_make(panels, outline.count, (const double(*)[2])outline.corners, center, "disc", NULL, &error);
    sk_outline_free(&outline);
    if (code || sk_coupling_make(&c, 1, panels, size, closed, NULL, &error))
        return NAN;
    sk_coupling_place(&c, 0, place, 0.0);
    sk_coupling_assemble(&c, 1);
    for (int n = 0; n < c.count; n++)
        c.wanted[n] = c.middle[n][1] - place[1];
    if (copies == 0) /* without the walls: the body's own matrix alone */
        memset(c.matrix, 0, (size_t)c.count * (size_t)c.count * sizeof *c.matrix);
    sk_coupling_solve(&c, 1e-7);
    for (int n = 0; n < POINTS; n++) {
        double velocity[2];
        sk_coupling_velocity(&c, (const double[2]){(n + 0.5) / POINTS, 0.0}, copies, velocity);
        most = fmax(most, fabs(velocity[1]));
    }
    sk_coupling_free(&c);
    return most;
}

static void write_wall(reproduce_report *report, run_results *const *results)
{
    report_table(report, "images|largest velocity through the wall over that of the disc");
    report_row(report, "none (left of the figure)|%s", number(wall_flux(0)));
    report_row(report, "the nearest (right of the figure)|%s", number(wall_flux(1)));
    report_row(report, "eight boxes away|%s", number(wall_flux(8)));
    report_table_end(report);
    report_text(report, "The method sums rows of images in closed form, which is the limit of many boxes. A disc of 33 "
                        "panels slides along the wall, 0.2 radii away.");
    report_frame(report, results[0], 0.4, "flow around the disc, line integral convolution");
}

/* --- Figures 5.3 and 5.4: the jet --- */

/* A picture of a velocity field, on a lattice of particles. */
static void report_field(reproduce_report *report, const selkie_scene *scene, const char *name, const char *caption,
                         void (*velocity)(const selkie_scene *scene, const double x[2], double u[2]))
{
    enum { SIDE = 400 };
    char path[4096], relative[256];
    selkie_error error = {0};
    sk_stage *stage = NULL;
    sk_image image = {0};
    float(*values)[6] = malloc((size_t)SIDE * SIDE * sizeof *values);
    if (!values || sk_stage_create(scene, &stage, &error)) {
        free(values);
        report->failed = 1;
        return;
    }
    for (int n = 0; n < SIDE * SIDE; n++) {
        const double x[2] = {scene->domain.size[0] * (n / SIDE + 0.5) / SIDE,
                             scene->domain.size[1] * (n % SIDE + 0.5) / SIDE};
        double u[2];
        velocity(scene, x, u);
        for (int d = 0; d < 2; d++) {
            values[n][d] = (float)x[d];
            values[n][3 + d] = (float)u[d];
        }
        values[n][2] = values[n][5] = 0.0f;
    }
    const sk_picture_particles particles = {.count = (size_t)SIDE * SIDE,
                                            .position = values[0],
                                            .position_stride = sizeof *values,
                                            .velocity = values[0] + 3,
                                            .velocity_stride = sizeof *values};
    sk_picture_options options;
    sk_picture_options_defaults(scene, &options);
    options.style = SELKIE_STYLE_LIC;
    options.color = SELKIE_COLOR_SPEED;
    options.width = options.height = 720;
    options.label = 0;
    snprintf(relative, sizeof relative, "plots/%s.png", name);
    snprintf(path, sizeof path, "%s/plots", report->folder);
    int code = sk_folder_make(path, &error);
    snprintf(path, sizeof path, "%s/%s", report->folder, relative);
    if (!code)
        code = sk_picture_draw(stage, &particles, &options, &image, &error);
    if (!code)
        code = sk_image_write_png(&image, path, &error);
    if (code) {
        complain_error(&error);
        report->failed = 1;
    } else {
        report_image(report, relative, caption);
    }
    sk_image_free(&image);
    sk_stage_destroy(stage);
    free(values);
}

/* What the artist draws: the strokes of the scene. */
static void drawn_velocity(const selkie_scene *scene, const double x[2], double u[2])
{
    u[0] = u[1] = 0.0;
    for (int k = 0; scene->reduced.drawn_count && k < scene->reduced.drawn[0].stroke_count; k++) {
        const selkie_stroke_def *s = &scene->reduced.drawn[0].strokes[k];
        const double way[2] = {s->to[0] - s->from[0], s->to[1] - s->from[1]}, length = hypot(way[0], way[1]);
        const double t =
            fmin(fmax(((x[0] - s->from[0]) * way[0] + (x[1] - s->from[1]) * way[1]) / (length * length), 0.0), 1.0);
        const double q = hypot(x[0] - s->from[0] - t * way[0], x[1] - s->from[1] - t * way[1]) / s->radius;
        for (int d = 0; d < 2; d++)
            u[d] += q < 1.0 ? s->speed * (1.0 - q * q) * (1.0 - q * q) * way[d] / length : 0.0;
    }
}

static void write_drawing(reproduce_report *report, run_results *const *results)
{
    if (results[0]->scene)
        report_field(report, results[0]->scene, "drawing", "the strokes, as drawn", drawn_velocity);
    report_frame(report, results[0], 0.1, "made free of divergence");
}

static void write_jet(reproduce_report *report, run_results *const *results)
{
    const double whole = stats_late_mean(results[2], "kinetic_energy", 0.05);
    report_table(report, "basis|kinetic energy at the end (J)|of many modes|the source");
    for (int n = 0; n < 3; n++) {
        static const char *const source[3] = {"poorly captures the jet", "captures the jet well", "-"};
        const double energy = stats_late_mean(results[n], "kinetic_energy", 0.05);
        report_row(report, "%s|%s|%s|%s", results[n]->run->label, number(energy), number(energy / whole), source[n]);
    }
    report_table_end(report);
    report_plot(report, results,
                &(report_curves){.name = "jet",
                                 .title = "kinetic energy of the driven jet",
                                 .run_count = 3,
                                 .group_size = 3,
                                 .column = "kinetic_energy",
                                 .y_label = "J"});
    for (int n = 0; n < 3; n++)
        report_frame(report, results[n], 1.2, results[n]->run->label);
}

/* --- Figure 5.5: drafting --- */

/* Distance (m) between two bodies at a time (s), from bodies.csv; NaN if it is missing. */
static double gap_at(const run_results *results, int upper, int lower, double time)
{
    char path[4096];
    selkie_error error;
    sk_table *table = NULL;
    double best = INFINITY, y[2] = {NAN, NAN};
    snprintf(path, sizeof path, "%s/bodies.csv", results->folder);
    if (sk_table_read(path, &table, &error))
        return NAN;
    const double *when = sk_table_column(table, "time"), *body = sk_table_column(table, "body"),
                 *height = sk_table_column(table, "y");
    for (int64_t r = 0; when && body && height && r < table->row_count; r++) {
        const double away = fabs(when[r] - time);
        if (away > best + 1e-9)
            continue;
        best = fmin(best, away);
        if (body[r] == upper || body[r] == lower)
            y[body[r] == lower] = height[r];
    }
    sk_table_free(table);
    return y[0] - y[1];
}

static void write_drafting(reproduce_report *report, run_results *const *results)
{
    report_table(report, "pair|distance at the start (m)|after 4 s, step of 1/60 s|step of 1/240 s|the source");
    for (int pair = 0; pair < 2; pair++)
        report_row(report, "%s|%s|%s|%s|the upper one catches up", pair ? "boxes" : "discs",
                   number(gap_at(results[0], 2 * pair, 2 * pair + 1, 0.0)),
                   number(gap_at(results[0], 2 * pair, 2 * pair + 1, 4.0)),
                   number(gap_at(results[1], 2 * pair, 2 * pair + 1, 4.0)));
    report_table_end(report);
    for (int t = 0; t < 3; t++) {
        char caption[64];
        snprintf(caption, sizeof caption, "%d s", 2 * t + 1);
        report_frame(report, results[0], 2.0 * t + 1.0, caption);
    }
}

/* --- Figure 5.6 and Table 5.1: the game --- */

static void write_game(reproduce_report *report, run_results *const *results)
{
    for (int t = 0; t < 2; t++) {
        char caption[64];
        snprintf(caption, sizeof caption, "%d s", t ? 3 : 1);
        report_frame(report, results[0], t ? 3.0 : 1.0, caption);
    }
}

/* The least of a column over the run, ms: other work of the machine does not count. */
static double least_ms(const run_results *results, const char *column)
{
    const double *values = stats_column(results, column);
    double least = NAN;
    for (int64_t r = 1; values && r < results->stats->row_count; r++)
        least = fmin(isnan(least) ? values[r] : least, values[r]);
    return least;
}

static void write_times(reproduce_report *report, run_results *const *results)
{
    const double sheets = least_ms(results[0], "sheets_ms"), feedback = least_ms(results[0], "feedback_ms"),
                 tree = least_ms(results[1], "feedback_ms"), naive = least_ms(results[2], "feedback_ms");
    report_table(report, "part of a step|the source (ms)|ours (ms)");
    report_row(report, "advect and diffuse|0.749|%s", number(least_ms(results[0], "modes_ms")));
    report_row(report, "panel solves|5.626|%s", number(sheets));
    report_row(report, "feedback, every panel at every cell|41.175|%s", number(naive));
    report_row(report, "feedback by the quadtree|5.825|%s", number(tree));
    report_row(report, "feedback by integrals over the panels|-|%s", number(feedback));
    report_row(report, "panel solves and feedback|11.451|%s", number(sheets + feedback));
    report_table_end(report);
    report_text(report,
                "73 modes on 65 x 65 cells, 15 bodies of 147 panels. The least over the steps of a run, on %d "
                "%s. Panel solves include the places of the panels, the matrix of images and the sweeps.",
                report->threads, report->threads == 1 ? "thread" : "threads");
}

/* --- The paper --- */

static const reproduce_figure figures[] = {
    {.number = 2,
     .label = "Figure 5.2",
     .title = "walls",
     .about = "A body near a wall: mirror images let no flow cross it.",
     .runs = {"wall_image"},
     .write = write_wall},
    {.number = 3,
     .label = "Figure 5.3",
     .title = "a drawing",
     .about = "Strokes of the artist, and their part that is free of divergence.",
     .runs = {"jet_field"},
     .write = write_drawing},
    {.number = 4,
     .label = "Figure 5.4",
     .title = "the jet",
     .about = "Eigenfunctions alone miss the jet; a drawn mode beside them holds it.",
     .runs = {"jet_plain", "jet_drawn", "jet_many"},
     .write = write_jet},
    {.number = 5,
     .label = "Figure 5.5",
     .title = "drafting",
     .about = "Bodies above draft off those below and catch up.",
     .runs = {"drafting", "drafting_fine"},
     .write = write_drafting},
    {.number = 6,
     .label = "Figure 5.6",
     .title = "the game",
     .about = "15 bodies in currents.",
     .runs = {"game"},
     .write = write_game},
    {.number = 51,
     .label = "Table 5.1",
     .title = "times",
     .about = "What the parts of a step of the game take.",
     .runs = {"game", "game_quadtree", "game_grid"},
     .write = write_times},
};

const reproduce_paper reproduce_reduced = {
    .name = "reduced",
    .title = "Enhancements to model-reduced fluid simulation: the chapter's experiments",
    .citation = "D. Gerszewski: dissertation, chapter 5, Enhancements to model-reduced fluid simulation.",
    .about = "The chapter gives numbers of modes, cells, bodies and panels, and times; shapes, places and speeds are "
             "ours.",
    .runs = runs,
    .run_count = sizeof runs / sizeof *runs,
    .figures = figures,
    .figure_count = sizeof figures / sizeof *figures,
};
