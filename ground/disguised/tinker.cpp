// defect: the scan of the laser is simulated with one task of the thread pool for each single beam, each with its own promise and its own wake-up, instead of a few large tasks
// kinds: work-in-small-pieces
// guilty: Workers::submit, Workers::loop, LaserModel::scan
// gain: 30
//
// A mobile robot in a warehouse, in real time: laser model, particle filter, occupancy map, path following, people that walk.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct Pose { double x, y, a; };
struct Disc { double x, y, r, vx, vy; };

class Workers {
public:
    explicit Workers(int n) {
        for (int i = 0; i < n; ++i) threads_.emplace_back([this] { loop(); });
    }
    ~Workers() {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            stop_ = true;
        }
        some_.notify_all();
        for (auto& t : threads_) t.join();
    }

    std::future<void> submit(std::function<void()> f) {
        auto task = std::make_shared<std::packaged_task<void()>>(std::move(f));
        std::future<void> done = task->get_future();
        {
            std::lock_guard<std::mutex> guard(mutex_);
            queue_.emplace_back([task] { (*task)(); });
        }
        some_.notify_one();
        return done;
    }
    size_t size() const { return threads_.size(); }

private:
    void loop() {
        for (;;) {
            std::function<void()> next;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                some_.wait(lock, [this] { return stop_ || !queue_.empty(); });
                if (queue_.empty()) return;
                next = std::move(queue_.front());
                queue_.pop_front();
            }
            next();
        }
    }

    std::mutex mutex_;
    std::condition_variable some_;
    std::deque<std::function<void()>> queue_;
    bool stop_ = false;
    std::vector<std::thread> threads_;
};

class Hall {
public:
    Hall() {
        uint32_t s = 12345;
        auto draw = [&s] { return double((s = s * 1664525u + 1013904223u) >> 8) / 16777216.0; };
        for (int i = 0; i < 14; ++i)
            for (int j = 0; j < 9; ++j) shelves_.push_back({3.0 * i + 0.4 * draw(), 4.0 * j, 0.4 + 0.3 * draw(), 0, 0});
        for (int k = 0; k < 160; ++k) people_.push_back({40 * draw(), 34 * draw(), 0.25, 2 * draw() - 1, 2 * draw() - 1});
    }

    void walk(double dt) {                       // people keep away from shelves and from each other
        for (Disc& p : people_) {
            double fx = 0, fy = 0;
            auto push = [&](const Disc& o) {
                const double dx = p.x - o.x, dy = p.y - o.y, d2 = dx * dx + dy * dy;
                if (d2 > 4 || d2 == 0) return;
                const double w = std::exp(-2 * (std::sqrt(d2) - o.r));
                fx += w * dx;
                fy += w * dy;
            };
            for (const Disc& o : shelves_) push(o);
            for (const Disc& o : people_) push(o);
            p.vx += fx * dt;
            p.vy += fy * dt;
            const double v = std::hypot(p.vx, p.vy) + 1e-9;
            p.vx *= 0.9 + 0.1 / v;
            p.vy *= 0.9 + 0.1 / v;
        }
        for (Disc& p : people_) {
            p.x += p.vx * dt;
            p.y += p.vy * dt;
            if (p.x < -2 || p.x > 42) p.vx = -p.vx, p.x = std::clamp(p.x, -2.0, 42.0);
            if (p.y < -2 || p.y > 36) p.vy = -p.vy, p.y = std::clamp(p.y, -2.0, 36.0);
        }
    }

    double range(double x, double y, double a) const {
        const double c = std::cos(a), s = std::sin(a);
        double best = 25;
        auto cut = [&](const Disc& o) {
            const double dx = o.x - x, dy = o.y - y, along = dx * c + dy * s, off = dy * c - dx * s;
            if (along > 0 && std::fabs(off) < o.r) best = std::min(best, along - std::sqrt(o.r * o.r - off * off));
        };
        for (const Disc& o : shelves_) cut(o);
        for (const Disc& o : people_) cut(o);
        return best;
    }

private:
    std::vector<Disc> shelves_, people_;
};

class LaserModel {
public:
    LaserModel(const Hall& hall, Workers& workers, bool inStrips)
        : hall_(hall), workers_(workers), grain_(inStrips ? kBeams / workers.size() : 1) {
        pending_.reserve(kBeams / grain_ + 1);
    }

    const std::vector<double>& scan(const Pose& from) {
        pending_.clear();
        for (size_t b = 0; b < kBeams; b += grain_) {
            const size_t end = std::min(b + grain_, kBeams);
            pending_.push_back(workers_.submit([this, from, b, end] { castBeams(from, b, end); }));
        }
        for (auto& p : pending_) p.get();
        return ranges_;
    }

    static double angle(size_t beam) { return 6.283185307 * double(beam) / double(kBeams); }
    static constexpr size_t kBeams = 120;

private:
    void castBeams(const Pose& from, size_t begin, size_t end) {
        for (size_t b = begin; b < end; ++b) ranges_[b] = hall_.range(from.x, from.y, from.a + angle(b));
    }

    const Hall& hall_;
    Workers& workers_;
    size_t grain_;
    std::vector<double> ranges_ = std::vector<double>(kBeams);
    std::vector<std::future<void>> pending_;
};

