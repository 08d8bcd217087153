/*
 * Names from end to end: any bytes, as functions of a folded profile and as mangled names, through every view. The
 * output must be well-formed: no view passes a control character, and pictures and pages have no markup but their
 * own.
 */
#include "../include/wick.h"
#include "object/demangle.h"
#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A frame may have any byte except for folded text's separators. */
static void add_name(struct buffer *text, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++)
        buffer_add_char(text,
                        data[i] == '\n' || data[i] == ';' || data[i] == 0 ? '_' : (char)data[i]);
}

static struct text view_of(int file) {
    off_t size = lseek(file, 0, SEEK_END);
    void *view = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
    return (struct text){view, view ? (size_t)size : 0};
}

static void check(struct text view, bool is_markup) {
    for (size_t i = 0; i < view.length; i++) {
        unsigned char c = (unsigned char)view.data[i];
        if (c < 0x20 && c != '\n' && c != '\t' && c != '\r')
            abort();
    }
    if (is_markup && text_search(view, TEXT("<wickfuzz")) != SIZE_MAX)
        abort();
    if (view.length)
        munmap((void *)(uintptr_t)view.data, view.length);
}

static void write_views(struct wick *wick) {
    static const char *const formats[] = {"speedscope", "callgrind", "cpuprofile", "chrome",
                                          "firefox"};
    struct wick_error error;
    for (size_t i = 0; i < 2 + COUNT_OF(formats); i++) {
        char path[64];
        int file = piece_file(TEXT(""), path);
        bool fine = i == 0   ? wick_write_svg(wick, path, NULL, &error)
                    : i == 1 ? wick_write_html(wick, path, NULL, &error)
                             : wick_write_format(wick, formats[i - 2], path, NULL, &error);
        if (fine)
            check(view_of(file), i < 2);
        close(file);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buffer text = {0};
    if (size > 4096)
        return 0;
    buffer_add(&text, TEXT("main;<wickfuzz>"));
    add_name(&text, data, size);
    buffer_add(&text, TEXT(";leaf 3\nmain;"));
    add_name(&text, data, size / 2);
    buffer_add(&text, TEXT(" 4\n"));
    char path[64];
    int file = piece_file(buffer_text(&text), path);
    const char *read = path;
    struct wick_error error;
    struct wick *wick =
        wick_open(&read, 1, &(struct wick_options){.from = "folded", .threads = 1}, &error);
    if (wick)
        write_views(wick);
    wick_close(wick);
    close(file);
    buffer_release(&text);
    return 0;
}
