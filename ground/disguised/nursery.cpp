// defect: each seedling is checked by a task of its own, for which std::async starts a thread
// kinds: threads-each-step
// guilty: nursery::Round, nursery::Check
// build: -O2 -g
#include <cmath>
#include <cstring>
#include <future>
#include <vector>

namespace nursery {
struct Seedling { double height = 1, water = 0.5; };

__attribute__((noinline)) double Check(Seedling &one, int at) {
    for (int i = 0; i < 600; ++i) {
        one.water = 0.99 * one.water + 0.01 * std::sin(at + i);
        one.height += 1e-6 * one.water;
    }
    return one.height;
}

__attribute__((noinline)) double Round(std::vector<Seedling> &all, int at, bool slow) {
    double sum = 0;
    if (!slow) {
        for (Seedling &one : all) sum += Check(one, at);
        return sum;
    }
    std::vector<std::future<double>> checks;
    for (Seedling &one : all) checks.push_back(std::async(std::launch::async, [&one, at] { return Check(one, at); }));
    for (auto &check : checks) sum += check.get();
    return sum;
}
} // namespace nursery

int main(int argc, char **argv) {
    std::vector<nursery::Seedling> all(40);
    volatile double sum = 0;
    for (int at = 0;; ++at) sum = sum + nursery::Round(all, at, argc > 1 && !std::strcmp(argv[1], "slow"));
}
