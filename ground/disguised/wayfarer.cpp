// defect: the mapping thread holds the lock of the map while it refines it, and the front end waits
// kinds: lock-wait
// guilty: Mapper::loop, Mapper::refine, FrontEnd::associate
// phase: steady
// gain: 38w
//
// wayfarer: the front end of a visual SLAM system, with a mapping thread and a place recogniser.
#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

constexpr int kW = 160, kH = 120;
using Descriptor = std::array<uint64_t, 4>;

struct Corner { int x, y; float response; Descriptor d; };
struct Landmark { double x, y, z; Descriptor d; uint32_t seen = 0, tried = 0; };
struct Observation { int landmark; double u, v; };
struct View { double tx = 0, ty = 0, tz = 0, yaw = 0; };
struct KeyFrame { int frame = 0; View pose; std::vector<Observation> obs; };

static int hamming(const Descriptor &a, const Descriptor &b) {
  int n = 0;
  for (int i = 0; i < 4; ++i) n += __builtin_popcountll(a[i] ^ b[i]);
  return n;
}

static void project(const View &v, double x, double y, double z, double &u, double &w) {
  double c = std::cos(v.yaw), s = std::sin(v.yaw);
  double px = c * (x - v.tx) - s * (z - v.tz), pz = s * (x - v.tx) + c * (z - v.tz) + 6;
  if (pz < 0.2) pz = 0.2;
  u = 80 + 90 * px / pz; w = 60 + 90 * (y - v.ty) / pz;
}

struct Atlas {
  std::mutex guard;
  std::vector<Landmark> landmarks;
  std::vector<double> corrections;
};

struct Assignment {
  int due = 0;
  std::vector<KeyFrame> window;
  std::vector<std::array<double, 3>> result;
  std::vector<int> ids;
  bool finished = false;
};

class Mapper {
 public:
  Mapper(Atlas &a, bool brief) : atlas_(a), brief_(brief), worker_([this] { loop(); }) {}
  ~Mapper() { { std::lock_guard<std::mutex> g(m_); quit_ = true; } cv_.notify_all(); worker_.join(); }

  void hand(std::shared_ptr<Assignment> a) { { std::lock_guard<std::mutex> g(m_); jobs_.push_back(std::move(a)); } cv_.notify_all(); }
  void await(const std::shared_ptr<Assignment> &a) {
    std::unique_lock<std::mutex> l(m_);
    cv_.wait(l, [&] { return a->finished; });
  }

