#define _GNU_SOURCE
#include "render/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/atomic_file.h"
#include "selkie_config.h"

/* --- Ticks --- */

sk_plot_ticks sk_plot_choose_ticks(double low, double high, int most)
{
    sk_plot_ticks ticks = {0};
    double rough = (high - low) / (most > 1 ? most : 1);
    double power = pow(10, floor(log10(rough)));
    double share = rough / power;
    int digit = share <= 1.0000001 ? 1 : share <= 2.0000001 ? 2 : share <= 5.0000001 ? 5 : 10;
    ticks.step = digit * power;
    /* A small tolerance, so that a range that ends on a tick keeps it. */
    double begin = ceil(low / ticks.step - 1e-9), end = floor(high / ticks.step + 1e-9);
    ticks.first = begin * ticks.step;
    ticks.count = end >= begin ? (int)(end - begin) + 1 : 0;
    double largest = fmax(fabs(low), fabs(high));
    int magnitude = largest > 0 ? (int)floor(log10(largest) + 1e-12) : 0;
    if (magnitude >= 5 || magnitude <= -3)
        ticks.exponent = (int)floor(magnitude / 3.0) * 3;
    int step_magnitude = (int)floor(log10(ticks.step) + 1e-9) - ticks.exponent;
    ticks.decimals = step_magnitude < 0 ? -step_magnitude : 0;
    if (ticks.decimals > 12)
        ticks.decimals = 12;
    return ticks;
}

char *sk_plot_tick_label(const sk_plot_ticks *ticks, int index, char text[32])
{
    double value = ticks->first + index * ticks->step;
    if (fabs(value) < 1e-9 * ticks->step)
        value = 0; /* no "-0" */
    snprintf(text, 32, "%.*f", ticks->decimals, value / pow(10, ticks->exponent));
    /* A real minus sign is as wide as a plus. */
    if (text[0] == '-' && strlen(text) + 3 < 32) {
        memmove(text + 3, text + 1, strlen(text));
        memcpy(text, "\xe2\x88\x92", 3);
    }
    return text;
}

#if SELKIE_HAVE_CAIRO

#include <cairo.h>
#include <cairo-svg.h>

/* --- Measures, in points; a PNG has `png_scale` pixels a point --- */

enum {
    panel_width = 620,
    panel_height = 260,
    legend_width = 150,
    figure_title_height = 34,
    figure_margin = 10,
    space_left = 72,
    space_right = 14,
    space_right_axis = 62,
    space_top = 34,
    space_bottom = 44,
    most_x_ticks = 8,
    most_y_ticks = 6,
};
static const double png_scale = 2, text_size = 11, title_size = 13, line_width = 1.4;

static const unsigned palette[SK_PLOT_COLORS] = {0x2468b4, 0xd9772b, 0x2f9460, 0xc23b3b, 0x7a55a8, 0x8b6b4e,
                                                 0xcf6fa5, 0x6f7780, 0xa39b2e, 0x2fa3b5, 0x9cc3e6, 0xf2b98a,
                                                 0x1d3a5f, 0x8fd0a8, 0xeba3a0, 0xc0aae0};

static void set_color(cairo_t *c, unsigned rgb, double alpha)
{
    cairo_set_source_rgba(c, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0, alpha);
}

static unsigned series_color(const sk_plot_series *series)
{
    return palette[((series->color % SK_PLOT_COLORS) + SK_PLOT_COLORS) % SK_PLOT_COLORS];
}

/* Number of complete palettes before this series; repeated colours have dashes, or stripes in areas. */
static int series_round(const sk_plot_series *series)
{
    return series->color > 0 ? series->color / SK_PLOT_COLORS : 0;
}

/* Fills the path with the series' colour. The second use of the palette has dark stripes, the third stripes in the
 * other direction, the fourth both. */
