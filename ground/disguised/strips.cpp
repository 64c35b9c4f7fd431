// defect: a field is dealt out to the workers by area, and nearly all obstacles are in one area
// kinds: barrier-imbalance
// guilty: sim::Field::Resolve, sim::Crew::Work
#include <condition_variable>
#include <mutex>
#include <thread>
#include "loop.hpp"

namespace sim {
class Field {
public:
    Field(int obstacles, int strips, bool slow) : strips_(strips) {
        for (int i = 0; i < obstacles; ++i) strips_[slow && i % 10 != 0 ? 0 : i / 3 % strips].push_back(i * 0.013);
    }
    void Resolve(int strip) {
        for (double &at : strips_[strip])
            for (int round = 0; round < 30; ++round) at += 1e-4 * std::sin(at * round);
    }
    int strips() const { return strips_.size(); }

private:
    std::vector<std::vector<double>> strips_;
};

/// Workers that take one strip each; the caller waits for all of them.
class Crew {
public:
    explicit Crew(Field &field) : field_(field) {
        for (int i = 0; i < field.strips(); ++i) threads_.emplace_back([this, i] { Work(i); });
    }
    void Step() {
        std::unique_lock lock(mutex_);
        ++round_;
        left_ = threads_.size();
        start_.notify_all();
        done_.wait(lock, [this] { return left_ == 0; });
    }

private:
    void Work(int strip) {
        for (long round = 1;; ++round) {
            {
                std::unique_lock lock(mutex_);
                start_.wait(lock, [&] { return round_ >= round; });
            }
            field_.Resolve(strip);
            std::lock_guard lock(mutex_);
            if (--left_ == 0) done_.notify_one();
        }
    }
    Field &field_;
    std::mutex mutex_;
    std::condition_variable start_, done_;
    long round_ = 0;
    std::size_t left_ = 0;
    std::vector<std::thread> threads_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Field field(9000, 2, sim::IsSlow(argc, argv));
    sim::Crew crew(field);
    sim::Bodies bodies(2000);
    sim::Run([&](long) {
        bodies.Advance(3);
        crew.Step();
    });
}
