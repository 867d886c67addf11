/* The report on implicit density projection (Kugelstadt, Longva, Thuerey and Bender 2019). */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reproduce.h"

/* --- Runs --- */

#define DAM_2D "idp/double_dam_2d"
#define PLAIN "volume=none"
#define QUICK_2D                                                                                                       \
    {                                                                                                                  \
        "domain.resolution=64", "time.end=6", "output.every=25"                                                        \
    }
/* A row of the double dam break in 2D. `steps` is the number of them over 30 s. */
#define DAM(id, words, volume, step, tolerance, steps)                                                                 \
    {                                                                                                                  \
        .name = id, .label = words, .scene = DAM_2D, .quick = QUICK_2D, .cost = (steps)*6e-3,                          \
        .quick_cost = (steps)*3e-4, .sets = {                                                                          \
            volume,                                                                                                    \
            step,                                                                                                      \
            tolerance,                                                                                                 \
            "output.every=125"                                                                                         \
        }                                                                                                              \
    }

static const reproduce_run runs[] = {
    /* Figs. 3, 4, 5, 8 */
    DAM("dam_idp_1ms", "IDP, 1 ms", "volume=idp", "time.step=0.001", "pressure.tolerance=1e-3", 30000),
    DAM("dam_idp_5ms", "IDP, 5 ms", "volume=idp", "time.step=0.005", "pressure.tolerance=1e-3", 6000),
    DAM("dam_idp_10ms", "IDP, 10 ms", "volume=idp", "time.step=0.01", "pressure.tolerance=1e-3", 3000),
    DAM("dam_idp_20ms", "IDP, 20 ms", "volume=idp", "time.step=0.02", "pressure.tolerance=1e-3", 1500),
    DAM("dam_flip_1ms", "FLIP, 1 ms", PLAIN, "time.step=0.001", "pressure.tolerance=1e-3", 20000),
    DAM("dam_flip_5ms", "FLIP, 5 ms", PLAIN, "time.step=0.005", "pressure.tolerance=1e-3", 4000),
    DAM("dam_flip_10ms", "FLIP, 10 ms", PLAIN, "time.step=0.01", "pressure.tolerance=1e-3", 2000),
    DAM("dam_flip_20ms", "FLIP, 20 ms", PLAIN, "time.step=0.02", "pressure.tolerance=1e-3", 1000),
    DAM("dam_idp_1e-2", "IDP, 1e-2", "volume=idp", "time.step=0.005", "pressure.tolerance=1e-2", 6000),
    DAM("dam_idp_1e-4", "IDP, 1e-4", "volume=idp", "time.step=0.005", "pressure.tolerance=1e-4", 6000),
    DAM("dam_idp_1e-6", "IDP, 1e-6", "volume=idp", "time.step=0.005", "pressure.tolerance=1e-6", 8000),
    DAM("dam_flip_1e-2", "FLIP, 1e-2", PLAIN, "time.step=0.005", "pressure.tolerance=1e-2", 4000),
    DAM("dam_flip_1e-4", "FLIP, 1e-4", PLAIN, "time.step=0.005", "pressure.tolerance=1e-4", 4000),
    DAM("dam_flip_1e-6", "FLIP, 1e-6", PLAIN, "time.step=0.005", "pressure.tolerance=1e-6", 5000),
    DAM("dam_eq8_20ms", "Eq. 8", "volume=eq8", "time.step=0.02", "pressure.tolerance=1e-3", 1000),
    DAM("dam_losasso_20ms", "Losasso et al.", "volume=losasso", "time.step=0.02", "pressure.tolerance=1e-3", 1000),
    DAM("dam_ando_20ms", "Ando and Tsuruno", "volume=ando", "time.step=0.02", "pressure.tolerance=1e-3", 2000),
    DAM("dam_sato_20ms", "Sato et al.", "volume=sato", "time.step=0.02", "pressure.tolerance=1e-3", 2000),
#define CUBOID(id, words, transfer, volume)                                                                            \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "idp/rotating_cuboid_3d", .cost = 4000, .quick_cost = 15,                 \
        .sets = {transfer, volume, "output.every=250"}, .quick = {                                                     \
            "domain.resolution=40",                                                                                    \
            "time.end=4",                                                                                              \
            "output.every=50"                                                                                          \
        }                                                                                                              \
    }
    CUBOID("cuboid_flip", "FLIP", "transfer=flip", PLAIN),
    CUBOID("cuboid_apic", "APIC", "transfer=apic", PLAIN),
    CUBOID("cuboid_flip_idp", "FLIP with IDP", "transfer=flip", "volume=idp"),
    CUBOID("cuboid_apic_idp", "APIC with IDP", "transfer=apic", "volume=idp"),
    /* The stability tests, Fig. 7 */
    {.name = "collapse_idp",
     .label = "collapse, IDP",
     .scene = "idp/collapse_recover_3d",
     .cost = 160,
     .quick_cost = 3,
     .sets = {"volume=idp"},
     .quick = {"domain.resolution=24"}},
    {.name = "collapse_flip",
     .label = "collapse, FLIP",
     .scene = "idp/collapse_recover_3d",
     .cost = 80,
     .quick_cost = 2,
     .sets = {PLAIN},
     .quick = {"domain.resolution=24"}},
    {.name = "one_cell_idp",
     .label = "one cell, IDP",
     .scene = "idp/one_cell_3d",
     .cost = 100,
     .quick_cost = 3,
     .sets = {"volume=idp"},
     .quick = {"domain.resolution=24", "liquids[0].count=55296"}},
    {.name = "one_cell_flip",
     .label = "one cell, FLIP",
     .scene = "idp/one_cell_3d",
     .cost = 60,
     .quick_cost = 2,
     .sets = {PLAIN},
     .quick = {"domain.resolution=24", "liquids[0].count=55296"}},
    /* Fig. 9 */
    {.name = "rabbit_idp",
     .label = "push-out (IDP)",
     .scene = "idp/bunny_pushout_2d",
     .cost = 20,
     .quick_cost = 2,
     .sets = {"volume=idp", "output.every=5"},
     .quick = {"domain.resolution=62", "time.end=3"}},
    {.name = "rabbit_flip",
     .label = "onto the surface (FLIP)",
     .scene = "idp/bunny_pushout_2d",
     .cost = 15,
     .quick_cost = 1,
     .sets = {PLAIN, "output.every=5"},
     .quick = {"domain.resolution=62", "time.end=3"}},
