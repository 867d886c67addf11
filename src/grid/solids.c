#include "grid/solids.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid/grid_kernels.h"

#define SK_SOLIDS_SHAPE_DISTANCE(obstacle, x, normal) sk_shape_distance_normal((obstacle)->shape, x, normal)
#include "grid/solids_plain.h"

/* Cells around the domain in which images of obstacles count: the farthest that a path may lead beyond a side. */
#define SK_IMAGE_MARGIN 16.0

/* An obstacle and its images beyond joined sides. */
static int image_count(const sk_grid *grid)
{
    int count = 1;
    for (int d = 0; d < grid->dimension; d++)
        count *= grid->periodic >> d & 1 ? 3 : 1;
    return count;
}

/* Adds the images of the obstacles beyond joined sides, where liquid can meet them. An obstacle that spans an axis,
 * such as a floor, has none along it: it ends at one side where it begins at the other. */
static void add_images(sk_solids *solids, const sk_grid *grid)
{
    const int count = solids->obstacle_count;
    const double margin = SK_IMAGE_MARGIN * grid->cell_size;
    for (int o = 0; o < count; o++)
        for (int n = 0; n < 27; n++) {
            const int side[3] = {n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1};
            const sk_obstacle *from = &solids->obstacles[o];
            double image[3] = {0, 0, 0};
            int wanted = n != 13;
            for (int d = 0; d < 3; d++) {
                const int spans = from->low[d] <= grid->low[d] && from->high[d] >= grid->high[d];
                if (side[d] && (!(grid->periodic >> d & 1) || spans))
                    wanted = 0;
                image[d] = side[d] * (grid->high[d] - grid->low[d]);
                wanted &= !side[d] || from->moves ||
                          (from->low[d] + image[d] < grid->high[d] + margin &&
                           from->high[d] + image[d] > grid->low[d] - margin);
            }
            if (!wanted)
                continue;
            sk_obstacle *to = &solids->obstacles[solids->obstacle_count++];
            *to = *from;
            to->is_image = 1;
            memcpy(to->image, image, sizeof image);
            to->placed = &to->pose;
            solids->moving_count += to->moves;
        }
}

/* The pose of an obstacle at a time, moved to its image. */
static void pose_at(const sk_obstacle *obstacle, double time, sk_pose *pose)
{
    sk_pose_at(obstacle->def, time, pose);
    for (int d = 0; obstacle->is_image && d < 3; d++)
        pose->translation[d] += obstacle->image[d];
}

selkie_code sk_solids_init(sk_solids *solids, const selkie_scene *scene, const sk_grid *grid, sk_memory *memory,
                           selkie_error *error)
{
    memset(solids, 0, sizeof *solids);
    solids->memory = memory;
    solids->dimension = grid->dimension;
    solids->cell_size = grid->cell_size;
    solids->block_cells = grid->block_cells;
    memcpy(solids->low, grid->low, sizeof solids->low);
    memcpy(solids->high, grid->high, sizeof solids->high);
    memcpy(solids->walls, scene->domain.walls, sizeof solids->walls);
    memcpy(solids->slip_length, scene->domain.slip_length, sizeof solids->slip_length);
    memcpy(solids->side_friction, scene->domain.liquid_friction, sizeof solids->side_friction);
    for (int side = 0; side < 2 * solids->dimension; side++) {
        solids->has_grip |= solids->slip_length[side] > 0.0;
        solids->has_friction |= solids->side_friction[side] > 0.0;
    }

    /* Reserve the block table, the obstacles and their images. */
    SK_TRY(sk_block_table_reserve(&solids->table, memory, 128, error));
    SK_TRY(sk_block_table_reserve(&solids->moving_table, memory, 128, error));
    const size_t most = (size_t)scene->obstacle_count * (size_t)image_count(grid) + (size_t)scene->body_count;
    solids->obstacles = sk_allocate_zeroed(memory, (most + 1) * sizeof *solids->obstacles);
    solids->bin_words = most / 64 + 1;
    solids->bins = sk_allocate_zeroed(memory, 3 * SK_SOLID_BINS * solids->bin_words * sizeof *solids->bins);
    if (!solids->obstacles || !solids->bins)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "obstacles: no memory for %d of them", scene->obstacle_count);

    /* Create the shape of each obstacle, and note whether it moves. */
    double up[3];
    selkie_scene_up(scene, up);
    for (int o = 0; o < scene->obstacle_count; o++) {
        sk_obstacle *obstacle = &solids->obstacles[o];
        char what[64];
        snprintf(what, sizeof what, "obstacles[%d].shape", o);
        const sk_shape_options options = {.dimension = grid->dimension,
                                          .up = up,
                                          .folder = scene->folder,
                                          .sample_size = 0.5 * grid->cell_size,
                                          .sheets = 1,
                                          .what = what,
                                          .memory = memory};
        SK_TRY(sk_shape_create(&scene->obstacles[o].shape, &options, &obstacle->shape, error));
        solids->obstacle_count++;
        obstacle->def = &scene->obstacles[o];
        obstacle->surface = obstacle->def->surface;
        obstacle->slip_length = obstacle->def->slip_length;
        obstacle->moves = sk_obstacle_moves(obstacle->def);
        obstacle->placed = obstacle->moves || obstacle->def->keyframe_count ? &obstacle->pose : NULL;
        solids->moving_count += obstacle->moves;
        solids->has_grip |= obstacle->def->slip_length > 0.0;
        solids->has_friction |= obstacle->def->liquid_friction > 0.0;
        sk_shape_bounds(obstacle->shape, obstacle->local_low, obstacle->local_high);
    }

    /* Set the poses at time 0. Slot 0 has no solids. */
    solids->static_count = solids->slot_count = 1;
    sk_solids_move(solids, 0.0);
    if (grid->periodic) {
        add_images(solids, grid);
        sk_solids_move(solids, 0.0);
    }
    sk_solids_step(solids, 0.0, 0.0);
    return SELKIE_OK;
}

