#include "render/render_run.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/timer.h"
#include "defs/fields.h"
#include "defs/heat.h"
#include "defs/motion_file.h"
#include "defs/relative.h"
#include "defs/structs.h"
#include "geom/picture_file.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "io/made_with.h"
#include "io/particles_file.h"
#include "io/table_file.h"
#include "render/film.h"
#include "render/picture.h"
#include "world/scene_changes.h"

enum { path_size = 4096 };

void sk_render_run_defaults(sk_render_run_options *options)
{
    *options = (sk_render_run_options){.style = -1, .color = -1, .last = -1, .label = 1, .film = 1, .shutter = -1};
}

typedef struct run_renderer {
    const char *folder;
    const sk_render_run_options *options;
    sk_render_run_callback callback;
    void *context;
    selkie_scene *scene; /* in coordinates relative to its origin, like the particles and bodies that are drawn */
    double origin[3];    /* m */
    uint64_t keys;       /* hash of those that pictures depend on */
    sk_stage *stage;
    sk_picture_options picture;
    sk_file_list frames;
    sk_table *bodies; /* bodies.csv, NULL where there is none */
    sk_table *steps;  /* stats.csv of a run with changes, or NULL */
    sk_picture_body *poses;
} run_renderer;

static selkie_code join_path(char path[path_size], const char *folder, const char *name, selkie_error *error)
{
    if (snprintf(path, path_size, "%s/%s", folder, name) >= path_size)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: the name is too long", folder);
    return SELKIE_OK;
}

static int is_newer(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
                                                  : a->st_mtim.tv_nsec >= b->st_mtim.tv_nsec;
}

/* Keeps the requested frames. */
static void choose_frames(run_renderer *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->frames.count; ++i) {
        sk_numbered_file *file = &r->frames.files[i];
        int wanted = file->number >= r->options->first && (r->options->last < 0 || file->number <= r->options->last);
        if (wanted) {
            sk_numbered_file swap = r->frames.files[kept];
            r->frames.files[kept++] = *file;
            *file = swap;
        }
    }
    for (size_t i = kept; i < r->frames.count; ++i)
        free(r->frames.files[i].path);
    r->frames.count = kept;
}

/* Of the contents of the picture of the surroundings; 0 without one. */
static uint64_t hash_environment(const run_renderer *r)
{
    char path[path_size], *bytes = NULL;
    size_t count = 0;
    uint64_t hash = 0;
    const char *file = r->scene->render.environment;
    if (!file || !file[0] || sk_picture_path(file, r->scene->folder, "", path, sizeof path, NULL) ||
        sk_file_read(path, &bytes, &count, NULL))
        return 0;
    for (size_t i = 0; i < count; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, count - i < sizeof word ? count - i : sizeof word);
        hash = sk_hash64(hash ^ word);
    }
    sk_release(NULL, bytes);
    return hash;
}

/* Keys of the scene that pictures depend on. */
static uint64_t hash_keys(const selkie_scene *scene)
{
    static const char *const keys[] = {"render", "mesh", "materials", "liquids", "obstacles", "bodies"};
    uint64_t hash = 0;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k) {
        const sk_field *field = sk_struct_find(&sk_scene_struct, keys[k]);
        if (!field)
            continue;
        const int is_array = field->type == SK_FIELD_ARRAY, count = is_array ? sk_field_count(field, scene) : 1;
        const char *at = is_array ? sk_field_elements(field, scene) : sk_field_in(field, scene);
        for (int i = 0; i < count; ++i)
            hash = sk_hash64(hash ^ sk_struct_hash(field->of, at + (size_t)i * field->of->size));
    }
    return hash;
}

