// defect: one thread allocates each point of a scan, the other frees it, so both share the allocator's locks
// kinds: allocator-contention, allocations-each-step
// guilty: Driver::scan, Filter::consume, Filter::run, Driver::run
// build: -O2 -g
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

struct Point { double x, y, z, strength; };
using Scan = std::vector<std::unique_ptr<Point>>;
struct Flat { std::vector<Point> points; };

template <class T> struct Slot {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<T> full;
    void put(T one) { std::unique_lock<std::mutex> lock(mutex); changed.wait(lock, [&] { return full.size() < 4; }); full.push_back(std::move(one)); changed.notify_all(); }
    T take() { std::unique_lock<std::mutex> lock(mutex); changed.wait(lock, [&] { return !full.empty(); }); T one = std::move(full.back()); full.pop_back(); changed.notify_all(); return one; }
};

struct Driver {
    Slot<Scan> scans; Slot<Flat> flats;
    __attribute__((noinline)) Scan scan(int at) {
        Scan scan;
        for (int i = 0; i < 2000; ++i) scan.push_back(std::make_unique<Point>(Point{std::sin(at + i * 0.1), std::cos(i * 0.1), 0, 1}));
        return scan;
    }
    __attribute__((noinline)) Flat flat(int at) {
        Flat flat;
        flat.points.reserve(2000);
        for (int i = 0; i < 2000; ++i) flat.points.push_back({std::sin(at + i * 0.1), std::cos(i * 0.1), 0, 1});
        return flat;
    }
    void run(bool each) { for (int at = 0;; ++at) if (each) scans.put(scan(at)); else flats.put(flat(at)); }
};

struct Filter {
    double nearest = 0;
    __attribute__((noinline)) void consume(Scan scan) { for (auto &point : scan) nearest += std::sqrt(point->x * point->x + point->y * point->y); }
    __attribute__((noinline)) void consume(Flat flat) { for (auto &point : flat.points) nearest += std::sqrt(point.x * point.x + point.y * point.y); }
    void run(Driver &driver, bool each) { for (;;) if (each) consume(driver.scans.take()); else consume(driver.flats.take()); }
};

int main(int argc, char **argv) {
    bool each = argc > 1 && !std::strcmp(argv[1], "slow");
    Driver driver;
    Filter filter;
    std::thread consumer([&] { filter.run(driver, each); });
    driver.run(each);
}
