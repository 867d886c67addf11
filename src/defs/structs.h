/* Functions that need only the field table: defaults, deep copies, comparison, names of bounds.
 *
 * A loaded or copied scene owns its arrays and strings. They are in one pool with the scene itself, and releasing the
 * scene releases the pool. */
#ifndef SK_DEFS_STRUCTS_H
#define SK_DEFS_STRUCTS_H

#include <stddef.h>
#include <selkie/scene.h>
#include "defs/fields.h"
#include "defs/text.h"

typedef struct sk_pool sk_pool;

sk_pool *sk_pool_create(void);
void *sk_pool_take(sk_pool *pool, size_t bytes); /* zeroed; NULL if there is no memory */
char *sk_pool_string(sk_pool *pool, const char *text, size_t length);
void sk_pool_destroy(sk_pool *pool);

/* A scene of defaults in a pool of its own, released with selkie_scene_free(); NULL if there is no memory. */
selkie_scene *sk_scene_create(sk_pool **pool);

/* Fills in every field of the struct, those of other variants as well. The variant stays as it is if `keep_variant`. */
void sk_struct_defaults(const sk_struct *type, void *base, int keep_variant);

/* A deep copy that lives on its own; released with selkie_scene_free(). */
selkie_code sk_scene_copy(const selkie_scene *from, selkie_scene **to, selkie_error *error);

/* Replaces the pointers of a struct, a plain copy of its original, by copies in the pool of what they point to. Only
 * for checked structs. Returns 0 if there is no memory. */
int sk_struct_own(sk_pool *pool, const sk_struct *type, void *base);

/* A number that changes with any key of the struct and of what it holds. */
uint64_t sk_struct_hash(const sk_struct *type, const void *base);

/* 1 if two scenes mean the same: all fields that apply are equal bit for bit; `folder` is not compared. If not and
 * `where` is given, it names the first difference. */
int sk_scene_equal(const selkie_scene *a, const selkie_scene *b, sk_path *where);

/* Checks like selkie_scene_check(), but returns the path apart: the message does not begin with it. */
selkie_code sk_scene_check_at(const selkie_scene *scene, sk_path *where, selkie_error *error);
/* The checks that look at several fields together; called by sk_scene_check_at() once every field is in its range. */
selkie_code sk_scene_check_rules(const selkie_scene *scene, sk_path *where, selkie_error *error);

/* The axis that is nearest to up, and which way along it (1 or -1; may be NULL). */
int sk_scene_up_axis(const selkie_scene *scene, int *sign);

/* "at least 0 s", "between 0 and 1", "above 0 m". */
char *sk_field_bounds_text(const sk_field *field, char *buffer, size_t size);
/* "\"pic\", \"flip\" or \"apic\"". */
char *sk_enum_list(const sk_enum *choices, char *buffer, size_t size);

/* Checks what a scene of reduced fluids (discretization reduced) may have; others pass. */
selkie_code sk_reduced_check(const selkie_scene *scene, sk_path *where, selkie_error *error);
/* Checks what a scene with periodic axes may have; others pass. */
selkie_code sk_periodic_check(const selkie_scene *scene, sk_path *where, selkie_error *error);
/* Does a scene consist of elastoplastic points, in any of their forms? */
static inline int sk_scene_has_points(const selkie_scene *scene)
{
    return scene->discretization >= SELKIE_DISCRETIZATION_MPM;
}

/* Does a scene of the grid methods have elastoplastic points beside its liquids, or in their place? */
static inline int sk_scene_has_immersed_points(const selkie_scene *scene)
{
    int found = 0;
    for (int m = 0; scene->discretization == SELKIE_DISCRETIZATION_GRID && m < scene->material_count; m++)
        found |= scene->materials[m].kind == SELKIE_MATERIAL_ELASTOPLASTIC;
    return found;
}

/* Does one liquid fill a closed or periodic domain, and does nothing move into it or push it at once? Then it has no
 * free surface and no impacts. */
int sk_scene_is_full(const selkie_scene *scene);
/* time.reflection, or its default if it is below 0: all of the change in a full domain; elsewhere less, so that
 * impacts do not bounce. */
double sk_scene_reflection(const selkie_scene *scene);

/* Is nothing but liquid and obstacles there, and does all liquid start at rest under gravity? */
int sk_scene_starts_at_rest(const selkie_scene *scene);
/* idp.settle, or its default if it is below 0: one correction of a scene that starts at rest. The first step would make
 * it, and lift the liquid: energy from nothing. Liquid that moves keeps its places, for which its velocities were
 * given.
 */
int sk_scene_settle_rounds(const selkie_scene *scene);

/* Checks the materials of kind elastoplastic, and what a scene of elastoplastic points may have. */
selkie_code sk_elastoplastic_check(const selkie_scene *scene, sk_path *where, selkie_error *error);

/* Checks the order of a scene's changes, and the elements that they bring. */
selkie_code sk_changes_check(const selkie_scene *scene, sk_path *where, selkie_error *error);
/* The element of a list that a change names, by its label or its number; -1 if there is none. The label is the first
 * member of the elements, which have `size` bytes. */
int sk_change_find(const void *elements, int count, size_t size, const char *name);

#endif
