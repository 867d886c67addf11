/* The rest shape: lattice, bricks, bonds, and the way of values between particles and sites. */
#include "methods/elastoplastic/rest_frame.h"

#include "base/status.h"

/* --- The lattice --- */

typedef struct bond_lattice {
    int (*at)[3];            /* [count] place of each particle, counted from the first of all */
    int bricks[3], first[3]; /* the box of bricks around all, and the place of its corner */
    int32_t *number;         /* [bricks] number of a brick; 0 = empty */
} bond_lattice;

/* Particles that have no rest position yet are at rest. Sites are not at the corner of the domain, so 0 is none. */
static void set_rest_positions(const sk_step *step, float *rest)
{
    for (int64_t p = 0; p < step->particles.count; p++) {
        float *to = rest + 3 * p;
        if (to[0] == 0.0f && to[1] == 0.0f && to[2] == 0.0f)
            memcpy(to, step->particles.records[p].position, 3 * sizeof(float));
    }
}

static void find_places(const sk_step *step, const float *rest, bond_lattice *lattice)
{
    const double per_spacing = 1.0 / sk_rest_shape_of(step)->spacing;
    int low[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, high[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
    for (int64_t p = 0; p < step->particles.count; p++)
        for (int d = 0; d < 3; d++) {
            const int at = d < SELKIE_DIM ? (int)floor((rest[3 * p + d] - step->grid.low[d]) * per_spacing) : 0;
            lattice->at[p][d] = at;
            low[d] = at < low[d] ? at : low[d];
            high[d] = at > high[d] ? at : high[d];
        }
    for (int d = 0; d < 3; d++) {
        lattice->first[d] = low[d];
        lattice->bricks[d] = (high[d] - low[d]) / SK_BRICK_N + 1;
    }
}

static size_t brick_of(const bond_lattice *lattice, const int at[3])
{
    size_t brick = 0;
    for (int d = SELKIE_DIM - 1; d >= 0; d--)
        brick = brick * (size_t)lattice->bricks[d] + (size_t)((at[d] - lattice->first[d]) >> SK_BRICK_LOG);
    return brick;
}

static size_t local_of(const bond_lattice *lattice, const int at[3])
{
    size_t local = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        local += (size_t)((at[d] - lattice->first[d]) & SK_BRICK_MASK) << (d * SK_BRICK_LOG);
    return local;
}

/* Numbers the bricks that hold points, in the order of their places. */
static int number_bricks(const sk_step *step, bond_lattice *lattice, size_t total)
{
    int count = 1;
    for (int64_t p = 0; p < step->particles.count; p++)
        lattice->number[brick_of(lattice, lattice->at[p])] = 1;
    for (size_t b = 0; b < total; b++)
        if (lattice->number[b])
            lattice->number[b] = count++;
    return count;
}

static void find_bricks_around(const bond_lattice *lattice, sk_rest_shape *rest)
{
    int at[3];
    for (at[2] = 0; at[2] < (SELKIE_DIM == 3 ? lattice->bricks[2] : 1); at[2]++)
        for (at[1] = 0; at[1] < lattice->bricks[1]; at[1]++)
            for (at[0] = 0; at[0] < lattice->bricks[0]; at[0]++) {
                const size_t own = (size_t)at[0] + (size_t)lattice->bricks[0] *
                                                       ((size_t)at[1] + (size_t)lattice->bricks[1] * (size_t)at[2]);
                for (int n = 0; lattice->number[own] && n < SK_NEIGHBOURS; n++) {
                    size_t beside = 0;
                    int inside = 1;
                    for (int d = SELKIE_DIM - 1; d >= 0; d--) {
                        const int b = at[d] + sk_rest_offset(n, d);
                        inside &= b >= 0 && b < lattice->bricks[d];
                        beside = beside * (size_t)lattice->bricks[d] + (size_t)b;
                    }
                    rest->around[lattice->number[own]][n] = inside ? lattice->number[beside] : 0;
                }
            }
}

/* --- Bonds --- */

/* Inverse of K from the bonds of a site. Points whose bonds lie in a plane have none: they keep F = 1, and the bonds'
 * other ends hold them. */
static void invert_moments(sk_rest_shape *rest, size_t site)
{
    float k[SK_REST_MATRIX] = {0}, inverse[SK_REST_MATRIX];
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        for (int i = 0; rest->bonds[site] >> n & 1 && i < SELKIE_DIM; i++)
            for (int j = 0; j < SELKIE_DIM; j++)
                k[SELKIE_DIM * i + j] +=
                    SK_DIM(sk_rest_weight)(n) * (float)(sk_rest_offset(n, i) * sk_rest_offset(n, j));
    const float determinant = SK_DIM(sk_rest_inverse)(k, inverse);
    for (int n = 0; n < SK_REST_MATRIX; n++)
        rest->inverse[sk_rest_at(SK_REST_MATRIX, n, site)] = determinant > 0.01f ? inverse[n] : 0.0f;
}

static void make_bonds(sk_rest_shape *rest)
{
    const size_t sites = (size_t)rest->brick_count * SK_BRICK_SITES;
    for (size_t site = SK_BRICK_SITES; site < sites; site++) {
        if (!rest->bonds[site])
            continue;
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const size_t other = sk_rest_beside(rest, site, n);
            if (other && rest->bonds[other] && rest->material[other] == rest->material[site])
                rest->bonds[site] |= 1u << n;
        }
        invert_moments(rest, site);
    }
}

/* --- Set-up --- */

static selkie_code allocate_sites(sk_step *step, sk_rest_shape *rest, selkie_error *error)
{
    const size_t sites = (size_t)rest->brick_count * SK_BRICK_SITES;
    int enough = (rest->around = sk_allocate_zeroed(step->memory, (size_t)rest->brick_count * sizeof *rest->around)) &&
                 (rest->bonds = sk_allocate_zeroed(step->memory, sites * sizeof *rest->bonds)) &&
                 (rest->material = sk_allocate_zeroed(step->memory, sites)) &&
                 (rest->place = sk_allocate_zeroed(step->memory, ((size_t)rest->id_count + 1) * sizeof *rest->place));
    struct {
        float **array;
        int components;
    } arrays[] = {{&rest->position, SELKIE_DIM},     {&rest->inverse, SK_REST_MATRIX},
                  {&rest->push, SK_REST_PUSH},       {&rest->state, 3},
                  {&rest->acceleration, SELKIE_DIM}, {&rest->flow, rest->is_plastic ? SK_REST_MATRIX : 0}};
    for (size_t n = 0; enough && n < sizeof arrays / sizeof *arrays; n++)
        if (arrays[n].components) {
            *arrays[n].array =
                sk_allocate_zeroed(step->memory, sites * (size_t)arrays[n].components * sizeof **arrays[n].array);
            enough &= *arrays[n].array != NULL;
        }
    return enough ? SELKIE_OK
                  : sk_fail(error, SELKIE_ERROR_MEMORY, "rest_shape: no memory for %d bricks of points",
                            rest->brick_count);
}

static selkie_code place_points(sk_step *step, const bond_lattice *lattice, selkie_error *error)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    for (int64_t p = 0; p < step->particles.count; p++) {
        const size_t site = (size_t)lattice->number[brick_of(lattice, lattice->at[p])] * SK_BRICK_SITES +
                            local_of(lattice, lattice->at[p]);
        if (rest->bonds[site])
            return sk_fail(
                error, SELKIE_ERROR_INPUT,
                "liquids: two points have the same place at rest: discretization \"rest_shape\" cannot go on "
                "from this state");
        rest->place[step->particles.records[p].id] = (uint32_t)site;
        rest->bonds[site] = 1u << SK_REST_CENTRE;
        rest->material[site] = material ? (uint8_t)material->data[p] : 0;
    }
    return SELKIE_OK;
}

