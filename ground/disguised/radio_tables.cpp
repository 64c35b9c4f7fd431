// defect: each object calculates the same table while the world is loaded
// kinds: same-work-for-each-object, unused-initialisation
// guilty: sim::Radio::Radio, sim::BuildErrorRates
// phase: loading
#include <memory>
#include "loop.hpp"

namespace sim {
using Table = std::vector<double>;

Table BuildErrorRates() {
    Table table;
    for (int scheme = 1; scheme <= 8; ++scheme)
        for (int snr = 0; snr < 600; ++snr) {
            double rate = 0.5 * std::erfc(std::sqrt(std::pow(10.0, snr / 200.0) / scheme));
            for (int block = 0; block < 12; ++block) rate = 1 - std::pow(1 - rate, 1.0 + block * 0.1);
            table.push_back(rate);
        }
    return table;
}

class Radio {
public:
    explicit Radio(std::shared_ptr<const Table> shared) : table_(shared ? shared : std::make_shared<Table>(BuildErrorRates())) {}
    double Loss(std::size_t snr) const { return (*table_)[snr % table_->size()]; }

private:
    std::shared_ptr<const Table> table_;
};

struct Link {
    double distance, gain;
};

/// What each vehicle needs of its own.
std::vector<Link> Links(int vehicle) {
    std::vector<Link> links;
    for (int other = 0; other < 20000; ++other) {
        double distance = std::hypot(vehicle - other, std::sin(vehicle * other));
        links.push_back({distance, -20 * std::log10(distance + 1)});
    }
    return links;
}
} // namespace sim

int main(int argc, char **argv) {
    bool slow = sim::IsSlow(argc, argv);
    auto shared = slow ? nullptr : std::make_shared<const sim::Table>(sim::BuildErrorRates());
    std::vector<sim::Radio> radios;
    std::vector<std::vector<sim::Link>> links;
    for (int vehicle = 0; vehicle < 150; ++vehicle) {
        links.push_back(sim::Links(vehicle));
        radios.emplace_back(shared);
    }
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        bodies.Advance(20);
        sim::sink = radios[step % radios.size()].Loss(step) + links[step % 150][step % 20000].gain;
    });
}
