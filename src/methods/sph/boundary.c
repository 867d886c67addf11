#include "methods/sph/boundary.h"

#include <math.h>
#include <string.h>

#include "geom/surface_points.h"
#include "methods/impulse_time.h"
#include "methods/sph/sph_kernels.h"
#include "methods/sph/walls.h"
#include "rigid/rigid.h"

/* --- Volumes --- */

typedef struct kernel {
    double support, factor;
    int wendland;
} kernel;

static kernel kernel_of(const sk_step *step)
{
    const sk_sph *sph = step->sph;
    kernel k = {.support = sph->support, .wendland = sk_sph_is_wendland(step->scene)};
    k.factor = sph->kernel_scale * sk_sph_kernel_factor(k.wendland, step->dimension, k.support);
    return k;
}

static double kernel_value(const kernel *k, double r)
{
    float q = (float)(r / k->support);
    return k->factor * sk_sph_kernel(k->wendland, q);
}

/* The sum of the kernel over a flat lattice of boundary particles. */
static double flat_sum(const sk_step *step, const kernel *k)
{
    double spacing = step->sph->point_spacing, sum = 0.0;
    int reach = (int)ceil(k->support / spacing), deep = step->dimension == 3 ? reach : 0;
    for (int z = -deep; z <= deep; z++)
        for (int x = -reach; x <= reach; x++)
            sum += kernel_value(k, spacing * sqrt((double)(x * x + z * z)));
    return sum;
}

typedef struct bucket_list {
    int32_t *buckets, *next;
    size_t mask;
    double cell;
} bucket_list;

static size_t bucket_of(const bucket_list *list, int64_t x, int64_t y, int64_t z)
{
    uint64_t hash =
        (uint64_t)x * 0x9e3779b97f4a7c15ULL ^ (uint64_t)y * 0xc2b2ae3d27d4eb4fULL ^ (uint64_t)z * 0x165667b19e3779f9ULL;
    return (size_t)(hash ^ hash >> 29) & list->mask;
}

static double sum_around(const bucket_list *list, const kernel *k, int dimension, const float (*points)[3], size_t p)
{
    int64_t middle[3];
    double sum = 0.0;
    size_t asked[27];
    int asked_count = 0, deep = dimension == 3;
    for (int d = 0; d < 3; d++)
        middle[d] = (int64_t)floor(points[p][d] / list->cell);
    for (int dz = -deep; dz <= deep; dz++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                size_t bucket = bucket_of(list, middle[0] + dx, middle[1] + dy, middle[2] + dz);
                int known = 0; /* two cells may share a bucket */
                for (int a = 0; a < asked_count; a++)
                    known |= asked[a] == bucket;
                if (known)
                    continue;
                asked[asked_count++] = bucket;
                for (int32_t other = list->buckets[bucket]; other >= 0; other = list->next[other]) {
                    double x = points[other][0] - points[p][0], y = points[other][1] - points[p][1],
                           z = points[other][2] - points[p][2], r2 = x * x + y * y + z * z;
                    if (r2 < k->support * k->support)
                        sum += kernel_value(k, sqrt(r2));
                }
            }
    return sum;
}

