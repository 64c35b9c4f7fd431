// defect: a hub collects all of its descriptors and polls them again for each message
// kinds: wait-set-rebuilt
// guilty: sim::Hub::Serve
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <thread>
#include "loop.hpp"

namespace sim {
class Hub {
public:
    Hub(int number, bool slow) : slow_(slow), set_(epoll_create1(0)) {
        for (int i = 0; i < number; ++i) {
            int ends[2];
            if (pipe(ends) != 0) std::exit(1);
            readers_.push_back(ends[0]);
            writers_.push_back(ends[1]);
            epoll_event event{};
            event.events = EPOLLIN;
            event.data.fd = ends[0];
            epoll_ctl(set_, EPOLL_CTL_ADD, ends[0], &event);
        }
    }
    int writer(long i) const { return writers_[i * 13 % writers_.size()]; }
    void Serve() {
        if (slow_) {
            std::vector<pollfd> all;
            for (int reader : readers_) all.push_back({reader, POLLIN, 0});
            poll(all.data(), all.size(), -1);
            for (const pollfd &one : all)
                if (one.revents & POLLIN) Take(one.fd);
        } else {
            epoll_event ready[8];
            int number = epoll_wait(set_, ready, 8, -1);
            for (int i = 0; i < number; ++i) Take(ready[i].data.fd);
        }
    }

private:
    void Take(int reader) {
        char text[64];
        if (read(reader, text, sizeof text) > 0) bodies_.Advance(1);
    }
    bool slow_;
    int set_;
    std::vector<int> readers_, writers_;
    Bodies bodies_{1000};
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Hub hub(250, sim::IsSlow(argc, argv));
    std::thread source([&] {
        for (long i = 0;; ++i) {
            if (write(hub.writer(i), "moved", 5) < 0) return;
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
    });
    sim::Run([&](long) { hub.Serve(); });
}
