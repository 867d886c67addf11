/* Droplets below a particle's size around the droplets of a run (splash.pairs), in frames of their own.
 *
 * The liquid of a droplet is shared by its particle and the pairs around it. Both of a pair move away from the particle
 * in opposite directions, so that the particle is their centre of mass: mass and momentum stay those of the run, as
 * long as both are inside the domain. Velocities relative to it have the spread of the changes of velocity in training.
 * All fall alike, so a relative velocity stays as it is: a piece's place follows from the particle's age, and a run
 * keeps no state for pieces.
 */
#define _GNU_SOURCE
#include "splash_pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "defs/materials.h"
#include "io/output.h"
#include "io/particles_file.h"
#include "learn/splash_model.h"

typedef struct piece {
    float position[3], velocity[3], age; /* m, m/s, s */
    uint32_t id;                         /* of the droplet's particle */
} piece;

/* What all pieces of a frame share. */
typedef struct shower {
    const selkie_scene *scene;
    sk_splash_model model;
    double speed; /* m/s  that scales the changes of velocity */
    int axes[3];  /*      of the scene: across, up, across */
    piece *pieces;
    int64_t count;
} shower;

static void choose_scales(shower *s, double cell_size)
{
    const double *g = s->scene->gravity, own = sk_scene_surface_tension(s->scene);
    const double gravity = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    const double capillary = (own > 0.0 ? own : s->model.tension) / (sk_scene_density(s->scene, 0) * cell_size);
    int up = 1;
    for (int d = 0; d < s->scene->domain.dimension; d++)
        up = fabs(g[d]) > fabs(g[up]) ? d : up;
    s->speed = sqrt(gravity * cell_size + capillary);
    s->axes[0] = up == 0 ? 1 : 0;
    s->axes[1] = up;
    s->axes[2] = 3 - s->axes[0] - up;
}

/* Adds the pairs of a droplet. Pieces beyond the domain have ended. */
static void add_pairs(shower *s, const piece *droplet, const double origin[3])
{
    static const float no_outputs[6]; /* mean 0, scale 1: the spread of all changes */
    const selkie_domain_def *domain = &s->scene->domain;
    for (int n = 0; n < s->scene->splash.pairs; n++) {
        float random[3], change[3];
        for (int k = 0; k < 3; k++)
            random[k] = sk_random_float(s->scene->seed, droplet->id, 0x9a1e0000u + 3u * (uint64_t)n + (uint64_t)k);
        sk_splash_change(&s->model, no_outputs, random, change);
        for (int sign = -1; sign <= 1; sign += 2) {
            piece p = *droplet;
            int inside = 1;
            for (int k = 0; k < domain->dimension; k++) {
                const int axis = s->axes[k];
                const float relative = (float)sign * change[k] * (float)s->speed;
                p.velocity[axis] += relative;
                p.position[axis] += relative * p.age;
                const double at = p.position[axis] + origin[axis] - domain->origin[axis], size = domain->size[axis];
                if (domain->periodic >> axis & 1)
                    p.position[axis] -= (float)(size * floor(at / size));
                else
                    inside &= at > 0.0 && at < size;
            }
            if (inside)
                s->pieces[s->count++] = p;
        }
    }
}

static const float *floats_of(const void *data, size_t stride, int64_t n)
{
    return (const float *)(const void *)((const char *)data + (size_t)n * stride);
}

/* Pieces of all droplets of a frame. */
static int find_pieces(shower *s, const sk_frame *frame, const selkie_attribute_view *age)
{
    int64_t droplets = 0;
    for (int64_t n = 0; n < frame->count; n++)
        droplets += *floats_of(age->data, age->stride, n) > 0.0f;
    s->pieces = calloc((size_t)droplets * 2 * (size_t)s->scene->splash.pairs + 1, sizeof *s->pieces);
    for (int64_t n = 0; n < frame->count && s->pieces; n++) {
        piece droplet = {.age = *floats_of(age->data, age->stride, n)};
        if (!(droplet.age > 0.0f))
            continue;
        memcpy(droplet.position, floats_of(frame->position, frame->position_stride, n),
               (size_t)frame->dimension * sizeof(float));
        memcpy(droplet.velocity, floats_of(frame->velocity, frame->velocity_stride, n),
               (size_t)frame->dimension * sizeof(float));
        memcpy(&droplet.id, (const char *)frame->id + (size_t)n * frame->id_stride, sizeof droplet.id);
        add_pairs(s, &droplet, frame->origin);
    }
    return s->pieces != NULL;
}

selkie_code write_splash_pieces(const selkie_world *world, const char *path, selkie_error *error)
{
    selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES], age;
    sk_frame frame;
    char model[4096];
    shower s = {.scene = selkie_world_scene(world)};
    SK_TRY(sk_world_frame(world, &frame, extras, error));
    SK_TRY(selkie_world_find_attribute(world, "splash", &age, error));
    sk_splash_model_find(s.scene->splashes, s.scene->folder, frame.dimension, model, sizeof model);
    SK_TRY(sk_splash_model_read(model, &s.model, error));
    choose_scales(&s, frame.cell_size);

    selkie_code code =
        find_pieces(&s, &frame, &age) ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory", path);
    if (!code) {
        const selkie_attribute_view ages = {"splash", SELKIE_FLOAT32, 1, sizeof *s.pieces, &s.pieces->age, {0}};
        frame.count = s.count;
        frame.position = s.pieces->position;
        frame.velocity = s.pieces->velocity;
        frame.id = &s.pieces->id;
        frame.position_stride = frame.velocity_stride = frame.id_stride = sizeof *s.pieces;
        frame.particle_radius *= pow(1.0 + 2.0 * s.scene->splash.pairs, -1.0 / frame.dimension);
        frame.extra_count = 1;
        frame.extra = &ages;
        code = sk_particles_write(&frame, path, error);
    }
    free(s.pieces);
    sk_splash_model_free(&s.model);
    return code;
}
