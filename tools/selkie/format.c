/* Numbers as people read and write them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

char *format_bytes(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    while (bytes >= 1000 && unit < 6) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32,
             bytes >= 1e6                ? "%.3g %s"
             : unit == 0 || bytes >= 100 ? "%.0f %s"
                                         : "%.1f %s",
             bytes, units[unit]);
    return text;
}

char *format_duration(double seconds, char text[32])
{
    if (!(seconds >= 0) || seconds > 3.6e9)
        snprintf(text, 32, "?");
    else if (seconds < 10)
        snprintf(text, 32, "%.1f s", seconds);
    else if (seconds < 60)
        snprintf(text, 32, "%.0f s", seconds);
    else if (seconds < 3600)
        snprintf(text, 32, "%d min %02d s", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(text, 32, "%ld h %02ld min", (long)seconds / 3600, (long)seconds / 60 % 60);
    return text;
}

char *format_count(int64_t count, char text[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count);
    char *out = text;
    for (int i = 0; i < length; i++) {
        *out++ = digits[i];
        int left = length - 1 - i;
        if (left && left % 3 == 0 && digits[i] != '-')
            *out++ = ',';
    }
    *out = 0;
    return text;
}
