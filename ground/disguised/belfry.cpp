// defect: each ray of the range finder is tried against all triangles of the scene, which has no tree or grid of them
// kinds: list-search, full-scan-each-step, same-data-each-call, superlinear-lookup
// guilty: belfry::Scene::Nearest, belfry::Scene::Hit, belfry::RangeFinder::Scan, belfry::Triangle::Meets
// gain: 31
// build: -O2 -g
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace belfry {

struct Vec {
    double x = 0, y = 0, z = 0;
};
inline Vec operator+(const Vec &a, const Vec &b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vec operator-(const Vec &a, const Vec &b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vec operator*(const Vec &a, double s) { return {a.x * s, a.y * s, a.z * s}; }
inline double Dot(const Vec &a, const Vec &b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vec Cross(const Vec &a, const Vec &b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }

struct Ray {
    Vec from, way;
};

struct Triangle {
    Vec a, ab, ac;
    double Meets(const Ray &ray) const {
        Vec p = Cross(ray.way, ac);
        double det = Dot(ab, p);
        if (std::fabs(det) < 1e-9) return -1;
        Vec t = ray.from - a;
        double u = Dot(t, p) / det;
        if (u < 0 || u > 1) return -1;
        Vec q = Cross(t, ab);
        double v = Dot(ray.way, q) / det;
        if (v < 0 || u + v > 1) return -1;
        return Dot(ac, q) / det;
    }
};

/// A node of a tree of boxes.
struct Node {
    Vec low, high;
    int left = -1, right = -1, first = 0, last = 0;
    bool Meets(const Ray &ray, double most) const {
        double near = 0, far = most;
        for (auto axis : {&Vec::x, &Vec::y, &Vec::z}) {
            double by = 1 / ray.way.*axis;
            double one = (low.*axis - ray.from.*axis) * by, two = (high.*axis - ray.from.*axis) * by;
            near = std::max(near, std::min(one, two));
            far = std::min(far, std::max(one, two));
        }
        return near <= far;
    }
};

class Scene {
public:
    explicit Scene(bool plain) {
        std::mt19937 random(2);
        for (int i = 0; i < 400; ++i) {
            Vec at{double(random() % 400) * 0.1 - 20, double(random() % 400) * 0.1 - 20, double(random() % 30) * 0.1};
            Vec one{1 + double(random() % 5) * 0.1, 0.1, 0}, two{0.1, 0.3, 1.5};
            triangles_.push_back({at, one, two});
        }
        if (!plain) Build(0, int(triangles_.size()));
    }
    double Nearest(const Ray &ray, double most) const {
        if (!nodes_.empty()) {
            Walk(int(nodes_.size()) - 1, ray, most);
            return most;
        }
        for (const auto &triangle : triangles_) {
            double far = triangle.Meets(ray);
            if (far > 1e-6 && far < most) most = far;
        }
        return most;
    }

private:
    int Build(int first, int last) {
        Node node;
        node.low = {1e9, 1e9, 1e9};
        node.high = {-1e9, -1e9, -1e9};
        for (int i = first; i < last; ++i) {
            const auto &one = triangles_[size_t(i)];
            for (const Vec &corner : {one.a, one.a + one.ab, one.a + one.ac})
                for (auto axis : {&Vec::x, &Vec::y, &Vec::z}) {
                    node.low.*axis = std::min(node.low.*axis, corner.*axis);
                    node.high.*axis = std::max(node.high.*axis, corner.*axis);
                }
        }
        node.first = first;
        node.last = last;
        if (last - first > 4) {
            auto axis = node.high.x - node.low.x > node.high.y - node.low.y ? &Vec::x : &Vec::y;
            int middle = (first + last) / 2;
            std::nth_element(triangles_.begin() + first, triangles_.begin() + middle, triangles_.begin() + last, [axis](const Triangle &a, const Triangle &b) { return a.a.*axis < b.a.*axis; });
            node.left = Build(first, middle);
            node.right = Build(middle, last);
        }
        nodes_.push_back(node);
        return int(nodes_.size()) - 1;
    }
    void Walk(int number, const Ray &ray, double &most) const {
        const Node &node = nodes_[size_t(number)];
        if (!node.Meets(ray, most)) return;
        if (node.left < 0) {
            for (int i = node.first; i < node.last; ++i) {
                double far = triangles_[size_t(i)].Meets(ray);
                if (far > 1e-6 && far < most) most = far;
            }
            return;
        }
        Walk(node.left, ray, most);
        Walk(node.right, ray, most);
    }
    std::vector<Triangle> triangles_;
    std::vector<Node> nodes_;
};

/// Runs tasks on another thread.
class Helper {
public:
    Helper() : thread_([this] { Run(); }) {}
    ~Helper() {
        {
            std::lock_guard lock(mutex_);
            ended_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    void Start(std::function<void()> task) {
        {
            std::lock_guard lock(mutex_);
            task_ = std::move(task);
        }
        changed_.notify_all();
    }
    void Wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !task_ && !busy_; });
    }

private:
    void Run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return ended_ || task_; });
            if (ended_) return;
            auto task = std::move(task_);
            task_ = nullptr;
            busy_ = true;
            lock.unlock();
            task();
            lock.lock();
            busy_ = false;
            changed_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> task_;
    bool busy_ = false, ended_ = false;
    std::thread thread_;
};

class RangeFinder {
public:
    explicit RangeFinder(const Scene &scene) : scene_(scene) {
        for (int i = 0; i < 270; ++i) ways_.push_back({std::cos((i - 135) * M_PI / 180), std::sin((i - 135) * M_PI / 180), 0.02});
        ranges_.resize(ways_.size());
    }
    void Scan(Vec from, double yaw) {
        double c = std::cos(yaw), s = std::sin(yaw);
        for (size_t i = 0; i < ways_.size(); ++i) ranges_[i] = scene_.Nearest({from, {c * ways_[i].x - s * ways_[i].y, s * ways_[i].x + c * ways_[i].y, ways_[i].z}}, 30);
    }
    const std::vector<double> &ranges() const { return ranges_; }

private:
    const Scene &scene_;
    std::vector<Vec> ways_;
    std::vector<double> ranges_;
};

/// Where the robot is: guesses that are weighed by what it sees.
class Guesses {
public:
    Guesses() : random_(4) { places_.resize(1500); }
    void Weigh(const std::vector<double> &ranges) {
        double sum = 0;
        for (auto &place : places_) {
            place[0] += normal_(random_) * 0.02;
            place[1] += normal_(random_) * 0.02;
            double misfit = 0;
            for (size_t i = 0; i < ranges.size(); i += 18) {
                double expected = 12 + 4 * std::sin(place[0] + double(i) * 0.02) + 3 * std::cos(place[1]);
                misfit += (ranges[i] - expected) * (ranges[i] - expected);
            }
            place[2] = std::exp(-misfit * 1e-4);
            sum += place[2];
        }
        best_ = sum / double(places_.size());
    }
    double best() const { return best_; }

private:
    std::mt19937 random_;
    std::normal_distribution<double> normal_;
    std::vector<std::array<double, 3>> places_;
    double best_ = 0;
};

/// The arm: torques by recursion over its links.
class Arm {
public:
    void Move(double t) {
        for (int round = 0; round < 250; ++round) {
            Vec turn, force;
            for (int i = 0; i < 7; ++i) {
                double c = std::cos(angles_[size_t(i)]), s = std::sin(angles_[size_t(i)]);
                Vec next{c * turn.x + s * turn.z, turn.y + speeds_[size_t(i)], c * turn.z - s * turn.x};
                turn = next;
                force = force + Cross(turn, {0.1, 0.2 * c, 0.3 * s});
            }
            for (size_t i = 7; i-- > 0;) {
                double wanted = std::sin(t + double(i));
                speeds_[i] += 0.001 * (20 * (wanted - angles_[i]) - 2 * speeds_[i] + 0.01 * force.z);
                angles_[i] += 0.001 * speeds_[i];
            }
        }
    }
    double first() const { return angles_[0]; }

private:
    std::array<double, 7> angles_{}, speeds_{};
};

/// The wheels' bumps, filtered.
class Shocks {
public:
    double Filter(double t) {
        double sum = 0;
        for (int i = 0; i < 20000; ++i) {
            double in = std::fmod(double(i) * 0.618 + t, 1.0);
            double out = 0.2 * in + 1.5 * one_ - 0.6 * two_;
            two_ = one_;
            one_ = out * 0.9;
            sum += out;
        }
        return sum;
    }

private:
    double one_ = 0, two_ = 0;
};

} // namespace belfry

int main(int argc, char **argv) {
    using namespace belfry;
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : std::numeric_limits<long>::max();
    Scene scene(slow);
    RangeFinder finder(scene);
    Guesses guesses;
    Arm arm;
    Shocks shocks;
    Helper helper;
    double sum = 0;
    for (long i = 0; i < steps; ++i) {
        double t = double(i) * 0.01;
        helper.Start([&] {
            arm.Move(t);
            sum += shocks.Filter(t);
        });
        finder.Scan({5 * std::sin(t * 0.1), 5 * std::cos(t * 0.1), 1}, t * 0.05);
        guesses.Weigh(finder.ranges());
        helper.Wait();
    }
    std::printf("%g\n", sum + guesses.best() + arm.first());
}
