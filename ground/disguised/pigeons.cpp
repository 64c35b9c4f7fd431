// defect: each of 400 clients has a thread of its own that waits for its socket and handles a message of a few bytes
// kinds: thread-per-client
// guilty: -
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace pigeons {
struct Message { int loft; double x, y; };
struct Client { int here, there; double x = 0, y = 0; };
static void Handle(Client &one, const Message &message) {
    one.x += 0.1 * (message.x - one.x);
    one.y += 0.1 * (message.y - one.y);
}
static void Serve(Client &one) {
    Message message;
    while (recv(one.here, &message, sizeof message, 0) == (ssize_t)sizeof message) Handle(one, message);
}
static void ServeAll(std::vector<Client> &clients) {
    int set = epoll_create1(0);
    for (Client &one : clients) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &one;
        epoll_ctl(set, EPOLL_CTL_ADD, one.here, &event);
    }
    std::vector<epoll_event> events(256);
    for (;;) {
        int number = epoll_wait(set, events.data(), (int)events.size(), -1);
        for (int i = 0; i < number; ++i) {
            Client &one = *(Client *)events[i].data.ptr;
            Message message;
            if (recv(one.here, &message, sizeof message, 0) != (ssize_t)sizeof message) return;
            Handle(one, message);
        }
    }
}
__attribute__((noinline)) static double Fly(double t) {
    double sum = 0;
    for (int i = 0; i < 20000; ++i) sum += std::sin(t + i) * std::cos(i * 0.1);
    return sum;
}
} // namespace pigeons

int main(int argc, char **argv) {
    using namespace pigeons;
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::vector<Client> clients(400);
    for (Client &one : clients) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair)) return 1;
        one.here = pair[0];
        one.there = pair[1];
    }
    std::vector<std::thread> threads;
    if (slow) for (Client &one : clients) threads.emplace_back(Serve, std::ref(one));
    else threads.emplace_back(ServeAll, std::ref(clients));
    double sum = 0;
    for (long step = 0; step != steps; ++step) {
        sum += Fly(step * 0.01);
        for (std::size_t i = 0; i < clients.size(); ++i) {
            Message message{(int)i, sum, step * 0.1};
            send(clients[i].there, &message, sizeof message, 0);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (Client &one : clients) shutdown(one.there, SHUT_RDWR), close(one.there);
    for (auto &one : threads) one.join();
    std::printf("%g\n", sum);
}