static void fill_area(cairo_t *c, const sk_plot_series *series)
{
    const double distance = 6;
    const int stripes = series_round(series) % 4;
    double left, top, right, bottom;
    set_color(c, series_color(series), 0.85);
    if (!stripes) {
        cairo_fill(c);
        return;
    }

    /* Clip stripes to the area. */
    cairo_fill_preserve(c);
    cairo_path_extents(c, &left, &top, &right, &bottom);
    cairo_save(c);
    cairo_clip(c);
    cairo_new_path(c);
    const double height = bottom - top;
    for (int way = 0; way < 2; way++) {
        if (!(stripes >> way & 1))
            continue;
        /* Lines at multiples of the distance in x + y or x - y, so that stripes of neighbours meet. */
        const double end = way ? top : -bottom;
        double begin = floor((left - height - end) / distance) * distance + end;
        for (double x = begin; x < right + height; x += distance) {
            cairo_move_to(c, x, way ? top : bottom);
            cairo_line_to(c, x + height, way ? bottom : top);
        }
    }

    /* Draw the stripes darker than the area. */
    set_color(c, 0x000000, 0.55);
    cairo_set_line_width(c, 1.4);
    cairo_stroke(c);
    cairo_restore(c);
}

static void set_dash(cairo_t *c, int dash)
{
    static const double patterns[SK_PLOT_DASHES][4] = {{0}, {6, 3}, {1.5, 2.5}, {7, 2.5, 1.5, 2.5}};
    static const int lengths[SK_PLOT_DASHES] = {0, 2, 2, 4};
    int index = ((dash % SK_PLOT_DASHES) + SK_PLOT_DASHES) % SK_PLOT_DASHES;
    cairo_set_dash(c, patterns[index], lengths[index], 0);
}

/* --- Text --- */

static void set_font(cairo_t *c, double size, int bold)
{
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c, size);
}

static double text_width(cairo_t *c, const char *text)
{
    cairo_text_extents_t extents;
    cairo_text_extents(c, text, &extents);
    return extents.x_advance;
}

/* `anchor` 0: starts at x, 0.5: centred, 1: ends there. */
static void draw_text(cairo_t *c, double x, double y, double anchor, const char *text)
{
    cairo_move_to(c, x - anchor * text_width(c, text), y);
    cairo_show_text(c, text);
}

/* Cut with an ellipsis to fit; bytes of one character stay together. */
static void draw_fitting(cairo_t *c, double x, double y, double width, const char *text)
{
    char shown[256];
    snprintf(shown, sizeof shown - 4, "%s", text);
    size_t length = strlen(shown);
    while (length && text_width(c, shown) > width) {
        while (length && ((unsigned char)shown[--length] & 0xc0) == 0x80)
            ;
        memcpy(shown + length, "\xe2\x80\xa6", 4);
        if (!length)
            break;
    }
    draw_text(c, x, y, 0, shown);
}

/* "10" with a raised exponent. */
static char *format_power(int exponent, char text[64])
{
    static const char *const digits[] = {"\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",
                                         "\xe2\x81\xb4", "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7",
                                         "\xe2\x81\xb8", "\xe2\x81\xb9"};
    char plain[16];
    snprintf(plain, sizeof plain, "%d", exponent);
    strcpy(text, "10");
    for (const char *digit = plain; *digit; digit++)
        strcat(text, *digit == '-' ? "\xe2\x81\xbb" : digits[*digit - '0']);
    return text;
}

/* --- Axes --- */

typedef struct plot_axis {
    double low, high; /* shown range; log10 of it on a logarithmic axis */
    int logarithmic;
    int used;
    sk_plot_ticks ticks;
} plot_axis;

typedef struct plot_area {
    double left, top, width, height; /* points */
    plot_axis x, y[2];
} plot_area;

static double axis_value(const plot_axis *axis, double value)
{
    return axis->logarithmic ? (value > 0 ? log10(value) : NAN) : value;
}

static double place_x(const plot_area *area, double value)
{
    return area->left + area->width * (axis_value(&area->x, value) - area->x.low) / (area->x.high - area->x.low);
}

static double place_y(const plot_area *area, int side, double value)
{
    const plot_axis *axis = &area->y[side];
    return area->top + area->height * (1 - (axis_value(axis, value) - axis->low) / (axis->high - axis->low));
}