class Robot {
public:
    explicit Robot(bool inStrips) : workers_(2), laser_(hall_, workers_, inStrips), map_(kCells * kCells, 0.f) {
        for (int i = 0; i < 320; ++i) particles_.push_back({20 + 0.01 * (i % 13), 2 + 0.01 * (i % 7), 0.002 * (i % 11)});
        weights_.resize(particles_.size());
        next_.resize(particles_.size());
    }

    void step() {
        hall_.walk(kDt);
        drive();
        const std::vector<double>& ranges = laser_.scan(pose_);
        localise(ranges);
        mark(ranges);
        plan();
        clearance_ += *std::min_element(ranges.begin(), ranges.end());
    }

    void print() const {
        double sum = 0;
        for (float c : map_) sum += c;
        std::printf("%.6f %.6f %.6f\n", clearance_, sum, estimate_);
    }

private:
    static constexpr int kCells = 320;
    static constexpr double kDt = 0.01;

    void drive() {
        time_ += kDt;
        pose_.a = 0.3 * std::sin(0.5 * time_) + (pose_.a - 0.3 * std::sin(0.5 * (time_ - kDt)));
        pose_.x = 20 + 12 * std::sin(0.05 * time_);
        pose_.y = 2 + 0.5 * std::sin(0.4 * time_);
    }

    // Weights from how some of the beams fit into the map, then systematic resampling.
    void localise(const std::vector<double>& ranges) {
        double total = 0;
        for (size_t i = 0; i < particles_.size(); ++i) {
            Pose& p = particles_[i];
            seed_ = seed_ * 1664525u + 1013904223u;
            p.x += 0.3 * (pose_.x - p.x) + 0.02 * (double(seed_ >> 16) / 65536 - 0.5);
            p.y += 0.3 * (pose_.y - p.y) + 0.02 * (double(seed_ & 0xffff) / 65536 - 0.5);
            p.a += 0.3 * (pose_.a - p.a);
            double fit = 0;
            for (size_t b = 0; b < ranges.size(); ++b) {
                const double a = p.a + LaserModel::angle(b);
                fit += map_[cell(p.x + ranges[b] * std::cos(a), p.y + ranges[b] * std::sin(a))];
            }
            total += weights_[i] = 0.05 + fit;
        }
        double u = 0.5 / double(particles_.size()), sum = 0;
        size_t k = 0;
        for (size_t i = 0; i < particles_.size() && k < next_.size(); ++i) {
            sum += weights_[i] / total;
            for (; k < next_.size() && u < sum; u += 1.0 / double(next_.size())) next_[k++] = particles_[i];
        }
        for (; k < next_.size(); ++k) next_[k] = particles_.back();
        particles_.swap(next_);
        estimate_ += particles_[particles_.size() / 2].x;
    }

    void mark(const std::vector<double>& ranges) {
        for (size_t b = 0; b < ranges.size(); ++b) {
            const double a = pose_.a + LaserModel::angle(b), c = std::cos(a), s = std::sin(a);
            for (double r = 0.5; r + 0.3 < ranges[b]; r += 0.1) map_[cell(pose_.x + r * c, pose_.y + r * s)] *= 0.995f;
            float& hit = map_[cell(pose_.x + ranges[b] * c, pose_.y + ranges[b] * s)];
            hit += 0.1f * (1 - hit);
        }
    }

    // A potential over the map, for the way to the goal: some relaxations, the obstacles repel.
    void plan() {
        for (int round = 0; round < 6; ++round) {
            for (int j = 1; j + 1 < kCells; ++j)
                for (int i = 1; i + 1 < kCells; ++i) {
                    const size_t k = size_t(j) * kCells + size_t(i);
                    relaxed_[k] = 0.249f * (potential_[k - 1] + potential_[k + 1] + potential_[k - kCells] + potential_[k + kCells]) + map_[k];
                }
            potential_.swap(relaxed_);
        }
        estimate_ += 1e-3 * potential_[cell(pose_.x, pose_.y)];
    }

    static size_t cell(double x, double y) {
        const int i = std::clamp(int((x + 30) * 4), 0, kCells - 1), j = std::clamp(int((y + 30) * 4), 0, kCells - 1);
        return size_t(j) * kCells + size_t(i);
    }

    Hall hall_;
    Workers workers_;
    LaserModel laser_;
    std::vector<float> map_, potential_ = std::vector<float>(kCells * kCells), relaxed_ = potential_;
    std::vector<Pose> particles_, next_;
    std::vector<double> weights_;
    Pose pose_{20, 2, 0};
    uint32_t seed_ = 1;
    double time_ = 0, clearance_ = 0, estimate_ = 0;
};

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: %s slow|fast [steps]\n", argv[0]), 1;
    Robot robot(std::string(argv[1]) == "fast");
    const long steps = argc > 2 ? std::atol(argv[2]) : -1;
    using Clock = std::chrono::steady_clock;
    auto due = Clock::now();
    for (long n = 0; n != steps; ++n) {
        robot.step();
        due = std::max(due + std::chrono::microseconds(4000), Clock::now() - std::chrono::milliseconds(40));
        std::this_thread::sleep_until(due);
    }
    robot.print();
}
