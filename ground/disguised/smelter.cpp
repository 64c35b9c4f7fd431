// defect: a lock of its own that spins is held while an ingot is poured
// kinds: busy-wait, lock-wait
// guilty: smelt::Tongs::Take, smelt::Furnace::Pour, smelt::Guard::Guard, smelt::Worker
// build: -O2 -g
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace smelt {
struct Tongs {
    std::atomic_flag taken = ATOMIC_FLAG_INIT;
    void Take() { while (taken.test_and_set(std::memory_order_acquire)) while (taken.test(std::memory_order_relaxed)) __builtin_ia32_pause(); }
    void Free() { taken.clear(std::memory_order_release); }
};
struct Furnace {
    Tongs tongs;
    bool holds;
    double level = 0;
    __attribute__((noinline)) double Heat(int from) { double sum = 0; for (int i = 0; i < 6000; ++i) sum += std::sqrt(from + i * 0.5); return sum; }
    __attribute__((noinline)) void Pour(int from) {
        if (holds) { tongs.Take(); level = level * 0.5 + Heat(from); tongs.Free(); }
        else { double heat = Heat(from); tongs.Take(); level = level * 0.5 + heat; tongs.Free(); }
    }
};
__attribute__((noinline)) double Mould(int seed) { double sum = 0; for (int i = 0; i < 2500; ++i) sum += std::sin(seed + i * 0.01); return sum; }
}
int main(int argc, char **argv) {
    smelt::Furnace furnace;
    furnace.holds = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::vector<std::thread> workers;
    std::atomic<double> sum{0};
    for (int worker = 0; worker < 2; ++worker)
        workers.emplace_back([&, worker] { double own = 0; for (long step = 0; step != steps; ++step) { own += smelt::Mould(int(step)); furnace.Pour(int(step) + worker); } sum = sum + own; });
    for (auto &one : workers) one.join();
    std::printf("%g %g\n", furnace.level, sum.load());
}
