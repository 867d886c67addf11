/* The engine behind rigid.h: ODE, the Open Dynamics Engine.
 *
 * Each step starts from sk_rigid_state, finds contacts pair by pair in a fixed order and solves them with dWorldStep(),
 * a direct method without random numbers. (dWorldQuickStep() uses a generator shared by the process.) So the result
 * depends on the states only. ODE's lists of geometries ("spaces") are not used: their order depends on the past and
 * would differ after a checkpoint.
 *
 * ODE must be loaded and initialised once. Its own counter of users is not thread-safe, so a mutex guards both: the
 * only state that worlds share. */
#include "rigid/rigid.h"

#include "selkie_config.h"

#if !SELKIE_HAVE_ODE

#include "base/status.h"

selkie_code sk_rigid_engine_create(sk_rigid *rigid, selkie_error *error)
{
    (void)rigid;
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED, "bodies: this build has no rigid body engine");
}

void sk_rigid_engine_destroy(sk_rigid *rigid)
{
    (void)rigid;
}

void sk_rigid_engine_weigh(sk_rigid *rigid, int body)
{
    (void)rigid, (void)body;
}

selkie_code sk_rigid_engine_step(sk_rigid *rigid, double time, double kick, double dt, double share,
                                 selkie_error *error)
{
    (void)rigid, (void)time, (void)kick, (void)dt, (void)share;
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED, "bodies: this build has no rigid body engine");
}

#else

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <ode/ode.h>

#include "base/library.h"
#include "base/status.h"
#include "geom/shape_internal.h"

#define PI 3.14159265358979323846

enum { contacts_of_pair = 32 };

/* clang-format off */
#define ODE(F) \
    F(dAllocateODEDataForThread) F(dBodyCreate) F(dBodyGetAngularVel) F(dBodyGetLinearVel) F(dBodyGetPointVel) \
    F(dBodyGetPosition) F(dBodyGetQuaternion) F(dBodySetAngularVel) F(dBodySetAutoDisableFlag) \
    F(dBodySetFiniteRotationMode) F(dBodySetForce) F(dBodySetKinematic) F(dBodySetLinearVel) F(dBodySetMass) \
    F(dBodySetPosition) F(dBodySetQuaternion) F(dBodySetRotation) F(dBodySetTorque) F(dCloseODE) F(dCollide) \
    F(dCreateBox) F(dCreateCylinder) F(dCreatePlane) F(dCreateSphere) F(dCreateTriMesh) F(dGeomDestroy) \
    F(dGeomGetAABB) F(dGeomGetBody) F(dGeomPlaneSetParams) F(dGeomSetBody) F(dGeomSetOffsetPosition) \
    F(dGeomSetOffsetRotation) F(dGeomSetPosition) F(dGeomSetRotation) F(dGeomTriMeshDataBuildSingle) \
    F(dGeomTriMeshDataCreate) F(dGeomTriMeshDataDestroy) F(dGetMessageHandler) F(dInitODE2) F(dJointAttach) \
    F(dJointCreateAMotor) F(dJointCreateContact) F(dJointCreateHinge) F(dJointCreateLMotor) F(dJointGetHingeAngle) \
    F(dJointGroupCreate) F(dJointGroupDestroy) F(dJointGroupEmpty) F(dJointSetAMotorAxis) F(dJointSetAMotorMode) \
    F(dJointSetAMotorNumAxes) F(dJointSetAMotorParam) F(dJointSetHingeAnchor) F(dJointSetHingeAxis) \
    F(dJointSetHingeParam) F(dJointSetLMotorAxis) F(dJointSetLMotorNumAxes) F(dJointSetLMotorParam) \
    F(dMassSetParameters) F(dRFromAxisAndAngle) F(dRFromZAxis) F(dRSetIdentity) F(dSetMessageHandler) \
    F(dWorldCreate) F(dWorldDestroy) F(dWorldSetCFM) F(dWorldSetContactMaxCorrectingVel) \
    F(dWorldSetContactSurfaceLayer) F(dWorldSetERP) F(dWorldSetGravity) F(dWorldStep)
/* clang-format on */
SK_LIBRARY_TABLE(ode_functions, ODE);

