// A threaded program that forks and executes itself: modules come and go with the processes. Usage: spawn SECONDS [child]
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static volatile std::uint64_t sink;

template <typename T> __attribute__((noinline)) T grind(T x, int depth) {
    std::string text = std::to_string(x);
    if (depth > 0)
        return grind<T>(x + text.size(), depth - 1) + 1;
    for (int i = 0; i < 500; i++)
        x = x * 33 + text[i % text.size()];
    return x;
}

static void work(double seconds) {
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
        sink += grind<std::uint64_t>(sink, 6);
        sink += grind<unsigned>(7, 12);
    }
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
    if (argc > 2) {
        work(seconds);
        return 0;
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back(work, seconds);
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            std::string part = std::to_string(seconds / 8);
            work(seconds / 8);
            execl(argv[0], argv[0], part.c_str(), "child", static_cast<char *>(nullptr));
            _exit(1);
        }
        waitpid(child, nullptr, 0);
    }
    for (auto &thread : threads)
        thread.join();
}
