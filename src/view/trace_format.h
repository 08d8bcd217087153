/*
 * Print the payload of a tracepoint's samples by the format that the recording carries, as libtraceevent does for perf.
 *
 *     name: sched_waking\nID: 375\nformat:\n\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n…\n\nprint fmt: "…", REC->pid, …\n
 *
 * A format is a small program from the recording and may be hostile. Parsing is limited in depth and steps; printing reads only inside the
 * payload, and is limited in steps and bytes. If a format cannot be parsed, its samples are printed field by field.
 *
 * perf 6.1 parses expressions in its own way: `2 * (3 + 4)` is 10. wick must print the same text, so the parser builds perf's tree.
 * Private to this room.
 */
#ifndef WICK_VIEW_TRACE_FORMAT_H
#define WICK_VIEW_TRACE_FORMAT_H

#include "base/base.h"
#include "compat/compat.h"

enum trace_field_flag {
    TRACE_FIELD_ARRAY = 1 << 0,
    TRACE_FIELD_POINTER = 1 << 1,
    TRACE_FIELD_SIGNED = 1 << 2,
    TRACE_FIELD_STRING = 1 << 3,
    TRACE_FIELD_DYNAMIC = 1 << 4,  /* the field holds where its data is, and how much */
    TRACE_FIELD_RELATIVE = 1 << 5, /* counted from the end of the field */
    TRACE_FIELD_LONG = 1 << 6,
};

struct trace_field {
    struct text name;
    uint32_t flags;
    uint32_t offset, size, element_size;
    bool *
        never_string; /* for a string, with quirks.old_trace_formats: whether it once held bytes; NULL: not remembered */
    struct trace_field *next;
};

/* perf prints the number of an unexpected kind, so the values are libtraceevent's. */
enum trace_kind {
    TRACE_NOTHING = 0,
    TRACE_ATOM = 1,
    TRACE_FIELD = 2,
    TRACE_FLAGS = 3,
    TRACE_SYMBOLIC = 4,
    TRACE_HEX = 5,
    TRACE_ARRAY = 6,
    TRACE_CAST = 7,
    TRACE_STRING = 8,
    TRACE_DYNAMIC = 10,
    TRACE_OPERATOR = 11,
    TRACE_BITMASK = 13,
    TRACE_DYNAMIC_LENGTH = 14,
    TRACE_HEX_STRING = 15,
    TRACE_CPUMASK = 16,
};

/* One of the pairs of __print_flags() and __print_symbolic(). */
struct trace_choice {
    int64_t value;
    struct text text;
    struct trace_choice *next;
};

struct trace_node {
    enum trace_kind kind;
    int priority;     /* of an operator */
    struct text text; /* of an atom, an operator or a cast; for flags, their separator */
    uint64_t number;  /* of an atom */
    const struct trace_field *field; /* NULL if the format has no field of that name */
    struct trace_node *left, *right; /* operands; the data and the count of arrays */
    struct trace_node *width;        /* bytes of an item of an array */
    struct trace_choice *choices;
    struct trace_node *next; /* argument */
};

/* A piece of the output: literal text if there is no argument. */
struct trace_piece {
    struct text text;                /* or what follows "%p" */
    char conversion;                 /* 'p', 's' or one of a number */
    bool left, zero, alternate, odd; /* odd: printf would print the conversion as it stands */
    bool has_size;                   /* "%zu" */
    int width, precision;            /* -1: none */
    int length;                      /* -2 … 2: char, short, int, long, long long */
    bool star_precision;             /* `star` is the precision, not the width */
    const struct trace_node *argument, *star;
    struct trace_piece *next;
};

struct trace_string {
    uint64_t address;
    struct text text;
};

/* What the formats of a recording share. */
struct trace_setting {
    struct quirks quirks;
    uint32_t long_size;           /* of the recorded machine */
    struct trace_string *strings; /* of the kernel that events point to, by address */
    size_t string_count;
};

