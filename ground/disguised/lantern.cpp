// defect: each tick asks all lamps whether they are lit, and three of them are
// kinds: full-scan-each-step, list-search
// guilty: lamp::Street::Tick, lamp::Street::Flicker
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

namespace lamp {
struct Lamp { double x, y, watts; bool lit; int colour; double heat, age; };
struct Street {
    std::deque<Lamp> lamps;
    std::vector<Lamp *> lit;
    bool scans;
    __attribute__((noinline)) double Flicker(double t) {
        double sum = 0;
        auto glow = [&](Lamp &one) { one.heat = one.heat * 0.9 + std::sin(t + one.x); sum += one.heat; };
        if (scans) { for (auto &one : lamps) if (one.lit) glow(one); }
        else for (auto *one : lit) glow(*one);
        return sum;
    }
    __attribute__((noinline)) double Tick(double t) {
        double sum = Flicker(t);
        for (int i = 0; i < 800; ++i) sum += std::exp(-i * 0.01) * std::cos(t + i);
        return sum;
    }
};
}
int main(int argc, char **argv) {
    lamp::Street street;
    street.scans = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    for (int i = 0; i < 20000; ++i) street.lamps.push_back({i * 0.1, 0, 60, i % 7000 == 5, 0, 0, 0});
    for (auto &one : street.lamps) if (one.lit) street.lit.push_back(&one);
    double sum = 0;
    for (long step = 0; step != steps; ++step) sum += street.Tick(step * 0.01);
    std::printf("%g\n", sum);
}
