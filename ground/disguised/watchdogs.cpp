// defect: threads look for commands at short time-outs
// kinds: polling
// guilty: sim::Inbox::Take, sim::Inbox::Serve
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include "loop.hpp"

namespace sim {
class Inbox {
public:
    explicit Inbox(bool slow) : slow_(slow) {}
    void Serve() {
        for (;;) sink = Take();
    }

private:
    int Take() {
        std::unique_lock lock(mutex_);
        auto filled = [this] { return !commands_.empty(); };
        if (slow_) {
            while (!filled()) arrived_.wait_for(lock, std::chrono::microseconds(100));
        } else {
            arrived_.wait(lock, filled);
        }
        int command = commands_.front();
        commands_.pop_front();
        return command;
    }
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<int> commands_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    bool slow = sim::IsSlow(argc, argv);
    std::deque<sim::Inbox> inboxes;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        inboxes.emplace_back(slow);
        threads.emplace_back([&inbox = inboxes.back()] { inbox.Serve(); });
    }
    sim::Bodies bodies(2000);
    sim::Run([&](long) { bodies.Advance(20); });
}
