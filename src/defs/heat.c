/* Heat of a scene: checks of its keys, and viscosity over temperature. */
#include "defs/heat.h"

#include <math.h>
#include <stdio.h>

#include "defs/fields.h"
#include "defs/materials.h"

int sk_scene_has_heat(const selkie_scene *scene)
{
    if (scene->discretization != SELKIE_DISCRETIZATION_GRID || scene->material_count == 0)
        return 0;
    for (int m = 0; m < scene->material_count; m++)
        if (!(scene->materials[m].heat_capacity > 0.0))
            return 0;
    return 1;
}

int sk_scene_melts(const selkie_scene *scene)
{
    for (int m = 0; sk_scene_has_heat(scene) && m < scene->material_count; m++)
        if (scene->materials[m].melting_point > 0.0)
            return 1;
    return 0;
}

void sk_scene_temperatures(const selkie_scene *scene, double *lowest, double *highest)
{
    double low = HUGE_VAL, high = 0.0;
#define TAKE(value)                                                                                                    \
    do {                                                                                                               \
        const double temperature = (value);                                                                            \
        low = temperature > 0.0 ? fmin(low, temperature) : low;                                                        \
        high = fmax(high, temperature);                                                                                \
    } while (0)
    for (int l = 0; l < scene->liquid_count; l++)
        TAKE(scene->liquids[l].temperature);
    for (int s = 0; s < scene->source_count; s++)
        TAKE(scene->sources[s].temperature);
    for (int o = 0; o < scene->obstacle_count; o++)
        TAKE(scene->obstacles[o].temperature);
    for (int b = 0; b < scene->body_count; b++)
        TAKE(scene->bodies[b].material && *scene->bodies[b].material ? scene->bodies[b].temperature : 0.0);
    for (int side = 0; side < 2 * scene->domain.dimension; side++)
        TAKE(scene->domain.temperature[side]);
    TAKE(scene->heat.air_temperature);
    for (int n = 0; n < scene->change_count; n++) {
        const selkie_change_def *change = &scene->changes[n];
        TAKE(change->kind == SELKIE_CHANGE_LIQUID ? change->liquid.temperature : 0.0);
        TAKE(change->kind == SELKIE_CHANGE_SOURCE ? change->source.temperature : 0.0);
        TAKE(change->kind == SELKIE_CHANGE_OBSTACLE ? change->obstacle.temperature : 0.0);
    }
#undef TAKE
    *lowest = fmin(low, high);
    *highest = high;
}

/* --- Viscosity over temperature --- */

int sk_material_has_law(const selkie_material_def *material)
{
    return material->viscosity_point_count > 0 || material->viscosity_temperature > 0.0;
}

int sk_scene_has_viscosity_law(const selkie_scene *scene)
{
    for (int m = 0; sk_scene_has_heat(scene) && m < scene->material_count; m++)
        if (sk_material_has_law(&scene->materials[m]))
            return 1;
    return 0;
}

double sk_viscosity_at(const selkie_scene *scene, int m, double temperature)
{
    const selkie_material_def *material = &scene->materials[m];
    const int count = material->viscosity_point_count;
    const selkie_viscosity_point *points = material->viscosity_table;
    if (count == 0 && !(material->viscosity_temperature > 0.0))
        return sk_scene_viscosity_of(scene, m);

    /* Vogel, Fulcher and Tammann; far below, where it has a pole, the largest viscosity counts. */
    if (count == 0) {
        const double b = material->viscosity_activation, c = material->viscosity_offset;
        const double above = fmax(temperature - c, 1e-3 * (material->viscosity_temperature - c));
        const double power = b / above - b / (material->viscosity_temperature - c);
        return sk_scene_viscosity_of(scene, m) * exp(fmax(fmin(power, 30.0), -30.0));
    }

    /* Points: the logarithm is linear between them. */
    int n = 0;
    while (n < count && points[n].temperature < temperature)
        n++;
    if (n == 0 || n == count)
        return points[n ? count - 1 : 0].viscosity;
    const double part = (temperature - points[n - 1].temperature) / (points[n].temperature - points[n - 1].temperature);
    return points[n - 1].viscosity * pow(points[n].viscosity / points[n - 1].viscosity, part);
}

/* --- Checks --- */

#define FAIL(...) sk_fail(error, SELKIE_ERROR_INPUT, __VA_ARGS__)

/* Sets the path to KEY[index].place. */
static void go_to(sk_path *where, const char *key, int index, const char *place)
{
    sk_path_key(where, key);
    if (index >= 0)
        sk_path_index(where, index);
    sk_path_key(where, place);
}

