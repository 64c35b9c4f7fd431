// defect: the broad phase tests all pairs of boxes, though nearly all are rubble that lies still
// kinds: full-scan-each-step, list-search, called-very-often, superlinear-lookup
// guilty: rubble::BroadPhase::Pairs, rubble::Box::Overlaps, rubble::World::Step
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace rubble {
struct Box {
    float min[3], max[3];
    bool is_static;
    bool Overlaps(const Box &other) const {
        for (int axis = 0; axis < 3; ++axis)
            if (max[axis] < other.min[axis] || other.max[axis] < min[axis]) return false;
        return true;
    }
};
struct Pair { int first, second; };

class BroadPhase {
public:
    bool skips_static = false;
    void Pairs(const std::vector<Box> &boxes, size_t movers, std::vector<Pair> &pairs) const {
        pairs.clear();
        size_t firsts = skips_static ? movers : boxes.size();
        for (size_t i = 0; i < firsts; ++i)
            for (size_t j = i + 1; j < boxes.size(); ++j)
                if (boxes[i].Overlaps(boxes[j]) && !(boxes[i].is_static && boxes[j].is_static)) pairs.push_back({int(i), int(j)});
    }
};

class World {
public:
    BroadPhase broad_phase;
    World(size_t movers, size_t rubble) : movers_(movers) {
        for (size_t i = 0; i < movers + rubble; ++i) {
            float x = float(i * 37 % 200), z = float(i * 91 % 180);
            boxes_.push_back({{x, 0, z}, {x + 0.9f, 1, z + 0.9f}, i >= movers});
        }
    }
    void Step(double time) {
        broad_phase.Pairs(boxes_, movers_, pairs_);
        for (const Pair &pair : pairs_) Solve(boxes_[size_t(pair.first)], boxes_[size_t(pair.second)]);
        for (size_t i = 0; i < movers_; ++i) {
            float shift = float(std::sin(time + double(i)) * 0.01);
            for (int k = 0; k < 40; ++k) shift += float(std::cos(shift * k) * 1e-4);
            boxes_[i].min[0] += shift; boxes_[i].max[0] += shift;
        }
    }
    double impulse = 0;
private:
    void Solve(const Box &a, const Box &b) {
        for (int i = 1; i < 30; ++i) impulse += std::sqrt(std::abs(a.max[0] - b.min[0]) + i) * 1e-3;
    }
    size_t movers_;
    std::vector<Box> boxes_;
    std::vector<Pair> pairs_;
};
} // namespace rubble

int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    rubble::World world(150, 850);
    world.broad_phase.skips_static = !(argc > 1 && !std::strcmp(argv[1], "slow"));
    for (long step = 0; step != steps; ++step) world.Step(double(step) * 0.01);
    std::printf("%g\n", world.impulse);
}
