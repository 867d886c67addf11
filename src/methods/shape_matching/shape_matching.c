/* Bodies of particles as a method: creation, sampling, checkpoints. */
#include "methods/shape_matching/shape_matching.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "defs/soft.h"
#include "methods/sorting.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->discretization == SELKIE_DISCRETIZATION_GRID && sk_scene_particle_bodies(scene) > 0;
}

/* The order of Gao et al. 2017, for comparisons. */
static int matches_late(const sk_step *step)
{
    int late = 0;
    for (int b = 0; b < step->soft->body_count; b++)
        late |= step->soft->bodies[b].soft.scheme == SELKIE_SOFT_POSITION;
    return late;
}

/* --- Creation --- */

static const sk_mixture_names names = {
    .velocity = {"solid_x", "solid_y", "solid_z"},
    .share = {"solid_share_x", "solid_share_y", "solid_share_z"},
    .density = "solid_density",
    .velocity_meaning = "velocity of the bodies of particles; then its change",
    .share_meaning = "share of the bodies in the particles around a face",
    .density_meaning = "of the bodies of particles over the rest density, by the trilinear kernel",
};

static selkie_code create(sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    sk_soft *soft = step->soft = sk_allocate_zeroed(step->memory, sizeof *soft);
    if (!soft)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory");
    SK_TRY(sk_mixture_add_fields(&soft->mixture, step, &names, error));
    if (!sk_particles_add_attribute(&step->particles, "body", 1, 1))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "particles: no memory for the attribute \"body\"");
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++) {
        soft->solid_mask[m] = (uint8_t)sk_material_is_solid(scene, m);
        soft->liquid_mask[m] = !soft->solid_mask[m];
    }
    step->liquid_mask = soft->liquid_mask;
    step->sorts_later = 1; /* after `place` */
    soft->bodies = sk_allocate_zeroed(step->memory, ((size_t)scene->body_count + 1) * sizeof *soft->bodies);
    soft->wet_count = scene->body_count + 1;
    soft->wet = sk_allocate_zeroed(step->memory, (size_t)soft->wet_count);
    if (!soft->bodies || !soft->wet)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d of them", scene->body_count);
    for (int b = 0; b < scene->body_count; b++) {
        const int material = sk_body_material(scene, b);
        if (material < 0)
            continue;
        sk_soft_body *body = &soft->bodies[soft->body_count++];
        body->number = b;
        body->material = material;
        body->def = &scene->bodies[b];
        body->soft = scene->materials[material].soft;
        body->mass = step->particle_mass * scene->materials[material].density / step->density;

        /* A rigid body takes its goal in every step. */
        if (scene->materials[material].kind == SELKIE_MATERIAL_RIGID)
            body->soft = (selkie_soft_def){.mode = SELKIE_SOFT_RIGID, .stiffness = 1e9, .damping = 1.0, .clusters = 1};
    }
    return SELKIE_OK;
}

static void destroy(sk_step *step)
{
    sk_soft *soft = step->soft;
    if (!soft)
        return;
    for (int b = 0; soft->bodies && b < soft->body_count; b++)
        sk_shape_destroy(soft->bodies[b].shape);
    sk_release(step->memory, soft->bodies);
    sk_release(step->memory, soft->regions);
    sk_release(step->memory, soft->members);
    sk_release(step->memory, soft->shares);
    sk_release(step->memory, soft->record);
    sk_release(step->memory, soft->wet);
    sk_release(step->memory, soft->late);
    sk_release(step->memory, soft->from);
    sk_release(step->memory, soft->shared);
    sk_release(step->memory, soft->tasks);
    sk_release(step->memory, soft->surfaces);
    sk_release(step->memory, soft->outer);
    sk_release(step->memory, soft->spans);
    sk_release(step->memory, soft->state);
    sk_release(step->memory, soft);
    step->soft = NULL;
    step->liquid_mask = NULL;
}

/* --- Sampling --- */

