/* The maps of the dye. */
#include "methods/reduced/dye.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "defs/fields.h"
#include "methods/reduced/dye_kernels.h"
#include "methods/reduced/reduced.h"
#include "rigid/rigid.h"

static const float most_bend = 0.5f;      /* second difference of a map at a node, cells */
static const double most_bent = 0.02;     /* part of the nodes with more: the map is put away */
static const float most_by_source = 3.0f; /* cells: ways through sources are straight in each map */
static const double off_surface = 1e-3;   /* cells: what is inside a body sees the liquid so far off it */

static sk_dye *dye_of(const sk_step *step)
{
    return sk_step_state(step, &sk_method_dye);
}

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_REDUCED;
}

/* --- Life --- */

static selkie_code create(sk_step *step, selkie_error *error)
{
    sk_dye *dye = sk_allocate_zeroed(step->memory, sizeof *dye);
    if (!dye)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "dye: no memory");
    sk_step_set_state(step, &sk_method_dye, dye);
    dye->memory = step->memory;
    dye->nodes = (size_t)(step->grid.cells[0] + 1) * (size_t)(step->grid.cells[1] + 1);
    for (int d = 0; d < 2; d++)
        dye->pixels[d] = step->grid.cells[d] * step->scene->reduced.dye_pixels;
    dye->none.map_count = -1;
    dye->header = &dye->none;
    return SELKIE_OK;
}

static void forget_shapes(sk_dye *dye)
{
    for (int n = 0; n < dye->count; n++)
        sk_shape_destroy(dye->shapes[n]);
    sk_release(dye->memory, dye->shapes);
    sk_release(dye->memory, dye->bounds);
    dye->shapes = NULL;
    dye->bounds = NULL;
    dye->count = dye->room = 0;
}

static void destroy(sk_step *step)
{
    sk_dye *dye = dye_of(step);
    if (!dye)
        return;
    forget_shapes(dye);
    sk_release(step->memory, dye->block);
    sk_release(step->memory, dye->next);
    sk_release(step->memory, dye->other_picture);
    sk_release(step->memory, dye);
    sk_step_set_state(step, &sk_method_dye, NULL);
}

/* Room for all maps and pictures, with a map that begins now. */
static selkie_code make_maps(sk_dye *dye, double now, selkie_error *error)
{
    const size_t bytes = sk_dye_bytes(dye, SK_DYE_MAPS), map = dye->nodes * 2,
                 pixels = (size_t)dye->pixels[0] * (size_t)dye->pixels[1];
    dye->block = sk_allocate_zeroed(dye->memory, bytes);
    dye->next = sk_allocate_zeroed(dye->memory, map * sizeof(float));
    dye->other_picture = sk_allocate_zeroed(dye->memory, pixels + 8);
    if (!dye->block || !dye->next || !dye->other_picture)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.dye: no memory for maps of %.1f MiB",
                       (double)bytes / 1048576.0);
    dye->header = (sk_dye_header *)(void *)dye->block;
    dye->current = (float *)(void *)(dye->block + sizeof *dye->header);
    dye->picture = (uint8_t *)(dye->current + map);
    dye->older = (float *)(void *)(dye->picture + (pixels + 7) / 8 * 8);
    *dye->header = (sk_dye_header){.begin = {now}};
    return SELKIE_OK;
}

