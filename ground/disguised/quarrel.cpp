// defect: built without optimisation
// kinds: slow-build
// guilty: -
// build: -O0 -g
// mended: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

namespace quarrel {
struct Vec {
    double x = 0, y = 0;
    Vec operator+(const Vec &o) const { return {x + o.x, y + o.y}; }
    Vec operator-(const Vec &o) const { return {x - o.x, y - o.y}; }
    Vec operator*(double s) const { return {x * s, y * s}; }
    double Length() const { return std::sqrt(x * x + y * y); }
};
struct Agent { Vec place, speed; int party = 0; };

class Crowd {
public:
    explicit Crowd(int number) {
        for (int i = 0; i < number; ++i) agents_.push_back(std::make_unique<Agent>(Agent{{i % 20 * 1.0, i / 20 * 1.0}, {}, i % 3}));
    }
    void Step(double dt) {
        std::vector<Vec> forces(agents_.size());
        for (size_t i = 0; i < agents_.size(); ++i)
            for (size_t j = 0; j < agents_.size(); ++j)
                if (i != j) forces.at(i) = forces.at(i) + Force(*agents_[i], *agents_[j]);
        for (size_t i = 0; i < agents_.size(); ++i) {
            Agent &one = *agents_[i];
            one.speed = (one.speed + forces[i] * dt) * 0.99;
            one.place = one.place + one.speed * dt;
        }
    }
    double X() const { return agents_.front()->place.x; }
private:
    static Vec Force(const Agent &one, const Agent &other) {
        Vec between = other.place - one.place;
        double distance = std::max(between.Length(), 0.1);
        return between * ((one.party == other.party ? 0.01 : -0.02) / (distance * distance));
    }
    std::vector<std::unique_ptr<Agent>> agents_;
};
} // namespace quarrel

int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    quarrel::Crowd crowd(300);
    for (long step = 0; step != steps; ++step) crowd.Step(0.01);
    std::printf("%g\n", crowd.X());
}
