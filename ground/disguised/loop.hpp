// What all programs of this folder share: the choice between the slow and the fast code, the work that no defect is about,
// and the loop with its marks.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "stepscope.h"

namespace sim {

/// Some bodies that orbit each other's centre: honest work, the same in both settings.
class Bodies {
public:
    explicit Bodies(int number) : x_(number), v_(number) {
        for (int i = 0; i < number; ++i) {
            x_[i] = std::sin(i * 0.37) * 10.0;
            v_[i] = std::cos(i * 0.71);
        }
    }
    void Advance(int rounds) {
        for (int round = 0; round < rounds; ++round) {
            for (std::size_t i = 0; i < x_.size(); ++i) {
                v_[i] -= 0.001 * std::sin(x_[i]);
                x_[i] += 0.001 * v_[i];
            }
        }
    }
    double at(std::size_t i) const { return x_[i % x_.size()]; }

private:
    std::vector<double> x_, v_;
};

/// Keeps results alive.
inline volatile double sink;

inline bool IsSlow(int argc, char **argv) { return argc > 1 && std::strcmp(argv[1], "slow") == 0; }

/// Runs steps until the program is ended.
template <typename Step> void Run(Step step) {
    std::puts("ready");
    std::fflush(stdout);
    for (long number = 0;; ++number) {
        STEPSCOPE_STEP(number * 0.001);
        step(number);
    }
}

} // namespace sim
