/* Address spaces, threads and comms: perf's rules and the right ones, a simple model, and how much memory a million mmaps take. */
#include "space_model.h"

#include "space/maps.h"

#include <setjmp.h>
#include <cmocka.h>

static struct key at(uint64_t time) {
    return (struct key){.time = time};
}

static void map(struct spaces *spaces, uint64_t time, int32_t pid, uint64_t start, uint64_t end,
                uint32_t object) {
    struct key key = at(time);
    struct mapping mapping = {
        .start = start, .end = end, .offset = start, .object = object, .executable = true};
    spaces_mmap(spaces, &key, pid, pid, &mapping);
}

static void fork_process(struct spaces *spaces, uint64_t time, int32_t child, int32_t parent) {
    struct key key = at(time);
    spaces_fork(spaces, &key, child, child, parent, parent, false);
}

static void name(struct spaces *spaces, uint64_t time, int32_t pid, int32_t tid, uint32_t comm,
                 bool exec) {
    struct key key = at(time);
    spaces_comm(spaces, &key, pid, tid, comm, exec);
}

static struct space_at ask(const struct spaces *spaces, uint64_t time, int32_t pid, int32_t tid) {
    struct space_cursor cursor = {0};
    struct key key = at(time);
    struct space_at answer;
    spaces_at(spaces, &cursor, pid, tid, &key, &answer);
    return answer;
}

/* The object at an address of a process, 0 for none. */
static uint32_t object_at(const struct spaces *spaces, uint64_t time, int32_t pid,
                          uint64_t address) {
    const struct mapping *found = space_find(spaces, ask(spaces, time, pid, pid).user, address);
    return found ? found->object : 0;
}

static void test_model(void **state) {
    uint64_t seed = 1;
    for (unsigned round = 0; round < 1500; round++) {
        uint8_t bytes[1 + 4 * 60];
        for (size_t i = 0; i < sizeof bytes; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (uint8_t)(seed >> 56);
        }
        bytes[0] = (uint8_t)round;
        model_run(bytes, 1 + 4 * (1 + round % 60));
    }
}

/* ---- a history that goes on ---- */

static uint32_t one_more(void *context, uint32_t number) {
    return number + *(const uint32_t *)context;
}

static const struct space_translation by_ten = {one_more, one_more, &(uint32_t){10}};

static void agree(const struct spaces *whole, const struct spaces *part, const struct key *key,
                  int32_t pid, int32_t tid, uint32_t shift) {
    struct space_cursor cursors[2] = {0};
    struct space_at a, b;
    spaces_at(whole, &cursors[0], pid, tid, key, &a);
    spaces_at(part, &cursors[1], pid, tid, key, &b);
    assert_int_equal(a.comm ? a.comm + shift : 0, b.comm);
    assert_int_equal(a.thread == UINT32_MAX, b.thread == UINT32_MAX);
    const uint32_t roots[2][2] = {{a.user, b.user}, {a.kernel, b.kernel}};
    for (unsigned kind = 0; kind < 2; kind++)
        for (unsigned i = 0; i < CELLS; i++) {
            const struct mapping *x = space_find(whole, roots[kind][0], model_boundary(i)),
                                 *y = space_find(part, roots[kind][1], model_boundary(i));
            assert_int_equal(!x, !y);
            if (!x)
                continue;
            assert_int_equal(x->object + shift, y->object);
            assert_true(x->start == y->start && x->end == y->end && x->offset == y->offset);
        }
}

/* What the numbers of comms and objects became, in what is applied later, too. */
static void apply_shifted(struct spaces *spaces, struct model_operation op, uint32_t shift) {
    op.mapping.object += shift;
    op.comm += shift;
    model_apply_real(spaces, &op);
}

