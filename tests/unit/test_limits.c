/* What an enemy's input may cost: hashes that cannot be foreseen, budgets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

/* ---- hashes ---- */

static uint64_t rotated(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

/* The eight bytes whose XXH3 without a seed is `hash`, as an attacker would calculate them: XXH3 of eight bytes can be undone step by step. */
static void name_with_digest(uint64_t hash, char name[8]) {
    const uint64_t prime = 0x9FB21C651E98DF25ull;
    const uint64_t secret = 0x1cad21f72c81017cull ^ 0xdb979083e96dd4deull;
    uint64_t inverse = prime;
    for (int i = 0; i < 5; i++) /* Newton's method: each round doubles the bits that are right */
        inverse *= 2 - prime * inverse;
    hash ^= hash >> 28 ^ hash >> 56;
    hash *= inverse;
    hash ^= (hash >> 35) + 8;
    hash *= inverse;
    for (int i = 0; i < 63; i++) /* the 64th application gives back the first value */
        hash ^= rotated(hash, 49) ^ rotated(hash, 24);
    hash = rotated(hash ^ secret, 32);
    memcpy(name, &hash, 8);
}

/* How far from its slot the farthest entry of an index is. */
static uint32_t longest_way(const struct index *index) {
    uint32_t longest = 0;
    for (uint32_t i = 0; i <= index->mask; i++) {
        uint32_t way = (i - (uint32_t)(index->slots[i] >> 32)) & index->mask;
        if ((uint32_t)index->slots[i] && way > longest)
            longest = way;
    }
    return longest;
}

enum { FLOOD = 80000, LONG_WAY = 500 };

static void made_up_names_do_not_flood_an_index(void **state) {
    struct index keyed = {0};
    for (uint32_t i = 1; i <= FLOOD; i++) {
        char name[8];
        name_with_digest(0x77696b6bull << 32 | i, name);
        assert_true(digest_bytes(name, sizeof name) >> 32 == 0x77696b6b);
        index_add(&keyed, hash_bytes(name, sizeof name), i);
    }
    assert_true(longest_way(&keyed) < LONG_WAY);
    index_release(&keyed);
}

/* The same of numbers: those that a known multiplier makes small have nothing in the upper half, where the slot comes from. */
static void made_up_numbers_do_not_flood_an_index(void **state) {
    struct index keyed = {0};
    uint64_t key = 0xD6E8FEB86659FD93ull, inverse = key;
    for (int i = 0; i < 5; i++)
        inverse *= 2 - key * inverse;
    for (uint32_t i = 1; i <= FLOOD; i++) {
        uint64_t number = i * inverse;
        assert_true(number * key >> 32 == 0);
        index_add(&keyed, hash_mix(number, 0), i);
    }
    assert_true(longest_way(&keyed) < LONG_WAY);
    index_release(&keyed);
}

static void hashes_depend_on_the_seed_and_digests_do_not(void **state) {
    uint64_t before[2] = {hash_secret[0], hash_secret[1]};
    uint64_t digest = digest_bytes("name", 4), mixed = digest_mix(1, 2);
    hash_set_seed(1);
    uint64_t one = hash_bytes("name", 4), one_mixed = hash_mix(1, 2);
    hash_set_seed(2);
    assert_true(hash_bytes("name", 4) != one && hash_mix(1, 2) != one_mixed);
    hash_set_seed(1);
    assert_true(hash_bytes("name", 4) == one && hash_mix(1, 2) == one_mixed);
    assert_true(digest_bytes("name", 4) == digest && digest_mix(1, 2) == mixed);
    assert_true(before[0] != hash_secret[0]); /* it was random */
    memcpy(hash_secret, before, sizeof before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_up_names_do_not_flood_an_index),
        cmocka_unit_test(made_up_numbers_do_not_flood_an_index),
        cmocka_unit_test(hashes_depend_on_the_seed_and_digests_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
