/* Reads points from a PLY file.
 *
 * Counts of the header are compared with the size of the file before anything is allocated, and every property has its
 * type and offset. Lists would break the fixed record. They are allowed in elements after the vertices (faces), which
 * are not read. */
#include "io/particles_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "io/number.h"

enum { max_header_bytes = 1 << 20, max_properties = 256, max_words = 16, word_bytes = 64 };

typedef enum ply_type {
    PLY_INT8,
    PLY_UINT8,
    PLY_INT16,
    PLY_UINT16,
    PLY_INT32,
    PLY_UINT32,
    PLY_FLOAT,
    PLY_DOUBLE,
    PLY_NO_TYPE
} ply_type;

static const int type_bytes[] = {1, 1, 2, 2, 4, 4, 4, 8};

/* What a property is for. */
enum {
    role_position,
    role_velocity = 3,
    role_id = 6,
    role_role,
    role_material,
    role_stress,
    role_plastic_strain,
    role_temperature,
    role_liquid,
    role_count
};

typedef struct ply_property {
    ply_type type;
    int offset; /* bytes into a binary record */
    int index;  /* word of an ASCII record */
} ply_property;

typedef struct ply_header {
    const char *name; /* of the file */
    int ascii;
    int swapped; /* of the other byte order */
    int has_format;
    int in_vertex; /* the element being described */
    int seen_vertex;
    int64_t vertex_count;
    int property_count; /* of the vertex */
    int record_bytes;
    uint64_t bytes_before; /* elements before the vertices: binary */
    uint64_t lines_before; /* the same: ASCII */
    uint64_t other_count;  /* of the element before the vertices that is being described */
    ply_property roles[role_count];
    int has_role[role_count];
} ply_header;

static selkie_code fail(const ply_header *header, selkie_error *error, const char *what)
{
    return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: %s", header->name, what);
}

/* --- The header --- */

typedef struct words {
    int count;
    char word[max_words][word_bytes];
} words;

/* Cuts a line into words; longer words are truncated and so become unknown ones. */
static void split(const char *text, const char *end, words *line)
{
    line->count = 0;
    while (line->count < max_words) {
        while (text < end && (*text == ' ' || *text == '\t' || *text == '\r'))
            text++;
        if (text >= end)
            return;
        const char *start = text;
        while (text < end && *text != ' ' && *text != '\t' && *text != '\r')
            text++;
        size_t length = (size_t)(text - start) < word_bytes - 1 ? (size_t)(text - start) : word_bytes - 1;
        memcpy(line->word[line->count], start, length);
        line->word[line->count++][length] = '\0';
    }
}

static ply_type type_named(const char *name)
{
    static const char *const names[2][8] = {
        {"char", "uchar", "short", "ushort", "int", "uint", "float", "double"},
        {"int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"}};
    for (int t = 0; t < 8; t++)
        if (strcmp(name, names[0][t]) == 0 || strcmp(name, names[1][t]) == 0)
            return (ply_type)t;
    return PLY_NO_TYPE;
}

/* x y z, id, and the common names of a velocity: velocity_x, vx, v_x, vel_x, velocity_0, v[0]. */
static int role_named(const char *name)
{
    static const char *const axes[3] = {"x", "y", "z"};
    for (int k = 0; k < 3; k++)
        if (strcmp(name, axes[k]) == 0)
            return role_position + k;
    if (strcmp(name, "id") == 0)
        return role_id;
    if (strcmp(name, "role") == 0)
        return role_role;
    if (strcmp(name, "material") == 0)
        return role_material;
    if (strcmp(name, "stress") == 0)
        return role_stress;
    if (strcmp(name, "plastic_strain") == 0)
        return role_plastic_strain;
    if (strcmp(name, "temperature") == 0)
        return role_temperature;
    if (strcmp(name, "liquid_fraction") == 0)
        return role_liquid;
    static const char *const stems[] = {"velocity", "vel", "v"};
    for (size_t s = 0; s < sizeof stems / sizeof *stems; s++)
        for (int k = 0; k < 3; k++) {
            char spellings[5][32];
            snprintf(spellings[0], sizeof spellings[0], "%s_%s", stems[s], axes[k]);
            snprintf(spellings[1], sizeof spellings[1], "%s%s", stems[s], axes[k]);
            snprintf(spellings[2], sizeof spellings[2], "%s_%d", stems[s], k);
            snprintf(spellings[3], sizeof spellings[3], "%s%d", stems[s], k);
            snprintf(spellings[4], sizeof spellings[4], "%s[%d]", stems[s], k);
            for (int j = 0; j < 5; j++)
                if (strcmp(name, spellings[j]) == 0)
                    return role_velocity + k;
        }
    return -1;
}

