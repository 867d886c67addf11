/* Droplets: how particles leave the liquid, fly and come back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "methods/splashes/splashes.h"

static inline int find_cell(const sk_step *step, const int cell[3], size_t *local)
{
    int slot;
    *local = sk_grid_find_cell(&step->grid, cell, &slot);
    return slot;
}

#define SK_SPLASH_FUNCTION static inline
#define SK_SPLASH_WORLD const sk_step *
#define SK_SPLASH_STEP(step) (step)
#define SK_SPLASH_STOP(step, from, to, velocity) sk_splash_stop(step, from, to, velocity)
#define SK_SPLASH_FIND(step, cell, local) find_cell(step, cell, local)
#define SK_SPLASH_IN_SOLID(step, position) sk_splash_in_solid(step, position)
#define SK_SPLASH_WRAP(step, position) sk_grid_wrap(&(step)->grid, position)
#include "methods/splashes/splash_fly_plain.h"

/* --- Storage --- */

static size_t bytes_of(const sk_particles *particles)
{
    size_t bytes = sizeof(sk_particle);
    for (int a = 0; a < particles->attribute_count; a++)
        bytes += 4 * (size_t)particles->attributes[a].components;
    return bytes;
}

/* Copies a particle with its attributes to or from a packed droplet. */
static void pack(const sk_particles *particles, int64_t p, char *to)
{
    memcpy(to, &particles->records[p], sizeof(sk_particle));
    to += sizeof(sk_particle);
    for (int a = 0; a < particles->attribute_count; a++) {
        const size_t bytes = 4 * (size_t)particles->attributes[a].components;
        memcpy(to, (char *)particles->attributes[a].data + (size_t)p * bytes, bytes);
        to += bytes;
    }
}

static void unpack(sk_particles *particles, int64_t p, const char *from)
{
    memcpy(&particles->records[p], from, sizeof(sk_particle));
    from += sizeof(sk_particle);
    for (int a = 0; a < particles->attribute_count; a++) {
        const size_t bytes = 4 * (size_t)particles->attributes[a].components;
        memcpy((char *)particles->attributes[a].data + (size_t)p * bytes, from, bytes);
        from += bytes;
    }
}

/* Place of the age in a packed droplet. */
static size_t age_offset(const sk_particles *particles)
{
    size_t offset = sizeof(sk_particle);
    for (int a = 0; a < particles->attribute_count; a++) {
        if (strcmp(particles->attributes[a].name, SK_SPLASH_AGE) == 0)
            break;
        offset += 4 * (size_t)particles->attributes[a].components;
    }
    return offset;
}

/* --- Apart from the others --- */

static selkie_code reserve_apart(sk_step *step, sk_splashes *s, size_t count, selkie_error *error)
{
    s->apart_bytes = bytes_of(&step->particles);
    return sk_reserve(step->memory, (void **)&s->apart, &s->apart_capacity, count * s->apart_bytes + 1, 1, "splashes",
                      error);
}

/* Takes out droplets wherever they are: after a checkpoint, or a change of the store by others. Threads look which
 * stretches of the store have any; droplets are in its order. */
static selkie_code part_among_others(sk_step *step, sk_splashes *s, const float *ages, selkie_error *error)
{
    enum { STRETCH = 4096 };
    sk_particles *particles = &step->particles;
    const int64_t count = particles->count, stretches = (count + STRETCH - 1) / STRETCH;
    int32_t *found = NULL;
    int64_t droplets = 0;
    SK_TRY(sk_arena_take(&step->arena, ((size_t)stretches + 1) * sizeof *found, "splashes", (void **)&found, error));
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(+ : droplets)
    for (int64_t n = 0; n < stretches; n++) {
        found[n] = 0;
        for (int64_t p = n * STRETCH; p < count && p < (n + 1) * STRETCH; p++)
            found[n] += ages[p] > 0.0f;
        droplets += found[n];
    }
    SK_TRY(reserve_apart(step, s, (size_t)droplets, error));
    for (int64_t n = 0; n < stretches; n++)
        for (int64_t p = n * STRETCH; found[n] && p < count && p < (n + 1) * STRETCH; p++)
            if (ages[p] > 0.0f) {
                pack(particles, p, s->apart + s->apart_count++ * s->apart_bytes);
                particles->records[p].flags |= SK_PARTICLE_DEAD;
            }
    if (droplets)
        sk_particles_drop_dead_by(particles, step->threads);
    return SELKIE_OK;
}

