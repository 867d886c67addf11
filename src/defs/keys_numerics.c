/* Rows of the field table (fields.h): the numerics of the grid and of SPH. */
#include "defs/keys.h"

static const sk_enum_value arrangement_values[] = {
    {"jittered", SELKIE_ARRANGEMENT_JITTERED, "one in each sub-cell, at random"},
    {"lattice", SELKIE_ARRANGEMENT_LATTICE, "in the centres of the sub-cells"},
    {"auto", SELKIE_ARRANGEMENT_AUTO,
     "lattice where discretization is sph and with elastoplastic materials, jittered elsewhere"},
};
CHOICES(arrangement);

static const sk_enum_value idp_solids_values[] = {
    {"push_out", SELKIE_IDP_PUSH_OUT, "the projection pushes particles out of solids and makes room for them"},
    {"neumann", SELKIE_IDP_NEUMANN, "solids block the flow and do nothing else"},
    {"project", SELKIE_IDP_PROJECT, "particles in solids are set onto the surface"},
};
CHOICES(idp_solids);

static const sk_enum_value unilateral_solver_values[] = {
    {"active_set", SELKIE_UNILATERAL_ACTIVE_SET, "over the shared multigrid: fast"},
    {"mprgp", SELKIE_UNILATERAL_MPRGP, "Dostal's, with incomplete Cholesky: the source's, to compare with"},
};
CHOICES(unilateral_solver);

static const sk_enum_value prediction_values[] = {
    {"particles", SELKIE_PREDICTION_PARTICLES,
     "density at the predicted positions of the particles: free flight is exact"},
    {"flux", SELKIE_PREDICTION_FLUX,
     "density minus the divergence of the mass flux, as in the source, to compare with"},
};
CHOICES(prediction);

static const sk_enum_value flight_values[] = {
    {"own", SELKIE_FLIGHT_OWN, "straight on with the particle's own velocity"},
    {"grid", SELKIE_FLIGHT_GRID, "along the grid's velocity as everywhere else, as in the source"},
};
CHOICES(flight);

static const sk_enum_value advection_rule_values[] = {
    {"auto", SELKIE_RULE_AUTO, "trapezoidal with unilateral incompressibility, midpoint without"},
    {"midpoint", SELKIE_RULE_MIDPOINT, "one step with the velocity of its middle"},
    {"trapezoidal", SELKIE_RULE_TRAPEZOIDAL, "one step with the mean of the velocities at its ends: a little smoother"},
};
CHOICES(advection_rule);

static const sk_enum_value residual_norm_values[] = {
    {"relative", SELKIE_NORM_RELATIVE, "|r| / |b|, both in the 2-norm"},
    {"max", SELKIE_NORM_MAX, "largest |divergence| x step left in any cell"},
};
CHOICES(residual_norm);

static const sk_enum_value surface_condition_values[] = {
    {"ghost_fluid", SELKIE_SURFACE_GHOST_FLUID, "second order: pressure is zero at the sub-cell surface"},
    {"voxel", SELKIE_SURFACE_VOXEL, "first order: pressure is zero in the centres of air cells"},
};
CHOICES(surface_condition);

static const sk_field particles_fields[] = {
    {INTEGER(selkie_particles_def, per_cell, 0), BETWEEN(0, 1000),
     .doc =
         "particles in a full cell; 0 = 8 in 3D; in 2D 9, or 4 where discretization is sph or of elastoplastic points"},
    {ENUM(selkie_particles_def, arrangement, arrangement, SELKIE_ARRANGEMENT_AUTO), .doc = "layout at the start"},
    {NUMBER(selkie_particles_def, jitter, 0.5), BETWEEN(0, 1),
     .doc = "jittered particles: the part of a sub-cell, around its centre, that they may be in; 1 = all of it. More "
            "jitter starts "
            "less evenly, but leaves less of the lattice for the flow to fold into itself"},
};
const sk_struct sk_particles_struct = {.name = "particles",
                                       .doc = "Number and layout of particles.",
                                       .size = sizeof(selkie_particles_def),
                                       .field_count = COUNT(particles_fields),
                                       .fields = particles_fields};

static const sk_field pressure_fields[] = {
    {NUMBER(selkie_pressure_def, tolerance, 1e-4), BETWEEN(0, 1), .low_open = 1,
     .doc = "the solve ends when the residual is below this"},
    {ENUM(selkie_pressure_def, norm, residual_norm, SELKIE_NORM_RELATIVE), .doc = "how the residual is measured"},
    {INTEGER(selkie_pressure_def, max_iterations, 100), BETWEEN(1, 100000),
     .doc = "a solve that needs more stops the run with a message"},
    {ENUM(selkie_pressure_def, surface, surface_condition, SELKIE_SURFACE_GHOST_FLUID), .doc = "the free surface"},
    {NUMBER(selkie_pressure_def, start, 0), BETWEEN(0, 1e6), .unit = "s",
     .doc = "no pressure and no correction of volume before this time"},
};
const sk_struct sk_pressure_struct = {.name = "pressure",
                                      .doc = "The solve that keeps the liquid incompressible.",
                                      .size = sizeof(selkie_pressure_def),
                                      .field_count = COUNT(pressure_fields),
                                      .fields = pressure_fields};

