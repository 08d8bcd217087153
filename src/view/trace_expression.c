/*
 * Parse the expressions after a tracepoint's format string into the tree that libtraceevent builds.
 *
 * That tree is not C's: parentheses are forgotten once they are read, so that `a * (b + c)` is `a * b + c`, and `a ? b : c + d` is
 * `(a ? b : c) + d`. perf prints the result of this tree, and so must wick. Each function returns the token after what it read.
 *
 * To become the left operand of the operator that follows it, a node is moved into a new node; pointers to the old one then point to the operator.
 */
#include "view/trace_format.h"

#include <stdlib.h>

/* How deep operands and operators may be nested. The kernel's formats get to about twenty. */
enum { DEPTH_LIMIT = 400 };

static const struct trace_token bad = {TOKEN_ERROR, {"", 0}};

static struct trace_token parse_operand(struct trace_parser *parser, struct trace_node *node,
                                        struct trace_token token);
static struct trace_token parse_operators(struct trace_parser *parser, struct trace_node *node,
                                          struct trace_token token);

static struct trace_node *node_new(struct trace_parser *parser) {
    struct trace_node *node = arena_alloc(&parser->format->arena, sizeof *node);
    *node = (struct trace_node){0};
    return node;
}

static struct trace_token parse_next(struct trace_parser *parser, struct trace_node *node) {
    return parse_operand(parser, node, trace_next(parser));
}

static const struct trace_field *find_in(struct trace_parser *parser,
                                         const struct trace_field *fields, struct text name) {
    for (; fields && budget_take_steps(&parser->budget, 1, NO_OFFSET); fields = fields->next)
        if (text_equal(fields->name, name))
            return fields;
    return NULL;
}

static const struct trace_field *find_any(struct trace_parser *parser, struct text name) {
    const struct trace_field *field = find_in(parser, parser->format->common, name);
    return field ? field : find_in(parser, parser->format->fields, name);
}

/* ---- operators ---- */

/* The lower, the closer it binds; -1: not an operator between two operands. */
static int priority_of(struct text operator) {
    static const struct {
        char text[3];
        int priority;
    } known[] = {{"~", 4},   {"!", 4},   {"*", 6},   {"/", 6},  {"%", 6},  {"+", 7},
                 {"-", 7},   {">>", 8},  {"<<", 8},  {"<", 9},  {">", 9},  {">=", 9},
                 {"<=", 9},  {"==", 10}, {"!=", 10}, {"&", 11}, {"^", 12}, {"|", 13},
                 {"&&", 14}, {"||", 15}, {"?", 16},  {"++", 3}, {"--", 3}};
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (text_equal(operator, text_of(known[i].text)))
            return known[i].priority;
    return -1;
}

static bool is_binary(struct text operator) {
    int priority = priority_of(operator);
    return priority >= 6 && priority < 16;
}

/* Make `node` an operator whose left operand is what it was. */
static void node_wrap(struct trace_parser *parser, struct trace_node *node, struct text operator,
                      int priority) {
    struct trace_node *left = node_new(parser);
    *left = *node;
    *node = (struct trace_node){
        .kind = TRACE_OPERATOR, .text = operator, .left = left, .priority = priority};
}

/* "~x" and the like: node is an operator without operands. */
static struct trace_token parse_unary(struct trace_parser *parser, struct trace_node *node) {
    if (node->text.length != 1 || !strchr("~!+-", node->text.data[0]))
        return bad;
    node->left = node_new(parser);
    node->right = node_new(parser);
    return parse_next(parser, node->right);
}

/* Parse "a : b" after "?". Operators after b take the whole condition as their operand. */
static struct trace_token parse_condition(struct trace_parser *parser, struct trace_node *node) {
    node_wrap(parser, node, TEXT("?"), 0);
    struct trace_node *either = node_new(parser);
    *either = (struct trace_node){.kind = TRACE_OPERATOR,
                                  .text = TEXT(":"),
                                  .left = node_new(parser),
                                  .right = node_new(parser)};
    node->right = either;
    struct trace_token token = parse_next(parser, either->left);
    while (token.type == TOKEN_OPERATOR && !trace_token_is(token, TOKEN_OPERATOR, ":"))
        token = parse_operators(parser, either->left, token);
    return trace_token_is(token, TOKEN_OPERATOR, ":") ? parse_next(parser, either->right) : bad;
}

/* Behind "[": an index without operators, and "]". */
static struct trace_token parse_index(struct trace_parser *parser, struct trace_node *node) {
    node_wrap(parser, node, TEXT("["), 0);
    node->right = node_new(parser);
    struct trace_token token = parse_next(parser, node->right);
    return trace_token_is(token, TOKEN_OPERATOR, "]") ? trace_next_in_lines(parser) : bad;
}

