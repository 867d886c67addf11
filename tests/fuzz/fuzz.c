#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char folder[256];
static char input_path[512];
static char scratch_path[512];

void fuzz_demand(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

static void remove_folder(void)
{
    if (input_path[0])
        unlink(input_path);
    if (scratch_path[0])
        unlink(scratch_path);
    rmdir(folder);
}

static const char *the_folder(void)
{
    if (folder[0])
        return folder;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/selkie-fuzz-XXXXXX", base);
    fuzz_demand(mkdtemp(folder) != NULL, "no temporary folder");
    atexit(remove_folder);
    return folder;
}

const char *fuzz_file(const char *ending, const void *data, size_t size)
{
    if (input_path[0])
        unlink(input_path);
    snprintf(input_path, sizeof input_path, "%s/input.%s", the_folder(), ending);
    FILE *file = fopen(input_path, "wb");
    fuzz_demand(file != NULL, "cannot make the input file");
    fuzz_demand(fwrite(data, 1, size, file) == size && fclose(file) == 0, "cannot write the input file");
    return input_path;
}

const char *fuzz_scratch(const char *name)
{
    snprintf(scratch_path, sizeof scratch_path, "%s/%s", the_folder(), name);
    return scratch_path;
}

/* --- Containers --- */

enum { header_bytes = 32, row_bytes = 48, alignment = 64, most_chunks = 64 };

static void put32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static void put64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

static size_t align_up(size_t offset)
{
    return (offset + alignment - 1) / alignment * alignment;
}

/* Lays the chunks out as io/container.h says, cutting what does not fit, and makes the checksums right. */
static size_t mend(uint8_t *data, size_t size, size_t max_size)
{
    uint32_t count;
    memcpy(&count, data + 16, sizeof count);
    size_t room = (size - header_bytes) / row_bytes;
    count = count > most_chunks ? most_chunks : count;
    count = count > room ? (uint32_t)room : count;
    size_t end = header_bytes + count * row_bytes;
    for (uint32_t c = 0; c < count; c++) {
        uint8_t *row = data + header_bytes + c * row_bytes;
        uint64_t bytes;
        memcpy(&bytes, row + 32, sizeof bytes);
        size_t start = align_up(end);
        if (start > max_size) {
            count = c;
            break;
        }
        for (size_t i = end; i < start; i++)
            data[i] = 0;
        size_t left = size > start ? size - start : 0;
        bytes = bytes > left ? left : bytes;
        row[23] = 0;
        put64(row + 24, start);
        put64(row + 32, bytes);
        put32(row + 40, (uint32_t)crc32(0, data + start, (uInt)bytes));
        put32(row + 44, 0);
        end = start + bytes;
    }
    if (count == 0)
        end = header_bytes;
    /* The first rows must not be cut off by a table that was larger: what is left over is simply not there. */
    memcpy(data, "\x89SLK\r\n\x1a\n", 8);
    put32(data + 8, 0x01020304);
    put32(data + 12, 1);
    put32(data + 16, count);
    put32(data + 20, 0);
    put64(data + 24, end);
    uLong checksum = crc32(0, data, header_bytes);
    if (count > 0)
        checksum = crc32(checksum, data + header_bytes, (uInt)(count * row_bytes));
    put32(data + 20, (uint32_t)checksum);
    return end;
}

size_t fuzz_mutate_container(uint8_t *data, size_t size, size_t max_size, unsigned int seed, const uint8_t *sample,
                             size_t sample_size)
{
    if ((size < header_bytes || seed % 64 == 0) && sample_size <= max_size) {
        memcpy(data, sample, sample_size);
        size = sample_size;
    }
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size < header_bytes || seed % 8 == 1)
        return size;
    return mend(data, size, max_size);
}
