// defect: cells of a spatial hash have texts such as "12:7" as keys, which are put together for each neighbour of each body
// kinds: text-keys-each-step, values-through-text, allocations-each-step, text-compared-each-step
// guilty: allotment::Field::Key, allotment::Field::At, allotment::Field::Enter, allotment::Field::Find
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace allotment {
struct Snail { double x, y, vx, vy; };
class Field {
public:
    explicit Field(bool text) : text_(text) {}
    void Clear() {
        for (auto &[key, cell] : by_text_) cell.clear();
        for (auto &[key, cell] : by_number_) cell.clear();
    }
    void Enter(int id, const Snail &one) { At((int)std::floor(one.x), (int)std::floor(one.y)).push_back(id); }
    std::vector<int> &At(int x, int y) {
        if (text_) return by_text_[Key(x, y)];
        return by_number_[((long)x << 32) ^ (unsigned)y];
    }
private:
    static std::string Key(int x, int y) { return "plot/" + std::to_string(x) + ":" + std::to_string(y) + "/snails"; }
    bool text_;
    std::unordered_map<std::string, std::vector<int>> by_text_;
    std::unordered_map<long, std::vector<int>> by_number_;
};
class Garden {
public:
    Garden(int number, bool text) : field_(text), snails_(number) {
        for (int i = 0; i < number; ++i) snails_[i] = {20 + 18 * std::cos(i * 0.37), 20 + 18 * std::sin(i * 0.91), std::sin(i), std::cos(i)};
    }
    double Step(double dt) {
        field_.Clear();
        for (std::size_t i = 0; i < snails_.size(); ++i) field_.Enter((int)i, snails_[i]);
        double sum = 0;
        for (Snail &one : snails_) sum += Avoid(one);
        for (Snail &one : snails_) {
            one.x = std::fmod(one.x + one.vx * dt + 40, 40);
            one.y = std::fmod(one.y + one.vy * dt + 40, 40);
        }
        return sum;
    }
    __attribute__((noinline)) double Avoid(Snail &one) {
        double push = 0;
        for (int dx = -1; dx <= 1; ++dx)
            for (int dy = -1; dy <= 1; ++dy)
                for (int other : field_.At((int)std::floor(one.x) + dx, (int)std::floor(one.y) + dy)) {
                    double x = snails_[other].x - one.x, y = snails_[other].y - one.y;
                    push += std::exp(-std::sqrt(x * x + y * y));
                }
        one.vx -= 1e-4 * push * one.vx;
        return push;
    }
private:
    Field field_;
    std::vector<Snail> snails_;
};
} // namespace allotment

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    allotment::Garden garden(1500, slow);
    double sum = 0;
    auto next = std::chrono::steady_clock::now();
    for (long step = 0; step != steps; ++step) {
        sum += garden.Step(0.01);
        next += std::chrono::milliseconds(10);
        if (steps < 0) std::this_thread::sleep_until(next);
    }
    std::printf("%g\n", sum);
}
