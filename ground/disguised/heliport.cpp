// defect: each drone's pad is found in a tree by a name that is put together for the look-up
// kinds: text-keys-each-step, allocations-each-step
// guilty: heliport::Pads::Of, heliport::Traffic::Guide
// build: -O2 -g
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace heliport {

struct Pad { double x, y; int landings = 0; };

class Pads {
public:
    explicit Pads(int count) {
        for (int i = 0; i < count; ++i) {
            pads_["terminal_north/pad_" + std::to_string(i)] = {std::cos(i * 0.1) * 100, std::sin(i * 0.1) * 100};
        }
        for (int i = 0; i < count; ++i) direct_.push_back(&pads_["terminal_north/pad_" + std::to_string(i)]);
    }
    __attribute__((noinline)) Pad &Of(int number) { return pads_.at("terminal_north/pad_" + std::to_string(number)); }
    Pad &Direct(int number) { return *direct_[number]; }

private:
    std::map<std::string, Pad> pads_;
    std::vector<Pad *> direct_;
};

struct Drone { double x = 0, y = 0, vx = 0, vy = 0, battery = 1; int pad = 0; };

class Wind {
public:
    Wind() : field_(64 * 64) {}
    __attribute__((noinline)) void Blow(double t) {
        for (int y = 0; y < 64; ++y)
            for (int x = 0; x < 64; ++x) field_[y * 64 + x] = 0.3 * std::sin(0.1 * x + t) * std::cos(0.07 * y - t);
    }
    double at(double x, double y) const { return field_[(int(std::fabs(y)) & 63) * 64 + (int(std::fabs(x)) & 63)]; }

private:
    std::vector<double> field_;
};

class Traffic {
public:
    Traffic(int drones, bool slow) : slow_(slow), pads_(300), drones_(drones) {
        for (int i = 0; i < drones; ++i) drones_[i].pad = i * 7 % 300;
    }
    void Tick(double t) {
        wind_.Blow(t);
        for (Drone &drone : drones_) Guide(drone);
        Separate();
    }

private:
    __attribute__((noinline)) void Guide(Drone &drone) {
        Pad &pad = slow_ ? pads_.Of(drone.pad) : pads_.Direct(drone.pad);
        double dx = pad.x - drone.x, dy = pad.y - drone.y, away = std::hypot(dx, dy);
        if (away < 1) { pad.landings++; drone.pad = (drone.pad + 13) % 300; }
        double push = 0.5 / (1 + away);
        drone.vx += push * dx + 0.001 * wind_.at(drone.x, drone.y);
        drone.vy += push * dy - 0.001 * wind_.at(drone.y, drone.x);
        drone.vx *= 0.98; drone.vy *= 0.98;
        drone.x += 0.01 * drone.vx; drone.y += 0.01 * drone.vy;
        drone.battery -= 1e-7 * (drone.vx * drone.vx + drone.vy * drone.vy);
    }
    __attribute__((noinline)) void Separate() {
        for (std::size_t i = 0; i + 8 < drones_.size(); ++i)
            for (std::size_t j = i + 1; j < i + 8; ++j) {
                double dx = drones_[i].x - drones_[j].x, dy = drones_[i].y - drones_[j].y, d = dx * dx + dy * dy + 0.01;
                drones_[i].vx += 1e-4 * dx / d; drones_[i].vy += 1e-4 * dy / d;
            }
    }
    bool slow_;
    Wind wind_;
    Pads pads_;
    std::vector<Drone> drones_;
};

} // namespace heliport

int main(int argc, char **argv) {
    heliport::Traffic traffic(1200, argc > 1 && !std::strcmp(argv[1], "slow"));
    long count = argc > 2 ? std::atol(argv[2]) : 0;
    for (long at = 0; count == 0 || at < count; ++at) traffic.Tick(at * 0.01);
}