typedef struct body_lattice {
    double low[3], spacing; /* m */
    int count[3];
} body_lattice;

/* The lattice over the bounds of a shape, symmetric about their middle. */
static void find_lattice(const sk_step *step, const sk_shape *shape, body_lattice *lattice)
{
    double low[3], high[3];
    sk_shape_bounds(shape, low, high);
    lattice->spacing = step->grid.cell_size / pow(step->particles_per_cell, 1.0 / step->dimension);
    for (int d = 0; d < 3; d++) {
        const double size = d < step->dimension ? high[d] - low[d] : 0.0;
        lattice->count[d] = d < step->dimension ? (int)fmax(1.0, nearbyint(size / lattice->spacing)) : 1;
        lattice->low[d] =
            d < step->dimension ? 0.5 * (low[d] + high[d] - (lattice->count[d] - 1) * lattice->spacing) : 0.0;
    }
}

static void lattice_point(const body_lattice *lattice, int64_t n, double x[3])
{
    const int64_t row = n / lattice->count[0];
    const int at[3] = {(int)(n % lattice->count[0]), (int)(row % lattice->count[1]), (int)(row / lattice->count[1])};
    for (int d = 0; d < 3; d++)
        x[d] = lattice->low[d] + at[d] * lattice->spacing;
}

/* Writes a place of the lattice. Returns whether a body has a particle there. */
static int is_place(const sk_step *step, const sk_shape *shape, const body_lattice *lattice, int64_t n, double x[3])
{
    int inside = 1;
    lattice_point(lattice, n, x);
    for (int d = 0; d < step->dimension; d++)
        inside &= x[d] > step->grid.low[d] && x[d] < step->grid.high[d];
    return inside && sk_shape_inside(shape, x);
}

static int64_t count_places(const body_lattice *lattice)
{
    return (int64_t)lattice->count[0] * lattice->count[1] * lattice->count[2];
}

static selkie_code make_shape(const sk_step *step, int b, char what[64], sk_shape **shape, selkie_error *error)
{
    double up[3];
    selkie_scene_up(step->scene, up);
    snprintf(what, 64, "bodies[%d].shape", b);
    const sk_shape_options options = {
        .dimension = step->dimension, .up = up, .folder = step->scene->folder, .what = what, .memory = step->memory};
    return sk_shape_create(&step->scene->bodies[b].shape, &options, shape, error);
}

static selkie_code fail_of_overlap(const char *what, int other, selkie_error *error)
{
    return sk_fail(error, SELKIE_ERROR_INPUT,
                   "%s: overlaps bodies[%d]: bodies must have places of their own at the start", what, other);
}

/* Removes the liquid inside a body. Another body there is an error. */
static selkie_code make_room(sk_step *step, const sk_shape *shape, const char *what, selkie_error *error)
{
    sk_particles *particles = &step->particles;
    const sk_attribute *owner = sk_particles_find_attribute(particles, "body");
    for (int64_t p = 0; p < particles->count; p++) {
        const float *at = particles->records[p].position;
        const double x[3] = {(double)at[0], (double)at[1], (double)at[2]};
        if (!sk_shape_inside(shape, x))
            continue;
        if (owner->data[p])
            return fail_of_overlap(what, (int)owner->data[p] - 1, error);
        particles->records[p].flags |= SK_PARTICLE_DEAD;
    }
    sk_particles_drop_dead(particles);
    return SELKIE_OK;
}

