/*
 * XML as a stream of tags, without a tree: only what the readers of xctrace's export and of SVG files need. It is
 * lenient: files from other programs may contain bytes that XML does not allow.
 */
#include "import/xml.h"

/* If the text begins with `start`, skip it up to and including `end`; otherwise return false. */
static bool xml_skip(struct text *rest, struct text start, struct text end) {
    if (!text_starts(*rest, start))
        return false;
    size_t at = text_search(*rest, end);
    *rest = at == SIZE_MAX ? text_from(*rest, rest->length) : text_from(*rest, at + end.length);
    return true;
}

/* Return the tag's closing bracket, ignoring those inside quotes. */
static size_t xml_tag_end(struct text tag) {
    char quote = 0;
    for (size_t i = 0; i < tag.length; i++) {
        char c = tag.data[i];
        if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == '>')
            return i;
    }
    return SIZE_MAX;
}

bool xml_next(struct text *rest, struct xml *tag) {
    for (;;) {
        size_t at = text_find(*rest, '<');
        if (at == SIZE_MAX)
            return false;
        *rest = text_from(*rest, at);
        if (xml_skip(rest, TEXT("<!--"), TEXT("-->")) || xml_skip(rest, TEXT("<?"), TEXT("?>")) ||
            xml_skip(rest, TEXT("<![CDATA["), TEXT("]]>")) || xml_skip(rest, TEXT("<!"), TEXT(">")))
            continue;
        size_t end = xml_tag_end(*rest);
        if (end == SIZE_MAX)
            return false;
        struct text inside = {rest->data + 1, end - 1};
        *rest = text_from(*rest, end + 1);
        *tag = (struct xml){.end = text_starts(inside, TEXT("/")),
                            .empty = text_ends(inside, TEXT("/"))};
        if (tag->end)
            inside = text_from(inside, 1);
        else if (tag->empty)
            inside.length--;
        size_t name = 0;
        while (name < inside.length && !memchr(" \t\r\n", inside.data[name], 4))
            name++;
        tag->name = text_upto(inside, name);
        tag->attributes = text_from(inside, name);
        return true;
    }
}

bool xml_attribute(struct text attributes, struct text key, struct text *value) {
    for (;;) {
        attributes = text_trim(attributes);
        size_t equals = text_find(attributes, '=');
        if (equals == SIZE_MAX)
            return false;
        struct text name = text_trim(text_upto(attributes, equals));
        struct text rest = text_trim(text_from(attributes, equals + 1));
        if (!rest.length || (rest.data[0] != '"' && rest.data[0] != '\''))
            return false;
        size_t close = text_find(text_from(rest, 1), rest.data[0]);
        if (close == SIZE_MAX)
            return false;
        if (text_equal(name, key)) {
            *value = (struct text){rest.data + 1, close};
            return true;
        }
        attributes = text_from(rest, close + 2);
    }
}

/* Decode `&…;`; return false if it is not one of XML's own. */
static bool add_entity(struct buffer *out, struct text name) {
    static const struct {
        const char *name;
        char means;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (text_equal(name, text_of(known[i].name))) {
            buffer_add_char(out, known[i].means);
            return true;
        }
    }
    uint64_t point;
    bool fine = text_starts(name, TEXT("#x"))  ? text_hex_to_u64(text_from(name, 2), &point)
                : text_starts(name, TEXT("#")) ? text_to_u64(text_from(name, 1), &point)
                                               : false;
    if (!fine || point == 0 || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return false;
    buffer_add_utf8(out, (uint32_t)point);
    return true;
}

bool xml_add_unescaped(struct buffer *out, struct text t) {
    for (size_t at; (at = text_find(t, '&')) != SIZE_MAX;) {
        buffer_add(out, text_upto(t, at));
        t = text_from(t, at + 1);
        size_t end = text_find(t, ';');
        if (end == SIZE_MAX || !add_entity(out, text_upto(t, end)))
            return false;
        t = text_from(t, end + 1);
    }
    buffer_add(out, t);
    return true;
}
