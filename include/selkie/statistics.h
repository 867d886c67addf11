/* Statistics of a step: one table that gives the struct, the columns of stats.csv, their documentation, the curves of
 * `selkie plot`, the progress of `selkie run` and the summary of `selkie info`.
 *
 * A row is X(type, name, unit, meaning), followed by optional members of selkie_statistic, such as
 * .panel = SELKIE_PANEL_ENERGY. A method that has something to report adds a row here and fills it in its descriptor;
 * nothing else changes.
 */
#ifndef SELKIE_STATISTICS_H
#define SELKIE_STATISTICS_H

#include <stdint.h>
#include <selkie/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SELKIE_MAX_PHASES 64

/* Panels of `selkie plot`, in the order of the figure: X(name, title, left axis, right axis, flags). A panel without
 * data is left out. */
/* clang-format off */
#define SELKIE_PANELS(X) \
    X(NONE, "", "", "", 0) \
    X(VOLUME, "Volume, relative to the start", "ratio", "", 0) \
    X(ENERGY, "Energy", "energy (J)", "", SELKIE_PANEL_TOTAL) \
    X(ITERATIONS, "Iterations of the pressure solve", "iterations", "", SELKIE_PANEL_FROM_ZERO) \
    X(RESIDUAL, "Residual of the pressure solve", "residual", "", SELKIE_PANEL_LOGARITHMIC) \
    X(STEP_TIME, "Wall time of a step", "time (ms)", "", SELKIE_PANEL_FROM_ZERO | SELKIE_PANEL_PHASES) \
    X(PARTICLES, "Particles and time step", "particles", "time step (s)", SELKIE_PANEL_RIGHT_FROM_ZERO) \
    X(SPEED, "Fastest particle", "speed (m/s)", "", SELKIE_PANEL_FROM_ZERO)
/* clang-format on */

enum {
    SELKIE_PANEL_FROM_ZERO = 1,
    SELKIE_PANEL_RIGHT_FROM_ZERO = 2,
    SELKIE_PANEL_LOGARITHMIC = 4,
    SELKIE_PANEL_TOTAL = 8,  /* also the sum of its curves */
    SELKIE_PANEL_PHASES = 16 /* of a single run: the phases of the step, stacked */
};

typedef enum selkie_panel {
#define SELKIE_PANEL_MEMBER(name, ...) SELKIE_PANEL_##name,
    SELKIE_PANELS(SELKIE_PANEL_MEMBER)
#undef SELKIE_PANEL_MEMBER
        SELKIE_PANEL_COUNT
} selkie_panel;

/* What `selkie info` prints of a column over the whole run. */
typedef enum selkie_summary {
    SELKIE_SUMMARY_NONE,
    SELKIE_SUMMARY_LAST,
    SELKIE_SUMMARY_RANGE, /* the last, the least and the largest value */
    SELKIE_SUMMARY_MEAN,
    SELKIE_SUMMARY_TOTAL /* the sum and the mean */
} selkie_summary;

