// defect: a step waits for its sensor by looking again every now and then
// kinds: sleep-within-step, polling
// guilty: sim::Sensor::Await
#include <atomic>
#include <chrono>
#include <thread>
#include "loop.hpp"

namespace sim {
class Sensor {
public:
    explicit Sensor(bool slow) : slow_(slow) {
        thread_ = std::thread([this] {
            for (long done = 0;;) {
                wanted_.wait(done);
                done = wanted_.load();
                bodies_.Advance(1);
                ready_.store(done);
                ready_.notify_one();
            }
        });
    }
    void Ask(long step) {
        wanted_.store(step);
        wanted_.notify_one();
    }
    void Await(long step) {
        while (ready_.load() != step) {
            if (slow_) std::this_thread::sleep_for(std::chrono::microseconds(800));
            else ready_.wait(step - 1);
        }
    }

private:
    std::thread thread_;
    std::atomic<long> wanted_{0}, ready_{0};
    Bodies bodies_{500};
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Sensor sensor(sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        bodies.Advance(5);
        sensor.Ask(step + 1);
        sensor.Await(step + 1);
        bodies.Advance(5);
    });
}
