/* The recorded virtual machines: what is known about each, and what is written about it. */
#include "record/jvm_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "perfdata/perfdata.h"

enum {
    TRIES_MOST = 30, /* attempts until its tables exist */
    METHODS_MOST = 1 << 20,
    TURN_MOST = 32 << 20, /* approximate limit of bytes written in a turn */
    READS_AT_FIRST =
        20000, /* system calls in a turn, and so many more for each blob known so far */
    READS_FOR_EACH = 2,
    CODE_BEFORE = 32,
    CODE_AFTER = 16, /* bytes around a sampled address */
};
static const uint64_t interval_least = 100000000; /* nanoseconds between two walks */
enum { INTERVAL_TIMES = 100 };

static const struct note_kind note_asked = {
    "jvm-asked", "# Java virtual machine{|s} could not be read, and wrote a perf map instead: "
                 "compiled methods have names, but stacks may be cut"};
static const struct note_kind note_unknown = {
    "jvm-unknown",
    "# Java virtual machine{|s} could not be read: {its|their} methods have no names"};

/* ---- which there are ---- */

struct jvm *jvm_find(const struct jvms *jvms, pid_t pid) {
    for (size_t i = 0; i < jvms->list.count; i++)
        if (jvms->list.items[i]->pid == pid && !jvms->list.items[i]->has_ended)
            return jvms->list.items[i];
    return NULL;
}

static void jvm_forget(struct jvm *jvm) {
    jvm->blobs.count = jvm->methods.count = jvm->seen.count = jvm->asked.count = 0;
    index_release(&jvm->by_address);
    index_release(&jvm->by_method);
    index_release(&jvm->by_seen);
    index_release(&jvm->by_asked);
}

static void jvm_free(struct jvm *jvm) {
    jvm_forget(jvm);
    jvm_attach_release(&jvm->attach);
    vector_release(&jvm->blobs);
    vector_release(&jvm->methods);
    vector_release(&jvm->frames);
    vector_release(&jvm->places);
    vector_release(&jvm->seen);
    vector_release(&jvm->asked);
    buffer_release(&jvm->code);
    buffer_release(&jvm->rows);
    free(jvm);
}

struct jvms *jvms_new(struct sink *sink) {
    struct jvms *jvms = memory_zero(1, sizeof *jvms);
    jvms->sink = sink;
    return jvms;
}

void jvms_free(struct jvms *jvms) {
    if (!jvms)
        return;
    for (size_t i = 0; i < jvms->list.count; i++)
        jvm_free(jvms->list.items[i]);
    vector_release(&jvms->list);
    vector_release(&jvms->method.lines);
    hotspot_scopes_release(&jvms->scopes);
    free(jvms);
}

/* Also if it was deleted or replaced while it ran. */
static bool is_libjvm(struct text path) {
    return text_ends(path, TEXT("/libjvm.so")) || text_ends(path, TEXT("/libjvm.so (deleted)"));
}

void jvms_saw_mapping(struct jvms *jvms, pid_t pid, struct text path, uint64_t time) {
    if (!is_libjvm(path))
        return;
    struct jvm *jvm = jvm_find(jvms, pid);
    if (jvm && !time)
        return;
    if (jvm)
        jvm->has_ended = true; /* another program: the next turn drops the old one */
    jvm = memory_zero(1, sizeof *jvm);
    jvm->pid = pid;
    jvm->since = time;
    jvm_attach_init(&jvm->attach);
    jvm->remote = (struct remote){.read = process_read, .context = &jvm->pid};
    vector_push(&jvms->list, jvm);
}

void jvms_saw_exit(struct jvms *jvms, pid_t pid) {
    struct jvm *jvm = jvm_find(jvms, pid);
    if (jvm)
        jvm->has_ended = true;
}

/* ---- lists of addresses ---- */

uint64_t jvm_hash(uint64_t address) {
    return hash_mix(address, 11);
}

