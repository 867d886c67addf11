/* The parts of a frame by material: particles of one material each, frozen ones apart from the liquid. */
#ifndef SK_IO_FRAME_PARTS_H
#define SK_IO_FRAME_PARTS_H

#include "io/particles_file.h"

enum { SK_MOST_PARTS = 64 };

typedef struct sk_frame_part {
    char name[64]; /* of its folder: the name of the material, with letters that file names can have */
    int material;
    int is_frozen, melts; /* liquid fraction below 1/2, where the material has one */
} sk_frame_part;

/* The parts of a scene; they do not depend on the frame. Returns their number. */
int sk_scene_parts(const selkie_scene *scene, sk_frame_part parts[SK_MOST_PARTS]);

/* The particles of a part, as copies that sk_frame_part_free frees. `extras` is where part->extra will point to. */
selkie_code sk_frame_take_part(const sk_frame *frame, const sk_frame_part *part, sk_frame *taken,
                               selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES], selkie_error *error);
void sk_frame_part_free(sk_frame *taken);

#endif
