#include "defs/structs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "defs/heat.h"

/* --- Pool --- */

typedef struct sk_chunk {
    struct sk_chunk *next;
    _Alignas(16) char bytes[];
} sk_chunk;

struct sk_pool {
    sk_chunk *chunks;
};

sk_pool *sk_pool_create(void)
{
    return calloc(1, sizeof(sk_pool));
}

void *sk_pool_take(sk_pool *pool, size_t bytes)
{
    if (bytes > SIZE_MAX - sizeof(sk_chunk))
        return NULL;
    sk_chunk *chunk = calloc(1, sizeof *chunk + bytes);
    if (!chunk)
        return NULL;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    return chunk->bytes;
}

char *sk_pool_string(sk_pool *pool, const char *text, size_t length)
{
    char *copy = sk_pool_take(pool, length + 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

void sk_pool_destroy(sk_pool *pool)
{
    if (!pool)
        return;
    for (sk_chunk *chunk = pool->chunks; chunk;) {
        sk_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    free(pool);
}

selkie_scene *sk_scene_create(sk_pool **pool)
{
    *pool = sk_pool_create();
    selkie_scene *scene = *pool ? sk_pool_take(*pool, sizeof *scene) : NULL;
    if (!scene) {
        sk_pool_destroy(*pool);
        *pool = NULL;
        return NULL;
    }
    selkie_scene_defaults(scene);
    scene->owned = *pool;
    return scene;
}

void selkie_scene_free(selkie_scene *scene)
{
    if (scene && scene->owned)
        sk_pool_destroy(scene->owned); /* the scene itself lies in it */
}

/* --- Defaults --- */

static void field_defaults(const sk_field *field, void *base)
{
    void *at = sk_field_at(field, base);
    switch (field->type) {
    case SK_FIELD_BOOL:
    case SK_FIELD_INTEGER:
    case SK_FIELD_ENUM:
        sk_field_set_int(field, base, (int)field->initial[0]);
        break;
    case SK_FIELD_SEED: {
        uint64_t seed = (uint64_t)field->initial[0];
        memcpy(at, &seed, sizeof seed);
        break;
    }
    case SK_FIELD_NUMBER:
    case SK_FIELD_VECTOR:
    case SK_FIELD_ROTATION:
    case SK_FIELD_SCALE:
    case SK_FIELD_MATRIX:
        memcpy(at, field->initial, (size_t)sk_field_components(field) * sizeof(double));
        break;
    case SK_FIELD_STRING:
    case SK_FIELD_FILE:
        memcpy(at, &field->text, sizeof field->text);
        break;
    case SK_FIELD_STRUCT:
        sk_struct_defaults(field->of, at, 0);
        break;
    case SK_FIELD_ARRAY: {
        const void *none = NULL;
        int count = 0;
        memcpy(at, &none, sizeof none);
        memcpy((char *)base + field->count_offset, &count, sizeof count);
        break;
    }
    }
}

void sk_struct_defaults(const sk_struct *type, void *base, int keep_variant)
{
    for (int i = 0; i < type->field_count; i++)
        if (!keep_variant || &type->fields[i] != type->variant)
            field_defaults(&type->fields[i], base);
}

void selkie_scene_defaults(selkie_scene *scene)
{
    memset(scene, 0, sizeof *scene);
    sk_struct_defaults(&sk_scene_struct, scene, 0);
}

void selkie_shape_defaults(selkie_shape *shape, selkie_shape_kind kind)
{
    memset(shape, 0, sizeof *shape);
    shape->kind = kind;
    sk_struct_defaults(&sk_shape_struct, shape, 1);
}

void selkie_force_defaults(selkie_force_def *force, selkie_force_kind kind)
{
    memset(force, 0, sizeof *force);
    force->kind = kind;
    sk_struct_defaults(&sk_force_struct, force, 1);
}

void selkie_change_defaults(selkie_change_def *change, selkie_change_kind kind)
{
    memset(change, 0, sizeof *change);
    change->kind = kind;
    sk_struct_defaults(&sk_change_struct, change, 1);
}

#define DEFAULTS(name, type, argument)                                                                                 \
    void selkie_##name##_defaults(type *argument)                                                                      \
    {                                                                                                                  \
        memset(argument, 0, sizeof *argument);                                                                         \
        sk_struct_defaults(&sk_##name##_struct, argument, 0);                                                          \
    }
DEFAULTS(material, selkie_material_def, material)
DEFAULTS(viscosity_point, selkie_viscosity_point, point)
DEFAULTS(liquid, selkie_liquid_def, liquid)
DEFAULTS(source, selkie_source_def, source)
DEFAULTS(drain, selkie_drain_def, drain)
DEFAULTS(obstacle, selkie_obstacle_def, obstacle)
DEFAULTS(oscillation, selkie_oscillation, oscillation)
DEFAULTS(body, selkie_body_def, body)
DEFAULTS(joint, selkie_joint_def, joint)
DEFAULTS(object, selkie_object_def, object)
DEFAULTS(timeline_entry, selkie_timeline_entry, entry)
DEFAULTS(probe, selkie_probe_def, probe)
DEFAULTS(stroke, selkie_stroke_def, stroke)
DEFAULTS(drawn, selkie_drawn_def, drawn)
DEFAULTS(excite, selkie_excite_def, excite)
DEFAULTS(dye, selkie_dye_def, dye)

void selkie_scene_set_method(selkie_scene *scene, selkie_method method)
{
    scene->discretization = method == SELKIE_METHOD_SPH ? SELKIE_DISCRETIZATION_SPH : SELKIE_DISCRETIZATION_GRID;
    if (method != SELKIE_METHOD_SPH)
        scene->transfer = method == SELKIE_METHOD_PIC    ? SELKIE_TRANSFER_PIC
                          : method == SELKIE_METHOD_APIC ? SELKIE_TRANSFER_APIC
                                                         : SELKIE_TRANSFER_FLIP;
}

/* --- Copies --- */

/* The depth is bounded because only checked scenes are copied. */
int sk_struct_own(sk_pool *pool, const sk_struct *type, void *base)
{
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        void *at = sk_field_at(field, base);
        if (!sk_struct_uses(type, field, base)) {
            /* Pointers of other variants are not valid. */
            if (field->type == SK_FIELD_FILE || field->type == SK_FIELD_STRING || field->type == SK_FIELD_ARRAY)
                field_defaults(field, base);
            continue;
        }

        if (field->type == SK_FIELD_STRING || field->type == SK_FIELD_FILE) {
            const char *text = sk_field_string(field, base);
            const char *copy = sk_pool_string(pool, text, strlen(text));
            if (!copy)
                return 0;
            memcpy(at, &copy, sizeof copy);
        } else if (field->type == SK_FIELD_STRUCT) {
            if (!sk_struct_own(pool, field->of, at))
                return 0;
        } else if (field->type == SK_FIELD_ARRAY) {
            size_t count = (size_t)sk_field_count(field, base), size = field->of->size;
            char *copy = NULL;
            if (count) {
                copy = sk_pool_take(pool, count * size);
                if (!copy)
                    return 0;
                memcpy(copy, sk_field_elements(field, base), count * size);
                for (size_t k = 0; k < count; k++)
                    if (!sk_struct_own(pool, field->of, copy + k * size))
                        return 0;
            }
            memcpy(at, &copy, sizeof copy);
        }
    }
    return 1;
}

selkie_code sk_scene_copy(const selkie_scene *from, selkie_scene **to, selkie_error *error)
{
    *to = NULL;
    SK_TRY(selkie_scene_check(from, error)); /* bounds the recursion; a wrong count cannot read past an array */
    sk_pool *pool;
    selkie_scene *scene = sk_scene_create(&pool);
    if (!scene)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "scene: not enough memory for a copy");
    *scene = *from;
    scene->owned = pool;
    int complete = sk_struct_own(pool, &sk_scene_struct, scene);
    if (complete && from->folder) {
        scene->folder = sk_pool_string(pool, from->folder, strlen(from->folder));
        complete = scene->folder != NULL;
    }
    if (!complete) {
        sk_pool_destroy(pool);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "scene: not enough memory for a copy");
    }
    *to = scene;
    return SELKIE_OK;
}

/* --- Comparison --- */

static int equal_struct(const sk_struct *type, const void *a, const void *b, int dimension, sk_path *where);

static int equal_numbers(const sk_field *field, const void *a, const void *b, int dimension)
{
    const double *x = sk_field_numbers(field, a), *y = sk_field_numbers(field, b);
    for (int i = 0; i < sk_field_components(field); i++) {
        int outside_plane = dimension == 2 && field->type == SK_FIELD_VECTOR && !field->whole && i == 2;
        if (x[i] != y[i] && !outside_plane)
            return 0;
    }
    return 1;
}

static int equal_field(const sk_field *field, const void *a, const void *b, int dimension, sk_path *where)
{
    switch (field->type) {
    case SK_FIELD_BOOL:
    case SK_FIELD_INTEGER:
    case SK_FIELD_ENUM:
        return sk_field_int(field, a) == sk_field_int(field, b);
    case SK_FIELD_SEED:
        return sk_field_seed(field, a) == sk_field_seed(field, b);
    case SK_FIELD_STRING:
    case SK_FIELD_FILE:
        return strcmp(sk_field_string(field, a), sk_field_string(field, b)) == 0;
    case SK_FIELD_STRUCT:
        return equal_struct(field->of, sk_field_in(field, a), sk_field_in(field, b), dimension, where);
    case SK_FIELD_ARRAY: {
        const char *x = sk_field_elements(field, a), *y = sk_field_elements(field, b);
        int count = sk_field_count(field, a);
        if (count != sk_field_count(field, b))
            return 0;
        for (int i = 0; i < count; i++) {
            size_t before = sk_path_index(where, i), offset = (size_t)i * field->of->size;
            if (!equal_struct(field->of, x + offset, y + offset, dimension, where))
                return 0;
            sk_path_cut(where, before);
        }
        return 1;
    }
    default:
        return equal_numbers(field, a, b, dimension);
    }
}

static int equal_struct(const sk_struct *type, const void *a, const void *b, int dimension, sk_path *where)
{
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        if (!sk_struct_uses(type, field, a) || (field->dimension == 3 && dimension == 2))
            continue;
        size_t before = sk_path_key(where, field->key);
        /* The field that selects the variant comes before the fields of single variants, so `b` has the same
         * variant. */
        if (!equal_field(field, a, b, dimension, where))
            return 0;
        sk_path_cut(where, before);
    }
    return 1;
}

