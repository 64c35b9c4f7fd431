// defect: the pose of a keyframe is found by walking along its chain of odometry to the first keyframe, again for each point that is looked at and for each use
// kinds: chain-climbed-each-time, same-work-again
// guilty: Trajectory::globalPose, compose, Mapper::matchSubmap, Mapper::drawOverview, Mapper::closures
// gain: 52
//
// Mapping with a laser scanner: keyframes with relative poses, matching against the local map, loop closures, an overview image.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

struct Pose2 {
    double x = 0, y = 0, a = 0;
};

struct Point {
    float x, y;
};

static Pose2 compose(const Pose2& p, const Pose2& d) {
    const double c = std::cos(p.a), s = std::sin(p.a);
    return {p.x + c * d.x - s * d.y, p.y + s * d.x + c * d.y, p.a + d.a};
}

struct Keyframe {
    int parent = -1;
    Pose2 delta;                 // relative to the parent
    std::vector<Point> scan;
};

class Trajectory {
public:
    explicit Trajectory(bool keepGlobal) : keepGlobal_(keepGlobal) {
        frames_.reserve(kMost);
        global_.reserve(kMost);
    }

    void add(Keyframe k) {
        if (frames_.size() == kMost) forget(kMost / 3);
        k.parent = int(frames_.size()) - 1;
        if (keepGlobal_) global_.push_back(k.parent < 0 ? k.delta : compose(global_[k.parent], k.delta));
        frames_.push_back(std::move(k));
    }

    Pose2 globalPose(int frame) const {
        if (keepGlobal_) return global_[frame];
        const int depth = frame + 1;
        const Keyframe* chain[kMost] = {};
        for (int i = 0; frame >= 0; frame = frames_[frame].parent) chain[i++] = &frames_[frame];
        Pose2 p = chain[depth - 1]->delta;
        for (int i = depth - 2; i >= 0; --i) p = compose(p, chain[i]->delta);
        return p;
    }

    const Keyframe& at(int i) const { return frames_[i]; }
    int size() const { return int(frames_.size()); }

private:
    // The oldest keyframes leave the graph; the first one that remains becomes its root.
    void forget(size_t n) {
        frames_[n].delta = globalPose(int(n));
        frames_.erase(frames_.begin(), frames_.begin() + long(n));
        if (keepGlobal_) global_.erase(global_.begin(), global_.begin() + long(n));
        for (Keyframe& k : frames_) k.parent = k.parent < int(n) ? -1 : k.parent - int(n);
    }

    static constexpr size_t kMost = 400;
    bool keepGlobal_;
    std::vector<Keyframe> frames_;
    std::vector<Pose2> global_;
};

class Grid {
public:
    static constexpr int kSide = 512;
    Grid() : cells_(kSide * kSide, 0.f) {}
    static int index(double x, double y) {
        const int i = int(std::floor(x * 8)) & (kSide - 1), j = int(std::floor(y * 8)) & (kSide - 1);
        return j * kSide + i;
    }
    void hit(double x, double y) {
        float& c = cells_[index(x, y)];
        c += 0.2f * (1.f - c);
    }
    void miss(double x, double y) { cells_[index(x, y)] *= 0.97f; }
    float value(double x, double y) const { return cells_[index(x, y)]; }
    void fade() {
        for (float& c : cells_) c *= 0.995f;
    }
    double sum() const {
        double s = 0;
        for (float c : cells_) s += c;
        return s;
    }

private:
    std::vector<float> cells_;
};

class Laser {
public:
    static constexpr int kBeams = 1080;
    void sweep(const Pose2& from, std::vector<Point>& out) {
        out.clear();
        for (int b = 0; b < kBeams; ++b) {
            const double angle = from.a + b * (6.283185307 / kBeams);
            const double c = std::cos(angle), s = std::sin(angle);
            double r = 0.3;
            while (r < 14) {                          // sphere tracing through the halls
                const double d = clearance(from.x + r * c, from.y + r * s);
                if (d < 0.02) break;
                r += d;
            }
            r += 0.01 * (double(noise_ = noise_ * 1664525u + 1013904223u) / 4294967296.0 - 0.5);
            if (r < 14) out.push_back({float(r * std::cos(angle - from.a)), float(r * std::sin(angle - from.a))});
        }
    }

private:
    static double clearance(double x, double y) {     // pillars every six metres, walls every thirty
        const double px = x - 6 * std::round(x / 6), py = y - 6 * std::round(y / 6);
        const double wall = 15 - std::fabs(y - 30 * std::round(y / 30));
        return std::min(std::hypot(px - 1, py - 1) - 0.4, std::max(wall - 0.1, 0.0));
    }
    uint32_t noise_ = 7;
};

class Mapper {
public:
    explicit Mapper(bool keepGlobal) : trajectory_(keepGlobal) {}

