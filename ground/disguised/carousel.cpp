// defect: all sleeping coroutines are asked at each tick whether their time has come
// kinds: full-scan-each-step, list-search
// guilty: fair::Timers::Wake
// build: -O2 -g
#include <cmath>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

namespace fair {
struct Task {
    struct promise_type {
        Task get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
};
struct Timers {
    struct Entry { long due; std::coroutine_handle<> who; };
    std::vector<Entry> list;
    std::multimap<long, std::coroutine_handle<>> sorted;
    std::vector<std::coroutine_handle<>> ready;
    long now = 0;
    bool scans;
    void Add(long due, std::coroutine_handle<> who) { if (scans) list.push_back({due, who}); else sorted.emplace(due, who); }
    __attribute__((noinline)) void Wake() {
        ready.clear();
        if (scans) {
            for (size_t i = 0; i < list.size();) {
                if (list[i].due <= now) { ready.push_back(list[i].who); list[i] = list.back(); list.pop_back(); }
                else ++i;
            }
        } else while (!sorted.empty() && sorted.begin()->first <= now) { ready.push_back(sorted.begin()->second); sorted.erase(sorted.begin()); }
        for (auto who : ready) who.resume();
        ++now;
    }
};
struct Sleep {
    Timers &timers; long ticks;
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> who) { timers.Add(timers.now + ticks, who); }
    void await_resume() {}
};
double turns = 0;
Task Ride(Timers &timers, int horse) {
    for (int round = 0;; ++round) { turns += std::sin(horse + round); co_await Sleep{timers, 4000 + (horse * 31 + round * 7) % 500}; }
}
__attribute__((noinline)) double Music(double t) { double sum = 0; for (int i = 0; i < 250; ++i) sum += std::sin(t * i) * std::exp(-i * 0.1); return sum; }
}
int main(int argc, char **argv) {
    fair::Timers timers;
    timers.scans = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    for (int i = 0; i < 9000; ++i) fair::Ride(timers, i);
    double sum = 0;
    for (long step = 0; step != steps; ++step) { timers.Wake(); sum += fair::Music(step * 0.001); }
    std::printf("%g %g\n", sum, fair::turns);
}
