/* Speed of the viscous stress solver: a box of liquid, as the viscosity phase solves it (bulk viscosity, two passes).
 * One line for each size and strength, viscosity x time / cell size^2. Arguments: sizes, multiples of 8; default 32 64.
 */
#include <stdio.h>
#include <time.h>

#include "../tests/unit/stress_cases.h"

/* s of the processor, all threads together */
static double processor_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The fastest of a few solves: the machine may be busy. Half the processor time is the least that two cores take. */
static int bench(int size, float strength)
{
    cube c;
    sk_stress_report report = {0};
    selkie_error error;
    double setup = 1e30, solve = 1e30, processor = 1e30;
    make_cube(&c, 3, size);
    fill(&c, size, 0.0, strength, 4.0f);
    for (int n = 0; n < 3; n++) {
        set_velocity(&c, noise);
        const double begin = processor_time();
        if (!solve_cube(&c, 1e-4, 2, 2, &report, &error)) {
            fprintf(stderr, "%s\n", error.message);
            return 0;
        }
        setup = fmin(setup, report.setup_ms);
        solve = fmin(solve, report.solve_ms);
        processor = fmin(processor, processor_time() - begin);
    }
    const double unknowns = (double)report.unknowns;
    printf("3D %3d strength %6g  %8.0f unknowns %2d iterations (%.1e) | 2 threads: setup %7.1f ms solve %7.1f ms, "
           "together "
           "%5.2f us an unknown, processor %5.2f\n",
           size, (double)strength, unknowns, report.iterations, report.residual, setup, solve,
           (setup + solve) * 1e3 / unknowns, processor * 1e6 / unknowns);
    fflush(stdout);
    free_cube(&c);
    return 1;
}

int main(int argc, char **argv)
{
    static const float strengths[] = {1.0f, 100.0f, 10000.0f};
    const int usual[] = {32, 64};
    int good = 1;
    for (int n = 0; n < (argc > 1 ? argc - 1 : 2); n++)
        for (int s = 0; s < 3; s++)
            good &= bench(argc > 1 ? atoi(argv[n + 1]) : usual[n], strengths[s]);
    return !good;
}