/* Do other methods read the particles before the next sort? They must not meet dead ones. */
static int others_read(const sk_step *step)
{
    const selkie_scene *scene = step->scene;
    return scene->source_count + scene->drain_count + scene->object_count > 0 || sk_step_has_moving_solids(step);
}

/* The sort drops dead particles. If it knows the migrating ones, they join its lists. */
static void drop_fresh(sk_step *step, const sk_splashes *s)
{
    sk_grid *grid = &step->grid;
    if (!step->particles.in_order || !sk_grid_leavers_known(grid, &step->particles))
        return;
    for (size_t n = 0; n < s->fresh_count; n++)
        if (step->dimension == 3)
            sk_grid_drop_listed_3d(grid, s->fresh[n].block, (uint32_t)s->fresh[n].particle);
        else
            sk_grid_drop_listed_2d(grid, s->fresh[n].block, (uint32_t)s->fresh[n].particle);
}

/* Are the droplets where the last step left them in the store? There are no others, so that their ages tell. */
static int are_in_their_places(const sk_splashes *s, const sk_particles *particles, const float *ages)
{
    const int64_t last = s->flying - (int64_t)s->fresh_count;
    int same = s->counted && s->count_after <= particles->count;
    for (size_t n = 0; same && n < s->fresh_count; n++)
        same = ages[s->fresh[n].particle] > 0.0f;
    for (int64_t p = s->count_after - last; same && p < s->count_after; p++)
        same = ages[p] > 0.0f;
    return same;
}

/* The same in that order: the new ones, then the last particles of that step. */
static selkie_code part_from_places(sk_step *step, sk_splashes *s, selkie_error *error)
{
    sk_particles *particles = &step->particles;
    const int64_t fresh = (int64_t)s->fresh_count, first = s->count_after - (s->flying - fresh);
    const int are_last = particles->count == s->count_after, moved = particles->moves != s->moves_after;
    SK_TRY(reserve_apart(step, s, (size_t)s->flying, error));
    s->apart_count = (size_t)s->flying;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t n = 0; n < s->flying; n++) {
        const int64_t p = n < fresh ? s->fresh[n].particle : first + n - fresh;
        pack(particles, p, s->apart + (size_t)n * s->apart_bytes);
        particles->records[p].flags |= SK_PARTICLE_DEAD;
    }
    if (are_last)
        particles->count = first;
    else
        sk_particles_moved(particles);
    particles->in_order = are_last && !moved && s->were_in_order;
    if (others_read(step) && (fresh || !are_last))
        sk_particles_drop_dead_by(particles, step->threads);
    else if (fresh)
        drop_fresh(step, s);
    return SELKIE_OK;
}

selkie_code sk_splash_part(sk_step *step, selkie_error *error)
{
    sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    const float *ages = (float *)(void *)sk_particles_find_attribute(&step->particles, SK_SPLASH_AGE)->data;
    s->apart_count = 0;
    if (!are_in_their_places(s, &step->particles, ages))
        return part_among_others(step, s, ages, error);
    return s->flying ? part_from_places(step, s, error) : SELKIE_OK;
}

/* --- New droplets --- */

/* Coordinates of an event's cell. */
static void cell_of_event(const sk_grid *grid, int dimension, const sk_splash_event *event, int cell[3])
{
    const int n = grid->extent[0];
    for (int d = 0; d < 3; d++)
        cell[d] = grid->coordinates[event->block][d] * (d < dimension ? n : 1) +
                  (d < dimension ? event->cell >> (d * grid->block_log) & (n - 1) : 0);
}

static uint64_t key_of_event(const sk_step *step, const sk_splash_event *event)
{
    int cell[3];
    cell_of_event(&step->grid, step->dimension, event, cell);
    return sk_splash_cell_key(cell);
}

static int compare_cells(const void *a, const void *b)
{
    const uint64_t x = ((const struct sk_splash_cell *)a)->key, y = ((const struct sk_splash_cell *)b)->key;
    return (x > y) - (x < y);
}

void sk_splash_tidy_cells(sk_splashes *s, double time)
{
    size_t count = 0;
    for (size_t n = 0; n < s->recent_count; n++)
        if (s->recent[n].until > time + 1e-9)
            s->recent[count++] = s->recent[n];
    s->recent_count = count;
    if (count)
        qsort(s->recent, count, sizeof *s->recent, compare_cells);
}

