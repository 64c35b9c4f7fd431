// defect: a timer object in each small function reads the CPU clock of the thread, twice per call; a timer around the whole step would do
// kinds: clock-read-often
// guilty: jockeys::Timer::Timer, jockeys::Timer::~Timer, jockeys::Timer::Now, jockeys::Horse::Gallop, jockeys::Horse::Breathe
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

namespace jockeys {
static bool everywhere = false;
struct Total { long calls = 0, ns = 0; };
class Timer {
public:
    explicit Timer(Total &total, bool always = false) : total_(total), on_(always || everywhere), begin_(on_ ? Now() : 0) {}
    ~Timer() {
        if (!on_) return;
        ++total_.calls;
        total_.ns += Now() - begin_;
    }
private:
    static long Now() {
        timespec now;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return now.tv_sec * 1000000000L + now.tv_nsec;
    }
    Total &total_;
    bool on_;
    long begin_;
};
static Total gallop, breathe, step_total;
struct Horse {
    double place = 0, speed = 10, breath = 1;
    __attribute__((noinline)) void Gallop(double dt) {
        Timer timer(gallop);
        double drag = 0;
        for (int i = 1; i < 12; ++i) drag += std::sqrt(speed * i) * 0.01;
        speed += (breath * 4 - drag) * dt;
        place += speed * dt;
    }
    __attribute__((noinline)) void Breathe(double dt) {
        Timer timer(breathe);
        for (int i = 0; i < 6; ++i) breath += std::exp(-speed * 0.05) * dt - breath * 0.01 * dt;
    }
};
class Race {
public:
    explicit Race(int number) : horses_(number) {}
    void Step(double dt) {
        Timer timer(step_total, true);
        for (Horse &one : horses_) one.Gallop(dt);
        for (Horse &one : horses_) one.Breathe(dt);
    }
    double First() const { double first = 0; for (const Horse &one : horses_) first = std::max(first, one.place); return first; }
private:
    std::vector<Horse> horses_;
};
} // namespace jockeys

int main(int argc, char **argv) {
    jockeys::everywhere = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    jockeys::Race race(3000);
    auto next = std::chrono::steady_clock::now();
    for (long step = 0; step != steps; ++step) {
        race.Step(0.005);
        next += std::chrono::milliseconds(10);
        if (steps < 0) std::this_thread::sleep_until(next);
    }
    std::printf("%g %ld\n", race.First(), jockeys::step_total.ns);
}