static void axis_include(plot_axis *axis, double value)
{
    value = axis_value(axis, value);
    if (!(fabs(value) < 1e300)) /* also keeps the span of two of them finite */
        return;
    if (!axis->used || value < axis->low)
        axis->low = value;
    if (!axis->used || value > axis->high)
        axis->high = value;
    axis->used = 1;
}

/* Gives an axis a range that can be divided: a margin around the values, also around a constant. */
static void axis_settle(plot_axis *axis, double air, int from_zero, int most_ticks)
{
    int had_values = axis->used;
    if (!had_values) {
        axis->low = 0;
        axis->high = 1;
    }
    if (from_zero && !axis->logarithmic && axis->low > 0)
        axis->low = 0;

    /* A range below three decades is extended to whole decades, so that it has labels. */
    if (axis->logarithmic && axis->high - axis->low < 3) {
        axis->low = floor(axis->low);
        axis->high = fmax(ceil(axis->high), axis->low + 1);
        air = 0;
    }

    double size = fmax(fabs(axis->low), fabs(axis->high)), span = axis->high - axis->low;
    /* Differences below single precision are noise and must not fill the axis. */
    double least = axis->logarithmic ? 1 : size > 0 ? 1e-6 * size : 1e-12;
    if (span < least) {
        double middle = (axis->low + axis->high) / 2;
        double half = axis->logarithmic ? 0.5 : size > 0 ? (span > 0 ? least : 0.05 * size) : 0.5;
        axis->low = middle - half;
        axis->high = middle + half;
    } else {
        if (!(from_zero && axis->low == 0))
            axis->low -= air * span;
        axis->high += air * span;
    }

    /* Ticks. */
    if (axis->logarithmic) {
        axis->ticks = sk_plot_choose_ticks(axis->low, axis->high, most_ticks);
        if (axis->ticks.step < 1) {
            axis->ticks.step = 1;
            axis->ticks.first = ceil(axis->low - 1e-9);
            axis->ticks.count = (int)(floor(axis->high + 1e-9) - axis->ticks.first) + 1;
        }
    } else {
        axis->ticks = sk_plot_choose_ticks(axis->low, axis->high, most_ticks);
    }
}

static void measure_stack(const sk_plot_panel *panel, plot_area *area)
{
    axis_include(&area->y[0], 0);
    if (!panel->series_count)
        return;
    for (size_t i = 0; i < panel->series[0].count; i++) {
        double sum = 0;
        for (int s = 0; s < panel->series_count; s++)
            if (i < panel->series[s].count && isfinite(panel->series[s].y[i]))
                sum += panel->series[s].y[i];
        axis_include(&area->x, panel->series[0].x[i]);
        axis_include(&area->y[0], sum);
    }
}

static void measure_panel(const sk_plot_panel *panel, plot_area *area)
{
    for (int side = 0; side < 2; side++)
        area->y[side].logarithmic = panel->logarithmic[side] && !panel->stacked;
    if (panel->stacked) {
        measure_stack(panel, area);
    } else {
        for (int s = 0; s < panel->series_count; s++) {
            const sk_plot_series *series = &panel->series[s];
            for (size_t i = 0; i < series->count; i++) {
                axis_include(&area->x, series->x[i]);
                axis_include(&area->y[series->axis ? 1 : 0], series->y[i]);
            }
        }
    }
    /* The time of the first step is a little above 0; the axis begins at 0. */
    if (area->x.low > 0 && area->x.low < 0.25 * area->x.high)
        area->x.low = 0;
    axis_settle(&area->x, 0, 0, most_x_ticks);
    for (int side = 0; side < 2; side++) {
        int used = area->y[side].used;
        axis_settle(&area->y[side], 0.05, panel->from_zero[side] || panel->stacked, most_y_ticks);
        area->y[side].used = used;
    }
}

