/*
 * The reader: a child that turns windows into labelled trees, and joins trees into batches.
 *
 * It keeps what it has opened and learned from window to window, and lives as long as one recording. Its results are the bytes of `.wick`
 * files, which the agent keeps without parsing them. If a reader dies, its window is lost but the batch is not, because the next reader joins
 * what the agent kept.
 */
#include "agent/child.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/import.h"
#include "saved/saved.h"

enum { READ = 1, JOIN, WRITE };
enum {
    TREE_MOST = 256 << 20,   /* bytes of a reader's result */
    MEMORY_LEAST = 1u << 30, /* bytes of its own memory, or MEMORY_TIMES the agent's limit */
    MEMORY_TIMES = 4,
    RENEW_LEAST = 6, /* windows between two renewals of what it has opened */
    CPU_MOST = 60,   /* seconds for one request */
    WALL_MOST = 600,
};

static const struct note_kind note_rate = {"agent-rate",
                                           "# window{ was|s were} sampled at a lower rate"};

/* ---- in the child ---- */

struct reading_child {
    const struct agent_options *options;
    struct context context;
    struct profile_options reading;
    struct profile_stream *stream;
    struct tree *batch; /* NULL: nothing was joined yet */
    uint64_t windows, renewed;
};

static bool write_all(int descriptor, struct text bytes, struct error *error) {
    while (bytes.length) {
        ssize_t written = write(descriptor, bytes.data, bytes.length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return error_errno(error, "memory");
        bytes = text_from(bytes, (size_t)written);
    }
    return true;
}

static bool write_tree(int descriptor, const struct tree *tree, struct error *error) {
    struct buffer bytes = {0};
    struct out out;
    out_open_buffer(&out, &bytes);
    bool fine = saved_write(&out, tree, error) && out_commit(&out, error) &&
                write_all(descriptor, buffer_text(&bytes), error);
    buffer_release(&bytes);
    return fine;
}

static void count_frames(const struct tree *tree, struct child_message *answer) {
    for (size_t i = 1; i < tree->frames.count; i++)
        answer->numbers[2] += !tree->frames.items[i].name;
    answer->numbers[1] = tree->frames.count;
}

static bool read_window(struct reading_child *c, struct child_message *message,
                        const int *descriptors, struct error *error) {
    struct child_message answer = {0};
    struct file file;
    if (!file_open_descriptor(&file, descriptors[0], "window", &c->context, error))
        return false;
    struct profile *profile = profile_stream_next(c->stream, &file, error);
    bool fine = profile;
    c->windows++;
    if (profile) {
        answer.numbers[0] = profile->sample_count;
        count_frames(profile->tree, &answer);
        tree_choose_notes(profile->tree, true);
        if (message->numbers[1])
            notes_add(&profile->tree->notes, &note_rate, 1, 0, NULL);
        batch_label(profile->tree, message->numbers[0], c->options, message->text);
        fine = write_tree(descriptors[1], profile->tree, error);
        profile_free(profile);
    }
    file_close(&file);
    *message = answer;
    return fine;
}

static bool join(struct reading_child *c, int descriptor, struct error *error) {
    struct profile_options options = {.context = &c->context};
    struct file file;
    if (!file_open_descriptor(&file, descriptor, "window", &c->context, error))
        return false;
    struct tree *tree = tree_new();
    bool fine = saved_read(file_text(&file), "window", &options, tree, error);
    if (!c->batch)
        c->batch = tree_new();
    if (fine)
        tree_join(c->batch, tree);
    objects_free(tree->objects);
    tree_free(tree);
    file_close(&file);
    return fine;
}

static void forget_batch(struct reading_child *c) {
    if (c->batch) {
        objects_free(c->batch->objects);
        tree_free(c->batch);
    }
    c->batch = NULL;
}

static bool write_batch(struct reading_child *c, bool is_last, int descriptor,
                        struct error *error) {
    if (!c->batch)
        return error_set(error, ERROR_INTERNAL, "an empty batch");
    if (is_last)
        batch_bound_services(c->batch, c->options->services);
    bool fine = write_tree(descriptor, c->batch, error);
    forget_batch(c);
    return fine;
}

static bool answer(struct reading_child *c, struct child_message *message, const int *descriptors,
                   struct error *error) {
    switch (message->kind) {
    case READ:
        return read_window(c, message, descriptors, error);
    case JOIN:
        return join(c, descriptors[0], error);
    case WRITE:
        return write_batch(c, message->status, descriptors[0], error);
    }
    return error_set(error, ERROR_INTERNAL, "an unknown request");
}

/* Programs come and go, and their symbols stay. Forget them before the whole agent becomes too large, because a new recording costs more. */
static void bound_memory(struct reading_child *c) {
    uint64_t most = c->options->memory / 5 * 3;
    if (agent_memory(getpid()) <= most)
        return;
    malloc_trim(0);
    if (c->windows < c->renewed + RENEW_LEAST || agent_memory(getpid()) <= most)
        return;
    profile_stream_renew(c->stream);
    c->renewed = c->windows;
}

/* Nothing is freed: the process exits. */
static void reader_run(void *context, int channel) {
    struct reading_child *c = context;
    struct child_message message;
    struct error error;
    int descriptors[CHILD_DESCRIPTORS];
    c->stream = profile_stream_new(&c->reading);
    while (child_receive(channel, &message, descriptors)) {
        bool fine = answer(c, &message, descriptors, &error);
        child_close(descriptors);
        if (!fine)
            memcpy(message.text, error.message, sizeof message.text);
        message.kind = fine;
        bound_memory(c);
        if (!child_send(channel, &message, NULL, 0))
            return;
    }
}

_Noreturn void reader_serve(const struct agent_options *options, bool waits) {
    struct reading_child context = {.options = options, .context = agent_patient(options)};
    uint64_t memory = MEMORY_TIMES * options->memory;
    context.reading = (struct profile_options){
        .context = &context.context, .objects = {.cache = options->cache}, .each = waits};
    if (options->cache)
        objects_cache_make(options->cache);
    child_serve(&(struct child_plan){.write = &options->cache,
                                     .write_count = options->cache != NULL,
                                     .memory = memory > MEMORY_LEAST ? memory : MEMORY_LEAST,
                                     .no_sandbox = options->no_sandbox,
                                     .confined = options->confined,
                                     .run = reader_run,
                                     .context = &context});
}

/* ---- in the agent ---- */

static const struct child_patience patience = {CPU_MOST * 1000000000ull, WALL_MOST * 1000000000ull};

bool reader_start(struct child *reader, const struct agent_options *options, bool waits,
                  struct error *error) {
    return child_start(reader, options, waits ? CHILD_READER_OF_WAITS : CHILD_READER, error);
}

static bool ask(struct child *reader, struct child_message *message, const int *descriptors,
                size_t count, struct error *error) {
    return child_ask(reader, message, descriptors, count, &patience, NULL, error) &&
           (message->kind || error_set(error, ERROR_INPUT, "%s", message->text));
}

/* Return the output of a request as a descriptor, or -1 and set *error. */
static int ask_for_tree(struct child *reader, struct child_message *message, int input,
                        struct error *error) {
    int output = child_file(error);
    int both[] = {input, output};
    if (output < 0)
        return -1;
    bool fine =
        input >= 0 ? ask(reader, message, both, 2, error) : ask(reader, message, &output, 1, error);
    if (fine && child_file_seal(output, TREE_MOST, error))
        return output;
    close(output);
    return -1;
}

int reader_window(struct child *reader, int window, const struct window_facts *facts,
                  struct window_counts *counts, struct error *error) {
    struct child_message message = {.kind = READ, .numbers = {facts->time, facts->lower_rate}};
    snprintf(message.text, sizeof message.text, "%s", facts->host);
    int tree = ask_for_tree(reader, &message, window, error);
    *counts = (struct window_counts){message.numbers[0], message.numbers[1], message.numbers[2]};
    return tree;
}

int reader_join(struct child *reader, const int *trees, size_t count, bool is_last,
                struct error *error) {
    for (size_t i = 0; i < count; i++) {
        struct child_message message = {.kind = JOIN};
        if (!ask(reader, &message, &trees[i], 1, error))
            return -1;
    }
    struct child_message message = {.kind = WRITE, .status = is_last};
    return ask_for_tree(reader, &message, -1, error);
}
