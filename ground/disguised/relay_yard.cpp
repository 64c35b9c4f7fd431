// defect: the step takes the detector's boxes by trying, and sleeps 2 ms after each try that came too early, so that it wakes long after they are there
// kinds: sleep-within-step, fixed-sleep-each-cycle
// guilty: Shelf::claim, Shelf::yield_turn, Yard::fuse, Shelf<Boxes>::claim, Shelf<Boxes>::yield_turn, Shelf<Segments>::claim, Shelf<Segments>::yield_turn
// phase: steady
// gain: 38w
//
// Perception of a yard truck, replayed from a log as fast as it goes: a synthetic camera and lidar, a detector and a
// ground segmentation in threads of their own, odometry, tracks, a map of obstacles, and a log of what was seen.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct Image {
    int width = 0, height = 0;
    long number = 0;
    std::vector<uint8_t> grey;
};
struct Point {
    float x, y, z;
};
struct Cloud {
    long number = 0;
    std::vector<Point> points;
};
struct Box {
    float x, y, width, height, score;
};
struct Boxes {
    long number = 0;
    std::vector<Box> boxes;
};
struct Segments {
    long number = 0;
    std::vector<Point> raised;
    float slope = 0;
};

// One thing handed from a thread to another.
template <typename T>
class Shelf {
public:
    explicit Shelf(bool tries) : tries_(tries) {}
    void put(T one) {
        {
            std::lock_guard lock(mutex_);
            here_ = std::move(one);
        }
        filled_.notify_one();
    }
    T claim() {
        if (!tries_) {
            std::unique_lock lock(mutex_);
            filled_.wait(lock, [&] { return here_.has_value(); });
            return grab();
        }
        for (;;) {
            {
                std::lock_guard lock(mutex_);
                if (here_) return grab();
            }
            yield_turn();
        }
    }
    // For the workers, which have nothing else to do.
    std::optional<T> await(const std::atomic<bool>& ends) {
        std::unique_lock lock(mutex_);
        filled_.wait(lock, [&] { return here_.has_value() || ends; });
        if (!here_) return std::nullopt;
        return grab();
    }
    void wake() { filled_.notify_all(); }

private:
    T grab() {
        T out = std::move(*here_);
        here_.reset();
        return out;
    }
    void yield_turn() { std::this_thread::sleep_for(std::chrono::microseconds(2000)); }
    std::mutex mutex_;
    std::condition_variable filled_;
    std::optional<T> here_;
    bool tries_;
};

// Pictures and clouds of a yard with some vehicles.
class Source {
public:
    std::shared_ptr<Image> image(long number) {
        auto out = std::make_shared<Image>();
        out->width = 320, out->height = 200, out->number = number;
        out->grey.resize(size_t(out->width) * out->height);
        for (int y = 0; y < out->height; y++)
            for (int x = 0; x < out->width; x++) out->grey[size_t(y) * out->width + x] = uint8_t(90 + y / 4 + ((x * 7 + y * 13 + number) & 15));
        for (int k = 0; k < 6; k++) {
            int cx = int(160 + 120 * std::sin(number * 0.02 + k)), cy = 60 + 20 * k;
            for (int y = std::max(0, cy - 8); y < std::min(out->height, cy + 8); y++)
                for (int x = std::max(0, cx - 12); x < std::min(out->width, cx + 12); x++) out->grey[size_t(y) * out->width + x] = uint8_t(220 - k * 8);
        }
        return out;
    }
    std::shared_ptr<Cloud> cloud(long number) {
        auto out = std::make_shared<Cloud>();
        out->number = number;
        out->points.reserve(9000);
        for (int i = 0; i < 9000; i++) {
            seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
            float a = float(i) * 0.0112f, r = 4 + float(seed_ >> 40) * 2.5e-6f;
            float z = (i % 9 == 0) ? 0.4f + float(i % 5) * 0.3f : 0.02f * std::sin(a * 3);
            out->points.push_back({r * std::cos(a), r * std::sin(a), z});
        }
        return out;
    }

private:
    uint64_t seed_ = 42;
};

// Bright rectangles, by sums over windows.
Boxes detect(const Image& image) {
    int w = image.width, h = image.height;
    std::vector<uint32_t> sums(size_t(w + 1) * (h + 1));
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            sums[size_t(y + 1) * (w + 1) + x + 1] = image.grey[size_t(y) * w + x] + sums[size_t(y) * (w + 1) + x + 1] + sums[size_t(y + 1) * (w + 1) + x] - sums[size_t(y) * (w + 1) + x];
    auto over = [&](int x, int y, int dx, int dy) {
        return double(sums[size_t(y + dy) * (w + 1) + x + dx] - sums[size_t(y) * (w + 1) + x + dx] - sums[size_t(y + dy) * (w + 1) + x] + sums[size_t(y) * (w + 1) + x]);
    };
    std::vector<Box> found;
    for (int size = 8; size <= 32; size += 4)
        for (int y = 0; y + size * 2 / 3 + 4 < h; y += 2)
            for (int x = 0; x + size + 4 < w; x += 2) {
                int dy = size * 2 / 3;
                double inner = over(x + 2, y + 2, size, dy) / (size * dy), outer = over(x, y, size + 4, dy + 4) / ((size + 4) * (dy + 4));
                if (inner - outer > 9) found.push_back({float(x), float(y), float(size), float(dy), float(inner - outer)});
            }
    std::sort(found.begin(), found.end(), [](const Box& a, const Box& b) { return a.score != b.score ? a.score > b.score : a.x + a.y * 1000 < b.x + b.y * 1000; });
    Boxes out;
    out.number = image.number;
    for (const Box& one : found) {
        bool covered = false;
        for (const Box& other : out.boxes)
            covered |= std::fabs(one.x - other.x) < other.width && std::fabs(one.y - other.y) < other.height;
        if (!covered) out.boxes.push_back(one);
        if (out.boxes.size() == 12) break;
    }
    return out;
}

