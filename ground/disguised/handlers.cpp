// defect: events copy each handler, with what it captured, before they call it
// kinds: allocations-each-step, copies-each-step
// guilty: sim::Events::Emit
#include <array>
#include <functional>
#include <list>
#include "loop.hpp"

namespace sim {
class Events {
public:
    explicit Events(bool slow) : slow_(slow) {}
    void Connect(std::function<double(double)> handler) { handlers_.push_back(std::move(handler)); }
    double Emit(double value) {
        double sum = 0;
        if (slow_)
            for (auto handler : handlers_) sum += handler(value);
        else
            for (auto &handler : handlers_) sum += handler(value);
        return sum;
    }

private:
    std::list<std::function<double(double)>> handlers_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Events events(sim::IsSlow(argc, argv));
    for (int i = 0; i < 40; ++i) {
        std::array<double, 24> gains;
        gains.fill(i);
        events.Connect([gains](double value) { return gains[int(value) & 15] * value; });
    }
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        bodies.Advance(2);
        for (int i = 0; i < 20; ++i) sim::sink = events.Emit(step % 100);
    });
}