/* Ascending blocks, then cells. */
static int compare_vents(const void *a, const void *b)
{
    const sk_vent *one = a, *two = b;
    return one->block != two->block ? (one->block < two->block ? -1 : 1)
           : one->cell != two->cell ? (one->cell < two->cell ? -1 : 1)
                                    : 0;
}

selkie_code sk_solids_list_vents(sk_solids *solids, size_t *count, selkie_error *error)
{
    const size_t cells = (size_t)solids->block_cells;
    size_t most = solids->restored_count;
    for (size_t c = cells; solids->vents && c < solids->static_count * cells; c++)
        most += solids->vents[c] != 0;
    *count = 0;
    SK_TRY(sk_reserve(solids->memory, (void **)&solids->listed, &solids->listed_capacity, most, sizeof *solids->listed,
                      "vents", error));

    /* Blocks that have been computed. */
    for (size_t e = 0; most && e < (size_t)1 << solids->table.log; e++) {
        const sk_block_entry *entry = &solids->table.entries[e];
        for (size_t c = 0; entry->number > 0 && c < cells; c++) {
            const uint8_t sides = solids->vents[(size_t)entry->number * cells + c];
            if (sides)
                solids->listed[(*count)++] = (sk_vent){entry->key, (uint32_t)c, sides};
        }
    }

    /* Blocks of a checkpoint that have not been computed since. */
    for (size_t n = 0; n < solids->restored_count; n++)
        if (!sk_block_find(&solids->table, solids->restored[n].block))
            solids->listed[(*count)++] = solids->restored[n];
    if (*count)
        qsort(solids->listed, *count, sizeof *solids->listed, compare_vents);
    return SELKIE_OK;
}

selkie_code sk_solids_restore_vents(sk_solids *solids, const sk_vent *vents, size_t count, const char *file,
                                    selkie_error *error)
{
    const size_t cells = (size_t)solids->block_cells;
    SK_TRY(sk_reserve(solids->memory, (void **)&solids->listed, &solids->listed_capacity, count, sizeof *vents, "vents",
                      error));
    SK_TRY(sk_reserve(solids->memory, (void **)&solids->restored, &solids->restored_capacity, count, sizeof *vents,
                      "vents", error));
    if (count)
        memcpy(solids->listed, vents, count * sizeof *vents); /* a file's data may lie anywhere */
    for (size_t n = 0; n < count; n++)
        if (solids->listed[n].cell >= cells || solids->listed[n].sides > 63)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: a vent is not in a cell of its block", file);
    if (solids->vents)
        memset(solids->vents, 0, solids->static_count * cells);
    for (size_t n = 0; n < count; n++) {
        const sk_vent *vent = &solids->listed[n];
        const int32_t slot = sk_block_find(&solids->table, vent->block);
        solids->restored[n] = *vent;
        if (slot > 0)
            solids->vents[(size_t)slot * cells + vent->cell] = (uint8_t)vent->sides;
    }
    solids->restored_count = count;
    return SELKIE_OK;
}

