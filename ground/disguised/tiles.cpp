// defect: map tiles are inflated when the vehicle first comes to them, in the step
// kinds: rare-long-steps, decoding-in-steps
// guilty: tiles::Map::Tile, tiles::Map::Cost, tiles::Unpack
// build: -O2 -g
// libraries: -lz
#include <zlib.h>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>
#include "stepscope.h"

namespace tiles {
std::vector<unsigned char> packed;
constexpr std::size_t kSize = 3 << 20;

__attribute__((noinline)) std::vector<unsigned char> Unpack() {
    std::vector<unsigned char> out(kSize);
    uLongf size = kSize;
    uncompress(out.data(), &size, packed.data(), packed.size());
    return out;
}
class Map {
public:
    explicit Map(bool early) { if (early) for (int i = 0; i < 64; ++i) cells_[i] = Unpack(); }
    __attribute__((noinline)) const std::vector<unsigned char> &Tile(int number) {
        auto &cells = cells_[number];
        if (cells.empty()) { if (cells_.size() > 40) cells_.erase(cells_.begin()); cells_[number] = Unpack(); }
        return cells_[number];
    }
    __attribute__((noinline)) double Cost(double at) {
        const auto &cells = Tile(static_cast<int>(at) % 64);
        double cost = 0;
        for (int i = 0; i < 60000; ++i) cost += std::sqrt(cells[(i * 37) % cells.size()] + at);
        return cost;
    }
private:
    std::map<int, std::vector<unsigned char>> cells_;
};
}

int main(int argc, char **argv) {
    std::vector<unsigned char> raw(tiles::kSize);
    for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<unsigned char>(127 + 100 * std::sin(i * 0.01) + i % 7);
    tiles::packed.resize(compressBound(raw.size()));
    uLongf size = tiles::packed.size();
    compress2(tiles::packed.data(), &size, raw.data(), raw.size(), 6);
    tiles::packed.resize(size);
    tiles::Map map(!(argc > 1 && !std::strcmp(argv[1], "slow")));
    volatile double sink;
    for (long step = 0;; ++step) {
        STEPSCOPE_STEP(step * 0.02);
        sink = map.Cost(step * 0.04);
    }
}
