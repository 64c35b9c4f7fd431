// defect: none; rays bounce by recursion, a quadtree is walked, shapes have virtual areas, a generator of numbers and small functions are called for work
// kinds: -
// guilty: -
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace ensemble {
struct Random {
    unsigned long state = 88172645463325252ul;
    __attribute__((noinline)) double Next() { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return (state >> 11) * 0x1p-53; }
};
struct Shape { virtual ~Shape() = default; virtual double Area() const = 0; virtual double Hit(double x, double y, double z) const = 0; };
struct Ball : Shape {
    double x, y, z, r;
    Ball(double x, double y, double z, double r) : x(x), y(y), z(z), r(r) {}
    double Area() const override { return 12.566 * r * r; }
    double Hit(double ax, double ay, double az) const override { double dx = x - ax, dy = y - ay, dz = z - az; return dx * dx + dy * dy + dz * dz - r * r; }
};
struct Scene {
    std::vector<std::unique_ptr<Shape>> shapes;
    __attribute__((noinline)) double Nearest(double x, double y, double z) const {
        double least = 1e9;
        for (auto &one : shapes) least = std::min(least, one->Hit(x, y, z));
        return least;
    }
    __attribute__((noinline)) double Trace(double x, double y, double z, int left, Random &random) const {
        double near = Nearest(x, y, z);
        if (left == 0 || near > 60) return 0.1;
        return 0.5 * near + 0.9 * Trace(x + random.Next(), y - random.Next(), z + random.Next(), left - 1, random);
    }
};
struct Quad {
    double mass = 0, x, y, size;
    std::unique_ptr<Quad> part[4];
    Quad(double x, double y, double size, int depth) : x(x), y(y), size(size) {
        if (depth == 0) { mass = x * x + y; return; }
        for (int i = 0; i < 4; ++i) { part[i] = std::make_unique<Quad>(x + size * (i & 1) / 2, y + size * (i / 2) / 2, size / 2, depth - 1); mass += part[i]->mass; }
    }
    __attribute__((noinline)) double Pull(double ax, double ay) const {
        double dx = x - ax, dy = y - ay, d = dx * dx + dy * dy + 0.01;
        if (!part[0] || size * size < 0.3 * d) return mass / d;
        double sum = 0;
        for (auto &one : part) sum += one->Pull(ax, ay);
        return sum;
    }
};
} // namespace ensemble

int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    ensemble::Random random;
    ensemble::Scene scene;
    for (int i = 0; i < 40; ++i) scene.shapes.push_back(std::make_unique<ensemble::Ball>(i % 7, i % 5, i % 3, 0.3));
    ensemble::Quad quad(-5, -5, 10, 5);
    double sum = 0;
    for (long step = 0; step != steps; ++step) {
        for (int i = 0; i < 60; ++i) sum += scene.Trace(random.Next(), random.Next(), random.Next(), 8, random);
        for (int i = 0; i < 60; ++i) sum += quad.Pull(std::sin(step + i), std::cos(step * 0.3 + i));
        for (auto &one : scene.shapes) sum += one->Area();
    }
    std::printf("%g\n", sum);
}
