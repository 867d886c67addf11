/* Read access to a world for callers. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "defs/materials.h"
#include "defs/soft.h"
#include "methods/shape_matching/shape_matching.h"
#include "rigid/rigid.h"
#include "world/surface_force.h"
#include "world/world_internal.h"

double selkie_world_time(const selkie_world *world)
{
    return world->step.time;
}
int64_t selkie_world_step_count(const selkie_world *world)
{
    return world->step.step_count;
}
int64_t selkie_world_frame(const selkie_world *world)
{
    return world->frame;
}
int selkie_world_at_frame(const selkie_world *world)
{
    return world->at_frame;
}
const selkie_scene *selkie_world_scene(const selkie_world *world)
{
    return world->scene;
}
int64_t selkie_world_particle_count(const selkie_world *world)
{
    return world->step.particles.count;
}
int selkie_world_attribute_count(const selkie_world *world)
{
    return 3 + world->step.particles.attribute_count;
}
double selkie_world_particle_mass(const selkie_world *world)
{
    return world->step.particle_mass;
}
double selkie_world_material_mass(const selkie_world *world, int material)
{
    const int count = world->scene->material_count ? world->scene->material_count : 1;
    if (material < 0 || material >= count)
        return 0.0;
    return world->step.particle_mass * (sk_scene_density(world->scene, material) / world->step.density);
}

const selkie_statistics *selkie_world_statistics(const selkie_world *world)
{
    return &world->statistics;
}
selkie_backend selkie_world_backend(const selkie_world *world)
{
    return world->step.backend == SK_BACKEND_PLAIN  ? SELKIE_BACKEND_PLAIN
           : world->step.backend == SK_BACKEND_CUDA ? SELKIE_BACKEND_CUDA
                                                    : SELKIE_BACKEND_TUNED;
}

int selkie_world_phase_count(const selkie_world *world)
{
    return world->phase_count;
}
size_t selkie_world_memory(const selkie_world *world)
{
    return world->memory.used;
}
size_t selkie_world_memory_peak(const selkie_world *world)
{
    return world->memory.peak;
}
const char *selkie_world_warning(const selkie_world *world)
{
    return world->warning[0] ? world->warning : NULL;
}
int selkie_world_probe_column_count(const selkie_world *world)
{
    return world->probes.column_count;
}

int selkie_world_body_count(const selkie_world *world)
{
    return world->scene->body_count;
}

/* A body of particles. */
static void soft_body(const selkie_world *world, int number, selkie_body_state *state)
{
    const sk_soft *soft = world->step.soft;
    const sk_soft_state *from = &soft->states[number];
    for (int d = 0; d < 3; d++)
        state->position[d] = from->position[d] + world->step.grid.origin[d];
    sk_quaternion_from_rotation(from->rotation, state->quaternion);
    memcpy(state->velocity, from->velocity, sizeof state->velocity);
    memcpy(state->angular_velocity, from->angular_velocity, sizeof state->angular_velocity);
    memcpy(state->force, from->force, sizeof state->force);
    memcpy(state->torque, from->torque, sizeof state->torque);
    state->mass = soft->bodies[number].mass * soft->bodies[number].count;
}

selkie_code selkie_world_body(const selkie_world *world, int index, selkie_body_state *state)
{
    memset(state, 0, sizeof *state);
    if (index < 0 || index >= selkie_world_body_count(world))
        return SELKIE_ERROR_INPUT;
    state->name = world->scene->bodies[index].name ? world->scene->bodies[index].name : "";
    const int number = sk_body_number(world->scene, index);
    if (sk_body_material(world->scene, index) >= 0) {
        soft_body(world, number, state);
        return SELKIE_OK;
    }
    const sk_rigid_state *from = &world->step.rigid->states[number];
    for (int d = 0; d < 3; d++)
        state->position[d] = from->position[d] + world->step.grid.origin[d];
    memcpy(state->quaternion, from->quaternion, sizeof state->quaternion);
    memcpy(state->velocity, from->velocity, sizeof state->velocity);
    memcpy(state->angular_velocity, from->angular_velocity, sizeof state->angular_velocity);
    memcpy(state->force, from->force, sizeof state->force);
    memcpy(state->torque, from->torque, sizeof state->torque);
    state->mass = world->step.rigid->bodies[number].mass;
    return SELKIE_OK;
}

int selkie_world_finished(const selkie_world *world)
{
    return world->step.time >= world->scene->time.end * (1 - 1e-12);
}

const char *selkie_world_phase_name(const selkie_world *world, int phase)
{
    return phase >= 0 && phase < world->phase_count ? world->phases[phase].name : NULL;
}

const char *selkie_world_probe_column_name(const selkie_world *world, int column)
{
    return column >= 0 && column < world->probes.column_count ? world->probes.names[column] : NULL;
}

double selkie_world_probe_value(const selkie_world *world, int column)
{
    return column >= 0 && column < world->probes.column_count ? world->probes.values[column] : NAN;
}

