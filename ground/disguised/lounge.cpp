// defect: each turn of the event loop fills a set of 700 sockets for select, and looks at each of them after
// kinds: wait-set-rebuilt
// guilty: lounge::Loop::Turn
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstring>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace lounge {
class Loop {
public:
    explicit Loop(bool rebuilds) : rebuilds_(rebuilds), epoll_(epoll_create1(0)) {
        for (int i = 0; i < 350; ++i) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) _exit(1);
            mine_.push_back(pair[0]); theirs_.push_back(pair[1]);
            epoll_event event{EPOLLIN, {.fd = pair[0]}};
            epoll_ctl(epoll_, EPOLL_CTL_ADD, pair[0], &event);
        }
    }
    __attribute__((noinline)) void Turn(long number) {
        if (write(theirs_[number * 7 % theirs_.size()], "x", 1) < 0) return;
        char byte;
        if (rebuilds_) {
            fd_set set;
            FD_ZERO(&set);
            for (int one : mine_) FD_SET(one, &set);
            select(mine_.back() + 1, &set, nullptr, nullptr, nullptr);
            for (int one : mine_) if (FD_ISSET(one, &set) && read(one, &byte, 1) < 0) return;
        } else {
            epoll_event events[8];
            int ready = epoll_wait(epoll_, events, 8, -1);
            for (int i = 0; i < ready; ++i) if (read(events[i].data.fd, &byte, 1) < 0) return;
        }
        for (int i = 0; i < 1000; ++i) talk_ += std::sin(talk_ + i);
    }
private:
    bool rebuilds_;
    int epoll_;
    std::vector<int> mine_, theirs_;
    double talk_ = 0;
};
}

int main(int argc, char **argv) {
    lounge::Loop loop(argc > 1 && !std::strcmp(argv[1], "slow"));
    for (long turn = 0;; ++turn) loop.Turn(turn);
}
