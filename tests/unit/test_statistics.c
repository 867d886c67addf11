/* The table of statistics: every row is complete, and what the command shows follows from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "selkie/statistics_text.h"

static void rows_are_complete(void **state)
{
    (void)state;
    int progress[64] = {0}, most = 0;
    for (int i = 0; i < selkie_statistic_count(); i++) {
        const selkie_statistic *row = selkie_statistic_info(i);
        assert_true(*row->name && *row->meaning && row->unit);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(row->name, selkie_statistic_info(k)->name);
        assert_true(row->panel == SELKIE_PANEL_NONE || selkie_statistic_panel(row->panel));
        if (row->axis)
            assert_true(*selkie_statistic_panel(row->panel)->axes[1]);
        assert_in_range(row->progress, 0, 63);
        if (row->progress)
            progress[row->progress]++;
        most = row->progress > most ? row->progress : most;
        /* A format takes one number. */
        const char *percent = row->format ? strchr(row->format, '%') : NULL;
        assert_true(!row->format || (percent && !strchr(percent + 1, '%') && strpbrk(percent, "fge")));
    }
    /* Places in the progress line: each once, without a gap. */
    for (int rank = 1; rank <= most; rank++)
        assert_int_equal(progress[rank], 1);
    assert_null(selkie_statistic_info(-1));
    assert_null(selkie_statistic_info(selkie_statistic_count()));
    assert_null(selkie_statistic_panel(SELKIE_PANEL_NONE));
    assert_null(selkie_statistic_panel(SELKIE_PANEL_COUNT));
}

/* Every panel has a curve, and each of several a label of its own. */
static void panels_have_curves(void **state)
{
    (void)state;
    for (int panel = SELKIE_PANEL_NONE + 1; panel < SELKIE_PANEL_COUNT; panel++) {
        const char *labels[64];
        int count = 0;
        for (int i = 0; i < selkie_statistic_count(); i++)
            if (selkie_statistic_info(i)->panel == (selkie_panel)panel)
                labels[count++] = statistic_label(selkie_statistic_info(i));
        assert_true(count > 0);
        for (int a = 0; a < count; a++)
            for (int b = 0; b < a; b++)
                assert_string_not_equal(labels[a], labels[b]);
    }
}

static void values_are_those_of_the_struct(void **state)
{
    (void)state;
    selkie_statistics s = {
        .step = 7, .time = 0.5, .particles = 1234567, .volume_ratio = 0.25, .pressure_iterations = 9};
    char text[statistic_text_length];
    for (int i = 0; i < selkie_statistic_count(); i++) {
        const selkie_statistic *row = selkie_statistic_info(i);
        double value = selkie_statistic_value(&s, i);
        assert_true(isfinite(value));
        assert_true(strlen(format_statistic(row, value, text)) > 0);
        if (!strcmp(row->name, "particles"))
            assert_string_equal(text, "1,234,567");
        if (!strcmp(row->name, "time"))
            assert_string_equal(text, "0.5000 s");
        if (!strcmp(row->name, "volume_ratio"))
            assert_string_equal(text, "0.25000");
    }
    assert_true(isnan(selkie_statistic_value(&s, selkie_statistic_count())));
}

/* A row as a method would add it: nothing but the row says how it is shown. */
static void a_new_row_needs_no_other_edit(void **state)
{
    (void)state;
    static const double values[] = {1, 4, 2};
    selkie_statistic row = {"heat", "J", "of everything", .brief = "heat", .summary = SELKIE_SUMMARY_RANGE};
    char text[4 * statistic_text_length];
    assert_string_equal(format_summary(&row, values, 3, text), "2 J at the end, 1 J to 4 J");
    row.summary = SELKIE_SUMMARY_LAST;
    assert_string_equal(format_summary(&row, values, 3, text), "2 J");
    row.summary = SELKIE_SUMMARY_MEAN;
    assert_string_equal(format_summary(&row, values, 3, text), "2.333 J a step");
    row.summary = SELKIE_SUMMARY_TOTAL;
    assert_string_equal(format_summary(&row, values, 3, text), "7 J, 2.333 J a step");
    assert_string_equal(statistic_label(&row), "heat");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(panels_have_curves),
        cmocka_unit_test(values_are_those_of_the_struct),
        cmocka_unit_test(a_new_row_needs_no_other_edit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
