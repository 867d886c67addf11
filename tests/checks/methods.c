/* The methods, one row each, and what each does not pass today. */
#include "checks.h"

#include <math.h>
#include <stddef.h>

static void set_grid(check_scene *t, selkie_method transfer, selkie_volume volume)
{
    selkie_scene_set_method(&t->scene, transfer);
    t->scene.volume = volume;
}

static void set_pic(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_PIC, SELKIE_VOLUME_NONE);
}

static void set_pic_idp(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_PIC, SELKIE_VOLUME_IDP);
}

static void set_flip(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE);
}

static void set_flip_idp(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP);
}

static void set_apic(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_APIC, SELKIE_VOLUME_NONE);
}

static void set_apic_idp(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_APIC, SELKIE_VOLUME_IDP);
}

static void set_eq8(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_FLIP, SELKIE_VOLUME_EQ8);
}

static void set_losasso(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_FLIP, SELKIE_VOLUME_LOSASSO);
}

static void set_ando(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_FLIP, SELKIE_VOLUME_ANDO);
}

static void set_sato(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_FLIP, SELKIE_VOLUME_SATO);
}

static void set_unilateral(check_scene *t)
{
    set_grid(t, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE);
    t->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
}

static void set_unilateral_apic(check_scene *t)
{
    set_unilateral(t);
    selkie_scene_set_method(&t->scene, SELKIE_METHOD_APIC);
}

static void set_sph(check_scene *t)
{
    selkie_scene_set_method(&t->scene, SELKIE_METHOD_SPH);
    t->scene.volume = SELKIE_VOLUME_NONE;
}

static void set_sph_iisph(check_scene *t)
{
    set_sph(t);
    t->scene.sph.solver = SELKIE_SPH_IISPH;
}

/* What is liquid for the others is soft rubber. */
static void set_mpm(check_scene *t)
{
    selkie_material_defaults(&t->materials[0]);
    t->materials[0].name = "rubber";
    t->materials[0].kind = SELKIE_MATERIAL_ELASTOPLASTIC;
    t->materials[0].elastoplastic.young = 5e4;
    t->scene.materials = t->materials;
    t->scene.material_count = 1;
    t->scene.discretization = SELKIE_DISCRETIZATION_MPM;
    t->scene.viscosity = t->scene.dynamic_viscosity = 0.0;
    t->scene.volume = SELKIE_VOLUME_NONE;
}

static void set_rest_shape(check_scene *t)
{
    set_mpm(t);
    t->scene.discretization = SELKIE_DISCRETIZATION_REST_SHAPE;
}

/* The middle of the first liquid is soft rubber of the same density, which the liquid carries. */
static void set_immersed(check_scene *t)
{
    selkie_liquid_def *inner = &t->liquids[0];
    set_flip(t);
    for (int m = 0; m < 2; m++)
        selkie_material_defaults(&t->materials[m]);
    t->materials[0].name = "water";
    t->materials[1].name = "rubber";
    t->materials[1].kind = SELKIE_MATERIAL_ELASTOPLASTIC;
    t->materials[1].elastoplastic.young = 2e4;
    t->scene.materials = t->materials;
    t->scene.material_count = 2;
    for (int n = 0; n < t->scene.source_count; n++)
        t->sources[n].material = "water";
    if (t->scene.liquid_count == 0)
        return;
    for (int n = t->scene.liquid_count++; n > 0; n--)
        t->liquids[n] = t->liquids[n - 1];
    for (int n = 0; n < t->scene.liquid_count; n++)
        t->liquids[n].material = n ? "water" : "rubber";

    /* The first liquid of the list counts where both are. */
    const selkie_shape outer = inner->shape;
    selkie_shape_defaults(&inner->shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < 3; d++) {
        const int is_ball = outer.kind == SELKIE_SHAPE_SPHERE;
        const double low = is_ball ? outer.center[d] - outer.radius : outer.min[d];
        const double high = is_ball ? outer.center[d] + outer.radius : outer.max[d];
        inner->shape.min[d] = low + (high - low) / 3.0;
        inner->shape.max[d] = high - (high - low) / 3.0;
    }
}

/* Liquid of different temperatures. */
static void set_heat(check_scene *t)
{
    set_flip_idp(t);
    selkie_material_defaults(&t->materials[0]);
    t->materials[0].name = "water";
    t->materials[0].heat_capacity = 4186.0;
    t->materials[0].conductivity = 60.0;
    t->scene.materials = t->materials;
    t->scene.material_count = 1;
    for (int n = 0; n < t->scene.liquid_count; n++)
        t->liquids[n].temperature = 280.0 + 30.0 * n;
    for (int n = 0; n < t->scene.source_count; n++)
        t->sources[n].temperature = 330.0;
}