/* Lays the points out on their lattice and makes the bonds. */
selkie_code SK_DIM(sk_rest_lay)(sk_step *step, selkie_error *error)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    sk_lagging_settle(step, &rest->own);
    rest->is_current = 0;
    float *positions = (float *)(void *)sk_particles_find_attribute(&step->particles, "rest_position")->data;
    bond_lattice lattice = {.at = sk_allocate(step->memory, ((size_t)step->particles.count + 1) * sizeof *lattice.at)};
    if (!lattice.at)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "rest_shape: no memory for the lattice");
    sk_rest_release_sites(step, rest);
    rest->reach_left = -1.0;
    rest->id_count = 0;
    for (int64_t p = 0; p < step->particles.count; p++)
        if (step->particles.records[p].id >= rest->id_count)
            rest->id_count = step->particles.records[p].id + 1;
    set_rest_positions(step, positions);
    find_places(step, positions, &lattice);

    /* Bricks, then points and their bonds. */
    const size_t total = (size_t)lattice.bricks[0] * (size_t)lattice.bricks[1] * (size_t)lattice.bricks[2];
    lattice.number = sk_allocate_zeroed(step->memory, total * sizeof *lattice.number);
    selkie_code code =
        lattice.number ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "rest_shape: no memory for %zu bricks", total);
    if (code == SELKIE_OK) {
        rest->brick_count = number_bricks(step, &lattice, total);
        rest->brick_sites = SK_BRICK_SITES;
        code = allocate_sites(step, rest, error);
    }
    if (code == SELKIE_OK)
        code = place_points(step, &lattice, error);
    if (code == SELKIE_OK) {
        find_bricks_around(&lattice, rest);
        make_bonds(rest);
    }
    rest->is_laid = code == SELKIE_OK;
    sk_release(step->memory, lattice.at);
    sk_release(step->memory, lattice.number);
    return code;
}

