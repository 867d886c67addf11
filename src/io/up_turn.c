#include "io/up_turn.h"

#include <math.h>

sk_up_turn sk_up_turn_none(void)
{
    return (sk_up_turn){{0, 1, 2}, {1, 1, 1}};
}

int sk_up_turn_is_none(sk_up_turn turn)
{
    for (int k = 0; k < 3; k++)
        if (turn.axis[k] != k || turn.sign[k] != 1)
            return 0;
    return 1;
}

sk_up_turn sk_up_turn_make(selkie_up_axis wanted, const double scene_up[3])
{
    sk_up_turn turn = sk_up_turn_none();
    if (wanted == SELKIE_UP_SCENE)
        return turn;
    int to = wanted == SELKIE_UP_Y ? 1 : 2;
    int from = 1;
    for (int k = 0; k < 3; k++)
        if (fabs(scene_up[k]) > fabs(scene_up[from]))
            from = k;
    int sign = scene_up[from] < 0 ? -1 : 1;
    if (from == to && sign < 0) { /* upside down: half a turn about x */
        turn.sign[1] = turn.sign[2] = -1;
    } else if (from != to) { /* a quarter turn in the plane of the two axes: from -> sign to, to -> -sign from */
        turn.axis[to] = from;
        turn.sign[to] = sign;
        turn.axis[from] = to;
        turn.sign[from] = -sign;
    }
    return turn;
}

sk_up_turn sk_up_turn_inverse(sk_up_turn turn)
{
    sk_up_turn inverse;
    for (int k = 0; k < 3; k++) {
        inverse.axis[turn.axis[k]] = k;
        inverse.sign[turn.axis[k]] = turn.sign[k];
    }
    return inverse;
}

int sk_up_turn_from_matrix(const double matrix[9], sk_up_turn *turn)
{
    sk_up_turn found;
    int used = 0;

    /* Each row has one entry of 1 or -1, in a column of its own. */
    for (int k = 0; k < 3; k++) {
        int entries = 0;
        for (int c = 0; c < 3; c++) {
            double entry = matrix[3 * k + c];
            if (entry == 1 || entry == -1) {
                found.axis[k] = c;
                found.sign[k] = entry > 0 ? 1 : -1;
                entries++;
            } else if (entry != 0) {
                return 0;
            }
        }
        if (entries != 1)
            return 0;
        used |= 1 << found.axis[k];
    }
    if (used != 7)
        return 0;

    /* The permutation 0 1 2, 1 2 0 or 2 0 1 is even. */
    int even = (found.axis[0] + 1) % 3 == found.axis[1];
    if (found.sign[0] * found.sign[1] * found.sign[2] * (even ? 1 : -1) != 1)
        return 0;
    *turn = found;
    return 1;
}
