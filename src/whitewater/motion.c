/* Particles are lanes. A batch is held as columns; each of its substeps is three loops: places among the nodes of the
 * field, samples (one particle at a time, the four values of a node being one vector), and the motion. Fast particles
 * have more substeps, and slower lanes wait for them: neighbours in the order of the blocks have similar speeds. */
#include "whitewater/motion.h"

#include <math.h>
#include <string.h>

#include "particles/counting_sort.h"
#include "whitewater/obstacles.h"

/* Cells that a particle crosses in a substep. */
static const float substep_cells = 3.0f;

enum { most_substeps = 4, batch = 128, part_size = 64 * batch };

int sk_foam_confine(const sk_foam_step *s, float position[3], float velocity[3])
{
    for (int a = 0; a < 3; ++a)
        for (int side = 0; side < 2; ++side) {
            const int beyond = side ? position[a] > s->high[a] : position[a] < s->low[a];
            if (!beyond)
                continue;
            if (s->open[2 * a + side])
                return 0;
            position[a] = side ? s->high[a] : s->low[a];
            velocity[a] = 0.0f;
        }
    return 1;
}

int sk_foam_keep_out(const sk_foam_step *s, const float before[3], float position[3], float velocity[3])
{
    const sk_foam_obstacles *obstacles = s->w->obstacles;
    if (!obstacles)
        return 1;
    const int risks = sk_foam_obstacles_risks(obstacles, before, position);
    return !risks || sk_foam_obstacles_keep_out(obstacles, risks, before, position, velocity);
}

/* Coefficients of a substep by the number of substeps: drops fall, foam goes with the liquid, bubbles rise and take on
 * its velocity. fw_look_up may read 32 values. */
typedef struct substep_tables {
    float dt[32];       /* s */
    float own[32];      /*     part of its own velocity that a bubble keeps; the rest becomes the liquid's */
    float buoyancy[32]; /* s   of a bubble, times gravity */
    float age[32];      /*     added to foam */
} substep_tables;

static substep_tables make_tables(const sk_foam_step *s)
{
    const selkie_whitewater_def *def = &s->w->scene->whitewater;
    substep_tables t;
    memset(&t, 0, sizeof t);
    for (int n = 1; n <= most_substeps; ++n) {
        t.dt[n] = s->dt / (float)n;
        t.own[n] = expf(-(float)def->drag * t.dt[n]);
        t.buoyancy[n] = -(float)def->buoyancy * t.dt[n];
        t.age[n] = t.dt[n] / (float)def->lifetime;
    }
    return t;
}

/* Columns of the records, as in sk_whitewater_particle: position, velocity, kind, age. */
enum { kind_column = 6, age_column = 7 };

typedef struct moving {
    _Alignas(64) float columns[8][batch];
    _Alignas(64) float part[3][batch]; /* place between the nodes */
    int32_t place[batch];              /* of the field's table */
    int32_t first[batch];              /* node in the block */
    int32_t substeps[batch];
    int32_t gone[batch];             /* -1 = it has left or found no way out */
    _Alignas(64) float at[batch][8]; /* density, density times velocity (m/s); the rest is not used */
} moving;

/* sk_cloud_field_place for lanes from l on, but for the look into the table. */
SK_VECTOR void place_lanes(const sk_cloud_field *f, moving *m, int l)
{
    iw base[3];
    for (int a = 0; a < 3; ++a) {
        fw at = fw_load(m->columns[a] + l) * f->inverse[a] + f->offset[a];
        at = fw_min(fw_max(at, fw_splat(1.0f)), fw_splat(f->last[a])); /* not a number: 1 */
        base[a] = iw_from_fw(at);
        fw_store(m->part[a] + l, at - fw_from_iw(base[a]));
    }
    const iw place = (base[0] >> SK_CLOUD_BLOCK_LOG) +
                     f->blocks[0] * ((base[1] >> SK_CLOUD_BLOCK_LOG) + f->blocks[1] * (base[2] >> SK_CLOUD_BLOCK_LOG));
    const iw first =
        (base[0] & SK_CLOUD_BLOCK_MASK) +
        SK_CLOUD_SIDE * ((base[1] & SK_CLOUD_BLOCK_MASK) + SK_CLOUD_SIDE * (base[2] & SK_CLOUD_BLOCK_MASK));
    memcpy(m->place + l, &place, sizeof place);
    memcpy(m->first + l, &first, sizeof first);
}

