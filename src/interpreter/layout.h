/*
 * What the BPF program (record/interpreted.bpf.c), its loader and the walkers here have in common: where an interpreter keeps its frames, and a
 * stack as it is taken. Nothing is included: the one side has the kernel's types, the other the C library's.
 */
#ifndef WICK_INTERPRETER_LAYOUT_H
#define WICK_INTERPRETER_LAYOUT_H

enum {
    STACK_FRAMES = 1024,    /* at most, from the leaf */
    STACK_FRAME_READ = 128, /* bytes of one frame of an interpreter, at most */
    STACK_PROCESSES = 16384,
    STACK_KINDS = 16384, /* that waits may have */
};

enum interpreter { INTERPRETER_NONE, INTERPRETER_PYTHON, INTERPRETER_RUBY, INTERPRETER_PHP };

/* Where frames are in a process. All offsets are bytes. */
struct frame_layout {
    unsigned long long memory; /* of the kernel: tells programs apart that the process has run */
    unsigned long long again;  /* without an interpreter: when to look for one again */
    unsigned long long
        key; /* Python: the address of { int is_set; int key }; PHP: of the pointer to the frame; Ruby: the
                                  number of the module with the thread's variable, which is `state_frame` in it */
    unsigned long long
        current; /* Python up to 3.11: where the state stands that has the global lock; 0: it is not asked */
    unsigned int interpreter;
    unsigned int state_thread; /* in that state: its thread, as pthread_self() gives it */
    unsigned int state_frame;  /* in a thread's state: its frame, or what that hangs on */
    unsigned int has_holder;   /* … and then */
    unsigned int holder_frame;
    unsigned int read; /* bytes of a frame that hold all of the following */
    unsigned int code, previous, instruction;
    unsigned int instruction_size; /* 4 or 8 */
    unsigned int
        check; /* of a code object: a word that differs if another takes its place; 0: none */
    unsigned int mark; /* a byte that marks the frame with which the interpreter was entered … */
    unsigned int mark_mask,
        mark_value;        /* … if these bits of it have this value; 0: there is no such byte */
    unsigned int has_shim; /* such a frame is on the stack of C and is no function's */
};

/* glibc on x86-64: values of keys in a thread's descriptor, the first 32, and then pointers to blocks of 32. A value is the second word of a pair. */
enum { KEYS_FIRST = 0x310, KEYS_BLOCK = 32, KEYS_BLOCKS = 0x510, KEYS_MOST = 1024 };

/* Ruby: a frame has this many bytes, and in it its code and what has its flags. */
enum {
    RUBY_FRAME = 64,
    RUBY_CODE = 16,
    RUBY_ENVIRONMENT = 32,
    RUBY_FINISH = 0x20, /* a flag: with this frame the interpreter was entered */
    RUBY_KIND = 0x7fff0001,
    RUBY_DUMMY = 0x79990001,
};

/* In the low bits of a frame's code. */
enum { FRAME_ENTRY = 1, FRAME_SHIM = 2, FRAME_BITS = 7 };

struct raw_frame {
    unsigned long long code;
    unsigned long long instruction; /* an address, or an index */
    unsigned long long address; /* of the frame itself, with FRAME_SHIM; else the code's `check` */
};

/* Why a stack ends where it does. */
enum stack_end {
    STACK_WHOLE,
    STACK_DEEP,       /* there are more frames than fit */
    STACK_UNREADABLE, /* a frame could not be read */
    STACK_UNKNOWN,    /* no stack: the process is to be looked at */
};

struct raw_stack {
    unsigned long long time;
    unsigned long long memory; /* as in frame_layout */
    unsigned long long kind;   /* a hash of what it is, told once for many waits; 0: one sample's */
    unsigned long long root;   /* Python: where the outermost frame is */
    unsigned int pid, tid;
    unsigned int end; /* enum stack_end */
    unsigned int count;
    struct raw_frame frames[STACK_FRAMES];
};

#endif
