/*
 * Events by name: perf's own names, raw codes, tracepoints, PMU terms (cpu/event=0x3c,umask=0/) and, if libpfm4 is installed, all that it
 * knows for this CPU. Modifiers after the name (`:u`, `:k`, `:h`, `:p` …) say where it counts and how precisely.
 */
#include "record/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/internal.h"

#ifdef HAVE_LIBPFM
#include <dlfcn.h>
#include <perfmon/pfmlib_perf_event.h>
#endif

struct named {
    const char *name;
    uint32_t type;
    uint64_t config;
};

static const struct named named_events[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    {"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
    {"bpf-output", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
    {"cgroup-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES},
};

static bool parse_named(struct text name, struct perf_event_attr *attr) {
    for (size_t i = 0; i < COUNT_OF(named_events); i++) {
        if (text_equal(name, text_of(named_events[i].name))) {
            attr->type = named_events[i].type;
            attr->config = named_events[i].config;
            return true;
        }
    }
    return false;
}

static bool parse_number(struct text t, uint64_t *value) {
    return text_starts(t, TEXT("0x")) ? text_hex_to_u64(text_from(t, 2), value)
                                      : text_to_u64(t, value);
}

/* Match one of several words, each with alternative spellings: the longest that `name` begins with, up to a "-" or its end. */
enum { SPELLINGS = 5 };

static bool take_word(struct text *name, const char *const (*words)[SPELLINGS], size_t count,
                      uint64_t *which) {
    size_t longest = 0;
    for (size_t i = 0; i < count * SPELLINGS; i++) {
        const char *word = words[i / SPELLINGS][i % SPELLINGS];
        size_t length = word ? strlen(word) : 0;
        if (length <= longest || !text_starts(*name, text_of(word)) ||
            (name->length > length && name->data[length] != '-'))
            continue;
        longest = length;
        *which = i / SPELLINGS;
    }
    *name = text_from(*name, longest + (longest && longest < name->length));
    return longest;
}

/* L1-dcache-load-misses: cache, operation, result; the last two in any order, or left out. */
static bool parse_cache(struct text name, struct perf_event_attr *attr) {
    static const char *const caches[][SPELLINGS] = {{"L1-dcache", "l1-d", "l1d", "L1-data"},
                                                    {"L1-icache", "l1-i", "l1i", "L1-instruction"},
                                                    {"LLC", "L2"},
                                                    {"dTLB", "d-tlb", "Data-TLB"},
                                                    {"iTLB", "i-tlb", "Instruction-TLB"},
                                                    {"branch", "branches", "bpu", "btb", "bpc"},
                                                    {"node"}};
    static const char *const operations[][SPELLINGS] = {
        {"load", "loads", "read"},
        {"store", "stores", "write"},
        {"prefetch", "prefetches", "speculative-read", "speculative-load"}};
    static const char *const results[][SPELLINGS] = {{"refs", "Reference", "ops", "access"},
                                                     {"misses", "miss"}};
    uint64_t cache, operation = 0, result = 0;
    struct text rest = name;
    if (!take_word(&rest, caches, COUNT_OF(caches), &cache))
        return false;
    bool early = take_word(&rest, results, COUNT_OF(results), &result);
    take_word(&rest, operations, COUNT_OF(operations), &operation);
    if (!early)
        take_word(&rest, results, COUNT_OF(results), &result);
    if (rest.length || name.data[name.length - 1] == '-')
        return false;
    attr->type = PERF_TYPE_HW_CACHE;
    attr->config = cache | operation << 8 | result << 16;
    return true;
}

static bool parse_raw(struct text name, struct perf_event_attr *attr) {
    uint64_t config;
    size_t skipped = text_starts(name, TEXT("r0x")) ? 3 : 1;
    if (name.length <= skipped || name.data[0] != 'r' ||
        !text_hex_to_u64(text_from(name, skipped), &config))
        return false;
    attr->type = PERF_TYPE_RAW;
    attr->config = config;
    return true;
}

/* The kernel's own numbers: TYPE:CONFIG. */
static bool parse_numbers(struct text name, struct perf_event_attr *attr) {
    size_t colon = text_find(name, ':');
    uint64_t type, config;
    if (colon == SIZE_MAX || !parse_number(text_upto(name, colon), &type) || type > UINT32_MAX ||
        !parse_number(text_from(name, colon + 1), &config))
        return false;
    attr->type = (uint32_t)type;
    attr->config = config;
    return true;
}

static bool parse_tracepoint(struct text name, struct perf_event_attr *attr, struct error *error) {
    size_t colon = text_find(name, ':');
    if (colon == SIZE_MAX || text_find(name, '/') != SIZE_MAX || text_find(name, '.') != SIZE_MAX)
        return false;
    static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    for (size_t i = 0; i < COUNT_OF(roots); i++) {
        char path[400], text[40];
        snprintf(path, sizeof path, "%s/events/%.*s/%.*s/id", roots[i],
                 TEXT_ARGS(text_upto(name, colon)), TEXT_ARGS(text_from(name, colon + 1)));
        if (file_read_small(path, text, sizeof text) &&
            text_to_u64(text_of(text), &(uint64_t){0})) {
            attr->type = PERF_TYPE_TRACEPOINT;
            attr->config = strtoull(text, NULL, 10);
            return true;
        }
    }
    /* A mounted tracefs is a directory that only root may enter. */
    bool there = access("/sys/kernel/tracing", F_OK) == 0,
         closed = there && access("/sys/kernel/tracing/events", F_OK) != 0 && errno == EACCES,
         mounted = access("/sys/kernel/tracing/events", F_OK) == 0;
    error_set(error, mounted ? ERROR_USAGE : ERROR_DENIED,
              closed    ? "%.*s: only root can read tracepoints on this machine: run wick as root"
              : mounted ? "%.*s: no such tracepoint"
                        : "%.*s: tracefs is not mounted: as root, run mount -t tracefs nodev "
                          "/sys/kernel/tracing",
              TEXT_ARGS(name));
    return false;
}

/* ---- PMU terms ---- */

/* A format file says where a term's bits go: "config:0-7,32-35". */
static bool place_bits(struct perf_event_attr *attr, const char *format, uint64_t value) {
    uint64_t *fields[] = {(uint64_t *)&attr->config, (uint64_t *)&attr->config1,
                          (uint64_t *)&attr->config2};
    size_t colon = strcspn(format, ":");
    size_t which = colon == 7 ? (size_t)(format[6] - '0') : 0;
    if (strncmp(format, "config", 6) != 0 || which > 2 || !format[colon])
        return false;
    const char *at = format + colon + 1;
    while (*at) {
        char *end;
        unsigned long low = strtoul(at, &end, 10), high = low;
        if (*end == '-')
            high = strtoul(end + 1, &end, 10);
        for (unsigned long bit = low; bit <= high && bit < 64; bit++, value >>= 1)
            *fields[which] |= (value & 1) << bit;
        at = *end == ',' ? end + 1 : end + strlen(end);
    }
    return true;
}

static bool parse_term(const char *pmu, struct text term, struct perf_event_attr *attr);

/* An alias: events/NAME contains the terms that it stands for. */
static bool parse_alias(const char *pmu, struct text name, struct perf_event_attr *attr) {
    char path[400], text[400];
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/events/%.*s", pmu,
             TEXT_ARGS(name));
    if (text_find(name, '/') != SIZE_MAX || !file_read_small(path, text, sizeof text))
        return false;
    struct text rest = text_of(text);
    while (rest.length) {
        size_t comma = text_find(rest, ',');
        struct text term = comma == SIZE_MAX ? rest : text_upto(rest, comma);
        if (text_find(term, '=') == SIZE_MAX || !parse_term(pmu, term, attr))
            return false;
        rest = comma == SIZE_MAX ? TEXT("") : text_from(rest, comma + 1);
    }
    return true;
}

/* Terms that every PMU has. */
static bool parse_config(struct text name, uint64_t value, struct perf_event_attr *attr) {
    if (text_equal(name, TEXT("config")))
        attr->config = value;
    else if (text_equal(name, TEXT("config1")))
        attr->config1 = value;
    else if (text_equal(name, TEXT("config2")))
        attr->config2 = value;
    else
        return false;
    return true;
}

static bool parse_raw_term(struct text name, struct perf_event_attr *attr) {
    struct perf_event_attr raw;
    if (!parse_raw(name, &raw))
        return false;
    attr->config = raw.config;
    return true;
}

static bool parse_term(const char *pmu, struct text term, struct perf_event_attr *attr) {
    size_t equals = text_find(term, '=');
    struct text name = equals == SIZE_MAX ? term : text_upto(term, equals);
    uint64_t value = 1;
    if (equals != SIZE_MAX && !parse_number(text_from(term, equals + 1), &value))
        return false;
    char path[400], format[100];
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/format/%.*s", pmu,
             TEXT_ARGS(name));
    if (text_find(name, '/') == SIZE_MAX && file_read_small(path, format, sizeof format))
        return place_bits(attr, format, value);
    return (equals != SIZE_MAX ? parse_config(name, value, attr) : parse_raw_term(name, attr)) ||
           (equals == SIZE_MAX && parse_alias(pmu, name, attr));
}

static bool parse_pmu(struct text name, struct perf_event_attr *attr, struct error *error) {
    size_t slash = text_find(name, '/');
    if (slash == SIZE_MAX || slash == 0 || name.data[name.length - 1] != '/' ||
        slash + 1 >= name.length)
        return false;
    char pmu[64], path[200], type[20];
    snprintf(pmu, sizeof pmu, "%.*s", TEXT_ARGS(text_upto(name, slash)));
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/type", pmu);
    if (strcmp(pmu, "..") == 0 || !file_read_small(path, type, sizeof type))
        return error_set(error, ERROR_DENIED,
                         "%.*s: this machine has no counters called '%s'; `ls "
                         "/sys/bus/event_source/devices` shows those it has",
                         TEXT_ARGS(name), pmu);
    attr->type = (uint32_t)strtoul(type, NULL, 10);
    struct text rest = {name.data + slash + 1, name.length - slash - 2};
    while (rest.length) {
        size_t comma = text_find(rest, ',');
        struct text term = comma == SIZE_MAX ? rest : text_upto(rest, comma);
        if (!parse_term(pmu, term, attr))
            return error_set(error, ERROR_USAGE,
                             "%.*s: '%.*s' is neither one of its events nor one of its terms: `ls "
                             "/sys/bus/event_source/devices/%s/*`",
                             TEXT_ARGS(name), TEXT_ARGS(term), pmu);
        rest = comma == SIZE_MAX ? TEXT("") : text_from(rest, comma + 1);
    }
    return true;
}

static bool parse_libpfm(struct text name, struct perf_event_attr *attr) {
#ifdef HAVE_LIBPFM
    char text[200];
    snprintf(text, sizeof text, "%.*s", TEXT_ARGS(name));
    struct perf_event_attr found = {.size = sizeof found};
    pfm_perf_encode_arg_t argument = {.attr = &found, .size = sizeof argument};
    void *library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
    __typeof__(pfm_initialize) *begin =
        library ? (__typeof__(begin))dlsym(library, "pfm_initialize") : NULL;
    __typeof__(pfm_get_os_event_encoding) *encode =
        library ? (__typeof__(encode))dlsym(library, "pfm_get_os_event_encoding") : NULL;
    if (!begin || !encode || begin() != PFM_SUCCESS || /* initializes only once */
        encode(text, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &argument) != PFM_SUCCESS)
        return false;
    attr->type = found.type;
    attr->config = found.config;
    attr->config1 = found.config1;
    attr->config2 = found.config2;
    return true;
#else
    return false;
#endif
}

/* ---- modifiers ---- */

/* Each modifier may occur once, except p. */
static bool is_modifiers(struct text t) {
    size_t precise = 0;
    for (size_t i = 0; i < t.length; i++) {
        precise += t.data[i] == 'p';
        if (!strchr("ukhpPGHIDe", t.data[i]) ||
            (t.data[i] != 'p' && text_find(text_from(t, i + 1), t.data[i]) != SIZE_MAX))
            return false;
    }
    return t.length > 0 && precise <= 3;
}

static bool has_modifier(struct text t, char modifier) {
    return text_find(t, modifier) != SIZE_MAX;
}

/* Naming any of u, k, h means "only there"; so do G (guests) and H (the host). As in perf, guests are excluded unless they are named, except
   in events for only the kernel or the hypervisor. */
static void apply_modifiers(struct text t, struct perf_event_attr *attr) {
    bool user = has_modifier(t, 'u'), kernel = has_modifier(t, 'k');
    bool hypervisor = has_modifier(t, 'h'), guest = has_modifier(t, 'G');
    bool host = has_modifier(t, 'H');
    if (user || kernel || hypervisor) {
        attr->exclude_user = !user;
        attr->exclude_kernel = !kernel;
        attr->exclude_hv = !hypervisor;
    }
    attr->exclude_guest = guest || host ? !guest : !t.length || user || has_modifier(t, 'p');
    attr->exclude_host = guest && !host;
    attr->exclude_idle = has_modifier(t, 'I');
    attr->pinned = has_modifier(t, 'D');
    attr->exclusive = has_modifier(t, 'e');
    for (size_t i = 0; i < t.length; i++)
        if (t.data[i] == 'p')
            attr->precise_ip++;
    if (has_modifier(t, 'P'))
        attr->precise_ip = 3; /* or as precise as possible: open.c */
}

/* cycles:u and cpu/…/u have modifiers, but sched:sched_switch is all name. */
static struct text split_modifiers(struct text name, struct text *modifiers) {
    size_t colon = text_find_last(name, ':'), slash = text_find_last(name, '/');
    *modifiers = TEXT("");
    size_t at = slash != SIZE_MAX && (colon == SIZE_MAX || colon < slash) ? slash + 1 : colon;
    if (at == SIZE_MAX || at >= name.length)
        return name;
    struct text rest = text_from(name, at == colon ? at + 1 : at);
    if (!is_modifiers(rest))
        return name;
    *modifiers = rest;
    return text_upto(name, at);
}

/* cycles:z is a wrong modifier, not a missing tracepoint. */
static bool has_wrong_modifier(struct text name, struct error *error) {
    size_t colon = text_find_last(name, ':');
    struct perf_event_attr unused;
    return colon != SIZE_MAX && parse_named(text_upto(name, colon), &unused) &&
           !error_set(error, ERROR_USAGE,
                      "%.*s: no such modifier; modifiers are u (user), k (kernel), h, p, P, G, H, "
                      "I, D and e",
                      TEXT_ARGS(name));
}

bool event_wants_most_precise(const char *name) {
    struct text modifiers;
    split_modifiers(text_of(name), &modifiers);
    return has_modifier(modifiers, 'P');
}

bool record_parse_event(const char *name, struct perf_event_attr *attr, struct error *error) {
    struct text modifiers, plain = split_modifiers(text_of(name), &modifiers);
    struct error why = {.kind = ERROR_NONE};
    *attr = (struct perf_event_attr){.size = sizeof *attr};
    if (parse_named(plain, attr) || parse_cache(plain, attr) || parse_raw(plain, attr) ||
        parse_numbers(plain, attr) || parse_pmu(plain, attr, &why) || parse_libpfm(plain, attr) ||
        parse_tracepoint(plain, attr, &why)) {
        apply_modifiers(modifiers, attr);
        return true;
    }
    if (has_wrong_modifier(text_of(name), error))
        return false;
    if (why.kind != ERROR_NONE) {
        if (error)
            *error = why;
        return false;
    }
    return error_set(error, ERROR_USAGE,
                     "%s: no such event; use perf's names: cycles, cpu-clock, page-faults, "
                     "LLC-load-misses, sched:sched_switch, …",
                     name);
}
