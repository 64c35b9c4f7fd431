// defect: all bodies are sorted and swept in each step, and pairs of bodies that never move are tested and thrown away
// kinds: full-scan-each-step, same-data-each-call, same-work-again, results-unchanged
// guilty: Hall::gatherAll, Hall::gather
// phase: steady
// gain: 38
//
// kettle: rigid bodies tumbling through a plant hall, sequential-impulse solver.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

struct V3 { double x, y, z; };
static inline V3 operator+(V3 a, V3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline V3 operator-(V3 a, V3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline V3 operator*(V3 a, double s) { return {a.x * s, a.y * s, a.z * s}; }
static inline double dot(V3 a, V3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline double norm(V3 a) { return std::sqrt(dot(a, a)); }

struct Box { V3 lo, hi; };
struct Geom { int body; V3 centre, half; double radius; Box bounds; };   // body < 0: part of the hall
struct Rigid { V3 p, v, w, force; double invMass, invInertia; int asleep; };
struct Contact { int a, b; V3 n, at; double depth, acc; };
struct Rope { int a, b; double length, acc; };

static bool overlap(const Box &a, const Box &b) {
  return a.lo.x <= b.hi.x && b.lo.x <= a.hi.x && a.lo.y <= b.hi.y && b.lo.y <= a.hi.y &&
         a.lo.z <= b.hi.z && b.lo.z <= a.hi.z;
}

class Hall {
 public:
  explicit Hall(bool layered) : layered_(layered) {
    layFloor();
    for (int i = 0; i < 220; ++i) drop(i);
    for (int i = 0; i + 1 < 36; ++i)
      if (i % 6 != 5) ropes_.push_back({i, i + 1, 0.9, 0});
    order_.resize(geoms_.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = int(i);
    if (layered_) {
      for (size_t i = 0; i < geoms_.size(); ++i) if (geoms_[i].body < 0) fixed_.push_back(int(i));
      auto byX = [&](int a, int b) { return geoms_[a].bounds.lo.x < geoms_[b].bounds.lo.x; };
      std::sort(fixed_.begin(), fixed_.end(), byX);
      for (int g : fixed_) widest_ = std::max(widest_, geoms_[g].bounds.hi.x - geoms_[g].bounds.lo.x);
    }
  }

  void applyForces(double t) {
    for (size_t i = 0; i < bodies_.size(); ++i) {
      Rigid &b = bodies_[i];
      V3 wind{1.5 * std::sin(0.7 * t + 0.1 * b.p.y), 1.5 * std::cos(0.5 * t + 0.1 * b.p.x), 0};
      V3 rel = b.v - wind;
      double drag = 0.05 * norm(rel);
      b.force = V3{0, 0, -9.81} * (1 / b.invMass) - rel * drag;
      b.force.x -= 0.15 * (b.p.x - 20); b.force.y -= 0.15 * (b.p.y - 20);
    }
  }

  void refreshBounds() {
    for (auto &g : geoms_) {
      if (g.body >= 0) {
        g.centre = bodies_[g.body].p;
        V3 r{g.radius, g.radius, g.radius};
        g.bounds = {g.centre - r, g.centre + r};
      }
    }
  }

  void gather() {
    pairs_.clear();
    if (layered_) gatherLayered(); else gatherAll();
    std::sort(pairs_.begin(), pairs_.end());
  }

  void collide() {
    contacts_.clear();
    for (auto [i, j] : pairs_) {
      const Geom &a = geoms_[i], &b = geoms_[j];
      if (a.body >= 0 && b.body >= 0) ballBall(a, b);
      else if (a.body >= 0) ballBox(a, b);
      else ballBox(b, a);
    }
  }

  void solve(double dt) {
    for (auto &b : bodies_) b.v = b.v + b.force * (b.invMass * dt);
    for (auto &r : ropes_) r.acc = 0;
    for (int it = 0; it < 24; ++it) {
      for (auto &c : contacts_) {
        Rigid &a = bodies_[c.a];
        double rel = dot(a.v, c.n), im = a.invMass;
        if (c.b >= 0) { rel -= dot(bodies_[c.b].v, c.n); im += bodies_[c.b].invMass; }
        double bias = 0.2 / dt * std::max(0.0, c.depth - 0.005);
        double j = (bias - rel) / im, old = c.acc;
        c.acc = std::max(0.0, old + j);
        j = c.acc - old;
        a.v = a.v + c.n * (j * a.invMass);
        if (c.b >= 0) bodies_[c.b].v = bodies_[c.b].v - c.n * (j * bodies_[c.b].invMass);
        V3 t = a.v - c.n * dot(a.v, c.n);
        a.v = a.v - t * 0.004;
      }
      for (auto &r : ropes_) {
        Rigid &a = bodies_[r.a], &b = bodies_[r.b];
        V3 d = b.p - a.p;
        double len = norm(d) + 1e-9;
        V3 n = d * (1 / len);
        double rel = dot(b.v - a.v, n);
        double j = -(rel + 0.3 / dt * (len - r.length)) / (a.invMass + b.invMass);
        a.v = a.v - n * (j * a.invMass);
        b.v = b.v + n * (j * b.invMass);
      }
    }
  }

  void integrate(double dt) {
    for (auto &b : bodies_) {
      double s = norm(b.v);
      if (s > 15) b.v = b.v * (15 / s);
      b.p = b.p + b.v * dt;
      b.w = b.w * 0.999;
      if (b.p.z < -2) { b.p.z = 6; b.v = {0, 0, 0}; }
      b.p.x = std::min(39.0, std::max(1.0, b.p.x)); b.p.y = std::min(39.0, std::max(1.0, b.p.y));
      b.asleep = s < 0.02 ? b.asleep + 1 : 0;
    }
  }

  void castBeams(double t) {
    // a level gauge: 48 beams against the tumbling bodies
    for (int k = 0; k < 48; ++k) {
      double a = t * 2 + k * 0.1309;
      V3 o{20, 20, 4}, d{std::cos(a) * 0.9, std::sin(a) * 0.9, -0.4};
      double best = 60;
      for (const auto &b : bodies_) {
        V3 m = o - b.p;
        double bb = dot(m, d), c = dot(m, m) - 0.16;
        double disc = bb * bb - dot(d, d) * c;
        if (disc > 0) { double h = (-bb - std::sqrt(disc)) / dot(d, d); if (h > 0 && h < best) best = h; }
      }
      beams_ += best;
    }
  }

  void tally() {
    double e = 0;
    for (const auto &b : bodies_) e += 0.5 * dot(b.v, b.v) / b.invMass + 9.81 * b.p.z / b.invMass;
    energy_ = 0.99 * energy_ + 0.01 * e;
    for (const auto &c : contacts_) load_[(unsigned(c.at.x) & 31) * 32 + (unsigned(c.at.y) & 31)] += c.acc;
    for (auto &l : load_) l *= 0.98;
  }

  void snapshot() {
    if (trail_.size() > 200) trail_.erase(trail_.begin());
    std::vector<float> row;
    row.reserve(bodies_.size() * 3);
    for (const auto &b : bodies_) { row.push_back(float(b.p.x)); row.push_back(float(b.p.y)); row.push_back(float(b.p.z)); }
    trail_.push_back(std::move(row));
  }

  void report() const {
    double s = 0;
    for (const auto &b : bodies_) s += b.p.x + 2 * b.p.y + 3 * b.p.z;
    std::printf("%zu contacts, positions %.9g, energy %.9g, beams %.9g\n", contacts_.size(), s, energy_, beams_);
  }

 private:
  void layFloor() {
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x) {
        double h = 0.25 * std::sin(x * 0.5) * std::cos(y * 0.4);
        V3 c{1.25 * x + 0.625, 1.25 * y + 0.625, h - 0.5}, half{0.63, 0.63, 0.5};
        geoms_.push_back({-1, c, half, 0, {c - half, c + half}});
      }
    for (int i = 0; i < 120; ++i) {
      V3 c{2.0 + (i * 37 % 36), 2.0 + (i * 23 % 36), 0.6}, half{0.2, 0.2, 1.0};
      geoms_.push_back({-1, c, half, 0, {c - half, c + half}});
    }
  }

  void drop(int i) {
    Rigid b{};
    b.p = {4.0 + (i * 7 % 32), 4.0 + (i * 13 % 32), 2.0 + (i % 5)};
    b.v = {0.3 * (i % 3 - 1), 0.2 * (i % 5 - 2), 0};
    b.invMass = 1.0 / (1.0 + 0.1 * (i % 7));
    b.invInertia = 2.5 * b.invMass;
    bodies_.push_back(b);
    geoms_.push_back({i, b.p, {0, 0, 0}, 0.35 + 0.01 * (i % 9), {}});
  }

  void gatherAll() {
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      double ax = geoms_[a].bounds.lo.x, bx = geoms_[b].bounds.lo.x;
      return ax < bx || (ax == bx && a < b);
    });
    live_.clear();
    for (int id : order_) {
      const Geom &g = geoms_[id];
      size_t keep = 0;
      for (size_t k = 0; k < live_.size(); ++k) {
        const Geom &o = geoms_[live_[k]];
        if (o.bounds.hi.x < g.bounds.lo.x) continue;
        live_[keep++] = live_[k];
        if (!overlap(g.bounds, o.bounds)) continue;
        if (g.body < 0 && o.body < 0) continue;
        pairs_.push_back({std::min(id, live_[k]), std::max(id, live_[k])});
      }
      live_.resize(keep);
      live_.push_back(id);
    }
  }

  void gatherLayered() {
    size_t first = geoms_.size() - bodies_.size();
    for (size_t i = first; i < geoms_.size(); ++i) {
      const Geom &g = geoms_[i];
      for (size_t j = i + 1; j < geoms_.size(); ++j)
        if (overlap(g.bounds, geoms_[j].bounds)) pairs_.push_back({int(i), int(j)});
      double from = g.bounds.lo.x - widest_;
      auto it = std::lower_bound(fixed_.begin(), fixed_.end(), from,
                                 [&](int a, double v) { return geoms_[a].bounds.lo.x < v; });
      for (; it != fixed_.end() && geoms_[*it].bounds.lo.x <= g.bounds.hi.x; ++it)
        if (overlap(g.bounds, geoms_[*it].bounds)) pairs_.push_back({*it, int(i)});
    }
  }

  void ballBall(const Geom &a, const Geom &b) {
    V3 d = a.centre - b.centre;
    double len = norm(d), r = a.radius + b.radius;
    if (len >= r || len < 1e-9) return;
    V3 n = d * (1 / len);
    contacts_.push_back({a.body, b.body, n, b.centre + n * b.radius, r - len, 0});
  }

  void ballBox(const Geom &ball, const Geom &box) {
    V3 q{std::min(box.bounds.hi.x, std::max(box.bounds.lo.x, ball.centre.x)),
         std::min(box.bounds.hi.y, std::max(box.bounds.lo.y, ball.centre.y)),
         std::min(box.bounds.hi.z, std::max(box.bounds.lo.z, ball.centre.z))};
    V3 d = ball.centre - q;
    double len = norm(d);
    if (len >= ball.radius) return;
    if (len < 1e-9) { contacts_.push_back({ball.body, -1, {0, 0, 1}, q, 0.1, 0}); return; }
    contacts_.push_back({ball.body, -1, d * (1 / len), q, ball.radius - len, 0});
  }

  bool layered_;
  double widest_ = 0, energy_ = 0, beams_ = 0;
  std::vector<Geom> geoms_;
  std::vector<Rigid> bodies_;
  std::vector<Rope> ropes_;
  std::vector<int> order_, live_, fixed_;
  std::vector<std::pair<int, int>> pairs_;
  std::vector<Contact> contacts_;
  std::vector<double> load_ = std::vector<double>(1024, 0.0);
  std::vector<std::vector<float>> trail_;
};

int main(int argc, char **argv) {
  if (argc < 2) { std::fprintf(stderr, "usage: kettle slow|fast [steps]\n"); return 2; }
  int steps = argc > 2 ? std::atoi(argv[2]) : 14000;
  Hall hall(std::strcmp(argv[1], "fast") == 0);
  const double dt = 0.004;
  double t = 0;
  for (int i = 0; i < steps; ++i) {
    hall.applyForces(t);
    hall.refreshBounds();
    hall.gather();
    hall.collide();
    hall.solve(dt);
    hall.integrate(dt);
    hall.castBeams(t);
    hall.tally();
    if (i % 2 == 0) hall.snapshot();
    t += dt;
  }
  hall.report();
}
