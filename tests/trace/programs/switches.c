/* A jump table: a small machine interpreted with a large switch. */
#include <stdio.h>
enum { PUSH, ADD, SUB, MUL, DUP, SWAP, DROP, JNZ, DEC, PRINT, HALT };
__attribute__((noinline)) static long interpret(const int *code) {
    long stack[32], printed = 0;
    int top = 0;
    for (int pc = 0;;) {
        switch (code[pc++]) {
        case PUSH: stack[top++] = code[pc++]; break;
        case ADD: top--; stack[top - 1] += stack[top]; break;
        case SUB: top--; stack[top - 1] -= stack[top]; break;
        case MUL: top--; stack[top - 1] *= stack[top]; break;
        case DUP: stack[top] = stack[top - 1]; top++; break;
        case SWAP: { long t = stack[top - 1]; stack[top - 1] = stack[top - 2]; stack[top - 2] = t; break; }
        case DROP: top--; break;
        case JNZ: if (stack[top - 1]) pc = code[pc]; else pc++; break;
        case DEC: stack[top - 1]--; break;
        case PRINT: printed += stack[top - 1]; break;
        case HALT: return printed;
        }
    }
}
int main(void) {
    static const int code[] = {PUSH, 0, PUSH, 2000, SWAP, PUSH, 3, ADD, PUSH, 2, MUL, PUSH, 1, SUB,
                               PRINT, DROP, PUSH, 1, SWAP, DEC, JNZ, 4, HALT};
    printf("%ld\n", interpret(code));
    return 0;
}