/* Operations in two or three histories, one behind the other, are the same as in one. */
static void test_continue(void **state) {
    enum { COUNT = 60 };
    uint64_t seed = 7;
    for (unsigned round = 0; round < 800; round++) {
        uint8_t bytes[4 * COUNT];
        struct model_operation ops[COUNT];
        struct model_bytes left = {bytes, sizeof bytes};
        uint64_t time = 1;
        for (size_t i = 0; i < sizeof bytes; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (uint8_t)(seed >> 56);
        }
        struct spaces *whole = spaces_new(NULL), *part = spaces_new(NULL);
        uint32_t shift = 0;
        size_t first = 0;
        for (size_t i = 0; i < COUNT; i++) {
            ops[i] = model_decode(&left, &time, i + 1);
            bool nobody = ops[i].pid == -1 || ops[i].tid == -1 || ops[i].parent_pid == -1 ||
                          ops[i].parent_tid == -1;
            if (ops[i].kind > 8 && nobody)
                ops[i].kind = 0; /* who nobody is, is not known across histories */
            if (i == COUNT / 3 || i == COUNT / 2) {
                spaces_seal(part);
                struct spaces *next = spaces_continue(part, 0, &by_ten);
                spaces_free(part);
                part = next;
                shift += 10;
                first = i;
            }
            model_apply_real(whole, &ops[i]);
            apply_shifted(part, ops[i], shift);
        }
        spaces_seal(whole);
        spaces_seal(part);
        for (size_t i = first; i < COUNT; i++)
            for (int32_t pid = 0; pid < IDS - 1; pid++)
                for (int32_t tid = 0; tid < IDS - 1; tid++)
                    agree(whole, part, &ops[i].key, pid, tid, shift);
        spaces_free(whole);
        spaces_free(part);
    }
}

/* However long it goes on, it takes what lives. */
static void test_continue_is_bounded(void **state) {
    struct spaces *spaces = spaces_new(NULL);
    uint64_t time = 1;
    map(spaces, time, 1, 0x1000, 0x2000, 1);
    for (unsigned window = 0; window < 50; window++) {
        uint64_t began = time;
        for (int32_t pid = 2; pid < 200; pid++) {
            fork_process(spaces, ++time, pid, 1);
            map(spaces, ++time, pid, 0x10000u * (unsigned)pid, 0x10000u * (unsigned)pid + 4096, 2);
            struct key key = at(++time);
            spaces_exit(spaces, &key, pid, pid);
        }
        spaces_seal(spaces);
        assert_true(spaces_thread_count(spaces) < 3 * 200);
        assert_true(spaces_statistics(spaces).nodes < 3000);
        assert_int_equal(object_at(spaces, time, 199, 0x1000), 1);
        struct spaces *next = spaces_continue(
            spaces, began, &(struct space_translation){one_more, one_more, &(uint32_t){0}});
        spaces_free(spaces);
        spaces = next;
    }
    spaces_seal(spaces);
    spaces_free(spaces);
}

static void test_key_order(void **state) {
    const struct key keys[] = {
        {1, 9, 9, 0}, {2, 0, 0, 0}, {2, 1, 0, 0}, {2, 0, 1, 0}, {0, 0, 0, 1}};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        for (size_t j = 0; j < COUNT_OF(keys); j++)
            assert_int_equal(key_compare(&keys[i], &keys[j]), i < j ? -1 : i > j);
}

static void test_split(void **state) {
    struct spaces *spaces = spaces_new(NULL);
    struct key key = at(1);
    struct mapping whole = {0x1000, 0x9000, 0x100, 1, true};
    struct mapping inner = {0x3000, 0x4000, 0, 2, true};
    spaces_mmap(spaces, &key, 7, 7, &whole);
    spaces_mmap(spaces, &key, 7, 7, &inner);
    spaces_seal(spaces);
    uint32_t root = ask(spaces, 1, 7, 7).user;
    assert_int_equal(space_find(spaces, root, 0x2fff)->end, 0x3000);
    assert_int_equal(space_find(spaces, root, 0x3000)->object, 2);
    assert_int_equal(space_find(spaces, root, 0x4000)->start, 0x4000);
    assert_int_equal(space_find(spaces, root, 0x4000)->offset, 0x3100);
    assert_null(space_find(spaces, root, 0x9000));
    assert_null(space_find(spaces, root, 0xfff));
    spaces_free(spaces);
}

