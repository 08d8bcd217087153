/*
 * How much of a stack can be read.
 *
 * A thread's stack ends below its control block; the first thread's ends below what the kernel put there. That the stack is mapped up to its
 * end is verified once for each new depth, by asking the kernel to read a few bytes of each page. Other stacks (of coroutines and signal
 * handlers) are verified each time. So no read can fault.
 */
#include "heap/preload/preload.h"

#include <errno.h>
#include <sys/auxv.h>

enum { PAGE = 4096, PROBED = 64 };
enum {
    MAIN_GAP = 128 << 20
}; /* the kernel keeps at least this much free for the first thread's stack */

/* Return how many of `count` pages from `first` on can be read, with a system call that no filter denies: it copies a few bytes before it
   rejects its other argument. */
static size_t pages_readable(uintptr_t first, size_t count) {
    enum { WRONG = 99, SET_SIZE = 8 };
    size_t good = 1; /* at least the stack pointer's own page */
    while (good < count && system_call(SYS_rt_sigprocmask, WRONG, (long)(first + good * PAGE), 0,
                                       SET_SIZE, 0, 0) == -EINVAL)
        good++;
    return good;
}

/* glibc's: where the first thread's stack was when the program began. Above it are the arguments and environment, a few hundred words that
   don't matter here. */
extern void *__libc_stack_end __attribute__((weak));

static uintptr_t main_top(void) {
    enum { COUNT_OF_ARGUMENTS = 8 };
    return &__libc_stack_end && __libc_stack_end ? (uintptr_t)__libc_stack_end + COUNT_OF_ARGUMENTS
                                                 : getauxval(AT_RANDOM);
}

static uintptr_t stack_top(const struct thread *t) {
    uintptr_t top = t->tid == process->pid ? main_top() : thread_block();
    return top & ~(uintptr_t)7;
}

size_t stack_extent(struct thread *t, uintptr_t pointer, size_t most) {
    uintptr_t top = stack_top(t), page = pointer & ~(uintptr_t)(PAGE - 1);
    size_t below = top > pointer ? top - pointer : 0;
    if (t->tid == process->pid && below && below < MAIN_GAP)
        return below < most ? below : most;
    if (t->verified && pointer >= t->verified && below)
        return below < most ? below : most;
    uintptr_t known = t->verified && t->verified > pointer ? t->verified : top;
    if (below && known - page <= PROBED * PAGE) {
        size_t count = (known - page + PAGE - 1) / PAGE;
        if (pages_readable(page, count) == count) {
            t->verified = page;
            return below < most ? below : most;
        }
    }
    size_t count = (pointer + most - page + PAGE - 1) / PAGE;
    uintptr_t end = page + pages_readable(page, count) * PAGE;
    if (below && end > top)
        end = top;
    return end - pointer < most ? end - pointer : most;
}
