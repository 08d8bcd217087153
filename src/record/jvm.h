/*
 * Private to the room: Java virtual machines among the recorded processes.
 *
 * Their compiled and interpreted code must be read while they live. Samples provide addresses, and words on their stacks that look like an
 * interpreter's frame. Between two rounds the code cache is walked; new code and the methods of those frames go to the recording
 * (docs/carrier.md). A walk is repeated after a hundred times its own duration.
 */
#ifndef WICK_RECORD_JVM_H
#define WICK_RECORD_JVM_H

#include "record/internal.h"

struct jvms;

struct jvms *jvms_new(struct sink *sink);
void jvms_free(struct jvms *jvms);
/* A file was mapped as code. `time` is the record's time; 0: it was mapped before the recording. Does nothing unless it is a libjvm.so. */
void jvms_saw_mapping(struct jvms *jvms, pid_t pid, struct text path, uint64_t time);
void jvms_saw_exit(struct jvms *jvms, pid_t pid);
/* Process a complete sample. Costs a comparison for each word of its stack if it is from a JVM, otherwise an index lookup. */
void jvms_saw_sample(struct jvms *jvms, const uint8_t *record,
                     const struct perf_event_header *header);
/* Process a part of a stack that the samples' copies lack. */
void jvms_saw_memory(struct jvms *jvms, pid_t pid, uint64_t address, struct text bytes);

/* Write an entry to the recording. */
typedef bool jvm_write(void *context, enum carrier_kind kind, struct text key, struct text bytes,
                       struct error *error);
/* Call between two rounds. `is_last`: this is the last call. */
bool jvms_turn(struct jvms *jvms, bool is_last, jvm_write *write, void *context,
               struct error *error);
/* A new file begins, which contains nothing of what was written. */
void jvms_begin_again(struct jvms *jvms);

#endif