 private:
  void loop() {
    for (;;) {
      std::shared_ptr<Assignment> a;
      {
        std::unique_lock<std::mutex> l(m_);
        cv_.wait(l, [this] { return quit_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        a = jobs_.front();
        jobs_.pop_front();
      }
      if (brief_) {
        { std::lock_guard<std::mutex> g(atlas_.guard); load(*a); }
        refine(*a);
      } else {
        std::lock_guard<std::mutex> g(atlas_.guard);
        load(*a);
        refine(*a);
      }
      { std::lock_guard<std::mutex> g(m_); a->finished = true; }
      cv_.notify_all();
    }
  }

  void load(Assignment &a) {
    for (auto &kf : a.window) for (auto &o : kf.obs) a.ids.push_back(o.landmark);
    std::sort(a.ids.begin(), a.ids.end());
    a.ids.erase(std::unique(a.ids.begin(), a.ids.end()), a.ids.end());
    a.result.resize(a.ids.size());
    for (size_t i = 0; i < a.ids.size(); ++i) { const Landmark &l = atlas_.landmarks[size_t(a.ids[i])]; a.result[i] = {l.x, l.y, l.z}; }
  }

  void refine(Assignment &a) {
    std::vector<std::array<double, 3>> grad(a.result.size());
    for (int it = 0; it < 6; ++it) {
      std::fill(grad.begin(), grad.end(), std::array<double, 3>{0, 0, 0});
      for (auto &kf : a.window)
        for (auto &o : kf.obs) {
          size_t i = size_t(std::lower_bound(a.ids.begin(), a.ids.end(), o.landmark) - a.ids.begin());
          auto &p = a.result[i];
          double u, v, u2, v2;
          project(kf.pose, p[0], p[1], p[2], u, v);
          double ru = u - o.u, rv = v - o.v;
          for (int k = 0; k < 3; ++k) {
            auto q = p; q[size_t(k)] += 1e-4;
            project(kf.pose, q[0], q[1], q[2], u2, v2);
            double huber = 1 / (1 + 0.1 * std::sqrt(ru * ru + rv * rv));
            grad[i][size_t(k)] += huber * (ru * (u2 - u) + rv * (v2 - v)) * 1e4;
          }
        }
      for (size_t i = 0; i < grad.size(); ++i)
        for (size_t k = 0; k < 3; ++k) a.result[i][k] -= std::clamp(2e-6 * grad[i][k], -0.01, 0.01);
    }
  }

  Atlas &atlas_;
  bool brief_, quit_ = false;
  std::mutex m_;
  std::condition_variable cv_;
  std::deque<std::shared_ptr<Assignment>> jobs_;
  std::thread worker_;
};

class PlaceRecogniser {
 public:
  PlaceRecogniser() : worker_([this] { loop(); }) {}
  ~PlaceRecogniser() { { std::lock_guard<std::mutex> g(m_); quit_ = true; } cv_.notify_all(); worker_.join(); }
  void offer(std::vector<Descriptor> d) { { std::lock_guard<std::mutex> g(m_); in_.push_back(std::move(d)); } cv_.notify_all(); }
  uint64_t score() const { return score_; }

 private:
  void loop() {
    for (;;) {
      std::vector<Descriptor> d;
      {
        std::unique_lock<std::mutex> l(m_);
        cv_.wait(l, [this] { return quit_ || !in_.empty(); });
        if (in_.empty()) return;
        d = std::move(in_.front());
        in_.pop_front();
      }
      for (auto &old : seen_) for (size_t i = 0; i < std::min<size_t>(8, d.size()); ++i) for (size_t j = 0; j < std::min<size_t>(20, old.size()); ++j) score_ += uint64_t(hamming(d[i], old[j]) < 60);
      seen_.push_back(std::move(d));
      if (seen_.size() > 30) seen_.pop_front();
    }
  }
  std::mutex m_;
  std::condition_variable cv_;
  std::deque<std::vector<Descriptor>> in_, seen_;
  uint64_t score_ = 0;
  bool quit_ = false;
  std::thread worker_;
};

class FrontEnd {
 public:
  explicit FrontEnd(bool brief) : mapper_(atlas_, brief) {
    uint64_t r = 5;
    auto next = [&] { r = r * 6364136223846793005ull + 1442695040888963407ull; return r >> 16; };
    for (int i = 0; i < 900; ++i) {
      Landmark l;
      l.x = double(next() % 2000) / 100 - 10; l.y = double(next() % 800) / 100 - 4; l.z = double(next() % 1500) / 100;
      for (auto &w : l.d) w = next() * 0x9e3779b97f4a7c15ull;
      atlas_.landmarks.push_back(l);
    }
    image_.resize(kW * kH); smooth_.resize(kW * kH); tmp_.resize(kW * kH);
  }

  void Run(int frames) {
    for (int f = 0; f < frames; ++f) {
      capture(f);
      blur();
      detect();
      describe();
      predict(f);
      adopt(f);
      associate();
      optimisePose();
      if (f % 4 == 0) insertKeyFrame(f);
    }
    while (!out_.empty()) { mapper_.await(out_.front()); out_.pop_front(); }
  }

  void report() {
    double s = 0; uint64_t seen = 0;
    for (auto &l : atlas_.landmarks) { s += l.x + l.y + l.z; seen += l.seen; }
    std::printf("pose %.9g %.9g, map %.9g, seen %llu\n", pose_.tx, pose_.yaw, s, (unsigned long long)seen);
  }

 private:
  void capture(int f) {
    for (int y = 0; y < kH; ++y)
      for (int x = 0; x < kW; ++x) {
        uint32_t h = uint32_t((x + f / 2) / 5 * 73856093) ^ uint32_t(y / 5 * 19349663);
        h ^= h >> 13; h *= 0x5bd1e995; h ^= h >> 15;
        image_[size_t(y * kW + x)] = uint8_t((h & 127) + ((x * y + f) & 15));
      }
  }
  void blur() {
    for (int y = 0; y < kH; ++y) for (int x = 2; x < kW - 2; ++x) { const uint8_t *p = &image_[size_t(y * kW + x)]; tmp_[size_t(y * kW + x)] = uint8_t((p[-2] + 4 * p[-1] + 6 * p[0] + 4 * p[1] + p[2]) / 16); }
    for (int y = 2; y < kH - 2; ++y) for (int x = 0; x < kW; ++x) { const uint8_t *p = &tmp_[size_t(y * kW + x)]; smooth_[size_t(y * kW + x)] = uint8_t((p[-2 * kW] + 4 * p[-kW] + 6 * p[0] + 4 * p[kW] + p[2 * kW]) / 16); }
  }
  void detect() {
    corners_.clear();
    for (int y = 8; y < kH - 8; y += 2)
      for (int x = 8; x < kW - 8; x += 2) {
        int xx = 0, yy = 0, xy = 0;
        for (int j = -1; j <= 1; ++j) for (int i = -1; i <= 1; ++i) {
          const uint8_t *p = &smooth_[size_t((y + j) * kW + x + i)];
          int gx = p[1] - p[-1], gy = p[kW] - p[-kW];
          xx += gx * gx; yy += gy * gy; xy += gx * gy;
        }
        float r = float(xx) * float(yy) - float(xy) * float(xy) - 0.04f * float(xx + yy) * float(xx + yy);
        if (r > 4e5f) corners_.push_back({x, y, r, {}});
      }
    size_t keep = std::min<size_t>(corners_.size(), 160);
    std::partial_sort(corners_.begin(), corners_.begin() + long(keep), corners_.end(), [](const Corner &a, const Corner &b) { return a.response > b.response || (a.response == b.response && a.y * kW + a.x < b.y * kW + b.x); });
    corners_.resize(keep);
  }
  void describe() {
    for (auto &c : corners_) {
      uint32_t r = 17;
      for (int b = 0; b < 256; ++b) {
        r = r * 1664525u + 1013904223u;
        int ax = int(r >> 28) - 8, ay = int(r >> 24 & 15) - 8, bx = int(r >> 20 & 15) - 8, by = int(r >> 16 & 15) - 8;
        bool bit = smooth_[size_t((c.y + ay) * kW + c.x + ax)] < smooth_[size_t((c.y + by) * kW + c.x + bx)];
        c.d[size_t(b >> 6)] = (c.d[size_t(b >> 6)] << 1) | uint64_t(bit);
      }
    }
  }
  void predict(int f) {
    double t = f * 0.01;
    pose_.tx += 0.01 * std::cos(t) + 0.001 * pose_.yaw; pose_.tz += 0.004 * std::sin(t); pose_.yaw = 0.9 * pose_.yaw + 0.02 * std::sin(t * 0.7);
    imu_ = 0;
    for (int k = 0; k < 200; ++k) imu_ += std::sin(t + k * 0.001) * std::exp(-k * 0.01);
  }
  void adopt(int f) {
    while (!out_.empty() && out_.front()->due <= f) {
      mapper_.await(out_.front());
      std::lock_guard<std::mutex> g(atlas_.guard);
      auto &a = *out_.front();
      for (size_t i = 0; i < a.ids.size(); ++i) { auto &l = atlas_.landmarks[size_t(a.ids[i])]; l.x = a.result[i][0]; l.y = a.result[i][1]; l.z = a.result[i][2]; }
      out_.pop_front();
    }
  }
  void associate() {
    matches_.clear();
    std::lock_guard<std::mutex> g(atlas_.guard);
    for (size_t i = 0; i < atlas_.landmarks.size(); ++i) {
      Landmark &l = atlas_.landmarks[i];
      double u, v;
      project(pose_, l.x, l.y, l.z, u, v);
      if (u < 4 || v < 4 || u > kW - 4 || v > kH - 4) continue;
      l.tried++;
      int best = 257; const Corner *hit = nullptr;
      for (const auto &c : corners_) {
        if (std::abs(c.x - u) > 14 || std::abs(c.y - v) > 14) continue;
        int d = hamming(c.d, l.d);
        if (d < best) { best = d; hit = &c; }
      }
      if (hit) { l.seen++; matches_.push_back({int(i), u + 0.02 * (hit->x - u), v + 0.02 * (hit->y - v)}); }
    }
  }
  void optimisePose() {
    for (int it = 0; it < 6; ++it) {
      double g = 0;
      for (auto &m : matches_) g += (m.u - 80) * 1e-9 + imu_ * 1e-12;
      pose_.yaw -= g;
    }
  }
  void insertKeyFrame(int f) {
    window_.push_back({f, pose_, matches_});
    if (window_.size() > 6) window_.pop_front();
    auto a = std::make_shared<Assignment>();
    a->due = f + 4;
    a->window.assign(window_.begin(), window_.end());
    out_.push_back(a);
    mapper_.hand(a);
    std::vector<Descriptor> d;
    for (auto &c : corners_) d.push_back(c.d);
    places_.offer(std::move(d));
  }

  Atlas atlas_;
  Mapper mapper_;
  PlaceRecogniser places_;
  std::vector<uint8_t> image_, smooth_, tmp_;
  std::vector<Corner> corners_;
  std::vector<Observation> matches_;
  std::deque<KeyFrame> window_;
  std::deque<std::shared_ptr<Assignment>> out_;
  View pose_;
  double imu_ = 0;
};

int main(int argc, char **argv) {
  if (argc < 2) { std::fprintf(stderr, "usage: wayfarer slow|fast [frames]\n"); return 2; }
  FrontEnd fe(std::strcmp(argv[1], "fast") == 0);
  fe.Run(argc > 2 ? std::atoi(argv[2]) : 3500);
  fe.report();
}
