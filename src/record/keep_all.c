/*
 * --keep=all: after the recording, add everything that a reader would look for in other files.
 *
 * Only reading the recording shows which files those are: which objects were hit, which ones unwinding went through, where their debug
 * information is. A child in the sandbox does that, because wick may run as root and programs' files are not trusted. It writes to the
 * recording, which is already open. If it fails, its output is truncated, and the recording is as it would have been without it.
 */
#include "record/keep.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/profile.h"
#include "sandbox/sandbox.h"

static const struct note_kind note_left_out = {
    "kept-not-all",
    "# file{|s} that the recording needs {was|were} not kept: --keep=all keeps at most 1 GiB"};
static const struct note_kind note_failed = {
    "kept-failed", "--keep=all could not keep the files that the recording needs"};

/* The child's results, in shared memory. */
struct told {
    uint64_t left_out;
    char example[300]; /* the first of them */
    char failure[600];
};

struct keeping {
    struct recording *r;
    struct told *told;
    struct strings *written; /* their keys */
    uint64_t left;           /* bytes, before they are packed */
    struct error error;
};

/* ---- in the child ---- */

/* Several objects may be one file. The build id identifies it, wherever it is. */
static bool is_new(struct keeping *k, enum object_part part, const struct object_identity *identity,
                   struct text key) {
    enum { ID_AT = 8, PATH_AT = 32 };
    struct buffer known = {0};
    buffer_add_char(&known, (char)('0' + part));
    buffer_add(&known,
               identity->build_id.size ? (struct text){key.data + ID_AT, PATH_AT - ID_AT} : key);
    uint32_t before = strings_count(k->written);
    strings_add(k->written, buffer_text(&known));
    buffer_release(&known);
    return strings_count(k->written) > before;
}

static void leave_out(struct keeping *k, struct text path) {
    if (!k->told->left_out++)
        snprintf(k->told->example, sizeof k->told->example, "%.*s", TEXT_ARGS(path));
}

static bool keep_part(void *context, enum object_part part, const struct object_identity *identity,
                      struct text bytes) {
    static const enum carrier_kind kinds[] = {
        [PART_CODE] = CARRIER_FILE, [PART_DEBUG] = CARRIER_DEBUG, [PART_LIST] = CARRIER_KERNEL};
    struct keeping *k = context;
    struct buffer key = {0};
    bool fine = true;
    keep_put_key(&key, identity->build_id.size ? 0 : identity->mount, &identity->build_id,
                 identity->path);
    if (is_new(k, part, identity, buffer_text(&key))) {
        if (bytes.length > k->left || key.count > CARRIER_KEY_MOST) {
            leave_out(k, identity->path);
        } else {
            k->left -= bytes.length;
            fine =
                carrier_write(k->r->sink.writer, kinds[part], buffer_text(&key), bytes, &k->error);
        }
    }
    buffer_release(&key);
    return fine;
}

/* Return the objects with a place in a stack, and those that only unwinding or interpreted frames went through. */
static bool *objects_hit(const struct profile *profile) {
    bool *hit = memory_zero(objects_count(profile->objects) + 1, sizeof *hit);
    for (size_t i = 0; i < profile->tree->locations.count; i++)
        hit[profile->tree->locations.items[i].object] = true;
    for (uint32_t id = 1; id <= objects_count(profile->objects); id++)
        hit[id] |= objects_is_used(profile->objects, id);
    return hit;
}

static bool keep_parts(struct keeping *k, const struct profile *profile) {
    const bool *hit = objects_hit(profile);
    bool fine = perfdata_reopen(k->r->sink.writer, &k->error);
    k->written = strings_new();
    k->left = KEEP_ALL_MOST;
    for (uint32_t id = 1; fine && id <= objects_count(profile->objects); id++)
        fine = !hit[id] || objects_each_part(profile->objects, id, keep_part, k);
    return fine && perfdata_finish(k->r->sink.writer, &k->error);
}

/* Read everything that any view may show. Nothing is freed: the process exits. */
static bool read_and_keep(struct keeping *k) {
    struct file file;
    struct sandbox_facts facts;
    struct profile_options options = {
        .no_names = true, .all_events = true, .each = true, .wakers = true, .native_frames = true};
    sandbox_enter(&(struct sandbox_options){.temporaries = 4}, &facts);
    if (!file_open_descriptor(&file, k->r->file.descriptor, k->r->options->output, NULL, &k->error))
        return false;
    struct profile *profile = profile_read(&file, &options, &k->error);
    return profile && keep_parts(k, profile);
}

_Noreturn static void child_run(struct recording *r, struct told *told) {
    struct keeping keeping = {.r = r, .told = told};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool fine = read_and_keep(&keeping);
    if (!fine)
        snprintf(told->failure, sizeof told->failure, "%s", keeping.error.message);
    _exit(!fine);
}

/* ---- in the recorder ---- */

static bool child_succeeds(struct recording *r, struct told *told) {
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        child_run(r, told);
    if (child < 0) {
        snprintf(told->failure, sizeof told->failure, "%s", strerror(errno));
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void tell(struct recording *r, struct told *told, bool kept) {
    struct notes *notes = &r->result->notes;
    told->example[sizeof told->example - 1] = told->failure[sizeof told->failure - 1] = 0;
    if (!kept)
        notes_add(notes, &note_failed, 1, 0, *told->failure ? "%s" : NULL, told->failure);
    else if (told->left_out)
        notes_add(notes, &note_left_out, told->left_out, 0, "%s", told->example);
}

bool keep_all(struct recording *r, struct error *error) {
    struct stat status;
    struct told *told =
        mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return error_errno(error, "mmap");
    bool kept = child_succeeds(r, told);
    bool fine =
        kept || (perfdata_reopen(r->sink.writer, error) && perfdata_finish(r->sink.writer, error));
    tell(r, told, kept);
    munmap(told, sizeof *told);
    if (fine && fstat(r->file.descriptor, &status) == 0)
        r->result->bytes = (uint64_t)status.st_size;
    return fine;
}
