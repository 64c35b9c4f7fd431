// defect: the dairy thread yields its CPU again and again until the next pail is there, instead of waiting for it
// kinds: busy-wait, busy-wait-for-time
// guilty: milkmaids::Pail::Await, milkmaids::Dairy
// build: -O2 -g
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace milkmaids {
class Pail {
public:
    explicit Pail(bool yields) : yields_(yields) {}
    void Put(long number) {
        number_.store(number, std::memory_order_release);
        if (!yields_) number_.notify_one();
    }
    __attribute__((noinline)) long Await(long last) {
        if (!yields_) number_.wait(last, std::memory_order_acquire);
        else while (number_.load(std::memory_order_acquire) == last) std::this_thread::yield();
        return number_.load(std::memory_order_acquire);
    }
private:
    bool yields_;
    std::atomic<long> number_{0};
};
__attribute__((noinline)) static double Churn(long number) {
    double butter = 0;
    for (int i = 0; i < 8000; ++i) butter += std::sqrt(number + i);
    return butter;
}
static void Dairy(Pail &pail, double &butter) {
    for (long last = 0; last >= 0;) {
        last = pail.Await(last);
        butter += Churn(last);
    }
}
__attribute__((noinline)) static double Milk(long step) {
    double sum = 0;
    for (int i = 0; i < 90000; ++i) sum += std::sin(step + i * 0.1);
    return sum;
}
} // namespace milkmaids

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    milkmaids::Pail pail(slow);
    double butter = 0, milk = 0;
    std::thread dairy([&] { milkmaids::Dairy(pail, butter); });
    for (long step = 1; step != steps; ++step) {
        milk += milkmaids::Milk(step);
        pail.Put(step);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pail.Put(-1);
    dairy.join();
    std::printf("%g %g\n", butter, milk);
}
