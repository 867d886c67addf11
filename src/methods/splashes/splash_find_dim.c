/* Candidates for splashes: their features, the networks in batches, and what they decide. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/tile.h"
#include "methods/cells.h"
#include "methods/splashes/splash_find_kernels.h"
#include "methods/splashes/splashes.h"

enum {
    HALO = SK_SPLASH_REACH + 1,
    WIDTH = SK_TILE_N(HALO),
    VALUES = SK_TILE_VALUES(HALO),
    BATCH = SK_SPLASH_BATCH,
    OWN = 2 * SELKIE_DIM + 1
};
static const int tile_step[3] = {1, WIDTH, SELKIE_DIM == 3 ? WIDTH *WIDTH : 0};

/* A block with a halo, a batch of its cells at the surface, and a batch of the candidates in them. */
typedef struct finder {
    float fill[VALUES], velocity[SELKIE_DIM][VALUES], faces[SK_TILE_VALUES(HALO)];
    uint8_t air[VALUES], air_before[VALUES]; /* 1: air in the cell or around it */
    float features[BATCH * SK_SPLASH_FEATURES], products[BATCH * SK_SPLASH_WIDEST];
    sk_splash_frame frames[BATCH];
    int cells[BATCH], cell_count; /* of the block */
    uint8_t calm[BATCH];          /* 1: no splash can come from the cell */
    float own[BATCH * OWN], logits[BATCH];
    int64_t particles[BATCH];
    int cell[BATCH], count; /* number of a candidate's cell in the batch */
    float share[BATCH];     /* particles that a candidate stands for */
    int chosen;             /* of the block */
    int64_t looks, beyond;  /* at cells; with features beyond those of training */
} finder;

/* Velocities at the centres of cells: means of their faces, as far as these are known. Only cells within `reach`, a
 * constant once inlined, of the block are set: no candidate sees others. */
static inline __attribute__((always_inline)) void average_faces(const sk_grid *grid, int block, int d, const int reach,
                                                                finder *f)
{
    const int wide = SK_TILE_N(reach + 1), count = SK_TILE_N(reach), first = HALO - reach;
    const int step[3] = {1, wide, SELKIE_DIM == 3 ? wide * wide : 0};
    sk_tile_load(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, reach + 1, f->faces);
    for (int z = 0; z < (SELKIE_DIM == 3 ? count : 1); z++)
        for (int y = 0; y < count; y++) {
            const float *lower = f->faces + 1 + wide * (y + 1) + (SELKIE_DIM == 3 ? wide * wide * (z + 1) : 0);
            const float *upper = lower + step[d];
            float *to = f->velocity[d] + first + WIDTH * (y + first + (SELKIE_DIM == 3 ? WIDTH * (z + first) : 0));
            for (int x = 0; x < count; x++)
                to[x] = sk_splash_centre(lower[x], upper[x]);
        }
}

static void load_velocity(const sk_grid *grid, int block, int d, int reach, finder *f)
{
    if (reach == 1)
        average_faces(grid, block, d, 1, f);
    else
        average_faces(grid, block, d, SK_SPLASH_REACH, f);
}

/* Fill of the cells, -1 behind walls of the domain: their blocks need not exist. */
static void load_fill(const sk_step *step, int block, finder *f)
{
    sk_tile_load(&step->grid, step->grid.fields[SK_FIELD_FILL], block, HALO, f->fill);
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int side = 0; side < 2; side++) {
            const int place = wall_place(step, block, d, side);
            if (place == INT_MIN || (side ? place + HALO >= WIDTH : place + HALO <= 0))
                continue;
            /* Cells [first, last) along the axis lie behind the wall: stretches of the tile. */
            const int first = side ? (place + HALO > 0 ? place + HALO : 0) : 0,
                      last = side ? WIDTH : (place + HALO < WIDTH ? place + HALO : WIDTH);
            for (int n = 0; n < VALUES; n += tile_step[d] * WIDTH)
                for (int m = n + first * tile_step[d]; m < n + last * tile_step[d]; m++)
                    f->fill[m] = -1.0f;
        }
}

