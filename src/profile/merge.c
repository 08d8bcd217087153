/*
 * Merge an interpreter's stack with the C stack that ran it.
 *
 * An interpreter runs functions in its evaluation loop, a C function. One call of the loop executes a *run* of the interpreter's frames, up to
 * the one with which it was entered, so each run belongs to one call:
 *
 *     Python 3.12 and later   the entry of a run is a local variable of the loop: the native frame whose stack contains its address is the
 *                             call, whatever its name
 *     others                  calls are found by the loop's name and paired from the root; from the leaf if the native stack is incomplete
 *
 * A call is replaced by its run. The remaining native frames are real work: functions of extensions, of libraries, of the interpreter itself.
 * The interpreter's plumbing (passing on calls, starting a program) is dropped, unless native frames are requested. If there is one more call
 * than runs, the innermost is just starting or returning, and keeps its name.
 */
#include "interpreter/layout.h"
#include "profile/scripted.h"
#include "profile/worker.h"

#include <stdlib.h>

enum native {
    NATIVE_UNKNOWN, /* not looked at yet */
    NATIVE_WORK,
    NATIVE_LOOP,     /* the evaluation loop */
    NATIVE_AROUND,   /* what calls the evaluation loop, which has no name (Ruby) */
    NATIVE_PLUMBING, /* of the interpreter */
    NATIVE_NAMELESS, /* in the interpreter's file, without a name */
    NATIVE_INSIDE,   /* another function of that file */
    NATIVE_START,    /* where threads and programs begin */
    NATIVE_LOCK,     /* a function of the interpreter that takes or hands over its global lock */
    NATIVE_WAIT,     /* waits for another thread: which for, its caller tells */
};

enum { CLASSES = 1 << 12, DEPTH_MOST = 4096 };

struct native_class {
    uint64_t address;
    uint64_t epochs;
    enum native native;
};

/* Frames first … last - 1 of the interpreter's, leaf first, are run by one call of its loop. */
struct run {
    uint32_t first, last;
    uint64_t entry; /* the address of what is on the stack of C; 0: there is none */
    size_t native;  /* its call, SIZE_MAX: none was found */
};

struct merger {
    struct chain_frames merged;
    VECTOR(struct chain_frame) frames; /* the interpreter's, leaf first */
    VECTOR(struct run) runs;
    VECTOR(enum native) natives; /* of the chain's frames */
    struct native_class classes[CLASSES];
};

void merger_free(struct merger *m) {
    if (!m)
        return;
    vector_release(&m->merged);
    vector_release(&m->frames);
    vector_release(&m->runs);
    vector_release(&m->natives);
    free(m);
}

/* ---- what a native frame is ---- */

static bool is_one_of(struct text name, const struct text *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (text_equal(name, names[i]))
            return true;
    return false;
}

static bool starts_with_one_of(struct text name, const struct text *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (text_starts(name, names[i]))
            return true;
    return false;
}

/* CPython's functions that pass calls on or start a program. */
static bool is_python_plumbing(struct text name) {
    static const struct text exact[] = {TEXT("function_code_fastcall"),
                                        TEXT("call_function"),
                                        TEXT("do_call_core"),
                                        TEXT("object_vacall"),
                                        TEXT("method_call"),
                                        TEXT("cfunction_call"),
                                        TEXT("call_method"),
                                        TEXT("_PyObject_MakeTpCall"),
                                        TEXT("gen_send_ex"),
                                        TEXT("gen_send_ex2"),
                                        TEXT("gen_send"),
                                        TEXT("PyGen_am_send"),
                                        TEXT("_PyGen_Send"),
                                        TEXT("gen_iternext"),
                                        TEXT("run_eval_code_obj"),
                                        TEXT("run_mod"),
                                        TEXT("Py_RunMain"),
                                        TEXT("Py_BytesMain"),
                                        TEXT("Py_Main"),
                                        TEXT("thread_run"),
                                        TEXT("t_bootstrap"),
                                        TEXT("pythread_wrapper"),
                                        TEXT("_PyVectorcall_Call"),
                                        TEXT("PyVectorcall_Call"),
                                        TEXT("_PyFunction_Vectorcall"),
                                        TEXT("_PyFunction_FastCallDict")};
    static const struct text beginnings[] = {TEXT("PyEval_Eval"),
                                             TEXT("_PyEval_Eval"),
                                             TEXT("_PyEval_Vector"),
                                             TEXT("_PyEval_Frame"),
                                             TEXT("PyObject_Call"),
                                             TEXT("_PyObject_Call"),
                                             TEXT("PyObject_Vectorcall"),
                                             TEXT("_PyObject_Vectorcall"),
                                             TEXT("_PyObject_FastCall"),
                                             TEXT("_PyMethodDef_RawFastCall"),
                                             TEXT("_PyCFunction_FastCall"),
                                             TEXT("_PyMethodDescr_"),
                                             TEXT("method_vectorcall"),
                                             TEXT("cfunction_vectorcall"),
                                             TEXT("vectorcall_"),
                                             TEXT("slot_"),
                                             TEXT("pymain_"),
                                             TEXT("pyrun_"),
                                             TEXT("PyRun_"),
                                             TEXT("_PyRun_")};
    return is_one_of(name, exact, COUNT_OF(exact)) ||
           starts_with_one_of(name, beginnings, COUNT_OF(beginnings));
}

