/* One source, two libraries: what dlopen.c loads, unloads and loads again, often at the address where the other one was. */
#include "spin.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#if WHICH == 2
unsigned long only_in_second(unsigned long value) { return value * 3; } /* moves what follows */
#endif

KEEP static unsigned long PASTE(inner_of_, WHICH)(unsigned long value) {
    for (int i = 0; i < 20000; i++) {
        value = value * 33 + WHICH;
        RESULT(value);
    }
    return value;
}

unsigned long plugin_work(unsigned long value) {
    value = PASTE(inner_of_, WHICH)(value);
    RESULT(value);
    return value;
}