void sk_solids_free(sk_solids *solids)
{
    for (int o = 0; o < solids->obstacle_count - solids->body_count; o++)
        if (!solids->obstacles[o].is_image)
            sk_shape_destroy(solids->obstacles[o].shape);
    sk_release(solids->memory, solids->obstacles);
    sk_release(solids->memory, solids->bins);
    sk_block_table_free(&solids->table, solids->memory);
    sk_block_table_free(&solids->moving_table, solids->memory);
    sk_release(solids->memory, solids->slot_share);
    for (int d = 0; d < 3; d++) {
        sk_release(solids->memory, solids->fraction[d]);
        sk_release(solids->memory, solids->blurred_face[d]);
        sk_release(solids->memory, solids->velocity[d]);
    }
    sk_release(solids->memory, solids->blurred);
    sk_release(solids->memory, solids->distance);
    sk_release(solids->memory, solids->no_slip);
    sk_release(solids->memory, solids->grip);
    sk_release(solids->memory, solids->friction);
    sk_release(solids->memory, solids->closed);
    sk_release(solids->memory, solids->covered);
    sk_release(solids->memory, solids->vents);
    sk_release(solids->memory, solids->restored);
    sk_release(solids->memory, solids->listed);
    sk_release(solids->memory, solids->plain);
    sk_release(solids->memory, solids->barriers);
    sk_release(solids->memory, solids->split);
    sk_release(solids->memory, solids->exact);
    sk_release(solids->memory, solids->block_slot);
    sk_release(solids->memory, solids->clearance);
    sk_release(solids->memory, solids->work);
    sk_release(solids->memory, solids->pieces);
    sk_release(solids->memory, solids->piece_first);
    for (int d = 0; d < 3; d++)
        sk_release(solids->memory, solids->piece_share[d]);
    memset(solids, 0, sizeof *solids);
}

/* Adds the bounds of an obstacle in a pose. The corners of the local bounds span them. An infinite corner makes all
 * bounds infinite. */
static void add_bounds(const sk_obstacle *obstacle, const sk_pose *pose, double low[3], double high[3])
{
    for (int corner = 0; corner < 8; corner++) {
        double local[3], world[3];
        int finite = 1;
        for (int d = 0; d < 3; d++) {
            local[d] = corner >> d & 1 ? obstacle->local_high[d] : obstacle->local_low[d];
            finite &= isfinite(local[d]) != 0;
        }
        if (finite)
            sk_pose_to_world(pose, local, world);
        for (int d = 0; d < 3; d++) {
            low[d] = finite ? fmin(low[d], world[d]) : -INFINITY;
            high[d] = finite ? fmax(high[d], world[d]) : INFINITY;
        }
        if (!finite)
            break;
    }
}

void sk_solids_move(sk_solids *solids, double time)
{
    for (int o = 0; o < solids->obstacle_count; o++) {
        sk_obstacle *obstacle = &solids->obstacles[o];
        const sk_pose before = obstacle->pose;
        if (obstacle->follows)
            obstacle->pose = *obstacle->follows;
        else
            pose_at(obstacle, time, &obstacle->pose);
        solids->settled &= !obstacle->moves || memcmp(&before, &obstacle->pose, sizeof before) == 0;
        for (int d = 0; d < 3; d++) {
            obstacle->low[d] = obstacle->placed ? INFINITY : obstacle->local_low[d];
            obstacle->high[d] = obstacle->placed ? -INFINITY : obstacle->local_high[d];
        }
        if (obstacle->placed)
            add_bounds(obstacle, &obstacle->pose, obstacle->low, obstacle->high);
    }
}

/* m: how far a point of an obstacle moves at most in the step. */
static double farthest_move(const sk_obstacle *obstacle)
{
    double centre2 = 0.0, arm2 = 0.0, turn2 = 0.0;
    for (int d = 0; d < 3; d++) {
        const double move = obstacle->end.translation[d] - obstacle->start.translation[d];
        const double arm = fmax(fabs(obstacle->local_low[d] - obstacle->start.center[d]),
                                fabs(obstacle->local_high[d] - obstacle->start.center[d]));
        centre2 += move * move;
        arm2 += arm * arm;
        turn2 += obstacle->turn[d] * obstacle->turn[d];
    }
    return sqrt(centre2) + (turn2 > 0.0 ? sqrt(turn2 * arm2) : 0.0);
}

