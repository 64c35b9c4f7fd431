// defect: the world pose of each link is derived again by climbing its chain of parents, for each of eight cameras
// kinds: chain-climbed-each-time, same-work-again
// guilty: Registry::PoseOf, Pose::Then, CameraPlugin::PostUpdate
// phase: steady
// gain: 37
//
// heath: an entity-component world server for fleets of inspection robots.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

using Entity = uint32_t;
constexpr Entity kNone = 0xffffffffu;

struct Vec3 {
  double x = 0, y = 0, z = 0;
  Vec3 operator+(const Vec3 &o) const { return {x + o.x, y + o.y, z + o.z}; }
  Vec3 operator-(const Vec3 &o) const { return {x - o.x, y - o.y, z - o.z}; }
  Vec3 operator*(double s) const { return {x * s, y * s, z * s}; }
  double Dot(const Vec3 &o) const { return x * o.x + y * o.y + z * o.z; }
  Vec3 Cross(const Vec3 &o) const {
    return {y * o.z - z * o.y, z * o.x - x * o.z, x * o.y - y * o.x};
  }
  double Length() const { return std::sqrt(Dot(*this)); }
};

struct Quat {
  double w = 1, x = 0, y = 0, z = 0;
  static Quat FromAxis(const Vec3 &a, double angle) {
    double s = std::sin(angle / 2);
    return {std::cos(angle / 2), a.x * s, a.y * s, a.z * s};
  }
  Quat operator*(const Quat &o) const {
    return {w * o.w - x * o.x - y * o.y - z * o.z, w * o.x + x * o.w + y * o.z - z * o.y,
            w * o.y - x * o.z + y * o.w + z * o.x, w * o.z + x * o.y - y * o.x + z * o.w};
  }
  Vec3 Rotate(const Vec3 &v) const {
    Vec3 u{x, y, z};
    Vec3 t = u.Cross(v) * 2.0;
    return v + t * w + u.Cross(t);
  }
  void Normalize() {
    double n = 1.0 / std::sqrt(w * w + x * x + y * y + z * z);
    w *= n; x *= n; y *= n; z *= n;
  }
};

struct Pose {
  Vec3 pos;
  Quat rot;
  Pose Then(const Pose &child) const {
    Pose p{pos + rot.Rotate(child.pos), rot * child.rot};
    p.rot.Normalize();
    return p;
  }
};

struct Parent { Entity entity = kNone; };
struct Joint { Vec3 axis; double angle = 0, velocity = 0, target = 0, torque = 0, inertia = 1; };
struct Mount { Vec3 offset; };
struct Body { Vec3 velocity; double yawRate = 0, mass = 20; };
struct CameraSpec { double fov = 0.9, range = 25; };
struct ImuSpec { Vec3 lastVelocity; double bias = 0; };
struct Cell { double charge = 1, load = 0; };

template <class T> class Pool {
 public:
  T &Add(Entity e, T value) {
    if (slot_.size() <= e) slot_.resize(e + 1, -1);
    slot_[e] = static_cast<int>(items_.size());
    owners_.push_back(e);
    items_.push_back(value);
    return items_.back();
  }
  T *Find(Entity e) {
    if (e >= slot_.size() || slot_[e] < 0) return nullptr;
    return &items_[slot_[e]];
  }
  size_t Size() const { return items_.size(); }
  Entity Owner(size_t i) const { return owners_[i]; }
  T &Item(size_t i) { return items_[i]; }

 private:
  std::vector<int> slot_;
  std::vector<Entity> owners_;
  std::vector<T> items_;
};

struct Registry {
  Entity next = 0;
  Pool<Parent> parents;
  Pool<Pose> local;
  Pool<Joint> joints;
  Pool<Body> bodies;
  Pool<CameraSpec> cameras;
  Pool<ImuSpec> imus;
  Pool<Cell> cells;
  std::vector<Entity> links;
  std::vector<Pose> settled;   // filled by Settle()
  bool settle = false;
  Entity Create() { return next++; }

  Pose PoseOf(Entity e) {
    if (settle) return settled[e];
    const Pose &mine = *local.Find(e);
    Entity up = parents.Find(e)->entity;
    if (up == kNone) return mine;
    return PoseOf(up).Then(mine);
  }

  void Settle() {
    settled.resize(next);
    for (Entity e = 0; e < next; ++e) {   // parents are created before their children
      Entity up = parents.Find(e)->entity;
      settled[e] = up == kNone ? *local.Find(e) : settled[up].Then(*local.Find(e));
    }
  }
};

struct UpdateInfo { double dt = 0.002; double time = 0; uint64_t iteration = 0; };

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual void PreUpdate(const UpdateInfo &, Registry &) {}
  virtual void Update(const UpdateInfo &, Registry &) {}
  virtual void PostUpdate(const UpdateInfo &, Registry &) {}
  virtual double Digest() const { return 0; }
};

