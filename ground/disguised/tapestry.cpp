// defect: none; a paced loop with a worker, a short list, a few texts and a clock
// kinds: -
// guilty: -
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tapestry {
using Clock = std::chrono::steady_clock;
class Worker {
public:
    Worker() : thread_([this] { Run(); }) {}
    ~Worker() {
        { std::lock_guard lock(mutex_); ends_ = true; }
        ready_.notify_all();
        thread_.join();
    }
    void Give(double t) {
        { std::lock_guard lock(mutex_); t_ = t; has_ = true; }
        ready_.notify_one();
    }
    double Take() {
        std::unique_lock lock(mutex_);
        done_.wait(lock, [&] { return !has_; });
        return sum_;
    }
private:
    void Run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            ready_.wait(lock, [&] { return has_ || ends_; });
            if (ends_) return;
            double t = t_;
            lock.unlock();
            double sum = Weave(t);
            lock.lock();
            sum_ = sum;
            has_ = false;
            done_.notify_one();
        }
    }
    __attribute__((noinline)) double Weave(double t) {
        double sum = 0;
        for (int i = 0; i < 40000; ++i) sum += std::sin(t + i * 0.01);
        return sum;
    }
    std::mutex mutex_;
    std::condition_variable ready_, done_;
    double t_ = 0, sum_ = 0;
    bool has_ = false, ends_ = false;
    std::thread thread_;
};
__attribute__((noinline)) double Dye(std::list<double> &colours, double t) {
    auto at = std::next(colours.begin(), 5);
    *at += 0.01 * std::sin(t);
    double sum = 0;
    for (int i = 0; i < 38000; ++i) sum += std::cos(t + i * 0.01) * *at;
    return sum;
}
} // namespace tapestry

int main(int, char **) {
    using namespace tapestry;
    Worker worker;
    std::list<double> colours(12, 0.5);
    double sum = 0;
    auto next = Clock::now();
    for (long step = 0;; ++step) {
        auto begin = Clock::now();
        worker.Give(step * 0.01);
        sum += Dye(colours, step * 0.01);
        sum += worker.Take();
        std::string note = "step " + std::to_string(step);
        double took = std::chrono::duration<double>(Clock::now() - begin).count();
        if (took > 1.0) std::printf("%s was late %g\n", note.c_str(), sum);
        next += std::chrono::milliseconds(5);
        std::this_thread::sleep_until(next);
    }
}
