/* A function without call frame information, as hand-written assembly often is. It keeps rbp for its own use. */
    .text
    .globl bare_loop
    .type bare_loop, @function
bare_loop:
    push %rbp
    push %rbx
    mov %rdi, %rbp
    mov $88172645463325252, %rbx
1:  mov %rbx, %rax
    shl $13, %rax
    xor %rax, %rbx
    mov %rbx, %rax
    shr $7, %rax
    xor %rax, %rbx
    dec %rbp
    jnz 1b
    mov %rbx, %rax
    pop %rbx
    pop %rbp
    ret
    .size bare_loop, . - bare_loop
    .section .note.GNU-stack, "", @progbits
