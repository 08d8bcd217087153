/* The control-flow core: functions as ranges, and stacks from calls, returns and jumps. */
#include "trace/trace.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
/* after the headers above */
#include <cmocka.h>

struct machine {
    struct functions *functions;
    struct trie trie;
    struct flow flow;
};

static void machine_open(struct machine *m, uint64_t root) {
    struct error error;
    if (!m->functions)
        m->functions = functions_new();
    assert_true(trie_init(&m->trie, &error));
    flow_init(&m->flow, &m->trie, m->functions, root);
}

static void machine_close(struct machine *m) {
    flow_release(&m->flow);
    trie_release(&m->trie);
    functions_free(m->functions);
}

static void add(struct machine *m, const char *name, uint64_t start, uint64_t size) {
    if (!m->functions)
        m->functions = functions_new();
    functions_add(m->functions, text_of(name), start, size, 0, size != 0, 0);
}

static void name_of(struct machine *m, uint64_t address, struct buffer *buffer) {
    uint32_t function = functions_find(m->functions, address).function;
    if (function)
        buffer_add(buffer, functions_name(m->functions, function));
    else
        buffer_printf(buffer, "0x%llx", (unsigned long long)address);
}

static const char *looked_up(struct machine *m, uint64_t address) {
    static char name[64];
    struct buffer buffer = {0};
    name_of(m, address, &buffer);
    snprintf(name, sizeof name, "%.*s", TEXT_ARGS(buffer_text(&buffer)));
    buffer_release(&buffer);
    return name;
}

/* The stack of the current node, by name. */
static const char *stack(struct machine *m) {
    static char text[256];
    uint32_t path[16], depth = 0;
    struct buffer buffer = {0};
    for (uint32_t n = m->flow.node; n; n = m->trie.nodes[n].parent)
        path[depth++] = n;
    while (depth--) {
        name_of(m, m->trie.nodes[path[depth]].address, &buffer);
        if (depth)
            buffer_add_char(&buffer, ';');
    }
    snprintf(text, sizeof text, "%.*s", TEXT_ARGS(buffer_text(&buffer)));
    buffer_release(&buffer);
    return text;
}

static void test_lookup(void **state) {
    struct machine m = {0};
    m.functions = functions_new();
    assert_int_equal(functions_find(m.functions, 5).function, 0);
    add(&m, "outer", 0x1000, 0x100);
    add(&m, "inner", 0x1040, 0x10);
    add(&m, "stub", 0x2000, 0);
    add(&m, "next", 0x2100, 0x10);
    add(&m, "overlap", 0x3000, 0x80);
    add(&m, "overlapping", 0x3040, 0x80);
    assert_string_equal(looked_up(&m, 0x1000), "outer");
    assert_string_equal(looked_up(&m, 0x103f), "outer");
    assert_string_equal(looked_up(&m, 0x1040), "inner");
    assert_string_equal(looked_up(&m, 0x1050), "outer");
    assert_string_equal(looked_up(&m, 0x1100), "0x1100");
    assert_string_equal(looked_up(&m, 0xfff), "0xfff");
    assert_string_equal(looked_up(&m, 0x20ff), "stub");
    assert_string_equal(looked_up(&m, 0x2100), "next");
    assert_string_equal(looked_up(&m, 0x2110), "0x2110");
    assert_string_equal(looked_up(&m, 0x303f), "overlap");
    assert_string_equal(looked_up(&m, 0x3040), "overlapping");
    assert_string_equal(looked_up(&m, 0x30bf), "overlapping");
    assert_int_equal(functions_find(m.functions, 0x1010).end, 0x1040);
    functions_free(m.functions);
}

static void test_label_inside_is_no_function(void **state) {
    struct machine m = {0};
    add(&m, "main", 0x1000, 0x100);
    add(&m, "label", 0x1080, 0);
    add(&m, "main_alias", 0x1000, 0);
    assert_string_equal(looked_up(&m, 0x1090), "main");
    functions_add(m.functions, TEXT("last"), 0x4000, 0, 0x4010, false, 0);
    assert_string_equal(looked_up(&m, 0x400f), "last");
    assert_string_equal(looked_up(&m, 0x4010), "0x4010");
    functions_free(m.functions);
}

