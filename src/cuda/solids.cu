/* Solids on the device.
 *
 * The host computes the fields of the solids (grid/solids.h). Those of static solids are computed for all places of the
 * domain and copied once. Those of moving obstacles and of running inlets are computed in each step for the places near
 * them, and copied. Obstacles are copied with their poses and the primitives of their shapes, for the paths of
 * particles. */
#include "cuda/bodies_parts.h"

extern "C" {
#include "base/block_table.h"
#include "defs/heat.h"
#include "grid/solids.h"
#include "methods/liquid_boundary/liquid_boundary.h"
#include "methods/sources/sources.h"
}

enum { MOST_PARTS = SK_CUDA_MOST_PARTS };

/* An array of the solids: the host's, the device's, and bytes of a slot. */
typedef struct solid_array {
    void **to;
    const void *from;
    size_t bytes;
} solid_array;

enum { SOLID_ARRAYS = 22 };

static int list_arrays(sk_solids *there, const sk_solids *here, solid_array arrays[SOLID_ARRAYS])
{
    const size_t cells = (size_t)here->block_cells;
    const solid_array all[SOLID_ARRAYS] = {
        {(void **)&there->fraction[0], here->fraction[0], cells * sizeof(float)},
        {(void **)&there->fraction[1], here->fraction[1], cells * sizeof(float)},
        {(void **)&there->fraction[2], here->fraction[2], cells * sizeof(float)},
        {(void **)&there->blurred_face[0], here->blurred_face[0], cells * sizeof(float)},
        {(void **)&there->blurred_face[1], here->blurred_face[1], cells * sizeof(float)},
        {(void **)&there->blurred_face[2], here->blurred_face[2], cells * sizeof(float)},
        {(void **)&there->velocity[0], here->velocity[0], cells * sizeof(float)},
        {(void **)&there->velocity[1], here->velocity[1], cells * sizeof(float)},
        {(void **)&there->velocity[2], here->velocity[2], cells * sizeof(float)},
        {(void **)&there->blurred, here->blurred, cells * sizeof(float)},
        {(void **)&there->distance, here->distance, cells * sizeof(float)},
        {(void **)&there->grip, here->grip, cells * sizeof(float)},
        {(void **)&there->friction, here->friction, cells * sizeof(float)},
        {(void **)&there->no_slip, here->no_slip, cells},
        {(void **)&there->closed, here->closed, cells},
        {(void **)&there->covered, here->covered, cells},
        {(void **)&there->barriers, here->barriers, cells},
        {(void **)&there->vents, here->vents, cells},
        {(void **)&there->plain, here->plain, 1},
        {(void **)&there->split, here->split, 1},
        {(void **)&there->exact, here->exact, 1},
        {(void **)&there->slot_share, here->slot_share, sizeof(uint32_t)},
    };
    int count = 0;
    for (int a = 0; a < SOLID_ARRAYS; a++) {
        *all[a].to = all[a].from ? *all[a].to : NULL;
        if (all[a].from)
            arrays[count++] = all[a];
    }
    return count;
}

/* The vents of static obstacles, which change on the device, to the host. */
static selkie_code fetch_vents(sk_cuda *cuda, const sk_solids *solids, selkie_error *error)
{
    const size_t bytes = solids->static_count * (size_t)solids->block_cells;
    if (!cuda->solids.capacity || !cuda->sent->step.solids.vents || !solids->obstacle_count)
        return SELKIE_OK;
    SK_CUDA_TRY(
        cudaMemcpyAsync(solids->vents, cuda->sent->step.solids.vents, bytes, cudaMemcpyDeviceToHost, cuda->stream),
        "a copy of the vents", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of the vents", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_fetch_vents(sk_step *step, selkie_error *error)
{
    return step->cuda ? fetch_vents(step->cuda, &step->solids, error) : SELKIE_OK;
}

selkie_code sk_cuda_send_vents(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_solids *solids = &step->solids;
    if (!cuda || !cuda->solids.capacity || !cuda->sent->step.solids.vents || !solids->obstacle_count)
        return SELKIE_OK;
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->sent->step.solids.vents, solids->vents,
                                solids->static_count * (size_t)solids->block_cells, cudaMemcpyHostToDevice,
                                cuda->stream),
                "a copy of the vents", error);
    return SELKIE_OK;
}

