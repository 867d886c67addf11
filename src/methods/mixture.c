/* A solid material and liquid on one grid: the fields. */
#include "methods/mixture.h"

/* Adds the three fields of one quantity on faces; returns the first. */
static int add_faces(sk_step *step, const char *const names[3], const char *meaning, selkie_error *error)
{
    int first = -1;
    for (int d = 0; d < 3; d++) {
        const sk_field_def def = {names[d], "m/s", d, SK_LIFETIME_STEP, __builtin_nanf(""), meaning};
        const int field = sk_grid_add_field(&step->grid, &def, error);
        if (field < 0)
            return -1;
        first = d ? first : field;
    }
    return first;
}

selkie_code sk_mixture_add_fields(sk_mixture *mixture, sk_step *step, const sk_mixture_names *names,
                                  selkie_error *error)
{
    static const char *const liquid[3] = {"liquid_x", "liquid_y", "liquid_z"};
    static const char *const before[3] = {"before_x", "before_y", "before_z"};
    static const char *const forced[3] = {"forced_x", "forced_y", "forced_z"};
    const sk_field_def density = {names->density, "1", -1, SK_LIFETIME_STEP, 0.0f, names->density_meaning};
    mixture->solid_velocity = add_faces(step, names->velocity, names->velocity_meaning, error);
    mixture->solid_share = add_faces(step, names->share, names->share_meaning, error);
    mixture->liquid_velocity = add_faces(step, liquid, "velocity of the liquid beside the solid", error);
    mixture->before = add_faces(step, before, "mixed velocity before the pressure solve", error);
    mixture->forced = add_faces(step, forced, "change of the mixed velocity by forces", error);
    mixture->solid_density = sk_grid_add_field(&step->grid, &density, error);
    if (mixture->solid_velocity < 0 || mixture->solid_share < 0 || mixture->liquid_velocity < 0 ||
        mixture->before < 0 || mixture->forced < 0 || mixture->solid_density < 0)
        return SELKIE_ERROR_MEMORY;
    return SELKIE_OK;
}

sk_mixture_faces sk_mixture_faces_of(const sk_mixture *mixture, const sk_step *step)
{
    float *const *fields = step->grid.fields;
    sk_mixture_faces f;
    for (int d = 0; d < 3; d++) {
        f.velocity[d] = fields[SK_FIELD_VELOCITY_X + d];
        f.change[d] = fields[SK_FIELD_CHANGE_X + d];
        f.end[d] = fields[step->end_velocity + d];
        f.lightness[d] = fields[SK_FIELD_LIGHTNESS_X + d];
        f.liquid_density[d] = fields[SK_FIELD_FACE_DENSITY_X + d];
        f.solid[d] = fields[mixture->solid_velocity + d];
        f.share[d] = fields[mixture->solid_share + d];
        f.liquid[d] = fields[mixture->liquid_velocity + d];
        f.before[d] = fields[mixture->before + d];
        f.forced[d] = fields[mixture->forced + d];
    }
    return f;
}

selkie_code sk_mixture_gather(const sk_mixture *mixture, sk_step *step, const uint8_t *mask, uint8_t *reached,
                              sk_mixture_transfer transfer, selkie_error *error)
{
    const sk_transfer_options options = {.kind = SK_TRANSFER_FLIP,
                                         .density_per_particle = 1.0f / (float)step->particles_per_cell,
                                         .relative_density = step->relative_density,
                                         .material_mask = mask,
                                         .reached_blocks = reached,
                                         .threads = step->threads};
    sk_grid view = step->grid;
    for (int d = 0; d < 3; d++) {
        view.fields[SK_FIELD_VELOCITY_X + d] = step->grid.fields[mixture->solid_velocity + d];
        view.fields[SK_FIELD_CHANGE_X + d] = step->grid.fields[SK_FIELD_FACE_X + d]; /* scratch */
        view.fields[SK_FIELD_FACE_DENSITY_X + d] = step->grid.fields[mixture->solid_share + d];
        view.fields[SK_FIELD_LIGHTNESS_X + d] = step->grid.fields[mixture->before + d];
    }
    view.fields[SK_FIELD_DENSITY] = step->grid.fields[mixture->solid_density];
    const selkie_code code = transfer(&view, &step->particles, &options, error);
    step->grid.tiles = view.tiles; /* the transfer may have taken more */
    step->grid.tile_capacity = view.tile_capacity;
    return code;
}