/* V_b = gamma / sum_k W_bk over the given points. */
static selkie_code find_volumes(const sk_step *step, size_t count, const float (*points)[3], float *volumes,
                                selkie_error *error)
{
    const kernel k = kernel_of(step);
    const sk_sph *sph = step->sph;
    const double gamma = sph->volume * pow(sph->point_spacing / sph->spacing, step->dimension - 1) * flat_sum(step, &k);

    /* Allocate a hash table with at least one bucket per point. */
    size_t buckets = 64;
    while (buckets < count)
        buckets *= 2;
    bucket_list list = {.mask = buckets - 1, .cell = k.support};
    list.buckets = sk_allocate(step->memory, buckets * sizeof *list.buckets);
    list.next = sk_allocate(step->memory, (count + 1) * sizeof *list.next);
    if (!list.buckets || !list.next) {
        sk_release(step->memory, list.buckets);
        sk_release(step->memory, list.next);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: no memory for the volumes of %zu boundary particles", count);
    }

    /* Link the points of each bucket into a list. */
    memset(list.buckets, -1, buckets * sizeof *list.buckets);
    for (size_t p = 0; p < count; p++) {
        size_t bucket = bucket_of(&list, (int64_t)floor(points[p][0] / list.cell),
                                  (int64_t)floor(points[p][1] / list.cell), (int64_t)floor(points[p][2] / list.cell));
        list.next[p] = list.buckets[bucket];
        list.buckets[bucket] = (int32_t)p;
    }

    /* The volume of each point from the points around it. */
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (size_t p = 0; p < count; p++)
        volumes[p] = (float)(gamma / sum_around(&list, &k, step->dimension, points, p));
    sk_release(step->memory, list.buckets);
    sk_release(step->memory, list.next);
    return SELKIE_OK;
}

/* --- Sampling --- */

static selkie_code add_points(sk_step *step, sk_sph_walls *walls, const sk_surface_points *points, wall_part part,
                              selkie_error *error)
{
    size_t total = walls->count + points->count;
    if (total > INT32_MAX / 2)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "sph: %zu boundary particles are too many: make the domain smaller or its cells larger", total);
    SK_TRY(sk_reserve(step->memory, (void **)&walls->local, &walls->local_capacity, total + 1, sizeof *walls->local,
                      "boundary particles", error));
    for (size_t p = 0; p < points->count; p++)
        for (int d = 0; d < 3; d++)
            walls->local[walls->count + p][d] = (float)points->points[p][d];
    part.first = walls->count;
    part.count = points->count;
    walls->parts[walls->part_count++] = part;
    walls->moving |= part.moves;
    walls->count = total;
    return SELKIE_OK;
}

/* A slip length b: the particles beside a wall, half a spacing away, shear over spacing/2 + b. */
static float grip_of(const sk_sph *sph, double slip_length)
{
    return (float)(0.5 * sph->spacing / (0.5 * sph->spacing + slip_length));
}

/* Adds the closed sides of the domain as sheets without particles: the free-slip sides, or the no-slip ones if `rough`.
 */
static selkie_code add_domain(sk_step *step, sk_sph_walls *walls, int rough, sk_surface_points *points,
                              selkie_error *error)
{
    const sk_solids *solids = &step->solids;
    sk_sph_boundary *boundary = &step->sph->boundary;
    const double depth = 0.5 * step->sph->spacing;
    double friction = 0.0;
    for (int side = 0; side < 2 * step->dimension; side++) {
        int axis = side / 2, high = side & 1;
        if (solids->walls[side] == SELKIE_WALL_OPEN || (solids->walls[side] == SELKIE_WALL_NO_SLIP) != rough)
            continue;
        boundary->sides[boundary->side_count++] =
            (sk_sph_side){.axis = axis,
                          .sheet = (float)(high ? solids->high[axis] + depth : solids->low[axis] - depth),
                          .inward = high ? -1.0f : 1.0f,
                          .part = (uint32_t)walls->part_count,
                          .grip = grip_of(step->sph, solids->slip_length[side]),
                          .friction = rough ? 0.0f : (float)solids->side_friction[side]};
        friction = fmax(friction, rough ? 0.0 : solids->side_friction[side]);
    }
    points->count = 0;
    const wall_part part = {.obstacle = -1, .body = -1, .no_slip = rough, .friction = friction};
    return add_points(step, walls, points, part, error);
}

/* The box of surface points that may be near liquid: for static shapes just around the domain, for others as far as
 * they may come from. */
