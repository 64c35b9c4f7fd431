// defect: grains are nodes of a linked list in random order of memory; each step walks it, and waits for memory at each grain
// kinds: cache-misses, memory-walked-at-random
// guilty: Bed::settle
// build: -O2 -g
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

struct Grain { Grain *next; double depth, speed; char rest[104]; };

struct Bed {
    std::vector<Grain> grains;
    Grain *first = nullptr;
    Bed(int number, bool shuffled) : grains(number) {
        std::vector<int> order(number);
        for (int i = 0; i < number; ++i) order[i] = i;
        if (shuffled) std::shuffle(order.begin(), order.end(), std::mt19937(5));
        for (int i : order) { grains[i].next = first; grains[i].depth = i * 0.1; grains[i].speed = 0; first = &grains[i]; }
    }
    __attribute__((noinline)) double settle(double dt) {
        double total = 0;
        for (Grain *grain = first; grain; grain = grain->next) {
            grain->speed += 9.81 * dt;
            grain->depth -= grain->speed * dt * 1e-9;
            total += grain->depth;
        }
        return total;
    }
};

int main(int argc, char **argv) {
    Bed bed(400000, argc > 1 && !std::strcmp(argv[1], "slow"));
    volatile double sink;
    for (;;) sink = bed.settle(1e-4);
}
