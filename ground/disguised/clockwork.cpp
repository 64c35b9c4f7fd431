// defect: none; a queue of events with times, two workers that get large batches, a log with a large buffer, and a loop that keeps its pace
// kinds: -
// guilty: -
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <unordered_map>
#include <vector>

namespace clockwork {
struct Event {
    double time;
    int gear, kind;
    bool operator<(const Event &other) const { return time > other.time; }
};
struct Gear { double angle = 0, speed = 1; long turns = 0; };
class Works {
public:
    explicit Works(int gears) {
        for (int i = 0; i < gears; ++i) { gears_[i * 13 + 5] = {}; events_.push({0.001 * i, i * 13 + 5, i % 3}); }
    }
    __attribute__((noinline)) int Until(double time) {
        int done = 0;
        while (!events_.empty() && events_.top().time <= time) {
            Event one = events_.top();
            events_.pop();
            Handle(one);
            ++done;
        }
        return done;
    }
    const std::unordered_map<int, Gear> &gears() const { return gears_; }

private:
    __attribute__((noinline)) void Handle(Event &one) {
        Gear &gear = gears_.find(one.gear)->second;
        for (int i = 0; i < 6; ++i) gear.speed = 0.9 * gear.speed + 0.1 * std::fabs(std::sin(gear.angle + i));
        gear.angle += gear.speed;
        gear.turns += one.kind == 0;
        one.time += 0.05 + 0.02 * gear.speed;
        events_.push(one);
    }
    std::priority_queue<Event> events_;
    std::unordered_map<int, Gear> gears_;
};
class Painters {
public:
    explicit Painters(int number) : picture_(number * 12000) {
        for (int i = 0; i < number; ++i) threads_.emplace_back([this, i] { Work(i); });
    }
    ~Painters() {
        { std::lock_guard lock(mutex_); ends_ = true; }
        start_.notify_all();
        for (auto &one : threads_) one.join();
    }
    __attribute__((noinline)) void Paint(double time) {
        std::unique_lock lock(mutex_);
        time_ = time; ++round_; left_ = int(threads_.size());
        start_.notify_all();
        done_.wait(lock, [&] { return left_ == 0; });
    }

private:
    void Work(int own) {
        for (long round = 0;;) {
            std::unique_lock lock(mutex_);
            start_.wait(lock, [&] { return ends_ || round_ != round; });
            if (ends_) return;
            round = round_;
            double time = time_;
            lock.unlock();
            for (int i = own * 12000; i < (own + 1) * 12000; ++i) picture_[i] = float(std::sin(time + i * 0.001) * std::cos(i * 0.1));
            lock.lock();
            if (--left_ == 0) done_.notify_one();
        }
    }
    std::mutex mutex_;
    std::condition_variable start_, done_;
    bool ends_ = false;
    long round_ = 0;
    int left_ = 0;
    double time_ = 0;
    std::vector<float> picture_;
    std::vector<std::thread> threads_;
};
} // namespace clockwork

int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    clockwork::Works works(3000);
    clockwork::Painters painters(2);
    std::FILE *log = std::fopen("/dev/null", "w");
    std::setvbuf(log, nullptr, _IOFBF, 1 << 16);
    auto next = std::chrono::steady_clock::now();
    for (long step = 0; step != steps; ++step) {
        int done = works.Until(step * 0.02);
        painters.Paint(step * 0.02);
        std::fprintf(log, "%ld %d\n", step, done);
        next += std::chrono::milliseconds(4);
        std::this_thread::sleep_until(next);
    }
    std::fclose(log);
}
