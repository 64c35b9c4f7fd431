// defect: each gear's thread adds its wear to one total under one lock, and computes the wear while it holds it
// kinds: lock-wait
// guilty: Gearbox::turn, Gearbox::wear
// build: -O2 -g
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

struct Gearbox {
    std::mutex mutex;
    double total = 0;
    bool inside;
    __attribute__((noinline)) double wear(int gear, long at) {
        double sum = 0;
        for (int i = 0; i < 3000; ++i) sum += std::sin(gear * at + i);
        return sum;
    }
    __attribute__((noinline)) void turn(int gear, long at) {
        if (inside) { std::lock_guard<std::mutex> guard(mutex); total += wear(gear, at); return; }
        double own = wear(gear, at);
        std::lock_guard<std::mutex> guard(mutex);
        total += own;
    }
};

int main(int argc, char **argv) {
    Gearbox box;
    box.inside = argc > 1 && !std::strcmp(argv[1], "slow");
    std::vector<std::thread> gears;
    for (int gear = 0; gear < 4; ++gear) gears.emplace_back([&, gear] { for (long at = 0;; ++at) box.turn(gear, at); });
    for (auto &gear : gears) gear.join();
}
