/* CRC-32 with zlib's polynomial, without zlib: for code that also runs where there is none. */
#ifndef SK_BASE_CRC_H
#define SK_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t sk_crc32(const void *data, size_t bytes);

#endif