static void set_box(const sk_step *step, const sk_shape *shape, int placed, sk_surface_points_def *def)
{
    double low[3], high[3], diagonal2 = 0.0, margin = 2.0 * step->sph->support;
    sk_shape_bounds(shape, low, high);
    for (int d = 0; d < step->dimension; d++)
        diagonal2 += pow(step->grid.high[d] - step->grid.low[d], 2);
    for (int d = 0; d < 3; d++) {
        double room = placed ? 2.0 * sqrt(diagonal2) : margin;
        def->low[d] = step->grid.low[d] - room;
        def->high[d] = step->grid.high[d] + room;
        if (placed && isfinite(low[d]))
            def->low[d] = low[d] - margin;
        if (placed && isfinite(high[d]))
            def->high[d] = high[d] + margin;
    }
}

static selkie_code add_shape(sk_step *step, sk_sph_walls *walls, const sk_shape *shape, int placed, wall_part part,
                             sk_surface_points *points, selkie_error *error)
{
    sk_surface_points_def def = {
        .spacing = step->sph->point_spacing, .depth = 0.5 * step->sph->spacing, .seed = step->scene->seed};
    set_box(step, shape, placed, &def);
    points->count = 0;
    SK_TRY(sk_shape_surface_points(shape, &def, points, error));
    return add_points(step, walls, points, part, error);
}

static selkie_code sample_parts(sk_step *step, sk_sph_walls *walls, sk_surface_points *points, selkie_error *error)
{
    const sk_solids *solids = &step->solids;
    SK_TRY(add_domain(step, walls, 0, points, error));
    for (int o = 0; o < solids->obstacle_count; o++) {
        const sk_obstacle *obstacle = &solids->obstacles[o];
        SK_TRY(add_shape(step, walls, obstacle->shape, obstacle->placed != NULL,
                         (wall_part){.obstacle = o,
                                     .body = -1,
                                     .moves = obstacle->moves,
                                     .no_slip = obstacle->def->surface == SELKIE_WALL_NO_SLIP,
                                     .slip_length = obstacle->def->slip_length,
                                     .friction = obstacle->def->liquid_friction},
                         points, error));
    }
    for (int b = 0; step->rigid && b < step->rigid->body_count; b++)
        SK_TRY(add_shape(step, walls, step->rigid->bodies[b].shape, 1,
                         (wall_part){.obstacle = -1,
                                     .body = b,
                                     .moves = 1,
                                     .no_slip = step->rigid->bodies[b].def->surface == SELKIE_WALL_NO_SLIP,
                                     .slip_length = step->rigid->bodies[b].def->slip_length,
                                     .friction = step->rigid->bodies[b].def->liquid_friction},
                         points, error));
    return add_domain(step, walls, 1, points, error);
}

/* Computes volumes. All static parts together form one solid, and each moving part is a solid of its own. */
static selkie_code weigh_parts(sk_step *step, sk_sph_walls *walls, selkie_error *error)
{
    float(*still)[3] = sk_allocate(step->memory, (walls->count + 1) * sizeof *still);
    float *volumes = sk_allocate(step->memory, (walls->count + 1) * sizeof *volumes);
    size_t count = 0;
    selkie_code code =
        still && volumes ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "sph: no memory for boundary particles");
    for (int p = 0; code == SELKIE_OK && p < walls->part_count; p++) {
        const wall_part *part = &walls->parts[p];
        if (part->moves) {
            code = find_volumes(step, part->count, (const float(*)[3])(walls->local + part->first),
                                walls->volume + part->first, error);
            continue;
        }
        for (size_t i = 0; i < part->count; i++)
            memcpy(still[count++], walls->unsorted[part->first + i].position, sizeof *still);
    }
    if (code == SELKIE_OK)
        code = find_volumes(step, count, (const float(*)[3])still, volumes, error);
    count = 0;
    for (int p = 0; code == SELKIE_OK && p < walls->part_count; p++)
        for (size_t i = 0; !walls->parts[p].moves && i < walls->parts[p].count; i++)
            walls->volume[walls->parts[p].first + i] = volumes[count++];
    sk_release(step->memory, still);
    sk_release(step->memory, volumes);
    return code;
}

/* --- Motion --- */

