// defect: each of 240 costumes reads and decodes its texture from its file, though there are six textures
// kinds: file-read-again, file-opened-each-time, work-done-twice, decoding-in-steps, same-work-for-each-object
// guilty: wardrobe::Texture::Decode, wardrobe::Texture::Texture, wardrobe::Library::Load, wardrobe::Costume::Costume, wardrobe::ReadFile, wardrobe::Inflate
// build: -O2 -g
// libraries: -lz
#include <zlib.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace wardrobe {
constexpr size_t kSide = 512;
using Bytes = std::vector<unsigned char>;

__attribute__((noinline)) Bytes ReadFile(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(in), {});
}

struct Texture {
    Bytes pixels;
    explicit Texture(const std::string &path) { Decode(ReadFile(path)); }
    void Decode(const Bytes &packed) {
        pixels.resize(kSide * kSide * 4);
        uLongf size = pixels.size();
        if (uncompress(pixels.data(), &size, packed.data(), packed.size()) != Z_OK) std::abort();
        for (size_t i = 0; i < pixels.size(); i += 4) // swaps red and blue
            std::swap(pixels[i], pixels[i + 2]);
    }
};

class Library {
public:
    bool keeps = false;
    std::shared_ptr<Texture> Load(const std::string &path) {
        if (!keeps) return std::make_shared<Texture>(path);
        auto &known = textures_[path];
        if (!known) known = std::make_shared<Texture>(path);
        return known;
    }
private:
    std::map<std::string, std::shared_ptr<Texture>> textures_;
};

struct Costume {
    std::shared_ptr<Texture> texture;
    double shade = 0;
    void Light(double time) {
        for (int i = 0; i < 2000; ++i) shade += std::sin(time + i) * texture->pixels[size_t(i) * 64] * 1e-6;
    }
};

std::string Path(int number) { return "/tmp/wardrobe_" + std::to_string(getpid()) + "_" + std::to_string(number); }

void Make(int number) {
    Bytes raw(kSide * kSide * 4);
    unsigned state = unsigned(number) + 1;
    for (auto &one : raw) { state = state * 1664525u + 1013904223u; one = (state >> 24) & 0x1f; }
    uLongf size = compressBound(raw.size());
    Bytes packed(size);
    compress2(packed.data(), &size, raw.data(), raw.size(), 1);
    std::ofstream(Path(number), std::ios::binary).write(reinterpret_cast<char *>(packed.data()), long(size));
}
} // namespace wardrobe

int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    wardrobe::Library library;
    library.keeps = !(argc > 1 && !std::strcmp(argv[1], "slow"));
    for (int i = 0; i < 6; ++i) wardrobe::Make(i);
    std::vector<wardrobe::Costume> costumes;
    for (int i = 0; i < 240; ++i) costumes.push_back({library.Load(wardrobe::Path(i % 6))});
    for (int i = 0; i < 6; ++i) unlink(wardrobe::Path(i).c_str());
    auto next = std::chrono::steady_clock::now();
    double time = 0;
    for (long step = 0; step != steps; ++step, time += 0.02) {
        for (auto &one : costumes) one.Light(time);
        next += std::chrono::milliseconds(20);
        if (steps < 0) std::this_thread::sleep_until(next);
    }
    std::printf("%g\n", costumes[0].shade);
}
