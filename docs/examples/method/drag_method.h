/* Air drag: the example of docs/ARCHITECTURE.md, "Adding a method". */
#ifndef DRAG_METHOD_H
#define DRAG_METHOD_H

#include <string.h>
#include "drag_kernels.h"
#include "methods/method.h"

extern const sk_method sk_method_drag;

/* kg m/s  that drag has taken out since the start, along x. */
double sk_drag_momentum(const sk_step *step);

#endif