/* "type *" before a bracket is no product. */
static struct trace_token parse_pointer_type(struct trace_parser *parser, struct trace_node *node,
                                             struct trace_token token) {
    if (node->left->kind != TRACE_ATOM)
        return bad;
    *node = *node->left;
    parser->scratch.count = 0;
    buffer_printf(&parser->scratch, "%.*s *", TEXT_ARGS(node->text));
    node->text = trace_keep(parser, buffer_text(&parser->scratch));
    return token;
}

/* An operator between two operands. *right becomes the node that a closer operator behind it would belong to. */
static struct trace_token parse_binary(struct trace_parser *parser, struct trace_node *node,
                                       struct text operator, struct trace_node ** right) {
    int priority = node->kind == TRACE_NOTHING ? 0 : priority_of(operator);
    node_wrap(parser, node, operator, priority);
    struct trace_token token = trace_next_in_lines(parser);
    if (text_equal(operator, TEXT("*")) && trace_token_is(token, TOKEN_DELIMITER, ")"))
        return parse_pointer_type(parser, node, token);
    *right = node_new(parser);
    token = parse_operand(parser, *right, token);
    if (token.type == TOKEN_ERROR)
        return bad;
    node->right = *right;
    if ((*right)->kind == TRACE_OPERATOR && priority_of(operator) < priority_of((*right)->text)) {
        /* The right one is outermost: it takes this one's result as its left operand. */
        node->right = (*right)->left;
        struct trace_node inner = *node;
        *node = **right;
        **right = inner;
        node->left = *right;
    }
    return token;
}

/* One operator; *right as in parse_binary(), or NULL. */
static struct trace_token parse_operator(struct trace_parser *parser, struct trace_node *node,
                                         struct trace_token token, struct trace_node **right) {
    *right = NULL;
    if (node->kind == TRACE_OPERATOR && !node->left) {
        token = parse_unary(parser, node);
        *right = node->right;
        return token;
    }
    if (text_equal(token.text, TEXT("?")))
        return parse_condition(parser, node);
    if (text_equal(token.text, TEXT("[")))
        return parse_index(parser, node);
    return is_binary(token.text) ? parse_binary(parser, node, token.text, right) : bad;
}

/* Parse the operators after an operand, the first of which is `token`, up to a ":" or a token that is not an operator. */
static struct trace_token parse_operators(struct trace_parser *parser, struct trace_node *node,
                                          struct trace_token token) {
    if (parser->depth == DEPTH_LIMIT)
        return bad;
    parser->depth++;
    for (struct trace_node *right; node;
         node = priority_of(token.text) > node->priority ? node : right) {
        token = parse_operator(parser, node, token, &right);
        if (token.type != TOKEN_OPERATOR || text_equal(token.text, TEXT(":")))
            break;
    }
    parser->depth--;
    return node ? token : bad;
}

/* ---- functions ---- */

/* An argument of a function, up to a delimiter. perf knows no operators there. */
static bool parse_argument(struct trace_parser *parser, struct trace_node **node,
                           const char *delimiter) {
    *node = node_new(parser);
    struct trace_token token = parse_next(parser, *node);
    if (token.type == TOKEN_OPERATOR && !parser->format->setting->quirks.old_trace_formats)
        token = parse_operators(parser, *node, token);
    return trace_token_is(token, TOKEN_DELIMITER, delimiter);
}

/* The same with operators. */
static struct trace_token parse_whole(struct trace_parser *parser, struct trace_node *node) {
    struct trace_token token = parse_next(parser, node);
    while (token.type == TOKEN_OPERATOR)
        token = parse_operators(parser, node, token);
    return token;
}

/* The text of a pair's member: words, or a constant in decimal. */
static bool choice_text(struct trace_parser *parser, const struct trace_node *node,
                        struct text *text) {
    int64_t value;
    while (node->kind == TRACE_CAST)
        node = node->left;
    *text = node->text;
    if (node->kind == TRACE_ATOM)
        return true;
    if (node->kind != TRACE_OPERATOR || !trace_constant(node, 0, &value))
        return false;
    parser->scratch.count = 0;
    buffer_printf(&parser->scratch, "%lld", (long long)value);
    *text = trace_keep(parser, buffer_text(&parser->scratch));
    return true;
}

