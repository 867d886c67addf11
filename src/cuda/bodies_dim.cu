/* The phases of rigid bodies in the liquid: what the host needs of the grid, and what it sends. */
#include "cuda/bodies_parts.h"
#include "cuda/grid_parts.h"
#include "cuda/poisson_parts.h"

extern "C" {
#include "rigid/rigid.h"
}

/* An array in staged memory: rounded up, so that each begins where any type may. */
static size_t add_part(size_t *total, size_t bytes)
{
    const size_t at = *total;
    *total += (bytes + 15) / 16 * 16;
    return at;
}

static int32_t place_of(const sk_grid *grid, int block)
{
    const int32_t *at = grid->coordinates[block];
    return at[0] + grid->blocks[0] * (at[1] + grid->blocks[1] * at[2]);
}

/* --- before the pressure --- */

/* Faces of the liquid that a body covers in part and no particle reaches move with the body: fill_faces of
 * rigid_liquid/couple_dim.c. A thread block a place, a thread a cell; bit d of a mask: a body covers the face. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    fill_faces(const sk_step *step, const sk_cuda_data *data, const int32_t *places, const uint8_t *masks, int count)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    for (int n = (int)blockIdx.x; n < count; n += (int)gridDim.x) {
        const sk_plain_cell cell = {data->slot_of_place[places[n]], (int)threadIdx.x};
        const int mask = masks[(size_t)n * SK_BLOCK_CELLS + threadIdx.x];
        if (!cell.slot || !mask)
            continue;
        const size_t here = sk_plain_index(cell), solid = sk_plain_solid_index(&step->solids, cell);
        for (int d = 0; d < SELKIE_DIM; d++) {
            float *velocity = &grid->fields[SK_FIELD_VELOCITY_X + d][here];
            const size_t before = sk_plain_index(sk_plain_next(grid, cell, d, -1));
            if (!(mask >> d & 1) || *velocity == *velocity ||
                ((grid->kinds[here] & SK_CELL_KIND_MASK) != SK_CELL_LIQUID &&
                 (grid->kinds[before] & SK_CELL_KIND_MASK) != SK_CELL_LIQUID))
                continue;
            *velocity = step->solids.velocity[d][solid];
            grid->fields[SK_FIELD_CHANGE_X + d][here] =
                *velocity - (float)(step->scene->gravity[d] * sk_step_kick(step));
        }
    }
}

/* The faces that bodies cover, of the places with bodies near them. Returns the number of these places. */
static int list_covered(const sk_solids *solids, const sk_grid *near, int32_t *places, uint8_t *masks)
{
    int count = 0;
    for (int b = 1; b < near->block_count; b++) {
        if (solids->piece_first[b] == solids->piece_first[b + 1])
            continue;
        uint8_t *mask = masks + (size_t)count * SK_BLOCK_CELLS;
        places[count++] = place_of(near, b);
        memset(mask, 0, SK_BLOCK_CELLS);
        for (uint32_t n = solids->piece_first[b]; n < solids->piece_first[b + 1]; n++) {
            const sk_body_piece *piece = &solids->pieces[n];
            for (int k = piece->low[2]; k < piece->high[2]; k++)
                for (int j = piece->low[1]; j < piece->high[1]; j++)
                    for (int i = piece->low[0]; i < piece->high[0]; i++)
                        for (int d = 0; d < SELKIE_DIM; d++) {
                            const int c = i + SK_BLOCK_N * (j + SK_BLOCK_N * k);
                            if (solids->piece_share[d][(size_t)piece->share * SK_BLOCK_CELLS + (size_t)c] > 0.0f)
                                mask[c] |= (uint8_t)(1 << d);
                        }
        }
    }
    return count;
}

