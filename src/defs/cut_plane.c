#include "defs/cut_plane.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int sk_cut_plane(const char *text, double plane[4])
{
    memset(plane, 0, 4 * sizeof *plane);
    const int axis = text[0] - 'x', sign = text[0] && text[1] == '>' ? 1 : text[0] && text[1] == '<' ? -1 : 0;
    char *end = NULL;
    const double place = sign ? strtod(text + 2, &end) : 0.0;
    if (axis < 0 || axis > 2 || !sign || end == text + 2 || *end || !isfinite(place))
        return 0;
    plane[axis] = sign;
    plane[3] = sign * place;
    return 1;
}