/* Pictures of other options are drawn again. */
static selkie_code compare_options(run_renderer *r, const char *pictures, selkie_error *error)
{
    char line[640];
    snprintf(line, sizeof line,
             "style %d color %d label %d scale %.9g samples %d rays %d preview %d shutter %.9g cut %.9g %.9g %.9g %.9g "
             "keys %016llx environment %016llx\n",
             (int)r->picture.style, (int)r->picture.color, r->picture.label, r->picture.speed_scale, r->picture.samples,
             sk_picture_traces_rays(), r->picture.preview, r->picture.shutter, r->picture.cut[0], r->picture.cut[1],
             r->picture.cut[2], r->picture.cut[3], (unsigned long long)r->keys,
             (unsigned long long)hash_environment(r));
    const sk_made_with made = {.record = "drawn_with.txt", .prefix = SK_PICTURE_PREFIX, .ending = ".png", .line = line};
    return sk_made_with_update(pictures, &made, error);
}

static int up_to_date(const run_renderer *r, const char *particles, const char *picture)
{
    struct stat source, result;
    int width, height, wanted_width, wanted_height;
    if (r->options->force || stat(particles, &source) != 0 || stat(picture, &result) != 0 ||
        !is_newer(&result, &source))
        return 0;
    sk_picture_size(r->stage, &r->picture, &wanted_width, &wanted_height);
    return sk_image_png_size(picture, &width, &height, NULL) == SELKIE_OK && width == wanted_width &&
           height == wanted_height;
}

/* Bodies and obstacles that came, moved or went before a frame. Frames are drawn in their order. */
static selkie_code change_solids(run_renderer *r, double time, selkie_error *error)
{
    int changed;
    sk_step_times times = {0};
    if (r->steps)
        times =
            (sk_step_times){r->steps->row_count, sk_table_column(r->steps, "step"), sk_table_column(r->steps, "time")};
    SK_TRY(sk_scene_change_solids(r->scene, sk_step_at(&times, time), &times, &changed, error));
    if (!changed)
        return SELKIE_OK;
    sk_stage_destroy(r->stage);
    r->stage = NULL;
    return sk_stage_create(r->scene, &r->stage, error);
}

/* The bodies of a frame, from their table; bodies that it lacks keep the poses of the scene. */
static void place_bodies(const run_renderer *r, int64_t frame, sk_picture_options *options)
{
    static const char *const names[] = {"frame", "body", "x", "y", "z", "qw", "qx", "qy", "qz"};
    const double *columns[9];
    for (int c = 0; c < 9; ++c)
        if (!r->bodies || !(columns[c] = sk_table_column(r->bodies, names[c])))
            return;
    int found = 0;
    for (int64_t row = 0; row < r->bodies->row_count && found < r->scene->body_count; ++row) {
        if (columns[0][row] != (double)frame || columns[1][row] != found)
            continue;
        for (int i = 0; i < 3; ++i)
            r->poses[found].position[i] = columns[2 + i][row] - r->origin[i];
        for (int i = 0; i < 4; ++i)
            r->poses[found].quaternion[i] = columns[5 + i][row];
        found++;
    }
    options->bodies = r->poses;
    options->body_count = found;
}

/* Name of a file of a frame, which need not exist. */
static selkie_code frame_path(const run_renderer *r, const char *prefix, int64_t frame, const char *ending,
                              char path[path_size], selkie_error *error)
{
    char frames[path_size];
    SK_TRY(join_path(frames, r->folder, SK_FRAMES_FOLDER, error));
    return sk_numbered_path(path, path_size, frames, prefix, frame, ending, error);
}

/* Particles beside those of a frame; NULL where there are none. */
static selkie_code read_beside(const run_renderer *r, const char *prefix, int64_t frame, sk_particles_data **data,
                               selkie_error *error)
{
    char path[path_size];
    *data = NULL;
    SK_TRY(frame_path(r, prefix, frame, ".ply", path, error));
    if (!sk_file_exists(path))
        return SELKIE_OK;
    SK_TRY(sk_particles_read(path, data, error));
    sk_particles_turn_back(*data);
    sk_particles_rebase(*data, r->origin);
    return SELKIE_OK;
}

