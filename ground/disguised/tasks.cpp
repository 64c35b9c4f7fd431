// defect: each step starts threads for its tasks
// kinds: threads-each-step
// guilty: sim::Planner::Plan
#include <future>
#include "loop.hpp"

namespace sim {
class Planner {
public:
    explicit Planner(bool slow) : paths_(4, Bodies(400)), slow_(slow) {}
    void Plan() {
        std::vector<std::future<void>> tasks;
        for (Bodies &path : paths_) {
            if (slow_) tasks.push_back(std::async(std::launch::async, [&path] { path.Advance(3); }));
            else path.Advance(3);
        }
        for (auto &task : tasks) task.get();
    }

private:
    std::vector<Bodies> paths_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Planner planner(sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long) {
        bodies.Advance(10);
        planner.Plan();
    });
}
