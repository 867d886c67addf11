#include "io/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

selkie_code sk_number_begin(sk_number_scope *scope, selkie_error *error)
{
    scope->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (scope->plain == (locale_t)0)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "numbers: no memory for the C locale");
    scope->before = uselocale(scope->plain);
    return SELKIE_OK;
}

void sk_number_end(sk_number_scope *scope)
{
    uselocale(scope->before);
    freelocale(scope->plain);
}

int sk_number_format(double value, char text[SK_NUMBER_LENGTH])
{
    if (isnan(value)) /* without the sign that some give a NaN */
        return snprintf(text, SK_NUMBER_LENGTH, "nan");
    if (fabs(value) < 9007199254740992.0 && value == floor(value)) /* 2^53: below, each whole number is exact */
        return snprintf(text, SK_NUMBER_LENGTH, "%lld", (long long)value);
    /* Positions far from 0 need more digits. */
    return snprintf(text, SK_NUMBER_LENGTH, "%.*g", fabs(value) < 1e5 || fabs(value) > 1e10 ? 9 : 14, value);
}

const char *sk_number_parse(const char *text, const char *limit, double *value)
{
    const char *first = text;
    if (first < limit && (*first == '+' || *first == '-'))
        first++;
    if (first >= limit)
        return NULL;
    /* Refuses leading spaces and hexadecimal numbers, which strtod accepts. */
    int digit = *first >= '0' && *first <= '9';
    int word = *first == 'n' || *first == 'N' || *first == 'i' || *first == 'I';
    if (!digit && !word && *first != '.')
        return NULL;
    if (*first == '0' && first + 1 < limit && (first[1] == 'x' || first[1] == 'X'))
        return NULL;
    char *end;
    double number = strtod(text, &end);
    if (end == text || end > limit)
        return NULL;
    *value = number;
    return end;
}