/* Appends the particles of a body. Their points follow when all bodies are there. */
static selkie_code sample_body(sk_step *step, sk_soft_body *body, selkie_error *error)
{
    sk_particles *particles = &step->particles;
    char what[64];
    sk_shape *shape = NULL;
    body_lattice lattice;
    SK_TRY(make_shape(step, body->number, what, &shape, error));
    body->shape = shape; /* until the points are made */
    selkie_code code = make_room(step, shape, what, error);
    find_lattice(step, shape, &lattice);
    const int64_t places = count_places(&lattice);
    int64_t count = 0;
    for (int pass = 0; code == SELKIE_OK && pass < 2; pass++) {
        if (pass == 1)
            code = sk_particles_reserve(particles, particles->count + count, error);
        const sk_attribute *owner = sk_particles_find_attribute(particles, "body");
        const sk_attribute *material = sk_particles_find_attribute(particles, "material");
        const sk_attribute *heat = sk_particles_find_attribute(particles, "temperature");
        float *temperature = heat ? (float *)(void *)heat->data : NULL; /* K */
        for (int64_t n = 0; code == SELKIE_OK && n < places; n++) {
            double x[3];
            if (!is_place(step, shape, &lattice, n, x))
                continue;
            count += pass == 0;
            if (pass == 0)
                continue;
            sk_particles_append(particles, x, body->def->velocity)->flags = SK_PARTICLE_FLYING;
            owner->data[particles->count - 1] = (uint32_t)body->number + 1;
            material->data[particles->count - 1] = (uint32_t)body->material;
            if (temperature)
                temperature[particles->count - 1] = (float)body->def->temperature;
            body->count++;
        }
    }
    if (code == SELKIE_OK && !body->count)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: holds no particle: it lies outside the domain or is smaller than the spacing of %g m", what,
                       lattice.spacing);
    return code;
}

/* Do particles of the first shape lie in the other one? */
static int reaches_into(const sk_step *step, const sk_shape *first, const sk_shape *other)
{
    double low[3], high[3], low_other[3], high_other[3], x[3];
    body_lattice lattice;
    sk_shape_bounds(first, low, high);
    sk_shape_bounds(other, low_other, high_other);
    for (int d = 0; d < step->dimension; d++)
        if (high[d] < low_other[d] || low[d] > high_other[d])
            return 0;
    find_lattice(step, first, &lattice);
    for (int64_t n = 0; n < count_places(&lattice); n++)
        if (is_place(step, first, &lattice, n, x) && sk_shape_inside(other, x))
            return 1;
    return 0;
}

/* The errors that sampling would find. */
static selkie_code check_places(const sk_step *step, sk_shape **shapes, selkie_error *error)
{
    for (int b = 0; b < step->scene->body_count; b++) {
        char what[64];
        if (sk_body_material(step->scene, b) < 0)
            continue;
        SK_TRY(make_shape(step, b, what, &shapes[b], error));
        for (int other = 0; other < b; other++)
            if (shapes[other] && reaches_into(step, shapes[other], shapes[b]))
                return fail_of_overlap(what, other, error);
    }
    return SELKIE_OK;
}

static selkie_code check(const sk_step *step, selkie_error *error)
{
    const int count = step->scene->body_count;
    if (count < 2)
        return SELKIE_OK;
    sk_shape **shapes = sk_allocate_zeroed(step->memory, ((size_t)count + 1) * sizeof *shapes);
    if (!shapes)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d of them", count);
    const selkie_code code = check_places(step, shapes, error);
    for (int b = 0; b < count; b++)
        sk_shape_destroy(shapes[b]);
    sk_release(step->memory, shapes);
    return code;
}

selkie_code sk_soft_count(const sk_step *step, int64_t *count, selkie_error *error)
{
    *count = 0;
    for (int b = 0; b < step->scene->body_count; b++) {
        char what[64];
        sk_shape *shape = NULL;
        body_lattice lattice;
        double x[3];
        if (sk_body_material(step->scene, b) < 0)
            continue;
        SK_TRY(make_shape(step, b, what, &shape, error));
        find_lattice(step, shape, &lattice);
        for (int64_t n = 0; n < count_places(&lattice); n++)
            *count += is_place(step, shape, &lattice, n, x);
        sk_shape_destroy(shape);
    }
    return SELKIE_OK;
}