static char *axis_label(const plot_axis *axis, int index, char text[64])
{
    if (axis->logarithmic)
        return format_power((int)lround(axis->ticks.first + index * axis->ticks.step), text);
    return sk_plot_tick_label(&axis->ticks, index, text);
}

/* Label of an axis with the power of ten that its numbers leave out. */
static void axis_title(const plot_axis *axis, const char *label, char text[256])
{
    char power[64];
    if (!axis->logarithmic && axis->ticks.exponent)
        snprintf(text, 256, "%s  (\xc3\x97 %s)", label ? label : "", format_power(axis->ticks.exponent, power));
    else
        snprintf(text, 256, "%s", label ? label : "");
}

static void draw_x_axis(cairo_t *c, const plot_area *area, const char *label)
{
    double bottom = area->top + area->height;
    char text[256];
    for (int i = 0; i < area->x.ticks.count; i++) {
        double value = area->x.ticks.first + i * area->x.ticks.step;
        double x = area->left + area->width * (value - area->x.low) / (area->x.high - area->x.low);
        set_color(c, 0xe6e6e6, 1);
        cairo_set_line_width(c, 0.8);
        cairo_move_to(c, x, area->top);
        cairo_line_to(c, x, bottom);
        cairo_stroke(c);
        set_color(c, 0x444444, 1);
        cairo_move_to(c, x, bottom);
        cairo_line_to(c, x, bottom + 4);
        cairo_stroke(c);
        draw_text(c, x, bottom + 16, 0.5, axis_label(&area->x, i, text));
    }
    axis_title(&area->x, label, text);
    set_color(c, 0x222222, 1);
    draw_text(c, area->left + area->width / 2, bottom + 33, 0.5, text);
}

/* Lines at 2, 3, .. 9 times a power of ten. */
static void draw_minor_grid(cairo_t *c, const plot_area *area)
{
    const plot_axis *axis = &area->y[0];
    set_color(c, 0xf2f2f2, 1);
    cairo_set_line_width(c, 0.6);
    for (int decade = (int)floor(axis->low); decade < axis->high && axis->high - axis->low < 6; decade++)
        for (int digit = 2; digit < 10; digit++) {
            double value = decade + log10(digit);
            if (value < axis->low || value > axis->high)
                continue;
            double y = area->top + area->height * (1 - (value - axis->low) / (axis->high - axis->low));
            cairo_move_to(c, area->left, y);
            cairo_line_to(c, area->left + area->width, y);
            cairo_stroke(c);
        }
}

static void draw_y_axis(cairo_t *c, const plot_area *area, int side, const char *label)
{
    const plot_axis *axis = &area->y[side];
    double edge = side ? area->left + area->width : area->left, outward = side ? 1 : -1;
    char text[256];

    /* Ticks with labels. Only the first axis has a grid. */
    for (int i = 0; i < axis->ticks.count; i++) {
        double value = axis->ticks.first + i * axis->ticks.step;
        double y = area->top + area->height * (1 - (value - axis->low) / (axis->high - axis->low));
        if (!side) { /* no grid for the second axis */
            set_color(c, 0xe6e6e6, 1);
            cairo_set_line_width(c, 0.8);
            cairo_move_to(c, area->left, y);
            cairo_line_to(c, area->left + area->width, y);
            cairo_stroke(c);
        }
        set_color(c, 0x444444, 1);
        cairo_set_line_width(c, 0.8);
        cairo_move_to(c, edge, y);
        cairo_line_to(c, edge + outward * 4, y);
        cairo_stroke(c);
        draw_text(c, edge + outward * 7, y + 4, side ? 0 : 1, axis_label(axis, i, text));
    }

    /* Title, turned by 90 degrees. */
    axis_title(axis, label, text);
    set_color(c, 0x222222, 1);
    cairo_save(c);
    cairo_translate(c, side ? edge + space_right_axis - 8 : edge - space_left + 12, area->top + area->height / 2);
    cairo_rotate(c, -1.5707963267948966);
    draw_text(c, 0, 0, 0.5, text);
    cairo_restore(c);
}