/* Copies the slots from `first` on to the device, with more room if there is too little. */
static selkie_code send_slots(sk_cuda *cuda, const sk_solids *solids, size_t first, selkie_error *error)
{
    solid_array arrays[SOLID_ARRAYS];
    const int count = list_arrays(&cuda->sent->step.solids, solids, arrays);
    if (solids->slot_count > cuda->solids.capacity) {
        const size_t moving = solids->slot_count - solids->static_count;
        SK_TRY(fetch_vents(cuda, solids, error));
        const size_t capacity = solids->static_count + (sk_solids_have_velocity(solids) ? 2 * moving + 64 : 1);
        for (int a = 0; a < count; a++) {
            sk_cuda_give(cuda, *arrays[a].to, cuda->solids.capacity * arrays[a].bytes);
            SK_TRY(sk_cuda_take(cuda, arrays[a].to, capacity * arrays[a].bytes, 1, error));
        }
        cuda->solids.capacity = capacity;
        first = 0;
    }
    for (int a = 0; a < count; a++) {
        const size_t from = first * arrays[a].bytes, bytes = solids->slot_count * arrays[a].bytes - from;
        if (bytes)
            SK_CUDA_TRY(cudaMemcpyAsync((char *)*arrays[a].to + from, (const char *)arrays[a].from + from, bytes,
                                        cudaMemcpyHostToDevice, cuda->stream),
                        "a copy of the solids", error);
    }
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->shadow.solid_slots, cuda->solids.slots,
                                (size_t)cuda->shadow.places * sizeof(int32_t), cudaMemcpyHostToDevice, cuda->stream),
                "a copy of the solids", error);
    return SELKIE_OK;
}

/* Room for as many places. */
static selkie_code reserve_near(sk_cuda_solids *solids, int count, selkie_error *error)
{
    if (count < solids->near_capacity)
        return SELKIE_OK;
    const size_t room = (size_t)count + (size_t)count / 4 + 1;
    free(solids->near.coordinates);
    free(solids->near.faces);
    solids->near_capacity = 0;
    solids->near.coordinates = (int32_t(*)[4])calloc(room, sizeof *solids->near.coordinates);
    solids->near.faces = (int32_t(*)[6])calloc(room, sizeof *solids->near.faces);
    if (!solids->near.coordinates || !solids->near.faces)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for the solids of %d blocks", count);
    solids->near_capacity = (int)room;
    return SELKIE_OK;
}

/* Neighbours of the places of an update, which bodies look for. */
static void link_near(sk_cuda_solids *solids, const int32_t *places, int count)
{
    const sk_grid *near = &solids->near;
    for (int i = 0; i < count; i++)
        solids->near_number[places[i]] = i + 1;
    for (int b = 1; b <= count; b++)
        for (int side = 0; side < 2 * near->dimension; side++) {
            const int d = side / 2, along = near->coordinates[b][d] + (side & 1 ? 1 : -1),
                      stride = d == 0   ? 1
                               : d == 1 ? near->blocks[0]
                                        : near->blocks[0] * near->blocks[1];
            near->faces[b][side] = along < 0 || along >= near->blocks[d]
                                       ? 0
                                       : solids->near_number[places[b - 1] + (side & 1 ? stride : -stride)];
        }
    for (int i = 0; i < count; i++)
        solids->near_number[places[i]] = 0;
}

