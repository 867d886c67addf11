/* The forms in which a phase of the step exists.
 *
 * `plain` loops over the functions of the *_kernels.h headers, one particle, face, cell or pair at a time: the
 * reference. `tuned` is the vectorised form and the default. Tests run both on the same state and compare them.
 * `cuda` runs the functions of the plain form on a GPU, one thread each. Its phases are listed in src/cuda/, not in the
 * methods.
 */
#ifndef SK_BASE_BACKEND_H
#define SK_BASE_BACKEND_H

typedef enum sk_backend { SK_BACKEND_TUNED, SK_BACKEND_PLAIN, SK_BACKEND_CUDA, SK_BACKEND_COUNT } sk_backend;

#endif