/* Shapes of dyes that have none yet: all at the start, and those that changes add. */
static selkie_code make_shapes(sk_dye *dye, const sk_step *step, selkie_error *error)
{
    const selkie_reduced_def *def = &step->scene->reduced;
    double up[3];
    if (dye->count >= def->dye_count)
        return SELKIE_OK;
    if (dye->room < SK_MAX_DYES) {
        dye->shapes = sk_allocate_zeroed(dye->memory, SK_MAX_DYES * sizeof *dye->shapes);
        dye->bounds = sk_allocate_zeroed(dye->memory, SK_MAX_DYES * sizeof *dye->bounds);
        if (!dye->shapes || !dye->bounds)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.dye: no memory");
        dye->room = SK_MAX_DYES;
    }
    selkie_scene_up(step->scene, up);
    for (; dye->count < def->dye_count && dye->count < dye->room; dye->count++) {
        char what[64];
        double low[3], high[3];
        snprintf(what, sizeof what, "reduced.dye[%d].shape", dye->count);
        const sk_shape_options options = {.dimension = 2, .up = up, .folder = step->scene->folder, .what = what};
        SK_TRY(sk_shape_create(&def->dye[dye->count].shape, &options, &dye->shapes[dye->count], error));
        sk_shape_bounds(dye->shapes[dye->count], low, high);
        for (int d = 0; d < 2; d++) {
            dye->bounds[dye->count][0][d] = low[d];
            dye->bounds[dye->count][1][d] = high[d];
        }
    }
    return SELKIE_OK;
}

static selkie_code begin(sk_dye *dye, const sk_step *step, selkie_error *error)
{
    if (step->scene->reduced.dye_count == 0)
        return SELKIE_OK;
    SK_TRY(make_shapes(dye, step, error));
    return dye->block ? SELKIE_OK : make_maps(dye, step->time, error);
}

/* Whether nothing of a shape lies in the domain. Along a periodic axis it comes back in. */
static int is_outside(const sk_step *step, double bounds[2][2])
{
    int outside = 0;
    for (int d = 0; d < 2; d++) {
        const double low = step->scene->domain.origin[d], high = low + step->scene->domain.size[d];
        outside |= !sk_reduced_is_periodic(step->scene, d) && (bounds[0][d] >= high || bounds[1][d] <= low);
    }
    return outside;
}

/* The shapes of a scene's own dyes; one that colours nothing is an error. */
static selkie_code make_first_shapes(sk_dye *dye, const sk_step *step, selkie_error *error)
{
    SK_TRY(make_shapes(dye, step, error));
    for (int n = 0; n < dye->count; n++)
        if (is_outside(step, dye->bounds[n]))
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "reduced.dye[%d].shape: lies outside the domain and dyes nothing; move it, or "
                           "leave it out",
                           n);
    return SELKIE_OK;
}

static selkie_code populate(sk_step *step, selkie_error *error)
{
    sk_dye *dye = dye_of(step);
    SK_TRY(make_first_shapes(dye, step, error));
    return begin(dye, step, error);
}

/* Input errors: files of shapes, and their places. */
static selkie_code check(const sk_step *step, selkie_error *error)
{
    sk_dye dye = {.memory = step->memory};
    const selkie_code code = make_first_shapes(&dye, step, error);
    forget_shapes(&dye);
    return code;
}

/* --- A step --- */

/* Where the liquid at a node came from in the step. Inside solids it is that of the surface: values between the nodes
 * then continue those outside. */
static void trace_node(const sk_step *step, const sk_reduced *reduced, const sk_reduced_view *flow, float x[2])
{
    double at[3] = {x[0], x[1], 0.0}, normal[3], gap;
    int obstacle;
    const double off = off_surface * step->grid.cell_size;
    const int among = step->solids.obstacle_count > 0;
    const int body = reduced->swim ? sk_swim_near_body(reduced->swim, step, 1, at, normal, &gap) : -1;
    if (body >= 0) {
        for (int d = 0; d < 2 && gap < off; d++)
            at[d] += (off - gap) * normal[d];
        sk_swim_carry_back(reduced->swim, body, step->dt, at);
        x[0] = (float)at[0];
        x[1] = (float)at[1];
        sk_dye_trace(flow, 1, 0.0f, x);
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        gap = among ? sk_solids_distance(&step->solids, at, normal, &obstacle) : 1.0;
        for (int d = 0; d < 2 && among && gap < off && obstacle >= 0; d++)
            x[d] = (float)(at[d] + (off - gap) * normal[d]);
        if (pass == 0)
            sk_dye_trace(flow, !among, (float)step->dt, x);
        at[0] = x[0];
        at[1] = x[1];
    }
}

