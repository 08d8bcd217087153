#include <stdio.h>

int main(void) {
    puts("wick " WICK_VERSION);
    return 0;
}
