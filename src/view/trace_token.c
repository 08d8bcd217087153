/* The tokens of a tracepoint's format. A byte that is not ASCII ends the format, as in perf. */
#include "view/trace_format.h"

static enum trace_token_type type_of(unsigned char c) {
    if (c == '\n')
        return TOKEN_LINE;
    if (c == ' ' || (c >= '\t' && c <= '\r'))
        return TOKEN_SPACE;
    if ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_')
        return TOKEN_WORD;
    if (c == '\'')
        return TOKEN_CHARACTER;
    if (c == '"')
        return TOKEN_STRING;
    if (c < ' ' || c > '~')
        return TOKEN_END;
    return c == '(' || c == ')' || c == ',' ? TOKEN_DELIMITER : TOKEN_OPERATOR;
}

/* How many bytes the operator at the beginning of `left` has. */
static size_t operator_length(struct text left) {
    char c = left.data[0], second = left.length > 1 ? left.data[1] : 0;
    char third = left.length > 2 ? left.data[2] : 0;
    if (c == '-' && second == '>')
        return 2;
    if (strchr("-+|&><", c) && second == c)
        return (c == '>' || c == '<') && third == '=' ? 3 : 2;
    return strchr("-+|&><!=", c) && second == '=' ? 2 : 1;
}

/* Where the quote ends that begins at 0; SIZE_MAX: nowhere. As perf has it, a backslash escapes even behind another one. */
static size_t quote_end(struct text left) {
    for (size_t i = 1; i < left.length; i++)
        if (left.data[i] == left.data[0] && left.data[i - 1] != '\\')
            return i;
    return SIZE_MAX;
}

/* Strings that follow each other are one. */
static struct trace_token read_quoted(struct trace_parser *parser, enum trace_token_type type) {
    parser->scratch.count = 0;
    for (;;) {
        size_t end = quote_end(parser->left);
        if (end == SIZE_MAX)
            return (struct trace_token){TOKEN_ERROR};
        buffer_add(&parser->scratch, text_from(text_upto(parser->left, end), 1));
        parser->left = text_from(parser->left, end + 1);
        size_t next = 0;
        while (next < parser->left.length &&
               (type_of(parser->left.data[next]) == TOKEN_SPACE || parser->left.data[next] == '\n'))
            next++;
        if (type != TOKEN_STRING || next == parser->left.length || parser->left.data[next] != '"')
            break;
        parser->left = text_from(parser->left, next);
    }
    struct text whole = buffer_text(&parser->scratch);
    size_t nul = whole.length ? text_find(whole, 0) : SIZE_MAX;
    return (struct trace_token){
        type, trace_keep(parser, text_upto(whole, nul < whole.length ? nul : whole.length))};
}

static struct trace_token read_token(struct trace_parser *parser) {
    struct text left = parser->left;
    if (!left.length)
        return (struct trace_token){TOKEN_END, TEXT("")};
    if (!budget_take_steps(&parser->budget, 1, NO_OFFSET))
        return (struct trace_token){TOKEN_ERROR};
    enum trace_token_type type = type_of(left.data[0]);
    size_t length = 1;
    if (type == TOKEN_STRING || type == TOKEN_CHARACTER)
        return read_quoted(parser, type);
    if (type == TOKEN_OPERATOR)
        length = operator_length(left);
    if (type == TOKEN_WORD || type == TOKEN_SPACE)
        while (length < left.length && type_of(left.data[length]) == type)
            length++;
    parser->left = type == TOKEN_END ? text_upto(left, 0) : text_from(left, length);
    struct text text = {"", 0};
    if (type == TOKEN_WORD || type == TOKEN_OPERATOR || type == TOKEN_DELIMITER)
        text = trace_keep(parser, text_upto(left, length));
    return (struct trace_token){type, text};
}

struct text trace_keep(struct trace_parser *parser, struct text text) {
    return arena_copy(&parser->format->arena, text);
}

struct trace_token trace_next(struct trace_parser *parser) {
    struct trace_token token;
    do
        token = read_token(parser);
    while (token.type == TOKEN_SPACE);
    return token;
}

struct trace_token trace_next_in_lines(struct trace_parser *parser) {
    struct trace_token token;
    do
        token = trace_next(parser);
    while (token.type == TOKEN_LINE);
    return token;
}

bool trace_token_is(struct trace_token token, enum trace_token_type type, const char *text) {
    return token.type == type && text_equal(token.text, text_of(text));
}

bool trace_expect(struct trace_parser *parser, enum trace_token_type type, const char *text) {
    return trace_token_is(trace_next(parser), type, text);
}
