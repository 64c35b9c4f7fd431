// defect: the boats are dealt out to three crews by their class, and nearly all boats that tack are of the last class, so two crews wait at the barrier
// kinds: barrier-imbalance
// guilty: regatta::Regatta::Sail, regatta::Regatta::Crew, regatta::Boat::Tack
// build: -O2 -g
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace regatta {
struct Boat {
    double x = 0, heading = 0.3, heel = 0;
    int manoeuvres = 1;
    void Tack(double wind) {
        for (int i = 0; i < manoeuvres; ++i) {
            heel = std::sin(heading + wind) * 0.5 + heel * 0.5;
            heading += std::atan2(heel, 1 + x * 1e-6) * 0.01;
            x += std::cos(heading) * 0.01;
        }
    }
};

class Regatta {
public:
    Regatta(bool by_class, long steps) : by_class_(by_class), steps_(steps), sync_(3) {
        for (int i = 0; i < 600; ++i) {
            Boat boat;
            boat.manoeuvres = i >= 400 ? 60 : 12;
            boats_.push_back(boat);
        }
    }
    void Run() {
        std::vector<std::thread> crews;
        for (int i = 0; i < 3; ++i) crews.emplace_back(&Regatta::Crew, this, i);
        for (auto &one : crews) one.join();
    }
    double First() const { return boats_[0].x; }
private:
    void Sail(int crew) {
        size_t number = boats_.size();
        if (by_class_)
            for (size_t i = number / 3 * size_t(crew); i < number / 3 * size_t(crew + 1); ++i) boats_[i].Tack(wind_);
        else
            for (size_t i = size_t(crew); i < number; i += 3) boats_[i].Tack(wind_);
    }
    void Crew(int crew) {
        for (long step = 0; step != steps_; ++step) {
            Sail(crew);
            sync_.arrive_and_wait();
            if (crew == 0) wind_ = std::sin(double(step) * 0.01);
            sync_.arrive_and_wait();
        }
    }
    bool by_class_;
    long steps_;
    std::barrier<> sync_;
    std::vector<Boat> boats_;
    double wind_ = 0;
};
} // namespace regatta

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    regatta::Regatta regatta(slow, argc > 2 ? std::atol(argv[2]) : -1);
    regatta.Run();
    std::printf("%g\n", regatta.First());
}
