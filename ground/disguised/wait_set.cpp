// defect: an executor builds its wait set again at each wake-up
// kinds: wait-set-rebuilt
// guilty: sim::Executor::SpinOnce
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <atomic>
#include <thread>
#include "loop.hpp"

namespace sim {
class Executor {
public:
    Executor(int number, bool slow) : slow_(slow), set_(epoll_create1(0)) {
        for (int i = 0; i < number; ++i) {
            entities_.push_back(eventfd(0, EFD_NONBLOCK));
            if (!slow) Add(entities_.back());
        }
    }
    int entity(long i) const { return entities_[i % entities_.size()]; }
    void SpinOnce() {
        if (slow_) {
            for (int entity : entities_) Add(entity);
        }
        epoll_event ready[8];
        int number = epoll_wait(set_, ready, 8, -1);
        for (int i = 0; i < number; ++i) {
            std::uint64_t count = 0;
            if (read(ready[i].data.fd, &count, sizeof count) > 0) bodies_.Advance(1);
        }
        if (slow_) {
            for (int entity : entities_) epoll_ctl(set_, EPOLL_CTL_DEL, entity, nullptr);
        }
    }

private:
    void Add(int entity) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = entity;
        epoll_ctl(set_, EPOLL_CTL_ADD, entity, &event);
    }
    bool slow_;
    int set_;
    std::vector<int> entities_;
    Bodies bodies_{2000};
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Executor executor(80, sim::IsSlow(argc, argv));
    std::thread publisher([&] {
        for (long i = 0;; ++i) {
            std::uint64_t one = 1;
            if (write(executor.entity(i), &one, sizeof one) < 0) return;
            std::this_thread::sleep_for(std::chrono::microseconds(150));
        }
    });
    sim::Run([&](long) { executor.SpinOnce(); });
}
