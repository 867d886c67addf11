/* The liquid of a frame as an OpenVDB file: `surface`, a level set (m), and `vel`, its velocity (m/s), and grids of
 * further values (temperature, material) under their names.
 *
 * The writer makes version 224 of the format, trees of 5, 4 and 3 bits, compressed by zlib, which every program with
 * OpenVDB 3 or later reads. The blocks of a surface are the leaves of such a tree, so nothing is sampled again.
 */
#ifndef SK_IO_VDB_FILE_H
#define SK_IO_VDB_FILE_H

#include "geom/surface.h"
#include "io/up_turn.h"

typedef struct sk_volume_frame {
    const sk_volume *volume;
    double time;      /* s */
    double origin[3]; /* m  of the volume in the scene */
    sk_up_turn turn;  /*    from the scene's axes to the file's */
} sk_volume_frame;

selkie_code sk_volume_write_vdb(const sk_volume_frame *frame, const char *path, selkie_error *error);

#endif
