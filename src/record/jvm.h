/*
 * Private to the room: Java virtual machines among the recorded processes.
 *
 * What they compiled and interpret must be read while they live. Samples leave their addresses and what on their stacks looks like an
 * interpreter's frame; between two rounds the code cache is walked, what is new in it goes to the recording (docs/carrier.md), and so do the methods
 * that frames named. A walk is repeated when a hundred times its own time has passed.
 */
#ifndef WICK_RECORD_JVM_H
#define WICK_RECORD_JVM_H

#include "record/internal.h"

struct jvms;

struct jvms *jvms_new(struct sink *sink);
void jvms_free(struct jvms *jvms);
/* A file was mapped as code; `time` is that of its record, 0: it was there before. Does nothing unless it is a libjvm.so. */
void jvms_saw_mapping(struct jvms *jvms, pid_t pid, struct text path, uint64_t time);
void jvms_saw_exit(struct jvms *jvms, pid_t pid);
/* A sample, whole. Costs a comparison for each word of its stack if it is one of a JVM's, else a look into an index. */
void jvms_saw_sample(struct jvms *jvms, const uint8_t *record,
                     const struct perf_event_header *header);

/* Puts an entry into the recording. */
typedef bool jvm_write(void *context, enum carrier_kind kind, struct text key, struct text bytes,
                       struct error *error);
/* Between two rounds. `is_last`: there will be no other. */
bool jvms_turn(struct jvms *jvms, bool is_last, jvm_write *write, void *context,
               struct error *error);
/* Another file begins, which knows nothing of what was written. */
void jvms_begin_again(struct jvms *jvms);

#endif
