/* The plain transfers: transfer.h describes the scheme. A cell and its lower faces gather from the particles of the
 * cells around. A particle gathers from the nodes around its cell. Cells, and particles in a cell, go in a fixed
 * order. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "grid/plain_forms.h"
#include "grid/transfer_kernels.h"
#include "grid/transfer_plain.h"

/* --- to the grid --- */

/* Is there a particle in a row of cells of a block, or in a cell next to the row? */
static int row_is_reached(const sk_grid *grid, int block, int first)
{
    for (int n = 0; n < (SELKIE_DIM == 3 ? 9 : 3); n++)
        for (int i = -1; i <= SK_BLOCK_N; i++) {
            const int offset[3] = {i, n % 3 - 1, n / 3 - 1};
            uint32_t begin, end;
            sk_plain_particles(grid, sk_plain_beside(grid, (sk_plain_cell){block, first}, offset), &begin, &end);
            if (begin < end)
                return 1;
        }
    return 0;
}

/* Rows of a block that kernels of particles reach, as runs. */
static void find_reached(sk_grid *grid, int block)
{
    uint64_t reached = 0;
    const uint64_t row = (UINT64_C(1) << SK_BLOCK_N / 8) - 1;
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N)
        reached |= row_is_reached(grid, block, c) ? row << c / 8 : 0;
    grid->runs[SK_RUNS_REACHED][block] = reached;
}

/* Offset of cell n of the SK_AROUND cells around a cell, x fastest. */
static void offset_of(int n, int offset[3])
{
    offset[0] = n % 3 - 1;
    offset[1] = n / 3 % 3 - 1;
    offset[2] = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
}

/* What a transfer reads of particles beside their records. */
typedef struct particle_data {
    const sk_particle *records;
    const float *affine;           /* NULL but for APIC */
    const uint32_t *material;      /* NULL = all particles count and weigh the same */
    const float *relative_density; /* [SK_TRANSFER_MATERIALS] or NULL: sk_transfer_options */
    const uint8_t *mask;           /* likewise */
} particle_data;

static particle_data data_of(const sk_particles *particles, const sk_transfer_options *options)
{
    const sk_attribute *affine =
        options->kind == SK_TRANSFER_APIC ? sk_particles_find_attribute(particles, "affine") : NULL;
    const sk_attribute *material =
        options->relative_density || options->material_mask ? sk_particles_find_attribute(particles, "material") : NULL;
    return (particle_data){.records = particles->records,
                           .affine = affine ? (const float *)affine->data : NULL,
                           .material = material ? material->data : NULL,
                           .relative_density = options->relative_density,
                           .mask = options->material_mask};
}

static int counts(const particle_data *data, uint32_t p)
{
    return !data->material || !data->mask || data->mask[data->material[p] % SK_TRANSFER_MATERIALS];
}

/* Mass of a particle over that of one of the reference density. */
static float mass_of(const particle_data *data, uint32_t p)
{
    return data->material && data->relative_density ? data->relative_density[data->material[p] % SK_TRANSFER_MATERIALS]
                                                    : 1.0f;
}

static sk_gathered gather_cell(const sk_plain_frame *frame, const particle_data *data, sk_plain_cell cell)
{
    sk_gathered sums = {{0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, 0.0f};
    for (int n = 0; n < SK_AROUND; n++) {
        int offset[3], at[3];
        uint32_t begin, end;
        offset_of(n, offset);
        const sk_plain_cell other = sk_plain_beside(frame->grid, cell, offset);
        sk_plain_particles(frame->grid, other, &begin, &end);
        sk_plain_coordinates(frame->grid, other, at);
        for (uint32_t p = begin; p < end; p++) {
            const sk_particle *particle = &data->records[p];
            float fraction[3];
            if (!counts(data, p))
                continue;
            sk_plain_fractions(frame, particle->position, at, fraction);
            sk_gather_particle(fraction, offset, particle->velocity, data->affine ? data->affine + 9 * (size_t)p : NULL,
                               frame->cell_size, mass_of(data, p), &sums);
        }
    }
    return sums;
}

/* Writes the lower faces of a cell. The pressure takes the lightness where masses differ. */
static void set_faces(const sk_grid *grid, const sk_gathered *sums, int masses_differ, float density_per_particle,
                      size_t at)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float velocity = sk_face_velocity(sums->momentum[d], sums->mass[d]);
        grid->fields[SK_FIELD_VELOCITY_X + d][at] = grid->fields[SK_FIELD_CHANGE_X + d][at] = velocity;
        if (masses_differ && grid->fields[SK_FIELD_LIGHTNESS_X])
            grid->fields[SK_FIELD_LIGHTNESS_X + d][at] = sk_face_lightness(sums->weight[d], sums->mass[d]);
        if (grid->fields[SK_FIELD_FACE_DENSITY_X])
            grid->fields[SK_FIELD_FACE_DENSITY_X + d][at] = sums->weight[d] * density_per_particle;
    }
}

