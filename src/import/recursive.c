/*
 * Folded text whose direct recursion is folded: `a;b;b;b;c 1` is `a;b;c 1`. Never detected; select it with `--from
 * recursive`.
 */
#include "import/reader.h"

static bool recursive_line(struct reader *r) {
    size_t space = text_find_last(r->line, ' ');
    uint64_t count;
    if (space == SIZE_MAX || !text_to_u64(text_from(r->line, space + 1), &count))
        return reader_bad(r, "invalid data in line");
    struct text rest = text_upto(r->line, space), last = {0};
    r->stack.locations.count = 0;
    for (bool more = true; more;) {
        size_t end = text_find(rest, ';');
        struct text name = end == SIZE_MAX ? rest : text_upto(rest, end);
        if (!last.data || !text_equal(name, last))
            stack_push(&r->stack, name);
        last = name;
        more = end != SIZE_MAX;
        if (more)
            rest = text_from(rest, end + 1);
    }
    stack_count(&r->stack, count, count);
    return true;
}

static bool recursive_read(struct text content, const char *path,
                           const struct import_options *options, struct tree *tree,
                           struct error *error) {
    struct reader r;
    reader_init(&r, content, path, options, tree, TEXT("samples"), error);
    bool fine = true;
    while (fine && reader_next(&r))
        fine = recursive_line(&r);
    reader_release(&r);
    return fine;
}

static int recursive_score(struct text beginning) {
    return 0;
}

const struct import_format format_recursive = {
    "recursive", "folded stacks, with direct recursion folded", recursive_score, recursive_read};