Segments segment(const Cloud& cloud) {
    Segments out;
    out.number = cloud.number;
    std::unordered_map<int, std::pair<float, int>> ground;
    for (const Point& p : cloud.points) {
        auto& one = ground[int(p.x) * 1000 + int(p.y)];
        one.first = one.second ? std::min(one.first, p.z) : p.z;
        one.second++;
    }
    for (const Point& p : cloud.points)
        if (p.z - ground[int(p.x) * 1000 + int(p.y)].first > 0.25f) out.raised.push_back(p);
    for (auto& [where, one] : ground) out.slope = std::max(out.slope, one.first);
    return out;
}

struct Track {
    float x, y, vx = 0, vy = 0;
    int seen = 1, missed = 0;
};

class Yard {
public:
    explicit Yard(bool tries) : boxes_(tries), segments_(tries), images_(false), clouds_(false), grid_(200 * 200) {
        workers_.emplace_back([this] {
            while (auto one = images_.await(ends_)) boxes_.put(detect(**one));
        });
        workers_.emplace_back([this] {
            while (auto one = clouds_.await(ends_)) segments_.put(segment(**one));
        });
        log_ = std::fopen("/dev/null", "w");
    }
    ~Yard() {
        ends_ = true;
        images_.wake(), clouds_.wake();
        for (auto& one : workers_) one.join();
        std::fclose(log_);
    }
    void step() {
        auto image = source_.image(step_);
        auto cloud = source_.cloud(step_);
        images_.put(image);
        clouds_.put(cloud);
        odometry(*image);
        fade();
        fuse();
        mark();
        note();
        step_++;
    }
    double sum() const {
        double s = shift_;
        for (auto& [id, one] : tracks_) s += one.x + one.y * 0.1 + id;
        for (float one : grid_) s += one * 1e-3;
        return s;
    }

private:
    // Shift of the picture's columns against the one before.
    void odometry(const Image& image) {
        std::vector<int> profile(image.width);
        for (int y = 0; y < image.height; y += 2)
            for (int x = 0; x < image.width; x++) profile[x] += image.grey[size_t(y) * image.width + x];
        if (!before_.empty()) {
            long best = 1L << 60;
            int at = 0;
            for (int shift = -16; shift <= 16; shift++) {
                long sum = 0;
                for (int x = 16; x < image.width - 16; x++) sum += std::labs(profile[x] - before_[x + shift]);
                if (sum < best) best = sum, at = shift;
            }
            shift_ += at;
        }
        before_ = std::move(profile);
    }
    void fade() {
        for (float& one : grid_) one = one * 0.98f;
    }
    void fuse() {
        Boxes seen = boxes_.claim();
        ground_ = segments_.claim();
        std::vector<bool> used(seen.boxes.size());
        for (auto it = tracks_.begin(); it != tracks_.end();) {
            Track& one = it->second;
            one.x += one.vx, one.y += one.vy;
            int best = -1;
            float least = 400;
            for (size_t i = 0; i < seen.boxes.size(); i++) {
                float dx = seen.boxes[i].x - one.x, dy = seen.boxes[i].y - one.y;
                if (!used[i] && dx * dx + dy * dy < least) least = dx * dx + dy * dy, best = int(i);
            }
            if (best < 0) {
                if (++one.missed > 5) {
                    it = tracks_.erase(it);
                    continue;
                }
            } else {
                used[best] = true, one.seen++, one.missed = 0;
                float dx = seen.boxes[best].x - one.x, dy = seen.boxes[best].y - one.y;
                one.x += 0.6f * dx, one.y += 0.6f * dy, one.vx += 0.2f * dx, one.vy += 0.2f * dy;
            }
            ++it;
        }
        for (size_t i = 0; i < used.size(); i++)
            if (!used[i]) tracks_[next_++] = {seen.boxes[i].x, seen.boxes[i].y};
    }
    void mark() {
        for (const Point& p : ground_.raised) {
            int x = int(p.x * 3 + 100), y = int(p.y * 3 + 100);
            if (x < 0 || y < 0 || x >= 200 || y >= 200) continue;
            int steps = std::max(std::abs(x - 100), std::abs(y - 100));
            for (int i = 0; i < steps; i += 2) grid_[size_t(100 + (y - 100) * i / steps) * 200 + 100 + (x - 100) * i / steps] *= 0.9f;
            grid_[size_t(y) * 200 + x] += 1;
        }
    }
    void note() {
        for (auto& [id, one] : tracks_) std::fprintf(log_, "%ld %d %.2f %.2f %d\n", step_, id, one.x, one.y, one.seen);
        if (step_ % 50 == 0) std::fflush(log_);
    }
    Shelf<Boxes> boxes_;
    Shelf<Segments> segments_;
    Shelf<std::shared_ptr<Image>> images_;
    Shelf<std::shared_ptr<Cloud>> clouds_;
    Segments ground_;
    std::atomic<bool> ends_{false};
    std::vector<std::thread> workers_;
    Source source_;
    std::vector<int> before_;
    std::map<int, Track> tracks_;
    std::vector<float> grid_;
    std::FILE* log_ = nullptr;
    int next_ = 1;
    long step_ = 0;
    double shift_ = 0;
};

int main(int argc, char** argv) {
    bool tries = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : 1L << 40;
    Yard yard(tries);
    for (long i = 0; i < steps; i++) yard.step();
    std::printf("sum %.6f\n", yard.sum());
}
