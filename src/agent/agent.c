/*
 * The agent's loop: record, window after window, until it is to end; and again from the beginning where the rate changes, or memory grew
 * too large. A recording that begins tells all that is mapped, so that nothing has to be carried over.
 */
#include "agent/internal.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "profile/profile.h"
#include "store/store.h"

static const uint64_t second = 1000000000u;
enum {
    BUSY_WINDOWS = 3,        /* in a row above the limit: the rate is halved */
    CALM_WINDOWS = 30,       /* in a row below a quarter of it: it is doubled again */
    WAIT_STACK_MOST = 16384, /* bytes: what BPF copies */
    LEAST_WINDOWS = 6,       /* before a recording that is too large ends */
    LAST_TRY = 10,           /* seconds for what is not sent when the agent ends */
};

static const struct note_kind note_rate = {"agent-rate",
                                           "# window{ was|s were} sampled at a lower rate"};

struct agent {
    const struct agent_options *options;
    struct record_options recording;
    struct record_result result;
    struct context patient;
    struct profile_options reading;
    struct profile_stream *stream;
    struct namer *namer;
    struct spool_directory spool;
    struct sender *sender;
    struct metrics *metrics;
    struct agent_counts counts;
    struct batch batch;
    char host[256];
    uint64_t window_began; /* CLOCK_MONOTONIC */
    uint64_t cpu_before;
    uint64_t lost_before;
    unsigned busy, calm;
    uint64_t windows_before; /* this recording */
    uint64_t until;          /* CLOCK_MONOTONIC; 0: no end */
    bool waits;              /* are recorded */
    bool again;              /* the recording was ended to begin afresh */
    bool failed;             /* a batch could not be spooled, and it was said */
};

uint64_t agent_now(int clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * second + (uint64_t)t.tv_nsec;
}

void agent_say(const struct agent_options *options, const char *format, ...) {
    va_list list;
    if (!options->say)
        return;
    va_start(list, format);
    char *text = memory_print(NULL, format, list);
    va_end(list);
    options->say(options->user, text);
    free(text);
}

struct context agent_patient(const struct agent_options *options) {
    struct context context = *options->context;
    context.cancelled = NULL;
    return context;
}

/* ---- itself ---- */

static uint64_t own_cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * second +
           ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}

/* Mapped files do not count: the kernel takes their pages back whenever it needs them. */
static uint64_t own_memory(void) {
    static const struct text kinds[] = {TEXT("RssAnon"), TEXT("RssShmem")};
    struct buffer status = {0};
    uint64_t all = 0, kilobytes;
    proc_read(getpid(), "status", PROC_STATUS_MOST, &status);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct text value = text_trim(proc_field(buffer_text(&status), kinds[i], 0));
        size_t unit = text_find(value, ' '); /* " kB" */
        if (unit != SIZE_MAX && text_to_u64(text_upto(value, unit), &kilobytes))
            all += kilobytes << 10;
    }
    buffer_release(&status);
    return all;
}

/* The share of the machine that the agent had since the last look. */
static double own_share(struct agent *a, uint64_t elapsed) {
    uint64_t cpu = own_cpu(), spent = cpu - a->cpu_before;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    a->cpu_before = cpu;
    a->counts.cpu_ns = cpu;
    return elapsed ? (double)spent / (double)elapsed / (double)(cpus > 0 ? cpus : 1) : 0;
}

/* True: the recording is to begin again, with another rate. What a recording costs to begin says nothing about its rate. */
static bool adapt_rate(struct agent *a, double share) {
    uint64_t *frequency = &a->recording.frequency;
    if (a->counts.windows == a->windows_before + 1)
        return false;
    a->busy = 100 * share > a->options->cpu ? a->busy + 1 : 0;
    a->calm = 100 * share < a->options->cpu / 4 ? a->calm + 1 : 0;
    if (a->busy >= BUSY_WINDOWS && *frequency > 1) {
        *frequency /= 2;
        agent_say(a->options, "%.1f %% of the machine went to the agent: %llu samples a second now",
                  100 * share, (unsigned long long)*frequency);
    } else if (a->calm >= CALM_WINDOWS && *frequency < a->options->frequency) {
        *frequency =
            2 * *frequency < a->options->frequency ? 2 * *frequency : a->options->frequency;
        agent_say(a->options, "%llu samples a second again", (unsigned long long)*frequency);
    } else {
        return false;
    }
    a->busy = a->calm = 0;
    return true;
}

