// defect: the planner throws and catches an exception for each blocked cell, which is a common answer
// kinds: exceptions-each-step
// guilty: Grid::expand, Grid::enter
// build: -O2 -g
// strip: all
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

struct Grid {
    std::vector<char> blocked = std::vector<char>(256 * 256);
    bool throws;
    __attribute__((noinline)) double enter(int cell) { if (blocked[cell]) throw std::runtime_error("blocked"); return std::sqrt(cell); }
    __attribute__((noinline)) std::optional<double> ask(int cell) { if (blocked[cell]) return {}; return std::sqrt(cell); }
    __attribute__((noinline)) double expand(int from) {
        double cost = 0;
        for (int k = 0; k < 400; ++k) {
            int cell = (from + k * 97) % (256 * 256);
            if (throws) { try { cost += enter(cell); } catch (const std::exception &) { cost += 1; } }
            else cost += ask(cell).value_or(1);
            for (int i = 0; i < 60; ++i) cost += 1e-9 * std::sin(cost + i);
        }
        return cost;
    }
};

int main(int argc, char **argv) {
    Grid grid;
    grid.throws = argc > 1 && !std::strcmp(argv[1], "slow");
    for (std::size_t i = 0; i < grid.blocked.size(); ++i) grid.blocked[i] = i % 5 == 0;
    volatile double sink;
    for (int from = 0;; ++from) sink = grid.expand(from);
}
