/* The basis of a scene. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/crc.h"
#include "geom/picture_file.h"
#include "geom/shape.h"
#include "methods/reduced/basis_file.h"
#include "methods/reduced/domain.h"
#include "methods/reduced/drawn.h"
#include "methods/reduced/reduced.h"
#include "rigid/rigid.h"

int sk_reduced_is_periodic(const selkie_scene *scene, int d)
{
    const selkie_periodic periodic = scene->reduced.periodic;
    return periodic == SELKIE_PERIODIC_BOTH || periodic == (d ? SELKIE_PERIODIC_Y : SELKIE_PERIODIC_X);
}

static int family_of(const selkie_scene *scene, int d)
{
    const int low = scene->domain.walls[2 * d] == SELKIE_WALL_OPEN,
              high = scene->domain.walls[2 * d + 1] == SELKIE_WALL_OPEN;
    if (sk_reduced_is_periodic(scene, d))
        return SK_REDUCED_PERIODIC;
    return low && high ? SK_REDUCED_OPEN : low ? SK_REDUCED_OPEN_LOW : high ? SK_REDUCED_OPEN_HIGH : SK_REDUCED_CLOSED;
}

/* A uniform flow along an axis that lets liquid through both ends. Along a periodic axis nothing but a force or the
 * start changes it. */
static int has_mean_flow(const selkie_scene *scene, const sk_reduced_box *box, int d)
{
    return box->family[d] == SK_REDUCED_OPEN ||
           (box->family[d] == SK_REDUCED_PERIODIC && (scene->reduced.mean_flow[d] != 0.0 || scene->force_count > 0));
}

static void add_mean_flow(sk_reduced_spectrum *s, int d)
{
    const int nodes = (s->cells[0] + 1) * (s->cells[1] + 1);
    double *flow = s->grid[0], *zero = s->grid[1];
    for (int n = 0; n < nodes; n++) {
        flow[n] = 1.0 / sqrt(s->size[0] * s->size[1]);
        zero[n] = 0.0;
    }
    const double *const middle[3] = {d ? zero : flow, d ? flow : zero, zero};
    sk_reduced_spectrum_add(s, 0.0, middle, middle);
    s->extra.are_eigenfunctions = 1;
}

/* --- Beside obstacles --- */

/* Stream function at node (i, j) of the cells: 0 on the walls, and mirrored with its sign changed beyond them, so that
 * differences across a wall are one-sided. */
static double stream_at(const double *psi, const int cells[2], int i, int j)
{
    double sign = 1.0;
    int at[2] = {i, j};
    for (int d = 0; d < 2; d++)
        if (at[d] < 0 || at[d] > cells[d]) {
            at[d] = at[d] < 0 ? -at[d] : 2 * cells[d] - at[d];
            sign = -sign;
        }
    if (at[0] == 0 || at[1] == 0 || at[0] == cells[0] || at[1] == cells[1])
        return 0.0;
    return sign * psi[(size_t)(at[0] - 1) * (size_t)(cells[1] - 1) + (size_t)(at[1] - 1)];
}

static int is_solid(const unsigned char *solid, const int cells[2], int i, int j)
{
    if (i <= 0 || j <= 0 || i >= cells[0] || j >= cells[1])
        return 1;
    return solid[(size_t)(i - 1) * (size_t)(cells[1] - 1) + (size_t)(j - 1)];
}

/* Difference of the stream function along axis d at a node. On the surface of an obstacle it is that of the open side:
 * liquid slides along it. */
static double slope_at(const double *psi, const unsigned char *solid, const int cells[2], int i, int j, int d)
{
    const int before[2] = {i - !d, j - d}, after[2] = {i + !d, j + d};
    const double difference = stream_at(psi, cells, after[0], after[1]) - stream_at(psi, cells, before[0], before[1]);
    const int inside = i > 0 && j > 0 && i < cells[0] && j < cells[1] && is_solid(solid, cells, i, j);
    const int one_side = is_solid(solid, cells, before[0], before[1]) != is_solid(solid, cells, after[0], after[1]);
    return inside && one_side ? difference : 0.5 * difference;
}