selkie_code SK_DIM(sk_cuda_couple)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(sk_cuda_take_bodies(step, error));
    sk_cuda_staged *faces = &cuda->bodies->faces;
    const sk_grid own = use_near_grid(step);
    const selkie_code code = SK_DIM(sk_rigid_liquid_couple)(step, error);
    step->grid = own;
    SK_TRY(code);
    SK_TRY(sk_cuda_send_velocities(step, error));

    const sk_grid *near = &cuda->solids.near;
    size_t total = 0;
    const size_t masks = add_part(&total, (size_t)near->block_count * SK_BLOCK_CELLS),
                 places = add_part(&total, (size_t)near->block_count * sizeof(int32_t));
    SK_TRY(sk_cuda_stage(faces, total, error));
    const int count =
        list_covered(&step->solids, near, (int32_t *)(void *)(faces->here + places), (uint8_t *)faces->here + masks);
    if (!count)
        return SELKIE_OK;
    SK_CUDA_TRY(cudaMemcpyAsync(faces->there, faces->here, total, cudaMemcpyHostToDevice, cuda->stream),
                "a copy of the bodies", error);
    SK_LAUNCH(cuda, fill_faces, count < SK_CUDA_WIDE ? count : SK_CUDA_WIDE, SK_BLOCK_CELLS, &cuda->device->step,
              cuda->data, (const int32_t *)(const void *)(faces->there + places), (const uint8_t *)faces->there + masks,
              count);
    return SELKIE_OK;
}

/* --- the lists of the solve --- */

enum { ROW_ARRAYS = SELKIE_DIM + 1 }; /* faces and the diagonal */

/* Copies the rows of the matrix in some places, and their slots: [array][block][cell]. Block 0 is empty. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    pack_rows(const sk_step *step, const sk_cuda_data *data, const sk_cuda_solver *solver, const int32_t *places,
              int count, float *rows, int32_t *slots)
{
    SK_CUDA_WAIT();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        slots[count] = solver->unknowns[0];
    for (int n = (int)blockIdx.x; n < count; n += (int)gridDim.x) {
        const int slot = n ? data->slot_of_place[places[n]] : 0;
        const size_t from = (size_t)slot * SK_BLOCK_CELLS + threadIdx.x, to = (size_t)n * SK_BLOCK_CELLS + threadIdx.x,
                     array = (size_t)count * SK_BLOCK_CELLS;
        for (int d = 0; d < ROW_ARRAYS; d++)
            rows[d * array + to] =
                slot ? step->grid.fields[d < SELKIE_DIM ? (int)SK_FIELD_FACE_X + d : (int)SK_FIELD_DIAGONAL][from]
                     : 0.0f;
        if (threadIdx.x == 0)
            slots[n] = slot;
    }
}

/* The rows near the bodies, here. */
typedef struct near_rows {
    const float *rows;
    const int32_t *slots; /* [blocks + 1] of the places on the device; then the number of unknowns */
} near_rows;