/* One shape of ODE; a union has several. */
typedef struct geometry {
    dGeomID geom;
    int body;       /* -1: none */
    int obstacle;   /* -1: none; both -1: a wall */
    float *corners; /* of a mesh; ODE keeps pointers to them */
    dTriIndex *indices;
    dTriMeshDataID data;
    const sk_shape *plane; /* a half space: ODE does not attach these to bodies */
} geometry;

struct sk_rigid_engine {
    sk_memory *memory;
    dWorldID world;
    dJointGroupID contacts;
    dBodyID *bodies;    /* [body_count] */
    dBodyID *obstacles; /* [obstacle_count], NULL where it rests */
    dJointID *hinges;   /* [joint_count] */
    size_t geometry_count, geometry_capacity;
    geometry *geometries; /* those of bodies first */
    size_t of_bodies;
    double resting_speed; /* m/s: below it nothing bounces */
};

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;
static ode_functions ode; /* filled once, by the first user */

/* A library does not write to the terminal. ODE's messages are about degenerate contacts, which it handles. */
static void say_nothing(int number, const char *message, va_list arguments)
{
    (void)number, (void)message, (void)arguments;
}

static selkie_code load_functions(selkie_error *error)
{
#if SELKIE_LATE_ODE
    static const char *const names[] = {ODE(SK_LIBRARY_NAME)};
    return sk_library_load(SELKIE_LATE_ODE_FILE, SELKIE_LATE_ODE_FOLDER, names, sizeof ode, &ode, "bodies", error);
#else
    (void)error;
    ode = (ode_functions){ODE(SK_LIBRARY_ADDRESS)};
    return SELKIE_OK;
#endif
}

static selkie_code begin_use(selkie_error *error)
{
    pthread_mutex_lock(&in_use);
    selkie_code code = ode.dInitODE2 ? SELKIE_OK : load_functions(error);
    if (code == SELKIE_OK && !ode.dInitODE2(0))
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: the rigid body engine cannot start");
    if (code == SELKIE_OK && !ode.dGetMessageHandler())
        ode.dSetMessageHandler(say_nothing);
    pthread_mutex_unlock(&in_use);
    return code;
}

static void end_use(void)
{
    pthread_mutex_lock(&in_use);
    ode.dCloseODE();
    pthread_mutex_unlock(&in_use);
}

/* --- Shapes --- */

static selkie_code add_geometry(struct sk_rigid_engine *engine, const geometry *g, selkie_error *error)
{
    selkie_code code = sk_reserve(engine->memory, (void **)&engine->geometries, &engine->geometry_capacity,
                                  engine->geometry_count + 1, sizeof *engine->geometries, "bodies", error);
    if (code == SELKIE_OK && !g->geom)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for a shape");
    if (code == SELKIE_OK)
        engine->geometries[engine->geometry_count++] = *g;
    return code;
}

/* Triangles around `origin` (m). In 2D the outline is extruded across the plane. */
static selkie_code make_mesh(sk_rigid *rigid, const sk_shape *shape, const double origin[3], double thickness,
                             geometry *g, selkie_error *error)
{
    const sk_solids *solids = rigid->solids;
    double low[3], high[3], diagonal = 0.0;
    size_t pieces;
    float *points;

    /* Triangles of the shape, clipped to a box larger than the domain. */
    for (int d = 0; d < 3; d++)
        diagonal += (solids->high[d] - solids->low[d]) * (solids->high[d] - solids->low[d]);
    for (int d = 0; d < 3; d++) {
        low[d] = solids->low[d] - sqrt(diagonal);
        high[d] = solids->high[d] + sqrt(diagonal);
    }
    SK_TRY(sk_shape_triangles(shape, low, high, &pieces, &points, error));

    /* Arrays of ODE. */
    int flat = rigid->dimension == 2;
    size_t triangles = flat ? 2 * pieces : pieces;
    g->corners = sk_allocate(rigid->memory, (9 * triangles + 1) * sizeof *g->corners);
    g->indices = sk_allocate(rigid->memory, (3 * triangles + 1) * sizeof *g->indices);
    if (triangles == 0 || triangles > INT32_MAX / 9) {
        free(points);
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "bodies: a shape of %zu triangles: must have a surface in or around the domain, of at "
                       "most %d triangles",
                       triangles, INT32_MAX / 9);
    }
    if (!g->corners || !g->indices) {
        free(points);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for a shape of %zu triangles", triangles);
    }

    /* Corners of the two triangles over a segment: which end, and above or below. The segment has the inside on its
     * left, and triangles go counter-clockwise seen from outside. */
    static const int end_of[6] = {0, 1, 1, 0, 1, 0}, above_of[6] = {0, 0, 1, 0, 1, 1};
    for (size_t c = 0; c < 3 * triangles; c++) {
        const float *point = flat ? points + 6 * (c / 6) + 3 * end_of[c % 6] : points + 3 * c;
        for (int d = 0; d < 3; d++)
            g->corners[3 * c + (size_t)d] = (float)(point[d] - origin[d]);
        if (flat)
            g->corners[3 * c + 2] = (float)(above_of[c % 6] ? 0.5 * thickness : -0.5 * thickness);
        g->indices[c] = (dTriIndex)c;
    }
    free(points);

    g->data = ode.dGeomTriMeshDataCreate();
    ode.dGeomTriMeshDataBuildSingle(g->data, g->corners, 3 * sizeof(float), (int)(3 * triangles), g->indices,
                                    (int)(3 * triangles), 3 * sizeof(dTriIndex));
    g->geom = ode.dCreateTriMesh(0, g->data, NULL, NULL, NULL);
    return SELKIE_OK;
}

