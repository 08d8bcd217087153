/* Private to the room: what both writers of Callgrind's text share. */
#ifndef WICK_EXPORT_CALLGRIND_NAMES_H
#define WICK_EXPORT_CALLGRIND_NAMES_H

#include "export/export.h"

struct callgrind_text {
    struct buffer text;
    struct strings *names, *files, *objects;
    uint32_t written[3]; /* how many of those have been told */
};
void callgrind_text_init(struct callgrind_text *t);
void callgrind_text_release(struct callgrind_text *t);
/* From the first line to `events:`, which the caller completes. */
void callgrind_add_head(struct callgrind_text *t, const struct export_options *options);
/* The name of an event, without what would end it. */
void callgrind_add_event(struct callgrind_text *t, struct text name);
/* `ob=`, `fl=` and `fn=`, or those of a callee. Empty: not known. */
void callgrind_add_names(struct callgrind_text *t, struct text object, struct text file,
                         struct text name, bool called);
/* `key=(3) name` the first time, `key=(3)` from then on, of a file: `fi` or `fe`. */
void callgrind_add_file(struct callgrind_text *t, const char *key, struct text file);

#endif