static void place_obstacle(const sk_step *step, sk_sph_walls *walls, const wall_part *part)
{
    const sk_obstacle *obstacle = &step->solids.obstacles[part->obstacle];
    sk_pose now, then;
    sk_pose_at(obstacle->def, step->time, &now);
    sk_pose_at(obstacle->def, step->time + step->dt, &then);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (size_t i = part->first; i < part->first + part->count; i++) {
        sk_boundary_particle *particle = &walls->unsorted[i];
        double local[3] = {walls->local[i][0], walls->local[i][1], walls->local[i][2]}, x[3], end[3], v[3];
        if (!obstacle->placed) {
            memcpy(particle->position, walls->local[i], sizeof particle->position);
            continue;
        }
        sk_pose_to_world(&now, local, x);
        sk_pose_to_world(&then, local, end);
        sk_pose_velocity(&now, x, v);
        for (int d = 0; d < 3; d++) {
            particle->position[d] = d < step->dimension ? (float)x[d] : 0.0f;
            particle->velocity[d] =
                d < step->dimension ? (float)(step->dt > 0.0 ? (end[d] - x[d]) / step->dt : v[d]) : 0.0f;
        }
    }
}

static void place_body(const sk_step *step, sk_sph_walls *walls, const wall_part *part)
{
    const sk_rigid *rigid = step->rigid;
    const sk_pose *pose = &rigid->bodies[part->body].pose;
    const double *center = rigid->states[part->body].position;
    double v[3], w[3];
    sk_rigid_predict(rigid, part->body, step->dt, v, w);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (size_t i = part->first; i < part->first + part->count; i++) {
        sk_boundary_particle *particle = &walls->unsorted[i];
        double local[3] = {walls->local[i][0], walls->local[i][1], walls->local[i][2]}, x[3], r[3];
        sk_pose_to_world(pose, local, x);
        for (int d = 0; d < 3; d++)
            r[d] = x[d] - center[d];
        const double u[3] = {v[0] + w[1] * r[2] - w[2] * r[1], v[1] + w[2] * r[0] - w[0] * r[2],
                             v[2] + w[0] * r[1] - w[1] * r[0]};
        for (int d = 0; d < 3; d++) {
            particle->position[d] = d < step->dimension ? (float)x[d] : 0.0f;
            particle->velocity[d] = d < step->dimension ? (float)u[d] : 0.0f;
        }
    }
}

static void place_parts(const sk_step *step, sk_sph_walls *walls)
{
    for (int p = 0; p < walls->part_count; p++) {
        const wall_part *part = &walls->parts[p];
        if (walls->placed && !part->moves)
            continue;
        if (part->body >= 0)
            place_body(step, walls, part);
        else if (part->obstacle >= 0)
            place_obstacle(step, walls, part);
        else
            for (size_t i = part->first; i < part->first + part->count; i++)
                memcpy(walls->unsorted[i].position, walls->local[i], sizeof *walls->local);
        for (size_t i = part->first; !walls->placed && i < part->first + part->count; i++)
            walls->unsorted[i].body = (uint32_t)p;
    }
    walls->placed = 1;
}

/* --- Sorting by cell --- */

/* Key of the block, and cell in it. SK_NO_BLOCK outside the grid and behind closed sides of the domain, whose sheets
 * already count there. */
static uint64_t find_place(const sk_grid *grid, const sk_sph_boundary *boundary, const float x[3], double depth,
                           uint16_t *cell)
{
    int at[3] = {0, 0, 0};
    for (int s = 0; s < boundary->side_count; s++)
        if (boundary->sides[s].inward * (x[boundary->sides[s].axis] - boundary->sides[s].sheet) < depth)
            return SK_NO_BLOCK;
    for (int d = 0; d < grid->dimension; d++) {
        double g = floor((x[d] - grid->corner[d]) / grid->cell_size);
        if (!(g >= 0.0 && g < (double)(grid->blocks[d] << grid->block_log)))
            return SK_NO_BLOCK;
        at[d] = (int)g;
    }
    size_t local;
    const uint64_t place = sk_grid_place(grid, at, &local);
    *cell = (uint16_t)local;
    return place;
}

