/*
 * Write the part of the running kernel's list that names a few addresses, for recordings that are read on another machine.
 *
 * After a function that is not followed by another one of the part, a line with the name "-" marks the gap, so that an address that was not
 * requested gets no name instead of a wrong one.
 */
#include "object/source.h"

struct printing {
    struct objects *objects;
    struct object *kernel;
    struct buffer *text;
    uint64_t next; /* everything below is printed */
    uint64_t hole; /* where the last function ends; 0: there is none yet */
};

static char type_of(const struct entry *entry) {
    return entry->weak ? 'W' : entry->global ? 'T' : 't';
}

static void print_hole(struct printing *p, uint64_t before) {
    if (p->hole && p->hole < before)
        buffer_printf(p->text, "%016llx t " KERNEL_NAME_NONE "\n", (unsigned long long)p->hole);
}

static void print_function_at(struct printing *p, uint64_t address) {
    if (address < p->next)
        return;
    const struct symbols *symbols = kernel_symbols_at(p->objects, p->kernel, address);
    uint32_t number = symbols_find(symbols, address);
    if (number == SYMBOLS_NONE)
        return;
    const struct entry *entry = &symbols->entries.items[number];
    struct text module = kallsyms_module(symbols, entry);
    print_hole(p, entry->start);
    buffer_printf(p->text, "%016llx %c ", (unsigned long long)entry->start, type_of(entry));
    buffer_add(p->text, symbols_raw_name(symbols, entry));
    if (module.length)
        buffer_add_char(p->text, '\t');
    buffer_add(p->text, module);
    buffer_add_char(p->text, '\n');
    p->next = p->hole = entry->end;
}

/* Lines that tell how far the list is shifted. Their type lets kallsyms_find() see them, and nothing be named after them. */
static void print_marks(struct buffer *text, struct text marks) {
    enum { TYPE_AT = 17 };
    for (size_t end; (end = text_find(marks, '\n')) != SIZE_MAX;
         marks = text_from(marks, end + 1)) {
        size_t line = text->count;
        buffer_add(text, text_upto(marks, end + 1));
        text->items[line + TYPE_AT] = 'A';
    }
}

void kernel_names_print(const uint64_t *addresses, size_t count, const char *cache,
                        struct buffer *text) {
    struct objects_options options = {.cache = cache, .quirks.running_kernel_first = true};
    struct object_identity identity = {.path = TEXT("[kernel.kallsyms]"), .kind = OBJECT_KERNEL};
    object_kernel_build_id(&identity.build_id);
    struct objects *objects = objects_new(&options);
    struct object *kernel = objects_object(objects, objects_add(objects, &identity));
    struct printing printing = {.objects = objects, .kernel = kernel, .text = text};
    object_symbols(objects, kernel);
    if (kernel->marks.count) { /* the list was read, and shows addresses */
        print_marks(text, buffer_text(&kernel->marks));
        for (size_t i = 0; i < count; i++) {
            /* A return address is looked up one byte earlier. */
            print_function_at(&printing, addresses[i] - 1);
            print_function_at(&printing, addresses[i]);
        }
        print_hole(&printing, UINT64_MAX);
        objects_store(objects);
    }
    objects_free(objects);
}