#define DAM_3D(id, words, volume, step, tolerance, steps)                                                              \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "idp/double_dam_3d", .cost = (steps)*3e-2, .quick_cost = (steps)*7e-4,    \
        .sets = {volume, step, tolerance, "output.every=125"}, .quick = {                                              \
            "domain.resolution=64",                                                                                    \
            "time.end=2",                                                                                              \
            "output.every=25"                                                                                          \
        }                                                                                                              \
    }
    DAM_3D("dam3_idp_2ms", "IDP, 2 ms, 1e-4", "volume=idp", "time.step=0.002", "pressure.tolerance=1e-4", 7500),
    DAM_3D("dam3_flip_2ms", "FLIP, 2 ms, 1e-4", PLAIN, "time.step=0.002", "pressure.tolerance=1e-4", 5000),
    DAM_3D("dam3_idp_20ms", "IDP, 20 ms, 1e-3", "volume=idp", "time.step=0.02", "pressure.tolerance=1e-3", 750),
    DAM_3D("dam3_flip_20ms", "FLIP, 20 ms, 1e-3", PLAIN, "time.step=0.02", "pressure.tolerance=1e-3", 500),
};

/* --- Figures 3 and 4: volume over 30 s --- */

static const char volume_heads[] =
    "run|the paper: volume|kernel volume|surface volume|occupied cells|Eq. 19|rest level|std of "
    "density|against the paper";

/* Judges the worse of kernel volume and rest level: neither contains the noise of particle numbers. */
static void volume_row(reproduce_report *report, const run_results *run, const char *paper, double paper_size)
{
    double late = 2, level = level_ratio(run, late, 0), kernel = stats_late_mean(run, "volume_ratio", late);
    double error = fmax(fabs(kernel - 1), fabs(level - 1));
    report_row(report, "%s|%s|%s|%s|%s|%s|%s|%s|%s", run->run->label, paper, percent(kernel),
               percent(stats_late_mean(run, "surface_volume_ratio", late)),
               percent(stats_late_mean(run, "occupied_ratio", late)), number(stats_late_mean(run, "volume_eq19", late)),
               percent(level), number(density_spread(run)), verdict(error, paper_size));
}

