/*
 * The colour of a frame: a pure function of its name, kinds and object.
 *
 * The palettes of flamegraph.pl and inferno derive three numbers in [0,1) from the name and scale each to the range of a channel. They compute in
 * single precision and truncate; so does wick, so that graphs can be compared rectangle by rectangle.
 */
#include "view/colour.h"

const char *const palette_names[PALETTE_COUNT] = {
    [PALETTE_WICK] = "wick",     [PALETTE_WAITS] = "waits",   [PALETTE_HOT] = "hot",
    [PALETTE_MEM] = "mem",       [PALETTE_IO] = "io",         [PALETTE_WAKEUP] = "wakeup",
    [PALETTE_CHAIN] = "chain",   [PALETTE_JAVA] = "java",     [PALETTE_JS] = "js",
    [PALETTE_PERL] = "perl",     [PALETTE_PYTHON] = "python", [PALETTE_RUST] = "rust",
    [PALETTE_RED] = "red",       [PALETTE_GREEN] = "green",   [PALETTE_BLUE] = "blue",
    [PALETTE_AQUA] = "aqua",     [PALETTE_YELLOW] = "yellow", [PALETTE_PURPLE] = "purple",
    [PALETTE_ORANGE] = "orange",
};

/* Waiting is blue, and wakers are aqua. */
const struct looks times_looks[] = {
    [TIMES_RUNNING] = {"Flame Graph", PALETTE_WICK},
    [TIMES_WAITING] = {"Off-CPU Time", PALETTE_WAITS},
    [TIMES_BOTH] = {"Wall Time", PALETTE_WICK},
};

/* ---- wick's own palette ---- */

/* Two ends between which the name picks, then a step towards white, also by name. All are light: black is read on them. */
struct family {
    struct colour from, to;
};
static const struct family family_program = {{247, 152, 104}, {250, 204, 104}};
static const struct family family_kernel = {{205, 158, 238}, {168, 164, 244}};
static const struct family family_jit = {{146, 208, 132}, {200, 218, 112}};
static const struct family family_waker = {{120, 210, 200}, {150, 220, 214}};
static const struct family family_unknown = {{196, 196, 196}, {214, 214, 214}};
static const struct family family_python = {{246, 206, 84}, {238, 226, 130}};
static const struct family family_java = {{230, 150, 150}, {240, 170, 140}};
static const struct family family_javascript = {{196, 214, 92}, {222, 224, 110}};
static const struct family family_ruby = {{240, 140, 160}, {246, 170, 176}};
static const struct family family_php = {{176, 184, 236}, {196, 190, 232}};
/* Which library: green-blue to blue in eight steps. */
static const struct family family_library = {{122, 208, 178}, {140, 178, 246}};

/* The same for waiting: all are blue, except wakers, and equally light. */
static const struct family waits_program = {{138, 168, 250}, {160, 190, 255}};
static const struct family waits_library = {{160, 185, 250}, {175, 200, 255}};
static const struct family waits_kernel = {{150, 150, 245}, {170, 165, 250}};
static const struct family waits_unknown = {{170, 178, 235}, {178, 186, 240}};
static const struct colour waits_comm = {190, 200, 245};

static uint8_t mix(uint8_t a, uint8_t b, uint32_t part, uint32_t whole) {
    return (uint8_t)((a * (whole - part) + b * part + whole / 2) / whole);
}

static struct colour colour_mix(struct colour a, struct colour b, uint32_t part, uint32_t whole) {
    return (struct colour){mix(a.red, b.red, part, whole), mix(a.green, b.green, part, whole),
                           mix(a.blue, b.blue, part, whole)};
}

static struct text without_folder(struct text path) {
    size_t slash = text_find_last(path, '/');
    return slash == SIZE_MAX ? path : text_from(path, slash + 1);
}

/* Text sources say it in the name. */
static uint32_t kinds_in_name(struct text name) {
    static const struct {
        char letter;
        uint32_t kind;
    } marks[] = {{'k', KIND_KERNEL},
                 {'j', KIND_JIT},
                 {'1', KIND_JIT},
                 {'i', KIND_INLINED},
                 {'w', KIND_WAKER}};
    if (name.length >= 2 && name.data[0] == '[' && name.data[name.length - 1] == ']')
        return KIND_UNKNOWN;
    if (name.length < 4 || memcmp(name.data + name.length - 4, "_[", 2) != 0 ||
        name.data[name.length - 1] != ']')
        return 0;
    for (size_t i = 0; i < COUNT_OF(marks); i++)
        if (name.data[name.length - 2] == marks[i].letter)
            return marks[i].kind;
    return 0;
}

