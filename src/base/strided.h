/* Copies of small items between arrays with gaps. */
#ifndef SK_BASE_STRIDED_H
#define SK_BASE_STRIDED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void sk_copy_words(char *out, size_t out_stride, const char *data, size_t stride, const size_t bytes,
                                 int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(out + (size_t)i * out_stride, data + (size_t)i * stride, bytes);
}

/* Copies `count` items of `bytes` bytes. The usual sizes have loops of their own: a call of memcpy for each item takes
 * half as long again. */
static inline void sk_copy_strided(void *out, size_t out_stride, const void *data, size_t stride, size_t bytes,
                                   int64_t count)
{
    switch (bytes) {
    case 4:
        sk_copy_words(out, out_stride, data, stride, 4, count);
        break;
    case 8:
        sk_copy_words(out, out_stride, data, stride, 8, count);
        break;
    case 12:
        sk_copy_words(out, out_stride, data, stride, 12, count);
        break;
    default:
        sk_copy_words(out, out_stride, data, stride, bytes, count);
    }
}

#endif
