/* Both forms of a phase, tuned and plain, on the same state.
 *
 * Two worlds of the same scene take some steps in the tuned form, and then the phases of one more step up to the one in
 * question. That one runs tuned in the first world and plain in the second, and all that a phase may write is compared:
 * particles, fields of the grid, kinds, flags and masks of the blocks, solids, and what the step reports.
 *
 *     backend_pair pair;
 *     backend_begin(&pair, &c.scene, 5);
 *     backend_bounds bounds = {.velocity = 1e-6, .scratch = BACKEND_FACES};
 *     backend_check(&pair, "pressure", &bounds);
 *     backend_end(&pair);
 *
 * A bound of 0 asks for the same bits (NaN where the other has NaN).
 */
#ifndef SK_TESTS_BACKEND_CASES_H
#define SK_TESTS_BACKEND_CASES_H

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sanitized.h"
#include "world/world_internal.h"

/* A test whose bounds hold for the state after its own number of steps defines this as 1. */
#ifndef BACKEND_ALL_STEPS
#define BACKEND_ALL_STEPS 0
#endif

typedef struct backend_pair {
    selkie_world *worlds[2]; /* the tuned and the plain one */
} backend_pair;

/* Fields by bit. */
#define BACKEND_FIELD(field) (UINT64_C(1) << (field))
#define BACKEND_VECTOR(field) (UINT64_C(7) << (field)) /* three from it on */
#define BACKEND_FACES BACKEND_VECTOR(SK_FIELD_FACE_X)
#define BACKEND_ALL_FIELDS (BACKEND_FIELD(SK_FIELD_COUNT) - 1)

/* How far the two may be apart, in the unit of each value; 0 = the same bits. */
typedef struct backend_bounds {
    double position;              /* m    of particles */
    double velocity;              /* m/s  of particles, and of VELOCITY_* and CHANGE_* */
    double attribute;             /*      of attributes that are no integers, and of `carried` */
    double field[SK_FIELD_COUNT]; /*      of the other fields */
    double solids;                /*      of the fields of the solids */
    double relative;              /*      beside each of these: times the larger of the two values */
    double sums;                  /*      sums and measures of the step, relative */
    int iterations;               /*      of solves */
    uint64_t scratch;             /*      fields that the phase leaves undefined, by bit: BACKEND_FIELD */
    uint64_t scratch_runs;        /*      likewise masks of runs; those called scratch never count */
    int blocks_change; /*      the phase gives blocks their slots anew: fields, kinds and masks are undefined */
} backend_bounds;

/* --- worlds --- */

