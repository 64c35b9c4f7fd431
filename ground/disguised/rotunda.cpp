// defect: the town is cut into two halves of equal area for the two threads, but nearly all cars are in the half with the centre; at the barrier one thread waits for the other
// kinds: barrier-imbalance
// guilty: Gate::arrive, Plan::byArea, Town::partition, Town::work
// gain: 36w
// (of the CPU time of the thread that has more to do, which is the wall time on two free cores; on a busy machine 0 to 26)
//
// A traffic simulator with blocks of streets as its units: each thread moves the cars of its
// blocks for a window of some steps, then cars cross between blocks.
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

struct Car {
    uint32_t id, seed;
    float s, v, desired, lateral;
};

struct Block {
    int column = 0, row = 0;
    float length = 300;
    double signal = 0;
    std::vector<Car> cars;                       // ordered along the street
    std::vector<Car> leaving;
    double fuel = 0, waiting = 0;
    uint64_t passed = 0;
};

// All threads of a phase wait here for the last of them.
class Gate {
public:
    explicit Gate(int parties) : parties_(parties) {}
    void arrive() {
        std::unique_lock<std::mutex> lock(mutex_);
        const uint64_t round = round_;
        if (++arrived_ == parties_) {
            arrived_ = 0;
            ++round_;
            lock.unlock();
            all_.notify_all();
            return;
        }
        all_.wait(lock, [&] { return round_ != round; });
    }

private:
    std::mutex mutex_;
    std::condition_variable all_;
    const int parties_;
    int arrived_ = 0;
    uint64_t round_ = 0;
};

// Which blocks each of the threads has.
namespace Plan {

std::vector<std::vector<int>> byArea(const std::vector<Block>& blocks, int threads) {
    std::vector<std::vector<int>> parts(threads);
    for (size_t i = 0; i < blocks.size(); ++i) parts[i * threads / blocks.size()].push_back(int(i));
    return parts;
}

std::vector<std::vector<int>> byCars(const std::vector<Block>& blocks, int threads) {
    std::vector<int> order(blocks.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return blocks[a].cars.size() > blocks[b].cars.size(); });
    std::vector<std::vector<int>> parts(threads);
    std::vector<size_t> load(threads, 0);
    for (int i : order) {
        const size_t least = std::min_element(load.begin(), load.end()) - load.begin();
        parts[least].push_back(i);
        load[least] += blocks[i].cars.size() + 2;
    }
    for (auto& p : parts) std::sort(p.begin(), p.end());
    return parts;
}

}  // namespace Plan

class Town {
public:
    static constexpr int kColumns = 48, kRows = 24, kThreads = 2, kWindow = 12;

    explicit Town(bool weighed) : weighed_(weighed), gate_(kThreads) {
        uint32_t id = 0;
        for (int c = 0; c < kColumns; ++c)
            for (int r = 0; r < kRows; ++r) {
                Block b;
                b.column = c;
                b.row = r;
                b.signal = (c * 13 + r * 29) % 60;
                const double far = std::hypot(c - 35.0, r - 12.0);           // the centre lies in the east
                const int n = int(210 * std::exp(-0.022 * far * far)) + 9;
                for (int k = 0; k < n; ++k) b.cars.push_back({id, id * 2654435761u + 1, b.length * float(k) / float(n), 8, 9 + float(id % 7), 0}), ++id;
                b.cars.reserve(4 * size_t(n) + 64);
                b.leaving.reserve(64);
                blocks_.push_back(std::move(b));
            }
        partition();
        helper_ = std::thread([this] { worker(1); });
    }

    ~Town() {
        stop_ = true;
        gate_.arrive();
        helper_.join();
    }

    void step() {
        gate_.arrive();                          // releases the helper
        work(0);
        gate_.arrive();
        exchange();
        if (++count_ % 50 == 0) partition();
        time_ += kWindow * kDt;
    }

