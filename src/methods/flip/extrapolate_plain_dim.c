/* The plain form of the extrapolation, one face at a time: see extrapolate_dim.c. */
#include "base/dimension.h"
#include "grid/barriers.h"
#include "grid/extrapolate_kernels.h"
#include "grid/plain.h"
#include "grid/plain_forms.h"
#include "grid/transfer_kernels.h"
#include "methods/cells.h"
#include "methods/flip/constrain_plain.h"
#include "methods/flip/flip.h"
#include "methods/flip/reflection.h"
#include "methods/flip/shore_plain.h"
#include "methods/flip/transfer_options.h"

enum { LAYERS = 2 };

/* Constrains a velocity, the fields from `first` on, behind solids in some blocks. `results` is scratch, with place for
 * the faces of each of them. */
static void constrain(sk_step *step, int first, const int32_t *blocks, int count, sk_constrained_face *results)
{
    const sk_grid *grid = &step->grid;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int w = 0; w < count; w++) {
        sk_constrained_face *face = results + (size_t)w * SELKIE_DIM * SK_BLOCK_CELLS;
        SK_PLAIN_EACH_CELL(cell, blocks[w])
        for (int d = 0; d < SELKIE_DIM; d++)
            *face++ = constrain_face(step, first, cell, d, SK_DIM(sk_barriers_normal));
    }
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int w = 0; w < count; w++) {
        const sk_constrained_face *face = results + (size_t)w * SELKIE_DIM * SK_BLOCK_CELLS;
        SK_PLAIN_EACH_CELL(cell, blocks[w])
        for (int d = 0; d < SELKIE_DIM; d++, face++) {
            grid->fields[first + d][sk_plain_index(cell)] = face->velocity;
            grid->fields[SK_FIELD_CHANGE_X + d][sk_plain_index(cell)] = face->change;
        }
    }
}

selkie_code SK_DIM(sk_flip_extrapolate_plain)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    int32_t *blocks;
    SK_TRY(
        sk_step_scratch(step, (size_t)grid->block_count * 3 * sizeof *blocks, "extrapolate", (void **)&blocks, error));
    int32_t *solid_blocks = blocks + grid->block_count, *constrained = solid_blocks + grid->block_count;
    int count = 0, solid_count = 0, constrained_count = 0;

    /* Faces in the air beside the surface change like the liquid. */
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count * sk_step_has_pressure(step); b++)
        SK_PLAIN_EACH_CELL(cell, b)
    for (int d = 0; d < SELKIE_DIM; d++)
        if (follows_shore(step, cell, d))
            move_shore_face(step, cell, d);

    /* Blocks with unknown faces, with solids, and with other solids than plain walls. */
    for (int b = 1; b < grid->block_count; b++) {
        const int slot = step->solids.block_slot[b];
        if (!has_unknown_near_known(grid, b))
            continue;
        blocks[count++] = b;
        if (slot)
            solid_blocks[solid_count++] = b;
        /* Behind plain walls the means are right already. */
        if (slot && !step->solids.plain[slot])
            constrained[constrained_count++] = b;
    }
    float *const scratch[3] = {grid->fields[SK_FIELD_FACE_X], grid->fields[SK_FIELD_FACE_Y],
                               grid->fields[SK_FIELD_FACE_Z]};
    float *velocities[2 * SELKIE_DIM];
    for (int d = 0; d < SELKIE_DIM; d++) {
        velocities[d] = grid->fields[SK_FIELD_VELOCITY_X + d];
        velocities[SELKIE_DIM + d] = grid->fields[step->end_velocity + d];
    }
    const sk_extrapolation of_velocity = {.fields = velocities,
                                          .scratch = scratch,
                                          .field_count = SELKIE_DIM,
                                          .groups = flip_reflects(step) ? 2 : 1,
                                          .blocks = blocks,
                                          .block_count = count,
                                          .layers = LAYERS,
                                          .threads = step->threads};
    SK_DIM(sk_extrapolate_plain)(grid, &of_velocity);
    if (flip_transfer_options(step).kind == SK_TRANSFER_FLIP) {
        sk_extrapolation of_change = of_velocity;
        of_change.fields = grid->fields + SK_FIELD_CHANGE_X;
        of_change.groups = 1;
        of_change.blocks = solid_blocks;
        of_change.block_count = solid_count;
        of_change.layers = 1;
        SK_DIM(sk_extrapolate_plain)(grid, &of_change);
    }
    sk_constrained_face *results;
    SK_TRY(sk_step_scratch(step, ((size_t)constrained_count * SELKIE_DIM * SK_BLOCK_CELLS + 1) * sizeof *results,
                           "extrapolate", (void **)&results, error));
    constrain(step, SK_FIELD_VELOCITY_X, constrained, constrained_count, results);
    if (flip_reflects(step))
        constrain(step, step->end_velocity, constrained, constrained_count, results);
    return SELKIE_OK;
}