/* Grows an array of words, `components` a particle, with zeros; NULL stays NULL. */
static int grow_words(void *array, int64_t before, int64_t after, int components)
{
    const size_t word = 4 * (size_t)components;
    void *old;
    memcpy(&old, array, sizeof old);
    if (!old)
        return 1;
    char *grown = sk_allocate_zeroed(NULL, (size_t)after * word + 1);
    if (!grown)
        return 0;
    memcpy(grown, old, (size_t)before * word);
    sk_release(NULL, old);
    memcpy(array, &grown, sizeof grown);
    return 1;
}

/* Adds the droplets of `selkie splash add` to the particles of a frame. */
static selkie_code append_droplets(const run_renderer *r, const sk_numbered_file *file, sk_particles_data *data,
                                   selkie_error *error)
{
    sk_particles_data *more;
    SK_TRY(read_beside(r, SK_DROPLETS_PREFIX, file->number, &more, error));
    if (!more)
        return SELKIE_OK;
    const int64_t before = data->count, after = before + more->count;
    const int good =
        grow_words(&data->position, before, after, 3) && grow_words(&data->velocity, before, after, 3) &&
        grow_words(&data->role, before, after, 1) && grow_words(&data->material, before, after, 1) &&
        grow_words(&data->stress, before, after, 1) && grow_words(&data->plastic_strain, before, after, 1) &&
        grow_words(&data->temperature, before, after, 1) && grow_words(&data->liquid_fraction, before, after, 1);
    if (good) {
        memcpy(data->position + 3 * before, more->position, (size_t)more->count * 12);
        if (data->velocity && more->velocity)
            memcpy(data->velocity + 3 * before, more->velocity, (size_t)more->count * 12);
        data->count = after;
    }
    sk_particles_data_free(more);
    return good ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for droplets", r->folder);
}

static selkie_code read_dye(const run_renderer *r, const sk_numbered_file *file, sk_picture_data *dye,
                            selkie_error *error)
{
    char path[path_size];
    memset(dye, 0, sizeof *dye);
    SK_TRY(frame_path(r, SK_DYE_PREFIX, file->number, ".png", path, error));
    if (r->picture.style != SELKIE_STYLE_DYE || !sk_file_exists(path))
        return SELKIE_OK;
    return sk_picture_read(path, path, NULL, dye, error);
}

static sk_picture_particles particles_of(const sk_particles_data *data, const selkie_scene *scene)
{
    double coldest, warmest;
    sk_scene_temperatures(scene, &coldest, &warmest);
    return (sk_picture_particles){.count = (size_t)data->count,
                                  .position = data->position,
                                  .position_stride = 12,
                                  .velocity = data->velocity,
                                  .velocity_stride = 12,
                                  .role = data->role,
                                  .role_stride = 4,
                                  .material = data->material,
                                  .material_stride = 4,
                                  .stress = data->stress,
                                  .stress_stride = 4,
                                  .plastic_strain = data->plastic_strain,
                                  .plastic_strain_stride = 4,
                                  .temperature = data->temperature,
                                  .liquid_fraction = data->liquid_fraction,
                                  .coldest = (float)coldest,
                                  .warmest = (float)warmest};
}

