// defect: manifolds, with clipping, are made for all pairs of boxes that overlap, also where both sleep; the solver then passes over those
// kinds: same-work-again, results-unused
// guilty: Scene::press, Scene::fit, Clip::against, Boxes::meet, Meeting::meet, Scene::step
// phase: steady
// gain: 34
//
// Boxes of a warehouse in two dimensions (seen from the side): stacks which mostly sleep, arms that push some, a
// sweep along an axis, manifolds by clipping, an iterative solver with warm start, islands, rays and contact sensors.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <vector>

struct V2 {
    double x = 0, y = 0;
};
static inline V2 operator+(V2 a, V2 b) { return {a.x + b.x, a.y + b.y}; }
static inline V2 operator-(V2 a, V2 b) { return {a.x - b.x, a.y - b.y}; }
static inline V2 operator*(V2 a, double f) { return {a.x * f, a.y * f}; }
static inline double dot(V2 a, V2 b) { return a.x * b.x + a.y * b.y; }
static inline double cross(V2 a, V2 b) { return a.x * b.y - a.y * b.x; }
static inline V2 turned(double w, V2 a) { return {-w * a.y, w * a.x}; }

struct Body {
    V2 at, speed, half;
    double angle = 0, spin = 0, weight = 1, inertia = 1;
    bool fixed = false, asleep = false;
    int still = 0;
    double left = 0, right = 0, low = 0, high = 0;
    std::array<V2, 4> corners;
    void place() {
        double c = std::cos(angle), s = std::sin(angle);
        const double sx[4] = {-1, 1, 1, -1}, sy[4] = {-1, -1, 1, 1};
        left = low = 1e9, right = high = -1e9;
        for (int i = 0; i < 4; i++) {
            double x = sx[i] * half.x, y = sy[i] * half.y;
            corners[i] = {at.x + c * x - s * y, at.y + s * x + c * y};
            left = std::min(left, corners[i].x), right = std::max(right, corners[i].x);
            low = std::min(low, corners[i].y), high = std::max(high, corners[i].y);
        }
    }
};

struct Spot {
    V2 at;
    double deep = 0, push = 0, drag = 0;
};
struct Manifold {
    int a, b, count = 0;
    V2 normal;
    Spot spots[2];
};

// Parts of an edge inside a face's sides.
struct Clip {
    V2 points[2];
    int count = 2;
    void against(V2 normal, double offset) {
        double d0 = dot(normal, points[0]) - offset, d1 = dot(normal, points[1]) - offset;
        V2 out[2];
        int n = 0;
        if (d0 <= 0) out[n++] = points[0];
        if (d1 <= 0) out[n++] = points[1];
        if (d0 * d1 < 0 && n < 2) out[n++] = points[0] + (points[1] - points[0]) * (d0 / (d0 - d1));
        for (int i = 0; i < n; i++) points[i] = out[i];
        count = std::min(count, n);
    }
};

// How two shapes touch.
struct Meeting {
    virtual ~Meeting() = default;
    virtual bool meet(const Body& a, const Body& b, Manifold& out) const = 0;
};
struct Boxes : Meeting {
    static double apart(const Body& a, const Body& b, int& face) {
        double most = -1e9;
        for (int i = 0; i < 4; i++) {
            V2 edge = a.corners[(i + 1) & 3] - a.corners[i];
            double l = std::sqrt(dot(edge, edge));
            V2 normal{edge.y / l, -edge.x / l};
            double least = 1e9;
            for (const V2& p : b.corners) least = std::min(least, dot(normal, p - a.corners[i]));
            if (least > most) most = least, face = i;
        }
        return most;
    }
    bool meet(const Body& a, const Body& b, Manifold& out) const override {
        int fa = 0, fb = 0;
        double da = apart(a, b, fa);
        if (da > 0.01) return false;
        double db = apart(b, a, fb);
        if (db > 0.01) return false;
        const Body &one = db > da + 1e-4 ? b : a, &two = db > da + 1e-4 ? a : b;
        int face = db > da + 1e-4 ? fb : fa;
        V2 p = one.corners[face], q = one.corners[(face + 1) & 3], edge = q - p;
        double l = std::sqrt(dot(edge, edge));
        V2 along = edge * (1 / l), normal{along.y, -along.x};
        int facing = 0;
        double least = 1e9;
        for (int i = 0; i < 4; i++) {
            V2 e = two.corners[(i + 1) & 3] - two.corners[i];
            double d = dot(normal, V2{e.y, -e.x}) / std::sqrt(dot(e, e));
            if (d < least) least = d, facing = i;
        }
        Clip clip;
        clip.points[0] = two.corners[facing], clip.points[1] = two.corners[(facing + 1) & 3];
        clip.against(along * -1, -dot(along, p));
        clip.against(along, dot(along, q));
        out.count = 0;
        out.normal = &one == &a ? normal : normal * -1;
        for (int i = 0; i < clip.count; i++) {
            double deep = dot(normal, clip.points[i] - p);
            if (deep <= 0.01) out.spots[out.count++] = {clip.points[i], deep, 0, 0};
        }
        return out.count > 0;
    }
};

