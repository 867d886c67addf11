/* The report on unilateral incompressibility (Gerszewski's dissertation, chapter 3). */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/folder.h"
#include "reproduce.h"

/* --- Runs --- */

#define UNILATERAL "incompressibility=unilateral"
#define BILATERAL "incompressibility=bilateral"
/* In the source's incompressible solver each cell with a particle is liquid; Selkie's default is more exact. */
#define VOXEL "pressure.surface=voxel"
#define GHOST "pressure.surface=ghost_fluid"
#define COARSE "particles.per_cell=8"

#define FOUNTAIN(id, words, kind, surface)                                                                             \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "uic/fountains", .cost = 200, .quick_cost = 10,                           \
        .sets = {kind, surface, "output.every=3"}, .quick = {                                                          \
            "domain.resolution=80",                                                                                    \
            COARSE                                                                                                     \
        }                                                                                                              \
    }
#define OBSTACLE(id, words, kind, surface)                                                                             \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "uic/dam_obstacle", .cost = 300, .quick_cost = 12,                        \
        .sets = {kind, surface, "output.every=3", "time.end=2.5"}, .quick = {                                          \
            "domain.resolution=40",                                                                                    \
            COARSE                                                                                                     \
        }                                                                                                              \
    }
#define LARGE(id, words, where, seconds, interval, resolution, full)                                                   \
    {                                                                                                                  \
        .name = id, .label = words, .scene = where, .cost = full, .quick_cost = 10,                                    \
        .sets = {UNILATERAL, seconds, interval}, .quick = {                                                            \
            resolution,                                                                                                \
            COARSE                                                                                                     \
        }                                                                                                              \
    }

static const reproduce_run runs[] = {
    FOUNTAIN("fountains_uic", "unilateral", UNILATERAL, VOXEL),
    FOUNTAIN("fountains_bilateral", "bilateral, voxels", BILATERAL, VOXEL),
    FOUNTAIN("fountains_ghost", "bilateral, ghost fluid", BILATERAL, GHOST),
    OBSTACLE("obstacle_uic", "unilateral", UNILATERAL, VOXEL),
    OBSTACLE("obstacle_bilateral", "bilateral, voxels", BILATERAL, VOXEL),
    OBSTACLE("obstacle_ghost", "bilateral, ghost fluid", BILATERAL, GHOST),
    LARGE("city", "city_flood", "uic/city_flood", "time.end=9", "output.every=45", "domain.resolution=84", 6000),
    LARGE("quad", "quad_dam", "uic/quad_dam", "time.end=3", "output.every=15", "domain.resolution=40", 1000),
    LARGE("streams", "streams", "uic/streams", "time.end=3.6", "output.every=12", "domain.resolution=40", 600),
    LARGE("drops", "drops_in_pool", "uic/drops_in_pool", "time.end=2.4", "output.every=12", "domain.resolution=78",
          1500),
    LARGE("terrain", "terrain_dam", "uic/terrain_dam", "time.end=3", "output.every=15", "domain.resolution=78", 1500),
    LARGE("explosions", "explosions", "uic/explosions", "time.end=2.7", "output.every=9", "domain.resolution=32", 800),
};

/* --- Figures 3.1 and 3.2: against an incompressible solver --- */

static const char splash_heads[] =
    "run|share of the liquid in it|mean height (m)|standard deviation of the height (m)|a "
    "tenth is higher than (m)|spread to the sides (m)|expansion";

static const char splash_words[] = "Means over the frames from %g to %g s, of the particles %s; heights are from "
                                   "there. The spread to the sides is the root "
                                   "mean square distance from %s; the expansion is the volume of the cells that hold "
                                   "any of the particles over the volume "
                                   "that they fill at rest.";

/* The twins in a table, and the excess of the first over each of the others. */
static void splash_rows(reproduce_report *report, run_results *const *results, int count, const splash_box *box,
                        const char *where, const char *middle)
{
    splash all[REPRODUCE_MAX_RUNS];
    report_table(report, splash_heads);
    for (int i = 0; i < count; i++) {
        const splash s = all[i] = measure_splash(results[i], box);
        report_row(report, "%s|%s %%|%s|%s|%s|%s|%s", results[i]->run->label, number(100 * s.share), number(s.height),
                   number(s.deviation), number(s.high_tenth), number(s.sideways), number(s.expansion));
    }
    for (int i = 1; i < count; i++)
        report_row(report, "unilateral over \"%s\"|%s|%s|%s|%s|%s|%s", results[i]->run->label,
                   number(all[0].share / all[i].share), number(all[0].height / all[i].height),
                   number(all[0].deviation / all[i].deviation), number(all[0].high_tenth / all[i].high_tenth),
                   number(all[0].sideways / all[i].sideways), number(all[0].expansion / all[i].expansion));
    report_table_end(report);
    report_text(report, splash_words, box->from, box->to, where, middle);
}