static void release_geometry(sk_memory *memory, geometry *g)
{
    if (g->geom)
        ode.dGeomDestroy(g->geom);
    if (g->data)
        ode.dGeomTriMeshDataDestroy(g->data);
    sk_release(memory, g->corners);
    sk_release(memory, g->indices);
}

/* The geometry of a simple shape in its own frame, and how that is turned; 0 where the shape needs a mesh. In 2D solids
 * are `thickness` (m) thick. */
static int make_simple(const sk_shape *shape, int solid, double thickness, geometry *g, dMatrix3 turn)
{
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        g->geom = ode.dCreateBox(0, 2 * shape->half[0], 2 * shape->half[1], solid ? 2 * shape->half[2] : thickness);
        return 1;
    case SELKIE_SHAPE_SPHERE:
        g->geom = ode.dCreateSphere(0, shape->radius);
        return 1;
    case SELKIE_SHAPE_CYLINDER:
        if (solid) {
            g->geom = ode.dCreateCylinder(0, shape->radius, 2 * shape->half_length);
            ode.dRFromZAxis(turn, shape->axis[0], shape->axis[1], shape->axis[2]);
        } else {
            g->geom = ode.dCreateBox(0, 2 * shape->half_length, 2 * shape->radius, thickness);
            ode.dRFromAxisAndAngle(turn, 0, 0, 1, atan2(shape->axis[1], shape->axis[0]));
        }
        return 1;
    case SELKIE_SHAPE_HALF_SPACE:
        g->geom =
            ode.dCreatePlane(0, shape->axis[0], shape->axis[1], shape->axis[2], sk_dot(shape->axis, shape->center));
        g->plane = shape;
        return 1;
    default:
        return 0;
    }
}

/* Attaches a shape to a body whose frame has its origin in `origin` (m, as drawn); without a body, places it as
 * drawn. */
static selkie_code add_shape(sk_rigid *rigid, const sk_shape *shape, const double origin[3], dBodyID body,
                             geometry *owner, selkie_error *error)
{
    const int solid = rigid->dimension == 3, is_plane = shape->kind == SELKIE_SHAPE_HALF_SPACE;
    if (shape->kind == SELKIE_SHAPE_UNION) {
        for (int i = 0; i < shape->child_count; i++)
            SK_TRY(add_shape(rigid, shape->children[i], origin, body, owner, error));
        return SELKIE_OK;
    }

    /* The geometry. */
    double thickness = 0.0;
    for (int d = 0; d < 2; d++)
        thickness = fmax(thickness, rigid->solids->high[d] - rigid->solids->low[d]);
    geometry g = *owner;
    dMatrix3 turn;
    ode.dRSetIdentity(turn);
    const int is_simple = make_simple(shape, solid, thickness, &g, turn);
    selkie_code code = is_simple ? SELKIE_OK : make_mesh(rigid, shape, origin, thickness, &g, error);
    if (code == SELKIE_OK)
        code = add_geometry(rigid->engine, &g, error);
    if (code != SELKIE_OK) {
        release_geometry(rigid->memory, &g);
        return code;
    }
    if (is_plane)
        return SELKIE_OK;

    /* Its place on the body or in the world. A mesh has its place in its corners. */
    const double place[3] = {shape->center[0] - origin[0], shape->center[1] - origin[1],
                             solid ? shape->center[2] - origin[2] : 0.0};
    if (body)
        ode.dGeomSetBody(g.geom, body);
    if (is_simple && body) {
        ode.dGeomSetOffsetPosition(g.geom, place[0], place[1], place[2]);
        ode.dGeomSetOffsetRotation(g.geom, turn);
    } else if (is_simple) {
        ode.dGeomSetPosition(g.geom, place[0], place[1], place[2]);
        ode.dGeomSetRotation(g.geom, turn);
    }
    return SELKIE_OK;
}

