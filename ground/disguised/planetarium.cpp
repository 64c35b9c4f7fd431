// defect: none; stars that all move are put into a grid, sorted by depth and projected in each frame, with a path search by a heap and a lidar with a grid
// kinds: -
// guilty: -
// build: -O2 -g
#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace planetarium {

struct Star {
    float x, y, z, vx, vy, vz, light;
};

/// Stars in cells, by counting: all of them move.
class Grid {
public:
    static constexpr int kSide = 24;
    void Sort(const std::vector<Star> &stars) {
        starts_.assign(kSide * kSide * kSide + 1, 0);
        order_.resize(stars.size());
        for (const auto &star : stars) ++starts_[Cell(star) + 1];
        for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
        auto at = starts_;
        for (size_t i = 0; i < stars.size(); ++i) order_[at[Cell(stars[i])]++] = uint32_t(i);
    }
    template <typename Use> void Near(const Star &star, Use use) const {
        int cx = Clamp(star.x), cy = Clamp(star.y), cz = Clamp(star.z);
        for (int z = std::max(0, cz - 1); z <= std::min(kSide - 1, cz + 1); ++z)
            for (int y = std::max(0, cy - 1); y <= std::min(kSide - 1, cy + 1); ++y)
                for (int x = std::max(0, cx - 1); x <= std::min(kSide - 1, cx + 1); ++x) {
                    size_t cell = size_t((z * kSide + y) * kSide + x);
                    for (uint32_t i = starts_[cell]; i < starts_[cell + 1]; ++i) use(order_[i]);
                }
    }

private:
    static int Clamp(float v) { return std::clamp(int(v), 0, kSide - 1); }
    static size_t Cell(const Star &s) { return size_t((Clamp(s.z) * kSide + Clamp(s.y)) * kSide + Clamp(s.x)); }
    std::vector<uint32_t> starts_, order_;
};

class Sky {
public:
    Sky() : stars_(5000) {
        std::mt19937 random(6);
        std::uniform_real_distribution<float> any(0, 24), speed(-0.02f, 0.02f);
        for (auto &star : stars_) star = {any(random), any(random), any(random), speed(random), speed(random), speed(random), any(random)};
    }
    void Pull() {
        grid_.Sort(stars_);
        std::vector<std::array<float, 3>> pulls(stars_.size());
        for (size_t i = 0; i < stars_.size(); ++i) {
            auto &pull = pulls[i];
            const Star &star = stars_[i];
            grid_.Near(star, [&](uint32_t k) {
                float dx = stars_[k].x - star.x, dy = stars_[k].y - star.y, dz = stars_[k].z - star.z, d = dx * dx + dy * dy + dz * dz + 0.1f;
                if (d > 1) return;
                float by = 1e-5f / (d * std::sqrt(d));
                pull[0] += dx * by;
                pull[1] += dy * by;
                pull[2] += dz * by;
            });
        }
        for (size_t i = 0; i < stars_.size(); ++i) {
            auto &star = stars_[i];
            Move(star.x, star.vx, pulls[i][0]);
            Move(star.y, star.vy, pulls[i][1]);
            Move(star.z, star.vz, pulls[i][2]);
        }
    }
    const std::vector<Star> &stars() const { return stars_; }

private:
    static void Move(float &x, float &v, float pull) {
        v += pull;
        x += v;
        if (x < 0 || x > 24) v = -v;
        x = std::clamp(x, 0.f, 24.f);
    }
    std::vector<Star> stars_;
    Grid grid_;
};