/* Names that some kernels leave in their formats; whatever else is no plain number counts as -1. */
static int64_t choice_value(struct text text) {
    static const char *const softirqs[] = {
        "HI_SOFTIRQ",       "TIMER_SOFTIRQ",   "NET_TX_SOFTIRQ", "NET_RX_SOFTIRQ",  "BLOCK_SOFTIRQ",
        "IRQ_POLL_SOFTIRQ", "TASKLET_SOFTIRQ", "SCHED_SOFTIRQ",  "HRTIMER_SOFTIRQ", "RCU_SOFTIRQ"};
    if (text.length && text.data[0] >= '0' && text.data[0] <= '9')
        return (int64_t)strtoull(text.data, NULL, 0);
    for (size_t i = 0; i < COUNT_OF(softirqs); i++)
        if (text_equal(text, text_of(softirqs[i])))
            return (int64_t)i;
    return text_equal(text, TEXT("HRTIMER_NORESTART")) ? 0
           : text_equal(text, TEXT("HRTIMER_RESTART")) ? 1
                                                       : -1;
}

/* Parse "{ 1, "one" }, { 2, "two" })" and return the token after it. */
static struct trace_token parse_choices(struct trace_parser *parser, struct trace_node *node) {
    struct trace_choice **choices = &node->choices;
    struct trace_token token;
    do {
        if (!trace_token_is(trace_next_in_lines(parser), TOKEN_OPERATOR, "{"))
            return bad;
        struct trace_node *value = node_new(parser), *name = node_new(parser);
        struct trace_choice *choice = arena_alloc(&parser->format->arena, sizeof *choice);
        struct text text;
        token = parse_next(parser, value);
        if (token.type == TOKEN_OPERATOR)
            token = parse_operators(parser, value, token);
        if (!trace_token_is(token, TOKEN_DELIMITER, ",") || !choice_text(parser, value, &text))
            return bad;
        *choice = (struct trace_choice){.value = choice_value(text)};
        if (!trace_token_is(parse_next(parser, name), TOKEN_OPERATOR, "}") ||
            !choice_text(parser, name, &choice->text))
            return bad;
        *choices = choice;
        choices = &choice->next;
        token = trace_next_in_lines(parser);
    } while (trace_token_is(token, TOKEN_DELIMITER, ","));
    return trace_token_is(token, TOKEN_DELIMITER, ")") ? trace_next_in_lines(parser) : bad;
}

static struct trace_token parse_symbolic(struct trace_parser *parser, struct trace_node *node) {
    node->left = node_new(parser);
    if (!trace_token_is(parse_whole(parser, node->left), TOKEN_DELIMITER, ","))
        return bad;
    return parse_choices(parser, node);
}

static struct trace_token parse_flags(struct trace_parser *parser, struct trace_node *node) {
    node->left = node_new(parser);
    if (!trace_token_is(parse_whole(parser, node->left), TOKEN_DELIMITER, ","))
        return bad;
    struct trace_token token = trace_next_in_lines(parser);
    if (token.type == TOKEN_WORD || token.type == TOKEN_STRING || token.type == TOKEN_CHARACTER) {
        node->text = token.text;
        token = trace_next_in_lines(parser);
    }
    return trace_token_is(token, TOKEN_DELIMITER, ",") ? parse_choices(parser, node) : bad;
}

static struct trace_token parse_hex(struct trace_parser *parser, struct trace_node *node) {
    return parse_argument(parser, &node->left, ",") && parse_argument(parser, &node->right, ")")
               ? trace_next_in_lines(parser)
               : bad;
}

static struct trace_token parse_array(struct trace_parser *parser, struct trace_node *node) {
    return parse_argument(parser, &node->left, ",") && parse_argument(parser, &node->right, ",") &&
                   parse_argument(parser, &node->width, ")")
               ? trace_next_in_lines(parser)
               : bad;
}

/* __get_str(NAME): perf does not mind a field that is not there. */
static struct trace_token parse_string(struct trace_parser *parser, struct trace_node *node) {
    struct trace_token token = trace_next(parser);
    if (token.type != TOKEN_WORD || !trace_expect(parser, TOKEN_DELIMITER, ")"))
        return bad;
    node->field = find_any(parser, token.text);
    return trace_next(parser);
}

/* __get_dynamic_array(NAME), without an index */
static struct trace_token parse_dynamic(struct trace_parser *parser, struct trace_node *node) {
    struct trace_token token = trace_next(parser);
    node->field = find_in(parser, parser->format->fields, token.text);
    if (token.type != TOKEN_WORD || !node->field || !trace_expect(parser, TOKEN_DELIMITER, ")"))
        return bad;
    if (node->kind == TRACE_DYNAMIC_LENGTH)
        return trace_next(parser);
    token = trace_next_in_lines(parser);
    return trace_token_is(token, TOKEN_OPERATOR, "[") ? bad : token;
}

