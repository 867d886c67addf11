/* JSON text for a page, written piece by piece into a blob. */
#ifndef SELKIE_TOOL_STUDIO_TEXT_H
#define SELKIE_TOOL_STUDIO_TEXT_H

#include <stdio.h>
#include "studio_exchange.h"

typedef struct studio_text {
    FILE *stream;
    char *text;
    size_t length;
} studio_text;

int studio_text_open(studio_text *text); /* 0, or -1: no memory */
/* "key": before a value; NULL writes only the comma. */
void studio_text_key(studio_text *text, const char *key);
void studio_text_string(studio_text *text, const char *key, const char *value);
void studio_text_number(studio_text *text, const char *key, double value); /* null where it is not finite */
void studio_text_numbers(studio_text *text, const char *key, const double *values, int count);
void studio_text_bool(studio_text *text, const char *key, int value);
/* Ends the text; NULL: no memory. */
studio_blob *studio_text_close(studio_text *text, uint32_t number);

/* {"is": "problem", "for": verb, "message": message} */
studio_blob *studio_problem(const char *verb, const char *message);

#endif
