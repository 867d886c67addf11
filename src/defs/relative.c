#include "defs/relative.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide_integer;

/* digits x 10^exponent */
typedef struct decimal {
    wide_integer digits;
    int exponent;
} decimal;

/* By sums: a product of 128 bits that is tested for overflow needs a library that not every compiler links. */
static wide_integer ten_times(wide_integer x)
{
    const wide_integer two = x + x, four = two + two;
    return four + four + two;
}

/* The shortest decimal number that reads as `value`. */
static decimal shortest(double value)
{
    char text[40];
    decimal result = {0, 0};
    int negative = value < 0.0;
    for (int digits = 14; digits <= 16; digits++) {
        snprintf(text, sizeof text, "%.*e", digits, fabs(value));
        if (strtod(text, NULL) == fabs(value))
            break;
    }

    /* The separator depends on the locale: only digits count. */
    const char *at = text;
    int behind = 0;
    for (; *at && *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9') {
            result.digits = ten_times(result.digits) + (*at - '0');
            result.exponent -= behind;
        } else {
            behind = 1;
        }
    }
    result.exponent += *at ? atoi(at + 1) : 0;
    while (result.digits && result.digits % 10 == 0) {
        result.digits /= 10;
        result.exponent++;
    }
    if (negative)
        result.digits = -result.digits;
    return result;
}

/* The double next to a decimal number. */
static double to_double(decimal value)
{
    char text[64], *at = text + sizeof text;
    const int negative = value.digits < 0;
    wide_integer rest = negative ? -value.digits : value.digits;
    at -= snprintf(NULL, 0, "e%d", value.exponent) + 1;
    sprintf(at, "e%d", value.exponent);
    do {
        *--at = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest);
    const double result = strtod(at, NULL);
    return negative ? -result : result;
}

double sk_relative(double value, double origin)
{
    enum { most_digits = 18 }; /* between the two exponents: 10^18 x 10^17 fits in 127 bits */
    if (origin == 0.0 || !isfinite(value) || !isfinite(origin))
        return value;
    decimal a = shortest(value), b = shortest(origin);
    if (value == 0.0)
        a.exponent = b.exponent;
    if (abs(a.exponent - b.exponent) > most_digits)
        return value - origin;
    for (; a.exponent > b.exponent; a.exponent--)
        a.digits = ten_times(a.digits);
    for (; b.exponent > a.exponent; b.exponent--)
        b.digits = ten_times(b.digits);
    a.digits -= b.digits;
    return to_double(a);
}

static void move_struct(const sk_struct *type, void *base, const double origin[3]);

static void move_field(const sk_field *field, void *base, const double origin[3])
{
    if (field->type == SK_FIELD_STRUCT) {
        move_struct(field->of, sk_field_at(field, base), origin);
    } else if (field->type == SK_FIELD_ARRAY) {
        char *elements;
        memcpy(&elements, sk_field_at(field, base), sizeof elements);
        for (int i = 0; i < sk_field_count(field, base); i++)
            move_struct(field->of, elements + (size_t)i * field->of->size, origin);
    } else if (field->place) {
        double *x = sk_field_at(field, base);
        for (int d = 0; d < 3; d++)
            x[d] = sk_relative(x[d], origin[d]);
    }
}

static void move_struct(const sk_struct *type, void *base, const double origin[3])
{
    for (int i = 0; i < type->field_count; i++)
        if (sk_struct_uses(type, &type->fields[i], base))
            move_field(&type->fields[i], base, origin);
}

/* A wave has a level along the up direction and a phase at the point 0. */
static void move_waves(const sk_struct *type, void *base, const double origin[3], const double up[3])
{
    /* Level and phase of a wave. */
    if (type == &sk_shape_struct && ((selkie_shape *)base)->kind == SELKIE_SHAPE_WAVE) {
        selkie_shape *wave = base;
        double turns = 0.0;
        for (int d = 0; d < 3; d++) {
            wave->level =
                fabs(up[d]) == 1.0 ? sk_relative(wave->level, up[d] * origin[d]) : wave->level - up[d] * origin[d];
            turns += wave->wave_number[d] * origin[d] / 6.283185307179586477;
        }
        /* Whole turns do not matter; a crest on a whole number of waves stays there to the bit. */
        turns -= floor(turns + 0.5);
        if (fabs(turns) > 1e-9)
            wave->phase += 360.0 * turns;
    }

    /* Waves inside the members. */
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        if (!sk_struct_uses(type, field, base))
            continue;
        if (field->type == SK_FIELD_STRUCT)
            move_waves(field->of, sk_field_at(field, base), origin, up);
        if (field->type != SK_FIELD_ARRAY)
            continue;
        char *elements;
        memcpy(&elements, sk_field_at(field, base), sizeof elements);
        for (int e = 0; e < sk_field_count(field, base); e++)
            move_waves(field->of, elements + (size_t)e * field->of->size, origin, up);
    }
}

void sk_struct_make_relative(const sk_struct *type, void *base, const double origin[3], const double up[3])
{
    if (origin[0] == 0.0 && origin[1] == 0.0 && origin[2] == 0.0)
        return;
    move_struct(type, base, origin);
    move_waves(type, base, origin, up);
}

void sk_scene_make_relative(selkie_scene *scene)
{
    double origin[3] = {0, 0, 0}, up[3];
    for (int side = 0; side < 2 * scene->domain.dimension; side++)
        if (scene->domain.periodic >> side / 2 & 1)
            scene->domain.walls[side] = SELKIE_WALL_OPEN;
    for (int d = 0; d < scene->domain.dimension; d++)
        origin[d] = scene->domain.origin[d];
    if (origin[0] == 0.0 && origin[1] == 0.0 && origin[2] == 0.0)
        return;
    selkie_scene_up(scene, up);

    /* An area of a level probe that spans the domain has min = max = 0 and stays so. */
    for (int p = 0; p < scene->probe_count; p++) {
        selkie_probe_def *probe = (selkie_probe_def *)&scene->probes[p];
        for (int d = 0; d < 3 && probe->kind == SELKIE_PROBE_LEVEL; d++)
            if (probe->min[d] == 0.0 && probe->max[d] == 0.0)
                probe->min[d] = probe->max[d] = origin[d];
    }
    /* A camera that frames itself has eye = target and keeps this when both move. */
    move_struct(&sk_scene_struct, scene, origin);
    move_waves(&sk_scene_struct, scene, origin, up);
    memset(scene->domain.origin, 0, sizeof scene->domain.origin);
}
