/*
 * The agent's settings: lines of `key = value`, in /etc/wick/agent.conf and on the command line alike. `#` begins a comment.
 */
#include "agent/agent.h"

#include <stdlib.h>

#include "tree/tree.h"

enum { MEGA = 1 << 20 };
static const uint64_t second = 1000000000u;

void agent_options_init(struct agent_options *options) {
    *options = (struct agent_options){.frequency = 19,
                                      .window = 10 * second,
                                      .batch = 60 * second,
                                      .call_graph = CALL_GRAPH_DWARF,
                                      .stack_size = 16384,
                                      .timeout = 60 * second,
                                      .spool_bytes = 1024ull * MEGA,
                                      .spool_age = 7 * 86400 * second,
                                      .memory = 250ull * MEGA,
                                      .cpu = 3,
                                      .services = 64};
}

static void release_pairs(struct agent_pair *pairs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(pairs[i].key);
        free(pairs[i].value);
    }
}

void agent_options_release(struct agent_options *options) {
    free(options->store);
    free(options->credentials);
    free(options->spool);
    free(options->host);
    free(options->metrics);
    for (size_t i = 0; i < options->rules.count; i++) {
        free(options->rules.items[i].pattern);
        free(options->rules.items[i].service);
    }
    release_pairs(options->labels.items, options->labels.count);
    release_pairs(options->environment.items, options->environment.count);
    vector_release(&options->rules);
    vector_release(&options->labels);
    vector_release(&options->environment);
}

/* ---- values ---- */

static char *copy(struct text t) {
    return memory_copy(t.data, t.length);
}

static bool wrong(struct text value, const char *wanted, struct error *error) {
    return error_set(error, ERROR_USAGE, "'%.*s' is not %s", TEXT_ARGS(value), wanted);
}

struct unit {
    const char *name;
    uint64_t size;
};

/* Parse a number with one of these units; without a unit, the first one applies. On failure *result is unchanged. */
static bool with_unit(struct text value, const struct unit *units, size_t count, uint64_t least,
                      uint64_t most, uint64_t *result) {
    uint64_t size = units[0].size, number, amount;
    for (size_t i = 0; i < count; i++)
        if (text_ends(value, text_of(units[i].name))) {
            size = units[i].size;
            value = text_trim(text_upto(value, value.length - strlen(units[i].name)));
            break;
        }
    if (!text_to_u64(value, &number) || !checked_multiply(number, size, &amount) ||
        amount < least || amount > most)
        return false;
    *result = amount;
    return true;
}

static bool set_time(struct text value, uint64_t least, uint64_t *result, struct error *error) {
    static const struct unit units[] = {
        {"s", 1000000000u}, {"m", 60000000000u}, {"h", 3600000000000u}, {"d", 86400000000000u}};
    return with_unit(value, units, COUNT_OF(units), least, 1000 * units[3].size, result) ||
           wrong(value, "a length of time, such as 10s, 1m or 7d", error);
}

static bool set_timeout(struct agent_options *options, struct text value, struct error *error) {
    uint64_t limit;
    if (!set_time(value, second, &limit, error))
        return false;
    if (limit > 86400 * second)
        return wrong(value, "at most a day", error);
    options->timeout = limit;
    return true;
}

static bool set_size(struct text value, uint64_t *result, struct error *error) {
    static const struct unit units[] = {{"M", MEGA}, {"G", 1024ull * MEGA}, {"K", 1 << 10}};
    return with_unit(value, units, COUNT_OF(units), 1 << 10, 1ull << 50, result) ||
           wrong(value, "a size, such as 500M or 2G", error);
}

static bool set_share(struct text value, double *result, struct error *error) {
    double number;
    bool fine = text_ends(value, TEXT("%")) &&
                text_to_double(text_trim(text_upto(value, value.length - 1)), &number) &&
                number > 0 && number <= 100;
    if (fine)
        *result = number;
    return fine || wrong(value, "a share of the machine, such as 3%", error);
}

static bool set_call_graph(struct agent_options *options, struct text value, struct error *error) {
    uint64_t size;
    if (text_equal(value, TEXT("fp"))) {
        options->call_graph = CALL_GRAPH_FP;
        return true;
    }
    bool sized = text_starts(value, TEXT("dwarf,")) && text_to_u64(text_from(value, 6), &size) &&
                 size >= 1024 && size <= 65528;
    if (!sized && !text_equal(value, TEXT("dwarf")))
        return wrong(value, "fp, dwarf or dwarf,SIZE with 1024 to 65528 bytes", error);
    options->call_graph = CALL_GRAPH_DWARF;
    if (sized)
        options->stack_size = (uint32_t)(size & ~UINT64_C(7));
    return true;
}