selkie_code sk_world_outline_attribute(const selkie_world *world, int index, selkie_attribute_view *view)
{
    const sk_particles *particles = &world->step.particles;
    memset(view, 0, sizeof *view);
    if (index < 0 || index >= selkie_world_attribute_count(world))
        return SELKIE_ERROR_INPUT;
    static const char *const names[] = {"position", "velocity", "id"};
    static const size_t offsets[] = {offsetof(sk_particle, position), offsetof(sk_particle, velocity),
                                     offsetof(sk_particle, id)};
    if (index < 3) {
        view->name = names[index];
        view->type = index == 2 ? SELKIE_UINT32 : SELKIE_FLOAT32;
        view->components = index == 2 ? 1 : 3;
        view->stride = sizeof(sk_particle);
        view->data = particles->records ? (char *)particles->records + offsets[index] : NULL;
        if (index == 0)
            memcpy(view->origin, world->step.grid.origin, sizeof view->origin);
        return SELKIE_OK;
    }
    const sk_attribute *attribute = &particles->attributes[index - 3];
    view->name = attribute->name;
    view->type = attribute->is_integer ? SELKIE_UINT32 : SELKIE_FLOAT32;
    view->components = attribute->components;
    view->stride = (size_t)attribute->components * 4;
    view->data = attribute->data;
    return SELKIE_OK;
}

selkie_code selkie_world_attribute(const selkie_world *world, int index, selkie_attribute_view *view)
{
    memset(view, 0, sizeof *view);
    if (index < 0 || index >= selkie_world_attribute_count(world))
        return SELKIE_ERROR_INPUT;
    SK_TRY(sk_world_fetch(world, 0, NULL));
    *world->positions_shown |= index < 3;
    return sk_world_outline_attribute(world, index, view);
}

selkie_code selkie_world_find_attribute(const selkie_world *world, const char *name, selkie_attribute_view *view,
                                        selkie_error *error)
{
    for (int a = 0; a < selkie_world_attribute_count(world); a++)
        if (selkie_world_attribute(world, a, view) == SELKIE_OK && strcmp(view->name, name) == 0)
            return SELKIE_OK;
    memset(view, 0, sizeof *view);
    return sk_fail(error, SELKIE_ERROR_INPUT, "there is no particle attribute \"%s\" in this world", name);
}

selkie_code selkie_world_field(const selkie_world *world, const char *name, selkie_field_view *view,
                               selkie_error *error)
{
    static const struct {
        const char *name;
        sk_grid_field field;
    } known[] = {{"velocity_x", SK_FIELD_VELOCITY_X}, {"velocity_y", SK_FIELD_VELOCITY_Y},
                 {"velocity_z", SK_FIELD_VELOCITY_Z}, {"pressure", SK_FIELD_POTENTIAL},
                 {"density", SK_FIELD_DENSITY},       {"fill", SK_FIELD_FILL}};

    /* Find the field by its name, if the grid has it. */
    const sk_grid *grid = &world->step.grid;
    memset(view, 0, sizeof *view);
    SK_TRY(sk_world_fetch(world, 1, error));
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(known[k].name, name) == 0 && grid->fields[known[k].field]) {
            view->name = known[k].name;
            /* Skip slot 0, the shared empty block. */
            view->block_count = grid->block_count - 1;
            memcpy(view->extent, grid->extent, sizeof view->extent);
            memcpy(view->padding, grid->padding, sizeof view->padding);
            view->block_coordinates = (const int32_t(*)[4])(grid->coordinates + 1);
            view->data = grid->fields[known[k].field] + grid->block_cells;
            view->scale = known[k].field == SK_FIELD_POTENTIAL ? world->pressure_unit : 1.0;
            return SELKIE_OK;
        }

    /* Otherwise list the fields that exist. */
    char fields[128] = "";
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (grid->fields[known[k].field])
            snprintf(fields + strlen(fields), sizeof fields - strlen(fields), "%s%s", fields[0] ? ", " : "",
                     known[k].name);
    return sk_fail(error, SELKIE_ERROR_INPUT, "there is no grid field \"%s\" in this world; it has %s", name,
                   fields[0] ? fields : "none");
}

selkie_code selkie_world_velocity_at(const selkie_world *world, const double at[3], double velocity[3])
{
    const sk_step *step = &world->step;
    const sk_method *sampler = NULL;
    double place[3] = {0.0, 0.0, 0.0};
    for (int m = 0; m < world->methods.count; m++)
        if (world->methods.methods[m]->value_at)
            sampler = world->methods.methods[m];
    for (int d = 0; d < step->dimension; d++)
        place[d] = at[d] - step->grid.origin[d];
    for (int d = 0; d < 3; d++)
        velocity[d] = d >= step->dimension ? 0.0
                      : sampler            ? sampler->value_at(step, place, d)
                                           : sk_velocity_at(step, place, d);
    return SELKIE_OK;
}
