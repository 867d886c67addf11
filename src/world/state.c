/* The state of a world as named chunks, for checkpoints: everything that changes, and nothing that follows from the
 * scene. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cuda/cuda.h"
#include "world/world_internal.h"

int sk_world_state(const selkie_world *world, sk_state_header *header, sk_state_chunk chunks[SK_STATE_MAX_CHUNKS])
{
    const sk_step *step = &world->step;
    memset(header, 0, sizeof *header);
    header->version = SK_STATE_VERSION;
    header->dimension = (uint32_t)step->dimension;
    memcpy(header->cells, step->grid.cells, sizeof header->cells);
    header->particles_per_cell = step->particles_per_cell;
    header->cell_size = step->grid.cell_size;
    header->time = step->time;
    header->last_dt = step->last_dt;
    header->max_speed = step->sums.max_speed;
    memcpy(header->positions, step->positions, sizeof header->positions);
    header->step_count = step->step_count;
    header->frame = world->frame;
    header->particle_count = step->particles.count;
    header->emitted = step->emitted;
    header->drained = step->drained;
    header->start_kernel_volume = world->start_kernel_volume;
    header->start_counted_volume = world->start_counted_volume;
    header->start_surface_volume = world->start_surface_volume;
    header->start_occupied_cells = world->start_occupied_cells;
    header->start_particles = world->start_particles;
    header->next_id = step->particles.next_id;
    header->at_frame = (uint32_t)world->at_frame;

    /* Header, particles and attributes. */
    memset(chunks, 0, SK_STATE_MAX_CHUNKS * sizeof *chunks);
    strcpy(chunks[0].name, "header");
    chunks[0].data = header;
    chunks[0].bytes = sizeof *header;
    strcpy(chunks[1].name, "particles");
    chunks[1].data = step->particles.records;
    chunks[1].bytes = (uint64_t)step->particles.count * sizeof(sk_particle);
    for (int a = 0; a < step->particles.attribute_count; a++) {
        const sk_attribute *attribute = &step->particles.attributes[a];
        snprintf(chunks[2 + a].name, sizeof chunks[2 + a].name, "a:%.20s", attribute->name);
        chunks[2 + a].data = attribute->data;
        chunks[2 + a].bytes = (uint64_t)step->particles.count * (uint64_t)attribute->components * 4;
    }

    /* The state of the methods. */
    int count = 2 + step->particles.attribute_count;
    for (int m = 0; m < world->methods.count; m++) {
        const sk_method *method = world->methods.methods[m];
        sk_chunk_view view = method->state ? method->state(step) : (sk_chunk_view){NULL, NULL, 0};
        if (!view.name)
            continue;
        snprintf(chunks[count].name, sizeof chunks[count].name, "%s", view.name);
        chunks[count].data = view.data;
        chunks[count++].bytes = view.bytes;
    }

    /* The changes of the scene so far. */
    const sk_chunk_view changes = sk_changes_state(world);
    if (changes.bytes) {
        strcpy(chunks[count].name, changes.name);
        chunks[count].data = changes.data;
        chunks[count++].bytes = changes.bytes;
    }

    /* The origin of the positions, for scenes of another domain. */
    strcpy(chunks[count].name, "origin");
    chunks[count].data = step->grid.origin;
    chunks[count++].bytes = sizeof step->grid.origin;
    return count;
}

static const sk_state_chunk *find_chunk(int count, const sk_state_chunk *chunks, const char *name)
{
    for (int c = 0; c < count; c++)
        if (strncmp(chunks[c].name, name, sizeof chunks[c].name) == 0)
            return &chunks[c];
    return NULL;
}

static void take_particles(sk_particles *particles, const sk_state_header *header, const sk_state_chunk *records,
                           const sk_state_chunk *const *attributes)
{
    particles->count = header->particle_count;
    particles->in_order = 0;
    sk_particles_moved(particles);
    if (!particles->count)
        return;
    memcpy(particles->records, records->data, records->bytes);
    for (int a = 0; a < particles->attribute_count; a++)
        memcpy(particles->attributes[a].data, attributes[a]->data, attributes[a]->bytes);
}

/* The state of the methods. A method checks its chunk before it changes anything. */
static selkie_code restore_methods(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                                   selkie_error *error)
{
    /* Nothing changes before all chunks are found. */
    const sk_state_chunk *found[SK_STEP_MAX_METHODS] = {NULL};
    for (int m = 0; m < world->methods.count; m++) {
        const sk_method *method = world->methods.methods[m];
        const char *name = method->state ? method->state(&world->step).name : NULL;
        if (name && !(found[m] = find_chunk(count, chunks, name)))
            return sk_fail(error, SELKIE_ERROR_FORMAT,
                           "%s: the state of %s is missing; was it written by another scene?", file, name);
    }
    for (int m = 0; m < world->methods.count; m++)
        if (found[m]) {
            sk_chunk_view view = {found[m]->name, found[m]->data, found[m]->bytes};
            SK_TRY(world->methods.methods[m]->restore(&world->step, &view, file, error));
        }
    return SELKIE_OK;
}

