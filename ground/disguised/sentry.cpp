// defect: a loop of 500 Hz waits for its next turn by yielding the CPU again and again, so one CPU is always used
// kinds: busy-wait-for-time, busy-wait
// guilty: sentry::Watch::Await, sentry::Watch::Run
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace sentry {
using Clock = std::chrono::steady_clock;
class Watch {
public:
    explicit Watch(bool yields) : yields_(yields), walls_(900) {}
    double Run(long steps) {
        double sum = 0;
        auto next = Clock::now();
        for (long step = 0; step != steps; ++step) {
            sum += Look(step * 0.002);
            next += std::chrono::milliseconds(2);
            Await(next);
        }
        return sum;
    }
private:
    __attribute__((noinline)) double Look(double t) {
        double sum = 0;
        for (int round = 0; round < 20; ++round)
            for (std::size_t i = 0; i < walls_.size(); ++i) sum += walls_[i] += 0.01 * std::sin(t + i);
        return sum;
    }
    __attribute__((noinline)) void Await(Clock::time_point time) {
        if (yields_) while (Clock::now() < time) std::this_thread::yield();
        else std::this_thread::sleep_until(time);
    }
    bool yields_;
    std::vector<double> walls_;
};
} // namespace sentry

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    sentry::Watch watch(slow);
    std::printf("%g\n", watch.Run(steps));
}