static void side_by_side(reproduce_report *report, run_results *const *results, int count, const double *times,
                         int time_count)
{
    for (int t = 0; t < time_count; t++)
        for (int i = 0; i < count; i++) {
            char caption[96];
            snprintf(caption, sizeof caption, "%s, %g s", results[i]->run->label, times[t]);
            report_frame(report, results[i], times[t], caption);
        }
}

static void write_fountains(reproduce_report *report, run_results *const *results)
{
    static const splash_box air = {.from = 2,
                                   .to = 4,
                                   .low = {-100, 0.5, -100},
                                   .high = {100, 100, 100},
                                   .axis_count = 2,
                                   .axes = {{0.8, 1.25}, {1.7, 1.25}}};
    static const double times[] = {0.7, 1.6, 3};
    splash_rows(report, results, 3, &air, "above 0.5 m", "the nearer nozzle");
    side_by_side(report, results, 3, times, 3);
}

/* The splash is liquid thrown up as it passes over the obstacle, as in the source. A window that ends before the wave
 * returns from the far wall shows it alone; the whole run after the impact shows its later course. Liquid that touches
 * the far wall or the ceiling is then left out: suction holds bilateral liquid there until the end. */
static void write_obstacle(reproduce_report *report, run_results *const *results)
{
    static const splash_box passing = {.from = 0.5, .to = 1.2, .low = {4.25, 0.75, -100}, .high = {7.6, 100, 100}};
    static const splash_box whole = {.from = 0.5, .to = 2.5, .low = {4.25, 0.75, -100}, .high = {7.6, 5.6, 100}};
    static const splash_box ceiling = {.from = 1.5, .to = 2.5, .low = {-100, 5.6, -100}, .high = {100, 100, 100}};
    static const double times[] = {0.7, 0.9, 1.1, 1.6, 2.1};
    splash_rows(
        report, results, 3, &passing,
        "over and behind the obstacle (x from 4.25 to 7.6 m) and above its top at 0.75 m, while the flow passes it",
        "their mean place");
    splash_rows(
        report, results, 3, &whole,
        "over and behind the obstacle and above its top, 0.4 m (two cells of the coarse grid) away from the far wall "
        "and the ceiling",
        "their mean place");
    report_table(report, "run|share of the liquid within 0.4 m of the ceiling");
    for (int i = 0; i < 3; i++)
        report_row(report, "%s|%s %%", results[i]->run->label,
                   number(100 * measure_splash(results[i], &ceiling).share));
    report_table_end(report);
    report_text(
        report,
        "Means over the frames from %g to %g s: where the wave that climbs the far wall has struck the ceiling, "
        "suction holds the bilateral liquid.",
        ceiling.from, ceiling.to);
    side_by_side(report, results, 3, times, 5);
}

/* --- The other figures: pictures --- */

static void frames_of(reproduce_report *report, const run_results *results, const double *times, int count)
{
    for (int t = 0; t < count; t++) {
        char caption[96];
        snprintf(caption, sizeof caption, "%s, %g s", results->run->label, times[t]);
        report_frame(report, results, times[t], caption);
    }
}

static void write_city(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {3, 4.5, 6, 9};
    frames_of(report, results[0], times, 4);
}

static void write_quad(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.5, 1, 1.5, 2.5};
    frames_of(report, results[0], times, 4);
}

static void write_drops_and_terrain(reproduce_report *report, run_results *const *results)
{
    static const double drops[] = {0.8, 1.2, 1.6}, terrain[] = {1, 1.5, 2};
    frames_of(report, results[0], drops, 3);
    frames_of(report, results[1], terrain, 3);
}

static void write_streams(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.8, 1.6, 2.4, 3.6};
    frames_of(report, results[0], times, 4);
}

static void write_explosions(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.3, 0.9, 1.5, 2.4};
    frames_of(report, results[0], times, 4);
}

/* --- Tables 3.1 and 3.2: sizes and times --- */

/* The phases that solve for pressure and for the correction of density. */
static int is_solve(const char *phase)
{
    return strstr(phase, "pressure") != NULL || strstr(phase, "density") != NULL;
}

