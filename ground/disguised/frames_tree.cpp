// defect: the chain of frames above each link is climbed again for each look-up
// kinds: chain-climbed-each-time
// guilty: sim::Frames::Global
#include "loop.hpp"

namespace sim {
struct Pose {
    double x, y, angle;
};

Pose Join(const Pose &a, const Pose &b) {
    double c = std::cos(a.angle), s = std::sin(a.angle);
    return {a.x + c * b.x - s * b.y, a.y + s * b.x + c * b.y, a.angle + b.angle};
}

class Frames {
public:
    Frames(int number, bool slow) : local_(number), global_(number), slow_(slow) {
        for (int i = 0; i < number; ++i) local_[i] = {0.1, 0.01 * i, 0.001 * i};
    }
    /// Frames are chains of 40.
    static int Parent(int frame) { return frame % 40 == 0 ? -1 : frame - 1; }
    Pose Global(int frame) const {
        Pose pose = local_[frame];
        for (int above = Parent(frame); above >= 0; above = Parent(above)) pose = Join(local_[above], pose);
        return pose;
    }
    void Update() {
        for (std::size_t i = 0; i < local_.size(); ++i) {
            local_[i].angle += 1e-5;
            if (slow_) global_[i] = Global(i);
            else global_[i] = Parent(i) < 0 ? local_[i] : Join(global_[Parent(i)], local_[i]);
        }
        sink = global_.back().x;
    }

private:
    std::vector<Pose> local_, global_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Frames frames(400, sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long) {
        bodies.Advance(5);
        frames.Update();
    });
}