    void print() const {
        double fuel = 0, waiting = 0;
        uint64_t passed = 0;
        for (const Block& b : blocks_) {
            fuel += b.fuel;
            waiting += b.waiting;
            passed = passed * 31 + b.passed;
        }
        std::printf("%.4f %.1f %llu\n", fuel, waiting, static_cast<unsigned long long>(passed));
    }

private:
    void partition() { parts_ = weighed_ ? Plan::byCars(blocks_, kThreads) : Plan::byArea(blocks_, kThreads); }

    void worker(int part) {
        for (;;) {
            gate_.arrive();
            if (stop_) return;
            work(part);
            gate_.arrive();
        }
    }

    void work(int part) {
        for (int i : parts_[part]) {
            Block& b = blocks_[i];
            for (int k = 0; k < kWindow; ++k) {
                follow(b, time_ + k * kDt);
                sway(b);
                consume(b);
                leave(b);
            }
        }
    }

    void follow(Block& b, double time) const {
        const bool red = std::fmod(time + b.signal, 60) > 40;
        for (size_t k = b.cars.size(); k-- > 0;) {
            Car& c = b.cars[k];
            float gap = 100, lead = c.v;
            if (k + 1 < b.cars.size()) {
                gap = b.cars[k + 1].s - c.s - 1;
                lead = b.cars[k + 1].v;
            } else if (red) {
                gap = b.length - c.s;
                lead = 0;
            }
            gap = std::max(gap, 0.2f);
            const float want = 1 + std::max(0.f, 0.6f * c.v + c.v * (c.v - lead) / 3);
            const float ratio = c.v / c.desired;
            const float a = 1.5f * (1 - ratio * ratio * ratio * ratio - want * want / (gap * gap));
            c.v = std::clamp(c.v + std::max(a, -6.f) * kDt, 0.f, 30.f);
            c.s += c.v * kDt;
            if (k + 1 < b.cars.size()) c.s = std::min(c.s, b.cars[k + 1].s - 0.1f);
        }
    }

    static void sway(Block& b) {                 // drivers do not keep to the middle of the lane
        for (Car& c : b.cars) {
            c.seed = c.seed * 1664525u + 1013904223u;
            const float push = float(int32_t(c.seed)) * 0x1p-31f;
            c.lateral += 0.1f * push - 0.05f * std::tanh(c.lateral) * (1 + 0.02f * c.v);
        }
    }

    static void consume(Block& b) {
        for (const Car& c : b.cars) {
            const double power = 0.4 + 0.25 * c.v + 0.0006 * c.v * c.v * c.v;
            b.fuel += 1e-4 * power / (0.2 + 0.2 * (1 - std::exp(-0.3 * power)));
            if (c.v < 0.3f) b.waiting += kDt;
        }
    }

    static void leave(Block& b) {
        while (!b.cars.empty() && b.cars.back().s >= b.length) {
            b.leaving.push_back(b.cars.back());
            b.cars.pop_back();
        }
    }

    // Around a loop of four blocks, so that the town keeps its densities.
    void exchange() {
        for (Block& b : blocks_) {
            for (Car c : b.leaving) {
                const int right = b.column % 2 == 0 ? b.column + 1 : b.column - 1, up = b.row % 2 == 0 ? b.row + 1 : b.row - 1;
                Block& to = blocks_[(c.id + b.passed) % 2 ? right * kRows + b.row : b.column * kRows + up];
                c.s -= b.length;
                auto at = to.cars.begin();
                if (at != to.cars.end()) c.s = std::min(c.s, at->s - 0.1f);
                to.cars.insert(at, c);
                ++b.passed;
            }
            b.leaving.clear();
        }
    }

    static constexpr float kDt = 0.25f;
    bool weighed_, stop_ = false;
    Gate gate_;
    std::vector<Block> blocks_;
    std::vector<std::vector<int>> parts_;
    std::thread helper_;
    long count_ = 0;
    double time_ = 0;
};

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: rotunda slow|fast [steps]\n");
        return 1;
    }
    Town town(std::string(argv[1]) == "fast");
    const long steps = argc > 2 ? std::atol(argv[2]) : 0;
    for (long n = 0; steps == 0 || n < steps; ++n) town.step();
    town.print();
}
