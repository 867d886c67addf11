/* Samples for the model of splashes.
 *
 * A label is 1 if a particle is in a connected component of fewer than eight fine cells one frame later and was not in
 * such a component before (Um et al. 2018, section 3.3). The change of velocity is that of a ballistic path from where
 * the particle was to where it is: v = dx/dt - g dt/2, minus the coarse velocity there.
 *
 * The coarse grid has velocity and fill at cell centres by the linear hat kernel, as the grid of a coarse run.
 */
#include "splash_samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "grid/wrap_kernels.h"
#include "learn/splash_train.h"
#include "splash_solids.h"

enum { PAD = 4, SMALL = 8, MOST_THIN = 16 };

struct splash_sampler {
    int dimension, ratio, thin;          /* thin: one of so many particles is a candidate */
    double share;                        /* particles of a coarse run that a candidate stands for */
    double keep, fps, gravity[3], speed; /* speed: sqrt(g h + sigma / (density h)) */
    uint64_t seed, frame;
    double cell, coarse, full; /* m, m, particles in a full coarse cell */
    int cells[3], wide[3];     /* fine cells; coarse cells with their padding */
    size_t fine_count, coarse_count;
    int32_t *component, *stack, *size; /* [fine cells] */
    float *fill, *velocity[3];         /* [coarse cells] */
    float *room;                       /* [coarse cells] open part under a cell's hat kernel; 0 in solids */
    int periodic;                      /* bit d: the sides across axis d are joined */
    int open[6];                       /* sides without a wall */
    splash_solids *solids;
    uint8_t *small_before; /* [ids] */
    size_t id_capacity;
    splash_candidate *candidates;
    float *features;
    int64_t candidate_count;
    size_t candidate_capacity;
    sk_splash_cells view;
    sk_splash_options options;
};

static void measure_room(splash_sampler *s);

/* Numbers of cells, sides and obstacles. Returns 0 without memory. */
static int open_cells(splash_sampler *s, const selkie_scene *scene)
{
    selkie_error error = {0};
    s->fine_count = s->coarse_count = 1;
    for (int d = 0; d < 3; d++) {
        s->wide[d] = d < s->dimension ? (s->cells[d] + s->ratio - 1) / s->ratio + 2 * PAD : 1;
        s->fine_count *= d < s->dimension ? (size_t)s->cells[d] : 1;
        s->coarse_count *= (size_t)s->wide[d];
        if (d < s->dimension && (scene->domain.periodic >> d & 1) && s->cells[d] % s->ratio == 0)
            s->periodic |= 1 << d;
        for (int side = 0; side < 2; side++)
            s->open[2 * d + side] = scene->domain.walls[2 * d + side] == SELKIE_WALL_OPEN;
    }
    s->component = malloc(3 * s->fine_count * sizeof *s->component);
    s->fill = malloc((size_t)(2 + s->dimension) * s->coarse_count * sizeof *s->fill);
    s->solids = splash_solids_open(scene, &error);
    return s->component && s->fill && s->solids;
}

splash_sampler *splash_sampler_open(const selkie_scene *scene, int ratio, double keep, uint64_t seed)
{
    splash_sampler *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->dimension = scene->domain.dimension;
    s->ratio = ratio;
    const double more = pow(ratio, s->dimension); /* particles than in a coarse run */
    s->thin = more > MOST_THIN ? MOST_THIN : (int)lround(more);
    s->share = s->thin / more;
    s->keep = keep;
    s->seed = seed;
    s->fps = scene->time.fps;
    s->cell = selkie_scene_cells(scene, s->cells);
    s->coarse = s->cell * ratio;
    const int usual = s->dimension == 2 ? 9 : 8;
    s->full = (scene->particles.per_cell ? scene->particles.per_cell : usual) * more;
    memcpy(s->gravity, scene->gravity, sizeof s->gravity);
    const double g = sqrt(pow(s->gravity[0], 2) + pow(s->gravity[1], 2) + pow(s->gravity[2], 2));
    const double capillary = scene->surface_tension / (1000.0 * s->coarse);
    s->speed = sqrt(g * s->coarse + capillary);
    if (!open_cells(s, scene)) {
        splash_sampler_close(s);
        return NULL;
    }
    s->stack = s->component + s->fine_count;
    s->size = s->stack + s->fine_count;
    for (int d = 0; d < s->dimension; d++)
        s->velocity[d] = s->fill + (size_t)(1 + d) * s->coarse_count;
    s->room = s->fill + (size_t)(1 + s->dimension) * s->coarse_count;
    s->view = (sk_splash_cells){{s->velocity[0], s->velocity[1], s->velocity[2]},
                                s->fill,
                                {1, s->wide[0], s->wide[0] * s->wide[1]},
                                s->dimension};
    s->options = (sk_splash_options){SK_SPLASH_REACH,
                                     sk_splash_velocity_reach(s->dimension),
                                     1,
                                     1.0f,
                                     (float)(1.0 / s->speed),
                                     (float)(g * s->coarse / (g * s->coarse + capillary))};
    for (int d = 0; d < s->dimension; d++)
        if (fabs(s->gravity[d]) > fabs(s->gravity[s->options.up_axis])) {
            s->options.up_axis = d;
            s->options.up_sign = s->gravity[d] > 0.0 ? -1.0f : 1.0f;
        }
    measure_room(s);
    return s;
}