/* What is liquid for the others is ice. */
static void set_frozen(check_scene *t)
{
    set_heat(t);
    t->materials[0].melting_point = 273.15;
    t->materials[0].latent_heat = 334000.0;
    for (int n = 0; n < t->scene.liquid_count; n++)
        t->liquids[n].temperature = 260.0;
    for (int n = 0; n < t->scene.source_count; n++)
        t->sources[n].temperature = 260.0;
}

/* What is liquid for the others is a soft body of particles each. */
static void set_soft(check_scene *t)
{
    set_flip(t);
    for (int m = 0; m < 2; m++)
        selkie_material_defaults(&t->materials[m]);
    t->materials[0].name = "water";
    t->materials[1].name = "rubber";
    t->materials[1].kind = SELKIE_MATERIAL_SOFT;
    t->scene.materials = t->materials;
    t->scene.material_count = 2;
    for (int n = 0; n < t->scene.liquid_count; n++) {
        selkie_body_def *body = &t->bodies[n];
        selkie_body_defaults(body);
        body->shape = t->liquids[n].shape;
        body->material = "rubber";
        for (int d = 0; d < 3; d++) {
            body->velocity[d] = t->liquids[n].velocity[d];
            body->angular_velocity[d] = t->liquids[n].angular_velocity[d];
        }
    }
    for (int n = 0; n < t->scene.source_count; n++)
        t->sources[n].material = "water";
    t->scene.bodies = t->bodies;
    t->scene.body_count = t->scene.liquid_count;
    t->scene.liquid_count = 0;
}

/* s: how long an obstacle can move as it does until it leaves the domain; objects must stay inside. */
static double time_inside(const selkie_domain_def *domain, const selkie_shape *shape, const double velocity[3])
{
    double time = 10.0; /* no check with a moving obstacle runs longer */
    for (int d = 0; d < domain->dimension; d++) {
        const double end = domain->origin[d] + domain->size[d];
        if (velocity[d] > 0.0)
            time = fmin(time, (end - shape->max[d]) / velocity[d]);
    }
    return time;
}

/* Every obstacle becomes an object that is solid from the start and moves like it, as far as it lies in the domain. */
static void set_liquid_boundary(check_scene *t)
{
    const selkie_domain_def *domain = &t->scene.domain;
    set_sph(t);
    for (int n = 0; n < t->scene.obstacle_count; n++) {
        const selkie_obstacle_def *obstacle = &t->obstacles[n];
        selkie_object_def *object = &t->objects[n];
        selkie_object_defaults(object);
        object->shape = obstacle->shape;
        object->start_solid = 1;
        for (int d = 0; d < domain->dimension; d++) {
            object->shape.min[d] = fmax(object->shape.min[d], domain->origin[d]);
            object->shape.max[d] = fmin(object->shape.max[d], domain->origin[d] + domain->size[d]);
        }

        const double last = time_inside(domain, &object->shape, obstacle->velocity);
        int moves = 0;
        for (int d = 0; d < 3; d++) {
            object->center[d] = obstacle->center[d];
            t->keyframes[n][1].translate[d] = obstacle->velocity[d] * last;
            t->keyframes[n][1].rotate[d] = obstacle->angular_velocity[d] * last * 57.2957795130823; /* degrees */
            moves |= obstacle->velocity[d] != 0.0 || obstacle->angular_velocity[d] != 0.0;
        }
        t->keyframes[n][1].time = last;
        object->keyframes = t->keyframes[n];
        object->keyframe_count = moves ? 2 : 0;
    }
    t->scene.object_count = t->scene.obstacle_count;
    t->scene.obstacle_count = 0;
}

/* --- What is not passed today ---
 *
 * Reasons first, then a list a method: what was measured and the bound stand behind the reason. Causes are those found
 * in the code; "cause not found" says so. */

#define WHY_LIFT "the correction evens out the jittered start and lifts the pool"
#define WHY_SPRINGS "the springs push particles apart beyond rest density, so the pool swells and stirs"
#define WHY_IDP_CENTRE                                                                                                 \
    "the displacement of the density solve does not keep the centre of mass at a free surface: 3e-5 cells"             \
    " a step"