/* Number of a boundary particle's cell, counted over the blocks with boundary particles. */
static size_t cell_of(const sk_sph_walls *walls, const sk_grid *grid, size_t i)
{
    const int block = sk_block_find(&walls->blocks.table, walls->places[i]);
    return (size_t)(block - 1) * (size_t)grid->block_cells + walls->cells[i];
}

static selkie_code sort_by_cell(sk_step *step, sk_sph_walls *walls, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    SK_TRY(sk_block_table_reserve(&walls->blocks.table, step->memory, 1, error));
    sk_block_table_clear(&walls->blocks.table);

    /* The block and cell of each boundary particle. */
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (size_t i = 0; i < walls->count; i++)
        walls->places[i] = find_place(grid, &step->sph->boundary, walls->unsorted[i].position, 0.5 * step->sph->spacing,
                                      &walls->cells[i]);

    /* Number the occupied blocks. */
    for (size_t i = 0; i < walls->count; i++)
        if (walls->places[i] != SK_NO_BLOCK && (i == 0 || walls->places[i] != walls->places[i - 1]) &&
            !sk_block_find(&walls->blocks.table, walls->places[i]))
            SK_TRY(sk_block_list_add(&walls->blocks, step->memory, walls->places[i], error));
    sk_block_list_sort(&walls->blocks);
    const int32_t blocks = walls->blocks.table.count;

    /* Counting sort by cell. */
    size_t cells = (size_t)blocks * (size_t)grid->block_cells;
    SK_TRY(sk_reserve(step->memory, (void **)&walls->cell_start, &walls->cell_capacity, cells + 2,
                      sizeof *walls->cell_start, "boundary particles", error));
    uint32_t *start = walls->cell_start;
    memset(start, 0, (cells + 2) * sizeof *start);
    /* Counts are stored with an offset of two, prefix sums with an offset of one. Filling moves the sums to their final
     * place. */
    for (size_t i = 0; i < walls->count; i++)
        if (walls->places[i] != SK_NO_BLOCK)
            start[cell_of(walls, grid, i) + 2]++;
    for (size_t c = 2; c < cells + 2; c++)
        start[c] += start[c - 1];
    for (size_t i = 0; i < walls->count; i++)
        if (walls->places[i] != SK_NO_BLOCK)
            walls->sorted[start[cell_of(walls, grid, i) + 1]++] = walls->unsorted[i];

    sk_sph_boundary *boundary = &step->sph->boundary;
    boundary->count = start[cells];
    boundary->particles = walls->sorted;
    boundary->index = (sk_cell_index){.blocks = {grid->blocks[0], grid->blocks[1], grid->blocks[2]},
                                      .block_count = blocks,
                                      .table = walls->blocks.table,
                                      .cell_start = start};
    return SELKIE_OK;
}

/* --- The phases --- */

static void set_body(const sk_step *step, const wall_part *part, sk_sph_body *body)
{
    memset(body->force, 0, sizeof body->force);
    memset(body->torque, 0, sizeof body->torque);
    body->no_slip = part->no_slip;
    body->grip = grip_of(step->sph, part->slip_length);
    body->friction = part->no_slip ? 0.0f : (float)part->friction;
    body->rubs = body->friction > 0.0f;
    if (part->body < 0) {
        body->wants_force = part->wants_force;
        if (part->obstacle >= 0)
            for (int d = 0; d < 3; d++)
                body->center[d] = step->solids.obstacles[part->obstacle].pose.center[d] +
                                  step->solids.obstacles[part->obstacle].pose.translation[d];
        return;
    }
    double inverse_mass[3], inverse_inertia[9];
    sk_rigid_response(step->rigid, part->body, inverse_mass, inverse_inertia);
    body->wants_force = body->responds = 1;
    memcpy(body->center, step->rigid->states[part->body].position, sizeof body->center);
    memset(body->response, 0, sizeof body->response);
    for (int i = 0; i < 3; i++) {
        body->response[7 * i] = step->particle_mass * inverse_mass[i];
        for (int j = 0; j < 3; j++)
            body->response[6 * (3 + i) + 3 + j] = step->particle_mass * inverse_inertia[3 * i + j];
    }
}