uint32_t addresses_find(const addresses *list, const struct index *index, uint64_t address) {
    uint32_t number;
    for (struct probe p = index_probe(index, jvm_hash(address)); (number = index_next(index, &p));)
        if (list->items[number - 1] == address)
            return number;
    return 0;
}

uint32_t addresses_add(addresses *list, struct index *index, uint64_t address) {
    vector_push(list, address);
    index_add(index, jvm_hash(address), (uint32_t)list->count);
    return (uint32_t)list->count;
}

/* ---- writing ---- */

static void put_text(struct buffer *buffer, const char *string) {
    struct text text = text_of(string);
    buffer_add_varint(buffer, text.length);
    buffer_add(buffer, text);
}

static void put_method(struct buffer *rows, const struct hotspot_method *method, uint32_t number) {
    buffer_add_varint(rows, number);
    buffer_add_varint(rows, method->address);
    buffer_add_varint(rows, method->code);
    buffer_add_varint(rows, method->code_size);
    put_text(rows, method->class_name);
    put_text(rows, method->name);
    put_text(rows, method->file);
    buffer_add_varint(rows, method->lines.count);
    for (size_t i = 0; i < method->lines.count; i++) {
        buffer_add_varint(rows, method->lines.items[i].bytecode);
        buffer_add_varint(rows, method->lines.items[i].line);
    }
}

/* Return the number of a method, and write it if it is new; return 0 if there is none. */
static uint32_t method_number(struct jvms *jvms, struct jvm *jvm, uint64_t address) {
    uint32_t number = addresses_find(&jvm->methods, &jvm->by_method, address);
    if (number || jvm->methods.count >= METHODS_MOST ||
        !hotspot_method(&jvm->hotspot, &jvm->remote, address, &jvms->method))
        return number;
    number = addresses_add(&jvm->methods, &jvm->by_method, address);
    put_method(&jvm->rows, &jvms->method, number);
    return number;
}

static void put_scopes(struct jvms *jvms, struct jvm *jvm, const struct hotspot_blob *blob,
                       struct buffer *code) {
    const struct hotspot_scopes *scopes = &jvms->scopes;
    uint32_t last = 0;
    if (!hotspot_scopes(&jvm->hotspot, &jvm->remote, blob, &jvms->scopes)) {
        buffer_add_varint(code, 0);
        buffer_add_varint(code, 0);
        return;
    }
    buffer_add_varint(code, scopes->scopes.count);
    for (size_t i = 0; i < scopes->scopes.count; i++) {
        const struct hotspot_scope *scope = &scopes->scopes.items[i];
        buffer_add_varint(code, scope->parent);
        buffer_add_varint(code, method_number(jvms, jvm, scope->method));
        buffer_add_varint(code, (uint64_t)scope->bytecode + 1);
    }
    buffer_add_varint(code, scopes->pcs.count);
    for (size_t i = 0; i < scopes->pcs.count; i++) {
        buffer_add_varint(code, scopes->pcs.items[i].offset - last);
        buffer_add_varint(code, scopes->pcs.items[i].scope);
        last = scopes->pcs.items[i].offset;
    }
}

enum { RECORD_BLOB = 1, RECORD_BYTES = 2 };

static void put_blob(struct jvms *jvms, struct jvm *jvm, const struct hotspot_blob *blob) {
    struct buffer *code = &jvm->code;
    uint32_t method = blob->method ? method_number(jvms, jvm, blob->method) : 0;
    buffer_add_varint(code, RECORD_BLOB);
    buffer_add_varint(code, blob->kind);
    buffer_add_varint(code, blob->code);
    buffer_add_varint(code, blob->code_end - blob->code);
    buffer_add_varint(code, blob->frame_size);
    buffer_add_varint(code, (uint64_t)((int64_t)blob->frame_complete + 1));
    buffer_add_varint(code, method);
    put_text(code, blob->name);
    if (blob->kind == HOTSPOT_COMPILED)
        put_scopes(jvms, jvm, blob, code);
}

