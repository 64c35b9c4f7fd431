// defect: each step encodes a picture for viewers, and nobody views
// kinds: no-consumer, encoding-in-steps
// guilty: camera::Encode, camera::Publish
// build: -O2 -g
// options: --step camera::Tick
// libraries: -lz
#include <zlib.h>
#include <cmath>
#include <cstring>
#include <vector>

namespace camera {
std::vector<unsigned char> picture(160 * 120 * 3), packed(80000);
std::vector<int> viewers;
bool always;
double body = 0.1;
__attribute__((noinline)) std::size_t Encode() {
    uLongf size = packed.size();
    compress2(packed.data(), &size, picture.data(), picture.size(), 1);
    return size;
}
__attribute__((noinline)) void Publish() {
    if (!always && viewers.empty()) return;
    std::size_t size = Encode();
    for (int viewer : viewers) packed[viewer] = size & 255;
}
__attribute__((noinline)) void Tick(int step) {
    for (int i = 0; i < 60000; ++i) body += 1e-6 * std::sin(body + i);
    for (std::size_t i = step % 5; i < picture.size(); i += 5) picture[i] = static_cast<unsigned char>(i * step);
    Publish();
}
}

int main(int argc, char **argv) {
    camera::always = argc > 1 && !std::strcmp(argv[1], "slow");
    for (int step = 0;; ++step) camera::Tick(step);
}
