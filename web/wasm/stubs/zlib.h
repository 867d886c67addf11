/* Of zlib the checksum alone: this build reads and writes no compressed files. */
#ifndef SELKIE_WASM_ZLIB_H
#define SELKIE_WASM_ZLIB_H

#include <stddef.h>

#define Z_NULL NULL

typedef unsigned char Bytef;
typedef unsigned int uInt;
typedef unsigned long uLong;

static inline uLong crc32(uLong sum, const Bytef *bytes, uInt length)
{
    sum = ~sum & 0xffffffffu;
    for (uInt i = 0; bytes && i < length; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (0xedb88320u & (0u - (sum & 1u)));
    }
    return bytes ? ~sum & 0xffffffffu : 0;
}

static inline uLong crc32_z(uLong sum, const Bytef *bytes, size_t length)
{
    return crc32(sum, bytes, (uInt)length);
}

#endif
