// defect: handles to shared particles are passed by value through three calls for each contact
// kinds: references-counted-each-step
// guilty: hopper::Push, hopper::Friction, hopper::Contact, hopper::Step
// build: -O2 -g
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace hopper {
struct Particle { double x = 0, v = 0; };
using Handle = std::shared_ptr<Particle>;
__attribute__((noinline)) void Push(Handle a, Handle b) { a->v += 1e-6 * (b->x - a->x); }
__attribute__((noinline)) void Friction(Handle a, Handle b) { b->v -= 1e-6 * (a->v - b->v); Push(a, b); }
__attribute__((noinline)) void Contact(Handle a, Handle b) { Friction(a, b); }
__attribute__((noinline)) void Plain(Particle &a, Particle &b) { b.v -= 1e-6 * (a.v - b.v); a.v += 1e-6 * (b.x - a.x); }
__attribute__((noinline)) void Step(std::vector<Handle> &all, bool by_value) {
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (by_value) Contact(all[i - 1], all[i]); else Plain(*all[i - 1], *all[i]);
        all[i]->x += std::sin(all[i]->v);
    }
}
}

int main(int argc, char **argv) {
    std::vector<hopper::Handle> all;
    for (int i = 0; i < 5000; ++i) all.push_back(std::make_shared<hopper::Particle>());
    std::thread idle([] { std::this_thread::sleep_for(std::chrono::hours(1)); });
    for (;;) hopper::Step(all, argc > 1 && !std::strcmp(argv[1], "slow"));
}
