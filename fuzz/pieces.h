/* Several files in one input: each is its size in four bytes, then its bytes; the last may be cut short. */
#ifndef WICK_FUZZ_PIECES_H
#define WICK_FUZZ_PIECES_H

#include "base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static inline size_t pieces_split(const uint8_t *data, size_t size, struct text *pieces,
                                  size_t most) {
    size_t count = 0;
    while (count < most && size >= 4) {
        size_t length = load_u32(data);
        data += 4, size -= 4;
        if (length > size)
            length = size;
        pieces[count++] = (struct text){(const char *)data, length};
        data += length, size -= length;
    }
    return count;
}

/* A file in the current directory, which a fuzzer of its own has (work_in_a_folder). */
static inline void piece_write(const char *name, struct text piece) {
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (file < 0 || write(file, piece.data, piece.length) != (ssize_t)piece.length)
        abort();
    close(file);
}

/* Works in a folder of this name below the current directory, which is the build's. */
static inline void work_in_a_folder(const char *name) {
    static bool is_there;
    if (is_there)
        return;
    mkdir(name, 0700);
    if (chdir(name) != 0)
        abort();
    is_there = true;
}

/* Bytes as a file without a name: its descriptor, and the path that leads there. */
static inline int piece_file(struct text piece, char path[64]) {
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, piece.data, piece.length) != (ssize_t)piece.length)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", file);
    return file;
}

#endif
