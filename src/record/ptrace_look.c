/*
 * Which threads run, which wait, and for how long: read from /proc at every tick, without disturbing them. Only threads that are to be
 * sampled are stopped.
 *
 * A running thread is interrupted; its sample weighs the CPU time used since its last one, so the sum is right however late a tick is. A
 * waiting thread is interrupted once per wait, and only if waits are recorded: as long as it gets no turn on a CPU it is the same wait, and
 * only its time grows. A stop adds two turns that are not the thread's own: one to stop and one to continue waiting.
 *
 * Time is kept in two accounts: on the CPU, as reported by the scheduler, and off the CPU, the rest of the elapsed time. Off-CPU time without
 * a known stack goes to the next wait that is seen or, once it reaches a whole tick, to where the thread runs (it was ready, and had no CPU).
 * So the time for which a thread is stopped to be sampled is counted as well: both accounts together are all the time that passed.
 */
#include "record/ptrace.h"

#include <errno.h>
#include <sys/ptrace.h>

static void interrupt(struct tracee *t, enum seen because) {
    if (ptrace(PTRACE_INTERRUPT, t->tid, 0, 0) != 0)
        return;
    t->stopping = true;
    t->because = because;
}

/* Bring the accounts up to `now`. */
static void account(struct tracee *t, uint64_t now, const struct times *times) {
    if (t->looked_at)
        t->off += (int64_t)(now - t->looked_at) - (int64_t)(times->used - t->used);
    t->looked_at = now;
    t->used = times->used;
}

static void end_wait(struct sampler *s, struct tracee *t) {
    if (t->has_wait && t->waited > 0) {
        put_sample(s, t, &t->wait, s->off_ids[t->wait_state], (uint64_t)t->waited);
        t->process->touched = true;
    }
    t->has_wait = false;
    t->waited = 0;
}

static void add_off_to_wait(struct tracee *t) {
    t->waited += t->off;
    t->off = 0;
}

/* ---- at a tick ---- */

static void look_at(struct sampler *s, struct tracee *t, uint64_t now) {
    struct times times;
    if (t->fresh || t->stopping || t->halted || !t->process->begun || !tracee_times(t, &times))
        return;
    bool same_wait = t->seen == SEEN_WAITING && times.slices <= t->slices;
    account(t, now, &times);
    if (same_wait) {
        if (t->has_wait)
            add_off_to_wait(t);
        return;
    }
    char state = tracee_state(t);
    if (state == 'R') {
        t->seen = SEEN_RUNNING;
        if (s->on_cpu || t->has_wait || t->off >= (int64_t)s->interval)
            interrupt(t, SEEN_RUNNING);
    } else if (state == 'S' || state == 'D') {
        t->seen = SEEN_WAITING;
        t->slices = times.slices;
        t->state = state == 'D' ? OFF_CPU_DISK : OFF_CPU_SLEEP;
        if (s->off_cpu)
            interrupt(t, SEEN_WAITING);
    }
}

void look_at_all(struct sampler *s) {
    for (size_t i = 0; i < s->tracees.all.count; i++)
        look_at(s, s->tracees.all.items[i], monotonic());
}

/* ---- while it is stopped ---- */

/* The first sample of a new thread stands for a whole tick, as all later ones do; otherwise short-lived threads, most of which no tick finds,
   would weigh too little. If the thread has to wait for a CPU, more ticks find it than its running time warrants, so scale it down. */
static uint64_t first_period(const struct sampler *s, const struct times *times) {
    double share = (double)times->used / (double)(times->used + times->delayed);
    uint64_t period = (uint64_t)((double)s->interval * share);
    return period > times->used ? period : times->used;
}

/* Return the CPU time used since it was last charged. A thread that calls exec takes the first thread's id and its clock, which may be
   behind. */
static uint64_t not_charged(struct tracee *t, const struct times *times) {
    if (times->used < t->charged)
        t->charged = times->used;
    return times->used - t->charged;
}

static void charge_running(struct sampler *s, struct tracee *t, const struct times *times) {
    uint64_t used = not_charged(t, times);
    if (!s->on_cpu || !used)
        return;
    put_sample(s, t, &s->capture, s->on_id, t->sampled ? used : first_period(s, times));
    capture_move(&t->ran, &s->capture);
    t->has_ran = true;
    t->charged = times->used;
    t->sampled = true;
    t->process->touched = true;
}

/* A thread that exits has run since the last look. Its first sample already covers, on average, half a tick of that; charge more, which late
   looks leave over, to where it was last seen running. */
static void charge_rest(struct sampler *s, struct tracee *t) {
    struct times times;
    bool known = t->has_ran;
    t->has_ran = false;
    if (!known || !tracee_times(t, &times) || not_charged(t, &times) <= s->interval)
        return;
    s->r->sink.time = monotonic();
    put_sample(s, t, &t->ran, s->on_id, times.used - t->charged);
    t->charged = times.used;
    t->process->touched = true;
}

static void charge_off(struct sampler *s, struct tracee *t) {
    if (!s->off_cpu)
        return;
    if (t->has_wait) {
        add_off_to_wait(t);
        end_wait(s, t);
    } else if (t->off >= (int64_t)s->interval) {
        put_sample(s, t, &s->capture, s->off_ids[OFF_CPU_PREEMPTED], (uint64_t)t->off);
        t->off = 0;
    }
}

static void begin_wait(struct sampler *s, struct tracee *t, const struct times *times) {
    end_wait(s, t);
    add_off_to_wait(t);
    t->has_wait = true;
    t->wait_state = t->state;
    t->slices = times->slices + 1;
    capture_move(&t->wait, &s->capture);
    t->process->touched = true;
}

void look_closely(struct sampler *s, struct tracee *t) {
    struct times times;
    bool waits = t->because == SEEN_WAITING;
    bool fine = capture_take(&s->capture, t->tid, s->r->options) && tracee_times(t, &times);
    if (fine && s->capture.thread_pointer)
        interpreted_take(s->r->sink.interpreted, t->process->pid, t->tid, s->capture.thread_pointer,
                         &s->capture.interpreted);
    if (!fine || (int64_t)s->capture.registers[0] == -EINTR)
        restart_system_call(t->tid);
    ptrace(PTRACE_CONT, t->tid, 0, 0);
    if (!fine)
        return;
    s->narrow += s->capture.abi == PERF_SAMPLE_REGS_ABI_NONE;
    s->r->sink.time = monotonic();
    account(t, s->r->sink.time, &times);
    if (waits) {
        begin_wait(s, t, &times);
    } else {
        charge_off(s, t);
        charge_running(s, t, &times);
        t->seen = SEEN_RUNNING;
    }
}

void look_last(struct sampler *s, struct tracee *t) {
    struct times times;
    charge_rest(s, t);
    if (!t->has_wait)
        return;
    s->r->sink.time = monotonic();
    if (tracee_times(t, &times)) {
        account(t, s->r->sink.time, &times);
        add_off_to_wait(t);
    }
    end_wait(s, t);
}