/* Updates the solids of some places, and takes their slots over. */
static selkie_code update_places(sk_step *step, const int32_t *places, int count, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(reserve_near(&cuda->solids, count, error));
    int32_t(*coordinates)[4] = cuda->solids.near.coordinates;
    int32_t(*faces)[6] = cuda->solids.near.faces;
    sk_grid *near = &cuda->solids.near;
    *near = step->grid;
    near->coordinates = coordinates;
    near->faces = faces;
    near->block_count = count + 1;
    for (int i = 0; i < count; i++) {
        coordinates[i + 1][0] = places[i] % near->blocks[0];
        coordinates[i + 1][1] = places[i] / near->blocks[0] % near->blocks[1];
        coordinates[i + 1][2] = places[i] / near->blocks[0] / near->blocks[1];
    }
    if (cuda->solids.near_number)
        link_near(&cuda->solids, places, count);
    SK_TRY(step->dimension == 2 ? sk_solids_update_2d(&step->solids, near, step->threads, error)
                                : sk_solids_update_3d(&step->solids, near, step->threads, error));
    for (int i = 0; i < count; i++)
        cuda->solids.slots[places[i]] = step->solids.block_slot[i + 1];
    return SELKIE_OK;
}

/* Lists the places that a box reaches, once each. A body also needs those of its modes in the pressure solve: cells
 * around it (the rings of linalg/poisson_modes_dim.c), and the next block, which has the upper faces of its cells. */
static void list_box(sk_cuda *cuda, const sk_grid *grid, const double low[3], const double high[3], int is_body)
{
    const double margin = (is_body ? 10.0 : 3.0) * grid->cell_size;
    int first[3] = {0, 0, 0}, last[3] = {0, 0, 0};
    for (int d = 0; d < grid->dimension; d++) {
        const double block = (double)grid->extent[d] * grid->cell_size;
        const double from = (low[d] - margin - grid->corner[d]) / block,
                     to = (high[d] + (is_body ? fmax(margin, block) : margin) - grid->corner[d]) / block;
        first[d] = from > 0.0 ? (int)fmin(from, (double)grid->blocks[d]) : 0;
        last[d] = to < (double)grid->blocks[d] ? (int)floor(to) : grid->blocks[d] - 1;
    }
    for (int k = first[2]; k <= last[2]; k++)
        for (int j = first[1]; j <= last[1]; j++)
            for (int i = first[0]; i <= last[0]; i++) {
                const int place = i + grid->blocks[0] * (j + grid->blocks[1] * k);
                if (!cuda->solids.listed[place])
                    cuda->solids.list[cuda->solids.list_count++] = place;
                cuda->solids.listed[place] = 1;
            }
}

/* The places near moving obstacles and running inlets. Those of the step before take their static slots again. */
static void list_moving(sk_cuda *cuda, const sk_step *step)
{
    const sk_solids *solids = &step->solids;
    for (int i = 0; i < cuda->solids.list_count; i++) {
        const int place = cuda->solids.list[i];
        cuda->solids.listed[place] = 0;
        cuda->solids.slots[place] = cuda->solids.static_slots[place];
    }
    cuda->solids.list_count = 0;
    for (int o = 0; o < solids->obstacle_count; o++)
        if (solids->obstacles[o].moves)
            list_box(cuda, &step->grid, solids->obstacles[o].low, solids->obstacles[o].high,
                     o >= solids->obstacle_count - solids->body_count);
    for (int i = 0; i < solids->inlet_count; i++)
        if (solids->inlets[i].running)
            list_box(cuda, &step->grid, solids->inlets[i].low, solids->inlets[i].high, 0);
}