/* One piece of memory for all that a checkpoint needs. */
static selkie_code reserve_state(sk_step *step, sk_soft *soft, selkie_error *error)
{
    const size_t bodies = (size_t)soft->body_count * sizeof *soft->states;
    const size_t flows = (size_t)soft->region_count * sizeof *soft->flows;
    const size_t points = soft->point_count * sizeof *soft->points;
    soft->state_bytes = bodies + flows + points + sizeof *soft->number;
    char *state = soft->state = sk_allocate_zeroed(step->memory, soft->state_bytes + 1);
    soft->record = sk_allocate_zeroed(step->memory, ((size_t)soft->point_count + 1) * sizeof *soft->record);
    soft->surfaces = sk_allocate_zeroed(step->memory, ((size_t)soft->point_count + 1) * sizeof *soft->surfaces);
    const int late = matches_late(step);
    if (late)
        soft->late = sk_allocate_zeroed(step->memory, ((size_t)soft->point_count + 1) * sizeof *soft->late);
    if (!state || !soft->record || !soft->surfaces || (late && !soft->late))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %u particles", soft->point_count);
    soft->states = (sk_soft_state *)(void *)state;
    soft->flows = (double(*)[9])(void *)(state + bodies);
    soft->points = (sk_soft_point *)(void *)(state + bodies + flows);
    soft->number = (double *)(void *)(state + bodies + flows + points);
    return SELKIE_OK;
}

/* Positions and velocities at the start. */
static void start_body(sk_step *step, sk_soft *soft, int b)
{
    const sk_soft_body *body = &soft->bodies[b];
    const double *w = body->def->angular_velocity;
    sk_soft_state *state = &soft->states[b];
    for (int i = 0; i < 3; i++)
        state->rotation[4 * i] = state->flow[4 * i] = 1.0;
    for (uint32_t k = body->first; k < body->first + body->count; k++)
        for (int d = 0; d < step->dimension; d++)
            state->position[d] += soft->points[k].rest[d] / body->count;
    for (int d = 0; d < step->dimension; d++)
        state->velocity[d] = body->def->velocity[d];
    for (int d = 0; d < 3; d++)
        state->angular_velocity[d] = d == 2 || step->dimension == 3 ? w[d] : 0.0;
    for (uint32_t k = body->first; k < body->first + body->count; k++) {
        sk_soft_point *point = &soft->points[k];
        const double *a = state->angular_velocity;
        double r[3] = {0.0, 0.0, 0.0};
        for (int d = 0; d < step->dimension; d++)
            r[d] = point->rest[d] - state->position[d];
        for (int d = 0; d < step->dimension; d++)
            point->velocity[d] = state->velocity[d] + a[(d + 1) % 3] * r[(d + 2) % 3] - a[(d + 2) % 3] * r[(d + 1) % 3];
    }
}

/* The surface as drawn, seen from each point. */
static void find_surface(sk_soft *soft, sk_soft_body *body)
{
    for (uint32_t k = body->first; k < body->first + body->count; k++) {
        double normal[3];
        soft->surfaces[k][3] = (float)-sk_shape_distance_normal(body->shape, soft->points[k].rest, normal);
        for (int d = 0; d < 3; d++)
            soft->surfaces[k][d] = (float)normal[d];
    }
    sk_shape_destroy(body->shape);
    body->shape = NULL;
}

/* Points within a spacing of the surface: they alone can touch. */
static selkie_code list_outer(sk_step *step, sk_soft *soft, selkie_error *error)
{
    uint32_t count = 0;
    soft->outer = sk_allocate_zeroed(step->memory, ((size_t)soft->point_count + 1) * sizeof *soft->outer);
    if (!soft->outer)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %u particles", soft->point_count);
    for (int b = 0; b < soft->body_count; b++) {
        sk_soft_body *body = &soft->bodies[b];
        body->first_outer = count;
        for (uint32_t k = body->first; k < body->first + body->count; k++)
            if ((double)soft->surfaces[k][3] < 1.01 * soft->spacing)
                soft->outer[count++] = k;
        body->outer_count = count - body->first_outer;
    }
    return SELKIE_OK;
}