/* --- Particles to sites --- */

static float *attribute(const sk_step *step, const char *name)
{
    const sk_attribute *found = sk_particles_find_attribute(&step->particles, name);
    return found ? (float *)(void *)found->data : NULL;
}

/* Positions, and after a start state and flow. */
static selkie_code fill_sites(sk_step *step, sk_rest_shape *rest, selkie_error *error)
{
    const sk_particle *records = step->particles.records;
    if (!rest->is_current)
        sk_lagging_settle(step, &rest->own);
    const float *flow = attribute(step, "plastic_inverse"), *strain = attribute(step, "plastic_strain");
    const float *volume = attribute(step, "plastic_volume");
    int64_t strangers = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(+ : strangers)
    for (int64_t p = 0; p < step->particles.count; p++) {
        const size_t site = records[p].id < rest->id_count ? rest->place[records[p].id] : 0;
        strangers += site == 0;
        for (int d = 0; d < SELKIE_DIM; d++)
            rest->position[sk_rest_at(SELKIE_DIM, d, site)] = records[p].position[d];
        if (!rest->flow || rest->is_current)
            continue;
        rest->state[sk_rest_at(3, 0, site)] = strain[p];
        rest->state[sk_rest_at(3, 1, site)] = volume[p];
        for (int n = 0; n < SK_REST_MATRIX; n++)
            rest->flow[sk_rest_at(SK_REST_MATRIX, n, site)] = flow[SK_REST_MATRIX * p + n];
    }
    rest->is_current = 1;
    if (strangers)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%lld points were added: discretization \"rest_shape\" keeps the points of the start",
                       (long long)strangers);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_rest_begin)(sk_step *step, sk_rest_sums **sums, selkie_error *error)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    if (!rest->is_laid)
        SK_TRY(SK_DIM(sk_rest_lay)(step, error));
    if (!rest->is_current || rest->placed_at != step->particles.moves || !rest->placed_at)
        SK_TRY(fill_sites(step, rest, error));
    return sk_step_scratch(step, (size_t)rest->brick_count * sizeof **sums, "stress", (void **)sums, error);
}

void SK_DIM(sk_rest_end)(sk_step *step, const sk_rest_sums *sums)
{
    sk_rest_shape *rest = sk_rest_shape_of(step);
    const double volume = pow(step->grid.cell_size, SELKIE_DIM) / step->particles_per_cell;
    rest->saved.elastic_energy = rest->saved.wave_speed = step->kernel_volume = 0.0;
    for (int brick = 1; brick < rest->brick_count; brick++) {
        rest->saved.elastic_energy += volume * sums[brick].energy;
        rest->saved.plastic_work += volume * sums[brick].work;
        rest->saved.wave_speed = fmax(rest->saved.wave_speed, sums[brick].wave_speed);
        step->kernel_volume += sums[brick].volume / step->particles_per_cell;
    }
    step->counted_volume = step->surface_volume = step->kernel_volume;
}
