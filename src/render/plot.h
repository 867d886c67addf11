/* Figures of curves: panels with axes, grid and legend, as PNG or SVG.
 *
 * A figure is a list of panels in columns; a panel has series against a left and
 * optionally a right axis, or series stacked as areas. Ranges, ticks and exponents are
 * chosen here; the caller provides values and labels. The legend is beside the curves, not
 * over them.
 *
 * NaN and infinite values are gaps. Long series are thinned to the width (extremes of each
 * pixel column are kept), so that the size of a figure does not grow with the number of
 * steps.
 */
#ifndef SK_RENDER_PLOT_H
#define SK_RENDER_PLOT_H

#include <stddef.h>
#include "base/status.h"

typedef struct sk_plot_series {
    const char *label; /* in the legend; NULL = not there */
    const double *x, *y;
    size_t count;
    int color; /* index into the palette, which repeats with dashes, or stripes in areas */
    int dash;  /* 0 solid, 1 dashed, 2 dotted, 3 dash and dot */
    int axis;  /* 0 left, 1 right */
} sk_plot_series;

enum { SK_PLOT_COLORS = 16, SK_PLOT_DASHES = 4 };

typedef struct sk_plot_panel {
    const char *title;
    const char *x_label;
    const char *y_label[2]; /* left, right; with their unit */
    int logarithmic[2];
    int from_zero[2]; /* the range begins at 0 */
    int stacked;      /* stacked areas; all series share the x of the first */
    const sk_plot_series *series;
    int series_count;
} sk_plot_panel;

typedef struct sk_plot_figure {
    const char *title; /* may be NULL */
    const sk_plot_panel *panels;
    int panel_count;
    int columns; /* of panels; 0 = 1 for up to two panels, else 2 */
} sk_plot_figure;

/* The format follows the ending, .png or .svg. The file appears whole or not at all. */
selkie_code sk_plot_write(const sk_plot_figure *figure, const char *path, selkie_error *error);

/* Round numbers at equal distances: all that lie within low..high, with a step of 1, 2 or 5 times a power of ten. */
typedef struct sk_plot_ticks {
    double first, step;
    int count;
    int exponent; /* labels are value / 10^exponent; a multiple of 3 */
    int decimals; /* of the labels */
} sk_plot_ticks;

/* At most `most` + 1 ticks; low < high, both finite. */
sk_plot_ticks sk_plot_choose_ticks(double low, double high, int most);
/* The label of tick `index`. */
char *sk_plot_tick_label(const sk_plot_ticks *ticks, int index, char text[32]);

#endif
