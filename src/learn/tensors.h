/* Tensors in a safetensors file: 8 bytes of length (little endian), a header in JSON, raw values.
 *
 *   {"__metadata__": {"key": "text", ...}, "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *
 * A file that is cut off, foreign or not consistent is refused with one message that names it.
 */
#ifndef SK_LEARN_TENSORS_H
#define SK_LEARN_TENSORS_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

enum { SK_TENSOR_NAME = 64, SK_TENSOR_TEXT = 128, SK_TENSOR_AXES = 4, SK_TENSORS = 64 };

typedef enum sk_tensor_type { SK_TENSOR_F32, SK_TENSOR_I32, SK_TENSOR_U8 } sk_tensor_type;

typedef struct sk_tensor {
    char name[SK_TENSOR_NAME];
    sk_tensor_type type;
    int axes;
    int64_t shape[SK_TENSOR_AXES];
    const void *data; /* [values] */
    int64_t values;   /* product of the shape */
} sk_tensor;

typedef struct sk_tensors {
    int count, text_count;
    sk_tensor tensors[SK_TENSORS];
    struct {
        char key[SK_TENSOR_NAME], value[SK_TENSOR_TEXT];
    } texts[SK_TENSORS];
    char *content; /* of a file that was read; NULL otherwise */
} sk_tensors;

/* Adds a tensor of one or two axes (columns = 0: one); the data must live until the file is made. */
void sk_tensors_add(sk_tensors *tensors, const char *name, sk_tensor_type type, const void *data, int64_t rows,
                    int64_t columns);
void sk_tensors_add_text(sk_tensors *tensors, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The file as bytes, to be released with sk_release(NULL, ...). */
selkie_code sk_tensors_encode(const sk_tensors *tensors, char **bytes, size_t *size, selkie_error *error);
selkie_code sk_tensors_read(const char *path, sk_tensors *tensors, selkie_error *error);
void sk_tensors_free(sk_tensors *tensors);

/* NULL if there is none. */
const sk_tensor *sk_tensors_find(const sk_tensors *tensors, const char *name);
const char *sk_tensors_text(const sk_tensors *tensors, const char *key);

#endif
