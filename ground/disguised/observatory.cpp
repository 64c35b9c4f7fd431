// defect: the first step in which the telescope meets a new field builds that field's table of stars, which loading could have done
// kinds: rare-long-steps
// guilty: dome::Field::Stars, dome::Field::Grind, dome::Telescope::Look
// options: --step dome::Night::Tick
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

namespace dome {
struct Star { float right, down, light; };
class Field {
public:
    explicit Field(int number) : number_(number) {}
    const std::vector<Star> &Stars() { if (!stars_) stars_ = Grind(); return *stars_; }
    __attribute__((noinline)) std::vector<Star> Grind() const {
        std::vector<Star> stars(6000);
        for (std::size_t i = 0; i < stars.size(); ++i) {
            double light = 0;
            for (int k = 1; k < 22; ++k) light += std::sin(0.013 * i * k + number_) / k;
            stars[i] = {float(std::cos(i * 1.7 + number_)), float(std::sin(i * 2.1)), float(light)};
        }
        return stars;
    }

private:
    int number_;
    std::optional<std::vector<Star>> stars_;
};
class Telescope {
public:
    Telescope(int fields, bool lazy) {
        for (int i = 0; i < fields; ++i) fields_.emplace_back(i);
        if (!lazy) for (auto &field : fields_) field.Stars();
    }
    __attribute__((noinline)) float Look(long step) {
        Field &field = fields_[step / 25 % fields_.size()];
        const auto &stars = field.Stars();
        float best = 0;
        for (std::size_t i = step % 64; i < stars.size(); i += 64) best = std::max(best, stars[i].light);
        return best;
    }

private:
    std::vector<Field> fields_;
};
class Night {
public:
    explicit Night(bool lazy) : telescope_(900, lazy), arm_(2000) {}
    __attribute__((noinline)) void Tick(long step) {
        for (std::size_t i = 0; i < arm_.size(); ++i) arm_[i] = 0.9 * arm_[i] + 0.1 * std::sin(step * 0.01 + i * 0.2);
        for (std::size_t i = 1; i < arm_.size(); ++i) arm_[i] += 0.01 * std::cos(arm_[i - 1]);
        seen_ += telescope_.Look(step);
    }
    double seen() const { return seen_; }

private:
    Telescope telescope_;
    std::vector<double> arm_;
    double seen_ = 0;
};
} // namespace dome

int main(int argc, char **argv) {
    dome::Night night(argc > 1 && !std::strcmp(argv[1], "slow"));
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    for (long step = 0; step != steps; ++step) night.Tick(step);
    std::printf("%g\n", night.seen());
}
