/* A world whose liquid comes from the checkpoint of another scene.
 *
 * Particles of the same volume are taken as they are. Where the volume differs (another cell size, or another number of
 * particles in a cell), the liquid is sampled again:
 *
 *   1. Free places: the new scene's own sampling of the liquid's bounding box, near an old particle and outside solids.
 *   2. An old particle has the volume of r new ones. In the order of the checkpoint, which is by cells, the volumes add
 *      up, and each time that half of a further new particle is reached, it takes the free place nearest to the old
 * one: first within one spacing, so that the shape is kept; what finds none takes the nearest place left.
 *   3. Velocities and attributes of floats are means over the old particles around the place, with the affine part of
 *      APIC where both sides have it; attributes of integers are those of the nearest one.
 *
 * So the volume is kept to one particle, in drops as in the bulk.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/block_table.h"
#include "base/random.h"
#include "base/threads.h"
#include "particles/kd_tree.h"
#include "world/world_internal.h"

/* The liquid of the checkpoint, without what does not fit into the scene. */
typedef struct old_liquid {
    int64_t count;
    const sk_particle *records;                          /* of the checkpoint */
    float (*positions)[3];                               /* m  in the scene; NULL where the store holds them already */
    uint32_t *rows;                                      /* of each in the chunks */
    const sk_state_chunk *attributes[SK_MAX_ATTRIBUTES]; /* parallel to those of the new store; NULL = not there */
    double spacing;                                      /* m, of particles at rest */
} old_liquid;

typedef struct restart {
    sk_state_header header;
    int chunk_count;
    const sk_state_chunk *chunks;
    const char *file;
    selkie_restart_report *report;
} restart;

static const sk_state_chunk *find_chunk(const restart *from, const char *name)
{
    for (int c = 0; c < from->chunk_count; c++)
        if (strncmp(from->chunks[c].name, name, sizeof from->chunks[c].name) == 0)
            return &from->chunks[c];
    return NULL;
}

/* --- What is taken --- */

static void match_attributes(const restart *from, const sk_particles *particles, old_liquid *old)
{
    for (int a = 0; a < particles->attribute_count; a++) {
        const sk_attribute *attribute = &particles->attributes[a];
        char name[24];
        snprintf(name, sizeof name, "a:%.20s", attribute->name);
        const sk_state_chunk *chunk = find_chunk(from, name);
        uint64_t bytes = (uint64_t)from->header.particle_count * (uint64_t)attribute->components * 4;
        old->attributes[a] = chunk && chunk->bytes == bytes ? chunk : NULL;
    }
}

/* Whether a particle fits into the scene; one that is less than a cell deep in a solid is pushed out of it. */
static int admit(const sk_step *step, const float low[3], const float high[3], sk_particle *record,
                 selkie_restart_report *report)
{
    for (int d = 0; d < step->dimension; d++)
        if (!(record->position[d] >= (float)step->grid.low[d] && record->position[d] < (float)step->grid.high[d])) {
            report->outside++;
            return 0;
        }
    int inside = sk_solids_push_out_shallow(&step->solids, low, high, step->grid.cell_size, record->position);
    double x[3] = {record->position[0], record->position[1], record->position[2]}, normal[3];
    int obstacle;
    int still = inside && sk_solids_distance(&step->solids, x, normal, &obstacle) < -1e-3 * step->grid.cell_size;
    report->inside_solids += still;
    report->pushed_out += inside && !still;
    return !still;
}

/* From the positions of the checkpoint to those of the scene, m. Positions of version 1 are those of the world; later
 * ones are relative to an origin. */
static void find_shift(const sk_step *step, const restart *from, double shift[3])
{
    double origin[3] = {0, 0, 0};
    if (from->header.version != 1)
        memcpy(origin, find_chunk(from, "origin")->data, sizeof origin);
    for (int d = 0; d < 3; d++)
        shift[d] = d < step->dimension ? origin[d] - step->grid.origin[d] : 0.0;
}