/* sk_cloud_field_at, two nodes along x at a time. */
SK_VECTOR void sample_one(const sk_cloud_field *f, moving *m, int i)
{
    enum { y = 4 * SK_CLOUD_SIDE, z = 4 * SK_CLOUD_SIDE * SK_CLOUD_SIDE };
    const float *nodes =
        (const float *)f->nodes + 4 * ((size_t)f->table[m->place[i]] * SK_CLOUD_NODES + (size_t)m->first[i]);
    const f8 near = f8_load(nodes), right = f8_load(nodes + z);
    const f8 low = near + m->part[1][i] * (f8_load(nodes + y) - near);
    const f8 high = right + m->part[1][i] * (f8_load(nodes + y + z) - right);
    const f8 both = low + m->part[2][i] * (high - low);
    const f4 before = __builtin_shufflevector(both, both, 0, 1, 2, 3);
    const f4 after = __builtin_shufflevector(both, both, 4, 5, 6, 7);
    f4_store(m->at[i], before + m->part[0][i] * (after - before));
}

/* Samples for the lanes from l on that have a bit. */
SK_VECTOR void sample_lanes(const sk_cloud_field *f, moving *m, int l, unsigned bits)
{
    if (bits == (uint32_t)((UINT64_C(1) << SK_WIDE) - 1))
        for (int n = 0; n < SK_WIDE; ++n)
            sample_one(f, m, l + n);
    else
        for (; bits; bits &= bits - 1)
            sample_one(f, m, l + __builtin_ctz(bits));
}

SK_VECTOR iw in_box(const sk_foam_obstacles *o, const fw x[3])
{
    iw in = iw_splat(-1);
    for (int a = 0; a < 3; ++a)
        in &= (x[a] >= o->low[a]) & (x[a] <= o->high[a]);
    return in;
}

/* Least distances (cells) from the obstacles of points in their box, as in obstacles.c; far for the others. */
SK_VECTOR fw least_distances(const sk_foam_obstacles *o, const fw x[3], iw in)
{
    iw cell[3];
    fw square = fw_splat(0.0f);
    for (int a = 0; a < 3; ++a) {
        const fw at = x[a] * o->inverse;
        cell[a] = iw_from_fw(fw_min(fw_max(at, fw_splat(0.0f)), fw_splat((float)(o->cells[a] - 1))));
        const fw off = at - fw_from_iw(cell[a]) - 0.5f;
        square += off * off;
    }
    fw parts = fw_splat(SK_FOAM_FAR);
    for (unsigned bits = iw_bits(in); bits; bits &= bits - 1) {
        const int n = __builtin_ctz(bits);
        parts[n] = o->distances[sk_foam_obstacles_cell(o, (const int[3]){cell[0][n], cell[1][n], cell[2][n]})];
    }
    const fw far = fw_splat(INFINITY);
    return fw_select(parts < (float)SK_FOAM_FAR, parts / (float)SK_FOAM_DISTANCE_PARTS - fw_sqrt(square), far);
}

/* sk_foam_obstacles_risks: may something be in the way? */
SK_VECTOR iw near_obstacles(const sk_foam_obstacles *o, const fw before[3], const fw x[3], iw active)
{
    const iw in = in_box(o, x) & active, was_in = in_box(o, before) & active;
    iw near = iw_splat(0);
    if (!iw_any(o->any_thin ? in | was_in : in))
        return near;
    const fw distance = least_distances(o, x, in);
    near = distance < 1.001f * o->kept;
    if (o->any_thin) {
        fw square = fw_splat(0.0f);
        for (int a = 0; a < 3; ++a)
            square += (x[a] - before[a]) * (x[a] - before[a]);
        const fw path = 1.001f * (fw_sqrt(square) * o->inverse + o->kept);
        near |= (distance < path) | (least_distances(o, before, was_in) < path);
    }
    return near;
}

