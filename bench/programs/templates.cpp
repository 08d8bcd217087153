// An optimized C++ program for benchmarks: threads that walk deep towers of templates, through virtual calls, std::function, std::map,
// std::sort and strings, so that stacks are some thirty frames deep, differ a lot and are full of inlined functions.
// Usage: templates SECONDS THREADS
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace work {
std::atomic<std::uint64_t> sink;
thread_local std::uint64_t state = 88172645463325252u;

inline std::uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

struct Shape {
    virtual ~Shape() = default;
    virtual std::uint64_t area(std::uint64_t seed) const = 0;
};

template <int Kind> struct Concrete : Shape {
    std::uint64_t area(std::uint64_t seed) const override;
};

template <int N> std::uint64_t table(std::uint64_t seed) {
    std::map<std::string, std::uint64_t> m;
    for (int i = 0; i < 8 + N % 5; i++)
        m["key" + std::to_string((seed + i * N) % 97)] += next();
    std::uint64_t sum = 0;
    for (const auto &[key, value] : m)
        sum += key.size() * value;
    return sum;
}

template <int N> std::uint64_t sorted(std::uint64_t seed) {
    std::vector<std::uint64_t> v(40 + N % 7);
    std::generate(v.begin(), v.end(), next);
    std::sort(v.begin(), v.end(), [seed](auto a, auto b) { return (a ^ seed) % (101 + N) < (b ^ seed) % (101 + N); });
    return v[seed % v.size()];
}

template <int N> std::uint64_t hashed(std::uint64_t seed) {
    std::unordered_map<std::uint64_t, std::variant<int, std::string>> m;
    for (int i = 0; i < 12; i++) {
        if (next() & 1)
            m[next() % 31] = N + i;
        else
            m[next() % 31] = std::string(i + 1, 'a' + N % 26);
    }
    std::uint64_t sum = 0;
    for (auto &e : m)
        sum += std::visit([seed](const auto &x) -> std::uint64_t {
            if constexpr (std::is_same_v<std::decay_t<decltype(x)>, int>)
                return x * seed;
            else
                return x.size();
        }, e.second);
    return sum;
}

template <int N, int Depth> struct Tower {
    __attribute__((noinline)) static std::uint64_t climb(std::uint64_t seed, const std::function<std::uint64_t(std::uint64_t)> &leaf) {
        std::uint64_t here = next();
        if (here % 61 == 0)
            here += sorted<N + Depth>(seed);
        return Tower<N, Depth - 1>::climb(seed + here % 7, leaf) ^ here;
    }
};
template <int N> struct Tower<N, 0> {
    __attribute__((noinline)) static std::uint64_t climb(std::uint64_t seed, const std::function<std::uint64_t(std::uint64_t)> &leaf) { return leaf(seed) + N; }
};

template <int Kind> std::uint64_t Concrete<Kind>::area(std::uint64_t seed) const {
    auto leaf = [](std::uint64_t x) {
        switch (x % 3) {
        case 0: return table<Kind>(x);
        case 1: return sorted<Kind>(x);
        default: return hashed<Kind>(x);
        }
    };
    return Tower<Kind, 18 + Kind % 9>::climb(seed, leaf);
}

template <int... Kinds> std::vector<std::unique_ptr<Shape>> all(std::integer_sequence<int, Kinds...>) {
    std::vector<std::unique_ptr<Shape>> shapes;
    (shapes.push_back(std::make_unique<Concrete<Kinds>>()), ...);
    return shapes;
}

void run(std::chrono::steady_clock::time_point end, std::uint64_t seed) {
    auto shapes = all(std::make_integer_sequence<int, 40>());
    state += seed;
    while (std::chrono::steady_clock::now() < end)
        for (int i = 0; i < 50; i++)
            sink += shapes[next() % shapes.size()]->area(next());
}
} // namespace work

int main(int argc, char **argv) {
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<long>(1000 * (argc > 1 ? std::atof(argv[1]) : 1)));
    std::vector<std::thread> threads;
    for (int i = 0; i < (argc > 2 ? std::atoi(argv[2]) : 4); i++)
        threads.emplace_back(work::run, end, i);
    for (auto &thread : threads)
        thread.join();
}
