/*
 * The header sections of a recording: the host, the command, and the build ids of the files that were mapped.
 */
#include "record/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool put_string(struct recording *r, enum perfdata_feature feature, const char *string,
                       struct error *error) {
    struct buffer bytes = {0};
    perfdata_feature_string(&bytes, text_of(string));
    bool fine = perfdata_add_feature(r->sink.writer, feature, buffer_text(&bytes), error);
    buffer_release(&bytes);
    return fine;
}

/* Most Arm processors have no name there, only two numbers. */
void record_cpu_model(char *model, size_t size) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[400];
    unsigned implementer = 0, part = 0;
    snprintf(model, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        bool named = strncmp(line, "model name", 10) == 0 || strncmp(line, "Model", 5) == 0;
        sscanf(line, "CPU implementer : %x", &implementer);
        if (sscanf(line, "CPU part : %x", &part) == 1)
            snprintf(model, size, "implementer %#x, part %#x", implementer, part);
        if (!named || !colon || colon[1] != ' ')
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(model, size, "%s", colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

/* Write each word separately: readers show the words after the first. */
static bool put_command(struct recording *r, struct error *error) {
    struct buffer bytes = {0};
    char *const *words = r->options->arguments;
    uint32_t count = 1;
    while (words && words[count - 1])
        count++;
    buffer_put_u32(&bytes, count);
    perfdata_feature_string(&bytes, TEXT("wick"));
    for (uint32_t i = 0; i + 1 < count; i++)
        perfdata_feature_string(&bytes, text_of(words[i]));
    bool fine = perfdata_add_feature(r->sink.writer, FEATURE_CMDLINE, buffer_text(&bytes), error);
    buffer_release(&bytes);
    return fine;
}

bool write_host_features(struct recording *r, struct error *error) {
    struct utsname host;
    char model[300];
    uint32_t cpus[] = {(uint32_t)sysconf(_SC_NPROCESSORS_CONF),
                       (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)};
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
    struct text cpu_bytes = {(const char *)cpus, sizeof cpus},
                memory_bytes = {(const char *)&memory, sizeof memory};
    uname(&host);
    record_cpu_model(model, sizeof model);
    return put_string(r, FEATURE_HOSTNAME, host.nodename, error) &&
           put_string(r, FEATURE_OSRELEASE, host.release, error) &&
           put_string(r, FEATURE_VERSION, "wick " WICK_VERSION, error) &&
           put_string(r, FEATURE_ARCH, host.machine, error) &&
           put_string(r, FEATURE_CPUDESC, model, error) &&
           perfdata_add_feature(r->sink.writer, FEATURE_NRCPUS, cpu_bytes, error) &&
           perfdata_add_feature(r->sink.writer, FEATURE_TOTAL_MEM, memory_bytes, error) &&
           put_command(r, error) && write_host_topology(r, error) && write_clock(r, error);
}

/* One entry: a record header (type 0), pid, the id in 20 bytes with its length, the path. */
static void add_build_id(struct buffer *bytes, struct text path, const struct build_id *id,
                         uint16_t misc) {
    uint8_t fixed[36] = {0};
    size_t padded = (path.length + 1 + 63) & ~(size_t)63;
    struct perf_event_header header = {.misc = (uint16_t)(misc | 1u << 15),
                                       .size = (uint16_t)(sizeof fixed + padded)};
    int32_t pid = -1;
    memcpy(fixed, &header, sizeof header);
    memcpy(fixed + 8, &pid, sizeof pid);
    memcpy(fixed + 12, id->bytes, id->size);
    fixed[32] = id->size;
    buffer_add(bytes, (struct text){(const char *)fixed, sizeof fixed});
    buffer_add(bytes, path);
    for (size_t i = path.length; i < padded; i++)
        buffer_add_char(bytes, 0);
}

/* Get it from the mappings, otherwise from the file. A file that can't be read has none, which is not an error. */
static bool build_id_of(struct recording *r, uint32_t i, struct text path, struct build_id *id) {
    if (i <= r->sink.ids.count && r->sink.ids.items[i - 1].size) {
        *id = r->sink.ids.items[i - 1];
        return true;
    }
    return path.data[0] == '/' && !keeper_kept_unnamed(r->sink.keeper, path) &&
           object_file_build_id(path.data, id);
}

bool write_build_ids(struct recording *r, struct error *error) {
    struct buffer bytes = {0};
    struct build_id id;
    if (object_kernel_build_id(&id))
        add_build_id(&bytes, TEXT("[kernel.kallsyms]"), &id, PERF_RECORD_MISC_KERNEL);
    for (uint32_t i = 1; i <= strings_count(r->sink.paths); i++) {
        struct text path = strings_get(r->sink.paths, i);
        if (path.length && path.length < 4000 && build_id_of(r, i, path, &id))
            add_build_id(&bytes, path, &id, PERF_RECORD_MISC_USER);
    }
    bool fine = !bytes.count ||
                perfdata_add_feature(r->sink.writer, FEATURE_BUILD_ID, buffer_text(&bytes), error);
    buffer_release(&bytes);
    return fine;
}
