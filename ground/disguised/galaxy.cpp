// defect: none; bodies within a distance of each other attract, which takes a test of all pairs
// kinds: -
// guilty: -
// build: -O2 -g
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace sky {
struct Star { double x, y, z, vx, vy, vz, mass; };
__attribute__((noinline)) double Pull(std::vector<Star> &stars) {
    double energy = 0;
    for (size_t i = 0; i < stars.size(); ++i)
        for (size_t k = i + 1; k < stars.size(); ++k) {
            double dx = stars[k].x - stars[i].x, dy = stars[k].y - stars[i].y, dz = stars[k].z - stars[i].z;
            double d2 = dx * dx + dy * dy + dz * dz;
            if (d2 > 4) continue;
            double force = stars[k].mass / (d2 + 0.1);
            stars[i].vx += dx * force * 1e-4; stars[i].vy += dy * force * 1e-4; stars[i].vz += dz * force * 1e-4;
            stars[k].vx -= dx * force * 1e-4; stars[k].vy -= dy * force * 1e-4; stars[k].vz -= dz * force * 1e-4;
            energy += force;
        }
    return energy;
}
__attribute__((noinline)) size_t Nearest(const std::vector<Star> &stars, double x) {
    size_t best = 0;
    double least = 1e300;
    for (size_t i = 0; i < stars.size(); ++i) { double d = (stars[i].x - x) * (stars[i].x - x); if (d < least) { least = d; best = i; } }
    return best;
}
__attribute__((noinline)) void Move(std::vector<Star> &stars) { for (auto &one : stars) { one.x += one.vx; one.y += one.vy; one.z += one.vz; } }
}
int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::vector<sky::Star> stars;
    for (int i = 0; i < 700; ++i) stars.push_back({(i * 37 % 101) * 0.2, (i * 53 % 97) * 0.2, (i * 71 % 89) * 0.2, 0, 0, 0, 1});
    double sum = 0;
    for (long step = 0; step != steps; ++step) { sum += sky::Pull(stars); for (int i = 0; i < 60; ++i) sum += double(sky::Nearest(stars, i * 0.3)); sky::Move(stars); }
    std::printf("%g\n", sum);
}