int sk_scene_equal(const selkie_scene *a, const selkie_scene *b, sk_path *where)
{
    sk_path unused;
    if (!where)
        where = &unused;
    sk_path_cut(where, 0);
    return equal_struct(&sk_scene_struct, a, b, a->domain.dimension, where);
}

/* --- Small questions --- */

double selkie_scene_cells(const selkie_scene *scene, int cells[3])
{
    const selkie_domain_def *domain = &scene->domain;
    double longest = fmax(domain->size[0], domain->size[1]);
    if (domain->dimension == 3)
        longest = fmax(longest, domain->size[2]);
    double h = domain->cell_size > 0 ? domain->cell_size : longest / domain->resolution;
    for (int axis = 0; axis < 3; axis++) {
        /* A side that is a whole number of cells but for rounding must not get one more. */
        double count = ceil(domain->size[axis] / h * (1 - 1e-9) - 1e-6);
        cells[axis] = !(count > 1) ? 1 : count > 1e9 ? 1000000000 : (int)count; /* a NaN ends up as 1 */
    }
    if (domain->dimension == 2)
        cells[2] = 1;
    return h;
}

selkie_volume selkie_scene_volume(const selkie_scene *scene)
{
    if (scene->volume != SELKIE_VOLUME_AUTO)
        return scene->volume;
    const int bilateral_grid = scene->discretization == SELKIE_DISCRETIZATION_GRID &&
                               scene->incompressibility == SELKIE_INCOMPRESSIBILITY_BILATERAL;
    return bilateral_grid ? SELKIE_VOLUME_IDP : SELKIE_VOLUME_NONE;
}