static bool is_php_plumbing(struct text name) {
    static const struct text exact[] = {
        TEXT("zend_call_function"),       TEXT("_zend_call_function"),
        TEXT("zend_call_known_function"), TEXT("zend_execute"),
        TEXT("zend_execute_scripts"),     TEXT("php_execute_script"),
        TEXT("php_execute_simple_script")};
    return is_one_of(name, exact, COUNT_OF(exact));
}

static bool is_ruby_plumbing(struct text name) {
    static const struct text exact[] = {TEXT("vm_exec_core"),       TEXT("rb_ec_exec_node"),
                                        TEXT("ruby_run_node"),      TEXT("rb_main"),
                                        TEXT("thread_do_start"),    TEXT("thread_start_func_1"),
                                        TEXT("thread_start_func_2")};
    return is_one_of(name, exact, COUNT_OF(exact)) || text_starts(name, TEXT("vm_call_")) ||
           text_starts(name, TEXT("rb_vm_call")) || text_starts(name, TEXT("rb_vm_invoke"));
}

/* Return the name without a suffix of the compiler (.cold, .part.0) or a version. */
static struct text plain_name(struct text name) {
    size_t end = 1;
    while (end < name.length && name.data[end] != '.' && name.data[end] != '@')
        end++;
    return text_upto(name, end < name.length ? end : name.length);
}

static bool is_interpreter_file(struct text path) {
    static const struct text names[] = {TEXT("python"), TEXT("libpython"), TEXT("php"),
                                        TEXT("libphp"), TEXT("ruby"),      TEXT("libruby")};
    size_t slash = text_find_last(path, '/');
    return starts_with_one_of(slash == SIZE_MAX ? path : text_from(path, slash + 1), names,
                              COUNT_OF(names));
}

/* The only functions of CPython that wait for a condition, by name; in a file without symbols the one that does has no name. */
static bool is_python_lock(struct text name) {
    static const struct text exact[] = {TEXT("take_gil"),
                                        TEXT("drop_gil"),
                                        TEXT("PyEval_RestoreThread"),
                                        TEXT("PyEval_AcquireLock"),
                                        TEXT("PyEval_SaveThread"),
                                        TEXT("PyEval_AcquireThread"),
                                        TEXT("_PyThreadState_Attach")};
    return is_one_of(name, exact, COUNT_OF(exact));
}

static enum native native_by_name(struct text name, bool is_inside) {
    static const struct text loops[] = {TEXT("_PyEval_EvalFrameDefault"), TEXT("execute_ex")};
    static const struct text waits[] = {
        TEXT("pthread_cond_wait"),           TEXT("pthread_cond_timedwait"),
        TEXT("pthread_cond_clockwait"),      TEXT("___pthread_cond_wait"),
        TEXT("___pthread_cond_timedwait64"), TEXT("___pthread_cond_clockwait64")};
    name = plain_name(name);
    if (is_inside ? is_python_lock(name) : is_one_of(name, waits, COUNT_OF(waits)))
        return is_inside ? NATIVE_LOCK : NATIVE_WAIT;
    if (is_one_of(name, loops, COUNT_OF(loops)))
        return NATIVE_LOOP;
    if (text_equal(name, TEXT("rb_vm_exec")))
        return NATIVE_AROUND;
    if (is_python_plumbing(name) || is_php_plumbing(name) || is_ruby_plumbing(name))
        return NATIVE_PLUMBING;
    if (unwind_is_first_by_frame_pointer(name))
        return NATIVE_START;
    return is_inside ? NATIVE_INSIDE : NATIVE_WORK;
}

