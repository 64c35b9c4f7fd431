// defect: each step ends with a full check of the mesh (rings, twins, areas, and the link of each corner), although at most a handful of edges were flipped
// kinds: no-effect-each-call
// guilty: Upkeep::after, Inspector::visit, Rings::visit, Fans::visit, Weights::visit, World::step
// phase: steady
// gain: 40
//
// Crowd on a navigation mesh: triangles with half-edges, whose diagonals are flipped where obstacles move, ways by A* over the
// triangles, strings pulled tight, avoidance of neighbours, a director, and snapshots for clients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <queue>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

struct V2 {
    double x = 0, y = 0;
    V2 operator+(V2 o) const { return {x + o.x, y + o.y}; }
    V2 operator-(V2 o) const { return {x - o.x, y - o.y}; }
    V2 operator*(double f) const { return {x * f, y * f}; }
};
static double cross(V2 a, V2 b) { return a.x * b.y - a.y * b.x; }
static double dot(V2 a, V2 b) { return a.x * b.x + a.y * b.y; }
static double length(V2 a) { return std::sqrt(dot(a, a)); }

struct Half {
    int from, twin, next;
};

// Half-edges 3t, 3t+1, 3t+2 are those of triangle t.
struct Mesh {
    std::vector<V2> corners;
    std::vector<Half> halves;
    std::vector<int> out;  // a half-edge that leaves each corner
    int side;

    explicit Mesh(int side) : side(side) {
        for (int r = 0; r <= side; r++)
            for (int c = 0; c <= side; c++)
                corners.push_back({c + 0.2 * std::sin(r * 12.9 + c * 78.2), r + 0.2 * std::cos(r * 39.3 + c * 11.1)});
        std::unordered_map<uint64_t, int> edges;
        auto add = [&](int a, int b, int c) {
            int first = int(halves.size()), who[3] = {a, b, c};
            for (int i = 0; i < 3; i++) {
                halves.push_back({who[i], -1, first + (i + 1) % 3});
                edges[uint64_t(who[i]) << 32 | uint32_t(who[(i + 1) % 3])] = first + i;
            }
        };
        for (int r = 0; r < side; r++)
            for (int c = 0; c < side; c++) {
                int a = r * (side + 1) + c, b = a + 1, d = a + side + 1;
                add(a, b, d), add(b, d + 1, d);
            }
        out.assign(corners.size(), -1);
        for (auto& [ends, half] : edges) {
            auto twin = edges.find(ends << 32 | ends >> 32);
            halves[half].twin = twin == edges.end() ? -1 : twin->second;
        }
        for (int i = 0; i < int(halves.size()); i++)
            if (out[halves[i].from] < 0 || halves[i].twin < 0) out[halves[i].from] = i;
    }
    int triangles() const { return int(halves.size()) / 3; }
    V2 corner(int half) const { return corners[halves[half].from]; }
    V2 middle(int t) const { return (corner(3 * t) + corner(3 * t + 1) + corner(3 * t + 2)) * (1.0 / 3); }
    double area(int t) const { return cross(corner(3 * t + 1) - corner(3 * t), corner(3 * t + 2) - corner(3 * t)) / 2; }

    // Turns the diagonal of two triangles, if both stay proper.
    bool flip(int h) {
        int g = halves[h].twin;
        if (g < 0) return false;
        int h1 = halves[h].next, h2 = halves[h1].next, g1 = halves[g].next, g2 = halves[g1].next;
        int a = halves[h].from, b = halves[g].from, c = halves[h2].from, d = halves[g2].from;
        V2 pc = corners[c], pd = corners[d];
        if (cross(pd - pc, corners[b] - pc) < 0.05 || cross(pc - pd, corners[a] - pd) < 0.05) return false;
        int t = h / 3 * 3, s = g / 3 * 3;
        int th1 = halves[h1].twin, th2 = halves[h2].twin, tg1 = halves[g1].twin, tg2 = halves[g2].twin;
        auto put = [&](int at, int from, int twin, int next) {
            halves[at] = {from, twin, next};
            if (twin >= 0) halves[twin].twin = at;
        };
        put(t, c, s, t + 1), put(t + 1, d, tg2, t + 2), put(t + 2, b, th1, t);
        put(s, d, t, s + 1), put(s + 1, c, th2, s + 2), put(s + 2, a, tg1, s);
        for (int i : {t, t + 1, t + 2, s, s + 1, s + 2})
            if (halves[i].twin < 0 || halves[out[halves[i].from]].from != halves[i].from || out[halves[i].from] / 3 * 3 == t || out[halves[i].from] / 3 * 3 == s)
                fan(halves[i].from, i);
        return true;
    }
    void fan(int corner, int half) {
        int at = half;
        for (int i = 0; i < 64; i++) {
            out[corner] = at;
            if (halves[at].twin < 0) return;
            at = halves[halves[at].twin].next;
            if (at == half) return;
        }
    }
};

