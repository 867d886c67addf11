/* The transfers of one cell and of one particle, for the plain forms and the GPU: positions of particles in their
 * cells, the nodes around a cell, and the sums of a cell. For files compiled per dimension. */
#ifndef SK_GRID_TRANSFER_PLAIN_H
#define SK_GRID_TRANSFER_PLAIN_H

#include "base/dimension.h"
#include "grid/plain.h"
#include "grid/transfer.h"
#include "grid/transfer_kernels.h"

typedef struct sk_plain_frame {
    const sk_grid *grid;
    float corner[3];          /* m */
    float inverse, cell_size; /* 1/m, m */
} sk_plain_frame;

SK_KERNEL sk_plain_frame sk_plain_frame_of(const sk_grid *grid)
{
    sk_plain_frame frame = {grid,
                            {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]},
                            (float)(1.0 / grid->cell_size),
                            (float)grid->cell_size};
    return frame;
}

/* Fractions of a position (m) in the cell with the coordinates `at`. */
SK_KERNEL void sk_plain_fractions(const sk_plain_frame *frame, const float position[3], const int at[3],
                                  float fraction[3])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        fraction[d] = sk_cell_fraction(position[d], frame->corner[d], frame->inverse, at[d]);
}

/* The nodes of component d around a cell, in the order of transfer_kernels.h. */
SK_KERNEL void sk_plain_load_nodes(const sk_grid *grid, const float *field, sk_plain_cell cell, int d,
                                   float nodes[SK_AROUND])
{
    for (int n = 0; n < SK_AROUND; n++) {
        const int offset[3] = {n % 3 - (d != 0), n / 3 % 3 - (d != 1), SELKIE_DIM == 3 ? n / 9 - (d != 2) : 0};
        nodes[n] = field[sk_plain_index(sk_plain_beside(grid, cell, offset))];
    }
}

/* The same, with 0 for unknown values. */
SK_KERNEL void sk_plain_load_known(const sk_grid *grid, const float *field, sk_plain_cell cell, int d,
                                   float nodes[SK_AROUND])
{
    sk_plain_load_nodes(grid, field, cell, d, nodes);
    for (int n = 0; n < SK_AROUND; n++)
        nodes[n] = sk_known_or_zero(nodes[n]);
}

/* Is there a particle in a row of cells of a block, or in a cell next to the row? */
SK_KERNEL int sk_plain_row_is_reached(const sk_grid *grid, int block, int first)
{
    const sk_plain_cell row = {block, first};
    for (int n = 0; n < (SELKIE_DIM == 3 ? 9 : 3); n++)
        for (int i = -1; i <= SK_BLOCK_N; i++) {
            const int offset[3] = {i, n % 3 - 1, n / 3 - 1};
            uint32_t begin, end;
            sk_plain_particles(grid, sk_plain_beside(grid, row, offset), &begin, &end);
            if (begin < end)
                return 1;
        }
    return 0;
}

/* Offset of cell n of the SK_AROUND cells around a cell, x fastest. */
SK_KERNEL void sk_plain_offset(int n, int offset[3])
{
    offset[0] = n % 3 - 1;
    offset[1] = n / 3 % 3 - 1;
    offset[2] = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
}

/* What a transfer reads of particles beside their records. */
typedef struct sk_plain_data {
    const sk_particle *records;
    const float *affine;           /* NULL but for APIC */
    const uint32_t *material;      /* NULL = all particles count and weigh the same */
    const float *relative_density; /* [SK_TRANSFER_MATERIALS] or NULL: sk_transfer_options */
    const uint8_t *mask;           /* likewise */
} sk_plain_data;

SK_KERNEL int sk_plain_counts(const sk_plain_data *data, uint32_t p)
{
    return !data->material || !data->mask || data->mask[data->material[p] % SK_TRANSFER_MATERIALS];
}

/* Mass of a particle over that of one of the reference density. */
SK_KERNEL float sk_plain_mass(const sk_plain_data *data, uint32_t p)
{
    return data->material && data->relative_density ? data->relative_density[data->material[p] % SK_TRANSFER_MATERIALS]
                                                    : 1.0f;
}

SK_KERNEL void sk_plain_add_sums(const sk_gathered *part, sk_gathered *sums)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        sums->momentum[d] += part->momentum[d];
        sums->mass[d] += part->mass[d];
        sums->weight[d] += part->weight[d];
    }
    sums->centre += part->centre;
}

/* The cells around a cell that lie in the block on some sides of its own: 0 below, 1 the same, 2 above along each axis.
 * Offsets from `first` to `last`; none if last < first. */
SK_KERNEL void sk_plain_overlap(sk_plain_cell cell, const int side[3], int first[3], int last[3])
{
    first[2] = last[2] = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int at = sk_plain_along(cell.local, d), below = at == 0, above = at == SK_BLOCK_N - 1;
        first[d] = side[d] == 0 ? -1 : side[d] == 1 ? (below ? 0 : -1) : 1;
        last[d] = side[d] == 0 ? (below ? -1 : -2) : side[d] == 1 ? (above ? 0 : 1) : above ? 1 : 0;
    }
}