static void volume_rows(reproduce_report *report, run_results *const *results, int count, const char *const *papers,
                        const double *sizes)
{
    report_table(report, volume_heads);
    for (int i = 0; i < count; i++)
        volume_row(report, results[i], papers[i], sizes[i]);
    report_table_end(report);
}

static const char *const two_groups[] = {"with the density projection", "without"};

static void write_steps(reproduce_report *report, run_results *const *results)
{
    static const char *const papers[] = {"below 2 %", "below 2 %", "below 2 %", "below 2 %",
                                         "+10 %",     "-14 %",     "-26 %",     "-58 %"};
    static const double sizes[] = {0.02, 0.02, 0.02, 0.02, 0.10, 0.14, 0.26, 0.58};
    volume_rows(report, results, 8, papers, sizes);
    report_plot(report, results,
                &(report_curves){.name = "figure_3",
                                 .title = "Kernel volume over that of the start, by time step",
                                 .run_count = 8,
                                 .group_size = 4,
                                 .group_titles = two_groups,
                                 .column = "volume_ratio",
                                 .y_label = "volume ratio"});
    report_plot(report, results,
                &(report_curves){.name = "figure_3_occupied",
                                 .title = "Occupied cells over those of the start, by time step",
                                 .run_count = 8,
                                 .group_size = 4,
                                 .group_titles = two_groups,
                                 .column = "occupied_ratio",
                                 .y_label = "occupied cells"});
}

static void write_tolerances(reproduce_report *report, run_results *const *results)
{
    static const char *const papers[] = {"below 1 %", "below 1 %",    "below 1 %",    "below 1 %",
                                         "-33 %",     "-13 to -14 %", "-13 to -14 %", "-13 to -14 %"};
    static const double sizes[] = {0.01, 0.01, 0.01, 0.01, 0.33, 0.14, 0.14, 0.14};
    volume_rows(report, results, 8, papers, sizes);
    report_plot(report, results,
                &(report_curves){.name = "figure_4",
                                 .title = "Kernel volume over that of the start, by tolerance",
                                 .run_count = 8,
                                 .group_size = 4,
                                 .group_titles = two_groups,
                                 .column = "volume_ratio",
                                 .y_label = "volume ratio"});
}

/* --- Figure 5: other methods --- */

static void write_methods(reproduce_report *report, run_results *const *results)
{
    static const char *const papers[] = {"loses volume", "explodes",     "pops, loses volume",
                                         "oscillates",   "loses volume", "none of these"};
    report_table(
        report,
        "method|the paper|kernel volume|rest level|std of density|largest kinetic energy (J)|kinetic energy at the "
        "end (J)|wall time of a step (ms)");
    for (int i = 0; i < 6; i++)
        report_row(report, "%s%s|%s|%s|%s|%s|%s|%s|%s", results[i]->run->label,
                   results[i]->diverged ? " (diverged)" : "", papers[i],
                   percent(stats_late_mean(results[i], "volume_ratio", 2)), percent(level_ratio(results[i], 2, 0)),
                   number(density_spread(results[i])), number(stats_largest(results[i], "kinetic_energy")),
                   number(stats_late_mean(results[i], "kinetic_energy", 2)), number(mean_step_ms(results[i], NULL)));
    report_table_end(report);
    report_text(
        report,
        "An explosion shows in the largest kinetic energy, popping and oscillation in what of it is left at the end, "
        "when the water should be at rest.");

    report_plot(report, results,
                &(report_curves){.name = "figure_5",
                                 .title = "Kernel volume over that of the start, by method",
                                 .run_count = 6,
                                 .group_size = 6,
                                 .column = "volume_ratio",
                                 .y_label = "volume ratio"});
    report_plot(report, results,
                &(report_curves){.name = "figure_5_energy",
                                 .title = "Kinetic energy",
                                 .run_count = 6,
                                 .group_size = 6,
                                 .column = "kinetic_energy",
                                 .y_label = "energy (J)"});
    for (int i = 0; i < 6; i++)
        report_frame(report, results[i], -1, results[i]->run->label);
}

/* --- Figure 6: rotating cuboid --- */

