/* Plots: ticks are round and few, figures of any data can be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "render/plot.h"
#include "selkie_config.h"

static void ticks_are_round_and_inside(void **state)
{
    (void)state;
    static const double ranges[][2] = {{0, 1},           {0.983, 1.002}, {-3, 3},    {1e-9, 7e-9},
                                       {274000, 275000}, {-1e12, 4e12},  {0.1, 0.7}, {0, 1e-30}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        double low = ranges[i][0], high = ranges[i][1], span = high - low;
        sk_plot_ticks ticks = sk_plot_choose_ticks(low, high, 6);
        assert_in_range(ticks.count, 2, 7);
        assert_true(ticks.first >= low - 1e-6 * span);
        assert_true(ticks.first + (ticks.count - 1) * ticks.step <= high + 1e-6 * span);
        double digit = ticks.step / pow(10, floor(log10(ticks.step) + 1e-9));
        assert_true(fabs(digit - 1) < 1e-6 || fabs(digit - 2) < 1e-6 || fabs(digit - 5) < 1e-6);
        assert_int_equal(ticks.exponent % 3, 0);
    }
}

/* Neighbouring labels must differ, or the axis lies. */
static void labels_tell_ticks_apart(void **state)
{
    (void)state;
    static const double ranges[][2] = {{0, 1}, {0.99999, 1.00001}, {-0.004, 0.003}, {123456, 123460}, {0, 2.5e-7}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        sk_plot_ticks ticks = sk_plot_choose_ticks(ranges[i][0], ranges[i][1], 6);
        char before[32] = "", label[32];
        for (int k = 0; k < ticks.count; k++) {
            sk_plot_tick_label(&ticks, k, label);
            assert_string_not_equal(before, label);
            strcpy(before, label);
        }
    }
    sk_plot_ticks ticks = sk_plot_choose_ticks(0, 1, 5);
    char label[32];
    assert_string_equal(sk_plot_tick_label(&ticks, 0, label), "0.0");
    assert_string_equal(sk_plot_tick_label(&ticks, 1, label), "0.2");
    ticks = sk_plot_choose_ticks(0, 275000, 6);
    assert_int_equal(ticks.exponent, 3);
    ticks = sk_plot_choose_ticks(-2, 2, 4);
    assert_string_equal(sk_plot_tick_label(&ticks, 0, label), "\xe2\x88\x92"
                                                              "2");
}

static char folder[] = "/tmp/selkie_test_plot_XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* Writes a figure, checks how its file begins and returns its size. */
static long write_and_look(const sk_plot_figure *figure, const char *ending, const char *beginning)
{
    char path[256], start[8] = "";
    selkie_error error = {0};
    snprintf(path, sizeof path, "%s/figure%s", folder, ending);
    selkie_code code = sk_plot_write(figure, path, &error);
    if (code != SELKIE_OK)
        fail_msg("%s", error.message);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(start, 1, strlen(beginning), file), strlen(beginning));
    assert_memory_equal(start, beginning, strlen(beginning));
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    fclose(file);
    unlink(path);
    return size;
}

static void figures_are_written(void **state)
{
    (void)state;
#if !SELKIE_HAVE_CAIRO
    skip();
#endif
    enum { count = 200000 };
    double *x = calloc(count, sizeof *x), *y = calloc(count, sizeof *y), *z = calloc(count, sizeof *z);
    assert_true(x && y && z);
    for (int i = 0; i < count; i++) {
        x[i] = i * 1e-3;
        y[i] = sin(i * 0.01);
        z[i] = pow(10, -4 + y[i]);
    }
    sk_plot_series curves[] = {{"left", x, y, count, 0, 0, 0}, {"right", x, z, count, 1, 1, 1}};
    sk_plot_series areas[] = {{"one", x, z, count, 0, 0, 0}, {"two", x, z, count, 13, 0, 0}};
    sk_plot_panel panels[] = {
        {.title = "curves",
         .x_label = "time (s)",
         .y_label = {"a", "b"},
         .logarithmic = {0, 1},
         .series = curves,
         .series_count = 2},
        {.title = "areas",
         .x_label = "time (s)",
         .y_label = {"ms", NULL},
         .stacked = 1,
         .series = areas,
         .series_count = 2},
        {.title = "nothing", .x_label = "time (s)"},
    };
    sk_plot_figure figure = {.title = "a title", .panels = panels, .panel_count = 3};
    write_and_look(&figure, ".png", "\x89PNG");
    /* Thinned: 600,000 points must not become megabytes of path. */
    long size = write_and_look(&figure, ".svg", "<?xml");
    assert_true(size < 2000000);
    free(x);
    free(y);
    free(z);
}

/* Constants, gaps, single points, infinities, zeros on a logarithmic axis: whatever a run that failed leaves behind. */
static void odd_data_is_drawn(void **state)
{
    (void)state;
#if !SELKIE_HAVE_CAIRO
    skip();
#endif
    double x[] = {0, 1, 2, 3}, same[] = {5, 5, 5, 5}, zeros[4] = {0}, gaps[] = {1, NAN, INFINITY, 2},
           nothing[] = {NAN, NAN, NAN, NAN}, huge[] = {-1e300, 1e300, 0, 1};
    double *all[] = {same, zeros, gaps, nothing, huge};
    sk_plot_series series[15];
    sk_plot_panel panels[15];
    memset(panels, 0, sizeof panels);
    for (int i = 0; i < 15; i++) {
        series[i] = (sk_plot_series){
            "with a label that is much longer than the legend is wide", x, all[i % 5], i % 2 ? 4 : 1, -i, i, i == 7};
        panels[i] = (sk_plot_panel){.series = &series[i],
                                    .series_count = 1,
                                    .stacked = i >= 10,
                                    .logarithmic = {i >= 5, 1},
                                    .from_zero = {i % 2, 0}};
    }
    sk_plot_figure figure = {.panels = panels, .panel_count = 15, .columns = 4};
    write_and_look(&figure, ".svg", "<?xml");
    figure.panel_count = 0;
    write_and_look(&figure, ".png", "\x89PNG");
}

