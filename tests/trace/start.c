/* What the program was started with. Of the auxiliary vector all but who runs it and where its stack is. */
#include <stdint.h>
#include <stdio.h>
int main(int count, char **arguments, char **environment) {
    for (int i = 0; i < count; i++)
        printf("argument %s\n", arguments[i]);
    for (; *environment; environment++)
        printf("environment %s\n", *environment);
    for (const uint64_t *a = (const uint64_t *)(environment + 1); *a; a += 2) {
        int is_id = a[0] >= 11 && a[0] <= 14, is_text = a[0] == 31, is_random = a[0] == 25;
        printf("auxiliary %d %llx %s\n", (int)a[0], is_id || is_text || is_random ? 0 : (unsigned long long)a[1],
               is_text ? (const char *)a[1] : "");
    }
    return 0;
}