/* A count in plain digits; 0 if it is none. */
static int parse_count(const char *word, int64_t *count)
{
    int64_t value = 0;
    if (!*word)
        return 0;
    for (; *word; word++) {
        if (*word < '0' || *word > '9' || value > (INT64_MAX - 9) / 10)
            return 0;
        value = value * 10 + (*word - '0');
    }
    *count = value;
    return 1;
}

static selkie_code read_format(ply_header *header, const words *line, selkie_error *error)
{
    int little = line->count >= 2 && strcmp(line->word[1], "binary_little_endian") == 0;
    int big = line->count >= 2 && strcmp(line->word[1], "binary_big_endian") == 0;
    header->ascii = line->count >= 2 && strcmp(line->word[1], "ascii") == 0;
    if (!little && !big && !header->ascii)
        return fail(
            header, error,
            "not a PLY file that can be read: its format is none of binary_little_endian, binary_big_endian, ascii");
    header->swapped = !header->ascii && little != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    header->has_format = 1;
    return SELKIE_OK;
}

static selkie_code read_element(ply_header *header, const words *line, selkie_error *error)
{
    int64_t count;
    if (line->count != 3 || !parse_count(line->word[2], &count))
        return fail(header, error, "damaged PLY header: an element needs a name and a count");
    header->in_vertex = strcmp(line->word[1], "vertex") == 0;
    if (header->in_vertex && header->seen_vertex)
        return fail(header, error, "damaged PLY header: two elements named vertex");
    if (header->in_vertex) {
        header->seen_vertex = 1;
        header->vertex_count = count;
    } else if (!header->seen_vertex) {
        header->other_count = (uint64_t)count;
        header->lines_before += (uint64_t)count;
        if (header->lines_before > INT64_MAX)
            return fail(header, error, "damaged PLY header: an impossible count");
    }
    return SELKIE_OK;
}

static selkie_code read_property(ply_header *header, const words *line, selkie_error *error)
{
    if (header->seen_vertex && !header->in_vertex)
        return SELKIE_OK; /* after the vertices: not read */

    /* A list has no fixed size. It can only be skipped as a line of text. */
    if (line->count >= 2 && strcmp(line->word[1], "list") == 0) {
        if (!header->ascii || header->in_vertex)
            return fail(header, error,
                        "this PLY file has lists at or before its vertices; only points in fixed records can be read");
        return SELKIE_OK;
    }

    ply_type type = line->count == 3 ? type_named(line->word[1]) : PLY_NO_TYPE;
    if (type == PLY_NO_TYPE)
        return fail(header, error, "damaged PLY header: a property needs a known type and a name");

    /* Elements before the vertices only move the start of the vertices. */
    if (!header->in_vertex) {
        uint64_t bytes = (uint64_t)type_bytes[type];
        if (header->other_count > (INT64_MAX - header->bytes_before) / bytes)
            return fail(header, error, "damaged PLY header: an impossible count");
        header->bytes_before += header->other_count * bytes;
        return SELKIE_OK;
    }

    /* A vertex property has a place in the record. Known ones also have a role. */
    if (header->property_count == max_properties)
        return fail(header, error, "a PLY file with more than 256 properties cannot be read");
    int role = role_named(line->word[2]);
    if (role >= 0 && header->has_role[role])
        return fail(header, error, "damaged PLY header: a property is there twice");
    if (role >= 0) {
        header->roles[role] = (ply_property){type, header->record_bytes, header->property_count};
        header->has_role[role] = 1;
    }
    header->property_count++;
    header->record_bytes += type_bytes[type];
    return SELKIE_OK;
}