static void test_names_of_one_place(void **state) {
    struct functions *f = functions_new();
    functions_add(f, TEXT("__local"), 0x10, 8, 0, true, 0);
    functions_add(f, TEXT("__global"), 0x10, 8, 0, true, 2);
    functions_add(f, TEXT("global"), 0x10, 8, 0, true, 2);
    functions_add(f, TEXT("a_longer_label"), 0x10, 8, 0, false, 2);
    struct text name = functions_name(f, functions_find(f, 0x10).function);
    assert_true(text_equal(name, TEXT("global")));
    functions_free(f);
}

static void three(struct machine *m) {
    add(m, "main", 0x1000, 0x100);
    add(m, "foo", 0x2000, 0x100);
    add(m, "bar", 0x3000, 0x100);
    machine_open(m, 0x1000);
}

static void test_call_and_return(void **state) {
    struct machine m = {0};
    three(&m);
    flow_count(&m.flow, 2);
    flow_call(&m.flow, 0x2000, 0x1008, NO_ADDRESS);
    assert_string_equal(stack(&m), "main;foo");
    flow_count(&m.flow, 6);
    uint32_t foo = m.flow.node;
    flow_return(&m.flow, 0x2010, 0x1008, NO_ADDRESS);
    flow_count(&m.flow, 1);
    assert_string_equal(stack(&m), "main");
    assert_int_equal(m.trie.nodes[m.flow.node].count, 3);
    assert_int_equal(m.trie.nodes[foo].count, 6);
    flow_call(&m.flow, 0x2000, 0x1020, NO_ADDRESS);
    assert_int_equal(m.flow.node, foo);
    machine_close(&m);
}

static void test_root_stays(void **state) {
    struct machine m = {0};
    three(&m);
    flow_return(&m.flow, 0x1010, 0x9999, NO_ADDRESS);
    flow_return(&m.flow, 0x1010, 0x9999, NO_ADDRESS);
    assert_string_equal(stack(&m), "main");
    assert_int_equal(m.flow.unmatched, 2);
    assert_int_equal(m.flow.unmatched_pc, 0x1010);
    machine_close(&m);
}

static void test_tail_call_replaces(void **state) {
    struct machine m = {0};
    three(&m);
    flow_call(&m.flow, 0x2000, 0x1008, NO_ADDRESS);
    flow_jump(&m.flow, 0x2010, 0x3000, NO_ADDRESS);
    assert_string_equal(stack(&m), "main;bar");
    flow_jump(&m.flow, 0x3010, 0x2000, NO_ADDRESS); /* mutual tail calls do not grow */
    flow_jump(&m.flow, 0x2010, 0x3000, NO_ADDRESS);
    assert_string_equal(stack(&m), "main;bar");
    flow_return(&m.flow, 0x3020, 0x1008, NO_ADDRESS);
    assert_string_equal(stack(&m), "main");
    machine_close(&m);
}

static void test_tail_call_at_root_nests(void **state) {
    struct machine m = {0};
    three(&m);
    add(&m, "asm_stub", 0x4000, 0);
    flow_jump(&m.flow, 0x1010, 0x4000, NO_ADDRESS);
    assert_string_equal(stack(&m), "main;asm_stub");
    flow_return(&m.flow, 0x4004, 0x1014, NO_ADDRESS);
    assert_string_equal(stack(&m), "main");
    assert_int_equal(m.flow.unmatched, 0);
    machine_close(&m);
}

