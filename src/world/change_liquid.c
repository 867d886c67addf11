/* Liquid that is added to a running world or taken out of it. */
#include <math.h>
#include <string.h>

#include "geom/shape.h"
#include "world/world_internal.h"

/* Sub-cells around the new liquid, and which of them hold a particle. */
typedef struct empty_room {
    sk_memory *memory;
    int per_axis;               /*    sub-cells along the side of a cell */
    double size;                /* m  of a sub-cell */
    double low[3];              /* m  */
    int64_t first[3], count[3]; /*  sub-cells: a whole number of cells */
    uint8_t *taken;             /*    [sub-cells] */
    uint16_t *in_cell;          /*    [cells] particles */
} empty_room;

/* The sub-cell of a place (m); 0 if it is outside. */
static int find_room(const empty_room *room, const float x[3], int dimension, size_t *sub_cell, size_t *cell)
{
    size_t at = 0, at_cell = 0;
    for (int d = dimension - 1; d >= 0; d--) {
        const double place = floor((x[d] - room->low[d]) / room->size) - (double)room->first[d];
        if (!(place >= 0.0 && place < (double)room->count[d]))
            return 0;
        at = at * (size_t)room->count[d] + (size_t)place;
        at_cell = at_cell * (size_t)(room->count[d] / room->per_axis) + (size_t)place / (size_t)room->per_axis;
    }
    *sub_cell = at;
    *cell = at_cell;
    return 1;
}

static selkie_code open_room(empty_room *room, const sk_step *step, const sk_particles *added, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    memset(room, 0, sizeof *room);
    room->memory = step->memory;
    room->per_axis = 1;
    while (pow(room->per_axis, step->dimension) < step->particles_per_cell)
        room->per_axis++;
    room->size = grid->cell_size / room->per_axis;

    /* The cells that the new particles lie in. */
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int64_t p = 0; p < added->count; p++)
        for (int d = 0; d < step->dimension; d++) {
            low[d] = fmin(low[d], added->records[p].position[d]);
            high[d] = fmax(high[d], added->records[p].position[d]);
        }
    size_t cells = 1, sub_cells = 1;
    for (int d = 0; d < step->dimension; d++) {
        const int64_t from = (int64_t)floor((low[d] - grid->low[d]) / grid->cell_size),
                      to = (int64_t)floor((high[d] - grid->low[d]) / grid->cell_size) + 1;
        room->low[d] = grid->low[d];
        room->first[d] = from * room->per_axis;
        room->count[d] = (to - from) * room->per_axis;
        cells *= (size_t)(to - from);
        sub_cells *= (size_t)room->count[d];
    }
    room->taken = sk_allocate_zeroed(step->memory, sub_cells);
    room->in_cell = sk_allocate_zeroed(step->memory, cells * sizeof *room->in_cell);
    if (!room->taken || !room->in_cell)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "changes: no memory for liquid in %zu cells", cells);

    /* What is there already. */
    for (int64_t p = 0; p < step->particles.count; p++) {
        size_t sub_cell, cell;
        if (!(step->particles.records[p].flags & SK_PARTICLE_DEAD) &&
            find_room(room, step->particles.records[p].position, step->dimension, &sub_cell, &cell)) {
            room->taken[sub_cell] = 1;
            room->in_cell[cell]++;
        }
    }
    return SELKIE_OK;
}

static void close_room(empty_room *room)
{
    sk_release(room->memory, room->taken);
    sk_release(room->memory, room->in_cell);
}

/* Takes over a particle of the new liquid. */
static void take(sk_step *step, const sk_particles *added, int64_t p)
{
    sk_particles *particles = &step->particles;
    const sk_particle *from = &added->records[p];
    const double x[3] = {from->position[0], from->position[1], from->position[2]},
                 v[3] = {from->velocity[0], from->velocity[1], from->velocity[2]};
    sk_particles_append(particles, x, v);
    for (int a = 0; a < particles->attribute_count; a++) {
        sk_attribute *to = &particles->attributes[a];
        const sk_attribute *source = sk_particles_find_attribute(added, to->name);
        uint32_t *values = to->data + (particles->count - 1) * to->components;
        if (source && source->components == to->components)
            memcpy(values, source->data + p * to->components, (size_t)to->components * sizeof *values);
        else
            memset(values, 0, (size_t)to->components * sizeof *values);
    }
    step->sums.max_speed = fmax(step->sums.max_speed, sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]));
    for (int d = 0; d < step->dimension; d++)
        step->positions[d] += x[d];
    step->emitted++;
    step->is_dry = 0;
}

