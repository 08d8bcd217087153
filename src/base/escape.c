/*
 * Escaping of bytes from a profile for XML, JSON, CSV and terminals. The content of a name can never become markup,
 * script, a field separator or a terminal command.
 */
#include "base/base.h"

/* Return the length of the UTF-8 sequence at `p` and its code point; 0 if it is invalid (overlong, surrogate, too
   large, truncated). */
static size_t utf8_decode(const unsigned char *p, size_t left, uint32_t *point) {
    if (p[0] < 0x80) {
        *point = p[0];
        return 1;
    }
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (p[0] < 0xc2 || p[0] > 0xf4 || left < length)
        return 0;
    uint32_t value = p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 0;
    *point = value;
    return length;
}

typedef void escaper(struct buffer *buffer, uint32_t point, struct text bytes);

/* Call `escape` for each character, with U+FFFD for each invalid byte. */
static void escape_all(struct buffer *buffer, struct text t, escaper *escape) {
    for (size_t i = 0; i < t.length;) {
        uint32_t point;
        size_t length = utf8_decode((const unsigned char *)t.data + i, t.length - i, &point);
        if (length == 0) {
            escape(buffer, 0xfffd, TEXT("\xef\xbf\xbd"));
            i++;
        } else {
            escape(buffer, point, (struct text){t.data + i, length});
            i += length;
        }
    }
}

/* XML 1.0 does not allow most control characters, not even escaped: use their pictures (U+2400 …) instead. */
static void escape_xml(struct buffer *buffer, uint32_t point, struct text bytes) {
    switch (point) {
    case '<':
        buffer_add(buffer, TEXT("&lt;"));
        return;
    case '>':
        buffer_add(buffer, TEXT("&gt;"));
        return;
    case '&':
        buffer_add(buffer, TEXT("&amp;"));
        return;
    case '"':
        buffer_add(buffer, TEXT("&quot;"));
        return;
    case '\'':
        buffer_add(buffer, TEXT("&#39;"));
        return;
    case '\t':
        buffer_add(buffer, TEXT("&#9;"));
        return;
    case '\n':
        buffer_add(buffer, TEXT("&#10;"));
        return;
    case '\r':
        buffer_add(buffer, TEXT("&#13;"));
        return;
    }
    if (point < 0x20) {
        char picture[] = {(char)0xe2, (char)0x90, (char)(0x80 + point)};
        buffer_add(buffer, (struct text){picture, sizeof picture});
    } else if (point == 0xfffe || point == 0xffff) {
        buffer_add(buffer, TEXT("\xef\xbf\xbd"));
    } else {
        buffer_add(buffer, bytes);
    }
}

void buffer_add_xml(struct buffer *buffer, struct text t) {
    escape_all(buffer, t, escape_xml);
}

/* <, > and & too, and the two line ends that JavaScript once refused, so that JSON may stand inside <script>. */
static void escape_json(struct buffer *buffer, uint32_t point, struct text bytes) {
    if (point == '"' || point == '\\') {
        buffer_add_char(buffer, '\\');
        buffer_add_char(buffer, (char)point);
    } else if (point < 0x20 || point == 0x7f || point == '<' || point == '>' || point == '&' ||
               point == 0x2028 || point == 0x2029) {
        buffer_printf(buffer, "\\u%04x", point);
    } else {
        buffer_add(buffer, bytes);
    }
}

void buffer_add_json(struct buffer *buffer, struct text t) {
    escape_all(buffer, t, escape_json);
}

/* Spreadsheets take a cell that begins with such a character for a formula, quoted or not, and names are not trusted;
   an apostrophe makes it text. */
static bool is_formula(struct text t) {
    return t.length && strchr("=+-@\t\r", t.data[0]) && t.data[0];
}

void buffer_add_csv(struct buffer *buffer, struct text t) {
    buffer_add_char(buffer, '"');
    if (is_formula(t))
        buffer_add_char(buffer, '\'');
    for (size_t i = 0; i < t.length; i++) {
        if (t.data[i] == '"')
            buffer_add_char(buffer, '"');
        buffer_add_char(buffer, t.data[i]);
    }
    buffer_add_char(buffer, '"');
}

/* Characters that are invisible or change how the text beside them looks: controls, format characters, fillers,
   selectors, tags. */
static bool is_hidden_or_turns_text(uint32_t point) {
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},   {0x61c, 0x61c},
        {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f}, {0x200b, 0x200f},
        {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164}, {0xfe00, 0xfe0f},
        {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3},
        {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    if (point < 0x20)
        return true;
    for (size_t i = 0; i < COUNT_OF(ranges) && point >= ranges[i].first; i++)
        if (point <= ranges[i].last)
            return true;
    return false;
}

static void add_hidden(struct buffer *buffer, uint32_t point) {
    if (point < 0x80)
        buffer_printf(buffer, "\\x%02x", point);
    else
        buffer_printf(buffer, point > 0xffff ? "\\U%08x" : "\\u%04x", point);
}

/* Fast path: nearly all names are plain, and cost one comparison per byte. */
bool text_is_shown(struct text t) {
    for (size_t i = 0; i < t.length;) {
        uint32_t point = (unsigned char)t.data[i];
        size_t length = 1;
        if (point >= 0x7f)
            length = utf8_decode((const unsigned char *)t.data + i, t.length - i, &point);
        if (length == 0 || is_hidden_or_turns_text(point))
            return false;
        i += length;
    }
    return true;
}

void buffer_add_shown(struct buffer *buffer, struct text t) {
    for (size_t i = 0; i < t.length;) {
        uint32_t point;
        size_t length = utf8_decode((const unsigned char *)t.data + i, t.length - i, &point);
        if (length == 0)
            buffer_printf(buffer, "\\x%02x", (unsigned char)t.data[i]);
        else if (is_hidden_or_turns_text(point))
            add_hidden(buffer, point);
        else
            buffer_add(buffer, (struct text){t.data + i, length});
        i += length ? length : 1;
    }
}

/* A byte that is not UTF-8 here may be part of a character that was split; c2 may have come before. */
void buffer_add_guarded(struct buffer *buffer, struct text t) {
    for (size_t i = 0; i < t.length;) {
        uint32_t point;
        size_t length = utf8_decode((const unsigned char *)t.data + i, t.length - i, &point);
        unsigned char c = (unsigned char)t.data[i];
        if (length == 0)
            buffer_add_char(buffer, i == 0 && c >= 0x80 && c < 0xa0 ? '?' : (char)c);
        else if (c != '\n' && c != '\t' && is_hidden_or_turns_text(point))
            add_hidden(buffer, point);
        else
            buffer_add(buffer, (struct text){t.data + i, length});
        i += length ? length : 1;
    }
}
