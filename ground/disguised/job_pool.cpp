// defect: each job wakes all workers of a pool, and one of them finds it
// kinds: wakes-too-many
// guilty: sim::Jobs::Add, sim::Jobs::Take
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>
#include "loop.hpp"

namespace sim {
class Jobs {
public:
    explicit Jobs(bool slow) : slow_(slow) {}
    void Add(int job) {
        {
            std::unique_lock<std::mutex> lock(mutex_);
            jobs_.push(job);
            ++open_;
        }
        slow_ ? added_.notify_all() : added_.notify_one();
    }
    int Take() {
        std::unique_lock<std::mutex> lock(mutex_);
        added_.wait(lock, [this] { return !jobs_.empty(); });
        int job = jobs_.front();
        jobs_.pop();
        return job;
    }
    void Done() {
        std::unique_lock<std::mutex> lock(mutex_);
        if (--open_ == 0) done_.notify_one();
    }
    void Await() {
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return open_ == 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable added_, done_;
    std::queue<int> jobs_;
    int open_ = 0;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Jobs jobs(sim::IsSlow(argc, argv));
    std::vector<std::thread> workers;
    for (int i = 0; i < 16; ++i)
        workers.emplace_back([&] {
            for (;;) {
                double sum = jobs.Take();
                for (int k = 0; k < 500; ++k) sum += std::sin(sum + k);
                sim::sink = sum;
                jobs.Done();
            }
        });
    sim::Bodies bodies(1000);
    sim::Run([&](long step) {
        for (int i = 0; i < 3; ++i) {
            jobs.Add(step + i);
            bodies.Advance(2);
        }
        jobs.Await();
    });
}