static void test_epochs(void **state) {
    struct spaces *spaces = spaces_new(NULL);
    struct key key = at(2);
    struct mapping data = {0x8000, 0x9000, 0, 5, false};
    map(spaces, 1, 7, 0x1000, 0x2000, 1);
    spaces_mmap(spaces, &key, 7, 7, &data);
    map(spaces, 3, 7, 0x1000, 0x2000, 1);
    fork_process(spaces, 4, 8, 7);
    map(spaces, 5, 8, 0x4000, 0x5000, 2);
    map(spaces, 6, SPACE_KERNEL_PID, 0xffff000000000000, UINT64_MAX, 3);
    data = (struct mapping){0x1800, 0x1900, 0, 5, false};
    key = at(7);
    spaces_mmap(spaces, &key, 7, 7, &data);
    spaces_seal(spaces);
    uint64_t first = ask(spaces, 1, 7, 7).epochs;
    assert_int_equal(ask(spaces, 0, 7, 7).epochs, 0);
    assert_int_not_equal(first, 0);
    assert_int_equal(ask(spaces, 3, 7, 7).epochs, first); /* data and repeats */
    assert_int_not_equal(ask(spaces, 2, 7, 7).user, ask(spaces, 1, 7, 7).user);
    assert_int_equal(ask(spaces, 3, 7, 7).user, ask(spaces, 2, 7, 7).user);
    assert_int_equal(ask(spaces, 4, 8, 8).epochs, first); /* fork */
    assert_int_not_equal(ask(spaces, 5, 8, 8).epochs, first);
    assert_int_equal(ask(spaces, 5, 7, 7).epochs, first);
    assert_int_not_equal(ask(spaces, 6, 7, 7).epochs, first); /* the kernel's */
    assert_int_equal((uint32_t)ask(spaces, 6, 7, 7).epochs, first);
    assert_int_not_equal((uint32_t)ask(spaces, 7, 7, 7).epochs, first); /* data over code */
    spaces_free(spaces);
}

static void check_exec(bool compat) {
    struct spaces *spaces = spaces_new(compat ? &quirks_perf : NULL);
    map(spaces, 1, 7, 0x1000, 0x2000, 1);
    name(spaces, 1, 7, 7, 11, false);
    fork_process(spaces, 2, 8, 7);
    name(spaces, 3, 8, 8, 12, true);
    map(spaces, 4, 8, 0x5000, 0x6000, 2);
    spaces_seal(spaces);
    assert_int_equal(object_at(spaces, 2, 8, 0x1000), 1);
    assert_int_equal(object_at(spaces, 3, 8, 0x1000), compat ? 1 : 0);
    assert_int_equal(object_at(spaces, 4, 8, 0x1000), compat ? 1 : 0);
    assert_int_equal(object_at(spaces, 4, 8, 0x5000), 2);
    assert_int_equal(object_at(spaces, 4, 7, 0x1000), 1);
    assert_int_equal(ask(spaces, 2, 8, 8).comm, 11);
    assert_int_equal(ask(spaces, 3, 8, 8).comm, 12);
    assert_int_equal(ask(spaces, 3, 7, 7).comm, 11);
    spaces_free(spaces);
}

static void test_exec(void **state) {
    check_exec(false);
    check_exec(true);
}

static void test_synthesized_fork(void **state) {
    struct spaces *spaces = spaces_new(&quirks_perf);
    struct key key = at(2);
    map(spaces, 1, 7, 0x1000, 0x2000, 1);
    name(spaces, 1, 7, 7, 11, false);
    spaces_fork(spaces, &key, 8, 8, 7, 7, true);
    spaces_seal(spaces);
    assert_int_equal(object_at(spaces, 2, 8, 0x1000), 0);
    assert_int_equal(ask(spaces, 2, 8, 8).comm, 11);
    spaces_free(spaces);
}

/* tid 9 was a thread of 7; its next fork was lost, and 20 has it now. */
static void check_lost_fork(bool compat) {
    struct spaces *spaces = spaces_new(compat ? &quirks_perf : NULL);
    struct key key = at(1);
    spaces_fork(spaces, &key, 7, 9, 7, 7, false);
    map(spaces, 1, 7, 0x1000, 0x2000, 1);
    map(spaces, 1, 20, 0x1000, 0x2000, 2);
    name(spaces, 2, 7, 9, 11, false);
    spaces_seal(spaces);
    struct space_at answer = ask(spaces, 3, 20, 9);
    assert_int_equal(space_find(spaces, answer.user, 0x1000)->object, compat ? 1 : 2);
    assert_int_equal(answer.comm, compat ? 11 : 0);
    spaces_free(spaces);
}

static void test_lost_fork(void **state) {
    check_lost_fork(false);
    check_lost_fork(true);
}