selkie_code SK_DIM(sk_transfer_to_grid_plain)(sk_grid *grid, const sk_particles *particles,
                                              const sk_transfer_options *options, selkie_error *error)
{
    (void)error;
    const sk_plain_frame frame = sk_plain_frame_of(grid);
    const particle_data data = data_of(particles, options);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < grid->block_count; b++) {
        find_reached(grid, b);
        SK_PLAIN_EACH_CELL(cell, b)
        {
            const size_t at = sk_plain_index(cell);
            const sk_gathered sums = gather_cell(&frame, &data, cell);
            set_faces(grid, &sums, data.material != NULL, options->density_per_particle, at);
            grid->fields[SK_FIELD_DENSITY][at] = sums.centre * options->density_per_particle;
        }
    }
    return SELKIE_OK;
}

/* Sum of the weights on the centre of a cell, of the particles that count and are in no cell that is left out. */
static float weigh_cell(const sk_plain_frame *frame, const particle_data *data, const sk_transfer_options *options,
                        sk_plain_cell cell)
{
    float sum = 0.0f;
    for (int n = 0; n < SK_AROUND; n++) {
        int offset[3], at[3];
        uint32_t begin, end;
        offset_of(n, offset);
        const sk_plain_cell other = sk_plain_beside(frame->grid, cell, offset);
        sk_plain_particles(frame->grid, other, &begin, &end);
        sk_plain_coordinates(frame->grid, other, at);
        if (options->left_out &&
            options->left_out[(size_t)options->left_out_slot[other.slot] * SK_BLOCK_CELLS + (size_t)other.local])
            continue;
        for (uint32_t p = begin; p < end; p++) {
            float fraction[3];
            if (!counts(data, p))
                continue;
            sk_plain_fractions(frame, data->records[p].position, at, fraction);
            sum += sk_centre_weight(fraction, offset);
        }
    }
    return sum;
}

selkie_code SK_DIM(sk_transfer_density_plain)(sk_grid *grid, const sk_particles *particles,
                                              const sk_transfer_options *options, selkie_error *error)
{
    (void)error;
    const sk_plain_frame frame = sk_plain_frame_of(grid);
    const particle_data data = data_of(particles, options);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < grid->block_count; b++) {
        find_reached(grid, b);
        SK_PLAIN_EACH_CELL(cell, b)
        grid->fields[SK_FIELD_DENSITY][sk_plain_index(cell)] =
            weigh_cell(&frame, &data, options, cell) * options->density_per_particle;
    }
    return SELKIE_OK;
}

/* --- to the particles --- */

/* The field to sample for new velocities, at the nodes around a cell; 0 if unknown. */
static void load_mixed(const sk_grid *grid, const sk_transfer_options *options, sk_plain_cell cell,
                       float nodes[SELKIE_DIM][SK_AROUND])
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        float change[SK_AROUND];
        sk_plain_load_nodes(grid, sk_transfer_velocity(options, grid, d), cell, d, nodes[d]);
        if (options->kind == SK_TRANSFER_FLIP)
            sk_plain_load_nodes(grid, grid->fields[SK_FIELD_CHANGE_X + d], cell, d, change);
        for (int n = 0; n < SK_AROUND; n++)
            nodes[d][n] = options->kind == SK_TRANSFER_FLIP ? sk_flip_mix(nodes[d][n], change[n], options->flip_ratio)
                                                            : sk_known_or_zero(nodes[d][n]);
    }
}

/* Sets a particle's velocity, and its matrix for APIC. Returns the squared speed, (m/s)^2. */
static float give_velocity(const sk_plain_frame *frame, const sk_transfer_options *options,
                           const float nodes[SELKIE_DIM][SK_AROUND], const int at[3], sk_particle *particle,
                           float *affine)
{
    float fraction[3], speed2 = 0.0f;
    sk_plain_fractions(frame, particle->position, at, fraction);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float kept = options->kind == SK_TRANSFER_FLIP ? options->flip_ratio * particle->velocity[d] : 0.0f;
        particle->velocity[d] = kept + sk_interpolate(d, nodes[d], fraction);
        speed2 += particle->velocity[d] * particle->velocity[d];
        if (!affine)
            continue;
        float gradient[3];
        sk_interpolate_gradient(d, nodes[d], fraction, gradient);
        for (int e = 0; e < SELKIE_DIM; e++)
            affine[3 * d + e] = gradient[e] * frame->inverse;
    }
    return speed2;
}

