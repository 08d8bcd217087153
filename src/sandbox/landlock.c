/*
 * Landlock: a set of rules, each of which allows an action below a directory. The numbers are the kernel's (linux/landlock.h), defined here
 * because older headers lack the later ones.
 */
#include "sandbox/internal.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 }; /* on every architecture */
enum { ASK_VERSION = 1, PATH_BENEATH = 1 };

enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIRECTORY = 1 << 3,
    REMOVE_DIRECTORY = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_DIRECTORY = 1 << 7,
    MAKE_FILE = 1 << 8,
    MAKE_LINK = 1 << 12,
    ALL_OF_1 = (1 << 13) - 1,
    REFER = 1 << 13,          /* version 2 */
    TRUNCATE = 1 << 14,       /* version 3 */
    DEVICE_CONTROL = 1 << 15, /* version 5 */
    BIND_AND_CONNECT = 3,     /* version 4, of TCP */
    ABSTRACT_AND_SIGNALS = 3, /* version 6 */
    OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_CONTROL,
};

struct handled {
    uint64_t files, network, scoped;
};

struct beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

static uint64_t known_rights(int version) {
    return ALL_OF_1 | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0) |
           (version >= 5 ? DEVICE_CONTROL : 0);
}

void ruleset_open(struct ruleset *ruleset) {
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    *ruleset = (struct ruleset){.descriptor = -1};
    if (version < 1)
        return;
    struct handled handled = {.files = known_rights((int)version),
                              .network = version >= 4 ? BIND_AND_CONNECT : 0,
                              .scoped = version >= 6 ? ABSTRACT_AND_SIGNALS : 0};
    size_t size = version >= 6   ? sizeof handled
                  : version >= 4 ? offsetof(struct handled, scoped)
                                 : offsetof(struct handled, network);
    ruleset->descriptor = (int)syscall(CREATE_RULESET, &handled, size, 0);
    ruleset->version = ruleset->descriptor < 0 ? 0 : (int)version;
}

static uint64_t rights_of(enum rights rights) {
    uint64_t read = READ_FILE | READ_DIRECTORY;
    uint64_t write = read | WRITE_FILE | TRUNCATE | MAKE_FILE | REMOVE_FILE;
    return rights == RIGHTS_READ    ? read
           : rights == RIGHTS_WRITE ? write
                                    : write | MAKE_DIRECTORY | REMOVE_DIRECTORY | MAKE_LINK;
}

/* Most are directories. For a file, the kernel rejects a rule with rights that apply only to directories. */
static void allow(const struct ruleset *ruleset, int descriptor, enum rights rights) {
    struct beneath rule = {.allowed = rights_of(rights) & known_rights(ruleset->version),
                           .parent = descriptor};
    if (syscall(ADD_RULE, ruleset->descriptor, PATH_BENEATH, &rule, 0) == 0)
        return;
    rule.allowed &= OF_FILES;
    syscall(ADD_RULE, ruleset->descriptor, PATH_BENEATH, &rule, 0);
}

void ruleset_allow(const struct ruleset *ruleset, int directory, const char *name,
                   enum rights rights) {
    int descriptor = ruleset->version ? openat(directory, name, O_PATH | O_CLOEXEC) : -1;
    if (descriptor < 0)
        return;
    allow(ruleset, descriptor, rights);
    close(descriptor);
}

void ruleset_allow_held(const struct ruleset *ruleset, const char *path) {
    int descriptor = ruleset->version ? open(path, O_PATH | O_CLOEXEC) : -1;
    if (descriptor >= 0)
        allow(ruleset, descriptor, RIGHTS_READ);
}

bool ruleset_enforce(struct ruleset *ruleset) {
    bool fine = ruleset->version && syscall(RESTRICT_SELF, ruleset->descriptor, 0) == 0;
    if (ruleset->descriptor >= 0)
        close(ruleset->descriptor);
    ruleset->descriptor = -1;
    return fine;
}
