// A pool of std::threads with a queue, std::async, thread_local, exceptions that go from thread to thread.
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
class Pool {
    std::mutex lock;
    std::condition_variable changed;
    std::queue<std::function<void()>> tasks;
    std::vector<std::thread> threads;
    bool ends = false;
    void run() {
        for (;;) {
            std::unique_lock<std::mutex> guard(lock);
            changed.wait(guard, [this] { return ends || !tasks.empty(); });
            if (tasks.empty())
                return;
            auto task = std::move(tasks.front());
            tasks.pop();
            guard.unlock();
            task();
        }
    }

  public:
    explicit Pool(int count) {
        for (int i = 0; i < count; i++)
            threads.emplace_back([this] { run(); });
    }
    template <class F> auto add(F function) -> std::future<decltype(function())> {
        auto task = std::make_shared<std::packaged_task<decltype(function())()>>(function);
        auto result = task->get_future();
        {
            std::lock_guard<std::mutex> guard(lock);
            tasks.emplace([task] { (*task)(); });
        }
        changed.notify_one();
        return result;
    }
    ~Pool() {
        {
            std::lock_guard<std::mutex> guard(lock);
            ends = true;
        }
        changed.notify_all();
        for (auto &thread : threads)
            thread.join();
    }
};
static thread_local std::map<int, std::string> seen;
static int work(int n) {
    for (int i = 0; i < n; i++)
        seen[i * n % 17] += std::to_string(i);
    if (n % 5 == 4)
        throw std::runtime_error("four");
    return (int)seen.size();
}
int main() {
    int sum = 0, thrown = 0;
    {
        Pool pool(3);
        std::vector<std::future<int>> results;
        for (int i = 0; i < 30; i++)
            results.push_back(pool.add([i] { return work(i); }));
        for (auto &result : results)
            try {
                sum += result.get();
            } catch (const std::runtime_error &) {
                thrown++;
            }
    }
    std::vector<std::future<int>> others;
    for (int i = 0; i < 6; i++)
        others.push_back(std::async(std::launch::async, work, i * 5));
    for (auto &other : others)
        sum += other.get() > 0;
    std::printf("%d\n", thrown);
    return sum < 0;
}
