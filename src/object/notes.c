/*
 * Notes about what could not be found, once for each object that was used.
 */
#include "object/internal.h"

static const struct note_kind note_absent = {
    "files-missing",
    "# file{|s} with code {was|were} not found, so {its|their} functions have no names"};
static const struct note_kind note_mismatch = {
    "files-differ", "# file{ is not the one|s are not the ones} that ran: {its|their} build id "
                    "differs; {it was|they were} not used"};
static const struct note_kind note_replaced = {
    "files-replaced", "# file{ has|s have} no build id and changed since {it|they} ran, and "
                      "{was|were} not used; --symfs / uses {it|them} anyway"};
static const struct note_kind note_refused = {
    "perf-maps-refused", "# perf map{ belongs|s belong} to another user or {is a link|are links}, "
                         "and {was|were} not used; chown {it|them} as root"};
static const struct note_kind note_no_map = {
    "perf-maps-missing", "# process{|es} ran generated code and left no perf map for its names"};
static const struct note_kind note_denied = {"kernel-symbols-hidden",
                                             "the kernel hides its addresses: run as root, or set "
                                             "kernel.kptr_restrict to 0, to see its names"};
static const struct note_kind note_no_kernel = {
    "kernel-symbols-missing",
    "no symbols of the recorded kernel were found; give them with --kallsyms FILE"};

static const struct note_kind note_vmlinux = {
    "vmlinux-differs", "--vmlinux is not the recorded kernel's ELF file, and was not used"};

static const struct note_kind note_rules = {"unwind-rules-refused",
                                            "# file{ has|s have} unwind rules with impossible "
                                            "registers or endless nesting, which were not used"};
const struct note_kind note_costly_names = {
    "names-too-long", "# name{ expands|s expand} to more text than the size of {its|their} file "
                      "allows, and {is|are} shown mangled or cut"};

static const struct note_kind note_list_cut = {
    "symbol-lists-cut", "# list{|s} of symbols would take more memory than {its|their} size "
                        "allows, and {was|were} only read in part"};

static const struct note_kind note_undelivered = {
    "debuginfod-failed",
    "# file{|s} could not be downloaded from debuginfod; --no-debuginfod disables it"};

static void note_file(const struct object *object, struct notes *notes) {
    const struct note_kind *kind = object->trouble == FILE_MISMATCH   ? &note_mismatch
                                   : object->trouble == FILE_REPLACED ? &note_replaced
                                                                      : &note_absent;
    notes_add(notes, kind, 1, 0, "%.*s", TEXT_ARGS(object->identity.path));
}

/* Where other code of the process is described, as that of a JVM is, no perf map is expected: addresses without a name are of code that was freed
   before it was read. */
static void note_map(const struct objects *objects, const struct object *object,
                     struct notes *notes) {
    bool is_refused = object->trouble == FILE_REFUSED;
    if (is_refused || !objects_have_made(objects, object->identity.pid))
        notes_add(notes, is_refused ? &note_refused : &note_no_map, 1, 0, "%.*s",
                  TEXT_ARGS(object->shown));
}

static void note_object(const struct objects *objects, const struct object *object,
                        struct notes *notes) {
    if (object->trouble == FILE_FINE)
        return;
    switch (object->identity.kind) {
    case OBJECT_FILE:
    case OBJECT_VDSO:
        note_file(object, notes);
        break;
    case OBJECT_PERFMAP:
        note_map(objects, object, notes);
        break;
    case OBJECT_KERNEL:
        if (object->asked)
            notes_add(notes, object->trouble == FILE_DENIED ? &note_denied : &note_no_kernel, 1, 0,
                      NULL);
        break;
    default:
        break;
    }
}

void objects_notes_of(struct objects *objects, uint32_t id, struct notes *notes) {
    const struct object *object = objects->items.items[id];
    const struct symbols *symbols = atomic_load(&object->symbols);
    note_object(objects, object, notes);
    if (object->undelivered)
        notes_add(notes, &note_undelivered, 1, id, "%.*s: %s", TEXT_ARGS(object->shown),
                  object->undelivered);
    if (object->vmlinux_refused && object->asked)
        notes_add(notes, &note_vmlinux, 1, id, NULL);
    if (object_cfi_refused(object))
        notes_add(notes, &note_rules, 1, id, "%.*s", TEXT_ARGS(object->shown));
    if (symbols && symbols->costly_names)
        notes_add(notes, &note_costly_names, symbols->costly_names, id, "%.*s",
                  TEXT_ARGS(object->shown));
    if (symbols && budget_exceeded(&symbols->budget))
        notes_add(notes, &note_list_cut, 1, id, "%.*s, byte %llu", TEXT_ARGS(object->shown),
                  (unsigned long long)symbols->budget.offset);
    object_note_inlines(object, id, notes);
}

void objects_notes(struct objects *objects, struct notes *notes) {
    for (uint32_t id = 1; id <= objects_count(objects); id++)
        objects_notes_of(objects, id, notes);
}
