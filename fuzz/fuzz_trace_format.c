/*
 * Parse a tracepoint's format and print a record with it. The first byte chooses how the format is made from the
 * others: by a grammar of everything that formats have, so that it is well-formed but absurd; or as raw text, up to a
 * NUL. The rest is the payload.
 */
#include "view/trace_format.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { GENERATED_LIMIT = 1 << 14, DEEPEST = 6 };

struct choices {
    struct text left;
    struct buffer format;
};

/* Choose among `count` by the next byte; choose the first if there is none. */
static unsigned choose(struct choices *c, unsigned count) {
    if (!c->left.length || c->format.count > GENERATED_LIMIT)
        return 0;
    unsigned byte = (uint8_t)c->left.data[0];
    c->left = text_from(c->left, 1);
    return byte % count;
}

#define ADD_ONE_OF(c, ...)                                                                         \
    do {                                                                                           \
        static const char *const words[] = {__VA_ARGS__};                                          \
        const char *word = words[choose((c), (unsigned)COUNT_OF(words))];                          \
        buffer_add(&(c)->format, text_of(word));                                                   \
    } while (0)

static void add(struct choices *c, const char *text) {
    buffer_add(&c->format, text_of(text));
}

static void add_number(struct choices *c) {
    ADD_ONE_OF(c, "0", "1", "2", "4", "8", "16", "-1", "0x7fffffff", "0x80000000", "100000000",
               "3000000000", "0xffffffffffffffff", "65535", "64", "010", "1UL", "'a'", "HI_SOFTIRQ",
               "\"7\"", "99999999999999999999");
}

