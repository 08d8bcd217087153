/*
 * Shared by the BPF program (record/interpreted.bpf.c), its loader and the walkers here: where an interpreter keeps its frames, and the form of
 * a recorded stack. Includes nothing, because the BPF program has the kernel's types and the others have the C library's.
 */
#ifndef WICK_INTERPRETER_LAYOUT_H
#define WICK_INTERPRETER_LAYOUT_H

enum {
    STACK_FRAMES = 1024,    /* at most, from the leaf */
    STACK_FRAME_READ = 128, /* most bytes read of an interpreter's frame */
    STACK_PROCESSES = 16384,
    STACK_KINDS = 16384, /* limit of distinct stacks of waits */
};

enum interpreter { INTERPRETER_NONE, INTERPRETER_PYTHON, INTERPRETER_RUBY, INTERPRETER_PHP };

/* Where frames are in a process. All offsets are bytes. */
struct frame_layout {
    unsigned long long
        memory;               /* the kernel's id of the address space: changes at exec; 0: not known
                                  before the first sample */
    unsigned long long again; /* without an interpreter: when to search for one again */
    unsigned long long
        key; /* Python: the address of { int is_set; int key }; PHP: of the pointer to the frame; Ruby: the
                                  number of the module with the thread's variable, which is `state_frame` in it */
    unsigned long long
        current; /* Python up to 3.11: address of the state that has the global lock; 0: not used */
    unsigned int interpreter;
    unsigned int state_thread; /* in that state: its thread, as returned by pthread_self() */
    unsigned int state_frame;  /* in a thread's state: its frame, or the frame's holder */
    unsigned int has_holder;   /* … and then */
    unsigned int holder_frame;
    unsigned int read; /* bytes of a frame that hold all of the following */
    unsigned int code, previous, instruction;
    unsigned int instruction_size; /* 4 or 8 */
    /* Python: offsets in a code object of its file, (qualified) name and line table. 0: not recorded */
    unsigned int code_file, code_name, code_lines;
    unsigned int string_head; /* bytes of a string object before its characters, at most */
    unsigned int mark; /* a byte that marks the frame with which the interpreter was entered … */
    unsigned int mark_mask,
        mark_value;        /* … if these bits of it have this value; 0: there is no such byte */
    unsigned int has_shim; /* such a frame is on the C stack and belongs to no function */
};

/* Python 3.11 and 3.12: a holder has the one before it behind its frame. */
enum { HOLDER_PREVIOUS = 8 };

/* glibc on x86-64: values of keys in a thread's descriptor, the first 32, and then pointers to blocks of 32. A value is the second word of a pair. */
enum { KEYS_FIRST = 0x310, KEYS_BLOCK = 32, KEYS_BLOCKS = 0x510, KEYS_MOST = 1024 };

/* Ruby: a frame has this many bytes, and in it its code and what has its flags. */
enum {
    RUBY_FRAME = 64,
    RUBY_CODE = 16,
    RUBY_ENVIRONMENT = 32,
    RUBY_FINISH = 0x20, /* a flag: the interpreter was entered with this frame */
    RUBY_KIND = 0x7fff0001,
    RUBY_BUILT_IN = 0x66660001, /* a block that is a C function, such as that of each_slice */
    RUBY_DUMMY = 0x79990001,
};

/* Whether a frame with these flags runs no function of the program. */
static inline int ruby_is_built_in(unsigned long long flags) {
    return (flags & RUBY_KIND) == RUBY_DUMMY || (flags & RUBY_KIND) == RUBY_BUILT_IN;
}

/* In the low bits of a frame's code. */
enum { FRAME_ENTRY = 1, FRAME_SHIM = 2, FRAME_BITS = 7 };

struct raw_frame {
    unsigned long long code;
    unsigned long long instruction; /* an address, or an index */
    unsigned long long address;     /* of the frame itself, with FRAME_SHIM; else layout_check() */
};

/* Return a word that differs if another code object takes the same place in memory. */
static inline unsigned long long layout_check(unsigned long long file, unsigned long long lines) {
    return lines * 31 + file;
}

/* Why a stack ends where it does. */
enum stack_end {
    STACK_WHOLE,
    STACK_DEEP,       /* there are more frames than fit */
    STACK_UNREADABLE, /* a frame could not be read, or is among its own callers */
    STACK_UNKNOWN,    /* no stack: the process must be examined */
    STACK_CODE,       /* no stack: a struct raw_code */
    STACK_MEMORY,     /* no stack: a struct raw_memory */
};

struct raw_stack {
    unsigned long long time;
    unsigned long long memory; /* as in frame_layout */
    unsigned long long kind;   /* a hash of a stack sent once for many waits; 0: of one sample */
    unsigned long long root;   /* Python: address of the outermost frame */
    unsigned int pid, tid;
    unsigned int end; /* enum stack_end */
    unsigned int count;
    struct raw_frame frames[STACK_FRAMES];
};

/* A Python code object at the time of a sample. It may be gone a moment later: a module's code is freed once it has been imported. A part that
   does not fit is not read, and its `size` is 0. */
enum {
    CODE_HEAD,
    CODE_FILE,
    CODE_NAME,
    CODE_LINES,
    CODE_PARTS,
    CODE_HEAD_READ = 144,
    CODE_FILE_MOST = 512,
    CODE_NAME_MOST = 256,
    CODE_LINES_MOST = 16384,
};
struct raw_code {
    unsigned long long time, memory, kind, root; /* as in a stack */
    unsigned int pid, tid, end, count;
    unsigned long long address[CODE_PARTS]; /* in the process */
    unsigned int size[CODE_PARTS];
    unsigned char head[CODE_HEAD_READ], file[CODE_FILE_MOST], name[CODE_NAME_MOST];
    unsigned char lines[CODE_LINES_MOST]; /* size[CODE_LINES] bytes */
};

/* A part of a thread's stack that the sample's own copy lacks: the part after the copy, or the stack that a signal handler on an alternate stack
   interrupted. Addresses and sizes are multiples of MEMORY_BLOCK. No part crosses a page, because a page that was never touched cannot be read. */
enum { MEMORY_BLOCK = 1024, MEMORY_PART = 4096, MEMORY_PARTS = 64 };
struct raw_memory {
    unsigned long long time, memory;  /* as in a stack */
    unsigned long long stack_pointer; /* of the sample */
    unsigned long long address;
    unsigned int pid, tid, end, size;
    unsigned char bytes[MEMORY_PART];
};

#endif
