/* Print a tracepoint's argument by "%p" and the letters after it: functions, hardware and network addresses, UUIDs, bytes. */
#include "view/trace_format.h"

static char letter(struct text how, size_t place) {
    return place < how.length ? how.data[place] : 0;
}

/* Casts around a field do not matter, except to perf. */
static const struct trace_node *uncast(const struct trace_record *record,
                                       const struct trace_node *node) {
    while (node->kind == TRACE_CAST && !record->format->setting->quirks.old_trace_formats)
        node = node->left;
    return node;
}

/* The bytes of a field of that size. False: something else was printed. */
static bool field_bytes(struct trace_record *record, const struct trace_node *node, size_t size,
                        const char *invalid, const uint8_t **bytes) {
    if (node->kind != TRACE_FIELD) {
        trace_printf(record, "ARG TYPE NOT FIELD BUT %d", node->kind);
        return false;
    }
    if (!node->field)
        return false;
    struct text text = trace_bytes(record, node->field->offset, node->field->size);
    *bytes = (const uint8_t *)text.data;
    if (node->field->size == size && text.length == size)
        return true;
    trace_add(record, text_of(invalid));
    return false;
}

static void add_function(struct trace_record *record, char how, const struct trace_node *node) {
    uint64_t address = trace_value(record, node), start = address;
    struct text name = record->function ? record->function(record->context, &start) : TEXT("");
    if (!name.length) {
        trace_printf(record, "0x%llx", (unsigned long long)address);
        return;
    }
    trace_add(record, name);
    if (how == 'F' || how == 'S')
        trace_printf(record, "+0x%llx", (unsigned long long)(address - start));
}

static void add_mac(struct trace_record *record, struct text how, const struct trace_node *node) {
    const uint8_t *bytes;
    if (!field_bytes(record, node, 6, "INVALIDMAC", &bytes))
        return;
    const char *between = letter(how, 0) == 'm' ? "" : letter(how, 1) == 'F' ? "-" : ":";
    bool reverse = letter(how, 1) == 'R';
    for (int i = 0; i < 6; i++)
        trace_printf(record, "%s%.2x", i ? between : "", bytes[reverse ? 5 - i : i]);
}

/* ---- addresses of the internet ---- */

static void add_ip4(struct trace_record *record, char how, bool reverse, const uint8_t *bytes) {
    for (int i = 0; i < 4; i++)
        trace_printf(record, how == 'i' ? "%s%03d" : "%s%d", i ? "." : "",
                     bytes[reverse ? 3 - i : i]);
}

static void add_ip6(struct trace_record *record, char how, const uint8_t *bytes) {
    for (int i = 0; i < 16; i += 2)
        trace_printf(record, "%s%02x%02x", i && how == 'I' ? ":" : "", bytes[i], bytes[i + 1]);
}

/* Return the longest run of zero words, of at least two; set *length to 0 if there is none. */
static int zeroes_find(const uint8_t *bytes, int words, int *length) {
    int start = -1;
    *length = 0;
    for (int i = 0, run = 0; i < words; i++) {
        run = bytes[2 * i] || bytes[2 * i + 1] ? 0 : run + 1;
        if (run > *length && run > 1) {
            *length = run;
            start = i - run + 1;
        }
    }
    return start;
}

/* Words 4 and 5 are those of ISATAP, 0:5efe or 200:5efe. */
static bool is_isatap(const uint8_t *bytes) {
    return (bytes[8] | 2) == 2 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
}

static bool is_mapped_ip4(const uint8_t *bytes) {
    static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(bytes, prefix, sizeof prefix) == 0;
}

/* With the longest row of zeroes as "::". */
static void add_ip6_short(struct trace_record *record, const uint8_t *bytes) {
    bool ip4 = is_mapped_ip4(bytes) || is_isatap(bytes), colon = false;
    int words = ip4 ? 6 : 8, length, zeroes = zeroes_find(bytes, words, &length);
    for (int i = 0; i < words; i++) {
        if (i == zeroes) {
            trace_add(record, colon || i == 0 ? TEXT("::") : TEXT(":"));
            colon = false;
            i += length - 1;
            continue;
        }
        trace_printf(record, "%s%x", colon ? ":" : "", bytes[2 * i] << 8 | bytes[2 * i + 1]);
        colon = true;
    }
    if (ip4) {
        trace_add(record, colon ? TEXT(":") : TEXT(""));
        add_ip4(record, 'I', false, bytes + 12);
    }
}

