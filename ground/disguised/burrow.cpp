// defect: each chamber asks the one above it for its depth, by a virtual function, up to the surface; a pass from the top would do
// kinds: chain-climbed-each-time
// guilty: burrow::Chamber::Depth, burrow::Tunnel::Depth, burrow::Warren::Measure
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace burrow {
struct Chamber {
    virtual ~Chamber() = default;
    virtual double Depth() const { return 0; }
    double slope = 0.1, depth = 0;
};
struct Tunnel : Chamber {
    explicit Tunnel(const Chamber *above) : above_(above) {}
    double Depth() const override { return above_->Depth() + std::sqrt(slope * slope + 0.01); }
    double FromAbove() const { return above_->depth + std::sqrt(slope * slope + 0.01); }

private:
    const Chamber *above_;
};
struct Warren {
    Chamber surface;
    std::vector<std::unique_ptr<Tunnel>> tunnels;
    explicit Warren(int number) {
        for (int i = 0; i < number; ++i) tunnels.push_back(std::make_unique<Tunnel>(i % 40 ? (Chamber *)tunnels.back().get() : &surface));
    }
    __attribute__((noinline)) double Measure(bool climbs) {
        double deepest = 0;
        for (auto &one : tunnels) {
            one->depth = climbs ? one->Depth() : one->FromAbove();
            deepest = std::max(deepest, one->depth);
        }
        return deepest;
    }
    __attribute__((noinline)) void Rain(double t) {
        for (std::size_t i = 0; i < tunnels.size(); ++i) tunnels[i]->slope = 0.1 + 0.01 * std::sin(t + i) * std::cos(t * 0.3 + i);
    }
};
} // namespace burrow

int main(int argc, char **argv) {
    bool climbs = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    burrow::Warren warren(800);
    double sum = 0;
    for (long step = 0; step != steps; ++step) {
        warren.Rain(step * 0.01);
        sum += warren.Measure(climbs);
    }
    std::printf("%g\n", sum);
}