static struct colour colour_wick(struct text name, struct text object, uint32_t kinds) {
    uint64_t hash = digest_bytes(name.data, name.length);
    uint32_t place = (uint32_t)(hash & 0xff), tint = (uint32_t)(hash >> 8) & 0xff;
    kinds |= kinds_in_name(name);
    const struct family *family = kinds & KIND_PYTHON       ? &family_python
                                  : kinds & KIND_JAVA       ? &family_java
                                  : kinds & KIND_JAVASCRIPT ? &family_javascript
                                  : kinds & KIND_RUBY       ? &family_ruby
                                  : kinds & KIND_PHP        ? &family_php
                                  : kinds & KIND_UNKNOWN    ? &family_unknown
                                  : kinds & KIND_KERNEL     ? &family_kernel
                                  : kinds & KIND_JIT        ? &family_jit
                                  : kinds & KIND_WAKER      ? &family_waker
                                  : kinds & KIND_LIBRARY    ? &family_library
                                                            : &family_program;
    if (family == &family_library) {
        struct text file = without_folder(object);
        place = (uint32_t)(digest_bytes(file.data, file.length) & 7) * 32 + place / 16;
    }
    struct colour white = {255, 255, 255};
    struct colour colour = colour_mix(family->from, family->to, place, 255);
    colour = colour_mix(colour, white, tint, 255 * 5);
    return kinds & KIND_INLINED ? colour_mix(colour, white, 1, 2) : colour;
}

static struct colour colour_waits(struct text name, uint32_t kinds) {
    uint64_t hash = digest_bytes(name.data, name.length);
    kinds |= kinds_in_name(name);
    const struct family *family = kinds & KIND_WAKER     ? &family_waker
                                  : kinds & KIND_UNKNOWN ? &waits_unknown
                                  : kinds & KIND_KERNEL  ? &waits_kernel
                                  : kinds & KIND_LIBRARY ? &waits_library
                                                         : &waits_program;
    struct colour colour = colour_mix(family->from, family->to, (uint32_t)(hash & 0xff), 255);
    return colour_mix(colour, (struct colour){255, 255, 255}, (uint32_t)(hash >> 8) & 0xff,
                      255 * 5);
}

/* ---- the peers' palettes ---- */

struct draw {
    float v1, v2, v3;
};

/* FNV-1a, and twice more its multiplication for two more numbers. */
static struct draw draw_by_name(struct text name) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < name.length; i++)
        hash = (hash ^ (uint8_t)name.data[i]) * 0x100000001b3;
    uint64_t second = hash * 0x100000001b3, third = second * 0x100000001b3;
    return (struct draw){(float)((double)hash / 0x1p64), (float)((double)second / 0x1p64),
                         (float)((double)third / 0x1p64)};
}

/* The first three letters, each worth less than the one before. `step` is -1 to read backwards. */
static float letters_weight(const char *letter, size_t count, int step) {
    float vector = 0, weight = 1, most = 1;
    uint32_t modulus = 10;
    for (size_t i = 0; i < count && i < 3; i++, letter += step) {
        uint32_t rest = (uint8_t)*letter % modulus++;
        vector += ((float)rest / (float)(modulus - 2)) * weight;
        most += weight;
        weight *= 0.70f;
    }
    return 1.0f - vector / most;
}

/* Everything through the first backtick counts for nothing, unless it is the first letter: a module stands before it. The
   second number reads the name from its end, by the same rule. */
static struct draw draw_by_hash(struct text name) {
    size_t start = 0, end = name.length;
    for (size_t i = 1; i < name.length && !start; i++)
        if (name.data[i] == '`')
            start = i + 1;
    for (size_t i = name.length; i-- > 1 && end == name.length;)
        if (name.data[i - 1] == '`')
            end = i - 1;
    float forward = letters_weight(name.data + start, name.length - start, 1);
    float backward = letters_weight(name.data + end - (end > 0), end, -1);
    return (struct draw){forward, backward, backward};
}

static uint8_t stretch(float base, float range, float v) {
    return (uint8_t)(base + range * v);
}