selkie_code sk_world_restore_state(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                                   selkie_error *error)
{
    sk_step *step = &world->step;
    sk_particles *particles = &step->particles;
    const sk_state_chunk *chunk = find_chunk(count, chunks, "header");
    sk_state_header header;
    if (!chunk || chunk->bytes != sizeof header)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: is not a checkpoint of this version of Selkie", file);
    memcpy(&header, chunk->data, sizeof header);

    /* Does the checkpoint fit this build and this scene? */
    const double *origin = step->grid.origin;
    const int at_zero = origin[0] == 0.0 && origin[1] == 0.0 && origin[2] == 0.0;
    if (header.version == 1 && !at_zero)
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "%s: state version 1 has rounded positions where domain.origin is not 0; run it again from the "
                       "start",
                       file);
    if (header.version != SK_STATE_VERSION && header.version != 1)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: state version %u; this build reads %d", file, header.version,
                       SK_STATE_VERSION);
    chunk = find_chunk(count, chunks, "origin");
    if (header.version != 1 && (!chunk || chunk->bytes != sizeof step->grid.origin))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the origin of its positions is missing", file);
    if ((int)header.dimension != step->dimension || memcmp(header.cells, step->grid.cells, sizeof header.cells) != 0 ||
        header.cell_size != step->grid.cell_size || header.particles_per_cell != step->particles_per_cell)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: was written by another scene (%uD, %d x %d x %d cells of %g m, %d particles a cell)", file,
                       header.dimension, header.cells[0], header.cells[1], header.cells[2], header.cell_size,
                       header.particles_per_cell);
    if (header.particle_count < 0 || header.particle_count > (int64_t)UINT32_MAX / 2 ||
        !(header.time >= 0.0 && header.time < 1e30) || !(header.last_dt >= 0.0 && header.last_dt < 1e30) ||
        !(header.max_speed >= 0.0 && header.max_speed < 1e30) || header.step_count < 0 ||
        header.step_count > INT64_MAX / 2 || header.frame < 0 || header.frame > INT64_MAX / 2)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the header makes no sense (%lld particles at %g s)", file,
                       (long long)header.particle_count, header.time);

    /* The next step ends on the next frame: a frame in the past would reverse time. */
    double frames = header.time * world->scene->time.fps;
    if (frames < (double)header.frame - 1e-6 * (frames + 1.0) ||
        frames > (double)(header.frame + 1) + 1e-6 * (frames + 1.0))
        return sk_fail(
            error, SELKIE_ERROR_INPUT,
            "%s: stands at %g s after frame %lld, which does not fit time.fps %g: it was written with another one",
            file, header.time, (long long)header.frame, world->scene->time.fps);

    /* Find the chunks of the particles. */
    uint64_t n = (uint64_t)header.particle_count;
    const sk_state_chunk *records = find_chunk(count, chunks, "particles");
    if (!records || records->bytes != n * sizeof(sk_particle))
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "%s: the particles are missing or of another number than the header says", file);
    const sk_state_chunk *attributes[SK_MAX_ATTRIBUTES];
    for (int a = 0; a < particles->attribute_count; a++) {
        char name[24];
        snprintf(name, sizeof name, "a:%.20s", particles->attributes[a].name);
        attributes[a] = find_chunk(count, chunks, name);
        if (!attributes[a] || attributes[a]->bytes != n * (uint64_t)particles->attributes[a].components * 4)
            return sk_fail(error, SELKIE_ERROR_FORMAT,
                           "%s: the attribute \"%s\" is missing; was it written with another method?", file,
                           particles->attributes[a].name);
    }

    /* Allocations that may fail come before any change: a failed load leaves the world unchanged. */
    SK_TRY(sk_particles_reserve(particles, header.particle_count, error));
    SK_TRY(restore_methods(world, count, chunks, file, error));
    take_particles(particles, &header, records, attributes);

    /* The state of the world. */
    particles->next_id = header.next_id;
    step->time = header.time;
    step->last_dt = header.last_dt;
    step->step_count = header.step_count;
    step->emitted = header.emitted;
    step->drained = header.drained;
    world->frame = header.frame;
    world->at_frame = (int)header.at_frame;
    world->start_kernel_volume = header.start_kernel_volume;
    world->start_counted_volume = header.start_counted_volume;
    world->start_surface_volume = header.start_surface_volume;
    world->start_occupied_cells = header.start_occupied_cells;
    world->start_particles = header.start_particles;

    /* Values for display are measured again. Values that determine the next step are restored to the bit. */
    step->dt = 0.0;
    world->failed = 1;
    sk_cuda_particles_changed(step);
    SK_TRY(sk_world_measure(world, error));
    world->failed = 0;
    world->warning[0] = 0;
    take_particles(particles, &header, records, attributes); /* measuring has sorted them */
    step->sums.max_speed = header.max_speed;
    memcpy(step->positions, header.positions, sizeof header.positions);
    memcpy(step->positions_before, header.positions, sizeof header.positions);
    SK_TRY(sk_methods_measure(world, error)); /* in the restored order */
    sk_solids_move(&step->solids, step->time);
    sk_world_collect_statistics(world, 0.0);
    sk_probes_measure(&world->probes, step, 0.0);
    return SELKIE_OK;
}

selkie_code sk_world_restore(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                             selkie_error *error)
{
    int rebuilt = 0;
    SK_TRY(sk_changes_restore(world, count, chunks, file, &rebuilt, error));
    return rebuilt ? SELKIE_OK : sk_world_restore_state(world, count, chunks, file, error);
}
