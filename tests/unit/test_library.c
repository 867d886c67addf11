/* Libraries that are loaded when they are first used: what is there is called, what is not makes a message. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/library.h"

#define FUNCTIONS(F) F(cos) F(pow)
SK_LIBRARY_TABLE(functions, FUNCTIONS);

static const char *const names[] = {FUNCTIONS(SK_LIBRARY_NAME)};

static void a_table_is_filled(void **state)
{
    (void)state;
    functions table = {0};
    selkie_error error = {0};
    if (!sk_library_is_there("libm.so.6", "/nowhere"))
        skip(); /* another system's name for it */
    assert_int_equal(sk_library_load("libm.so.6", "/nowhere", names, sizeof table, &table, "angles", &error),
                     SELKIE_OK);
    assert_true(table.cos(0.0) == 1.0 && table.pow(2.0, 10.0) == 1024.0);
}

static void a_library_that_is_gone_is_named(void **state)
{
    (void)state;
    functions table = {0};
    selkie_error error = {0};
    assert_false(sk_library_is_there("libselkie_gone.so.3", "/nowhere"));
    assert_int_equal(sk_library_load("libselkie_gone.so.3", "/nowhere", names, sizeof table, &table, "angles", &error),
                     SELKIE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "angles"));
    assert_non_null(strstr(error.message, "libselkie_gone.so.3"));
}

static void a_function_that_is_missing_is_named(void **state)
{
    (void)state;
    static const char *const wrong[] = {"cos", "selkie_has_no_such"};
    functions table = {0};
    selkie_error error = {0};
    if (!sk_library_is_there("libm.so.6", "/nowhere"))
        skip();
    assert_int_equal(sk_library_load("libm.so.6", "/nowhere", wrong, sizeof table, &table, "angles", &error),
                     SELKIE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "selkie_has_no_such"));
    assert_null(table.cos);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_filled),
        cmocka_unit_test(a_library_that_is_gone_is_named),
        cmocka_unit_test(a_function_that_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