/* Finds the particles that fit. Those that are `kept` as they are go straight into the store. */
static selkie_code take_old(sk_step *step, const restart *from, int kept, old_liquid *old, selkie_error *error)
{
    int64_t count = from->header.particle_count;
    old->records = count ? find_chunk(from, "particles")->data : NULL;
    if (kept)
        SK_TRY(sk_particles_reserve(&step->particles, count, error));
    old->positions = kept ? NULL : sk_allocate(step->memory, (size_t)(count + 1) * sizeof *old->positions);
    old->rows = sk_allocate(step->memory, (size_t)(count + 1) * sizeof *old->rows);
    if ((!kept && !old->positions) || !old->rows)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %lld particles", from->file, (long long)count);
    float low[3], high[3];
    double shift[3];
    sk_solids_bounds(&step->solids, &step->grid, low, high);
    find_shift(step, from, shift);
    for (int64_t p = 0; p < count; p++) {
        sk_particle record = old->records[p];
        for (int d = 0; d < 3; d++)
            record.position[d] = (float)(record.position[d] + shift[d]);
        if (record.flags & SK_PARTICLE_DEAD || !admit(step, low, high, &record, from->report))
            continue;
        for (int d = 0; d < 3; d++)
            if (!isfinite(record.velocity[d]))
                return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: particle %u has no finite velocity", from->file,
                               record.id);
        record.flags = 0;
        if (kept)
            step->particles.records[old->count] = record;
        else
            memcpy(old->positions[old->count], record.position, sizeof record.position);
        old->rows[old->count++] = (uint32_t)p;
    }
    return SELKIE_OK;
}

/* The materials of the checkpoint must exist in the scene. */
static selkie_code check_materials(const sk_step *step, const restart *from, const old_liquid *old, selkie_error *error)
{
    for (int a = 0; a < step->particles.attribute_count; a++) {
        if (strcmp(step->particles.attributes[a].name, "material") || !old->attributes[a])
            continue;
        const uint32_t *materials = old->attributes[a]->data;
        for (int64_t p = 0; p < old->count; p++)
            if (materials[old->rows[p]] >= (uint32_t)step->scene->material_count)
                return sk_fail(error, SELKIE_ERROR_INPUT,
                               "%s: has liquid of materials[%u]; materials of the scene has %d entries", from->file,
                               materials[old->rows[p]], step->scene->material_count);
    }
    return SELKIE_OK;
}

/* --- The same volume --- */

/* The records lie in the store already. */
static void keep_particles(sk_particles *particles, const old_liquid *old)
{
    for (int64_t p = 0; p < old->count; p++)
        particles->records[p].id = (uint32_t)p;
    for (int a = 0; a < particles->attribute_count; a++) {
        sk_attribute *attribute = &particles->attributes[a];
        size_t width = (size_t)attribute->components;
        const uint32_t *values = old->attributes[a] ? old->attributes[a]->data : NULL;
        for (int64_t p = 0; values && p < old->count; p++)
            memcpy(attribute->data + (size_t)p * width, values + (size_t)old->rows[p] * width, width * 4);
    }
    particles->count = old->count;
}

/* --- Another volume --- */

/* Old particles by bins of the width of the radius. Bins share slots by a hash, so that memory follows the particles,
 * not the box around them. */
typedef struct old_bins {
    const old_liquid *old;
    int dimension;
    double radius, low[3];
    uint64_t slots;   /* a power of two */
    uint32_t *begin;  /* [slots + 2] */
    uint32_t *sorted; /* [count] particles, in their order within a slot */
} old_bins;

static void bin_of(const old_bins *bins, const float x[3], int64_t bin[3])
{
    for (int d = 0; d < 3; d++)
        bin[d] = d < bins->dimension ? (int64_t)floor((x[d] - bins->low[d]) / bins->radius) : 0;
}

static uint64_t slot_of(const old_bins *bins, const int64_t bin[3])
{
    return sk_hash64(sk_block_key((int)bin[0], (int)bin[1], (int)bin[2])) & (bins->slots - 1);
}

