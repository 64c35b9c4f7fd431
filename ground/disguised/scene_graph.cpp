// defect: world transforms of all nodes are computed in each step, though only a few nodes moved
// kinds: unchanged-work-each-step, full-scan-each-step
// guilty: sim::Scene::Place
#include <array>
#include "loop.hpp"

namespace sim {
struct Node {
    int parent;
    std::array<double, 4> rotation;
    std::array<double, 3> offset;
    std::array<double, 12> world;
    bool moved;
};

class Scene {
public:
    Scene(int number, bool slow) : slow_(slow) {
        for (int i = 0; i < number; ++i) {
            double half = i * 0.01;
            nodes_.push_back({i == 0 ? -1 : (i - 1) / 3, {std::cos(half), 0, 0, std::sin(half)}, {i * 0.1, 1, 0}, {}, true});
        }
    }
    void Move(long step) {
        for (int i = 0; i < 20; ++i) {
            Node &node = nodes_[nodes_.size() - 1 - (step * 20 + i) % 500];
            node.offset[0] += 0.001;
            node.moved = true;
        }
    }
    void Place() {
        for (Node &node : nodes_) {
            bool above = node.parent >= 0 && nodes_[node.parent].moved;
            node.moved = node.moved || above;
            if (!slow_ && !node.moved) continue;
            auto [w, x, y, z] = node.rotation;
            std::array<double, 12> own{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), node.offset[0],
                                       2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), node.offset[1],
                                       2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y), node.offset[2]};
            if (node.parent < 0) { node.world = own; continue; }
            const auto &p = nodes_[node.parent].world;
            for (int row = 0; row < 3; ++row)
                for (int column = 0; column < 4; ++column) {
                    double sum = column == 3 ? p[row * 4 + 3] : 0;
                    for (int k = 0; k < 3; ++k) sum += p[row * 4 + k] * own[k * 4 + column];
                    node.world[row * 4 + column] = sum;
                }
        }
        for (Node &node : nodes_) node.moved = false;
        sink = nodes_.back().world[3];
    }

private:
    std::vector<Node> nodes_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Scene scene(12000, sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        scene.Move(step);
        scene.Place();
        bodies.Advance(12);
    });
}
