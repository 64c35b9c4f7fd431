// defect: none; a loop of 100 Hz sleeps for what is left of its period, a thread receives datagrams at 400 Hz, and a log is written each second
// kinds: -
// guilty: -
// build: -O2 -g
#include <arpa/inet.h>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <csignal>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace pilot {
using Clock = std::chrono::steady_clock;
struct Fix { double time, lat, lon; };
class Receiver {
public:
    Receiver() {
        socket_ = socket(AF_INET, SOCK_DGRAM, 0);
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        bind(socket_, reinterpret_cast<sockaddr *>(&address_), sizeof address_);
        socklen_t size = sizeof address_;
        getsockname(socket_, reinterpret_cast<sockaddr *>(&address_), &size);
    }
    void Run() {
        Fix fix;
        while (recv(socket_, &fix, sizeof fix, 0) > 0) {
            double smooth = fix.lat;
            for (int k = 1; k < 400; ++k) smooth += std::sin(fix.lon * k) * 0.001 / k;
            std::lock_guard lock(mutex_);
            last_ = fix;
            last_.lat = smooth;
        }
    }
    Fix Last() { std::lock_guard lock(mutex_); return last_; }
    void Satellite() {
        int out = socket(AF_INET, SOCK_DGRAM, 0);
        for (int i = 0;; ++i) {
            Fix fix{i * 0.0025, std::sin(i * 0.01), std::cos(i * 0.01)};
            sendto(out, &fix, sizeof fix, 0, reinterpret_cast<sockaddr *>(&address_), sizeof address_);
            usleep(2500);
        }
    }
private:
    int socket_;
    sockaddr_in address_{};
    std::mutex mutex_;
    Fix last_{};
};
class Autopilot {
public:
    double Steer(const Fix &fix, double time) {
        for (size_t i = 0; i < wind_.size(); ++i) wind_[i] = 0.99 * wind_[i] + 0.01 * std::sin(time + double(i) * fix.lat);
        double rudder = 0;
        for (double one : wind_) rudder += one;
        return rudder;
    }
private:
    std::vector<double> wind_ = std::vector<double>(40000);
};
} // namespace pilot

int main(int, char **argv) {
    (void)argv;
    pilot::Receiver receiver;
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        receiver.Satellite();
    }
    std::thread thread([&] { receiver.Run(); });
    pilot::Autopilot autopilot;
    FILE *log = std::fopen("/dev/null", "w");
    for (long step = 0;; ++step) {
        auto begin = pilot::Clock::now();
        double rudder = autopilot.Steer(receiver.Last(), step * 0.01);
        if (step % 100 == 0) std::fprintf(log, "%ld %g\n", step, rudder);
        auto left = std::chrono::milliseconds(10) - (pilot::Clock::now() - begin);
        if (left.count() > 0) std::this_thread::sleep_for(left);
    }
}
