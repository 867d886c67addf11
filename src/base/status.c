#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

const char *selkie_code_name(selkie_code code)
{
    static const char *const names[] = {"ok",       "bad input",   "file error",  "bad format",    "out of memory",
                                        "diverged", "unsupported", "interrupted", "internal error"};
    return (unsigned)code < sizeof names / sizeof *names ? names[code] : "unknown";
}

selkie_code sk_fail(selkie_error *error, selkie_code code, const char *format, ...)
{
    if (error) {
        error->code = code;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return code;
}
