// defect: in each frame every tile is asked through a virtual function to animate itself, and nearly all of them do nothing
// kinds: full-scan-each-step, called-very-often
// guilty: mosaic::Floor::Animate, mosaic::Stone::Animate, mosaic::Floor::Frame
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

namespace mosaic {
struct Tile {
    virtual ~Tile() = default;
    virtual void Animate(double) {}
    virtual bool moves() const { return false; }
    double height = 0;
};
struct Stone : Tile {
    void Animate(double) override {}
    char colour[40] = {};
};
struct Fountain : Tile {
    void Animate(double t) override { height = 0.5 * height + std::sin(t + height); }
    bool moves() const override { return true; }
};
class Floor {
public:
    Floor(int number, bool all) : all_(all) {
        for (int i = 0; i < number; ++i) {
            if (i % 1500 == 7) tiles_.push_back(std::make_unique<Fountain>());
            else tiles_.push_back(std::make_unique<Stone>());
            if (tiles_.back()->moves()) fountains_.push_back(tiles_.back().get());
        }
    }
    __attribute__((noinline)) void Animate(double t) {
        if (!all_) {
            for (Tile *one : fountains_) one->Animate(t);
            return;
        }
        for (auto &one : tiles_) one->Animate(t);
    }
    __attribute__((noinline)) double Light(double t) {
        double sum = 0;
        for (int i = 0; i < 9000; ++i) sum += std::cos(t + i * 0.01) * std::sqrt(i + sum * sum);
        return sum;
    }

private:
    bool all_;
    std::deque<std::unique_ptr<Tile>> tiles_;
    std::vector<Tile *> fountains_;
};
} // namespace mosaic

int main(int argc, char **argv) {
    mosaic::Floor floor(60000, argc > 1 && !std::strcmp(argv[1], "slow"));
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    double sum = 0;
    for (long step = 0; step != steps; ++step) {
        floor.Animate(step * 0.01);
        sum += floor.Light(step * 0.01);
    }
    std::printf("%g\n", sum);
}
