/*
 * The commit and branch of the git tree that wick was called in, read from the repository's files.
 *
 * Git itself is never started: its commands run programs that the repository's configuration names (core.fsmonitor, filters, …), and the
 * working directory may be an archive from a stranger. For the same reason, nothing is read from the repository of an untrusted user, no
 * symbolic link below it is followed, and every value is checked before it is used. Changed files are not detected: that needs the object
 * database and the ignore rules. Costs reading a handful of small files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/internal.h"

enum { PARENTS = 100, SMALL_FILE = 4096, PACKED_REFS = 64 << 20, SYMBOLIC_REFS = 5 };

/* Return the descriptor if its file belongs to a trusted user and has the wanted type (S_IFREG, S_IFDIR); otherwise close it and return -1.
   */
static int checked(int descriptor, mode_t type) {
    struct stat status;
    if (descriptor < 0)
        return -1;
    if (fstat(descriptor, &status) == 0 && (status.st_mode & S_IFMT) == type &&
        user_is_trusted(status.st_uid))
        return descriptor;
    close(descriptor);
    return -1;
}

static int open_folder(int directory, const char *path, int flags) {
    return checked(openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags), S_IFDIR);
}

/* Open a file below a directory without following links. `path` is relative and contains no "..". Return -1 if there is none. */
static int open_below(int directory, const char *path) {
    char part[256];
    int at = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *slash; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        size_t length = (size_t)(slash - path);
        int next = -1;
        if (length < sizeof part) {
            memcpy(part, path, length);
            part[length] = 0;
            next = open_folder(at, part, O_NOFOLLOW);
        }
        close(at);
        at = next;
    }
    if (at < 0)
        return -1;
    int file = openat(at, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    close(at);
    return checked(file, S_IFREG);
}

/* Read a file below a directory; false if there is none or it has more than `limit` bytes. */
static bool read_below(int directory, const char *path, struct buffer *content, size_t limit) {
    char chunk[SMALL_FILE];
    ssize_t got = -1;
    int file = open_below(directory, path);
    content->count = 0;
    while (file >= 0 && content->count <= limit &&
           ((got = read(file, chunk, sizeof chunk)) > 0 || (got < 0 && errno == EINTR)))
        if (got > 0)
            buffer_add(content, (struct text){chunk, (size_t)got});
    if (file >= 0)
        close(file);
    return got == 0 && content->count <= limit;
}

/* Open the directory that a file below `directory` names after `prefix`: "gitdir: PATH", "../..". */
static int open_named(int directory, const char *file, struct text prefix) {
    struct buffer content = {0};
    int folder = -1;
    if (read_below(directory, file, &content, SMALL_FILE) &&
        text_starts(buffer_text(&content), prefix)) {
        struct text path = text_trim(text_from(buffer_text(&content), prefix.length));
        char *name = memory_copy(path.data, path.length);
        folder = open_folder(directory, name, 0);
        free(name);
    }
    buffer_release(&content);
    return folder;
}

/* ---- the repository ---- */

/* Open the directory that .git is, or that it names (in worktrees and submodules). */
static int open_git(int directory) {
    struct stat status;
    if (fstatat(directory, ".git", &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
        return open_named(directory, ".git", TEXT("gitdir:"));
    return open_folder(directory, ".git", O_NOFOLLOW);
}

/* The nearest .git decides, even if it can't be used: as with git, a directory above it belongs to another tree. */
static int find_git(void) {
    struct stat status;
    int at = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), git = -1;
    bool found = false;
    for (int i = 0; i < PARENTS && at >= 0 && !found; i++) {
        found = fstatat(at, ".git", &status, AT_SYMLINK_NOFOLLOW) == 0;
        git = found ? open_git(at) : -1;
        int parent = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = parent;
    }
    if (at >= 0)
        close(at);
    return git;
}

/* ---- references ---- */

static bool is_commit(struct text t) {
    bool fine = t.length == 40 || t.length == 64;
    for (size_t i = 0; fine && i < t.length; i++)
        fine = (t.data[i] >= '0' && t.data[i] <= '9') || (t.data[i] >= 'a' && t.data[i] <= 'f');
    return fine;
}

/* Accept only names that git would make; above all, none that leads out of the directory. */
static bool is_reference(struct text t) {
    bool fine = text_starts(t, TEXT("refs/")) && text_search(t, TEXT("..")) == SIZE_MAX;
    for (size_t i = 0; fine && i < t.length; i++)
        fine = (unsigned char)t.data[i] > ' ' && t.data[i] != 0x7f;
    return fine;
}

/* Lines are "COMMIT REFERENCE"; skip those that begin with '#' or '^'. */
static struct text find_packed(struct text packed, struct text reference) {
    while (packed.length) {
        struct text line = text_take_line(&packed);
        size_t space = text_find(line, ' ');
        if (space != SIZE_MAX && text_equal(text_from(line, space + 1), reference))
            return text_upto(line, space);
    }
    return (struct text){0};
}

/* Replace the content of a reference, "ref: NAME" or a commit, by the content of NAME. */
static bool follow_once(int shared, struct buffer *content) {
    struct text target = text_trim(text_from(buffer_text(content), 4));
    if (!is_reference(target))
        return false;
    char *name = memory_copy(target.data, target.length);
    bool found = read_below(shared, name, content, SMALL_FILE);
    if (!found && read_below(shared, "packed-refs", content, PACKED_REFS)) {
        struct text commit = find_packed(buffer_text(content), text_of(name));
        found = commit.length != 0;
        memmove(content->items, found ? commit.data : "", commit.length);
        content->count = commit.length;
    }
    free(name);
    return found;
}

static void note_branch(struct facts *facts, struct text head) {
    static const struct text prefix = {"ref: refs/heads/", 16};
    if (text_starts(head, prefix) && is_reference(text_trim(text_from(head, 5))))
        buffer_add(&facts->branch, text_trim(text_from(head, prefix.length)));
}

void facts_of_git(struct facts *facts) {
    struct buffer content = {0};
    int git = find_git();
    int shared = git < 0 ? -1 : open_named(git, "commondir", TEXT(""));
    if (git >= 0 && read_below(git, "HEAD", &content, SMALL_FILE)) {
        bool fine = true;
        note_branch(facts, buffer_text(&content));
        for (int i = 0;
             i < SYMBOLIC_REFS && fine && text_starts(buffer_text(&content), TEXT("ref:")); i++)
            fine = follow_once(shared >= 0 ? shared : git, &content);
        struct text commit = text_trim(buffer_text(&content));
        if (fine && is_commit(commit))
            buffer_add(&facts->commit, commit);
    }
    buffer_release(&content);
    if (shared >= 0)
        close(shared);
    if (git >= 0)
        close(git);
}