/* A number for what a figure looks like: of its lines (FNV-1a), without the one in which cairo numbers all surfaces of
 * a program. */
static uint64_t look_of(const sk_plot_figure *figure)
{
    char path[256];
    selkie_error error = {0};
    snprintf(path, sizeof path, "%s/look.svg", folder);
    if (sk_plot_write(figure, path, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint64_t hash = 14695981039346656037u;
    for (char line[4096]; fgets(line, sizeof line, file);)
        for (const char *c = strstr(line, "id=\"surface") ? "" : line; *c; c++)
            hash = (hash ^ (uint64_t)(unsigned char)*c) * 1099511628211u;
    fclose(file);
    unlink(path);
    return hash;
}

/* More series than the palette has colours: no two look alike, neither as curves nor as areas. */
static void many_series_differ(void **state)
{
    (void)state;
#if !SELKIE_HAVE_CAIRO
    skip();
#endif
    enum { most = 4 * SK_PLOT_COLORS };
    static uint64_t looks[most];
    const double x[] = {0, 1}, y[] = {1, 1};
    for (int stacked = 0; stacked < 2; stacked++)
        for (int i = 0; i < most; i++) {
            sk_plot_series series = {.x = x, .y = y, .count = 2, .color = i};
            sk_plot_panel panel = {.stacked = stacked, .series = &series, .series_count = 1};
            sk_plot_figure figure = {.panels = &panel, .panel_count = 1};
            looks[i] = look_of(&figure);
            assert_true(looks[i] == look_of(&figure));
            for (int before = 0; before < i; before++)
                if (looks[before] == looks[i])
                    fail_msg("series %d looks like series %d", i, before);
        }
}

/* Where stripes of areas lie: x + y, or x - y, of the first point of each, over their distance; the farthest that any
 * is from a whole number. `lean` is 1 or -1. */
static double stripes_off(const sk_plot_figure *figure, int lean, int *count)
{
    const double distance = 6;
    char path[256];
    selkie_error error = {0};
    snprintf(path, sizeof path, "%s/stripes.svg", folder);
    if (sk_plot_write(figure, path, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char line[1 << 20];
    double off = 0, x, y;
    *count = 0;
    while (fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "stroke-opacity:0.55") ? strstr(line, " d=\"") : NULL;
        while (at && (at = strstr(at, "M "))) {
            assert_int_equal(sscanf(at, "M %lf %lf", &x, &y), 2);
            off = fmax(off, fabs(remainder((x + lean * y) / distance, 1)));
            at++;
            ++*count;
        }
    }
    fclose(file);
    unlink(path);
    return off;
}

/* Stripes go on in the area above as they were in the one below, whichever way they lean. */
static void stripes_of_neighbours_meet(void **state)
{
    (void)state;
#if !SELKIE_HAVE_CAIRO
    skip();
#endif
    const double x[] = {0, 1}, low[] = {0.31, 0.31}, high[] = {0.47, 0.47};
    for (int round = 1; round < 3; round++) {
        sk_plot_series areas[] = {{.x = x, .y = low, .count = 2, .color = round * SK_PLOT_COLORS},
                                  {.x = x, .y = high, .count = 2, .color = round * SK_PLOT_COLORS}};
        sk_plot_panel panel = {.stacked = 1, .series = areas, .series_count = 2};
        sk_plot_figure figure = {.panels = &panel, .panel_count = 1};
        int count;
        assert_true(stripes_off(&figure, round == 1 ? 1 : -1, &count) < 1e-3);
        assert_true(count > 20);
    }
}

/* Every label is there: what many of them lack is room between them. */
static void long_legends_are_whole(void **state)
{
    (void)state;
#if !SELKIE_HAVE_CAIRO
    skip();
#endif
    enum { most = 19 };
    const double x[] = {0, 1}, y[] = {1, 1};
    sk_plot_series series[most];
    uint64_t before = 0;
    for (int i = 0; i < most; i++)
        series[i] = (sk_plot_series){.label = "a", .x = x, .y = y, .count = 2};
    sk_plot_panel panel = {.series = series, .series_count = most};
    sk_plot_figure figure = {.panels = &panel, .panel_count = 1};
    for (int i = 0; i < most; i++) {
        series[i].label = "b";
        uint64_t look = look_of(&figure);
        assert_true(look != before);
        before = look;
    }
}

static void bad_paths_are_refused(void **state)
{
    (void)state;
    sk_plot_figure figure = {0};
    selkie_error error = {0};
#if SELKIE_HAVE_CAIRO
    assert_int_equal(sk_plot_write(&figure, "figure.gif", &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "figure.gif"));
    assert_int_equal(sk_plot_write(&figure, "/nonexistent/figure.png", &error), SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "/nonexistent"));
#else
    assert_int_equal(sk_plot_write(&figure, "figure.png", &error), SELKIE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "libcairo2-dev"));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round_and_inside), cmocka_unit_test(labels_tell_ticks_apart),
        cmocka_unit_test(figures_are_written),        cmocka_unit_test(odd_data_is_drawn),
        cmocka_unit_test(many_series_differ),         cmocka_unit_test(long_legends_are_whole),
        cmocka_unit_test(stripes_of_neighbours_meet), cmocka_unit_test(bad_paths_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
