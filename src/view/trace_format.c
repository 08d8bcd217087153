/*
 * The head of a tracepoint's format: its name and id, and where its fields are in the payload.
 *
 * If perf cannot read a field, it prints the fields before it; so does this.
 */
#include "view/trace_format.h"

#include <stdlib.h>

static const struct budget_limits limits = {
    .memory = 1 << 20, .memory_per_byte = 1 << 10, .steps = 1 << 16, .steps_per_byte = 16};

/* ---- one field ---- */

static uint32_t to_u32(struct text word) {
    return (uint32_t)strtoul(word.data, NULL, 0);
}

/* ":N" behind a word and before a semicolon */
static bool read_number(struct trace_parser *parser, const char *name, uint32_t *number) {
    if (!trace_expect(parser, TOKEN_WORD, name) || !trace_expect(parser, TOKEN_OPERATOR, ":"))
        return false;
    struct trace_token token = trace_next(parser);
    if (token.type != TOKEN_WORD)
        return false;
    *number = to_u32(token.text);
    return trace_expect(parser, TOKEN_OPERATOR, ";");
}

static void type_add(struct buffer *type, struct text word) {
    if (type->count)
        buffer_add_char(type, ' ');
    buffer_add(type, word);
}

/* Skip "((user))" after __attribute__. */
static bool read_attribute(struct trace_parser *parser, struct buffer *type) {
    for (unsigned depth = 1; depth;) {
        struct trace_token token = trace_next(parser);
        if (token.type == TOKEN_END || token.type == TOKEN_ERROR)
            return false;
        depth += trace_token_is(token, TOKEN_DELIMITER, "(");
        depth -= trace_token_is(token, TOKEN_DELIMITER, ")");
        type_add(type, token.text);
    }
    return true;
}

/* Parse the words of a type and the name after them; return the token after it. */
static struct trace_token read_type(struct trace_parser *parser, struct trace_field *field,
                                    struct buffer *type) {
    struct trace_token token = trace_next(parser);
    if (token.type != TOKEN_WORD)
        return (struct trace_token){TOKEN_ERROR};
    field->name = token.text;
    for (;;) {
        token = trace_next(parser);
        bool star = trace_token_is(token, TOKEN_OPERATOR, "*");
        if (token.type == TOKEN_WORD || star) {
            field->flags |= star ? TRACE_FIELD_POINTER : 0;
            type_add(type, field->name);
            field->name = token.text;
        } else if (!trace_token_is(token, TOKEN_DELIMITER, "(") ||
                   !text_equal(field->name, TEXT("__attribute__")) || !type->count) {
            return type->count ? token : (struct trace_token){TOKEN_ERROR};
        } else if (!read_attribute(parser, type)) {
            return (struct trace_token){TOKEN_ERROR};
        }
    }
}

static uint32_t size_of(struct text type) {
    static const char *const types[] = {"u8",  "s8",  "char", "u16", "s16",
                                        "u32", "s32", "u64",  "s64"};
    static const uint8_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (text_equal(type, text_of(types[i])))
            return sizes[i];
    return 0;
}

/* Behind "[": "16]" or, in "__data_loc char[] name", "] name". Returns the token after it; `*count` is how many items there are. */
static struct trace_token read_brackets(struct trace_parser *parser, struct trace_field *field,
                                        struct buffer *type, uint32_t *count,
                                        uint32_t *dynamic_size) {
    struct trace_token token = trace_next(parser);
    while (!trace_token_is(token, TOKEN_OPERATOR, "]")) {
        if (token.type == TOKEN_END || token.type == TOKEN_ERROR)
            return (struct trace_token){TOKEN_ERROR};
        *count = to_u32(token.text);
        token = trace_next(parser);
    }
    token = trace_next(parser);
    if (token.type != TOKEN_WORD)
        return token;
    type_add(type, field->name);
    *dynamic_size = size_of(field->name);
    field->name = token.text;
    return trace_next(parser);
}

static void field_set_flags(struct trace_field *field, struct text type, bool is_old) {
    static const struct text small[] = {{"char", 4}, {"u8", 2}, {"s8", 2}};
    for (size_t i = 0; i < COUNT_OF(small) && field->flags & TRACE_FIELD_ARRAY; i++)
        if (text_search(type, small[i]) != SIZE_MAX)
            field->flags |= TRACE_FIELD_STRING;
    if (text_starts(type, TEXT("__data_loc")))
        field->flags |= TRACE_FIELD_DYNAMIC;
    if (text_starts(type, TEXT("__rel_loc")) && !is_old)
        field->flags |= TRACE_FIELD_DYNAMIC | TRACE_FIELD_RELATIVE;
    if (text_search(type, TEXT("long")) != SIZE_MAX)
        field->flags |= TRACE_FIELD_LONG;
}

