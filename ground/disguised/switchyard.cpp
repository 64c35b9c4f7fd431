// defect: for each engine's line of the display the state of the own process is read from /proc again, by a stream that is opened for it
// kinds: kernel-files-read-again, file-opened-each-time
// guilty: yard::Gauge::Read, yard::Statm::Memory, yard::Display::Draw, yard::Gauge::Memory
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace yard {
struct Gauge { virtual ~Gauge() = default; virtual long Memory() = 0; };
struct Statm : Gauge {
    __attribute__((noinline)) long Memory() override {
        std::ifstream file("/proc/self/statm");
        long size = 0, resident = 0;
        file >> size >> resident;
        return resident;
    }
};
struct Engine { double place = 0, speed = 1; long memory = 0; };
class Display {
public:
    Display(std::unique_ptr<Gauge> gauge, bool each) : gauge_(std::move(gauge)), each_(each) {}
    __attribute__((noinline)) void Draw(std::vector<Engine> &engines) {
        long once = each_ ? 0 : gauge_->Memory();
        for (auto &engine : engines) engine.memory = each_ ? gauge_->Memory() : once;
    }

private:
    std::unique_ptr<Gauge> gauge_;
    bool each_;
};
__attribute__((noinline)) void Shunt(std::vector<Engine> &engines, double t) {
    for (int round = 0; round < 700; ++round)
        for (auto &engine : engines) {
            engine.speed = 0.99 * engine.speed + 0.01 * std::sin(t + engine.place);
            engine.place += 0.01 * engine.speed;
        }
}
} // namespace yard

int main(int argc, char **argv) {
    yard::Display display(std::make_unique<yard::Statm>(), argc > 1 && !std::strcmp(argv[1], "slow"));
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::vector<yard::Engine> engines(24);
    for (long step = 0; step != steps; ++step) {
        yard::Shunt(engines, step * 0.01);
        display.Draw(engines);
    }
    std::printf("%g\n", engines[3].place);
}