/* What was freed is given back before it counts. A recording that has just begun stays: a new one would need as much. */
static bool is_too_large(struct agent *a) {
    uint64_t memory = own_memory();
    if (memory > a->options->memory) {
        malloc_trim(0);
        memory = own_memory();
    }
    a->counts.memory = memory;
    return memory > a->options->memory && a->counts.windows >= a->windows_before + LEAST_WINDOWS;
}

/* ---- windows ---- */

static void ask_host(struct agent *a) {
    const char *given = a->options->host;
    if (given)
        snprintf(a->host, sizeof a->host, "%s", given);
    else if (gethostname(a->host, sizeof a->host) != 0 || !a->host[0])
        snprintf(a->host, sizeof a->host, "unknown");
    a->host[sizeof a->host - 1] = 0;
}

static void publish(struct agent *a) {
    struct error error;
    ask_host(a);
    if (!a->batch.tree)
        return;
    if (batch_publish(&a->batch, &a->spool, a->host, a->options, &error)) {
        a->counts.batches++;
        a->failed = false;
    } else {
        a->counts.dropped++;
        if (!a->failed)
            agent_say(a->options, "a batch was dropped: %s", error.message);
        a->failed = true;
    }
    sender_wake(a->sender);
}

static void count_symbols(struct agent *a, const struct tree *tree) {
    uint64_t missing = 0;
    for (size_t i = 1; i < tree->frames.count; i++)
        missing += !tree->frames.items[i].name;
    a->counts.symbols = tree->frames.count;
    a->counts.symbols_missing = missing;
}

static void take_window(struct agent *a, struct profile *profile, uint64_t elapsed) {
    uint64_t began = agent_now(CLOCK_REALTIME) - elapsed;
    uint64_t length = a->options->window / second;
    uint64_t time = began / second / length * length;
    a->counts.samples += profile->sample_count;
    count_symbols(a, profile->tree);
    if (a->recording.frequency < a->options->frequency)
        notes_add(&profile->tree->notes, &note_rate, 1, 0, NULL);
    if (!a->batch.tree)
        a->batch.began = a->window_began;
    batch_add(&a->batch, profile->tree, time, a->options, a->host);
}

/* A window that can't be read is lost, and the recording begins again. */
static bool on_window(void *context, const struct file *window, struct error *error) {
    struct agent *a = context;
    uint64_t now = agent_now(CLOCK_MONOTONIC), elapsed = now - a->window_began;
    struct profile *profile = profile_stream_next(a->stream, window, error);
    if (profile) {
        take_window(a, profile, elapsed);
        profile_free(profile);
    } else {
        agent_say(a->options, "a window was lost: %s", error->message);
    }
    a->window_began = now;
    a->counts.windows++;
    a->counts.last_window = agent_now(CLOCK_REALTIME) / second;
    a->counts.window_ns = agent_now(CLOCK_MONOTONIC) - now;
    a->counts.lost += a->result.lost - a->lost_before;
    a->lost_before = a->result.lost;
    if (now - a->batch.began + a->options->window / 2 >= a->options->batch)
        publish(a);
    bool other_rate = adapt_rate(a, own_share(a, elapsed));
    a->again = !profile || other_rate || is_too_large(a);
    if (a->again)
        return error_set(error, ERROR_INTERNAL, "the recording begins again");
    return true;
}

/* ---- recordings ---- */

