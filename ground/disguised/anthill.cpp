// defect: each ant's move is a task of its own in the thread pool, so the queue's lock and wake-ups cost more than the moves
// kinds: work-in-small-pieces, tiny-tasks, lock-wait, threads-woken-for-nothing
// guilty: anthill::Pool::Submit, anthill::Pool::Work, anthill::Pool::Wait, anthill::Hill::Step
// build: -O2 -g
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace anthill {
class Pool {
public:
    explicit Pool(int threads) { for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); }); }
    ~Pool() {
        { std::lock_guard lock(mutex_); end_ = true; }
        wake_.notify_all();
        for (auto &one : threads_) one.join();
    }
    void Submit(std::function<void()> task) {
        { std::lock_guard lock(mutex_); tasks_.push_back(std::move(task)); ++open_; }
        wake_.notify_one();
    }
    void Wait() {
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return open_ == 0; });
    }
private:
    void Work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [this] { return end_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
            lock.lock();
            if (--open_ == 0) done_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::deque<std::function<void()>> tasks_;
    std::vector<std::thread> threads_;
    int open_ = 0;
    bool end_ = false;
};

struct Ant {
    double x = 0, y = 0, heading = 0;
    void Move(double time) {
        for (int i = 0; i < 3; ++i) {
            heading += std::sin(time + x) * 0.05;
            x += std::cos(heading) * 0.01;
            y += std::sin(heading) * 0.01;
        }
    }
};

class Hill {
public:
    Hill(int number, bool one_by_one) : ants_(size_t(number)), one_by_one_(one_by_one) {
        for (size_t i = 0; i < ants_.size(); ++i) ants_[i].heading = double(i);
    }
    void Step(Pool &pool, double time) {
        size_t chunk = one_by_one_ ? 1 : ants_.size() / 4;
        for (size_t first = 0; first < ants_.size(); first += chunk)
            pool.Submit([this, first, chunk, time] {
                for (size_t i = first; i < std::min(first + chunk, ants_.size()); ++i) ants_[i].Move(time);
            });
        pool.Wait();
    }
    double X() const { return ants_[0].x; }
private:
    std::vector<Ant> ants_;
    bool one_by_one_;
};
} // namespace anthill

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    anthill::Pool pool(2);
    anthill::Hill hill(4000, slow);
    for (long step = 0; step != steps; ++step) hill.Step(pool, double(step) * 0.01);
    std::printf("%g\n", hill.X());
}