#define WHY_DIVERGENCE "the density error of a jittered start becomes a divergence, which is velocity"
#define WHY_SPRINGS_CENTRE "the springs do not keep the centre of mass"
#define WHY_SPLIT "particles move before the projection: first order in the step"
#define WHY_EQ8_ENERGY "the density error over the step is a divergence, so shorter steps pump more energy"
#define WHY_ENERGY "density errors become velocity, and shifts pump energy at impacts"
#define WHY_CHAOS "the springs make rounding errors grow within the run"
#define WHY_UNI_SPIN                                                                                                   \
    "the PIC part of FLIP takes angular momentum (5e-4 without it); the sum leaves out APIC's affine part"
#define WHY_SHIFTS "the shifts of the density correction move the centre of mass a little in each step"
#define WHY_SPH_CUBIC "the cubic kernel, which liquid boundaries take, lets particles pair up in 3D and slip"
#define WHY_SPH_ENERGY "corrected gradients are not derivatives of the density: correcting a density error does work"

#define WHY_SPH_LATTICE "rounding of the gradients: the edges of the block feel a trace of pressure"
#define WHY_SPH_SPIN "forces of pairs with corrected gradients do not point from one to the other"

#define END                                                                                                            \
    {                                                                                                                  \
        NULL, EXCEPTION_FAILS, NULL                                                                                    \
    }

static const exception pic_exceptions[] = {
    {"spin/*", EXCEPTION_NO_MEANING, "PIC damps rotation and promises nothing"},
    END,
};

static const exception pic_idp_exceptions[] = {
    {"spin/*", EXCEPTION_NO_MEANING, "PIC damps rotation and promises nothing"},
    {"fall/3d/default", EXCEPTION_UNSTABLE, WHY_IDP_CENTRE "; 0.00081 to 0.00134 of 0.001"},
    {"fall/2d/1ms", EXCEPTION_FAILS, WHY_IDP_CENTRE "; 0.011 of 0.001"},
    {"fall/2d/5ms", EXCEPTION_FAILS, WHY_IDP_CENTRE "; 0.0018 of 0.001"},
    {"fall/3d/20ms", EXCEPTION_FAILS, WHY_IDP_CENTRE "; 0.0014 of 0.001"},
    {"drift/3d/default", EXCEPTION_UNSTABLE, WHY_IDP_CENTRE "; 0.000701 of 0.001"},
    END,
};

static const exception flip_exceptions[] = {
    {"energy/2d/1ms", EXCEPTION_UNSTABLE, "scatter of the splash; 0.0036 to 0.0064 of 0.005"},
    {"energy/2d/20ms", EXCEPTION_UNSTABLE, "scatter of the splash; 0.0050 of 0.005"},
    END,
};

static const exception flip_idp_exceptions[] = {
    {"fall/3d/default", EXCEPTION_UNSTABLE, WHY_IDP_CENTRE "; 0.00081 to 0.00134 of 0.001"},
    {"fall/2d/1ms", EXCEPTION_FAILS, WHY_IDP_CENTRE "; 0.011 of 0.001"},
    {"fall/2d/5ms", EXCEPTION_FAILS, WHY_IDP_CENTRE "; 0.0018 of 0.001"},
    {"fall/3d/20ms", EXCEPTION_FAILS, WHY_IDP_CENTRE "; 0.0014 of 0.001"},
    {"drift/3d/default", EXCEPTION_UNSTABLE, WHY_IDP_CENTRE "; 0.000701 of 0.001"},
    {"steps/2d/1ms", EXCEPTION_UNSTABLE, WHY_ENERGY "; 0.0367 of 0.05"},
    {"energy/2d/1ms", EXCEPTION_UNSTABLE, WHY_ENERGY "; 0.0045 to 0.0078 of 0.005"},
    END,
};

static const exception apic_exceptions[] = {
    {"energy/2d/1ms", EXCEPTION_UNSTABLE, "scatter of the splash; 0.0034 to 0.043 of 0.015 in 41 starts"},
    END,
};

static const exception apic_idp_exceptions[] = {
    {"fall/3d/default", EXCEPTION_UNSTABLE, WHY_IDP_CENTRE "; 0.00081 to 0.00134 of 0.001"},
    {"fall/2d/1ms", EXCEPTION_FAILS, WHY_IDP_CENTRE "; 0.011 of 0.001"},
    {"fall/2d/5ms", EXCEPTION_FAILS, WHY_IDP_CENTRE "; 0.0018 of 0.001"},
    {"fall/3d/20ms", EXCEPTION_FAILS, WHY_IDP_CENTRE "; 0.0014 of 0.001"},
    {"drift/3d/default", EXCEPTION_UNSTABLE, WHY_IDP_CENTRE "; 0.000701 of 0.001"},
    {"spin/3d/default", EXCEPTION_UNSTABLE, WHY_SPLIT "; 0.0214 of 0.03"},
    {"energy/3d/5ms", EXCEPTION_UNSTABLE, WHY_ENERGY "; 0.000905 of 0.001"},
    END,
};