static selkie_code list_spans(sk_step *step, sk_soft *soft, selkie_error *error)
{
    size_t most = 1;
    for (int b = 0; b < soft->body_count; b++)
        most += soft->bodies[b].count / SK_SOFT_SPAN + 1;
    soft->spans = sk_allocate_zeroed(step->memory, most * sizeof *soft->spans);
    if (!soft->spans)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %u particles", soft->point_count);
    for (int b = 0; b < soft->body_count; b++) {
        const uint32_t last = soft->bodies[b].first + soft->bodies[b].count;
        for (uint32_t k = soft->bodies[b].first; k < last; k += SK_SOFT_SPAN)
            soft->spans[soft->span_count++] =
                (sk_soft_span){b, k, last - k < SK_SOFT_SPAN ? last : k + (uint32_t)SK_SOFT_SPAN};
    }
    return SELKIE_OK;
}

static selkie_code populate(sk_step *step, selkie_error *error)
{
    sk_soft *soft = step->soft;
    sk_particles *particles = &step->particles;
    int64_t before = -1;
    soft->spacing = step->grid.cell_size / pow(step->particles_per_cell, 1.0 / step->dimension);
    for (int b = 0; b < soft->body_count; b++)
        SK_TRY(sample_body(step, &soft->bodies[b], error));
    for (int b = 0; b < soft->body_count; b++) {
        soft->bodies[b].first = soft->point_count;
        soft->point_count += soft->bodies[b].count;
    }
    before = particles->count - (int64_t)soft->point_count;
    SK_TRY(sk_soft_make_regions(step, particles->records + before, error));
    SK_TRY(reserve_state(step, soft, error));

    /* The last particles are those of the bodies, in their order. */
    soft->first_id = particles->records[before].id;
    *soft->number = (double)soft->first_id;
    for (uint32_t k = 0; k < soft->point_count; k++) {
        const sk_particle *record = &particles->records[before + (int64_t)k];
        for (int d = 0; d < step->dimension; d++)
            soft->points[k].position[d] = soft->points[k].rest[d] = (double)record->position[d];
    }
    soft->left = soft->point_count;
    for (int b = 0; b < soft->body_count; b++) {
        start_body(step, soft, b);
        find_surface(soft, &soft->bodies[b]);
    }
    SK_TRY(list_outer(step, soft, error));
    SK_TRY(list_spans(step, soft, error));
    for (int r = 0; r < soft->region_count; r++)
        for (int i = 0; i < 3; i++)
            soft->regions[r].flow[4 * i] = soft->flows[r][4 * i] = 1.0;

    /* The records take the velocities. */
    for (uint32_t k = 0; k < soft->point_count; k++)
        for (int d = 0; d < step->dimension; d++)
            particles->records[before + (int64_t)k].velocity[d] = (float)soft->points[k].velocity[d];
    return SELKIE_OK;
}

int sk_soft_keeps_records(const sk_step *step)
{
    return sk_soft_is_dry(step) && !step->grid.periodic && selkie_scene_volume(step->scene) == SELKIE_VOLUME_NONE;
}

/* --- Checkpoints and statistics --- */

static sk_chunk_view state(const sk_step *step)
{
    return (sk_chunk_view){"soft", step->soft->state, step->soft->state_bytes};
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    sk_soft *soft = step->soft;
    const double *values = chunk->data;
    /* Checkpoints of before lack the number: it is that of the scene's start. */
    const int has_number = chunk->bytes == soft->state_bytes;
    if (!has_number && chunk->bytes + sizeof *soft->number != soft->state_bytes)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the bodies of particles have %llu bytes, not %llu", file,
                       (unsigned long long)chunk->bytes, (unsigned long long)soft->state_bytes);
    for (uint64_t i = 0; i < chunk->bytes / sizeof *values; i++)
        if (!(fabs(values[i]) < 1e30))
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: a body of particles has a value that is not a number",
                           file);
    if (has_number && !(values[chunk->bytes / sizeof *values - 1] >= 0.0 &&
                        values[chunk->bytes / sizeof *values - 1] <= (double)UINT32_MAX))
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the first particle of the bodies has no number", file);
    memcpy(soft->state, chunk->data, chunk->bytes);
    if (has_number)
        soft->first_id = (uint32_t)*soft->number;
    soft->is_placed = 0;
    for (int r = 0; r < soft->region_count; r++) {
        memcpy(soft->regions[r].flow, soft->flows[r], sizeof soft->flows[r]);
        soft->regions[r].is_ready = 0;
    }
    return SELKIE_OK;
}

