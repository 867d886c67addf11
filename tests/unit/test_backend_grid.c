/* The phases that move data between particles and grid, tuned and plain, on the same states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend_cases.h"
#include "step_cases.h"

/* A column of liquid that falls apart in a tank, beside a ball. */
static void dam(step_case *c, int dimension)
{
    case_begin(c, dimension, 24, 20, 12, 0.05);
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 9, 14, 12);
    c->scene.obstacle_count = 1;
    case_ball(c, &c->obstacles[0].shape, 13, 4, 6, 2.6);
}

static void test_solids(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        const backend_bounds same = {0};
        dam(&c, dimension);
        backend_check_scene(&c.scene, 2, "solids", &same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