/* Selkie's own comments; others are ignored. */
static selkie_code read_comment(ply_header *header, const words *line, sk_particles_data *data, selkie_error *error)
{
    double values[9];
    int wanted = 0;
    const char *key = line->count >= 2 ? line->word[1] : "";
    /* The number of values follows from the key. */
    if (strcmp(key, "selkie_turn") == 0)
        wanted = 9;
    else if (strcmp(key, "selkie_origin") == 0)
        wanted = 3;
    else if (strcmp(key, "selkie_time") == 0 || strcmp(key, "selkie_dimension") == 0 ||
             strcmp(key, "selkie_radius") == 0)
        wanted = 1;
    if (wanted == 0)
        return SELKIE_OK;

    /* Read the values. */
    int good = line->count == wanted + 2;
    for (int i = 0; good && i < wanted; i++) {
        const char *word = line->word[i + 2], *end = word + strlen(word);
        good = sk_number_parse(word, end, &values[i]) == end;
    }

    /* Check and store them. */
    if (good && wanted == 9)
        good = sk_up_turn_from_matrix(values, &data->turn);
    else if (good && wanted == 3)
        for (int k = 0; k < 3 && good; k++)
            good = isfinite(data->origin[k] = values[k]);
    else if (good && strcmp(key, "selkie_time") == 0)
        data->time = values[0];
    else if (good && strcmp(key, "selkie_radius") == 0)
        good = values[0] >= 0 && values[0] < INFINITY && ((data->particle_radius = values[0]), 1);
    else if (good)
        good = (values[0] == 2 || values[0] == 3) && ((data->dimension = (int)values[0]), 1);
    return good ? SELKIE_OK : fail(header, error, "damaged PLY header: a selkie_ comment that makes no sense");
}

static selkie_code check_header(const ply_header *header, selkie_error *error)
{
    if (!header->has_format)
        return fail(header, error, "damaged PLY header: no line 'format'");
    if (!header->seen_vertex || !header->has_role[0] || !header->has_role[1] || !header->has_role[2])
        return fail(header, error, "no points: a PLY file needs an element vertex with x, y and z");
    return SELKIE_OK;
}

/* Sets *body to the first byte behind the header. */
static selkie_code read_header(ply_header *header, const char *bytes, size_t size, size_t *body,
                               sk_particles_data *data, selkie_error *error)
{
    if (size < 4 || memcmp(bytes, "ply", 3) != 0 || (bytes[3] != '\n' && bytes[3] != '\r'))
        return fail(header, error, "not a PLY file (it does not start with 'ply')");

    /* Read line by line up to end_header. */
    const char *limit = bytes + (size < max_header_bytes ? size : max_header_bytes);
    words line;
    for (const char *text = bytes;;) {
        const char *end = memchr(text, '\n', (size_t)(limit - text));
        if (!end)
            return fail(header, error, "damaged PLY header: no 'end_header'");
        split(text, end, &line);
        const char *key = line.count > 0 ? line.word[0] : "";
        text = end + 1;
        if (strcmp(key, "end_header") == 0) {
            *body = (size_t)(text - bytes);
            return check_header(header, error);
        }

        /* Each keyword has its own reader. */
        selkie_code code = SELKIE_OK;
        if (strcmp(key, "format") == 0)
            code = read_format(header, &line, error);
        else if (strcmp(key, "comment") == 0)
            code = read_comment(header, &line, data, error);
        else if (strcmp(key, "element") == 0)
            code = read_element(header, &line, error);
        else if (strcmp(key, "property") == 0)
            code = read_property(header, &line, error);
        else if (*key && strcmp(key, "ply") != 0 && strcmp(key, "obj_info") != 0)
            code = sk_fail(error, SELKIE_ERROR_FORMAT, "%s: damaged PLY header: the line '%.40s ...' is not known",
                           header->name, key);
        SK_TRY(code);
    }
}

/* --- Values --- */

static uint64_t load_word(const unsigned char *bytes, int count, int swapped)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (count) {
    case 1:
        return bytes[0];
    case 2:
        memcpy(&two, bytes, sizeof two);
        return swapped ? __builtin_bswap16(two) : two;
    case 4:
        memcpy(&four, bytes, sizeof four);
        return swapped ? __builtin_bswap32(four) : four;
    default:
        memcpy(&eight, bytes, sizeof eight);
        return swapped ? __builtin_bswap64(eight) : eight;
    }
}