static selkie_code draw_frame(run_renderer *r, const sk_numbered_file *file, const char *picture, selkie_error *error)
{
    sk_particles_data *data;
    SK_TRY(sk_particles_read(file->path, &data, error));
    sk_particles_turn_back(data);
    sk_particles_rebase(data, r->origin);
    const selkie_code appended = append_droplets(r, file, data, error);
    if (appended) {
        sk_particles_data_free(data);
        return appended;
    }
    const sk_picture_particles particles = particles_of(data, r->scene);
    sk_picture_options options = r->picture;
    options.time = isfinite(data->time) ? data->time : (double)file->number / r->scene->time.fps;
    selkie_code found = change_solids(r, options.time, error);
    place_bodies(r, file->number, &options);
    sk_particles_data *foam = NULL;
    sk_picture_foam whitewater = {0};
    if (!found)
        found = read_beside(r, SK_WHITEWATER_PREFIX, file->number, &foam, error);
    if (found) {
        sk_particles_data_free(data);
        return found;
    }
    if (foam) {
        whitewater = (sk_picture_foam){(size_t)foam->count, foam->position, 12, foam->velocity, 12};
        options.foam = &whitewater;
    }
    sk_image image;
    sk_picture_data dye;
    selkie_code code = read_dye(r, file, &dye, error);
    const sk_image dyed = {dye.width, dye.height, dye.rgb};
    options.dye = dye.rgb ? &dyed : NULL;
    if (!code)
        code = sk_picture_draw(r->stage, &particles, &options, &image, error);
    if (!code) {
        code = sk_image_write_png_at(&image, picture, options.preview ? 1 : 4,
                                     options.threads > 0 ? options.threads : omp_get_max_threads(), error);
        sk_image_free(&image);
    }
    sk_picture_free(&dye);
    sk_particles_data_free(data);
    sk_particles_data_free(foam);
    return code;
}

static selkie_code report(run_renderer *r, const sk_render_run_progress *progress, selkie_error *error)
{
    if (!r->callback || !r->callback(r->context, progress))
        return SELKIE_OK;
    return sk_fail(error, SELKIE_ERROR_INTERRUPTED, "%s: stopped after %zu of %zu pictures; they are kept", r->folder,
                   progress->done, progress->total);
}

/* Whether the picture of a frame is newer than all that it shows. */
static selkie_code is_drawn(const run_renderer *r, const sk_numbered_file *file, const char *picture, int *drawn,
                            selkie_error *error)
{
    static const char *const others[][2] = {
        {SK_WHITEWATER_PREFIX, ".ply"}, {SK_DROPLETS_PREFIX, ".ply"}, {SK_DYE_PREFIX, ".png"}};
    *drawn = up_to_date(r, file->path, picture);
    for (size_t i = 0; i < sizeof others / sizeof *others && *drawn; ++i) {
        char path[path_size];
        SK_TRY(frame_path(r, others[i][0], file->number, others[i][1], path, error));
        *drawn = !sk_file_exists(path) || up_to_date(r, path, picture);
    }
    return SELKIE_OK;
}

static selkie_code draw_pictures(run_renderer *r, const char *pictures, selkie_error *error)
{
    for (size_t i = 0; i < r->frames.count; ++i) {
        char path[path_size];
        const sk_numbered_file *file = &r->frames.files[i];
        SK_TRY(sk_numbered_path(path, sizeof path, pictures, SK_PICTURE_PREFIX, file->number, ".png", error));
        double start = sk_wall_ms();
        int skip;
        SK_TRY(is_drawn(r, file, path, &skip, error));
        if (!skip)
            SK_TRY(draw_frame(r, file, path, error));
        sk_render_run_progress progress = {file->number, i + 1, r->frames.count, skip, 0, sk_wall_ms() - start, path};
        SK_TRY(report(r, &progress, error));
    }
    return SELKIE_OK;
}

static selkie_code make_film(run_renderer *r, const char *pictures, selkie_error *error)
{
    char film_path[path_size];
    SK_TRY(join_path(film_path, r->folder, SK_FILM_NAME, error));
    sk_render_run_progress progress = {
        .done = r->frames.count, .total = r->frames.count, .filming = 1, .path = film_path};
    SK_TRY(report(r, &progress, error));
    double fps = r->options->fps > 0 ? r->options->fps
                                     : r->scene->time.fps / (r->scene->output.every > 1 ? r->scene->output.every : 1);
    sk_film *film;
    SK_TRY(sk_film_begin(film_path, fps, r->options->threads, &film, error));
    for (size_t i = 0; i < r->frames.count; ++i) {
        char path[path_size];
        selkie_code code =
            sk_numbered_path(path, sizeof path, pictures, SK_PICTURE_PREFIX, r->frames.files[i].number, ".png", error);
        if (!code)
            code = sk_film_add_png(film, path, error);
        if (code) {
            sk_film_abandon(film);
            return code;
        }
    }
    return sk_film_finish(film, error);
}