static enum native native_find(const struct worker *w, const struct space_at *at,
                               const struct chain_frame *frame) {
    const struct profile *profile = w->reading->profile;
    uint64_t within = frame->address - frame->is_call;
    const struct mapping *mapping = frame->mapping ? space_mapping(profile->spaces, frame->mapping)
                                                   : space_find(profile->spaces, at->user, within);
    struct symbol symbol;
    if (!mapping || !mapping->object)
        return NATIVE_WORK;
    struct text path = objects_get(profile->objects, mapping->object)->path;
    bool is_inside = is_interpreter_file(path);
    if (objects_symbol(profile->objects, mapping->object, within - mapping->start + mapping->offset,
                       &symbol))
        return native_by_name(symbol.name, is_inside);
    size_t slash = text_find_last(path, '/');
    bool is_libc = slash != SIZE_MAX && text_starts(text_from(path, slash), TEXT("/libc.so"));
    return is_inside ? NATIVE_NAMELESS : is_libc ? NATIVE_START : NATIVE_WORK;
}

static enum native native_of(struct merger *m, const struct worker *w, const struct space_at *at,
                             const struct chain_frame *frame) {
    if (frame->mode != MODE_USER)
        return NATIVE_WORK;
    uint64_t hash = hash_mix(frame->address ^ at->epochs << 8, frame->is_call);
    struct native_class *class = &m->classes[hash & (CLASSES - 1)];
    if (class->address != frame->address || class->epochs != at->epochs || !class->native)
        *class = (struct native_class){frame->address, at->epochs, native_find(w, at, frame)};
    return class->native;
}

/* ---- runs ---- */

static void run_end(struct merger *m, uint32_t *first, uint64_t entry) {
    if (m->frames.count > *first)
        vector_push(&m->runs, ((struct run){*first, (uint32_t)m->frames.count, entry, SIZE_MAX}));
    *first = (uint32_t)m->frames.count;
}

static void runs_find(struct merger *m, const struct scripted *all,
                      const struct scripted_stack *stack) {
    uint32_t first = 0;
    m->frames.count = 0;
    m->runs.count = 0;
    for (uint32_t at = stack->leaf; at && m->frames.count < DEPTH_MOST;) {
        const struct scripted_frame *frame = &all->frames.items[at];
        if (frame->function)
            vector_push(&m->frames,
                        ((struct chain_frame){.address = (uint64_t)(frame->line >> 4) << 32 |
                                                         frame->function,
                                              .mode = MODE_USER,
                                              .is_named = true}));
        if (frame->line & FRAME_ENTRY)
            run_end(m, &first, frame->line & FRAME_SHIM ? frame->address : 0);
        at = frame->caller;
    }
    run_end(m, &first, 0);
}

/* ---- pairs ---- */

/* By what is on the stack of C. Native frames that were unwound are the last `count`, and their stack pointers grow towards the root. */
static size_t pair_by_address(struct merger *m, const struct worker *w) {
    size_t count = w->stack_pointers.count, before = w->frames.count - count, next = 0, pairs = 0;
    const uint64_t *sp = w->stack_pointers.items;
    for (size_t i = 0; i < m->runs.count; i++) {
        struct run *run = &m->runs.items[i];
        size_t at = next;
        while (run->entry && at + 1 < count && sp[at + 1] <= run->entry)
            at++;
        if (!run->entry || at >= count || run->entry < sp[at] ||
            (at + 1 == count && w->frames.count && m->natives.items[before + at] == NATIVE_START))
            continue;
        run->native = before + at;
        next = at + 1;
        pairs++;
    }
    return pairs;
}

static bool is_loop(const struct merger *m, size_t native) {
    return m->natives.items[native] == NATIVE_LOOP || m->natives.items[native] == NATIVE_AROUND;
}

static void pair_from_root(struct merger *m) {
    size_t run = m->runs.count;
    for (size_t i = m->natives.count; i-- > 0 && run > 0;)
        if (is_loop(m, i))
            m->runs.items[--run].native = i;
}

static void pair_from_leaf(struct merger *m) {
    size_t run = 0;
    for (size_t i = 0; i < m->natives.count && run < m->runs.count; i++)
        if (is_loop(m, i))
            m->runs.items[run++].native = i;
}

/* ---- the merged stack ---- */

static void emit_runs(struct merger *m, size_t first, size_t last) {
    for (size_t i = first; i < last; i++)
        for (uint32_t k = m->runs.items[i].first; k < m->runs.items[i].last; k++)
            vector_push(&m->merged, m->frames.items[k]);
}