static void test_jumps_inside_keep_the_stack(void **state) {
    struct machine m = {0};
    three(&m);
    add(&m, "loop", 0x2040, 0); /* a label in foo */
    flow_call(&m.flow, 0x2000, 0x1008, NO_ADDRESS);
    uint32_t foo = m.flow.node;
    flow_jump(&m.flow, 0x2010, 0x2004, NO_ADDRESS);
    flow_jump(&m.flow, 0x2010, 0x2000, NO_ADDRESS); /* self tail recursion */
    flow_jump(&m.flow, 0x2010, 0x2040, NO_ADDRESS);
    flow_jump(&m.flow, 0x2044, 0x2010, NO_ADDRESS);
    assert_int_equal(m.flow.node, foo);
    flow_jump(&m.flow, 0x2010, 0x8000, NO_ADDRESS); /* lands nowhere */
    flow_jump(&m.flow, 0x8000, 0x3000, NO_ADDRESS); /* and comes from there */
    assert_int_equal(m.flow.node, foo);
    machine_close(&m);
}

static void test_cached_range_respects_nested(void **state) {
    struct machine m = {0};
    three(&m);
    add(&m, "nested", 0x2080, 0x20);
    flow_call(&m.flow, 0x2000, 0x1008, NO_ADDRESS);
    flow_jump(&m.flow, 0x2010, 0x2020, NO_ADDRESS);
    flow_jump(&m.flow, 0x2020, 0x2080, NO_ADDRESS);
    assert_string_equal(stack(&m), "main;nested");
    flow_jump(&m.flow, 0x2090, 0x20b0, NO_ADDRESS); /* foo goes on behind it */
    assert_string_equal(stack(&m), "main;foo");
    flow_jump(&m.flow, 0x20b0, 0x2004, NO_ADDRESS);
    assert_string_equal(stack(&m), "main;foo");
    machine_close(&m);
}

static void test_recursion_nests(void **state) {
    struct machine m = {0};
    three(&m);
    for (int i = 0; i < 3; i++)
        flow_call(&m.flow, 0x2000, 0x2010, NO_ADDRESS);
    assert_string_equal(stack(&m), "main;foo;foo;foo");
    flow_return(&m.flow, 0x2020, 0x2010, NO_ADDRESS);
    assert_string_equal(stack(&m), "main;foo;foo");
    machine_close(&m);
}

static void test_unknown_symbols(void **state) {
    struct machine m = {0};
    machine_open(&m, 0x1000);
    flow_call(&m.flow, 0x2000, 0x1004, NO_ADDRESS);
    assert_string_equal(stack(&m), "0x1000;0x2000");
    flow_jump(&m.flow, 0x2000, 0x3000, NO_ADDRESS);
    assert_string_equal(stack(&m), "0x1000;0x2000");
    machine_close(&m);
}

/* main calls foo, which called setjmp and now calls bar twice over; longjmp returns into foo at 0x2044. */
static void long_jump(uint64_t sp_main, uint64_t sp_foo, uint64_t sp_bar) {
    struct machine m = {0};
    three(&m);
    bool known = sp_foo != NO_ADDRESS;
    flow_call(&m.flow, 0x2000, 0x1008, sp_main);
    flow_call(&m.flow, 0x3000, 0x2048, sp_foo);
    flow_call(&m.flow, 0x3000, 0x3010, sp_bar);
    flow_return(&m.flow, 0x3020, 0x2044, known ? sp_foo : NO_ADDRESS);
    assert_string_equal(stack(&m), "main;foo");
    assert_int_equal(m.flow.unmatched, 0);
    flow_return(&m.flow, 0x2050, 0x1008, sp_main);
    assert_string_equal(stack(&m), "main");
    machine_close(&m);
}

static void test_long_jump(void **state) {
    long_jump(0x7000, 0x6f00, 0x6e00);
    long_jump(NO_ADDRESS, NO_ADDRESS, NO_ADDRESS);
}

/* Recursive foo: the stack pointer says which activation it was. */
static void test_long_jump_to_outer_activation(void **state) {
    struct machine m = {0};
    three(&m);
    flow_call(&m.flow, 0x2000, 0x1008, 0x7000);
    flow_call(&m.flow, 0x2000, 0x2048, 0x6f00);
    flow_call(&m.flow, 0x2000, 0x2048, 0x6e00);
    flow_return(&m.flow, 0x2020, 0x2044, 0x6f00);
    assert_string_equal(stack(&m), "main;foo");
    machine_close(&m);
}