/* A ball around the obstacle at all poses of the step. A point is at most half of its path from the middle between the
 * ends of the path. */
static void find_ball(sk_obstacle *obstacle)
{
    double local[3], start[3], end[3], move2 = 0.0, arm2 = 0.0, turn2 = 0.0;
    obstacle->reach = sk_shape_ball(obstacle->shape, local);
    memcpy(obstacle->middle, local, sizeof obstacle->middle);
    memcpy(obstacle->ball_start, local, sizeof obstacle->ball_start);
    memset(obstacle->ball_way, 0, sizeof obstacle->ball_way);
    obstacle->ball = obstacle->reach;
    if (!obstacle->placed || !(obstacle->reach < INFINITY))
        return;
    sk_pose_to_world(&obstacle->start, local, start);
    sk_pose_to_world(&obstacle->end, local, end);
    for (int d = 0; d < 3; d++) {
        const double move = obstacle->end.translation[d] - obstacle->start.translation[d],
                     arm = local[d] - obstacle->start.center[d];
        obstacle->middle[d] = 0.5 * (start[d] + end[d]);
        obstacle->ball_start[d] = start[d];
        obstacle->ball_way[d] = end[d] - start[d];
        move2 += move * move;
        arm2 += arm * arm;
        turn2 += obstacle->turn[d] * obstacle->turn[d];
    }
    obstacle->reach += 0.5 * (sqrt(move2) + sqrt(turn2 * arm2));
    obstacle->ball += sqrt(turn2 * arm2); /* off the straight way by less than the length of the arc */
}

/* Rotation and bounds of the motion from start to end. Returns how far a point moves at most, m. */
static double find_path(sk_obstacle *obstacle)
{
    memset(obstacle->turn, 0, sizeof obstacle->turn);
    for (int d = 0; d < 3; d++) {
        obstacle->swept_low[d] = obstacle->placed ? INFINITY : obstacle->local_low[d];
        obstacle->swept_high[d] = obstacle->placed ? -INFINITY : obstacle->local_high[d];
    }

    /* Bounds of the obstacle at the start and at the end of the step. */
    if (!obstacle->placed)
        return 0.0;
    sk_pose_turn(&obstacle->start, &obstacle->end, obstacle->turn);
    add_bounds(obstacle, &obstacle->start, obstacle->swept_low, obstacle->swept_high);
    add_bounds(obstacle, &obstacle->end, obstacle->swept_low, obstacle->swept_high);
    if (!obstacle->moves)
        return 0.0;

    /* Between the poses corners move along arcs, which bulge by less than half of their length. */
    const double move = farthest_move(obstacle), bulge = 0.5 * move;
    const int turns = obstacle->turn[0] != 0.0 || obstacle->turn[1] != 0.0 || obstacle->turn[2] != 0.0;
    for (int d = 0; turns && d < 3; d++) {
        obstacle->swept_low[d] -= bulge;
        obstacle->swept_high[d] += bulge;
    }
    return move;
}

static double find_motion(sk_obstacle *obstacle)
{
    const double move = find_path(obstacle);
    find_ball(obstacle);
    return move;
}

/* Enters the obstacles in the slices that their motion reaches, with a margin for the gap of particles. */
static void find_bins(sk_solids *solids)
{
    const double margin = 0.1 * solids->cell_size;
    for (int d = 0; d < solids->dimension; d++)
        solids->slices[d] = SK_SOLID_BINS / (solids->high[d] - solids->low[d]);
    memset(solids->bins, 0, 3 * SK_SOLID_BINS * solids->bin_words * sizeof *solids->bins);
    for (int o = 0; o < solids->obstacle_count; o++)
        for (int d = 0; d < solids->dimension; d++) {
            const int first = sk_solids_bin(solids, d, solids->obstacles[o].swept_low[d] - margin, 0);
            const int last = sk_solids_bin(solids, d, solids->obstacles[o].swept_high[d] + margin, 1);
            for (int bin = first; bin <= last; bin++)
                solids->bins[(size_t)(d * SK_SOLID_BINS + bin) * solids->bin_words + (size_t)o / 64] |= UINT64_C(1)
                                                                                                        << o % 64;
        }
}