struct trace_format {
    const struct trace_setting *setting;
    struct arena arena;
    uint64_t id;
    size_t size; /* of its text */
    bool failed; /* to be printed field by field */
    struct trace_field *common, *fields;
    struct trace_node *arguments;
    struct trace_piece *pieces;
};

/* trace_format.c */
/* Parse a format; NULL if it has no name or no id. `setting` must live longer. */
struct trace_format *trace_format_new(struct text text, const struct trace_setting *setting);
void trace_format_free(struct trace_format *format); /* NULL is fine */

/* trace_token.c: libtraceevent's tokens */
enum trace_token_type {
    TOKEN_ERROR,
    TOKEN_END,
    TOKEN_SPACE,
    TOKEN_LINE,
    TOKEN_OPERATOR,
    TOKEN_DELIMITER, /* ( ) , */
    TOKEN_WORD,
    TOKEN_STRING,
    TOKEN_CHARACTER,
};

struct trace_token {
    enum trace_token_type type;
    struct text text; /* followed by a NUL */
};

struct trace_parser {
    struct trace_format *format;
    struct text left;
    unsigned depth;
    struct budget budget; /* a step is a token, or a name that is compared */
    struct buffer scratch;
};

/* Read a token; spaces are skipped. */
struct trace_token trace_next(struct trace_parser *parser);
/* The same; ends of lines are skipped as well. */
struct trace_token trace_next_in_lines(struct trace_parser *parser);
/* Whether the token has this type and text. */
bool trace_token_is(struct trace_token token, enum trace_token_type type, const char *text);
/* Read a token, which must have this type and text. */
bool trace_expect(struct trace_parser *parser, enum trace_token_type type, const char *text);
/* Copy text into the format's arena. */
struct text trace_keep(struct trace_parser *parser, struct text text);

/* trace_expression.c */
/* Read the arguments after the format string into format->arguments. */
bool trace_parse_arguments(struct trace_parser *parser);

/* trace_pieces.c */
/* Cut the format string into pieces, which take the arguments in turn. */
bool trace_parse_pieces(struct trace_parser *parser, struct text string);

/* trace_value.c: a record that is being printed */
struct trace_record {
    const struct trace_format *format;
    struct text payload;
    struct buffer *buffer;
    size_t limit;   /* of the buffer */
    uint64_t steps; /* that are left */
    unsigned depth;
    bool cut; /* a limit was exceeded */
    /* Return the name of the kernel's function at *address and set *address to its start; empty if none is known. */
    struct text (*function)(void *context, uint64_t *address);
    void *context;
};

/* Take a step; return false if none is left. */
bool trace_step(struct trace_record *record);
/* Return a number of 1, 2, 4 or 8 bytes in the payload; 0 if it is out of bounds. */
uint64_t trace_load(const struct trace_record *record, uint64_t offset, uint64_t size);
/* Return at most `size` bytes from an offset of the payload. */
struct text trace_bytes(const struct trace_record *record, uint64_t offset, uint64_t size);
/* Return the offset of a dynamic field's data, or the data itself. */
uint64_t trace_dynamic_offset(const struct trace_record *record, const struct trace_field *field);
struct text trace_dynamic(const struct trace_record *record, const struct trace_field *field);
uint64_t trace_value(struct trace_record *record, const struct trace_node *node);
/* Evaluate a constant, which has no fields and only some operators; return false if it is not constant. */
bool trace_constant(const struct trace_node *node, unsigned depth, int64_t *value);

void trace_add(struct trace_record *record, struct text text);
void trace_printf(struct trace_record *record, const char *format, ...) PRINTF_LIKE(2, 3);

/* trace_pointer.c: print "%pS" and the like; `count` is the length given to "%*ph" */
void trace_add_pointer(struct trace_record *record, struct text how, const struct trace_node *node,
                       int count);

/* trace_print.c */
/* Append record->payload, printed by record->format, to record->buffer. Return false if it was cut short. */
bool trace_print(struct trace_record *record);

#endif
