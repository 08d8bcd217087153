/* What riscv-tests ask of their surroundings, for a program that runs as a user: pass and fail are exits. */
#ifndef RISCV_TEST_H
#define RISCV_TEST_H
#define RVTEST_RV64U .macro init; .endm
#define RVTEST_RV32U .macro init; .endm
#define RVTEST_RV64UF .macro init; csrwi fcsr, 0; .endm
#define RVTEST_RV32UF .macro init; csrwi fcsr, 0; .endm
#define TESTNUM gp
#define RVTEST_CODE_BEGIN .text; .globl _start; _start: init;
#define RVTEST_CODE_END
#define RVTEST_PASS li a0, 0; li a7, 93; ecall;
#define RVTEST_FAIL mv a0, TESTNUM; li a7, 93; ecall;
#define RVTEST_DATA_BEGIN .balign 16; .globl begin_signature; begin_signature:
#define RVTEST_DATA_END .balign 16; .globl end_signature; end_signature:
#endif
