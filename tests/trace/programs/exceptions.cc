// Exceptions thrown through frames with and without clean-ups, caught and thrown again.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
struct guard {
    int &count;
    ~guard() { count++; }
};
__attribute__((noinline)) static int leaf(int n) {
    if (n % 3 == 0)
        throw std::runtime_error("three " + std::to_string(n));
    if (n % 5 == 0)
        throw n;
    return n;
}
__attribute__((noinline)) static int middle(int n, int &count) {
    guard g{count};
    return leaf(n) + 1;
}
__attribute__((noinline)) static int retry(int n, int &count) {
    try {
        return middle(n, count);
    } catch (int) {
        throw std::logic_error("five");
    }
}
int main() {
    int count = 0, sum = 0;
    std::vector<std::string> seen;
    for (int i = 1; i < 60; i++) {
        try {
            sum += retry(i, count);
        } catch (const std::exception &e) {
            seen.push_back(e.what());
        }
    }
    std::printf("%d %d %zu %s\n", sum, count, seen.size(), seen.back().c_str());
}