/* The particles of a block, cell by cell. */
static sk_particle_sums give_block(const sk_plain_frame *frame, const sk_transfer_options *options, float *affine,
                                   sk_particle *records, int block)
{
    sk_particle_sums sums = {0.0, 0.0, 0};
    float fastest = 0.0f; /* (m/s)^2 */
    SK_PLAIN_EACH_CELL(cell, block)
    {
        float nodes[SELKIE_DIM][SK_AROUND];
        uint32_t begin, end;
        int at[3];
        sk_plain_particles(frame->grid, cell, &begin, &end);
        if (begin == end)
            continue;

        /* Load the nodes around the cell once for all its particles. */
        load_mixed(frame->grid, options, cell, nodes);
        sk_plain_coordinates(frame->grid, cell, at);

        /* Set the velocity and the flag of each particle, and add to the sums. */
        for (uint32_t p = begin; p < end; p++) {
            const float speed2 =
                give_velocity(frame, options, nodes, at, &records[p], affine ? affine + 9 * (size_t)p : NULL);
            fastest = speed2 > fastest ? speed2 : fastest;
            sums.kinetic += 0.5 * (double)speed2;
            sums.bad += !(speed2 < 1e30f);
            if (options->flying) {
                records[p].flags &= ~(uint32_t)SK_PARTICLE_FLYING;
                records[p].flags |= options->flying[sk_plain_index(cell)] > 0.0f ? (uint32_t)SK_PARTICLE_FLYING : 0;
            }
        }
    }
    sums.max_speed = sqrt((double)fastest);
    return sums;
}

selkie_code SK_DIM(sk_transfer_to_particles_plain)(sk_grid *grid, sk_particles *particles,
                                                   const sk_transfer_options *options, sk_particle_sums *sums,
                                                   selkie_error *error)
{
    const sk_plain_frame frame = sk_plain_frame_of(grid);
    const sk_attribute *attribute =
        options->kind == SK_TRANSFER_APIC ? sk_particles_find_attribute(particles, "affine") : NULL;
    sk_particle_sums *partial = NULL;
    size_t room = 0;
    SK_TRY(sk_reserve(grid->memory, (void **)&partial, &room, (size_t)grid->particle_blocks + 1, sizeof *partial,
                      "grid to particles", error));
    particles->carried = NULL; /* the advection samples again */
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b <= grid->particle_blocks; b++)
        partial[b] = give_block(&frame, options, attribute ? (float *)attribute->data : NULL, particles->records, b);

    /* In the order of the blocks: the same bits on any number of threads. */
    memset(sums, 0, sizeof *sums);
    for (int b = 1; b <= grid->particle_blocks; b++) {
        sums->kinetic += partial[b].kinetic;
        sums->max_speed = fmax(sums->max_speed, partial[b].max_speed);
        sums->bad += partial[b].bad;
    }
    sk_release(grid->memory, partial);
    return SELKIE_OK;
}

/* --- displacements --- */

void SK_DIM(sk_transfer_displace_plain)(sk_grid *grid, sk_particles *particles, const sk_displacement *by)
{
    const uint64_t *runs = by->runs;
    const sk_plain_frame frame = sk_plain_frame_of(grid);
    sk_particles_moved(particles);
    grid->moved = NULL;
#pragma omp parallel for num_threads(by->threads) schedule(dynamic, 1)
    for (int b = 1; b <= grid->particle_blocks; b++)
        SK_PLAIN_EACH_CELL(cell, b)
        {
            float nodes[SELKIE_DIM][SK_AROUND];
            uint32_t begin, end;
            int at[3];
            sk_plain_particles(grid, cell, &begin, &end);
            if (begin == end || (runs && !(runs[b] >> (cell.local / 8) & 1)))
                continue;
            for (int d = 0; d < SELKIE_DIM; d++)
                sk_plain_load_known(grid, grid->fields[(int)by->first + d], cell, d, nodes[d]);
            sk_plain_coordinates(grid, cell, at);
            for (uint32_t p = begin; p < end; p++) {
                float fraction[3], *x = particles->records[p].position;
                sk_plain_fractions(&frame, x, at, fraction);
                for (int d = 0; d < SELKIE_DIM; d++)
                    x[d] = sk_clamp(x[d] + frame.cell_size * sk_interpolate_nearest(d, nodes[d], fraction), by->low[d],
                                    by->high[d]);
            }
        }
}
