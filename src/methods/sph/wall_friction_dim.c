/* Coulomb's friction of liquid on walls, obstacles and bodies (liquid_friction), after the pressure solve.
 *
 * A wall pushes a particle with its part of the pressure: the particle moves by -q G in the step, G the sum of the
 * wall's gradients (sph.h), so the normal impulse per mass is |q G| / dt. Friction takes at most mu times that of the
 * velocity along the wall, and never more than all of it. Parts with forces gain the momentum that the liquid loses.
 * Contacts are few, so one thread takes them in the order of the particles.
 */
#include <math.h>

#include "base/dimension.h"
#include "methods/sph/contact_plain.h"

static void rub(sk_step *step, const sk_sph_contact *contact)
{
    sk_particle *particle = &step->particles.records[contact->particle];
    sk_sph_body *body = &step->sph->boundary.bodies[contact->part];
    float after[3] = {0.0f, 0.0f, 0.0f};
    if (!rub_contact(step, contact, particle->velocity, after))
        return;

    add_rubbing(step, body, particle, after, body->force, body->torque);
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->velocity[d] = after[d];
}

selkie_code SK_DIM(sk_sph_wall_friction)(sk_step *step, selkie_error *error)
{
    (void)error;
    const sk_sph *sph = step->sph;
    for (size_t c = 0; step->dt > 0.0 && c < sph->contact_count; c++)
        if (sph->boundary.bodies[sph->contacts[c].part].rubs)
            rub(step, &sph->contacts[c]);
    return SELKIE_OK;
}
