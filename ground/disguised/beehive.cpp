// defect: which cell a bee owns is searched in a fixed table, slot by slot, by a loop of its own
// kinds: list-search, superlinear-lookup
// guilty: hive::Comb::Visit, hive::Slots::Find
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace hive {
struct Cell { uint32_t bee; float honey; float wax; uint32_t mites; uint64_t sealed; };
template <class T, unsigned N> struct Slots {
    T at[N];
    unsigned used = 0;
    T *Find(uint32_t key) {
        for (unsigned i = 0; i < used; ++i)
            if (at[i].bee == key) return &at[i];
        return nullptr;
    }
};
struct Comb {
    Slots<Cell, 4096> cells;
    unsigned index[65536];
    bool searches;
    __attribute__((noinline)) float Visit(uint32_t bee, float load) {
        Cell *cell = searches ? cells.Find(bee) : &cells.at[index[bee & 65535]];
        if (!cell) return 0;
        cell->honey += load;
        cell->wax = cell->wax * 0.99f + std::sqrt(cell->honey) * 0.01f;
        return cell->wax;
    }
};
__attribute__((noinline)) float Weather(float *field, int n, float t) {
    float sum = 0;
    for (int i = 1; i + 1 < n; ++i) { field[i] = 0.3f * (field[i - 1] + field[i] + field[i + 1]) + std::sin(t + i) * 0.01f; sum += field[i]; }
    return sum;
}
}

int main(int argc, char **argv) {
    static hive::Comb comb;
    comb.searches = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    static float field[3000];
    const unsigned n = 600;
    for (unsigned i = 0; i < n; ++i) { uint32_t bee = (i * 2654435761u) >> 12; comb.cells.at[i] = {bee, 1, 1, 0, 0}; comb.index[bee & 65535] = i; }
    comb.cells.used = n;
    float total = 0;
    for (long step = 0; step != steps; ++step) {
        total += hive::Weather(field, 3000, step * 0.01f);
        for (unsigned i = 0; i < 150; ++i) total += comb.Visit((((i * 7 + step) % n) * 2654435761u) >> 12, 0.1f);
    }
    std::printf("%g\n", total);
}
