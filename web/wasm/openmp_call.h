/* A region of OpenMP is a function whose arguments clang counts. WebAssembly checks the type of every call, so that
 * each number needs a call of its own. */
#ifndef SELKIE_WASM_OPENMP_CALL_H
#define SELKIE_WASM_OPENMP_CALL_H

#include <stdlib.h>

enum { REGION_ARGUMENTS = 24 }; /* at most */

typedef void (*region)(int *, int *, ...);

/* clang-format off */
#define TYPES_0 int *, int *
#define VALUES_0 &thread, &zero
#define TYPES_1 TYPES_0, void *
#define VALUES_1 VALUES_0, a[0]
#define TYPES_2 TYPES_1, void *
#define VALUES_2 VALUES_1, a[1]
#define TYPES_3 TYPES_2, void *
#define VALUES_3 VALUES_2, a[2]
#define TYPES_4 TYPES_3, void *
#define VALUES_4 VALUES_3, a[3]
#define TYPES_5 TYPES_4, void *
#define VALUES_5 VALUES_4, a[4]
#define TYPES_6 TYPES_5, void *
#define VALUES_6 VALUES_5, a[5]
#define TYPES_7 TYPES_6, void *
#define VALUES_7 VALUES_6, a[6]
#define TYPES_8 TYPES_7, void *
#define VALUES_8 VALUES_7, a[7]
#define TYPES_9 TYPES_8, void *
#define VALUES_9 VALUES_8, a[8]
#define TYPES_10 TYPES_9, void *
#define VALUES_10 VALUES_9, a[9]
#define TYPES_11 TYPES_10, void *
#define VALUES_11 VALUES_10, a[10]
#define TYPES_12 TYPES_11, void *
#define VALUES_12 VALUES_11, a[11]
#define TYPES_13 TYPES_12, void *
#define VALUES_13 VALUES_12, a[12]
#define TYPES_14 TYPES_13, void *
#define VALUES_14 VALUES_13, a[13]
#define TYPES_15 TYPES_14, void *
#define VALUES_15 VALUES_14, a[14]
#define TYPES_16 TYPES_15, void *
#define VALUES_16 VALUES_15, a[15]
#define TYPES_17 TYPES_16, void *
#define VALUES_17 VALUES_16, a[16]
#define TYPES_18 TYPES_17, void *
#define VALUES_18 VALUES_17, a[17]
#define TYPES_19 TYPES_18, void *
#define VALUES_19 VALUES_18, a[18]
#define TYPES_20 TYPES_19, void *
#define VALUES_20 VALUES_19, a[19]
#define TYPES_21 TYPES_20, void *
#define VALUES_21 VALUES_20, a[20]
#define TYPES_22 TYPES_21, void *
#define VALUES_22 VALUES_21, a[21]
#define TYPES_23 TYPES_22, void *
#define VALUES_23 VALUES_22, a[22]
#define TYPES_24 TYPES_23, void *
#define VALUES_24 VALUES_23, a[23]

static inline void call_region(region code, int thread, int count, void *const *a)
{
    int zero = 0;
    void (*plain)(void) = (void (*)(void))code;
    switch (count) {
#define CASE(n) case n: ((void (*)(TYPES_##n))plain)(VALUES_##n); return;
    CASE(0)
    CASE(1)
    CASE(2)
    CASE(3)
    CASE(4)
    CASE(5)
    CASE(6)
    CASE(7)
    CASE(8)
    CASE(9)
    CASE(10)
    CASE(11)
    CASE(12)
    CASE(13)
    CASE(14)
    CASE(15)
    CASE(16)
    CASE(17)
    CASE(18)
    CASE(19)
    CASE(20)
    CASE(21)
    CASE(22)
    CASE(23)
    CASE(24)
#undef CASE
    default:
        abort();
    }
}
/* clang-format on */

#endif
