// defect: the head of a convoy is searched by its plate among all cars, for each car
// kinds: list-search, superlinear-lookup
// guilty: Fleet::lookUp, Network::keepConvoys
// phase: steady
// gain: 42
//
// ringway: microscopic traffic on a set of ring roads with signals and convoys.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct Dice {
  uint64_t s;
  double roll() { s = s * 6364136223846793005ull + 1442695040888963407ull; return double(s >> 11) / double(1ull << 53); }
};

struct Driver { double desired = 30, headway = 1.4, accel = 1.5, brake = 2.0, politeness = 0.3; };

struct Car {
  uint64_t plate = 0;
  int road = 0, lane = 0;
  double s = 0, v = 0, a = 0, length = 4.5;
  Driver driver;
  uint64_t convoyHead = 0;          // plate of the car that leads the convoy, 0: none
  double fuel = 0, co2 = 0, travelled = 0, trip = 0, patience = 0;
  int changes = 0;
};

struct Road {
  double length = 0;
  int lanes = 0;
  std::vector<std::vector<Car *>> order;        // per lane, sorted by s
  std::vector<double> signalAt;
  std::vector<double> signalPhase;
  std::vector<double> loopCount, loopSpeed;
  std::vector<float> density;
};

class Fleet {
 public:
  explicit Fleet(bool keyed) : keyed_(keyed) {}

  Car *admit(std::unique_ptr<Car> c) {
    c->plate = ++lastPlate_;
    Car *raw = c.get();
    if (keyed_) byPlate_[raw->plate] = raw;
    cars_.push_back(std::move(c));
    return raw;
  }

  const Car *lookUp(uint64_t plate) const {
    if (keyed_) {
      auto it = byPlate_.find(plate);
      return it == byPlate_.end() ? nullptr : it->second;
    }
    auto it = std::find_if(cars_.begin(), cars_.end(),
                           [plate](const std::unique_ptr<Car> &c) { return c->plate == plate; });
    return it == cars_.end() ? nullptr : it->get();
  }

  template <class F> void retire(F done) {
    size_t keep = 0;
    for (size_t i = 0; i < cars_.size(); ++i) {
      if (done(*cars_[i])) { if (keyed_) byPlate_.erase(cars_[i]->plate); continue; }
      if (keep != i) cars_[keep] = std::move(cars_[i]);
      ++keep;
    }
    cars_.resize(keep);
  }

  std::vector<std::unique_ptr<Car>> &all() { return cars_; }
  const std::vector<std::unique_ptr<Car>> &all() const { return cars_; }

 private:
  bool keyed_;
  uint64_t lastPlate_ = 0;
  std::vector<std::unique_ptr<Car>> cars_;
  std::unordered_map<uint64_t, Car *> byPlate_;
};

