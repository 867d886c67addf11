/* Text in pictures: with cairo in the system's sans-serif font, without it in a font of 5 x 7 dots that has the letters
 * of the labels only. */
#include "render/image.h"

#include <stdlib.h>
#include <string.h>

#include "selkie_config.h"

#if SELKIE_HAVE_CAIRO
#include <cairo.h>

/* Draws the text into a mask of its own size and blends the colour through it. */
void sk_image_text(sk_image *image, float x, float y, const char *text, const sk_text_style *style)
{
    /* Size of the text, and where it goes. */
    cairo_surface_t *probe = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
    cairo_t *cr = cairo_create(probe);
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, (double)style->size * 1.35);
    cairo_text_extents_t extents;
    cairo_text_extents(cr, text, &extents);
    cairo_destroy(cr);
    cairo_surface_destroy(probe);
    if (!(extents.width > 0) || extents.width > image->width * 4.0 || extents.height > image->height * 4.0)
        return;
    int width = (int)extents.width + 6, height = (int)extents.height + 6;
    float left = x - (style->align == 1 ? 0.5f : style->align == 2 ? 1.0f : 0.0f) * (float)extents.x_advance;
    int column = (int)floorf(left + (float)extents.x_bearing) - 2, row = (int)floorf(y + (float)extents.y_bearing) - 2;

    /* The mask, blended. */
    cairo_surface_t *mask = cairo_image_surface_create(CAIRO_FORMAT_A8, width, height);
    cr = cairo_create(mask);
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, (double)style->size * 1.35);
    cairo_move_to(cr, (double)(left - (float)column), (double)(y - (float)row));
    cairo_show_text(cr, text);
    cairo_surface_flush(mask);
    const unsigned char *data = cairo_image_surface_get_data(mask);
    int stride = cairo_image_surface_get_stride(mask);
    for (int j = 0; data && j < height; ++j)
        for (int i = 0; i < width; ++i)
            sk_image_blend(image, column + i, row + j, style->color,
                           style->alpha * (float)data[j * stride + i] / 255.0f);
    cairo_destroy(cr);
    cairo_surface_destroy(mask);
}

#else

typedef struct sign {
    char letter;
    const char *rows; /* 7 rows of 5 dots */
} sign;

static const sign signs[] = {
    {'0', ".###.#...##..###.#.###..##...#.###."},
    {'1', "..#...##....#....#....#....#...###."},
    {'2', ".###.#...#....#...#...#...#...#####"},
    {'3', "#####...#...#.....#....##...#.###."
          "."},
    {'4', "...#...##..#.#.#..#.#####...#....#."},
    {'5', "######....####.....#....##...#.###."},
    {'6', "..##..#...#....####.#...##...#.###."},
    {'7', "#####....#...#...#...#....#....#..."},
    {'8', ".###.#...##...#.###.#...##...#.###."},
    {'9', ".###.#...##...#.####....#...#..##.."},
    {'.', "...........................##...##."},
    {'-', "...............#####..............."},
    {'+', ".......#....#..#####..#....#......."},
    {'=', "..........#####.....#####.........."},
    {'/', "....#....#...#...#...#...#....#...."},
    {'e', "..........###.#...#######.....###.."},
    {'m', "..........##.#.#.#.##.#.##...##...#"},
    {'s', "...........###.#.....###.....####.."},
    {'t', ".#....#...###...#....#....#..#..##."},
};

static const char *sign_rows(char letter)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; ++i)
        if (signs[i].letter == letter)
            return signs[i].rows;
    return NULL;
}

void sk_image_text(sk_image *image, float x, float y, const char *text, const sk_text_style *style)
{
    int dot = (int)(style->size / 7.0f + 0.5f) < 1 ? 1 : (int)(style->size / 7.0f + 0.5f);
    int width = 6 * dot * (int)strlen(text);
    int left = (int)x - (style->align == 1 ? width / 2 : style->align == 2 ? width : 0), top = (int)y - 7 * dot;
    for (const char *letter = text; *letter; ++letter, left += 6 * dot) {
        const char *rows = sign_rows(*letter);
        for (int i = 0; rows && i < 35; ++i)
            if (rows[i] == '#') {
                int px = left + i % 5 * dot, py = top + i / 5 * dot;
                sk_image_fill(image, px, py, px + dot, py + dot, style->color, style->alpha);
            }
    }
}

#endif
