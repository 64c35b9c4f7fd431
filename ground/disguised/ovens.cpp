// defect: the baker sleeps for a millisecond again and again until both ovens are done, instead of waiting for them
// kinds: sleep-within-step, polling, fixed-sleep-each-cycle
// guilty: ovens::Bakery::Await
// build: -O2 -g
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace ovens {
struct Bakery {
    std::mutex mutex;
    std::condition_variable begin, end;
    std::atomic<int> left{0};
    long batch = 0;
    double heat[2] = {}, dough = 0;
    bool slow;
    explicit Bakery(bool slow) : slow(slow) {}
    __attribute__((noinline)) void Bake(int oven, long at) {
        for (int i = 0; i < 40000 + static_cast<int>(at * 7919 % 30000); ++i) heat[oven] += std::sin(i * 0.01 + at);
    }
    void Oven(int oven) {
        for (long seen = 0;;) {
            {
                std::unique_lock<std::mutex> lock(mutex);
                begin.wait(lock, [&] { return batch != seen; });
                seen = batch;
            }
            Bake(oven, seen);
            std::lock_guard<std::mutex> lock(mutex);
            if (--left == 0) end.notify_one();
        }
    }
    __attribute__((noinline)) void Await() {
        if (slow) {
            while (left.load() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return;
        }
        std::unique_lock<std::mutex> lock(mutex);
        end.wait(lock, [&] { return left == 0; });
    }
    __attribute__((noinline)) void Knead(long at) {
        for (int i = 0; i < 12000; ++i) dough += std::cos(i * 0.02 + at);
    }
};
} // namespace ovens

int main(int argc, char **argv) {
    ovens::Bakery bakery(argc > 1 && !std::strcmp(argv[1], "slow"));
    std::vector<std::thread> threads;
    for (int oven = 0; oven < 2; ++oven) threads.emplace_back([&, oven] { bakery.Oven(oven); });
    for (long at = 1;; ++at) {
        bakery.Knead(at);
        {
            std::lock_guard<std::mutex> lock(bakery.mutex);
            bakery.left = 2;
            bakery.batch = at;
        }
        bakery.begin.notify_all();
        bakery.Await();
    }
}
