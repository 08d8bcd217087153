// Four threads match log lines with std::regex and count what they find in a table that one lock guards. Each writes the table out while it holds
// the lock, so the others queue up behind it. usage: convoy SECONDS
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <pthread.h>
#include <regex>
#include <string>
#include <thread>
#include <vector>

static std::mutex table_lock;
static std::map<std::string, long> table;

__attribute__((noinline)) static void write_table_out() {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // a slow disk
}

__attribute__((noinline)) static void count_under_lock(const std::string &word) {
    std::lock_guard<std::mutex> guard(table_lock);
    table[word]++;
    write_table_out();
}

__attribute__((noinline)) static bool match_line(const std::regex &pattern, const std::string &line, std::string &word) {
    std::smatch found;
    if (!std::regex_search(line, found, pattern)) return false;
    word = found[1];
    return true;
}

static void work(int number, const std::atomic<bool> &stop) {
    pthread_setname_np(pthread_self(), ("worker-" + std::to_string(number)).c_str());
    std::regex pattern("([a-z]+)[0-9]*=([a-z0-9]*)x+y$");
    std::string line = "time=12 level=info user=someone path=/a/b/c answer=42 note=";
    for (int i = 0; i < 8; i++) line += "nothing in particular " + std::to_string(i * number) + " ";
    line += "last" + std::to_string(number) + "=aaaxxxy";
    for (std::string word; !stop;)
        for (int i = 0; i < 20 && !stop; i++)
            if (match_line(pattern, line, word) && i == 19) count_under_lock(word);
}

int main(int argc, char **argv) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(work, i, std::cref(stop));
    std::this_thread::sleep_for(std::chrono::duration<double>(argc > 1 ? atof(argv[1]) : 2));
    stop = true;
    for (auto &thread : threads) thread.join();
    return table.empty();
}