/* Marks the cells with air in them or around them. Returns 0 if there is none. */
static int mark_air(finder *f)
{
    enum { NZ = SELKIE_DIM == 3 ? SK_BLOCK_N : 1, Z0 = SELKIE_DIM == 3 ? HALO : 0 };
    uint8_t *air = f->air, any = 0;
    for (int n = 0; n < VALUES; n++)
        any |= air[n] = (uint8_t)sk_splash_is_air(f->fill[n]);
    if (!any)
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++) { /* one axis after the other, from one array into the other and back */
        memcpy(f->air_before, air, VALUES);
        for (int n = tile_step[d]; n < VALUES - tile_step[d]; n++)
            air[n] = f->air_before[n - tile_step[d]] | f->air_before[n] | f->air_before[n + tile_step[d]];
    }
    any = 0;
    for (int z = Z0; z < Z0 + NZ; z++)
        for (int y = HALO; y < HALO + SK_BLOCK_N; y++)
            for (int x = HALO; x < HALO + SK_BLOCK_N; x++)
                any |= air[x + WIDTH * (y + WIDTH * z)];
    return any;
}

static int tile_place(int c)
{
    int n = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        n += ((c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) + HALO) * tile_step[d];
    return n;
}

/* The change of velocity of a new droplet, along the axes of the scene. */
static void draw_change(const sk_step *step, const sk_splashes *s, const finder *f, int row, float change[3])
{
    const sk_particle *particle = &step->particles.records[f->particles[row]];
    const sk_splash_frame *frame = &f->frames[f->cell[row]];
    const size_t cell = (size_t)s->model.cell_count;
    float inputs[SK_SPLASH_FEATURES], outputs[6], random[3], own[3];
    memcpy(inputs, f->features + (size_t)f->cell[row] * cell, cell * sizeof *inputs);
    memcpy(inputs + cell, f->own + (size_t)row * OWN, OWN * sizeof *inputs);
    sk_network_evaluate(s->model.modifier, inputs, 1, outputs, 1);
    for (int d = 0; d < SELKIE_DIM; d++)
        random[d] = sk_splash_chance(&s->looks, particle->id, d);
    sk_splash_change(&s->model, outputs, random, own);
    change[0] = change[1] = change[2] = 0.0f;
    for (int n = 0; n < SELKIE_DIM; n++)
        change[frame->axis[n]] = frame->sign[n] * own[n] * s->speed;
}

static void decide_batch(const sk_step *step, sk_splashes *s, sk_attribute *window, finder *f)
{
    if (!f->count)
        return;
    sk_splash_logits(&s->model, f->products, f->cell, f->own, f->count, f->logits);
    for (int r = 0; r < f->count; r++) {
        const int64_t p = f->particles[r];
        const uint32_t id = step->particles.records[p].id;
        if (window ? !sk_splash_passes_window(&s->looks, f->logits[r], (float *)(void *)(window->data + 2 * p))
                   : !sk_splash_passes(&s->looks, id, f->logits[r], f->share[r]))
            continue;
        s->chosen[p] = 1;
        f->chosen = 1;
        draw_change(step, s, f, r, s->change[p]);
    }
    f->count = 0;
}

/* Adds a particle to the batch of candidates. */
static void add_candidate(const sk_step *step, const sk_splashes *s, const sk_splash_cells *cells, int block,
                          int number, int64_t p, finder *f)
{
    const sk_grid *grid = &step->grid;
    const sk_particle *particle = &step->particles.records[p];
    float fraction[3] = {0.0f, 0.0f, 0.0f}, velocity[3];
    int corner = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float at = (particle->position[d] - (float)grid->corner[d]) / (float)grid->cell_size -
                         (float)(grid->coordinates[block][d] * SK_BLOCK_N) - 0.5f;
        corner += (sk_splash_lower(at, SK_BLOCK_N, &fraction[d]) + HALO) * tile_step[d];
    }
    sk_splash_own_features(cells, &s->options, tile_place(f->cells[number]), corner, fraction, &f->frames[number],
                           velocity, f->own + (size_t)f->count * OWN);
    f->particles[f->count] = p;
    f->share[f->count] = 1.0f;
    f->cell[f->count++] = number;
}

/* Can a particle become a droplet? Sources drive some, and solid ones stay. */
static int can_leave(const sk_step *step, const sk_splashes *s, int64_t p)
{
    return !sk_splash_is_driven(step->particles.records[p].flags) && sk_splash_is_liquid(step, s, p);
}