static void write_cuboid(reproduce_report *report, run_results *const *results)
{
    static const char *const papers[] = {"-38.5 %", "-38 %", "within 0.5 %", "within 0.5 %"};
    static const double sizes[] = {0.385, 0.38, 0.005, 0.005};
    report_table(report, "run|the paper: volume|kernel volume|surface volume|occupied cells|Eq. 19|against the paper");
    for (int i = 0; i < 4; i++) {
        double kernel = stats_late_mean(results[i], "volume_ratio", 1);
        report_row(report, "%s|%s|%s|%s|%s|%s|%s", results[i]->run->label, papers[i], percent(kernel),
                   percent(stats_late_mean(results[i], "surface_volume_ratio", 1)),
                   percent(stats_late_mean(results[i], "occupied_ratio", 1)),
                   number(stats_late_mean(results[i], "volume_eq19", 1)), verdict(kernel - 1, sizes[i]));
    }
    report_table_end(report);
    report_plot(report, results,
                &(report_curves){.name = "figure_6",
                                 .title = "Kernel volume over that of the start",
                                 .run_count = 4,
                                 .group_size = 4,
                                 .column = "volume_ratio",
                                 .y_label = "volume ratio"});
    report_frame(report, results[3], 0, "start");
    report_frame(report, results[1], -1, "end, APIC");
    report_frame(report, results[3], -1, "end, APIC with IDP");
}

/* --- Figure 7: stability --- */

static void write_stability(reproduce_report *report, run_results *const *results)
{
    report_table(
        report,
        "run|the paper: back to full volume|here: to 99 % of the kernel volume (s)|kernel volume at the end|Eq. 19 at "
        "the end|largest kinetic energy (J)|what gravity can give (J)|against the paper");
    for (int i = 0; i < 4; i++) {
        const run_results *run = results[i];
        int collapse = i < 2, projected = i % 2 == 0;
        double from = run->scene && collapse ? run->scene->pressure.start : 0;
        double took = stats_first_time(run, "volume_ratio", 0.99, from) - from;
        /* All of the water falls from its start to the floor. */
        const double *potential = stats_column(run, "potential_energy"), *kinetic = stats_column(run, "kinetic_energy");
        double most = potential && run->stats->row_count ? potential[0] + kinetic[0] : NAN;
        report_row(report, "%s|%s|%s|%s|%s|%s|%s|%s", run->run->label, projected ? "in less than 1 s" : "never",
                   isnan(took) ? "never" : number(took), percent(stats_late_mean(run, "volume_ratio", 0.2)),
                   number(stats_late_mean(run, "volume_eq19", 0.2)), number(stats_largest(run, "kinetic_energy")),
                   number(most), projected ? verdict(isnan(took) ? INFINITY : took, 1) : "-");
    }
    report_table_end(report);

    static const char *const groups[] = {"collapse", "one cell"};
    report_plot(report, results,
                &(report_curves){.name = "figure_7",
                                 .title = "Kernel volume over what the particles stand for",
                                 .run_count = 4,
                                 .group_size = 2,
                                 .group_titles = groups,
                                 .column = "volume_ratio",
                                 .y_label = "volume ratio"});

    static const double times[] = {0, 0.1, 0.3, 2};
    for (int i = 0; i < 4; i++) {
        char caption[64];
        snprintf(caption, sizeof caption, "one cell, about %g s", times[i]);
        report_frame(report, results[2], times[i], caption);
    }
}

/* --- Figure 8: distributions --- */

static void write_distributions(reproduce_report *report, run_results *const *results)
{
    report_table(
        report,
        "run|the paper|std of density in the bulk, last frame|in the run's own statistics|largest error of density");
    static const char *const papers[] = {"clusters and voids", "clusters and voids", "no observable errors",
                                         "no observable errors"};
    for (int i = 0; i < 4; i++)
        report_row(report, "%s|%s|%s|%s|%s", results[i]->run->label, papers[i], number(density_spread(results[i])),
                   number(stats_late_mean(results[i], "density_error_std", 2)),
                   number(stats_late_mean(results[i], "density_error_max", 2)));
    report_table_end(report);
    report_text(report, "The bulk is what has particles in all cells up to two cells away; density is that of Eq. 12.");
    report_frame(report, results[0], -1, "FLIP, 5 ms");
    report_frame(report, results[2], -1, "IDP, 5 ms");
}

/* --- Figure 9: push-out --- */

static const double rabbit_area = 0.52522 * 0.9 * 0.9; /* m2, as scenes/idp/bunny.obj says */

