// defect: a recorder holds the world's lock while it encodes the state
// kinds: lock-wait
// guilty: sim::World::Step, sim::World::Encode
#include <mutex>
#include <shared_mutex>
#include <thread>
#include "loop.hpp"

namespace sim {
class World {
public:
    explicit World(bool slow) : state_(20000), slow_(slow) {}
    void Step(double time) {
        bodies_.Advance(10);
        std::unique_lock lock(mutex_);
        for (double &value : state_) value += time * 1e-9;
    }
    void Encode() {
        std::vector<double> copy;
        std::shared_lock lock(mutex_);
        if (!slow_) {
            copy = state_;
            lock.unlock();
        }
        double sum = 0;
        for (double value : slow_ ? state_ : copy) sum += std::sin(value) * std::cos(value);
        sink = sum;
    }

private:
    std::vector<double> state_;
    std::shared_mutex mutex_;
    Bodies bodies_{2000};
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::World world(sim::IsSlow(argc, argv));
    std::thread recorder([&] {
        for (;;) {
            world.Encode();
            std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
    });
    sim::Run([&](long step) { world.Step(step * 0.001); });
}
