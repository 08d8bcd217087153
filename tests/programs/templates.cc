// C++ with templates, lambdas, virtual calls, operators and an anonymous namespace. usage: templates [SECONDS]
#include "spin.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

template <typename T, int Depth> struct tower {
    template <typename F> KEEP static T climb(F &&step, T value) {
        T next = tower<std::pair<T, int>, Depth - 1>::climb([&](auto inner) { return decltype(inner)(step(value), 1); },
                                                            std::pair<T, int>(value, Depth)).first;
        RESULT(&next);
        return next;
    }
};

template <typename T> struct tower<T, 0> {
    template <typename F> KEEP static T climb(F &&step, T value) {
        for (int i = 0; i < 50; i++) {
            value = step(value);
            RESULT(&value);
        }
        return value;
    }
};

struct shape {
    virtual ~shape() = default;
    virtual double area(double scale) const = 0;
    bool operator<(const shape &other) const { return area(1.0) < other.area(1.0); }
};
template <int Sides> struct polygon : shape {
    KEEP double area(double scale) const override {
        double sum = 0;
        for (int i = 0; i < 40 * Sides; i++) {
            sum += scale / (i + Sides);
        }
        return sum;
    }
};

} // namespace

namespace store {

template <typename Key, typename Value = std::vector<Key>> class shelf {
public:
    KEEP Value &operator[](const Key &key) { return items_[key]; }
    KEEP shelf &operator<<(const std::pair<Key, Value> &item) {
        items_.insert(item);
        return *this;
    }
    KEEP const Value *operator->() const { return &items_.begin()->second; }
    KEEP std::size_t operator()(std::function<std::size_t(const Key &, const Value &)> measure) const {
        return std::accumulate(items_.begin(), items_.end(), std::size_t(0),
                               [&measure](std::size_t sum, const auto &item) { return sum + measure(item.first, item.second); });
    }

private:
    std::map<Key, Value> items_;
};

} // namespace store

KEEP static unsigned long shelve(unsigned long turn) {
    store::shelf<std::string> shelf;
    for (int i = 0; i < 20; i++) {
        std::string key = "key-" + std::to_string((turn * 31 + i) % 97);
        shelf << std::make_pair(key, std::vector<std::string>(3, key));
        shelf[key].push_back("more");
    }
    return shelf([](const std::string &key, const std::vector<std::string> &all) { return key.size() + all.size(); }) +
           shelf->size();
}

KEEP static unsigned long draw(unsigned long turn) {
    std::vector<std::unique_ptr<shape>> shapes;
    for (int i = 0; i < 8; i++) {
        shapes.push_back(i % 2 ? std::unique_ptr<shape>(new polygon<3>) : std::unique_ptr<shape>(new polygon<6>));
    }
    std::sort(shapes.begin(), shapes.end(), [](const auto &a, const auto &b) { return *a < *b; });
    return static_cast<unsigned long>(shapes[turn % 8]->area(double(turn)));
}

unsigned long one_turn(unsigned long turn) {
    auto twist = [turn](int value) { return int(value * 31u + turn); };
    unsigned long sum = shelve(turn) + draw(turn) + (unsigned long)tower<int, 3>::climb(twist, int(turn));
    RESULT(sum);
    return sum;
}

int main(int argc, char **argv) {
    unsigned long sum = spin(argc > 1 ? atof(argv[1]) : 0.3, one_turn);
    RESULT(sum);
    return 0;
}