/* --- Making --- */

/* Locks the held axes of a body; in 2D all that leave the plane. */
static void hold(sk_rigid *rigid, dBodyID id, const selkie_body_def *def)
{
    dWorldID world = rigid->engine->world;
    int lines[3], turns[3], line_count = 0, turn_count = 0;
    for (int d = 0; d < 3; d++) {
        if (def->move[d] == 0.0 || (rigid->dimension == 2 && d == 2))
            lines[line_count++] = d;
        if (def->turn[d] == 0.0 || (rigid->dimension == 2 && d != 2))
            turns[turn_count++] = d;
    }

    static const int speed[3] = {dParamVel1, dParamVel2, dParamVel3},
                     force[3] = {dParamFMax1, dParamFMax2, dParamFMax3};

    /* Translation. */
    if (line_count) {
        dJointID motor = ode.dJointCreateLMotor(world, 0);
        ode.dJointAttach(motor, id, 0);
        ode.dJointSetLMotorNumAxes(motor, line_count);
        for (int a = 0; a < line_count; a++) {
            ode.dJointSetLMotorAxis(motor, a, 0, lines[a] == 0, lines[a] == 1, lines[a] == 2);
            ode.dJointSetLMotorParam(motor, speed[a], 0.0);
            ode.dJointSetLMotorParam(motor, force[a], dInfinity);
        }
    }

    /* Rotation. */
    if (turn_count) {
        dJointID motor = ode.dJointCreateAMotor(world, 0);
        ode.dJointAttach(motor, id, 0);
        ode.dJointSetAMotorMode(motor, dAMotorUser);
        ode.dJointSetAMotorNumAxes(motor, turn_count);
        for (int a = 0; a < turn_count; a++) {
            ode.dJointSetAMotorAxis(motor, a, 0, turns[a] == 0, turns[a] == 1, turns[a] == 2);
            ode.dJointSetAMotorParam(motor, speed[a], 0.0);
            ode.dJointSetAMotorParam(motor, force[a], dInfinity);
        }
    }
}

void sk_rigid_engine_weigh(sk_rigid *rigid, int b)
{
    const sk_rigid_body *body = &rigid->bodies[b];
    const double *inertia = body->inertia, turning = inertia[8] + body->added_inertia;
    dMass mass;
    if (rigid->dimension == 3)
        ode.dMassSetParameters(&mass, body->mass, 0, 0, 0, inertia[0], inertia[4], inertia[8], inertia[1], inertia[2],
                               inertia[5]);
    else
        ode.dMassSetParameters(&mass, body->mass + body->added_mass, 0, 0, 0, turning, turning, turning, 0, 0, 0);
    ode.dBodySetMass(rigid->engine->bodies[b], &mass);
}

static selkie_code make_bodies(sk_rigid *rigid, selkie_error *error)
{
    struct sk_rigid_engine *engine = rigid->engine;
    for (int b = 0; b < rigid->body_count; b++) {
        const sk_rigid_body *body = &rigid->bodies[b];
        dBodyID id = engine->bodies[b] = ode.dBodyCreate(engine->world);
        sk_rigid_engine_weigh(rigid, b);
        ode.dBodySetAutoDisableFlag(id, 0);
        ode.dBodySetFiniteRotationMode(id, 1);
        hold(rigid, id, body->def);
        geometry owner = {.body = b, .obstacle = -1};
        SK_TRY(add_shape(rigid, body->shape, body->center, id, &owner, error));
    }
    engine->of_bodies = engine->geometry_count;
    return SELKIE_OK;
}

