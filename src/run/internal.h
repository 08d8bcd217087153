/* Private to the room: facts about program and source tree, for the report. */
#ifndef WICK_RUN_INTERNAL_H
#define WICK_RUN_INTERNAL_H

#include "base/base.h"

/* What the program at `path` (looked up as execvp does) is: digest, build id, compiler. */
void describe_program(struct buffer *text, const char *path);
/* The commit of the working directory and whether it is dirty; nothing outside a git tree. */
void describe_git(struct buffer *text);

/* SHA-256 of a file's bytes, in hexadecimal. */
void sha256_hex(const uint8_t *data, size_t size, char hex[65]);

#endif
