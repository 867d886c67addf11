/* Status codes and error messages.
 *
 * Every call that can fail returns a selkie_code and takes a selkie_error as its last
 * argument (NULL if the message is not needed). The library never prints, exits or
 * aborts. On failure the outputs are left as they were, or set to NULL for new
 * objects.
 */
#ifndef SELKIE_STATUS_H
#define SELKIE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define SELKIE_API
#else
#define SELKIE_API __attribute__((visibility("default")))
#endif

typedef enum selkie_code {
    SELKIE_OK = 0,
    SELKIE_ERROR_INPUT,       /* a value, key or geometry that cannot be used */
    SELKIE_ERROR_FILE,        /* missing, unreadable, unwritable, full disk */
    SELKIE_ERROR_FORMAT,      /* a file of another format, or a damaged one */
    SELKIE_ERROR_MEMORY,      /* not enough memory; the message says how much is needed */
    SELKIE_ERROR_DIVERGED,    /* a NaN, a blow-up, or a solve that does not converge */
    SELKIE_ERROR_UNSUPPORTED, /* needs a library that this build does not have */
    SELKIE_ERROR_INTERRUPTED, /* stopped by the caller's callback */
    SELKIE_ERROR_INTERNAL     /* an error of Selkie: please report it */
} selkie_code;

typedef struct selkie_error {
    selkie_code code;
    char message[1024]; /* one line: names the file, the key, the value and what would be right */
} selkie_error;

SELKIE_API const char *selkie_code_name(selkie_code code);

#ifdef __cplusplus
}
#endif
#endif
