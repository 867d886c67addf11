/* The experiments of Gao, Li, Qin and Hao, "A Novel Fluid-solid Coupling Framework Integrating FLIP and Shape Matching
 * Methods" (CGI 2017): its figures and its two tables of times. */
#include <math.h>
#include <stdio.h>

#include "reproduce.h"

/* --- Runs --- */

#define SCENE(id, words, cells, seconds, quick_seconds)                                                                \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "shape_matching/" id, .cost = seconds, .quick_cost = quick_seconds,       \
        .sets = {"output.every=2"}, .quick = {                                                                         \
            cells,                                                                                                     \
        }                                                                                                              \
    }

static const reproduce_run runs[] = {
    SCENE("elastic_bodies", "elastic bodies", "domain.cell_size=0.0625", 60, 6),
    SCENE("pour_on_bunny", "water on a bunny", "domain.cell_size=0.0625", 40, 4),
    SCENE("dam_and_bunny", "dam break and bunny", "domain.cell_size=0.0625", 80, 8),
    SCENE("melting_bowl", "melting bowl", "domain.resolution=40", 60, 12),
    SCENE("cone", "elastic cone", "domain.cell_size=0.036", 4, 2),
    {.name = "cone_positions",
     .label = "elastic cone, the paper's order and Eq. 4",
     .scene = "shape_matching/cone",
     .cost = 4,
     .quick_cost = 2,
     .sets = {"output.every=2", "materials[1].soft.scheme=position"},
     .quick = {"domain.cell_size=0.036"}},
};

/* --- Figures --- */

static void frames_of(reproduce_report *report, const run_results *results, const double *times, int count)
{
    for (int t = 0; t < count; t++) {
        char caption[96];
        snprintf(caption, sizeof caption, "%s, %g s", results->run->label, times[t]);
        report_frame(report, results, times[t], caption);
    }
}

/* Volume at the end, and the fastest particle. */
static void write_volume(reproduce_report *report, const run_results *run)
{
    report_table(report,
                 "run|particles|of solids|kernel volume at the end / at the start|fastest particle (m/s)|iterations");
    report_row(report, "%s|%.0f|%.0f|%s|%s|%s", run->run->label, stats_largest(run, "particles"),
               stats_largest(run, "solid_particles"), number(stats_late_mean(run, "volume_ratio", 0.2)),
               number(stats_largest(run, "max_speed")), number(stats_late_mean(run, "pressure_iterations", 1e9)));
    report_table_end(report);
}

static void write_bodies(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.2, 0.5, 1.0, 2.5};
    frames_of(report, results[0], times, 4);
}

static void write_bunny(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.5, 1.0, 1.5, 2.5};
    write_volume(report, results[0]);
    frames_of(report, results[0], times, 4);
}

static void write_dam(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.4, 0.8, 1.5, 3.0};
    write_volume(report, results[0]);
    frames_of(report, results[0], times, 4);
}

static void write_bowl(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.5, 2.0, 4.0, 6.0};
    const run_results *run = results[0];
    report_table(report, "run|solid particles at the start|at the end|coldest (K)|warmest (K)");
    report_row(report, "%s|%.0f|%.0f|%s|%s", run->run->label, stats_largest(run, "solid_particles"),
               stats_late_mean(run, "solid_particles", 1e-9), number(stats_late_mean(run, "temperature_min", 1e-9)),
               number(stats_late_mean(run, "temperature_max", 1e-9)));
    report_table_end(report);
    frames_of(report, run, times, 4);
}

/* --- Tables of times --- */

/* A row of Table 1 or 2 of the paper. */
typedef struct paper_time {
    const char *name, *particles, *grid;
    double milliseconds; /* a step, on a GTX 1080 */
} paper_time;

static void write_row(reproduce_report *report, const paper_time *paper, const run_results *run)
{
    const double here = mean_step_ms(run, NULL);
    char cells[48] = "-";
    if (run->scene) {
        int n[3];
        selkie_scene_cells(run->scene, n);
        snprintf(cells, sizeof cells, "%d x %d x %d", n[0], n[1], n[2]);
    }
    report_row(report, "%s|%s|%.0f, %.0f of them solid|%s|%s|%s|%s|%s", paper->name, paper->particles,
               stats_largest(run, "particles"), stats_largest(run, "solid_particles"), paper->grid, cells,
               number(paper->milliseconds), number(here), number(paper->milliseconds / here));
}

static void begin_times(reproduce_report *report)
{
    report_table(report, "scene|particles, the paper|here|grid, the paper|here|ms a step, the paper|here|times faster");
}