void sk_reduced_add_stream(sk_reduced_spectrum *s, double lambda, const double *psi, const double *vorticity,
                           const unsigned char *solid)
{
    const int *cells = s->cells;
    const double h = s->size[0] / cells[0];
    double *const middle[3] = {s->grid[0], s->grid[1], s->grid[2]}, *const node[2] = {s->grid[3], s->grid[4]};
    for (int i = 0; i < cells[0]; i++)
        for (int j = 0; j < cells[1]; j++) {
            const size_t n = (size_t)i * (size_t)cells[1] + (size_t)j;
            double corner[2][2], sum = 0.0;
            for (int a = 0; a < 2; a++)
                for (int b = 0; b < 2; b++) {
                    const int x = i + a, y = j + b, inner = x > 0 && y > 0 && x < cells[0] && y < cells[1];
                    const size_t at = inner ? (size_t)(x - 1) * (size_t)(cells[1] - 1) + (size_t)(y - 1) : 0;
                    corner[a][b] = stream_at(psi, cells, x, y);
                    if (inner && !solid[at])
                        sum += vorticity ? vorticity[at] : lambda * corner[a][b];
                }
            middle[0][n] = 0.5 * (corner[0][1] + corner[1][1] - corner[0][0] - corner[1][0]) / h;
            middle[1][n] = -0.5 * (corner[1][0] + corner[1][1] - corner[0][0] - corner[0][1]) / h;
            middle[2][n] = 0.25 * sum;
        }
    for (int i = 0; i <= cells[0]; i++)
        for (int j = 0; j <= cells[1]; j++) {
            const size_t n = (size_t)i * (size_t)(cells[1] + 1) + (size_t)j;
            node[0][n] = slope_at(psi, solid, cells, i, j, 1) / h;
            node[1][n] = -slope_at(psi, solid, cells, i, j, 0) / h;
        }
    sk_reduced_spectrum_add(s, lambda, (const double *const[3]){middle[0], middle[1], middle[2]},
                            (const double *const[2]){node[0], node[1]});
}

void sk_reduced_mark_solids(const sk_step *step, unsigned char *solid)
{
    const sk_reduced_box box = sk_reduced_box_of(step);
    for (int i = 1; i < box.cells[0]; i++)
        for (int j = 1; j < box.cells[1]; j++) {
            const double x[3] = {box.size[0] * i / box.cells[0], box.size[1] * j / box.cells[1], 0.0};
            unsigned char *to = &solid[(size_t)(i - 1) * (size_t)(box.cells[1] - 1) + (size_t)(j - 1)];
            *to = 0;
            for (int o = 0; o < step->solids.obstacle_count; o++)
                *to |= sk_shape_inside(step->solids.obstacles[o].shape, x) != 0;
        }
}

uint32_t sk_reduced_obstacles(const sk_step *step)
{
    const size_t nodes = (size_t)(step->grid.cells[0] - 1) * (size_t)(step->grid.cells[1] - 1);
    unsigned char *solid = step->scene->obstacle_count ? sk_allocate(step->memory, nodes + 1) : NULL;
    uint32_t checksum = 0;
    if (solid) {
        sk_reduced_mark_solids(step, solid);
        checksum = sk_crc32(solid, nodes);
    }
    sk_release(step->memory, solid);
    return checksum;
}

/* The eigenvectors of the domain that the obstacles leave. */
static selkie_code add_domain(sk_reduced *reduced, const sk_step *step, selkie_error *error)
{
    sk_reduced_spectrum *s = &reduced->spectrum;
    const int modes = step->scene->reduced.modes, inner[2] = {s->cells[0] - 1, s->cells[1] - 1};
    const size_t nodes = (size_t)inner[0] * (size_t)inner[1];
    const double h = s->size[0] / s->cells[0];
    unsigned char *solid = sk_allocate(step->memory, nodes + 1);
    double *lambda = sk_allocate(step->memory, (size_t)modes * sizeof *lambda);
    double *psi = sk_allocate(step->memory, (size_t)modes * nodes * sizeof *psi);
    selkie_code code = SELKIE_OK;
    sk_domain domain = {.memory = step->memory};
    if (!solid || !lambda || !psi)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "reduced.modes: no memory for %d modes", modes);
    if (code == SELKIE_OK) {
        sk_reduced_mark_solids(step, solid);
        code = sk_domain_make(&domain, inner, solid, step->memory, error);
    }
    if (code == SELKIE_OK)
        code = sk_domain_modes(&domain, modes, lambda, psi, error);
    for (int k = 0; k < modes && code == SELKIE_OK; k++)
        sk_reduced_add_stream(s, lambda[k] / (h * h), psi + (size_t)k * nodes, NULL, solid);
    s->extra.are_eigenfunctions = 1;
    sk_domain_free(&domain);
    sk_release(step->memory, solid);
    sk_release(step->memory, lambda);
    sk_release(step->memory, psi);
    return code;
}

/* --- The whole basis --- */

sk_reduced_box sk_reduced_box_of(const sk_step *step)
{
    sk_reduced_box box = {.modes = step->scene->reduced.modes, .streams = step->scene->body_count > 0};
    for (int d = 0; d < 2; d++) {
        box.cells[d] = step->grid.cells[d];
        box.size[d] = step->grid.cells[d] * step->grid.cell_size;
        box.family[d] = family_of(step->scene, d);
    }
    return box;
}

/* Tracers and forces see the modes on the cells. */
static selkie_code check_cells(const sk_reduced_spectrum *s, selkie_error *error)
{
    for (int d = 0; d < 2; d++)
        if (s->points[d] > s->cells[d])
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "reduced.modes: %d modes need at least %d cells along %c, the domain has %d; choose a "
                           "larger domain.resolution or fewer modes",
                           s->closed, s->points[d], "xy"[d], s -> cells[d]);
    return SELKIE_OK;
}