static selkie_code make_bins(const old_liquid *old, double radius, int dimension, sk_memory *memory, old_bins *bins,
                             double high[3], selkie_error *error)
{
    *bins = (old_bins){.old = old, .dimension = dimension, .radius = radius, .slots = 1};
    for (int d = 0; d < dimension; d++) {
        double low = INFINITY;
        high[d] = -INFINITY;
        for (int64_t p = 0; p < old->count; p++) {
            low = fmin(low, old->positions[p][d]);
            high[d] = fmax(high[d], old->positions[p][d]);
        }
        bins->low[d] = low - 2.0 * radius; /* no bin beside a particle's has a negative number */
        high[d] += radius;
    }
    while (bins->slots < (uint64_t)old->count / 4)
        bins->slots *= 2;
    bins->begin = sk_allocate_zeroed(memory, (size_t)(bins->slots + 2) * sizeof *bins->begin);
    bins->sorted = sk_allocate(memory, (size_t)(old->count + 1) * sizeof *bins->sorted);
    if (!bins->begin || !bins->sorted)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for sampling %lld particles again",
                       (long long)old->count);

    /* Counting sort: begin[s + 1] is where slot s is being filled, and at the end where it ends. */
    int64_t bin[3];
    for (int64_t p = 0; p < old->count; p++) {
        bin_of(bins, old->positions[p], bin);
        bins->begin[slot_of(bins, bin) + 2]++;
    }
    for (uint64_t s = 0; s < bins->slots; s++)
        bins->begin[s + 2] += bins->begin[s + 1];
    for (int64_t p = 0; p < old->count; p++) {
        bin_of(bins, old->positions[p], bin);
        bins->sorted[bins->begin[slot_of(bins, bin) + 1]++] = (uint32_t)p;
    }
    return SELKIE_OK;
}

/* Calls `visit` for each old particle within the radius of a place, with its weight: 1 there, 0 at the radius; until
 * a call returns 0. */
typedef int (*visit_old)(void *context, int64_t particle, double weight);

static void visit_near(const old_bins *bins, const float x[3], visit_old visit, void *context)
{
    const int deep = bins->dimension == 3 ? 1 : 0;
    int64_t middle[3], own[3];
    bin_of(bins, x, middle);
    for (int64_t k = middle[2] - deep; k <= middle[2] + deep; k++)
        for (int64_t j = middle[1] - 1; j <= middle[1] + 1; j++)
            for (int64_t i = middle[0] - 1; i <= middle[0] + 1; i++) {
                const int64_t bin[3] = {i, j, k};
                if (i < 0 || j < 0 || k < 0)
                    continue;
                const uint64_t slot = slot_of(bins, bin);
                for (uint32_t n = bins->begin[slot]; n < bins->begin[slot + 1]; n++) {
                    const float *y = bins->old->positions[bins->sorted[n]];
                    double square = 0.0;
                    for (int d = 0; d < bins->dimension; d++)
                        square += ((double)x[d] - y[d]) * ((double)x[d] - y[d]);
                    double rest = 1.0 - square / (bins->radius * bins->radius);
                    if (!(rest > 0.0))
                        continue;
                    bin_of(bins, y, own); /* other bins may share the slot */
                    if (memcmp(own, bin, sizeof own) == 0 && !visit(context, bins->sorted[n], rest * rest))
                        return;
                }
            }
}

static int count_near(void *context, int64_t particle, double weight)
{
    (void)particle;
    (void)weight;
    ++*(int *)context;
    return 0; /* one is enough */
}

/* Is there an old particle within the radius of a place (m)? */
static int is_near(const void *context, const double x[3])
{
    const float place[3] = {(float)x[0], (float)x[1], (float)x[2]};
    int near = 0;
    visit_near(context, place, count_near, &near);
    return near > 0;
}

/* The places of the scene's own sampling near old particles, as points whose index is their place in `places`. Only
 * these are made: the box around a splash holds many times the places of its liquid. */
static selkie_code find_places(sk_step *step, const old_bins *bins, const double high[3], sk_particles *places,
                               sk_kd_point **points, int64_t *point_count, selkie_error *error)
{
    selkie_scene scene = *step->scene;
    selkie_liquid_def box;
    selkie_liquid_defaults(&box);
    box.shape.kind = SELKIE_SHAPE_BOX;
    for (int d = 0; d < step->dimension; d++) {
        box.shape.min[d] = fmax(bins->low[d], step->grid.low[d]);
        box.shape.max[d] = fmin(high[d], step->grid.high[d]);
    }
    scene.liquid_count = 1;
    scene.liquids = &box;
    int64_t total, liquid_cells;
    const sk_sampling_near near = {bins->old->count, (const float(*)[3])bins->old->positions, bins->radius, is_near,
                                   bins};
    const sk_sampling sampling = {&scene, &step->grid, &step->solids, step->threads, step->particles_per_cell, &near};
    SK_TRY(sk_world_sample(&sampling, places, &total, &liquid_cells, error));
    *points = sk_allocate(step->memory, (size_t)(total + 1) * sizeof **points);
    if (!*points)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for %lld places of particles", (long long)total);
    for (int64_t p = 0; p < total; p++) {
        const float *x = places->records[p].position;
        (*points)[(*point_count)++] = (sk_kd_point){{x[0], x[1], x[2]}, (uint32_t)p, (uint32_t)p};
    }
    return SELKIE_OK;
}