class Network {
 public:
  Network(bool keyed, int cars) : fleet_(keyed), target_(cars) {
    for (int r = 0; r < 8; ++r) {
      Road road;
      road.length = 4000 + 500 * r;
      road.lanes = 3;
      road.order.resize(3);
      for (int k = 0; k < 6; ++k) {
        road.signalAt.push_back(road.length * (k + 0.5) / 6);
        road.signalPhase.push_back(11.0 * k + r);
      }
      road.loopCount.assign(40, 0); road.loopSpeed.assign(40, 0);
      road.density.assign(size_t(road.length / 10) + 1, 0.f);
      roads_.push_back(road);
    }
    for (int i = 0; i < cars; ++i) spawn();
    sortLanes();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      depart();
      sortLanes();
      signals();
      follow();
      keepConvoys();
      if (i % 2 == 0) changeLanes();
      move();
      emissions();
      loops();
      smooth();
      time_ += dt_;
    }
  }

  void report() const {
    double s = 0, fuel = 0, co2 = 0;
    for (const auto &c : fleet_.all()) { s += c->s + c->v; fuel += c->fuel; co2 += c->co2; }
    std::printf("%zu cars, sum %.9g, fuel %.9g, co2 %.9g, left %llu\n", fleet_.all().size(), s, fuel, co2,
                (unsigned long long)left_);
  }

 private:
  void spawn() {
    auto c = std::make_unique<Car>();
    c->road = int(dice_.roll() * 8);
    c->lane = int(dice_.roll() * 3);
    c->s = dice_.roll() * roads_[c->road].length;
    c->v = 10 + 10 * dice_.roll();
    c->driver.desired = 24 + 12 * dice_.roll();
    c->driver.headway = 1.0 + 0.8 * dice_.roll();
    c->driver.politeness = dice_.roll();
    c->trip = 8000 + 60000 * dice_.roll();
    if (dice_.roll() < 0.2) c->length = 12;
    Car *raw = fleet_.admit(std::move(c));
    const auto &all = fleet_.all();
    if (all.size() > 10 && dice_.roll() < 0.55)
      raw->convoyHead = all[size_t(dice_.roll() * double(all.size() - 1))]->plate;
  }

  void depart() {
    size_t before = fleet_.all().size();
    fleet_.retire([](const Car &c) { return c.travelled > c.trip; });
    left_ += before - fleet_.all().size();
    while (int(fleet_.all().size()) < target_) spawn();
  }

  void sortLanes() {
    for (auto &r : roads_) for (auto &l : r.order) l.clear();
    for (auto &c : fleet_.all()) roads_[c->road].order[c->lane].push_back(c.get());
    for (auto &r : roads_)
      for (auto &l : r.order)
        std::sort(l.begin(), l.end(), [](const Car *a, const Car *b) { return a->s < b->s || (a->s == b->s && a->plate < b->plate); });
  }

  void signals() {
    for (auto &r : roads_)
      for (size_t k = 0; k < r.signalPhase.size(); ++k) {
        double queue = 0;
        for (auto &lane : r.order) {
          auto it = std::lower_bound(lane.begin(), lane.end(), r.signalAt[k] - 80, [](const Car *c, double s) { return c->s < s; });
          for (; it != lane.end() && (*it)->s < r.signalAt[k]; ++it) queue += (*it)->v < 2 ? 1 : 0;
        }
        r.signalPhase[k] += dt_ * (1 + 0.05 * queue);
      }
  }

  bool red(const Road &r, size_t k) const { return std::fmod(r.signalPhase[k], 60.0) > 48; }

  static double idm(const Car &c, double gap, double dv) {
    const Driver &d = c.driver;
    double want = 2 + std::max(0.0, c.v * d.headway + c.v * dv / (2 * std::sqrt(d.accel * d.brake)));
    double free = std::pow(c.v / d.desired, 4);
    double q = want / std::max(gap, 0.5);
    return d.accel * (1 - free - q * q);
  }

  void follow() {
    for (auto &r : roads_)
      for (auto &lane : r.order) {
        size_t n = lane.size();
        for (size_t i = 0; i < n; ++i) {
          Car &c = *lane[i];
          const Car &lead = *lane[(i + 1) % n];
          double gap = lead.s - c.s - lead.length;
          if (i + 1 == n) gap += r.length;
          double a = n > 1 ? idm(c, gap, c.v - lead.v) : idm(c, 1000, 0);
          for (size_t k = 0; k < r.signalAt.size(); ++k) {
            double d = r.signalAt[k] - c.s;
            if (d > 0 && d < 120 && red(r, k)) a = std::min(a, idm(c, d, c.v));
          }
          // three anticipated leaders further on
          double seen = gap;
          for (size_t m = 2; m < 5 && m < n; ++m) {
            const Car &far = *lane[(i + m) % n];
            double g = far.s - c.s; if (g < 0) g += r.length;
            seen += g;
            a -= 0.01 * std::exp(-g / 60) * std::max(0.0, c.v - far.v);
          }
          c.patience = 0.98 * c.patience + 0.02 * (seen < 60 ? 1 : 0);
          c.a = std::max(-8.0, a);
        }
      }
  }

  void keepConvoys() {
    for (auto &c : fleet_.all()) {
      if (c->convoyHead == 0) continue;
      const Car *head = fleet_.lookUp(c->convoyHead);
      if (head == nullptr) { c->convoyHead = 0; continue; }
      if (head->road != c->road) continue;
      double gap = head->s - c->s;
      c->a += 0.05 * std::tanh(gap / 200) + 0.02 * (head->v - c->v);
    }
  }

  void changeLanes() {
    for (auto &r : roads_)
      for (int l = 0; l < r.lanes; ++l)
        for (Car *c : r.order[l]) {
          for (int to : {l - 1, l + 1}) {
            if (to < 0 || to >= r.lanes) continue;
            auto &lane = r.order[to];
            auto it = std::lower_bound(lane.begin(), lane.end(), c->s, [](const Car *x, double s) { return x->s < s; });
            const Car *ahead = it == lane.end() ? nullptr : *it;
            const Car *behind = it == lane.begin() ? nullptr : *(it - 1);
            double ga = ahead ? ahead->s - c->s - ahead->length : 500;
            double gb = behind ? c->s - behind->s - c->length : 500;
            if (ga < 8 || gb < 8) continue;
            double gain = idm(*c, ga, ahead ? c->v - ahead->v : 0) - c->a;
            double harm = behind ? std::max(0.0, behind->a - idm(*behind, gb, behind->v - c->v)) : 0;
            if (gain > 0.4 + c->driver.politeness * harm - 0.3 * c->patience) { c->lane = to; c->changes++; break; }
          }
        }
  }

  void move() {
    for (auto &c : fleet_.all()) {
      Road &r = roads_[c->road];
      c->v = std::max(0.0, c->v + c->a * dt_);
      double d = c->v * dt_;
      c->s += d; c->travelled += d;
      if (c->s >= r.length) {
        c->s -= r.length;
        uint64_t h = c->plate * 0x9e3779b97f4a7c15ull + uint64_t(c->travelled);
        if ((h >> 33) % 4 == 0) { c->road = int((h >> 40) % 8); c->s = std::fmod(c->s, roads_[c->road].length); }
      }
    }
  }

  void emissions() {
    for (auto &c : fleet_.all()) {
      double p = c->length > 8 ? 12.0 : 1.6;
      double power = p * c->v * (c->a + 0.12 + 0.0004 * c->v * c->v);
      double rate = 0.3 + 0.08 * std::max(0.0, power) + 0.01 * std::exp(-std::abs(c->a));
      c->fuel += rate * dt_;
      c->co2 += rate * dt_ * 2.39 * (1 + 0.1 * std::sin(c->v * 0.1)) + 1e-4 * std::log1p(c->v) * std::sqrt(c->v + 1);
    }
  }

  void loops() {
    for (auto &c : fleet_.all()) {
      Road &r = roads_[c->road];
      size_t k = std::min<size_t>(39, size_t(c->s / r.length * 40));
      r.loopCount[k] += 1;
      r.loopSpeed[k] = 0.99 * r.loopSpeed[k] + 0.01 * c->v;
      r.density[size_t(c->s / 10)] += 1;
    }
  }

  void smooth() {
    for (auto &r : roads_) {
      float carry = r.density.back();
      for (int pass = 0; pass < 3; ++pass)
        for (size_t i = 0; i + 1 < r.density.size(); ++i) {
          float v = 0.25f * carry + 0.5f * r.density[i] + 0.25f * r.density[i + 1];
          carry = r.density[i];
          r.density[i] = v * 0.98f;
        }
    }
  }

  Fleet fleet_;
  int target_;
  std::vector<Road> roads_;
  Dice dice_{99};
  double time_ = 0, dt_ = 0.2;
  uint64_t left_ = 0;
};

int main(int argc, char **argv) {
  if (argc < 2) { std::fprintf(stderr, "usage: ringway slow|fast [steps]\n"); return 2; }
  int steps = argc > 2 ? std::atoi(argv[2]) : 6000;
  Network net(std::strcmp(argv[1], "fast") == 0, 2200);
  net.run(steps);
  net.report();
}