static double load_value(const unsigned char *record, const ply_property *property, int swapped)
{
    uint64_t word = load_word(record + property->offset, type_bytes[property->type], swapped);
    switch (property->type) {
    case PLY_INT8:
        return (int8_t)word;
    case PLY_INT16:
        return (int16_t)word;
    case PLY_INT32:
        return (int32_t)word;
    case PLY_FLOAT: {
        uint32_t bits = (uint32_t)word;
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    case PLY_DOUBLE: {
        double value;
        memcpy(&value, &word, sizeof value);
        return value;
    }
    default:
        return (double)word;
    }
}

/* The array of an attribute of one float. */
static float **float_member(sk_particles_data *data, int role)
{
    return role == role_stress           ? &data->stress
           : role == role_plastic_strain ? &data->plastic_strain
           : role == role_temperature    ? &data->temperature
                                         : &data->liquid_fraction;
}

/* Stores one value; 0 if it is no valid coordinate or id. */
static int store_value(sk_particles_data *data, int64_t particle, int role, double value)
{
    if (role >= role_stress) {
        (*float_member(data, role))[particle] = (float)value;
        return fabs(value) <= 3.4028234663852886e38;
    }
    if (role >= role_id) {
        if (!(value >= 0 && value <= 4294967295.0))
            return 0;
        (role == role_id ? data->id : role == role_role ? data->role : data->material)[particle] = (uint32_t)value;
        return 1;
    }
    if (!(fabs(value) <= 3.4028234663852886e38)) /* the largest float; false for a NaN as well */
        return 0;
    if (role >= role_velocity)
        data->velocity[3 * particle + role - role_velocity] = (float)value;
    else
        data->position[3 * particle + role] = (float)(value - data->origin[role]);
    return 1;
}

static selkie_code fail_value(const ply_header *header, int64_t particle, selkie_error *error)
{
    return sk_fail(error, SELKIE_ERROR_FORMAT,
                   "%s: damaged: point %lld has a coordinate, velocity or id that is not a number in range",
                   header->name, (long long)particle);
}

/* Three adjacent floats in the machine's byte order, as Selkie writes them; 0 if one is not finite. */
static int copy_vector(const unsigned char *record, const ply_property *first, float *out)
{
    memcpy(out, record + first->offset, 3 * sizeof *out);
    return isfinite(out[0]) && isfinite(out[1]) && isfinite(out[2]);
}

static int is_plain_vector(const ply_header *header, int role)
{
    const ply_property *parts = &header->roles[role];
    for (int k = 0; k < 3; k++)
        if (!header->has_role[role + k] || parts[k].type != PLY_FLOAT || parts[k].offset != parts[0].offset + 4 * k)
            return 0;
    return !header->swapped;
}

static int has_origin(const sk_particles_data *data)
{
    return data->origin[0] != 0.0 || data->origin[1] != 0.0 || data->origin[2] != 0.0;
}

static selkie_code read_binary(const ply_header *header, const unsigned char *records, sk_particles_data *data,
                               selkie_error *error)
{
    int plain_position = is_plain_vector(header, role_position) && !has_origin(data);
    int plain_velocity = data->velocity && is_plain_vector(header, role_velocity);
    int64_t first_bad = INT64_MAX;
#pragma omp parallel for schedule(static) reduction(min : first_bad) if (data->count > 10000)
    for (int64_t i = 0; i < data->count; i++) {
        const unsigned char *record = records + (size_t)i * (size_t)header->record_bytes;
        int good = 1;
        if (plain_position)
            good = copy_vector(record, &header->roles[role_position], data->position + 3 * i);
        if (plain_velocity)
            good = copy_vector(record, &header->roles[role_velocity], data->velocity + 3 * i) && good;
        for (int role = plain_position ? plain_velocity ? role_id : role_velocity : 0; role < role_count; role++)
            if (header->has_role[role])
                good = store_value(data, i, role, load_value(record, &header->roles[role], header->swapped)) && good;
        if (!good && i < first_bad)
            first_bad = i;
    }
    return first_bad == INT64_MAX ? SELKIE_OK : fail_value(header, first_bad, error);
}

static const char *skip_blanks(const char *text, const char *end)
{
    while (text < end && (*text == ' ' || *text == '\t' || *text == '\r' || *text == '\n'))
        text++;
    return text;
}

static selkie_code read_ascii(const ply_header *header, const char *text, const char *end, sk_particles_data *data,
                              selkie_error *error)
{
    for (int64_t i = 0; i < data->count; i++)
        for (int index = 0; index < header->property_count; index++) {
            char word[word_bytes];
            size_t length = 0;
            for (text = skip_blanks(text, end); text < end && skip_blanks(text, end) == text; text++)
                if (length < sizeof word - 1)
                    word[length++] = *text;
            word[length] = '\0';
            double value;
            if (length == 0 || sk_number_parse(word, word + length, &value) != word + length)
                return fail_value(header, i, error);
            for (int role = 0; role < role_count; role++)
                if (header->has_role[role] && header->roles[role].index == index && !store_value(data, i, role, value))
                    return fail_value(header, i, error);
        }
    return SELKIE_OK;
}

/* --- The whole --- */

static selkie_code allocate(ply_header *header, sk_particles_data *data, selkie_error *error)
{
    size_t count = (size_t)header->vertex_count;
    data->count = header->vertex_count;
    data->position = sk_allocate(NULL, count * 3 * sizeof *data->position);
    int velocity = 1;
    for (int k = 0; k < 3; k++)
        velocity = velocity && header->has_role[role_velocity + k];
    for (int k = 0; k < 3; k++)
        header->has_role[role_velocity + k] = velocity;
    if (velocity)
        data->velocity = sk_allocate(NULL, count * 3 * sizeof *data->velocity);
    if (header->has_role[role_id])
        data->id = sk_allocate(NULL, count * sizeof *data->id);
    if (header->has_role[role_role])
        data->role = sk_allocate(NULL, count * sizeof *data->role);
    if (header->has_role[role_material])
        data->material = sk_allocate(NULL, count * sizeof *data->material);
    int missing = 0;
    for (int role = role_stress; role < role_count; role++)
        if (header->has_role[role])
            missing |= !(*float_member(data, role) = sk_allocate(NULL, count * sizeof(float)));
    if (missing || !data->position || (velocity && !data->velocity) || (header->has_role[role_id] && !data->id) ||
        (header->has_role[role_role] && !data->role) || (header->has_role[role_material] && !data->material))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: %.1f MiB are needed for its %lld points and are not available",
                       header->name, (double)count * 28 / 1048576.0, (long long)data->count);
    return SELKIE_OK;
}