/* As on x86 and Arm: into the middle of a function that is live, without a return. */
static void long_jump_by_jump(uint64_t sp_main, uint64_t sp_foo, uint64_t sp_bar) {
    struct machine m = {0};
    three(&m);
    flow_call(&m.flow, 0x2000, 0x1008, sp_main);
    flow_call(&m.flow, 0x3000, 0x2008, sp_foo);
    flow_jump(&m.flow, 0x3010, 0x2020, sp_foo);
    assert_string_equal(stack(&m), "main;foo");
    flow_call(&m.flow, 0x3000, 0x2028, sp_foo);
    flow_jump(&m.flow, 0x3010, 0x1030, sp_main);
    assert_string_equal(stack(&m), "main");
    flow_call(&m.flow, 0x2000, 0x1040, sp_main);
    flow_jump(&m.flow, 0x2010, 0x3020, sp_bar); /* nobody there: a tail call into the middle */
    assert_string_equal(stack(&m), "main;bar");
    machine_close(&m);
}

static void test_long_jump_by_jump(void **state) {
    long_jump_by_jump(NO_ADDRESS, NO_ADDRESS, NO_ADDRESS);
    long_jump_by_jump(0x8000, 0x7000, 0x6000);
}

static void test_cold_part(void **state) {
    struct machine m = {0};
    add(&m, "f", 0x2000, 0x100);
    add(&m, "f.cold", 0x1000, 0x10);
    add(&m, "lonely.cold", 0x3000, 0x10);
    assert_string_equal(looked_up(&m, 0x1004), "f");
    assert_int_equal(functions_find(m.functions, 0x1004).function,
                     functions_find(m.functions, 0x2004).function);
    assert_string_equal(looked_up(&m, 0x3004), "lonely.cold");
    add(&m, "f", 0x4000, 0x10); /* two of that name: nobody knows whose it is */
    add(&m, "f.cold", 0x5000, 0x10);
    assert_string_equal(looked_up(&m, 0x5004), "f.cold");
    functions_free(m.functions);
}

/* As many as a file likes: each costs as much as the first. */
static void test_one_name_for_all(void **state) {
    struct machine m = {0};
    add(&m, "same.cold", 0x100, 0x10);
    for (uint64_t i = 1; i <= 300000; i++)
        add(&m, "same", 0x1000 * i, 0x10);
    assert_string_equal(looked_up(&m, 0x300000 + 4), "same");
    assert_string_equal(looked_up(&m, 0x104), "same.cold");
    functions_free(m.functions);
}

static void test_return_of_two_frames(void **state) {
    for (int known = 0; known < 2; known++) {
        struct machine m = {0};
        three(&m);
        flow_call(&m.flow, 0x2000, 0x1008, known ? 0x7000 : NO_ADDRESS);
        flow_call(&m.flow, 0x3000, 0x2008, known ? 0x6f00 : NO_ADDRESS);
        flow_return(&m.flow, 0x3008, 0x1008, known ? 0x7000 : NO_ADDRESS);
        assert_string_equal(stack(&m), "main");
        assert_int_equal(m.flow.unmatched, 0);
        machine_close(&m);
    }
}

/* Two coroutines that switch by returning into each other must not make the stack grow. */
static void test_context_switches_do_not_drift(void **state) {
    struct machine m = {0};
    three(&m);
    add(&m, "switch", 0x5000, 0x20);
    for (int i = 0; i < 100; i++) {
        flow_call(&m.flow, 0x5000, 0x1008, 0x7000);           /* main switches … */
        flow_return(&m.flow, 0x5010, 0x2020 + i % 2, 0x3000); /* … into foo, on its own stack */
        assert_string_equal(stack(&m), "main;foo");
        flow_call(&m.flow, 0x5000, 0x2020, 0x3000);
        flow_return(&m.flow, 0x5010, 0x1008, 0x7000);
        assert_string_equal(stack(&m), "main");
    }
    assert_int_equal(m.flow.unmatched, 100);
    machine_close(&m);
}

