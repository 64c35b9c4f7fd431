// defect: the same four tiles are inflated again for each frame
// kinds: decoding-in-steps
// guilty: atlas::Draw, atlas::Pixels
// build: -O2 -fno-omit-frame-pointer
// libraries: -lz
#include <zlib.h>
#include <cmath>
#include <cstring>
#include <vector>

namespace atlas {
using Tile = std::vector<unsigned char>;
Tile packed[4], kept[4];
constexpr std::size_t kSize = 1 << 16;
__attribute__((noinline)) Tile Pixels(int tile) {
    Tile pixels(kSize);
    uLongf size = kSize;
    uncompress(pixels.data(), &size, packed[tile].data(), packed[tile].size());
    return pixels;
}
__attribute__((noinline)) double Draw(bool again, double at) {
    double light = 0;
    for (int tile = 0; tile < 4; ++tile) {
        Tile mine;
        if (again) mine = Pixels(tile);
        const Tile &pixels = again ? mine : kept[tile];
        for (std::size_t i = 0; i < pixels.size(); i += 4) light += std::sqrt(pixels[i] + at);
    }
    return light;
}
}

int main(int argc, char **argv) {
    for (int tile = 0; tile < 4; ++tile) {
        atlas::Tile raw(atlas::kSize);
        for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<unsigned char>(i * (tile + 3) / 64 + i % 5);
        uLongf size = compressBound(raw.size());
        atlas::packed[tile].resize(size);
        compress(atlas::packed[tile].data(), &size, raw.data(), raw.size());
        atlas::kept[tile] = raw;
    }
    volatile double light = 0;
    for (double at = 0;; at += 0.1) light = light + atlas::Draw(argc > 1 && !std::strcmp(argv[1], "slow"), at);
}
