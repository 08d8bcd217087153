/* Private to the room: shared by both writers of Callgrind's text. */
#ifndef WICK_EXPORT_CALLGRIND_NAMES_H
#define WICK_EXPORT_CALLGRIND_NAMES_H

#include "export/export.h"

struct callgrind_text {
    struct buffer text;
    struct strings *names, *files, *objects;
    uint32_t written[3]; /* how many of those have been written */
};
void callgrind_text_init(struct callgrind_text *t);
void callgrind_text_release(struct callgrind_text *t);
/* Write the header up to `events:`, which the caller completes. */
void callgrind_add_head(struct callgrind_text *t, const struct export_options *options);
/* Write the name of an event, without characters that would end it. */
void callgrind_add_event(struct callgrind_text *t, struct text name);
/* Write `ob=`, `fl=` and `fn=`, or those of a callee. Empty: unknown. */
void callgrind_add_names(struct callgrind_text *t, struct text object, struct text file,
                         struct text name, bool called);
/* Write `key=(3) name` the first time, then `key=(3)`, for a file: `fi` or `fe`. */
void callgrind_add_file(struct callgrind_text *t, const char *key, struct text file);

#endif
