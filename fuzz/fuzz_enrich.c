/* wick enrich: the first piece is output of wick trace --raw, the second the ELF file that its addresses belong to. */
#include "pieces.h"
#include "reading.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text pieces[2] = {0};
    struct context context = {.threads = 1};
    struct error error = {0};
    struct notes notes = {0};
    char path[64];
    if (pieces_split(data, size, pieces, 2) < 2)
        return 0;
    int elf = piece_file(pieces[1], path);
    struct flame *flame = trace_enrich(pieces[0], "raw", path, &context, &notes, &error);
    assert(!flame == !!error.kind);
    if (flame)
        check_flame(flame);
    flame_free(flame);
    notes_release(&notes);
    close(elf);
    return 0;
}