class JointControl : public Plugin {
 public:
  void PreUpdate(const UpdateInfo &info, Registry &reg) override {
    for (size_t i = 0; i < reg.joints.Size(); ++i) {
      Joint &j = reg.joints.Item(i);
      double phase = 0.37 * double(i % 29);
      j.target = 0.7 * std::sin(info.time * (0.6 + 0.02 * double(i % 7)) + phase);
      double err = j.target - j.angle;
      j.torque = 60 * err - 9 * j.velocity - 2.0 * std::tanh(j.velocity * 10);
    }
  }
};

class Dynamics : public Plugin {
 public:
  void Update(const UpdateInfo &info, Registry &reg) override {
    for (int sub = 0; sub < 10; ++sub) {
      double h = info.dt / 10;
      for (size_t i = 0; i < reg.joints.Size(); ++i) {
        Joint &j = reg.joints.Item(i);
        double g = 0.8 * std::sin(j.angle);
        j.velocity += h * (j.torque - g) / j.inertia;
        j.angle += h * j.velocity;
      }
    }
    for (size_t i = 0; i < reg.joints.Size(); ++i) {
      Joint &j = reg.joints.Item(i);
      reg.local.Find(reg.joints.Owner(i))->rot = Quat::FromAxis(j.axis, j.angle);
    }
    for (size_t i = 0; i < reg.bodies.Size(); ++i) {
      Body &b = reg.bodies.Item(i);
      Pose &p = *reg.local.Find(reg.bodies.Owner(i));
      b.yawRate = 0.3 * std::sin(0.1 * info.time + double(i));
      p.rot = p.rot * Quat::FromAxis({0, 0, 1}, b.yawRate * info.dt);
      p.rot.Normalize();
      b.velocity = p.rot.Rotate({0.8, 0, 0});
      p.pos = p.pos + b.velocity * info.dt;
    }
  }
};

class Terrain : public Plugin {
 public:
  Terrain() : height_(256 * 256) {
    for (int y = 0; y < 256; ++y)
      for (int x = 0; x < 256; ++x)
        height_[y * 256 + x] = 0.3 * std::sin(x * 0.11) * std::cos(y * 0.07) + 0.05 * std::sin(x * 1.3 + y);
  }
  double At(double x, double y) const {
    double gx = (x + 64) * 2, gy = (y + 64) * 2;
    int ix = int(std::floor(gx)), iy = int(std::floor(gy));
    double fx = gx - ix, fy = gy - iy;
    auto h = [&](int a, int b) { return height_[((b & 255) << 8) | (a & 255)]; };
    return (h(ix, iy) * (1 - fx) + h(ix + 1, iy) * fx) * (1 - fy) +
           (h(ix, iy + 1) * (1 - fx) + h(ix + 1, iy + 1) * fx) * fy;
  }
  void Update(const UpdateInfo &, Registry &reg) override {
    for (size_t i = 0; i < reg.bodies.Size(); ++i) {
      Pose &p = *reg.local.Find(reg.bodies.Owner(i));
      double sum = 0;
      for (int k = 0; k < 24; ++k) {
        double a = k * (M_PI / 12);
        sum += At(p.pos.x + 0.4 * std::cos(a), p.pos.y + 0.4 * std::sin(a));
      }
      p.pos.z = 0.35 + sum / 24;
    }
  }

 private:
  std::vector<double> height_;
};

class CameraPlugin : public Plugin {
 public:
  void PostUpdate(const UpdateInfo &, Registry &reg) override {
    for (size_t c = 0; c < reg.cameras.Size(); ++c) {
      Pose eye = reg.PoseOf(reg.cameras.Owner(c));
      const CameraSpec &spec = reg.cameras.Item(c);
      Vec3 forward = eye.rot.Rotate({1, 0, 0});
      double limit = std::cos(spec.fov / 2);
      for (Entity e : reg.links) {
        Vec3 d = reg.PoseOf(e).pos - eye.pos;
        double len = d.Length();
        if (len < 0.05 || len > spec.range) continue;
        if (d.Dot(forward) / len > limit) { visible_++; depth_ += len; }
      }
    }
  }
  double Digest() const override { return depth_ / double(visible_ + 1); }

 private:
  uint64_t visible_ = 0;
  double depth_ = 0;
};

class ImuPlugin : public Plugin {
 public:
  void PostUpdate(const UpdateInfo &info, Registry &reg) override {
    for (size_t i = 0; i < reg.imus.Size(); ++i) {
      ImuSpec &imu = reg.imus.Item(i);
      Pose p = reg.PoseOf(reg.imus.Owner(i));
      Vec3 g = p.rot.Rotate({0, 0, -9.81});
      seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
      imu.bias = 0.999 * imu.bias + 1e-4 * (double(seed_ >> 40) / double(1 << 24) - 0.5);
      sum_ += g.x + imu.bias + (p.pos - imu.lastVelocity).Length() * info.dt;
      imu.lastVelocity = p.pos;
    }
  }
  double Digest() const override { return sum_; }

 private:
  uint64_t seed_ = 42;
  double sum_ = 0;
};