/* The particle of a cell that lies farthest towards the air among those that can leave, or -1. */
static int64_t outermost(const sk_step *step, const sk_splashes *s, const sk_splash_cells *cells, const uint32_t *start,
                         int c)
{
    float slope[SELKIE_DIM], least = INFINITY;
    int64_t found = -1;
    for (int d = 0; d < SELKIE_DIM; d++)
        slope[d] = sk_splash_wet(cells->fill[tile_place(c) + tile_step[d]]) -
                   sk_splash_wet(cells->fill[tile_place(c) - tile_step[d]]);
    for (uint32_t p = start[c]; p < start[c + 1]; p++) {
        const float *position = step->particles.records[p].position;
        float depth = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            depth += slope[d] * position[d];
        if (depth < least && can_leave(step, s, p)) {
            least = depth;
            found = p;
        }
    }
    return found;
}

/* Marks the cells of a batch that can make splashes: those whose outermost particle has a probability above CALM. Most
 * cells at a calm surface have not. */
static void find_calm(const sk_step *step, const sk_splashes *s, const sk_splash_cells *cells, int block, finder *f)
{
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int n = 0; n < f->cell_count; n++) {
        const int64_t p = outermost(step, s, cells, start, f->cells[n]);
        f->calm[n] = p < 0;
        if (p >= 0)
            add_candidate(step, s, cells, block, n, p, f);
    }
    sk_splash_logits(&s->model, f->products, f->cell, f->own, f->count, f->logits);
    for (int r = 0; r < f->count; r++)
        f->calm[f->cell[r]] = f->logits[r] < s->calm_logit;
    f->count = 0;
}

/* One particle of each cell, drawn at random, stands for all: it takes the hazard of as many. The probability that the
 * cell makes a droplet, 1 - exp(-sum of the hazards), and the chance of each particle to be the one are those of the
 * whole cell in the mean. A cell makes one droplet at most. */
static void draw_candidates(const sk_step *step, sk_splashes *s, sk_attribute *window, const sk_splash_cells *cells,
                            int block, finder *f)
{
    const sk_grid *grid = &step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int n = 0; n < f->cell_count; n++) {
        const int c = f->cells[n];
        int count = 0;
        for (uint32_t p = start[c]; p < start[c + 1]; p++)
            count += can_leave(step, s, p);
        if (!count)
            continue;
        int left = sk_splash_drawn(&s->looks, c, grid->coordinates[block], SELKIE_DIM, count);
        uint32_t p = start[c];
        while (!can_leave(step, s, p) || left-- > 0)
            p++;
        add_candidate(step, s, cells, block, n, p, f);
        f->share[f->count - 1] = (float)count;
    }
    decide_batch(step, s, window, f);
}

/* The candidates of a batch of cells. */
static void search_cells(const sk_step *step, sk_splashes *s, sk_attribute *window, const sk_splash_cells *cells,
                         int block, finder *f)
{
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    if (!f->cell_count)
        return;
    sk_splash_begin_cells(&s->model, f->features, f->cell_count, f->products);
    if (!window) {
        draw_candidates(step, s, window, cells, block, f);
        f->cell_count = 0;
        return;
    }
    find_calm(step, s, cells, block, f);
    for (int n = 0; n < f->cell_count; n++)
        for (uint32_t p = start[f->cells[n]]; p < start[f->cells[n] + 1] && !f->calm[n]; p++) {
            if (!can_leave(step, s, p))
                continue;
            add_candidate(step, s, cells, block, n, p, f);
            if (f->count == BATCH)
                decide_batch(step, s, window, f);
        }
    decide_batch(step, s, window, f);
    f->cell_count = 0;
}

/* Adds a cell at the surface to the batch of cells. */
static void add_cell(const sk_splashes *s, const sk_splash_cells *cells, int c, finder *f)
{
    const int n = s->model.cell_count;
    float *features = f->features + (size_t)f->cell_count * (size_t)n;
    /* The stencil of our own models, known to the compiler. */
    sk_splash_options options = s->options;
    if (options.reach == 2 && options.velocity_reach == 1) {
        options.reach = 2;
        options.velocity_reach = 1;
        sk_splash_cell_features(cells, &options, tile_place(c), &f->frames[f->cell_count], features);
    } else {
        sk_splash_cell_features(cells, &options, tile_place(c), &f->frames[f->cell_count], features);
    }
    int beyond = 0;
    for (int k = 0; k < n; k++)
        beyond |= sk_splash_is_beyond(features[k], s->model.largest[k]);
    f->beyond += beyond;
    f->looks++;
    f->cells[f->cell_count++] = c;
}