static void end_times(reproduce_report *report)
{
    report_table_end(report);
    report_text(report, "The paper's machine is a GTX 1080; here %d threads of the processor.", report->threads);
}

static void write_table_1(reproduce_report *report, run_results *const *results)
{
    static const paper_time paper[] = {{"Fig. 1", "390k", "64 x 64 x 64", 79.33},
                                       {"Fig. 6", "80k of liquid", "64 x 64 x 64", 82.06},
                                       {"Fig. 7", "680k", "128 x 128 x 64", 138.68},
                                       {"Fig. 8", "60k of liquid", "64 x 64 x 64", 71.32}};
    begin_times(report);
    for (int i = 0; i < 4; i++)
        write_row(report, &paper[i], results[i]);
    end_times(report);
}

static void write_table_2(reproduce_report *report, run_results *const *results)
{
    static const paper_time paper[] = {{"FEM, Yang et al. 2012", "5,000 of liquid", "-", 21.32},
                                       {"SPH, Shao et al. 2015", "5,000 and 23,095 solid", "-", 62.47},
                                       {"Gao et al. 2017", "5,000 and 8,199 solid", "-", 25.56}};
    static const double times[] = {0.2, 0.5, 1.0, 1.8};
    begin_times(report);
    for (int i = 0; i < 3; i++)
        write_row(report, &paper[i], results[0]);
    end_times(report);
    frames_of(report, results[0], times, 4);
}

/* Eq. 4 beside the velocity form. */
static void write_schemes(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.5, 1.8};
    report_table(report, "run|largest kinetic energy (J)|at the end|fastest particle (m/s)|ms a step");
    for (int i = 0; i < 2; i++)
        report_row(report, "%s|%s|%s|%s|%s", results[i]->run->label,
                   number(stats_largest(results[i], "kinetic_energy")),
                   number(stats_late_mean(results[i], "kinetic_energy", 0.1)),
                   number(stats_largest(results[i], "max_speed")), number(mean_step_ms(results[i], NULL)));
    report_table_end(report);
    for (int i = 0; i < 2; i++)
        frames_of(report, results[i], times, 2);
}

static const reproduce_figure figures[] = {
    {.number = 1,
     .title = "elastic bodies",
     .about = "Bodies of rubber and jelly fall onto each other. There is no liquid.",
     .runs = {"elastic_bodies"},
     .write = write_bodies},
    {.number = 6,
     .title = "water pours on a plastic bunny",
     .about = "The rest shape of the bunny flows where it yields. Volume is that by the kernel.",
     .runs = {"pour_on_bunny"},
     .write = write_bunny},
    {.number = 7,
     .title = "a dam breaks on a soft bunny",
     .about = "The paper lifts the bunny by a force; here it floats by its density.",
     .runs = {"dam_and_bunny"},
     .write = write_dam},
    {.number = 8,
     .title = "hot water melts a bowl of ice",
     .about = "Latent heat counts here; the paper has none.",
     .runs = {"melting_bowl"},
     .write = write_bowl},
    {.number = 11,
     .label = "Table 1",
     .title = "times",
     .about = "Mean wall time of a step, without files.",
     .runs = {"elastic_bodies", "pour_on_bunny", "dam_and_bunny", "melting_bowl"},
     .write = write_table_1},
    {.number = 12,
     .label = "Table 2",
     .title = "water pours into an elastic cone",
     .about = "The paper compares three methods on this scene.",
     .runs = {"cone"},
     .write = write_table_2},
    {.number = 13,
     .label = "Eq. 4",
     .title = "the paper's order",
     .about =
         "Goals after the pressure solve with the velocities of Eq. 4, beside goals as forces before the transfer. "
         "Eq. 4 loses the spin of a free body.",
     .runs = {"cone", "cone_positions"},
     .write = write_schemes},
};

const reproduce_paper reproduce_shape_matching = {
    .name = "shape_matching",
    .title = "FLIP and shape matching: the paper's experiments",
    .citation = "Y. Gao, S. Li, H. Qin, A. Hao: A Novel Fluid-solid Coupling Framework Integrating FLIP and Shape "
                "Matching Methods. Computer Graphics International 2017.",
    .about = "The paper gives numbers of particles, grids and times; shapes, places and materials are ours. The bunny "
             "is a union of balls.",
    .runs = runs,
    .run_count = sizeof runs / sizeof *runs,
    .figures = figures,
    .figure_count = sizeof figures / sizeof *figures,
};