static void trace_nodes(sk_dye *dye, const sk_step *step, const sk_reduced *reduced)
{
    const sk_reduced_view flow = sk_reduced_view_of(reduced, step, reduced->between),
                          map = sk_reduced_view_of(reduced, step, dye->current);
    const int *cells = step->grid.cells;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int i = 0; i <= cells[0]; i++)
        for (int j = 0; j <= cells[1]; j++) {
            const float node[2] = {(float)i / flow.inverse[0], (float)j / flow.inverse[1]};
            float x[2] = {node[0], node[1]}, before[2];
            float *to = dye->next + 2 * ((size_t)i * (size_t)(cells[1] + 1) + (size_t)j);
            trace_node(step, reduced, &flow, x);
            sk_dye_sample(&map, x, before);
            to[0] = x[0] - node[0] + before[0];
            to[1] = x[1] - node[1] + before[1];
        }
}

/* --- A new map --- */

static int is_beside_body(const sk_reduced *reduced, const int cells[2], int i, int j)
{
    const sk_swim *swim = reduced->swim;
    return swim && swim->flows[swim->now].near[(size_t)i * (size_t)cells[1] + (size_t)j];
}

/* Is the map bent at too many nodes? Beside bodies both sides of one meet, and no new map would cure that. */
static int is_bent(const sk_dye *dye, const sk_step *step, const sk_reduced *reduced)
{
    const int *cells = step->grid.cells;
    const float least = most_bend * (float)step->grid.cell_size;
    const ptrdiff_t next[2] = {2 * (ptrdiff_t)(cells[1] + 1), 2};
    int64_t bent = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(+ : bent)
    for (int i = 1; i < cells[0]; i++)
        for (int j = 1; j < cells[1]; j++) {
            const float *at = dye->current + 2 * ((size_t)i * (size_t)(cells[1] + 1) + (size_t)j);
            float bend = 0.0f;
            for (int k = 0; k < 4; k++)
                bend = fmaxf(bend, fabsf(at[k % 2 - next[k / 2]] - 2.0f * at[k % 2] + at[k % 2 + next[k / 2]]));
            bent += bend > least && !is_beside_body(reduced, cells, i, j);
        }
    return (double)bent > most_bent * (double)dye->nodes;
}

/* Has the liquid in a source that is at work come from too far? */
static int source_is_crossed(const sk_dye *dye, const sk_step *step)
{
    const double h = step->grid.cell_size;
    const int *cells = step->grid.cells;
    for (int n = 0; n < dye->count; n++) {
        const selkie_dye_def *def = &step->scene->reduced.dye[n];
        if (!(def->start < step->end_time && def->end > step->time))
            continue;
        int low[2], high[2];
        for (int d = 0; d < 2; d++) {
            low[d] = (int)fmin(fmax(floor(dye->bounds[n][0][d] / h), 0.0), cells[d]);
            high[d] = (int)fmin(fmax(ceil(dye->bounds[n][1][d] / h), 0.0), cells[d]);
        }
        for (int i = low[0]; i <= high[0]; i++)
            for (int j = low[1]; j <= high[1]; j++) {
                const float *way = dye->current + 2 * ((size_t)i * (size_t)(cells[1] + 1) + (size_t)j);
                if (hypotf(way[0], way[1]) > most_by_source * (float)h)
                    return 1;
            }
    }
    return 0;
}

/* Does a source begin or end in the step? */
static int source_turns(const sk_dye *dye, const sk_step *step)
{
    for (int n = 0; n < dye->count; n++) {
        const double ends[2] = {step->scene->reduced.dye[n].start, step->scene->reduced.dye[n].end};
        for (int k = 0; k < 2; k++)
            if (ends[k] > step->time && ends[k] <= step->end_time)
                return 1;
    }
    return 0;
}

static void put_away(sk_dye *dye, const sk_step *step, const sk_reduced *reduced)
{
    const size_t map = dye->nodes * 2 * sizeof(float);
    sk_dye_header *h = dye->header;
    if (h->map_count == SK_DYE_MAPS) {
        const sk_reduced_view view = sk_reduced_view_of(reduced, step, dye->current);
        sk_dye_remember(dye, step, &view, step->end_time);
    } else {
        memcpy(dye->older + (size_t)h->map_count++ * dye->nodes * 2, dye->current, map);
    }
    memset(dye->current, 0, map);
    h->begin[h->map_count] = step->end_time;
}