/* The candidates of a block, in batches that do not depend on the threads. */
static void search_block(sk_step *step, sk_splashes *s, sk_attribute *window, int block, finder *f)
{
    const sk_grid *grid = &step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    const sk_splash_cells cells = {
        {f->velocity[0], f->velocity[1], SELKIE_DIM == 3 ? f->velocity[SELKIE_DIM - 1] : NULL},
        f->fill,
        {tile_step[0], tile_step[1], tile_step[2]},
        SELKIE_DIM};
    int loaded = 0;
    f->chosen = s->marked[block] = 0;
    memset(s->chosen + start[0], 0, start[SK_BLOCK_CELLS] - start[0]);
    if (!sk_splash_has_turn(step->step_count, grid->coordinates[block], SELKIE_DIM, s->every))
        return;
    load_fill(step, block, f);
    if (!mark_air(f))
        return;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int place = tile_place(c);
        if (start[c] == start[c + 1] || !f->air[place] || !(f->fill[place] > SK_SPLASH_DRY))
            continue;
        for (int d = 0; d < SELKIE_DIM && !loaded; d++)
            load_velocity(grid, block, d, s->model.velocity_reach, f);
        loaded = 1;
        add_cell(s, &cells, c, f);
        if (f->cell_count == BATCH)
            search_cells(step, s, window, &cells, block, f);
    }
    search_cells(step, s, window, &cells, block, f);
    s->marked[block] = (uint8_t)f->chosen;
}

/* Lists the chosen particles, at most one of a cell. */
static selkie_code list_events(const sk_step *step, sk_splashes *s, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    s->event_count = 0;
    for (int b = 1; b <= grid->particle_blocks; b++) {
        const uint32_t *cells = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        if (!s->marked[b])
            continue;
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const uint32_t *start = cells + c;
            for (uint32_t p = start[0]; p < start[1]; p++) {
                if (!s->chosen[p])
                    continue;
                SK_TRY(sk_reserve(step->memory, (void **)&s->events, &s->event_capacity, s->event_count + 1,
                                  sizeof *s->events, "splashes", error));
                sk_splash_event *event = &s->events[s->event_count++];
                *event = (sk_splash_event){.particle = p, .block = b, .cell = c};
                memcpy(event->change, s->change[p], sizeof event->change);
                break;
            }
        }
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_splash_find)(sk_step *step, selkie_error *error)
{
    sk_splashes *s = sk_step_state(step, &sk_method_splashes);
    const sk_grid *grid = &step->grid;
    sk_attribute *window = sk_particles_find_attribute(&step->particles, SK_SPLASH_WINDOW); /* NULL: hazards */
    const size_t count = (size_t)step->particles.count + 1;
    sk_splash_find_attributes(step, s);
    SK_TRY(sk_reserve(step->memory, (void **)&s->chosen, &s->chosen_capacity, count, 1, "splashes", error));
    SK_TRY(sk_reserve(step->memory, (void **)&s->change, &s->change_capacity, count, sizeof *s->change, "splashes",
                      error));
    SK_TRY(sk_reserve(step->memory, (void **)&s->marked, &s->marked_capacity, (size_t)grid->particle_blocks + 1, 1,
                      "splashes", error));
    sk_splash_begin_looks(step, s);
    int64_t looks = 0, beyond = 0;
    sk_deal deal;
    sk_deal_particle_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads) reduction(+ : looks, beyond)
    {
        finder f;
        f.cell_count = f.count = 0;
        f.looks = f.beyond = 0;
        SK_EACH_DEALT(b, &deal)
        search_block(step, s, window, b, &f);
        looks += f.looks;
        beyond += f.beyond;
    }
    s->counts.looks += looks;
    s->counts.beyond += beyond;
    return list_events(step, s, error);
}