static double speed_squared(const float velocity[3])
{
    return (double)velocity[0] * velocity[0] + (double)velocity[1] * velocity[1] + (double)velocity[2] * velocity[2];
}

/* Liquid in the cells around a droplet's cell takes its impulse: each particle loses `share` (m/s; NULL: none does).
 * Returns its mass (kg). */
static double share_impulse(sk_step *step, const sk_splashes *s, const sk_splash_event *event, const double share[3])
{
    sk_grid *grid = &step->grid;
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    const int planes = step->dimension == 3 ? 1 : 0;
    int own[3], at[3];
    double mass = 0.0;
    cell_of_event(grid, step->dimension, event, own);
    for (int z = -planes; z <= planes; z++)
        for (int y = -1; y <= 1; y++)
            for (int x = -1; x <= 1; x++) {
                int slot;
                at[0] = own[0] + x;
                at[1] = own[1] + y;
                at[2] = own[2] + z;
                const size_t local = sk_grid_find_cell(grid, at, &slot);
                if (slot < 1 || slot > grid->particle_blocks)
                    continue;
                const uint32_t *start = grid->cell_start + (size_t)(slot - 1) * (size_t)grid->block_cells + local;
                for (uint32_t p = start[0]; p < start[1]; p++) {
                    sk_particle *particle = &step->particles.records[p];
                    if (s->chosen[p] || particle->flags & SK_PARTICLE_DEAD || !sk_splash_is_liquid(step, s, p))
                        continue;
                    mass += sk_step_mass(step, material, p);
                    if (!share)
                        continue;
                    step->sums.kinetic -= 0.5 * speed_squared(particle->velocity);
                    for (int d = 0; d < 3; d++)
                        particle->velocity[d] -= (float)share[d];
                    step->sums.kinetic += 0.5 * speed_squared(particle->velocity);
                }
            }
    return mass;
}

selkie_code sk_splash_note(const sk_step *step, sk_splashes *s, uint32_t particle, uint64_t key, selkie_error *error)
{
    s->counts.made++;
    SK_TRY(sk_reserve(step->memory, (void **)&s->recent, &s->recent_capacity, s->recent_count + 1, sizeof *s->recent,
                      "splashes", error));
    s->recent[s->recent_count++] = (struct sk_splash_cell){key, step->end_time + s->model.duration};
    return sk_splash_add_pairs(step, s, particle, error);
}

/* Makes a droplet of a particle. The particles around it lose the momentum that it gains. */
static selkie_code leave_liquid(sk_step *step, sk_splashes *s, const sk_splash_event *event, selkie_error *error)
{
    sk_particles *particles = &step->particles;
    sk_particle *particle = &particles->records[event->particle];
    const double receivers = share_impulse(step, s, event, NULL);
    float velocity[3];
    for (int d = 0; d < 3; d++)
        velocity[d] = particle->velocity[d] + event->change[d];
    if (particle->flags & (SK_PARTICLE_DEAD | SK_PARTICLE_DRIVEN) || !(receivers > 0.0) ||
        (step->scene->splash.look_ahead && !splash_stays_in_air(step, (float)s->model.duration, particle, velocity))) {
        s->counts.reverted++;
        return SELKIE_OK;
    }
    const sk_attribute *material = sk_particles_find_attribute(particles, "material");
    const double own = sk_step_mass(step, material, event->particle);
    double share[3];
    for (int d = 0; d < 3; d++)
        share[d] = event->change[d] * own / receivers;
    share_impulse(step, s, event, share);
    step->sums.kinetic += 0.5 * (speed_squared(velocity) - speed_squared(particle->velocity));
    memcpy(particle->velocity, velocity, sizeof velocity);
    float *age = (float *)(void *)sk_particles_find_attribute(particles, SK_SPLASH_AGE)->data;
    age[event->particle] = (float)step->dt;
    SK_TRY(sk_reserve(step->memory, (void **)&s->fresh, &s->fresh_capacity, s->fresh_count + 1, sizeof *s->fresh,
                      "splashes", error));
    s->fresh[s->fresh_count++] = (struct sk_splash_new){event->particle, event->block};
    return sk_splash_note(step, s, particle->id, key_of_event(step, event), error);
}

/* --- Flight --- */

/* Drag over mass goes as the inverse of the size, and the liquid of a droplet is shared by its particle and its pairs.
 */
