/* Reporting a failure: return sk_fail(error, code, format, ...). */
#ifndef SK_BASE_STATUS_H
#define SK_BASE_STATUS_H

#include <selkie/status.h>

/* Fills `error` (which may be NULL) and returns `code`. */
selkie_code sk_fail(selkie_error *error, selkie_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define SK_TRY(call)                                                                                                   \
    do {                                                                                                               \
        selkie_code sk_try_code = (call);                                                                              \
        if (sk_try_code != SELKIE_OK)                                                                                  \
            return sk_try_code;                                                                                        \
    } while (0)

#endif