static bool set_number(struct text value, uint64_t least, uint64_t most, uint64_t *result,
                       struct error *error) {
    uint64_t number;
    if (text_to_u64(value, &number) && number >= least && number <= most) {
        *result = number;
        return true;
    }
    return error_set(error, ERROR_USAGE, "'%.*s' is not a number from %llu to %llu",
                     TEXT_ARGS(value), (unsigned long long)least, (unsigned long long)most);
}

static bool set_services(struct agent_options *options, struct text value, struct error *error) {
    uint64_t number = 0;
    if (!set_number(value, 1, 10000, &number, error))
        return false;
    options->services = (uint32_t)number;
    return true;
}

static bool set_waits(struct agent_options *options, struct text value, struct error *error) {
    enum { WAITS_MOST = 1000 };
    uint64_t number = 0;
    if (!text_equal(value, TEXT("off")) &&
        !(text_starts(value, TEXT("1/")) && text_to_u64(text_from(value, 2), &number) && number &&
          number <= WAITS_MOST))
        return wrong(value, "off, or the share of waits to record, 1/1 to 1/1000", error);
    options->waits = (uint32_t)number;
    return true;
}

static bool set_text(char **place, struct text value) {
    free(*place);
    *place = copy(value);
    return true;
}

/* Other users can see arguments and settings, so they must not contain a password. */
static bool set_store(struct agent_options *options, struct text value, struct error *error) {
    size_t scheme = text_search(value, TEXT("://"));
    struct text rest = scheme == SIZE_MAX ? TEXT("") : text_from(value, scheme + 3);
    size_t slash = text_find(rest, '/');
    if (text_find(text_upto(rest, slash == SIZE_MAX ? rest.length : slash), '@') != SIZE_MAX)
        return error_set(error, ERROR_USAGE,
                         "the store's URL contains a user or a password: put them into a file, "
                         "`credentials = FILE`");
    return set_text(&options->store, value);
}

static bool set_metrics(struct agent_options *options, struct text value) {
    free(options->metrics);
    options->metrics = text_equal(value, TEXT("off")) ? NULL : copy(value);
    return true;
}

/* ---- rules ---- */

/* `service cgroup GLOB = NAME` */
static bool add_rule(struct agent_options *options, struct text what, struct text service,
                     struct error *error) {
    static const char *const subjects[] = {"cgroup", "comm", "executable"};
    size_t space = text_find(what, ' ');
    struct text subject = space == SIZE_MAX ? what : text_upto(what, space);
    struct text pattern = space == SIZE_MAX ? TEXT("") : text_trim(text_from(what, space + 1));
    for (unsigned i = 0; pattern.length && i < COUNT_OF(subjects); i++)
        if (text_equal(subject, text_of(subjects[i]))) {
            struct agent_rule rule = {i, copy(pattern), copy(service)};
            vector_push(&options->rules, rule);
            return true;
        }
    return error_set(error, ERROR_USAGE,
                     "'service %.*s': a rule is service cgroup|comm|executable GLOB = NAME",
                     TEXT_ARGS(what));
}

static bool key_is_free(struct text key, struct error *error) {
    if (!label_is_fixed(key) && !text_equal(key, TEXT("time")))
        return true;
    return error_set(error, ERROR_USAGE, "'%.*s' is a label that the recording sets",
                     TEXT_ARGS(key));
}

static bool add_label(struct agent_options *options, struct text key, struct text value,
                      struct error *error) {
    if (!key_is_free(key, error))
        return false;
    struct agent_pair pair = {copy(key), copy(value)};
    vector_push(&options->labels, pair);
    return true;
}

static bool add_environment(struct agent_options *options, struct text name, struct text key,
                            struct error *error) {
    if (!key_is_free(key, error))
        return false;
    struct agent_pair pair = {copy(name), copy(key)};
    vector_push(&options->environment, pair);
    return true;
}

/* ---- lines ---- */

