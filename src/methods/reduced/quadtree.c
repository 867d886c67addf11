#include "methods/reduced/quadtree.h"

#include <math.h>

#include "methods/reduced/panel_kernels.h"

enum { LEAF = 4 }; /* cells along the side of a leaf, at most */

/* A panel or an image of it. */
typedef struct source {
    double begin[2], tangent[2], middle[2]; /* m */
    double length, strength;                /* m, m/s */
} source;

typedef struct walk {
    const sk_quadtree *tree;
    source from;
    double threshold; /* m/s; below 0 = every cell */
    double *const *field;
    long evaluations;
} walk;

static void velocity_of(const source *p, const double x[2], double velocity[2])
{
    const double dx = x[0] - p->begin[0], dy = x[1] - p->begin[1];
    double local[2];
    sk_panel_velocity(dx * p->tangent[0] + dy * p->tangent[1], dy * p->tangent[0] - dx * p->tangent[1], p->length,
                      local);
    velocity[0] = p->strength * (local[0] * p->tangent[0] - local[1] * p->tangent[1]);
    velocity[1] = p->strength * (local[0] * p->tangent[1] + local[1] * p->tangent[0]);
}

/* --- The table --- */

/* The largest change of the velocity of a unit panel within a rectangle at a place. */
static double change_within(const source *p, const double center[2], const double half[2])
{
    double middle[2], most = 0.0;
    velocity_of(p, center, middle);
    for (int i = -2; i <= 2; i++)
        for (int j = -2; j <= 2; j++) {
            double u[2];
            velocity_of(p, (const double[2]){center[0] + 0.5 * i * half[0], center[1] + 0.5 * j * half[1]}, u);
            most = fmax(most, hypot(u[0] - middle[0], u[1] - middle[1]));
        }
    return most;
}

void sk_quadtree_make(sk_quadtree *tree, const int cells[2], const double size[2], double length)
{
    enum { DIRECTIONS = 16 };
    const source panel = {.begin = {-0.5 * length, 0.0}, .tangent = {1.0, 0.0}, .length = length, .strength = 1.0};
    for (int d = 0; d < 2; d++) {
        tree->cells[d] = cells[d];
        tree->size[d] = size[d];
    }
    tree->length = length;
    tree->bin = hypot(size[0], size[1]) / SK_QUADTREE_BINS;
    const int longest = cells[0] > cells[1] ? cells[0] : cells[1];
    for (tree->levels = 1; tree->levels < SK_QUADTREE_LEVELS && longest > LEAF << (tree->levels - 1);)
        tree->levels++;
    for (int level = 0; level < tree->levels; level++)
        for (int bin = 0; bin < SK_QUADTREE_BINS; bin++) {
            const double half[2] = {0.5 * size[0] / (1 << level), 0.5 * size[1] / (1 << level)};
            double most = 0.0;
            for (int n = 0; n < DIRECTIONS; n++) {
                const double angle = 6.28318530717959 * n / DIRECTIONS, distance = bin * tree->bin;
                const double center[2] = {distance * cos(angle), distance * sin(angle)};
                most = fmax(most, change_within(&panel, center, half));
            }
            tree->error[level][bin] = most;
        }
}

/* The table has the larger error of the bin, which begins nearer to the panel. */
static double error_of(const sk_quadtree *tree, const source *p, int level, const double center[2])
{
    const double distance = hypot(center[0] - p->middle[0], center[1] - p->middle[1]);
    const int bin = (int)fmin(distance / tree->bin, SK_QUADTREE_BINS - 1.0);
    return fabs(p->strength) * p->length / tree->length * tree->error[level][bin];
}

/* --- Walks --- */

static void add_cell(walk *w, int i, int j)
{
    const sk_quadtree *t = w->tree;
    const size_t n = (size_t)i * (size_t)t->cells[1] + (size_t)j;
    double u[2];
    velocity_of(&w->from, (const double[2]){t->size[0] * (i + 0.5) / t->cells[0], t->size[1] * (j + 0.5) / t->cells[1]},
                u);
    w->field[0][n] += u[0];
    w->field[1][n] += u[1];
    w->evaluations++;
}

