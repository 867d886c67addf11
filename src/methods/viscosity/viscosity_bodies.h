/* Viscous drag of rigid bodies with a no-slip surface: see viscosity_bodies_dim.c. For files compiled per
 * dimension. */
#ifndef SK_METHODS_VISCOSITY_VISCOSITY_BODIES_H
#define SK_METHODS_VISCOSITY_VISCOSITY_BODIES_H

#include "methods/viscosity/viscosity_fields.h"

/* A face inside a body. */
typedef struct sk_viscous_body_face {
    size_t place;       /* in the fields */
    int32_t body, axis; /* body and axis across the face */
    float mass;         /* of the body in the solve */
    float liquid;       /* mass of the liquid whose particles reach the face: it moves with the body */
    float velocity;     /* m/s  of the body there, before the solve */
    float held;         /* m/s  change of it by the pressure that balances gravity */
    float before;       /* m/s  of the grid there, or NaN */
    float arm[3];       /* m    from the centre of mass */
} sk_viscous_body_face;

typedef struct sk_viscous_bodies {
    sk_viscous_body_face *faces;
    size_t count;
    int32_t *owner[SELKIE_DIM]; /* body + 1 of each face; 0 = none */
} sk_viscous_bodies;

/* Parts of what follows. Lists the faces inside no-slip bodies in the blocks of the grid, without what the liquid has
 * there; forgets the drag of the last step. */
selkie_code SK_DIM(sk_viscous_list_bodies)(sk_step *step, sk_viscous_bodies *bodies, selkie_error *error);
/* Shares the mass of each body among its faces across each axis. */
selkie_code SK_DIM(sk_viscous_weigh_bodies)(sk_step *step, const sk_viscous_bodies *bodies, selkie_error *error);
/* The drag from what each face gains, m/s. */
void SK_DIM(sk_viscous_drag_bodies)(sk_step *step, const sk_viscous_bodies *bodies, const double *gains);

/* Lists the faces inside no-slip bodies, and closes them to the liquid: before its weights are measured. */
selkie_code SK_DIM(sk_viscous_add_bodies)(sk_step *step, sk_viscous_fields *f, sk_viscous_bodies *bodies,
                                          selkie_error *error);
/* Makes them unknowns of the solve. */
void SK_DIM(sk_viscous_join_bodies)(sk_step *step, const sk_viscous_fields *f, const sk_viscous_bodies *bodies);
/* Gives the bodies the impulses of the solve, and the grid its velocities back. */
selkie_code SK_DIM(sk_viscous_take_bodies)(sk_step *step, const sk_viscous_fields *f, const sk_viscous_bodies *bodies,
                                           selkie_error *error);

#endif