static void draw_frame(cairo_t *c, const plot_area *area)
{
    set_color(c, 0x444444, 1);
    cairo_set_line_width(c, 1);
    cairo_move_to(c, area->left, area->top);
    cairo_line_to(c, area->left, area->top + area->height);
    cairo_line_to(c, area->left + area->width, area->top + area->height);
    if (area->y[1].used)
        cairo_line_to(c, area->left + area->width, area->top);
    cairo_stroke(c);
}

/* --- Curves --- */

static void add_point(cairo_t *c, double x, double y, int *pen_is_down)
{
    if (*pen_is_down)
        cairo_line_to(c, x, y);
    else
        cairo_move_to(c, x, y);
    *pen_is_down = 1;
}

/* The path of a series. Of the points that fall into one half-point column only the first, the extremes in their order
 * and the last are kept; the picture is the same. */
static void trace_series(cairo_t *c, const plot_area *area, const sk_plot_series *series)
{
    int side = series->axis ? 1 : 0, pen_is_down = 0;
    for (size_t i = 0; i < series->count;) {
        double x = place_x(area, series->x[i]), y = place_y(area, side, series->y[i]);
        if (!isfinite(x) || !isfinite(y)) {
            pen_is_down = 0;
            i++;
            continue;
        }

        /* The extremes of this column. */
        size_t low = i, high = i, last = i, next = i + 1;
        double low_y = y, high_y = y;
        for (; next < series->count; next++) {
            double next_x = place_x(area, series->x[next]), next_y = place_y(area, side, series->y[next]);
            if (!isfinite(next_x) || !isfinite(next_y) || fabs(next_x - x) > 0.5)
                break;
            last = next;
            if (next_y < low_y) {
                low_y = next_y;
                low = next;
            }
            if (next_y > high_y) {
                high_y = next_y;
                high = next;
            }
        }

        /* In the order of the series. */
        size_t order[4] = {i, low < high ? low : high, low < high ? high : low, last};
        for (int k = 0; k < 4; k++)
            if (k == 0 || order[k] > order[k - 1])
                add_point(c, place_x(area, series->x[order[k]]), place_y(area, side, series->y[order[k]]),
                          &pen_is_down);
        i = next;
    }
}

static void draw_lines(cairo_t *c, const plot_area *area, const sk_plot_panel *panel)
{
    cairo_set_line_width(c, line_width);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (int s = 0; s < panel->series_count; s++) {
        const sk_plot_series *series = &panel->series[s];
        set_color(c, series_color(series), 1);
        set_dash(c, series->dash + series_round(series));
        cairo_new_path(c);
        trace_series(c, area, series);
        cairo_stroke(c);
        if (series->count == 1) {
            cairo_arc(c, place_x(area, series->x[0]), place_y(area, series->axis ? 1 : 0, series->y[0]), 2.5, 0,
                      6.2832);
            cairo_fill(c);
        }
    }
    cairo_set_dash(c, NULL, 0, 0);
}

/* Stacked areas, of averages over columns one point wide: single steps would be noise. */
static selkie_code draw_stack(cairo_t *c, const plot_area *area, const sk_plot_panel *panel, selkie_error *error)
{
    if (!panel->series_count || !panel->series[0].count)
        return SELKIE_OK;

    /* Columns of one point, fewer if there are fewer values. */
    const sk_plot_series *first = &panel->series[0];
    size_t columns = (size_t)area->width < first->count ? (size_t)area->width : first->count;
    double *x = calloc(columns * 3, sizeof *x);
    if (!x)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "plot: no memory for %zu columns", columns);
    double *bottom = x + columns, *top = x + 2 * columns;
    for (size_t k = 0; k < columns; k++)
        x[k] = columns > 1 ? place_x(area, first->x[k * (first->count - 1) / (columns - 1)]) : area->left;

    /* Stack the areas, each on top of the last. */
    for (int s = 0; s < panel->series_count; s++) {
        const sk_plot_series *series = &panel->series[s];
        for (size_t k = 0; k < columns; k++) {
            size_t begin = k * first->count / columns, end = (k + 1) * first->count / columns;
            double sum = 0;
            for (size_t i = begin; i < end && i < series->count; i++)
                sum += isfinite(series->y[i]) ? series->y[i] : 0;
            top[k] = bottom[k] + sum / (double)(end - begin);
        }

        /* The outline runs along the bottom and back along the top. */
        cairo_new_path(c);
        for (size_t k = 0; k < columns; k++)
            cairo_line_to(c, x[k], place_y(area, 0, bottom[k]));
        for (size_t k = columns; k-- > 0;)
            cairo_line_to(c, x[k], place_y(area, 0, top[k]));
        cairo_close_path(c);
        fill_area(c, series);
        memcpy(bottom, top, columns * sizeof *bottom);
    }
    free(x);
    return SELKIE_OK;
}

