/* Rigid bodies in the liquid of the grid methods.
 *
 * The pressure solve contains the bodies (monolithic coupling). With phi_b the share of body b in the kernel around a
 * face (grid/solids.h), the constraint is
 *
 *   div[(1 - sum phi_b) u + sum phi_b (V_b + omega_b x r)] = 0,
 *
 * and the pressure changes V_b and omega_b by its impulse on the body. In the units of the pressure solve, q = p dt /
 * (density h), the matrix gains density h^d W_b M_b^-1 W_b^T with W_b = div phi_b [I, r x]: linalg/poisson_modes_dim.c.
 * The rigid body engine then adds contacts, joints and friction and moves the bodies. The particles follow the surface
 * of the body (grid/sweep.h). What momentum of theirs is left into the surface goes to the body.
 */
#ifndef SK_METHODS_RIGID_LIQUID_H
#define SK_METHODS_RIGID_LIQUID_H

#include "methods/method.h"
#include "rigid/rigid.h"

extern const sk_method sk_method_rigid_liquid;

/* A particle at the surface of a body. */
typedef struct sk_body_contact {
    uint32_t particle;
    int32_t body;
    float normal[3]; /* outwards */
} sk_body_contact;

typedef struct sk_rigid_liquid {
    sk_poisson_modes modes;
    sk_poisson_mode_entry *entries;
    double (*response)[SK_POISSON_MODES][SK_POISSON_MODES]; /* [bodies] */
    double (*velocity)[SK_POISSON_MODES];                   /* [bodies] before the pressure solve */
    sk_velocity_change *changes;                            /* [bodies] of the velocity since the start of the step */
    sk_body_contact *contacts;
    uint32_t *counts; /* [grid blocks + 1] of entries, then of contacts */
    size_t entry_capacity, contact_capacity, count_capacity;
} sk_rigid_liquid;

#define SK_RIGID_LIQUID_PHASES(dim)                                                                                    \
    selkie_code sk_rigid_liquid_couple_##dim(sk_step *step, selkie_error *error);                                      \
    /* What drag adds where they were coupled before it was known. */                                                  \
    selkie_code sk_rigid_liquid_drag_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_rigid_liquid_move_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_rigid_liquid_contact_##dim(sk_step *step, selkie_error *error);                                     \
    /* Coulomb's friction, once the impulses of pressure and viscosity are known; a part of move. */                   \
    selkie_code sk_rigid_liquid_rub_##dim(sk_step *step, const sk_poisson_modes *modes, selkie_error *error);          \
    /* Parts of the contact with particles: the response of a body to N s and N m s, the velocity of its modes, and    \
     * its state after the contact, with the momentum (N s, N m s) that it has taken. */                               \
    void sk_rigid_liquid_contact_response_##dim(const sk_step *step, const sk_rigid_liquid *state, int body,           \
                                                double response[SK_POISSON_MODES][SK_POISSON_MODES]);                  \
    void sk_rigid_liquid_body_modes_##dim(const sk_rigid_state *rigid, double velocity[SK_POISSON_MODES]);             \
    void sk_rigid_liquid_take_contact_##dim(sk_rigid_state *rigid, double dt, const double after[SK_POISSON_MODES],    \
                                            const double momentum[SK_POISSON_MODES]);

SK_RIGID_LIQUID_PHASES(2d)
SK_RIGID_LIQUID_PHASES(3d)

#endif
