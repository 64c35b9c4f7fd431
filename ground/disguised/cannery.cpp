// defect: the state of the line is handed by value to each of the machines, which only read it: its map of jars is copied
// kinds: copies-each-step, allocations-each-step
// guilty: cannery::Line::Turn, cannery::Machine::Look
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace cannery {
struct Jar { std::string label; double weight; };
using State = std::map<int, Jar>;
struct Machine {
    double sum = 0;
    __attribute__((noinline)) void Look(State state, double t) { Read(state, t); }
    __attribute__((noinline)) void Share(const State &state, double t) { Read(state, t); }
    void Read(const State &state, double t) {
        for (auto &[number, jar] : state) sum += std::sin(jar.weight + t) * std::exp(-0.001 * number);
    }
};
struct Line {
    State state;
    std::vector<Machine> machines = std::vector<Machine>(6);
    __attribute__((noinline)) void Turn(double t, bool copies) {
        for (auto &one : machines) {
            if (copies) one.Look(state, t);
            else one.Share(state, t);
        }
    }
};
} // namespace cannery

int main(int argc, char **argv) {
    bool copies = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    cannery::Line line;
    for (int i = 0; i < 400; ++i) line.state[i] = {"jar of pickled cucumbers number " + std::to_string(i), i * 0.1};
    for (long step = 0; step != steps; ++step) line.Turn(step * 0.01, copies);
    std::printf("%g\n", line.machines[3].sum);
}
