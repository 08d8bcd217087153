/*
 * Names of events that the header does not name (a killed recording has no EVENT_DESC), spelled as perf 6.1 does.
 */
#include "perfdata/private.h"

static const char *const hardware_names[] = {
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
};

static const char *const software_names[] = {
    "cpu-clock",    "task-clock",   "page-faults",      "context-switches", "cpu-migrations",
    "minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy",
};

/* Bits of an attribute's flags. */
enum {
    EXCLUDE_USER = 4,
    EXCLUDE_KERNEL = 5,
    EXCLUDE_HV = 6,
    PRECISE = 15,
    EXCLUDE_HOST = 19,
    EXCLUDE_GUEST = 20
};

static bool flag(const struct perfdata_event *event, unsigned bit) {
    return event->flags >> bit & 1;
}

/* ":u", ":ppp", …: which modes are counted, if not all, and how precise the address is. */
static void add_modifiers(struct buffer *name, const struct perfdata_event *event) {
    size_t colon = name->count;
    bool modes =
        flag(event, EXCLUDE_KERNEL) || flag(event, EXCLUDE_USER) || flag(event, EXCLUDE_HV);
    unsigned precise = event->flags >> PRECISE & 3;
    buffer_add_char(name, ':');
    if (modes && !flag(event, EXCLUDE_KERNEL))
        buffer_add_char(name, 'k');
    if (modes && !flag(event, EXCLUDE_USER))
        buffer_add_char(name, 'u');
    if (modes && !flag(event, EXCLUDE_HV))
        buffer_add_char(name, 'h');
    buffer_add(name, text_upto(TEXT("ppp"), precise));
    /* perf excludes guests by itself as soon as it was given a modifier. */
    bool guest_default = modes || precise;
    if (flag(event, EXCLUDE_HOST) || flag(event, EXCLUDE_GUEST) == guest_default) {
        if (!flag(event, EXCLUDE_HOST))
            buffer_add_char(name, 'H');
        if (!flag(event, EXCLUDE_GUEST))
            buffer_add_char(name, 'G');
    }
    if (name->count == colon + 1)
        name->count = colon;
}

static const char *listed(const char *const *names, size_t count, uint64_t config,
                          const char *otherwise) {
    return config < count ? names[config] : otherwise;
}

static void add_cache_name(struct buffer *name, uint64_t config) {
    static const char *const caches[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
                                         "iTLB",      "branch",    "node"};
    static const char *const operations[] = {"load", "store", "prefetch"};
    static const char *const plural[] = {"loads", "stores", "prefetches"};
    static const uint8_t possible[] = {7, 5, 7, 7, 1, 1, 7};
    unsigned cache = config & 0xff, operation = config >> 8 & 0xff, result = config >> 16 & 0xff;
    if (cache >= COUNT_OF(caches))
        buffer_add(name, TEXT("unknown-ext-hardware-cache-type"));
    else if (operation >= COUNT_OF(operations))
        buffer_add(name, TEXT("unknown-ext-hardware-cache-op"));
    else if (result > 1)
        buffer_add(name, TEXT("unknown-ext-hardware-cache-result"));
    else if (!(possible[cache] >> operation & 1))
        buffer_add(name, TEXT("invalid-cache"));
    else if (result)
        buffer_printf(name, "%s-%s-misses", caches[cache], operations[operation]);
    else
        buffer_printf(name, "%s-%s", caches[cache], plural[operation]);
}

static void add_breakpoint_name(struct buffer *name, const struct perfdata_event *event) {
    buffer_printf(name, "mem:0x%llx:", (unsigned long long)event->breakpoint_address);
    for (unsigned bit = 0; bit < 3; bit++)
        if (event->breakpoint_type >> bit & 1)
            buffer_add_char(name, "rwx"[bit]);
}

struct text event_make_name(struct arena *arena, const struct perfdata_event *event) {
    struct buffer name = {0};
    switch (event->type) {
    case PERF_TYPE_HARDWARE:
        buffer_add(&name, text_of(listed(hardware_names, COUNT_OF(hardware_names), event->config,
                                         "unknown-hardware")));
        break;
    case PERF_TYPE_SOFTWARE:
        buffer_add(&name, text_of(listed(software_names, COUNT_OF(software_names), event->config,
                                         "unknown-software")));
        break;
    case PERF_TYPE_HW_CACHE:
        add_cache_name(&name, event->config);
        break;
    case PERF_TYPE_RAW:
        buffer_printf(&name, "raw 0x%llx", (unsigned long long)event->config);
        break;
    case PERF_TYPE_BREAKPOINT:
        add_breakpoint_name(&name, event);
        break;
    case PERF_TYPE_TRACEPOINT:
        buffer_add(&name, TEXT("unknown tracepoint"));
        break;
    default:
        buffer_printf(&name, "unknown attr type: %d", (int)event->type);
        break;
    }
    if (event->type <= PERF_TYPE_BREAKPOINT && event->type != PERF_TYPE_TRACEPOINT)
        add_modifiers(&name, event);
    struct text kept = arena_copy(arena, buffer_text(&name));
    buffer_release(&name);
    return kept;
}