selkie_code sk_sph_boundary_run(sk_step *step, selkie_error *error)
{
    sk_sph_walls *walls = step->sph->walls;
    if (!walls)
        return SELKIE_OK;
    const double acted = sk_step_impulse_time(step);
    walls->force_share = acted > 0.0 ? step->dt / acted : 1.0;
    for (int p = 0; p < walls->part_count; p++)
        set_body(step, &walls->parts[p], &walls->bodies[p]);
    if (walls->placed && !walls->moving)
        return SELKIE_OK;
    place_parts(step, walls);
    return sort_by_cell(step, walls, error);
}

int sk_sph_boundary_moves(const sk_sph *sph)
{
    return sph->walls && sph->walls->moving;
}

selkie_code sk_sph_bodies_run(sk_step *step, selkie_error *error)
{
    sk_sph_walls *walls = step->sph->walls;
    for (int b = 0; b < step->rigid->body_count; b++) {
        const sk_sph_body *body = &walls->bodies[sk_sph_part_of_body(step, b)];
        for (int d = 0; d < 3; d++) {
            step->rigid->bodies[b].impulse[d] += step->dt * body->force[d];
            step->rigid->bodies[b].angular_impulse[d] += step->dt * body->torque[d];
        }
    }
    return sk_rigid_step(step->rigid, step->time, step->dt, sk_step_impulse_time(step), error);
}

/* --- Making --- */

static selkie_code allocate(sk_step *step, sk_sph_walls *walls, selkie_error *error)
{
    size_t n = walls->count + 1;
    int ok = (walls->volume = sk_allocate_zeroed(step->memory, n * sizeof *walls->volume)) != NULL &&
             (walls->unsorted = sk_allocate_zeroed(step->memory, n * sizeof *walls->unsorted)) != NULL &&
             (walls->sorted = sk_allocate_zeroed(step->memory, n * sizeof *walls->sorted)) != NULL &&
             (walls->places = sk_allocate(step->memory, n * sizeof *walls->places)) != NULL &&
             (walls->cells = sk_allocate_zeroed(step->memory, n * sizeof *walls->cells)) != NULL;
    return ok ? SELKIE_OK
              : sk_fail(error, SELKIE_ERROR_MEMORY, "sph: no memory for %zu boundary particles", walls->count);
}

/* The part that a force probe names; -1 if there is none of that name. */
static int find_part(const sk_step *step, const char *name)
{
    const selkie_scene *scene = step->scene;
    if (!name || !*name || strcmp(name, "walls") == 0)
        return 0;
    for (int o = 0; o < scene->obstacle_count; o++)
        if (scene->obstacles[o].name && strcmp(scene->obstacles[o].name, name) == 0)
            return sk_sph_part_of_obstacle(o);
    for (int b = 0; b < scene->body_count; b++)
        if (scene->bodies[b].name && strcmp(scene->bodies[b].name, name) == 0)
            return sk_sph_part_of_body(step, b);
    return -1;
}