/* The same, where the switch is a jump and not a return: it is one where it lands on a live call's return address. */
static void test_switches_by_jump_do_not_drift(void **state) {
    for (int known = 0; known < 2; known++) {
        struct machine m = {0};
        three(&m);
        add(&m, "switch", 0x5000, 0x20);
        for (int i = 0; i < 100; i++) {
            flow_call(&m.flow, 0x5000, 0x1008, known ? 0x7000 : NO_ADDRESS);
            flow_jump(&m.flow, 0x5010, 0x2020, known ? 0x3000 : NO_ADDRESS);
            assert_string_equal(stack(&m), "main;foo");
            flow_call(&m.flow, 0x5000, 0x2020, known ? 0x3000 : NO_ADDRESS);
            flow_jump(&m.flow, 0x5010, 0x1008, known ? 0x7000 : NO_ADDRESS);
            assert_string_equal(stack(&m), "main");
        }
        machine_close(&m);
    }
}

static void test_leaf(void **state) {
    struct machine m = {0};
    three(&m);
    flow_count_leaf(&m.flow, SYNTHETIC_ADDRESS | 64, 1);
    assert_string_equal(stack(&m), "main");
    assert_int_equal(m.trie.nodes[2].count, 1);
    assert_int_equal(m.trie.nodes[2].parent, m.flow.node);
    machine_close(&m);
}

static void test_ten_million_deep(void **state) {
    struct machine m = {0};
    three(&m);
    const uint32_t deep = 10000000;
    for (uint32_t i = 0; i < deep; i++)
        flow_call(&m.flow, 0x2000 + i % 2, 0x2010 + i % 2, NO_ADDRESS);
    assert_int_equal(m.flow.depth, deep);
    assert_int_equal(m.trie.own_count, deep + 2);
    for (uint32_t i = deep; i-- > 0;)
        flow_return(&m.flow, 0x2020, 0x2010 + i % 2, NO_ADDRESS);
    assert_string_equal(stack(&m), "main");
    assert_int_equal(m.flow.unmatched, 0);
    machine_close(&m);
}

static void test_depth_limit(void **state) {
    struct machine m = {0};
    three(&m);
    m.flow.max_depth = 3;
    for (int i = 0; i < 5; i++)
        flow_call(&m.flow, 0x2000, 0x2010, NO_ADDRESS);
    assert_string_equal(stack(&m), "main;foo;foo;foo");
    assert_int_equal(m.flow.dropped, 2);
    for (int i = 0; i < 5; i++)
        flow_return(&m.flow, 0x2020, 0x2010, NO_ADDRESS);
    assert_string_equal(stack(&m), "main");
    machine_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_label_inside_is_no_function),
        cmocka_unit_test(test_names_of_one_place),
        cmocka_unit_test(test_call_and_return),
        cmocka_unit_test(test_root_stays),
        cmocka_unit_test(test_tail_call_replaces),
        cmocka_unit_test(test_tail_call_at_root_nests),
        cmocka_unit_test(test_jumps_inside_keep_the_stack),
        cmocka_unit_test(test_cached_range_respects_nested),
        cmocka_unit_test(test_recursion_nests),
        cmocka_unit_test(test_unknown_symbols),
        cmocka_unit_test(test_long_jump),
        cmocka_unit_test(test_long_jump_to_outer_activation),
        cmocka_unit_test(test_long_jump_by_jump),
        cmocka_unit_test(test_cold_part),
        cmocka_unit_test(test_one_name_for_all),
        cmocka_unit_test(test_return_of_two_frames),
        cmocka_unit_test(test_context_switches_do_not_drift),
        cmocka_unit_test(test_switches_by_jump_do_not_drift),
        cmocka_unit_test(test_leaf),
        cmocka_unit_test(test_ten_million_deep),
        cmocka_unit_test(test_depth_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
