/* The report on liquid boundaries (Cornelis et al. 2015). */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/folder.h"
#include "reproduce.h"

/* --- Runs --- */

#define RABBIT(id, words, alpha, solver)                                                                               \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "liquid_boundary/bunny_alpha", .cost = 350, .quick_cost = 10,             \
        .sets = {"objects[0].alpha=" alpha, "sph.solver=" solver, "output.every=5"}, .quick = {                        \
            "domain.resolution=40",                                                                                    \
            "time.step=0.008",                                                                                         \
        }                                                                                                              \
    }
#define BALL(id, words, spacing)                                                                                       \
    {                                                                                                                  \
        .name = id, .label = words, .scene = "liquid_boundary/sampling", .cost = 10, .quick_cost = 3,                  \
        .sets = {"objects[0].spacing=" spacing, "output.every=2"}, .quick = {                                          \
            "domain.resolution=20",                                                                                    \
        }                                                                                                              \
    }

static const reproduce_run runs[] = {
    RABBIT("alpha_50", "alpha 0.5", "0.5", "iisph"),
    RABBIT("alpha_75", "alpha 0.75", "0.75", "iisph"),
    RABBIT("alpha_100", "alpha 1", "1", "iisph"),
    RABBIT("accelerated_50", "alpha 0.5, our solver", "0.5", "accelerated"),
    RABBIT("accelerated_100", "alpha 1, our solver", "1", "accelerated"),
    BALL("sampling_grid", "on the grid", "1"),
    BALL("sampling_dense", "0.85 of the spacing", "0.85"),
    BALL("sampling_denser", "0.7 of the spacing", "0.7"),
    {.name = "teaser",
     .label = "teaser",
     .scene = "liquid_boundary/teaser",
     .cost = 60,
     .quick_cost = 10,
     .sets = {"output.every=5"},
     .quick = {"domain.resolution=24"}},
    {.name = "cup",
     .label = "cup",
     .scene = "liquid_boundary/cup",
     .cost = 2000,
     .quick_cost = 40,
     .sets = {"output.every=2"},
     .quick = {"domain.resolution=20"}},
    {.name = "ship",
     .label = "ship",
     .scene = "liquid_boundary/ship",
     .cost = 20000,
     .quick_cost = 60,
     .sets = {"output.every=10"},
     .quick = {"domain.resolution=50"}},
};

/* --- Section 5.2: alpha --- */

static double largest_between(const run_results *results, const char *column, double from, double to)
{
    const double *values = stats_column(results, column), *time = stats_column(results, "time");
    double most = NAN;
    for (size_t r = 0; values && time && r < (size_t)results->stats->row_count; r++)
        if (time[r] >= from && time[r] <= to)
            most = fmax(isnan(most) ? values[r] : most, values[r]);
    return most;
}

static double mean_between(const run_results *results, const char *column, double from, double to)
{
    const double *values = stats_column(results, column), *time = stats_column(results, "time");
    double sum = 0.0, count = 0.0;
    for (size_t r = 0; values && time && r < (size_t)results->stats->row_count; r++)
        if (time[r] > from && time[r] <= to) {
            sum += values[r];
            count += 1.0;
        }
    return count > 0.0 ? sum / count : NAN;
}