/* To within 1e-6 of the size: a sum of origin and size may round either way. */
static int box_covers_domain(const selkie_shape *shape, const selkie_domain_def *domain)
{
    int covers = shape->kind == SELKIE_SHAPE_BOX;
    for (int d = 0; d < domain->dimension; d++) {
        const double low = domain->origin[d], size = domain->size[d], slack = 1e-6 * size;
        covers &= shape->min[d] <= low + slack && shape->max[d] >= low + size - slack;
    }
    return covers;
}

static int obstacle_moves(const selkie_obstacle_def *obstacle)
{
    int moves = obstacle->keyframe_count > 0 || obstacle->oscillation_count > 0 ||
                (obstacle->motion_file && obstacle->motion_file[0]);
    for (int d = 0; d < 3; d++)
        moves |= obstacle->velocity[d] != 0.0 || obstacle->angular_velocity[d] != 0.0;
    return moves;
}

int sk_scene_is_full(const selkie_scene *scene)
{
    const int additions = scene->source_count + scene->drain_count + scene->body_count + scene->object_count +
                          scene->change_count + (scene->material_count > 1) + sk_scene_has_immersed_points(scene);
    if (scene->discretization != SELKIE_DISCRETIZATION_GRID ||
        scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL || additions > 0 || sk_scene_has_heat(scene))
        return 0;
    int full = 0, closed = 1;
    for (int l = 0; l < scene->liquid_count; l++)
        full |= scene->liquids[l].count == 0 && box_covers_domain(&scene->liquids[l].shape, &scene->domain);
    for (int side = 0; side < 2 * scene->domain.dimension; side++)
        closed &= (scene->domain.periodic >> side / 2 & 1) || scene->domain.walls[side] != SELKIE_WALL_OPEN;
    for (int o = 0; o < scene->obstacle_count; o++)
        closed &= !obstacle_moves(&scene->obstacles[o]);
    for (int f = 0; f < scene->force_count; f++)
        closed &= scene->forces[f].kind != SELKIE_FORCE_EXPLOSION;
    return full && closed;
}

