#include "whitewater/whitewater.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/random.h"
#include "geom/cloud_field.h"
#include "particles/counting_sort.h"
#include "whitewater/obstacles.h"

/* Density of the liquid around a particle, relative to the bulk, below which it flies and above which it is a bubble. A
 * flat surface has 0.5. */
static const float spray_below = 0.15f, bubble_above = 0.80f;
/* A crest: the angle between motion and outward normal has at least this cosine (Ihmsen et al. 2012, Eq. 7). */
static const float crest_cosine = 0.6f;
/* Cells that a particle crosses in a substep. */
static const float substep_cells = 3.0f;

enum { most_substeps = 4, batch = 128, chunk = 4096, gone = 255 };

selkie_code sk_whitewater_init(sk_whitewater *w, const selkie_scene *scene, int threads, selkie_error *error)
{
    memset(w, 0, sizeof *w);
    if (scene->domain.dimension != 3)
        return sk_fail(error, SELKIE_ERROR_INPUT, "whitewater: needs domain.dimension 3; this scene has %d",
                       scene->domain.dimension);
    w->scene = scene;
    w->threads = threads > 0 ? threads : omp_get_max_threads();

    /* The speed of a fall through the domain is the scale of speeds, whatever its size. */
    double up[3], gravity = 0, height = 0;
    selkie_scene_up(scene, up);
    for (int a = 0; a < 3; ++a) {
        gravity += scene->gravity[a] * scene->gravity[a];
        height += fabs(up[a]) * scene->domain.size[a];
    }
    const double fall = sqrt(2 * sqrt(gravity) * height);
    w->speed_min = scene->whitewater.speed_min > 0 ? scene->whitewater.speed_min : 0.2 * fall;
    w->speed_max = scene->whitewater.speed_max > 0 ? scene->whitewater.speed_max : 0.7 * fall;
    if (!(w->speed_max > w->speed_min))
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "whitewater: speed_max is %g m/s, must be above speed_min, %g m/s; without gravity set both",
                       w->speed_max, w->speed_min);
    return sk_foam_obstacles_create(scene, &w->obstacles, error);
}

void sk_whitewater_free(sk_whitewater *w)
{
    sk_release(NULL, w->particles);
    sk_release(NULL, w->other);
    sk_foam_obstacles_destroy(w->obstacles);
    memset(w, 0, sizeof *w);
}

/* What a step knows. */
typedef struct stepping {
    sk_whitewater *w;
    const sk_cloud_field *field;
    float dt, cell_size, low[3], high[3]; /* s, m */
    float gravity[3];
    const sk_surface_particles *liquid;
    int64_t frame;
} stepping;

/* --- Order --- */

/* Sorts the particles by the block of the field that they lie in, so that the samples of the next step stay in the
 * cache. Those that are not alive are left out. */
static selkie_code sort_particles(const stepping *s, const uint8_t *alive, selkie_error *error)
{
    sk_whitewater *w = s->w;
    uint32_t *keys = sk_allocate(NULL, (w->count + 1) * sizeof *keys);
    if (!keys)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "whitewater: no memory to sort %zu particles", w->count);
#pragma omp parallel for num_threads(w->threads) schedule(static)
    for (size_t i = 0; i < w->count; ++i)
        keys[i] = alive[i] ? (uint32_t)sk_cloud_field_place(s->field, w->particles[i].position).block : SK_NO_KEY;
    const sk_counting_sort sort = {.count = w->count,
                                   .key_count = s->field->block_count,
                                   .keys = keys,
                                   .record_bytes = sizeof *w->particles,
                                   .from = w->particles,
                                   .to = w->other,
                                   .threads = w->threads};
    const selkie_code code = sk_counting_sort_run(&sort, &w->count, error);
    sk_release(NULL, keys);
    if (code)
        return code;
    sk_whitewater_particle *swap = w->particles;
    const size_t capacity = w->capacity;
    w->particles = w->other;
    w->capacity = w->other_capacity;
    w->other = swap;
    w->other_capacity = capacity;
    return SELKIE_OK;
}

/* --- Motion --- */

