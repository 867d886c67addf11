/* Values of the particles at the vertices of their surface: kernel means at the nodes, interpolated. */
#include "geom/surface_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sums of three values over the particles at all nodes near them. */
typedef struct node_values {
    const sk_surface_grid *grid;
    f4 (*sums)[sk_node_count]; /* of each block: weight, then weight times value */
} node_values;

selkie_code sk_surface_sum_values(const sk_surface_grid *grid, int count, const sk_surface_value *values,
                                  f4 (*result)[sk_node_count], selkie_error *error)
{
    const size_t blocks = grid->block_count;
    float(*sorted)[3] = sk_allocate_zeroed(NULL, (grid->particle_count + 1) * sizeof *sorted);
    uint8_t *marked = sk_allocate(NULL, blocks + 1);
    sk_surface_sums sums = {0};
    selkie_code code = SELKIE_OK;
    if (!sorted || !marked)
        code =
            sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for values of %zu particles", grid->particle_count);
    for (size_t p = 0; p < grid->particle_count && !code; ++p)
        for (int v = 0; v < count; ++v) {
            const char *from = (const char *)values[v].data + grid->points[p].source * values[v].stride;
            float value = 0.0f;
            uint32_t whole;
            memcpy(&whole, from, sizeof whole);
            memcpy(&value, from, sizeof value);
            value = values[v].is_whole ? (float)whole : value;
            sorted[p][v] = isfinite(value) ? value : 0.0f;
        }
    if (!code) {
        memset(marked, 1, blocks);
        code = sk_surface_sum(grid, marked, (const float(*)[3])sorted, &sums, error);
    }
    if (!code) {
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 4)
        for (size_t b = 0; b < blocks; ++b)
            sk_surface_filter(grid, &sums, 0, b, result[b]);
        sk_surface_sums_free(&sums);
    }
    sk_release(NULL, sorted);
    sk_release(NULL, marked);
    return code;
}

const char *const sk_vorticity_names[3] = {"vorticity_x", "vorticity_y", "vorticity_z"};

float *sk_mesh_add_value(sk_mesh *mesh, const char *name, selkie_error *error, selkie_code *code)
{
    float *data = sk_allocate(NULL, (mesh->vertex_count + 1) * sizeof *data);
    if (!data || mesh->value_count == SK_MESH_MOST_VALUES) {
        sk_release(NULL, data);
        *code = sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no room for the value %s at %zu vertices", name,
                        mesh->vertex_count);
        return NULL;
    }
    sk_mesh_value *value = &mesh->values[mesh->value_count++];
    snprintf(value->name, sizeof value->name, "%s", name);
    value->data = data;
    return data;
}

/* Up to three values at the vertices. */
static selkie_code add_means(const node_values *nodes, int count, const sk_surface_value *values, sk_mesh *mesh,
                             selkie_error *error)
{
    float *to[3] = {NULL, NULL, NULL};
    selkie_code code = SELKIE_OK;
    for (int v = 0; v < count && !code; ++v)
        to[v] = sk_mesh_add_value(mesh, values[v].name, error, &code);
    if (code)
        return code;
#pragma omp parallel for num_threads(nodes->grid->threads) schedule(static)
    for (size_t i = 0; i < mesh->vertex_count; ++i) {
        float place[3], means[3] = {0, 0, 0};
        sk_vertex_place(nodes->grid, mesh->positions + 3 * i, place);
        sk_surface_sample(nodes->grid, nodes->sums[0], place, means);
        for (int v = 0; v < count; ++v)
            to[v][i] = sk_shown_mean(means[v], values[v].is_whole);
    }
    return SELKIE_OK;
}

static selkie_code add_vorticity(const node_values *nodes, sk_mesh *mesh, selkie_error *error)
{
    float *to[3];
    selkie_code code = SELKIE_OK;
    for (int a = 0; a < 3 && !code; ++a)
        to[a] = sk_mesh_add_value(mesh, sk_vorticity_names[a], error, &code);
    if (code)
        return code;
#pragma omp parallel for num_threads(nodes->grid->threads) schedule(static)
    for (size_t i = 0; i < mesh->vertex_count; ++i) {
        float place[3], spin[3];
        sk_vertex_place(nodes->grid, mesh->positions + 3 * i, place);
        sk_surface_curl(nodes->grid, nodes->sums[0], place, spin);
        for (int a = 0; a < 3; ++a)
            to[a][i] = spin[a];
    }
    return SELKIE_OK;
}

selkie_code sk_surface_add_values(const sk_surface_particles *particles, const sk_surface_options *options, int count,
                                  const sk_surface_value *values, sk_mesh *mesh, selkie_error *error)
{
    sk_surface_grid grid;
    SK_TRY(sk_surface_grid_init(&grid, options, particles->count, error));
    selkie_code code = sk_surface_bin(&grid, particles, error);
    node_values nodes = {.grid = &grid};
    if (!code) {
        /* Particles deep inside count too. */
        memset(grid.deep, 0, grid.block_count * sizeof *grid.deep);
        nodes.sums = sk_allocate(NULL, (grid.block_count + 1) * sizeof *nodes.sums);
        if (!nodes.sums)
            code = sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for the values of %zu blocks",
                           grid.block_count);
    }
    for (int v = 0; v < count && !code; v += 3) {
        const int here = count - v < 3 ? count - v : 3;
        code = sk_surface_sum_values(&grid, here, values + v, nodes.sums, error);
        if (!code)
            code = add_means(&nodes, here, values + v, mesh, error);
    }
    if (!code && particles->velocity) {
        sk_surface_value velocity[3];
        for (int a = 0; a < 3; ++a)
            velocity[a] = (sk_surface_value){"velocity", particles->velocity + a, particles->velocity_stride, 0};
        code = sk_surface_sum_values(&grid, 3, velocity, nodes.sums, error);
        if (!code)
            code = add_vorticity(&nodes, mesh, error);
    }
    sk_release(NULL, nodes.sums);
    sk_surface_grid_free(&grid);
    return code;
}
