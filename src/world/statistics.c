/* The table of statistics as values. */
#include <math.h>
#include <stddef.h>
#include <selkie/statistics.h>

#define ROW(type, name, unit, meaning) {#name, unit, meaning},
static const selkie_statistic rows[] = {SELKIE_STATISTICS(ROW)};
#undef ROW

enum { ROW_COUNT = sizeof rows / sizeof *rows };

int selkie_statistic_count(void)
{
    return ROW_COUNT;
}

const selkie_statistic *selkie_statistic_info(int index)
{
    return index >= 0 && index < ROW_COUNT ? &rows[index] : NULL;
}

double selkie_statistic_value(const selkie_statistics *statistics, int index)
{
    int row = 0;
#define VALUE(type, name, unit, meaning)                                                                               \
    if (index == row++)                                                                                                \
        return (double)statistics->name;
    SELKIE_STATISTICS(VALUE)
#undef VALUE
    return NAN;
}