static void describe(struct agent *a) {
    const struct agent_options *o = a->options;
    a->recording = (struct record_options){.context = o->context,
                                           .system_wide = true,
                                           .frequency = o->frequency,
                                           .call_graph = o->call_graph,
                                           .stack_size = o->stack_size,
                                           .frame_pointers_too = true,
                                           .off_cpu = a->waits ? OFF_CPU_BPF : OFF_CPU_NOT,
                                           .wall = a->waits,
                                           .one_wait_in = o->waits,
                                           .window = o->window,
                                           .on_window = on_window,
                                           .window_context = a,
                                           .add_labels = namer_add,
                                           .label_context = a->namer};
    a->patient = agent_patient(o);
    a->reading = (struct profile_options){
        .context = &a->patient, .objects = {.cache = o->cache}, .each = a->waits};
}

static bool is_over(const struct agent *a) {
    return context_cancelled(a->options->context) ||
           (a->until && agent_now(CLOCK_MONOTONIC) >= a->until);
}

/* True: go on with another recording. */
static bool record_once(struct agent *a, struct error *error) {
    a->windows_before = a->counts.windows;
    error->kind = ERROR_NONE;
    a->stream = profile_stream_new(&a->reading);
    a->window_began = agent_now(CLOCK_MONOTONIC);
    a->lost_before = 0;
    a->again = false;
    a->counts.frequency = a->recording.frequency;
    if (a->until)
        a->recording.duration = a->until - a->window_began;
    bool fine = record_run(&a->recording, &a->result, error);
    record_result_release(&a->result);
    profile_stream_free(a->stream);
    a->stream = NULL;
    if (fine || is_over(a))
        return false;
    a->counts.restarts++;
    if (a->again)
        return true;
    if (a->counts.windows == a->windows_before) /* not even one: it will not get better */
        return false;
    agent_say(a->options, "the recording ended: %s; it begins again", error->message);
    return true;
}

/* An agent that can't see waits still sees what runs. */
static bool can_see_waits(const struct agent_options *o) {
    struct error why;
    bool can = o->waits && record_has_bpf(&why);
    if (o->waits && !can)
        agent_say(o, "waits are not recorded: %s", why.message);
    return can;
}

/* A store that is down now may come back; one whose name is wrong will not. A server is not asked: the recording does not wait for it. A file is
   made, so that it can be read from the beginning. */
static bool check_store(const struct agent_options *o, struct error *error) {
    if (!store_url_check(o->store, error))
        return false;
    if (store_is_url(text_of(o->store)))
        return true;
    struct store_options options = {
        .context = o->context, .credentials = o->credentials, .write = true, .create = true};
    struct store *store = store_open(o->store, &options, error);
    if (store)
        store_close(store);
    return store || error->kind != ERROR_USAGE;
}

static bool start(struct agent *a, struct error *error) {
    const struct agent_options *o = a->options;
    a->spool = (struct spool_directory){.directory = -1,
                                        .most_bytes = o->spool_bytes,
                                        .most_age = o->spool_age,
                                        .counts = &a->counts};
    if (o->waits && o->call_graph == CALL_GRAPH_DWARF && o->stack_size > WAIT_STACK_MOST)
        return error_set(
            error, ERROR_USAGE,
            "off-cpu takes copies of stacks of at most %d bytes: call-graph = dwarf,%d",
            WAIT_STACK_MOST, WAIT_STACK_MOST);
    if (!check_store(o, error) || !spool_directory_open(&a->spool, o->spool, error))
        return false;
    if (o->metrics && !(a->metrics = metrics_new(o->metrics, &a->counts, o->window, error)))
        return false;
    if (!(a->sender = sender_new(o, &a->spool)))
        return error_errno(error, "pthread_create");
    a->namer = namer_new(o);
    a->waits = can_see_waits(o);
    describe(a);
    ask_host(a);
    a->until = o->duration ? agent_now(CLOCK_MONOTONIC) + o->duration : 0;
    a->cpu_before = own_cpu();
    return true;
}

bool agent_run(const struct agent_options *options, struct error *error) {
    struct agent a = {.options = options};
    bool fine = start(&a, error);
    if (fine) {
        while (record_once(&a, error))
            ;
        fine = error->kind == ERROR_NONE || is_over(&a);
        publish(&a);
    }
    sender_end(a.sender, LAST_TRY * second);
    metrics_free(a.metrics);
    namer_free(a.namer);
    batch_release(&a.batch);
    spool_directory_close(&a.spool);
    return fine;
}
