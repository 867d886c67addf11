/* Statistics of a step: one table that gives the struct, the columns of stats.csv and their documentation.
 *
 * A row is X(type, name, unit, meaning). A method that has something to report adds a row here and fills it in its
 * descriptor; the command, plots and the manual follow.
 */
#ifndef SELKIE_STATISTICS_H
#define SELKIE_STATISTICS_H

#include <stdint.h>
#include <selkie/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SELKIE_MAX_PHASES 32

/* clang-format off */
#define SELKIE_STATISTICS(X) \
    X(int64_t, step, "", "number of the step, from 1") \
    X(double, time, "s", "at the end of the step") \
    X(double, dt, "s", "length of the step") \
    X(int64_t, particles, "", "at the end of the step") \
    X(double, volume_ratio, "", \
      "kernel volume, the sum over cells of min(density / rest density, 1 - solid fraction), over that of " \
      "the start (volume idp: over that at rest), corrected for sources and drains") \
    X(double, volume_eq19, "", "count measure of Kugelstadt et al. 2019, Eq. 19, likewise") \
    X(double, occupied_ratio, "", "cells that hold particles, likewise") \
    X(double, kinetic_energy, "J", "in 2D per metre of depth") \
    X(double, potential_energy, "J", "against the domain's origin; in 2D per metre of depth") \
    X(double, max_speed, "m/s", "of the fastest particle") \
    X(int, pressure_iterations, "", "of the pressure solve") \
    X(double, pressure_residual, "", \
      "what the pressure solve left, in the norm of pressure.norm; unilateral: its complementarity error, " \
      "relative to what there was to correct") \
    X(double, step_ms, "ms", "wall time of the step") \
    X(int64_t, liquid_cells, "", "cells with liquid") \
    X(int64_t, blocks, "", "blocks of the grid that exist") \
    X(int64_t, emitted, "", "particles from sources, since the start") \
    X(int64_t, drained, "", "particles through drains and open sides, since the start") \
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
      "of the liquid (3D: 0.02 %) was squeezed beyond idp.density_max") \
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
      "unilateral: largest density above what fits in a cell, over rest density, before that correction")
/* clang-format on */

typedef struct selkie_statistics {
#define SELKIE_STATISTICS_MEMBER(type, name, unit, meaning) type name;
    SELKIE_STATISTICS(SELKIE_STATISTICS_MEMBER)
#undef SELKIE_STATISTICS_MEMBER
    double phase_ms[SELKIE_MAX_PHASES]; /* ms  wall time of each phase */
} selkie_statistics;

/* A row of the table. */
typedef struct selkie_statistic {
    const char *name;
    const char *unit; /* "" = none */
    const char *meaning;
} selkie_statistic;

SELKIE_API int selkie_statistic_count(void);
/* Row `index`, in the order of stats.csv; NULL beyond the last. */
SELKIE_API const selkie_statistic *selkie_statistic_info(int index);
/* Its value as a number; NaN beyond the last. */
SELKIE_API double selkie_statistic_value(const selkie_statistics *statistics, int index);

#ifdef __cplusplus
}
#endif
#endif