static struct colour colour_of_draw(enum palette palette, struct draw d) {
    float v = d.v1;
    switch (palette) {
    case PALETTE_MEM:
        return (struct colour){0, stretch(190, 50, d.v2), stretch(0, 210, v)};
    case PALETTE_IO:
        return (struct colour){stretch(80, 60, v), stretch(80, 60, v), stretch(190, 55, d.v2)};
    case PALETTE_RED:
        return (struct colour){stretch(200, 55, v), stretch(50, 80, v), stretch(50, 80, v)};
    case PALETTE_GREEN:
        return (struct colour){stretch(50, 60, v), stretch(200, 55, v), stretch(50, 60, v)};
    case PALETTE_BLUE:
        return (struct colour){stretch(80, 60, v), stretch(80, 60, v), stretch(205, 50, v)};
    case PALETTE_YELLOW:
        return (struct colour){stretch(175, 55, v), stretch(175, 55, v), stretch(50, 20, v)};
    case PALETTE_PURPLE:
        return (struct colour){stretch(190, 65, v), stretch(80, 60, v), stretch(190, 65, v)};
    case PALETTE_AQUA:
        return (struct colour){stretch(50, 60, v), stretch(165, 55, v), stretch(165, 55, v)};
    case PALETTE_ORANGE:
        return (struct colour){stretch(190, 65, v), stretch(90, 65, v), 0};
    default:
        return (struct colour){stretch(205, 50, d.v3), stretch(0, 230, v), stretch(0, 55, d.v2)};
    }
}

struct colour colour_of_frame(const struct colouring *colouring, struct text name,
                              struct text object, uint32_t kinds) {
    if (colouring->palette == PALETTE_WICK &&
        kinds & KIND_ROOT) /* a comm, no code: as in the page */
        return (struct colour){211, 219, 228};
    if (colouring->palette == PALETTE_WICK)
        return colour_wick(name, object, kinds);
    if (text_equal(name, TEXT("--")))
        return (struct colour){160, 160, 160};
    if (text_equal(name, TEXT("-")))
        return (struct colour){200, 200, 200};
    if (colouring->palette == PALETTE_WAITS)
        return kinds & KIND_ROOT ? waits_comm : colour_waits(name, kinds);
    struct draw draw = colouring->by_hash ? draw_by_hash(name) : draw_by_name(name);
    return colour_of_draw(palette_by_meaning(colouring->palette, name, kinds), draw);
}

struct colour colour_of_wall(struct text name, struct text object, uint32_t kinds, bool waits) {
    struct colouring colouring = {.palette = PALETTE_WAITS};
    struct colour c = colour_of_frame(&colouring, name, object, kinds);
    return waits ? c : (struct colour){c.blue, c.green, c.red};
}

struct colour colour_at_random(const struct colouring *colouring, struct text name, uint32_t kinds,
                               uint64_t number) {
    uint64_t first = digest_mix(number, 1), second = digest_mix(number, 2),
             third = digest_mix(number, 3);
    struct draw draw = {(float)((double)first / 0x1p64), (float)((double)second / 0x1p64),
                        (float)((double)third / 0x1p64)};
    return colour_of_draw(palette_by_meaning(colouring->palette, name, kinds), draw);
}

/* ---- change, contrast, notation ---- */

struct colour colour_of_change(uint64_t part, uint64_t whole, bool is_growth) {
    if (part == 0)
        return (struct colour){250, 250, 250};
    if (part > whole)
        part = whole;
    uint8_t rest = (uint8_t)(100 + (uint64_t)((__uint128_t)150 * (whole - part) / whole));
    return is_growth ? (struct colour){255, rest, rest} : (struct colour){rest, rest, 255};
}

/* sRGB's curve to light, in thousandths, for each sixteenth of a channel; straight between. Exact enough to choose by. */
static uint32_t light(uint8_t channel) {
    static const uint16_t curve[] = {0,   5,   14,  30,  51,  80,  116, 159, 216,
                                     276, 347, 427, 520, 621, 733, 861, 1000};
    uint32_t step = channel >> 4, rest = channel & 15;
    return (curve[step] * (16 - rest) + curve[step + 1] * rest) / 16;
}

/* Contrast with black beats that with white where (L + 0.05)² > 1.05 × 0.05, that is L > 0.179. */
bool colour_takes_black(struct colour c) {
    return light(c.red) * 2126 + light(c.green) * 7152 + light(c.blue) * 722 > 179 * 10000;
}

bool colour_parse(const char *text, struct colour *colour) {
    struct text t = text_of(text);
    uint64_t value;
    if (t.length != 7 || t.data[0] != '#' || !text_hex_to_u64(text_from(t, 1), &value))
        return false;
    *colour = (struct colour){(uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    return true;
}