selkie_code sk_sph_boundary_init(sk_step *step, selkie_error *error)
{
    sk_sph_walls *walls = step->sph->walls = sk_allocate_zeroed(step->memory, sizeof *walls);
    size_t parts = 3 + (size_t)step->solids.obstacle_count + (size_t)step->scene->body_count;
    if (!walls)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: no memory for walls");
    walls->parts = sk_allocate_zeroed(step->memory, parts * sizeof *walls->parts);
    walls->bodies = sk_allocate_zeroed(step->memory, parts * sizeof *walls->bodies);
    if (!walls->parts || !walls->bodies)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sph: no memory for walls");

    /* Sample the surfaces of all parts. */
    sk_surface_points points = {.memory = step->memory};
    selkie_code code = sample_parts(step, walls, &points, error);
    sk_surface_points_free(&points);
    SK_TRY(code);

    /* Find the parts whose force a probe measures; no-slip sides are the last part. */
    for (int p = 0; p < step->scene->probe_count; p++) {
        if (step->scene->probes[p].kind != SELKIE_PROBE_FORCE && step->scene->probes[p].kind != SELKIE_PROBE_TORQUE)
            continue;
        int part = find_part(step, step->scene->probes[p].on);
        if (part < 0)
            return sk_fail(
                error, SELKIE_ERROR_INPUT,
                "probes[%d].on: no obstacle and no body is called \"%.64s\": must be the name of one, or \"walls\"", p,
                step->scene->probes[p].on);
        walls->parts[part].wants_force = 1;
        if (part == 0)
            walls->parts[walls->part_count - 1].wants_force = 1;
    }

    /* Place the boundary particles, compute their volumes and sort them. */
    step->sph->boundary.bodies = walls->bodies;
    step->sph->boundary.body_count = walls->part_count;
    SK_TRY(allocate(step, walls, error));
    place_parts(step, walls);
    SK_TRY(weigh_parts(step, walls, error));
    for (size_t i = 0; i < walls->count; i++)
        walls->unsorted[i].volume = walls->volume[i];
    return sort_by_cell(step, walls, error);
}

void sk_sph_boundary_free(sk_sph *sph)
{
    sk_sph_walls *walls = sph->walls;
    if (!walls)
        return;
    void *arrays[] = {walls->parts,      walls->bodies,   walls->local,          walls->volume,
                      walls->unsorted,   walls->sorted,   walls->places,         walls->cells,
                      walls->cell_start, walls->contacts, walls->block_contacts, walls->body_term};
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
        sk_release(sph->memory, arrays[a]);
    sk_block_list_free(&walls->blocks, sph->memory);
    sk_release(sph->memory, walls);
    sph->walls = NULL;
    memset(&sph->boundary, 0, sizeof sph->boundary);
}

int sk_sph_boundary_force(const sk_step *step, const char *on, const double about[3], double force[3], double torque[3])
{
    int part = step->sph && step->sph->walls ? find_part(step, on) : -1;
    if (part < 0)
        return 0;
    const sk_sph_walls *walls = step->sph->walls;
    memset(force, 0, 3 * sizeof *force);
    memset(torque, 0, 3 * sizeof *torque);
    for (int side = 0; side < (part == 0 ? 2 : 1); side++) { /* no-slip sides are the last part */
        const sk_sph_body *body = &walls->bodies[side ? walls->part_count - 1 : part];
        double arm[3];
        for (int d = 0; d < 3; d++)
            arm[d] = body->center[d] - about[d];
        for (int d = 0; d < 3; d++) {
            force[d] += walls->force_share * body->force[d];
            torque[d] += walls->force_share * (body->torque[d] + arm[(d + 1) % 3] * body->force[(d + 2) % 3] -
                                               arm[(d + 2) % 3] * body->force[(d + 1) % 3]);
        }
    }
    return 1;
}

void sk_sph_boundary_clear_bodies(sk_step *step)
{
    const sk_rigid *rigid = step->rigid;
    const double gap = 0.25 * step->sph->spacing;
    sk_particles *particles = &step->particles;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < particles->count; p++)
        for (int b = 0; rigid && b < rigid->body_count; b++) {
            double x[3] = {particles->records[p].position[0], particles->records[p].position[1],
                           particles->records[p].position[2]};
            if (sk_obstacle_distance(rigid->bodies[b].shape, &rigid->bodies[b].pose, x, NULL) < gap)
                particles->records[p].flags |= SK_PARTICLE_DEAD;
        }
    sk_particles_drop_dead(particles);
}