void splash_sampler_use(splash_sampler *s, int reach, int velocity_reach)
{
    s->options.reach = reach;
    s->options.velocity_reach = velocity_reach;
}

void splash_sampler_close(splash_sampler *s)
{
    if (!s)
        return;
    splash_solids_close(s->solids);
    free(s->component);
    free(s->fill);
    free(s->small_before);
    free(s->candidates);
    free(s->features);
    free(s);
}

void splash_samples_free(splash_samples *samples)
{
    free(samples->features);
    free(samples->change);
    free(samples->weight);
    free(samples->label);
    memset(samples, 0, sizeof *samples);
}

/* --- Fields --- */

static const float *row_of(const selkie_attribute_view *view, int64_t p)
{
    return (const float *)(const void *)((const char *)view->data + (size_t)p * view->stride);
}

static size_t fine_cell(const splash_sampler *s, const float *x)
{
    size_t index = 0, stride = 1;
    for (int d = 0; d < s->dimension; d++) {
        int i = (int)(x[d] / s->cell);
        i = i < 0 ? 0 : i >= s->cells[d] ? s->cells[d] - 1 : i;
        index += (size_t)i * stride;
        stride *= (size_t)s->cells[d];
    }
    return index;
}

/* Numbers the connected components of occupied cells, and counts their cells. */
static void find_components(splash_sampler *s, const selkie_attribute_view *position, int64_t count)
{
    const int strides[3] = {1, s->cells[0], s->cells[0] * s->cells[1]};
    int32_t components = 0;
    for (size_t n = 0; n < s->fine_count; n++)
        s->component[n] = -1; /* dry */
    for (int64_t p = 0; p < count; p++)
        s->component[fine_cell(s, row_of(position, p))] = -2; /* not yet seen */
    for (size_t n = 0; n < s->fine_count; n++) {
        if (s->component[n] != -2)
            continue;
        int32_t depth = 0, size = 0;
        s->stack[depth++] = (int32_t)n;
        s->component[n] = components;
        while (depth) {
            const int32_t at = s->stack[--depth];
            size++;
            for (int d = 0; d < s->dimension; d++) {
                const int i = at / strides[d] % s->cells[d];
                for (int side = -1; side <= 1; side += 2) {
                    const int beyond = i + side < 0 || i + side >= s->cells[d], joined = s->periodic >> d & 1;
                    const int32_t other = at + (beyond ? side - side * s->cells[d] : side) * strides[d];
                    if ((beyond && !joined) || s->component[other] != -2)
                        continue;
                    s->component[other] = components;
                    s->stack[depth++] = other;
                }
            }
        }
        s->size[components++] = size;
    }
}

/* Coarse cell whose centre is below a position, as an index, and the fractions to the next centres. */
static int place_of(const splash_sampler *s, const float *x, float fraction[3])
{
    int index = 0, stride = 1;
    for (int d = 0; d < s->dimension; d++) {
        const double at = x[d] / s->coarse - 0.5 + PAD, floor_at = floor(at);
        fraction[d] = (float)(at - floor_at);
        index += (int)floor_at * stride;
        stride *= s->wide[d];
    }
    return index;
}

/* Coordinates of a coarse cell, from 0 in the domain. */
static void coarse_coordinates(const splash_sampler *s, size_t n, int cell[3])
{
    for (int d = 0; d < 3; d++)
        cell[d] = d < s->dimension ? (int)(n / (size_t)s->view.step[d] % (size_t)s->wide[d]) - PAD : 0;
}

/* The cell that a cell beyond joined sides is the image of. */
static size_t wrapped_cell(const splash_sampler *s, size_t n)
{
    int cell[3];
    if (!s->periodic)
        return n;
    coarse_coordinates(s, n, cell);
    size_t index = 0;
    for (int d = 0; d < s->dimension; d++) {
        const int at = s->periodic >> d & 1 ? sk_wrap_index(cell[d], s->wide[d] - 2 * PAD) : cell[d];
        index += (size_t)(at + PAD) * (size_t)s->view.step[d];
    }
    return index;
}

