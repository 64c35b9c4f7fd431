// defect: a writer holds the log's lock while it writes to the disk
// kinds: lock-wait
// guilty: sim::BlackBox::Add, sim::BlackBox::Save
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include "loop.hpp"

namespace sim {
class BlackBox {
public:
    explicit BlackBox(bool slow) : slow_(slow) {
        char name[] = "black-box-XXXXXX";
        file_ = mkstemp(name);
        unlink(name);
        std::thread([this] { Save(); }).detach();
    }
    void Add(double value) {
        std::lock_guard<std::mutex> lock(mutex_);
        records_.push_back(value);
    }

private:
    void Save() {
        std::vector<char> block(1 << 19, 'x');
        for (;;) {
            std::deque<double> records;
            {
                std::lock_guard<std::mutex> lock(mutex_);
                records.swap(records_);
                if (slow_) Write(block);
            }
            if (!slow_) Write(block);
            usleep(500);
        }
    }
    void Write(const std::vector<char> &block) {
        if (pwrite(file_, block.data(), block.size(), 0) < 0) std::perror("pwrite");
    }
    std::mutex mutex_;
    std::deque<double> records_;
    int file_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::BlackBox box(sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        for (int i = 0; i < 4; ++i) {
            bodies.Advance(1);
            box.Add(bodies.at(step));
        }
    });
}
