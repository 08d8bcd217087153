/* The SVG writer: well-formed whatever the names, the same bytes every time, right places, right colours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "view/svg.h"
#include "written.h"

/* ---- helpers ---- */

/* `stack` is names joined by ';'. */
static uint32_t add_stack(struct flame *flame, const char *stack, uint64_t before, uint64_t after,
                          uint32_t kinds) {
    struct text rest = text_of(stack);
    uint32_t node = 0;
    for (bool more = true; more;) {
        size_t end = text_find(rest, ';');
        struct text name = end == SIZE_MAX ? rest : text_upto(rest, end);
        more = end != SIZE_MAX;
        rest = more ? text_from(rest, end + 1) : TEXT("");
        struct label label = {.name = strings_add(flame->strings, name), .kinds = kinds};
        node = flame_child(flame, node, &label);
    }
    flame->nodes.items[node].self += after;
    flame->nodes.items[node].self_before += before;
    return node;
}

static struct flame *finish(struct flame *flame) {
    struct error error;
    assert_true(flame_finish(flame, &error));
    return flame;
}

static struct flame *three_stacks(void) {
    struct flame *flame = flame_new();
    add_stack(flame, "main;parse;read", 0, 30, 0);
    add_stack(flame, "main;parse", 0, 20, 0);
    add_stack(flame, "main;run", 0, 50, 0);
    return finish(flame);
}

/* With a NUL at its end; free() it. */
static char *drawn(const struct flame *flame, const struct svg_options *options, size_t *size) {
    struct error error;
    struct written written;
    assert_true(svg_options_check(options, &error));
    written_begin(&written);
    svg_write(&written.out, flame, options);
    return written_end(&written, size);
}

static const struct svg_options plain = {.no_script = true};

/* ---- a small judge of XML: tags nest, attributes are quoted, only known entities, only characters XML knows ---- */

/* A sanitizer's strncmp may look at the whole text too. */
static bool begins(const char *at, const char *end, const char *what) {
    size_t length = strlen(what);
    return (size_t)(end - at) >= length && memcmp(at, what, length) == 0;
}

static const char *judge_text(const char *at, const char *end, char stop) {
    while (at < end && *at != stop) {
        unsigned char c = (unsigned char)*at;
        if (c == '<' || (c < 0x20 && c != '\n' && c != '\t'))
            return NULL;
        if (c == '&') {
            static const char *const known[] = {"&lt;",  "&gt;", "&amp;", "&quot;",
                                                "&#39;", "&#9;", "&#10;", "&#13;"};
            bool found = false;
            for (size_t i = 0; i < COUNT_OF(known); i++)
                found |= begins(at, end, known[i]);
            if (!found)
                return NULL;
        }
        at++;
    }
    return at;
}

