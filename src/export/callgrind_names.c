/* Callgrind's text: its header, and names, which are written once. */
#include "export/callgrind_names.h"

#include <stdlib.h>

void callgrind_text_init(struct callgrind_text *t) {
    *t = (struct callgrind_text){
        .names = strings_new(), .files = strings_new(), .objects = strings_new()};
}

void callgrind_text_release(struct callgrind_text *t) {
    buffer_release(&t->text);
    strings_free(t->names);
    strings_free(t->files);
    strings_free(t->objects);
}

/* Append a name as one line, whatever it contains. */
static void add_line(struct buffer *text, struct text t) {
    size_t start = text->count;
    buffer_add(text, t.length ? t : TEXT("???"));
    for (size_t i = start; i < text->count; i++)
        if ((unsigned char)text->items[i] < ' ')
            text->items[i] = ' ';
}

static void add_name(struct callgrind_text *t, const char *key, struct strings *strings,
                     uint32_t *written, struct text name) {
    uint32_t id = strings_add(strings, name.length ? name : TEXT("???"));
    buffer_printf(&t->text, "%s=(%u)", key, id);
    if (id > *written) {
        *written = id;
        buffer_add_char(&t->text, ' ');
        add_line(&t->text, name);
    }
    buffer_add_char(&t->text, '\n');
}

void callgrind_add_names(struct callgrind_text *t, struct text object, struct text file,
                         struct text name, bool called) {
    add_name(t, called ? "cob" : "ob", t->objects, &t->written[0], object);
    add_name(t, called ? "cfi" : "fl", t->files, &t->written[1], file);
    add_name(t, called ? "cfn" : "fn", t->names, &t->written[2], name);
}

void callgrind_add_file(struct callgrind_text *t, const char *key, struct text file) {
    add_name(t, key, t->files, &t->written[1], file);
}

void callgrind_add_head(struct callgrind_text *t, const struct export_options *options) {
    const struct notes *notes = options->notes;
    struct buffer note = {0};
    buffer_add(&t->text,
               TEXT("# callgrind format\nversion: 1\ncreator: wick " WICK_VERSION "\ncmd: "));
    add_line(&t->text, text_of(options->title));
    for (size_t i = 0; notes && i < notes->count; i++) {
        note.count = 0;
        note_print(&notes->items[i], &note);
        buffer_add(&t->text, TEXT("\ndesc: Note: "));
        add_line(&t->text, buffer_text(&note));
    }
    buffer_add(&t->text, TEXT("\npositions: line\nevents:"));
    buffer_release(&note);
}

void callgrind_add_event(struct callgrind_text *t, struct text name) {
    for (size_t k = 0; k < name.length; k++) {
        char letter = name.data[k];
        bool plain =
            (letter >= '0' && letter <= '9') || ((letter | 32) >= 'a' && (letter | 32) <= 'z');
        buffer_add_char(&t->text, plain ? letter : '_');
    }
}
