// defect: a barge that comes to a new reach of the canal reads and parses that reach's banks in the step, which stalls then
// kinds: rare-long-steps, text-parsed-each-step, values-through-text, file-opened-each-time
// guilty: canal::Reach::Reach, canal::Waterway::At, canal::Waterway::Load, canal::Reach::Parse
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace canal {
constexpr int kReaches = 64, kPoints = 9000;
struct Point { double x, depth, flow; };

class Reach {
public:
    explicit Reach(const std::string &path) { std::ifstream in(path); Parse(in); }
    double Depth(double at) const { return points_[size_t(at * 97) % points_.size()].depth; }
    double Flow(double at) const { return points_[size_t(at * 89) % points_.size()].flow; }
private:
    void Parse(std::istream &in) {
        std::string line;
        while (std::getline(in, line)) {
            std::istringstream fields(line);
            Point point{};
            fields >> point.x >> point.depth >> point.flow;
            points_.push_back(point);
        }
    }
    std::vector<Point> points_;
};

class Waterway {
public:
    explicit Waterway(std::string folder) : folder_(std::move(folder)) {}
    std::string Path(int number) const { return folder_ + "/reach_" + std::to_string(number) + ".txt"; }
    void LoadAll() { for (int i = 0; i < kReaches; ++i) Load(i); }
    const Reach &At(int number) {
        auto found = reaches_.find(number);
        return found == reaches_.end() ? Load(number) : *found->second;
    }
    void Forget(int number) { reaches_.erase(number); }
private:
    const Reach &Load(int number) { return *(reaches_[number] = std::make_unique<Reach>(Path(number))); }
    std::string folder_;
    std::map<int, std::unique_ptr<Reach>> reaches_;
};

struct Barge {
    double at = 0, speed = 1;
    void Move(const Reach &reach, double dt) {
        double drag = 0;
        for (int i = 1; i <= 400; ++i) drag += std::sqrt(reach.Depth(at + i * 0.1) + i) * reach.Flow(at + i);
        speed += (1 - 1e-5 * drag - speed) * dt;
        at += std::abs(speed) * dt;
    }
};
} // namespace canal

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    char folder[] = "/tmp/canalXXXXXX";
    if (!mkdtemp(folder)) return 1;
    canal::Waterway waterway(folder);
    for (int i = 0; i < canal::kReaches; ++i) {
        std::ofstream out(waterway.Path(i));
        for (int j = 0; j < canal::kPoints; ++j) out << j * 0.1 << ' ' << 3 + (i * j) % 7 * 0.25 << ' ' << 0.5 + j % 5 * 0.125 << '\n';
    }
    if (!slow) waterway.LoadAll();
    std::puts("loaded");
    std::vector<canal::Barge> barges(60);
    auto next = std::chrono::steady_clock::now();
    for (long step = 0; step != steps; ++step) {
        int reach = int(step / 25) % canal::kReaches;
        if (slow && step % 25 == 0) waterway.Forget((reach + 32) % canal::kReaches);
        for (auto &one : barges) one.Move(waterway.At(reach), 0.01);
        next += std::chrono::milliseconds(8);
        if (steps < 0) std::this_thread::sleep_until(next);
    }
    std::printf("%g\n", barges[0].at);
    std::string remove = std::string("rm -r ") + folder;
    return std::system(remove.c_str());
}