static void write_alpha(reproduce_report *report, run_results *const *results)
{
    static const struct {
        double iterations, density;
    } paper[] = {{18, 1002.074}, {NAN, NAN}, {62, 1002.108}, {NAN, NAN}, {NAN, NAN}};
    report_table(report,
                 "run|iterations, the paper|iterations here|at most|density, the paper (kg/m3)|density here|at most|"
                 "candidates left at the end|boundary particles|ms a step");

    for (int i = 0; i < 5; i++) {
        const run_results *run = results[i];
        double begin = run->scene ? run->scene->objects[0].timeline[0].assemble : NAN;
        double solid = stats_first_time(run, "boundaries", 0.95 * stats_largest(run, "candidates"), 0);
        double end = isnan(solid) ? (run->scene ? run->scene->time.end : NAN) : solid;
        char density[32], densest[32];
        snprintf(density, sizeof density, "%.3f", 1000.0 * (1.0 + mean_between(run, "density_error_mean", begin, end)));
        snprintf(densest, sizeof densest, "%.3f",
                 1000.0 * (1.0 + largest_between(run, "density_error_mean", begin, end)));
        report_row(report, "%s|%s|%s|%s|%s|%s|%s|%s|%s|%s", run->run->label, number(paper[i].iterations),
                   number(mean_between(run, "pressure_iterations", begin, end)),
                   number(largest_between(run, "pressure_iterations", begin + 1e-9, end)),
                   isnan(paper[i].density) ? "-"
                   : i == 0                ? "1002.074"
                                           : "1002.108",
                   density, densest, number(stats_late_mean(run, "candidates", 1e-9)),
                   number(stats_late_mean(run, "boundaries", 1e-9)), number(mean_step_ms(run, NULL)));
    }
    report_table_end(report);
    report_text(
        report,
        "The paper does not say how its liquid lies at first, how fast it is led, and how long a step is; "
        "docs/manual/liquid_boundary.md says what that decides. Means from the moment when the rabbit begins "
        "to gather until 95 %% of it are solid. The density is 1000 (1 + the mean of max(rho / rho0 - 1, 0) over "
        "fluid and candidates), measured at the start of the steps, which is what the step before really left; "
        "at most: in any step. The first three runs use the relaxed Jacobi solver of the paper, the others "
        "the accelerated one.");

    report_plot(report, results,
                &(report_curves){.name = "alpha",
                                 .title = "iterations of the pressure solve",
                                 .run_count = 3,
                                 .group_size = 3,
                                 .column = "pressure_iterations",
                                 .y_label = "iterations"});
    static const double times[] = {0.2, 0.4, 1.2};
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 3; i += 2) {
            char caption[96];
            snprintf(caption, sizeof caption, "%s, %g s", results[i]->run->label, times[t]);
            report_frame(report, results[i], times[t], caption);
        }
}

/* --- Figure 3: sampling --- */

static void write_sampling(reproduce_report *report, run_results *const *results)
{
    const double released = 0.1, until = 0.2;

    /* Speed after the release, compared with free fall. */
    report_table(report,
                 "samples of the ball|particles|fastest within 0.1 s of the release (m/s)|what gravity makes of it "
                 "(m/s)|times that|largest density / rest density at the release");
    for (int i = 0; i < 3; i++) {
        double speed = largest_between(results[i], "max_speed", released, until), fall = 9.81 * (until - released);
        report_row(report, "%s|%.0f|%s|%s|%s|%s", results[i]->run->label, stats_largest(results[i], "particles"),
                   number(speed), number(fall), number(speed / fall),
                   number(1.0 + largest_between(results[i], "density_error_max", released, released + 0.03)));
    }
    report_table_end(report);

    /* The curves of all three runs. */
    report_text(report,
                "The ball falls freely for the first 0.1 s. On the grid it does just that; with samples too close "
                "together it bursts as soon as it is liquid.");
    report_plot(report, results,
                &(report_curves){.name = "sampling",
                                 .title = "fastest particle",
                                 .run_count = 3,
                                 .group_size = 3,
                                 .column = "max_speed",
                                 .y_label = "m/s"});

    /* A picture of each run. */
    for (int i = 0; i < 3; i++) {
        char caption[96];
        snprintf(caption, sizeof caption, "%s, 0.1 s after the release", results[i]->run->label);
        report_frame(report, results[i], 0.2, caption);
    }
}

/* --- Pictures, leaks, times --- */

static void frames_of(reproduce_report *report, const run_results *results, const double *times, int count)
{
    for (int t = 0; t < count; t++) {
        char caption[96];
        snprintf(caption, sizeof caption, "%s, %g s", results->run->label, times[t]);
        report_frame(report, results, times[t], caption);
    }
}

static void write_teaser(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.4, 0.8, 1.6, 2.1};
    frames_of(report, results[0], times, 4);
}

