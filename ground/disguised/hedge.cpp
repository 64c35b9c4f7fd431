// defect: each twig asks its parent for its place, which asks its own parent, up to the root; one walk from the root would do
// kinds: chain-climbed-each-time
// guilty: hedge::Twig::Place
// build: -O2 -g
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace hedge {
struct Twig {
    Twig *parent = nullptr;
    std::vector<Twig *> children;
    double bend = 0.01, place[3] = {};
    __attribute__((noinline)) void Place(double *into) const {
        if (parent) parent->Place(into);
        else into[0] = into[1] = into[2] = 0;
        into[0] += std::cos(bend + into[2]);
        into[1] += std::sin(bend + into[2]);
        into[2] += bend;
    }
    __attribute__((noinline)) void Walk(const double *from) {
        place[0] = from[0] + std::cos(bend + from[2]);
        place[1] = from[1] + std::sin(bend + from[2]);
        place[2] = from[2] + bend;
        for (Twig *child : children) child->Walk(place);
    }
};

struct Hedge {
    std::vector<std::unique_ptr<Twig>> twigs;
    Hedge() {
        for (int bush = 0; bush < 60; ++bush)
            for (int i = 0; i < 24; ++i) {
                twigs.push_back(std::make_unique<Twig>());
                if (i == 0) continue;
                Twig *parent = twigs[twigs.size() - 2].get();
                twigs.back()->parent = parent;
                parent->children.push_back(twigs.back().get());
            }
    }
    __attribute__((noinline)) void Wind(double t) {
        for (auto &twig : twigs) twig->bend = 0.01 * std::sin(t + twig->place[0]);
    }
    void Season(double t, bool slow) {
        Wind(t);
        const double root[3] = {};
        for (auto &twig : twigs) {
            if (slow) twig->Place(twig->place);
            else if (!twig->parent) twig->Walk(root);
        }
    }
};
} // namespace hedge

int main(int argc, char **argv) {
    hedge::Hedge hedge;
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    for (long at = 0;; ++at) hedge.Season(at * 0.01, slow);
}
