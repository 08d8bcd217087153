/* The formats, and finding one. */
#include "export/formats.h"

const struct export_format export_formats[] = {
    {"speedscope", "speedscope's JSON", ".speedscope.json", DETAIL_FUNCTIONS, .has_time = true,
     .write = speedscope_write},
    {"pprof", "profile.proto, packed, of Go's pprof, Pyroscope, Parca", ".pb.gz .pprof",
     DETAIL_ADDRESSES, .has_lines = true, .is_binary = true, .write = pprof_write},
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

bool export_write(struct out *out, const struct export_format *format, const struct tree *tree,
                  const struct naming *naming, const struct export_options *options,
                  struct error *error) {
    struct outline *outline = outline_new(tree, naming, options, format->detail, error);
    bool fine = outline && format->write(out, outline, error);
    outline_free(outline);
    return fine;
}

bool export_fits(const struct outline *outline, uint64_t size, struct error *error) {
    uint64_t most = 4ull << 30;
    if (outline->options->force || size <= most)
        return true;
    return error_set(error, ERROR_INPUT,
                     "it would take %.1f GB: the format has every stack in full; --fold-recursion "
                     "or --max-depth N make it smaller, --force writes it",
                     (double)size / 1e9);
}
