// defect: the loop sleeps a whole period of 10 ms at its start and then works, so it is late by its work in each cycle
// kinds: fixed-sleep-each-cycle, sleep-within-step
// guilty: buoy::Station::Cycle, buoy::Station::Wait, main, -
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace buoy {

class Waves {
public:
    Waves() : height_(4096), speed_(4096) {
        for (int i = 0; i < 4096; ++i) height_[i] = std::sin(i * 0.05);
    }
    __attribute__((noinline)) void Advance() {
        for (int round = 0; round < 70; ++round) {
            for (std::size_t i = 1; i + 1 < height_.size(); ++i) speed_[i] += 0.01 * (height_[i - 1] - 2 * height_[i] + height_[i + 1]) - 1e-5 * std::sin(speed_[i]);
            for (std::size_t i = 1; i + 1 < height_.size(); ++i) height_[i] += 0.01 * speed_[i];
        }
    }
    double at(std::size_t i) const { return height_[i & 4095]; }

private:
    std::vector<double> height_, speed_;
};

class Mooring {
public:
    __attribute__((noinline)) double Tension(const Waves &waves) {
        double sum = 0;
        for (int i = 0; i < 20000; ++i) sum += std::exp(-0.001 * i) * waves.at(i * 7);
        return sum;
    }
};

class Gyro {
public:
    __attribute__((noinline)) void Sample(double tension) {
        for (int i = 0; i < 40000; ++i) bias_ = 0.9999 * bias_ + 1e-5 * std::cos(tension + i);
    }

private:
    double bias_ = 0;
};

class Station {
public:
    explicit Station(bool late) : late_(late) {}
    void Run(long count) {
        auto next = std::chrono::steady_clock::now();
        for (long at = 0; count == 0 || at < count; ++at) {
            next += std::chrono::milliseconds(10);
            if (late_) std::this_thread::sleep_for(std::chrono::milliseconds(10));
            else std::this_thread::sleep_until(next);
            Cycle();
        }
    }

private:
    __attribute__((noinline)) void Cycle() {
        waves_.Advance();
        gyro_.Sample(mooring_.Tension(waves_));
    }
    bool late_;
    Waves waves_;
    Mooring mooring_;
    Gyro gyro_;
};

} // namespace buoy

int main(int argc, char **argv) {
    buoy::Station station(argc > 1 && !std::strcmp(argv[1], "slow"));
    station.Run(argc > 2 ? std::atol(argv[2]) : 0);
}
