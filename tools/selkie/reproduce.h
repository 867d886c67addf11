/* Reports that compare Selkie with a paper's experiments: `selkie reproduce NAME`.
 *
 * A paper is two tables. Runs are scenes with some keys set, at full size or reduced (--quick). Figures list the runs
 * that they need and have a function that writes their part of the report from the runs' folders. Figures share runs,
 * and runs are kept between calls: finished ones are not repeated, interrupted ones are resumed. A further paper is a
 * further file reproduce_NAME.c and a line in reproduce.c.
 *
 * The report is written as Markdown and as HTML at once; pictures and plots lie beside it and are linked by relative
 * paths.
 */
#ifndef SELKIE_TOOL_REPRODUCE_H
#define SELKIE_TOOL_REPRODUCE_H

#include <stdio.h>
#include <selkie/selkie.h>
#include "io/particles_file.h"
#include "io/table_file.h"

enum { REPRODUCE_MAX_SETS = 10, REPRODUCE_MAX_RUNS = 16 };

typedef struct reproduce_run {
    const char *name;  /* of its folder */
    const char *label; /* in plots and tables */
    const char *scene;
    const char *quick_scene;               /* of --quick; NULL = the same */
    const char *sets[REPRODUCE_MAX_SETS];  /* KEY=VALUE, of both sizes */
    const char *quick[REPRODUCE_MAX_SETS]; /* further ones of --quick */
    double cost, quick_cost;               /* relative wall time, for the time left */
} reproduce_run;

/* Results of a run. */
typedef struct run_results {
    const reproduce_run *run;
    char *folder;   /* as opened */
    char *relative; /* from the report */
    int diverged;
    selkie_scene *scene;
    sk_table *stats, *probes; /* NULL where there are none */
} run_results;

typedef struct reproduce_report {
    FILE *markdown, *html;
    const char *folder;
    int quick;
    int threads;
    int only;    /* simulate and train nothing */
    int columns; /* of the table that is open */
    int failed;  /* something could not be made; said already */
} reproduce_report;

typedef struct reproduce_figure {
    int number;        /* for --figure */
    const char *label; /* "Figure 3.1"; NULL = "Figure" and the number */
    const char *title;
    const char *about;
    const char *runs[REPRODUCE_MAX_RUNS]; /* names, ends with NULL */
    /* Results in the order of `runs`. */
    void (*write)(reproduce_report *report, run_results *const *results);
} reproduce_figure;

typedef struct reproduce_paper {
    const char *name;
    const char *title;
    const char *citation;
    const char *about; /* how to read the report */
    const reproduce_run *runs;
    int run_count;
    const reproduce_figure *figures;
    int figure_count;
} reproduce_paper;

extern const reproduce_paper reproduce_idp;
extern const reproduce_paper reproduce_uic;
extern const reproduce_paper reproduce_liquid_boundary;
extern const reproduce_paper reproduce_elastoplastic;
extern const reproduce_paper reproduce_shape_matching;
extern const reproduce_paper reproduce_reduced;
extern const reproduce_paper reproduce_splash;

/* --- Writing --- */

void report_heading(reproduce_report *report, int level, const char *text);
void report_text(reproduce_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Cells separated by '|'. */
void report_table(reproduce_report *report, const char *heads);
void report_row(reproduce_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
void report_table_end(reproduce_report *report);
void report_image(reproduce_report *report, const char *relative_path, const char *caption);

/* "better", "as good" or "worse": a size (of an error) against that of the paper. "-" where one is NaN. */
const char *verdict(double ours, double paper);
/* "+1.23 %" of a ratio's distance from 1, "-" for NaN; the last few texts stay valid. */
const char *percent(double ratio);
/* "%.4g", "-" for NaN. */
const char *number(double value);

/* --- Measuring --- */

/* NULL where there is no such column. */
const double *stats_column(const run_results *results, const char *name);
/* Mean of a column over the last `seconds`; NaN if it is missing. */
double stats_late_mean(const run_results *results, const char *column, double seconds);
double stats_largest(const run_results *results, const char *column);
/* First time (s), at or after a given one, at which a column reaches a value; NaN if never. */
double stats_first_time(const run_results *results, const char *column, double least, double from);
/* Mean of the probe level, or of those called level_*, over the last `seconds`, over the depth that the particles must
 * have at rest in the domain with `solid` (m2 or m3) of obstacles under water: 1 is right. */
double level_ratio(const run_results *results, double seconds, double solid);
/* Standard deviation of density / rest density in cells that have liquid on all sides, in the last frame (dense grid).
 */
double density_spread(const run_results *results);
/* The particles of the frame nearest to a time (s; below 0: the last), in the axes of the scene; NULL if there is none.
 */
sk_particles_data *read_frame(const run_results *results, double time);
/* Particles inside obstacles, deeper than `depth` (m), in the frame nearest to a time; -1 if there is none. */
long particles_in_solids(const run_results *results, double time, double depth);
/* Fluid particles (not candidates, not boundary) and the shape of an object in its current pose, in the frames between
 * two times (s). */
typedef struct object_leaks {
    long frames;  /* that were read */
    long inside;  /* deeper than `depth` in it: maximum over the frames */
    long through; /* outside in two successive frames, with the object between: paths below its rim by
                     `margin` */
} object_leaks;
/* Kinetic and potential energy (J) of all particles, and the work of the scene's forces other than gravity, from the
 * frames between two times (s). */
typedef struct energy_budget {
    long frames;
    double start, end, work;
    double excess; /* maximum over the frames of energy - start - work */
} energy_budget;
energy_budget energy_of_run(const run_results *results, double from, double to);
/* Upper bound of the speed (m/s) that gravity and the scene's first force, a vortex, can give a particle of its first
 * source; NaN without one. */
double fastest_of_gravity_and_vortex(const selkie_scene *scene);
object_leaks leaks_of_object(const run_results *results, int object, double from, double to, double depth,
                             double margin);
/* Mean wall time of a step (ms), without the first; of all phases, or of those that a test accepts. */
double mean_step_ms(const run_results *results, int (*accept)(const char *phase));

/* Wall time for each simulated second (s), of all phases or of those that a test accepts. */
double wall_for_a_second(const run_results *results, int (*accept)(const char *phase));

/* The particles in a box, in the frames between two times: means over the frames. */
typedef struct splash {
    double particles;  /*    in the box */
    double share;      /*    of all particles */
    double height;     /* m  mean over them, along y, from the box's lower side */
    double deviation;  /* m  standard deviation of it */
    double high_tenth; /* m  90 % quantile */
    double sideways;   /* m  root mean square distance from the nearest axis, or from their mean position without one */
    double expansion;  /*    cells that hold any of them over the cells that they fill at rest */
} splash;
/* Space and time; axes are vertical, at x and z. */
typedef struct splash_box {
    double from, to; /* s */
    double low[3], high[3];
    int axis_count;
    double axes[4][2];
} splash_box;
splash measure_splash(const run_results *results, const splash_box *box);

/* --- Pictures --- */

/* The frame nearest to a time (s; below 0: the last). */
void report_frame(reproduce_report *report, const run_results *results, double time, const char *caption);
/* A plot of one column of several runs over time. */
typedef struct report_curves {
    const char *name; /* of the file, without folder and ending */
    const char *title;
    int run_count;
    int group_size;                  /* runs in a panel */
    const char *const *group_titles; /* one a panel; NULL: none */
    const char *column;              /* of stats.csv */
    const char *y_label;
} report_curves;
void report_plot(reproduce_report *report, run_results *const *results, const report_curves *curves);

#endif