static void add_field_name(struct choices *c) {
    ADD_ONE_OF(c, "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "common_pid", "nothing");
}

static void add_expression(struct choices *c, unsigned depth);

static void add_choices(struct choices *c, unsigned depth) {
    for (unsigned i = choose(c, 4) + 1; i; i--) {
        add(c, ", { ");
        if (choose(c, 3))
            add_number(c);
        else
            add_expression(c, depth);
        ADD_ONE_OF(c, ", \"name\" }", ", \"\" }", ", \"a\" \"b\" }", ", 5 }", ", REC->f0 }", "}");
    }
    add(c, ")");
}

static void add_function(struct choices *c, unsigned depth) {
    static const char *const functions[] = {
        "__print_flags(",     "__print_symbolic(",        "__print_hex(",   "__print_hex_str(",
        "__print_array(",     "__get_dynamic_array_len(", "__get_str(",     "__get_bitmask(",
        "__get_cpumask(",     "__get_dynamic_array(",     "sizeof(",        "__builtin_expect(",
        "__get_rel_bitmask(", "__get_sockaddr(",          "__get_rel_str(", "unknown("};
    unsigned which = choose(c, COUNT_OF(functions));
    add(c, functions[which]);
    if (which >= 5 && which != 11) {
        add_field_name(c);
        add(c, ")");
        return;
    }
    if (which >= 2 && which <= 4 && choose(c, 2)) {
        add(c, "__get_dynamic_array(");
        add_field_name(c);
        add(c, ")");
    } else {
        add_expression(c, depth);
    }
    if (which == 0)
        ADD_ONE_OF(c, ", \"|\"", ", \"\"", ", '-'", ",", "");
    if (which <= 1) {
        add_choices(c, depth);
        return;
    }
    add(c, ", ");
    add_expression(c, depth);
    if (which == 4) {
        add(c, ", ");
        add_expression(c, depth);
    }
    add(c, ")");
}

static void add_operand(struct choices *c, unsigned depth) {
    switch (depth ? choose(c, 8) : choose(c, 3)) {
    case 0:
        add(c, "REC->");
        add_field_name(c);
        break;
    case 1:
        add_number(c);
        break;
    case 2:
        ADD_ONE_OF(c, "\"text\"", "\"\"", "unsigned long", "sizeof(int)", "REC", "(REC)->f1");
        break;
    case 3:
        ADD_ONE_OF(c, "(u8)", "(int)", "(unsigned short)", "(char *)", "(struct x *)", "(s64)");
        add_operand(c, depth - 1);
        break;
    case 4:
        ADD_ONE_OF(c, "-", "!", "~", "+", "&", "*");
        add_operand(c, depth - 1);
        break;
    case 5:
        add(c, "(");
        add_expression(c, depth - 1);
        add(c, ")");
        break;
    case 6:
        ADD_ONE_OF(c, "REC->", "((u16 *)REC->", "((u8 *)__get_dynamic_array(", "(");
        add_field_name(c);
        ADD_ONE_OF(c, "[", ")[", "))[");
        add_operand(c, depth - 1);
        add(c, "]");
        break;
    default:
        add_function(c, depth - 1);
    }
}

static void add_expression(struct choices *c, unsigned depth) {
    add_operand(c, depth);
    for (unsigned i = choose(c, 4); i && depth; i--) {
        ADD_ONE_OF(c, " + ", " - ", " * ", " / ", " % ", " << ", " >> ", " < ", " > ",
                   " <= ", " >= ", " == ", " != ", " & ", " | ", " ^ ", " && ", " || ", " ? ",
                   " : ", "[", "]", " -- ");
        add_operand(c, depth - 1);
    }
}

static void add_conversion(struct choices *c) {
    add(c, "%");
    ADD_ONE_OF(c, "", "-", "0", "#", "-0#", "+");
    ADD_ONE_OF(c, "", "5", "*", "100000000", "16", "2147483647");
    ADD_ONE_OF(c, "", ".3", ".*", ".", ".100000000");
    ADD_ONE_OF(c, "", "l", "ll", "h", "hh", "z", "L", "lll");
    ADD_ONE_OF(c, "d", "u", "x", "s", "s", "pS", "ps", "p", "pM", "pMR", "pI4", "pI6c", "pi6",
               "pISpc", "pU", "pUl", "ph", "phC", "c", "o", "");
    ADD_ONE_OF(c, " ", "", "=%%", "\\n", "\\");
}

static void add_fields(struct choices *c) {
    for (unsigned i = 0; i < 8; i++) {
        add(c, "\tfield:");
        ADD_ONE_OF(c, "int ", "__data_loc char[] ", "u8 ", "unsigned long ", "char * ", "s16 ",
                   "__rel_loc u32[] ", "__data_loc cpumask_t ", "long ", "");
        buffer_printf(&c->format, "f%u", i);
        ADD_ONE_OF(c, "", "[16]", "[6]", "[4]", "[]", "[0]", "[4294967295]", "[x + 1]");
        static const unsigned offsets[] = {8, 12, 16, 24, 0, 40, 65535, 4294967295u};
        static const unsigned sizes[] = {4, 8, 2, 1, 16, 6, 0, 28, 3, 4294967295u};
        buffer_printf(&c->format, ";\toffset:%u;\tsize:%u;", offsets[choose(c, COUNT_OF(offsets))],
                      sizes[choose(c, COUNT_OF(sizes))]);
        ADD_ONE_OF(c, "\tsigned:1;\n", "\tsigned:0;\n", "\n");
    }
}

static void generate(struct choices *c) {
    add(c, "name: x\nID: 7\nformat:\n"
           "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n");
    add_fields(c);
    add(c, "\nprint fmt: \"");
    unsigned arguments = choose(c, 6);
    for (unsigned i = 0; i <= arguments; i++)
        add_conversion(c);
    add(c, "\"");
    for (unsigned i = 0; i <= arguments + choose(c, 2); i++) {
        add(c, ", ");
        add_expression(c, DEEPEST);
    }
    add(c, "\n");
}

/* Find every even address, five bytes after its start. */
static struct text find_function(void *context, uint64_t *address) {
    if (*address % 2)
        return (struct text){"", 0};
    *address -= 5;
    return TEXT("function");
}

static void print(const struct trace_format *format, struct text payload) {
    char *exact = malloc(payload.length + !payload.length); /* so that no byte after it is ours */
    memcpy(exact, payload.data, payload.length);
    struct buffer once = {0}, twice = {0};
    struct trace_record record = {.format = format,
                                  .payload = {exact, payload.length},
                                  .buffer = &once,
                                  .function = find_function};
    bool whole = trace_print(&record);
    if (once.count > record.limit || record.depth)
        abort();
    record.buffer = &twice;
    if (trace_print(&record) != whole || !text_equal(buffer_text(&once), buffer_text(&twice)))
        if (!format->failed) /* a field that once held bytes is no longer a string */
            abort();
    buffer_release(&once);
    buffer_release(&twice);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct trace_string strings[] = {{0, TEXT("zero")}, {7, TEXT("%s\\n")}};
    if (!size)
        return 0;
    struct trace_setting setting = {.quirks = data[0] & 1 ? quirks_perf : quirks_none,
                                    .long_size = data[0] & 2 ? 4 : 8,
                                    .strings = strings,
                                    .string_count = COUNT_OF(strings)};
    struct choices c = {.left = {(const char *)data + 1, size - 1}};
    if (data[0] & 4) {
        generate(&c);
    } else {
        size_t end = text_find(c.left, 0);
        end = end == SIZE_MAX ? c.left.length : end;
        buffer_add(&c.format, text_upto(c.left, end));
        c.left = text_from(c.left, end < c.left.length ? end + 1 : end);
    }
    struct trace_format *format = trace_format_new(buffer_text(&c.format), &setting);
    if (format)
        print(format, c.left);
    trace_format_free(format);
    buffer_release(&c.format);
    return 0;
}