/* Takes the free place nearest to an old particle, if one lies within `reach`; marks it in its flags. */
static int take_place(const old_liquid *old, int64_t particle, double reach, sk_kd_tree *tree, sk_particles *places)
{
    sk_kd_point nearest;
    const float *x = old->positions[particle];
    if (!sk_kd_tree_nearest(tree, x, &nearest))
        return 0;
    double square = 0.0;
    for (int d = 0; d < 3; d++)
        square += ((double)x[d] - nearest.position[d]) * ((double)x[d] - nearest.position[d]);
    if (square > reach * reach)
        return 0;
    sk_kd_tree_take(tree, x, &nearest);
    places->records[nearest.index].flags = SK_PARTICLE_INSIDE;
    return 1;
}

/* Chooses the places of `wanted` new particles; `waiting` has room for as many. Returns how many found none. */
static int64_t choose_places(const old_liquid *old, int64_t wanted, double reach, sk_kd_tree *tree,
                             sk_particles *places, int64_t *waiting)
{
    /* Within reach. */
    int64_t waiting_count = 0, reached = 0, without = 0;
    for (int64_t p = 0; p < old->count; p++) {
        /* Rounded, not cut off: the new particle is then due in the middle of its volume. */
        int64_t until = (int64_t)((double)(p + 1) * (double)wanted / (double)old->count + 0.5);
        until = p == old->count - 1 || until > wanted ? wanted : until;
        for (; reached < until; reached++)
            if (!take_place(old, p, reach, tree, places))
                waiting[waiting_count++] = p;
    }

    /* Wherever there is room. */
    for (int64_t n = 0; n < waiting_count; n++)
        without += !take_place(old, waiting[n], INFINITY, tree, places);
    return without;
}

/* --- Values at the new places --- */

typedef struct mean_values {
    const old_liquid *old;
    sk_particles *particles;
    const float *position; /* of the new particle */
    int affine;            /* index of the attribute; -1 = none */
    int dimension;
    double weight, velocity[3];
    double floats[SK_MAX_ATTRIBUTES][16];
    double nearest_weight;
    int64_t nearest;
} mean_values;

static const float *old_floats(const old_liquid *old, int attribute, int components, int64_t particle)
{
    const float *values = (const float *)old->attributes[attribute]->data;
    return values + old->rows[particle] * components;
}

static int add_old(void *context, int64_t particle, double weight)
{
    mean_values *mean = context;
    const float *velocity = mean->old->records[mean->old->rows[particle]].velocity;
    const float *position = mean->old->positions[particle];
    const float *affine = mean->affine >= 0 ? old_floats(mean->old, mean->affine, 9, particle) : NULL;
    for (int d = 0; d < mean->dimension; d++) {
        double v = velocity[d];
        for (int e = 0; affine && e < mean->dimension; e++)
            v += affine[3 * d + e] * ((double)mean->position[e] - position[e]);
        mean->velocity[d] += weight * v;
    }
    for (int a = 0; a < mean->particles->attribute_count; a++) {
        int components = mean->particles->attributes[a].components;
        if (!mean->old->attributes[a] || mean->particles->attributes[a].is_integer || components > 16)
            continue;
        const float *values = old_floats(mean->old, a, components, particle);
        for (int c = 0; c < components; c++)
            mean->floats[a][c] += weight * values[c];
    }
    if (weight > mean->nearest_weight) {
        mean->nearest_weight = weight;
        mean->nearest = particle;
    }
    mean->weight += weight;
    return 1;
}

