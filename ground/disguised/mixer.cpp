// defect: each block of sound is mixed in a fresh buffer of 40 MiB, whose pages the kernel has to clear
// kinds: page-faults-each-step, allocations-each-step
// guilty: Mixer::mix, Mixer::step
// build: -O2
#include <cmath>
#include <cstdlib>
#include <cstring>

struct Mixer {
    bool fresh;
    float *kept = static_cast<float *>(std::malloc(40 << 20));
    double level = 0;
    __attribute__((noinline)) void mix(float *buffer) { for (int i = 0; i < (40 << 20) / 4; i += 1024) buffer[i] = level + i; }
    __attribute__((noinline)) void step() {
        float *buffer = fresh ? static_cast<float *>(std::malloc(40 << 20)) : kept;
        mix(buffer);
        for (int i = 0; i < 60000; ++i) level += 1e-6 * std::sin(buffer[i * 32]);
        if (fresh) std::free(buffer);
    }
};

int main(int argc, char **argv) {
    Mixer mixer;
    mixer.fresh = argc > 1 && !std::strcmp(argv[1], "slow");
    for (;;) mixer.step();
}
