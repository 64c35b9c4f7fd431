// defect: each cycle walks the folder of missions and asks each file for its time, to find the ones that changed
// kinds: directory-scan, file-state-each-step
// guilty: mailroom::Inbox::Changed, mailroom::Inbox::Scan, mailroom::Clerk::Cycle
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mailroom {
namespace fs = std::filesystem;

class Inbox {
public:
    explicit Inbox(fs::path folder) : folder_(std::move(folder)) { Changed(); }
    std::vector<fs::path> Changed() {
        std::vector<fs::path> changed;
        for (const auto &entry : fs::directory_iterator(folder_)) {
            if (entry.path().extension() != ".mission") continue;
            auto time = fs::last_write_time(entry.path());
            auto [known, is_new] = times_.emplace(entry.path().string(), time);
            if (is_new || known->second != time) changed.push_back(entry.path());
            known->second = time;
        }
        return changed;
    }
    bool FolderChanged() {
        auto time = fs::last_write_time(folder_);
        return std::exchange(last_, time) != time;
    }
private:
    fs::path folder_;
    fs::file_time_type last_{};
    std::map<std::string, fs::file_time_type> times_;
};

class Planner {
public:
    void Plan(double time) {
        for (size_t i = 0; i < cost_.size(); ++i)
            cost_[i] = 0.9 * cost_[i] + std::sqrt(std::abs(std::sin(time + double(i)))) + 0.01 * cost_[(i * 7 + 1) % cost_.size()];
    }
    double First() const { return cost_[0]; }
private:
    std::vector<double> cost_ = std::vector<double>(40000, 1.0);
};
} // namespace mailroom

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    char folder[] = "/tmp/mailroomXXXXXX";
    if (!mkdtemp(folder)) return 1;
    for (int i = 0; i < 300; ++i) std::ofstream(std::string(folder) + "/m" + std::to_string(i) + ".mission") << "goto " << i;
    mailroom::Inbox inbox(folder);
    mailroom::Planner planner;
    auto next = std::chrono::steady_clock::now();
    size_t changed = 0;
    for (long step = 0; step != steps; ++step) {
        if (slow || inbox.FolderChanged()) changed += inbox.Changed().size();
        planner.Plan(double(step) * 0.01);
        next += std::chrono::milliseconds(10);
        if (steps < 0) std::this_thread::sleep_until(next);
    }
    std::printf("%g %zu\n", planner.First(), changed);
    std::filesystem::remove_all(folder);
}