static struct trace_token parse_expect(struct trace_parser *parser, struct trace_node *node) {
    struct trace_token token = parse_next(parser, node);
    if (!trace_token_is(token, TOKEN_DELIMITER, ",") || trace_next(parser).type != TOKEN_WORD ||
        !trace_expect(parser, TOKEN_DELIMITER, ")"))
        return bad;
    return trace_next_in_lines(parser);
}

static uint32_t size_of(struct trace_parser *parser, struct text type) {
    uint32_t long_size = parser->format->setting->long_size;
    const struct {
        const char *name;
        uint32_t size;
    } known[] = {{"char", 1},         {"u8", 1},  {"s8", 1},  {"short", 2},    {"u16", 2},
                 {"s16", 2},          {"int", 4}, {"u32", 4}, {"s32", 4},      {"", 4},
                 {"long", long_size}, {"u64", 8}, {"s64", 8}, {"long long", 8}};
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (text_equal(type, text_of(known[i].name)))
            return known[i].size;
    return 0;
}

/* sizeof(TYPE) of a basic type or sizeof(REC->FIELD), which perf does not know. */
static struct trace_token parse_sizeof(struct trace_parser *parser, struct trace_node *node) {
    struct trace_node *type = node_new(parser);
    if (!trace_token_is(parse_next(parser, type), TOKEN_DELIMITER, ")"))
        return bad;
    struct text name = type->text;
    if (text_starts(name, TEXT("unsigned")))
        name = text_trim(text_from(name, 8));
    if (type->kind == TRACE_FIELD && type->field)
        node->number = type->field->size;
    else if (type->kind == TRACE_ATOM && type->text.length)
        node->number = size_of(parser, name);
    parser->scratch.count = 0;
    buffer_add_u64(&parser->scratch, node->number);
    node->text = trace_keep(parser, buffer_text(&parser->scratch));
    return node->number ? trace_next_in_lines(parser) : bad;
}

static struct trace_token parse_function(struct trace_parser *parser, struct trace_node *node,
                                         struct text name) {
    static const struct {
        const char *name;
        enum trace_kind kind;
        struct trace_token (*parse)(struct trace_parser *parser, struct trace_node *node);
        bool unknown_to_perf;
    } functions[] = {{"__print_flags", TRACE_FLAGS, parse_flags},
                     {"__print_symbolic", TRACE_SYMBOLIC, parse_symbolic},
                     {"__print_hex", TRACE_HEX, parse_hex},
                     {"__print_hex_str", TRACE_HEX_STRING, parse_hex},
                     {"__print_array", TRACE_ARRAY, parse_array},
                     {"__get_str", TRACE_STRING, parse_string},
                     {"__get_bitmask", TRACE_BITMASK, parse_string},
                     {"__get_dynamic_array", TRACE_DYNAMIC, parse_dynamic},
                     {"__get_dynamic_array_len", TRACE_DYNAMIC_LENGTH, parse_dynamic},
                     {"__builtin_expect", TRACE_NOTHING, parse_expect},
                     {"__get_rel_str", TRACE_STRING, parse_string, true},
                     {"__get_rel_bitmask", TRACE_BITMASK, parse_string, true},
                     {"__get_cpumask", TRACE_CPUMASK, parse_string, true},
                     {"__get_rel_cpumask", TRACE_CPUMASK, parse_string, true},
                     {"__get_rel_dynamic_array", TRACE_DYNAMIC, parse_dynamic, true},
                     {"__get_rel_dynamic_array_len", TRACE_DYNAMIC_LENGTH, parse_dynamic, true},
                     {"__get_sockaddr", TRACE_DYNAMIC, parse_dynamic, true},
                     {"__get_sockaddr_rel", TRACE_DYNAMIC, parse_dynamic, true},
                     {"sizeof", TRACE_ATOM, parse_sizeof, true}};
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        if (text_equal(name, text_of(functions[i].name)) &&
            !(functions[i].unknown_to_perf && parser->format->setting->quirks.old_trace_formats)) {
            node->kind = functions[i].kind;
            return functions[i].parse(parser, node);
        }
    return bad;
}

/* ---- operands ---- */

/* Behind REC: "->NAME". perf does not mind a field that is not there. */
static struct trace_token parse_field(struct trace_parser *parser, struct trace_node *node) {
    if (!trace_expect(parser, TOKEN_OPERATOR, "->"))
        return bad;
    struct trace_token token = trace_next(parser);
    if (token.type != TOKEN_WORD)
        return bad;
    *node = (struct trace_node){
        .kind = TRACE_FIELD, .text = token.text, .field = find_any(parser, token.text)};
    return trace_next(parser);
}

