// defect: the pose of the sensor is inverted for each point of the cloud, though all points of a cloud have the same
// kinds: same-work-again, same-data-each-call, called-very-often
// guilty: surveyors::Pose::Inverse, surveyors::ToSensor, surveyors::Weigher::Fit, surveyors::Crew::Work
// gain: 27
// build: -O2 -g
#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

namespace surveyors {

struct Point {
    float x = 0, y = 0, z = 0;
};

struct Pose {
    std::array<double, 16> m{};
    static Pose At(double yaw, double roll, double x, double y, double z) {
        double c = std::cos(yaw), s = std::sin(yaw), d = std::cos(roll), t = std::sin(roll);
        return {{c, -s * d, s * t, x, s, c * d, -c * t, y, 0, t, d, z, 0, 0, 0, 1}};
    }
    Point Apply(Point p) const {
        return {float(m[0] * p.x + m[1] * p.y + m[2] * p.z + m[3]), float(m[4] * p.x + m[5] * p.y + m[6] * p.z + m[7]),
                float(m[8] * p.x + m[9] * p.y + m[10] * p.z + m[11])};
    }
    /// By elimination: works for all poses, also with scale.
    Pose Inverse() const {
        double a[4][8] = {};
        for (int i = 0; i < 4; ++i) {
            for (int k = 0; k < 4; ++k) a[i][k] = m[size_t(4 * i + k)];
            a[i][4 + i] = 1;
        }
        for (int i = 0; i < 4; ++i) {
            int best = i;
            for (int k = i + 1; k < 4; ++k)
                if (std::fabs(a[k][i]) > std::fabs(a[best][i])) best = k;
            if (best != i)
                for (int k = 0; k < 8; ++k) std::swap(a[i][k], a[best][k]);
            double scale = 1 / a[i][i];
            for (int k = 0; k < 8; ++k) a[i][k] *= scale;
            for (int row = 0; row < 4; ++row) {
                if (row == i) continue;
                double by = a[row][i];
                for (int k = 0; k < 8; ++k) a[row][k] -= by * a[i][k];
            }
        }
        Pose pose;
        for (int i = 0; i < 4; ++i)
            for (int k = 0; k < 4; ++k) pose.m[size_t(4 * i + k)] = a[i][4 + k];
        return pose;
    }
};

/// A point of the map, as the sensor sees it.
__attribute__((noinline)) Point ToSensor(const Pose &sensor, Point p) { return sensor.Inverse().Apply(p); }

using Cloud = std::vector<Point>;

/// What the instrument sees of a street from where it is.
class Street {
public:
    explicit Street(unsigned seed) : random_(seed) {
        for (int i = 0; i < 64; ++i) fronts_.push_back(6 + float(random_() % 100) * 0.04f);
    }
    Cloud See(const Pose &pose, int number) {
        Cloud cloud;
        cloud.reserve(size_t(number));
        for (int i = 0; i < number; ++i) {
            float along = float(i % 400) * 0.1f - 20, up = float(i / 400) * 0.25f;
            float front = fronts_[size_t(i % 400 / 7)];
            float noise = float(random_() % 1000) * 2e-5f;
            cloud.push_back(pose.Apply({along, (i & 1) ? front + noise : -front - noise, up}));
        }
        return cloud;
    }

private:
    std::mt19937 random_;
    std::vector<float> fronts_;
};

/// One point for each cube of the map.
class Thinner {
public:
    Cloud Thin(const Cloud &cloud) {
        cubes_.clear();
        for (const auto &p : cloud) {
            uint64_t key = uint64_t(int(p.x * 5) + 4096) << 40 | uint64_t(int(p.y * 5) + 4096) << 20 | uint64_t(int(p.z * 5) + 4096);
            auto &sum = cubes_[key];
            sum[0] += p.x;
            sum[1] += p.y;
            sum[2] += p.z;
            sum[3] += 1;
        }
        Cloud thin;
        for (const auto &[key, sum] : cubes_) thin.push_back({sum[0] / sum[3], sum[1] / sum[3], sum[2] / sum[3]});
        return thin;
    }

private:
    std::unordered_map<uint64_t, std::array<float, 4>> cubes_;
};

/// How well points lie on the planes of their neighbours along a row.
class Normals {
public:
    double Flatness(const Cloud &cloud) const {
        double sum = 0;
        for (size_t i = 3; i + 3 < cloud.size(); ++i) {
            double c[6] = {}, mean[3] = {};
            for (size_t k = i - 3; k <= i + 3; ++k) mean[0] += cloud[k].x, mean[1] += cloud[k].y, mean[2] += cloud[k].z;
            for (auto &one : mean) one /= 7;
            for (size_t k = i - 3; k <= i + 3; ++k) {
                double x = cloud[k].x - mean[0], y = cloud[k].y - mean[1], z = cloud[k].z - mean[2];
                c[0] += x * x, c[1] += x * y, c[2] += x * z, c[3] += y * y, c[4] += y * z, c[5] += z * z;
            }
            double v[3] = {1, 1, 1};
            for (int round = 0; round < 4; ++round) {
                double n[3] = {c[0] * v[0] + c[1] * v[1] + c[2] * v[2], c[1] * v[0] + c[3] * v[1] + c[4] * v[2], c[2] * v[0] + c[4] * v[1] + c[5] * v[2]};
                double by = 1 / (std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) + 1e-9);
                for (int k = 0; k < 3; ++k) v[k] = n[k] * by;
            }
            sum += v[2] * v[2];
        }
        return sum;
    }
};

