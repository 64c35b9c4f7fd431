// defect: the first step builds the table of all routes, which loading could have done
// kinds: long-first-step
// guilty: Depot::routes, Depot::step, Depot::build
// build: -O2 -g
// options: --step Depot::step
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

struct Depot {
    int n = 420;
    std::vector<float> table;
    __attribute__((noinline)) void build() {
        std::vector<float> d(n * n);
        for (int i = 0; i < n * n; ++i) d[i] = 1 + std::fabs(std::sin(i * 1.7f)) * 100;
        for (int k = 0; k < n; ++k)
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < n; ++j) d[i * n + j] = std::min(d[i * n + j], d[i * n + k] + d[k * n + j]);
        table = d;
    }
    __attribute__((noinline)) const std::vector<float> &routes() { if (table.empty()) build(); return table; }
    __attribute__((noinline)) double step(int tick) {
        double sum = 0;
        const auto &all = routes();
        for (int i = 0; i < 40000; ++i) sum += std::sin(all[(tick * 31 + i) % all.size()]);
        return sum;
    }
};

int main(int argc, char **argv) {
    Depot depot;
    if (!(argc > 1 && !std::strcmp(argv[1], "slow"))) depot.build();
    volatile double sink;
    for (int tick = 0;; ++tick) { sink = depot.step(tick); std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
}