/* The speed of the fastest point, and steps that resolve the stiffest body: one that is too long makes a body softer,
 * and the energy of its deformation would grow when steps become shorter. */
static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    const sk_soft *soft = step->soft;
    double fastest = 0.0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(max : fastest)
    for (uint32_t k = 0; k < soft->point_count; k++) {
        const double *v = soft->points[k].velocity;
        fastest = fmax(fastest, v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    }
    limits->speed = fmax(limits->speed, sqrt(fastest));
    for (int b = 0; b < soft->body_count; b++) {
        const sk_soft_body *body = &soft->bodies[b];
        const double longest = SK_SOFT_ANGLE / body->soft.stiffness;
        if (body->count && body->soft.mode != SELKIE_SOFT_RIGID)
            limits->step = limits->step > 0.0 ? fmin(limits->step, longest) : longest;
    }
}

static void statistics(const sk_step *step, selkie_statistics *s)
{
    s->solid_particles = step->soft->left;
}

static double bytes_per_particle(const selkie_scene *scene)
{
    (void)scene;
    return 2 * 4;
}

static double bytes_per_cell(const selkie_scene *scene)
{
    (void)scene;
    return 16 * 4;
}

const sk_method sk_method_shape_matching = {
    .name = "shape_matching",
    .needs = SK_NEEDS_PARTICLES | SK_NEEDS_GRID | SK_NEEDS_SPLIT_MOVE,
    .fields = SK_FIELD_BITS(SK_FIELD_FACE_DENSITY_X, 3),
    .takes_part = takes_part,
    .check = check,
    .create = create,
    .populate = populate,
    .destroy = destroy,
    .phases =
        {
            {.name = "match", .slot = SK_SLOT_EXCHANGE, .run = SK_FORMS(sk_soft_match, sk_soft_match_plain)},
            {.name = "place", .slot = SK_SLOT_POSITIONS, .run = SK_ONE_FORM(sk_soft_place)},
            {.name = "sort_bodies", .slot = SK_SLOT_POSITIONS, .run = SK_FORMS(sk_soft_sort, sk_soft_sort_plain)},
            {.name = "solids_bodies", .slot = SK_SLOT_POSITIONS, .run = SK_ONE_FORM(sk_move_solids)},
            {.name = "mix", .slot = SK_SLOT_TO_GRID, .run = SK_FORMS(sk_soft_mix, sk_soft_mix_plain)},
            {.name = "remember", .slot = SK_SLOT_TARGET, .run = SK_ONE_FORM(sk_soft_remember)},
            {.name = "part", .slot = SK_SLOT_BODIES, .run = SK_ONE_FORM(sk_soft_part)},
            {.name = "meet", .slot = SK_SLOT_BODIES, .run = SK_ONE_FORM(sk_soft_meet)},
            {.name = "match_late", .slot = SK_SLOT_SHIFT, .run = SK_ONE_FORM(sk_soft_match_late), .when = matches_late},
            {.name = "lead", .slot = SK_SLOT_SHIFT, .run = SK_ONE_FORM(sk_soft_lead)},
            {.name = "follow", .slot = SK_SLOT_MOVE, .run = SK_ONE_FORM(sk_soft_follow)},
        },
    .state = state,
    .restore = restore,
    .limit_step = limit_step,
    .statistics = statistics,
    .bytes_per_particle = bytes_per_particle,
    .bytes_per_cell = bytes_per_cell,
};