/* clang-format off */
#define SELKIE_STATISTICS(X) \
    X(int64_t, step, "", "number of the step, from 1", \
      .brief = "step", .progress = 5) \
    X(double, time, "s", "at the end of the step", \
      .brief = "time", .progress = 1, .format = "%.4f") \
    X(double, dt, "s", "length of the step", \
      .brief = "dt", .progress = 6, .format = "%.3g", .panel = SELKIE_PANEL_PARTICLES, .axis = 1, \
      .label = "step (right)") \
    X(int64_t, particles, "", "at the end of the step", \
      .brief = "particles", .progress = 3, .summary = SELKIE_SUMMARY_LAST, .panel = SELKIE_PANEL_PARTICLES) \
    X(double, volume_ratio, "", \
      "kernel volume, the sum over cells of min(density / rest density, 1 - solid fraction), over that of " \
      "the start (volume idp: over that at rest), corrected for sources and drains", \
      .brief = "volume", .progress = 2, .format = "%.5f", .summary = SELKIE_SUMMARY_RANGE, \
      .panel = SELKIE_PANEL_VOLUME, .label = "kernel volume") \
    X(double, volume_eq19, "", "count measure of Kugelstadt et al. 2019, Eq. 19, likewise", \
      .panel = SELKIE_PANEL_VOLUME, .label = "count (Eq. 19)") \
    X(double, occupied_ratio, "", "cells that hold particles, likewise", \
      .panel = SELKIE_PANEL_VOLUME, .label = "occupied cells") \
    X(double, kinetic_energy, "J", "in 2D per metre of depth", \
      .panel = SELKIE_PANEL_ENERGY, .label = "kinetic") \
    X(double, potential_energy, "J", "against the domain's origin; in 2D per metre of depth", \
      .panel = SELKIE_PANEL_ENERGY, .label = "potential") \
    X(double, max_speed, "m/s", "of the fastest particle", \
      .panel = SELKIE_PANEL_SPEED) \
    X(int, pressure_iterations, "", "of the pressure solve", \
      .brief = "iterations", .progress = 4, .summary = SELKIE_SUMMARY_MEAN, .panel = SELKIE_PANEL_ITERATIONS) \
    X(double, pressure_residual, "", \
      "what the pressure solve left, in the norm of pressure.norm; unilateral: its complementarity error, " \
      "relative to what there was to correct", \
      .panel = SELKIE_PANEL_RESIDUAL) \
    X(double, step_ms, "ms", "wall time of the step", \
      .brief = "wall time", .summary = SELKIE_SUMMARY_TOTAL, .panel = SELKIE_PANEL_STEP_TIME) \
    X(int64_t, liquid_cells, "", "cells with liquid") \
    X(int64_t, blocks, "", "blocks of the grid that exist") \
    X(int64_t, emitted, "", "particles from sources, since the start") \
    X(int64_t, drained, "", "particles through drains and open sides, since the start") \
    X(double, enstrophy, "m2/s2", "reduced: half the integral of the squared vorticity over the box") \
    X(double, body_kinetic_energy, "J", "of the rigid bodies, with their rotation; in 2D per metre of depth") \
    X(double, body_potential_energy, "J", \
      "of the rigid bodies, against the domain's origin; in 2D per metre of depth") \
    X(double, surface_volume_ratio, "", \
      "volume inside the surface that the fill of the cells describes, over that of the start, corrected " \
      "like volume_ratio") \
    X(int, density_iterations, "", \
      "of the last density solve of the step (volume idp), or of the first correction of density " \
      "(unilateral)") \
    X(double, density_residual, "", \
      "largest error of density that it left in a cell; unilateral: its complementarity error") \
    X(double, density_error_mean, "", \
      "of abs(density / rest density - 1) over inner cells when the pressure is solved; SPH: of max(density " \
      "/ rest density - 1, 0) over particles that are not solid, at the start of the step") \
    X(double, density_error_max, "", "the largest such error") \
    X(double, density_error_std, "", "their standard deviation") \
    X(int64_t, redistributed, "", "particles of overfull cells laid out anew in this step") \
    X(int64_t, pushed_out, "", "particles found inside solids in this step") \
    X(int, density_passes, "", \
      "corrections of density in this step (volume idp, unilateral); with idp more than one where more than 0.03 % " \
      "of the liquid (3D: 0.01 %) was squeezed beyond idp.density_max") \
    X(int64_t, candidates, "", "particles on their way to an object (SPH with objects)") \
    X(int64_t, boundaries, "", "particles that are part of an object (SPH with objects)") \
    X(int64_t, free_cells, "", "unilateral: cells where pressure acts") \
    X(int64_t, active_cells, "", "unilateral: cells that take part but have no pressure") \
    X(int, free_steps, "", "unilateral: iterations on the free cells") \
    X(int, expansion_steps, "", "unilateral: steps that made more cells active") \
    X(int, proportioning_steps, "", "unilateral: steps that freed active cells") \
    X(int64_t, density_free_cells, "", "free_cells of the first correction of density") \
    X(int64_t, density_active_cells, "", "active_cells of that correction") \
    X(int, density_free_steps, "", "free_steps of that correction") \
    X(int, density_expansion_steps, "", "expansion_steps of that correction") \
    X(int, density_proportioning_steps, "", "proportioning_steps of that correction") \
    X(double, overfull, "", \
      "unilateral: largest density above what fits in a cell, over rest density, before that correction") \
    X(double, temperature_min, "K", "of the coldest particle, where heat is simulated") \
    X(double, temperature_max, "K", "of the warmest particle") \
    X(double, heat_energy, "J", \
      "heat of all particles above that of the solid at its melting point (without melting: above 273.15 K); in 2D " \
      "per metre of depth") \
    X(int64_t, solid_particles, "", "particles of bodies of rigid and soft materials") \
    X(double, elastic_energy, "J", "elastoplastic points: stored in the deformation; in 2D per metre of depth") \
    X(double, plastic_work, "J", \
      "elastoplastic points: turned into heat by plastic flow since the start; in 2D per metre of depth") \
    X(int64_t, splashes, "", "droplets of the model of splashes in flight") \
    X(int64_t, splashes_made, "", "droplets that it has made since the start") \
    X(int, sheet_sweeps, "", "reduced: Schwarz sweeps over the vortex sheets of the bodies") \
    X(double, body_force_x, "N", \
      "force of the liquid on the rigid bodies together, mean over the step; bodies.csv has that on each; in 2D per " \
      "metre of depth") \
    X(double, body_force_y, "N", "likewise") \
    X(double, body_force_z, "N", "likewise")
/* clang-format on */

typedef struct selkie_statistics {
#define SELKIE_STATISTICS_MEMBER(type, name, ...) type name;
    SELKIE_STATISTICS(SELKIE_STATISTICS_MEMBER)
#undef SELKIE_STATISTICS_MEMBER
    double phase_ms[SELKIE_MAX_PHASES]; /* ms  wall time of each phase */
} selkie_statistics;

/* A row of the table. */
typedef struct selkie_statistic {
    const char *name;
    const char *unit; /* "" = none */
    const char *meaning;
    selkie_panel panel; /* of `selkie plot` */
    int axis;           /* 1 = the panel's right axis */
    const char *label;  /* of its curve where the panel has several; NULL = brief or name */
    const char *brief;  /* its name in progress and summaries; NULL = name */
    int progress;       /* shown while a run goes on; on a narrow terminal 1 is the last to be left out; 0 = never */
    selkie_summary summary;
    const char *format; /* for one double; NULL = "%.6g", and whole numbers in full */
    int whole;          /* its type is an integer */
} selkie_statistic;

/* A row of SELKIE_PANELS. */
typedef struct selkie_panel_info {
    const char *title;
    const char *axes[2]; /* left, right */
    int flags;
} selkie_panel_info;

SELKIE_API int selkie_statistic_count(void);
/* Row `index`, in the order of stats.csv; NULL beyond the last. */
SELKIE_API const selkie_statistic *selkie_statistic_info(int index);
/* NULL where there is no such panel. */
SELKIE_API const selkie_panel_info *selkie_statistic_panel(selkie_panel panel);
/* Its value as a number; NaN beyond the last. */
SELKIE_API double selkie_statistic_value(const selkie_statistics *statistics, int index);

#ifdef __cplusplus
}
#endif
#endif