static selkie_code parse(ply_header *header, const char *bytes, size_t size, sk_particles_data *data,
                         selkie_error *error)
{
    size_t body = 0;
    SK_TRY(read_header(header, bytes, size, &body, data, error));

    /* Skip the elements before the points. */
    const char *text = bytes + body, *end = bytes + size;
    uint64_t left = size - body;
    if (header->ascii) {
        for (uint64_t line = 0; line < header->lines_before; line++) {
            const char *next = memchr(text, '\n', (size_t)(end - text));
            if (!next)
                return fail(header, error, "damaged: it ends before its points");
            text = next + 1;
        }
        left = (uint64_t)(end - text);
    } else if (header->bytes_before > left) {
        return fail(header, error, "damaged: it ends before its points");
    } else {
        text += header->bytes_before;
        left -= header->bytes_before;
    }

    /* In ASCII a number takes a digit and a blank (but for the very last one). */
    uint64_t least = header->ascii ? 2 * (uint64_t)header->property_count : (uint64_t)header->record_bytes;
    if ((uint64_t)header->vertex_count > (left + header->ascii) / least)
        return sk_fail(error, SELKIE_ERROR_FORMAT,
                       "%s: damaged: it promises %lld points, but has bytes for %llu at most", header->name,
                       (long long)header->vertex_count, (unsigned long long)((left + header->ascii) / least));

    /* Read the points. */
    SK_TRY(allocate(header, data, error));
    return header->ascii ? read_ascii(header, text, end, data, error)
                         : read_binary(header, (const unsigned char *)text, data, error);
}

