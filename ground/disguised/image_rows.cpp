// defect: rows of an image are dealt out in blocks, and those of the sky cost nothing
// kinds: barrier-imbalance
// guilty: sim::Image::Trace
#include <semaphore>
#include <thread>
#include "loop.hpp"

namespace sim {
class Image {
public:
    Image(int rows, bool slow) : light_(rows), slow_(slow) {}
    void Trace(int worker, int workers) {
        int rows = light_.size();
        for (int i = 0; i < rows / workers; ++i) {
            int row = slow_ ? worker * (rows / workers) + i : i * workers + worker;
            int rays = row < rows / 2 ? 20 : 400;
            for (int ray = 0; ray < rays; ++ray) light_[row] += std::exp(-0.01 * ray) * std::cos(light_[row] + ray);
        }
    }

private:
    std::vector<double> light_;
    bool slow_;
};

struct Worker {
    std::binary_semaphore start{0}, done{0};
    std::thread thread;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Image image(240, sim::IsSlow(argc, argv));
    sim::Worker workers[2];
    for (int i = 0; i < 2; ++i)
        workers[i].thread = std::thread([&image, &worker = workers[i], i] {
            for (;;) {
                worker.start.acquire();
                image.Trace(i, 2);
                worker.done.release();
            }
        });
    sim::Bodies bodies(2000);
    sim::Run([&](long) {
        bodies.Advance(3);
        for (sim::Worker &worker : workers) worker.start.release();
        for (sim::Worker &worker : workers) worker.done.acquire();
    });
}
