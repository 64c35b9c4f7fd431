// defect: the height field is read and parsed once for physics, and once again for drawing
// kinds: work-done-twice, file-read-again
// guilty: terrain::Parse, terrain::Load, Physics::Physics, Drawing::Drawing
// phase: loading
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include "stepscope.h"

namespace terrain {
using Heights = std::vector<double>;
__attribute__((noinline)) Heights Parse(const std::string &text) {
    Heights heights;
    const char *at = text.c_str();
    char *end;
    for (;;) {
        double one = std::strtod(at, &end);
        if (end == at) return heights;
        heights.push_back(one);
        at = end;
    }
}
__attribute__((noinline)) Heights Load(const char *path) {
    FILE *file = std::fopen(path, "r");
    std::string text;
    char buffer[65536];
    while (std::size_t n = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, n);
    std::fclose(file);
    return Parse(text);
}
}

struct Physics {
    terrain::Heights field;
    __attribute__((noinline)) explicit Physics(const char *path) : field(terrain::Load(path)) {}
};
struct Drawing {
    terrain::Heights field;
    __attribute__((noinline)) explicit Drawing(const char *path) : field(terrain::Load(path)) {}
    __attribute__((noinline)) explicit Drawing(const terrain::Heights &known) : field(known) {}
};

int main(int argc, char **argv) {
    const char *path = "/dev/shm/stepscope_terrain.txt";
    if (!std::fopen(path, "r")) {
        FILE *file = std::fopen(path, "w");
        for (int i = 0; i < 1500000; ++i) std::fprintf(file, "%.6f\n", std::sin(i * 0.001) * 40);
        std::fclose(file);
    }
    Physics physics(path);
    double normal = 0;
    for (int round = 0; round < 4; ++round)
        for (std::size_t i = 1; i < physics.field.size(); ++i) normal += std::atan2(physics.field[i] - physics.field[i - 1], 0.5);
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    Drawing drawing = slow ? Drawing(path) : Drawing(physics.field);
    std::puts("ready");
    std::fflush(stdout);
    volatile double sink = normal;
    for (long step = 0;; ++step) {
        STEPSCOPE_STEP(step * 0.01);
        for (int i = 1; i < 30000; ++i) sink = sink + drawing.field[(step + i) % drawing.field.size()];
    }
}
