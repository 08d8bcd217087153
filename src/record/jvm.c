/* The virtual machines that are recorded: what is known of each, and what is written of it. */
#include "record/jvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "perfdata/perfdata.h"
#include "record/hotspot.h"
#include "record/jvm_attach.h"

enum {
    TRIES_MOST = 30,        /* until its tables are there */
    PENDING_MOST = 1 << 14, /* between two turns */
    METHODS_MOST = 1 << 20,
    TURN_MOST = 32 << 20, /* bytes that a turn writes, about */
    READS_AT_FIRST =
        20000, /* system calls in a turn, and so many more for each blob that is known */
    READS_FOR_EACH = 2,
    CODE_BEFORE = 32,
    CODE_AFTER = 16, /* bytes around a sampled address */
};
static const uint64_t interval_least = 100000000; /* nanoseconds between two walks */
enum { INTERVAL_TIMES = 100 };

static const struct note_kind note_asked = {
    "jvm-asked",
    "# Java virtual machine{|s} could not be read and {was|were} asked for a perf map: "
    "compiled methods have names, but stacks may be cut"};
static const struct note_kind note_unknown = {
    "jvm-unknown",
    "# Java virtual machine{|s} could not be read: {its|their} methods have no names"};

struct known_blob {
    uint64_t address;
    uint64_t identity; /* a hash */
};

typedef VECTOR(uint64_t) addresses;

struct jvm {
    pid_t pid;
    bool has_ended;
    bool is_hopeless;
    bool is_learned;
    bool is_partial; /* the last walk did not come to its end */
    unsigned tries;
    uint64_t base;      /* of libjvm.so */
    uint64_t since;     /* what is new was made after that */
    uint64_t next_walk; /* when */
    uint64_t low, high; /* of its code */
    struct hotspot hotspot;
    struct remote remote;
    VECTOR(struct known_blob) blobs;
    struct index by_address; /* of blobs: numbers are places + 1 */
    addresses methods;       /* number - 1 is the place */
    struct index by_method;
    addresses frames; /* methods, perhaps, of interpreted frames that were sampled */
    addresses places; /* sampled addresses, each followed by what depth_of() says */
    addresses seen;   /* sampled addresses, so that each is asked for once */
    struct index by_seen;
    addresses asked; /* perhaps methods, since the last walk */
    struct index by_asked;
    struct buffer code, rows; /* of this turn */
    struct jvm_attach attach; /* if it is hopeless */
    const char *missing;      /* what made it so: a literal */
    bool is_told;             /* a note says so */
};

struct jvms {
    struct sink *sink;
    VECTOR(struct jvm *) list;
    struct hotspot_method method;
    struct hotspot_scopes scopes;
};

/* ---- which there are ---- */