static selkie_code fetch_rows(sk_step *step, near_rows *near, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_staged *staged = &cuda->bodies->rows;
    const sk_grid *grid = &cuda->solids.near;
    const size_t blocks = (size_t)grid->block_count;
    size_t total = 0;
    const size_t rows = add_part(&total, ROW_ARRAYS * blocks * SK_BLOCK_CELLS * sizeof(float)),
                 slots = add_part(&total, (blocks + 1) * sizeof(int32_t)),
                 places = add_part(&total, blocks * sizeof(int32_t));
    SK_TRY(sk_cuda_stage(staged, total, error));
    int32_t *list = (int32_t *)(void *)(staged->here + places);
    list[0] = 0;
    for (int b = 1; b < grid->block_count; b++)
        list[b] = place_of(grid, b);
    SK_CUDA_TRY(
        cudaMemcpyAsync(staged->there + places, list, blocks * sizeof *list, cudaMemcpyHostToDevice, cuda->stream),
        "a copy of the bodies", error);
    SK_LAUNCH_AFTER(cuda, pack_rows, grid->block_count < SK_CUDA_WIDE ? grid->block_count : SK_CUDA_WIDE,
                    SK_BLOCK_CELLS, &cuda->device->step, cuda->data, cuda->solver,
                    (const int32_t *)(const void *)(staged->there + places), grid->block_count,
                    (float *)(void *)(staged->there + rows), (int32_t *)(void *)(staged->there + slots));
    SK_CUDA_TRY(cudaMemcpyAsync(staged->here, staged->there, slots + (blocks + 1) * sizeof(int32_t),
                                cudaMemcpyDeviceToHost, cuda->stream),
                "a copy of the matrix", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of the matrix", error);
    near->rows = (const float *)(const void *)(staged->here + rows);
    near->slots = (const int32_t *)(const void *)(staged->here + slots);
    return SELKIE_OK;
}

/* Cell numbers of the device. */
static uint32_t cell_there(const int32_t *slots, size_t cell)
{
    return (uint32_t)slots[cell / SK_BLOCK_CELLS] * SK_BLOCK_CELLS + (uint32_t)(cell % SK_BLOCK_CELLS);
}

/* Places of the arrays of a list in staged memory. */
typedef struct list_places {
    size_t at, next, mover, value, first;
} list_places;

static list_places place_list(size_t *total, size_t count, int movers)
{
    list_places places;
    places.at = add_part(total, count * sizeof(uint32_t));
    places.next = add_part(total, count * sizeof(uint32_t));
    places.mover = add_part(total, count * sizeof(int32_t));
    places.value = add_part(total, count * sizeof(float4));
    places.first = add_part(total, ((size_t)movers + 1) * sizeof(uint32_t));
    return places;
}

static void write_list(const sk_cuda_staged *staged, const list_places *places, const sk_modes_view_list *list,
                       const int32_t *slots, int movers, sk_cuda_mode_list *to)
{
    uint32_t *at = (uint32_t *)(void *)(staged->here + places->at),
             *first = (uint32_t *)(void *)(staged->here + places->first);
    for (size_t e = 0; e < list->count; e++)
        at[e] = cell_there(slots, list->cell[e]);
    for (int m = 0; m <= movers; m++)
        first[m] = (uint32_t)list->first[m];
    memcpy(staged->here + places->next, list->next, list->count * sizeof *list->next);
    memcpy(staged->here + places->mover, list->mover, list->count * sizeof *list->mover);
    memcpy(staged->here + places->value, list->value, list->count * sizeof *list->value);
    to->count = (uint32_t)list->count;
    to->at = (uint32_t *)(void *)(staged->there + places->at);
    to->next = (uint32_t *)(void *)(staged->there + places->next);
    to->mover = (int32_t *)(void *)(staged->there + places->mover);
    to->value = (float4 *)(void *)(staged->there + places->value);
    to->first = (uint32_t *)(void *)(staged->there + places->first);
}

/* The entries of all bodies in unknown cells, in the order of the bodies. Returns their number. */
static uint32_t write_entries(const sk_poisson_modes *modes, const near_rows *near, const float *diagonal,
                              uint32_t *first, uint32_t *at, float *flux)
{
    uint32_t count = 0;
    memset(first, 0, ((size_t)modes->body_count + 2) * sizeof *first);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t e = 0; e < modes->entry_count; e++) {
            const sk_poisson_mode_entry *entry = &modes->entries[e];
            if (!(diagonal[entry->cell] > SK_SMALLEST_DIAGONAL))
                continue;
            if (pass == 0) {
                first[entry->body + 2]++;
                continue;
            }
            const uint32_t n = first[entry->body + 1]++;
            at[n] = cell_there(near->slots, (size_t)entry->cell);
            memcpy(flux + 6 * (size_t)n, entry->flux, 6 * sizeof *flux);
            count++;
        }
        for (int b = 0; pass == 0 && b < modes->body_count; b++)
            first[b + 2] += first[b + 1];
    }
    return count;
}

/* Sums of the columns of W. */
static void write_columns(const sk_modes_view *view, double *column)
{
    for (int m = 0; m < view->mover_count; m++)
        for (int k = 0; k < 3; k++) {
            column[3 * m + k] = 0.0;
            for (size_t e = view->flux.first[m]; e < view->flux.first[m + 1]; e++)
                column[3 * m + k] += (double)view->flux.value[e][k];
        }
}

