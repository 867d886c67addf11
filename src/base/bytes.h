/* Sizes in messages. */
#ifndef SK_BASE_BYTES_H
#define SK_BASE_BYTES_H

#include <stdio.h>

/* "12.5 MiB", "3.1 GiB", and beyond what machines have "1.2e+30 GiB". Returns `text`. */
static inline char *sk_bytes_text(double bytes, char text[32])
{
    double mebibytes = bytes / 1048576.0;
    if (mebibytes < 1000.0)
        snprintf(text, 32, "%.1f MiB", mebibytes);
    else
        snprintf(text, 32, mebibytes < 1e9 ? "%.1f GiB" : "%.2g GiB", mebibytes / 1024.0);
    return text;
}

#endif
