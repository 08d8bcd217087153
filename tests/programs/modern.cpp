// Templates, lambdas, std::function, containers, exceptions being thrown and caught, recursion 2,000 frames deep.
// Usage: modern MILLISECONDS
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
volatile std::uint64_t sink;

template <int N> struct Nest {
    __attribute__((noinline)) static std::uint64_t run(std::uint64_t x) { return Nest<N - 1>::run(x * 31 + N) + N; }
};
template <> struct Nest<0> {
    static std::uint64_t run(std::uint64_t x) {
        for (int i = 0; i < 200; i++)
            x ^= x << 7, x ^= x >> 9;
        return x;
    }
};

__attribute__((noinline)) std::uint64_t thrower(int depth) {
    std::string kept(static_cast<size_t>(depth) + 20, 'x');
    if (depth == 0)
        throw std::runtime_error("bottom");
    return thrower(depth - 1) + kept.size();
}

__attribute__((noinline)) void exceptions() {
    try {
        sink += thrower(8);
    } catch (const std::exception &e) {
        sink += static_cast<unsigned char>(e.what()[0]);
    }
}

__attribute__((noinline)) std::uint64_t deep(int n, std::uint64_t x) {
    volatile std::uint64_t here = x;
    if (n == 0) {
        for (int i = 0; i < 4000; i++)
            here = here * 6364136223846793005u + 1442695040888963407u;
        return here;
    }
    return deep(n - 1, x + 1) + here;
}

template <typename F> __attribute__((noinline)) std::uint64_t sum_up(const std::vector<std::uint64_t> &v, F f) {
    return std::accumulate(v.begin(), v.end(), std::uint64_t{0}, [&](auto a, auto b) { return a + f(b); });
}

__attribute__((noinline)) void containers() {
    std::map<std::string, std::vector<std::uint64_t>> m;
    for (int i = 0; i < 40; i++)
        m[std::to_string(i * 7919 % 40)].push_back(static_cast<std::uint64_t>(i));
    std::vector<std::uint64_t> v;
    for (auto &entry : m)
        v.insert(v.end(), entry.second.begin(), entry.second.end());
    std::sort(v.begin(), v.end(), [](auto a, auto b) { return a * 2654435761u % 1000 < b * 2654435761u % 1000; });
    std::function<std::uint64_t(std::uint64_t)> f = [](std::uint64_t x) { return Nest<6>::run(x); };
    sink += sum_up(v, f);
}
} // namespace

int main(int argc, char **argv) {
    using clock = std::chrono::steady_clock;
    auto end = clock::now() + std::chrono::milliseconds(argc > 1 ? std::atoi(argv[1]) : 300);
    while (clock::now() < end) {
        containers();
        exceptions();
        sink += deep(2000, 1);
    }
}