/* The payload of "%pIS": a field, or where perf does not look, a dynamic array. False: something else was printed. */
static bool sockaddr_bytes(struct trace_record *record, const struct trace_node *node,
                           struct text *bytes) {
    if (node->kind == TRACE_FIELD && node->field) {
        *bytes = trace_bytes(record, node->field->offset, node->field->size);
    } else if (node->kind == TRACE_DYNAMIC && !record->format->setting->quirks.old_trace_formats) {
        *bytes = trace_dynamic(record, node->field);
    } else {
        if (node->kind != TRACE_FIELD)
            trace_printf(record, "ARG TYPE NOT FIELD BUT %d", node->kind);
        return false;
    }
    return bytes->length >= 2;
}

/* A socket's address: the family, the port, the address. */
static void add_sockaddr(struct trace_record *record, struct text how,
                         const struct trace_node *node) {
    enum { INET = 2, INET_SIZE = 16, INET6 = 10, INET6_SIZE = 28 };
    struct text text;
    size_t place = 2;
    bool big = letter(how, 0) == 'I', with_port = big && letter(how, place) == 'p';
    place += with_port;
    bool is_short = big && letter(how, place) == 'c';
    place += is_short;
    bool reverse = letter(how, place) == 'h' || letter(how, place) == 'l';
    if (!sockaddr_bytes(record, node, &text))
        return;
    const uint8_t *bytes = (const uint8_t *)text.data;
    unsigned family = load_u16(bytes), port = text.length < 4 ? 0 : bytes[2] << 8 | bytes[3];
    if (family == INET && text.length < INET_SIZE) {
        trace_add(record, TEXT("INVALIDIPv4"));
    } else if (family == INET) {
        add_ip4(record, how.data[0], reverse, bytes + 4);
        if (with_port)
            trace_printf(record, ":%u", port);
    } else if (family == INET6 && text.length < INET6_SIZE) {
        trace_add(record, TEXT("INVALIDIPv6"));
    } else if (family == INET6) {
        trace_add(record, with_port ? TEXT("[") : TEXT(""));
        if (is_short)
            add_ip6_short(record, bytes + 8);
        else
            add_ip6(record, how.data[0], bytes + 8);
        if (with_port)
            trace_printf(record, "]:%u", port);
    }
}

static void add_ip(struct trace_record *record, struct text how, const struct trace_node *node) {
    const uint8_t *bytes;
    char version = letter(how, 1), third = letter(how, 2);
    if (version == 'S') {
        add_sockaddr(record, how, node);
    } else if (version == '4') {
        if (field_bytes(record, node, 4, "INVALIDIPv4", &bytes))
            add_ip4(record, how.data[0], third == 'h' || third == 'l', bytes);
    } else if (version == '6' && field_bytes(record, node, 16, "INVALIDIPv6", &bytes)) {
        if (how.data[0] == 'I' && third == 'c')
            add_ip6_short(record, bytes);
        else
            add_ip6(record, how.data[0], bytes);
    }
}

/* ---- bytes ---- */

static void add_uuid(struct trace_record *record, char how, const struct trace_node *node) {
    static const uint8_t swapped[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint8_t *bytes;
    if (!field_bytes(record, node, 16, "INVALIDUUID", &bytes))
        return;
    for (int i = 0; i < 16; i++) {
        uint8_t byte = bytes[(how | 32) == 'l' ? swapped[i] : i];
        trace_printf(record, how == 'L' || how == 'B' ? "%02X" : "%02x", byte);
        if (i == 3 || i == 5 || i == 7 || i == 9)
            trace_add(record, TEXT("-"));
    }
}

static void add_bytes(struct trace_record *record, char how, const struct trace_node *node,
                      int count) {
    if (node->kind != TRACE_DYNAMIC) {
        trace_printf(record, "ARG TYPE NOT FIELD BUT %d", node->kind);
        return;
    }
    struct text bytes = trace_dynamic(record, node->field);
    const char *between = how == 'C' ? ":" : how == 'D' ? "-" : how == 'N' ? "" : " ";
    for (size_t i = 0; (int)i < count && i < bytes.length && trace_step(record); i++)
        trace_printf(record, "%s%02x", i ? between : "", (uint8_t)bytes.data[i]);
}

void trace_add_pointer(struct trace_record *record, struct text how, const struct trace_node *node,
                       int count) {
    switch (letter(how, 0)) {
    case 'F':
    case 'f':
    case 'S':
    case 's':
        add_function(record, how.data[0], node);
        break;
    case 'M':
    case 'm':
        add_mac(record, how, uncast(record, node));
        break;
    case 'I':
    case 'i':
        add_ip(record, how, uncast(record, node));
        break;
    case 'U':
        add_uuid(record, letter(how, 1), uncast(record, node));
        break;
    case 'h':
        add_bytes(record, letter(how, 1), node, count);
        break;
    default:
        trace_printf(record, "%p", (void *)(uintptr_t)trace_value(record, node)); /* "(nil)" */
    }
}