static const sk_field idp_fields[] = {
    {NUMBER(selkie_idp_def, tolerance, 0), BETWEEN(0, 1), .doc = "of the density solve; 0 = pressure.tolerance"},
    {ENUM(selkie_idp_def, solids, idp_solids, SELKIE_IDP_PUSH_OUT), .doc = "what happens to particles inside solids"},
    {BOOL(selkie_idp_def, redistribute, 1), .doc = "spread the particles of cells above density_max"},
    {NUMBER(selkie_idp_def, density_min, 0.5), BETWEEN(0, 1),
     .doc = "lower bound of density over rest density in the correction"},
    {NUMBER(selkie_idp_def, density_max, 1.5), BETWEEN(1, 1000), .doc = "its upper bound"},
    {INTEGER(selkie_idp_def, passes, 4), BETWEEN(1, 100),
     .doc = "corrections in a step, at most; a further one is made around the places that need it, where more than "
            "0.03 % of the liquid (3D: 0.01 %) is beyond density_max"},
    {INTEGER(selkie_idp_def, settle, -1), BETWEEN(-1, 10000),
     .doc = "corrections before the first step; -1: one if all liquid fills its shapes at rest under gravity, beside "
            "no bodies "
            "or objects, outside obstacles and without melting, else none"},
    {NUMBER(selkie_idp_def, evenness, 0), BETWEEN(0, 0.5),
     .doc = "weight of the number of particles in a cell, beside the density, in what is corrected: 0.02 spreads them "
            "a little "
            "more evenly over the cells (Eq. 19 gains 0.001); much more moves liquid that is right as it is"},
};
const sk_struct sk_idp_struct = {.name = "idp",
                                 .doc = "Implicit density projection, used if volume is idp.",
                                 .size = sizeof(selkie_idp_def),
                                 .field_count = COUNT(idp_fields),
                                 .fields = idp_fields};

static const sk_field losasso_fields[] = {
    {NUMBER(selkie_losasso_def, averaging_time, 1), BETWEEN(0, 1e6), .low_open = 1, .unit = "s",
     .doc = "averaging time of the density error"},
};
const sk_struct sk_losasso_struct = {.name = "losasso",
                                     .doc = "Averaged density correction, used if volume is losasso.",
                                     .size = sizeof(selkie_losasso_def),
                                     .field_count = COUNT(losasso_fields),
                                     .fields = losasso_fields};

static const sk_field ando_fields[] = {
    {NUMBER(selkie_ando_def, stiffness, 50), BETWEEN(0, 1e6), .unit = "1/s",
     .doc = "speed at which overlaps are separated"},
    {NUMBER(selkie_ando_def, radius, 1.1), BETWEEN(0, 2), .low_open = 1,
     .doc = "distance under which particles push, in particle spacings"},
};
const sk_struct sk_ando_struct = {.name = "ando",
                                  .doc = "Weak springs, used if volume is ando.",
                                  .size = sizeof(selkie_ando_def),
                                  .field_count = COUNT(ando_fields),
                                  .fields = ando_fields};

static const sk_field sato_fields[] = {
    {NUMBER(selkie_sato_def, radius, 0.8), BETWEEN(0, 2), .low_open = 1,
     .doc = "least distance of two particles, in particle spacings"},
    {INTEGER(selkie_sato_def, iterations, 2), BETWEEN(1, 100), .doc = "sweeps over the constraints in a step"},
};
const sk_struct sk_sato_struct = {.name = "sato",
                                  .doc = "Distance constraints, used if volume is sato.",
                                  .size = sizeof(selkie_sato_def),
                                  .field_count = COUNT(sato_fields),
                                  .fields = sato_fields};

static const sk_field unilateral_fields[] = {
    {ENUM(selkie_unilateral_def, solver, unilateral_solver, SELKIE_UNILATERAL_ACTIVE_SET),
     .doc = "of the complementarity problems"},
    {NUMBER(selkie_unilateral_def, tolerance, 1e-4), BETWEEN(0, 1), .low_open = 1,
     .doc = "they end when the error of the complementarity is below this part of what there was to correct"},
    {INTEGER(selkie_unilateral_def, max_iterations, 1000), BETWEEN(1, 1000000),
     .doc = "a solve that needs more stops the run with a message"},
    {BOOL(selkie_unilateral_def, density_correction, 1),
     .doc = "also correct positions before particles move, where the density is too high"},
    {INTEGER(selkie_unilateral_def, density_passes, 4), BETWEEN(1, 10),
     .doc = "at most so many such corrections in a step; more than one only where some cell is far too dense"},
    {BOOL(selkie_unilateral_def, suction, 0), .doc = "let the pressure be negative away from the surface"},
    {NUMBER(selkie_unilateral_def, suction_depth, 3), BETWEEN(1, 1000), .unit = "cells",
     .doc = "how far from the surface; rounded up to whole cells"},
    {NUMBER(selkie_unilateral_def, suction_pressure, 101325), AT_LEAST(0), .unit = "Pa",
     .doc = "how far below zero the pressure may be there; an atmosphere is where water boils"},
    {NUMBER(selkie_unilateral_def, air_threshold, 0.1), BETWEEN(0, 0.9),
     .doc = "cells filled to less than this fraction are air"},
    {ENUM(selkie_unilateral_def, prediction, prediction, SELKIE_PREDICTION_PARTICLES),
     .doc = "how the density at the end of the step is predicted"},
    {ENUM(selkie_unilateral_def, flight, flight, SELKIE_FLIGHT_OWN),
     .doc = "how particles move where no pressure acts"},
    {BOOL(selkie_unilateral_def, clip_bisection, 1),
     .doc = "no effect, read for old scene files: paths of particles always end before obstacles"},
};
const sk_struct sk_unilateral_struct = {.name = "unilateral",
                                        .doc = "Used if incompressibility is unilateral.",
                                        .size = sizeof(selkie_unilateral_def),
                                        .field_count = COUNT(unilateral_fields),
                                        .fields = unilateral_fields};