/* Whether a native frame is left out; `inner`: no run is on its leaf's side. */
static bool is_folded(const struct merger *m, size_t at, bool inner) {
    enum native native = m->natives.items[at];
    bool is_core = native == NATIVE_NAMELESS && at + 1 < m->natives.count &&
                   m->natives.items[at + 1] == NATIVE_AROUND;
    return native == NATIVE_PLUMBING || is_core || (is_loop(m, at) && !inner) ||
           (native == NATIVE_NAMELESS && !inner);
}

/* Names of functions that are also inlined, into those of extensions too, have the interpreter's prefix. */
bool scripted_is_plumbing(struct text name) {
    return (text_starts(name, TEXT("_Py")) || text_starts(name, TEXT("Py"))) &&
           is_python_plumbing(name);
}

/* What the outermost pair was called by, if that is only the interpreter and what begins programs. */
static bool is_beginning(const struct merger *m, size_t from) {
    for (size_t i = from; i < m->natives.count; i++)
        if (m->natives.items[i] == NATIVE_WORK)
            return false;
    return true;
}

static size_t last_pair(const struct merger *m) {
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < m->runs.count; i++)
        if (m->runs.items[i].native != SIZE_MAX)
            last = m->runs.items[i].native;
    return last;
}

/* Whether a thread waits in this frame for the interpreter's global lock. */
static bool is_lock_wait(const struct merger *m, size_t at) {
    enum native native = m->natives.items[at];
    return at > 0 && m->natives.items[at - 1] == NATIVE_WAIT &&
           (native == NATIVE_LOCK || native == NATIVE_NAMELESS || native == NATIVE_LOOP);
}

static void emit_lock_wait(struct merger *m, const struct worker *w) {
    struct chain_frame frame = {
        .address = w->reading->scripted->lock_wait, .mode = MODE_USER, .is_named = true};
    vector_push(&m->merged, frame);
}

/* Where no call was found: native frames up to the first of the interpreter's, then all that it ran. */
static void emit_apart(struct merger *m, const struct worker *w) {
    size_t end = 0;
    while (end < m->natives.count && !is_loop(m, end) && m->natives.items[end] != NATIVE_PLUMBING &&
           m->natives.items[end] != NATIVE_NAMELESS && m->natives.items[end] != NATIVE_START)
        vector_push(&m->merged, w->frames.items[end++]);
    emit_runs(m, 0, m->runs.count);
}

static void emit_merged(struct merger *m, const struct worker *w, bool keep, size_t outermost) {
    size_t run = 0;
    for (size_t i = 0; i < m->natives.count; i++) {
        size_t paired = run;
        if (w->reading->scripted->lock_wait && is_lock_wait(m, i)) {
            emit_lock_wait(m, w);
            if (!keep && !is_loop(m, i))
                continue;
        }
        while (paired < m->runs.count && m->runs.items[paired].native != i)
            paired++;
        if (paired < m->runs.count) {
            emit_runs(m, run, paired + 1);
            run = paired + 1;
            if (!keep)
                continue;
        } else if (!keep && is_folded(m, i, run == 0)) {
            continue;
        }
        if (!keep && i > outermost && is_beginning(m, outermost + 1))
            break;
        vector_push(&m->merged, w->frames.items[i]);
    }
    emit_runs(m, run, m->runs.count);
}

uint8_t chain_merge(struct worker *w, const struct perfdata_sample *sample,
                    const struct space_at *at, uint8_t flags, uint8_t *ending) {
    const struct scripted *all = w->reading->scripted;
    const struct scripted_stack *stack = scripted_find(all, sample->tid, sample->time);
    bool keep = w->reading->options->native_frames;
    if (!stack || flags & STACK_ALONE)
        return flags;
    struct merger *m = w->merger = w->merger ? w->merger : memory_zero(1, sizeof *m);
    if (!(flags & STACK_TYPED))
        chain_decode(w, sample);
    m->natives.count = m->merged.count = 0;
    for (size_t i = 0; i < w->frames.count; i++)
        vector_push(&m->natives, native_of(m, w, at, &w->frames.items[i]));
    runs_find(m, all, stack);
    bool reaches_root = *ending == ENDING_COMPLETE;
    if (!pair_by_address(m, w)) {
        if (reaches_root && stack->is_whole)
            pair_from_root(m);
        else
            pair_from_leaf(m);
    }
    size_t outermost = last_pair(m);
    if (outermost == SIZE_MAX && !keep)
        emit_apart(m, w);
    else
        emit_merged(m, w, keep, outermost);
    struct chain_frames before = w->frames;
    w->frames = m->merged;
    m->merged = before;
    if (stack->is_whole)
        *ending = ENDING_COMPLETE;
    else if (stack->is_deep)
        *ending = ENDING_TRUNCATED;
    return flags | STACK_TYPED;
}
