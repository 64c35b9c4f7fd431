// defect: one thread moves all colonies, the workers that are there for it have nothing to do
// kinds: single-threaded
// guilty: -
// build: -O3 -g -march=native
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

struct Colony { std::vector<float> x = std::vector<float>(3000, 0.4f); void forage() { for (auto &at : x) at += 1e-3f * std::sin(at * 7); } };

struct Hall {
    std::vector<Colony> colonies{16};
    std::mutex mutex;
    std::condition_variable start, done;
    long round = 0; int left = 0;
    void serve(int worker, int workers) {
        for (long seen = 1;; ++seen) {
            { std::unique_lock<std::mutex> lock(mutex); start.wait(lock, [&] { return round >= seen; }); }
            for (std::size_t i = worker; i < colonies.size(); i += workers) colonies[i].forage();
            std::lock_guard<std::mutex> lock(mutex);
            if (--left == 0) done.notify_one();
        }
    }
    void day(int workers) {
        std::unique_lock<std::mutex> lock(mutex);
        ++round; left = workers;
        start.notify_all();
        done.wait(lock, [&] { return left == 0; });
    }
};

int main(int argc, char **argv) {
    bool alone = argc > 1 && !std::strcmp(argv[1], "slow");
    Hall hall;
    std::vector<std::thread> workers;
    for (int i = 0; i < 2; ++i) workers.emplace_back([&, i] { hall.serve(i, 2); });
    for (;;) if (alone) for (auto &colony : hall.colonies) colony.forage(); else hall.day(2);
}
