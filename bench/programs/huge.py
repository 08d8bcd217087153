"""usage: huge.py FOLDER UNITS

Writes a C++ program of many units that instantiate much of the standard library, each differently, so that its debug information passes 100 MB;
every unit has a function that takes time, so that samples fall into all of them."""
import os
import sys

UNIT = """
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
namespace unit{n} {{
struct Key {{ int a; std::string b; bool operator<(const Key &o) const {{ return std::tie(a, b) < std::tie(o.a, o.b); }} }};
template <int N> struct Box {{ std::variant<int, std::string, std::vector<Key>> value; std::array<int, N + 1> more; }};
template <int N> std::size_t fill(std::size_t x) {{
    std::map<Key, Box<N>> m;
    std::set<std::tuple<int, std::string, Key>> s;
    std::unordered_map<std::string, std::shared_ptr<Box<N>>> u;
    for (int i = 0; i < 6; i++) {{
        Key key{{int(x % 7) + i, std::to_string(i * N)}};
        m[key].value = std::vector<Key>{{key}};
        s.insert({{i, key.b, key}});
        u[key.b] = std::make_shared<Box<N>>();
    }}
    std::vector<std::size_t> v(20 + N);
    std::iota(v.begin(), v.end(), x);
    std::sort(v.begin(), v.end(), [x](auto a, auto b) {{ return (a * 2654435761u ^ x) % 101 < (b * 2654435761u ^ x) % 101; }});
    std::function<std::size_t(std::size_t)> f = [&](std::size_t y) {{ return y + m.size() + s.size() + u.size(); }};
    return std::accumulate(v.begin(), v.end(), std::size_t(0), [&](auto a, auto b) {{ return a + f(b); }});
}}
std::size_t run(std::size_t x) {{
    std::ostringstream out;
    out << fill<{n}>(x) + fill<{n} + 100>(x + 1);
    static const std::regex digits("[0-9]+");
    return std::regex_search(out.str(), digits) + out.str().size();
}}
}}
"""


def main():
    folder, units = sys.argv[1], int(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    for n in range(units):
        with open(os.path.join(folder, f"unit{n}.cpp"), "w", encoding="ascii") as file:
            file.write("#include <array>\n" + UNIT.format(n=n))
    with open(os.path.join(folder, "main.cpp"), "w", encoding="ascii") as file:
        file.write("#include <chrono>\n#include <cstdlib>\n#include <cstddef>\n")
        file.writelines(f"namespace unit{n} {{ std::size_t run(std::size_t x); }}\n" for n in range(units))
        file.write("int main(int argc, char **argv) {\n    volatile std::size_t sink = 0;\n    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 5);\n"
                   "    for (std::size_t i = 0; std::chrono::steady_clock::now() < end; i++) {\n")
        file.writelines(f"        sink = sink + unit{n}::run(i);\n" for n in range(units))
        file.write("    }\n}\n")


if __name__ == "__main__":
    main()
