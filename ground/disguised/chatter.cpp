// defect: each contact of each step is written to a log at its most talkative level, formatted by a stream
// kinds: values-through-text, small-writes-each-step
// guilty: Log::line, Solver::solve, Solver::contact
// build: -O2 -g
// strip: -g
#include <cmath>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <sstream>

struct Log {
    std::ofstream out{"/dev/null"};
    int level = 0;
    __attribute__((noinline)) void line(int contact, double depth, double force) {
        std::ostringstream text;
        text << "[debug] contact " << contact << " depth " << std::setprecision(9) << depth << " force " << force << '\n';
        out << text.str();
    }
};
struct Solver {
    Log log;
    __attribute__((noinline)) double contact(int i, double at) { double f = 0; for (int k = 0; k < 40; ++k) f += std::sin(at * k + i); return f; }
    __attribute__((noinline)) void solve(double at) {
        for (int i = 0; i < 200; ++i) { double force = contact(i, at); if (log.level > 0) log.line(i, at * 1e-3, force); }
    }
};

int main(int argc, char **argv) {
    Solver solver;
    solver.log.level = argc > 1 && !std::strcmp(argv[1], "slow");
    for (double at = 0;; at += 0.01) solver.solve(at);
}
