// defect: none. A filter goes along columns of small matrices, a thread sleeps to keep its pace, and a lock is taken once for each field
// kinds: -
// guilty: -
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

namespace terrace {
struct Filter {
    double covariance[6][6] = {}, gain[6] = {};
    __attribute__((noinline)) void Update(double t) {
        for (int repeat = 0; repeat < 400; ++repeat)
            for (int column = 0; column < 6; ++column) {
                double sum = 0;
                for (int row = 0; row < 6; ++row) sum += covariance[row][column] * std::cos(t + row);
                gain[column] = 0.99 * gain[column] + sum;
                covariance[column][column] += 1e-6;
            }
    }
};

struct Field {
    std::mutex mutex;
    double water = 0;
    __attribute__((noinline)) void Soak(double t) {
        double rain = 0;
        for (int i = 0; i < 4000; ++i) rain += std::sin(t + i * 0.01);
        std::lock_guard<std::mutex> hold(mutex);
        water += rain;
    }
};
} // namespace terrace

int main() {
    std::vector<terrace::Field> fields(40);
    std::thread other([&] {
        for (double t = 0;; t += 0.1)
            for (auto &field : fields) field.Soak(t);
    });
    terrace::Filter filter;
    auto next = std::chrono::steady_clock::now();
    for (double t = 0;; t += 0.01) {
        for (int i = 0; i < 20; ++i) filter.Update(t);
        next += std::chrono::milliseconds(12);
        while (std::chrono::steady_clock::now() < next) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}
