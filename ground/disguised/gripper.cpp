// defect: the thread for commands asks its pipe with a time-out of a millisecond, though none come
// kinds: polling
// guilty: gripper::Commands::Listen
// build: -O1 -g1
#include <chrono>
#include <cmath>
#include <cstring>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace gripper {
class Commands {
public:
    explicit Commands(bool asks) : timeout_(asks ? 1 : -1) { if (pipe(ends_)) _exit(1); }
    void Listen() {
        for (;;) {
            pollfd one{ends_[0], POLLIN, 0};
            if (poll(&one, 1, timeout_) > 0) { char byte; if (read(ends_[0], &byte, 1) < 0) return; }
            Housekeeping();
        }
    }
private:
    void Housekeeping() { ++rounds_; }
    int ends_[2], timeout_;
    volatile long rounds_ = 0;
};
}

int main(int argc, char **argv) {
    gripper::Commands commands(argc > 1 && !std::strcmp(argv[1], "slow"));
    std::thread listener([&] { commands.Listen(); });
    volatile double force = 0.5;
    for (;;) {
        for (int i = 0; i < 8000; ++i) force = force + 1e-5 * std::sin(force * i);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}