static void fill_particle(const old_bins *bins, sk_particles *particles, int affine, int64_t index)
{
    sk_particle *record = &particles->records[index];
    mean_values mean = {.old = bins->old,
                        .particles = particles,
                        .position = record->position,
                        .affine = affine,
                        .dimension = bins->dimension};
    visit_near(bins, record->position, add_old, &mean);
    for (int d = 0; d < bins->dimension; d++)
        record->velocity[d] = (float)(mean.velocity[d] / mean.weight);
    for (int a = 0; a < particles->attribute_count; a++) {
        const sk_attribute *attribute = &particles->attributes[a];
        if (!bins->old->attributes[a])
            continue;
        size_t width = (size_t)attribute->components;
        uint32_t *to = attribute->data + (size_t)index * width;
        const uint32_t *values = bins->old->attributes[a]->data;
        if (attribute->is_integer)
            memcpy(to, values + (size_t)bins->old->rows[mean.nearest] * width, width * 4);
        for (size_t c = 0; !attribute->is_integer && c < width && width <= 16; c++)
            ((float *)(void *)to)[c] = (float)(mean.floats[a][c] / mean.weight);
    }
}

/* Moves the taken places into the world's store and gives them their values. */
static selkie_code fill_places(sk_step *step, const old_bins *bins, const sk_particles *places, int64_t count,
                               selkie_error *error)
{
    sk_particles *particles = &step->particles;
    SK_TRY(sk_particles_reserve(particles, count, error));
    int affine = -1;
    for (int a = 0; a < particles->attribute_count; a++)
        if (!strcmp(particles->attributes[a].name, "affine") && bins->old->attributes[a])
            affine = a;
    for (int64_t p = 0; p < places->count; p++) {
        if (places->records[p].flags != SK_PARTICLE_INSIDE)
            continue;
        int64_t index = particles->count++;
        particles->records[index] = places->records[p];
        particles->records[index].flags = 0;
        particles->records[index].id = (uint32_t)index;
        fill_particle(bins, particles, affine, index);
    }
    return SELKIE_OK;
}

static selkie_code resample(sk_step *step, const restart *from, const old_liquid *old, selkie_error *error)
{
    double spacing = step->grid.cell_size / pow(step->particles_per_cell, 1.0 / step->dimension);
    double wider = fmax(spacing, old->spacing), high[3] = {0, 0, 0};
    int64_t wanted = llround((double)old->count * pow(old->spacing / spacing, step->dimension)), point_count = 0;
    if (wanted > (int64_t)UINT32_MAX / 2)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: its liquid would need %lld particles of this scene's size",
                       from->file, (long long)wanted);

    /* Places, near ones first. */
    old_bins bins = {0};
    sk_particles places;
    sk_kd_point *points = NULL;
    sk_kd_tree *tree = NULL;
    sk_particles_init(&places, step->memory);
    selkie_code code = make_bins(old, 2.0 * wider, step->dimension, step->memory, &bins, high, error);
    if (code == SELKIE_OK)
        code = find_places(step, &bins, high, &places, &points, &point_count, error);
    if (code == SELKIE_OK)
        code = sk_kd_tree_create((size_t)point_count, points, step->threads, "places of particles", step->memory, &tree,
                                 error);
    sk_release(step->memory, points); /* the tree has a copy */
    points = NULL;

    /* Particles on them. */
    int64_t *waiting = code == SELKIE_OK ? sk_allocate(step->memory, (size_t)(wanted + 1) * sizeof *waiting) : NULL;
    if (code == SELKIE_OK && !waiting)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for %lld particles", (long long)wanted);
    if (code == SELKIE_OK) {
        from->report->no_room = choose_places(old, wanted, wider, tree, &places, waiting);
        code = fill_places(step, &bins, &places, wanted, error);
    }
    sk_kd_tree_destroy(tree);
    sk_release(step->memory, waiting);
    sk_release(step->memory, bins.begin);
    sk_release(step->memory, bins.sorted);
    sk_particles_free(&places);
    return code;
}

/* --- The world --- */

/* Takes the place of the sampling of the scene's liquids. */
static selkie_code fill_from_state(sk_step *step, void *context, selkie_error *error)
{
    const restart *from = context;
    selkie_restart_report *report = from->report;
    const double dimension = step->dimension;
    old_liquid old = {.spacing =
                          from->header.cell_size / pow((double)from->header.particles_per_cell, 1.0 / dimension)};
    double spacing = step->grid.cell_size / pow((double)step->particles_per_cell, 1.0 / dimension);
    match_attributes(from, &step->particles, &old);
    report->resampled = fabs(old.spacing - spacing) > 1e-6 * spacing;
    selkie_code code = take_old(step, from, !report->resampled, &old, error);
    if (code == SELKIE_OK)
        code = check_materials(step, from, &old, error);
    if (code == SELKIE_OK && old.count && report->resampled)
        code = resample(step, from, &old, error);
    else if (code == SELKIE_OK && old.count)
        keep_particles(&step->particles, &old);
    step->particles.next_id = (uint32_t)step->particles.count;
    sk_particles_moved(&step->particles);
    report->taken = step->particles.count;
    sk_release(step->memory, old.positions);
    sk_release(step->memory, old.rows);
    if (code == SELKIE_OK && !step->particles.count && from->header.particle_count)
        code = sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: none of its %lld particles lies in the liquid part of the scene's domain (%lld outside, "
                       "%lld inside solids)",
                       from->file, (long long)from->header.particle_count, (long long)report->outside,
                       (long long)report->inside_solids);
    return code;
}

