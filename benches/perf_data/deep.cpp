// Stacks of some sixty frames that differ, with inlined functions at their leaves: what perf.data of a simulator looks
// like. `deep SECONDS` keeps every CPU busy for that long.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

namespace sim {

struct World {
    std::vector<double> heights = std::vector<double>(4096, 1.0);
    std::uint64_t random = 88172645463325252u;

    std::uint64_t next() {
        random ^= random << 13;
        random ^= random >> 7;
        return random ^= random << 17;
    }
};

inline double smooth(World &world, std::size_t at) {
    double sum = 0;
    for (std::size_t i = 0; i < 64; i++) sum += world.heights[(at + i) % world.heights.size()] * 0.0156;
    return world.heights[at] = sum;
}

[[gnu::noinline]] double contact(World &world) {
    double sum = 0;
    for (int i = 0; i < 8; i++) sum += smooth(world, world.next() % world.heights.size());
    return sum;
}

[[gnu::noinline]] double integrate(World &world) {
    double sum = std::accumulate(world.heights.begin(), world.heights.begin() + 512, 0.0);
    return sum + smooth(world, world.next() % world.heights.size());
}

template <int Depth> struct Layer {
    [[gnu::noinline]] static double update(World &world) {
        // Two ways down: one in eight leaves early, the others go on.
        double below = world.next() % 8 == 0 ? contact(world) : Layer<Depth - 1>::update(world);
        return below * 0.999 + smooth(world, Depth);
    }
};

template <> struct Layer<0> {
    [[gnu::noinline]] static double update(World &world) { return contact(world) + integrate(world); }
};

// The frames above the layers: never optimised away, as each adds to what it gets.
template <int Depth> [[gnu::noinline]] double scene(World &world) {
    if constexpr (Depth == 0) {
        return Layer<8>::update(world);
    } else {
        return scene<Depth - 1>(world) + 1e-9;
    }
}

}  // namespace sim

int main(int count, char **arguments) {
    double seconds = count > 1 ? std::atof(arguments[1]) : 1;
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    auto work = [end] {
        sim::World world;
        double sum = 0;
        while (std::chrono::steady_clock::now() < end) {
            for (int i = 0; i < 100; i++) sum += sim::scene<50>(world);
        }
        return static_cast<int>(sum);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); i++) threads.emplace_back(work);
    volatile int result = work();
    for (auto &thread : threads) thread.join();
    return result & 0;
}
