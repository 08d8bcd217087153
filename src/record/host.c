/*
 * Machine details for the header: the CPU topology, the event sources, and how the recording's clock relates to the time of day. Read from
 * /sys; what is missing there is skipped.
 */
#include "record/internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void add_u32(struct buffer *bytes, uint32_t value) {
    buffer_add(bytes, (struct text){(const char *)&value, sizeof value});
}

static void add_u64(struct buffer *bytes, uint64_t value) {
    buffer_add(bytes, (struct text){(const char *)&value, sizeof value});
}

static bool put(struct recording *r, enum perfdata_feature feature, struct buffer *bytes,
                bool there, struct error *error) {
    bool fine = !there || perfdata_add_feature(r->sink.writer, feature, buffer_text(bytes), error);
    buffer_release(bytes);
    return fine;
}

static bool cpu_says(uint32_t cpu, const char *name, char *text, size_t size) {
    char path[100];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/%s", cpu, name);
    return file_read_small(path, text, size);
}

/* Append the distinct lists that the CPUs have for `name`; return false if they have none. */
static bool add_siblings(struct buffer *bytes, uint32_t cpus, const char *name) {
    struct strings *lists = strings_new();
    char text[4000];
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        if (cpu_says(cpu, name, text, sizeof text))
            strings_add(lists, text_of(text));
    uint32_t count = strings_count(lists);
    add_u32(bytes, count);
    for (uint32_t i = 1; i <= count; i++)
        perfdata_feature_string(bytes, strings_get(lists, i));
    strings_free(lists);
    return count > 0;
}

static void add_number(struct buffer *bytes, uint32_t cpu, const char *name) {
    char text[40];
    add_u32(bytes, cpu_says(cpu, name, text, sizeof text) ? (uint32_t)atoi(text) : UINT32_MAX);
}

static bool put_topology(struct recording *r, struct error *error) {
    struct buffer bytes = {0};
    uint32_t cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
    bool there = add_siblings(&bytes, cpus, "package_cpus_list") &&
                 add_siblings(&bytes, cpus, "core_cpus_list");
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        add_number(&bytes, cpu, "core_id");
        add_number(&bytes, cpu, "physical_package_id");
    }
    size_t without_dies = bytes.count;
    if (add_siblings(&bytes, cpus, "die_cpus_list"))
        for (uint32_t cpu = 0; cpu < cpus; cpu++)
            add_number(&bytes, cpu, "die_id");
    else
        bytes.count = without_dies;
    return put(r, FEATURE_CPU_TOPOLOGY, &bytes, there, error);
}

/* "Node 0 MemTotal:       24682416 kB" */
static uint64_t node_memory(uint32_t node, const char *what) {
    char path[100], line[200];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", node);
    FILE *file = fopen(path, "re");
    unsigned long long kilobytes = 0;
    while (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, what);
        if (at && sscanf(at + strlen(what), ": %llu", &kilobytes) == 1)
            break;
    }
    if (file)
        fclose(file);
    return kilobytes;
}

/* Return the last number of "0-1,4". Trying all possible numbers would take too long: targets run, and buffers fill, meanwhile. */
static uint32_t last_node(void) {
    char list[400];
    if (!file_read_small("/sys/devices/system/node/online", list, sizeof list))
        return 1023;
    size_t at = strlen(list);
    while (at && list[at - 1] >= '0' && list[at - 1] <= '9')
        at--;
    return (uint32_t)strtoul(list + at, NULL, 10);
}

static bool put_nodes(struct recording *r, struct error *error) {
    struct buffer bytes = {0};
    char path[100], list[4000];
    uint32_t count = 0, last = last_node();
    add_u32(&bytes, 0);
    for (uint32_t node = 0; node <= last && node < 1024; node++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%u/cpulist", node);
        if (!file_read_small(path, list, sizeof list))
            continue;
        add_u32(&bytes, node);
        add_u64(&bytes, node_memory(node, "MemTotal"));
        add_u64(&bytes, node_memory(node, "MemFree"));
        perfdata_feature_string(&bytes, text_of(list));
        count++;
    }
    memcpy(bytes.items, &count, sizeof count);
    return put(r, FEATURE_NUMA_TOPOLOGY, &bytes, count > 0, error);
}

