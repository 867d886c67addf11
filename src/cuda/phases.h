/* The CUDA forms of the phases. Private to src/cuda. */
#ifndef SK_CUDA_PHASES_H
#define SK_CUDA_PHASES_H

#include "methods/step.h"

enum { SK_CUDA_MOST_FORCES = 32, SK_CUDA_MOST_PARTS = 64 }; /* parts: of a shape */

#define SK_CUDA_PHASES(dim)                                                                                            \
    selkie_code sk_cuda_sort_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_cuda_solids_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_cuda_to_grid_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_cuda_classify_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_cuda_forces_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_cuda_tension_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_cuda_tension_of_particles_##dim(sk_step *step, selkie_error *error);                                \
    selkie_code sk_cuda_balance_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_cuda_release_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_cuda_pressure_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_cuda_friction_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_cuda_extrapolate_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_move_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_cuda_wall_layer_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_cuda_to_particles_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_cuda_advect_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_cuda_uic_correct_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_uic_solids_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_cuda_uic_balance_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_uic_predict_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_uic_pressure_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_cuda_uic_extrapolate_##dim(sk_step *step, selkie_error *error);                                     \
    selkie_code sk_cuda_uic_shift_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_cuda_masses_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_cuda_density_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_cuda_classify_cells_##dim(sk_step *step, selkie_error *error);                                      \
    selkie_code sk_cuda_correct_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_cuda_couple_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_cuda_bodies_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_cuda_contacts_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_cuda_sort_again_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_cuda_soft_place_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_cuda_soft_sort_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_cuda_soft_mix_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_cuda_soft_remember_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_cuda_soft_part_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_cuda_soft_meet_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_cuda_soft_lead_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_cuda_soft_follow_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_part_droplets_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_cuda_find_splashes_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_cuda_fly_droplets_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_cuda_immersed_keep_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_cuda_immersed_place_##dim(sk_step *step, selkie_error *error);                                      \
    selkie_code sk_cuda_immersed_mix_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_cuda_immersed_remember_##dim(sk_step *step, selkie_error *error);                                   \
    selkie_code sk_cuda_immersed_part_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_cuda_immersed_to_points_##dim(sk_step *step, selkie_error *error);                                  \
    selkie_code sk_cuda_immersed_expel_##dim(sk_step *step, selkie_error *error);                                      \
    selkie_code sk_cuda_frozen_hold_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_frozen_find_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_frozen_couple_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_cuda_frozen_push_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_frozen_move_##dim(sk_step *step, selkie_error *error);                                         \
    /* Bodies in a solve: their lists, between its system and its start; the start in their space; what follows a      \
     * cycle, a product, and a fresh residual (from the solution before it, into the residual after it). */            \
    selkie_code sk_cuda_read_modes_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_cuda_drag_##dim(sk_step *step, selkie_error *error);                                                \
    /* The change of bodies by the pressure that balances gravity; with -1 it is taken back. */                        \
    selkie_code sk_cuda_hold_bodies_##dim(sk_step *step, double sign, selkie_error *error);                            \
    /* No-slip bodies in the viscous solve: memory, their faces before and after its weights, and their drag. */       \
    selkie_code sk_cuda_take_viscous_bodies_##dim(sk_step *step, selkie_error *error);                                 \
    selkie_code sk_cuda_close_bodies_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_cuda_join_bodies_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_give_drag_##dim(sk_step *step, selkie_error *error);                                           \
    void sk_cuda_start_modes_##dim(struct sk_cuda *cuda, const sk_step *step);                                         \
    void sk_cuda_deflate_##dim(struct sk_cuda *cuda);                                                                  \
    void sk_cuda_apply_modes_##dim(struct sk_cuda *cuda);                                                              \
    void sk_cuda_move_modes_##dim(struct sk_cuda *cuda);                                                               \
    void sk_cuda_subtract_modes_##dim(struct sk_cuda *cuda);                                                           \
    selkie_code sk_cuda_mpm_to_grid_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_mpm_nodes_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_cuda_mpm_to_points_##dim(sk_step *step, selkie_error *error);                                       \
    /* Memory of mpm, and its constants of the step. */                                                                \
    struct sk_cuda_constants;                                                                                          \
    selkie_code sk_cuda_take_mpm_##dim(sk_step *step, selkie_error *error);                                            \
    void sk_cuda_fill_mpm_##dim(const sk_step *step, struct sk_cuda_constants *constants);                             \
    selkie_code sk_cuda_grow_mpm_##dim(sk_step *step, size_t before, selkie_error *error);                             \
    selkie_code sk_cuda_viscosity_##dim(sk_step *step, selkie_error *error);                                           \
    /* Memory of viscosity, its constants of the step, and what became of its solve. */                                \
    selkie_code sk_cuda_take_viscosity_##dim(sk_step *step, selkie_error *error);                                      \
    void sk_cuda_fill_viscosity_##dim(const sk_step *step, struct sk_cuda_constants *constants);                       \
    selkie_code sk_cuda_report_viscosity_##dim(sk_step *step, selkie_error *error);                                    \
    selkie_code sk_cuda_heat_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_cuda_expand_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_cuda_heat_sums_##dim(sk_step *step, selkie_error *error);                                           \
    /* Memory of heat, its constants of the step, sums over the particles, and what became of its solve. */            \
    selkie_code sk_cuda_take_heat_##dim(sk_step *step, selkie_error *error);                                           \
    void sk_cuda_fill_heat_##dim(const sk_step *step, struct sk_cuda_constants *constants);                            \
    selkie_code sk_cuda_sum_heat_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_cuda_report_heat_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_sph_boundary_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_cuda_sph_neighbours_##dim(sk_step *step, selkie_error *error);                                      \
    selkie_code sk_cuda_sph_forces_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_cuda_sph_friction_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_cuda_sph_correct_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_cuda_sph_pressure_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_cuda_sph_wall_friction_##dim(sk_step *step, selkie_error *error);                                   \
    selkie_code sk_cuda_sph_integrate_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_cuda_hold_##dim(sk_step *step, selkie_error *error);                                                \
    /* Memory of SPH, more of it for more particles than before, and its constants of the step. */                     \
    struct sk_cuda_sent;                                                                                               \
    selkie_code sk_cuda_take_sph_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_cuda_grow_sph_##dim(sk_step *step, size_t before, selkie_error *error);                             \
    void sk_cuda_fill_sph_##dim(sk_step *step, struct sk_cuda_sent *sent);                                             \
    /* Constants of the step: flip ratio, advection, bounds. */                                                        \
    struct sk_cuda_sent;                                                                                               \
    void sk_cuda_fill_constants_##dim(const sk_step *step, struct sk_cuda_sent *sent);                                 \
    /* A solve of the system in the grid's fields: launches of its start, iterations, launches of its end, which       \
     * iterates further if needed. As many iterations as in the last solve of that kind follow each other faster than  \
     * in the loop of the end. */                                                                                      \
    void sk_cuda_start_solve_##dim(struct sk_cuda *cuda, const sk_step *step);                                         \
    selkie_code sk_cuda_iterate_##dim(sk_step *step, int kind, selkie_error *error);                                   \
    void sk_cuda_end_solve_##dim(struct sk_cuda *cuda, const sk_step *step);                                           \
    void sk_cuda_prepare_solve_##dim(struct sk_cuda *cuda);                                                            \
    /* A solve under bounds of the system in the grid's fields. The results are here afterwards. */                    \
    selkie_code sk_cuda_solve_bounded_##dim(sk_step *step, int kind, selkie_error *error);                             \
    selkie_code sk_cuda_take_bounded_##dim(sk_step *step, selkie_error *error);                                        \
    /* Parts of it: the levels of the free cells of a root, and a cycle over them. */                                  \
    void sk_cuda_coarsen_part_##dim(struct sk_cuda *cuda, int root);                                                   \
    void sk_cuda_restrict_problem_##dim(struct sk_cuda *cuda);                                                         \
    void sk_cuda_cycle_part_##dim(struct sk_cuda *cuda, int root);                                                     \
    /* Launches the sort that follows a density projection, unless it may need more memory. */                         \
    selkie_code sk_cuda_sort_ahead_##dim(sk_step *step, selkie_error *error);                                          \
    /* Launches of the transfer to the grid and of the density. */                                                     \
    void sk_cuda_launch_gather_##dim(struct sk_cuda *cuda, const sk_step *step);                                       \
    void sk_cuda_launch_weigh_##dim(struct sk_cuda *cuda, const sk_step *step);                                        \
    /* The density of cells beside thin walls: replaced by what they see, or less what they do not; of all particles   \
     * or of the liquid alone. */                                                                                      \
    void sk_cuda_launch_split_##dim(struct sk_cuda *cuda, int field, int hidden, int of_liquid);

selkie_code sk_cuda_particle_forces(sk_step *step, selkie_error *error);
selkie_code sk_cuda_sources(sk_step *step, selkie_error *error);
selkie_code sk_cuda_emit(sk_step *step, selkie_error *error);
selkie_code sk_cuda_roles_of_particles(sk_step *step, selkie_error *error);
selkie_code sk_cuda_animate(sk_step *step, selkie_error *error);

SK_CUDA_PHASES(2d)
SK_CUDA_PHASES(3d)

#endif
