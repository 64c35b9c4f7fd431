// defect: the basins are dealt out to two workers by number, and the last worker has three times the work of the others
// kinds: barrier-imbalance
// guilty: mill::Basin::Relax, mill::Crew::Turn, mill::Crew::Work
// build: -O2 -g -std=c++20
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace mill {

class Basin {
public:
    explicit Basin(int size) : heights_(size), flow_(size) {
        for (int i = 0; i < size; ++i) heights_[i] = std::sin(i * 0.1);
    }
    __attribute__((noinline)) void Relax(double dt) {
        for (std::size_t i = 1; i + 1 < heights_.size(); ++i) flow_[i] = dt * (heights_[i - 1] - 2 * heights_[i] + heights_[i + 1]) + 1e-6 * std::sin(heights_[i]);
        for (std::size_t i = 1; i + 1 < heights_.size(); ++i) heights_[i] += flow_[i];
    }
    double level() const { return heights_[heights_.size() / 2]; }

private:
    std::vector<double> heights_, flow_;
};

class Crew {
public:
    Crew(int workers, bool uneven) : uneven_(uneven), workers_(workers), start_(workers + 1), end_(workers + 1) {
        for (int i = 0; i < 60; ++i) basins_.emplace_back(3000);
        for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i] { Work(i); });
    }
    void Turn(double dt) {
        dt_ = dt;
        start_.arrive_and_wait();
        end_.arrive_and_wait();
        for (const Basin &basin : basins_) total_ += basin.level();
    }
    double total() const { return total_; }

private:
    void Work(int number) {
        for (;;) {
            start_.arrive_and_wait();
            // 15 and 45 basins, or 30 each.
            int from = number * (uneven_ ? 15 : 30);
            int to = uneven_ ? (number == workers_ - 1 ? 60 : 15) : from + 30;
            for (int i = from; i < to; ++i) basins_[i].Relax(dt_);
            end_.arrive_and_wait();
        }
    }
    bool uneven_;
    int workers_;
    double dt_ = 0, total_ = 0;
    std::vector<Basin> basins_;
    std::barrier<> start_, end_;
    std::vector<std::thread> threads_;
};

/// The wheel that the water turns: on the main thread.
class Wheel {
public:
    __attribute__((noinline)) void Spin(double level) {
        for (int i = 0; i < 3000; ++i) angle_ += 1e-4 * std::cos(angle_ + level);
    }

private:
    double angle_ = 0;
};

} // namespace mill

int main(int argc, char **argv) {
    mill::Crew crew(2, argc > 1 && !std::strcmp(argv[1], "slow"));
    mill::Wheel wheel;
    long count = argc > 2 ? std::atol(argv[2]) : 0;
    for (long at = 0; count == 0 || at < count; ++at) {
        crew.Turn(0.01);
        wheel.Spin(crew.total());
    }
    std::fflush(stdout);
    std::_Exit(0);
}