static void write_cup(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {0.6, 1.8, 3, 3.8, 4.48, 5.4, 6, 7};
    const run_results *cup = results[0];
    double spacing = cup->scene ? selkie_scene_spacing(cup->scene) : NAN;
    object_leaks leaks = leaks_of_object(cup, 0, 2, 5.2, 0.5 * spacing, 0.15);
    report_table(report, "leak test|value");
    report_row(report, "frames from 2 to 5.2 s: filled, tilted and moved|%ld", leaks.frames);
    report_row(report, "fluid particles in the cup's wall, deeper than half a spacing, at most in a frame|%ld",
               leaks.inside);
    report_row(report, "fluid particles that went through it between two frames|%ld", leaks.through);
    report_row(report, "fastest particle from 2 s to the release (m/s)|%s",
               number(largest_between(cup, "max_speed", 2, 5.2)));
    report_row(report, "fastest particle from the release on (m/s)|%s",
               number(largest_between(cup, "max_speed", 5.2, 7)));
    report_row(report, "what the tap's height and speed and the vortex can make of a particle (m/s)|%s",
               number(fastest_of_gravity_and_vortex(cup->scene)));
    energy_budget energy = energy_of_run(cup, 5.2, 7);
    report_row(report, "energy at the release, work of the vortex since then, energy at the end (kJ)|%s, %s, %s",
               number(1e-3 * energy.start), number(1e-3 * energy.work), number(1e-3 * energy.end));
    report_row(report, "most energy above that of the release and the vortex' work in any frame (kJ)|%s",
               number(1e-3 * energy.excess));
    report_row(report, "the cup's particles, of which the last arrived at (s)|%.0f, %s",
               stats_largest(cup, "boundaries"),
               number(stats_first_time(cup, "boundaries", stats_largest(cup, "boundaries"), 0)));
    report_table_end(report);
    frames_of(report, cup, times, 8);
}

static void write_ship(reproduce_report *report, run_results *const *results)
{
    static const double times[] = {1, 2.5, 3.5, 5, 5.9, 6.5, 8};
    frames_of(report, results[0], times, 7);
}

static void write_times(reproduce_report *report, run_results *const *results)
{
    static const struct {
        const char *particles;
        double seconds;
    } paper[] = {{"1.3 million", 20}, {"12 million", 190}};
    report_table(report,
                 "scene|particles, the paper|particles here|the paper: s a frame (16 cores)|here: s a frame|ms a "
                 "step|iterations|bytes a particle|memory (GiB)");
    for (int i = 0; i < 2; i++) {
        const run_results *run = results[i];
        size_t memory = sk_run_memory(run->folder);
        double particles = stats_largest(run, "particles");
        report_row(report, "%s|%s|%.0f|%s|%s|%s|%s|%s|%s", run->run->label, paper[i].particles, particles,
                   number(paper[i].seconds), number(wall_for_a_second(run, NULL) / 50), number(mean_step_ms(run, NULL)),
                   number(stats_late_mean(run, "pressure_iterations", 1e9)),
                   memory ? number((double)memory / particles) : "-",
                   memory ? number((double)memory / 1073741824.0) : "-");
    }
    report_table_end(report);
    report_text(report, "A frame is a fiftieth of a second, without writing files; %d threads here.", report->threads);
}

static const reproduce_figure figures[] = {
    {.number = 1,
     .title = "liquid takes the shape of a solid",
     .about = "Fluid is blue, candidates are yellow, boundary particles green.",
     .runs = {"teaser"},
     .write = write_teaser},
    {.number = 2,
     .label = "Section 5.2",
     .title = "how much animation",
     .about =
         "The share alpha of the animated velocity in that of a candidate: more of it needs more iterations. Half a "
         "million particles.",
     .runs = {"alpha_50", "alpha_75", "alpha_100", "accelerated_50", "accelerated_100"},
     .write = write_alpha},
    {.number = 3,
     .title = "grid and oversampling",
     .about = "A ball that was solid is released, sampled on the grid and more densely.",
     .runs = {"sampling_grid", "sampling_dense", "sampling_denser"},
     .write = write_sampling},
    {.number = 5,
     .title = "the cup",
     .about = "It forms, is filled, tilted and moved without leaking, and dissolves in a vortex.",
     .runs = {"cup"},
     .write = write_cup},
    {.number = 6,
     .title = "the ship",
     .about = "A filled hull rises from a stream and falls back into it.",
     .runs = {"ship"},
     .write = write_ship},
    {.number = 7,
     .label = "Section 5.3",
     .title = "times",
     .about = "What a frame costs.",
     .runs = {"cup", "ship"},
     .write = write_times},
};

const reproduce_paper reproduce_liquid_boundary = {
    .name = "liquid_boundary",
    .title = "Liquid boundaries for implicit incompressible SPH: the paper's experiments",
    .citation =
        "J. Cornelis, M. Ihmsen, A. Peer, M. Teschner: Liquid Boundaries for Implicit Incompressible SPH. Computers & "
        "Graphics 52, 2015.",
    .about =
        "The paper gives numbers of particles, spacings, steps, and a few figures; shapes and places are ours. Its "
        "machine has 16 cores.",
    .runs = runs,
    .run_count = sizeof runs / sizeof *runs,
    .figures = figures,
    .figure_count = sizeof figures / sizeof *figures,
};