/* Whether the state can start this scene at all. */
static selkie_code check_state(const selkie_scene *scene, restart *from, selkie_error *error)
{
    /* The header and its version. */
    const sk_state_chunk *chunk = find_chunk(from, "header");
    sk_state_header *header = &from->header;
    if (!chunk || chunk->bytes != sizeof *header)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: is not a checkpoint of this version of Selkie", from->file);
    memcpy(header, chunk->data, sizeof *header);
    if (header->version != SK_STATE_VERSION && header->version != 1)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: state version %u; this build reads %d", from->file,
                       header->version, SK_STATE_VERSION);

    /* Origin and particles, with the sizes that the header implies. */
    const sk_state_chunk *origin = find_chunk(from, "origin");
    if (header->version != 1 && (!origin || origin->bytes != 3 * sizeof(double)))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the origin of its positions is missing", from->file);
    const sk_state_chunk *records = find_chunk(from, "particles");
    if (header->particle_count < 0 || header->particle_count > (int64_t)UINT32_MAX / 2 ||
        !(header->cell_size > 0.0 && header->cell_size < 1e30) || header->particles_per_cell < 1 || !records ||
        records->bytes != (uint64_t)header->particle_count * sizeof(sk_particle))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the header makes no sense (%lld particles at %g s)", from->file,
                       (long long)header->particle_count, header->time);

    /* The scene must have the same dimension and discretization. */
    if ((int)header->dimension != scene->domain.dimension)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: is a state in %uD; domain.dimension of the scene is %d: both must be the same", from->file,
                       header->dimension, scene->domain.dimension);

    /* Particles of a grid lie too irregularly for SPH, and those of SPH carry its pressure. */
    int was_sph = find_chunk(from, "a:pressure") != NULL, is_sph = scene->discretization == SELKIE_DISCRETIZATION_SPH;
    if (was_sph != is_sph)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: was written with discretization \"%s\"; that of the scene is \"%s\": both must be the same",
                       from->file, was_sph ? "sph" : "grid", is_sph ? "sph" : "grid");

    /* The flow of a reduced fluid is in its modes, not in its particles. */
    if (scene->discretization == SELKIE_DISCRETIZATION_REDUCED || find_chunk(from, "reduced"))
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: discretization \"reduced\" neither starts another scene nor from one: resume it instead",
                       from->file);

    /* Scenes with objects sample their own liquid. */
    if (scene->object_count)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: cannot start a scene with objects, whose liquid is sampled together with them", from->file);
    return SELKIE_OK;
}

selkie_code sk_world_create_from_state(const selkie_scene *scene, const selkie_world_options *options,
                                       const sk_state_source *source, selkie_restart_report *report,
                                       selkie_world **world, selkie_error *error)
{
    selkie_restart_report unused;
    restart from = {.chunk_count = source->count,
                    .chunks = source->chunks,
                    .file = source->file,
                    .report = report ? report : &unused};
    *world = NULL;
    if (!scene)
        return sk_fail(error, SELKIE_ERROR_INPUT, "a world needs a scene: the pointer is NULL");
    memset(from.report, 0, sizeof *from.report);
    SK_TRY(check_state(scene, &from, error));
    from.report->in_checkpoint = from.header.particle_count;
    from.report->time = from.header.time;
    from.report->cell_size = from.header.cell_size;
    const sk_filling filling = {fill_from_state, &from};
    int before = sk_threads_begin(options ? options->threads : 0);
    selkie_code code = sk_world_create_with(sk_all_methods(), scene, options, &filling, world, error);
    sk_threads_end(before);
    return code;
}