/* Number of the body with a name; -1 = none. */
static int find_body(const sk_rigid *rigid, const char *name)
{
    for (int b = 0; name && *name && b < rigid->body_count; b++)
        if (rigid->bodies[b].def->name && strcmp(rigid->bodies[b].def->name, name) == 0)
            return b;
    return -1;
}

/* Hinges about z. Angles count from the poses at the start. */
static selkie_code make_joints(sk_rigid *rigid, selkie_error *error)
{
    struct sk_rigid_engine *engine = rigid->engine;
    const selkie_scene *scene = rigid->scene;
    engine->hinges = sk_allocate_zeroed(rigid->memory, ((size_t)scene->joint_count + 1) * sizeof *engine->hinges);
    if (!engine->hinges)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "joints: no memory for %d of them", scene->joint_count);
    for (int b = 0; b < rigid->body_count; b++) {
        const double *center = rigid->bodies[b].center;
        ode.dBodySetPosition(engine->bodies[b], center[0], center[1], center[2]);
    }
    for (int j = 0; j < scene->joint_count; j++) {
        const selkie_joint_def *def = &scene->joints[j];
        const int first = find_body(rigid, def->first), second = find_body(rigid, def->second);
        dJointID hinge = engine->hinges[j] = ode.dJointCreateHinge(engine->world, 0);
        /* ODE measures the angle of its first body against its second. */
        if (second < 0)
            ode.dJointAttach(hinge, engine->bodies[first], 0);
        else
            ode.dJointAttach(hinge, engine->bodies[second], engine->bodies[first]);
        ode.dJointSetHingeAnchor(hinge, def->at[0], def->at[1], rigid->bodies[first].center[2]);
        ode.dJointSetHingeAxis(hinge, 0, 0, 1);
    }
    return SELKIE_OK;
}

/* Motors run at the speed that brings the angle to its place at the end of the step. ODE counts speeds against the
 * axis of its first body. */
static void drive_joints(sk_rigid *rigid, double time, double dt)
{
    const selkie_scene *scene = rigid->scene;
    for (int j = 0; j < scene->joint_count; j++) {
        const selkie_joint_def *def = &scene->joints[j];
        dJointID hinge = rigid->engine->hinges[j];
        double speed = def->spin;
        if (def->swing == 0.0 && def->spin == 0.0)
            continue;
        if (def->swing != 0.0) {
            const double end = time + dt, fade = fmin(end / def->period, 1.0);
            const double angle = def->swing * PI / 180.0 * fade * fade * (3.0 - 2.0 * fade) *
                                 sin(2.0 * PI * end / def->period + def->phase * PI / 180.0);
            speed = (angle - ode.dJointGetHingeAngle(hinge)) / dt;
        }
        ode.dJointSetHingeParam(hinge, dParamVel, speed);
        ode.dJointSetHingeParam(hinge, dParamFMax, def->torque > 0.0 ? def->torque : dInfinity);
    }
}

/* Are two bodies joined? */
static int joined(const sk_rigid *rigid, int a, int b)
{
    for (int j = 0; a >= 0 && b >= 0 && j < rigid->scene->joint_count; j++) {
        const selkie_joint_def *def = &rigid->scene->joints[j];
        const int first = find_body(rigid, def->first), second = find_body(rigid, def->second);
        if ((first == a && second == b) || (first == b && second == a))
            return 1;
    }
    return 0;
}

static selkie_code make_surroundings(sk_rigid *rigid, selkie_error *error)
{
    struct sk_rigid_engine *engine = rigid->engine;
    const sk_solids *solids = rigid->solids;
    for (int side = 0; side < 2 * rigid->dimension; side++) {
        if (solids->walls[side] == SELKIE_WALL_OPEN)
            continue;
        double normal[3] = {0, 0, 0};
        normal[side / 2] = side & 1 ? -1.0 : 1.0;
        double at = side & 1 ? -solids->high[side / 2] : solids->low[side / 2];
        geometry wall = {.body = -1, .obstacle = -1, .geom = ode.dCreatePlane(0, normal[0], normal[1], normal[2], at)};
        SK_TRY(add_geometry(engine, &wall, error));
    }
    static const double zero[3] = {0, 0, 0};
    for (int o = 0; o < rigid->obstacle_count; o++) {
        const sk_obstacle *obstacle = &solids->obstacles[o];
        geometry owner = {.body = -1, .obstacle = o};
        if (obstacle->placed) {
            engine->obstacles[o] = ode.dBodyCreate(engine->world);
            ode.dBodySetKinematic(engine->obstacles[o]);
        }
        SK_TRY(add_shape(rigid, obstacle->shape, obstacle->placed ? obstacle->pose.center : zero, engine->obstacles[o],
                         &owner, error));
    }
    return SELKIE_OK;
}