/* Each cell adds up its particles, then the cells of a block are added up, then the blocks. The GPU has the same order.
 */
SK_KERNEL sk_gathered sk_plain_gather_cell(const sk_plain_frame *frame, const sk_plain_data *data, sk_plain_cell cell)
{
    const sk_gathered none = {{0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, 0.0f};
    sk_gathered sums = none;
    for (int block = 0; block < SK_AROUND; block++) {
        const int side[3] = {block % 3, block / 3 % 3, SELKIE_DIM == 3 ? block / 9 : 1};
        sk_gathered of_block = none;
        int first[3], last[3], offset[3], at[3];
        sk_plain_overlap(cell, side, first, last);
        for (offset[2] = first[2]; offset[2] <= last[2]; offset[2]++)
            for (offset[1] = first[1]; offset[1] <= last[1]; offset[1]++)
                for (offset[0] = first[0]; offset[0] <= last[0]; offset[0]++) {
                    sk_gathered part = none;
                    uint32_t begin, end;
                    const sk_plain_cell other = sk_plain_beside(frame->grid, cell, offset);
                    sk_plain_particles(frame->grid, other, &begin, &end);
                    sk_plain_coordinates(frame->grid, other, at);
                    for (uint32_t p = begin; p < end; p++) {
                        const sk_particle *particle = &data->records[p];
                        float fraction[3];
                        if (!sk_plain_counts(data, p))
                            continue;
                        sk_plain_fractions(frame, particle->position, at, fraction);
                        sk_gather_particle(fraction, offset, particle->velocity,
                                           data->affine ? data->affine + 9 * (size_t)p : NULL, frame->cell_size,
                                           sk_plain_mass(data, p), &part);
                    }
                    sk_plain_add_sums(&part, &of_block);
                }
        sk_plain_add_sums(&of_block, &sums);
    }
    return sums;
}

/* Writes the lower faces of a cell. The pressure takes the lightness where masses differ. */
SK_KERNEL void sk_plain_set_faces(const sk_grid *grid, const sk_gathered *sums, int masses_differ,
                                  float density_per_particle, size_t at)
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

/* Sum of the weights on the centre of a cell of the particles of another one. */
SK_KERNEL float sk_plain_weigh_part(const sk_plain_frame *frame, const sk_plain_data *data, sk_plain_cell other,
                                    const int offset[3])
{
    uint32_t begin, end;
    int at[3];
    float part = 0.0f;
    sk_plain_particles(frame->grid, other, &begin, &end);
    sk_plain_coordinates(frame->grid, other, at);
    for (uint32_t p = begin; p < end; p++) {
        float fraction[3];
        if (!sk_plain_counts(data, p))
            continue;
        sk_plain_fractions(frame, data->records[p].position, at, fraction);
        part += sk_centre_weight(fraction, offset);
    }
    return part;
}

/* The same of the particles that count and are in no cell that is left out, in the order of sk_plain_gather_cell. */
SK_KERNEL float sk_plain_weigh_cell(const sk_plain_frame *frame, const sk_plain_data *data,
                                    const sk_transfer_options *options, sk_plain_cell cell)
{
    float sum = 0.0f;
    for (int block = 0; block < SK_AROUND; block++) {
        const int side[3] = {block % 3, block / 3 % 3, SELKIE_DIM == 3 ? block / 9 : 1};
        int first[3], last[3], offset[3];
        float of_block = 0.0f;
        sk_plain_overlap(cell, side, first, last);
        for (offset[2] = first[2]; offset[2] <= last[2]; offset[2]++)
            for (offset[1] = first[1]; offset[1] <= last[1]; offset[1]++)
                for (offset[0] = first[0]; offset[0] <= last[0]; offset[0]++) {
                    const sk_plain_cell other = sk_plain_beside(frame->grid, cell, offset);
                    if (!options->left_out ||
                        !options->left_out[(size_t)options->left_out_slot[other.slot] * SK_BLOCK_CELLS +
                                           (size_t)other.local])
                        of_block += sk_plain_weigh_part(frame, data, other, offset);
                }
        sum += of_block;
    }
    return sum;
}

/* The field to sample for new velocities, at the nodes around a cell; 0 if unknown. */
SK_KERNEL void sk_plain_load_mixed(const sk_grid *grid, const sk_transfer_options *options, sk_plain_cell cell,
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
SK_KERNEL float sk_plain_give_velocity(const sk_plain_frame *frame, const sk_transfer_options *options,
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

/* Moves a particle by displacements at the nodes around its cell. */
SK_KERNEL void sk_plain_displace(const sk_plain_frame *frame, const sk_displacement *by,
                                 const float nodes[SELKIE_DIM][SK_AROUND], const int at[3], float x[3])
{
    float fraction[3];
    sk_plain_fractions(frame, x, at, fraction);
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] =
            sk_clamp(x[d] + frame->cell_size * sk_interpolate_nearest(d, nodes[d], fraction), by->low[d], by->high[d]);
}

#endif
