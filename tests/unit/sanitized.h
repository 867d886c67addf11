/* SANITIZED is 1 in the build under AddressSanitizer. That build looks for mistakes of memory and arithmetic, at about
 * ten times the cost: there, tests take fewer steps and smaller systems, but visit every case. What needs the whole
 * size is judged by the plain build. */
#ifndef SK_TESTS_SANITIZED_H
#define SK_TESTS_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SK_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SK_SANITIZED 1
#endif
#ifndef SK_SANITIZED
#define SK_SANITIZED 0
#endif
enum { SANITIZED = SK_SANITIZED };

#endif