/* Part of a coarse cell that is neither behind a wall nor in an obstacle. */
static float open_part(const splash_sampler *s, size_t n)
{
    int cell[3];
    float centre[3] = {0.0f, 0.0f, 0.0f};
    coarse_coordinates(s, wrapped_cell(s, n), cell);
    for (int d = 0; d < s->dimension; d++) {
        const int last = s->wide[d] - 2 * PAD - 1;
        if ((cell[d] < 0 && !s->open[2 * d]) || (cell[d] > last && !s->open[2 * d + 1]))
            return 0.0f;
        centre[d] = (float)((cell[d] + 0.5) * s->coarse);
    }
    const double distance = splash_solids_distance(s->solids, centre) / s->coarse;
    return (float)fmin(fmax(0.5 + distance, 0.0), 1.0);
}

/* The room for liquid under the hat kernel of each cell: the open parts, blurred by (1, 6, 1)/8 along each axis. */
static void measure_room(splash_sampler *s)
{
    float *open = s->fill, *next = s->velocity[0]; /* free between frames */
    for (size_t n = 0; n < s->coarse_count; n++)
        s->room[n] = open[n] = open_part(s, n);
    for (int d = 0; d < s->dimension; d++) {
        const size_t step = (size_t)s->view.step[d];
        for (size_t n = 0; n < s->coarse_count; n++) {
            const int inner = n >= step && n + step < s->coarse_count;
            next[n] = 0.75f * open[n] + (inner ? 0.125f * (open[n - step] + open[n + step]) : 0.25f * open[n]);
        }
        memcpy(open, next, s->coarse_count * sizeof *open);
    }
    for (size_t n = 0; n < s->coarse_count; n++)
        s->room[n] = s->room[n] > 0.0f ? fmaxf(open[n], 0.05f) : 0.0f;
}

/* Velocity and fill of the coarse cells. */
static void fill_coarse(splash_sampler *s, const selkie_attribute_view *position, const selkie_attribute_view *velocity,
                        int64_t count, double time)
{
    if (splash_solids_move(s->solids, time))
        measure_room(s);

    /* Sums over the particles; those beyond joined sides belong to the cells there. */
    memset(s->fill, 0, (size_t)(1 + s->dimension) * s->coarse_count * sizeof *s->fill);
    for (int64_t p = 0; p < count; p++) {
        const float *x = row_of(position, p), *v = row_of(velocity, p);
        float fraction[3];
        const int place = place_of(s, x, fraction);
        for (int n = 0; n < 1 << s->dimension; n++) {
            int corner;
            const float weight = sk_splash_corner(&s->view, fraction, n, &corner);
            const size_t cell = wrapped_cell(s, (size_t)(place + corner));
            s->fill[cell] += weight;
            for (int d = 0; d < s->dimension; d++)
                s->velocity[d][cell] += weight * v[d];
        }
    }

    /* Means, and the images of cells. */
    for (size_t n = 0; n < s->coarse_count; n++) {
        for (int d = 0; d < s->dimension; d++)
            s->velocity[d][n] = s->fill[n] > 0.0f ? s->velocity[d][n] / s->fill[n] : 0.0f;
        s->fill[n] = s->room[n] > 0.0f ? (float)(s->fill[n] / (s->full * s->room[n])) : -1.0f;
    }
    for (size_t n = 0; n < s->coarse_count && s->periodic; n++) {
        const size_t from = wrapped_cell(s, n);
        s->fill[n] = s->fill[from];
        for (int d = 0; d < s->dimension; d++)
            s->velocity[d][n] = s->velocity[d][from];
    }
}

/* --- Samples --- */

static int grow_samples(splash_samples *samples, int64_t more)
{
    const size_t need = (size_t)(samples->count + more);
    if (need <= samples->capacity)
        return 1;
    const size_t capacity = need + need / 2 + 1024;
    float *features = realloc(samples->features, capacity * (size_t)samples->feature_count * sizeof(float));
    samples->features = features ? features : samples->features;
    float *change = realloc(samples->change, capacity * 3 * sizeof(float));
    samples->change = change ? change : samples->change;
    float *weight = realloc(samples->weight, capacity * sizeof(float));
    samples->weight = weight ? weight : samples->weight;
    uint8_t *label = realloc(samples->label, capacity);
    samples->label = label ? label : samples->label;
    samples->capacity = features && change && weight && label ? capacity : samples->capacity;
    return features && change && weight && label;
}

