// defect: sprites that hardly move are sorted in each step
// kinds: sort-each-step
// guilty: sim::Camera::Draw, sim::Camera::Order
#include <algorithm>
#include <ranges>
#include "loop.hpp"

namespace sim {
struct Sprite {
    double depth;
    int id;
};

class Camera {
public:
    Camera(int number, bool slow) : slow_(slow) {
        for (int i = 0; i < number; ++i) sprites_.push_back({std::sin(i * 1.7) * 100, i});
        Order();
    }
    void Draw(long step) {
        Sprite &moved = sprites_[step % sprites_.size()];
        moved.depth += 1e-6;
        if (slow_) Order();
        double light = 0;
        for (const Sprite &sprite : sprites_) light += std::exp(-sprite.depth * 0.01);
        sink = light;
    }

private:
    void Order() { std::ranges::stable_sort(sprites_, std::ranges::greater{}, &Sprite::depth); }
    std::vector<Sprite> sprites_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Camera camera(6000, sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        camera.Draw(step);
        bodies.Advance(5);
    });
}
