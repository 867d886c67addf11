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

static sk_plain_data sk_plain_data_of(const sk_particles *particles, const sk_transfer_options *options)
{
    const sk_attribute *affine =
        options->kind == SK_TRANSFER_APIC ? sk_particles_find_attribute(particles, "affine") : NULL;
    const sk_attribute *material =
        options->relative_density || options->material_mask ? sk_particles_find_attribute(particles, "material") : NULL;
    return (sk_plain_data){.records = particles->records,
                           .affine = affine ? (const float *)affine->data : NULL,
                           .material = material ? material->data : NULL,
                           .relative_density = options->relative_density,
                           .mask = options->material_mask};
}

/* Rows of a block that kernels of particles reach, as runs. */
static void find_reached(sk_grid *grid, int block)
{
    uint64_t reached = 0;
    const uint64_t row = (UINT64_C(1) << SK_BLOCK_N / 8) - 1;
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N)
        reached |= sk_plain_row_is_reached(grid, block, c) ? row << c / 8 : 0;
    grid->runs[SK_RUNS_REACHED][block] = reached;
}

selkie_code SK_DIM(sk_transfer_to_grid_plain)(sk_grid *grid, const sk_particles *particles,
                                              const sk_transfer_options *options, selkie_error *error)
{
    (void)error;
    const sk_plain_frame frame = sk_plain_frame_of(grid);
    const sk_plain_data data = sk_plain_data_of(particles, options);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < grid->block_count; b++) {
        find_reached(grid, b);
        SK_PLAIN_EACH_CELL(cell, b)
        {
            const size_t at = sk_plain_index(cell);
            const sk_gathered sums = sk_plain_gather_cell(&frame, &data, cell);
            sk_plain_set_faces(grid, &sums, data.material != NULL, options->density_per_particle, at);
            grid->fields[SK_FIELD_DENSITY][at] = sums.centre * options->density_per_particle;
        }
        if (options->reached_blocks)
            options->reached_blocks[b] = 1;
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_transfer_density_plain)(sk_grid *grid, const sk_particles *particles,
                                              const sk_transfer_options *options, selkie_error *error)
{
    (void)error;
    const sk_plain_frame frame = sk_plain_frame_of(grid);
    const sk_plain_data data = sk_plain_data_of(particles, options);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < grid->block_count; b++) {
        find_reached(grid, b);
        SK_PLAIN_EACH_CELL(cell, b)
        grid->fields[SK_FIELD_DENSITY][sk_plain_index(cell)] =
            sk_plain_weigh_cell(&frame, &data, options, cell) * options->density_per_particle;
    }
    return SELKIE_OK;
}

/* --- to the particles --- */

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
        sk_plain_load_mixed(frame->grid, options, cell, nodes);
        sk_plain_coordinates(frame->grid, cell, at);

        /* Set the velocity and the flag of each particle, and add to the sums. */
        for (uint32_t p = begin; p < end; p++) {
            const float speed2 =
                sk_plain_give_velocity(frame, options, nodes, at, &records[p], affine ? affine + 9 * (size_t)p : NULL);
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
                if (by->held && by->held[p])
                    continue;
                sk_plain_displace(&frame, by, (const float(*)[SK_AROUND])nodes, at, particles->records[p].position);
                const uint32_t *place = by->places ? by->places + 3 * (size_t)p : NULL;
                if (place && (place[0] | place[1] | place[2]))
                    memcpy(particles->records[p].position, place, SELKIE_DIM * sizeof(float));
                if (by->wraps)
                    sk_grid_wrap(grid, particles->records[p].position);
            }
        }
}
