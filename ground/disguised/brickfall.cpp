// defect: the sweep over the x axis orders and tests all proxies in each step, although nineteen of twenty are rocks that never move and whose pairs are thrown away
// kinds: full-scan-each-step, superlinear-lookup, same-data-each-call
// guilty: SweepAxis::findPairs, SweepAxis::sweepEverything
// gain: 44
//
// A quarry with loose boulders: sphere physics, a conveyor, wind and a laser scanner above it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct Vec3 {
    double x = 0, y = 0, z = 0;
    Vec3 operator+(const Vec3& o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vec3 operator-(const Vec3& o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vec3 operator*(double s) const { return {x * s, y * s, z * s}; }
    Vec3& operator+=(const Vec3& o) { x += o.x; y += o.y; z += o.z; return *this; }
    Vec3& operator-=(const Vec3& o) { x -= o.x; y -= o.y; z -= o.z; return *this; }
    double dot(const Vec3& o) const { return x * o.x + y * o.y + z * o.z; }
    double length() const { return std::sqrt(dot(*this)); }
};

struct Random {
    uint64_t s = 88172645463325252ull;
    double next() {
        s ^= s << 13; s ^= s >> 7; s ^= s << 17;
        return double(s >> 11) * 0x1.0p-53;
    }
    double in(double a, double b) { return a + (b - a) * next(); }
};

struct Body {
    Vec3 pos, vel, force;
    double radius = 0.5;
    double invMass = 0;          // 0: a rock of the quarry
};

struct Contact {
    int a, b;
    Vec3 normal;
    double depth, impulse;
};

struct Proxy {
    double lo, hi;
    int body;
};

using Pair = std::pair<int, int>;

class SweepAxis {
public:
    SweepAxis(const std::vector<Body>& bodies, bool layered) : bodies_(bodies), layered_(layered) {
        for (int i = 0; i < int(bodies.size()); ++i) {
            Proxy p = bounds(i);
            widest_ = std::max(widest_, p.hi - p.lo);
            all_.push_back(p);
            (bodies[i].invMass == 0 ? still_ : moving_).push_back(p);
        }
        std::sort(still_.begin(), still_.end(), [](const Proxy& a, const Proxy& b) { return a.lo < b.lo; });
        pairs_.reserve(8192);
    }

    const std::vector<Pair>& findPairs() {
        pairs_.clear();
        if (layered_) {
            sweepLayers();
        } else {
            sweepEverything();
        }
        std::sort(pairs_.begin(), pairs_.end());
        return pairs_;
    }

private:
    Proxy bounds(int i) const {
        const Body& b = bodies_[i];
        return {b.pos.x - b.radius, b.pos.x + b.radius, i};
    }

    static void order(std::vector<Proxy>& v) {      // nearly sorted: insertion sort is linear
        for (size_t i = 1; i < v.size(); ++i) {
            Proxy p = v[i];
            size_t j = i;
            for (; j > 0 && v[j - 1].lo > p.lo; --j) v[j] = v[j - 1];
            v[j] = p;
        }
    }

    bool overlapYZ(int a, int b) const {
        const Body &p = bodies_[a], &q = bodies_[b];
        double r = p.radius + q.radius;
        return std::fabs(p.pos.y - q.pos.y) <= r && std::fabs(p.pos.z - q.pos.z) <= r;
    }

    void sweepEverything() {
        for (Proxy& p : all_) p = bounds(p.body);
        if (!sorted_) {
            std::sort(all_.begin(), all_.end(), [](const Proxy& a, const Proxy& b) { return a.lo < b.lo; });
            sorted_ = true;
        }
        order(all_);
        for (size_t i = 0; i < all_.size(); ++i) {
            for (size_t j = i + 1; j < all_.size() && all_[j].lo <= all_[i].hi; ++j) {
                if (!overlapYZ(all_[i].body, all_[j].body)) continue;
                int a = std::min(all_[i].body, all_[j].body), b = std::max(all_[i].body, all_[j].body);
                if (bodies_[a].invMass == 0 && bodies_[b].invMass == 0) continue;
                pairs_.emplace_back(a, b);
            }
        }
    }

    void sweepLayers() {
        for (Proxy& p : moving_) p = bounds(p.body);
        order(moving_);
        for (size_t i = 0; i < moving_.size(); ++i) {
            const Proxy& m = moving_[i];
            for (size_t j = i + 1; j < moving_.size() && moving_[j].lo <= m.hi; ++j) add(m.body, moving_[j].body);
            auto s = std::lower_bound(still_.begin(), still_.end(), m.lo - widest_,
                                      [](const Proxy& p, double x) { return p.lo < x; });
            for (; s != still_.end() && s->lo <= m.hi; ++s) {
                if (s->hi >= m.lo) add(m.body, s->body);
            }
        }
    }

    void add(int a, int b) {
        if (overlapYZ(a, b)) pairs_.emplace_back(std::min(a, b), std::max(a, b));
    }

    const std::vector<Body>& bodies_;
    bool layered_, sorted_ = false;
    double widest_ = 0;
    std::vector<Proxy> all_, still_, moving_;
    std::vector<Pair> pairs_;
};

static void narrowPhase(const std::vector<Body>& bodies, const std::vector<Pair>& pairs, std::vector<Contact>& out) {
    out.clear();
    for (auto [a, b] : pairs) {
        Vec3 d = bodies[b].pos - bodies[a].pos;
        double dist = d.length(), depth = bodies[a].radius + bodies[b].radius - dist;
        if (depth <= 0 || dist < 1e-9) continue;
        out.push_back({a, b, d * (1 / dist), depth, 0});
    }
}

static void solveContacts(std::vector<Body>& bodies, std::vector<Contact>& contacts, double dt) {
    for (int iteration = 0; iteration < 24; ++iteration) {
        for (Contact& c : contacts) {
            Body &a = bodies[c.a], &b = bodies[c.b];
            double vn = (b.vel - a.vel).dot(c.normal);
            double bias = 0.1 / dt * std::max(0.0, c.depth - 0.01);
            double lambda = (bias - vn) / (a.invMass + b.invMass);
            double before = c.impulse;
            c.impulse = std::max(0.0, before + lambda);
            Vec3 j = c.normal * (c.impulse - before);
            a.vel -= j * a.invMass;
            b.vel += j * b.invMass;
        }
    }
}

static double heightOfFloor(double x, double y) { return 0.8 * std::sin(0.05 * x) * std::cos(0.08 * y); }

static void applyForces(std::vector<Body>& bodies, const std::vector<int>& loose, double t) {
    for (int i : loose) {
        Body& b = bodies[i];
        double gust = 0;                             // a few octaves of turbulence
        for (int k = 1; k <= 12; ++k) gust += std::sin(0.13 * k * b.pos.x + 0.9 * k * t) / k;
        b.force = {4 * gust + 1.5 * std::sin(0.4 * t), -0.08 * b.pos.y, -9.81 / b.invMass};
        b.force -= b.vel * (0.4 * b.radius);
    }
}

static void integrate(std::vector<Body>& bodies, const std::vector<int>& loose, double dt, double length) {
    for (int i : loose) {
        Body& b = bodies[i];
        b.pos += b.vel * dt;
        double floor = heightOfFloor(b.pos.x, b.pos.y) + b.radius;
        if (b.pos.z < floor) {
            b.pos.z = floor;
            if (b.vel.z < 0) b.vel.z *= -0.3;
            b.vel.x *= 0.995;
            b.vel.y *= 0.995;
        }
        if (b.pos.x < 0) { b.pos.x = 0; b.vel.x = std::fabs(b.vel.x); }
        if (b.pos.x > length) { b.pos.x = length; b.vel.x = -std::fabs(b.vel.x); }
    }
}

// A scanner that looks down on the loose boulders: ranges of a fan of rays.
static double scan(const std::vector<Body>& bodies, const std::vector<int>& loose, std::vector<double>& ranges, double t) {
    Vec3 eye{200 + 120 * std::sin(0.1 * t), 0, 30};
    double total = 0;
    for (size_t k = 0; k < ranges.size(); ++k) {
        double angle = -1.2 + 2.4 * double(k) / double(ranges.size());
        Vec3 dir{std::sin(angle), 0.1 * std::sin(3 * angle), -std::cos(angle)};
        double len2 = dir.dot(dir), best = 80;
        for (int i : loose) {
            Vec3 d = bodies[i].pos - eye;
            double along = d.dot(dir) / len2, off2 = d.dot(d) - along * along * len2, r2 = bodies[i].radius * bodies[i].radius;
            if (along > 0 && off2 < r2) best = std::min(best, along - std::sqrt((r2 - off2) / len2));
        }
        ranges[k] = best;
        total += best;
    }
    return total;
}

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: brickfall slow|fast [steps]\n"), 1;
    const bool layered = std::strcmp(argv[1], "fast") == 0;
    const long steps = argc > 2 ? std::atol(argv[2]) : -1;
    const double length = 400, dt = 0.01;
    Random rnd;
    std::vector<Body> bodies;
    std::vector<int> loose;
    for (int i = 0; i < 4300; ++i) {
        Body b;
        b.pos.x = rnd.in(0, length);
        b.pos.y = rnd.in(-40, 40);
        b.radius = rnd.in(0.3, 0.9);
        b.pos.z = heightOfFloor(b.pos.x, b.pos.y) + 0.3 * b.radius;
        if (i % 16 == 7) {
            b.pos.z += rnd.in(2, 12);
            b.invMass = 1 / (2.0 * b.radius * b.radius * b.radius);
            loose.push_back(i);
        }
        bodies.push_back(b);
    }
    SweepAxis broad(bodies, layered);
    std::vector<Contact> contacts;
    contacts.reserve(4096);
    std::vector<double> ranges(90);
    double seen = 0, energy = 0, t = 0;
    for (long n = 0; n != steps; ++n) {
        applyForces(bodies, loose, t);
        for (int i : loose) bodies[i].vel += bodies[i].force * (bodies[i].invMass * dt);
        narrowPhase(bodies, broad.findPairs(), contacts);
        solveContacts(bodies, contacts, dt);
        integrate(bodies, loose, dt, length);
        seen += scan(bodies, loose, ranges, t);
        for (int i : loose) energy += 0.5 / bodies[i].invMass * bodies[i].vel.dot(bodies[i].vel);
        t += dt;
    }
    std::printf("%.9e %.9e\n", seen, energy);
}