/* Sends the lists. */
static selkie_code send_lists(sk_step *step, const near_rows *near, const float *diagonal, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_bodies *bodies = cuda->bodies;
    const sk_modes_view *view = &bodies->view;
    const sk_poisson_modes *given = step->modes;
    sk_cuda_modes *to = &bodies->modes_shadow;
    const int movers = view->mover_count;
    const size_t rows = 3 * (size_t)movers, square = rows * rows * sizeof(double), row = rows * sizeof(double);
    size_t total = 0;
    const list_places flux = place_list(&total, movers ? view->flux.count : 0, movers),
                      space = place_list(&total, movers ? view->space.count : 0, movers);
    const size_t image = add_part(&total, movers ? view->space.count * sizeof(float4) : 0),
                 response = add_part(&total, (size_t)movers * 9 * sizeof(double)), inverse = add_part(&total, square),
                 coupling = add_part(&total, square), column = add_part(&total, row),
                 entry_first = add_part(&total, ((size_t)given->body_count + 2) * sizeof(uint32_t)),
                 entry_at = add_part(&total, given->entry_count * sizeof(uint32_t)),
                 entry_flux = add_part(&total, given->entry_count * 6 * sizeof(float)), sent = total,
                 sums = add_part(&total, 5 * row), velocities = add_part(&total, 2 * (size_t)movers * sizeof(float4)),
                 impulse = add_part(&total, (size_t)given->body_count * 6 * sizeof(double));
    SK_TRY(sk_cuda_stage(&bodies->lists, total, error));
    char *here = bodies->lists.here, *there = bodies->lists.there;

    memset(to, 0, sizeof *to);
    to->mover_count = movers;
    to->body_count = given->body_count;
    if (movers) {
        write_list(&bodies->lists, &flux, &view->flux, near->slots, movers, &to->flux);
        write_list(&bodies->lists, &space, &view->space, near->slots, movers, &to->space);
        memcpy(here + image, view->image, view->space.count * sizeof *view->image);
        memcpy(here + response, view->response, (size_t)movers * sizeof *view->response);
        memcpy(here + inverse, view->inverse, square);
        memcpy(here + coupling, view->coupling, square);
        write_columns(view, (double *)(void *)(here + column));
    }
    write_entries(given, near, diagonal, (uint32_t *)(void *)(here + entry_first),
                  (uint32_t *)(void *)(here + entry_at), (float *)(void *)(here + entry_flux));
    to->image = (float4 *)(void *)(there + image);
    to->response = (double *)(void *)(there + response);
    to->inverse = (double *)(void *)(there + inverse);
    to->coupling = (double *)(void *)(there + coupling);
    to->column = (double *)(void *)(there + column);
    to->entry_first = (uint32_t *)(void *)(there + entry_first);
    to->entry_at = (uint32_t *)(void *)(there + entry_at);
    to->entry_flux = (float *)(void *)(there + entry_flux);
    double **const vectors[5] = {&to->sums, &to->moved, &to->wanted, &to->right, &to->start};
    for (int n = 0; n < 5; n++)
        *vectors[n] = (double *)(void *)(there + sums) + (size_t)n * rows;
    to->of_space = (float4 *)(void *)(there + velocities);
    to->of_flux = to->of_space + movers;
    to->impulse = (double *)(void *)(there + impulse);
    SK_CUDA_TRY(cudaMemcpyAsync(there, here, sent, cudaMemcpyHostToDevice, cuda->stream), "a copy of the bodies",
                error);
    SK_CUDA_TRY(cudaMemcpyAsync(bodies->modes, to, sizeof *to, cudaMemcpyHostToDevice, cuda->stream),
                "a copy of the bodies", error);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_read_modes)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_grid *grid = &cuda->solids.near;
    near_rows near;
    SK_TRY(fetch_rows(step, &near, error));
    const size_t array = (size_t)grid->block_count * SK_BLOCK_CELLS;
    const float *diagonal = near.rows + SELKIE_DIM * array;
    sk_poisson_system system;
    memset(&system, 0, sizeof system);
    system.block_count = grid->block_count;
    system.coordinates = grid->coordinates;
    system.faces = grid->faces;
    for (int d = 0; d < SELKIE_DIM; d++)
        system.face[d] = near.rows + (size_t)d * array;
    system.diagonal = system.right_side = diagonal;
    system.modes = step->modes;
    SK_TRY(SK_DIM(sk_poisson_view_modes)(step->solver, &system, near.slots[grid->block_count], step->threads,
                                         &cuda->bodies->view, error));
    return send_lists(step, &near, diagonal, error);
}

