// defect: in each step all cells are asked whether one of their tags is "flooded", though a handful of them are, and it is known which
// kinds: full-scan-each-step, list-search, called-very-often
// guilty: wetland::Marsh::Drain, wetland::Cell::Has, wetland::Marsh::Flooded, wetland::Marsh::Step
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace wetland {
enum class Tag : int { Reed, Peat, Path, Flooded };
struct Cell {
    double water = 0.5, height = 0;
    std::vector<Tag> tags;
    bool Has(Tag tag) const { return std::find(tags.begin(), tags.end(), tag) != tags.end(); }
};
class Marsh {
public:
    explicit Marsh(size_t number) : cells_(number) {
        for (size_t i = 0; i < number; ++i) {
            cells_[i].height = std::sin(double(i));
            if (i % 2) cells_[i].tags.push_back(Tag::Reed);
            if (i % 3) cells_[i].tags.push_back(Tag::Peat);
            if (i % 5000 == 7) cells_[i].tags.push_back(Tag::Flooded), flooded_.push_back(i);
        }
    }
    void Drain(Cell &cell) { for (int k = 0; k < 30; ++k) cell.water = cell.water * 0.999 + 0.0001 * std::exp(-cell.height * k); }
    void Step(double time, bool ask_all) {
        if (ask_all) {
            for (Cell &cell : cells_) if (cell.Has(Tag::Flooded)) Drain(cell);
        } else {
            for (size_t index : flooded_) Drain(cells_[index]);
        }
        for (size_t i = 0; i < 900; ++i) wind_ += std::sin(time + double(i)) * std::cos(wind_);
    }
    double Wind() const { return wind_ + cells_[7].water; }
private:
    std::vector<Cell> cells_;
    std::vector<size_t> flooded_;
    double wind_ = 0;
};
} // namespace wetland

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    wetland::Marsh marsh(20000);
    for (long step = 0; step != steps; ++step) marsh.Step(step * 0.01, slow);
    std::printf("%g\n", marsh.Wind());
}
