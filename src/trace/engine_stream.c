/*
 * The stream engine: any simulator can feed wick through a pipe, without linking to it. docs/trace.md describes the format.
 *
 * The stream is not trusted: an invalid record is an error with its byte offset, and a stream that ends inside a record is counted up to
 * there and marked as partial.
 */
#include "trace/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEADER_SIZE 16
#define RECORD_SIZE 24
#define WITH_SP 1
#define BUFFER_SIZE (RECORD_SIZE * 32 * 256) /* a multiple of both record sizes */

enum stream_kind {
    STREAM_ON,
    STREAM_BRANCH,
    STREAM_JUMP,
    STREAM_CALL,
    STREAM_RETURN,
    STREAM_KINDS
};

struct record {
    uint64_t pc, target, sp;
    uint32_t length;
    uint16_t count;
    uint8_t kind;
};

struct stream {
    const char *path;
    const struct context *context;
    int descriptor;
    uint8_t *buffer;
    size_t have, at;
    uint64_t offset; /* of buffer[at] in the stream */
    size_t record_size;
    bool ended;
    struct flow flow;
    bool rooted;
    int why; /* errno of a read that failed, or 0 */
};

/* Make `size` bytes available at buffer + at; return false at the end of the stream, or on an error, which is in s->why. */
static bool fill(struct stream *s, size_t size) {
    if (s->have - s->at >= size)
        return true;
    memmove(s->buffer, s->buffer + s->at, s->have - s->at);
    s->have -= s->at;
    s->at = 0;
    while (s->have < size && !context_cancelled(s->context)) {
        ssize_t n = read(s->descriptor, s->buffer + s->have, BUFFER_SIZE - s->have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            s->why = errno;
        if (n <= 0)
            return false;
        s->have += (size_t)n;
    }
    return s->have >= size;
}

static const uint8_t *take(struct stream *s, size_t size) {
    const uint8_t *at = s->buffer + s->at;
    s->at += size;
    s->offset += size;
    return at;
}

static bool read_header(struct stream *s, struct error *error) {
    if (!fill(s, HEADER_SIZE))
        return s->why ? error_set(error, ERROR_INPUT, "%s: %s", s->path, strerror(s->why))
                      : error_at(error, s->path, 0, "the stream has no header");
    const uint8_t *header = take(s, HEADER_SIZE);
    if (memcmp(header, "WICKFLOW", 8) != 0)
        return error_at(error, s->path, 0,
                        "not a stream for wick: it does not begin with WICKFLOW");
    if (load_u32(header + 8) != 1)
        return error_at(error, s->path, 8, "version %u of the stream is not known",
                        load_u32(header + 8));
    if (load_u32(header + 12) & ~WITH_SP)
        return error_at(error, s->path, 12, "unknown flags 0x%x", load_u32(header + 12));
    s->record_size = RECORD_SIZE + (load_u32(header + 12) & WITH_SP ? 8 : 0);
    return true;
}

static bool read_record(struct stream *s, struct record *r, struct error *error) {
    uint64_t offset = s->offset;
    const uint8_t *d = take(s, s->record_size);
    *r = (struct record){load_u64(d),
                         load_u64(d + 8),
                         s->record_size > RECORD_SIZE ? load_u64(d + 24) : NO_ADDRESS,
                         load_u32(d + 16),
                         load_u16(d + 20),
                         d[22]};
    if (r->kind >= STREAM_KINDS || d[23])
        return error_at(error, s->path, offset + 22, "unknown kind of record %u",
                        r->kind | (unsigned)d[23] << 8);
    if (!r->count || r->length < r->count)
        return error_at(error, s->path, offset + 16, "%u instructions in %u bytes", r->count,
                        r->length);
    return true;
}

/* The instructions belong to the stack before the last of them took effect. */
static void follow(struct stream *s, const struct record *r) {
    uint64_t from = r->pc + r->length - 1;
    flow_count(&s->flow, r->count);
    switch ((enum stream_kind)r->kind) {
    case STREAM_BRANCH:
    case STREAM_JUMP:
        flow_jump(&s->flow, from, r->target, r->sp);
        break;
    case STREAM_CALL:
        flow_call(&s->flow, r->target, r->pc + r->length, r->sp);
        break;
    case STREAM_RETURN:
        flow_return(&s->flow, from, r->target, r->sp);
        break;
    default:
        break;
    }
}

static bool run(struct stream *s, struct trace *trace, const struct trace_options *o,
                trace_checkpoint *checkpoint, void *context, struct error *error) {
    uint64_t next = o->checkpoint;
    struct record r;
    while (!context_cancelled(s->context) && fill(s, s->record_size)) {
        if (!read_record(s, &r, error))
            return false;
        if (!s->rooted)
            flow_init(&s->flow, &trace->trie, trace->functions, r.pc);
        s->rooted = true;
        if (o->budget && r.count > o->budget - trace->instructions)
            r.count = (uint16_t)(o->budget - trace->instructions), r.kind = STREAM_ON;
        follow(s, &r);
        trace->instructions += r.count;
        if (next && trace->instructions >= next) {
            next += o->checkpoint;
            trace->is_partial = true;
            if (checkpoint)
                checkpoint(context, trace);
        }
        if (o->budget && trace->instructions == o->budget) {
            trace->end = TRACE_BUDGET;
            return true;
        }
    }
    trace->end = context_cancelled(s->context) ? TRACE_INTERRUPTED : TRACE_EXITED;
    if (trace->end == TRACE_EXITED && s->have > s->at) {
        trace->end = TRACE_FAULT;
        snprintf(trace->fault, sizeof trace->fault, "the stream ends inside a record, at byte %llu",
                 (unsigned long long)s->offset);
    }
    return true;
}

static bool open_stream(struct stream *s, struct error *error) {
    bool is_standard = strcmp(s->path, "-") == 0;
    s->descriptor = is_standard ? STDIN_FILENO : open(s->path, O_RDONLY | O_CLOEXEC);
    if (s->descriptor < 0)
        return error_errno(error, s->path);
    s->buffer = memory_alloc(BUFFER_SIZE);
    return read_header(s, error);
}

static bool read_symbols(struct trace *trace, const char *path, const struct context *context,
                         struct error *error) {
    struct file file;
    if (!path)
        return true;
    if (!file_open_raw(&file, path, context, error))
        return false;
    functions_add_elf(trace->functions, file.data, file.size, 0);
    file_close(&file);
    return true;
}

bool engine_stream(struct trace *trace, const struct trace_options *options,
                   trace_checkpoint *checkpoint, void *context, struct error *error) {
    struct stream s = {.path = options->stream ? options->stream : "-",
                       .context = options->context,
                       .descriptor = -1};
    bool fine = trie_init(&trace->trie, error) &&
                read_symbols(trace, options->path, options->context, error) &&
                open_stream(&s, error) && run(&s, trace, options, checkpoint, context, error);
    trace->is_partial = trace->end == TRACE_FAULT || trace->end == TRACE_INTERRUPTED;
    engine_notes(trace, &s.flow);
    if (s.rooted)
        flow_release(&s.flow);
    free(s.buffer);
    if (s.descriptor > STDIN_FILENO)
        close(s.descriptor);
    return fine;
}
