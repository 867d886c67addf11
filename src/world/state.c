/* The state of a world as named chunks, for checkpoints: everything that changes, and nothing that follows from the
 * scene. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cuda/cuda.h"
#include "world/world_internal.h"

static void fill_header(const selkie_world *world, sk_state_header *header)
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
}

static void put_chunk(sk_state_chunk *chunk, const char *name, const void *data, uint64_t bytes)
{
    snprintf(chunk->name, sizeof chunk->name, "%s", name);
    chunk->data = data;
    chunk->bytes = bytes;
}

int sk_state_of_particles(const sk_particles *particles, sk_state_chunk *chunks)
{
    const uint64_t count = (uint64_t)particles->count;
    int n = 0;
    put_chunk(&chunks[n++], "particles", particles->records, count * sizeof(sk_particle));
    for (int a = 0; a < particles->attribute_count; a++) {
        const sk_attribute *attribute = &particles->attributes[a];
        char name[24];
        snprintf(name, sizeof name, "a:%.20s", attribute->name);
        put_chunk(&chunks[n++], name, attribute->data, count * (uint64_t)attribute->components * 4);
    }
    return n;
}

int sk_world_state(const selkie_world *world, sk_state_header *header, sk_state_chunk chunks[SK_STATE_MAX_CHUNKS])
{
    const sk_step *step = &world->step;
    int count = 0;
    fill_header(world, header);
    memset(chunks, 0, SK_STATE_MAX_CHUNKS * sizeof *chunks);

    /* Header, particles and attributes. */
    put_chunk(&chunks[count++], "header", header, sizeof *header);
    count += sk_state_of_particles(&step->particles, chunks + SK_STATE_PARTICLES);

    /* The state of the methods. */
    for (int m = 0; m < world->methods.count; m++) {
        const sk_method *method = world->methods.methods[m];
        const sk_chunk_view view = method->state ? method->state(step) : (sk_chunk_view){NULL, NULL, 0};
        if (view.name)
            put_chunk(&chunks[count++], view.name, view.data, view.bytes);
    }

    /* The changes of the scene so far; the origin of the positions, for scenes of another domain. */
    const sk_chunk_view changes = sk_changes_state(world);
    if (changes.bytes)
        put_chunk(&chunks[count++], changes.name, changes.data, changes.bytes);

    /* Air between the liquid and obstacles. */
    size_t vents;
    sk_solids *solids = &((selkie_world *)world)->step.solids; /* the list lies in a buffer of its own */
    if (sk_cuda_fetch_vents(&((selkie_world *)world)->step, NULL) == SELKIE_OK &&
        sk_solids_list_vents(solids, &vents, NULL) == SELKIE_OK && vents)
        put_chunk(&chunks[count++], "vents", solids->listed, vents * sizeof *solids->listed);
    put_chunk(&chunks[count++], "origin", step->grid.origin, sizeof step->grid.origin);
    return count;
}

static const sk_state_chunk *find_chunk(int count, const sk_state_chunk *chunks, const char *name)
{
    for (int c = 0; c < count; c++)
        if (strncmp(chunks[c].name, name, sizeof chunks[c].name) == 0)
            return &chunks[c];
    return NULL;
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

/* Does the checkpoint fit this build and this scene? */
static selkie_code check_header(const selkie_world *world, const sk_state_header *header, const sk_state_chunk *origin,
                                const char *file, selkie_error *error)
{
    const sk_grid *grid = &world->step.grid;
    const int at_zero = grid->origin[0] == 0.0 && grid->origin[1] == 0.0 && grid->origin[2] == 0.0;
    if (header->version == 1 && !at_zero)
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "%s: state version 1 has rounded positions where domain.origin is not 0; run it again from the "
                       "start",
                       file);
    if (header->version != SK_STATE_VERSION && header->version != 1)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: state version %u; this build reads %d", file, header->version,
                       SK_STATE_VERSION);
    if (header->version != 1 && (!origin || origin->bytes != sizeof grid->origin))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the origin of its positions is missing", file);
    if ((int)header->dimension != world->step.dimension ||
        memcmp(header->cells, grid->cells, sizeof header->cells) != 0 || header->cell_size != grid->cell_size ||
        header->particles_per_cell != world->step.particles_per_cell)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: was written by another scene (%uD, %d x %d x %d cells of %g m, %d particles a cell)", file,
                       header->dimension, header->cells[0], header->cells[1], header->cells[2], header->cell_size,
                       header->particles_per_cell);
    return SELKIE_OK;
}

/* Sums and differences of two such counts fit an int64_t. */
static int is_count(int64_t count)
{
    return count >= 0 && count <= INT64_MAX / 4;
}

