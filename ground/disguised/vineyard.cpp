// defect: which row a grape is of is found by going through a list of ranges of its own, in a template
// kinds: list-search, superlinear-lookup
// guilty: vine::Rows::Of, vine::Rows<float>::Of, vine::Press, vine::Harvest
// build: -O3 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>

namespace vine {
template <class Unit> struct Rows {
    struct Row { long first, last; Unit sugar; };
    std::list<Row> rows;
    std::map<long, Row *> by_last;
    Row *Of(long grape, bool searches) {
        if (!searches) return by_last.lower_bound(grape)->second;
        for (Row &row : rows)
            if (grape <= row.last) return &row;
        return nullptr;
    }
};
__attribute__((noinline)) float Press(Rows<float> &rows, long grape, bool searches) {
    auto *row = rows.Of(grape, searches);
    row->sugar = row->sugar * 0.999f + 0.001f * float(grape % 7);
    return row->sugar;
}
__attribute__((noinline)) double Harvest(Rows<float> &rows, long day, bool searches) {
    double sum = 0;
    for (long i = 0; i < 120; ++i) sum += Press(rows, (i * 7919 + day * 31) % 40000, searches);
    for (int i = 0; i < 1500; ++i) sum += std::tanh(i * 0.001 + sum * 1e-9);
    return sum;
}
}
int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    vine::Rows<float> rows;
    for (long i = 0; i < 800; ++i) { rows.rows.push_back({i * 50, i * 50 + 49, 1.0f}); rows.by_last[i * 50 + 49] = &rows.rows.back(); }
    double sum = 0;
    for (long step = 0; step != steps; ++step) sum += vine::Harvest(rows, step, slow);
    std::printf("%g\n", sum);
}