selkie_code sk_reduced_name_flows(sk_reduced *reduced, int count, sk_memory *memory, selkie_error *error)
{
    reduced->flow_count = count;
    reduced->names = sk_allocate_zeroed(memory, ((size_t)count + 1) * sizeof *reduced->names);
    reduced->drawn = sk_allocate_zeroed(memory, ((size_t)count * (size_t)reduced->spectrum.count + 1) * sizeof(double));
    return reduced->names && reduced->drawn
               ? SELKIE_OK
               : sk_fail(error, SELKIE_ERROR_MEMORY, "reduced: no memory for %d flows", count);
}

/* --- From a file --- */

static int has_file(const selkie_scene *scene)
{
    return scene->reduced.basis && *scene->reduced.basis;
}

static selkie_code check_names(const sk_reduced *reduced, const selkie_scene *scene, selkie_error *error)
{
    for (int e = 0; e < scene->reduced.excite_count; e++) {
        int known = 0;
        for (int m = 0; m < reduced->flow_count; m++)
            known |= strcmp(reduced->names[m], scene->reduced.excite[e].mode) == 0;
        if (!known)
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "reduced.excite[%d].mode: \"%.64s\" is not known: must be the name of a flow of %.300s", e,
                           scene->reduced.excite[e].mode, scene->reduced.basis);
    }
    return SELKIE_OK;
}

static selkie_code load_basis(sk_reduced *reduced, const sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    const sk_reduced_box box = sk_reduced_box_of(step);
    char path[4096];
    SK_TRY(sk_picture_path(scene->reduced.basis, scene->folder, "reduced.basis", path, sizeof path, error));
    SK_TRY(sk_basis_read(path, reduced, &box, sk_reduced_obstacles(step), step->memory, error));
    if (scene->reduced.integrator == SELKIE_REDUCED_EXPONENTIAL && !reduced->spectrum.triads)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "reduced.integrator: \"exponential\" is for at most 256 eigenfunctions of a closed box");
    return check_names(reduced, scene, error);
}

/* Reads the file and forgets it again. */
static selkie_code check_file(const sk_step *step, selkie_error *error)
{
    sk_reduced reduced = {.spectrum = {.memory = step->memory}};
    const selkie_code code = load_basis(&reduced, step, error);
    sk_reduced_spectrum_free(&reduced.spectrum);
    sk_release(step->memory, reduced.names);
    sk_release(step->memory, reduced.drawn);
    return code;
}

/* A check comes before there are bodies: they are made and forgotten again. */
static selkie_code check_bodies(const sk_step *step, const sk_reduced_box *box, selkie_error *error)
{
    if (step->rigid || !step->scene->body_count || !sk_rigid_available())
        return sk_swim_check(step, box, error);
    sk_rigid rigid;
    sk_step with = *step;
    with.rigid = &rigid;
    selkie_code code = sk_rigid_init(&rigid, step->scene, &step->solids, step->memory, error);
    if (code == SELKIE_OK)
        code = sk_swim_check(&with, box, error);
    sk_rigid_free(&rigid);
    return code;
}

selkie_code sk_reduced_check_basis(const sk_step *step, selkie_error *error)
{
    if (has_file(step->scene))
        return check_file(step, error);
    if (step->scene->obstacle_count)
        return sk_domain_available() ? SELKIE_OK : sk_domain_missing(error);
    const sk_reduced_box box = sk_reduced_box_of(step);
    sk_reduced_spectrum s;
    selkie_code code = sk_reduced_spectrum_make(&s, &box, step->memory, error);
    if (code == SELKIE_OK)
        code = check_cells(&s, error);
    if (code == SELKIE_OK)
        code = check_bodies(step, &box, error);
    sk_reduced_spectrum_free(&s);
    return code;
}

selkie_code sk_reduced_make_basis(sk_reduced *reduced, const sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    sk_reduced_spectrum *s = &reduced->spectrum;
    sk_reduced_box box = sk_reduced_box_of(step);
    if (has_file(scene))
        return load_basis(reduced, step, error);
    if (scene->obstacle_count) {
        box.extra = box.modes;
        box.modes = 0;
        SK_TRY(sk_reduced_spectrum_make(s, &box, step->memory, error));
        return add_domain(reduced, step, error);
    }

    const int mean[2] = {has_mean_flow(scene, &box, 0), has_mean_flow(scene, &box, 1)};
    box.extra = sk_drawn_most(scene) + mean[0] + mean[1];
    SK_TRY(sk_reduced_spectrum_make(s, &box, step->memory, error));
    SK_TRY(check_cells(s, error));
    for (int d = 0; d < 2; d++)
        if (mean[d])
            add_mean_flow(s, d);
    return sk_drawn_add(reduced, step, &box, error);
}
