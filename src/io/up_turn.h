/* Rotation of results to the up axis of the target program.
 *
 * Results can be rotated so that the scene's up direction becomes y (Houdini, most renderers) or z (Blender,
 * ParaView). The rotation is one of the 24 that map axes to axes: free of rounding, and walls stay along the
 * axes even with tilted gravity (as in sloshing tanks). The axis nearest to up then decides. A proper rotation,
 * never a mirror: y up to z up is (x, y, z) -> (x, -z, y). Points and velocities rotate alike, about the
 * origin.
 */
#ifndef SK_IO_UP_TURN_H
#define SK_IO_UP_TURN_H

#include <selkie/scene.h>

/* turned[k] = sign[k] * original[axis[k]] */
typedef struct sk_up_turn {
    int axis[3];
    int sign[3];
} sk_up_turn;

sk_up_turn sk_up_turn_none(void);
sk_up_turn sk_up_turn_make(selkie_up_axis wanted, const double scene_up[3]);
sk_up_turn sk_up_turn_inverse(sk_up_turn turn);
int sk_up_turn_is_none(sk_up_turn turn);
/* From nine numbers, row-major; 0 if they are no such rotation. */
int sk_up_turn_from_matrix(const double matrix[9], sk_up_turn *turn);

static inline void sk_up_turn_apply(const sk_up_turn *turn, const float original[3], float turned[3])
{
    /* + 0 avoids negative zeros, as in the third coordinate of 2D particles */
    for (int k = 0; k < 3; k++)
        turned[k] = (float)turn->sign[k] * original[turn->axis[k]] + 0.0f;
}

#endif
