#include "methods/sorting.h"

const sk_method sk_method_sorting = {
    .name = "sorting",
    .phases = {{.name = "sort", .slot = SK_SLOT_SORT, .run = SK_FORMS(sk_sort_particles, sk_sort_particles_plain)},
               {.name = "solids", .slot = SK_SLOT_SOLIDS, .run = SK_ONE_FORM(sk_move_solids)}},
};
