// defect: images and labels are compressed for outlets that nobody reads
// kinds: no-effect-each-call, encoding-in-steps
// guilty: Packer::pack, SensorSuite::hand
// phase: steady
// gain: 24
//
// lamplighter: cameras and a lidar in a small yard; ray casting, noise and image transport.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct Vec { float x, y, z; };
static inline Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline Vec operator*(Vec a, float s) { return {a.x * s, a.y * s, a.z * s}; }
static inline float dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline Vec unit(Vec a) { return a * (1.0f / std::sqrt(dot(a, a))); }

struct Ball { Vec c; float r; uint8_t shade, label; Vec v; };
struct Hit { float t; uint8_t shade, label; Vec n; };

class Yard {
 public:
  Yard() {
    for (int i = 0; i < 18; ++i)
      balls_.push_back({{float(i * 7 % 20) - 10, float(i * 5 % 20) - 10, 0.8f}, 0.5f + 0.05f * float(i % 6), uint8_t(60 + i * 10), uint8_t(i % 5 + 1),
                        {0.3f * float(i % 3 - 1), 0.3f * float(i % 5 - 2), 0}});
  }
  void advance(float dt) {
    for (auto &b : balls_) {
      b.c = b.c + b.v * dt;
      if (std::abs(b.c.x) > 12) b.v.x = -b.v.x;
      if (std::abs(b.c.y) > 12) b.v.y = -b.v.y;
    }
    for (size_t i = 0; i < balls_.size(); ++i)
      for (size_t j = i + 1; j < balls_.size(); ++j) {
        Vec d = balls_[i].c - balls_[j].c;
        float r = balls_[i].r + balls_[j].r;
        if (dot(d, d) < r * r) std::swap(balls_[i].v, balls_[j].v);
      }
  }
  bool cast(Vec o, Vec d, Hit &h) const {
    h.t = 40; bool any = false;
    if (d.z < -1e-4f) { float t = -o.z / d.z; if (t < h.t) { h = {t, uint8_t(90 + 20 * ((int(o.x + d.x * t + 100) + int(o.y + d.y * t + 100)) & 1)), 0, {0, 0, 1}}; any = true; } }
    for (const auto &b : balls_) {
      Vec m = o - b.c;
      float q = dot(m, d), c = dot(m, m) - b.r * b.r, disc = q * q - c;
      if (disc <= 0) continue;
      float t = -q - std::sqrt(disc);
      if (t > 0.05f && t < h.t) { h.t = t; h.shade = b.shade; h.label = b.label; h.n = unit(o + d * t - b.c); any = true; }
    }
    return any;
  }

 private:
  std::vector<Ball> balls_;
};

// ---- transport ---------------------------------------------------------------
struct Blob { std::string topic; std::vector<uint8_t> bytes; double stamp; };

class Outlet {
 public:
  explicit Outlet(std::string name) : name_(std::move(name)) {}
  void attach(std::function<void(const Blob &)> f) { readers_.push_back(std::move(f)); }
  size_t readers() const { return readers_.size(); }
  void put(std::vector<uint8_t> bytes, double stamp) {
    Blob b{name_, std::move(bytes), stamp};
    for (auto &r : readers_) r(b);
  }
 private:
  std::string name_;
  std::vector<std::function<void(const Blob &)>> readers_;
};

// 8x8 transform, quantiser and run lengths
class Packer {
 public:
  Packer() {
    for (int u = 0; u < 8; ++u)
      for (int x = 0; x < 8; ++x) basis_[u][x] = (u ? 0.5f : 0.353553f) * std::cos((2 * float(x) + 1) * float(u) * float(M_PI) / 16);
  }
  std::vector<uint8_t> pack(const std::vector<uint8_t> &img, int w, int h) const {
    std::vector<uint8_t> out;
    out.reserve(img.size() / 4);
    for (int by = 0; by + 8 <= h; by += 8)
      for (int bx = 0; bx + 8 <= w; bx += 8) {
        float in[8][8], mid[8][8];
        for (int y = 0; y < 8; ++y) for (int x = 0; x < 8; ++x) in[y][x] = float(img[size_t((by + y) * w + bx + x)]) - 128;
        for (int y = 0; y < 8; ++y) for (int u = 0; u < 8; ++u) { float s = 0; for (int x = 0; x < 8; ++x) s += in[y][x] * basis_[u][x]; mid[y][u] = s; }
        int run = 0;
        for (int v = 0; v < 8; ++v)
          for (int u = 0; u < 8; ++u) {
            float s = 0;
            for (int y = 0; y < 8; ++y) s += mid[y][u] * basis_[v][y];
            int q = int(std::lround(s / float(8 + 2 * (u + v))));
            if (q == 0) { ++run; continue; }
            out.push_back(uint8_t(run)); out.push_back(uint8_t(q)); run = 0;
          }
        out.push_back(0xff);
      }
    return out;
  }
 private:
  float basis_[8][8];
};

struct Camera {
  std::string name;
  Vec eye; float yaw, pitch;
  int w, h;
  std::vector<Vec> rays;
  std::vector<uint8_t> gray, labels;
  std::vector<float> depth;
  std::shared_ptr<Outlet> raw, packed, mask;
};

