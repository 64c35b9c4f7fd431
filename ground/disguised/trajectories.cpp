// defect: an accessor returns a whole path by value
// kinds: copies-each-step, allocations-each-step
// guilty: sim::Vehicle::Path, sim::Fleet::Spread
#include "loop.hpp"

namespace sim {
struct Waypoint {
    double x, y, heading;
};

class Vehicle {
public:
    explicit Vehicle(int number) {
        for (int i = 0; i < 300; ++i) path_.push_back({i * 0.5, number * 2.0, 0.0});
    }
    std::vector<Waypoint> Path() const { return path_; }
    const std::vector<Waypoint> &path() const { return path_; }

private:
    std::vector<Waypoint> path_;
};

class Fleet {
public:
    Fleet(int number, bool slow) : slow_(slow) {
        for (int i = 0; i < number; ++i) vehicles_.emplace_back(i);
    }
    double Spread(long step) const {
        double sum = 0;
        for (const Vehicle &vehicle : vehicles_) sum += slow_ ? At(vehicle.Path(), step) : At(vehicle.path(), step);
        return sum;
    }

private:
    static double At(const std::vector<Waypoint> &path, long step) {
        const Waypoint &at = path[step % path.size()];
        return at.x * at.x + at.y * at.y;
    }
    std::vector<Vehicle> vehicles_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Fleet fleet(80, sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        sim::sink = fleet.Spread(step);
        bodies.Advance(4);
    });
}