void sk_solids_step(sk_solids *solids, double start, double end)
{
    double farthest = 0.0;
    for (int o = 0; o < solids->obstacle_count; o++) {
        sk_obstacle *obstacle = &solids->obstacles[o];
        if (obstacle->follows) {
            obstacle->start = obstacle->end = *obstacle->follows;
        } else {
            pose_at(obstacle, start, &obstacle->start);
            pose_at(obstacle, end, &obstacle->end);
        }
        farthest = fmax(farthest, find_motion(obstacle));
    }
    solids->motion = (float)(farthest / solids->cell_size);
    find_bins(solids);
}

void sk_solids_add_body(sk_solids *solids, sk_shape *shape, const selkie_body_def *def, const sk_pose *follows)
{
    sk_obstacle *obstacle = &solids->obstacles[solids->obstacle_count++];
    memset(obstacle, 0, sizeof *obstacle);
    solids->body_count++;
    solids->moving_count++;
    solids->settled = 0;
    obstacle->is_thick = sk_shape_convex_width(shape) > 3.0 * solids->cell_size;
    obstacle->shape = shape;
    obstacle->surface = def->surface;
    obstacle->slip_length = def->slip_length;
    solids->has_grip |= def->slip_length > 0.0;
    obstacle->follows = follows;
    obstacle->moves = 1;
    obstacle->placed = &obstacle->pose;
    sk_shape_bounds(shape, obstacle->local_low, obstacle->local_high);
    sk_solids_move(solids, 0.0);
    sk_solids_step(solids, 0.0, 0.0);
}

void sk_solids_end_bodies(sk_solids *solids)
{
    double farthest = (double)solids->motion * solids->cell_size;
    for (int o = solids->obstacle_count - solids->body_count; o < solids->obstacle_count; o++) {
        solids->obstacles[o].end = *solids->obstacles[o].follows;
        farthest = fmax(farthest, find_motion(&solids->obstacles[o]));
    }
    solids->motion = (float)(farthest / solids->cell_size);
    find_bins(solids);
}

double sk_solids_distance(const sk_solids *solids, const double x[3], double normal[3], int *obstacle)
{
    return distance_of_solids(solids, x, normal, obstacle);
}

double sk_solids_distance_among(const sk_solids *solids, const int32_t *among, int count, const double x[3],
                                double normal[3], int *obstacle)
{
    return distance_of_some(solids, among, count, x, normal, obstacle);
}

void sk_solids_velocity(const sk_solids *solids, int obstacle, const double x[3], double velocity[3])
{
    velocity_of_solids(solids, obstacle, x, velocity);
}

int sk_solids_near(const sk_solids *solids, const sk_grid *grid, const float x[3])
{
    if (!solids->obstacle_count)
        return 0;
    const float inverse = (float)(1.0 / grid->cell_size);
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < grid->dimension; d++) {
        float coordinate = sk_cell_coordinate(x[d], (float)grid->corner[d], inverse);
        if (!(coordinate >= 0.0f && coordinate < (float)(grid->blocks[d] << grid->block_log)))
            return 0;
        cell[d] = (int)coordinate;
    }
    size_t local;
    const uint64_t place = sk_grid_place(grid, cell, &local);
    int block = sk_block_find(&grid->table, place);
    if (!block)
        return sk_block_find(&solids->table, place) >= 0 || solids->moving_count; /* not known: ask */
    return solids->distance[(size_t)solids->block_slot[block] * (size_t)solids->block_cells + local] < 1.0f;
}

int sk_solids_push_out(const sk_solids *solids, const float low[3], const float high[3], float x[3])
{
    return sk_solids_push_out_shallow(solids, low, high, INFINITY, x);
}

int sk_solids_push_out_shallow(const sk_solids *solids, const float low[3], const float high[3], double deepest,
                               float x[3])
{
    const double gap = 1e-3 * solids->cell_size;
    int pushed = 0;
    for (int attempt = 0; attempt < 8; attempt++) {
        double point[3] = {x[0], x[1], x[2]}, normal[3];
        int obstacle;
        double distance = sk_solids_distance(solids, point, normal, &obstacle);
        if (distance >= 0.5 * gap || obstacle < 0 || distance < -deepest)
            break;
        pushed = 1;
        for (int d = 0; d < solids->dimension; d++) {
            x[d] = (float)(point[d] + (gap - distance) * normal[d]);
            x[d] = x[d] < low[d] ? low[d] : x[d] > high[d] ? high[d] : x[d];
        }
    }
    return pushed;
}