static void put_bytes(struct jvm *jvm, uint64_t address, uint64_t depth) {
    uint8_t bytes[CODE_BEFORE + CODE_AFTER];
    if (!remote_small(&jvm->remote, address - CODE_BEFORE, bytes, sizeof bytes))
        return;
    buffer_add_varint(&jvm->code, RECORD_BYTES);
    buffer_add_varint(&jvm->code, address);
    buffer_add(&jvm->code, (struct text){(const char *)bytes, sizeof bytes});
    buffer_add_varint(&jvm->code, depth);
}

/* ---- a walk ---- */

struct walking {
    struct jvms *jvms;
    struct jvm *jvm;
};

static uint64_t identity_of(const struct hotspot_blob *blob) {
    uint64_t parts[] = {
        blob->code, blob->code_end,   blob->method,     blob->compile_id,
        blob->kind, blob->frame_size, blob->scopes_pcs, (uint64_t)blob->frame_complete};
    return hash_bytes(parts, sizeof parts);
}

static bool see_blob(void *context, const struct hotspot_blob *blob) {
    struct walking *walking = context;
    struct jvm *jvm = walking->jvm;
    uint64_t identity = identity_of(blob);
    uint32_t number;
    for (struct probe p = index_probe(&jvm->by_address, jvm_hash(blob->address));
         (number = index_next(&jvm->by_address, &p));)
        if (jvm->blobs.items[number - 1].address == blob->address)
            break;
    if (number && jvm->blobs.items[number - 1].identity == identity)
        return true;
    if (number) {
        jvm->blobs.items[number - 1].identity = identity;
    } else {
        vector_push(&jvm->blobs, ((struct known_blob){blob->address, identity}));
        index_add(&jvm->by_address, jvm_hash(blob->address), (uint32_t)jvm->blobs.count);
    }
    /* A blob whose method can't be read is being created or unloaded; leave it to the next walk. */
    if (blob->method && !method_number(walking->jvms, jvm, blob->method)) {
        jvm->blobs.items[number ? number - 1 : jvm->blobs.count - 1].identity = 0;
        return jvm->remote.left > 0;
    }
    put_blob(walking->jvms, jvm, blob);
    if (jvm->code.count + jvm->rows.count > TURN_MOST)
        jvm->remote.left = 0;
    return jvm->remote.left > 0;
}

static uint64_t find_base(pid_t pid) {
    struct buffer maps = {0};
    uint64_t base = 0;
    proc_read(pid, "maps", PROC_MAPS_MOST, &maps);
    for (struct text rest = buffer_text(&maps); rest.length && !base;) {
        struct text line = text_take_line(&rest);
        size_t dash = text_find(line, '-');
        if (is_libjvm(line) && dash != SIZE_MAX && !text_hex_to_u64(text_upto(line, dash), &base))
            base = 0;
    }
    buffer_release(&maps);
    return base;
}

/* The tables are filled when the library is loaded, shortly after it was mapped. */
static void learn(struct jvm *jvm) {
    const char *missing = "libjvm.so";
    jvm->base = jvm->base ? jvm->base : find_base(jvm->pid);
    if (jvm->base && hotspot_learn(&jvm->hotspot, &jvm->remote, jvm->base, &missing)) {
        jvm->is_learned = true;
        return;
    }
    if (++jvm->tries < TRIES_MOST)
        return;
    jvm->is_hopeless = true;
    jvm->missing = missing;
}

static void walk(struct jvms *jvms, struct jvm *jvm) {
    struct walking walking = {jvms, jvm};
    bool walked = hotspot_range(&jvm->hotspot, &jvm->remote, &jvm->low, &jvm->high) &&
                  hotspot_each_blob(&jvm->hotspot, &jvm->remote, see_blob, &walking);
    jvm->is_partial = !walked || !jvm->remote.left;
    /* Addresses that were not methods may be methods by now. */
    jvm->asked.count = 0;
    index_release(&jvm->by_asked);
}

