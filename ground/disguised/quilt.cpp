// defect: the seamstresses have fixed parts of the quilt, and one of them has four times as many patches
// kinds: barrier-imbalance
// guilty: quilt::Patch::Sew, quilt::Hands::Work
// build: -O2 -g
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace quilt {
struct Patch {
    double threads[400] = {};
    __attribute__((noinline)) void Sew(double at) {
        for (int round = 0; round < 4; ++round)
            for (int i = 1; i < 400; ++i) threads[i] = 0.9 * threads[i - 1] + 0.1 * std::cos(at + threads[i]);
    }
};

class Hands {
public:
    explicit Hands(int most) : patches_(50) {
        int from = 0;
        for (int number : {most, 50 - most}) {
            all_.emplace_back([this, from, number] { Work(from, from + number); });
            from += number;
        }
    }
    void Row(double at) {
        std::unique_lock<std::mutex> lock(mutex_);
        at_ = at;
        ++row_;
        busy_ = 2;
        begin_.notify_all();
        done_.wait(lock, [this] { return busy_ == 0; });
    }

private:
    void Work(int from, int to) {
        for (long row = 1;; ++row) {
            { std::unique_lock<std::mutex> lock(mutex_); begin_.wait(lock, [&] { return row_ >= row; }); }
            for (int i = from; i < to; ++i) patches_[i].Sew(at_);
            std::lock_guard<std::mutex> guard(mutex_);
            if (--busy_ == 0) done_.notify_one();
        }
    }
    std::vector<Patch> patches_;
    std::mutex mutex_;
    std::condition_variable begin_, done_;
    double at_ = 0;
    long row_ = 0;
    int busy_ = 0;
    std::vector<std::thread> all_;
};
} // namespace quilt

int main(int argc, char **argv) {
    quilt::Hands hands(argc > 1 && !std::strcmp(argv[1], "slow") ? 40 : 25);
    for (long at = 0;; ++at) hands.Row(at * 0.1);
}
