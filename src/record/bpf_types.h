/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Private to the room: the types that libbpf's header needs in a program that does not include the kernel's. */
#ifndef WICK_RECORD_BPF_TYPES_H
#define WICK_RECORD_BPF_TYPES_H

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#endif
