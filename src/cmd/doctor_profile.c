/*
 * wick doctor FILE: for each object in a profile, which files its names came from, or why it has none and what would
 * help.
 */
#include "cmd/doctor.h"

#include <stdio.h>
#include <stdlib.h>

struct hit {
    uint32_t object;
    uint64_t samples; /* samples with the object anywhere in their stack */
    uint64_t unnamed; /* those with an address in it that has no name */
    size_t seen;      /* last cell counted, + 1; and the last one with such an address */
    size_t seen_unnamed;
};

static bool is_named(const struct tree *tree, const struct location *location) {
    return location_frame_count(location) > 0 && location_frame(tree, location, 0).name;
}

static void count_cell(const struct tree *tree, size_t number, struct hit *hits) {
    const struct cell *cell = &tree->cells.items[number];
    for (uint32_t node = cell->node; node; node = tree->nodes.items[node].parent) {
        const struct location *location = &tree->locations.items[tree->nodes.items[node].location];
        struct hit *hit = &hits[location->object];
        if (hit->seen != number + 1)
            hit->samples += cell->samples;
        hit->seen = number + 1;
        if (is_named(tree, location))
            continue;
        if (hit->seen_unnamed != number + 1)
            hit->unnamed += cell->samples;
        hit->seen_unnamed = number + 1;
    }
}

static int hit_order(const void *a, const void *b) {
    const struct hit *x = a, *y = b;
    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    return (x->object > y->object) - (x->object < y->object);
}

/* ---- findings ---- */

static void print_finding(const struct hit *hit, const struct object_found *found,
                          enum object_kind kind, struct buffer *text) {
    const char *names = found->debug && found->facts.symbols ? found->debug : found->code;
    buffer_printf(text, "%llu sample%s", (unsigned long long)hit->samples,
                  hit->samples == 1 ? "" : "s");
    if (hit->unnamed)
        buffer_printf(text, ", %llu without a name", (unsigned long long)hit->unnamed);
    if (!found->code && !found->debug)
        return buffer_printf(text, ": no file");
    const char *lines = found->debug ? found->debug : found->code;
    bool has_lines = found->facts.lines, any = found->facts.symbols || found->facts.exported;
    bool is_one = has_lines && found->facts.symbols && strcmp(lines, names) == 0;
    buffer_printf(text, ": %s%s",
                  found->is_packed       ? "symbols from .gnu_debugdata of "
                  : is_one               ? "symbols, inlined functions and lines from "
                  : found->facts.symbols ? "symbols from "
                  : any                  ? "only symbols of exported functions, from "
                                         : "no symbols in ",
                  names);
    if (kind != OBJECT_FILE && kind != OBJECT_VDSO)
        return;
    if (has_lines && !is_one)
        buffer_printf(text, ", inlined functions and lines from %s", lines);
    else if (!has_lines)
        buffer_add(text, TEXT(", no inlined functions and lines"));
    if (!found->facts.unwind)
        buffer_add(text, TEXT(", no unwind rules"));
}

/* Suggest where to get debug information: from a package, if the file belongs to one. glibc's package has an
   irregular name. */
static void print_package(struct text path, struct buffer *text) {
    struct buffer package = {0};
    if (!object_file_package(path, &package))
        buffer_add(text, TEXT("build it with -g, and do not strip it; or --debuginfod URL"));
    else if (text_equal(buffer_text(&package), TEXT("libc6")))
        buffer_add(text, TEXT("apt-get install libc6-dbg"));
    else
        buffer_printf(text, "apt-get install %.*s-dbgsym", TEXT_ARGS(buffer_text(&package)));
    buffer_release(&package);
}

static void print_remedy(const struct object_identity *identity, const struct object_found *found,
                         struct buffer *text) {
    if (identity->kind == OBJECT_PERFMAP)
        buffer_add(text, found->trouble == FILE_REFUSED
                             ? TEXT("chown its perf map to yourself")
                             : TEXT("let it write one: node --perf-basic-prof, java "
                                    "-XX:+DumpPerfMapAtExit, python -X perf"));
    else if (identity->kind == OBJECT_KERNEL || identity->kind == OBJECT_MODULE)
        buffer_add(text, found->trouble == FILE_DENIED
                             ? TEXT("sudo sysctl kernel.kptr_restrict=0")
                             : TEXT("--kallsyms FILE, from the recorded machine"));
    else if (identity->kind == OBJECT_VDSO || found->trouble == FILE_ABSENT)
        buffer_add(text, TEXT("--symfs DIR, with the files of the recorded machine"));
    else if (found->trouble != FILE_FINE)
        buffer_add(text, TEXT("record again: the file that ran was replaced"));
    else if (found->code)
        print_package(identity->path, text);
    else
        buffer_add(text, TEXT("--symfs DIR, with the files of the recorded machine"));
}

static void say_hit(struct objects *objects, const struct hit *hit) {
    const struct object_identity *identity = objects_get(objects, hit->object);
    struct object_found found;
    struct buffer finding = {0}, remedy = {0}, shown = {0};
    objects_found(objects, hit->object, &found);
    /* Addresses that are still unnamed then are code without symbols: stubs, assembly. */
    bool is_whole = found.facts.symbols && (found.facts.lines || identity->kind != OBJECT_FILE);
    enum record_verdict verdict = is_whole                       ? FINDING_GOOD
                                  : hit->unnamed == hit->samples ? FINDING_BAD
                                                                 : FINDING_LIMITED;
    print_finding(hit, &found, identity->kind, &finding);
    if (found.undelivered)
        buffer_printf(&finding, "; debuginfod: %s", found.undelivered);
    buffer_add_char(&finding, 0);
    if (verdict != FINDING_GOOD)
        print_remedy(identity, &found, &remedy);
    buffer_add_char(&remedy, 0);
    buffer_add_shown(&shown, objects_shown(objects, hit->object));
    buffer_add_char(&shown, 0);
    doctor_say(verdict, shown.items, finding.items, *remedy.items ? remedy.items : NULL);
    buffer_release(&finding);
    buffer_release(&remedy);
    buffer_release(&shown);
}

static bool has_files(const struct object_identity *identity) {
    return identity->kind != OBJECT_NONE && identity->kind != OBJECT_NAME &&
           identity->kind != OBJECT_BPF && identity->kind != OBJECT_MADE;
}

bool doctor_look_at_profile(struct request *request, const char *path, struct error *error) {
    struct source source;
    if (!request_start_net(request, error) ||
        !source_open(&source, &path, 1, &request->import, error))
        return false;
    struct tree *tree = source.tree;
    size_t count = tree->objects ? objects_count(tree->objects) + 1 : 0;
    struct hit *hits = memory_zero(count + 1, sizeof *hits);
    for (size_t i = 0; i < tree->cells.count && count; i++)
        count_cell(tree, i, hits);
    for (size_t i = 0; i < count; i++)
        hits[i].object = (uint32_t)i;
    qsort(hits, count, sizeof *hits, hit_order);
    bool any = false;
    for (size_t i = 0; i < count && hits[i].samples; i++)
        if (hits[i].object && has_files(objects_get(tree->objects, hits[i].object))) {
            say_hit(tree->objects, &hits[i]);
            any = true;
        }
    free(hits);
    source_close(&source);
    return any || error_set(error, ERROR_INPUT, "%s has only names, no addresses", path);
}
