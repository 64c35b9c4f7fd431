// defect: the helper thread spins until the main loop has new droplets, instead of waiting
// kinds: busy-wait
// guilty: spray::Helper::Run, spray::Helper::Await, main::{lambda#1}::operator()
// build: -O2 -g -fomit-frame-pointer
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>
#include "stepscope.h"

namespace spray {
struct Helper {
    bool spins;
    std::atomic<long> wanted{0}, done{0};
    std::mutex mutex; std::condition_variable more;
    std::vector<double> drops = std::vector<double>(2000, 0.3);
    __attribute__((noinline)) void Await(long round) {
        if (spins) { while (wanted.load(std::memory_order_acquire) < round) {} return; }
        std::unique_lock<std::mutex> lock(mutex);
        more.wait(lock, [&] { return wanted.load() >= round; });
    }
    void Run() {
        for (long round = 1;; ++round) {
            Await(round);
            for (double &drop : drops) drop += 1e-4 * std::sin(drop);
            done = round;
        }
    }
    void Ask(long round) { { std::lock_guard<std::mutex> lock(mutex); wanted = round; } more.notify_one(); }
};
}

int main(int argc, char **argv) {
    spray::Helper helper;
    helper.spins = argc > 1 && !std::strcmp(argv[1], "slow");
    std::thread thread([&] { helper.Run(); });
    volatile double at = 0;
    for (long step = 1;; ++step) {
        STEPSCOPE_STEP(step * 0.001);
        helper.Ask(step);
        for (int i = 0; i < 20000; ++i) at = at + 1e-5 * std::sin(at + i);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}
