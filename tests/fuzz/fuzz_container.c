/* The container that checkpoints are made of: any bytes. What it takes must lie inside the input. */
#include <string.h>
#include "fuzz.h"
#include "io/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    selkie_error error;
    sk_container *container = NULL;
    if (sk_container_parse(data, size, "input", &container, &error) != SELKIE_OK) {
        fuzz_demand(container == NULL && error.message[0] != 0, "a refused container needs a message and no object");
        return 0;
    }
    for (int i = 0; i < sk_container_count(container); i++) {
        const sk_chunk *chunk = sk_container_at(container, i);
        const uint8_t *start = chunk->data;
        if (chunk->bytes > 0)
            fuzz_demand(start >= data && start + chunk->bytes <= data + size, "a chunk lies outside its file");
        fuzz_demand(memchr(chunk->name, 0, sizeof chunk->name) != NULL, "a chunk's name has no end");
        fuzz_demand(sk_container_find(container, chunk->name) == chunk, "a chunk is not found by its name");
    }
    sk_container_close(container);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    /* Two chunks of a few bytes; the mutator mends what this leaves out. */
    static uint8_t sample[192 + 8];
    sample[16] = 2;
    memcpy(sample + 32, "first", 6);
    sample[32 + 32] = 16;
    memcpy(sample + 80, "second", 7);
    sample[80 + 32] = 8;
    return fuzz_mutate_container(data, size, max_size, seed, sample, sizeof sample);
}