/* An array of the host on the device. */
static selkie_code send_array(sk_cuda *cuda, void *address, const void *from, size_t bytes, selkie_error *error)
{
    SK_TRY(sk_cuda_take(cuda, address, bytes, 0, error));
    SK_CUDA_TRY(cudaMemcpyAsync(*(void **)address, from, bytes, cudaMemcpyHostToDevice, cuda->stream),
                "a copy of a mesh", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a copy of a mesh", error);
    return SELKIE_OK;
}

/* The tree of a mesh and its samples, in its own frame: the device has the host's. */
static selkie_code send_mesh(sk_cuda *cuda, sk_mesh_solid *mesh, selkie_error *error)
{
    sk_mesh_tree tree = *mesh->tree;
    const size_t corners = tree.piece_count * (size_t)tree.dimension;
    SK_TRY(send_array(cuda, &tree.corners, mesh->tree->corners, corners * sizeof *tree.corners, error));
    SK_TRY(send_array(cuda, &tree.nodes, mesh->tree->nodes, tree.node_count * sizeof *tree.nodes, error));
    SK_TRY(send_array(cuda, &tree.dipoles, mesh->tree->dipoles, tree.node_count * sizeof *tree.dipoles, error));
    SK_TRY(send_array(cuda, &mesh->tree, &tree, sizeof tree, error));
    if (!mesh->samples)
        return SELKIE_OK;
    const sk_mesh_samples *from = mesh->samples;
    sk_mesh_samples samples = *from;
    size_t blocks = 1, lattice = 1;
    for (int d = 0; d < 3; d++) {
        blocks *= (size_t)from->blocks[d];
        lattice *= (size_t)from->blocks[d] + 1;
    }
    const size_t values = (size_t)from->sampled * SK_SAMPLES_BLOCK;
    SK_TRY(send_array(cuda, &samples.centers, from->centers, blocks * sizeof(float), error));
    SK_TRY(send_array(cuda, &samples.corners, from->corners, lattice * sizeof(float), error));
    SK_TRY(send_array(cuda, &samples.samples_of, from->samples_of, blocks * sizeof(int32_t), error));
    SK_TRY(send_array(cuda, &samples.samples, from->samples, values * sizeof(float), error));
    return send_array(cuda, &mesh->samples, &samples, sizeof samples, error);
}

/* The table of heights and its pyramid. */
static selkie_code send_ground(sk_cuda *cuda, const sk_ground **address, selkie_error *error)
{
    const sk_ground *from = *address;
    sk_ground ground = *from;
    const size_t points = (size_t)from->frame.count[0] * (size_t)from->frame.count[1];
    SK_TRY(send_array(cuda, &ground.heights, from->heights, points * sizeof *from->heights, error));
    for (int level = 0; level < from->levels; level++) {
        const size_t squares = (size_t)from->size[level][0] * (size_t)from->size[level][1];
        SK_TRY(send_array(cuda, &ground.range[level], from->range[level], squares * sizeof *from->range[level], error));
    }
    return send_array(cuda, address, &ground, sizeof ground, error);
}

/* The parts of a shape, with addresses of the device. */
static selkie_code take_parts(sk_cuda *cuda, const sk_shape *shape, sk_shape_part *parts, int *count,
                              selkie_error *error)
{
    *count = sk_shape_parts(shape, parts, MOST_PARTS);
    if (!*count)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "backend: \"cuda\" cannot run a union of more than %d shapes yet; use \"tuned\"", MOST_PARTS);
    for (int n = 0; n < *count; n++)
        if (parts[n].kind == SK_PART_MESH)
            SK_TRY(send_mesh(cuda, &parts[n].mesh, error));
        else if (parts[n].kind == SK_PART_GROUND)
            SK_TRY(send_ground(cuda, &parts[n].ground, error));
    return SELKIE_OK;
}

/* The shape of region number n of the liquid boundaries; NULL: there are fewer. */
static const sk_shape *shape_of_region(const sk_step *step, int n)
{
    const sk_liquid_boundary *boundary = step->objects;
    for (int o = 0; boundary && o < boundary->object_count; o++) {
        if (n < boundary->objects[o].def->region_count)
            return boundary->objects[o].regions[n];
        n -= boundary->objects[o].def->region_count;
    }
    return NULL;
}

