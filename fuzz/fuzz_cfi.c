/* Parse the bytes as an ELF file and look up unwinding rules all over it. */
#include "elf_mutate.h"
#include "elf_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(const struct cfi_row *row) {
    assert(row->rule_count <= 64 && row->return_register < 64);
    for (uint32_t i = 0; i < row->rule_count; i++) {
        const struct cfi_rule *rule = &row->rules[i];
        assert(rule->reg < 64 && (row->kept >> rule->reg & 1));
        if (rule->kind == CFI_AT_EXPRESSION || rule->kind == CFI_EXPRESSION)
            assert(rule->op_count && row->ops);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct elf_bytes elf;
    uint8_t bytes[8];
    uint64_t entry;
    if (!elf_bytes_open(&elf, data, size))
        return 0;
    for (size_t at = 0; at < size; at += elf_bytes_stride(size)) {
        const struct cfi_row *row = objects_cfi(elf.objects, elf.object, at);
        assert(row == objects_cfi(elf.objects, elf.object, at));
        if (row)
            check_row(row);
        objects_read(elf.objects, elf.object, at, bytes, sizeof bytes);
    }
    objects_entry(elf.objects, elf.object, &entry);
    objects_machine(elf.objects, elf.object);
    elf_bytes_close(&elf);
    return 0;
}