/* Particles of a vector that may be in an obstacle, one at a time. */
static __attribute__((noinline)) void treat_lanes(const sk_foam_obstacles *obstacles, moving *m, int l, unsigned bits,
                                                  const fw start[3])
{
    const int risks = SK_FOAM_MAY_BE_INSIDE | (obstacles->any_thin ? SK_FOAM_MAY_CROSS : 0);
    for (; bits; bits &= bits - 1) {
        const int n = __builtin_ctz(bits), i = l + n;
        float before[3], position[3], velocity[3];
        for (int a = 0; a < 3; ++a) {
            before[a] = start[a][n];
            position[a] = m->columns[a][i];
            velocity[a] = m->columns[3 + a][i];
        }
        if (!sk_foam_obstacles_keep_out(obstacles, risks, before, position, velocity))
            m->gone[i] = -1;
        for (int a = 0; a < 3; ++a) {
            m->columns[a][i] = position[a];
            m->columns[3 + a][i] = velocity[a];
        }
    }
}

/* A substep of the lanes from l on, `lanes` of which are in use. */
SK_VECTOR void move_lanes(const sk_foam_step *s, const substep_tables *t, moving *m, int l, int lanes, iw active)
{
    iw substeps;
    memcpy(&substeps, m->substeps + l, sizeof substeps);
    fw at[4], start[3], x[3];
    fw_load_columns(m->at[l], lanes, at);
    const fw zero = fw_splat(0.0f), dt = fw_look_up(t->dt, 16, substeps);
    const fw inverse = fw_select(at[0] > 1e-7f, 1.0f / at[0], zero);
    const iw spray = at[0]<SK_FOAM_SPRAY_BELOW, bubble = at[0]> SK_FOAM_BUBBLE_ABOVE;
    const fw own = fw_select(spray, fw_splat(1.0f), fw_select(bubble, fw_look_up(t->own, 16, substeps), zero));
    const fw pull = fw_select(spray, dt, fw_select(bubble, fw_look_up(t->buoyancy, 16, substeps), zero));

    iw left = iw_splat(0);
    for (int a = 0; a < 3; ++a) {
        const fw before = fw_load(m->columns[3 + a] + l), flow = at[a + 1] * inverse;
        fw velocity = flow + (before - flow) * own + pull * s->gravity[a];
        start[a] = fw_load(m->columns[a] + l);
        x[a] = fw_select(active, start[a] + velocity * dt, start[a]);

        /* sk_foam_confine: walls stop it, open sides let it out. */
        const iw below = x[a]<s->low[a], above = x[a]> s->high[a];
        left |= (below & -(int32_t)s->open[2 * a]) | (above & -(int32_t)s->open[2 * a + 1]);
        velocity = fw_select(below | above, zero, velocity);
        x[a] = fw_select(below, fw_splat(s->low[a]), fw_select(above, fw_splat(s->high[a]), x[a]));
        fw_store(m->columns[a] + l, x[a]);
        fw_store(m->columns[3 + a] + l, fw_select(active, velocity, before));
    }
    left &= active;
    if (iw_any(left)) {
        iw gone;
        memcpy(&gone, m->gone + l, sizeof gone);
        gone |= left;
        memcpy(m->gone + l, &gone, sizeof gone);
    }

    /* Foam dissolves; drops and bubbles wait to become foam, but not for ever. */
    const fw older = fw_look_up(t->age, 16, substeps) * fw_select(spray | bubble, fw_splat(0.25f), fw_splat(1.0f));
    const fw age = fw_load(m->columns[age_column] + l), kind = fw_load(m->columns[kind_column] + l);
    const iw now =
        (spray & SK_WHITEWATER_SPRAY) | (bubble & SK_WHITEWATER_BUBBLE) | (~(spray | bubble) & SK_WHITEWATER_FOAM);
    fw_store(m->columns[age_column] + l, fw_select(active, age + older, age));
    fw_store(m->columns[kind_column] + l, fw_select(active, (fw)now, kind));

    if (!s->w->obstacles)
        return;
    const iw near = near_obstacles(s->w->obstacles, start, x, active) & active;
    if (iw_any(near))
        treat_lanes(s->w->obstacles, m, l, iw_bits(near), start);
}