static float length(const float v[3])
{
    return sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* Keeps a particle in the domain. Returns 0 if it has left through an open side. */
static int confine(const stepping *s, float position[3], float velocity[3])
{
    for (int a = 0; a < 3; ++a)
        for (int side = 0; side < 2; ++side) {
            const int beyond = side ? position[a] > s->high[a] : position[a] < s->low[a];
            if (!beyond)
                continue;
            if (s->w->scene->domain.walls[2 * a + side] == SELKIE_WALL_OPEN)
                return 0;
            position[a] = side ? s->high[a] : s->low[a];
            velocity[a] = 0.0f;
        }
    return 1;
}

/* Keeps a particle out of the obstacles. Returns 0 if there is no way out. */
static inline int keep_out(const stepping *s, const float before[3], sk_whitewater_particle *p)
{
    const sk_foam_obstacles *obstacles = s->w->obstacles;
    const int marks = sk_foam_obstacles_mark(obstacles, before) | sk_foam_obstacles_mark(obstacles, p->position);
    return !marks || sk_foam_obstacles_keep_out(obstacles, marks, before, p->position, p->velocity);
}

static uint32_t kind_in(float density)
{
    return density < spray_below    ? SK_WHITEWATER_SPRAY
           : density > bubble_above ? SK_WHITEWATER_BUBBLE
                                    : SK_WHITEWATER_FOAM;
}

/* Coefficients of a substep: drops fall, foam goes with the liquid, bubbles rise and take on its velocity. */
typedef struct substep {
    float dt;         /* s */
    float own[3];     /*     part of its own velocity that each kind keeps; the rest becomes the liquid's */
    float gravity[3]; /* s   of each kind, times gravity */
    float age[3];     /*     added */
} substep;

static substep make_substep(const stepping *s, int substeps)
{
    const selkie_whitewater_def *def = &s->w->scene->whitewater;
    const float dt = s->dt / (float)substeps, age = dt / (float)def->lifetime;
    substep step = {.dt = dt};
    step.own[SK_WHITEWATER_SPRAY] = 1.0f;
    step.own[SK_WHITEWATER_BUBBLE] = expf(-(float)def->drag * dt);
    step.gravity[SK_WHITEWATER_SPRAY] = dt;
    step.gravity[SK_WHITEWATER_BUBBLE] = -(float)def->buoyancy * dt;
    /* Foam dissolves; drops and bubbles wait to become foam, but not for ever. */
    step.age[SK_WHITEWATER_FOAM] = age;
    step.age[SK_WHITEWATER_SPRAY] = step.age[SK_WHITEWATER_BUBBLE] = 0.25f * age;
    return step;
}

/* A substep of a particle through the sampled liquid (Ihmsen et al. 2012, Eqs. 9 to 11), without branches on its kind.
 * Returns 0 if it has left.
 */
SK_VECTOR int move_once(const stepping *s, const substep *step, f4 at, sk_whitewater_particle *p)
{
    const float inverse = at[0] > 1e-7f ? 1.0f / at[0] : 0.0f;
    const uint32_t kind = kind_in(at[0]);
    const float own = step->own[kind], gravity = step->gravity[kind];
    int inside = 1;
    for (int a = 0; a < 3; ++a) {
        const float flow = at[a + 1] * inverse;
        p->velocity[a] = flow + (p->velocity[a] - flow) * own + gravity * s->gravity[a];
        p->position[a] += p->velocity[a] * step->dt;
        inside &= (p->position[a] >= s->low[a]) & (p->position[a] <= s->high[a]);
    }
    p->kind = kind;
    p->age += step->age[kind];
    return inside || confine(s, p->position, p->velocity);
}

/* Moves up to `batch` particles. Fast ones have more substeps. A substep is three loops over the particles that have
 * it: the loops are short, so that the processor works on several particles at a time. */
static void move_batch(const stepping *s, const substep *steps, int count, sk_whitewater_particle *particles,
                       uint8_t *alive)
{
    const float scale = s->dt / (substep_cells * s->cell_size);
    int substeps[batch], chosen[batch];
    sk_cloud_place places[batch];
    f4 at[batch];
    for (int i = 0; i < count; ++i) {
        const float cells = length(particles[i].velocity) * scale;
        substeps[i] = 1 + (cells > 1.0f) + (cells > 2.0f) + (cells > 3.0f);
        alive[i] = 1;
    }
    for (int n = 0; n < most_substeps; ++n) {
        int active = 0;
        for (int i = 0; i < count; ++i) {
            chosen[active] = i;
            active += substeps[i] > n;
        }
        for (int k = 0; k < active; ++k)
            places[k] = sk_cloud_field_place(s->field, particles[chosen[k]].position);
        for (int k = 0; k < active; ++k)
            at[k] = sk_cloud_field_at(s->field, &places[k]);
        for (int k = 0; k < active; ++k) {
            const int i = chosen[k];
            float before[3];
            memcpy(before, particles[i].position, sizeof before);
            alive[i] &= (uint8_t)move_once(s, &steps[substeps[i]], at[k], &particles[i]);
            if (s->w->obstacles)
                alive[i] &= (uint8_t)keep_out(s, before, &particles[i]);
        }
    }
    for (int i = 0; i < count; ++i)
        alive[i] &= (uint8_t)((particles[i].age < 1.0f) & (isfinite(length(particles[i].velocity)) != 0));
}

/* Lives of the particles: 0 in `alive` for those that end. */
static void move_all(const stepping *s, uint8_t *alive)
{
    sk_whitewater *w = s->w;
    substep steps[most_substeps + 1];
    for (int n = 1; n <= most_substeps; ++n)
        steps[n] = make_substep(s, n);
#pragma omp parallel for num_threads(w->threads) schedule(static)
    for (size_t i = 0; i < w->count; i += batch) {
        const int count = w->count - i < batch ? (int)(w->count - i) : batch;
        move_batch(s, steps, count, w->particles + i, alive + i);
    }
}

/* --- Potentials --- */

static float clamped(double value, double low, double high)
{
    return (float)fmin(fmax((value - low) / (high - low), 0.0), 1.0);
}

/* Wave crest: the mean of 1 - cos between the normals around, where the surface is convex and moves outward (Eqs. 4 to
 * 7). */
static float wave_crest(const stepping *s, const float x[3], const float v[3], const float n[3])
{
    const float size = length(n);
    if (size < 0.25f || n[0] * v[0] + n[1] * v[1] + n[2] * v[2] < crest_cosine * size * length(v))
        return 0.0f;
    float bend = 0.0f;
    int count = 0;
    for (int a = 0; a < 3; ++a)
        for (int side = -1; side <= 1; side += 2) {
            float y[3] = {x[0], x[1], x[2]};
            y[a] += 1.5f * (float)side * s->cell_size;
            /* Only neighbours below the surface's plane: the crest is convex (Eq. 5). */
            if ((float)side * n[a] > 0.3f * size)
                continue;
            sk_cloud_contact around;
            const float density = sk_cloud_field_contact(s->field, y, &around), *m = around.normal;
            const float other = length(m);
            if (density < spray_below || other < 0.1f)
                continue;
            bend += 1.0f - (n[0] * m[0] + n[1] * m[1] + n[2] * m[2]) / (size * other);
            ++count;
        }
    return count ? clamped((double)bend / count, 0.1, 0.8) : 0.0f;
}

/* Particles that a particle of the liquid makes in this step (Eq. 8). */
static float expected(const stepping *s, size_t i)
{
    const sk_whitewater *w = s->w;
    const selkie_whitewater_def *def = &w->scene->whitewater;
    const float *x = (const float *)((const char *)s->liquid->position + i * s->liquid->position_stride);
    const float *v = (const float *)((const char *)s->liquid->velocity + i * s->liquid->velocity_stride);
    const float speed = length(v);
    if (!((double)speed > w->speed_min) || !isfinite(speed))
        return 0.0f;
    sk_cloud_contact contact;
    const float density = sk_cloud_field_contact(s->field, x, &contact);
    /* Liquid deep inside has no air to trap, lone drops are spray by themselves. */
    if (density > 1.15f || density < 0.05f)
        return 0.0f;
    const float energy = clamped((double)(speed * speed), w->speed_min * w->speed_min, w->speed_max * w->speed_max);
    /* The clash stands for the sum over neighbours |v_ij| (1 - cos(v_ij, x_ij)) of trapped air (Eq. 2). */
    const float air = clamped((double)contact.clash, 0.25 * w->speed_min, 0.6 * w->speed_max);
    const float crest = def->wave_crest > 0 ? wave_crest(s, x, v, contact.normal) : 0.0f;
    return energy * ((float)def->trapped_air * air + (float)def->wave_crest * crest) * (float)def->rate * s->dt;
}

/* --- New particles --- */

/* In a cylinder of a spacing around the path of the particle (Ihmsen et al. 2012, section 3.2). */
static sk_whitewater_particle make_one(const stepping *s, size_t i, int number)
{
    const selkie_scene *scene = s->w->scene;
    const float *x = (const float *)((const char *)s->liquid->position + i * s->liquid->position_stride);
    const float *v = (const float *)((const char *)s->liquid->velocity + i * s->liquid->velocity_stride);
    const uint64_t seed = sk_hash64(scene->seed ^ 0x77686974ULL) ^ (uint64_t)s->frame;
    const uint64_t index = ((uint64_t)i << 8) + (uint64_t)number;
    float random[5];
    for (int k = 0; k < 5; ++k)
        random[k] = sk_random_float(seed, index, (uint64_t)k + 1);

    /* Two directions across the path. */
    const float speed = length(v), inverse = speed > 0.0f ? 1.0f / speed : 0.0f;
    const float along[3] = {v[0] * inverse, v[1] * inverse, v[2] * inverse};
    const int least = fabsf(along[0]) < fabsf(along[1]) ? (fabsf(along[0]) < fabsf(along[2]) ? 0 : 2)
                                                        : (fabsf(along[1]) < fabsf(along[2]) ? 1 : 2);
    float e[3] = {0, 0, 0}, u[3], w[3];
    e[least] = 1.0f;
    for (int a = 0; a < 3; ++a)
        u[a] = along[(a + 1) % 3] * e[(a + 2) % 3] - along[(a + 2) % 3] * e[(a + 1) % 3];
    const float size = length(u);
    for (int a = 0; a < 3; ++a)
        u[a] = size > 0.0f ? u[a] / size : e[a];
    for (int a = 0; a < 3; ++a)
        w[a] = along[(a + 1) % 3] * u[(a + 2) % 3] - along[(a + 2) % 3] * u[(a + 1) % 3];

    sk_whitewater_particle p = {.age = 0.5f * random[3]};
    const float radius = s->cell_size * sqrtf(random[0]), angle = 6.2831853f * random[1];
    for (int a = 0; a < 3; ++a) {
        const float across = radius * (cosf(angle) * u[a] + sinf(angle) * w[a]);
        p.position[a] = x[a] + across - v[a] * s->dt * random[2];
        /* A little apart, so that sheets break up into spray. */
        p.velocity[a] = v[a] + 0.15f * speed * across / s->cell_size * random[4];
    }
    if (!confine(s, p.position, p.velocity) || (s->w->obstacles && !keep_out(s, x, &p)))
        p.kind = gone;
    return p;
}

/* Number that each particle of the liquid makes, and the sums of the chunks. */
static void count_new(const stepping *s, uint8_t *numbers, size_t *sums)
{
    const uint64_t seed = sk_hash64(s->w->scene->seed ^ 0x66f6166dULL) ^ (uint64_t)s->frame;
#pragma omp parallel for num_threads(s->w->threads) schedule(dynamic, 1)
    for (size_t c = 0; c < (s->liquid->count + chunk - 1) / chunk; ++c) {
        sums[c] = 0;
        for (size_t i = c * chunk; i < (c + 1) * chunk && i < s->liquid->count; ++i) {
            const float number = fminf(expected(s, i) + sk_random_float(seed, i, 0), 255.0f);
            numbers[i] = (uint8_t)number;
            sums[c] += numbers[i];
        }
    }
}

static selkie_code add_new(const stepping *s, uint8_t *numbers, size_t *sums, selkie_error *error)
{
    sk_whitewater *w = s->w;
    count_new(s, numbers, sums);
    const size_t chunks = (s->liquid->count + chunk - 1) / chunk, most = (size_t)w->scene->whitewater.most;
    size_t total = w->count;
    for (size_t c = 0; c < chunks; ++c) {
        const size_t here = sums[c];
        sums[c] = total;
        total += here;
    }
    total = total < most ? total : most;
    SK_TRY(
        sk_reserve(NULL, (void **)&w->particles, &w->capacity, total + 1, sizeof *w->particles, "whitewater", error));
#pragma omp parallel for num_threads(w->threads) schedule(dynamic, 1)
    for (size_t c = 0; c < chunks; ++c) {
        size_t to = sums[c];
        for (size_t i = c * chunk; i < (c + 1) * chunk && i < s->liquid->count; ++i)
            for (int n = 0; n < numbers[i] && to < total; ++n)
                w->particles[to++] = make_one(s, i, n);
    }
    /* Kinds, without those that begin outside. */
#pragma omp parallel for num_threads(w->threads) schedule(static)
    for (size_t i = w->count; i < total; ++i) {
        sk_whitewater_particle *p = &w->particles[i];
        const sk_cloud_place place = sk_cloud_field_place(s->field, p->position);
        p->kind = p->kind == gone ? gone : kind_in(sk_cloud_field_at(s->field, &place)[0]);
    }
    size_t kept = w->count;
    for (size_t i = w->count; i < total; ++i)
        if (w->particles[i].kind != gone)
            w->particles[kept++] = w->particles[i];
    w->count = kept;
    return SELKIE_OK;
}

static selkie_code advance(stepping *s, selkie_error *error)
{
    sk_whitewater *w = s->w;
    SK_TRY(
        sk_reserve(NULL, (void **)&w->other, &w->other_capacity, w->count + 1, sizeof *w->other, "whitewater", error));
    const size_t most = (w->count > s->liquid->count ? w->count : s->liquid->count) + 1;
    uint8_t *marks = sk_allocate(NULL, most);
    size_t *sums = sk_allocate(NULL, (s->liquid->count / chunk + 2) * sizeof *sums);
    selkie_code code = SELKIE_OK;
    if (marks && sums) {
        move_all(s, marks);
        code = sort_particles(s, marks, error);
        if (!code)
            code = add_new(s, marks, sums, error);
    } else {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "whitewater: no memory for %zu particles", most);
    }
    sk_release(NULL, marks);
    sk_release(NULL, sums);
    return code;
}

