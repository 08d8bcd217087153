/*
 * Categories of code, by rules.
 *
 * A rule file has one rule on each line: `category: function PATTERN`, `category: object PATTERN` or `category: file PATTERN`. The first
 * match wins; `#` begins a comment. The built-in rules have the same syntax and are read by the same code.
 */
#include "view/view.h"

#include <stdlib.h>

enum rule_field { RULE_FUNCTION, RULE_OBJECT, RULE_FILE };

struct rule {
    struct text category;
    struct text pattern;
    enum rule_field field;
};

struct categories {
    struct arena arena;
    VECTOR(struct rule) rules; /* those of a file first */
    size_t of_file;
};

/* Kernel functions are told by what they do first; what is left of the kernel is `kernel`. */
static const char built_in[] = "locks: function futex*\n"
                               "locks: function *futex*\n"
                               "locks: function pthread_mutex_*\n"
                               "locks: function ___pthread_mutex_*\n"
                               "locks: function __pthread_mutex_*\n"
                               "locks: function pthread_cond_*\n"
                               "locks: function __pthread_cond_*\n"
                               "locks: function pthread_rwlock_*\n"
                               "locks: function __lll_lock_*\n"
                               "locks: function *_spin_lock*\n"
                               "locks: function *spin_lock_slowpath\n"
                               "locks: function mutex_lock*\n"
                               "locks: function mutex_unlock*\n"
                               "locks: function down_read*\n"
                               "locks: function down_write*\n"
                               "locks: function rwsem_*\n"
                               "locks: function std::mutex\n"
                               "locks: function parking_lot\n"
                               "scheduler: function schedule\n"
                               "scheduler: function __schedule\n"
                               "scheduler: function schedule_*\n"
                               "scheduler: function sched_*\n"
                               "scheduler: function __sched_*\n"
                               "scheduler: function try_to_wake_up\n"
                               "scheduler: function finish_task_switch*\n"
                               "scheduler: function enqueue_task*\n"
                               "scheduler: function dequeue_task*\n"
                               "scheduler: function pick_next_task*\n"
                               "scheduler: function update_curr*\n"
                               "scheduler: function update_load_*\n"
                               "scheduler: function psi_*\n"
                               "network: function tcp_*\n"
                               "network: function __tcp_*\n"
                               "network: function udp_*\n"
                               "network: function ip_*\n"
                               "network: function __ip_*\n"
                               "network: function ip6_*\n"
                               "network: function skb_*\n"
                               "network: function __skb_*\n"
                               "network: function sock_*\n"
                               "network: function __sock_*\n"
                               "network: function inet_*\n"
                               "network: function net_rx_*\n"
                               "network: function __dev_queue_*\n"
                               "network: function dev_*_xmit*\n"
                               "network: function nf_*\n"
                               "network: function nft_*\n"
                               "network: function *conntrack*\n"
                               "network: function __sys_send*\n"
                               "network: function __sys_recv*\n"
                               "network: function sendmsg\n"
                               "network: function recvmsg\n"
                               "network: function sendto\n"
                               "network: function recvfrom\n"
                               "io: function vfs_*\n"
                               "io: function ksys_read\n"
                               "io: function ksys_write\n"
                               "io: function ext4_*\n"
                               "io: function xfs_*\n"
                               "io: function btrfs_*\n"
                               "io: function filemap_*\n"
                               "io: function blk_*\n"
                               "io: function submit_bio*\n"
                               "io: function io_uring_*\n"
                               "io: function io_submit*\n"
                               "io: function do_epoll_*\n"
                               "io: function ep_*\n"
                               "io: function epoll_*\n"
                               "io: function do_sys_poll\n"
                               "io: function mio\n"
                               "io: function pread64\n"
                               "io: function pwrite64\n"
                               "allocator: function malloc\n"
                               "allocator: function _int_malloc\n"
                               "allocator: function _int_free\n"
                               "allocator: function _int_realloc\n"
                               "allocator: function malloc_*\n"
                               "allocator: function sysmalloc*\n"
                               "allocator: function unlink_chunk*\n"
                               "allocator: function free\n"
                               "allocator: function cfree\n"
                               "allocator: function __libc_malloc\n"
                               "allocator: function __libc_free\n"
                               "allocator: function __libc_calloc\n"
                               "allocator: function __libc_realloc\n"
                               "allocator: function __GI___libc_*alloc\n"
                               "allocator: function __GI___libc_free\n"
                               "allocator: function calloc\n"
                               "allocator: function realloc\n"
                               "allocator: function posix_memalign\n"
                               "allocator: function aligned_alloc\n"
                               "allocator: function tcache_*\n"
                               "allocator: function operator new\n"
                               "allocator: function operator new[]\n"
                               "allocator: function operator delete\n"
                               "allocator: function operator delete[]\n"
                               "allocator: function __rust_alloc*\n"
                               "allocator: function __rust_dealloc*\n"
                               "allocator: function __rust_realloc*\n"
                               "allocator: function alloc::alloc\n"
                               "allocator: function je_*\n"
                               "allocator: function mi_malloc*\n"
                               "allocator: function mi_free*\n"
                               "allocator: function runtime.mallocgc*\n"
                               "allocator: object libjemalloc*\n"
                               "allocator: object libtcmalloc*\n"
                               "allocator: object libmimalloc*\n"
                               "tokio: function tokio\n"
                               "go runtime: function runtime.*\n"
                               "java runtime: object libjvm.so\n"
                               "python runtime: function _Py*\n"
                               "python runtime: function Py*_*\n"
                               "python runtime: object libpython*\n";