/* Loads the particles, and finds their numbers of substeps. Returns the largest of them. */
static int begin_batch(const sk_foam_step *s, int count, const sk_whitewater_particle *particles, moving *m)
{
    const float scale = s->dt / (substep_cells * s->cell_size);
    int32_t most = 1;
    for (int l = 0; l < count; l += SK_WIDE) {
        const int lanes = count - l < SK_WIDE ? count - l : SK_WIDE;
        fw r[8];
        fw_load_columns((const float *)(const void *)(particles + l), lanes, r);
        fw_load_columns((const float *)(const void *)(particles + l) + 4, lanes, r + 4);
        for (int c = 0; c < 8; ++c)
            fw_store(m->columns[c] + l, r[c]);
        const fw cells = fw_sqrt(r[3] * r[3] + r[4] * r[4] + r[5] * r[5]) * scale;
        const iw substeps = 1 - ((cells > 1.0f) + (cells > 2.0f) + (cells > 3.0f)), stays = iw_splat(0);
        const int32_t here = iw_largest(substeps);
        most = here > most ? here : most;
        memcpy(m->substeps + l, &substeps, sizeof substeps);
        memcpy(m->gone + l, &stays, sizeof stays);
    }
    return (int)most;
}

/* Copies the particles with a bit in `alive` to `to`, which may be their own place or one before it. Returns their
 * number. */
SK_VECTOR size_t pack(const sk_whitewater_particle *from, unsigned alive, int lanes, sk_whitewater_particle *to)
{
    if (to == from && alive == (lanes == 32 ? ~0u : (1u << lanes) - 1))
        return (size_t)lanes;
    size_t kept = 0;
    for (int n = 0; n < lanes; ++n)
        if (alive >> n & 1) {
            const sk_whitewater_particle particle = from[n];
            to[kept++] = particle;
        }
    return kept;
}

/* Stores the particles, and their keys or those that have not ended from `to` on. Returns the number of these. */
static size_t end_batch(const sk_foam_step *s, int count, moving *m, sk_whitewater_particle *particles, uint32_t *keys,
                        sk_whitewater_particle *to)
{
    size_t kept = 0;
    for (int l = 0; l < count; l += SK_WIDE) {
        const int lanes = count - l < SK_WIDE ? count - l : SK_WIDE;
        fw r[8];
        for (int c = 0; c < 8; ++c) {
            /* Idle lanes must hold what the last one in use holds. */
            for (int n = lanes; n < SK_WIDE; ++n)
                m->columns[c][l + n] = m->columns[c][l + lanes - 1];
            r[c] = fw_load(m->columns[c] + l);
        }
        const fw square = r[3] * r[3] + r[4] * r[4] + r[5] * r[5];
        iw gone;
        memcpy(&gone, m->gone + l, sizeof gone);
        const unsigned alive = iw_bits(~gone & (r[age_column] < 1.0f) & (square < INFINITY) & iw_first(lanes));
        fw_store_columns((float *)(void *)(particles + l), lanes, r);
        fw_store_columns((float *)(void *)(particles + l) + 4, lanes, r + 4);
        if (keys) {
            place_lanes(s->field, m, l);
            for (int n = 0; n < lanes; ++n)
                keys[l + n] = alive >> n & 1 ? (uint32_t)s->field->table[m->place[l + n]] : SK_NO_KEY;
        } else {
            kept += pack(particles + l, alive, lanes, to + kept);
        }
    }
    return kept;
}

