/* Dye in a reduced fluid: a colour at every point that moves along with the liquid and stays sharp.
 *
 * No colour is moved. A map says for each node where its liquid was when the map began. A step traces the nodes back by
 * its length and looks the map up there (characteristic mapping, Yin et al. 2021). A map that has become bent is put
 * away and a new one begins. The colour of a point is found on the way back through all maps: a source that the way
 * crosses, or the shape or clear liquid at its start. Edges are those of the shapes, so they have no width.
 *
 * If there is no room for a further map, the colours are written into a picture, and the way back ends there.
 */
#ifndef SK_METHODS_REDUCED_DYE_H
#define SK_METHODS_REDUCED_DYE_H

#include "geom/shape.h"
#include "methods/method.h"
#include "methods/reduced/reduced_kernels.h"

enum { SK_DYE_MAPS = 32 };

/* Begins the state for checkpoints. */
typedef struct sk_dye_header {
    int32_t map_count; /*    put away; below 0 = there is no dye yet, and nothing behind the header */
    int32_t has_picture;
    double begin[SK_DYE_MAPS + 1]; /* s  of each map; the last one is current */
} sk_dye_header;

typedef struct sk_dye {
    sk_memory *memory;
    size_t nodes;  /*    of a map */
    int pixels[2]; /*    of the picture */
    sk_dye_header none;

    /* The state is one block: header, current map, picture, older maps. */
    char *block;            /*    NULL until there is dye */
    sk_dye_header *header;  /*    in the block, or `none` */
    float *current;         /* m  [nodes][2] where the liquid was, from where it is now */
    uint8_t *picture;       /*    [x][y] number of the dye, 0 = clear */
    float *older;           /* m  [map_count][nodes][2] */
    float *next;            /* m  of the step */
    uint8_t *other_picture; /*    of the next picture */

    int count, room; /*    dyes whose shapes are made */
    sk_shape **shapes;
    double (*bounds)[2][2]; /* m  low and high of the shapes */
} sk_dye;

extern const sk_method sk_method_dye;

static inline size_t sk_dye_bytes(const sk_dye *dye, int maps)
{
    return maps < 0 ? sizeof(sk_dye_header)
                    : sizeof(sk_dye_header) + ((size_t)maps + 1) * dye->nodes * 2 * sizeof(float) +
                          ((size_t)dye->pixels[0] * (size_t)dye->pixels[1] + 7) / 8 * 8;
}

/* Number of the dye at a point (m from the corner) at `now` (s), from 1; 0 = clear. */
int sk_dye_at(const sk_dye *dye, const sk_step *step, const sk_reduced_view *view, double now, const double x[2]);
/* Writes the colours of `now` into the picture and forgets the maps. */
void sk_dye_remember(sk_dye *dye, const sk_step *step, const sk_reduced_view *view, double now);
/* The picture of sk_method.paint. */
void sk_dye_paint(const sk_step *step, int size[2], uint8_t *pixels);

#endif
