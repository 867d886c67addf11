#include "io/ogawa.h"

#include <string.h>

#include "base/memory.h"

/* Little endian. */
static void put_number(unsigned char out[8], uint64_t number)
{
    for (int k = 0; k < 8; k++)
        out[k] = (unsigned char)(number >> 8 * k);
}

selkie_code sk_ogawa_begin(const char *path, sk_atomic_file **file, selkie_error *error)
{
    static const unsigned char header[16] = {'O', 'g', 'a', 'w', 'a', 0 /* not complete */, 0, 1 /* version */};
    SK_TRY(sk_atomic_open(path, 0, file, error));
    return sk_atomic_write(*file, header, sizeof header, error);
}

selkie_code sk_ogawa_data(sk_atomic_file *file, const void *first, size_t first_bytes, const void *second,
                          size_t second_bytes, uint64_t *child, selkie_error *error)
{
    unsigned char size[8];
    *child = SK_OGAWA_EMPTY_DATA;
    if (!first_bytes && !second_bytes)
        return SELKIE_OK;
    *child |= sk_atomic_position(file);
    put_number(size, first_bytes + second_bytes);
    SK_TRY(sk_atomic_write(file, size, sizeof size, error));
    if (first_bytes)
        SK_TRY(sk_atomic_write(file, first, first_bytes, error));
    return second_bytes ? sk_atomic_write(file, second, second_bytes, error) : SELKIE_OK;
}

selkie_code sk_ogawa_add(sk_ogawa_group *group, uint64_t child, selkie_error *error)
{
    if (group->count == group->capacity) {
        const size_t more = 2 * group->capacity + 16;
        uint64_t *children = sk_allocate(NULL, more * sizeof *children);
        if (!children)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for the parts of an Alembic file");
        if (group->count)
            memcpy(children, group->children, group->count * sizeof *children);
        sk_release(NULL, group->children);
        group->children = children;
        group->capacity = more;
    }
    group->children[group->count++] = child;
    return SELKIE_OK;
}

selkie_code sk_ogawa_group_end(sk_atomic_file *file, sk_ogawa_group *group, uint64_t *child, selkie_error *error)
{
    unsigned char number[8];
    selkie_code code = SELKIE_OK;
    *child = 0;
    if (group->count) {
        *child = sk_atomic_position(file);
        put_number(number, group->count);
        code = sk_atomic_write(file, number, sizeof number, error);
    }
    for (size_t i = 0; i < group->count && !code; i++) {
        put_number(number, group->children[i]);
        code = sk_atomic_write(file, number, sizeof number, error);
    }
    sk_ogawa_group_free(group);
    return code;
}

void sk_ogawa_group_free(sk_ogawa_group *group)
{
    sk_release(NULL, group->children);
    memset(group, 0, sizeof *group);
}

selkie_code sk_ogawa_end(sk_atomic_file *file, uint64_t root, selkie_error *error)
{
    unsigned char place[8];
    const unsigned char complete = 0xff;
    put_number(place, root);
    int reason = sk_atomic_write_at(file, 8, place, sizeof place);
    if (!reason)
        reason = sk_atomic_write_at(file, 5, &complete, 1);
    return reason ? sk_atomic_fail(file, reason, error) : SELKIE_OK;
}
