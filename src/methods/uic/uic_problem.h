/* The complementarity problem over the cells with mass, shared by the pressure and the density correction, and the
 * parts that differ between the tuned and the plain form. For files compiled per dimension. */
#ifndef SK_METHODS_UIC_UIC_PROBLEM_H
#define SK_METHODS_UIC_UIC_PROBLEM_H

#include "base/dimension.h"
#include "grid/predict.h"
#include "methods/step.h"

/* Data of a block in a problem. */
typedef struct uic_block {
    float excess;   /* the largest density above the room */
    uint8_t wanted; /* see uic_problem.partly */
} uic_block;

/* Definition of a problem. */
typedef struct uic_problem {
    const char *name;              /* for messages */
    const float *target;           /* density that must not exceed the room */
    const float *presence;         /* a second density that makes a cell take part; NULL = none */
    const float *lower;            /* bounds of the unknown; NULL = 0 */
    const float *spare;            /* SPARE: rows of full cells bound the flow; NULL = all rows bound `target` */
    const sk_poisson_modes *modes; /* rigid bodies that move under the unknown; NULL = none */
    double tolerance;
    double least_excess; /* no solve if the largest excess is below this */
    uic_block *blocks;   /* [block_count] */
    int is_first;        /* first problem of the step: its start must not depend on the step before */
    int has_tension;     /* the pressure outside full cells is that of surface tension (step->capillary) */
    int keeps_excess;    /* calm cells keep a small excess */
    int partly;          /* only marked blocks take part; cells around them are air */
    /* Builds a block's rows and finds its excess: sk_uic_build, sk_uic_build_plain. */
    void (*build)(const sk_step *step, int block, const struct uic_problem *problem);
} uic_problem;

void SK_DIM(sk_uic_build)(const sk_step *step, int block, const uic_problem *problem);
void SK_DIM(sk_uic_build_plain)(const sk_step *step, int block, const uic_problem *problem);

/* Builds and solves. The solution is in SK_FIELD_POTENTIAL, 0 outside; the right side stays in SK_FIELD_RIGHT_SIDE.
 * `excess` receives the largest density above the room. */
selkie_code SK_DIM(sk_uic_solve)(sk_step *step, const uic_problem *problem, sk_bounded_report *report, double *excess,
                                 selkie_error *error);

typedef selkie_code (*uic_predict_function)(sk_grid *grid, const sk_particles *particles,
                                            const sk_predict_options *options, selkie_error *error);

/* The density correction. */
typedef struct uic_correct_form {
    void (*build)(const sk_step *step, int block, const uic_problem *problem);
    /* Shifts on the faces, added to those of earlier passes if `again`. If `corrected`, also writes the resulting
     * density into PREDICTED, for the flux form of the prediction. */
    void (*shift)(const sk_step *step, int block, int again, int corrected);
    /* Updates FACE_DENSITY_* afterwards. */
    void (*update_faces)(const sk_step *step, int block);
    uic_predict_function predict;
} uic_correct_form;

selkie_code SK_DIM(sk_uic_correct_with)(sk_step *step, const uic_correct_form *form, selkie_error *error);

/* Prediction and pressure. */
typedef struct uic_pressure_form {
    void (*build)(const sk_step *step, int block, const uic_problem *problem);
    /* Stops flow into the domain's walls before there is pressure. */
    void (*stop_at_walls)(const sk_step *step, int block);
    void (*predict_by_flux)(const sk_step *step, int block);
    uic_predict_function predict;
    /* Finds the full cells and their spare room. */
    void (*mark_full)(const sk_step *step, int block);
    /* Stores the masses of the faces next to the surface; NULL = finds them where it needs them. */
    void (*weigh_surface)(const sk_step *step, int block);
    /* Marks surface cells; adds one layer of cells next to marked ones, from `from` into `to`. */
    void (*mark_surface)(const sk_step *step, int block, float *marks);
    void (*grow_surface)(const sk_step *step, int block, const float *from, float *to);
    /* The change of the velocities by the pressure, into the fields of the balance. */
    void (*balance)(const sk_step *step, int block, float scale);
    /* Velocities, changes, flags and flight after the solve; `scale` converts POTENTIAL to m/s. */
    void (*finish)(const sk_step *step, int block, float scale);
} uic_pressure_form;

selkie_code SK_DIM(sk_uic_balance_with)(sk_step *step, const uic_pressure_form *form, selkie_error *error);
selkie_code SK_DIM(sk_uic_predict_with)(sk_step *step, const uic_pressure_form *form, selkie_error *error);
selkie_code SK_DIM(sk_uic_pressure_with)(sk_step *step, const uic_pressure_form *form, selkie_error *error);

#endif
