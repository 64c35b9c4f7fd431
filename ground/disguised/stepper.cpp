// defect: the kind of each machine part is found by dynamic casts, in each step
// kinds: dynamic-casts-each-step
// guilty: parts::Machine::Step, parts::Machine::Force
// build: -O2 -g
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace parts {
struct Part { virtual ~Part() = default; double at = 1; int kind = 0; };
struct Spring : Part { double k = 2; };
struct Rod : Part { double length = 3; };
struct Tyre : Rod { double grip = 4; };
struct Machine {
    std::vector<std::unique_ptr<Part>> parts;
    bool casts;
    __attribute__((noinline)) double Force(Part &part) {
        if (casts) {
            if (auto *tyre = dynamic_cast<Tyre *>(&part)) return tyre->grip;
            if (auto *spring = dynamic_cast<Spring *>(&part)) return spring->k;
            if (auto *rod = dynamic_cast<Rod *>(&part)) return rod->length;
            return 0;
        }
        return part.kind + 2;
    }
    __attribute__((noinline)) void Step() { for (auto &part : parts) { part->at += 1e-3 * std::sin(part->at * Force(*part)); part->at += 1e-3 * std::cos(part->at); } }
};
}

int main(int argc, char **argv) {
    parts::Machine machine;
    machine.casts = argc > 1 && !std::strcmp(argv[1], "slow");
    for (int i = 0; i < 3000; ++i) {
        if (i % 3 == 0) machine.parts.push_back(std::make_unique<parts::Spring>());
        else if (i % 3 == 1) machine.parts.push_back(std::make_unique<parts::Rod>());
        else machine.parts.push_back(std::make_unique<parts::Tyre>());
        machine.parts.back()->kind = i % 3;
    }
    for (;;) machine.Step();
}
