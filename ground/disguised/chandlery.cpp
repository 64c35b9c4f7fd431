// defect: for each single callback the dispatcher makes the list of all inputs again, asks the kernel about all of them, and runs only the first one that is ready
// kinds: wait-set-rebuilt
// guilty: boat::Dispatcher::spinOnce, boat::Dispatcher::collect
// gain: 52
//
// An autonomous boat: drivers in a thread of their own signal inputs by event descriptors, components have callbacks for these
// inputs, and the main loop works through them: filters, track keeping, AIS targets, engine models, a chart of depths.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace boat {

class Input {
public:
    explicit Input(std::function<void(uint64_t)> callback) : fd_(eventfd(0, EFD_NONBLOCK)), callback_(std::move(callback)) {}
    ~Input() { close(fd_); }
    Input(const Input&) = delete;
    Input& operator=(const Input&) = delete;

    void signal() {
        const uint64_t one = 1;
        if (write(fd_, &one, sizeof one) < 0) std::abort();
    }
    void take() {
        uint64_t count = 0;
        if (read(fd_, &count, sizeof count) == ssize_t(sizeof count)) callback_(count);
    }
    int fd() const { return fd_; }

private:
    int fd_;
    std::function<void(uint64_t)> callback_;
};

class Dispatcher {
public:
    explicit Dispatcher(bool byEvents) : byEvents_(byEvents), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}
    ~Dispatcher() { close(epoll_); }

    Input& add(std::function<void(uint64_t)> callback) {
        inputs_.push_back(std::make_unique<Input>(std::move(callback)));
        epoll_event e{};
        e.events = EPOLLIN;
        e.data.ptr = inputs_.back().get();
        if (byEvents_ && epoll_ctl(epoll_, EPOLL_CTL_ADD, inputs_.back()->fd(), &e) != 0) std::abort();
        return *inputs_.back();
    }

    // Runs callbacks until the count of them has been reached.
    void spin(int callbacks) {
        while (callbacks > 0) callbacks -= byEvents_ ? spinSome() : spinOnce();
    }

private:
    std::vector<pollfd> collect() const {
        std::vector<pollfd> set;
        set.reserve(inputs_.size());
        for (const auto& in : inputs_) set.push_back({in->fd(), POLLIN, 0});
        return set;
    }

    int spinOnce() {
        std::vector<pollfd> set = collect();
        if (poll(set.data(), set.size(), 100) <= 0) return 0;
        for (size_t i = 0; i < set.size(); ++i) {
            if (set[i].revents & POLLIN) {
                inputs_[i]->take();
                return 1;
            }
        }
        return 0;
    }

    int spinSome() {
        std::array<epoll_event, 64> ready;
        const int n = epoll_wait(epoll_, ready.data(), int(ready.size()), 100);
        for (int i = 0; i < n; ++i) static_cast<Input*>(ready[i].data.ptr)->take();
        return std::max(n, 0);
    }

    bool byEvents_;
    int epoll_;
    std::vector<std::unique_ptr<Input>> inputs_;
};

// A constant velocity Kalman filter for one axis of a target.
struct Track {
    double x = 0, v = 0, p00 = 10, p01 = 0, p11 = 10, phase = 0;
    void update(double z, double dt) {
        x += v * dt;
        p00 += dt * (2 * p01 + dt * p11) + 0.01;
        p01 += dt * p11;
        p11 += 0.02;
        const double s = p00 + 0.5, k0 = p00 / s, k1 = p01 / s, y = z - x;
        x += k0 * y;
        v += k1 * y;
        p11 -= k1 * p01;
        p01 -= k0 * p01;
        p00 -= k0 * p00;
    }
};

struct Target {
    Track east, north;
    double nearest = 1e9;
};

struct Engine {
    double rpm = 1500, oil = 60, water = 70, wear = 0;
    void run(double throttle, double dt) {
        for (int k = 0; k < 40; ++k) {            // small steps of a stiff model
            const double h = dt / 40, torque = throttle * 420 - 0.0001 * rpm * rpm;
            rpm += h * torque * 1.5;
            oil += h * (0.00002 * rpm * std::fabs(torque) - 0.05 * (oil - 50));
            water += h * (0.4 * (oil - water) - 0.2 * (water - 60));
            wear += h * 1e-6 * std::exp(0.02 * (oil - 60));
        }
    }
};

