// defect: each subscriber gets a copy of a large message
// kinds: copies-each-step, allocations-each-step, page-faults-each-step
// guilty: sim::Lidar::Send, sim::Lidar::Scan
#include <functional>
#include "loop.hpp"

namespace sim {
struct Cloud {
    std::vector<float> points;
    double time;
};

class Lidar {
public:
    explicit Lidar(bool slow) : slow_(slow) { scan_.points.resize(60000); }
    void Subscribe(std::function<void(const Cloud &)> subscriber) { subscribers_.push_back(std::move(subscriber)); }
    void Scan(double time) {
        scan_.time = time;
        for (std::size_t i = 0; i < scan_.points.size(); ++i) scan_.points[i] = float(i % 97) + float(time);
        Send();
    }

private:
    void Send() {
        for (auto &subscriber : subscribers_) {
            if (slow_) {
                Cloud copy = scan_;
                subscriber(copy);
            } else {
                subscriber(scan_);
            }
        }
    }
    Cloud scan_;
    std::vector<std::function<void(const Cloud &)>> subscribers_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Lidar lidar(sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    for (int i = 0; i < 12; ++i) lidar.Subscribe([i](const sim::Cloud &cloud) { sim::sink = cloud.points[i * 100]; });
    sim::Run([&](long step) {
        bodies.Advance(20);
        lidar.Scan(step * 0.001);
    });
}