struct Inspector {
    virtual ~Inspector() = default;
    virtual long visit(const Mesh& mesh) const = 0;
};
struct Rings : Inspector {
    long visit(const Mesh& m) const override {
        long bad = 0;
        for (int i = 0; i < int(m.halves.size()); i++) {
            const Half& one = m.halves[i];
            bad += m.halves[m.halves[one.next].next].next != i;
            if (one.twin >= 0) bad += m.halves[one.twin].twin != i || m.halves[m.halves[one.twin].next].from != one.from;
        }
        return bad;
    }
};
struct Fans : Inspector {
    long visit(const Mesh& m) const override {
        long bad = 0;
        for (int c = 0; c < int(m.corners.size()); c++) {
            int at = m.out[c], turns = 0;
            do {
                bad += m.halves[at].from != c;
                int back = m.halves[m.halves[at].next].next;
                at = m.halves[back].twin;
            } while (at >= 0 && at != m.out[c] && ++turns < 64);
            bad += turns >= 64;
        }
        return bad;
    }
};
struct Weights : Inspector {
    long visit(const Mesh& m) const override {
        double sum = 0;
        long bad = 0;
        for (int t = 0; t < m.triangles(); t++) {
            double a = m.area(t);
            bad += !(a > 0);
            sum += a;
        }
        return bad + (sum < 1);
    }
};

// What is done after the mesh was changed.
class Upkeep {
public:
    explicit Upkeep(bool on) {
        if (!on) return;
        list_.push_back(std::make_unique<Rings>());
        list_.push_back(std::make_unique<Fans>());
        list_.push_back(std::make_unique<Weights>());
    }
    void after(const Mesh& mesh) const {
        for (auto& one : list_)
            if (one->visit(mesh)) throw std::logic_error("mesh");
    }

private:
    std::vector<std::unique_ptr<Inspector>> list_;
};

struct Walker {
    V2 at, speed, wish;
    std::vector<V2> way;
    size_t leg = 0;
    double radius = 0.15;
    int goal = 0, rank = 0;
};

