/* The table of formats, and how one is found. */
#include "export/formats.h"

const struct export_format export_formats[] = {
    {"speedscope", "speedscope's JSON", ".speedscope.json", DETAIL_FUNCTIONS, .has_time = true,
     .write = speedscope_write},
    {"pprof", "profile.proto, compressed, for Go's pprof, Pyroscope, Parca", ".pb.gz .pprof",
     DETAIL_ADDRESSES, .has_lines = true, .has_labels = true, .is_binary = true,
     .write = pprof_write},
    {"firefox", "a processed profile for the Firefox Profiler", ".firefox.json", DETAIL_ADDRESSES,
     .has_time = true, .has_lines = true, .write = firefox_write},
    {"callgrind", "Callgrind's text, for KCachegrind", ".callgrind", DETAIL_LINES,
     .has_lines = true, .write = callgrind_write, .write_graph = callgrind_write_graph},
    {"cpuprofile", "V8's CPU profile, for Chrome's DevTools and VS Code", ".cpuprofile",
     DETAIL_FUNCTIONS, .has_time = true, .write = cpuprofile_write},
    {"chrome", "Chrome's trace events, for Perfetto", ".trace.json", DETAIL_FUNCTIONS,
     .has_time = true, .write = chrome_write},
    {"otlp", "ProfilesData of OpenTelemetry", ".otlp", DETAIL_ADDRESSES, .has_lines = true,
     .has_labels = true, .is_binary = true, .write = otlp_write},
    {0},
};

const struct export_format *export_format_named(const char *name) {
    for (const struct export_format *format = export_formats; format->name; format++)
        if (strcmp(format->name, name) == 0)
            return format;
    return NULL;
}

static bool ends_so(struct text path, struct text suffixes) {
    while (suffixes.length) {
        size_t space = text_find(suffixes, ' ');
        struct text suffix = space == SIZE_MAX ? suffixes : text_upto(suffixes, space);
        if (text_ends(path, suffix))
            return true;
        suffixes = text_from(suffixes, space == SIZE_MAX ? suffixes.length : space + 1);
    }
    return false;
}

const struct export_format *export_format_of_path(const char *path) {
    for (const struct export_format *format = export_formats; format->name; format++)
        if (ends_so(text_of(path), text_of(format->suffixes)))
            return format;
    return NULL;
}

void export_add_names(struct buffer *names) {
    for (const struct export_format *format = export_formats; format->name; format++)
        buffer_printf(names, "%s%s", format == export_formats ? "" : ", ", format->name);
}

const char *export_title(const char *path) {
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "standard input" : slash && slash[1] ? slash + 1 : path;
}

bool export_write(struct out *out, const struct export_format *format, const struct tree *tree,
                  const struct naming *naming, const struct export_options *options,
                  struct error *error) {
    if (tree->is_graph)
        return format->write_graph(out, tree, naming, options, error);
    struct outline *outline = outline_new(tree, naming, options, format, error);
    bool fine = outline && format->write(out, outline, error);
    outline_free(outline);
    return fine;
}

bool export_count(const struct tree *tree, const struct naming *naming,
                  const struct export_options *options, uint64_t *count, struct error *error) {
    struct outline *outline =
        outline_new(tree, naming, options, export_format_named("pprof"), error);
    *count = outline ? outline->entries.count : 0;
    bool fine = outline != NULL;
    outline_free(outline);
    return fine;
}

bool export_fits(const struct outline *outline, uint64_t size, struct error *error) {
    uint64_t most = 4ull << 30;
    if (outline->options->force || size <= most)
        return true;
    return error_set(
        error, ERROR_INPUT,
        "it would take %.1f GB, because the format repeats every stack; --fold-recursion, "
        "--max-depth N or fewer events make it smaller, --force writes it anyway",
        (double)size / 1e9);
}

static void add_fraction(struct buffer *buffer, uint64_t rest, unsigned digits) {
    if (!rest)
        return;
    for (; rest % 10 == 0; rest /= 10)
        digits--;
    buffer_printf(buffer, ".%0*llu", (int)digits, (unsigned long long)rest);
}

void buffer_add_decimal(struct buffer *buffer, uint64_t value, unsigned digits) {
    uint64_t each = 1;
    for (unsigned i = 0; i < digits; i++)
        each *= 10;
    buffer_add_u64(buffer, value / each);
    add_fraction(buffer, value % each, digits);
}

static __uint128_t in_steps(uint64_t nanoseconds) {
    return ((__uint128_t)nanoseconds * 8192 + 500) / 1000;
}

void buffer_add_microseconds(struct buffer *buffer, uint64_t start, uint64_t end) {
    __uint128_t steps = in_steps(end) - in_steps(start);
    buffer_add_u64(buffer, (uint64_t)(steps / 8192));
    add_fraction(buffer, (uint64_t)(steps % 8192) * 1220703125, 13); /* 10^13 / 8192 */
}