static void write_push_out(reproduce_report *report, run_results *const *results)
{
    report_table(report, "run|the paper|particles in the solid at 0.1 s|at 0.5 s|rest level against what it must "
                         "be|std of density in the "
                         "run's own statistics|kernel volume");
    static const char *const papers[] = {"all leave, the level rises", "they clump, their volume is lost"};
    for (int i = 0; i < 2; i++) {
        int cells[3];
        double h = results[i]->scene ? selkie_scene_cells(results[i]->scene, cells) : 0;
        report_row(report, "%s|%s|%ld|%ld|%s|%s|%s", results[i]->run->label, papers[i],
                   particles_in_solids(results[i], 0.1, 1e-3 * h), particles_in_solids(results[i], 0.5, 1e-3 * h),
                   percent(level_ratio(results[i], 0.5, rabbit_area)),
                   number(stats_late_mean(results[i], "density_error_std", 0.5)),
                   percent(stats_late_mean(results[i], "volume_ratio", 0.5)));
    }
    report_table_end(report);
    static const double times[] = {0, 0.1, 0.5, 100};
    for (int i = 0; i < 2; i++)
        for (int t = 0; t < 4; t++) {
            char caption[96];
            if (t < 3)
                snprintf(caption, sizeof caption, "%s, %g s", results[i]->run->label, times[t]);
            else
                snprintf(caption, sizeof caption, "%s, end", results[i]->run->label);
            report_frame(report, results[i], times[t], caption);
        }
}

/* --- Figure 10: speed --- */

/* The phases that the projection adds to a step. */
static int is_projection(const char *phase)
{
    return !strncmp(phase, "density", 7) || strstr(phase, "_again") != NULL;
}

static void write_speed(reproduce_report *report, run_results *const *results)
{
    double ms[4], end[4];
    report_table(report, "run|the paper: ms a step|here: ms a step|of it for the projection (ms)|kernel volume|rest "
                         "level|Eq. 19|wall time for a "
                         "simulated second (s)");
    static const char *const papers[] = {"242", "188", "-", "-"};
    for (int i = 0; i < 4; i++) {
        const double *time = stats_column(results[i], "time");
        ms[i] = mean_step_ms(results[i], NULL);
        end[i] = time && results[i]->stats->row_count ? time[results[i]->stats->row_count - 1] : NAN;
        double steps = results[i]->stats ? (double)results[i]->stats->row_count : NAN;
        report_row(report, "%s|%s|%s|%s|%s|%s|%s|%s", results[i]->run->label, papers[i], number(ms[i]),
                   number(mean_step_ms(results[i], is_projection)),
                   percent(stats_late_mean(results[i], "volume_ratio", 1)), percent(level_ratio(results[i], 1, 0)),
                   number(stats_late_mean(results[i], "volume_eq19", 1)), number(ms[i] * 1e-3 * steps / end[i]));
    }
    report_table_end(report);

    /* The cost of the projection, against the paper. */
    double added = mean_step_ms(results[0], is_projection), rest = ms[0] - added;
    double added_large = mean_step_ms(results[2], is_projection);
    report_table(report, "what|the paper|here|against the paper");
    report_row(report, "the projection adds to a step, within one run at 2 ms|+29 %%|%s|%s", percent(1 + added / rest),
               verdict(added / rest, 0.29));
    report_row(report, "the same at 20 ms|-|%s|-", percent(1 + added_large / (ms[2] - added_large)));
    report_row(report, "a step with it over one without, two runs at 2 ms|+29 %%|%s|%s", percent(ms[0] / ms[1]),
               verdict(fmax(ms[0] / ms[1] - 1, 0), 0.29));
    report_row(
        report, "IDP at 20 ms against FLIP at its best, times faster|7.8|%s|%s",
        number(ms[1] * stats_largest(results[1], "step") / (ms[2] * stats_largest(results[2], "step"))),
        verdict(ms[2] * stats_largest(results[2], "step") / (ms[1] * stats_largest(results[1], "step")), 1 / 7.8));
    report_row(report, "volume change of IDP at 20 ms|0.9 %%|%s|%s",
               percent(stats_late_mean(results[2], "volume_ratio", 1)),
               verdict(stats_late_mean(results[2], "volume_ratio", 1) - 1, 0.009));
    report_row(report, "volume change of FLIP at 20 ms|-35 %%|%s|-", percent(level_ratio(results[3], 1, 0)));
    report_table_end(report);
    report_text(report, "The paper's times are of a 4-core i7-6700K; ours are means over a run, so that nothing else "
                        "should run beside it. For FLIP the change is that of the rest level.");

    report_plot(report, results,
                &(report_curves){.name = "figure_10",
                                 .title = "Kernel volume over that of the start",
                                 .run_count = 4,
                                 .group_size = 4,
                                 .column = "volume_ratio",
                                 .y_label = "volume ratio"});
    for (int i = 1; i < 3; i++) {
        report_frame(report, results[i], 0.6, results[i]->run->label);
        report_frame(report, results[i], -1, results[i]->run->label);
    }
}