double sk_scene_reflection(const selkie_scene *scene)
{
    if (scene->time.reflection >= 0.0)
        return scene->time.reflection;
    return sk_scene_is_full(scene) ? 1.0 : 0.8;
}

int sk_scene_starts_at_rest(const selkie_scene *scene)
{
    const int additions = scene->body_count + scene->object_count + sk_scene_has_immersed_points(scene);
    const double *g = scene->gravity;
    int rests = !additions && !sk_scene_melts(scene) && (g[0] != 0.0 || g[1] != 0.0 || g[2] != 0.0);
    for (int l = 0; l < scene->liquid_count; l++) {
        const selkie_liquid_def *liquid = &scene->liquids[l];
        rests &= liquid->count == 0 && !liquid->fill_obstacles && liquid->flow.kind == SELKIE_FLOW_NONE;
        for (int d = 0; d < 3; d++)
            rests &= liquid->velocity[d] == 0.0 && liquid->angular_velocity[d] == 0.0;
        for (int n = 0; n < 9; n++)
            rests &= liquid->velocity_gradient[n] == 0.0;
    }
    return rests;
}

int sk_scene_settle_rounds(const selkie_scene *scene)
{
    return scene->idp.settle >= 0 ? scene->idp.settle : sk_scene_starts_at_rest(scene);
}