/* The cells from low to high, ends not included, are a node of a level. */
static void visit(walk *w, int level, const int low[2], const int high[2])
{
    const sk_quadtree *t = w->tree;
    double center[2], u[2];
    if (low[0] >= high[0] || low[1] >= high[1])
        return;
    for (int d = 0; d < 2; d++)
        center[d] = 0.5 * t->size[d] * (low[d] + high[d]) / t->cells[d];
    if (w->threshold >= 0.0 && error_of(t, &w->from, level, center) < w->threshold) {
        velocity_of(&w->from, center, u);
        w->evaluations++;
        for (int i = low[0]; i < high[0]; i++)
            for (int j = low[1]; j < high[1]; j++) {
                w->field[0][(size_t)i * (size_t)t->cells[1] + (size_t)j] += u[0];
                w->field[1][(size_t)i * (size_t)t->cells[1] + (size_t)j] += u[1];
            }
        return;
    }
    if (level + 1 >= t->levels) {
        for (int i = low[0]; i < high[0]; i++)
            for (int j = low[1]; j < high[1]; j++)
                add_cell(w, i, j);
        return;
    }
    const int middle[2] = {(low[0] + high[0]) / 2, (low[1] + high[1]) / 2};
    for (int child = 0; child < 4; child++) {
        const int from[2] = {child & 1 ? middle[0] : low[0], child & 2 ? middle[1] : low[1]},
                  to[2] = {child & 1 ? high[0] : middle[0], child & 2 ? high[1] : middle[1]};
        visit(w, level + 1, from, to);
    }
}

static const double near_reaches = 4.0; /* bodies within so many radii of a wall are reflected */

/* Is a body reflected at the low or high end of an axis? As in the source, only where it would push flow through. */
static int has_image(const sk_coupling *c, int b, int d, int side)
{
    const double x = c->place[b][d], away = side < 0 ? x : c->images.size[d] - x;
    return side == 0 || away < near_reaches * c->panels[b].reach;
}

/* The image of a source in the next box along an axis: behind a wall it runs the other way around, beyond a periodic
 * side it is a copy. */
static void mirror(const sk_coupling *c, int d, int side, source *p)
{
    const double size = c->images.size[d];
    if (side == 0)
        return;
    if (!c->images.closed[d]) {
        p->begin[d] += side * size;
        p->middle[d] += side * size;
        return;
    }
    const double sum = side > 0 ? 2.0 * size : 0.0;
    p->begin[d] = sum - p->begin[d];
    p->middle[d] = sum - p->middle[d];
    p->tangent[d] = -p->tangent[d];
    p->strength = -p->strength;
}

long sk_quadtree_add(const sk_quadtree *tree, const sk_coupling *c, const double *weight, double threshold,
                     double *const field[2])
{
    const int low[2] = {0, 0};
    walk w = {.tree = tree, .field = field};
    for (int b = 0; b < c->body_count; b++)
        for (int n = c->first[b]; n < c->first[b + 1]; n++) {
            const int next = n + 1 < c->first[b + 1] ? n + 1 : c->first[b];
            const double length = c->panels[b].length[n - c->first[b]], strength = weight[b] * c->strength[n];
            for (int image = 0; image < 9; image++) {
                if (!has_image(c, b, 0, image % 3 - 1) || !has_image(c, b, 1, image / 3 - 1))
                    continue;
                source p = {.length = length, .strength = strength};
                for (int d = 0; d < 2; d++) {
                    p.begin[d] = c->corner[n][d];
                    p.middle[d] = c->middle[n][d];
                    p.tangent[d] = (c->corner[next][d] - c->corner[n][d]) / length;
                }
                mirror(c, 0, image % 3 - 1, &p);
                mirror(c, 1, image / 3 - 1, &p);
                w.from = p;
                w.threshold = threshold < 0.0 ? -1.0 : threshold * fabs(strength);
                visit(&w, 0, low, tree->cells);
            }
        }
    return w.evaluations;
}