static selkie_code check_law(const selkie_scene *scene, int m, sk_path *where, selkie_error *error)
{
    const selkie_material_def *material = &scene->materials[m];
    const double own = fmax(material->viscosity, material->dynamic_viscosity);
    double lowest, highest;
    sk_scene_temperatures(scene, &lowest, &highest);
    if (material->viscosity_point_count > 0 && (own > 0.0 || material->viscosity_temperature > 0.0)) {
        go_to(where, "materials", m, "viscosity_table");
        return FAIL("stands beside a viscosity or viscosity_temperature: give one of them");
    }
    for (int n = 1; n < material->viscosity_point_count; n++)
        if (!(material->viscosity_table[n].temperature > material->viscosity_table[n - 1].temperature)) {
            go_to(where, "materials", m, "viscosity_table");
            sk_path_index(where, n);
            sk_path_key(where, "temperature");
            return FAIL("%g K is not above that of the point before, %g K: temperatures must rise",
                        material->viscosity_table[n].temperature, material->viscosity_table[n - 1].temperature);
        }
    if (material->viscosity_activation != 0.0 && !(material->viscosity_temperature > 0.0)) {
        go_to(where, "materials", m, "viscosity_activation");
        return FAIL("%g K without viscosity_temperature: the temperature at which the viscosity holds is missing",
                    material->viscosity_activation);
    }
    if (material->viscosity_temperature > 0.0 && !(own > 0.0) && !(sk_scene_viscosity_of(scene, m) > 0.0)) {
        go_to(where, "materials", m, "viscosity_temperature");
        return FAIL("%g K without a viscosity at it", material->viscosity_temperature);
    }
    if (material->viscosity_temperature > 0.0 &&
        material->viscosity_offset >= fmin(lowest, material->viscosity_temperature)) {
        go_to(where, "materials", m, "viscosity_offset");
        return FAIL("%g K: the law has a pole there; must be below every temperature of the scene, %g K",
                    material->viscosity_offset, fmin(lowest, material->viscosity_temperature));
    }
    return SELKIE_OK;
}

static selkie_code check_material(const selkie_scene *scene, int m, sk_path *where, selkie_error *error)
{
    const selkie_material_def *material = &scene->materials[m];
    const struct {
        const char *key;
        double value;
    } of_solid[] = {{"latent_heat", material->latent_heat},
                    {"solid_heat_capacity", material->solid_heat_capacity},
                    {"solid_conductivity", material->solid_conductivity},
                    {"solid_density", material->solid_density}};
    for (size_t n = 0; n < sizeof of_solid / sizeof *of_solid; n++)
        if (of_solid[n].value > 0.0 && !(material->melting_point > 0.0)) {
            go_to(where, "materials", m, of_solid[n].key);
            return FAIL("%g without a melting_point: the material is never solid", of_solid[n].value);
        }
    if (material->melting_point > 0.0 &&
        (material->kind == SELKIE_MATERIAL_SOFT || material->kind == SELKIE_MATERIAL_RIGID)) {
        go_to(where, "materials", m, "melting_point");
        return FAIL("%g K of a material of kind \"soft\" or \"rigid\": bodies do not melt; use a liquid below its "
                    "melting point, or leave it out",
                    material->melting_point);
    }
    double lowest, highest;
    sk_scene_temperatures(scene, &lowest, &highest);
    if (material->melting_point > 0.0 && material->melting_point < lowest) {
        go_to(where, "materials", m, "melting_point");
        return FAIL("%g K is below every temperature of the scene, %g K and more: nothing is ever solid; leave it out",
                    material->melting_point, lowest);
    }
    return check_law(scene, m, where, error);
}

static selkie_code check_surfaces(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    static const char *const sides[6] = {"x_min", "x_max", "y_min", "y_max", "z_min", "z_max"};
    const selkie_domain_def *domain = &scene->domain;
    for (int side = 0; side < 2 * domain->dimension; side++) {
        if (domain->temperature[side] > 0.0 && domain->walls[side] == SELKIE_WALL_OPEN) {
            go_to(where, "domain", -1, "temperature");
            sk_path_key(where, sides[side]);
            return FAIL("%g K of an open side: liquid leaves there; must be 0", domain->temperature[side]);
        }
        if (domain->heat_exchange[side] > 0.0 && !(domain->temperature[side] > 0.0)) {
            go_to(where, "domain", -1, "heat_exchange");
            sk_path_key(where, sides[side]);
            return FAIL("%g W/(m2 K) without a temperature of this side", domain->heat_exchange[side]);
        }
    }
    for (int o = 0; o < scene->obstacle_count; o++)
        if (scene->obstacles[o].heat_exchange > 0.0 && !(scene->obstacles[o].temperature > 0.0)) {
            go_to(where, "obstacles", o, "heat_exchange");
            return FAIL("%g W/(m2 K) without a temperature of the obstacle", scene->obstacles[o].heat_exchange);
        }
    return SELKIE_OK;
}

/* Keys that need heat. */
static selkie_code check_needs(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    for (int p = 0; p < scene->probe_count; p++)
        if (scene->probes[p].kind == SELKIE_PROBE_TEMPERATURE) {
            go_to(where, "probes", p, "type");
            return FAIL("\"temperature\" without heat: give the materials a heat_capacity (discretization grid)");
        }
    return SELKIE_OK;
}

selkie_code sk_heat_check(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    int with = -1, without = -1;
    for (int m = 0; m < scene->material_count; m++)
        *(scene->materials[m].heat_capacity > 0.0 ? &with : &without) = m;
    if (with >= 0 && without >= 0 && scene->discretization == SELKIE_DISCRETIZATION_GRID) {
        go_to(where, "materials", without, "heat_capacity");
        return FAIL("is missing: materials[%d] has one, and heat passes through all materials", with);
    }
    if (!sk_scene_has_heat(scene))
        return check_needs(scene, where, error);
    for (int m = 0; m < scene->material_count; m++)
        SK_TRY(check_material(scene, m, where, error));
    return check_surfaces(scene, where, error);
}
