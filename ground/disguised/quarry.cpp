// defect: the tree of boxes for ray casts is built again in each step, though no rock of the quarry ever moves
// kinds: unchanged-work, sort-each-step, rebuilt-each-step, allocations-each-step, full-scan-each-step
// guilty: quarry::Tree::Build, quarry::Tree::Split
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace quarry {

struct Box { float low[3], high[3]; };
struct Node { Box box; int first, count, left; };

class Tree {
public:
    __attribute__((noinline)) void Build(const std::vector<Box> &rocks) {
        rocks_ = &rocks;
        order_.resize(rocks.size());
        for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = int(i);
        nodes_.clear();
        nodes_.push_back({});
        Split(0, 0, int(rocks.size()));
    }
    __attribute__((noinline)) float Cast(const float *from, const float *along) const {
        float best = 1e9f;
        int stack[64], top = 0;
        stack[top++] = 0;
        while (top) {
            const Node &node = nodes_[stack[--top]];
            if (Hit(node.box, from, along) >= best) continue;
            if (node.left < 0) {
                for (int i = node.first; i < node.first + node.count; ++i) best = std::min(best, Hit((*rocks_)[order_[i]], from, along));
                continue;
            }
            stack[top++] = node.left;
            stack[top++] = node.left + 1;
        }
        return best;
    }

private:
    static float Hit(const Box &box, const float *from, const float *along) {
        float near = 0, far = 1e9f;
        for (int k = 0; k < 3; ++k) {
            float a = (box.low[k] - from[k]) / along[k], b = (box.high[k] - from[k]) / along[k];
            near = std::max(near, std::min(a, b));
            far = std::min(far, std::max(a, b));
        }
        return near <= far ? near : 1e9f;
    }
    void Split(int at, int first, int count) {
        Box box = (*rocks_)[order_[first]];
        for (int i = first; i < first + count; ++i)
            for (int k = 0; k < 3; ++k) {
                box.low[k] = std::min(box.low[k], (*rocks_)[order_[i]].low[k]);
                box.high[k] = std::max(box.high[k], (*rocks_)[order_[i]].high[k]);
            }
        nodes_[at] = {box, first, count, -1};
        if (count <= 4) return;
        int axis = 0;
        for (int k = 1; k < 3; ++k)
            if (box.high[k] - box.low[k] > box.high[axis] - box.low[axis]) axis = k;
        float middle = 0.5f * (box.low[axis] + box.high[axis]);
        int i = first, j = first + count - 1;
        while (i <= j) {
            if ((*rocks_)[order_[i]].low[axis] < middle) ++i;
            else std::swap(order_[i], order_[j--]);
        }
        int half = i - first;
        if (half == 0 || half == count) half = count / 2;
        int left = int(nodes_.size());
        nodes_[at].left = left;
        nodes_.push_back({});
        nodes_.push_back({});
        Split(left, first, half);
        Split(left + 1, first + half, count - half);
    }
    const std::vector<Box> *rocks_ = nullptr;
    std::vector<int> order_;
    std::vector<Node> nodes_;
};

class Lidar {
public:
    __attribute__((noinline)) void Scan(const Tree &tree, const float *from, double turn) {
        for (int ring = 0; ring < 8; ++ring)
            for (int ray = 0; ray < 180; ++ray) {
                float angle = float(turn + ray * 0.0349);
                float along[3] = {std::cos(angle) + 1e-4f, std::sin(angle) + 1e-4f, -0.1f + 0.02f * ring};
                mean_ += 1e-6 * tree.Cast(from, along);
            }
    }

private:
    double mean_ = 0;
};

class Truck {
public:
    __attribute__((noinline)) void Drive(double t) {
        for (int i = 0; i < 5000; ++i) {
            angle_ += 1e-7 * std::sin(angle_ + t);
            place[0] += 1e-7f * float(std::cos(angle_));
        }
    }
    float place[3] = {0.5f, 0.5f, 2.0f};

private:
    double angle_ = 0;
};

} // namespace quarry

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    std::vector<quarry::Box> rocks;
    for (int i = 0; i < 9000; ++i) {
        float x = 100 * std::sin(i * 1.7f), y = 100 * std::cos(i * 2.3f), z = 3 * std::sin(i * 0.9f), s = 0.2f + 0.1f * std::sin(i * 0.3f);
        rocks.push_back({{x - s, y - s, z - s}, {x + s, y + s, z + s}});
    }
    quarry::Tree tree;
    tree.Build(rocks);
    quarry::Lidar lidar;
    quarry::Truck truck;
    long count = argc > 2 ? std::atol(argv[2]) : 0;
    for (long at = 0; count == 0 || at < count; ++at) {
        if (slow) tree.Build(rocks);
        truck.Drive(at * 0.01);
        lidar.Scan(tree, truck.place, at * 0.001);
    }
}
