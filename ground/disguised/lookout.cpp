// defect: all ships' reports go to each lookout, which receives each and drops nine tenths of them after a look at their first byte
// kinds: many-messages-each-step, messages-dropped
// guilty: lookout::Radio::Run
// build: -O2 -g
#include <arpa/inet.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <atomic>
#include <chrono>
#include <mutex>
#include <csignal>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <thread>
#include <utility>
#include <unistd.h>
#include <vector>

namespace lookout {
struct Report { int kind; int ship; double x, y; };

class Radio {
public:
    Radio() {
        socket_ = socket(AF_INET, SOCK_DGRAM, 0);
        sockaddr_in own{};
        own.sin_family = AF_INET;
        own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        bind(socket_, reinterpret_cast<sockaddr *>(&own), sizeof own);
        socklen_t size = sizeof address;
        getsockname(socket_, reinterpret_cast<sockaddr *>(&address), &size);
    }
    void Run() {
        Report report;
        while (recv(socket_, &report, sizeof report, 0) == sizeof report) {
            if (report.kind != 0) continue;
            std::lock_guard lock(mutex_);
            heard_.push_back(report);
        }
    }
    std::vector<Report> Take() { std::lock_guard lock(mutex_); return std::exchange(heard_, {}); }
    sockaddr_in address{};
private:
    int socket_;
    std::mutex mutex_;
    std::vector<Report> heard_;
};

// Another program: ships that report.
void Ships(sockaddr_in to, bool all) {
    int out = socket(AF_INET, SOCK_DGRAM, 0);
    auto next = std::chrono::steady_clock::now();
    for (int round = 0;; ++round) {
        for (int ship = 0; ship < 300; ++ship) {
            Report report{ship % 10, ship, std::sin(round * 0.01), std::cos(round * 0.01)};
            if (all || report.kind == 0) sendto(out, &report, sizeof report, 0, reinterpret_cast<sockaddr *>(&to), sizeof to);
        }
        next += std::chrono::milliseconds(5);
        std::this_thread::sleep_until(next);
    }
}
} // namespace lookout

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    lookout::Radio radio;
    pid_t ships = fork();
    if (ships == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        lookout::Ships(radio.address, slow);
    }
    std::thread receiver([&] { radio.Run(); });
    std::vector<double> chart(20000);
    auto next = std::chrono::steady_clock::now();
    for (long step = 0; step != steps; ++step) {
        for (const auto &one : radio.Take()) chart[size_t(one.ship) * 60] += one.x;
        for (size_t i = 1; i < chart.size(); ++i) chart[i] = 0.5 * (chart[i] + std::sin(chart[i - 1]));
        next += std::chrono::milliseconds(10);
        std::this_thread::sleep_until(next);
    }
    kill(ships, SIGKILL);
    std::printf("%g\n", chart[0]);
    std::fflush(stdout);
    _exit(0);
}