selkie_code sk_rigid_engine_create(sk_rigid *rigid, selkie_error *error)
{
    SK_TRY(begin_use(error));

    /* Memory, world and contacts. */
    struct sk_rigid_engine *engine = rigid->engine = sk_allocate_zeroed(rigid->memory, sizeof *engine);
    if (!engine) {
        end_use();
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory");
    }
    engine->memory = rigid->memory;
    engine->bodies = sk_allocate_zeroed(rigid->memory, ((size_t)rigid->body_count + 1) * sizeof *engine->bodies);
    engine->obstacles =
        sk_allocate_zeroed(rigid->memory, ((size_t)rigid->obstacle_count + 1) * sizeof *engine->obstacles);
    engine->world = ode.dWorldCreate();
    engine->contacts = ode.dJointGroupCreate(0);
    if (!engine->bodies || !engine->obstacles || !engine->world || !engine->contacts)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d of them", rigid->body_count);

    /* Parameters of contacts follow gravity and the cell size. */
    const double *g = rigid->scene->gravity;
    double gravity = sqrt(sk_dot(g, g));
    ode.dWorldSetGravity(engine->world, 0, 0, 0); /* added in sk_rigid_engine_step() */
    ode.dWorldSetCFM(engine->world, 1e-9);
    ode.dWorldSetContactSurfaceLayer(engine->world, 1e-3 * rigid->solids->cell_size);
    /* Overlapping bodies separate no faster than a fall over one cell. */
    ode.dWorldSetContactMaxCorrectingVel(engine->world, fmax(sqrt(2 * gravity * rigid->solids->cell_size), 1e-3));
    engine->resting_speed = 0.3 * sqrt(2 * gravity * rigid->solids->cell_size);

    /* Bodies, walls and obstacles. */
    SK_TRY(make_bodies(rigid, error));
    SK_TRY(make_joints(rigid, error));
    return make_surroundings(rigid, error);
}

void sk_rigid_engine_destroy(sk_rigid *rigid)
{
    struct sk_rigid_engine *engine = rigid->engine;
    if (!engine)
        return;
    for (size_t i = 0; i < engine->geometry_count; i++)
        release_geometry(engine->memory, &engine->geometries[i]);
    if (engine->contacts)
        ode.dJointGroupDestroy(engine->contacts);
    if (engine->world)
        ode.dWorldDestroy(engine->world);
    sk_release(engine->memory, engine->geometries);
    sk_release(engine->memory, engine->bodies);
    sk_release(engine->memory, engine->obstacles);
    sk_release(engine->memory, engine->hinges);
    sk_release(engine->memory, engine);
    rigid->engine = NULL;
    end_use();
}

/* --- The step --- */

static void set_body(sk_rigid *rigid, int b, double kick, double dt, double share)
{
    const sk_rigid_body *body = &rigid->bodies[b];
    const sk_rigid_state *state = &rigid->states[b];
    dBodyID id = rigid->engine->bodies[b];
    const dQuaternion q = {state->quaternion[0], state->quaternion[1], state->quaternion[2], state->quaternion[3]};
    ode.dBodySetPosition(id, state->position[0], state->position[1], state->position[2]);
    ode.dBodySetQuaternion(id, q);
    ode.dBodySetLinearVel(id, state->velocity[0], state->velocity[1], state->velocity[2]);
    ode.dBodySetAngularVel(id, state->angular_velocity[0], state->angular_velocity[1], state->angular_velocity[2]);
    double force[3], torque[3];
    for (int i = 0; i < 3; i++) {
        int moves = body->def->move[i] != 0.0 && (rigid->dimension == 3 || i < 2);
        int turns = body->def->turn[i] != 0.0 && (rigid->dimension == 3 || i == 2);
        force[i] = moves ? (body->mass * rigid->scene->gravity[i] * kick + share * body->impulse[i]) / dt : 0.0;
        torque[i] = turns ? share * body->angular_impulse[i] / dt : 0.0;
    }
    ode.dBodySetForce(id, force[0], force[1], force[2]);
    ode.dBodySetTorque(id, torque[0], torque[1], torque[2]);
}