static void test_exit_and_reuse(void **state) {
    struct spaces *spaces = spaces_new(NULL);
    struct key exit = at(3);
    fork_process(spaces, 1, 7, 1);
    map(spaces, 2, 7, 0x1000, 0x2000, 1);
    spaces_exit(spaces, &exit, 7, 7);
    fork_process(spaces, 9, 7, 1);
    spaces_seal(spaces);
    assert_int_equal(object_at(spaces, 8, 7, 0x1000), 1); /* samples come late */
    assert_int_equal(object_at(spaces, 9, 7, 0x1000), 0);
    const struct space_thread *old = spaces_thread(spaces, ask(spaces, 8, 7, 7).thread);
    const struct space_thread *new = spaces_thread(spaces, ask(spaces, 9, 7, 7).thread);
    assert_int_equal(old->start, 1);
    assert_int_equal(old->end, 3);
    assert_int_equal(new->start, 9);
    assert_true(new->end == UINT64_MAX);
    spaces_free(spaces);
}

static void test_unknown(void **state) {
    struct spaces *spaces = spaces_new(&quirks_perf);
    map(spaces, 1, 7, 0x1000, 0x2000, 1);
    spaces_seal(spaces);
    assert_int_equal(ask(spaces, 2, -1, -1).thread, UINT32_MAX);
    assert_int_equal(ask(spaces, 2, 0, 0).user, 0);
    struct space_at thread =
        ask(spaces, 2, 7, 8); /* no record named it, but its process is known */
    assert_int_equal(thread.thread, UINT32_MAX);
    assert_int_equal(space_find(spaces, thread.user, 0x1fff)->object, 1);
    assert_int_equal(ask(spaces, 0, 7, 7).thread, UINT32_MAX);
    spaces_free(spaces);
    spaces = spaces_new(NULL);
    spaces_seal(spaces);
    assert_int_equal(ask(spaces, 5, 7, 7).epochs, 0);
    spaces_free(spaces);
}

static void test_late_record(void **state) {
    struct spaces *spaces = spaces_new(NULL);
    map(spaces, 5, 7, 0x1000, 0x2000, 1);
    map(spaces, 3, 7, 0x3000, 0x4000, 2);
    spaces_seal(spaces);
    assert_int_equal(object_at(spaces, 4, 7, 0x3000), 0);
    assert_int_equal(object_at(spaces, 5, 7, 0x3000), 2);
    spaces_free(spaces);
}

/* A hundred mappings in one process, ten thousand children that fork each other, a hundred mmaps in each. */
static void test_million(void **state) {
    enum { PROCESSES = 10000, MAPS = 100 };
    struct spaces *spaces = spaces_new(NULL);
    for (uint64_t i = 0; i < MAPS; i++)
        map(spaces, 1, 1, 0x10000 * i, 0x10000 * i + 0x8000, 1);
    uint64_t before = spaces_statistics(spaces).nodes;
    for (int32_t pid = 2; pid < 2 + PROCESSES; pid++)
        fork_process(spaces, (uint64_t)pid, pid, pid - 1);
    assert_int_equal(spaces_statistics(spaces).nodes, before); /* fork shares */
    for (int32_t pid = 2; pid < 2 + PROCESSES; pid++)
        for (uint64_t i = 0; i < MAPS; i++)
            map(spaces, 20000 + i, pid, 0x10000 * (i * 37 % MAPS) + 0x8000,
                0x10000 * (i * 37 % MAPS) + 0x9000, 2);
    spaces_seal(spaces);
    struct space_statistics took = spaces_statistics(spaces);
    assert_int_equal(took.changes, MAPS + PROCESSES + MAPS * PROCESSES);
    assert_int_equal(took.mappings, MAPS + MAPS * PROCESSES);
    assert_in_range(took.nodes, MAPS * PROCESSES,
                    12 * MAPS * PROCESSES); /* 2 + log2 of 200, and a few rotations */
    assert_int_equal(object_at(spaces, 30000, 5000, 0x8000), 2);
    assert_int_equal(object_at(spaces, 30000, 5000, 0x7fff), 1);
    assert_int_equal(object_at(spaces, 30000, 1, 0x8000), 0);
    spaces_free(spaces);
}

