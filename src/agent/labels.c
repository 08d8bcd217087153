/*
 * Labels of a process: its service and version, its pod, and what the operator's rules set. They are read when the process appears, because a
 * short-lived process is gone when its window is read.
 *
 * The service is the first of these: a matching rule; OTEL_SERVICE_NAME, or service.name in OTEL_RESOURCE_ATTRIBUTES, from its environment;
 * its systemd unit; its comm. The version is service.version from there, or the first digits of its executable's build id. No other
 * environment variables are read, except those named in the settings.
 */
#include "agent/internal.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "object/object.h"

enum {
    ENVIRONMENT_MOST = 256 << 10,
    LABEL_MOST = 128, /* bytes of a value */
    VERSION_SHOWN = 12,
    EXECUTABLES_MOST = 4096,
};

struct executable {
    uint64_t device, inode, written;
    char version[VERSION_SHOWN + 2];
};

struct namer {
    const struct agent_options *options;
    struct buffer environment;
    VECTOR(struct executable) executables; /* whose build id is known */
    struct index by_file;
};

struct namer *namer_new(const struct agent_options *options) {
    struct namer *namer = memory_zero(1, sizeof *namer);
    namer->options = options;
    return namer;
}

void namer_free(struct namer *namer) {
    if (!namer)
        return;
    buffer_release(&namer->environment);
    vector_release(&namer->executables);
    index_release(&namer->by_file);
    free(namer);
}

/* ---- the environment ---- */

static struct text variable(const struct namer *namer, struct text name) {
    struct text rest = buffer_text(&namer->environment);
    while (rest.length) {
        size_t end = text_find(rest, 0);
        struct text entry = end == SIZE_MAX ? rest : text_upto(rest, end);
        rest = text_from(rest, end == SIZE_MAX ? rest.length : end + 1);
        if (entry.length > name.length && entry.data[name.length] == '=' &&
            text_starts(entry, name))
            return text_from(entry, name.length + 1);
    }
    return TEXT("");
}

/* Find a key in "key=value,key=value". */
static struct text attribute(struct text list, struct text key) {
    while (list.length) {
        size_t comma = text_find(list, ',');
        struct text pair = text_trim(comma == SIZE_MAX ? list : text_upto(list, comma));
        list = text_from(list, comma == SIZE_MAX ? list.length : comma + 1);
        if (pair.length > key.length && pair.data[key.length] == '=' && text_starts(pair, key))
            return text_from(pair, key.length + 1);
    }
    return TEXT("");
}

/* ---- the executable ---- */

static uint64_t file_hash(const struct executable *e) {
    return hash_mix(hash_mix(e->device, e->inode), e->written);
}

static void read_version(const char *path, struct executable *executable) {
    struct build_id id = {0};
    if (object_file_build_id(path, &id))
        for (size_t i = 0; i < id.size && 2 * i < VERSION_SHOWN; i++)
            snprintf(executable->version + 2 * i, 3, "%02x", id.bytes[i]);
}

/* Cached by the file's identity, so that each is opened once. */
static const char *version_of(struct namer *namer, int32_t pid) {
    char path[64];
    struct stat status;
    uint32_t number;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    if (stat(path, &status) != 0)
        return "";
    struct executable executable = {.device = status.st_dev,
                                    .inode = status.st_ino,
                                    .written = (uint64_t)status.st_mtim.tv_sec * 1000000000u +
                                               (uint64_t)status.st_mtim.tv_nsec};
    for (struct probe p = index_probe(&namer->by_file, file_hash(&executable));
         (number = index_next(&namer->by_file, &p));) {
        const struct executable *known = &namer->executables.items[number - 1];
        if (known->device == executable.device && known->inode == executable.inode &&
            known->written == executable.written)
            return known->version;
    }
    if (namer->executables.count >= EXECUTABLES_MOST) {
        namer->executables.count = 0;
        index_release(&namer->by_file);
    }
    read_version(path, &executable);
    vector_push(&namer->executables, executable);
    index_add(&namer->by_file, file_hash(&executable), (uint32_t)namer->executables.count);
    return namer->executables.items[namer->executables.count - 1].version;
}

/* ---- the service ---- */

