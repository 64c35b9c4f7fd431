// defect: an edition is cloned for each reader, though none of them writes in it
// kinds: copies-each-step, allocations-each-step
// guilty: press::Edition::Clone, press::Office::Deliver
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace press {
struct Paper { virtual ~Paper() = default; virtual std::shared_ptr<Paper> Clone() const = 0; virtual double Read(int page) const = 0; };
struct Edition : Paper {
    std::vector<float> ink;
    std::vector<std::string> lines;
    std::shared_ptr<Paper> Clone() const override { return std::make_shared<Edition>(*this); }
    double Read(int page) const override { double sum = 0; for (int i = 0; i < 700; ++i) sum += std::sin(ink[(page * 64 + i) % ink.size()]); return sum; }
};
struct Office {
    std::vector<std::shared_ptr<Paper>> readers;
    bool clones;
    __attribute__((noinline)) void Deliver(const std::shared_ptr<Paper> &paper) { for (auto &one : readers) one = clones ? paper->Clone() : paper; }
};
}
int main(int argc, char **argv) {
    press::Office office;
    office.clones = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    office.readers.resize(12);
    auto edition = std::make_shared<press::Edition>();
    edition->ink.resize(16000);
    for (int i = 0; i < 60; ++i) edition->lines.push_back("a line of the gazette that is long enough for the heap " + std::to_string(i));
    double sum = 0;
    for (long step = 0; step != steps; ++step) {
        for (int i = 0; i < 300; ++i) edition->ink[i] = float(step + i);
        office.Deliver(edition);
        for (auto &one : office.readers) sum += one->Read(int(step));
    }
    std::printf("%g\n", sum);
}
