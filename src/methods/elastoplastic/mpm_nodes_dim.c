/* Velocities of the nodes: the sum of the tiles, gravity and force fields, walls and obstacles. */
#include "methods/elastoplastic/mpm_frame.h"

typedef struct node_frame {
    const sk_step *step;
    const sk_grid *grid;
    const sk_solids *solids;
    sk_mpm *mpm;
    float gain[3]; /* m/s  of gravity */
    int field_count;
    const sk_force_field *fields;
    float full;      /*      mass of a full cell, over the mass of a point */
    double *volumes; /*      [blocks] cells: sum of min(density, 1) */
} node_frame;

/* --- The sum of the tiles --- */

/* Range of a block's nodes along an axis that the tile of a neighbour (side -1, 0, 1) holds, and the first in there. */
static void overlap(int side, int *begin, int *end, int *first)
{
    *begin = side > 0 ? SK_BLOCK_N - 1 : 0;
    *end = side < 0 ? 1 : SK_BLOCK_N;
    *first = side < 0 ? SK_MPM_TILE_N - 1 : side > 0 ? 0 : 1;
}

/* Adds the tile of one neighbour. */
static void add_tile(const float (*tile)[4], const int side[3], float (*nodes)[4])
{
    int begin[3] = {0, 0, 0}, end[3] = {1, 1, 1}, first[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++)
        overlap(side[d], &begin[d], &end[d], &first[d]);
    for (int z = begin[2]; z < end[2]; z++)
        for (int y = begin[1]; y < end[1]; y++) {
            const float(*from)[4] = tile + first[0] + SK_MPM_TILE_N * (first[1] + y - begin[1]) +
                                    SK_MPM_TILE_N * SK_MPM_TILE_N * (first[2] + z - begin[2]);
            float(*to)[4] = nodes + SK_BLOCK_N * (y + SK_BLOCK_N * z);
            for (int x = begin[0]; x < end[0]; x++)
                for (int c = 0; c < 4; c++)
                    to[x][c] += from[x - begin[0]][c];
        }
}

/* Returns whether the block has any mass. */
static int add_tiles(const node_frame *frame, int block, float (*nodes)[4])
{
    int any = 0;
    memset(nodes, 0, SK_BLOCK_CELLS * sizeof *nodes);
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int slot = frame->grid->neighbours[block][n];
        const int side[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        if (slot < 1 || slot > frame->grid->particle_blocks)
            continue;
        add_tile((const float(*)[4])(frame->mpm->tiles + (size_t)(slot - 1) * SK_MPM_TILE), side, nodes);
        any = 1;
    }
    return any;
}

/* --- Walls and obstacles --- */

/* Sides take their turn, so that nodes in corners have one order. */
static void touch_side(const node_frame *frame, int side, int block)
{
    SK_PLAIN_EACH_CELL(cell, block)
    sk_mpm_touch_side(frame->grid, frame->solids, side, cell, frame->mpm->nodes);
}

/* The obstacle that a node lies in. */
static void touch_obstacle(const node_frame *frame, const int cell[3], float velocity[4])
{
    const sk_solids *solids = frame->solids;
    double x[3] = {0, 0, 0}, normal[3], moves[3];
    int o;
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = frame->grid->corner[d] + (cell[d] + 0.5) * frame->grid->cell_size;
    if (!(sk_solids_distance(solids, x, normal, &o) < 0.0) || o < 0)
        return;
    sk_solids_velocity(solids, o, x, moves);
    const sk_obstacle *obstacle = &solids->obstacles[o];
    sk_solid_contact contact = {.friction = obstacle->def ? (float)obstacle->def->liquid_friction : 0.0f,
                                .sticks = obstacle->surface == SELKIE_WALL_NO_SLIP};
    for (int d = 0; d < SELKIE_DIM; d++) {
        contact.normal[d] = (float)normal[d];
        contact.velocity[d] = (float)moves[d];
    }
    sk_solid_touch(&contact, SELKIE_DIM, velocity);
}

/* --- A block --- */

