// defect: each assignment of a taxi is described by to_string and +, for a logger that drops it because its level is off
// kinds: values-through-text, allocations-each-step
// guilty: dispatch::Office::Assign, dispatch::Taxi::Describe, dispatch::Place::Text, dispatch::Logger::Debug, dispatch::Office::Step
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace dispatch {
struct Place {
    double x = 0, y = 0;
    std::string Text() const { return "(" + std::to_string(x) + ", " + std::to_string(y) + ")"; }
};
struct Taxi {
    int number = 0;
    Place place;
    double battery = 1;
    std::string Describe() const { return "taxi " + std::to_string(number) + " at " + place.Text() + ", battery " + std::to_string(battery); }
};
class Logger {
public:
    bool debug = false;
    void Debug(const std::string &text) { if (debug) std::fprintf(stderr, "%s\n", text.c_str()); }
};
class Office {
public:
    bool describes;
    Office(int taxis, bool all) : describes(all) {
        for (int i = 0; i < taxis; ++i) taxis_.push_back({i, {std::cos(i * 1.3) * 9, std::sin(i * 0.9) * 9}, 1});
    }
    void Assign(Taxi &taxi, const Place &to) {
        double dx = to.x - taxi.place.x, dy = to.y - taxi.place.y, way = std::sqrt(dx * dx + dy * dy);
        for (int k = 1; k <= 12; ++k) taxi.battery -= 1e-7 * std::log1p(way * k);
        taxi.place.x += 0.05 * dx; taxi.place.y += 0.05 * dy;
        if (describes) logger_.Debug(taxi.Describe() + " goes to " + to.Text());
    }
    void Step(double time) {
        for (Taxi &taxi : taxis_) {
            Place best{0, 0};
            double least = 1e9;
            for (int stand = 0; stand < 60; ++stand) {
                Place one{std::cos(time) * stand * 0.3, stand * 0.2};
                double far = std::hypot(one.x - taxi.place.x, one.y - taxi.place.y);
                if (far < least) least = far, best = one;
            }
            Assign(taxi, best);
        }
    }
    double X() const { return taxis_[0].place.x; }
private:
    std::vector<Taxi> taxis_;
    Logger logger_;
};
} // namespace dispatch

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    dispatch::Office office(500, slow);
    for (long step = 0; step != steps; ++step) office.Step(step * 0.01);
    std::printf("%g\n", office.X());
}
