// defect: a filter makes a random generator for each particle
// kinds: generator-seeded-each-step
// guilty: sim::Filter::Noise, sim::Filter::Move
#include <random>
#include "loop.hpp"

namespace sim {
class Filter {
public:
    Filter(int number, bool slow) : particles_(number), slow_(slow) {}
    double Noise(int seed) {
        if (slow_) {
            std::mt19937 generator(seed);
            return std::normal_distribution<double>(0.0, 0.1)(generator);
        }
        return std::normal_distribution<double>(0.0, 0.1)(generator_);
    }
    __attribute__((noinline)) void Move(int step) {
        for (std::size_t i = 0; i < particles_.size(); ++i) particles_[i] += Noise(step + i);
    }

private:
    std::vector<double> particles_;
    std::mt19937 generator_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Filter filter(60, sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        bodies.Advance(8);
        filter.Move(step);
    });
}
