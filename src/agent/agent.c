/*
 * The agent's loop: record window after window until it is told to end, and start a new recording if the rate changes or memory grew too
 * large. A new recording lists all mappings, so nothing has to be carried over.
 */
#include "agent/child.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

static const uint64_t second = 1000000000u;
enum {
    BUSY_WINDOWS = 3,        /* consecutive windows above the limit before the rate is halved */
    CALM_WINDOWS = 30,       /* consecutive windows below a quarter of it before it is doubled */
    WAIT_STACK_MOST = 16384, /* bytes: what BPF copies */
    LEAST_WINDOWS = 6,       /* before a recording that grew too large ends */
    LAST_TRY = 10,           /* seconds to send the rest when the agent ends */
    PAUSE_MOST = 60,         /* seconds between two tries to start a recording */
    RENEWAL = 3600, /* seconds: a reader sees no directory created after it started (sandbox) */
};

struct agent {
    const struct agent_options *options;
    struct record_options recording;
    struct record_result result;
    struct child reader;
    pid_t first_reader; /* of this recording; a later reader knows nothing of it */
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
    uint64_t began;          /* of this recording: CLOCK_MONOTONIC */
    uint64_t until;          /* CLOCK_MONOTONIC; 0: no end */
    bool waits;              /* are recorded */
    bool again;              /* the recording was ended to start a new one */
    bool failed;             /* a batch could not be spooled, and this was reported */
    unsigned pause; /* seconds: the last one before a try to start a recording; 0: it runs */
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

/* ---- its own use ---- */

static uint64_t cpu_of(__typeof__(RUSAGE_SELF) whom) {
    struct rusage usage;
    getrusage(whom, &usage);
    return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * second +
           ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}

/* Return the CPU time with all children, ended and running. */
static uint64_t own_cpu(const struct agent *a) {
    return cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN) + child_cpu(&a->reader) +
           sender_cpu(a->sender);
}

uint64_t agent_memory(pid_t pid) {
    static const struct text kinds[] = {TEXT("RssAnon"), TEXT("RssShmem")};
    struct buffer status = {0};
    uint64_t all = 0, kilobytes;
    proc_read(pid, "status", PROC_STATUS_MOST, &status);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct text value = text_trim(proc_field(buffer_text(&status), kinds[i], 0));
        size_t unit = text_find(value, ' '); /* " kB" */
        if (unit != SIZE_MAX && text_to_u64(text_upto(value, unit), &kilobytes))
            all += kilobytes << 10;
    }
    buffer_release(&status);
    return all;
}

static uint64_t own_memory(const struct agent *a) {
    return agent_memory(getpid()) + (child_lives(&a->reader) ? agent_memory(a->reader.pid) : 0) +
           sender_memory(a->sender);
}

/* Return the agent's share of the machine since the last call. The sum is too small for a moment if the sender reaps its child while it is
   taken. */
static double own_share(struct agent *a, uint64_t elapsed) {
    uint64_t cpu = own_cpu(a);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (cpu < a->cpu_before)
        cpu = a->cpu_before;
    uint64_t spent = cpu - a->cpu_before;
    a->cpu_before = cpu;
    a->counts.cpu_ns = cpu;
    return elapsed ? (double)spent / (double)elapsed / (double)(cpus > 0 ? cpus : 1) : 0;
}

/* Return true if the recording must restart at another rate. The cost of starting a recording says nothing about its rate. */
static bool adapt_rate(struct agent *a, double share) {
    uint64_t *frequency = &a->recording.frequency;
    if (a->counts.windows == a->windows_before + 1)
        return false;
    a->busy = 100 * share > a->options->cpu ? a->busy + 1 : 0;
    a->calm = 100 * share < a->options->cpu / 4 ? a->calm + 1 : 0;
    if (a->busy >= BUSY_WINDOWS && *frequency > 1) {
        *frequency /= 2;
        agent_say(a->options,
                  "the agent used %.1f %% of the machine: lowered to %llu samples a second",
                  100 * share, (unsigned long long)*frequency);
    } else if (a->calm >= CALM_WINDOWS && *frequency < a->options->frequency) {
        *frequency =
            2 * *frequency < a->options->frequency ? 2 * *frequency : a->options->frequency;
        agent_say(a->options, "raised to %llu samples a second again",
                  (unsigned long long)*frequency);
    } else {
        return false;
    }
    a->busy = a->calm = 0;
    return true;
}