/* Keeps a candidate as a sample, with the change of velocity if it has become a splash at x. */
static void keep_sample(const splash_sampler *s, const splash_candidate *c, const float *features, const float *x,
                        splash_samples *samples)
{
    const int64_t n = samples->count++;
    const double dt = 1.0 / s->fps;
    memcpy(samples->features + (size_t)n * (size_t)samples->feature_count, features,
           (size_t)samples->feature_count * sizeof *features);
    samples->label[n] = x != NULL;
    samples->weight[n] = (float)(x ? s->share : s->share / s->keep);
    samples->splashes += x != NULL;
    for (int d = 0; d < s->dimension; d++) {
        const int axis = c->frame.axis[d];
        const double start = x ? (x[axis] - c->position[axis]) / dt - 0.5 * s->gravity[axis] * dt : 0.0;
        samples->change[n * s->dimension + d] =
            x ? (float)(c->frame.sign[d] * (start - c->velocity[axis]) / s->speed) : 0.0f;
    }
}

/* Labels the candidates of the frame before. `found` has the number of each id's particle now, or -1. */
static int label_candidates(splash_sampler *s, const selkie_attribute_view *position, const int64_t *found, size_t ids,
                            splash_samples *samples)
{
    if (!grow_samples(samples, s->candidate_count))
        return 0;
    for (int64_t n = 0; n < s->candidate_count; n++) {
        const splash_candidate *c = &s->candidates[n];
        const int64_t p = c->id < ids ? found[c->id] : -1;
        if (p < 0)
            continue;
        const float *x = row_of(position, p);
        const int splash = s->size[s->component[fine_cell(s, x)]] < SMALL && !s->small_before[c->id];
        if (!splash && !(sk_random_float(s->seed, c->id, s->frame) < s->keep))
            continue;
        keep_sample(s, c, s->features + (size_t)n * (size_t)samples->feature_count, splash ? x : NULL, samples);
    }
    return 1;
}

static int grow_candidates(splash_sampler *s, int feature_count)
{
    if ((size_t)s->candidate_count < s->candidate_capacity)
        return 1;
    const size_t capacity = 2 * s->candidate_capacity + 1024;
    splash_candidate *candidates = realloc(s->candidates, capacity * sizeof *candidates);
    s->candidates = candidates ? candidates : s->candidates;
    float *features = realloc(s->features, capacity * (size_t)feature_count * sizeof *features);
    s->features = features ? features : s->features;
    s->candidate_capacity = candidates && features ? capacity : s->candidate_capacity;
    return candidates && features;
}

/* Is a cell in the band at the surface: it holds liquid, and air is among the cells around it? */
static int in_band(const sk_splash_cells *cells, int place)
{
    const int planes = cells->dimension == 3 ? 1 : 0;
    int air = 0;
    for (int z = -planes; z <= planes; z++)
        for (int y = -1; y <= 1; y++)
            for (int x = -1; x <= 1; x++)
                air |=
                    sk_splash_is_air(cells->fill[place + x * cells->step[0] + y * cells->step[1] + z * cells->step[2]]);
    return air && cells->fill[place] > SK_SPLASH_DRY;
}

/* Adds a particle to the candidates if it is in the band of the coarse grid. Returns 0 without memory. */
static int add_candidate(splash_sampler *s, const float *x, uint32_t id, int64_t particle, int feature_count)
{
    float fraction[3] = {0.0f, 0.0f, 0.0f};
    const int place = place_of(s, x, fraction);
    int own = place;
    for (int d = 0; d < s->dimension; d++)
        own += fraction[d] >= 0.5f ? s->view.step[d] : 0;
    if (!in_band(&s->view, own))
        return 1;
    if (!grow_candidates(s, feature_count))
        return 0;
    splash_candidate *c = &s->candidates[s->candidate_count];
    c->id = id;
    c->particle = particle;
    c->cell = own;
    memcpy(c->position, x, sizeof c->position);
    float *features = s->features + (size_t)s->candidate_count * (size_t)feature_count;
    const int first = sk_splash_cell_features(&s->view, &s->options, own, &c->frame, features);
    sk_splash_own_features(&s->view, &s->options, own, place, fraction, &c->frame, c->velocity, features + first);
    s->candidate_count++;
    return 1;
}

