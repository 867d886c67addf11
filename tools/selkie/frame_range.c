/* The frames that an option names. */
#include <stdlib.h>
#include <string.h>

#include "tool.h"

int read_frame_range(const char *text, int64_t *first, int64_t *last)
{
    const char *colon = strchr(text, ':');
    char *end = NULL;
    int good = *text != 0;
    *first = 0;
    *last = -1;
    if (*text && *text != ':') {
        *first = strtoll(text, &end, 10);
        good = end != text && (colon ? end == colon : !*end);
        *last = colon ? -1 : *first;
    }
    if (colon && colon[1]) {
        *last = strtoll(colon + 1, &end, 10);
        good = good && end != colon + 1 && !*end && *last >= *first;
    }
    if (!good || *first < 0)
        return complain("--frames '%s' is not a range of frames A:B with A <= B", text);
    return EXIT_GOOD;
}