/* Takes the new particles for which there is room: an empty sub-cell of a cell below its rest count. */
static selkie_code fill_room(sk_step *step, const sk_particles *added, int64_t *taken, selkie_error *error)
{
    empty_room room;
    selkie_code code = open_room(&room, step, added, error);
    if (code == SELKIE_OK)
        code = sk_particles_reserve(&step->particles, step->particles.count + added->count, error);
    for (int64_t p = 0; code == SELKIE_OK && p < added->count; p++) {
        size_t sub_cell, cell;
        if (!find_room(&room, added->records[p].position, step->dimension, &sub_cell, &cell) || room.taken[sub_cell] ||
            room.in_cell[cell] >= step->particles_per_cell)
            continue;
        room.taken[sub_cell] = 1;
        room.in_cell[cell]++;
        take(step, added, p);
        ++*taken;
    }
    close_room(&room);
    return code;
}

/* After the set of particles has changed. */
static selkie_code finish(selkie_world *world, selkie_error *error)
{
    world->step.particles.in_order = 0;
    sk_particles_moved(&world->step.particles);
    return sk_methods_measure(world, error);
}

selkie_code sk_world_add_liquid(selkie_world *world, const selkie_liquid_def *liquid, int64_t *added,
                                selkie_error *error)
{
    sk_step *step = &world->step;
    sk_particles sample;
    selkie_scene scene = *world->relative;
    scene.liquids = liquid;
    scene.liquid_count = 1;
    *added = 0;

    /* The liquid as at the start of a scene. */
    sk_particles_init(&sample, step->memory);
    if (sk_particles_find_attribute(&step->particles, "material"))
        sk_particles_add_attribute(&sample, "material", 1, 1);
    if (sk_particles_find_attribute(&step->particles, "temperature"))
        sk_particles_add_attribute(&sample, "temperature", 1, 0);
    int64_t total, liquid_cells;
    selkie_code code = sk_world_sample(
        &(sk_sampling){&scene, &step->grid, &step->solids, step->threads, step->particles_per_cell, NULL}, &sample,
        &total, &liquid_cells, error);
    if (code == SELKIE_OK && sample.count)
        code = fill_room(step, &sample, added, error);
    sk_particles_free(&sample);
    return code == SELKIE_OK ? finish(world, error) : code;
}

selkie_code sk_world_clear_liquid(selkie_world *world, const selkie_shape *def, int64_t *removed, selkie_error *error)
{
    sk_step *step = &world->step;
    sk_particles *particles = &step->particles;
    double up[3], low[3], high[3];
    sk_shape *shape;
    *removed = 0;
    selkie_scene_up(world->scene, up);
    const sk_shape_options options = {.dimension = step->dimension,
                                      .up = up,
                                      .folder = world->scene->folder,
                                      .sample_size = 0.5 * step->grid.cell_size,
                                      .what = "changes: shape",
                                      .memory = step->memory};
    SK_TRY(sk_shape_create(def, &options, &shape, error));
    sk_shape_bounds(shape, low, high);
    const sk_attribute *body = sk_particles_find_attribute(particles, "body"); /* 0 = liquid */
    for (int64_t p = 0; p < particles->count; p++) {
        if (body && body->data[p])
            continue;
        sk_particle *particle = &particles->records[p];
        const double x[3] = {particle->position[0], particle->position[1], particle->position[2]};
        int inside = !(particle->flags & SK_PARTICLE_DEAD);
        for (int d = 0; d < step->dimension; d++)
            inside &= x[d] >= low[d] && x[d] <= high[d];
        if (!inside || !(sk_shape_distance(shape, x) < 0.0))
            continue;
        particle->flags |= SK_PARTICLE_DEAD;
        for (int d = 0; d < step->dimension; d++)
            step->positions[d] -= x[d];
        step->drained++;
        ++*removed;
    }
    sk_shape_destroy(shape);
    if (*removed)
        sk_particles_drop_dead(particles);
    return finish(world, error);
}
