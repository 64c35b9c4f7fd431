// defect: each line of a log is written to its file by itself
// kinds: small-writes-each-step
// guilty: sim::FlightLog::Add
#include <fstream>
#include "loop.hpp"

namespace sim {
class FlightLog {
public:
    explicit FlightLog(bool slow) : out_("/dev/null"), slow_(slow) {}
    void Add(int vehicle, double height) {
        out_ << vehicle << ',' << int(height * 1000);
        if (slow_) out_ << std::endl;
        else out_ << '\n';
    }

private:
    std::ofstream out_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::FlightLog log(sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long) {
        bodies.Advance(20);
        for (int vehicle = 0; vehicle < 300; ++vehicle) log.Add(vehicle, bodies.at(vehicle));
    });
}
