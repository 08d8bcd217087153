/*
 * Private to the room: what wick's plugin uses of QEMU's plugin interface, version 1. Debian does not package QEMU's header, so
 * the prototypes are declared here, from QEMU's documentation of the interface.
 */
#ifndef WICK_TRACE_QEMU_API_H
#define WICK_TRACE_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_API_VERSION 1

struct qemu_plugin_tb;   /* a translated block */
struct qemu_plugin_insn; /* an instruction in it */
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

typedef void qemu_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void qemu_executed(unsigned cpu, void *data);
typedef void qemu_cpu(qemu_plugin_id_t id, unsigned cpu);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_translated *callback);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, qemu_executed *callback,
                                          enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_cpu *callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *instruction);

/* What QEMU looks for in the plugin. */
extern int qemu_plugin_version;
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

#endif