double selkie_scene_cfl(const selkie_scene *scene)
{
    if (scene->time.cfl > 0.0)
        return scene->time.cfl;
    if (scene->discretization == SELKIE_DISCRETIZATION_SPH)
        return 0.4;
    if (sk_scene_has_points(scene) || sk_scene_has_immersed_points(scene))
        return 0.4;
    if (scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL)
        return 1.0;
    if (sk_scene_is_full(scene))
        return 1.0;
    return scene->transfer == SELKIE_TRANSFER_FLIP ? 1.75 : 2.0; /* FLIP loses more energy in a step than APIC */
}

int selkie_scene_particles_per_cell(const selkie_scene *scene)
{
    if (scene->particles.per_cell > 0)
        return scene->particles.per_cell;
    /* In SPH and of elastoplastic points a cell is as wide as two particles. */
    const int two_wide = scene->discretization == SELKIE_DISCRETIZATION_SPH || sk_scene_has_points(scene);
    return scene->domain.dimension == 3 ? 8 : two_wide ? 4 : 9;
}

double selkie_scene_spacing(const selkie_scene *scene)
{
    int cells[3];
    return selkie_scene_cells(scene, cells) /
           pow(selkie_scene_particles_per_cell(scene), 1.0 / scene->domain.dimension);
}

void selkie_scene_up(const selkie_scene *scene, double up[3])
{
    const double *g = scene->gravity;
    double gz = scene->domain.dimension == 2 ? 0 : g[2];
    double length = sqrt(g[0] * g[0] + g[1] * g[1] + gz * gz);
    up[0] = length > 0 ? -g[0] / length : 0;
    up[1] = length > 0 ? -g[1] / length : 1;
    up[2] = length > 0 ? -gz / length : 0;
    for (int i = 0; i < 3; i++)
        up[i] += 0.0; /* no negative zeros */
}

int sk_scene_up_axis(const selkie_scene *scene, int *sign)
{
    double up[3];
    selkie_scene_up(scene, up);
    int axis = 0;
    for (int d = 1; d < scene->domain.dimension; d++)
        if (fabs(up[d]) > fabs(up[axis]))
            axis = d;
    if (sign)
        *sign = up[axis] < 0 ? -1 : 1;
    return axis;
}

/* --- Hashes --- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) /* FNV-1a */
        hash = (hash ^ at[i]) * 0x100000001b3ULL;
    return hash;
}

uint64_t sk_struct_hash(const sk_struct *type, const void *base)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (int f = 0; f < type->field_count; f++) {
        const sk_field *field = &type->fields[f];
        if (!sk_struct_uses(type, field, base))
            continue;
        const int components = sk_field_components(field);
        uint64_t part = 0;
        if (components) {
            hash = hash_bytes(hash, sk_field_numbers(field, base), (size_t)components * sizeof(double));
        } else if (field->type == SK_FIELD_STRING || field->type == SK_FIELD_FILE) {
            const char *text = sk_field_string(field, base);
            hash = hash_bytes(hash, text, strlen(text) + 1);
        } else if (field->type == SK_FIELD_STRUCT) {
            part = sk_struct_hash(field->of, sk_field_in(field, base));
        } else if (field->type == SK_FIELD_ARRAY) {
            const char *elements = sk_field_elements(field, base);
            part = (uint64_t)sk_field_count(field, base);
            for (int i = 0; i < sk_field_count(field, base); i++)
                part = part * 31 + sk_struct_hash(field->of, elements + (size_t)i * field->of->size);
        } else {
            part = field->type == SK_FIELD_SEED ? sk_field_seed(field, base) : (uint64_t)sk_field_int(field, base);
        }
        hash = hash_bytes(hash, &part, sizeof part);
    }
    return hash;
}