static uint32_t element_size(const struct trace_field *field, uint32_t count, uint32_t dynamic_size,
                             uint32_t long_size) {
    if (!(field->flags & TRACE_FIELD_ARRAY))
        return field->size;
    if (count)
        return field->size / count;
    if (field->flags & TRACE_FIELD_DYNAMIC)
        return dynamic_size;
    if (field->flags & TRACE_FIELD_STRING)
        return 1;
    return field->flags & TRACE_FIELD_LONG ? long_size : 0;
}

/* "field:TYPE NAME;\toffset:N;\tsize:N;" and mostly "\tsigned:N;", to the end of the line; "field" has been read. */
static bool read_field(struct trace_parser *parser, struct trace_field *field,
                       struct buffer *type) {
    const struct trace_setting *setting = parser->format->setting;
    uint32_t count = 0, dynamic_size = 0, is_signed;
    if (!trace_expect(parser, TOKEN_OPERATOR, ":"))
        return false;
    struct trace_token token = read_type(parser, field, type);
    if (trace_token_is(token, TOKEN_OPERATOR, "[")) {
        field->flags |= TRACE_FIELD_ARRAY;
        token = read_brackets(parser, field, type, &count, &dynamic_size);
    }
    field_set_flags(field, buffer_text(type), setting->quirks.old_trace_formats);
    if (!trace_token_is(token, TOKEN_OPERATOR, ";") ||
        !read_number(parser, "offset", &field->offset) ||
        !read_number(parser, "size", &field->size))
        return false;
    struct text rest = parser->left;
    if (trace_next(parser).type != TOKEN_LINE) {
        parser->left = rest;
        if (!read_number(parser, "signed", &is_signed) || trace_next(parser).type != TOKEN_LINE)
            return false;
        field->flags |= is_signed ? TRACE_FIELD_SIGNED : 0;
    }
    if (field->flags & TRACE_FIELD_STRING && setting->quirks.old_trace_formats) {
        field->never_string = arena_alloc(&parser->format->arena, sizeof(bool));
        *field->never_string = false;
    }
    field->element_size = element_size(field, count, dynamic_size, setting->long_size);
    return true;
}

/* ---- the whole ---- */

/* Fields up to an empty line. */
static bool read_fields(struct trace_parser *parser, struct trace_field **fields) {
    struct buffer type = {0};
    bool fine = true;
    for (struct trace_token token; fine;) {
        token = trace_next(parser);
        if (token.type == TOKEN_LINE)
            break;
        struct trace_field *field = arena_alloc(&parser->format->arena, sizeof *field);
        *field = (struct trace_field){0};
        type.count = 0;
        fine = trace_token_is(token, TOKEN_WORD, "field") && read_field(parser, field, &type);
        if (fine) {
            *fields = field;
            fields = &field->next;
        }
    }
    buffer_release(&type);
    return fine;
}

static bool read_id(struct trace_parser *parser) {
    if (!trace_expect(parser, TOKEN_WORD, "name") || !trace_expect(parser, TOKEN_OPERATOR, ":") ||
        trace_next(parser).type != TOKEN_WORD)
        return false;
    struct trace_token token = trace_next_in_lines(parser);
    if (!trace_token_is(token, TOKEN_WORD, "ID") || !trace_expect(parser, TOKEN_OPERATOR, ":"))
        return false;
    token = trace_next(parser);
    parser->format->id = token.type == TOKEN_WORD ? to_u32(token.text) : 0;
    return token.type == TOKEN_WORD && parser->format->id <= INT32_MAX;
}

static bool read_head(struct trace_parser *parser) {
    return trace_token_is(trace_next_in_lines(parser), TOKEN_WORD, "format") &&
           trace_expect(parser, TOKEN_OPERATOR, ":") && trace_next(parser).type == TOKEN_LINE &&
           read_fields(parser, &parser->format->common) &&
           read_fields(parser, &parser->format->fields);
}

static bool read_print(struct trace_parser *parser) {
    if (!trace_token_is(trace_next_in_lines(parser), TOKEN_WORD, "print") ||
        !trace_expect(parser, TOKEN_WORD, "fmt") || !trace_expect(parser, TOKEN_OPERATOR, ":"))
        return false;
    struct trace_token string = trace_next(parser);
    if (string.type != TOKEN_STRING)
        return false;
    struct trace_token token = trace_next_in_lines(parser);
    if (token.type != TOKEN_END &&
        (!trace_token_is(token, TOKEN_DELIMITER, ",") || !trace_parse_arguments(parser)))
        return false;
    return trace_parse_pieces(parser, string.text);
}

struct trace_format *trace_format_new(struct text text, const struct trace_setting *setting) {
    struct trace_format *format = memory_zero(1, sizeof *format);
    struct trace_parser parser = {.format = format, .left = text};
    budget_init(&parser.budget, &limits, text.length);
    format->setting = setting;
    format->size = text.length;
    bool known = read_id(&parser);
    format->failed = known && (!read_head(&parser) || !read_print(&parser));
    buffer_release(&parser.scratch);
    if (known)
        return format;
    trace_format_free(format);
    return NULL;
}

void trace_format_free(struct trace_format *format) {
    if (!format)
        return;
    arena_release(&format->arena);
    free(format);
}