/* The primitives of all shapes: of obstacles, sources and drains, regions of liquid boundaries. */
static selkie_code take_shapes(sk_cuda *cuda, const sk_step *step, selkie_error *error)
{
    const sk_sources *sources = step->sources;
    const int streams = sources ? sources->source_count + sources->drain_count : 0;
    const int obstacles = step->solids.obstacle_count;
    int count = obstacles + streams;
    cuda->solids.first_region = count;
    while (shape_of_region(step, count - cuda->solids.first_region))
        count++;
    sk_shape_part *parts = (sk_shape_part *)calloc((size_t)count * MOST_PARTS + 1, sizeof *parts), *there = NULL;
    sk_cuda_shape *shapes = (sk_cuda_shape *)calloc((size_t)count + 1, sizeof *shapes);
    selkie_code code = parts && shapes ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for the shapes");
    if (code == SELKIE_OK)
        code = sk_cuda_take(cuda, &there, ((size_t)count * MOST_PARTS + 1) * sizeof *there, 1, error);
    for (int n = 0; code == SELKIE_OK && n < count; n++) {
        const sk_shape *shape = n < obstacles             ? step->solids.obstacles[n].shape
                                : n < obstacles + streams ? sources->sources[n - obstacles].shape
                                                          : shape_of_region(step, n - obstacles - streams);
        code = take_parts(cuda, shape, parts + n * MOST_PARTS, &shapes[n].count, error);
        shapes[n].parts = there + n * MOST_PARTS;
        cuda->solids.has_thin |= n < obstacles && !step->solids.obstacles[n].is_thick;
    }
    if (code == SELKIE_OK)
        code = sk_cuda_take(cuda, &cuda->solids.shapes, ((size_t)count + 1) * sizeof *shapes, 1, error);
    int failed = 0;
    if (code == SELKIE_OK) {
        failed = (int)cudaMemcpyAsync(there, parts, (size_t)count * MOST_PARTS * sizeof *parts, cudaMemcpyHostToDevice,
                                      cuda->stream);
        failed |= (int)cudaMemcpyAsync(cuda->solids.shapes, shapes, (size_t)count * sizeof *shapes,
                                       cudaMemcpyHostToDevice, cuda->stream);
        failed |= (int)cudaStreamSynchronize(cuda->stream);
    }
    cuda->solids.source_shapes = (sk_cuda_shape *)calloc((size_t)streams + 1, sizeof *shapes);
    if (code == SELKIE_OK && !cuda->solids.source_shapes)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for the shapes");
    if (code == SELKIE_OK)
        memcpy(cuda->solids.source_shapes, shapes + obstacles, (size_t)streams * sizeof *shapes);
    free(parts);
    free(shapes);
    return code != SELKIE_OK ? code : failed ? sk_cuda_failed(failed, "a copy of the shapes", error) : SELKIE_OK;
}

void sk_cuda_release_solids(sk_cuda *cuda)
{
    free(cuda->solids.static_slots);
    free(cuda->solids.slots);
    free(cuda->solids.listed);
    free(cuda->solids.list);
    free(cuda->solids.obstacle_copies);
    free(cuda->solids.source_shapes);
    free(cuda->solids.near.coordinates);
    free(cuda->solids.near.faces);
    free(cuda->solids.near_number);
    memset(&cuda->solids, 0, sizeof cuda->solids);
}