static bool set_one(struct agent_options *options, struct text key, struct text value,
                    struct error *error) {
    if (text_equal(key, TEXT("store")))
        return set_store(options, value, error);
    if (text_equal(key, TEXT("credentials")))
        return set_text(&options->credentials, value);
    if (text_equal(key, TEXT("spool")))
        return set_text(&options->spool, value);
    if (text_equal(key, TEXT("host")))
        return set_text(&options->host, value);
    if (text_equal(key, TEXT("metrics")))
        return set_metrics(options, value);
    if (text_equal(key, TEXT("frequency")))
        return set_number(value, 1, 10000, &options->frequency, error);
    if (text_equal(key, TEXT("window")))
        return set_time(value, second, &options->window, error);
    if (text_equal(key, TEXT("batch")))
        return set_time(value, second, &options->batch, error);
    if (text_equal(key, TEXT("call-graph")))
        return set_call_graph(options, value, error);
    if (text_equal(key, TEXT("off-cpu")))
        return set_waits(options, value, error);
    if (text_equal(key, TEXT("timeout")))
        return set_timeout(options, value, error);
    if (text_equal(key, TEXT("spool-size")))
        return set_size(value, &options->spool_bytes, error);
    if (text_equal(key, TEXT("spool-age")))
        return set_time(value, 60 * second, &options->spool_age, error);
    if (text_equal(key, TEXT("memory")))
        return set_size(value, &options->memory, error);
    if (text_equal(key, TEXT("cpu")))
        return set_share(value, &options->cpu, error);
    if (text_equal(key, TEXT("services")))
        return set_services(options, value, error);
    if (text_starts(key, TEXT("label ")))
        return add_label(options, text_trim(text_from(key, 6)), value, error);
    if (text_starts(key, TEXT("environment ")))
        return add_environment(options, text_trim(text_from(key, 12)), value, error);
    if (text_starts(key, TEXT("service ")))
        return add_rule(options, text_trim(text_from(key, 8)), value, error);
    return error_set(
        error, ERROR_USAGE,
        "'%.*s' is none of store, credentials, timeout, spool, spool-size, spool-age, host, "
        "metrics, frequency, window, batch, call-graph, off-cpu, memory, cpu, services, "
        "label KEY, environment NAME and service WHAT GLOB",
        TEXT_ARGS(key));
}

bool agent_set(struct agent_options *options, struct text line, struct error *error) {
    line = text_trim(line);
    if (!line.length || line.data[0] == '#')
        return true;
    size_t equals = text_find(line, '=');
    struct text key = equals == SIZE_MAX ? line : text_trim(text_upto(line, equals));
    struct text value = equals == SIZE_MAX ? TEXT("") : text_trim(text_from(line, equals + 1));
    if (!key.length || !value.length || text_find(line, 0) != SIZE_MAX)
        return error_set(error, ERROR_USAGE, "'%.*s': a setting is `key = value`", TEXT_ARGS(line));
    return set_one(options, key, value, error);
}

/* ---- printing them ---- */

static void tell(struct buffer *text, const char *key, const char *value) {
    if (value)
        buffer_printf(text, "%s = %s\n", key, value);
}

void agent_describe(const struct agent_options *o, struct buffer *text) {
    static const char *const subjects[] = {"cgroup", "comm", "executable"};
    tell(text, "store", o->store);
    tell(text, "credentials", o->credentials);
    buffer_printf(text, "timeout = %llus\n", (unsigned long long)(o->timeout / second));
    tell(text, "spool", o->spool);
    buffer_printf(text, "spool-size = %lluK\nspool-age = %llus\n",
                  (unsigned long long)o->spool_bytes >> 10,
                  (unsigned long long)(o->spool_age / second));
    tell(text, "host", o->host);
    tell(text, "metrics", o->metrics ? o->metrics : "off");
    buffer_printf(text, "frequency = %llu\nwindow = %llus\nbatch = %llus\n",
                  (unsigned long long)o->frequency, (unsigned long long)(o->window / second),
                  (unsigned long long)(o->batch / second));
    if (o->call_graph == CALL_GRAPH_FP)
        buffer_add(text, TEXT("call-graph = fp\n"));
    else
        buffer_printf(text, "call-graph = dwarf,%u\n", o->stack_size);
    if (o->waits)
        buffer_printf(text, "off-cpu = 1/%u\n", o->waits);
    else
        buffer_add(text, TEXT("off-cpu = off\n"));
    buffer_printf(text, "memory = %lluK\ncpu = %.17g%%\nservices = %u\n",
                  (unsigned long long)o->memory >> 10, o->cpu, o->services);
    for (size_t i = 0; i < o->labels.count; i++)
        buffer_printf(text, "label %s = %s\n", o->labels.items[i].key, o->labels.items[i].value);
    for (size_t i = 0; i < o->environment.count; i++)
        buffer_printf(text, "environment %s = %s\n", o->environment.items[i].key,
                      o->environment.items[i].value);
    for (size_t i = 0; i < o->rules.count; i++)
        buffer_printf(text, "service %s %s = %s\n", subjects[o->rules.items[i].subject],
                      o->rules.items[i].pattern, o->rules.items[i].service);
}

bool agent_read_config(struct agent_options *options, const char *path, struct error *error) {
    struct file file;
    struct error why;
    if (!file_open_raw(&file, path, options->context, error))
        return false;
    struct text rest = file_text(&file);
    bool fine = true;
    for (unsigned number = 1; fine && rest.length; number++)
        if (!agent_set(options, text_take_line(&rest), &why))
            fine = error_set(error, ERROR_USAGE, "%s:%u: %s", path, number, why.message);
    file_close(&file);
    return fine;
}