/* --- after the pressure --- */

/* W^T q of each body, in a fixed order. A thread block a body. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS) add_impulses(const sk_step *step, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    const float *q = step->grid.fields[SK_FIELD_POTENTIAL];
    for (int b = (int)blockIdx.x; b < modes->body_count; b += (int)gridDim.x) {
        double sums[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
        for (uint32_t e = modes->entry_first[b] + threadIdx.x; e < modes->entry_first[b + 1]; e += blockDim.x)
            for (int k = 0; k < 6; k++)
                sums[k] += (double)q[modes->entry_at[e]] * (double)modes->entry_flux[6 * (size_t)e + k];
        for (int k = 0; k < 6; k++) {
            const double sum = sk_cuda_sum(sums[k]);
            if (threadIdx.x == 0)
                modes->impulse[6 * b + k] = sum;
        }
    }
}

selkie_code SK_DIM(sk_cuda_sum_modes)(sk_step *step, const double (**sums)[SK_POISSON_MODES], selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_cuda_modes *modes = &cuda->bodies->modes_shadow;
    const int bodies = modes->body_count;
    char *here = cuda->bodies->lists.here + ((char *)modes->impulse - cuda->bodies->lists.there);
    SK_LAUNCH_AFTER(cuda, add_impulses, bodies < SK_CUDA_WIDE ? bodies : SK_CUDA_WIDE, SK_CUDA_THREADS,
                    &cuda->device->step, cuda->bodies->modes);
    SK_CUDA_TRY(cudaMemcpyAsync(here, modes->impulse, (size_t)bodies * 6 * sizeof(double), cudaMemcpyDeviceToHost,
                                cuda->stream),
                "the impulses on the bodies", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the impulses on the bodies", error);
    *sums = (const double(*)[SK_POISSON_MODES])(const void *)here;
    return SELKIE_OK;
}

/* Impulses of the pressure on the bodies, for the whole step. */
static selkie_code take_impulses(sk_step *step, selkie_error *error)
{
    const double h = step->grid.cell_size, mass = step->density * pow(h, SELKIE_DIM) * (1.0 + step->reflection);
    const double(*sums)[SK_POISSON_MODES];
    SK_TRY(SK_DIM(sk_cuda_sum_modes)(step, &sums, error));
    for (int b = 0; b < step->rigid->body_count; b++) {
        sk_rigid_body *body = &step->rigid->bodies[b];
        for (int d = 0; d < SELKIE_DIM; d++)
            body->impulse[d] += mass * sums[b][d];
        for (int k = SELKIE_DIM; k < (SELKIE_DIM == 3 ? 6 : 3); k++)
            body->angular_impulse[SELKIE_DIM == 3 ? k - 3 : 2] += mass * h * sums[b][k];
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_bodies)(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_begin(step, error));
    if (sk_step_has_pressure(step))
        SK_TRY(take_impulses(step, error));
    const sk_grid own = use_near_grid(step);
    const selkie_code code = SK_DIM(sk_rigid_liquid_move)(step, error);
    step->grid = own;
    SK_TRY(code);
    return sk_cuda_send_ends(step, error);
}