/* --- Panel --- */

static void draw_legend(cairo_t *c, const sk_plot_panel *panel, double left, double top)
{
    const double room = panel_height - space_top - 12, least_row = 11;
    double row = 15, y = top + 6;
    int labels = 0, shown = 0;

    /* Reduce the distance of rows so that all labels fit. */
    for (int k = 0; k < panel->series_count; k++)
        labels += panel->series[k].label != NULL;
    if (labels * row > room) /* smaller distances, so that all fit */
        row = fmax(room / labels, least_row);
    int most = (int)(room / row + 1e-9);

    /* Draw a sample and a label for each series. */
    for (int k = 0; k < panel->series_count && shown < most; k++) {
        /* The legend has the order of the stack, top first. */
        const sk_plot_series *series = &panel->series[panel->stacked ? panel->series_count - 1 - k : k];
        if (!series->label)
            continue;
        if (panel->stacked) {
            cairo_rectangle(c, left, y - 5, 16, 10);
            fill_area(c, series);
        } else {
            set_color(c, series_color(series), 1);
            set_dash(c, series->dash + series_round(series));
            cairo_set_line_width(c, 1.8);
            cairo_move_to(c, left, y);
            cairo_line_to(c, left + 20, y);
            cairo_stroke(c);
            cairo_set_dash(c, NULL, 0, 0);
        }
        set_color(c, 0x222222, 1);
        draw_fitting(c, left + 25, y + 4, legend_width - 29, series->label);
        y += row;
        shown++;
    }
}

static selkie_code draw_panel(cairo_t *c, const sk_plot_panel *panel, double left, double top, selkie_error *error)
{
    plot_area area = {0};
    measure_panel(panel, &area);
    int has_right = area.y[1].used;
    area.left = left + space_left;
    area.top = top + space_top;
    area.width = panel_width - space_left - legend_width - (has_right ? space_right_axis : space_right);
    area.height = panel_height - space_top - space_bottom;

    /* Title and axes. */
    set_font(c, title_size, 1);
    set_color(c, 0x222222, 1);
    draw_fitting(c, area.left, top + 21, panel_width - space_left - 8, panel->title ? panel->title : "");
    set_font(c, text_size, 0);
    if (area.y[0].logarithmic)
        draw_minor_grid(c, &area);
    draw_x_axis(c, &area, panel->x_label);
    draw_y_axis(c, &area, 0, panel->y_label[0]);
    if (has_right)
        draw_y_axis(c, &area, 1, panel->y_label[1]);

    /* Data, clipped to the plot. */
    cairo_save(c);
    cairo_rectangle(c, area.left, area.top - 1, area.width + 1, area.height + 2);
    cairo_clip(c);
    selkie_code code = SELKIE_OK;
    if (panel->stacked)
        code = draw_stack(c, &area, panel, error);
    else
        draw_lines(c, &area, panel);
    cairo_restore(c);

    /* Frame and legend. */
    draw_frame(c, &area);
    draw_legend(c, panel, area.left + area.width + (has_right ? space_right_axis : space_right) + 2, area.top);
    return code;
}

/* --- Figure --- */

