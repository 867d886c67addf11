/* Materials and heat: a part of selkie/scene.h, which says how scenes are made. */
#ifndef SELKIE_SCENE_MATERIALS_H
#define SELKIE_SCENE_MATERIALS_H

typedef enum selkie_material_kind {
    SELKIE_MATERIAL_LIQUID,
    SELKIE_MATERIAL_RIGID,         /* of bodies: particles that keep their shape */
    SELKIE_MATERIAL_SOFT,          /* of bodies: particles that return to their shape, see selkie_soft_def */
    SELKIE_MATERIAL_ELASTOPLASTIC, /* discretization mpm, rest_shape, printed, additive; grid: mpm beside liquids */
    SELKIE_MATERIAL_GRANULAR       /* refused so far */
} selkie_material_kind;

/* A point of a viscosity that depends on temperature. */
typedef struct selkie_viscosity_point {
    double temperature; /* K    */
    double viscosity;   /* m2/s */
} selkie_viscosity_point;

/* The goal that shape matching (Mueller et al. 2005) gives each particle of a soft body. */
typedef enum selkie_soft_mode {
    SELKIE_SOFT_RIGID,    /* the rest shape, turned */
    SELKIE_SOFT_LINEAR,   /* a mix with its best linear map: stretch and shear */
    SELKIE_SOFT_QUADRATIC /* a mix with its best quadratic map: twist and bending too */
} selkie_soft_mode;

/* How the goals act on the velocities. */
typedef enum selkie_soft_scheme {
    SELKIE_SOFT_VELOCITY, /* before the transfer, as forces: momentum and angular momentum stay */
    SELKIE_SOFT_POSITION  /* after the pressure solve on positions, velocity by Eq. 4 of Gao et al. 2017: loses spin */
} selkie_soft_scheme;

typedef struct selkie_soft_def {
    selkie_soft_mode mode;
    double stiffness;   /* rad/s  frequency at which a deviation from the goal swings */
    double deformation; /*        share of the linear or quadratic map in the goal, 0 to 1 */
    double damping;     /*        of deformations, over the critical damping */
    double yield;       /*        stretch beyond which the rest shape flows; 0 = never */
    double creep;       /* 1/s    rate of that flow */
    double max_flow;    /*        largest change of the rest shape by flow */
    int clusters;       /*        overlapping parts along the longest side, each with a goal of its own; 1 = the body */
    selkie_soft_scheme scheme;
} selkie_soft_def;

/* Energy of an elastic solid over its principal stretches s. In 2D the third stretch is 1 (plane strain). */
typedef enum selkie_elastic_law {
    SELKIE_ELASTIC_HENCKY,    /* quadratic in log s (St. Venant-Kirchhoff with Hencky's strain) */
    SELKIE_ELASTIC_COROTATED, /* quadratic in s - 1 and in the change of volume (fixed corotated) */
    SELKIE_ELASTIC_LINEAR,    /* quadratic in s - 1 (Gerszewski, Eq. 4.9) */
    SELKIE_ELASTIC_SQUARED    /* quadratic in (s^2 - 1)/2: stiffer the farther it stretches */
} selkie_elastic_law;

typedef enum selkie_plasticity {
    SELKIE_PLASTICITY_NONE,
    SELKIE_PLASTICITY_VON_MISES,     /* metal, clay, dough: flows where shear stress is above a yield stress */
    SELKIE_PLASTICITY_DRUCKER_PRAGER /* sand: shear stress up to friction times pressure, no tension */
} selkie_plasticity;

typedef struct selkie_elastoplastic_def {
    selkie_elastic_law law;
    double young;   /* Pa   modulus of elasticity */
    double poisson; /*      ratio, below 0.5 */
    selkie_plasticity plasticity;
    double yield;           /* Pa   von_mises: equivalent stress from which on it flows */
    double hardening;       /* Pa   von_mises: growth of the yield stress with the plastic strain */
    double flow_time;       /* s    von_mises: time in which stress above the yield stress decays; 0 = at once */
    double thickening;      /* Pa   von_mises: flow_time is longer by stress / this, as of cornstarch; 0 = constant */
    int keeps_volume;       /*      von_mises: 0 = flow also relaxes changes of volume */
    double friction_angle;  /* deg  drucker_prager */
    double cohesion;        /* Pa   drucker_prager: tension that it stands */
    double tear;            /*      stretch - 1 at which it tears and takes no more tension; 0 = never */
    double liquid_friction; /*     Coulomb's, with liquids beside it (discretization grid) */
    double softens_from;    /* K   temperature from which on it softens, where a scene has heat; 0 = never */
    double softens_to;      /* K   temperature at which it has softened */
    double softened;        /*     shear stiffness and yield stress then, over those of the cold material */
} selkie_elastoplastic_def;

/* A row of the scene's table of materials. A particle carries the row's index as its attribute "material", where the
 * table has more than one row. 0 = not given, but for the density. */
typedef struct selkie_material_def {
    const char *name; /*          unique; liquids and sources name their material by it */
    selkie_material_kind kind;
    double density;           /* kg/m3 */
    double viscosity;         /* m2/s     kinematic; for sph the same for all materials of a scene so far */
    double dynamic_viscosity; /* Pa s     in its place: viscosity times density */
    double surface_tension;   /* N/m      against air, on grids; none between two liquids */
    double heat_capacity;     /* J/(kg K) of the liquid; heat is simulated where it is given */
    double conductivity;      /* W/(m K)  of the liquid */
    double melting_point;     /* K        0 = never solid */
    double latent_heat;       /* J/kg     of melting */
    double solid_heat_capacity, solid_conductivity; /* J/(kg K), W/(m K)  of the solid; 0 = as the liquid */
    double solid_density;                           /* kg/m3  of the solid: it floats if lighter; 0 = as the liquid */
    double thermal_expansion;                       /* 1/K    no effect yet */
    double viscosity_temperature; /* K  at which `viscosity` holds, where it depends on temperature; 0 = constant */
    double viscosity_activation;  /* K  B of viscosity ~ exp(B / (T - C)) */
    double viscosity_offset;      /* K  C */
    int viscosity_point_count;
    const selkie_viscosity_point *viscosity_table; /* in place of the law, log-linear between the points */
    selkie_soft_def soft;                          /* of kind soft */
    selkie_elastoplastic_def elastoplastic;        /* of kind elastoplastic */
} selkie_material_def;

/* Heat: simulated where materials have a heat capacity. */
typedef struct selkie_heat_def {
    double air_temperature; /* K         0 = no exchange with the air */
    double air_exchange;    /* W/(m2 K)  between air and free surface */
    double tolerance;       /*           of the solve, relative */
} selkie_heat_def;

#endif
