/* Private to the room: the file's layout, and the sections as the reader and the writer see them. */
#ifndef WICK_SAVED_LAYOUT_H
#define WICK_SAVED_LAYOUT_H

#include "saved/saved.h"

/* The first byte is not text, and a transfer that converts line ends breaks the rest, so both are detected. */
#define SAVED_MAGIC "\x89wick\r\n\x1a"

enum {
    SAVED_MAGIC_SIZE = 8,
    SAVED_MAJOR = 1, /* a reader refuses a larger one */
    SAVED_MINOR = 0, /* sections and columns that older readers may ignore */
    SAVED_HEADER = 32,
    SAVED_ENTRY = 40,
    SAVED_SECTIONS_MOST = 1024,
};

/* A section's name, as four letters in the file. */
#define SAVED_TAG(a, b, c, d)                                                                      \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

enum saved_tag {
    SECTION_META = SAVED_TAG('M', 'E', 'T', 'A'),
    SECTION_STRINGS = SAVED_TAG('S', 'T', 'R', 'S'),
    SECTION_OBJECTS = SAVED_TAG('O', 'B', 'J', 'S'),
    SECTION_EVENTS = SAVED_TAG('E', 'V', 'T', 'S'),
    SECTION_THREADS = SAVED_TAG('T', 'H', 'R', 'D'),
    SECTION_LABELS = SAVED_TAG('L', 'A', 'B', 'L'),
    SECTION_SERIES = SAVED_TAG('S', 'E', 'R', 'S'),
    SECTION_FUNCTIONS = SAVED_TAG('F', 'U', 'N', 'C'),
    SECTION_LOCATIONS = SAVED_TAG('L', 'O', 'C', 'S'),
    SECTION_FRAMES = SAVED_TAG('F', 'R', 'M', 'S'),
    SECTION_NODES = SAVED_TAG('N', 'O', 'D', 'E'),
    SECTION_CELLS = SAVED_TAG('C', 'E', 'L', 'L'),
    SECTION_SAMPLES = SAVED_TAG('S', 'A', 'M', 'P'),
    SECTION_SOURCES = SAVED_TAG('S', 'R', 'C', 'S'),
    SECTION_CODES = SAVED_TAG('C', 'O', 'D', 'E'),
    SECTION_NOTES = SAVED_TAG('N', 'O', 'T', 'E'),
    SECTION_TIMES = SAVED_TAG('T', 'I', 'M', 'E'),
    SECTION_WHEN = SAVED_TAG('W', 'H', 'E', 'N'),
};

/* The first column of SECTION_META, which has one row. */
enum {
    META_RECORDED = 1,
    META_MEANT_SHIFT = 1,
    META_MEANT = 3, /* the second: enum times, in two bits */
    META_HEAP = 8,
    META_ESTIMATED = 16
};

enum saved_flag {
    SECTION_PACKED = 1, /* by zstd */
    SECTION_NEEDED = 2, /* a reader that does not know the section must refuse the file */
};

struct section {
    uint32_t tag;
    uint32_t flags;
    uint64_t offset, stored; /* in the file */
    uint64_t plain;          /* bytes when unpacked */
    uint64_t checksum;       /* of the stored bytes */
};

/* ---- container.c: the file as a table of sections ---- */

struct container {
    struct text content;
    const char *path;
    VECTOR(struct section) sections;
};
/* Check the header and the table. Release the container even if this fails. */
bool container_open(struct container *container, struct text content, const char *path,
                    struct error *error);
void container_release(struct container *container);
/* Decompress a section into `plain`, which is emptied first; a missing section has no rows. */
struct rows;
bool container_rows(const struct container *container, uint32_t tag, struct buffer *plain,
                    struct rows *rows, struct error *error);

/* The file to be written: uncompressed sections, in order. */
struct draft {
    VECTOR(struct draft_section {
        uint32_t tag;
        struct buffer plain;
    })
    sections;
};
/* Begin a section of `count` rows. Append its columns to the returned buffer before the next section begins. */
struct buffer *draft_section(struct draft *draft, uint32_t tag, uint64_t count);
void draft_write(struct draft *draft, struct out *out);
void draft_release(struct draft *draft);

/* ---- a section's columns: one array for each field, all of `count` items ---- */

struct rows {
    struct text rest;
    uint64_t count;
    uint64_t offset;  /* of the section in the file, for messages */
    const char *path; /* of the file, likewise */
    bool short_of;    /* a requested column was missing or incomplete */
};
/* Return the next column, with `width` bytes per item; on failure return NULL and set `short_of`. */
const uint8_t *rows_column(struct rows *rows, size_t width);
/* The next `size` bytes, likewise. */
struct text rows_bytes(struct rows *rows, uint64_t size);
static inline uint32_t column_u32(const uint8_t *column, size_t i) {
    return load_u32(column + 4 * i);
}
static inline uint64_t column_u64(const uint8_t *column, size_t i) {
    return load_u64(column + 8 * i);
}
/* Set an error that names the invalid section, and return false. */
bool rows_error(const struct rows *rows, struct error *error, const char *what);

/* ---- order.c: numbers that depend only on content ---- */

/* For each item of the tree its number in the file, or 0 if it is not in the file; and the items in the file's order,
   from 1. */
struct numbering {
    uint32_t *numbers;
    VECTOR(uint32_t) items;
};
struct order {
    const struct tree *tree;
    struct strings *strings; /* all strings of the file, by first use … */
    struct numbering ranks;  /* … and in order */
    uint32_t *string_ids;    /* by the tree's string: its id in `strings`, or 0 */
    struct numbering objects, threads, labels, series, functions, locations;
    uint32_t *nodes; /* by the tree's node: its number; duplicates are merged */
    VECTOR(struct node)
    made; /* nodes in the file's order: parents and locations by their numbers */
    VECTOR(struct cell) cells; /* likewise */
};
void order_init(struct order *order, const struct tree *tree);
void order_release(struct order *order);
/* Return the number in the file of a text, or of one of the tree's strings. It must have been added before. */
uint32_t order_text(const struct order *order, struct text text);
uint32_t order_string(const struct order *order, uint32_t id);

#endif
