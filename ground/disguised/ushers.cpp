// defect: the whole map of guests is copied before each step, for an undo that nobody asks for
// kinds: copies-each-step, allocations-each-step
// guilty: ushers::Hall::Save, ushers::Hall::Step, ushers::Guest::Guest
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace ushers {
struct Guest {
    std::string name;
    std::vector<int> tickets;
    double x = 0, y = 0;
};
class Hall {
public:
    Hall(int number, bool saves) : saves_(saves) {
        for (int i = 0; i < number; ++i) guests_[i * 3] = {"guest of the evening " + std::to_string(i), std::vector<int>(6, i), i * 0.1, i * 0.2};
    }
    __attribute__((noinline)) void Save() { before_ = saves_ ? guests_ : std::map<int, Guest>(); }
    __attribute__((noinline)) double Move(double t) {
        double sum = 0;
        for (auto &[id, one] : guests_) {
            for (int k = 0; k < 6; ++k) {
                one.x += 0.001 * std::sin(t + id + k);
                one.y += 0.001 * std::cos(t + one.x);
            }
            sum += one.x;
        }
        return sum;
    }
    double Step(double t) {
        Save();
        return Move(t) + before_.size();
    }
private:
    bool saves_;
    std::map<int, Guest> guests_, before_;
};
} // namespace ushers

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    ushers::Hall hall(3000, slow);
    double sum = 0;
    auto next = std::chrono::steady_clock::now();
    for (long step = 0; step != steps; ++step) {
        sum += hall.Step(step * 0.005);
        next += std::chrono::milliseconds(5);
        if (steps < 0) std::this_thread::sleep_until(next);
    }
    std::printf("%g\n", sum);
}