static const sk_enum_value sph_solver_values[] = {
    {"accelerated", SELKIE_SPH_ACCELERATED,
     "projected gradient with Jacobi scaling and momentum: the fewest iterations"},
    {"iisph", SELKIE_SPH_IISPH, "relaxed Jacobi with clamping (Ihmsen et al. 2014)"},
};
CHOICES(sph_solver);

static const sk_enum_value sph_kernel_values[] = {
    {"auto", SELKIE_SPH_KERNEL_AUTO, "cubic in 2D and beside liquid boundaries (objects), wendland in 3D"},
    {"cubic", SELKIE_SPH_CUBIC, "cubic spline (Monaghan 1992)"},
    {"wendland", SELKIE_SPH_WENDLAND, "Wendland's C2 function: particles never pair up"},
};
CHOICES(sph_kernel);

static const sk_enum_value sph_tension_values[] = {
    {"none", SELKIE_TENSION_NONE, "no surface tension"},
    {"becker", SELKIE_TENSION_BECKER, "attraction weighted by the kernel (Becker and Teschner 2007)"},
    {"akinci", SELKIE_TENSION_AKINCI, "cohesion and area minimisation (Akinci et al. 2013)"},
};
CHOICES(sph_tension);

static const sk_field sph_fields[] = {
    {ENUM(selkie_sph_def, solver, sph_solver, SELKIE_SPH_ACCELERATED), .doc = "solver of the pressure"},
    {ENUM(selkie_sph_def, kernel, sph_kernel, SELKIE_SPH_KERNEL_AUTO),
     .doc = "kernel: weight of a neighbour by its distance"},
    {NUMBER(selkie_sph_def, density_error, 0.003), BETWEEN(0, 1), .low_open = 1,
     .doc = "mean error of density / rest density that a pressure solve may leave, by its own prediction"},
    {NUMBER(selkie_sph_def, divergence_error, 0.005), BETWEEN(0, 1000), .low_open = 1,
     .doc = "solver accelerated: mean |divergence| that velocities may keep, over the speed of a fall through the "
            "domain / its longest side"},
    {INTEGER(selkie_sph_def, min_iterations, 2), BETWEEN(0, 100000), .doc = "of a pressure solve, at least"},
    {INTEGER(selkie_sph_def, max_iterations, 200), BETWEEN(1, 100000),
     .doc = "a solve that needs more ends there; its error is in the statistics"},
    {NUMBER(selkie_sph_def, xsph, 0.02), BETWEEN(0, 1),
     .doc = "share of its neighbours' mean velocity that a particle takes up in the time of a step at the speed of a "
            "fall (XSPH): calms noise"},
    {ENUM(selkie_sph_def, surface_tension, sph_tension, SELKIE_TENSION_NONE), .doc = "model of surface tension"},
    {NUMBER(selkie_sph_def, tension, 0), AT_LEAST(0),
     .doc = "its coefficient: kappa of becker (1/s2, W times the particle volume), gamma of akinci (m4/(kg s2); 2D "
            "m3/(kg s2))"},
};
const sk_struct sk_sph_struct = {.name = "sph",
                                 .doc = "Smoothed particle hydrodynamics, used where discretization is sph.",
                                 .size = sizeof(selkie_sph_def),
                                 .field_count = COUNT(sph_fields),
                                 .fields = sph_fields};

static const sk_field advection_fields[] = {
    {INTEGER(selkie_advection_def, order, 2), BETWEEN(2, 3), .doc = "order of the Runge-Kutta scheme, 2 or 3"},
    {ENUM(selkie_advection_def, rule, advection_rule, SELKIE_RULE_AUTO), .doc = "which scheme of order 2"},
};
const sk_struct sk_advection_struct = {.name = "advection",
                                       .doc = "How particles follow the flow.",
                                       .size = sizeof(selkie_advection_def),
                                       .field_count = COUNT(advection_fields),
                                       .fields = advection_fields};