/* Particles in the band of the coarse grid, one of `thin`. */
static int take_candidates(splash_sampler *s, const selkie_attribute_view *position, const uint32_t *ids, size_t stride,
                           int64_t count, int feature_count)
{
    s->candidate_count = 0;
    for (int64_t p = 0; p < count; p++) {
        const uint32_t id = *(const uint32_t *)(const void *)((const char *)ids + (size_t)p * stride);
        const float *x = row_of(position, p);
        s->small_before[id] = s->size[s->component[fine_cell(s, x)]] < SMALL;
        if (sk_hash64(id ^ s->frame << 32) % (uint64_t)s->thin)
            continue;
        if (!add_candidate(s, x, id, p, feature_count))
            return 0;
    }
    return 1;
}

static int count_features(const splash_sampler *s)
{
    return sk_splash_cell_count(s->dimension, s->options.reach, s->options.velocity_reach) +
           sk_splash_own_count(s->dimension);
}

int splash_sampler_frame(splash_sampler *s, const selkie_world *world, splash_samples *samples)
{
    selkie_attribute_view position, velocity, id;
    const int64_t count = selkie_world_particle_count(world);
    if (selkie_world_find_attribute(world, "position", &position, NULL) ||
        selkie_world_find_attribute(world, "velocity", &velocity, NULL) ||
        selkie_world_find_attribute(world, "id", &id, NULL))
        return 0;
    samples->dimension = s->dimension;
    samples->feature_count = count_features(s);

    /* Where each id is now. */
    size_t ids = 0;
    for (int64_t p = 0; p < count; p++) {
        const uint32_t own = *(const uint32_t *)(const void *)row_of(&id, p);
        ids = own >= ids ? (size_t)own + 1 : ids;
    }
    int64_t *found = malloc((ids + 1) * sizeof *found);
    uint8_t *small = ids > s->id_capacity ? realloc(s->small_before, ids) : s->small_before;
    if (!found || !small) {
        free(found);
        return 0;
    }
    s->small_before = small;
    s->id_capacity = ids > s->id_capacity ? ids : s->id_capacity;
    for (size_t n = 0; n < ids; n++)
        found[n] = -1;
    for (int64_t p = 0; p < count; p++)
        found[*(const uint32_t *)(const void *)row_of(&id, p)] = p;

    /* Labels of the last frame's candidates, then new ones. */
    find_components(s, &position, count);
    int good = label_candidates(s, &position, found, ids, samples);
    s->frame++;
    fill_coarse(s, &position, &velocity, count, selkie_world_time(world));
    good = good && take_candidates(s, &position, id.data, id.stride, count, samples->feature_count);
    free(found);
    return good;
}

/* --- Frames of a run --- */

int splash_sampler_search(splash_sampler *s, const splash_particles *particles, int64_t *count,
                          const splash_candidate **candidates, const float **features, int *feature_count)
{
    const selkie_attribute_view position = {.data = (void *)(uintptr_t)particles->position, .stride = 12};
    const selkie_attribute_view velocity = {.data = (void *)(uintptr_t)particles->velocity, .stride = 12};
    *feature_count = count_features(s);
    s->candidate_count = 0;
    fill_coarse(s, &position, &velocity, particles->count, particles->time);
    for (int64_t p = 0; p < particles->count; p++) {
        const uint32_t id = particles->id ? particles->id[p] : (uint32_t)p;
        if (splash_sampler_fill(s, particles->position + 3 * p) >= 0.0f &&
            !add_candidate(s, particles->position + 3 * p, id, p, *feature_count))
            return 0;
    }
    *count = s->candidate_count;
    *candidates = s->candidates;
    *features = s->features;
    return 1;
}

size_t splash_sampler_cells(const splash_sampler *s)
{
    return s->coarse_count;
}

double splash_sampler_speed(const splash_sampler *s)
{
    return s->speed;
}

float splash_sampler_fill(const splash_sampler *s, const float position[3])
{
    float fraction[3] = {0.0f, 0.0f, 0.0f}, velocity[3];
    for (int d = 0; d < s->dimension; d++)
        if (!(position[d] >= 0.0f && position[d] <= (float)(s->cells[d] * s->cell)))
            return -1.0f;
    const int place = place_of(s, position, fraction);
    const float fill = sk_splash_at(&s->view, place, fraction, velocity);
    return fill > 0.0f ? fill : 0.0f;
}

void splash_sampler_wrap(const splash_sampler *s, float position[3])
{
    for (int d = 0; d < s->dimension; d++) {
        const float period = (float)(s->cells[d] * s->cell);
        if (s->periodic >> d & 1)
            position[d] = sk_wrap_position(position[d], 0.0f, nextafterf(period, 0.0f), period);
    }
}

int splash_sampler_in_solid(const splash_sampler *s, const float position[3])
{
    return splash_solids_distance(s->solids, position) < 0.0;
}