class Chart {
public:
    static constexpr int kSide = 256;
    Chart() : depth_(kSide * kSide), next_(depth_) {
        for (int i = 0; i < kSide * kSide; ++i) depth_[i] = 8 + 4 * std::sin(0.1 * (i % kSide)) * std::cos(0.07 * (i / kSide));
    }
    void sound(double x, double y, double d) {
        double& c = depth_[cell(x, y)];
        c += 0.2 * (d - c);
    }
    void smooth() {
        for (int y = 1; y + 1 < kSide; ++y)
            for (int x = 1; x + 1 < kSide; ++x) {
                const double* c = &depth_[y * kSide + x];
                next_[y * kSide + x] = 0.96 * c[0] + 0.01 * (c[-1] + c[1] + c[-kSide] + c[kSide]);
            }
        depth_.swap(next_);
    }
    double shallowest(double x, double y, double heading) const {
        double least = 1e9;
        for (int a = -60; a <= 60; ++a)
            for (int r = 1; r < 30; ++r)
                least = std::min(least, depth_[cell(x + 3 * r * std::cos(heading + 0.01 * a), y + 3 * r * std::sin(heading + 0.01 * a))]);
        return least;
    }

private:
    static size_t cell(double x, double y) {
        return size_t(int(std::floor(y / 4)) & (kSide - 1)) * kSide + size_t(int(std::floor(x / 4)) & (kSide - 1));
    }
    std::vector<double> depth_, next_;
};

}  // namespace boat

int main(int argc, char** argv) {
    using namespace boat;
    if (argc < 2) {
        std::fprintf(stderr, "usage: chandlery slow|fast [ticks]\n");
        return 1;
    }
    constexpr int kTargets = 40, kEngines = 4, kSonars = 8, kBusy = 24, kPerTick = kBusy + kEngines + kSonars;
    Dispatcher dispatcher(std::strcmp(argv[1], "fast") == 0);
    const long ticks = argc > 2 ? std::atol(argv[2]) : 0;
    std::vector<Target> targets(kTargets);
    std::vector<Engine> engines(kEngines);
    std::vector<Input*> ais, motors, sonars;
    std::vector<double> soundings(kSonars, 8.0);
    Chart chart;
    double x = 0, y = 0, heading = 0, safety = 0;
    std::atomic<long> tick{0};
    long now = 0;

    for (int i = 0; i < kTargets; ++i)
        ais.push_back(&dispatcher.add([&, i](uint64_t) {
            Target& t = targets[i];
            const double w = 0.01 * double(now) + i;
            t.east.update(200 * std::sin(0.2 * w) + 20.0 * i, 0.2);
            t.north.update(300 * std::cos(0.3 * w) - 10.0 * i, 0.2);
            const double vx = t.east.v - 4 * std::cos(heading), vy = t.north.v - 4 * std::sin(heading);
            double nearest = t.nearest;
            for (int s = 0; s < 300; ++s) {       // closest approach of the next minutes
                const double dx = t.east.x - x + s * vx, dy = t.north.x - y + s * vy;
                nearest = std::min(nearest * 1.0001, std::sqrt(dx * dx + dy * dy));
            }
            t.nearest = nearest;
        }));
    for (int e = 0; e < kEngines; ++e)
        motors.push_back(&dispatcher.add([&, e](uint64_t) { engines[e].run(0.6 + 0.3 * std::sin(0.01 * double(now) + e), 0.05); }));
    for (int s = 0; s < kSonars; ++s)
        sonars.push_back(&dispatcher.add([&, s](uint64_t) {
            double echo = 0;
            for (int k = 0; k < 400; ++k) echo += std::sin(0.05 * k * (1 + 0.01 * s)) * std::exp(-0.02 * k) * std::cos(0.001 * double(now) * k);
            soundings[s] += 0.1 * (8 + 0.2 * echo - soundings[s]);
        }));

    std::thread drivers([&] {                     // signals the inputs of each tick when the tick begins
        for (long seen = 0;;) {
            tick.wait(seen);
            seen = tick.load();
            if (seen < 0) return;
            for (int k = 0; k < kBusy; ++k) ais[(seen * kBusy + k) % kTargets]->signal();
            for (Input* m : motors) m->signal();
            for (Input* s : sonars) s->signal();
        }
    });

    auto due = std::chrono::steady_clock::now();
    while (ticks == 0 || now < ticks) {
        ++now;
        tick.store(now);
        tick.notify_one();
        dispatcher.spin(kPerTick);
        heading += 0.01 * std::sin(0.003 * double(now));
        x += 0.8 * std::cos(heading);
        y += 0.8 * std::sin(heading);
        for (int s = 0; s < kSonars; ++s) chart.sound(x + 2 * s, y + s, soundings[s]);
        for (int k = 0; k < 2; ++k) chart.smooth();
        safety += chart.shallowest(x, y, heading);
        due = std::max(due + std::chrono::microseconds(2000), std::chrono::steady_clock::now() - std::chrono::milliseconds(30));
        std::this_thread::sleep_until(due);
    }
    tick.store(-1);
    tick.notify_one();
    drivers.join();
    double nearest = 0, wear = 0;
    for (const Target& t : targets) nearest += t.nearest;
    for (const Engine& e : engines) wear += e.wear * 1e6 + e.water;
    std::printf("%.6f %.6f %.6f\n", safety, nearest, wear);
}
