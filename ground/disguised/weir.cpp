// defect: built without optimisation, with a list that is searched beside it
// kinds: slow-build
// guilty: -
// build: -O0 -g
// mended: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <unordered_map>
#include <vector>

namespace weir {
struct Gate { int id; double level = 0.5, flow = 0; };
class River {
public:
    explicit River(int gates) { for (int i = 0; i < gates; ++i) { gates_.push_back({i}); links_[i] = (i + 1) % gates; } }
    void Step(double time) {
        for (auto &gate : gates_) {
            const Gate &next = gates_[size_t(links_.at(gate.id))];
            gate.flow = 0.9 * gate.flow + 0.1 * (gate.level - next.level) + 0.01 * std::sin(time + gate.id);
        }
        for (auto gate = gates_.begin(); gate != gates_.end(); ++gate) gate->level = std::max(0.0, gate->level - 0.01 * gate->flow);
        history_.push_back(gates_.front().level);
        if (history_.size() > 100) history_.pop_front();
    }
    double Level() const { double sum = 0; for (double one : history_) sum += one; return sum; }
private:
    std::vector<Gate> gates_;
    std::unordered_map<int, int> links_;
    std::deque<double> history_;
};
} // namespace weir

int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    weir::River river(3000);
    for (long step = 0; step != steps; ++step) river.Step(step * 0.01);
    std::printf("%g\n", river.Level());
}
