// defect: the history of readings of each sensor is never shortened, so memory grows with each tick
// kinds: memory-grows-over-time
// guilty: History::add, History::record, greenhouse_tick
// options: --with heap
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <list>
#include <string>
#include <thread>
#include <vector>

struct Reading { double at, celsius, humidity; char source[40]; };

struct History {
    std::list<Reading> readings;
    bool unbounded;
    void add(double at, double celsius, double humidity) {
        readings.push_back({at, celsius, humidity, "bench"});
        if (!unbounded && readings.size() > 200) readings.pop_front();
    }
};

std::vector<History> sensors(60);
double temperature[4096];

void greenhouse_tick(int tick) {
    for (int round = 0; round < 12; ++round)
        for (int i = 1; i < 4095; ++i) temperature[i] += 0.1 * (temperature[i - 1] - 2 * temperature[i] + temperature[i + 1]) + 1e-6 * i;
    for (auto &sensor : sensors) sensor.add(tick * 0.1, temperature[100], std::sin(tick));
}

int main(int argc, char **argv) {
    for (auto &sensor : sensors) sensor.unbounded = argc > 1 && !strcmp(argv[1], "slow");
    for (int tick = 0;; ++tick) {
        greenhouse_tick(tick);
        std::this_thread::sleep_for(std::chrono::microseconds(900));
    }
}