static bool put_sources(struct recording *r, struct error *error) {
    static const char folder[] = "/sys/bus/event_source/devices";
    struct buffer bytes = {0};
    struct dirent **names = NULL;
    uint32_t count = 0;
    int found = scandir(folder, &names, NULL, alphasort);
    add_u32(&bytes, 0);
    for (int i = 0; i < found; i++) {
        char path[400], type[20];
        snprintf(path, sizeof path, "%s/%s/type", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && file_read_small(path, type, sizeof type)) {
            add_u32(&bytes, (uint32_t)strtoul(type, NULL, 10));
            perfdata_feature_string(&bytes, text_of(names[i]->d_name));
            count++;
        }
        free(names[i]);
    }
    free(names);
    memcpy(bytes.items, &count, sizeof count);
    return put(r, FEATURE_PMU_MAPPINGS, &bytes, count > 0, error);
}

/* "GenuineIntel,6,106,6": vendor, family, model, stepping; Arm has a register for this. */
static bool put_processor(struct recording *r, struct error *error) {
    static const char *const fields[] = {"vendor_id", "cpu family", "model\t", "stepping"};
    char values[COUNT_OF(fields)][40] = {{0}}, line[400], text[200];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !values[COUNT_OF(fields) - 1][0] && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        line[strcspn(line, "\n")] = 0;
        for (size_t i = 0; colon && colon[1] && i < COUNT_OF(fields); i++)
            if (strncmp(line, fields[i], strlen(fields[i])) == 0)
                snprintf(values[i], sizeof values[i], "%.39s", colon + 2);
    }
    if (file)
        fclose(file);
    snprintf(text, sizeof text, "%s,%s,%s,%s", values[0], values[1], values[2], values[3]);
    bool there = values[3][0] != 0;
    if (!there)
        there = file_read_small("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", text,
                                sizeof text);
    struct buffer bytes = {0};
    perfdata_feature_string(&bytes, text_of(text));
    return put(r, FEATURE_CPUID, &bytes, there, error);
}

bool write_host_topology(struct recording *r, struct error *error) {
    return put_processor(r, error) && put_topology(r, error) && put_nodes(r, error) &&
           put_sources(r, error);
}

/* ---- the clock ---- */

static uint64_t nanoseconds(const struct timespec *t) {
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/* Write the clock's resolution, and both clocks at one moment. */
bool write_clock(struct recording *r, struct error *error) {
    struct timespec resolution, now, day;
    struct buffer bytes = {0}, pair = {0};
    if (!r->events.items[0].attr.use_clockid)
        return true;
    clockid_t clock = r->events.items[0].attr.clockid;
    bool there = clock_getres(clock, &resolution) == 0 && clock_gettime(clock, &now) == 0 &&
                 clock_gettime(CLOCK_REALTIME, &day) == 0;
    add_u64(&bytes, there ? nanoseconds(&resolution) : 0);
    add_u32(&pair, 1); /* the section's version */
    add_u32(&pair, (uint32_t)clock);
    add_u64(&pair, there ? nanoseconds(&day) : 0);
    add_u64(&pair, there ? nanoseconds(&now) : 0);
    bool fine = put(r, FEATURE_CLOCKID, &bytes, there, error);
    return put(r, FEATURE_CLOCK_DATA, &pair, there && fine, error) && fine;
}

/* Not for a stream, whose reader knows it as soon as wick does. */
bool write_sample_time(struct recording *r, struct error *error) {
    struct buffer bytes = {0};
    add_u64(&bytes, r->sink.first);
    add_u64(&bytes, r->sink.last);
    bool there = r->sink.first && strcmp(r->options->output, "-") != 0;
    return put(r, FEATURE_SAMPLE_TIME, &bytes, there, error);
}