class SensorSuite {
 public:
  explicit SensorSuite(bool ask) : ask_(ask) {
    for (int i = 0; i < 4; ++i) {
      Camera c{"cam" + std::to_string(i), {12 * std::cos(i * 1.57f), 12 * std::sin(i * 1.57f), 2.5f}, i * 1.57f + 3.14f, -0.2f, 96, 64, {}, {}, {}, {}, nullptr, nullptr, nullptr};
      c.gray.resize(size_t(c.w * c.h)); c.labels.resize(size_t(c.w * c.h)); c.depth.resize(size_t(c.w * c.h));
      c.raw = std::make_shared<Outlet>(c.name + "/image");
      c.packed = std::make_shared<Outlet>(c.name + "/image/compact");
      c.mask = std::make_shared<Outlet>(c.name + "/labels/compact");
      c.raw->attach([this](const Blob &b) { for (size_t k = 0; k < b.bytes.size(); k += 3) taken_ += b.bytes[k]; });
      cams_.push_back(std::move(c));
    }
    cams_[0].packed->attach([this](const Blob &b) { for (uint8_t v : b.bytes) stored_ = stored_ * 31 + v; });
    for (auto &c : cams_) aim(c);
  }

  void turn(double t) {
    for (size_t i = 0; i < cams_.size(); ++i) { cams_[i].yaw += 0.004f * std::sin(float(t) + float(i)); aim(cams_[i]); }
  }

  void expose(const Yard &yard) {
    for (auto &c : cams_) {
      Vec sun = unit({0.4f, 0.3f, 0.85f});
      for (size_t i = 0; i < c.rays.size(); ++i) {
        Hit h{};
        if (yard.cast(c.eye, c.rays[i], h)) {
          c.gray[i] = uint8_t(float(h.shade) * (0.3f + 0.6f * std::max(0.0f, dot(h.n, sun))));
          c.labels[i] = h.label; c.depth[i] = h.t;
        } else { c.gray[i] = 200; c.labels[i] = 255; c.depth[i] = 40; }
      }
    }
  }

  void grain() {
    for (auto &c : cams_)
      for (auto &g : c.gray) {
        seed_ ^= seed_ << 13; seed_ ^= seed_ >> 17; seed_ ^= seed_ << 5;
        int n = int(seed_ & 7) + int(seed_ >> 8 & 7) + int(seed_ >> 16 & 7) - 10;
        g = uint8_t(std::clamp(int(g) + n, 0, 255));
      }
  }

  void autoExpose() {
    for (auto &c : cams_) {
      std::array<int, 256> hist{};
      for (uint8_t g : c.gray) hist[g]++;
      int acc = 0, mid = 0;
      while (mid < 255 && acc < int(c.gray.size() / 2)) acc += hist[size_t(mid++)];
      gain_ = 0.95f * gain_ + 0.05f * (110.0f / float(mid + 1));
    }
  }

  void sweep(const Yard &yard, double t) {
    range_.clear();
    for (int ring = 0; ring < 12; ++ring)
      for (int k = 0; k < 360; ++k) {
        float a = float(k) * 0.0174533f + float(t) * 0.1f, e = -0.25f + 0.03f * float(ring);
        Hit h{};
        Vec d{std::cos(a) * std::cos(e), std::sin(a) * std::cos(e), std::sin(e)};
        range_.push_back(yard.cast({0, 0, 1.6f}, d, h) ? h.t : 40);
      }
  }

  void cluster() {
    for (size_t i = 1; i < range_.size(); ++i) if (std::abs(range_[i] - range_[i - 1]) > 0.7f) ++edges_;
    for (size_t i = 4; i + 4 < range_.size(); ++i) {
      float m = 0;
      for (int k = -4; k <= 4; ++k) m += range_[size_t(int(i) + k)];
      rough_ += std::abs(range_[i] - m / 9);
    }
  }

  void hand(double t) {
    for (auto &c : cams_) {
      c.raw->put(c.gray, t);
      if (!ask_ || c.packed->readers() > 0) c.packed->put(packer_.pack(c.gray, c.w, c.h), t);
      if (!ask_ || c.mask->readers() > 0) c.mask->put(packer_.pack(c.labels, c.w, c.h), t);
    }
  }

  void report() const { std::printf("taken %llu, stored %llx, edges %llu, rough %.9g, gain %.6g\n", (unsigned long long)taken_, (unsigned long long)stored_, (unsigned long long)edges_, rough_, double(gain_)); }

 private:
  void aim(Camera &c) {
    c.rays.resize(size_t(c.w * c.h));
    Vec f{std::cos(c.yaw) * std::cos(c.pitch), std::sin(c.yaw) * std::cos(c.pitch), std::sin(c.pitch)};
    Vec r = unit({-f.y, f.x, 0});
    Vec u{r.y * f.z - r.z * f.y, r.z * f.x - r.x * f.z, r.x * f.y - r.y * f.x};
    for (int y = 0; y < c.h; ++y)
      for (int x = 0; x < c.w; ++x) {
        float px = (float(x) - float(c.w) / 2) / float(c.w) * 1.2f, py = (float(y) - float(c.h) / 2) / float(c.w) * 1.2f;
        c.rays[size_t(y * c.w + x)] = unit(f + r * px + u * py);
      }
  }

  bool ask_;
  std::vector<Camera> cams_;
  Packer packer_;
  std::vector<float> range_;
  uint32_t seed_ = 2463534242u;
  float gain_ = 1;
  double rough_ = 0;
  uint64_t taken_ = 0, stored_ = 0, edges_ = 0;
};

int main(int argc, char **argv) {
  if (argc < 2) { std::fprintf(stderr, "usage: lamplighter slow|fast [frames]\n"); return 2; }
  int frames = argc > 2 ? std::atoi(argv[2]) : 1900;
  Yard yard;
  SensorSuite suite(std::strcmp(argv[1], "fast") == 0);
  double t = 0;
  while (frames-- > 0) {
    for (int k = 0; k < 10; ++k) yard.advance(0.003f);
    suite.turn(t);
    suite.expose(yard);
    suite.grain();
    suite.autoExpose();
    suite.sweep(yard, t);
    suite.cluster();
    suite.hand(t);
    t += 0.03;
  }
  suite.report();
}
