/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Private to the BPF programs: the maps shared by the programs for waits and for interpreters. */
#ifndef WICK_RECORD_OFFCPU_MAPS_H
#define WICK_RECORD_OFFCPU_MAPS_H

#include <bpf/bpf_helpers.h>

#include "offcpu_bpf.h"

/* The threads that are recorded. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, OFF_CPU_THREADS);
    __type(key, __u32);
    __type(value, struct off_cpu_thread);
} threads SEC(".maps");

/* The kind of a thread's interpreter stack, as interpreted.bpf.c found it just before. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, OFF_CPU_THREADS);
    __type(key, __u32);
    __type(value, __u64);
} kinds SEC(".maps");

#endif