    // Best of some small shifts of the scan against the grid.
    Pose2 align(const Pose2& guess, const std::vector<Point>& scan) const {
        Pose2 best = guess;
        double bestScore = -1;
        for (int da = -4; da <= 4; ++da)
            for (int dx = -2; dx <= 2; ++dx)
                for (int dy = -2; dy <= 2; ++dy) {
                    const Pose2 p{guess.x + 0.04 * dx, guess.y + 0.04 * dy, guess.a + 0.005 * da};
                    const double c = std::cos(p.a), s = std::sin(p.a);
                    double score = 1e-3 * (dx == 0) + 1e-3 * (dy == 0) + 1e-3 * (da == 0);
                    for (const Point& q : scan) score += grid_.value(p.x + c * q.x - s * q.y, p.y + s * q.x + c * q.y);
                    if (score > bestScore) {
                        bestScore = score;
                        best = p;
                    }
                }
        return best;
    }

    void draw(const Pose2& p, const std::vector<Point>& scan) {
        const double c = std::cos(p.a), s = std::sin(p.a);
        for (const Point& q : scan) {
            const double wx = p.x + c * q.x - s * q.y, wy = p.y + s * q.x + c * q.y;
            for (int k = 1; k < 8; ++k) grid_.miss(p.x + (wx - p.x) * k / 8, p.y + (wy - p.y) * k / 8);
            grid_.hit(wx, wy);
        }
    }

    void insert(Keyframe k) { trajectory_.add(std::move(k)); }

    // Earlier keyframes near the newest one, with a score of how their scans fit into the grid.
    double closures() const {
        const int newest = trajectory_.size() - 1;
        const Pose2 here = trajectory_.globalPose(newest);
        double score = 0;
        for (int i = 0; i + 20 < newest; ++i) {
            const Pose2 p = trajectory_.globalPose(i);
            if (std::hypot(p.x - here.x, p.y - here.y) < 12) score += matchSubmap(i);
        }
        return score;
    }

    double matchSubmap(int frame) const {
        const std::vector<Point>& scan = trajectory_.at(frame).scan;
        const Pose2 p = trajectory_.globalPose(frame);
        const double c = std::cos(p.a), s = std::sin(p.a);
        double sum = 0;
        for (size_t i = 0; i < scan.size(); i += 4) {
            const Point& q = scan[i];
            sum += grid_.value(p.x + c * q.x - s * q.y, p.y + s * q.x + c * q.y);
        }
        return sum / double(scan.size() + 1);
    }

    // The line of the robot's way, for the operator.
    uint32_t drawOverview() const {
        uint32_t hash = 2166136261u;
        for (int i = 0; i < trajectory_.size(); ++i) {
            const Pose2 p = trajectory_.globalPose(i);
            hash = (hash ^ uint32_t(Grid::index(p.x, p.y))) * 16777619u;
        }
        return hash;
    }

    Pose2 last() const { return trajectory_.globalPose(trajectory_.size() - 1); }
    Grid& grid() { return grid_; }

private:
    Trajectory trajectory_;
    Grid grid_;
};

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: switchback slow|fast [scans]\n"), 1;
    const bool keepGlobal = !std::strcmp(argv[1], "fast");
    const long scans = argc > 2 ? std::atol(argv[2]) : -1;
    Mapper mapper(keepGlobal);
    Laser laser;
    std::vector<Point> scan;
    scan.reserve(Laser::kBeams);
    Pose2 truth, estimate, atKey;
    double score = 0;
    uint32_t picture = 0;
    auto due = std::chrono::steady_clock::now();
    for (long n = 0; n != scans; ++n) {
        truth = compose(truth, {0.06, 0, 0.012 * std::sin(0.011 * double(n)) + 0.004});
        laser.sweep(truth, scan);
        const Pose2 guess = compose(estimate, {0.06, 0, 0.012 * std::sin(0.011 * double(n)) + 0.004});
        estimate = mapper.align(guess, scan);
        mapper.draw(estimate, scan);
        if (n < 300 || n % 4 == 0) {
            const double c = std::cos(atKey.a), s = std::sin(atKey.a);
            const double dx = estimate.x - atKey.x, dy = estimate.y - atKey.y;
            Keyframe k;
            k.delta = n == 0 ? estimate : Pose2{c * dx + s * dy, -s * dx + c * dy, estimate.a - atKey.a};
            k.scan = scan;
            mapper.insert(std::move(k));
            atKey = mapper.last();
        }
        score += mapper.closures();
        picture = picture * 31 + mapper.drawOverview();
        mapper.grid().fade();
        due = std::max(due + std::chrono::milliseconds(6), std::chrono::steady_clock::now() - std::chrono::milliseconds(50));
        std::this_thread::sleep_until(due);
    }
    std::printf("%.6f %.6f %08x\n", score, mapper.grid().sum(), picture);
}
