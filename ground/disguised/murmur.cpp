// defect: the text of debug messages is put together for each starling's neighbours, and thrown away as the level is off
// kinds: values-through-text, allocations-each-step
// guilty: murmur::Flock::Steer, murmur::Describe, murmur::Log::Debug, murmur::Text, murmur::Flock::Step
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace murmur {
enum class Level { Debug, Info, Error };

class Log {
public:
    Level level = Level::Info;
    void Write(Level of, const std::string &text) {
        if (of < level) return;
        std::cerr << text << '\n';
    }
};
static Log log_;
static bool asks_first = false;

struct Vec { double x, y, z; };
std::ostream &operator<<(std::ostream &out, const Vec &v) { return out << '(' << v.x << ", " << v.y << ", " << v.z << ')'; }

struct Starling { Vec place, speed; };

class Flock {
public:
    explicit Flock(int number) {
        for (int i = 0; i < number; ++i) {
            double a = i * 0.7;
            birds_.push_back({{std::cos(a) * 20, std::sin(a) * 20, i % 10 * 1.0}, {1, 0.5 * std::sin(a), 0}});
        }
    }
    void Steer(size_t index, double dt) {
        Starling &one = birds_[index];
        Vec pull{0, 0, 0};
        int near = 0;
        for (size_t i = 1; i <= 160; ++i) {
            const Starling &other = birds_[(index + i * 13) % birds_.size()];
            double dx = other.place.x - one.place.x, dy = other.place.y - one.place.y, dz = other.place.z - one.place.z;
            double distance = std::sqrt(dx * dx + dy * dy + dz * dz) + 0.1;
            if (distance < 15) { pull.x += dx / distance; pull.y += dy / distance; pull.z += dz / distance; ++near; }
        }
        if (!asks_first || log_.level <= Level::Debug) {
            std::ostringstream text;
            text << "starling " << std::setw(4) << index << " at " << one.place << " sees " << near << ", pull " << pull;
            log_.Write(Level::Debug, text.str());
        }
        one.speed.x += pull.x * dt; one.speed.y += pull.y * dt; one.speed.z += pull.z * dt;
        double speed = std::sqrt(one.speed.x * one.speed.x + one.speed.y * one.speed.y + one.speed.z * one.speed.z) + 1e-3;
        one.place.x += one.speed.x / speed * dt; one.place.y += one.speed.y / speed * dt; one.place.z += one.speed.z / speed * dt;
    }
    void Step(double dt) { for (size_t i = 0; i < birds_.size(); ++i) Steer(i, dt); }
    double X() const { return birds_[0].place.x; }
private:
    std::vector<Starling> birds_;
};
} // namespace murmur

int main(int argc, char **argv) {
    murmur::asks_first = !(argc > 1 && !std::strcmp(argv[1], "slow"));
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    murmur::Flock flock(1200);
    auto next = std::chrono::steady_clock::now();
    for (long step = 0; step != steps; ++step) {
        flock.Step(0.01);
        next += std::chrono::milliseconds(12);
        if (steps < 0) std::this_thread::sleep_until(next);
    }
    std::printf("%g\n", flock.X());
}
