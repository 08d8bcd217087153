// Containers, virtual calls and the allocator.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
struct shape {
    virtual ~shape() = default;
    virtual double area() const = 0;
};
struct square : shape {
    double a;
    explicit square(double x) : a(x) {}
    double area() const override { return a * a; }
};
struct circle : shape {
    double r;
    explicit circle(double x) : r(x) {}
    double area() const override { return 3 * r * r; }
};
int main() {
    std::vector<std::unique_ptr<shape>> shapes;
    std::map<std::string, int> sorted;
    std::unordered_map<int, std::string> hashed;
    for (int i = 0; i < 300; i++) {
        if (i % 2)
            shapes.emplace_back(new square(i));
        else
            shapes.emplace_back(new circle(i));
        sorted[std::to_string(i * 7919 % 1000)] += i;
        hashed[i * 31 % 97] += static_cast<char>('a' + i % 26);
    }
    double sum = 0;
    for (auto &s : shapes)
        sum += s->area();
    for (auto &p : sorted)
        sum += p.second + static_cast<double>(p.first.size());
    std::printf("%.1f %zu %zu\n", sum, sorted.size(), hashed.size());
}