selkie_code sk_whitewater_step(sk_whitewater *w, const sk_surface_particles *liquid, int64_t frame, double time,
                               double dt, selkie_error *error)
{
    int cells[3];
    const double cell_size = selkie_scene_cells(w->scene, cells);
    sk_surface_options options;
    sk_surface_options_init(&options, w->scene);
    /* A voxel a cell: a node sees the particles of about three cells along an axis. */
    options.voxel_size = fmin(fmax(cell_size, options.particle_spacing / 2.5), options.particle_spacing / 0.4);
    options.threads = w->threads;
    stepping s = {.w = w, .dt = (float)dt, .cell_size = (float)cell_size, .liquid = liquid, .frame = frame};
    for (int a = 0; a < 3; ++a) {
        options.high[a] -= options.low[a];
        options.low[a] = 0.0;
        s.high[a] = (float)options.high[a];
        s.gravity[a] = (float)w->scene->gravity[a];
    }
    if (w->obstacles)
        sk_foam_obstacles_move(w->obstacles, time, w->threads);
    sk_cloud_field *field = NULL;
    SK_TRY(sk_cloud_field_create(liquid, &options, w->speed_min, &field, error));
    s.field = field;
    selkie_code code = advance(&s, error);
    sk_cloud_field_destroy(field);
    return code;
}