static const reproduce_figure figures[] = {
    {.number = 3,
     .title = "volume and time step",
     .about = "Double dam break in 2D over 30 s, tolerance 1e-3. How much of the liquid is there at the end?",
     .runs = {"dam_idp_1ms", "dam_idp_5ms", "dam_idp_10ms", "dam_idp_20ms", "dam_flip_1ms", "dam_flip_5ms",
              "dam_flip_10ms", "dam_flip_20ms"},
     .write = write_steps},
    {.number = 4,
     .title = "volume and tolerance",
     .about = "The same with steps of 5 ms and several tolerances of the solvers.",
     .runs = {"dam_idp_1e-2", "dam_idp_5ms", "dam_idp_1e-4", "dam_idp_1e-6", "dam_flip_1e-2", "dam_flip_5ms",
              "dam_flip_1e-4", "dam_flip_1e-6"},
     .write = write_tolerances},
    {.number = 5,
     .title = "other methods",
     .about = "The same with steps of 20 ms, tolerance 1e-3, and the methods that the projection is compared with.",
     .runs = {"dam_flip_20ms", "dam_eq8_20ms", "dam_losasso_20ms", "dam_ando_20ms", "dam_sato_20ms", "dam_idp_20ms"},
     .write = write_methods},
    {.number = 6,
     .title = "rotating cuboid",
     .about = "A cuboid swirls a basin in 3D, CFL number 1, 30 s.",
     .runs = {"cuboid_flip", "cuboid_apic", "cuboid_flip_idp", "cuboid_apic_idp"},
     .write = write_cuboid},
    {.number = 7,
     .title = "stability",
     .about = "Two starts that no step should meet: water that fell through itself onto the floor, and all of it in "
              "one cell.",
     .runs = {"collapse_idp", "collapse_flip", "one_cell_idp", "one_cell_flip"},
     .write = write_stability},
    {.number = 8,
     .title = "distribution of the particles",
     .about = "How evenly the particles of the double dam break lie at the end.",
     .runs = {"dam_flip_5ms", "dam_flip_20ms", "dam_idp_5ms", "dam_idp_20ms"},
     .write = write_distributions},
    {.number = 9,
     .title = "push-out",
     .about = "A rabbit in a basin, full of water at the start. Its water must come out and raise the level.",
     .runs = {"rabbit_idp", "rabbit_flip"},
     .write = write_push_out},
    {.number = 10,
     .title = "speed",
     .about = "Double dam break in 3D, 275,200 particles, 10 s.",
     .runs = {"dam3_idp_2ms", "dam3_flip_2ms", "dam3_idp_20ms", "dam3_flip_20ms"},
     .write = write_speed},
};

const reproduce_paper reproduce_idp = {
    .name = "idp",
    .title = "Implicit density projection: the paper's experiments",
    .citation = "T. Kugelstadt, A. Longva, N. Thuerey, J. Bender: Implicit Density Projection for Volume Conserving "
                "Liquids. IEEE "
                "Transactions on Visualization and Computer Graphics, 2019.",
    .about = "Changes are against the start. The kernel volume is the sum of min(density, room) over the cells; the "
             "rest level "
             "stands against the level that the particles must have; Eq. 19 counts particles and cannot reach 1 for a "
             "liquid that "
             "is spread at random (0.95 to 0.97 in 2D, 0.945 in 3D are its ceilings), so that it is shown and not "
             "judged by. "
             "Numbers are means over the end of a run. \"Better\", \"as good\" and \"worse\" compare the size of the "
             "error with the "
             "paper's.",
    .runs = runs,
    .run_count = sizeof runs / sizeof *runs,
    .figures = figures,
    .figure_count = sizeof figures / sizeof *figures,
};
