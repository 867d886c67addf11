/* The particle store: records and attributes grow together, keep what they hold, and change places together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "particles/store.h"

static void fill(sk_particles *particles, int64_t until)
{
    while (particles->count < until) {
        int64_t i = particles->count;
        const double x[3] = {(double)i, 0.5 * (double)i, -(double)i}, v[3] = {1.0 + (double)i, 2.0, 3.0};
        sk_particle *particle = sk_particles_append(particles, x, v);
        assert_ptr_equal(particle, particles->records + i);
    }
}

static void check(const sk_particles *particles)
{
    for (int64_t i = 0; i < particles->count; i++) {
        const sk_particle *p = &particles->records[i];
        assert_int_equal(p->id, i);
        assert_int_equal(p->flags, 0);
        assert_true(p->position[0] == (float)i && p->position[1] == 0.5f * (float)i && p->position[2] == -(float)i);
        assert_true(p->velocity[0] == 1.0f + (float)i && p->velocity[1] == 2.0f && p->velocity[2] == 3.0f);
    }
}

static void records_are_one_vector(void **state)
{
    (void)state;
    assert_int_equal(sizeof(sk_particle), 32);
    assert_int_equal(offsetof(sk_particle, velocity), 12);
    assert_int_equal(offsetof(sk_particle, id), 24);
}

static void an_empty_store_can_be_freed(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 0};
    sk_particles particles;
    sk_particles_init(&particles, &memory);
    assert_int_equal(sk_particles_reserve(&particles, 0, NULL), SELKIE_OK);
    sk_particles_swap(&particles);
    assert_null(sk_particles_find_attribute(&particles, "affine"));
    sk_particles_free(&particles);
    sk_particles_free(&particles);
    assert_int_equal(memory.used, 0);
}

static void growth_keeps_records_and_attributes(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 0};
    sk_particles particles;
    sk_particles_init(&particles, &memory);
    sk_attribute *early = sk_particles_add_attribute(&particles, "early", 3, 0); /* before there is room */
    assert_non_null(early);
    assert_int_equal(sk_particles_reserve(&particles, 10, NULL), SELKIE_OK);
    fill(&particles, 10);
    sk_attribute *late = sk_particles_add_attribute(&particles, "late", 1, 1); /* and after */
    assert_non_null(late);
    for (int64_t i = 0; i < 10; i++) {
        for (int c = 0; c < 3; c++) {
            assert_int_equal(early->data[3 * i + c], 0);
            early->data[3 * i + c] = (uint32_t)(100 * i + c);
        }
        assert_int_equal(late->data[i], 0);
        late->data[i] = (uint32_t)(7 * i);
    }
    for (int64_t room = 11; room < 5000; room = room * 2 + 1) {
        assert_int_equal(sk_particles_reserve(&particles, room, NULL), SELKIE_OK);
        assert_true(particles.capacity >= (size_t)room);
        fill(&particles, room);
        check(&particles);
        for (int64_t i = 0; i < particles.count; i++) {
            for (int c = 0; c < 3; c++)
                assert_int_equal(early->data[3 * i + c], i < 10 ? 100 * i + c : 0);
            assert_int_equal(late->data[i], i < 10 ? 7 * i : 0);
        }
    }
    assert_int_equal((uintptr_t)particles.records % 64, 0);
    sk_particles_free(&particles);
    assert_int_equal(memory.used, 0);
    assert_int_equal(particles.attribute_count, 0);
}

/* Values of a particle that comes later are zero, whatever the sort left behind in the other copy. */
static void appended_attributes_are_zero(void **state)
{
    (void)state;
    sk_particles particles;
    sk_particles_init(&particles, NULL);
    sk_attribute *attribute = sk_particles_add_attribute(&particles, "affine", 9, 0);
    assert_int_equal(sk_particles_reserve(&particles, 8, NULL), SELKIE_OK);
    fill(&particles, 4);
    memset(attribute->data, 0xee, 8 * 9 * 4);
    memset(attribute->spare, 0xdd, 8 * 9 * 4);
    fill(&particles, 5);
    sk_particles_swap(&particles);
    particles.records[0].id = 77;
    fill(&particles, 6);
    for (int c = 0; c < 9; c++)
        assert_int_equal(attribute->data[9 * 5 + c], 0);
    sk_particles_free(&particles);
}

static void swap_exchanges_everything(void **state)
{
    (void)state;
    sk_particles particles;
    sk_particles_init(&particles, NULL);
    sk_attribute *a = sk_particles_add_attribute(&particles, "a", 2, 0),
                 *b = sk_particles_add_attribute(&particles, "b", 1, 1);
    assert_int_equal(sk_particles_reserve(&particles, 3, NULL), SELKIE_OK);
    fill(&particles, 3);
    void *before[6] = {particles.records, particles.spare, a->data, a->spare, b->data, b->spare};
    sk_particles_swap(&particles);
    assert_ptr_equal(particles.records, before[1]);
    assert_ptr_equal(particles.spare, before[0]);
    assert_ptr_equal(a->data, before[3]);
    assert_ptr_equal(a->spare, before[2]);
    assert_ptr_equal(b->data, before[5]);
    assert_ptr_equal(b->spare, before[4]);
    sk_particles_swap(&particles);
    assert_ptr_equal(particles.records, before[0]);
    check(&particles);
    sk_particles_free(&particles);
}

