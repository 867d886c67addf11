/* What the fuzzers share: an input as a file, and containers with checksums that fit.
 *
 * A reader takes a path, so an input is written to one file of a temporary folder (in memory where there is /dev/shm)
 * that goes away with the program. */
#ifndef SELKIE_FUZZ_H
#define SELKIE_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's own names. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* Writes the input to input.ENDING in the temporary folder; the path stays valid until the next call. */
const char *fuzz_file(const char *ending, const void *data, size_t size);
/* A path in that folder, for a reader that writes. */
const char *fuzz_scratch(const char *name);

/* Stops the fuzzer with a message: something that must always hold did not. */
void fuzz_demand(int holds, const char *what);

/* Mutates a container (io/container.h) and then, mostly, mends sizes, offsets and checksums: blind flips would all end
 * at the first checksum and never reach the code behind it. An input that is no container becomes `sample`. */
size_t fuzz_mutate_container(uint8_t *data, size_t size, size_t max_size, unsigned int seed, const uint8_t *sample,
                             size_t sample_size);

#endif
