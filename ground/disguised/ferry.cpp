// defect: the deck thread asks a ring of its own again and again until a car has come
// kinds: busy-wait
// guilty: ferry::Ring::Take, ferry::Ring<16u>::Take, ferry::Deck, ferry::Ring<16>::Take
// build: -O2 -g
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <semaphore>
#include <thread>

namespace ferry {
template <unsigned N> struct Ring {
    int cars[N];
    volatile unsigned head = 0, tail = 0;
    std::counting_semaphore<1024> waiting{0};
    bool spins;
    void Put(int car) { cars[head % N] = car; std::atomic_thread_fence(std::memory_order_release); head = head + 1; if (!spins) waiting.release(); }
    int Take() {
        if (!spins) waiting.acquire();
        else while (head == tail) __builtin_ia32_pause();
        std::atomic_thread_fence(std::memory_order_acquire);
        int car = cars[tail % N];
        tail = tail + 1;
        return car;
    }
};
__attribute__((noinline)) double Deck(Ring<16> &ring) {
    double weight = 0;
    for (int car; (car = ring.Take()) >= 0;) for (int i = 0; i < 2000; ++i) weight += std::sqrt(car + i);
    return weight;
}
}
int main(int argc, char **argv) {
    static ferry::Ring<16> ring;
    ring.spins = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    double weight = 0, road = 0;
    std::thread deck([&] { weight = ferry::Deck(ring); });
    for (long step = 0; step != steps; ++step) {
        for (int i = 0; i < 20000; ++i) road += std::cos(i + road * 1e-9);
        std::this_thread::sleep_for(std::chrono::microseconds(800));
        ring.Put(int(step % 1000));
    }
    ring.Put(-1);
    deck.join();
    std::printf("%g %g\n", weight, road);
}
