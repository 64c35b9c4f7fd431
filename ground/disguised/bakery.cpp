// defect: one thread allocates each loaf, another frees it, so both work on the same heap and its lock; a ring of loaves would do
// kinds: allocator-contention, allocations-each-step
// guilty: bakery::Oven::Bake, bakery::Shop::Sell, bakery::Loaf::Fresh, bakery::Belt::Put, bakery::Belt::Take
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace bakery {
struct Loaf {
    double crust[14] = {};
    int weight = 0;
};
struct Batch { std::vector<std::unique_ptr<Loaf>> loaves; };
class Belt {
public:
    __attribute__((noinline)) void Put(Batch batch) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return waiting_.size() < 4; });
        waiting_.push_back(std::move(batch));
        changed_.notify_all();
    }
    __attribute__((noinline)) Batch Take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !waiting_.empty(); });
        Batch batch = std::move(waiting_.front());
        waiting_.erase(waiting_.begin());
        changed_.notify_all();
        return batch;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Batch> waiting_;
};
class Oven {
public:
    explicit Oven(bool fresh) : fresh_(fresh) {}
    __attribute__((noinline)) Batch Bake(Belt &back, long step) {
        Batch batch;
        if (!fresh_) batch = back.Take();
        for (int i = 0; i < 4000; ++i) {
            if (fresh_) batch.loaves.push_back(std::make_unique<Loaf>());
            Loaf &loaf = *batch.loaves[i];
            loaf.weight = int(step + i);
            loaf.crust[i % 14] = std::sin(i * 0.1 + step) * std::cos(i * 0.01);
        }
        return batch;
    }

private:
    bool fresh_;
};
class Shop {
public:
    __attribute__((noinline)) void Sell(Batch &batch) {
        for (auto &loaf : batch.loaves) {
            earned += loaf->weight * 1e-6 + std::fabs(std::sin(loaf->crust[loaf->weight % 14]));
            if (fresh) loaf.reset();
        }
    }
    bool fresh = false;
    double earned = 0;
};
} // namespace bakery

int main(int argc, char **argv) {
    bool fresh = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    bakery::Belt to, back;
    bakery::Oven oven(fresh);
    if (!fresh)
        for (int i = 0; i < 3; ++i) {
            bakery::Batch batch;
            for (int k = 0; k < 4000; ++k) batch.loaves.push_back(std::make_unique<bakery::Loaf>());
            back.Put(std::move(batch));
        }
    std::thread seller([&] {
        bakery::Shop shop;
        shop.fresh = fresh;
        for (long step = 0; step != steps; ++step) {
            bakery::Batch batch = to.Take();
            shop.Sell(batch);
            if (!fresh) back.Put(std::move(batch));
        }
        std::printf("%g\n", shop.earned);
    });
    for (long step = 0; step != steps; ++step) to.Put(oven.Bake(back, step));
    seller.join();
}