static void see_to_samples(struct jvms *jvms, struct jvm *jvm) {
    for (size_t i = 0; i < jvm->frames.count; i++)
        method_number(jvms, jvm, jvm->frames.items[i]);
    for (size_t i = 0; i + 1 < jvm->places.count; i += 2)
        put_bytes(jvm, jvm->places.items[i], jvm->places.items[i + 1]);
    jvm->frames.count = jvm->places.count = 0;
}

static bool write_all(struct jvm *jvm, uint64_t since, jvm_write *write, void *context,
                      struct error *error) {
    uint64_t key[] = {(uint32_t)jvm->pid, since};
    struct text name = {(const char *)key, sizeof key};
    bool fine = !jvm->rows.count ||
                write(context, CARRIER_JAVA_METHODS, name, buffer_text(&jvm->rows), error);
    fine = fine && (!jvm->code.count ||
                    write(context, CARRIER_JAVA_CODE, name, buffer_text(&jvm->code), error));
    jvm->rows.count = jvm->code.count = 0;
    return fine;
}

/* CPU time of this thread: time that others kept it waiting costs the JVM nothing. */
static uint64_t cpu_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Ask the JVM for its names at least. */
static void turn_hopeless(struct jvms *jvms, struct jvm *jvm) {
    struct jvm_attach *attach = &jvm->attach;
    struct notes *notes = &jvms->sink->result->notes;
    jvm_attach_turn(attach, jvm->pid, monotonic());
    if (jvm->is_told || (attach->state != ATTACH_ANSWERED && attach->state != ATTACH_REFUSED))
        return;
    jvm->is_told = true;
    if (attach->state == ATTACH_ANSWERED)
        notes_add(notes, &note_asked, 1, 0, "process %d: no %s", jvm->pid, jvm->missing);
    else
        notes_add(notes, &note_unknown, 1, 0, "process %d: no %s; %s", jvm->pid, jvm->missing,
                  attach->refused_by);
}

static bool turn(struct jvms *jvms, struct jvm *jvm, bool is_last, jvm_write *write, void *context,
                 struct error *error) {
    uint64_t now = monotonic(), used = cpu_time(), since = jvm->since;
    bool is_time = now >= jvm->next_walk || is_last;
    if (jvm->is_hopeless)
        turn_hopeless(jvms, jvm);
    if (jvm->is_hopeless || (!is_time && !jvm->frames.count && !jvm->places.count))
        return true;
    remote_begin(&jvm->remote, READS_AT_FIRST + READS_FOR_EACH * jvm->blobs.count);
    if (!jvm->is_learned)
        learn(jvm);
    if (jvm->is_learned)
        see_to_samples(jvms, jvm); /* first, because frames disappear sooner than code */
    if (jvm->is_learned && is_time)
        walk(jvms, jvm);
    if (is_time) {
        uint64_t wait = INTERVAL_TIMES * (cpu_time() - used);
        jvm->next_walk = now + (wait > interval_least ? wait : interval_least);
        if (jvm->is_learned && !jvm->is_partial)
            jvm->since = now;
    }
    return write_all(jvm, since, write, context, error);
}

bool jvms_turn(struct jvms *jvms, bool is_last, jvm_write *write, void *context,
               struct error *error) {
    size_t kept = 0;
    bool fine = true;
    for (size_t i = 0; i < jvms->list.count; i++) {
        struct jvm *jvm = jvms->list.items[i];
        if (jvm->has_ended) {
            jvm_free(jvm);
            continue;
        }
        fine = fine && turn(jvms, jvm, is_last, write, context, error);
        jvms->list.items[kept++] = jvm;
    }
    jvms->list.count = kept;
    return fine;
}

void jvms_begin_again(struct jvms *jvms) {
    for (size_t i = 0; i < jvms->list.count; i++) {
        jvm_forget(jvms->list.items[i]);
        jvms->list.items[i]->since = jvms->list.items[i]->next_walk = 0;
    }
}
