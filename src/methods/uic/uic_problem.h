/* The complementarity problem over the cells that hold mass, shared by the pressure and by the correction of density,
 * and the parts of both phases that each form has of its own. For files compiled per dimension. */
#ifndef SK_METHODS_UIC_UIC_PROBLEM_H
#define SK_METHODS_UIC_UIC_PROBLEM_H

#include "base/dimension.h"
#include "grid/predict.h"
#include "methods/step.h"

/* What is known of a block in a problem. */
typedef struct uic_block {
    float excess;   /* the largest density above the room */
    uint8_t wanted; /* see uic_problem.partly */
} uic_block;

/* What a problem is about. */
typedef struct uic_problem {
    const char *name;      /* for messages */
    const float *target;   /* density that must fit */
    const float *presence; /* density that makes a cell take part as well; NULL = none */
    const float *lower;    /* bounds of the unknown; NULL = 0 */
    double tolerance;
    double least_excess; /* where nothing is denser than this there is nothing to solve */
    uic_block *blocks;   /* [block_count] */
    int is_first;        /* of the step's problems: what it does must not depend on the step before */
    int partly;          /* only blocks that are wanted take part; around them is air */
    /* A block's rows and its excess: sk_uic_build, sk_uic_build_plain. */
    void (*build)(const sk_step *step, int block, const struct uic_problem *problem);
} uic_problem;

void SK_DIM(sk_uic_build)(const sk_step *step, int block, const uic_problem *problem);
void SK_DIM(sk_uic_build_plain)(const sk_step *step, int block, const uic_problem *problem);

/* Builds and solves; the solution is in SK_FIELD_POTENTIAL, 0 outside, and the right side stays in SK_FIELD_RIGHT_SIDE.
 * `excess` gets the largest density above the room. */
selkie_code SK_DIM(sk_uic_solve)(sk_step *step, const uic_problem *problem, sk_bounded_report *report, double *excess,
                                 selkie_error *error);

typedef selkie_code (*uic_predict_function)(sk_grid *grid, const sk_particles *particles,
                                            const sk_predict_options *options, selkie_error *error);

/* The correction of density. */
typedef struct uic_correct_form {
    void (*build)(const sk_step *step, int block, const uic_problem *problem);
    /* Shifts on the faces, added to those of passes before if `again`; if `corrected`, the density that they lead to in
     * PREDICTED: what the flux form of the prediction starts from. */
    void (*shift)(const sk_step *step, int block, int again, int corrected);
    /* FACE_DENSITY_* after that. */
    void (*update_faces)(const sk_step *step, int block);
    uic_predict_function predict;
} uic_correct_form;

selkie_code SK_DIM(sk_uic_correct_with)(sk_step *step, const uic_correct_form *form, selkie_error *error);

/* Prediction and pressure. */
typedef struct uic_pressure_form {
    void (*build)(const sk_step *step, int block, const uic_problem *problem);
    /* What flows into the domain's walls before there is pressure. */
    void (*stop_at_walls)(const sk_step *step, int block);
    void (*predict_by_flux)(const sk_step *step, int block);
    uic_predict_function predict;
    /* Cells of the surface, and one layer of cells next to marked ones, from `from` into `to`. */
    void (*mark_surface)(const sk_step *step, int block, float *marks);
    void (*grow_surface)(const sk_step *step, int block, const float *from, float *to);
    /* Velocities, changes, flags and flight after the solve; `scale` makes m/s of POTENTIAL. */
    void (*finish)(const sk_step *step, int block, float scale);
} uic_pressure_form;

selkie_code SK_DIM(sk_uic_predict_with)(sk_step *step, const uic_pressure_form *form, selkie_error *error);
selkie_code SK_DIM(sk_uic_pressure_with)(sk_step *step, const uic_pressure_form *form, selkie_error *error);

#endif