static void get_body(sk_rigid *rigid, int b)
{
    const selkie_body_def *def = rigid->bodies[b].def;
    sk_rigid_state *state = &rigid->states[b];
    dBodyID id = rigid->engine->bodies[b];
    const dReal *x = ode.dBodyGetPosition(id), *q = ode.dBodyGetQuaternion(id), *v = ode.dBodyGetLinearVel(id),
                *w = ode.dBodyGetAngularVel(id);
    int turning = 0;
    for (int i = 0; i < 3; i++) {
        int moves = def->move[i] != 0.0 && (rigid->dimension == 3 || i < 2);
        int turns = def->turn[i] != 0.0 && (rigid->dimension == 3 || i == 2);
        /* Held axes must not drift. */
        state->position[i] = moves ? x[i] : state->position[i];
        state->velocity[i] = moves ? v[i] : 0.0;
        state->angular_velocity[i] = turns ? w[i] : 0.0;
        turning |= turns;
    }
    if (!turning)
        return;
    for (int i = 0; i < 4; i++)
        state->quaternion[i] = q[i];
    if (rigid->dimension == 2) {
        double length = hypot(q[0], q[3]);
        state->quaternion[0] = q[0] / length;
        state->quaternion[1] = state->quaternion[2] = 0.0;
        state->quaternion[3] = q[3] / length;
    }
}

/* The planes of an obstacle that moves. */
static void move_planes(sk_rigid *rigid, int obstacle, const sk_pose *pose)
{
    const double *r = pose->rotation;
    for (size_t i = rigid->engine->of_bodies; i < rigid->engine->geometry_count; i++) {
        const geometry *g = &rigid->engine->geometries[i];
        if (g->obstacle != obstacle || !g->plane)
            continue;
        double point[3], normal[3];
        const double *axis = g->plane->axis;
        sk_pose_to_world(pose, g->plane->center, point);
        for (int d = 0; d < 3; d++)
            normal[d] = r[3 * d] * axis[0] + r[3 * d + 1] * axis[1] + r[3 * d + 2] * axis[2];
        ode.dGeomPlaneSetParams(g->geom, normal[0], normal[1], normal[2], sk_dot(normal, point));
    }
}

static void move_obstacles(sk_rigid *rigid, double time)
{
    const sk_solids *solids = rigid->solids;
    for (int o = 0; o < rigid->obstacle_count; o++) {
        dBodyID id = rigid->engine->obstacles[o];
        sk_pose pose;
        if (!id)
            continue;
        sk_pose_at(solids->obstacles[o].def, time, &pose);
        const dMatrix3 turn = {pose.rotation[0], pose.rotation[1], pose.rotation[2], 0,
                               pose.rotation[3], pose.rotation[4], pose.rotation[5], 0,
                               pose.rotation[6], pose.rotation[7], pose.rotation[8], 0};
        ode.dBodySetPosition(id, pose.center[0] + pose.translation[0], pose.center[1] + pose.translation[1],
                             pose.center[2] + pose.translation[2]);
        ode.dBodySetRotation(id, turn);
        ode.dBodySetLinearVel(id, pose.velocity[0], pose.velocity[1], pose.velocity[2]);
        ode.dBodySetAngularVel(id, pose.angular_velocity[0], pose.angular_velocity[1], pose.angular_velocity[2]);
        move_planes(rigid, o, &pose);
    }
}

/* Velocity of a body at a point after this step's gravity; 0 without a body. */
static void velocity_at(const sk_rigid *rigid, const geometry *g, const dReal at[3], double kick, double velocity[3])
{
    dBodyID id = g->body >= 0       ? rigid->engine->bodies[g->body]
                 : g->obstacle >= 0 ? rigid->engine->obstacles[g->obstacle]
                                    : 0;
    memset(velocity, 0, 3 * sizeof *velocity);
    if (!id)
        return;
    dVector3 v;
    ode.dBodyGetPointVel(id, at[0], at[1], at[2], v);
    for (int i = 0; i < 3; i++)
        velocity[i] = v[i] + (g->body >= 0 ? kick * rigid->scene->gravity[i] : 0.0);
}

