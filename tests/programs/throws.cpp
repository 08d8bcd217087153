// Does little but throw through eight frames that each have something to clean up. Usage: throws MILLISECONDS
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>

static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long thrower(int depth) {
    std::string kept(static_cast<size_t>(depth) + 20, 'x');
    if (depth == 0)
        throw std::runtime_error("bottom");
    return thrower(depth - 1) + kept.size();
}

// Frames of other sizes, so that a stack pointer of one is wrong for the other.
__attribute__((noinline)) static unsigned long between(int depth) {
    std::string kept[5] = {"a", "b", "c", "d", "e"};
    return thrower(depth) + kept[depth % 5].size();
}

__attribute__((noinline)) static void catcher() {
    try {
        sink += between(8);
    } catch (const std::exception &e) {
        sink += static_cast<unsigned char>(e.what()[0]);
    }
}

int main(int argc, char **argv) {
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(argc > 1 ? std::atoi(argv[1]) : 300);
    while (std::chrono::steady_clock::now() < end)
        catcher();
}
