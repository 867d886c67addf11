/* Numbers in text files have a decimal point in every locale.
 *
 * printf and strtod follow the locale of the calling program, and decimal commas would break a CSV. Between begin and
 * end this thread (and no other) uses the C locale. */
#ifndef SK_IO_NUMBER_H
#define SK_IO_NUMBER_H

#include <locale.h>
#include <stddef.h>
#include "base/status.h"

typedef struct sk_number_scope {
    locale_t plain, before;
} sk_number_scope;

selkie_code sk_number_begin(sk_number_scope *scope, selkie_error *error);
void sk_number_end(sk_number_scope *scope);

enum { SK_NUMBER_LENGTH = 40 };

/* Whole numbers in full, others with nine digits (enough to restore a float). Returns the length. */
int sk_number_format(double value, char text[SK_NUMBER_LENGTH]);

/* The number at the start of `text`, which ends before `limit` (a byte that can be read and is no part of a number must
 * stand there). Returns its end, NULL if there is none. Only plain decimal notation, nan and inf. */
const char *sk_number_parse(const char *text, const char *limit, double *value);

#endif