static void the_dead_are_dropped_in_order(void **state)
{
    (void)state;
    for (int every = 1; every <= 5; every++) {
        sk_particles particles;
        sk_particles_init(&particles, NULL);
        sk_attribute *a = sk_particles_add_attribute(&particles, "a", 2, 1);
        assert_int_equal(sk_particles_reserve(&particles, 100, NULL), SELKIE_OK);
        fill(&particles, 100);
        for (uint32_t i = 0; i < 100; i++) {
            a->data[2 * i] = i;
            a->data[2 * i + 1] = 1000 + i;
            particles.records[i].flags = i % (uint32_t)every == 0 ? SK_PARTICLE_DEAD : 0;
        }
        sk_particles_drop_dead(&particles);
        assert_int_equal(particles.count, 100 - (99 / every + 1));
        uint32_t last = 0;
        for (int64_t p = 0; p < particles.count; p++) {
            uint32_t id = particles.records[p].id;
            assert_true(id > last && id % (uint32_t)every != 0);
            assert_true(particles.records[p].position[0] == (float)id);
            assert_int_equal(a->data[2 * p], id);
            assert_int_equal(a->data[2 * p + 1], 1000 + id);
            last = id;
        }
        sk_particles_free(&particles);
    }
}

static void attributes_have_names(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 0};
    sk_particles particles;
    sk_particles_init(&particles, &memory);
    assert_int_equal(sk_particles_reserve(&particles, 100, NULL), SELKIE_OK);
    sk_attribute *heat = sk_particles_add_attribute(&particles, "heat", 1, 0);
    assert_non_null(heat);
    assert_ptr_equal(sk_particles_add_attribute(&particles, "heat", 1, 0), heat); /* found again */
    assert_null(sk_particles_add_attribute(&particles, "heat", 2, 0));            /* but not as something else */
    assert_ptr_equal(sk_particles_find_attribute(&particles, "heat"), heat);
    assert_null(sk_particles_find_attribute(&particles, "hea"));
    assert_null(sk_particles_add_attribute(&particles, "a name of more than thirty-one letters", 1, 0));
    assert_non_null(sk_particles_add_attribute(&particles, "a name of thirty-one letters ok", 1, 0));
    char name[32];
    for (int a = 2; a < SK_MAX_ATTRIBUTES; a++) {
        snprintf(name, sizeof name, "number %d", a);
        assert_non_null(sk_particles_add_attribute(&particles, name, 1, 1));
    }
    assert_null(sk_particles_add_attribute(&particles, "one too many", 1, 1));
    assert_int_equal(particles.attribute_count, SK_MAX_ATTRIBUTES);
    assert_int_equal(heat->is_integer, 0);
    sk_particles_free(&particles);
    assert_int_equal(memory.used, 0);
}

/* A store that cannot grow says how much it wanted, and stays as it was. */
static void growth_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    for (size_t limit = 6000; limit < 60000; limit += 1000) {
        sk_memory memory = {0, 0, limit};
        sk_particles particles;
        sk_particles_init(&particles, &memory);
        sk_particles_add_attribute(&particles, "affine", 9, 0);
        selkie_error error;
        assert_int_equal(sk_particles_reserve(&particles, 20, &error), SELKIE_OK);
        fill(&particles, 20);
        selkie_code code = sk_particles_reserve(&particles, 400, &error);
        if (code != SELKIE_OK) {
            assert_int_equal(code, SELKIE_ERROR_MEMORY);
            assert_non_null(strstr(error.message, "400 particles"));
            assert_int_equal(particles.capacity, 20);
        }
        assert_int_equal(particles.count, 20);
        check(&particles);
        sk_particles_free(&particles);
        assert_int_equal(memory.used, 0);
        /* An attribute that does not fit is not there at all. */
        sk_particles_init(&particles, &memory);
        assert_int_equal(sk_particles_reserve(&particles, 40, &error), SELKIE_OK);
        if (!sk_particles_add_attribute(&particles, "big", 300, 0))
            assert_int_equal(particles.attribute_count, 0);
        sk_particles_free(&particles);
        assert_int_equal(memory.used, 0);
    }
}

static void too_many_particles_are_refused(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 1 << 20};
    sk_particles particles;
    sk_particles_init(&particles, &memory);
    selkie_error error;
    assert_int_equal(sk_particles_reserve(&particles, INT64_MAX, &error), SELKIE_ERROR_MEMORY);
    assert_int_equal(sk_particles_reserve(&particles, (int64_t)UINT32_MAX, &error), SELKIE_ERROR_MEMORY);
    assert_non_null(strstr(error.message, "at most"));
    assert_int_equal(memory.used, 0);
    sk_particles_free(&particles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_one_vector),
        cmocka_unit_test(an_empty_store_can_be_freed),
        cmocka_unit_test(growth_keeps_records_and_attributes),
        cmocka_unit_test(appended_attributes_are_zero),
        cmocka_unit_test(swap_exchanges_everything),
        cmocka_unit_test(the_dead_are_dropped_in_order),
        cmocka_unit_test(attributes_have_names),
        cmocka_unit_test(growth_beyond_the_limit_is_refused),
        cmocka_unit_test(too_many_particles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