class GasPlume : public Plugin {
 public:
  GasPlume() : a_(128 * 128, 0.0), b_(128 * 128, 0.0) {}
  void Update(const UpdateInfo &info, Registry &) override {
    a_[40 * 128 + int(20 + 10 * std::sin(info.time))] += 1.0;
    for (int pass = 0; pass < 3; ++pass) {
    for (int y = 1; y < 127; ++y)
      for (int x = 1; x < 127; ++x) {
        int i = y * 128 + x;
        double lap = a_[i - 1] + a_[i + 1] + a_[i - 128] + a_[i + 128] - 4 * a_[i];
        b_[i] = 0.9995 * (a_[i] + 0.18 * lap - 0.05 * (a_[i] - a_[i - 1]));
      }
    a_.swap(b_);
    }
  }
  double Digest() const override { double s = 0; for (double v : a_) s += v; return s; }

 private:
  std::vector<double> a_, b_;
};

class Batteries : public Plugin {
 public:
  void PostUpdate(const UpdateInfo &info, Registry &reg) override {
    size_t n = reg.cells.Size();
    for (size_t i = 0; i < n; ++i) {
      Cell &c = reg.cells.Item(i);
      double load = 0;
      for (size_t k = i * 12; k < i * 12 + 12 && k < reg.joints.Size(); ++k)
        load += std::abs(reg.joints.Item(k).torque * reg.joints.Item(k).velocity);
      c.load = 0.95 * c.load + 0.05 * load;
      c.charge -= 1e-7 * (c.load + 3) * std::exp(-c.charge) * info.dt;
    }
  }
};

class StatePublisher : public Plugin {
 public:
  void PostUpdate(const UpdateInfo &info, Registry &reg) override {
    if (info.iteration % 2) return;
    frame_.clear();
    for (size_t i = 0; i < reg.joints.Size(); ++i) {
      int32_t v[2] = {int32_t(reg.joints.Item(i).angle * 1e6), int32_t(reg.joints.Item(i).velocity * 1e6)};
      const uint8_t *p = reinterpret_cast<const uint8_t *>(v);
      frame_.insert(frame_.end(), p, p + sizeof v);
    }
    uint32_t crc = 0xffffffffu;
    for (uint8_t b : frame_) {
      crc ^= b;
      for (int k = 0; k < 4; ++k) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
    history_.push_back(crc);
    if (history_.size() > 500) history_.pop_front();
  }

 private:
  std::vector<uint8_t> frame_;
  std::deque<uint32_t> history_;
};

class Server {
 public:
  explicit Server(bool settle) {
    reg_.settle = settle;
    for (int r = 0; r < 44; ++r) AddRobot(r);
    Load<JointControl>(); Load<Dynamics>(); Load<Terrain>(); Load<GasPlume>();
    Load<CameraPlugin>(); Load<ImuPlugin>(); Load<Batteries>(); Load<StatePublisher>();
  }

  void Run(uint64_t iterations) {
    UpdateInfo info;
    for (uint64_t i = 0; i < iterations; ++i) {
      info.iteration = i;
      for (auto &p : plugins_) p->PreUpdate(info, reg_);
      for (auto &p : plugins_) p->Update(info, reg_);
      if (reg_.settle) reg_.Settle();
      for (auto &p : plugins_) p->PostUpdate(info, reg_);
      info.time += info.dt;
    }
  }

  void Report() {
    for (auto &p : plugins_) std::printf("%.9g ", p->Digest());
    std::printf("\n");
  }

 private:
  template <class T> void Load() { plugins_.push_back(std::make_unique<T>()); }

  Entity AddLink(Entity up, Vec3 offset, Vec3 axis) {
    Entity e = reg_.Create();
    reg_.parents.Add(e, {up});
    reg_.local.Add(e, Pose{offset, {}});
    Joint j; j.axis = axis; j.inertia = 0.8 + 0.01 * double(e % 17);
    reg_.joints.Add(e, j);
    reg_.links.push_back(e);
    return e;
  }

  void AddRobot(int r) {
    Entity base = reg_.Create();
    reg_.parents.Add(base, {kNone});
    reg_.local.Add(base, Pose{{double(r % 8) * 4, double(r / 8) * 4, 0}, {}});
    reg_.bodies.Add(base, {});
    reg_.cells.Add(base, {});
    Entity tip = base;
    for (int k = 0; k < 7; ++k) tip = AddLink(tip, {0, 0, 0.25}, k % 2 ? Vec3{0, 1, 0} : Vec3{0, 0, 1});
    Entity head = tip;
    for (int f = 0; f < 2; ++f) {
      Entity finger = AddLink(tip, {0.05, f ? 0.03 : -0.03, 0.05}, {1, 0, 0});
      AddLink(finger, {0, 0, 0.04}, {1, 0, 0});
    }
    reg_.imus.Add(head, {});
    if (r % 22 == 0) reg_.cameras.Add(head, {});
  }

  Registry reg_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
};

int main(int argc, char **argv) {
  if (argc < 2) { std::fprintf(stderr, "usage: heath slow|fast [iterations]\n"); return 2; }
  uint64_t n = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 16000;
  Server server(std::strcmp(argv[1], "fast") == 0);
  server.Run(n);
  server.Report();
}
