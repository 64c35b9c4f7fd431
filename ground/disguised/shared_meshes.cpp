// defect: two threads copy the same shared pointer for each point that they look at
// kinds: references-counted-each-step, false-sharing
// guilty: sim::Scanner::Range
#include <memory>
#include <thread>
#include "loop.hpp"

namespace sim {
struct Mesh {
    std::vector<double> heights = std::vector<double>(4096, 1.5);
};
class Scanner {
public:
    Scanner(std::shared_ptr<Mesh> mesh, bool slow) : mesh_(std::move(mesh)), slow_(slow) {}
    std::shared_ptr<Mesh> mesh() const { return mesh_; }
    double Range(int rays) {
        double sum = 0;
        for (int ray = 0; ray < rays; ++ray) sum += slow_ ? mesh()->heights[ray & 4095] : mesh_->heights[ray & 4095];
        return sum;
    }

private:
    std::shared_ptr<Mesh> mesh_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    bool slow = sim::IsSlow(argc, argv);
    auto mesh = std::make_shared<sim::Mesh>();
    sim::Scanner front(mesh, slow), rear(mesh, slow);
    std::thread background([&] {
        for (;;) {
            sim::sink = rear.Range(20000);
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
    });
    sim::Bodies bodies(2000);
    sim::Run([&](long) {
        bodies.Advance(5);
        sim::sink = front.Range(10000);
    });
}
