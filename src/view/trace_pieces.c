/*
 * Split the format string of a tracepoint into literal text and conversions with their arguments. The conversions and their syntax are
 * libtraceevent's: it has no "%c" and no "%+d", and prints unknown ones between ">" and "<".
 */
#include "view/trace_format.h"

/* Longer conversions are an error to perf; it also keeps numbers below INT_MAX. */
enum { CONVERSION_LIMIT = 31, NUMBER_LIMIT = 1 << 20 };

static char at(struct text text, size_t place) {
    return place < text.length ? text.data[place] : 0;
}

static bool is_one_of(char c, const char *set) {
    return c && strchr(set, c);
}

static struct trace_piece *piece_new(struct trace_parser *parser, struct trace_piece ***list) {
    struct trace_piece *piece = arena_alloc(&parser->format->arena, sizeof *piece);
    *piece = (struct trace_piece){.width = -1, .precision = -1};
    **list = piece;
    *list = &piece->next;
    return piece;
}

/* Literal text up to the next conversion. Returns how long it is. */
static size_t parse_literal(struct trace_parser *parser, struct text string,
                            struct trace_piece ***list) {
    size_t i = 0;
    parser->scratch.count = 0;
    for (; i < string.length; i++) {
        char c = string.data[i];
        if (c == '\\') {
            c = at(string, ++i);
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        } else if (c == '%') {
            if (at(string, i + 1) != '%')
                break;
            i++;
        }
        if (c)
            buffer_add_char(&parser->scratch, c);
    }
    piece_new(parser, list)->text = trace_keep(parser, buffer_text(&parser->scratch));
    return i < string.length ? i : string.length;
}

/* How much of what follows "%p" belongs to it. */
static size_t pointer_length(struct text how) {
    char first = at(how, 0), second = at(how, 1);
    size_t i = 2;
    switch (first) {
    case 'F':
    case 'S':
    case 'f':
    case 's':
        return 1;
    case 'M':
    case 'm':
        return is_one_of(second, "RF") ? 2 : 1;
    case 'U':
        return is_one_of(second, "LlBb") ? 2 : 1;
    case 'h':
        return is_one_of(second, "CDN") ? 2 : 1;
    case 'I':
    case 'i':
        if (!is_one_of(second, "46S"))
            return 1;
        while (second == 'S' && is_one_of(at(how, i), "pfs"))
            i++;
        i += second != '6' && is_one_of(at(how, i), "hnlb");
        return i + (second != '4' && at(how, i) == 'c');
    default:
        return 0;
    }
}

static int read_number(struct text text, size_t *i) {
    int number = 0;
    for (; at(text, *i) >= '0' && at(text, *i) <= '9'; ++*i)
        number = number < NUMBER_LIMIT ? number * 10 + (text.data[*i] - '0') : number;
    return number;
}

/* Flags, width, precision and length of a conversion, in printf's order. `text` is between "%" and the letter. */
static void piece_read(struct trace_piece *piece, struct text text) {
    size_t i = 0;
    for (; is_one_of(at(text, i), "-#0"); i++) {
        piece->left |= text.data[i] == '-';
        piece->zero |= text.data[i] == '0';
        piece->alternate |= text.data[i] == '#';
    }
    if (at(text, i) == '*')
        i++;
    else if (at(text, i) >= '0' && at(text, i) <= '9')
        piece->width = read_number(text, &i);
    if (at(text, i) == '.') {
        piece->star_precision = at(text, ++i) == '*';
        i += piece->star_precision;
        piece->precision = read_number(text, &i);
    }
    for (; is_one_of(at(text, i), "hlLzZ"); i++)
        piece->has_size |= (text.data[i] | 32) == 'z';
    piece->odd = i < text.length;
}

static int piece_length(struct text text, bool is_old) {
    int length = 0;
    for (size_t i = 0; i < text.length; i++)
        length = text.data[i] == 'h'                                       ? length - 1
                 : text.data[i] == 'l'                                     ? length + 1
                 : text.data[i] == 'L'                                     ? 2
                 : (text.data[i] == 'z' || text.data[i] == 'Z') && !is_old ? 1
                                                                           : length;
    return length;
}

/* The conversion at the beginning of `string`. Returns how long it is, 0: it cannot be printed. */
static size_t parse_conversion(struct trace_parser *parser, struct text string,
                               struct trace_piece ***list, struct trace_node **argument) {
    const struct trace_node *star = NULL;
    size_t end = 1;
    for (; is_one_of(at(string, end), "#hlL.zZ-*0123456789"); end++)
        if (string.data[end] == '*') {
            if (!*argument || star)
                return 0;
            star = *argument;
            *argument = (*argument)->next;
        }
    char letter = at(string, end);
    if (!letter)
        return end;
    struct trace_piece *piece = piece_new(parser, list);
    if (!is_one_of(letter, "pduixXos")) {
        piece->text = trace_keep(parser, (struct text){(char[]){'>', letter, '<'}, 3});
        return end + 1;
    }
    struct text between = text_from(text_upto(string, end), 1);
    size_t after = letter == 'p' ? pointer_length(text_from(string, end + 1)) : 0;
    piece->length = piece_length(between, parser->format->setting->quirks.old_trace_formats);
    if (!*argument || end + 1 + after > CONVERSION_LIMIT ||
        (is_one_of(letter, "duixXo") && (piece->length < -2 || piece->length > 2)))
        return 0;
    piece_read(piece, between);
    piece->conversion = letter;
    piece->text =
        letter == 'p' ? text_upto(text_from(string, end + 1), after) : text_upto(string, end + 1);
    piece->argument = *argument;
    piece->star = star;
    *argument = (*argument)->next;
    return end + 1 + after;
}

bool trace_parse_pieces(struct trace_parser *parser, struct text string) {
    struct trace_piece **list = &parser->format->pieces;
    struct trace_node *argument = parser->format->arguments;
    while (string.length) {
        size_t length;
        if (string.data[0] == '%' && at(string, 1) != '%')
            length = parse_conversion(parser, string, &list, &argument);
        else
            length = parse_literal(parser, string, &list);
        if (!length)
            return false;
        string = text_from(string, length);
    }
    return true;
}