static const char *judge_tag(const char *at, const char *end, struct text *name, bool *closed) {
    const char *start = at;
    while (at < end &&
           (*at == '_' || *at == '-' || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z')))
        at++;
    *name = (struct text){start, (size_t)(at - start)};
    *closed = false;
    while (at < end && *at == ' ') {
        while (at < end && *at != '=' && *at != '>' && *at != '"')
            at++;
        if (at + 1 >= end || at[0] != '=' || at[1] != '"')
            return NULL;
        at = judge_text(at + 2, end, '"');
        if (!at || at++ >= end)
            return NULL;
    }
    if (at < end && *at == '/')
        *closed = true, at++;
    return at < end && *at == '>' && name->length ? at + 1 : NULL;
}

static const char *skip_past(const char *at, const char *mark) {
    const char *found = strstr(at, mark);
    return found ? found + strlen(mark) : NULL;
}

static bool is_utf8(const char *text, size_t size) {
    struct buffer copy = {0};
    buffer_add_xml(&copy, (struct text){text, size});
    size_t replaced = 0, own = 0;
    for (size_t i = 0; i + 2 < copy.count; i++)
        replaced += memcmp(copy.items + i, "\xef\xbf\xbd", 3) == 0;
    for (size_t i = 0; i + 2 < size; i++)
        own += memcmp(text + i, "\xef\xbf\xbd", 3) == 0;
    buffer_release(&copy);
    return replaced == own;
}

static bool is_well_formed(const char *text, size_t size) {
    const char *at = text, *end = text + size;
    struct text open[16];
    size_t depth = 0;
    bool seen = false;
    if (strlen(text) != size || !is_utf8(text, size))
        return false;
    while (at && at < end) {
        if (*at != '<') {
            at = judge_text(at, end, '<');
        } else if (begins(at, end, "<?xml ")) {
            at = skip_past(at, "?>");
        } else if (begins(at, end, "<!--")) {
            const char *stop = strstr(at + 4, "--");
            if (!stop || stop[2] != '>')
                return false;
            at = stop + 3;
        } else if (begins(at, end, "<![CDATA[")) {
            at = skip_past(at, "]]>");
        } else {
            bool is_end = at[1] == '/', closed;
            struct text name;
            at = judge_tag(at + 1 + is_end, end, &name, &closed);
            if (!at || (is_end && (depth == 0 || !text_equal(open[--depth], name))))
                return false;
            if (!is_end && !closed && depth == COUNT_OF(open))
                return false;
            if (!is_end && !closed)
                open[depth++] = name;
            seen = true;
        }
    }
    return at && depth == 0 && seen;
}

static void test_judge(void **state) {
    static const char *const bad[] = {"<a><b></a></b>", "<a>&x;</a>",          "<a b=c/>",
                                      "<a>\x01</a>",    "<a>\xff</a>",         "<a",
                                      "<a></a",         "<!-- a -- b --><a/>", "<a b=\"<\"/>"};
    assert_true(is_well_formed("<a b=\"c\"><b/>&lt;</a>", 21));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(is_well_formed(bad[i], strlen(bad[i])));
}

/* ---- tests ---- */

static void test_titles_and_places(void **state) {
    struct flame *flame = three_stacks();
    size_t size;
    char *svg = drawn(flame, &plain, &size);
    assert_true(is_well_formed(svg, size));
    assert_non_null(strstr(
        svg, "<title>all (100 samples, 100%)</title><rect x=\"0%\" y=\"90\" width=\"100%\""));
    assert_non_null(strstr(
        svg, "<title>main (100 samples, 100.00%)</title><rect x=\"0%\" y=\"74\" width=\"100%\""));
    assert_non_null(strstr(
        svg, "<title>parse (50 samples, 50.00%)</title><rect x=\"0%\" y=\"58\" width=\"50%\""));
    assert_non_null(strstr(
        svg, "<title>read (30 samples, 30.00%)</title><rect x=\"20%\" y=\"42\" width=\"30%\""));
    assert_non_null(strstr(svg, "fg:x=\"20\" fg:w=\"30\"/>"));
    assert_non_null(strstr(
        svg, "<title>run (50 samples, 50.00%)</title><rect x=\"50%\" y=\"58\" width=\"50%\""));
    assert_null(strstr(svg, "<script"));
    free(svg);
    struct svg_options inverted = {.inverted = true};
    svg = drawn(flame, &inverted, &size);
    assert_true(is_well_formed(svg, size));
    assert_non_null(strstr(svg, "Icicle Graph"));
    assert_non_null(
        strstr(svg, "<title>read (30 samples, 30.00%)</title><rect x=\"20%\" y=\"90\""));
    assert_non_null(strstr(svg, "<script>"));
    free(svg);
    flame_free(flame);
}

static void test_same_bytes(void **state) {
    struct flame *one = three_stacks(), *two = flame_new();
    add_stack(two, "main;run", 0, 50, 0);
    add_stack(two, "main;parse;read", 0, 10, 0);
    add_stack(two, "main;parse", 0, 20, 0);
    add_stack(two, "main;parse;read", 0, 20, 0);
    finish(two);
    size_t size_one, size_two;
    char *a = drawn(one, &plain, &size_one), *b = drawn(two, &plain, &size_two);
    assert_int_equal(size_one, size_two);
    assert_memory_equal(a, b, size_one);
    free(a);
    free(b);
    flame_free(one);
    flame_free(two);
}

static void test_hostile_names(void **state) {
    static const char *const names[] = {"<script>alert(1)</script>",
                                        "\" onload=\"alert(1)",
                                        "]]><script>",
                                        "a'b&c<d>e",
                                        "\x01\x02\x1b[31m",
                                        "\xff\xfe\x80 bytes",
                                        "\xe2\x80\xaeright to left",
                                        "--><svg/onload=x>",
                                        "",
                                        "   ",
                                        "\xed\xa0\x80",
                                        "\xf4\x90\x80\x80",
                                        "a\tb\rc\nd",
                                        "\xef\xbf\xbf"};
    struct flame *flame = flame_new();
    char *longest = memory_alloc(100001);
    memset(longest, '<', 100000);
    longest[100000] = 0;
    add_stack(flame, longest, 0, 100, 0);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        add_stack(flame, names[i], 0, 100, 0);
    finish(flame);
    struct svg_options options = {.title = names[0],
                                  .subtitle = names[1],
                                  .notes = "a--b---\n<c> --",
                                  .count_name = names[2],
                                  .name_type = names[5],
                                  .root_name = names[7]};
    size_t size;
    char *svg = drawn(flame, &options, &size);
    assert_true(is_well_formed(svg, size));
    assert_non_null(strstr(svg, "<title>&lt;script&gt;alert(1)&lt;/script&gt; (100 "));
    assert_null(strstr(svg, "<script>alert"));
    assert_non_null(strstr(svg, "a- -b- - - \n"));
    free(svg);
    free(longest);
    flame_free(flame);
}

/* By hand: a sanitizer's strstr looks at the whole text each time. */
static size_t occurrences(const char *text, const char *what) {
    size_t count = 0;
    const char *end = text + strlen(text);
    for (const char *at = text; at < end; at++)
        count += begins(at, end, what);
    return count;
}

static void test_narrow_frames_are_left_out(void **state) {
    struct flame *flame = flame_new();
    add_stack(flame, "wide", 0, 9979, 0);
    add_stack(flame, "just", 0, 10, 0);
    add_stack(flame, "under;deep;deeper", 0, 9, 0);
    add_stack(flame, "two", 0, 2, 0);
    finish(flame);
    struct svg_options options = {.min_width = 0.1, .no_script = true};
    char *svg = drawn(flame, &options, NULL);
    assert_int_equal(occurrences(svg, "<g>"), 3);
    assert_non_null(strstr(svg, "<title>just "));
    assert_null(strstr(svg, "<title>under "));
    assert_non_null(
        strstr(svg, "viewBox=\"0 0 1200 104\"")); /* two rows: what is left out takes no height */
    free(svg);
    flame_free(flame);
}

static void test_depth(void **state) {
    struct flame *flame = flame_new();
    struct label label = {.name = strings_add(flame->strings, TEXT("again"))};
    uint32_t node = 0;
    for (int i = 0; i < 100000; i++)
        node = flame_child(flame, node, &label);
    flame->nodes.items[node].self = 3;
    finish(flame);
    size_t size;
    char *svg = drawn(flame, &(struct svg_options){.no_script = true, .unbounded = true}, &size);
    assert_true(is_well_formed(svg, size));
    assert_int_equal(occurrences(svg, "<g>"), 100001);
    free(svg);
    svg = drawn(flame, &plain, &size); /* those nearest to the root */
    assert_true(is_well_formed(svg, size) && size < 4 << 20);
    assert_int_equal(occurrences(svg, "<g>"), 20000);
    assert_non_null(strstr(svg, "<g><title>all (3"));
    free(svg);
    flame_free(flame);
}

static void test_extremes(void **state) {
    struct flame *flame = flame_new();
    size_t size;
    char *svg = drawn(finish(flame), &plain, &size);
    assert_true(is_well_formed(svg, size));
    assert_non_null(strstr(svg, "Nothing was counted"));
    free(svg);
    flame_free(flame);
    flame = flame_new();
    add_stack(flame, "a", 0, UINT64_MAX - 1, 0);
    add_stack(flame, "b", 0, 1, 0);
    svg = drawn(finish(flame), &plain, &size);
    assert_true(is_well_formed(svg, size));
    assert_non_null(strstr(svg, "<title>all (18,446,744,073,709,551,615 samples, 100%)"));
    assert_non_null(strstr(svg, "fg:x=\"18446744073709551614\" fg:w=\"1\""));
    free(svg);
    flame_free(flame);
}

static void test_numbers(void **state) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0.00"},          {0.125, "0.12"},   {0.375, "0.38"}, {98.875, "98.88"},
                 {100, "100.00"},      {49.995, "49.99"}, {1e-9, "0.00"},  {0.005, "0.01"},
                 {33.333333, "33.33"}, {99.999, "100.00"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buffer buffer = {0};
        buffer_add_hundredths(&buffer, cases[i].value);
        assert_int_equal(buffer.count, strlen(cases[i].text));
        assert_memory_equal(buffer.items, cases[i].text, buffer.count);
        buffer_release(&buffer);
    }
}

static void test_labels(void **state) {
    static const struct {
        const char *name;
        size_t room;
        bool left;
        const char *label;
        bool plain;
    } cases[] = {{"std::vector<int>::push_back", 26, false, "std::vector‹…›::push_back"},
                 {"std::vector<int, long>::push_back", 25, false, "std::vector‹…›::push_back"},
                 {"std::vector<int>::push_back", 15, false, "std::…push_back"},
                 {"std::vector<int>::push_back", 10, false, "push_back"},
                 {"std::vector<int>::push_back", 5, false, "push…"},
                 {"java.lang.String.split", 10, false, "java…split"},
                 {"std::vector<int>::push_back", 15, false, "std::vector&lt;i..", true},
                 {"std::vector<int>::push_back", 15, true, "..t&gt;::push_back"},
                 {"function", 8, false, "function"},
                 {"function", 7, false, "funct.."},
                 {"function", 7, true, "..ction"},
                 {"function", 2, false, ""},
                 {"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", 3, false, "\xc3\xa4.."},
                 {"<<<<", 3, false, "&lt;.."}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buffer buffer = {0};
        svg_add_label(&buffer, text_of(cases[i].name), cases[i].room, cases[i].left,
                      cases[i].plain);
        assert_true(text_equal(buffer_text(&buffer), text_of(cases[i].label)));
        buffer_release(&buffer);
    }
}

/* WCAG's contrast of black or white text, whichever we choose. */
static double contrast(struct colour c) {
    const double weights[] = {0.2126, 0.7152, 0.0722};
    const uint8_t channels[] = {c.red, c.green, c.blue};
    double light = 0;
    for (int i = 0; i < 3; i++) {
        double v = channels[i] / 255.0;
        light += weights[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    return colour_takes_black(c) ? (light + 0.05) / 0.05 : 1.05 / (light + 0.05);
}

static void test_colours_can_be_read(void **state) {
    static const uint32_t kinds[] = {0,
                                     KIND_KERNEL,
                                     KIND_JIT,
                                     KIND_INLINED,
                                     KIND_LIBRARY,
                                     KIND_UNKNOWN,
                                     KIND_WAKER,
                                     KIND_KERNEL | KIND_INLINED};
    for (int palette = 0; palette < PALETTE_COUNT; palette++)
        for (int i = 0; i < 3000; i++) {
            char name[32];
            snprintf(name, sizeof name, "function%d::x", i);
            struct colouring colouring = {(enum palette)palette, i & 1};
            struct colour c = colour_of_frame(&colouring, text_of(name), text_of(name),
                                              kinds[i % COUNT_OF(kinds)]);
            bool own = palette == PALETTE_WICK || palette == PALETTE_WAITS;
            assert_true(contrast(c) >= (own ? 7 : 4.5));
            assert_true(!own || colour_takes_black(c));
            if (palette == PALETTE_WAITS && kinds[i % COUNT_OF(kinds)] != KIND_WAKER)
                assert_true(c.blue > c.red + 40 && c.blue > c.green + 40);
        }
}

static void test_colours_tell_kinds_apart(void **state) {
    struct colouring own = {PALETTE_WICK, false}, blue = {PALETTE_BLUE, false};
    struct text name = TEXT("work"), object = TEXT("/usr/lib/libc.so.6");
    struct colour kernel = colour_of_frame(&own, name, object, KIND_KERNEL);
    struct colour marked = colour_of_frame(&own, TEXT("work_[k]"), TEXT(""), 0);
    struct colour library = colour_of_frame(&own, name, object, KIND_LIBRARY);
    struct colour moved = colour_of_frame(&own, name, TEXT("/opt/libc.so.6"), KIND_LIBRARY);
    struct colour program = colour_of_frame(&own, name, TEXT("/bin/work"), 0);
    struct colour jit = colour_of_frame(&own, name, object, KIND_JIT);
    assert_true(kernel.blue > kernel.green && marked.blue > marked.green);
    assert_true(library.blue > library.red && library.green > library.red);
    assert_memory_equal(&library, &moved, sizeof moved);
    assert_true(program.red > program.green && program.green > program.blue);
    assert_true(jit.green > jit.red && jit.green > jit.blue);
    for (int i = 0; i < 1000; i++) {
        char text[32];
        snprintf(text, sizeof text, "wait%d", i);
        struct colour c = colour_of_frame(&blue, text_of(text), TEXT(""), 0);
        assert_true(c.blue >= 205 && c.blue > c.red + 60 && c.red == c.green);
    }
}

static void test_palette_map(void **state) {
    struct palette_map *map = palette_map_new();
    struct notes notes = {0};
    palette_map_read(
        map, TEXT("main->rgb(1,2,3)\noperator->->rgb(4,5,6)\nbad line\nx->rgb(256,0,0)\n"), &notes);
    assert_int_equal(notes.count, 1);
    assert_int_equal(notes.items[0].count, 2);
    struct flame *flame = three_stacks();
    struct svg_options options = {.no_script = true, .map = map};
    char *svg = drawn(flame, &options, NULL);
    assert_non_null(strstr(svg, "<title>main (100 samples, 100.00%)</title><rect x=\"0%\" y=\"74\" "
                                "width=\"100%\" height=\"15\" fill=\"#010203\""));
    free(svg);
    struct written written;
    written_begin(&written);
    palette_map_write(map, &written.out);
    char *text = written_end(&written, NULL);
    assert_true(
        text_starts(text_of(text), TEXT("main->rgb(1,2,3)\noperator->->rgb(4,5,6)\nparse->rgb(")));
    free(text);
    palette_map_free(map);
    notes_release(&notes);
    flame_free(flame);
}

static void test_name_attributes(void **state) {
    struct notes notes = {0};
    struct name_attributes *attributes = name_attributes_new(
        TEXT("main\thref=http://x/?a&b\ttarget=_blank\tid=m\tg_extra=data-a='1' "
             "data-b=\"<2>\"\ta_extra=rel=\"me\"\n"
             "run\ttitle=running\tnonsense=1\tclass=c\nparse\tg_extra=><script>\n"),
        &notes);
    struct flame *flame = three_stacks();
    struct svg_options options = {.no_script = true, .attributes = attributes};
    size_t size;
    char *svg = drawn(flame, &options, &size);
    assert_true(is_well_formed(svg, size));
    assert_non_null(strstr(svg, "<g id=\"m\" data-a=\"1\" data-b=\"&lt;2&gt;\"><title>main "));
    assert_non_null(
        strstr(svg, "<a href=\"http://x/?a&amp;b\" target=\"_blank\" rel=\"me\"><rect "));
    assert_non_null(strstr(svg, "<g class=\"c\" fg:name=\"run\"><title>running</title>"));
    assert_int_equal(notes.count, 2);
    free(svg);
    name_attributes_free(attributes);
    notes_release(&notes);
    flame_free(flame);
}

static struct flame *two_sides(void) {
    struct flame *flame = flame_new();
    flame->is_diff = true;
    add_stack(flame, "main;gone", 40, 0, 0);
    add_stack(flame, "main;new", 0, 60, 0);
    add_stack(flame, "main;same", 40, 40, 0);
    add_stack(flame, "other;less", 20, 0, 0);
    return finish(flame);
}

static void test_diff(void **state) {
    struct flame *flame = two_sides();
    struct svg_options options = plain;
    char *both = drawn(flame, &options, NULL);
    options.shape = SHAPE_AFTER;
    char *after = drawn(flame, &options, NULL);
    options.shape = SHAPE_BEFORE;
    options.negate = true;
    char *before = drawn(flame, &options, NULL);
    assert_non_null(strstr(
        both, "<title>gone (0 samples, 0.00%; was 40, 40.00%: -40.00 points, gone)</title><rect "
              "x=\"0%\" y=\"42\" width=\"25%\" "
              "height=\"15\" fill=\"#9696ff\""));
    assert_non_null(strstr(
        both, "<title>new (60 samples, 60.00%; was 0, 0.00%: +60.00 points, new)</title><rect "
              "x=\"25%\" y=\"42\" width=\"37.5%\" "
              "height=\"15\" fill=\"#ff6464\""));
    assert_non_null(
        strstr(both, "<title>main (100 samples, 100.00%; was 80, 80.00%: +20.00 points, ×1.25)"));
    assert_non_null(
        strstr(both, "<title>same (40 samples, 40.00%; was 40, 40.00%: 0.00 points, ×1.00)"));
    assert_non_null(strstr(both, "fill=\"#fafafa\""));
    assert_null(strstr(after, "<title>gone"));
    assert_null(strstr(before, "<title>new"));
    assert_non_null(strstr(before, "fill=\"#ff9696\""));
    free(both);
    free(after);
    free(before);
    flame_free(flame);
}

static void test_options(void **state) {
    static const struct svg_options bad[] = {{.search_colour = "red"},
                                             {.ui_colour = "#12345"},
                                             {.stroke_colour = "#12345g"},
                                             {.background = "pink"},
                                             {.font = "a;}"},
                                             {.font = ""},
                                             {.width = 5},
                                             {.frame_height = 1},
                                             {.min_width = 101},
                                             {.min_width = NAN},
                                             {.factor = -1}};
    struct error error;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(svg_options_check(&bad[i], &error));
        assert_int_equal(error.kind, ERROR_USAGE);
    }
    struct flame *flame = three_stacks();
    struct svg_options all = {.title = "T",
                              .subtitle = "S",
                              .count_name = "ns",
                              .root_name = "root",
                              .width = 800,
                              .frame_height = 20,
                              .font = "Fira Code, monospace",
                              .font_size = 10,
                              .background = "blue",
                              .search_colour = "#112233",
                              .ui_colour = "#445566",
                              .stroke_colour = "#778899",
                              .factor = 0.5,
                              .total = 200,
                              .truncate_left = true};
    size_t size;
    char *svg = drawn(flame, &all, &size);
    assert_true(is_well_formed(svg, size));
    assert_non_null(strstr(
        svg,
        "<title>main (50 ns, 50.00%)</title><rect x=\"0%\" y=\"91\" width=\"50%\" height=\"19\""));
    assert_non_null(strstr(svg, "font-family:'Fira Code',monospace;font-size:10px"));
    static const char *const wanted[] = {"#112233",        "#445566",       "#778899",
                                         "linearGradient", "width=\"800\"", "data-left"};
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        assert_non_null(strstr(svg, wanted[i]));
    free(svg);
    flame_free(flame);
}

/* The deviation comes from a file: the error must fit the integer that is printed. */
static void test_absurd_errors(void **state) {
    assert_true(estimate_error(UINT64_MAX, 1, UINT64_MAX) == ERROR_MOST);
    assert_true(estimate_error(100, 0, 7) == 100);
    assert_true(estimate_error(100, 1000, 10) == 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_titles_and_places),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_narrow_frames_are_left_out),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_colours_can_be_read),
        cmocka_unit_test(test_colours_tell_kinds_apart),
        cmocka_unit_test(test_palette_map),
        cmocka_unit_test(test_name_attributes),
        cmocka_unit_test(test_diff),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_absurd_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