/* Every node ever made: heights are right, and differ by one at most. */
static void check_balance(const struct maps *maps) {
    for (size_t i = 1; i < maps->nodes.count; i++) {
        const struct maps_node *nodes = maps->nodes.items, *node = &nodes[i];
        int left = nodes[node->left].height, right = nodes[node->right].height;
        assert_int_equal(node->height, 1 + (left > right ? left : right));
        assert_in_range(left - right + 1, 0, 2);
    }
}

static void test_balance(void **state) {
    enum { MAPS = 1 << 12 };
    for (unsigned order = 0; order < 5; order++) {
        struct maps maps = {0};
        uint32_t root = 0;
        bool executable;
        for (uint64_t i = 0; i < MAPS; i++) {
            uint64_t outside_in = i % 2 ? MAPS - i : i,
                     inside_out = MAPS + (i % 2 ? i / 2 : -i / 2 - 1);
            uint64_t place[] = {i, MAPS - i, outside_in, inside_out, i * 7919 % MAPS};
            root = maps_put(&maps, root,
                            &(struct mapping){2 * place[order], 2 * place[order] + 1, 0, 1, 1},
                            &executable);
        }
        check_balance(&maps);
        assert_in_range(maps.nodes.count, MAPS, 15 * MAPS);
        maps_release(&maps);
    }
}

/* Taking out pieces small and large joins trees of all heights. */
static void test_balance_after_cuts(void **state) {
    struct maps maps = {0};
    uint32_t root = 0;
    uint64_t seed = 1;
    bool executable;
    for (unsigned round = 0; round < 20000; round++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t start = seed >> 50, length = UINT64_C(1) << (seed >> 20 & 7);
        if (round % 16 == 15)
            root = maps_cut(&maps, root, start, start + 8 * length, &executable);
        else
            root = maps_put(&maps, root, &(struct mapping){start, start + 1, 0, round, 1},
                            &executable);
    }
    check_balance(&maps);
    maps_release(&maps);
}

/* Each of ten thousand children covers the whole address space of a parent with ten thousand mappings. */
static void test_cover_all(void **state) {
    enum { MAPS = 10000 };
    struct spaces *spaces = spaces_new(NULL);
    for (uint64_t i = 0; i < MAPS; i++)
        map(spaces, 1, 1, 0x1000 * i, 0x1000 * i + 0xfff, 1);
    uint64_t before = spaces_statistics(spaces).nodes;
    for (int32_t pid = 2; pid < 2 + MAPS; pid++) {
        fork_process(spaces, 2, pid, 1);
        map(spaces, 3, pid, (uint64_t)pid, UINT64_MAX, 2);
    }
    spaces_seal(spaces);
    assert_in_range(spaces_statistics(spaces).nodes - before, MAPS, 100 * MAPS);
    assert_int_equal(object_at(spaces, 3, 500, 499), 1);
    assert_int_equal(object_at(spaces, 3, 500, UINT64_MAX - 1), 2);
    assert_int_equal(object_at(spaces, 3, 1, 0x1000 * (MAPS - 1)), 1);
    spaces_free(spaces);
}

static void check_cyclic(bool compat) {
    struct spaces *spaces = spaces_new(compat ? &quirks_perf : NULL);
    map(spaces, 1, 7, 0x1000, 0x2000, 1);
    for (uint64_t i = 0; i < 100000; i++) {
        fork_process(spaces, 2 + i, 8, 7);
        fork_process(spaces, 2 + i, 7, 8);
        fork_process(spaces, 2 + i, 9, 9);
    }
    spaces_seal(spaces);
    assert_in_range(spaces_statistics(spaces).nodes, 1, 4);
    assert_int_equal(object_at(spaces, 200000, 7, 0x1000), 1);
    spaces_free(spaces);
}

static void test_cyclic(void **state) {
    check_cyclic(false);
    check_cyclic(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_order),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_exec),
        cmocka_unit_test(test_synthesized_fork),
        cmocka_unit_test(test_lost_fork),
        cmocka_unit_test(test_exit_and_reuse),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_late_record),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_continue),
        cmocka_unit_test(test_continue_is_bounded),
        cmocka_unit_test(test_million),
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_balance_after_cuts),
        cmocka_unit_test(test_cover_all),
        cmocka_unit_test(test_cyclic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
