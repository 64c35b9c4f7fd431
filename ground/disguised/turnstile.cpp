// defect: a gate thread waits for the next visitor by asking two flags again and again
// kinds: busy-wait
// guilty: gate::Turnstile::Next, gate::Sequenced::Next, gate::Run
// build: -O2 -g
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace gate {
struct Source { virtual ~Source() = default; virtual long Next(long last) = 0; };
struct Sequenced : Source {
    std::atomic<long> sequence{0};
    std::atomic<bool> closed{false};
    bool spins;
    long Next(long last) override {
        if (!spins) { sequence.wait(last); return sequence.load(); }
        while (sequence.load(std::memory_order_acquire) == last && !closed.load(std::memory_order_relaxed)) {}
        return sequence.load();
    }
};
__attribute__((noinline)) double Run(Source &source, std::atomic<bool> &stop) {
    double sum = 0;
    for (long last = 0; !stop; ) { last = source.Next(last); for (int i = 0; i < 400; ++i) sum += std::sqrt(last + i); }
    return sum;
}
}
int main(int argc, char **argv) {
    gate::Sequenced source;
    source.spins = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::atomic<bool> stop{false};
    double sum = 0;
    std::thread consumer([&] { sum = gate::Run(source, stop); });
    double crowd = 0;
    for (long step = 1; step != steps; ++step) {
        for (int i = 0; i < 30000; ++i) crowd += std::cos(i * 0.001 + crowd * 1e-9);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        source.sequence = step; source.sequence.notify_one();
    }
    stop = true; source.sequence = -1; source.closed = true; source.sequence.notify_one();
    consumer.join();
    std::printf("%g %g\n", sum, crowd);
}