static void node_velocity(const node_frame *frame, const int cell[3], int near, float node[4])
{
    sk_mpm_node_velocity(frame->grid, frame->gain, frame->fields, frame->field_count, cell, node);
    if (near && frame->solids->obstacle_count)
        touch_obstacle(frame, cell, node);
}

static void node_block(const node_frame *frame, int block)
{
    float(*nodes)[4] = frame->mpm->nodes + (size_t)block * SK_BLOCK_CELLS;
    double volume = 0.0;
    frame->volumes[block] = 0.0;
    if (!add_tiles(frame, block, nodes))
        return;
    const int slot = frame->solids->block_slot[block];
    const float *distance = frame->solids->distance + (size_t)slot * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        int cell[3] = {0, 0, 0};
        if (!(nodes[c][3] > 0.0f))
            continue;
        volume += nodes[c][3] < frame->full ? nodes[c][3] : frame->full;
        for (int d = 0; d < SELKIE_DIM; d++)
            cell[d] = frame->grid->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK);
        node_velocity(frame, cell, slot > 0 && distance[c] < 0.0f, nodes[c]);
    }
    frame->volumes[block] = volume / (double)frame->full;
}

static void touch_sides(const node_frame *frame)
{
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        if (frame->solids->walls[side] == SELKIE_WALL_OPEN)
            continue;
#pragma omp parallel for num_threads(frame->step->threads) schedule(dynamic, 16)
        for (int block = 1; block < frame->grid->block_count; block++)
            touch_side(frame, side, block);
    }
}

void SK_DIM(sk_mpm_touch)(sk_step *step)
{
    const node_frame frame = {.step = step, .grid = &step->grid, .solids = &step->solids, .mpm = sk_mpm_of(step)};
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int block = 1; block < step->grid.block_count; block++) {
        const int slot = step->solids.block_slot[block];
        const float *distance = step->solids.distance + (size_t)slot * SK_BLOCK_CELLS;
        float(*nodes)[4] = frame.mpm->nodes + (size_t)block * SK_BLOCK_CELLS;
        for (int c = 0; slot > 0 && step->solids.obstacle_count && c < SK_BLOCK_CELLS; c++) {
            int cell[3] = {0, 0, 0};
            sk_plain_coordinates(&step->grid, (sk_plain_cell){block, c}, cell);
            if (nodes[c][3] > 0.0f && distance[c] < 0.0f)
                touch_obstacle(&frame, cell, nodes[c]);
        }
    }
    touch_sides(&frame);
}

selkie_code SK_DIM(sk_mpm_nodes)(sk_step *step, selkie_error *error)
{
    sk_mpm *mpm = sk_mpm_of(step);
    const size_t blocks = (size_t)step->grid.block_count;
    SK_TRY(sk_reserve(step->memory, (void **)&mpm->nodes, &mpm->node_capacity, blocks * SK_BLOCK_CELLS,
                      sizeof *mpm->nodes, "nodes", error));
    memset(mpm->nodes, 0, SK_BLOCK_CELLS * sizeof *mpm->nodes);

    /* Forces of the step. */
    sk_force_field *fields;
    SK_TRY(sk_step_scratch(step, (size_t)(sk_force_fields_most(step->scene) + 1) * sizeof *fields, "nodes",
                           (void **)&fields, error));
    node_frame frame = {.step = step, .grid = &step->grid, .solids = &step->solids, .mpm = mpm, .fields = fields};
    frame.full = (float)step->particles_per_cell;
    SK_TRY(sk_step_scratch(step, blocks * sizeof *frame.volumes, "nodes", (void **)&frame.volumes, error));
    if (sk_force_fields_most(step->scene))
        frame.field_count = sk_force_fields_in(step->scene, sk_step_force_window(step), fields);
    for (int d = 0; d < SELKIE_DIM; d++)
        frame.gain[d] = (float)(sk_step_kick(step) * step->scene->gravity[d]);

#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int block = 1; block < step->grid.block_count; block++)
        node_block(&frame, block);
    touch_sides(&frame);
    step->kernel_volume = 0.0;
    for (int block = 1; block < step->grid.block_count; block++)
        step->kernel_volume += frame.volumes[block];
    step->counted_volume = step->surface_volume = step->kernel_volume;
    return SELKIE_OK;
}