class World {
public:
    World(bool on, int side, int walkers) : mesh_(side), upkeep_(on), walkers_(walkers), cells_(size_t(side) * side) {
        for (Walker& one : walkers_) one.at = mesh_.middle(int(random() % mesh_.triangles())), one.rank = int(random() % 1000);
        cost_.resize(mesh_.triangles()), stamp_.resize(mesh_.triangles()), parent_.resize(mesh_.triangles());
    }
    void step() {
        carve();
        upkeep_.after(mesh_);
        plan();
        bucket();
        avoid();
        move();
        direct();
        snapshot();
        step_++;
    }
    double sum() const {
        double s = 0;
        for (const Walker& one : walkers_) s += one.at.x + one.at.y * 0.5;
        return s + double(sent_ % 100000);
    }

private:
    uint64_t random() {
        seed_ ^= seed_ << 13, seed_ ^= seed_ >> 7, seed_ ^= seed_ << 17;
        return seed_;
    }
    void carve() {
        for (int i = 0; i < 4; i++) mesh_.flip(int(random() % mesh_.halves.size()));
    }
    int triangle(V2 p) const {
        int t = (std::clamp(int(p.y), 0, mesh_.side - 1) * mesh_.side + std::clamp(int(p.x), 0, mesh_.side - 1)) * 2;
        for (int i = 0; i < 200; i++) {
            int worst = -1;
            double least = -1e-9;
            for (int k = 0; k < 3; k++) {
                double v = cross(mesh_.corner(mesh_.halves[3 * t + k].next) - mesh_.corner(3 * t + k), p - mesh_.corner(3 * t + k));
                if (v < least) least = v, worst = 3 * t + k;
            }
            if (worst < 0 || mesh_.halves[worst].twin < 0) break;
            t = mesh_.halves[worst].twin / 3;
        }
        return t;
    }
    void plan() {
        int done = 0;
        for (size_t i = 0; i < walkers_.size() && done < 8; i++) {
            Walker& one = walkers_[(i + next_) % walkers_.size()];
            if (one.leg < one.way.size()) continue;
            V2 to = one.at + V2{double(random() % 24) - 12, double(random() % 24) - 12};
            to = {std::clamp(to.x, 1.0, mesh_.side - 1.0), std::clamp(to.y, 1.0, mesh_.side - 1.0)};
            one.way = search(one.at, to), one.leg = 0, done++;
        }
        next_ = (next_ + 97) % walkers_.size();
    }
    std::vector<V2> search(V2 from, V2 to) {
        int start = triangle(from), end = triangle(to);
        serial_++;
        std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> open;
        cost_[start] = 0, stamp_[start] = serial_, parent_[start] = -1;
        open.push({0, start});
        while (!open.empty()) {
            auto [guess, t] = open.top();
            open.pop();
            if (t == end) break;
            V2 here = mesh_.middle(t);
            for (int k = 0; k < 3; k++) {
                int twin = mesh_.halves[3 * t + k].twin;
                if (twin < 0) continue;
                int n = twin / 3;
                V2 there = mesh_.middle(n);
                double cost = cost_[t] + length(there - here);
                if (stamp_[n] == serial_ && cost_[n] <= cost) continue;
                stamp_[n] = serial_, cost_[n] = cost, parent_[n] = 3 * t + k;
                open.push({cost + length(to - there), n});
            }
        }
        std::vector<int> gates;
        for (int t = end; t != start && parent_[t] >= 0; t = parent_[t] / 3) gates.push_back(parent_[t]);
        std::reverse(gates.begin(), gates.end());
        std::vector<V2> way;
        V2 apex = from;
        for (size_t i = 0; i < gates.size(); i++) {
            V2 a = mesh_.corner(gates[i]), b = mesh_.corner(mesh_.halves[gates[i]].next), d = b - a;
            double f = std::clamp(dot(apex - a, d) / std::max(dot(d, d), 1e-9), 0.15, 0.85);
            apex = a + d * f;
            if (i % 2) way.push_back(apex);
        }
        way.push_back(to);
        return way;
    }
    void bucket() {
        for (auto& one : cells_) one.clear();
        for (size_t i = 0; i < walkers_.size(); i++) cells_[cell(walkers_[i].at)].push_back(int(i));
    }
    size_t cell(V2 p) const {
        return size_t(std::clamp(int(p.y), 0, mesh_.side - 1)) * mesh_.side + std::clamp(int(p.x), 0, mesh_.side - 1);
    }
    void avoid() {
        for (Walker& one : walkers_) {
            V2 wish{};
            if (one.leg < one.way.size()) {
                V2 d = one.way[one.leg] - one.at;
                double l = length(d);
                wish = d * (1.3 / std::max(l, 1e-6));
                if (l < 0.3) one.leg++;
            }
            V2 push{};
            for (int r = -1; r <= 1; r++)
                for (int c = -1; c <= 1; c++)
                    for (int k : cells_[cell(one.at + V2{double(c), double(r)})]) {
                        const Walker& other = walkers_[k];
                        V2 d = one.at - other.at, v = one.speed - other.speed;
                        double l = length(d);
                        if (&other == &one || l > 1.2) continue;
                        double soon = std::clamp(-dot(d, v) / std::max(dot(v, v), 1e-6), 0.0, 2.0);
                        V2 then = d + v * soon;
                        push = push + then * (0.3 * std::exp(-2 * length(then)) / (l + 0.05));
                    }
            one.wish = wish + push;
        }
    }
    void move() {
        for (Walker& one : walkers_) {
            one.speed = one.speed * 0.7 + one.wish * 0.3;
            double l = length(one.speed);
            if (l > 1.6) one.speed = one.speed * (1.6 / l);
            one.at = one.at + one.speed * 0.05;
            one.at = {std::clamp(one.at.x, 0.5, mesh_.side - 0.5), std::clamp(one.at.y, 0.5, mesh_.side - 0.5)};
            one.goal = triangle(one.at);
        }
    }
    void direct() {
        order_.clear();
        for (size_t i = 0; i < walkers_.size(); i++) order_.push_back({walkers_[i].rank * 0.01 + length(walkers_[i].at - V2{30, 30}), int(i)});
        std::sort(order_.begin(), order_.end());
        for (size_t i = 0; i < 200 && i < order_.size(); i++) walkers_[order_[i].second].rank = int((i * 7 + step_) % 1000);
    }
    void snapshot() {
        frame_.clear();
        for (size_t i = 0; i < walkers_.size(); i++) {
            if ((i + step_) % 2) continue;
            uint32_t x = uint32_t(walkers_[i].at.x * 1000), y = uint32_t(walkers_[i].at.y * 1000), v[3] = {uint32_t(i), x, y ^ uint32_t(walkers_[i].goal)};
            for (uint32_t one : v)
                for (; ; one >>= 7) {
                    frame_.push_back(uint8_t(one & 127) | (one > 127 ? 128 : 0));
                    if (one < 128) break;
                }
        }
        uint64_t hash = 1469598103934665603ull;
        for (uint8_t one : frame_) hash = (hash ^ one) * 1099511628211ull;
        sent_ += frame_.size() + hash % 7;
    }
    Mesh mesh_;
    Upkeep upkeep_;
    std::vector<Walker> walkers_;
    std::vector<std::vector<int>> cells_;
    std::vector<double> cost_;
    std::vector<int> stamp_, parent_;
    std::vector<std::pair<double, int>> order_;
    std::vector<uint8_t> frame_;
    uint64_t seed_ = 0x9e3779b97f4a7c15ull, sent_ = 0;
    size_t next_ = 0;
    long step_ = 0;
    int serial_ = 0;
};

int main(int argc, char** argv) {
    bool on = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : 1L << 40;
    World world(on, 110, 2500);
    for (long i = 0; i < steps; i++) world.step();
    std::printf("sum %.9f\n", world.sum());
}
