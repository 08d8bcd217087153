// What an ordinary C++ program looks like to a profiler: four threads read text, count words, match patterns, sort, and evaluate expressions by
// recursion; a lock is shared. usage: ordinary SECONDS [DEPTH] (CPU seconds for each thread; how deep expressions nest)
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

struct random_numbers {
    uint64_t state;
    uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        return state ^= state << 17;
    }
};

struct expression {
    virtual ~expression() = default;
    virtual double value(const std::map<std::string, double> &names) const = 0;
};

struct number : expression {
    double is;
    explicit number(double number) : is(number) {}
    double value(const std::map<std::string, double> &) const override { return is; }
};

struct variable : expression {
    std::string name;
    explicit variable(std::string text) : name(std::move(text)) {}
    double value(const std::map<std::string, double> &names) const override {
        auto found = names.find(name);
        return found == names.end() ? 0 : found->second;
    }
};

struct operation : expression {
    char sign;
    std::unique_ptr<expression> left, right;
    operation(char which, std::unique_ptr<expression> one, std::unique_ptr<expression> two) : sign(which), left(std::move(one)), right(std::move(two)) {}
    double value(const std::map<std::string, double> &names) const override {
        double a = left->value(names), b = right->value(names);
        return sign == '+' ? a + b : sign == '-' ? a - b : a * b * 0.001;
    }
};

class parser {
    const char *at;

    std::unique_ptr<expression> factor() {
        if (*at == '(') {
            at++;
            auto inner = sum();
            at++;
            return inner;
        }
        if (*at >= '0' && *at <= '9') {
            char *end;
            double is = strtod(at, &end);
            at = end;
            return std::make_unique<number>(is);
        }
        const char *start = at;
        while (*at >= 'a' && *at <= 'z') {
            at++;
        }
        return std::make_unique<variable>(std::string(start, at));
    }

    std::unique_ptr<expression> product() {
        auto left = factor();
        while (*at == '*') {
            at++;
            left = std::make_unique<operation>('*', std::move(left), factor());
        }
        return left;
    }

    std::unique_ptr<expression> sum() {
        auto left = product();
        while (*at == '+' || *at == '-') {
            char sign = *at++;
            left = std::make_unique<operation>(sign, std::move(left), product());
        }
        return left;
    }

public:
    explicit parser(const std::string &text) : at(text.c_str()) {}
    std::unique_ptr<expression> parse() { return sum(); }
};

std::string nested(random_numbers &random, int depth) {
    std::string text;
    for (int i = 0; i < depth; i++) {
        text += random.next() % 3 ? "(" : "alpha*(";
    }
    text += "42";
    for (int i = 0; i < depth; i++) {
        text += random.next() % 2 ? "+beta)" : "-7.5*gamma)";
    }
    return text;
}

struct index_of_words {
    std::mutex lock;
    std::unordered_map<std::string, std::vector<uint32_t>> lines;

    void add(const std::string &word, uint32_t line) {
        std::lock_guard<std::mutex> held(lock);
        auto &list = lines[word];
        list.push_back(line);
        if (list.size() > 64) {
            list.erase(list.begin(), list.begin() + 32);
        }
    }
};

std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> words;
    size_t start = 0;
    while (start < text.size()) {
        size_t end = text.find(' ', start);
        end = end == std::string::npos ? text.size() : end;
        words.emplace_back(text, start, end - start);
        start = end + 1;
    }
    return words;
}

std::string line_of_text(random_numbers &random) {
    static const char *const syllables[] = {"ka", "to", "mi", "ren", "sol", "ux", "ba", "delta"};
    std::string text;
    for (int word = 0; word < 12; word++) {
        for (uint64_t i = 0, count = 1 + random.next() % 4; i < count; i++) {
            text += syllables[random.next() % 8];
        }
        text += word < 11 ? " " : "";
    }
    return text;
}

double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

void work(index_of_words &shared, double seconds, int depth, uint64_t seed) {
    random_numbers random = {88172645463325252u + seed * 7919};
    std::regex pattern("(ka|to)+(ren)?([a-z]*)delta");
    std::map<std::string, double> names = {{"alpha", 1.5}, {"beta", 2.25}, {"gamma", -3}};
    double sum = 0;
    for (uint32_t line = 0; cpu_seconds() < seconds; line++) {
        auto words = split(line_of_text(random));
        std::sort(words.begin(), words.end(), [](const std::string &a, const std::string &b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
        for (const auto &word : words) {
            shared.add(word, line);
            sum += std::regex_match(word, pattern);
        }
        for (int i = 0; i < 4; i++) {
            auto tree = parser(nested(random, depth)).parse();
            sum += tree->value(names);
        }
    }
    volatile double sink = sum;
    (void)sink;
}

} // namespace

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    int depth = argc > 2 ? atoi(argv[2]) : 6;
    index_of_words shared;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; i++) {
        threads.emplace_back(work, std::ref(shared), seconds, depth, i + 1);
    }
    for (auto &thread : threads) {
        thread.join();
    }
}