/// Weighs the points by range and angle, as the instrument's errors are.
class Weigher {
public:
    explicit Weigher(bool each) : each_(each) {}
    double Fit(const Pose &sensor, const Cloud &cloud) const {
        double sum = 0;
        Pose inverse = sensor.Inverse();
        for (const auto &p : cloud) {
            Point q = each_ ? ToSensor(sensor, p) : inverse.Apply(p);
            double range = std::sqrt(double(q.x * q.x + q.y * q.y + q.z * q.z));
            double side = std::atan2(q.y, q.x);
            sum += std::exp(-range * 0.05) * (1 + 0.1 * std::cos(side * 4));
        }
        return sum;
    }

private:
    bool each_;
};

/// A surveyor with an instrument, on a thread of its own.
class Crew {
public:
    Crew(int number, bool each) : number_(number), street_(unsigned(number) + 1), weigher_(each) {}
    void Work(long step) {
        double t = double(step) * 0.01 + number_;
        Pose pose = Pose::At(t * 0.3, 0.02 * std::sin(t), t, 0.3 * std::cos(t), 1.7);
        Cloud cloud = street_.See(pose, 4000);
        flat_ += normals_.Flatness(cloud);
        Cloud thin = thinner_.Thin(cloud);
        fit_ += weigher_.Fit(pose, cloud);
        Recall(thin);
    }
    double result() const { return flat_ + fit_ + double(kept_.size()); }

private:
    void Recall(const Cloud &thin) {
        kept_.insert(kept_.end(), thin.begin(), thin.end());
        if (kept_.size() > 30000) kept_.erase(kept_.begin(), kept_.begin() + 15000);
        std::nth_element(kept_.begin(), kept_.begin() + long(kept_.size() / 2), kept_.end(), [](const Point &a, const Point &b) { return a.z < b.z; });
    }
    int number_;
    Street street_;
    Weigher weigher_;
    Thinner thinner_;
    Normals normals_;
    Cloud kept_;
    double flat_ = 0, fit_ = 0;
};

} // namespace surveyors

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : std::numeric_limits<long>::max();
    std::vector<surveyors::Crew> crews;
    for (int i = 0; i < 3; ++i) crews.emplace_back(i, slow);
    std::vector<std::thread> threads;
    for (auto &crew : crews)
        threads.emplace_back([&crew, steps] {
            for (long i = 0; i < steps; ++i) crew.Work(i);
        });
    for (auto &thread : threads) thread.join();
    double sum = 0;
    for (auto &crew : crews) sum += crew.result();
    std::printf("%g\n", sum);
}
