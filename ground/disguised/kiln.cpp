// defect: each tile's heat is asked through its neighbours' chain of layers again, instead of once from the bottom
// kinds: chain-climbed-each-time, list-search
// guilty: kiln::Layer::Heat, kiln::Oven::Fire
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

namespace kiln {
struct Layer {
    double loss = 0.01, heat = 0, sum = 0;
    const Layer *below = nullptr;
    double Heat(double base) const { double heat = base; for (const Layer *at = this; at; at = at->below) heat -= at->loss; return heat; }
};
struct Oven {
    std::deque<Layer> layers;
    bool climbs;
    __attribute__((noinline)) double Fire(double base) {
        double sum = 0;
        for (auto &one : layers) {
            one.heat = climbs ? one.Heat(base) : (one.below ? one.below->heat : base) - one.loss;
            sum += one.heat;
        }
        return sum;
    }
    __attribute__((noinline)) double Smoke(double t) { double sum = 0; for (int i = 0; i < 1200; ++i) sum += std::exp(-std::fabs(std::sin(t + i))); return sum; }
};
}
int main(int argc, char **argv) {
    kiln::Oven oven;
    oven.climbs = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    for (int i = 0; i < 240; ++i) { oven.layers.emplace_back(); if (i) oven.layers[i].below = &oven.layers[i - 1]; }
    double sum = 0;
    for (long step = 0; step != steps; ++step) { sum += oven.Fire(900 + step % 5); sum += oven.Smoke(step * 0.01); }
    std::printf("%g\n", sum);
}