/* Lanes from l on that have more than `done` substeps. */
SK_VECTOR iw active_lanes(const moving *m, int l, int count, int done)
{
    iw substeps;
    memcpy(&substeps, m->substeps + l, sizeof substeps);
    return (substeps > done) & iw_first(count - l < SK_WIDE ? count - l : SK_WIDE);
}

static size_t move_batch(const sk_foam_step *s, const substep_tables *t, int count, sk_whitewater_particle *particles,
                         uint32_t *keys, sk_whitewater_particle *to)
{
    moving m;
    const int most = begin_batch(s, count, particles, &m);
    for (int n = 0; n < most; ++n) {
        unsigned active[batch / SK_WIDE];
        for (int l = 0; l < count; l += SK_WIDE) {
            active[l / SK_WIDE] = iw_bits(active_lanes(&m, l, count, n));
            if (active[l / SK_WIDE])
                place_lanes(s->field, &m, l);
        }
        for (int l = 0; l < count; l += SK_WIDE)
            sample_lanes(s->field, &m, l, active[l / SK_WIDE]);
        for (int l = 0; l < count; l += SK_WIDE)
            if (active[l / SK_WIDE])
                move_lanes(s, t, &m, l, count - l < SK_WIDE ? count - l : SK_WIDE, active_lanes(&m, l, count, n));
    }
    return end_batch(s, count, &m, particles, keys, to);
}

/* Moves the particles from `first` on. Returns the number of those that are kept, from `first` on as well. */
static size_t move_part(const sk_foam_step *s, const substep_tables *t, size_t first, size_t end, uint32_t *keys)
{
    size_t kept = 0;
    for (size_t i = first; i < end; i += batch) {
        sk_whitewater_particle *particles = s->w->particles;
        const int count = end - i < batch ? (int)(end - i) : batch;
        kept += move_batch(s, t, count, particles + i, keys ? keys + i : NULL, particles + first + kept);
    }
    return kept;
}

size_t sk_foam_close_gaps(sk_whitewater_particle *particles, const sk_foam_part *parts, size_t part_count)
{
    size_t count = 0, from = 0, source = 0;
    for (size_t part = 0; part < part_count; ++part)
        count += parts[part].kept;
    for (size_t part = 0; part < part_count; ++part) {
        size_t to = parts[part].first + parts[part].kept;
        const size_t next = part + 1 < part_count ? parts[part + 1].first : count, end = next < count ? next : count;
        while (to < end) {
            /* The next kept particles beyond `count`. */
            source = source > count ? source : count;
            while (parts[from].first + parts[from].kept <= source)
                ++from;
            source = source > parts[from].first ? source : parts[from].first;
            const size_t there = parts[from].first + parts[from].kept - source, room = end - to;
            const size_t moved = there < room ? there : room;
            memcpy(particles + to, particles + source, moved * sizeof *particles);
            to += moved;
            source += moved;
        }
    }
    return count;
}

selkie_code sk_foam_move(const sk_foam_step *s, uint32_t *keys, selkie_error *error)
{
    sk_whitewater *w = s->w;
    const substep_tables t = make_tables(s);
    const size_t part_count = (w->count + part_size - 1) / part_size;
    sk_foam_part *parts = sk_allocate(NULL, (part_count + 1) * sizeof *parts);
    if (!parts)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "whitewater: no memory for %zu particles", w->count);
#pragma omp parallel for num_threads(w->threads) schedule(dynamic, 1)
    for (size_t part = 0; part < part_count; ++part) {
        const size_t first = part * part_size, end = first + part_size;
        parts[part].first = first;
        parts[part].kept = move_part(s, &t, first, end < w->count ? end : w->count, keys);
    }
    if (!keys)
        w->count = sk_foam_close_gaps(w->particles, parts, part_count);
    sk_release(NULL, parts);
    return SELKIE_OK;
}
