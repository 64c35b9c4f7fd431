// defect: the writer of the mission log formats and writes under the lock that the control loop needs in each cycle
// kinds: lock-wait
// guilty: boat::Helm::Cycle, boat::MissionLog::Flush, boat::MissionLog::Note
// build: -O2 -g
// options: --step boat::Helm::Cycle
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace boat {
class MissionLog {
public:
    explicit MissionLog(bool held) : held_(held) {}
    void Note(double heading) {
        std::lock_guard<std::mutex> guard(mutex_);
        entries_.push_back(heading);
        if (entries_.size() > 500) entries_.erase(entries_.begin(), entries_.begin() + 100);
    }
    void Flush(FILE *out) {
        std::vector<double> mine;
        std::unique_lock<std::mutex> guard(mutex_);
        mine = entries_;
        if (!held_) guard.unlock();
        double sum = 0;
        for (double one : mine)
            for (int i = 0; i < 500; ++i) sum += std::sin(one + i) * std::cos(sum);
        std::fprintf(out, "%f\n", sum);
    }
private:
    bool held_;
    std::mutex mutex_;
    std::vector<double> entries_;
};

class Helm {
public:
    explicit Helm(MissionLog &log) : log_(log) {}
    __attribute__((noinline)) void Cycle() {
        for (int i = 0; i < 6000; ++i) heading_ += 1e-5 * std::sin(heading_ * i);
        log_.Note(heading_);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
private:
    MissionLog &log_;
    double heading_ = 0.3;
};
}

int main(int argc, char **argv) {
    boat::MissionLog log(argc > 1 && !std::strcmp(argv[1], "slow"));
    boat::Helm helm(log);
    FILE *out = std::fopen("/dev/null", "w");
    std::thread writer([&] {
        for (;;) { log.Flush(out); std::this_thread::sleep_for(std::chrono::milliseconds(3)); }
    });
    for (;;) helm.Cycle();
}
