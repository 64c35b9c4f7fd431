// defect: each stone's callback asks for the time, though all of a round could share one
// kinds: clock-read-often
// guilty: domino::Row::Push, domino::Wall::Now, domino::Fall
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace domino {
struct Wall { static double Now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); } };
template <class Clock> struct Row {
    std::vector<std::function<void(double)>> stones;
    bool each;
    __attribute__((noinline)) void Push() {
        double once = Clock::Now();
        for (auto &stone : stones) stone(each ? Clock::Now() : once);
    }
};
}
int main(int argc, char **argv) {
    domino::Row<domino::Wall> row;
    row.each = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::vector<double> angle(3000);
    for (auto &one : angle) row.stones.push_back([&one](double now) { one = one * 0.99 + std::sin(std::fmod(now, 6.28) + one) * std::exp(-one); });
    for (long step = 0; step != steps; ++step) row.Push();
    std::printf("%g\n", angle[7]);
}
