#include "whitewater/whitewater.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/random.h"
#include "geom/cloud_field.h"
#include "particles/counting_sort.h"
#include "whitewater/motion.h"
#include "whitewater/obstacles.h"

/* A crest: the angle between motion and outward normal has at least this cosine (Ihmsen et al. 2012, Eq. 7). */
static const float crest_cosine = 0.6f;
/* Particles move by less than a block between two sorts. */
enum { chunk = 4096, gone = 255, frames_per_sort = 4 };

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
    sk_release(NULL, w->keys);
    sk_foam_obstacles_destroy(w->obstacles);
    memset(w, 0, sizeof *w);
}

/* --- Order --- */

/* Sorts the particles by their keys, the blocks of the field that they lie in, so that the samples of the next step
 * stay in the cache. Those without a key are left out. */
static selkie_code sort_particles(const sk_foam_step *s, selkie_error *error)
{
    sk_whitewater *w = s->w;
    const sk_counting_sort sort = {.count = w->count,
                                   .key_count = s->field->block_count,
                                   .keys = w->keys,
                                   .record_bytes = sizeof *w->particles,
                                   .from = w->particles,
                                   .to = w->other,
                                   .threads = w->threads};
    SK_TRY(sk_counting_sort_run(&sort, &w->count, error));
    sk_whitewater_particle *swap = w->particles;
    const size_t capacity = w->capacity;
    w->particles = w->other;
    w->capacity = w->other_capacity;
    w->other = swap;
    w->other_capacity = capacity;
    return SELKIE_OK;
}

static float length(const float v[3])
{
    return sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* --- Potentials --- */

static float clamped(float value, double low, double high)
{
    const float share = (value - (float)low) / (float)(high - low);
    return share > 0.0f ? share < 1.0f ? share : 1.0f : 0.0f;
}

/* Wave crest: the mean of 1 - cos between the normals around, where the surface is convex and moves outward (Eqs. 4 to
 * 7). */
static float wave_crest(const sk_foam_step *s, const float x[3], const float v[3], const float n[3])
{
    const float square = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    if (square < SK_CLOUD_LEAST_NORMAL * SK_CLOUD_LEAST_NORMAL)
        return 0.0f;
    const float size = sqrtf(square);
    if (n[0] * v[0] + n[1] * v[1] + n[2] * v[2] < crest_cosine * size * length(v))
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
            const sk_cloud_place place = sk_cloud_field_place(s->field, y);
            const float density = sk_cloud_field_contact(s->field, &place, &around), *m = around.normal;
            const float other = length(m);
            if (density < SK_FOAM_SPRAY_BELOW || other < 0.1f)
                continue;
            bend += 1.0f - (n[0] * m[0] + n[1] * m[1] + n[2] * m[2]) / (size * other);
            ++count;
        }
    return count ? clamped(bend / (float)count, 0.1, 0.8) : 0.0f;
}

/* Particles that a particle of the liquid makes in this step (Eq. 8). */
static float expected(const sk_foam_step *s, size_t i)
{
    const sk_whitewater *w = s->w;
    const selkie_whitewater_def *def = &w->scene->whitewater;
    const float *x = (const float *)((const char *)s->liquid->position + i * s->liquid->position_stride);
    const float *v = (const float *)((const char *)s->liquid->velocity + i * s->liquid->velocity_stride);
    const float square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if (!(square > (float)(w->speed_min * w->speed_min)) || !(square < INFINITY))
        return 0.0f;
    const sk_cloud_place place = sk_cloud_field_place(s->field, x);
    if (!sk_cloud_field_is_lively(s->field, &place))
        return 0.0f;
    sk_cloud_contact contact;
    const float density = sk_cloud_field_contact(s->field, &place, &contact);
    /* Liquid deep inside has no air to trap, lone drops are spray by themselves. */
    if (density > 1.15f || density < 0.05f)
        return 0.0f;
    /* The clash stands for the sum over neighbours |v_ij| (1 - cos(v_ij, x_ij)) of trapped air (Eq. 2). */
    const float air = clamped(contact.clash, (double)SK_CLOUD_LEAST_CLASH * w->speed_min, 0.6 * w->speed_max);
    const float crest = def->wave_crest > 0 ? wave_crest(s, x, v, contact.normal) : 0.0f;
    const float sum = (float)def->trapped_air * air + (float)def->wave_crest * crest;
    if (!(sum > 0.0f))
        return 0.0f;
    const float energy = clamped(square, w->speed_min * w->speed_min, w->speed_max * w->speed_max);
    return energy * sum * (float)def->rate * s->dt;
}

/* --- New particles --- */

/* In a cylinder of a spacing around the path of the particle (Ihmsen et al. 2012, section 3.2). */
static sk_whitewater_particle make_one(const sk_foam_step *s, size_t i, int number)
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
    if (!sk_foam_confine(s, p.position, p.velocity) || !sk_foam_keep_out(s, x, p.position, p.velocity))
        p.kind = gone;
    return p;
}