static void write_times(reproduce_report *report, run_results *const *results)
{
    static const struct {
        double particles, total, solve;
    } paper[] = {
        {16307596, 75.6, 35.3}, {104988, 7.8, 5.1},  {1539000, 21.7, 5.2}, {5508794, 118.5, 54.2},
        {2060247, 81.6, 52.1},  {6937747, 556, 470}, {6937747, 556, 470},  {3430944, 20, 11.3},
    };
    report_table(report,
                 "scene|cells|particles, the source|particles here, at most|the source: s a frame|of it "
                 "solving|here: s a frame|of it solving|times faster|solving, times faster|steps a frame|memory "
                 "(GiB)");

    for (int i = 0; i < 8; i++) {
        const run_results *run = results[i];
        int cells[3] = {0, 0, 0};
        if (run->scene)
            selkie_scene_cells(run->scene, cells);
        double frame = wall_for_a_second(run, NULL) / 30, solve = wall_for_a_second(run, is_solve) / 30;
        double steps = stats_largest(run, "step") / (30 * stats_largest(run, "time"));
        size_t memory = sk_run_memory(run->folder);
        const char *scene = strchr(run->run->scene, '/') + 1;
        report_row(report, "%s|%d x %d x %d|%.0f|%.0f|%s|%s|%s|%s|%s|%s|%s|%s", scene, cells[0], cells[1], cells[2],
                   paper[i].particles, stats_largest(run, "particles"), number(paper[i].total), number(paper[i].solve),
                   number(frame), number(solve), number(paper[i].total / frame), number(paper[i].solve / solve),
                   number(steps), memory ? number((double)memory / 1073741824.0) : "-");
    }
    report_table_end(report);
    report_text(
        report,
        "A frame is a thirtieth of a second, and its time a mean over the whole run, without writing files. The "
        "source's machine is not named; ours is this one with %d threads, on which nothing else should run. The "
        "source gives one row for its figures of the drops and of the terrain. Memory is what the simulation "
        "took at most.",
        report->threads);
}

static const reproduce_figure figures[] = {
    {.number = 1,
     .label = "Figure 3.1",
     .title = "two fountains",
     .about =
         "The same fountains with unilateral and with bilateral incompressibility. In the source the bilateral ones "
         "oscillate and collapse on themselves.",
     .runs = {"fountains_uic", "fountains_bilateral", "fountains_ghost"},
     .write = write_fountains},
    {.number = 2,
     .label = "Figure 3.2",
     .title = "dam break over an obstacle",
     .about =
         "In the source the unilateral liquid makes a large splash over the obstacle, the bilateral one hardly any.",
     .runs = {"obstacle_uic", "obstacle_bilateral", "obstacle_ghost"},
     .write = write_obstacle},
    {.number = 3,
     .label = "Figure 3.3",
     .title = "a city is flooded",
     .about = "A tidal wave between buildings.",
     .runs = {"city"},
     .write = write_city},
    {.number = 4,
     .label = "Figure 3.4",
     .title = "quadruple dam break",
     .about = "Four columns of water meet in the middle.",
     .runs = {"quad"},
     .write = write_quad},
    {.number = 5,
     .label = "Figures 3.5 and 3.6",
     .title = "drops, uneven ground",
     .about = "Liquid bodies fall into a round pool; a large dam breaks over hills.",
     .runs = {"drops", "terrain"},
     .write = write_drops_and_terrain},
    {.number = 7,
     .label = "Figures 3.7, 3.8, 3.10 and 3.11",
     .title = "two streams collide",
     .about = "They meet in the air and spread into a sheet.",
     .runs = {"streams"},
     .write = write_streams},
    {.number = 9,
     .label = "Figures 3.9 and 3.12",
     .title = "underwater explosions",
     .about = "Charges go off in a pool, one after the other.",
     .runs = {"explosions"},
     .write = write_explosions},
    {.number = 32,
     .label = "Tables 3.1 and 3.2",
     .title = "sizes and times",
     .about = "What a frame costs.",
     .runs = {"city", "fountains_uic", "obstacle_uic", "quad", "streams", "drops", "terrain", "explosions"},
     .write = write_times},
};

const reproduce_paper reproduce_uic = {
    .name = "uic",
    .title = "Unilateral incompressibility: the source's experiments",
    .citation =
        "D. Gerszewski, A. W. Bargteil: Physics-Based Animation of Large-Scale Splashing Liquids. ACM Transactions on "
        "Graphics 32(6), 2013; here after chapter 3 of Gerszewski's dissertation, University of Utah.",
    .about = "Liquid that resists compression but may come apart, beside its bilateral twin, which may not. The source "
             "shows its splashes as pictures only; the numbers here are ours. \"Bilateral, voxels\" is the source's "
             "incompressible solver, in which each cell with a particle is liquid; \"ghost fluid\" is our own, with a "
             "surface inside the cells.",
    .runs = runs,
    .run_count = sizeof runs / sizeof *runs,
    .figures = figures,
    .figure_count = sizeof figures / sizeof *figures,
};
