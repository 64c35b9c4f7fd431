// defect: the number of trolls in a list is counted from its start for each troll's share of the toll
// kinds: list-search, called-very-often, full-scan-each-step, superlinear-lookup, chain-climbed-each-time
// guilty: trolls::Bridge::Share, trolls::Bridge::Pay
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <forward_list>
#include <iterator>

namespace trolls {
struct Troll { double purse = 0, hunger = 1, mood = 0; };
class Bridge {
public:
    Bridge(int number, bool counts) : counts_(counts), number_(number) {
        for (int i = 0; i < number; ++i) trolls_.push_front({i * 0.1, 1.0 + i % 3, 0});
    }
    __attribute__((noinline)) double Share(double toll) const {
        return toll / (counts_ ? std::distance(trolls_.begin(), trolls_.end()) : number_);
    }
    __attribute__((noinline)) void Pay(double toll) {
        for (Troll &one : trolls_) one.purse += Share(toll) * one.hunger;
    }
    __attribute__((noinline)) void Eat(double t) {
        for (Troll &one : trolls_)
            for (int k = 0; k < 5; ++k) one.mood += std::sin(t + one.purse + k) * std::exp(-one.hunger);
    }
    double Sum() const { double sum = 0; for (auto &one : trolls_) sum += one.mood; return sum; }
private:
    bool counts_;
    long number_;
    std::forward_list<Troll> trolls_;
};
} // namespace trolls

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    trolls::Bridge bridge(700, slow);
    for (long step = 0; step != steps; ++step) {
        bridge.Pay(step % 7);
        bridge.Eat(step * 0.01);
    }
    std::printf("%g\n", bridge.Sum());
}