static selkie_code advance(sk_step *step, selkie_error *error)
{
    sk_dye *dye = dye_of(step);
    const sk_reduced *reduced = sk_step_state(step, &sk_method_reduced);
    SK_TRY(begin(dye, step, error));
    if (!dye->block)
        return SELKIE_OK;
    trace_nodes(dye, step, reduced);
    memcpy(dye->current, dye->next, dye->nodes * 2 * sizeof(float));
    if (source_turns(dye, step) || source_is_crossed(dye, step) || is_bent(dye, step, reduced))
        put_away(dye, step, reduced);
    return SELKIE_OK;
}

/* --- Checkpoints --- */

static sk_chunk_view state(const sk_step *step)
{
    const sk_dye *dye = dye_of(step);
    return (sk_chunk_view){"dye", dye->header, sk_dye_bytes(dye, dye->header->map_count)};
}

/* Maps of reasonable size, times, and numbers of dyes that the scene has. */
static int is_good(const sk_dye *dye, const sk_dye_header *h, const sk_chunk_view *chunk, int dyes)
{
    if (h->map_count < -1 || h->map_count > SK_DYE_MAPS || chunk->bytes != sk_dye_bytes(dye, h->map_count))
        return 0;
    const char *at = (const char *)chunk->data + sizeof *h, *end = (const char *)chunk->data + chunk->bytes;
    const size_t picture = sk_dye_bytes(dye, 0) - sizeof *h - dye->nodes * 2 * sizeof(float);
    for (int m = 0; m <= h->map_count; m++)
        if (!(fabs(h->begin[m]) < 1e15))
            return 0;
    for (size_t n = 0; at < end; n++, at += sizeof(float)) {
        float value;
        if (n == dye->nodes * 2) {
            for (size_t k = 0; k < picture; k++)
                if ((unsigned char)at[k] > dyes)
                    return 0;
            at += picture;
        }
        if (at >= end)
            break;
        memcpy(&value, at, sizeof value);
        if (!(fabsf(value) < 1e15f))
            return 0;
    }
    return 1;
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    sk_dye *dye = dye_of(step);
    sk_dye_header h;
    if (chunk->bytes < sizeof h)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the state of the dye is cut off", file);
    memcpy(&h, chunk->data, sizeof h);
    if (!is_good(dye, &h, chunk, step->scene->reduced.dye_count))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the maps of the dye are damaged or of another scene", file);
    if (h.map_count < 0) {
        sk_release(step->memory, dye->block);
        sk_release(step->memory, dye->next);
        sk_release(step->memory, dye->other_picture);
        dye->block = NULL;
        dye->next = NULL;
        dye->other_picture = NULL;
        dye->header = &dye->none;
        return SELKIE_OK;
    }
    if (!dye->block)
        SK_TRY(make_maps(dye, step->time, error));
    memcpy(dye->block, chunk->data, chunk->bytes);
    return SELKIE_OK;
}

static double bytes_per_cell(const selkie_scene *scene)
{
    const double pixels = (double)scene->reduced.dye_pixels * scene->reduced.dye_pixels;
    return scene->reduced.dye_count ? (SK_DYE_MAPS + 2) * 2 * sizeof(float) + 2.0 * pixels : 0.0;
}

const sk_method sk_method_dye = {
    .name = "dye",
    .takes_part = takes_part,
    .check = check,
    .create = create,
    .populate = populate,
    .destroy = destroy,
    .phases =
        {
            {.name = "dye", .slot = SK_SLOT_MOVE, .run = SK_ONE_FORM_ANY_DIMENSION(advance)},
        },
    .state = state,
    .restore = restore,
    .paint = sk_dye_paint,
    .bytes_per_cell = bytes_per_cell,
};
