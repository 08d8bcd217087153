/* Find source text and machine code attached to a tree, by file or address; disassemble machine code. */
#include "view/attached.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "object/capstone.h"

static struct text file_of(const struct attached *a, const struct attached_source *source) {
    return strings_get(a->tree->strings, source->file);
}

/* Of several for the same file, the first in the tree comes first. */
static int compare_sources(const void *x, const void *y, void *context) {
    const struct attached_source *const *one = x, *const *other = y;
    const struct attached *a = context;
    int order = text_compare(file_of(a, *one), file_of(a, *other));
    return order ? order : (*one > *other) - (*one < *other);
}

static int compare_codes(const void *x, const void *y) {
    const struct attached_code *one = *(const struct attached_code *const *)x;
    const struct attached_code *other = *(const struct attached_code *const *)y;
    if (one->object != other->object)
        return one->object < other->object ? -1 : 1;
    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    return (one < other) - (one > other);
}

void attached_init(struct attached *a, const struct tree *tree) {
    a->tree = tree;
    a->sources = memory_zero(tree->sources.count + 1, sizeof *a->sources);
    a->codes = memory_zero(tree->codes.count + 1, sizeof *a->codes);
    for (size_t i = 0; i < tree->sources.count; i++)
        a->sources[i] = &tree->sources.items[i];
    for (size_t i = 0; i < tree->codes.count; i++)
        a->codes[i] = &tree->codes.items[i];
    qsort_r(a->sources, tree->sources.count, sizeof *a->sources, compare_sources, a);
    qsort(a->codes, tree->codes.count, sizeof *a->codes, compare_codes);
}

void attached_release(struct attached *a) {
    free(a->sources);
    free(a->codes);
}

struct text attached_source_of(const struct attached *a, struct text file) {
    size_t count = a->tree->sources.count;
    size_t at = search_first(i, 0, count, text_compare(file_of(a, a->sources[i]), file) < 0);
    return at < count && text_equal(file_of(a, a->sources[at]), file) ? a->sources[at]->text
                                                                      : TEXT("");
}

const struct attached_code *attached_code_at(const struct attached *a, uint32_t object,
                                             uint64_t address) {
    size_t after = search_first(i, 0, a->tree->codes.count,
                                a->codes[i]->object < object || (a->codes[i]->object == object &&
                                                                 a->codes[i]->start <= address));
    const struct attached_code *code = after ? a->codes[after - 1] : NULL;
    return code && code->object == object && address - code->start < code->bytes.length ? code
                                                                                        : NULL;
}

/* ---- machine code as text ---- */

#ifdef HAVE_CAPSTONE
static bool disassembler_open(const struct capstone *library, uint32_t machine, csh *handle) {
    if (machine == EM_X86_64 || machine == EM_386)
        return library->open(CS_ARCH_X86, machine == EM_386 ? CS_MODE_32 : CS_MODE_64, handle) ==
               CS_ERR_OK;
    return machine == EM_AARCH64 && library->open(CS_ARCH_ARM64, CS_MODE_ARM, handle) == CS_ERR_OK;
}

/* Direct jumps alone, by what they are called: their target is the last operand. */
static uint64_t jump_target(uint32_t machine, const char *name, const char *operands) {
    bool jumps = machine == EM_AARCH64
                     ? strcmp(name, "b") == 0 || strncmp(name, "b.", 2) == 0 ||
                           strncmp(name, "cb", 2) == 0 || strncmp(name, "tb", 2) == 0
                     : name[0] == 'j';
    const char *last = strrchr(operands, ' ');
    last = last ? last + 1 : operands;
    last += *last == '#';
    return jumps && strncmp(last, "0x", 2) == 0 ? strtoull(last, NULL, 16) : 0;
}

bool code_each(const struct attached_code *code,
               void (*each)(void *context, const struct instruction *instruction), void *context) {
    csh handle;
    struct capstone library;
    if (!capstone_load(&library) || !disassembler_open(&library, code->machine, &handle))
        return false;
    cs_insn *decoded = library.malloc(handle);
    const uint8_t *at = (const uint8_t *)code->bytes.data;
    size_t left = code->bytes.length;
    for (uint64_t address = code->start; left;) {
        struct instruction one = {.address = address, .name = ".byte"};
        char bad[8];
        snprintf(bad, sizeof bad, "0x%02x", *at);
        one.operands = bad;
        if (library.disasm_iter(handle, &at, &left, &address, decoded)) {
            one.name = decoded->mnemonic;
            one.operands = decoded->op_str;
            one.target = jump_target(code->machine, one.name, one.operands);
        } else {
            at++, left--, address++;
        }
        one.size = (uint32_t)(address - one.address);
        each(context, &one);
    }
    library.free(decoded, 1);
    library.close(&handle);
    return true;
}
#else
bool code_each(const struct attached_code *code,
               void (*each)(void *context, const struct instruction *instruction), void *context) {
    return false;
}
#endif