selkie_code sk_cuda_take_solids(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_solids *solids = &step->solids;
    const int places = cuda->shadow.places;
    sk_cuda_release_solids(cuda);
    memset(&cuda->sent->step.solids, 0, sizeof cuda->sent->step.solids);
    cuda->solids.static_slots = (int32_t *)calloc((size_t)places + 1, sizeof(int32_t));
    cuda->solids.slots = (int32_t *)calloc((size_t)places + 1, sizeof(int32_t));
    cuda->solids.list = (int32_t *)calloc((size_t)places + 1, sizeof(int32_t));
    cuda->solids.listed = (uint8_t *)calloc((size_t)places + 1, 1);
    cuda->solids.obstacle_copies =
        (sk_obstacle *)calloc((size_t)solids->obstacle_count + 1, sizeof *cuda->solids.obstacle_copies);
    if (!cuda->solids.static_slots || !cuda->solids.slots || !cuda->solids.list || !cuda->solids.listed ||
        !cuda->solids.obstacle_copies)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for the %d blocks of the domain", places);

    if (solids->body_count || sk_scene_melts(step->scene)) {
        cuda->solids.near_number = (int32_t *)calloc((size_t)places + 1, sizeof(int32_t));
        if (!cuda->solids.near_number)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for the %d blocks of the domain", places);
    }

    /* All places, then their static slots. */
    for (int i = 0; i < places; i++)
        cuda->solids.list[i] = i;
    SK_TRY(update_places(step, cuda->solids.list, places, error));
    for (int i = 0; i < places; i++) {
        const int at[3] = {i % step->grid.blocks[0], i / step->grid.blocks[0] % step->grid.blocks[1],
                           i / step->grid.blocks[0] / step->grid.blocks[1]};
        const int known = sk_block_find(&solids->table, sk_block_key(at[0], at[1], at[2]));
        cuda->solids.static_slots[i] = known > 0 ? known : 0;
        cuda->solids.listed[i] = cuda->solids.slots[i] != cuda->solids.static_slots[i];
        if (cuda->solids.listed[i])
            cuda->solids.list[cuda->solids.list_count++] = i;
    }
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.solid_slots, (size_t)places * sizeof(int32_t), 1, error));
    SK_TRY(send_slots(cuda, solids, 0, error));

    /* Obstacles. */
    SK_TRY(sk_cuda_take(cuda, &cuda->solids.obstacles, ((size_t)solids->obstacle_count + 1) * sizeof(sk_obstacle), 1,
                        error));
    SK_TRY(sk_cuda_take(cuda, &cuda->solids.bins, 3 * SK_SOLID_BINS * solids->bin_words * sizeof(uint64_t), 1, error));
    return take_shapes(cuda, step, error);
}

/* Obstacles with the device's addresses. */
static selkie_code send_obstacles(sk_cuda *cuda, const sk_solids *solids, selkie_error *error)
{
    for (int o = 0; o < solids->obstacle_count; o++) {
        sk_obstacle *copy = &cuda->solids.obstacle_copies[o];
        *copy = solids->obstacles[o];
        copy->def = NULL;
        copy->shape = (sk_shape *)(void *)(cuda->solids.shapes + o);
        copy->placed = solids->obstacles[o].placed ? &cuda->solids.obstacles[o].pose : NULL;
    }
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->solids.obstacles, cuda->solids.obstacle_copies,
                                (size_t)solids->obstacle_count * sizeof(sk_obstacle), cudaMemcpyHostToDevice,
                                cuda->stream),
                "a copy of the obstacles", error);
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->solids.bins, solids->bins,
                                3 * SK_SOLID_BINS * solids->bin_words * sizeof(uint64_t), cudaMemcpyHostToDevice,
                                cuda->stream),
                "a copy of the obstacles", error);
    return SELKIE_OK;
}

/* The solids of the step with their pose at a time (s). */
static selkie_code place_solids(sk_step *step, double time, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_solids *solids = &step->solids;
    if (!solids->obstacle_count && !solids->inlet_count)
        return SELKIE_OK;
    sk_solids_move(solids, time);
    sk_solids_step(solids, step->time, step->time + step->dt);
    if (sk_solids_have_velocity(solids)) {
        list_moving(cuda, step);
        SK_TRY(update_places(step, cuda->solids.list, cuda->solids.list_count, error));
        SK_TRY(send_slots(cuda, solids, solids->static_count, error));
    }
    return solids->obstacle_count ? send_obstacles(cuda, solids, error) : SELKIE_OK;
}

selkie_code sk_cuda_move_solids(sk_step *step, selkie_error *error)
{
    /* As sk_move_solids. The density correction of unilateral incompressibility comes first and takes the start. */
    const selkie_scene *scene = step->scene;
    const int at_end = scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL &&
                       !scene->unilateral.density_correction && scene->discretization == SELKIE_DISCRETIZATION_GRID;
    return place_solids(step, at_end ? step->time + step->dt : step->time, error);
}

