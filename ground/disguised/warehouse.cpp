// defect: every order wakes all idle carriers of the fleet; one takes it, the others find nothing and wait again
// kinds: threads-woken-for-nothing
// guilty: warehouse::Orders::Put, warehouse::Orders::Take
// build: -O2 -g -fomit-frame-pointer
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace warehouse {
struct Order { int shelf; double weight; };

class Orders {
public:
    explicit Orders(bool all) : all_(all) {}
    void Put(Order order) {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            waiting_.push_back(order);
        }
        if (all_) ready_.notify_all(); else ready_.notify_one();
    }
    Order Take() {
        std::unique_lock<std::mutex> guard(mutex_);
        while (waiting_.empty()) ready_.wait(guard);
        Order order = waiting_.front();
        waiting_.pop_front();
        return order;
    }
private:
    bool all_;
    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<Order> waiting_;
};

double Route(const Order &order) {
    double length = 0;
    for (int i = 0; i < 400; ++i) length += std::sqrt(order.weight + i * order.shelf);
    return length;
}
}

volatile double total;

int main(int argc, char **argv) {
    warehouse::Orders orders(argc > 1 && !std::strcmp(argv[1], "slow"));
    std::vector<std::thread> carriers;
    for (int i = 0; i < 32; ++i)
        carriers.emplace_back([&] { for (;;) total = warehouse::Route(orders.Take()); });
    for (int tick = 0;; ++tick) {
        for (int i = 0; i < 4; ++i) orders.Put({tick % 97 + i, 1.5 * i});
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
}