class Scene {
public:
    Scene(bool all, int stacks, int height) : all_(all), meeting_(std::make_unique<Boxes>()) {
        Body floor;
        floor.at = {0, -1}, floor.half = {1e5, 1}, floor.fixed = true;
        bodies_.push_back(floor);
        for (int s = 0; s < stacks; s++)
            for (int h = 0; h < height; h++) {
                Body one;
                one.half = {0.5, 0.25}, one.at = {s * 1.3, 0.25 + h * 0.5};
                one.weight = 1, one.inertia = 0.12, one.asleep = true, one.still = 60;
                bodies_.push_back(one);
            }
        for (Body& one : bodies_) one.place();
        order_.resize(bodies_.size());
        std::iota(order_.begin(), order_.end(), 0);
    }
    void step() {
        arms();
        fall();
        sweep();
        press();
        solve();
        move();
        islands();
        sense();
        look();
        step_++;
    }
    double sum() const {
        double s = seen_;
        for (const Body& one : bodies_) s += one.at.x * 1e-3 + one.at.y + one.asleep;
        return s;
    }

private:
    uint32_t random() {
        seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
        return uint32_t(seed_ >> 33);
    }
    bool rests(int i) const { return bodies_[i].fixed || bodies_[i].asleep; }
    // A few arms give boxes on top of stacks a push.
    void arms() {
        for (int k = 0; k < 3; k++) {
            Body& one = bodies_[1 + random() % (bodies_.size() - 1)];
            if (one.at.y < 1.5) continue;
            one.asleep = false, one.still = 0;
            one.speed.x += (random() % 100) * 0.006 - 0.3;
        }
    }
    void fall() {
        for (Body& one : bodies_)
            if (!one.fixed && !one.asleep) one.speed.y -= 9.81 * DT;
    }
    // Pairs whose bounds overlap, along x; the order hardly changes.
    void sweep() {
        for (size_t i = 1; i < order_.size(); i++)
            for (size_t k = i; k > 0 && bodies_[order_[k]].left < bodies_[order_[k - 1]].left; k--) std::swap(order_[k], order_[k - 1]);
        pairs_.clear(), active_.clear();
        for (int i : order_) {
            const Body& one = bodies_[i];
            size_t kept = 0;
            for (int k : active_) {
                const Body& other = bodies_[k];
                if (other.right < one.left - 0.01) continue;
                active_[kept++] = k;
                if (other.low < one.high + 0.01 && one.low < other.high + 0.01) pairs_.push_back({std::min(i, k), std::max(i, k)});
            }
            active_.resize(kept);
            active_.push_back(i);
        }
    }
    void press() {
        manifolds_.clear();
        for (auto& [a, b] : pairs_) {
            if (!all_ && rests(a) && rests(b)) continue;
            fit(a, b);
        }
    }
    void fit(int a, int b) {
        Manifold one;
        one.a = a, one.b = b;
        if (meeting_->meet(bodies_[a], bodies_[b], one)) manifolds_.push_back(one);
    }
    void solve() {
        live_.clear();
        for (Manifold& one : manifolds_) {
            if (rests(one.a) && rests(one.b)) continue;
            auto warm = warm_.find(uint64_t(one.a) << 32 | uint64_t(one.b));
            if (warm != warm_.end())
                for (int i = 0; i < one.count; i++) one.spots[i].push = warm->second[i] * 0.8;
            for (int i = 0; i < one.count; i++) apply(one, one.spots[i].at, one.normal * one.spots[i].push);
            live_.push_back(&one);
        }
        for (int round = 0; round < 6; round++)
            for (Manifold* one : live_)
                for (int i = 0; i < one->count; i++) {
                    Spot& spot = one->spots[i];
                    V2 tangent{one->normal.y, -one->normal.x};
                    double v = dot(relative(*one, spot.at), one->normal);
                    double push = std::max(spot.push - (v + std::min(0.0, spot.deep + 0.005) * 0.2 / DT) / mass(*one, spot.at, one->normal), 0.0);
                    apply(*one, spot.at, one->normal * (push - spot.push));
                    spot.push = push;
                    double slip = dot(relative(*one, spot.at), tangent);
                    double drag = std::clamp(spot.drag - slip / mass(*one, spot.at, tangent), -0.5 * push, 0.5 * push);
                    apply(*one, spot.at, tangent * (drag - spot.drag));
                    spot.drag = drag;
                }
        warm_.clear();
        for (Manifold* one : live_) warm_[uint64_t(one->a) << 32 | uint64_t(one->b)] = {one->spots[0].push, one->count > 1 ? one->spots[1].push : 0};
    }
    double inverse(int i) const { return rests(i) ? 0 : 1 / bodies_[i].weight; }
    double inverse_spin(int i) const { return rests(i) ? 0 : 1 / bodies_[i].inertia; }
    V2 relative(const Manifold& m, V2 at) const {
        const Body &a = bodies_[m.a], &b = bodies_[m.b];
        return b.speed + turned(b.spin, at - b.at) - a.speed - turned(a.spin, at - a.at);
    }
    double mass(const Manifold& m, V2 at, V2 n) const {
        double ra = cross(at - bodies_[m.a].at, n), rb = cross(at - bodies_[m.b].at, n);
        return inverse(m.a) + inverse(m.b) + ra * ra * inverse_spin(m.a) + rb * rb * inverse_spin(m.b) + 1e-12;
    }
    void apply(const Manifold& m, V2 at, V2 push) {
        Body &a = bodies_[m.a], &b = bodies_[m.b];
        a.speed = a.speed - push * inverse(m.a), b.speed = b.speed + push * inverse(m.b);
        a.spin -= cross(at - a.at, push) * inverse_spin(m.a), b.spin += cross(at - b.at, push) * inverse_spin(m.b);
    }
    void move() {
        for (Body& one : bodies_) {
            if (one.fixed || one.asleep) continue;
            one.speed = one.speed * 0.999, one.spin *= 0.99;
            one.at = one.at + one.speed * DT, one.angle += one.spin * DT;
            one.place();
            one.still = dot(one.speed, one.speed) + one.spin * one.spin < 0.02 ? one.still + 1 : 0;
        }
    }
    int root(int i) {
        while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
        return i;
    }
    // What touches moves or sleeps together.
    void islands() {
        parent_.resize(bodies_.size());
        std::iota(parent_.begin(), parent_.end(), 0);
        for (Manifold* one : live_)
            if (!bodies_[one->a].fixed && !bodies_[one->b].fixed) parent_[root(one->a)] = root(one->b);
        calm_.assign(bodies_.size(), 1);
        for (size_t i = 1; i < bodies_.size(); i++)
            if (!bodies_[i].asleep && bodies_[i].still < 15) calm_[root(int(i))] = 0;
        for (size_t i = 1; i < bodies_.size(); i++) {
            Body& one = bodies_[i];
            bool sleeps = calm_[root(int(i))];
            if (sleeps && !one.asleep) one.speed = {}, one.spin = 0;
            if (!sleeps && one.asleep && parent_[i] != int(i)) one.still = 0;
            one.asleep = sleeps;
        }
    }
    // Weight on the pads below each stack.
    void sense() {
        pads_.assign(1024, 0);
        for (Manifold* one : live_)
            for (int i = 0; i < one->count; i++) pads_[size_t(std::fabs(one->spots[i].at.x) / 1.3) & 1023] += one->spots[i].push / DT;
        std::sort(pads_.begin(), pads_.end());
        seen_ += pads_[1000] * 1e-3;
    }
    // Range finders on a truck that drives past.
    void look() {
        double x = std::fmod(step_ * 0.05, 500.0);
        V2 from{x, 9};
        for (int k = 0; k < 24; k++) {
            double a = -0.4 - k * 0.1;
            V2 ray{std::cos(a) * 30, std::sin(a) * 30};
            double nearest = 1;
            for (size_t i = 1; i < bodies_.size(); i++) {
                const Body& one = bodies_[i];
                if (one.right < from.x - 30 || one.left > from.x + 30 || std::fabs(cross(ray, one.at - from)) > 18) continue;
                for (int c = 0; c < 4; c++) {
                    V2 p = one.corners[c], d = one.corners[(c + 1) & 3] - p;
                    double det = cross(ray, d);
                    if (std::fabs(det) < 1e-12) continue;
                    double t = cross(p - from, d) / det, u = cross(p - from, ray) / det;
                    if (t > 0 && t < nearest && u >= 0 && u <= 1) nearest = t;
                }
            }
            seen_ += nearest;
        }
    }
    static constexpr double DT = 1.0 / 120;
    bool all_;
    std::unique_ptr<Meeting> meeting_;
    std::vector<Body> bodies_;
    std::vector<int> order_, active_, parent_;
    std::vector<std::pair<int, int>> pairs_;
    std::vector<Manifold> manifolds_;
    std::vector<Manifold*> live_;
    std::unordered_map<uint64_t, std::array<double, 2>> warm_;
    std::vector<char> calm_;
    std::vector<double> pads_;
    uint64_t seed_ = 11;
    double seen_ = 0;
    long step_ = 0;
};

int main(int argc, char** argv) {
    bool all = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : 1L << 40;
    Scene scene(all, 500, 10);
    for (long i = 0; i < steps; i++) scene.step();
    std::printf("sum %.9f\n", scene.sum());
}
