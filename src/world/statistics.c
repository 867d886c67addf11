/* The table of statistics as values. */
#include <math.h>
#include <stddef.h>
#include <selkie/statistics.h>

/* Half of one is nothing in an integer type. */
#define ROW(type, name, ...) {#name, __VA_ARGS__, .whole = (type)0.5 == (type)0},
static const selkie_statistic rows[] = {SELKIE_STATISTICS(ROW)};
#undef ROW

#define PANEL(name, title, left, right, flags) {title, {left, right}, flags},
static const selkie_panel_info panels[] = {SELKIE_PANELS(PANEL)};
#undef PANEL

enum { ROW_COUNT = sizeof rows / sizeof *rows };

int selkie_statistic_count(void)
{
    return ROW_COUNT;
}

const selkie_statistic *selkie_statistic_info(int index)
{
    return index >= 0 && index < ROW_COUNT ? &rows[index] : NULL;
}

const selkie_panel_info *selkie_statistic_panel(selkie_panel panel)
{
    return panel > SELKIE_PANEL_NONE && panel < SELKIE_PANEL_COUNT ? &panels[panel] : NULL;
}

double selkie_statistic_value(const selkie_statistics *statistics, int index)
{
    int row = 0;
#define VALUE(type, name, ...)                                                                                         \
    if (index == row++)                                                                                                \
        return (double)statistics->name;
    SELKIE_STATISTICS(VALUE)
#undef VALUE
    return NAN;
}
