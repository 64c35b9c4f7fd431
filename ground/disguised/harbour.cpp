// defect: the chart's thread holds the shared lock while it draws, so the simulation waits for each frame to be able to write
// kinds: lock-wait
// guilty: harbour::Port::Tide, harbour::Chart::Draw, harbour::Chart::Run
// build: -O2 -g
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace harbour {
struct Ship { double x, y, heading, speed; };
class Port {
public:
    explicit Port(int number) : ships_(number) {
        for (int i = 0; i < number; ++i) ships_[i] = {i * 1.0, i * 0.5, i * 0.1, 1 + i % 5 * 0.2};
    }
    __attribute__((noinline)) void Tide(double t) {
        std::unique_lock<std::shared_mutex> lock(gate_);
        for (Ship &one : ships_) {
            for (int i = 0; i < 10; ++i) one.heading += 1e-4 * std::sin(t + one.x + i);
            one.x += one.speed * std::cos(one.heading) * 0.002;
            one.y += one.speed * std::sin(one.heading) * 0.002;
        }
    }
    std::shared_mutex gate_;
    std::vector<Ship> ships_;
};
class Chart {
public:
    Chart(Port &port, bool holds) : port_(port), holds_(holds), pixels_(320 * 200) {}
    void Run(std::atomic<bool> &ends) {
        while (!ends) {
            if (holds_) {
                std::shared_lock<std::shared_mutex> lock(port_.gate_);
                Draw(port_.ships_);
            } else {
                std::vector<Ship> copy;
                {
                    std::shared_lock<std::shared_mutex> lock(port_.gate_);
                    copy = port_.ships_;
                }
                Draw(copy);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(6));
        }
    }
    __attribute__((noinline)) void Draw(const std::vector<Ship> &ships) {
        for (float &pixel : pixels_) pixel *= 0.9f;
        for (const Ship &one : ships)
            for (int k = 0; k < 220; ++k) {
                double at = one.heading + k * 0.02;
                int x = (int)(160 + std::cos(at) * k * 0.5 + one.x), y = (int)(100 + std::sin(at) * k * 0.4 + one.y);
                pixels_[((unsigned)(y * 320 + x)) % pixels_.size()] += 0.1f;
            }
    }
private:
    Port &port_;
    bool holds_;
    std::vector<float> pixels_;
};
} // namespace harbour

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    harbour::Port port(600);
    harbour::Chart chart(port, slow);
    std::atomic<bool> ends{false};
    std::thread drawing([&] { chart.Run(ends); });
    for (long step = 0; step != steps; ++step) {
        port.Tide(step * 0.001);
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    ends = true;
    drawing.join();
    std::printf("%g\n", port.ships_[7].x);
}
