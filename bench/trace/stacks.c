/* Ten functions, each of which calls all ten: ten times as many stacks a level. */
#include <stdlib.h>
static volatile unsigned sum;
#define DECLARE(n) static void f##n(unsigned left);
#define CALL(n) f##n(left - 1);
#define DEFINE(n)                                                                                  \
    __attribute__((noinline)) static void f##n(unsigned left) {                                    \
        sum += n + 1;                                                                              \
        if (left) {                                                                                \
            ALL(CALL)                                                                              \
            sum--;                                                                                 \
        }                                                                                          \
    }
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
ALL(DECLARE)
DEFINE(0)
DEFINE(1)
DEFINE(2)
DEFINE(3)
DEFINE(4)
DEFINE(5)
DEFINE(6)
DEFINE(7)
DEFINE(8)
DEFINE(9)
int main(int count, char **arguments) {
    f0((unsigned)atoi(arguments[1]));
    return 0;
}