/* ---- matching ---- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether a word ends or begins between two bytes of `t`; always so at its ends, and beside what belongs to no word. */
static bool is_boundary(struct text t, size_t at) {
    return at == 0 || at == t.length || !is_word(t.data[at - 1]) || !is_word(t.data[at]);
}

enum match { MATCH, MATCH_NOT_HERE, MATCH_NOWHERE };

/* Whether `pattern` stands at `at` and ends at a boundary; the last `*` seen is the only place to go back to. What does not follow a `*` here
   does not follow one further on. */
static enum match matches_at(struct text t, size_t at, struct text pattern) {
    size_t p = 0, star = SIZE_MAX, retry = 0;
    while (true) {
        if (p == pattern.length && is_boundary(t, at))
            return MATCH;
        if (p < pattern.length && pattern.data[p] == '*') {
            star = ++p;
            retry = at;
        } else if (p < pattern.length && at < t.length && t.data[at] == pattern.data[p]) {
            at++, p++;
        } else if (star != SIZE_MAX && retry < t.length) {
            at = ++retry;
            p = star;
        } else {
            return star == SIZE_MAX ? MATCH_NOT_HERE : MATCH_NOWHERE;
        }
    }
}

/* Runs for each rule and each different name, of which C++ has thousands of a thousand letters: where the pattern's first letter is not,
   nothing else is looked at. */
static bool rule_matches(struct text t, struct text pattern) {
    enum match match = MATCH_NOT_HERE;
    bool literal = pattern.length && pattern.data[0] != '*';
    for (size_t i = 0; i <= t.length && match == MATCH_NOT_HERE; i++) {
        const char *next =
            literal && i < t.length ? memchr(t.data + i, pattern.data[0], t.length - i) : NULL;
        if (literal && !next)
            break;
        i = literal ? (size_t)(next - t.data) : i;
        if (is_boundary(t, i))
            match = matches_at(t, i, pattern);
    }
    return match == MATCH;
}

/* ---- rules ---- */

static bool rule_field(struct text word, enum rule_field *field) {
    static const struct text names[] = {{"function", 8}, {"object", 6}, {"file", 4}};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (text_equal(word, names[i])) {
            *field = (enum rule_field)i;
            return true;
        }
    }
    return false;
}