/* Return freed memory to the system before measuring. Keep a recording that has just begun: a new one would need as much. */
static bool is_too_large(struct agent *a) {
    uint64_t memory = own_memory(a);
    if (memory > a->options->memory) {
        malloc_trim(0);
        memory = own_memory(a);
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

static bool has_reader(struct agent *a, struct error *error) {
    return child_lives(&a->reader) || reader_start(&a->reader, a->options, a->waits, error);
}

static bool is_over(const struct agent *a) {
    return context_cancelled(a->options->context) ||
           (a->until && agent_now(CLOCK_MONOTONIC) >= a->until);
}

static void finish_batch(struct agent *a, bool fine, const struct error *error) {
    if (fine)
        a->counts.batches++;
    else
        a->counts.dropped++;
    if (!fine && !a->failed)
        agent_say(a->options, "a batch was dropped: %s", error->message);
    a->failed = !fine;
    batch_release(&a->batch);
    sender_wake(a->sender);
}

/* If the reader was killed, nothing is lost: the next one joins what it made. If none can be started, a later window tries again. */
static void publish(struct agent *a) {
    struct error error;
    bool fine = false, has = true;
    ask_host(a);
    if (!a->batch.trees.count)
        return;
    for (int tries = 0; tries < 2 && has && !fine; tries++) {
        if (tries > 0)
            agent_say(a->options, "a batch is joined again: %s", error.message);
        has = has_reader(a, &error);
        fine = has && batch_publish(&a->batch, &a->reader, &a->spool, a->host, &error);
        if (child_lives(&a->reader))
            break;
    }
    if (has || is_over(a) || a->batch.trees.count >= TREES_MOST)
        finish_batch(a, fine, &error);
}

/* Return false if the window is lost; this has been reported. */
static bool take_window(struct agent *a, int window, uint64_t elapsed, struct error *error) {
    uint64_t began = agent_now(CLOCK_REALTIME) - elapsed;
    uint64_t length = a->options->window / second;
    struct window_facts facts = {.time = began / second / length * length,
                                 .lower_rate = a->recording.frequency < a->options->frequency,
                                 .host = a->host};
    struct window_counts counts;
    int tree = reader_window(&a->reader, window, &facts, &counts, error);
    if (tree < 0) {
        a->counts.windows_lost++;
        agent_say(a->options, "a window was lost: %s", error->message);
        return false;
    }
    a->counts.samples += counts.samples;
    a->counts.symbols = counts.frames;
    a->counts.symbols_missing = counts.unnamed;
    if (!a->batch.trees.count)
        a->batch.began = a->window_began;
    batch_add(&a->batch, tree);
    return true;
}

static bool is_old(const struct agent *a, uint64_t now) {
    return now - a->began >= RENEWAL * second && !a->batch.trees.count;
}

/* If a window can't be read, it is lost, and the recording starts again with a new reader. */
static bool on_window(void *context, int window, struct error *error) {
    struct agent *a = context;
    uint64_t now = agent_now(CLOCK_MONOTONIC), elapsed = now - a->window_began;
    bool fine = take_window(a, window, elapsed, error);
    a->pause = 0;
    a->window_began = now;
    a->counts.windows++;
    a->counts.last_window = agent_now(CLOCK_REALTIME) / second;
    a->counts.window_ns = agent_now(CLOCK_MONOTONIC) - now;
    a->counts.lost += a->result.lost - a->lost_before;
    a->lost_before = a->result.lost;
    if (now - a->batch.began + a->options->window / 2 >= a->options->batch)
        publish(a);
    else if (fine && a->batch.trees.count >= TREES_MOST)
        fine = batch_compact(&a->batch, &a->reader, error);
    bool other_rate = adapt_rate(a, own_share(a, elapsed));
    a->again = !fine || a->reader.pid != a->first_reader || other_rate || is_too_large(a) ||
               is_old(a, now);
    if (a->again)
        return error_set(error, ERROR_INTERNAL, "the recording starts again");
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
}

/* A reader that has read another recording can't be used for this one. */
static bool renew_reader(struct agent *a, struct error *error) {
    child_end(&a->reader);
    bool fine = reader_start(&a->reader, a->options, a->waits, error);
    a->first_reader = a->reader.pid;
    return fine;
}

/* A recording that never worked won't. One that did may lack memory, processes or descriptors for a while. */
static bool try_later(struct agent *a, const struct error *error) {
    struct timespec moment = {0, 100000000};
    if (!a->counts.windows)
        return false;
    if (!a->pause)
        agent_say(a->options, "the recording can't start: %s; trying again", error->message);
    a->pause = a->pause > PAUSE_MOST / 2 ? PAUSE_MOST : 2 * a->pause + !a->pause;
    uint64_t until = agent_now(CLOCK_MONOTONIC) + a->pause * second;
    while (!is_over(a) && agent_now(CLOCK_MONOTONIC) < until)
        nanosleep(&moment, NULL);
    return !is_over(a);
}

/* Return true to continue with another recording. */
static bool record_once(struct agent *a, struct error *error) {
    a->windows_before = a->counts.windows;
    error->kind = ERROR_NONE;
    if (!renew_reader(a, error))
        return try_later(a, error);
    a->began = a->window_began = agent_now(CLOCK_MONOTONIC);
    a->lost_before = 0;
    a->again = false;
    a->counts.frequency = a->recording.frequency;
    if (a->until)
        a->recording.duration = a->until - a->window_began;
    bool fine = record_run(&a->recording, &a->result, error);
    record_result_release(&a->result);
    if (fine || is_over(a))
        return false;
    a->counts.restarts++;
    if (a->again)
        return true;
    if (a->counts.windows == a->windows_before)
        return try_later(a, error);
    agent_say(a->options, "the recording ended: %s; it starts again", error->message);
    return true;
}

/* Without permission to record waits, the agent still records what runs. */
static bool can_see_waits(const struct agent_options *o) {
    struct error why;
    bool can = o->waits && record_has_bpf(&why);
    if (o->waits && !can)
        agent_say(o, "waits are not recorded: %s", why.message);
    return can;
}

/* A store that is down may come back; one whose name is wrong will not. A server is not contacted, so that the recording does not wait for
   it. A file is created, so that it can be read from the beginning. */
static bool check_store(const struct agent_options *o, struct error *error) {
    if (!store_url_check(o->store, error))
        return false;
    if (store_is_url(text_of(o->store)))
        return true;
    return deliver_check(o, error) || error->kind != ERROR_USAGE;
}

static bool start(struct agent *a, struct error *error) {
    const struct agent_options *o = a->options;
    a->spool = (struct spool_directory){.directory = -1,
                                        .most_bytes = o->spool_bytes,
                                        .most_age = o->spool_age,
                                        .counts = &a->counts};
    if (o->waits && o->call_graph == CALL_GRAPH_DWARF && o->stack_size > WAIT_STACK_MOST)
        return error_set(error, ERROR_USAGE,
                         "off-cpu copies at most %d bytes of a stack: set call-graph = dwarf,%d",
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
    a->cpu_before = own_cpu(a);
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
    child_end(&a.reader);
    sender_end(a.sender, LAST_TRY * second);
    metrics_free(a.metrics);
    namer_free(a.namer);
    batch_release(&a.batch);
    spool_directory_close(&a.spool);
    return fine;
}

_Noreturn void agent_child(const struct agent_options *options, const char *role) {
    if (strcmp(role, CHILD_DELIVERER) == 0)
        deliverer_serve(options);
    reader_serve(options, strcmp(role, CHILD_READER_OF_WAITS) == 0);
}
