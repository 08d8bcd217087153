/* Run any bytes as a RISC-V program: as bare instructions, as an ELF file, and as the code of a valid one. Run what
   loads, briefly. Input that begins like a stream is read as one, of any engine. */
#include "trace/classify.h"
#include "trace/riscv/guest.h"
#include "trace/trace.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_all(const uint8_t *data, size_t size) {
    for (size_t i = 0; i + 4 <= size && i < 4096; i += 2)
        for (unsigned xlen = 32; xlen <= 64; xlen += 32) {
            struct instruction in = riscv_decode(load_u32(data + i), xlen);
            unsigned loaded, stored;
            riscv_access(&in, &loaded, &stored);
            if (in.op >= RISCV_COUNT || (in.length != 2 && in.length != 4) || in.rd > 31 ||
                in.rs1 > 31 || loaded > 8 || stored > 8)
                abort();
            riscv_control(&in);
        }
}

static void run(int descriptor, enum trace_engine engine) {
    static const char *const arguments[] = {"guest"};
    char path[40];
    struct trace trace;
    struct error error;
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    bool is_stream = engine == ENGINE_STREAM;
    struct trace_options options = {.engine = engine,
                                    .path = is_stream ? NULL : path,
                                    .stream = path,
                                    .arguments = arguments,
                                    .argument_count = 1,
                                    .budget = 2000,
                                    .memory_size = is_stream ? 0 : 64 << 20,
                                    .stack_size = is_stream ? 0 : 1 << 20,
                                    .input = nowhere,
                                    .output = nowhere,
                                    .error_output = nowhere};
    if (trace_run(&trace, &options, NULL, NULL, &error)) {
        uint64_t sum = 0;
        for (uint32_t i = 1; i < *trace.trie.count; i++)
            sum += trace.trie.nodes[i].count;
        if (sum != trace.instructions || trace.instructions > options.budget)
            abort(); /* every instruction is counted once */
        trace_release(&trace);
    }
    close(nowhere);
}

static int file_of(const void *head, size_t head_size, const uint8_t *data, size_t size) {
    int descriptor = memfd_create("guest", MFD_CLOEXEC);
    if (descriptor < 0 || write(descriptor, head, head_size) < 0 ||
        write(descriptor, data, size) < 0)
        abort();
    return descriptor;
}

/* A program whose only segment, readable, writable and executable, is the input. */
static int program_of(const uint8_t *data, size_t size, bool is64) {
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segment;
    } wide = {{.e_type = ET_EXEC,
               .e_machine = EM_RISCV,
               .e_version = 1,
               .e_entry = 0x10000,
               .e_phoff = sizeof(Elf64_Ehdr),
               .e_ehsize = sizeof(Elf64_Ehdr),
               .e_phentsize = sizeof(Elf64_Phdr),
               .e_phnum = 1},
              {.p_type = PT_LOAD,
               .p_flags = 7,
               .p_offset = sizeof wide,
               .p_vaddr = 0x10000,
               .p_filesz = size,
               .p_memsz = size + 4096}};
    struct {
        Elf32_Ehdr header;
        Elf32_Phdr segment;
    } narrow = {{.e_type = ET_EXEC,
                 .e_machine = EM_RISCV,
                 .e_version = 1,
                 .e_entry = 0x10000,
                 .e_phoff = sizeof(Elf32_Ehdr),
                 .e_ehsize = sizeof(Elf32_Ehdr),
                 .e_phentsize = sizeof(Elf32_Phdr),
                 .e_phnum = 1},
                {.p_type = PT_LOAD,
                 .p_flags = 7,
                 .p_offset = sizeof narrow,
                 .p_vaddr = 0x10000,
                 .p_filesz = (uint32_t)size,
                 .p_memsz = (uint32_t)size + 4096}};
    const uint8_t ident[8] = {0x7f,        'E',       'L', 'F', is64 ? ELFCLASS64 : ELFCLASS32,
                              ELFDATA2LSB, EV_CURRENT};
    memcpy(is64 ? wide.header.e_ident : narrow.header.e_ident, ident, sizeof ident);
    return is64 ? file_of(&wide, sizeof wide, data, size)
                : file_of(&narrow, sizeof narrow, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    decode_all(data, size);
    bool is_elf = size > 4 && memcmp(data, ELFMAG, SELFMAG) == 0;
    bool is_stream = size >= 8 && memcmp(data, "WICKFLOW", 8) == 0;
    int descriptor = is_elf || is_stream ? file_of("", 0, data, size)
                                         : program_of(data, size, !size || data[size - 1] & 1);
    run(descriptor, is_stream ? ENGINE_STREAM : ENGINE_BUILTIN);
    close(descriptor);
    return 0;
}