/* Numbers that no run writes. */
static selkie_code check_sense(const selkie_world *world, const sk_state_header *header, const char *file,
                               selkie_error *error)
{
    if (header->particle_count < 0 || header->particle_count > (int64_t)UINT32_MAX / 2 ||
        !(header->time >= 0.0 && header->time < 1e30) || !(header->last_dt >= 0.0 && header->last_dt < 1e30) ||
        !(header->max_speed >= 0.0 && header->max_speed < 1e30) || !is_count(header->step_count) ||
        !is_count(header->frame) || !is_count(header->emitted) || !is_count(header->drained) ||
        !is_count(header->start_occupied_cells) || !is_count(header->start_particles))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the header makes no sense (%lld particles at %g s)", file,
                       (long long)header->particle_count, header->time);

    /* The next step ends on the next frame: a frame in the past would reverse time. */
    const double frames = header->time * world->scene->time.fps;
    if (frames < (double)header->frame - 1e-6 * (frames + 1.0) ||
        frames > (double)(header->frame + 1) + 1e-6 * (frames + 1.0))
        return sk_fail(
            error, SELKIE_ERROR_INPUT,
            "%s: stands at %g s after frame %lld, which does not fit time.fps %g: it was written with another one",
            file, header->time, (long long)header->frame, world->scene->time.fps);
    return SELKIE_OK;
}

typedef struct particle_chunks {
    const sk_state_chunk *records, *attributes[SK_MAX_ATTRIBUTES];
} particle_chunks;

/* Finds the chunks of n particles. */
static selkie_code find_particles(const sk_particles *particles, uint64_t n, int count, const sk_state_chunk *chunks,
                                  const char *file, particle_chunks *found, selkie_error *error)
{
    found->records = find_chunk(count, chunks, "particles");
    if (!found->records || found->records->bytes != n * sizeof(sk_particle))
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "%s: the particles are missing or of another number than the header says", file);
    for (int a = 0; a < particles->attribute_count; a++) {
        char name[24];
        snprintf(name, sizeof name, "a:%.20s", particles->attributes[a].name);
        const sk_state_chunk *chunk = found->attributes[a] = find_chunk(count, chunks, name);
        if (!chunk || chunk->bytes != n * (uint64_t)particles->attributes[a].components * 4)
            return sk_fail(error, SELKIE_ERROR_FORMAT,
                           "%s: the attribute \"%s\" is missing; was it written with another method?", file,
                           particles->attributes[a].name);
    }
    return SELKIE_OK;
}

static void take_particles(sk_particles *particles, const sk_state_header *header, const particle_chunks *from)
{
    particles->count = header->particle_count;
    particles->in_order = 0;
    sk_particles_moved(particles);
    if (!particles->count)
        return;
    memcpy(particles->records, from->records->data, from->records->bytes);
    for (int a = 0; a < particles->attribute_count; a++)
        memcpy(particles->attributes[a].data, from->attributes[a]->data, from->attributes[a]->bytes);
}

static void take_header(selkie_world *world, const sk_state_header *header)
{
    sk_step *step = &world->step;
    step->particles.next_id = header->next_id;
    step->time = header->time;
    step->last_dt = header->last_dt;
    step->step_count = header->step_count;
    step->emitted = header->emitted;
    step->drained = header->drained;
    world->frame = header->frame;
    world->at_frame = (int)header->at_frame;
    world->start_kernel_volume = header->start_kernel_volume;
    world->start_counted_volume = header->start_counted_volume;
    world->start_surface_volume = header->start_surface_volume;
    world->start_occupied_cells = header->start_occupied_cells;
    world->start_particles = header->start_particles;
}

selkie_code sk_world_restore_state(selkie_world *world, int count, const sk_state_chunk *chunks, const char *file,
                                   selkie_error *error)
{
    sk_step *step = &world->step;
    sk_particles *particles = &step->particles;
    const sk_state_chunk *chunk = find_chunk(count, chunks, "header");
    particle_chunks found;
    sk_state_header header;
    if (!chunk || chunk->bytes != sizeof header)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: is not a checkpoint of this version of Selkie", file);
    memcpy(&header, chunk->data, sizeof header);
    SK_TRY(check_header(world, &header, find_chunk(count, chunks, "origin"), file, error));
    SK_TRY(check_sense(world, &header, file, error));
    SK_TRY(find_particles(particles, (uint64_t)header.particle_count, count, chunks, file, &found, error));

    /* Allocations that may fail come before any change: a failed load leaves the world unchanged. */
    SK_TRY(sk_particles_reserve(particles, header.particle_count, error));
    SK_TRY(restore_methods(world, count, chunks, file, error));
    chunk = find_chunk(count, chunks, "vents");
    SK_TRY(sk_solids_restore_vents(&step->solids, chunk ? chunk->data : NULL,
                                   chunk ? chunk->bytes / sizeof *step->solids.listed : 0, file, error));
    SK_TRY(sk_cuda_send_vents(step, error));
    take_particles(particles, &header, &found);
    take_header(world, &header);

    /* Values for display are measured again. Values that determine the next step are restored to the bit. */
    step->dt = 0.0;
    world->failed = 1;
    sk_cuda_particles_changed(step);
    SK_TRY(sk_world_measure(world, error));
    world->failed = 0;
    world->warning[0] = 0;
    take_particles(particles, &header, &found); /* measuring has sorted them */
    sk_cuda_particles_changed(step);
    step->none_inside = 0;
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