/// Pictures for guests: far stars first, since near ones cover them.
class Dome {
public:
    Dome() : pixels_(kSide * kSide) {}
    void Draw(const std::vector<Star> &stars, float yaw) {
        float c = std::cos(yaw), s = std::sin(yaw);
        depths_.clear();
        for (size_t i = 0; i < stars.size(); ++i) depths_.push_back({c * (stars[i].x - 12) + s * (stars[i].y - 12), uint32_t(i)});
        std::sort(depths_.begin(), depths_.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
        for (auto &pixel : pixels_) pixel *= 0.9f;
        for (auto [depth, i] : depths_) {
            if (depth < 0.5f) break;
            float u = (c * (stars[i].y - 12) - s * (stars[i].x - 12)) / depth, v = (stars[i].z - 12) / depth;
            int x = int((u + 1) * 0.5f * kSide), y = int((v + 1) * 0.5f * kSide);
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx)
                    if (x + dx >= 0 && y + dy >= 0 && x + dx < kSide && y + dy < kSide) pixels_[size_t((y + dy) * kSide + x + dx)] = 0.3f * pixels_[size_t((y + dy) * kSide + x + dx)] + stars[i].light / (1 + float(dx * dx + dy * dy));
        }
    }
    double Sum() const {
        double sum = 0;
        for (float pixel : pixels_) sum += pixel;
        return sum;
    }

private:
    static constexpr int kSide = 200;
    std::vector<std::pair<float, uint32_t>> depths_;
    std::vector<float> pixels_;
};

/// The guide's cart: a way through guests who move.
class Guide {
public:
    Guide() : random_(8), guests_(300) {
        for (auto &guest : guests_) guest = {int(random_() % kSide), int(random_() % kSide)};
    }
    int Walk() {
        blocked_.assign(kSide * kSide, 0);
        for (auto &[x, y] : guests_) {
            x = std::clamp(x + int(random_() % 3) - 1, 0, kSide - 1);
            y = std::clamp(y + int(random_() % 3) - 1, 0, kSide - 1);
            blocked_[size_t(y * kSide + x)] = 1;
        }
        int start = int(random_() % kSide) * kSide, goal = int(random_() % kSide) * kSide + kSide - 1;
        costs_.assign(kSide * kSide, 1e9f);
        std::priority_queue<std::pair<float, int>, std::vector<std::pair<float, int>>, std::greater<>> open;
        open.push({0, start});
        costs_[size_t(start)] = 0;
        while (!open.empty()) {
            auto [estimate, at] = open.top();
            open.pop();
            if (at == goal) return int(estimate);
            int x = at % kSide, y = at / kSide;
            for (auto [dx, dy] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}}) {
                int u = x + dx, v = y + dy;
                if (u < 0 || v < 0 || u >= kSide || v >= kSide || blocked_[size_t(v * kSide + u)]) continue;
                float cost = costs_[size_t(at)] + 1;
                if (cost >= costs_[size_t(v * kSide + u)]) continue;
                costs_[size_t(v * kSide + u)] = cost;
                open.push({cost + float(std::abs(goal % kSide - u) + std::abs(goal / kSide - v)), v * kSide + u});
            }
        }
        return 0;
    }

private:
    static constexpr int kSide = 80;
    std::mt19937 random_;
    std::vector<std::pair<int, int>> guests_;
    std::vector<char> blocked_;
    std::vector<float> costs_;
};

/// The sound: oscillators whose pitches change, on a thread of its own.
class Organ {
public:
    void Play(double t) {
        for (size_t pipe = 0; pipe < 24; ++pipe) {
            double pitch = 0.02 + 0.001 * double(pipe) + 0.0002 * std::sin(t + double(pipe));
            for (auto &sample : sound_) {
                phase_[pipe] += pitch;
                sample = 0.9 * sample + 0.1 * std::sin(phase_[pipe]);
            }
        }
    }
    double First() const { return sound_[0]; }

private:
    std::array<double, 24> phase_{};
    std::array<double, 256> sound_{};
};

} // namespace planetarium

int main(int argc, char **argv) {
    using namespace planetarium;
    long steps = argc > 2 ? std::atol(argv[2]) : std::numeric_limits<long>::max();
    Sky sky;
    Dome dome;
    Guide guide;
    Organ organ;
    std::thread sound([&] {
        for (long i = 0; i < steps; ++i) organ.Play(double(i) * 0.01);
    });
    long way = 0;
    for (long i = 0; i < steps; ++i) {
        sky.Pull();
        dome.Draw(sky.stars(), float(i) * 0.01f);
        way += guide.Walk();
    }
    sound.join();
    std::printf("%g %ld %g\n", dome.Sum(), way, organ.First());
}