static struct jvm *jvm_find(const struct jvms *jvms, pid_t pid) {
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

/* Also when it was deleted or replaced while it ran. */
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
        jvm->has_ended = true; /* another program: the next turn drops what was */
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

/* ---- samples ---- */

static uint64_t hash_address(uint64_t address) {
    return hash_mix(address, 11);
}

static uint32_t address_find(const addresses *list, const struct index *index, uint64_t address) {
    uint32_t number;
    for (struct probe p = index_probe(index, hash_address(address));
         (number = index_next(index, &p));)
        if (list->items[number - 1] == address)
            return number;
    return 0;
}

static uint32_t address_add(addresses *list, struct index *index, uint64_t address) {
    vector_push(list, address);
    index_add(index, hash_address(address), (uint32_t)list->count);
    return (uint32_t)list->count;
}

/* Whether it is new; it is not, from then on. */
static bool address_is_new(addresses *list, struct index *index, uint64_t address) {
    if (address_find(list, index, address))
        return false;
    address_add(list, index, address);
    return true;
}

/* Where the return address is, or, nearly always, above it: a call by a method handle drops its last argument. */
static bool is_sender(uint64_t frame, uint64_t sender) {
    return sender - frame >= 8 && sender - frame < 1 << 19;
}

/* An address above the frame's own, or, in newer versions, how many words it is away. */
static bool is_locals(uint64_t frame, uint64_t locals) {
    return locals - frame < 1 << 20 || locals < 1 << 16;
}

/*
 * Every place in the stack may be where an interpreter's frame has its caller's rbp. Below it are, word by word, where the caller's stack
 * ends, where its own ends, the method, the class's mirror, profiling data, the constant pool's cache, the locals and the bytecode.
 */
static void scan_stack(struct jvm *jvm, uint64_t sp, const uint8_t *stack, size_t size) {
    enum { SENDER = 8, METHOD = 24, LOCALS = 56, BYTECODE = 64 };
    for (size_t at = BYTECODE; at + 16 <= size && jvm->frames.count < PENDING_MOST; at += 8) {
        uint64_t frame = sp + at;
        if (!is_sender(frame, load_u64(stack + at - SENDER)) ||
            !is_locals(frame, load_u64(stack + at - LOCALS)))
            continue;
        uint64_t method = load_u64(stack + at - METHOD);
        if (method && !(method & 7) && !(method >> 48) &&
            !address_find(&jvm->methods, &jvm->by_method, method) &&
            address_is_new(&jvm->asked, &jvm->by_asked, method))
            vector_push(&jvm->frames, method);
    }
}

/* perf's numbers of x86's registers. */
enum { REGISTER_BP = 6, REGISTER_SP = 7, REGISTER_IP = 8 };

static uint64_t register_of(const uint8_t *registers, uint64_t mask, unsigned number) {
    return load_u64(registers + 8 * __builtin_popcountll(mask & ((1ull << number) - 1)));
}

/* Of code without a frame of its own: twice the number of the word, from 1, that is the return address, the first that points to code; + 1 if rbp
   points to the word below it. 0: there is none near. */
static uint64_t depth_of(const struct jvm *jvm, uint64_t rbp, uint64_t sp, const uint8_t *stack,
                         size_t size) {
    enum { MOST = 16 };
    for (size_t i = 0; i < MOST && 8 * i + 8 <= size; i++) {
        uint64_t word = load_u64(stack + 8 * i);
        if (word >= jvm->low && word < jvm->high)
            return 2 * (i + 1) + (i && rbp == sp + 8 * (i - 1));
    }
    return 0;
}

/* A sample ends with: which registers there are (2: of 64 bits), these, the stack's size, the stack, how much of it is valid. The kernel copies as much as was
   asked for, or less where a record can't be that long; the ptrace sampler copies what there is. 0: it can't be told. */
static size_t copied_size(size_t asked, size_t registers_size, const uint8_t *record, size_t size) {
    size_t others = 24 + 8 + registers_size + 8 + 8;
    size_t some = size < others ? 0 : size - others < asked ? (size - others) & ~(size_t)7 : asked;
    for (; some; some -= 8)
        if (load_u64(record + size - 16 - some) == some &&
            load_u64(record + size - 24 - some - registers_size) == PERF_SAMPLE_REGS_ABI_64)
            return some;
    return 0;
}

static void look_at_stack(struct jvm *jvm, const struct sink *sink, const uint8_t *record,
                          size_t size) {
    size_t registers_size = 8 * (size_t)__builtin_popcountll(sink->registers),
           stack_size = copied_size(sink->stack_size, registers_size, record, size);
    size_t tail = 8 + registers_size + 8 + stack_size + 8;
    const uint64_t needed = 1 << REGISTER_BP | 1 << REGISTER_SP | 1 << REGISTER_IP;
    if (!stack_size || (sink->registers & needed) != needed)
        return;
    uint64_t valid = load_u64(record + size - 8);
    const uint8_t *registers = record + size - tail + 8;
    const uint8_t *stack = record + size - 8 - stack_size;
    uint64_t ip = register_of(registers, sink->registers, REGISTER_IP);
    uint64_t sp = register_of(registers, sink->registers, REGISTER_SP);
    uint64_t rbp = register_of(registers, sink->registers, REGISTER_BP);
    valid = valid < stack_size ? valid : stack_size;
    scan_stack(jvm, sp, stack, valid);
    if (ip >= jvm->low && ip < jvm->high && jvm->places.count < PENDING_MOST &&
        address_is_new(&jvm->seen, &jvm->by_seen, ip)) {
        vector_push(&jvm->places, ip);
        vector_push(&jvm->places, depth_of(jvm, rbp, sp, stack, valid));
    }
}

void jvms_saw_sample(struct jvms *jvms, const uint8_t *record,
                     const struct perf_event_header *header) {
    size_t pid_at = jvms->sink->time_at - 8;
    if (!jvms->list.count || jvms->sink->time_at < 16 || header->size < pid_at + 8)
        return;
    struct jvm *jvm = jvm_find(jvms, (pid_t)load_u32(record + pid_at));
#ifdef __x86_64__
    if (jvm && !jvm->has_ended && !jvm->is_hopeless)
        look_at_stack(jvm, jvms->sink, record, header->size);
#else
    (void)jvm;
#endif
}

/* ---- what is written ---- */

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

/* The number of a method, which is written if it is new; 0: there is none. */
static uint32_t method_number(struct jvms *jvms, struct jvm *jvm, uint64_t address) {
    uint32_t number = address_find(&jvm->methods, &jvm->by_method, address);
    if (number || jvm->methods.count >= METHODS_MOST ||
        !hotspot_method(&jvm->hotspot, &jvm->remote, address, &jvms->method))
        return number;
    number = address_add(&jvm->methods, &jvm->by_method, address);
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
        buffer_add_varint(code, (uint64_t)(scope->bytecode + 1));
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
    for (struct probe p = index_probe(&jvm->by_address, hash_address(blob->address));
         (number = index_next(&jvm->by_address, &p));)
        if (jvm->blobs.items[number - 1].address == blob->address)
            break;
    if (number && jvm->blobs.items[number - 1].identity == identity)
        return true;
    if (number) {
        jvm->blobs.items[number - 1].identity = identity;
    } else {
        vector_push(&jvm->blobs, ((struct known_blob){blob->address, identity}));
        index_add(&jvm->by_address, hash_address(blob->address), (uint32_t)jvm->blobs.count);
    }
    /* One whose method can't be read is just being made, or unloaded: the next walk sees. */
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

/* Its tables are filled when the library is loaded, a little after it was mapped. */
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
    /* What was no method may have become one. */
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

/* Of this thread: how long others kept it waiting costs the JVM nothing. */
static uint64_t cpu_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Asks it for the names at least. */
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
        see_to_samples(jvms, jvm); /* first: frames are gone sooner than code */
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
