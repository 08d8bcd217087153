// Exceptions that an outer activation of a recursive function catches, past inner ones of the same function that do not: by the
// place of the call, by type through another function that recurses with it, and by throwing again.
#include <cstdio>
static volatile unsigned landed, cleaned;
struct guard {
    ~guard() { cleaned++; }
};
__attribute__((noinline)) static void after(int level) {
    landed = landed * 3 + (unsigned)level;
}
__attribute__((noinline)) static void raise_at(int level) {
    if (level % 2)
        throw level;
    throw 'c';
}
// Only the activation at level `to` calls itself where it can catch.
__attribute__((noinline)) static int past(int level, int to, int depth) {
    if (level == depth)
        raise_at(level);
    else if (level == to) {
        try {
            past(level + 1, to, depth);
        } catch (...) {
            after(level);
        }
    } else
        past(level + 1, to, depth);
    after(level);
    return level;
}
__attribute__((noinline)) static int ping(int level, int depth);
__attribute__((noinline)) static int pong(int level, int depth) {
    guard g;
    try {
        return ping(level + 1, depth) + 1;
    } catch (char) {
        after(level);
        return level;
    }
}
__attribute__((noinline)) static int ping(int level, int depth) {
    if (level >= depth)
        raise_at(depth);
    if (level % 3)
        return pong(level, depth) + 1;
    try {
        return pong(level, depth) + 1;
    } catch (int) {
        after(level);
        return level;
    }
}
__attribute__((noinline)) static int again(int level, int to, int depth) {
    try {
        if (level == depth)
            raise_at(level);
        again(level + 1, to, depth);
    } catch (...) {
        after(level);
        if (level != to)
            throw;
    }
    after(level);
    return level;
}
int main() {
    int sum = 0;
    for (int to = 0; to < 7; to += 3)
        sum += past(0, to, 8) + again(0, to, 6);
    for (int depth = 5; depth < 9; depth++)
        sum += ping(0, depth);
    std::printf("%d %u %u\n", sum, landed + 0, cleaned + 0);
}