static bool rule_parse(struct categories *categories, struct text line, const char **why) {
    struct rule rule;
    size_t colon = text_find(line, ':');
    if (colon == SIZE_MAX || colon == 0) {
        *why = "a rule is `category: function|object|file PATTERN`";
        return false;
    }
    struct text rest = text_trim(text_from(line, colon + 1));
    size_t space = text_find(rest, ' ');
    if (space == SIZE_MAX || !rule_field(text_upto(rest, space), &rule.field)) {
        *why = "after `category:` comes function, object or file, then a pattern";
        return false;
    }
    rule.category = arena_copy(&categories->arena, text_trim(text_upto(line, colon)));
    rule.pattern = arena_copy(&categories->arena, text_trim(text_from(rest, space + 1)));
    if (rule.pattern.length == 0 || rule.category.length == 0) {
        *why = "category and pattern must not be empty";
        return false;
    }
    vector_push(&categories->rules, rule);
    return true;
}

static bool rules_parse(struct categories *categories, struct text text, const char *path,
                        struct error *error) {
    for (unsigned number = 1; text.length; number++) {
        struct text line = text_trim(text_take_line(&text));
        const char *why;
        if (line.length && line.data[0] != '#' && !rule_parse(categories, line, &why))
            return error_set(error, ERROR_INPUT, "%s: line %u: %s", path, number, why);
    }
    return true;
}

struct categories *categories_new(const char *path, const struct context *context,
                                  struct error *error) {
    struct categories *categories = memory_zero(1, sizeof *categories);
    bool fine = true;
    struct file file;
    if (path) {
        fine = file_open(&file, path, context, error);
        if (fine) {
            fine = rules_parse(categories, file_text(&file), path, error);
            file_close(&file);
        }
    }
    categories->of_file = categories->rules.count;
    if (fine && rules_parse(categories, text_of(built_in), "built-in categories", error))
        return categories;
    categories_free(categories);
    return NULL;
}

void categories_free(struct categories *categories) {
    if (!categories)
        return;
    arena_release(&categories->arena);
    vector_release(&categories->rules);
    free(categories);
}

/* Takes `:12` off the end. */
static bool take_number(struct text *t) {
    size_t colon = text_find_last(*t, ':');
    uint64_t number;
    if (colon == SIZE_MAX || !text_to_u64(text_from(*t, colon + 1), &number))
        return false;
    *t = text_upto(*t, colon);
    return true;
}

/* A frame with its source line is `name:file:line`, from --srcline, or `name (path:line)`, from wick enrich. */
static struct text file_of(struct text function) {
    struct text t = name_unmarked(function);
    size_t open = text_find_last(t, '(');
    if (open != SIZE_MAX && text_ends(t, TEXT(")")))
        return text_from(t, open + 1);
    if (!take_number(&t))
        return TEXT("");
    size_t colon = text_find_last(t, ':');
    return colon == SIZE_MAX ? t : text_from(t, colon + 1);
}

struct text categories_of(const struct categories *categories, struct text function,
                          struct text object, uint32_t kinds) {
    struct text language = language_of_kinds(kinds);
    size_t count = language.length ? categories->of_file : categories->rules.count;
    for (size_t i = 0; i < count; i++) {
        const struct rule *rule = &categories->rules.items[i];
        struct text subject = rule->field == RULE_FUNCTION ? function
                              : rule->field == RULE_OBJECT ? object
                                                           : file_of(function);
        if (rule_matches(subject, rule->pattern))
            return rule->category;
    }
    return language.length        ? language
           : kinds & KIND_KERNEL  ? TEXT("kernel")
           : kinds & KIND_JIT     ? TEXT("jit")
           : kinds & KIND_LIBRARY ? TEXT("libraries")
           : kinds & KIND_UNKNOWN ? TEXT("unknown")
                                  : TEXT("program");
}