/* Number that each particle of the liquid makes, and the sums of the chunks. */
static void count_new(const sk_foam_step *s, uint8_t *numbers, size_t *sums)
{
    const uint64_t seed = sk_hash64(s->w->scene->seed ^ 0x66f6166dULL) ^ (uint64_t)s->frame;
#pragma omp parallel for num_threads(s->w->threads) schedule(dynamic, 1)
    for (size_t c = 0; c < (s->liquid->count + chunk - 1) / chunk; ++c) {
        sums[c] = 0;
        for (size_t i = c * chunk; i < (c + 1) * chunk && i < s->liquid->count; ++i) {
            const float mean = expected(s, i);
            numbers[i] = mean > 0.0f ? (uint8_t)fminf(mean + sk_random_float(seed, i, 0), 255.0f) : 0;
            sums[c] += numbers[i];
        }
    }
}

/* Makes the particles of a chunk of the liquid from `to` on, at most `most`, without those that begin outside. Returns
 * the number that is left. */
static size_t make_chunk(const sk_foam_step *s, const uint8_t *numbers, size_t c, sk_whitewater_particle *to,
                         size_t most)
{
    size_t made = 0, kept = 0;
    for (size_t i = c * chunk; i < (c + 1) * chunk && i < s->liquid->count; ++i)
        for (int n = 0; n < numbers[i] && made < most; ++n, ++made) {
            sk_whitewater_particle p = make_one(s, i, n);
            if (p.kind == gone)
                continue;
            const sk_cloud_place place = sk_cloud_field_place(s->field, p.position);
            p.kind = sk_foam_kind(sk_cloud_field_at(s->field, &place)[0]);
            to[kept++] = p;
        }
    return kept;
}

/* `parts` has room for a part a chunk and one before them. */
static selkie_code add_new(const sk_foam_step *s, uint8_t *numbers, size_t *sums, sk_foam_part *parts,
                           selkie_error *error)
{
    sk_whitewater *w = s->w;
    count_new(s, numbers, sums);
    const size_t chunks = (s->liquid->count + chunk - 1) / chunk, most = (size_t)w->scene->whitewater.most;
    size_t total = w->count;
    parts[0] = (sk_foam_part){0, w->count};
    for (size_t c = 0; c < chunks; ++c) {
        parts[c + 1].first = total;
        total += sums[c];
        total = total < most ? total : most;
        sums[c] = total - parts[c + 1].first;
    }
    SK_TRY(
        sk_reserve(NULL, (void **)&w->particles, &w->capacity, total + 1, sizeof *w->particles, "whitewater", error));
#pragma omp parallel for num_threads(w->threads) schedule(dynamic, 1)
    for (size_t c = 0; c < chunks; ++c)
        parts[c + 1].kept = make_chunk(s, numbers, c, w->particles + parts[c + 1].first, sums[c]);
    w->count = sk_foam_close_gaps(w->particles, parts, chunks + 1);
    return SELKIE_OK;
}

static selkie_code advance(sk_foam_step *s, selkie_error *error)
{
    sk_whitewater *w = s->w;
    SK_TRY(
        sk_reserve(NULL, (void **)&w->other, &w->other_capacity, w->count + 1, sizeof *w->other, "whitewater", error));
    SK_TRY(sk_reserve(NULL, (void **)&w->keys, &w->key_capacity, w->count + 1, sizeof *w->keys, "whitewater", error));
    uint8_t *numbers = sk_allocate(NULL, s->liquid->count + 1);
    size_t *sums = sk_allocate(NULL, (s->liquid->count / chunk + 2) * sizeof *sums);
    sk_foam_part *parts = sk_allocate(NULL, (s->liquid->count / chunk + 3) * sizeof *parts);
    selkie_code code = SELKIE_OK;
    if (numbers && sums && parts) {
        const int sorts = s->frame % frames_per_sort == 0;
        code = sk_foam_move(s, sorts ? w->keys : NULL, error);
        if (!code && sorts)
            code = sort_particles(s, error);
        if (!code)
            code = add_new(s, numbers, sums, parts, error);
    } else {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "whitewater: no memory for %zu particles", s->liquid->count);
    }
    sk_release(NULL, numbers);
    sk_release(NULL, sums);
    sk_release(NULL, parts);
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
    sk_foam_step s = {.w = w, .dt = (float)dt, .cell_size = (float)cell_size, .liquid = liquid, .frame = frame};
    for (int a = 0; a < 3; ++a) {
        options.high[a] -= options.low[a];
        options.low[a] = 0.0;
        s.high[a] = (float)options.high[a];
        s.gravity[a] = (float)w->scene->gravity[a];
        for (int side = 2 * a; side < 2 * a + 2; ++side)
            s.open[side] = w->scene->domain.walls[side] == SELKIE_WALL_OPEN;
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