/* Return the innermost unit of a cgroup's path, without ".service". */
static struct text unit_of(struct text cgroup) {
    static const struct text suffix = TEXT(".service");
    while (cgroup.length) {
        size_t slash = text_find_last(cgroup, '/');
        struct text part = slash == SIZE_MAX ? cgroup : text_from(cgroup, slash + 1);
        if (text_ends(part, suffix) && part.length > suffix.length)
            return text_upto(part, part.length - suffix.length);
        cgroup = text_upto(cgroup, slash == SIZE_MAX ? 0 : slash);
    }
    return TEXT("");
}

/* Kubernetes: a component "pod" or "…-pod" followed by the pod's UID, whose dashes are underscores in systemd's names. */
static bool pod_of(struct text cgroup, char pod[37]) {
    size_t at = text_search(cgroup, TEXT("kubepods"));
    size_t found = at == SIZE_MAX ? at : text_search(text_from(cgroup, at + 8), TEXT("pod"));
    while (found != SIZE_MAX) {
        struct text rest = text_from(cgroup, at + 8 + found + 3);
        size_t length = 0;
        while (length < 36 && length < rest.length &&
               (isxdigit((unsigned char)rest.data[length]) || rest.data[length] == '-' ||
                rest.data[length] == '_')) {
            pod[length] = rest.data[length] == '_' ? '-' : rest.data[length];
            length++;
        }
        pod[length] = 0;
        if (length >= 32)
            return true;
        at += 3 + found;
        found = text_search(text_from(cgroup, at + 8), TEXT("pod"));
    }
    return false;
}

struct subjects {
    struct text of[3]; /* by enum agent_subject */
};

static struct text service_of(const struct namer *namer, const struct subjects *subjects,
                              struct text attributes) {
    for (size_t i = 0; i < namer->options->rules.count; i++) {
        const struct agent_rule *rule = &namer->options->rules.items[i];
        if (text_matches(subjects->of[rule->subject], text_of(rule->pattern)))
            return text_of(rule->service);
    }
    struct text service = variable(namer, TEXT("OTEL_SERVICE_NAME"));
    if (!service.length)
        service = attribute(attributes, TEXT("service.name"));
    if (!service.length)
        service = unit_of(subjects->of[BY_CGROUP]);
    return service.length ? service : subjects->of[BY_COMM];
}

/* The value comes from the process, so it may contain anything. */
static void add(struct buffer *labels, struct text key, struct text value) {
    if (!value.length)
        return;
    if (value.length > LABEL_MOST)
        value.length = LABEL_MOST;
    buffer_add(labels, key);
    buffer_add_char(labels, 0);
    buffer_add(labels, value);
    buffer_add_char(labels, 0);
}

/* A process that has exited only has its comm. */
void namer_add(void *context, int32_t pid, struct text recorded, struct text cgroup,
               struct buffer *labels) {
    struct namer *namer = context;
    char path[64], comm[64] = "", executable[PATH_MAX], pod[37];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t length = readlink(path, executable, sizeof executable);
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    bool lives = file_read_small(path, comm, sizeof comm);
    namer->environment.count = 0;
    if (length > 0) /* a kernel thread has neither */
        proc_read(pid, "environ", ENVIRONMENT_MOST, &namer->environment);
    struct subjects subjects = {{cgroup,
                                 recorded.length ? recorded : text_of(comm),
                                 {executable, length > 0 ? (size_t)length : 0}}};
    struct text attributes = variable(namer, TEXT("OTEL_RESOURCE_ATTRIBUTES"));
    struct text service = service_of(namer, &subjects, attributes);
    struct text version = attribute(attributes, TEXT("service.version"));
    add(labels, TEXT("service"), length > 0 || !lives ? service : TEXT("kernel"));
    add(labels, TEXT("version"), version.length ? version : text_of(version_of(namer, pid)));
    if (pod_of(cgroup, pod))
        add(labels, TEXT("pod"), text_of(pod));
    for (size_t i = 0; i < namer->options->environment.count; i++)
        add(labels, text_of(namer->options->environment.items[i].value),
            variable(namer, text_of(namer->options->environment.items[i].key)));
}
