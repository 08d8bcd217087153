/*
 * Private to the room: the part of QEMU's plugin interface, version 1, that wick's plugin uses. Debian does not package QEMU's header, so the
 * prototypes are declared here, from QEMU's documentation of the interface.
 */
#ifndef WICK_TRACE_QEMU_API_H
#define WICK_TRACE_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_API_VERSION 1

struct qemu_plugin_tb;   /* a translated block */
struct qemu_plugin_insn; /* an instruction in it */
typedef uint32_t qemu_plugin_meminfo_t;
typedef uint64_t qemu_plugin_id_t;

struct qemu_info {
    const char *target_name; /* "riscv64" */
    struct {
        int min;
        int cur;
    } version;
    bool system_emulation;
    int cpus[2];
};

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

typedef void qemu_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void qemu_executed(unsigned cpu, void *data);
typedef void qemu_accessed(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data);
typedef void qemu_cpu(qemu_plugin_id_t id, unsigned cpu);
typedef void qemu_syscall(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a1,
                          uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                          uint64_t a7, uint64_t a8);
typedef void qemu_syscall_return(qemu_plugin_id_t id, unsigned cpu, int64_t number, int64_t result);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_translated *callback);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, qemu_executed *callback,
                                          enum qemu_plugin_cb_flags flags, void *data);
/* Add in the translated code itself, without a call. It is not atomic. */
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, enum qemu_plugin_op op,
                                              void *counter, uint64_t add);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction, qemu_accessed *callback,
                                      enum qemu_plugin_cb_flags flags,
                                      enum qemu_plugin_mem_rw which, void *data);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, qemu_syscall *callback);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id, qemu_syscall_return *callback);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_cpu *callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *instruction);

/* Symbols that QEMU looks up in the plugin. */
extern int qemu_plugin_version;
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

#endif
