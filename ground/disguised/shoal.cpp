// defect: the rows of a triangle of pairs are dealt out to OpenMP threads in equal blocks, so the first thread has three times the work of the last
// kinds: barrier-imbalance
// guilty: shoal::Swarm::Repel, shoal::Swarm::Step
// build: -O2 -g -fopenmp
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <omp.h>

namespace shoal {
struct Fish { double x, y, vx, vy, fx, fy; };
class Swarm {
public:
    Swarm(int number, bool even) : even_(even), fish_(number) {
        for (int i = 0; i < number; ++i) fish_[i] = {std::cos(i * 0.7) * 40, std::sin(i * 1.3) * 40, 0, 0, 0, 0};
    }
    // Each pair is looked at from the fish with the smaller number.
    void Repel(int i) {
        double fx = 0, fy = 0;
        for (std::size_t j = i + 1; j < fish_.size(); ++j) {
            double dx = fish_[i].x - fish_[j].x, dy = fish_[i].y - fish_[j].y;
            double distance = std::sqrt(dx * dx + dy * dy) + 0.1;
            double force = std::exp(-distance * 0.2) / distance;
            fx += dx * force;
            fy += dy * force;
        }
        fish_[i].fx = fx;
        fish_[i].fy = fy;
    }
    void Step(double dt) {
        int number = (int)fish_.size();
        if (even_) {
#pragma omp parallel for schedule(dynamic, 8)
            for (int i = 0; i < number; ++i) Repel(i);
        } else {
#pragma omp parallel for schedule(static)
            for (int i = 0; i < number; ++i) Repel(i);
        }
        Move(dt);
    }
    void Move(double dt) {
        for (Fish &one : fish_) {
            one.vx = (one.vx + one.fx * dt) * 0.99 - one.x * 0.01 * dt;
            one.vy = (one.vy + one.fy * dt) * 0.99 - one.y * 0.01 * dt;
            one.x += one.vx * dt;
            one.y += one.vy * dt;
        }
    }
    double Sum() const { double sum = 0; for (const Fish &one : fish_) sum += one.x; return sum; }
private:
    bool even_;
    std::vector<Fish> fish_;
};
} // namespace shoal

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    omp_set_num_threads(2);
    shoal::Swarm swarm(900, !slow);
    for (long step = 0; step != steps; ++step) swarm.Step(0.005);
    std::printf("%g\n", swarm.Sum());
}