static int figure_columns(const sk_plot_figure *figure)
{
    int columns = figure->columns > 0 ? figure->columns : figure->panel_count > 2 ? 2 : 1;
    return columns < figure->panel_count ? columns : figure->panel_count > 0 ? figure->panel_count : 1;
}

static void figure_size(const sk_plot_figure *figure, double *width, double *height)
{
    int columns = figure_columns(figure), rows = (figure->panel_count + columns - 1) / columns;
    *width = columns * panel_width + 2 * figure_margin;
    *height = rows * panel_height + 2 * figure_margin + (figure->title ? figure_title_height : 0);
}

static selkie_code draw_figure(cairo_t *c, const sk_plot_figure *figure, selkie_error *error)
{
    int columns = figure_columns(figure);
    double width, height, top = figure_margin;
    figure_size(figure, &width, &height);
    set_color(c, 0xffffff, 1);
    cairo_paint(c);
    if (figure->title) {
        set_font(c, 15, 1);
        set_color(c, 0x111111, 1);
        draw_fitting(c, figure_margin + 14, top + 20, width - 2 * figure_margin - 20, figure->title);
        top += figure_title_height;
    }
    for (int i = 0; i < figure->panel_count; i++)
        SK_TRY(draw_panel(c, &figure->panels[i], figure_margin + (i % columns) * panel_width,
                          top + i / columns * panel_height, error));
    return SELKIE_OK;
}

typedef struct plot_sink {
    sk_atomic_file *file;
    selkie_code code;
    selkie_error *error;
} plot_sink;

static cairo_status_t write_bytes(void *context, const unsigned char *data, unsigned length)
{
    plot_sink *sink = context;
    if (sink->code == SELKIE_OK)
        sink->code = sk_atomic_write(sink->file, data, length, sink->error);
    return sink->code == SELKIE_OK ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

/* Draws onto `surface` and, for a picture, passes it to the sink. */
static selkie_code draw_surface(cairo_surface_t *surface, const sk_plot_figure *figure, int is_picture, double scale,
                                const char *path, plot_sink *sink)
{
    cairo_t *c = cairo_create(surface);
    cairo_scale(c, scale, scale);
    selkie_code code = draw_figure(c, figure, sink->error);
    cairo_status_t status = cairo_status(c);
    cairo_destroy(c);
    if (code == SELKIE_OK && status == CAIRO_STATUS_SUCCESS && is_picture)
        status = cairo_surface_write_to_png_stream(surface, write_bytes, sink);
    cairo_surface_finish(surface); /* an SVG is written here */
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(surface);
    if (code == SELKIE_OK)
        code = sink->code;
    if (code == SELKIE_OK && status != CAIRO_STATUS_SUCCESS)
        code = sk_fail(sink->error, SELKIE_ERROR_MEMORY, "%s: the figure cannot be drawn: %s", path,
                       cairo_status_to_string(status));
    return code;
}

selkie_code sk_plot_write(const sk_plot_figure *figure, const char *path, selkie_error *error)
{
    const char *ending = strrchr(path, '.');
    int is_picture = ending && !strcmp(ending, ".png"), is_drawing = ending && !strcmp(ending, ".svg");
    if (!is_picture && !is_drawing)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: a plot's name must end in .png or .svg", path);
    double width, height;
    figure_size(figure, &width, &height);
    plot_sink sink = {.error = error};
    SK_TRY(sk_atomic_open(path, 0, &sink.file, error));
    cairo_surface_t *surface =
        is_picture ? cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(width * png_scale), (int)(height * png_scale))
                   : cairo_svg_surface_create_for_stream(write_bytes, &sink, width, height);
    selkie_code code = draw_surface(surface, figure, is_picture, is_picture ? png_scale : 1, path, &sink);
    cairo_surface_destroy(surface);
    return sk_atomic_finish(&sink.file, code, error);
}

#else

selkie_code sk_plot_write(const sk_plot_figure *figure, const char *path, selkie_error *error)
{
    (void)figure;
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                   "%s: plots need cairo, which this build does not have; install libcairo2-dev and build again", path);
}

#endif