/* The solids of the step, with the device's arrays. */
static selkie_code send_solids(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_solids arrays = cuda->sent->step.solids;
    cuda->sent->step.solids = step->solids;
    sk_cuda_point_solids(step, &arrays);
    if (cuda->drag)
        cuda->sent->step.solids.piece_first = cuda->drag->piece_first;
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->device->step.solids, &cuda->sent->step.solids, sizeof step->solids,
                                cudaMemcpyHostToDevice, cuda->stream),
                "a copy of the solids", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_near_solids(sk_step *step, const int32_t *places, int count, selkie_error *error)
{
    sk_cuda_solids *solids = &step->cuda->solids;
    for (int i = 0; i < count; i++) {
        solids->list[i] = places[i];
        solids->listed[places[i]] = 1;
    }
    solids->list_count = count;
    return update_places(step, solids->list, count, error);
}

selkie_code sk_cuda_send_near_solids(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    for (int i = 0; i < cuda->solids.list_count; i++)
        cuda->solids.slots[cuda->solids.list[i]] = step->solids.block_slot[i + 1];
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a step", error); /* the step has been sent */
    SK_TRY(send_slots(cuda, &step->solids, step->solids.static_count, error));
    return send_solids(step, error);
}

selkie_code sk_cuda_end_solids(sk_step *step, selkie_error *error)
{
    SK_CUDA_TRY(cudaStreamSynchronize(step->cuda->stream), "a step", error); /* the step has been sent */
    SK_TRY(place_solids(step, step->time + step->dt, error));
    return send_solids(step, error);
}

selkie_code sk_cuda_send_velocities(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_solids *solids = &step->solids;
    const size_t cells = (size_t)solids->block_cells, first = solids->static_count * cells,
                 bytes = (solids->slot_count * cells - first) * sizeof(float);
    for (int d = 0; bytes && d < step->dimension; d++)
        SK_CUDA_TRY(cudaMemcpyAsync(cuda->sent->step.solids.velocity[d] + first, solids->velocity[d] + first, bytes,
                                    cudaMemcpyHostToDevice, cuda->stream),
                    "a copy of the solids", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_send_ends(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a step", error); /* the step has been sent */
    SK_TRY(sk_cuda_send_velocities(step, error));
    SK_TRY(send_obstacles(cuda, &step->solids, error));
    SK_TRY(send_solids(step, error));
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->device->constants, &cuda->sent->constants, sizeof cuda->sent->constants,
                                cudaMemcpyHostToDevice, cuda->stream),
                "a copy of the solids", error);
    return SELKIE_OK;
}

void sk_cuda_point_solids(const sk_step *step, const sk_solids *arrays)
{
    sk_cuda *cuda = step->cuda;
    sk_solids *there = &cuda->sent->step.solids;
    sk_solids keep = *arrays;
    solid_array to[SOLID_ARRAYS], from[SOLID_ARRAYS];
    const int count = list_arrays(there, &step->solids, to);
    list_arrays(&keep, &step->solids, from);
    for (int a = 0; a < count; a++)
        *to[a].to = *from[a].to;
    there->block_slot = arrays->block_slot;
    there->obstacles = cuda->solids.obstacles;
    there->bins = cuda->solids.bins;

    /* The box around all obstacles during the step, with a margin for the gap. */
    sk_cuda_constants *constants = &cuda->sent->constants;
    const double margin = 0.1 * step->grid.cell_size;
    for (int d = 0; d < 3; d++) {
        double low = INFINITY, high = -INFINITY;
        for (int o = 0; o < step->solids.obstacle_count; o++) {
            low = fmin(low, step->solids.obstacles[o].swept_low[d]);
            high = fmax(high, step->solids.obstacles[o].swept_high[d]);
        }
        constants->obstacles_low[d] = (float)(low - margin);
        constants->obstacles_high[d] = (float)(high + margin);
    }
}
