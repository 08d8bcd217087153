// What the bench records: four threads in deep stacks of C++ templates whose names average some hundred bytes, with many
// distinct paths through them, and a part of the time in libc and libstdc++, which keep no frame pointers.
// usage: deep SECONDS (of CPU time for each of four threads)
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#define KEEP __attribute__((noinline, noclone))

namespace bench {

constexpr int levels = 22;
constexpr int variants = 24;
constexpr uint64_t routes = 2500; // paths from top to bottom; a real program does not choose anew at each level

struct state {
    uint64_t random = 88172645463325252u;
    uint64_t sum = 0;
    uint64_t route = 0;
    std::map<std::string, std::vector<int>> words;

    uint64_t next() {
        random ^= random << 13;
        random ^= random >> 7;
        return random ^= random << 17;
    }
};

// Types whose only use is to make names as long as those of real programs.
template <int Variant> struct policy {
    using allocator = std::allocator<std::pair<const std::string, std::unique_ptr<std::vector<int>>>>;
};
template <typename Policy, typename Allocator = typename Policy::allocator> struct context {};

KEEP inline void burn(state &s, int turns) {
    for (int i = 0; i < turns; i++) {
        s.sum += s.next() * 31;
        __asm__ volatile("" : : : "memory");
    }
}

template <int Variant> KEEP void in_library(state &s) {
    std::vector<int> numbers(64 + Variant);
    for (int &number : numbers) {
        number = int(s.next());
    }
    std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return (a ^ Variant) < (b ^ Variant); });
    auto &word = s.words["word number " + std::to_string(s.next() % 500)];
    word.assign(numbers.begin(), numbers.begin() + 8);
    if (s.words.size() > 400) {
        s.words.clear();
    }
    qsort(numbers.data(), numbers.size(), sizeof(int), [](const void *a, const void *b) { return memcmp(a, b, sizeof(int)); });
    s.sum += uint64_t(numbers[3]);
}

template <int Level, int Variant, typename Context> struct stage {
    template <int Step> using below = stage<Level - 1, (Variant * 5 + Step * 7 + Level) % variants, context<policy<(Variant + Step) % 8>>>;

    KEEP static void run(state &s) {
        uint64_t choice = s.next() % 64;
        if (choice < 2) {
            burn(s, 400);
        } else if (choice == 2) {
            in_library<Variant % 6>(s);
        }
        switch ((s.route * 0x9e3779b97f4a7c15u >> (Level + 30)) % 3) {
        case 0:
            below<0>::run(s);
            break;
        case 1:
            [](state &inner) KEEP { below<1>::run(inner); inner.sum++; }(s);
            break;
        default:
            below<2>::run(s);
        }
        s.sum += Level;
        __asm__ volatile("" : : : "memory");
    }
};

template <int Variant, typename Context> struct stage<0, Variant, Context> {
    KEEP static void run(state &s) {
        burn(s, 300 + int(s.next() % 700));
        if (s.next() % 8 == 0) {
            in_library<Variant % 6>(s);
        }
        s.sum += Variant;
        __asm__ volatile("" : : : "memory");
    }
};

} // namespace bench

static double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

static void work(double seconds, uint64_t seed) {
    bench::state s;
    s.random += seed * 7919;
    while (cpu_seconds() < seconds) {
        for (int i = 0; i < 1000; i++) {
            s.route = std::min(s.next() % bench::routes, s.next() % bench::routes) + 1;
            bench::stage<bench::levels, 0, bench::context<bench::policy<0>>>::run(s);
        }
    }
    volatile uint64_t sink = s.sum;
    (void)sink;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; i++) {
        threads.emplace_back(work, seconds, i + 1);
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}