/* Words: a number, a type, the name of a constant; or a function. */
static struct trace_token parse_words(struct trace_parser *parser, struct trace_node *node,
                                      struct text word) {
    struct trace_token token = trace_next_in_lines(parser);
    if (trace_token_is(token, TOKEN_DELIMITER, "("))
        return parse_function(parser, node, word);
    if (token.type == TOKEN_WORD) {
        struct buffer words = {0};
        buffer_add(&words, word);
        for (; token.type == TOKEN_WORD; token = trace_next_in_lines(parser)) {
            buffer_add_char(&words, ' ');
            buffer_add(&words, token.text);
        }
        word = trace_keep(parser, buffer_text(&words));
        buffer_release(&words);
    }
    *node = (struct trace_node){
        .kind = TRACE_ATOM, .text = word, .number = strtoull(word.data, NULL, 0)};
    return token;
}

/* Behind "(": "REC)->NAME", which perf does not know */
static bool is_bracketed_record(struct trace_parser *parser) {
    struct text left = parser->left;
    if (!parser->format->setting->quirks.old_trace_formats &&
        trace_expect(parser, TOKEN_WORD, "REC") && trace_expect(parser, TOKEN_DELIMITER, ")"))
        return true;
    parser->left = left;
    return false;
}

/* After "(": parse an expression, or a type and what is cast to it. */
static struct trace_token parse_bracket(struct trace_parser *parser, struct trace_node *node) {
    if (is_bracketed_record(parser))
        return parse_field(parser, node);
    struct trace_token token = parse_next(parser, node);
    if (token.type == TOKEN_OPERATOR)
        token = parse_operators(parser, node, token);
    if (!trace_token_is(token, TOKEN_DELIMITER, ")"))
        return bad;
    token = trace_next_in_lines(parser);
    if (token.type != TOKEN_WORD && token.type != TOKEN_STRING && token.type != TOKEN_CHARACTER &&
        !trace_token_is(token, TOKEN_DELIMITER, "("))
        return token;
    if (node->kind != TRACE_ATOM)
        return bad;
    *node = (struct trace_node){.kind = TRACE_CAST, .text = node->text, .left = node_new(parser)};
    return parse_operand(parser, node->left, token);
}

static struct trace_token parse_token(struct trace_parser *parser, struct trace_node *node,
                                      struct trace_token token) {
    switch (token.type) {
    case TOKEN_WORD:
        return text_equal(token.text, TEXT("REC")) ? parse_field(parser, node)
                                                   : parse_words(parser, node, token.text);
    case TOKEN_STRING:
    case TOKEN_CHARACTER:
        *node = (struct trace_node){
            .kind = TRACE_ATOM, .text = token.text, .number = strtoull(token.text.data, NULL, 0)};
        return trace_next_in_lines(parser);
    case TOKEN_DELIMITER:
        if (trace_token_is(token, TOKEN_DELIMITER, "("))
            return parse_bracket(parser, node);
        return bad;
    case TOKEN_OPERATOR:
        *node = (struct trace_node){.kind = TRACE_OPERATOR, .text = token.text};
        return parse_operators(parser, node, token);
    default:
        return bad;
    }
}

/* Parse the operand that begins with `token`, without operators after it. All recursion goes through here or parse_operators(). */
static struct trace_token parse_operand(struct trace_parser *parser, struct trace_node *node,
                                        struct trace_token token) {
    if (parser->depth == DEPTH_LIMIT)
        return bad;
    parser->depth++;
    token = parse_token(parser, node, token);
    parser->depth--;
    return token;
}

bool trace_parse_arguments(struct trace_parser *parser) {
    struct trace_node **list = &parser->format->arguments;
    struct trace_token token;
    do {
        struct trace_node *node = node_new(parser);
        token = parse_next(parser, node);
        bool goes_on = trace_token_is(token, TOKEN_DELIMITER, ",");
        if (token.type == TOKEN_OPERATOR) {
            token = parse_operators(parser, node, token);
            goes_on = token.type != TOKEN_END; /* perf takes whatever is there for a comma */
            if (token.type == TOKEN_LINE)
                token = trace_next_in_lines(parser), goes_on = token.type != TOKEN_END;
        }
        if (token.type == TOKEN_ERROR)
            return false;
        *list = node;
        list = &node->next;
        if (!goes_on)
            break;
    } while (token.type != TOKEN_END);
    return true;
}
