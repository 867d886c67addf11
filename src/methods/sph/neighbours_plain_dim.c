/* Neighbour lists with kernel gradients, and the results of one pass over them, one pair at a time. */
#include <omp.h>

#include "methods/sph/list_parts.h"
#include "methods/sph/sph_tile.h"
#include "particles/neighbours.h"

/* The cells around a cell: their particles in the store, and their positions in the tile of the block. */
static void find_pieces(const sk_cell_index *index, const sk_particle_tile *tile, int block, int c,
                        sk_particle_run pieces[SK_NEIGHBOURS])
{
    const int tile_cell = sk_particle_tile_cell(c);
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        int cell[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            cell[d] = index->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) + offset[d];
        const sk_cell_range range = SK_DIM(sk_points_of_cell)(index, cell);
        const int there = tile_cell + offset[0] + SK_PARTICLE_TILE_N * (offset[1] + SK_PARTICLE_TILE_N * offset[2]);
        pieces[n] = (sk_particle_run){.from = range.from, .to = range.to, .at = tile->start[there]};
    }
}

typedef struct plain_builder {
    list_frame frame;
    sk_cell_index index;
    const sk_neighbour_lists *neighbours;
} plain_builder;

/* Writes the list of particle i, and sums over it. The neighbours follow the order of the pieces. */
static void write_particle(const plain_builder *b, const sk_particle_run pieces[SK_NEIGHBOURS], const near_walls *walls,
                           uint32_t i, int wide, sk_sph_list_sums *block)
{
    const sk_sph *sph = b->frame.sph;
    const sk_particle *records = b->frame.step->particles.records;
    const uint32_t *found = b->neighbours->neighbours + b->neighbours->first[i], count = sph->number[i];
    void *list = sph->lists + (size_t)sph->first[i] * SK_SPH_LINE_BYTES;
    listed_sums own;
    int piece = 0;
    begin_sums(&own);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t j = found[k];
        while (j < pieces[piece].from || j >= pieces[piece].to)
            piece++;
        float difference[3], gradient[3];
        const float r2 = SK_DIM(sk_image_difference)(&b->index, records[i].position, records[j].position, difference);
        add_neighbour(&b->frame.constants, difference, r2, gradient, &own);
        sk_sph_write_entry(list, wide, k, gradient, pieces[piece].at + (j - pieces[piece].from));
        add_rounded(gradient, &own);
    }
    for (uint32_t k = count; k % SK_SPH_ENTRIES; k++) {
        float zero[3] = {0, 0, 0};
        sk_sph_write_entry(list, wide, k, zero, 0);
    }
    own.sums.density *= b->frame.constants.weight;
    finish_particle(&b->frame, walls, i, &own.sums, own.squares, block);
}

static void write_block(const plain_builder *b, sk_particle_tile *tile, int block)
{
    const sk_step *step = b->frame.step;
    sk_sph *sph = b->frame.sph;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    sk_sph_list_sums sums = {0};
    near_walls walls = {0};
    sk_particle_tile_make(&b->index, block, tile);
    walls.side_count = sk_sph_sides_near(sph, &step->grid, block, sph->sheet.reach, walls.sides);
    const int points = points_near_block(step, block), wide = sph->block_wide[block];
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        sk_particle_run pieces[SK_NEIGHBOURS];
        if (start[c] == start[c + 1])
            continue;
        find_pieces(&b->index, tile, block, c, pieces);
        if (points)
            find_points_near_cell(step, block, c, &walls);
        for (uint32_t i = start[c]; i < start[c + 1]; i++) {
            sums.pairs += sph->number[i];
            sums.lines += sk_sph_list_lines(sph->number[i], wide);
            write_particle(b, pieces, &walls, i, wide, &sums);
        }
    }
    sph->block_sums[block].lists = sums;
}

/* Chooses form and position of each list, one after the other. Returns the total number of lines. */
static int64_t place_lists(const plain_builder *b, sk_particle_tile *tile)
{
    const sk_grid *grid = &b->frame.step->grid;
    sk_sph *sph = b->frame.sph;
    int64_t line = 0;
    for (int block = 1; block <= grid->particle_blocks; block++) {
        sk_particle_tile_make(&b->index, block, tile);
        sph->block_wide[block] = tile->count > SK_SPH_LEAN_LIMIT || sph->always_wide;
        for (uint32_t i = block_begin(grid, block); i < block_end(grid, block); i++) {
            sph->first[i] = (uint32_t)line;
            sph->number[i] = (uint32_t)(b->neighbours->first[i + 1] - b->neighbours->first[i]);
            line += sk_sph_list_lines(sph->number[i], sph->block_wide[block]);
        }
    }
    return line;
}

static selkie_code write_lists(sk_step *step, const plain_builder *b, selkie_error *error)
{
    sk_sph *sph = step->sph;
    sk_particle_tile *tiles;
    SK_TRY(sk_step_scratch(step, (size_t)step->threads * sizeof *tiles, "sph lists", (void **)&tiles, error));
    sph->last_lines = place_lists(b, tiles);
    /* Readers load eight entries at a time. */
    SK_TRY(
        sk_sph_reserve_lists(sph, sph->last_lines + 8 * (int64_t)sizeof(sk_sph_wide_entry) / SK_SPH_LINE_BYTES, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= step->grid.particle_blocks; block++)
        write_block(b, &tiles[omp_get_thread_num()], block);
    const sk_sph_list_sums total = add_list_sums(sph, step->grid.particle_blocks);
    report_lists(step, &total);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_sph_neighbours_plain)(sk_step *step, selkie_error *error)
{
    SK_TRY(begin_lists(step, error));
    if (!step->particles.count)
        return SELKIE_OK;
    sk_neighbour_lists neighbours = {.memory = step->memory};
    const plain_builder b = {
        .frame = make_list_frame(step), .index = sk_grid_cell_index(&step->grid), .neighbours = &neighbours};
    const sk_neighbour_search search = {
        .index = &b.index, .records = step->particles.records, .radius2 = b.frame.constants.reach2, .reach = 1};
    selkie_code code = SK_DIM(sk_neighbour_lists_build)(&neighbours, &search, step->threads, error);
    if (code == SELKIE_OK)
        code = write_lists(step, &b, error);
    sk_neighbour_lists_free(&neighbours);
    return code;
}