static const exception eq8_exceptions[] = {
    {"rest-ball-between/2d/5ms", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.0053 of 0.0019"},
    {"rest-ball-between/2d/*", EXCEPTION_UNSTABLE, WHY_LIFT "; 0.0021 of 0.0019"},
    {"rest-ball/2d/default", EXCEPTION_UNSTABLE, WHY_LIFT "; 0.0018 of 0.002"},
    {"rest-ball/2d/20ms", EXCEPTION_UNSTABLE, WHY_LIFT "; 0.0018 of 0.002"},
    {"fall/2d/*", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.0099 to 0.31 of 2e-05"},
    {"fall/3d/default", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.017 of 2e-05"},
    {"drift/2d/*", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.044 to 0.05 of 2e-05"},
    {"spin/2d/default", EXCEPTION_FAILS, WHY_SPLIT "; 0.051 of 0.03"},
    {"collision/2d/default", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.079 of 0.001"},
    {"energy/2d/1ms", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.65 of 0.001"},
    {"energy/2d/5ms", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.061 of 0.005"},
    {"energy/2d/default", EXCEPTION_UNSTABLE, WHY_EQ8_ENERGY "; 0.0001 to 0.0116 of 0.005"},
    {"rest-level/2d/5ms", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.0022 of 0.002"},
    {"rest-between/2d/5ms", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.0022 of 0.0019"},
    {"rest-between/2d/1ms", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.041 of 0.0019"},
    {"rest-ball/2d/5ms", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.0041 of 0.002"},
    {"rest-voxel/2d/5ms", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.0041 of 0.002"},
    {"rest-shelf/2d/*", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.0027 to 0.0031 of 0.002"},
    {"fall/3d/20ms", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.013 of 2e-05"},
    {"drift/3d/default", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.049 of 2e-05"},
    {"spin/3d/default", EXCEPTION_FAILS, WHY_SPLIT "; 0.049 of 0.03"},
    {"energy/3d/5ms", EXCEPTION_UNSTABLE, WHY_EQ8_ENERGY "; 0.0038 to 0.011 of 0.005"},
    {"steps/2d/1ms", EXCEPTION_FAILS, WHY_EQ8_ENERGY "; 0.13 of 0.05"},
    {"spin/3d/5ms", EXCEPTION_UNSTABLE, WHY_SPLIT "; 0.0267 of 0.03"},
    END,
};

static const exception losasso_exceptions[] = {
    {"rest-ball-between/2d/*", EXCEPTION_UNSTABLE, WHY_LIFT "; 0.0020 of 0.0019"},
    {"rest-ball/2d/default", EXCEPTION_UNSTABLE, WHY_LIFT "; 0.0018 of 0.002"},
    {"rest-ball/2d/20ms", EXCEPTION_UNSTABLE, WHY_LIFT "; 0.0018 of 0.002"},
    {"fall/2d/*", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.00041 to 0.00045 of 2e-05"},
    {"fall/3d/default", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.00048 of 2e-05"},
    {"drift/2d/*", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.0017 to 0.0019 of 2e-05"},
    {"spin/2d/default", EXCEPTION_FAILS, WHY_SPLIT "; 0.051 of 0.03"},
    {"rest-between/3d/20ms", EXCEPTION_UNSTABLE, WHY_DIVERGENCE "; 0.0079 of 0.01"},
    {"rest-between/3d/default", EXCEPTION_UNSTABLE, WHY_DIVERGENCE "; 0.0058 of 0.01"},
    {"fall/3d/20ms", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.00054 of 2e-05"},
    {"drift/3d/default", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.0022 of 2e-05"},
    {"spin/3d/default", EXCEPTION_FAILS, WHY_SPLIT "; 0.049 of 0.03"},
    {"rest-between/2d/5ms", EXCEPTION_UNSTABLE, WHY_DIVERGENCE "; 0.00139 of 0.00194"},
    {"rest-between/2d/1ms", EXCEPTION_UNSTABLE, WHY_DIVERGENCE "; 0.00139 of 0.00194"},
    {"rest-ball/2d/5ms", EXCEPTION_UNSTABLE, WHY_DIVERGENCE "; 0.00181 of 0.002"},
    {"rest-voxel/2d/5ms", EXCEPTION_UNSTABLE, WHY_DIVERGENCE "; 0.00182 of 0.002"},
    {"spin/3d/5ms", EXCEPTION_UNSTABLE, WHY_SPLIT "; 0.0248 of 0.03"},
    {"rest-shelf/2d/*", EXCEPTION_FAILS, WHY_DIVERGENCE "; 0.0026 to 0.0029 of 0.002"},
    END,
};

static const exception ando_exceptions[] = {
    {"rest-ball-between/2d/*", EXCEPTION_FAILS, WHY_SPRINGS "; 0.045 to 0.22 of 0.0019"},
    {"rest-ball-between/3d/*", EXCEPTION_FAILS, WHY_SPRINGS "; 1.2 of 0.01"},
    {"rest-level/2d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 1.1 of 0.01"},
    {"rest-level/2d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 1.1 of 0.01"},
    {"rest-between/2d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 1.3 of 0.01"},
    {"rest-between/2d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 1 of 0.01"},
    {"rest-ball/2d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 1.3 of 0.01"},
    {"rest-ball/2d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 1.1 of 0.01"},
    {"rest-voxel/2d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 1.7 of 0.01"},
    {"rest-voxel/2d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 1.6 of 0.01"},
    {"rest-slope/2d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 1.4 of 0.01"},
    {"rest-slope/2d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 1.1 of 0.01"},
    {"rest-shelf/2d/*", EXCEPTION_FAILS, WHY_SPRINGS "; 0.16 to 0.25 of 0.002"},
    {"rest-shelf/3d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 0.16 of 0.004"},
    {"drift/2d/default", EXCEPTION_UNSTABLE, WHY_SPRINGS "; 0.00106 of 0.001"},
    {"spin/2d/default", EXCEPTION_UNSTABLE, WHY_SPLIT "; 0.038 of 0.03"},
    {"axes/2d/5ms", EXCEPTION_UNSTABLE, WHY_CHAOS "; 0.00012 of 0.0001"},
    {"axes/3d/5ms", EXCEPTION_UNSTABLE, WHY_CHAOS "; 8.3e-05 of 0.0001"},
    {"axes/*", EXCEPTION_FAILS, WHY_CHAOS "; 0.0016 to 0.0028 of 0.0001"},
    {"rest-level/2d/5ms", EXCEPTION_FAILS, WHY_SPRINGS "; 0.047 of 0.002"},
    {"rest-level/3d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 0.35 of 0.004"},
    {"rest-level/3d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 1.3 of 0.01"},
    {"rest-between/2d/5ms", EXCEPTION_FAILS, WHY_SPRINGS "; 0.046 of 0.0019"},
    {"rest-between/3d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 0.35 of 0.0038"},
    {"rest-between/3d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 0.42 of 0.0038"},
    {"rest-between/2d/1ms", EXCEPTION_FAILS, WHY_SPRINGS "; 0.044 of 0.0019"},
    {"rest-ball/2d/5ms", EXCEPTION_FAILS, WHY_SPRINGS "; 0.046 of 0.002"},
    {"rest-ball/3d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 1.8 of 0.01"},
    {"rest-ball/3d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 1.4 of 0.01"},
    {"rest-voxel/2d/5ms", EXCEPTION_FAILS, WHY_SPRINGS "; 0.045 of 0.002"},
    {"rest-voxel/3d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 1.8 of 0.01"},
    {"rest-voxel/3d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 1.6 of 0.01"},
    {"rest-slope/3d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 1.3 of 0.01"},
    {"rest-slope/2d/5ms", EXCEPTION_FAILS, WHY_SPRINGS "; 0.044 of 0.002"},
    {"rest-slope/3d/20ms", EXCEPTION_FAILS, WHY_SPRINGS "; 2.5 of 0.01"},
    {"drift/3d/default", EXCEPTION_FAILS, WHY_SPRINGS_CENTRE "; 0.0031 of 0.001"},
    {"energy/3d/default", EXCEPTION_FAILS, WHY_SPRINGS "; 0.0016 of 0.001"},
    {"energy/3d/5ms", EXCEPTION_FAILS, WHY_SPRINGS "; 0.0011 of 0.001"},
    {"fall/3d/20ms", EXCEPTION_UNSTABLE, WHY_SPRINGS_CENTRE "; 0.000845 of 0.001"},
    {"energy/2d/*", EXCEPTION_UNSTABLE, WHY_SPRINGS "; 0.0008 to 0.0082 of 0.005"},
    END,
};

static const exception sato_exceptions[] = {
    {"spin/2d/default", EXCEPTION_FAILS, WHY_SPLIT "; 0.051 of 0.03"},
    {"spin/3d/default", EXCEPTION_FAILS, WHY_SPLIT "; 0.049 of 0.03"},
    {"spin/3d/5ms", EXCEPTION_UNSTABLE, WHY_SPLIT "; 0.0247 of 0.03"},
    END,
};

static const exception unilateral_exceptions[] = {
    {"rest-voxel/*", EXCEPTION_NO_MEANING, "pressure.surface is not used"},
    {"fall/2d/1ms", EXCEPTION_FAILS, WHY_SHIFTS "; 0.0026 of 0.001"},
    {"spin/2d/*", EXCEPTION_FAILS, WHY_UNI_SPIN "; 0.0034 to 0.0059 of 2e-05"},
    {"spin/3d/default", EXCEPTION_FAILS, WHY_UNI_SPIN "; 0.0026 of 2e-05"},
    {"spin/3d/5ms", EXCEPTION_FAILS, WHY_UNI_SPIN "; 0.015 of 2e-05"},
    END,
};

static const exception unilateral_apic_exceptions[] = {
    {"rest-voxel/*", EXCEPTION_NO_MEANING, "pressure.surface is not used"},
    {"fall/2d/1ms", EXCEPTION_FAILS, WHY_SHIFTS "; 0.0026 of 0.001"},
    {"spin/2d/*", EXCEPTION_FAILS, WHY_UNI_SPIN "; 0.0034 to 0.0059 of 2e-05"},
    {"spin/3d/default", EXCEPTION_FAILS, WHY_UNI_SPIN "; 0.013 of 2e-05"},
    {"spin/3d/5ms", EXCEPTION_FAILS, WHY_UNI_SPIN "; 0.011 of 2e-05"},
    END,
};

static const exception sph_exceptions[] = {
    {"fall/2d/5ms", EXCEPTION_UNSTABLE, "a long step is split, and more steps round more often; 0.00021 of 0.0002"},
    {"rest-voxel/*", EXCEPTION_NO_MEANING, "pressure.surface is for grids"},
    {"energy/2d/default", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0050 of 0.001"},
    {"spin/3d/5ms", EXCEPTION_UNSTABLE, WHY_SPH_SPIN "; 0.00182 of 0.002"},
    {"energy/2d/5ms", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0053 of 0.001"},
    {"energy/2d/20ms", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0049 of 0.001"},
    {"energy/2d/1ms", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0074 of 0.001"},
    {"energy/3d/5ms", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0097 of 0.001"},
    {"energy/3d/default", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0090 of 0.001"},
    {"spin/3d/default", EXCEPTION_UNSTABLE, WHY_SPH_SPIN "; 0.00174 of 0.002"},
    {"fall/3d/default", EXCEPTION_UNSTABLE, WHY_SPH_LATTICE "; 0.00041 of 0.0002"},
    {"fall/3d/20ms", EXCEPTION_UNSTABLE, WHY_SPH_LATTICE "; 0.00038 of 0.0002"},
    END,
};

static const exception sph_iisph_exceptions[] = {
    {"rest-voxel/*", EXCEPTION_NO_MEANING, "pressure.surface is for grids"},
    {"energy/2d/default", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0041 of 0.001"},
    {"spin/3d/5ms", EXCEPTION_UNSTABLE, WHY_SPH_SPIN "; 0.00182 of 0.002"},
    {"energy/2d/5ms", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0043 of 0.001"},
    {"energy/2d/20ms", EXCEPTION_FAILS, WHY_SPH_ENERGY},
    {"energy/2d/1ms", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0050 of 0.001"},
    {"energy/3d/5ms", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0100 of 0.001"},
    {"energy/3d/default", EXCEPTION_FAILS, WHY_SPH_ENERGY "; 0.0092 of 0.001"},
    {"spin/3d/default", EXCEPTION_UNSTABLE, WHY_SPH_SPIN "; 0.00174 of 0.002"},
    END,
};

static const exception liquid_boundary_exceptions[] = {
    {"rest-ball-between/3d/*", EXCEPTION_UNSTABLE, WHY_SPH_CUBIC "; 0.022 to 0.253 of 0.03"},
    {"rest-ball/3d/20ms", EXCEPTION_UNSTABLE, WHY_SPH_CUBIC "; 0.0193 of 0.03, 0.008 to 0.30 in eight places"},
    {"rest-voxel/*", EXCEPTION_NO_MEANING, "pressure.surface is for grids"},
    {"rest-slope/*", EXCEPTION_NO_MEANING, "an object must lie inside the domain; a half space does not"},
    {"rest-level/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"rest-between/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"fall/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"drift/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"mass/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"collision/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"spin/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"energy/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"origin-*/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"axes/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"tap-*/*", EXCEPTION_NO_MEANING, "no solid in the scene: the same as sph"},
    {"rest-ball/3d/default", EXCEPTION_UNSTABLE, WHY_SPH_CUBIC "; 0.0142 of 0.03, 0.010 to 0.31 in eight places"},
    END,
};

static const exception mpm_exceptions[] = {
    {"rest-*", EXCEPTION_NO_MEANING, "rubber sinks under its weight and sways before it rests"},
    {"tap-*/*", EXCEPTION_NO_MEANING, "rubber does not fill what a source empties"},
    {"mass/*", EXCEPTION_NO_MEANING, "rubber does not fill what a source empties"},
    {"energy/*", EXCEPTION_NO_MEANING, "the check leaves out elastic energy: see tests/physics/elastoplastic.c"},
    END,
};

#define WHY_REST_SHAPE "strains come from positions, which are rounded over the size of the domain"
static const exception rest_shape_exceptions[] = {
    {"rest-*", EXCEPTION_NO_MEANING, "rubber sinks under its weight and sways before it rests"},
    {"tap-*/*", EXCEPTION_NO_MEANING, "there are no sources beside a rest shape"},
    {"mass/*", EXCEPTION_NO_MEANING, "there are no sources beside a rest shape"},
    {"threads/*", EXCEPTION_NO_MEANING,
     "there are no sources beside a rest shape: see tests/unit/test_elastoplastic.c"},
    {"resume/*", EXCEPTION_NO_MEANING, "there are no sources beside a rest shape: see tests/unit/test_elastoplastic.c"},
    {"energy/*", EXCEPTION_NO_MEANING, "the check leaves out elastic energy: see tests/physics/elastoplastic.c"},
    {"drift/*", EXCEPTION_FAILS, WHY_REST_SHAPE "; 7.6e-4 of 2e-4"},
    {"fall/*", EXCEPTION_UNSTABLE, WHY_REST_SHAPE "; 2.1e-4 of 2e-4"},
    {"collision/*", EXCEPTION_UNSTABLE, WHY_REST_SHAPE "; 0.5 to 1.8e-6 of 1e-6"},
    END,
};

#define WHY_MANY_STEPS "steps follow the waves in the rubber: some hundred seconds together"
static const exception immersed_exceptions[] = {
    {"rest-ball-between/2d/default", EXCEPTION_FAILS,
     "the rubber lies on the ball, sways and gets loose; 0.40 of 0.01"},
    {"rest-ball/2d/default", EXCEPTION_FAILS, "the rubber lies on the ball, sways and gets loose; 1.11 of 0.01"},
    {"steps/2d/1ms", EXCEPTION_UNSTABLE, "cause not found; energy 0.059 of 0.05, of flip-idp 0.037"},
    {"rest-between/2d/default", EXCEPTION_UNSTABLE, "cause not found; 0.0101 to 0.0147 of 0.01"},
    {"*/3d/*", EXCEPTION_UNTRIED, WHY_MANY_STEPS},
    {"rest-*/2d/[125]*ms", EXCEPTION_UNTRIED, WHY_MANY_STEPS},
    {"rest-[vs]*/2d/default", EXCEPTION_UNTRIED, WHY_MANY_STEPS},
    {"[a-eg-rt-z]*/2d/[125]*ms", EXCEPTION_UNTRIED, WHY_MANY_STEPS},
    {"so*/2d/[125]*ms", EXCEPTION_UNTRIED, WHY_MANY_STEPS},
    {"steps/2d/[25]*ms", EXCEPTION_UNTRIED, WHY_MANY_STEPS},
    END,
};

#define WHY_HEAT "heat does not move the liquid: the same as flip-idp"
#define WHY_SOLID "a solid does not flow"

static const exception heat_exceptions[] = {
    {"rest-*", EXCEPTION_NO_MEANING, WHY_HEAT},     {"fall/*", EXCEPTION_NO_MEANING, WHY_HEAT},
    {"drift/*", EXCEPTION_NO_MEANING, WHY_HEAT},    {"collision/*", EXCEPTION_NO_MEANING, WHY_HEAT},
    {"spin/*", EXCEPTION_NO_MEANING, WHY_HEAT},     {"energy/*", EXCEPTION_NO_MEANING, WHY_HEAT},
    {"solid-*", EXCEPTION_NO_MEANING, WHY_HEAT},    {"plate-*", EXCEPTION_NO_MEANING, WHY_HEAT},
    {"paddle*", EXCEPTION_NO_MEANING, WHY_HEAT},    {"steps/*", EXCEPTION_NO_MEANING, WHY_HEAT},
    {"tap-flow/*", EXCEPTION_NO_MEANING, WHY_HEAT}, END,
};

static const exception frozen_exceptions[] = {
    {"rest-*", EXCEPTION_NO_MEANING, WHY_SOLID},
    {"tap-*/*", EXCEPTION_NO_MEANING, WHY_SOLID},
    END,
};

static const exception soft_exceptions[] = {
    {"rest-*", EXCEPTION_NO_MEANING, WHY_SOLID},
    {"tap-*/*", EXCEPTION_NO_MEANING, WHY_SOLID},
    {"energy/*", EXCEPTION_NO_MEANING, "the check leaves out the energy of the deformation"},
    {"axes/3d/default", EXCEPTION_FAILS,
     "the outermost contacts that stand for all lie along directions of the axes; 0.0471 of 0.001"},
    {"axes/3d/5ms", EXCEPTION_UNSTABLE,
     "the outermost contacts that stand for all lie along directions of the axes; up to 0.0175 of 0.001"},
    END,
};

/* Cases of the long half that were not run for most methods so far. */
const exception untried[] = {
    END,
};

/* --- The table --- */

const method methods[] = {
    {"pic", "PIC", set_pic, CLASS_GRID, 0, pic_exceptions},
    {"pic-idp", "PIC, volume idp", set_pic_idp, CLASS_GRID, 0, pic_idp_exceptions},
    {"flip", "FLIP", set_flip, CLASS_GRID, 0, flip_exceptions},
    {"flip-idp", "FLIP, volume idp", set_flip_idp, CLASS_GRID, 0, flip_idp_exceptions},
    {"apic", "APIC", set_apic, CLASS_GRID, 1, apic_exceptions},
    {"apic-idp", "APIC, volume idp", set_apic_idp, CLASS_GRID, 1, apic_idp_exceptions},
    {"eq8", "FLIP, volume eq8", set_eq8, CLASS_GRID, 0, eq8_exceptions},
    {"losasso", "FLIP, volume losasso", set_losasso, CLASS_GRID, 0, losasso_exceptions},
    {"ando", "FLIP, volume ando", set_ando, CLASS_GRID, 0, ando_exceptions},
    {"sato", "FLIP, volume sato", set_sato, CLASS_GRID, 0, sato_exceptions},
    {"unilateral", "FLIP, unilateral incompressibility", set_unilateral, CLASS_UNILATERAL, 0, unilateral_exceptions},
    {"unilateral-apic", "APIC, unilateral incompressibility", set_unilateral_apic, CLASS_UNILATERAL, 1,
     unilateral_apic_exceptions},
    {"sph", "SPH, accelerated solver", set_sph, CLASS_SPH, 0, sph_exceptions},
    {"sph-iisph", "SPH, IISPH solver", set_sph_iisph, CLASS_SPH, 0, sph_iisph_exceptions},
    {"liquid-boundary", "SPH, solids of liquid boundaries", set_liquid_boundary, CLASS_SPH, 0,
     liquid_boundary_exceptions},
    {"mpm", "elastoplastic points (MPM)", set_mpm, CLASS_SPH, 1, mpm_exceptions},
    {"rest-shape", "elastoplastic points with a rest shape", set_rest_shape, CLASS_SPH, 0, rest_shape_exceptions},
    {"immersed", "elastoplastic points in liquid", set_immersed, CLASS_MIXED, 1, immersed_exceptions},
    {"heat", "FLIP, volume idp, heat", set_heat, CLASS_GRID, 0, heat_exceptions},
    {"frozen", "frozen bodies", set_frozen, CLASS_GRID, 0, frozen_exceptions},
    {"soft", "soft bodies of particles", set_soft, CLASS_GRID, 0, soft_exceptions},
};
const int method_count = sizeof methods / sizeof *methods;
