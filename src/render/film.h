/* Films from pictures, through the program ffmpeg: H.264 in MP4, which browsers play. */
#ifndef SK_RENDER_FILM_H
#define SK_RENDER_FILM_H

#include "base/status.h"
#include "render/image.h"

typedef struct sk_film sk_film;

/* Starts ffmpeg. Frames follow in order, all of the same size; an odd side is padded by a row or column. The film
 * appears at `path` whole or not at all. */
selkie_code sk_film_begin(const char *path, double frames_per_second, int threads, sk_film **film, selkie_error *error);
selkie_code sk_film_add_png(sk_film *film, const char *path, selkie_error *error);
selkie_code sk_film_add_image(sk_film *film, const sk_image *image, selkie_error *error);
/* Waits for ffmpeg and renames the film. The film is released in any case. */
selkie_code sk_film_finish(sk_film *film, selkie_error *error);
/* Removes the unfinished film. Accepts NULL. */
void sk_film_abandon(sk_film *film);

/* Whether the program is there. */
int sk_film_possible(void);

#endif