static selkie_code open_run(run_renderer *r, selkie_error *error)
{
    char path[path_size];
    SK_TRY(join_path(path, r->folder, "scene.json", error));
    if (!sk_file_exists(path))
        return sk_fail(error, SELKIE_ERROR_FILE, "%s: no scene.json in it, so it is not the folder of a run",
                       r->folder);
    SK_TRY(selkie_scene_load(path, 0, NULL, &r->scene, error));
    if (r->options->environment)
        r->scene->render.environment = r->options->environment;
    r->keys = hash_keys(r->scene);
    SK_TRY(sk_scene_load_motions(r->scene, error));
    for (int d = 0; d < r->scene->domain.dimension; d++)
        r->origin[d] = r->scene->domain.origin[d];
    sk_scene_make_relative(r->scene);

    /* Frames. */
    SK_TRY(join_path(path, r->folder, SK_FRAMES_FOLDER, error));
    SK_TRY(sk_folder_list_frames(path, &r->frames, error));
    choose_frames(r);
    if (!r->frames.count)
        return sk_fail(error, SELKIE_ERROR_FILE,
                       "%s: no " SK_PARTICLES_PREFIX
                       "NNNN.ply or .skp among the frames asked for; pictures are drawn from those "
                       "(output.ply or output.skp must be true)",
                       path);

    /* Poses of bodies. */
    const int most_bodies = r->scene->body_count + r->scene->change_count;
    if (most_bodies) {
        SK_TRY(join_path(path, r->folder, "bodies.csv", error));
        if (sk_file_exists(path))
            SK_TRY(sk_table_read(path, &r->bodies, error));
        r->poses = sk_allocate_zeroed(NULL, ((size_t)most_bodies + 1) * sizeof *r->poses);
        if (!r->poses)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %d bodies", r->folder, most_bodies);
    }
    if (r->scene->change_count) {
        SK_TRY(join_path(path, r->folder, "stats.csv", error));
        if (sk_file_exists(path))
            SK_TRY(sk_table_read(path, &r->steps, error));
    }

    /* Stage and options. */
    SK_TRY(sk_stage_create(r->scene, &r->stage, error));
    sk_picture_options_defaults(r->scene, &r->picture);
    r->picture.width = r->options->width;
    r->picture.height = r->options->height;
    r->picture.speed_scale = r->options->speed_scale;
    r->picture.samples = r->options->samples;
    r->picture.label = r->options->label;
    r->picture.preview = r->options->preview;
    if (r->options->shutter >= 0)
        r->picture.shutter = r->options->shutter * sk_picture_interval(r->scene);
    sk_picture_cut(r->options->cut ? r->options->cut : r->scene->render.cut, r->origin, &r->picture);
    r->picture.threads = r->options->threads;
    if (r->options->style >= 0)
        r->picture.style = (selkie_picture_style)r->options->style;
    if (r->options->color >= 0)
        r->picture.color = (selkie_picture_color)r->options->color;
    return SELKIE_OK;
}

selkie_code sk_render_run(const char *folder, const sk_render_run_options *options, sk_render_run_callback callback,
                          void *context, selkie_error *error)
{
    run_renderer r = {.folder = folder, .options = options, .callback = callback, .context = context};
    char pictures[path_size];
    selkie_code code = open_run(&r, error);
    if (!code)
        code = join_path(pictures, folder, SK_PICTURES_FOLDER, error);
    if (!code)
        code = sk_folder_make(pictures, error);
    if (!code)
        code = compare_options(&r, pictures, error);
    if (!code)
        code = draw_pictures(&r, pictures, error);
    if (!code && options->film)
        code = make_film(&r, pictures, error);
    sk_stage_destroy(r.stage);
    sk_file_list_free(&r.frames);
    sk_table_free(r.bodies);
    sk_table_free(r.steps);
    sk_release(NULL, r.poses);
    selkie_scene_free(r.scene);
    return code;
}
