/* Runs for ever, or until it reads where nothing is. */
volatile unsigned turns;
__attribute__((noinline)) static void inner(void) {
    for (int i = 0; i < 100; i++)
        turns++;
}
__attribute__((noinline)) static void outer(int count) {
    while (count < 2 || turns < 5000)
        inner();
    *(volatile int *)8 = 1;
}
int main(int count, char **arguments) {
    outer(count);
    return 0;
}