sk_splash_flight sk_splash_begin_flight(const sk_step *step, const sk_splashes *s)
{
    const selkie_splash_def *def = &step->scene->splash;
    sk_splash_flight flight = {.dt = (float)step->dt,
                               .duration = (float)s->model.duration,
                               .drag = (float)def->air_drag,
                               .piece_drag =
                                   (float)(def->air_drag * pow(1.0 + 2.0 * def->pairs, 1.0 / step->dimension)),
                               .pairs = s->pairs,
                               .pair_count = s->pair_count};
    for (int d = 0; d < 3; d++)
        flight.gain[d] = (float)(step->scene->gravity[d] * 0.5 * (step->last_dt + step->dt));
    return flight;
}

/* Appends the droplets that came back, then those that fly on. The particles before them have not moved: lists of
 * migrating particles stay valid. */
static selkie_code put_back(sk_step *step, sk_splashes *s, int64_t returned, selkie_error *error)
{
    sk_particles *particles = &step->particles;
    const size_t offset = age_offset(particles);
    const int64_t count = (int64_t)s->apart_count;
    int64_t *place, next[2] = {particles->count, particles->count + returned}; /* of those back, of those that fly */
    SK_TRY(sk_particles_reserve(particles, particles->count + count, error));
    SK_TRY(sk_arena_take(&step->arena, (size_t)count * sizeof *place, "splashes", (void **)&place, error));
    for (int64_t n = 0; n < count; n++) {
        float age;
        memcpy(&age, s->apart + (size_t)n * s->apart_bytes + offset, sizeof age);
        place[n] = next[age > 0.0f]++;
    }
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t n = 0; n < count; n++)
        unpack(particles, place[n], s->apart + (size_t)n * s->apart_bytes);
    particles->count += count;
    s->flying += count - returned;
    particles->carried = NULL; /* it has the old number of particles */
    particles->in_order = 0;
    return SELKIE_OK;
}

/* Old droplets and the pairs around them move; an age of 0 says that one comes back. Returns the number of these. */
static int64_t fly_all(sk_step *step, sk_splashes *s)
{
    const size_t offset = age_offset(&step->particles);
    const sk_splash_flight flight = sk_splash_begin_flight(step, s);
    int64_t returned = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(+ : returned)
    for (int64_t n = 0; n < (int64_t)s->apart_count; n++) {
        char *packed = s->apart + (size_t)n * s->apart_bytes;
        sk_particle droplet;
        float age;
        memcpy(&droplet, packed, sizeof droplet);
        memcpy(&age, packed + offset, sizeof age);
        returned += !splash_fly_all(step, &flight, &droplet, &age);
        memcpy(packed, &droplet, sizeof droplet);
        memcpy(packed + offset, &age, sizeof age);
    }
    return returned;
}

/* The move has counted the liquid alone. In the order of the droplets, so that threads do not show. */
static void count_droplets(sk_step *step, const sk_splashes *s)
{
    for (size_t n = 0; n < s->apart_count; n++) {
        sk_particle droplet;
        memcpy(&droplet, s->apart + n * s->apart_bytes, sizeof droplet);
        step->sums.kinetic += 0.5 * speed_squared(droplet.velocity);
        for (int d = 0; d < step->dimension; d++)
            step->positions[d] += (double)droplet.position[d];
    }
}

selkie_code sk_splash_fly(sk_step *step, selkie_error *error)
{
    sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    sk_splash_find_attributes(step, s);
    const int64_t returned = fly_all(step, s);
    count_droplets(step, s);
    s->counts.returned += returned;
    sk_splash_end_pairs(s);

    /* New ones leave the liquid, and stay where they are until the next step. */
    s->fresh_count = 0;
    sk_splash_tidy_cells(s, step->end_time);
    const size_t known = s->recent_count;
    for (size_t n = 0; n < s->event_count; n++) {
        const struct sk_splash_cell cell = {key_of_event(step, &s->events[n]), 0.0};
        if (!known || !bsearch(&cell, s->recent, known, sizeof cell, compare_cells))
            SK_TRY(leave_liquid(step, s, &s->events[n], error));
    }
    sk_splash_sort_pairs(s);
    s->event_count = 0;
    s->flying = (int64_t)s->fresh_count;
    s->were_in_order = step->particles.in_order;
    if (s->apart_count)
        SK_TRY(put_back(step, s, returned, error));
    s->counted = 1;
    s->count_after = step->particles.count;
    s->moves_after = step->particles.moves;
    return SELKIE_OK;
}
