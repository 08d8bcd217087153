/* A function that finds its frame by rbx, as the dynamic linker's resolver does, and calls one that does not touch rbx and says nothing of it. usage: realigned [MILLISECONDS] */
#include "spin.h"

unsigned long realigned(unsigned long turns);

__asm__(".text\n"
        ".type realigned, @function\n"
        "realigned:\n"
        "    .cfi_startproc\n"
        "    push %rbx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .cfi_rel_offset %rbx, 0\n"
        "    mov %rsp, %rbx\n"
        "    .cfi_def_cfa_register %rbx\n"
        "    and $-64, %rsp\n"
        "    sub $256, %rsp\n"
        "    call silent_leaf\n"
        "    mov %rbx, %rsp\n"
        "    .cfi_def_cfa_register %rsp\n"
        "    pop %rbx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .cfi_restore %rbx\n"
        "    ret\n"
        "    .cfi_endproc\n"
        "    .size realigned, . - realigned\n"
        ".type silent_leaf, @function\n"
        "silent_leaf:\n"
        "    .cfi_startproc\n"
        "    mov %rdi, %rax\n"
        "1:  dec %rdi\n"
        "    jnz 1b\n"
        "    ret\n"
        "    .cfi_endproc\n"
        "    .size silent_leaf, . - silent_leaf\n");

KEEP static unsigned long work(unsigned long turn) {
    unsigned long result = realigned(20000 + turn % 2);
    RESULT(result);
    return result;
}

int main(int argc, char **argv) {
    return spin(argc > 1 ? atof(argv[1]) / 1000 : 0.1, work) == 1;
}