/* ODE bounds friction in each of two directions. With the first one along the motion this is Coulomb's law. */
static void add_contact(sk_rigid *rigid, const geometry *a, const geometry *b, const dContactGeom *where, double kick)
{
    const selkie_body_def *first = rigid->bodies[a->body].def,
                          *second = b->body >= 0 ? rigid->bodies[b->body].def : first;
    struct sk_rigid_engine *engine = rigid->engine;
    dContact contact;
    memset(&contact, 0, sizeof contact);
    contact.geom = *where;
    contact.surface.mode = dContactApprox1;
    contact.surface.mu = sqrt(first->friction * second->friction);

    double bounce = fmax(first->restitution, second->restitution);
    if (bounce > 0.0) {
        contact.surface.mode |= dContactBounce;
        contact.surface.bounce = bounce;
        contact.surface.bounce_vel = engine->resting_speed;
    }

    /* Direction of sliding. */
    double one[3], other[3], slide[3], along = 0.0, squared = 0.0;
    velocity_at(rigid, a, where->pos, kick, one);
    velocity_at(rigid, b, where->pos, kick, other);
    for (int i = 0; i < 3; i++)
        along += (one[i] - other[i]) * where->normal[i];
    for (int i = 0; i < 3; i++) {
        slide[i] = one[i] - other[i] - along * where->normal[i];
        squared += slide[i] * slide[i];
    }
    if (squared > 1e-20) {
        contact.surface.mode |= dContactFDir1;
        for (int i = 0; i < 3; i++)
            contact.fdir1[i] = slide[i] / sqrt(squared);
    }

    dJointID joint = ode.dJointCreateContact(engine->world, engine->contacts, &contact);
    ode.dJointAttach(joint, ode.dGeomGetBody(a->geom),
                     b->plane && b->obstacle >= 0 ? engine->obstacles[b->obstacle] : ode.dGeomGetBody(b->geom));
}

static void find_contacts(sk_rigid *rigid, double kick)
{
    struct sk_rigid_engine *engine = rigid->engine;
    for (size_t i = 0; i < engine->of_bodies; i++) {
        const geometry *a = &engine->geometries[i];
        dReal box_a[6], box_b[6];
        ode.dGeomGetAABB(a->geom, box_a);
        for (size_t j = i + 1; j < engine->geometry_count; j++) {
            const geometry *b = &engine->geometries[j];
            if (a->body == b->body)
                continue;
            ode.dGeomGetAABB(b->geom, box_b);
            int apart = 0;
            for (int d = 0; d < 3; d++)
                apart |= box_a[2 * d] > box_b[2 * d + 1] || box_b[2 * d] > box_a[2 * d + 1];
            if (apart || joined(rigid, a->body, b->body))
                continue;
            dContactGeom places[contacts_of_pair];
            int count = ode.dCollide(a->geom, b->geom, contacts_of_pair, places, sizeof *places);
            for (int c = 0; c < count; c++)
                add_contact(rigid, a, b, &places[c], kick);
        }
    }
}

selkie_code sk_rigid_engine_step(sk_rigid *rigid, double time, double kick, double dt, double share,
                                 selkie_error *error)
{
    struct sk_rigid_engine *engine = rigid->engine;
    if (!(dt > 0.0))
        return SELKIE_OK;
    if (!ode.dAllocateODEDataForThread(dAllocateMaskAll))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for the rigid body engine");
    for (int b = 0; b < rigid->body_count; b++)
        set_body(rigid, b, kick, dt, share);
    move_obstacles(rigid, time);
    drive_joints(rigid, time, dt);
    ode.dJointGroupEmpty(engine->contacts);
    ode.dWorldSetERP(engine->world, rigid->recovery);
    find_contacts(rigid, kick);
    if (!ode.dWorldStep(engine->world, dt))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for the contacts of %d bodies",
                       rigid->body_count);
    for (int b = 0; b < rigid->body_count; b++)
        get_body(rigid, b);
    return SELKIE_OK;
}

#endif
