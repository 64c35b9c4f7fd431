// defect: the pose of each of a crane's links climbs to the root again, instead of one pass from the root down
// kinds: chain-climbed-each-time
// guilty: crane::Link::WorldHeight, crane::Boom::Poses
// build: -O2 -g
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace crane {
struct Link {
    const Link *parent = nullptr;
    double length = 0, angle = 0, height = 0;
    __attribute__((noinline)) double WorldHeight() const {
        double total = 0;
        for (const Link *at = this; at; at = at->parent) total = at->length * at->angle + total * 0.999;
        return total;
    }
};
struct Boom {
    std::vector<std::unique_ptr<Link>> links;
    bool climbs;
    __attribute__((noinline)) void Poses() {
        for (auto &link : links)
            link->height = climbs ? link->WorldHeight() : (link->parent ? link->parent->height * 0.999 : 0) + link->length * link->angle;
    }
    void Swing(double at) { for (auto &link : links) link->angle = std::sin(at + link->length); }
};
}

int main(int argc, char **argv) {
    crane::Boom boom;
    boom.climbs = argc > 1 && !std::strcmp(argv[1], "slow");
    for (int i = 0; i < 300; ++i) {
        boom.links.push_back(std::make_unique<crane::Link>());
        boom.links[i]->parent = i ? boom.links[i - 1].get() : nullptr;
        boom.links[i]->length = 1 + i * 0.01;
    }
    for (long step = 0;; ++step) { boom.Swing(step * 1e-3); boom.Poses(); }
}