static inline void backend_begin(backend_pair *pair, const selkie_scene *scene, int steps)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = 2;
    steps = SANITIZED && !BACKEND_ALL_STEPS && steps > 2 ? 2 : steps;
    selkie_error error = {0};
    for (int w = 0; w < 2; w++) {
        if (selkie_world_create(scene, &options, &pair->worlds[w], &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        for (int n = 0; n < steps; n++)
            if (selkie_world_step(pair->worlds[w], &error) != SELKIE_OK)
                fail_msg("step %d: %s", n, error.message);
    }
}

static inline void backend_end(backend_pair *pair)
{
    for (int w = 0; w < 2; w++)
        selkie_world_destroy(pair->worlds[w]);
    memset(pair, 0, sizeof *pair);
}

/* Index of the phase of that name; -1 if there is none. Of several, number `n` (from 0). */
static inline int backend_find(const backend_pair *pair, const char *name, int n)
{
    for (int p = 0; p < pair->worlds[0]->phase_count; p++)
        if (strcmp(pair->worlds[0]->phases[p].name, name) == 0 && n-- == 0)
            return p;
    return -1;
}

/* Both forms of the p-th phase of a world, by backend; NULL where it has none. */
static inline void backend_forms(const selkie_world *world, int p, sk_phase_function forms[SK_BACKEND_COUNT])
{
    const sk_phase *phase = &world->phases[p];
    const int flat = world->step.dimension == 2;
    memset(forms, 0, SK_BACKEND_COUNT * sizeof *forms);
    for (int m = 0; m < world->methods.count; m++)
        for (int n = 0; n < SK_METHOD_MAX_PHASES && world->methods.methods[m]->phases[n].name; n++) {
            const sk_phase_def *def = &world->methods.methods[m]->phases[n];
            if ((int)def->slot == phase->slot && strcmp(def->name, phase->name) == 0 &&
                def->run[SK_BACKEND_TUNED][!flat] == phase->run)
                for (int backend = 0; backend < SK_BACKEND_COUNT; backend++)
                    forms[backend] = def->run[backend][!flat];
        }
}

/* Begins a step as selkie_world_step() does. */
static inline void backend_begin_step(selkie_world *world)
{
    int on_frame;
    world->step.dt = sk_world_choose_step(world, &world->step.end_time, &on_frame);
    for (int m = 0; m < world->methods.count; m++)
        if (world->methods.methods[m]->begin)
            world->methods.methods[m]->begin(&world->step);
}

/* Runs the p-th phase in a form of it. Returns the phase that comes next. */
static inline int backend_run_form(selkie_world *world, int p, sk_phase_function form)
{
    selkie_error error = {0};
    sk_phase phase = world->phases[p];
    phase.run = form;
    if (sk_phase_run(&phase, &world->step, &error) != SELKIE_OK)
        fail_msg("%s: %s", phase.name, error.message);
    return phase.again && phase.again_from >= 0 && phase.again(&world->step) ? phase.again_from : p + 1;
}

/* Begins a step and runs the phases before the p-th, tuned. */
static inline void backend_run_up_to(selkie_world *world, int p)
{
    backend_begin_step(world);
    for (int q = 0; q < p;)
        q = backend_run_form(world, q, world->phases[q].run);
}

/* --- comparing --- */

static inline int backend_differ(double a, double b, double bound, double relative)
{
    if (a != a || b != b)
        return (a != a) != (b != b);
    if (a == b)
        return 0;
    return !(fabs(a - b) <= bound + relative * fmax(fabs(a), fabs(b)));
}

typedef struct backend_array {
    const char *phase, *name;
    int index, components; /* of several arrays of the name; values an entry */
    double bound, relative;
} backend_array;

static inline void backend_compare_floats(backend_array array, const float *a, const float *b, size_t count)
{
    size_t worst = 0, wrong = 0;
    double most = -1.0;
    for (size_t i = 0; i < count; i++) {
        if (!backend_differ((double)a[i], (double)b[i], array.bound, array.relative))
            continue;
        const double difference = a[i] == a[i] && b[i] == b[i] ? fabs((double)a[i] - (double)b[i]) : INFINITY;
        worst = difference > most ? i : worst;
        most = difference > most ? difference : most;
        wrong++;
    }
    if (wrong)
        fail_msg("%s: %s %d: %zu of %zu values differ by more than %g + %g x value; worst [%zu][%zu]: %.9g tuned, %.9g "
                 "plain",
                 array.phase, array.name, array.index, wrong, count, array.bound, array.relative,
                 worst / (size_t)array.components, worst % (size_t)array.components, (double)a[worst],
                 (double)b[worst]);
}

static inline void backend_compare_bytes(const char *phase, const char *name, const void *a, const void *b,
                                         size_t element, size_t count)
{
    const char *bytes[2] = {a, b};
    for (size_t i = 0; i < count; i++)
        if (memcmp(bytes[0] + i * element, bytes[1] + i * element, element) != 0) {
            uint64_t values[2] = {0, 0};
            for (int w = 0; w < 2; w++)
                memcpy(&values[w], bytes[w] + i * element, element < 8 ? element : 8);
            fail_msg("%s: %s[%zu of %zu]: %llx tuned, %llx plain", phase, name, i, count, (unsigned long long)values[0],
                     (unsigned long long)values[1]);
        }
}

static inline void backend_compare_number(const char *phase, const char *name, double a, double b, double bound,
                                          double relative)
{
    if (backend_differ(a, b, bound, relative))
        fail_msg("%s: %s: %.17g tuned, %.17g plain, bound %g + %g x value", phase, name, a, b, bound, relative);
}

static inline void backend_compare_particles(const char *phase, const sk_particles *a, const sk_particles *b,
                                             const backend_bounds *bounds)
{
    backend_compare_number(phase, "particles", (double)a->count, (double)b->count, 0, 0);
    backend_compare_number(phase, "in_order", a->in_order, b->in_order, 0, 0);
    for (int64_t p = 0; p < a->count; p++) {
        const sk_particle *one = &a->records[p], *other = &b->records[p];
        if (one->id != other->id || one->flags != other->flags)
            fail_msg("%s: particle %lld: id %u flags %x tuned, id %u flags %x plain", phase, (long long)p, one->id,
                     one->flags, other->id, other->flags);
        for (int d = 0; d < 3; d++) {
            if (backend_differ((double)one->position[d], (double)other->position[d], bounds->position,
                               bounds->relative))
                fail_msg("%s: particle %lld: position[%d] %.9g m tuned, %.9g m plain, bound %g", phase, (long long)p, d,
                         (double)one->position[d], (double)other->position[d], bounds->position);
            if (backend_differ((double)one->velocity[d], (double)other->velocity[d], bounds->velocity,
                               bounds->relative))
                fail_msg("%s: particle %lld: velocity[%d] %.9g m/s tuned, %.9g m/s plain, bound %g", phase,
                         (long long)p, d, (double)one->velocity[d], (double)other->velocity[d], bounds->velocity);
        }
    }
    for (int t = 0; t < a->attribute_count; t++) {
        const sk_attribute *one = &a->attributes[t], *other = &b->attributes[t];
        const size_t values = (size_t)a->count * (size_t)one->components;
        const backend_array array = {phase, one->name, t, one->components, bounds->attribute, bounds->relative};
        if (one->is_integer)
            backend_compare_bytes(phase, one->name, one->data, other->data, sizeof *one->data, values);
        else
            backend_compare_floats(array, (const float *)one->data, (const float *)other->data, values);
    }
    if (a->carried && b->carried) /* else nobody looks at what the other has */
        backend_compare_floats((backend_array){phase, "carried", 0, 1, bounds->attribute, bounds->relative}, a->carried,
                               b->carried, 3 * (size_t)a->count);
}

/* The same number for each block; the order of the entries may differ. */
static inline void backend_compare_tables(const char *phase, const sk_block_table *a, const sk_block_table *b)
{
    backend_compare_number(phase, "entries of the table", a->count, b->count, 0, 0);
    for (size_t i = 0; i < (size_t)1 << a->log; i++)
        if (a->entries[i].number)
            backend_compare_number(phase, "table", a->entries[i].number, sk_block_find(b, a->entries[i].key), 0, 0);
}

/* Which blocks there are, and which particles are in them. */
static inline void backend_compare_blocks(const char *phase, const sk_grid *a, const sk_grid *b)
{
    const size_t blocks = (size_t)a->block_count;
    const size_t around = a->dimension == 2 ? 9 : 27;
    backend_compare_number(phase, "block_count", a->block_count, b->block_count, 0, 0);
    backend_compare_number(phase, "particle_blocks", a->particle_blocks, b->particle_blocks, 0, 0);
    backend_compare_tables(phase, &a->table, &b->table);
    backend_compare_bytes(phase, "coordinates", a->coordinates, b->coordinates, sizeof *a->coordinates, blocks);
    backend_compare_bytes(phase, "faces", a->faces, b->faces, sizeof *a->faces, blocks);
    for (size_t n = 0; n < blocks; n++) {
        backend_compare_bytes(phase, "neighbours", a->neighbours[n], b->neighbours[n], sizeof **a->neighbours, around);
        /* The plain sort may call more changed than the tuned one, never less. */
        if (a->changes[n] & ~b->changes[n])
            fail_msg("%s: changes[%zu]: %x tuned, %x plain", phase, n, a->changes[n], b->changes[n]);
    }
    if (!a->particle_blocks)
        return;
    const size_t held = (size_t)a->particle_blocks;
    backend_compare_bytes(phase, "cell_start", a->cell_start, b->cell_start, sizeof *a->cell_start,
                          held * (size_t)a->block_cells + 1);
    backend_compare_bytes(phase, "occupied", a->occupied, b->occupied, sizeof *a->occupied, held + 1);
    backend_compare_bytes(phase, "occupied_first", a->occupied_first, b->occupied_first, sizeof *a->occupied, held + 1);
    backend_compare_bytes(phase, "occupied_last", a->occupied_last, b->occupied_last, sizeof *a->occupied, held + 1);
}

static inline void backend_compare_fields(const char *phase, const sk_grid *a, const sk_grid *b,
                                          const backend_bounds *bounds)
{
    static const char *const masks[] = {"runs REACHED", "runs LIQUID", "runs NEAR", "runs CHOSEN", "runs MOVED"};
    const size_t blocks = (size_t)a->block_count, cells = (size_t)a->block_cells;
    for (int f = 0; f < SK_FIELD_COUNT; f++) {
        const backend_array array = {phase,
                                     sk_field_info(f)->name,
                                     f,
                                     a->block_cells,
                                     f <= SK_FIELD_CHANGE_Z ? bounds->velocity : bounds->field[f],
                                     bounds->relative};
        if (a->fields[f] && !(bounds->scratch >> f & 1))
            backend_compare_floats(array, a->fields[f], b->fields[f], blocks * cells);
    }
    for (int r = 0; r < SK_RUNS_SCRATCH; r++)
        if (!(bounds->scratch_runs >> r & 1))
            backend_compare_bytes(phase, masks[r], a->runs[r], b->runs[r], sizeof **a->runs, blocks);
    backend_compare_bytes(phase, "kinds", a->kinds, b->kinds, 1, blocks * cells);
    backend_compare_bytes(phase, "block_flags", a->block_flags, b->block_flags, 1, blocks);
}

static inline void backend_compare_solids(const char *phase, const sk_solids *a, const sk_solids *b, size_t blocks,
                                          const backend_bounds *bounds)
{
    const size_t values = a->slot_count * (size_t)a->block_cells;
    backend_compare_number(phase, "solids: slots", (double)a->slot_count, (double)b->slot_count, 0, 0);
    backend_compare_number(phase, "solids: static slots", (double)a->static_count, (double)b->static_count, 0, 0);
    backend_compare_tables(phase, &a->table, &b->table);
    if (!a->block_slot || !a->fraction[0])
        return;
    backend_compare_bytes(phase, "solids: block_slot", a->block_slot, b->block_slot, sizeof *a->block_slot, blocks);
    backend_array array = {phase, "", 0, a->block_cells, bounds->solids, bounds->relative};
    for (int d = 0; d < a->dimension; d++) {
        array.index = d;
        array.name = "solids: fraction";
        backend_compare_floats(array, a->fraction[d], b->fraction[d], values);
        array.name = "solids: blurred_face";
        if (a->blurred_face[d])
            backend_compare_floats(array, a->blurred_face[d], b->blurred_face[d], values);
        array.name = "solids: velocity";
        if (a->velocity[d])
            backend_compare_floats(array, a->velocity[d], b->velocity[d], values);
    }
    array.name = "solids: blurred";
    backend_compare_floats(array, a->blurred, b->blurred, values);
    array.name = "solids: distance";
    backend_compare_floats(array, a->distance, b->distance, values);
    backend_compare_bytes(phase, "solids: no_slip", a->no_slip, b->no_slip, 1, values);
    backend_compare_bytes(phase, "solids: closed", a->closed, b->closed, 1, values);
    backend_compare_bytes(phase, "solids: vents", a->vents, b->vents, 1, a->static_count * (size_t)a->block_cells);
    backend_compare_bytes(phase, "solids: plain", a->plain, b->plain, 1, a->slot_count);
}

static inline void backend_compare_reports(const char *phase, const sk_step *a, const sk_step *b,
                                           const backend_bounds *bounds)
{
#define BACKEND_SUM(what)                                                                                              \
    backend_compare_number(phase, #what, (double)a->what, (double)b->what, bounds->sums, bounds->sums)
#define BACKEND_COUNT_OF(what) backend_compare_number(phase, #what, (double)a->what, (double)b->what, 0, 0)
#define BACKEND_ITERATIONS(what)                                                                                       \
    backend_compare_number(phase, #what, (double)a->what, (double)b->what, bounds->iterations, 0)
    BACKEND_SUM(kernel_volume);
    BACKEND_SUM(counted_volume);
    BACKEND_SUM(surface_volume);
    BACKEND_COUNT_OF(occupied_cells);
    BACKEND_COUNT_OF(liquid_cells);
    BACKEND_SUM(sums.kinetic);
    BACKEND_SUM(sums.max_speed);
    BACKEND_COUNT_OF(sums.bad);
    BACKEND_SUM(mass_sums.kinetic);
    BACKEND_SUM(mass_sums.mass);
    for (int d = 0; d < 3; d++) {
        BACKEND_SUM(mass_sums.moment[d]);
        BACKEND_SUM(mass_sums.moment_before[d]);
        BACKEND_SUM(positions[d]);
        BACKEND_SUM(positions_before[d]);
    }
    BACKEND_ITERATIONS(pressure.iterations);
    BACKEND_COUNT_OF(pressure.converged);
    BACKEND_COUNT_OF(pressure.unknowns);
    BACKEND_COUNT_OF(pressure.closed_components);
    BACKEND_ITERATIONS(density_report.iterations);
    BACKEND_COUNT_OF(density_report.unknowns);
    BACKEND_ITERATIONS(unilateral.iterations);
    BACKEND_COUNT_OF(unilateral.unknowns);
    BACKEND_ITERATIONS(correction.iterations);
    BACKEND_COUNT_OF(correction.unknowns);
    BACKEND_SUM(density_error_mean);
    BACKEND_SUM(density_error_max);
    BACKEND_SUM(density_error_std);
    BACKEND_SUM(overfull);
    BACKEND_COUNT_OF(redistributed);
    BACKEND_COUNT_OF(pushed_out);
    BACKEND_COUNT_OF(density_passes);
    BACKEND_COUNT_OF(correct_again);
    BACKEND_COUNT_OF(shifted);
    BACKEND_COUNT_OF(has_expansion);
    BACKEND_COUNT_OF(emitted);
    BACKEND_COUNT_OF(drained);
    BACKEND_COUNT_OF(exchanged);
#undef BACKEND_SUM
#undef BACKEND_COUNT_OF
#undef BACKEND_ITERATIONS
}

static inline void backend_compare(const backend_pair *pair, const char *phase, const backend_bounds *bounds)
{
    const sk_step *a = &pair->worlds[0]->step, *b = &pair->worlds[1]->step;
    backend_compare_blocks(phase, &a->grid, &b->grid);
    backend_compare_particles(phase, &a->particles, &b->particles, bounds);
    if (!bounds->blocks_change) {
        backend_compare_fields(phase, &a->grid, &b->grid, bounds);
        backend_compare_solids(phase, &a->solids, &b->solids, (size_t)a->grid.block_count, bounds);
    }
    backend_compare_reports(phase, a, b, bounds);
}

/* --- the check --- */

/* Gives the second world what a phase may have written in the first. Memory that nobody has written yet may differ as
 * well; what a phase leaves alone must not show as a difference. */
static inline void backend_align(backend_pair *pair)
{
    const sk_step *from = &pair->worlds[0]->step;
    sk_step *to = &pair->worlds[1]->step;
    assert_int_equal(from->grid.block_capacity, to->grid.block_capacity);
    assert_int_equal(from->particles.count, to->particles.count);
    const size_t blocks = from->grid.block_capacity, cells = blocks * (size_t)from->grid.block_cells,
                 count = (size_t)from->particles.count;
    for (int f = 0; f < SK_FIELD_LIMIT; f++)
        if (from->grid.fields[f])
            memcpy(to->grid.fields[f], from->grid.fields[f], cells * sizeof(float));
    for (int r = 0; r < SK_RUNS_COUNT; r++)
        memcpy(to->grid.runs[r], from->grid.runs[r], blocks * sizeof **to->grid.runs);
    memcpy(to->grid.kinds, from->grid.kinds, cells);
    memcpy(to->grid.block_flags, from->grid.block_flags, blocks);
    memcpy(to->grid.changes, from->grid.changes, blocks);
    memcpy(to->particles.records, from->particles.records, count * sizeof *to->particles.records);
    for (int a = 0; a < from->particles.attribute_count; a++)
        memcpy(to->particles.attributes[a].data, from->particles.attributes[a].data,
               count * (size_t)from->particles.attributes[a].components * sizeof(uint32_t));
    to->drained = from->drained;
    memcpy(&to->kernel_volume, &from->kernel_volume, sizeof *to - offsetof(sk_step, kernel_volume));
}

static inline void backend_run_forms(backend_pair *pair, int p)
{
    sk_phase_function forms[SK_BACKEND_COUNT];
    backend_forms(pair->worlds[0], p, forms);
    if (!forms[SK_BACKEND_PLAIN])
        fail_msg("the phase %s has no plain form", pair->worlds[0]->phases[p].name);
    backend_align(pair);
    backend_run_form(pair->worlds[0], p, forms[SK_BACKEND_TUNED]);

    /* Solvers ask the step which form to take. Phases that follow are tuned again. */
    pair->worlds[1]->step.backend = SK_BACKEND_PLAIN;
    backend_run_form(pair->worlds[1], p, forms[SK_BACKEND_PLAIN]);
    pair->worlds[1]->step.backend = SK_BACKEND_TUNED;
}

/* One more step, up to the p-th phase, which runs in both forms. The worlds are only good for backend_compare() and
 * backend_end() afterwards. */
static inline void backend_run_phase(backend_pair *pair, int p)
{
    for (int w = 0; w < 2; w++)
        backend_run_up_to(pair->worlds[w], p);
    backend_run_forms(pair, p);
}

static inline void backend_check_phase(backend_pair *pair, int p, const backend_bounds *bounds)
{
    backend_run_phase(pair, p);
    backend_compare(pair, pair->worlds[0]->phases[p].name, bounds);
}

static inline void backend_check(backend_pair *pair, const char *phase, const backend_bounds *bounds)
{
    const int p = backend_find(pair, phase, 0);
    if (p < 0)
        fail_msg("there is no phase %s", phase);
    backend_check_phase(pair, p, bounds);
}

/* One more step, phase by phase: those that `check` returns bounds for, after they ran, run in both forms and are
 * compared; then both worlds go on from what the tuned form made. For phases that leave solvers alone, whose memory
 * from solve to solve is not carried over. */
typedef struct backend_step_check {
    int (*is_checked)(const char *phase);
    backend_bounds (*bounds)(backend_pair *pair, const char *phase);
    const char *label; /* of the scene, for messages */
} backend_step_check;

static inline void backend_check_step(backend_pair *pair, const backend_step_check *check)
{
    for (int w = 0; w < 2; w++)
        backend_begin_step(pair->worlds[w]);
    for (int p = 0, next; p < pair->worlds[0]->phase_count; p = next) {
        const sk_phase *phase = &pair->worlds[0]->phases[p];
        if (check->is_checked(phase->name)) {
            char label[160];
            snprintf(label, sizeof label, "%s, %s", check->label, phase->name);
            backend_run_forms(pair, p);
            const backend_bounds bounds = check->bounds(pair, phase->name);
            backend_compare(pair, label, &bounds);
            backend_align(pair);
            next = phase->again && phase->again_from >= 0 && phase->again(&pair->worlds[0]->step) ? phase->again_from
                                                                                                  : p + 1;
        } else {
            next = backend_run_form(pair->worlds[0], p, phase->run);
            backend_run_form(pair->worlds[1], p, pair->worlds[1]->phases[p].run);
        }
    }
}

/* All of it: worlds, steps, the phase in both forms. */
static inline void backend_check_scene(const selkie_scene *scene, int steps, const char *phase,
                                       const backend_bounds *bounds)
{
    backend_pair pair;
    backend_begin(&pair, scene, steps);
    backend_check(&pair, phase, bounds);
    backend_end(&pair);
}

#endif
