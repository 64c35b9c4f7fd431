// defect: each pair of bodies asks a virtual filter in another object, millions of times a second, for a bit that is known before
// kinds: called-very-often, superlinear-lookup
// guilty: filters::Mask::Collides, Contacts::Pairs, filters::Filter::Collides
// build: -O2 -g
// options: --step Contacts::Pairs
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace filters {
struct Filter { virtual ~Filter() = default; virtual bool Collides(int a, int b) const = 0; };
struct Mask : Filter {
    std::vector<unsigned> bits = std::vector<unsigned>(1500, 2u);
    __attribute__((noinline)) bool Collides(int a, int b) const override { return (bits[a] & bits[b]) == 1; }
};
}
struct Contacts {
    std::unique_ptr<filters::Filter> filter = std::make_unique<filters::Mask>();
    std::vector<double> x = std::vector<double>(1500);
    bool asks;
    __attribute__((noinline)) int Pairs() {
        int pairs = 0;
        for (int i = 0; i < 1500; ++i)
            for (int j = i + 1; j < 1500; ++j)
                if ((asks ? filter->Collides(i, j) : false) && std::fabs(x[i] - x[j]) < 1) ++pairs;
        for (int k = 0; k < 40; ++k) for (double &one : x) one += 1e-3 * std::sin(one + k);
        return pairs;
    }
};

int main(int argc, char **argv) {
    Contacts contacts;
    contacts.asks = argc > 1 && !std::strcmp(argv[1], "slow");
    volatile int sink;
    for (;;) sink = contacts.Pairs();
}