selkie_code sk_particles_parse_ply(const void *bytes, size_t size, const char *name, sk_particles_data **result,
                                   selkie_error *error)
{
    *result = NULL;
    sk_particles_data *data = calloc(1, sizeof *data);
    if (!data)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: cannot read: out of memory", name);
    data->dimension = 3;
    data->time = NAN;
    data->turn = sk_up_turn_none();
    ply_header header = {.name = name};
    sk_number_scope scope;
    selkie_code code = sk_number_begin(&scope, error);
    if (code == SELKIE_OK) {
        code = parse(&header, size > 0 ? bytes : "", size, data, error);
        sk_number_end(&scope);
    }
    if (code != SELKIE_OK) {
        sk_particles_data_free(data);
        return code;
    }
    *result = data;
    return SELKIE_OK;
}

selkie_code sk_particles_read_ply(const char *path, sk_particles_data **data, selkie_error *error)
{
    *data = NULL;
    char *bytes;
    size_t size;
    SK_TRY(sk_file_read(path, &bytes, &size, error));
    selkie_code code = sk_particles_parse_ply(bytes, size, path, data, error);
    sk_release(NULL, bytes);
    return code;
}

static void turn_all(float *vectors, int64_t count, const sk_up_turn *turn)
{
#pragma omp parallel for schedule(static) if (count > 10000)
    for (int64_t i = 0; i < count; i++) {
        float turned[3];
        sk_up_turn_apply(turn, vectors + 3 * i, turned);
        memcpy(vectors + 3 * i, turned, sizeof turned);
    }
}

int sk_particles_extras(const sk_particles_data *data, selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES])
{
    int count = 0;
    for (int e = 0; e < data->extra_count; e++)
        extras[count++] = (selkie_attribute_view){.name = data->extra[e].name,
                                                  .type = data->extra[e].type,
                                                  .components = data->extra[e].components,
                                                  .stride = 4 * (size_t)data->extra[e].components,
                                                  .data = data->extra[e].data};
    if (count)
        return count;

    /* A PLY file gives these. */
    const struct {
        const char *name;
        selkie_attribute_type type;
        void *values;
    } own[] = {{"role", SELKIE_UINT32, data->role},
               {"material", SELKIE_UINT32, data->material},
               {"stress", SELKIE_FLOAT32, data->stress},
               {"plastic_strain", SELKIE_FLOAT32, data->plastic_strain},
               {"temperature", SELKIE_FLOAT32, data->temperature},
               {"liquid_fraction", SELKIE_FLOAT32, data->liquid_fraction}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i].values)
            extras[count++] = (selkie_attribute_view){
                .name = own[i].name, .type = own[i].type, .components = 1, .stride = 4, .data = own[i].values};
    return count;
}

void sk_particles_turn_back(sk_particles_data *data)
{
    if (sk_up_turn_is_none(data->turn))
        return;
    sk_up_turn back = sk_up_turn_inverse(data->turn);
    turn_all(data->position, data->count, &back);
    if (data->velocity)
        turn_all(data->velocity, data->count, &back);
    double origin[3];
    for (int k = 0; k < 3; k++)
        origin[k] = back.sign[k] * data->origin[back.axis[k]];
    memcpy(data->origin, origin, sizeof origin);
    data->turn = sk_up_turn_none();
}

void sk_particles_rebase(sk_particles_data *data, const double origin[3])
{
    const double shift[3] = {data->origin[0] - origin[0], data->origin[1] - origin[1], data->origin[2] - origin[2]};
    memcpy(data->origin, origin, sizeof data->origin);
    if (shift[0] == 0.0 && shift[1] == 0.0 && shift[2] == 0.0)
        return;
    for (int64_t i = 0; i < 3 * data->count; i++)
        data->position[i] = (float)(data->position[i] + shift[i % 3]);
}

void sk_particles_data_free(sk_particles_data *data)
{
    if (!data)
        return;
    sk_release(NULL, data->position);
    sk_release(NULL, data->velocity);
    sk_release(NULL, data->id);
    sk_release(NULL, data->role);
    sk_release(NULL, data->material);
    sk_release(NULL, data->stress);
    sk_release(NULL, data->plastic_strain);
    sk_release(NULL, data->temperature);
    sk_release(NULL, data->liquid_fraction);
    for (int e = 0; e < data->extra_count; e++)
        sk_release(NULL, data->extra[e].data);
    free(data);
}
