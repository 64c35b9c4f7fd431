// defect: the executor collects all entities of all nodes, and asks each whether it is ready, for each callback
// kinds: wait-set-rebuilt, full-scan-each-step, polling
// guilty: Executor::collect, Executor::spinOnce, Subscription::ready, Service::ready
// phase: steady
// gain: 27
//
// rookery: the nodes of a warehouse robot in one process, served by one executor.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct Message { uint64_t seq = 0; double stamp = 0; std::vector<float> data; };
using MessagePtr = std::shared_ptr<const Message>;

class Executor;

class Waitable {
 public:
  virtual ~Waitable() = default;
  virtual bool ready() = 0;
  virtual bool execute() = 0;       // true: something was done
};

class Subscription : public Waitable {
 public:
  Subscription(std::function<void(const Message &)> fn, Executor *ex) : fn_(std::move(fn)), ex_(ex) {}
  bool ready() override { std::lock_guard<std::mutex> g(m_); return !queue_.empty(); }
  bool execute() override {
    MessagePtr msg;
    bool roomy; { std::lock_guard<std::mutex> g(m_); if (queue_.empty()) return false; msg = std::move(queue_.front()); queue_.pop_front(); roomy = queue_.size() == 16; }
    if (roomy) room_.notify_one();
    fn_(*msg);
    return true;
  }
  void push(MessagePtr m, bool wait);
  void self(std::weak_ptr<Waitable> w) { self_ = std::move(w); }

 private:
  std::function<void(const Message &)> fn_;
  Executor *ex_;
  std::weak_ptr<Waitable> self_;
  std::mutex m_;
  std::condition_variable room_;
  std::deque<MessagePtr> queue_;
};

class Timer : public Waitable {
 public:
  bool ready() override { return due_.load(std::memory_order_relaxed) < *now_; }
  bool execute() override { due_.store(1e18); return true; }
  explicit Timer(const double *now) : now_(now) {}
 private:
  std::atomic<double> due_{1e18};
  const double *now_;
};

class Service : public Waitable {
 public:
  bool ready() override { std::lock_guard<std::mutex> g(m_); return !requests_.empty(); }
  bool execute() override { std::lock_guard<std::mutex> g(m_); if (!requests_.empty()) requests_.pop_front(); return true; }
 private:
  std::mutex m_;
  std::deque<int> requests_;
};

struct Node {
  std::string name;
  std::vector<std::shared_ptr<Subscription>> subscriptions;
  std::vector<std::shared_ptr<Timer>> timers;
  std::vector<std::shared_ptr<Service>> services;
};

class Executor {
 public:
  explicit Executor(bool pushed) : pushed_(pushed) {}
  void add(std::shared_ptr<Node> n) { nodes_.push_back(n); }
  bool pushed() const { return pushed_; }

  void notify(const std::weak_ptr<Waitable> &w) {
    { std::lock_guard<std::mutex> g(m_); if (pushed_) inbox_.push_back(w); ++wakeups_; }
    cv_.notify_one();
  }

  bool spinOnce() {
    if (pushed_) {
      std::weak_ptr<Waitable> w;
      {
        std::unique_lock<std::mutex> l(m_);
        cv_.wait(l, [this] { return !inbox_.empty() || stopped_; });
        if (inbox_.empty()) return false;
        w = std::move(inbox_.front());
        inbox_.pop_front();
      }
      if (auto s = w.lock()) s->execute();
      return true;
    }
    for (;;) {
      uint64_t seen;
      bool stop;
      { std::lock_guard<std::mutex> g(m_); seen = wakeups_; stop = stopped_; }
      collect();
      for (size_t k = 0; k < handles_.size(); ++k) {
        auto &h = handles_[(k + turn_) % handles_.size()];
        if (h->ready()) { turn_ = (k + turn_ + 1) % handles_.size(); auto keep = h; keep->execute(); return true; }
      }
      if (stop) return false;
      std::unique_lock<std::mutex> l(m_);
      cv_.wait(l, [&] { return wakeups_ != seen || stopped_; });
    }
  }

  void stop() { { std::lock_guard<std::mutex> g(m_); stopped_ = true; } cv_.notify_all(); }

 private:
  void collect() {
    handles_.clear();
    for (auto &weak : nodes_) {
      auto n = weak.lock();
      if (!n) continue;
      for (auto &s : n->subscriptions) handles_.push_back(s);
      for (auto &t : n->timers) handles_.push_back(t);
      for (auto &s : n->services) handles_.push_back(s);
    }
  }

  bool pushed_;
  std::vector<std::weak_ptr<Node>> nodes_;
  std::vector<std::shared_ptr<Waitable>> handles_;
  size_t turn_ = 0;
  std::mutex m_;
  std::condition_variable cv_;
  uint64_t wakeups_ = 0;
  bool stopped_ = false;
  std::deque<std::weak_ptr<Waitable>> inbox_;
};

void Subscription::push(MessagePtr m, bool wait) {
  {
    std::unique_lock<std::mutex> l(m_);
    if (wait) room_.wait(l, [this] { return queue_.size() < 64; });
    queue_.push_back(std::move(m));
  }
  ex_->notify(self_);
}

class Bus {
 public:
  void connect(const std::string &topic, std::shared_ptr<Subscription> s) { topics_[topic].push_back(std::move(s)); }
  void publish(const std::string &topic, MessagePtr m, bool wait = false) {
    auto it = topics_.find(topic);
    if (it == topics_.end()) return;
    for (auto &s : it->second) s->push(m, wait);
  }
 private:
  std::map<std::string, std::vector<std::shared_ptr<Subscription>>> topics_;
};

// ---- the work of the nodes ---------------------------------------------------
struct ScanFilter {
  std::vector<float> kept;
  double sum = 0;
  Message operator()(const Message &in) {
    kept.clear();
    for (size_t i = 2; i + 2 < in.data.size(); ++i) {
      float a[5] = {in.data[i - 2], in.data[i - 1], in.data[i], in.data[i + 1], in.data[i + 2]};
      std::nth_element(a, a + 2, a + 5);
      if (std::abs(a[2] - in.data[i]) < 0.8f) kept.push_back(a[2]);
    }
    for (float v : kept) sum += v;
    Message out; out.seq = in.seq; out.stamp = in.stamp; out.data = kept;
    return out;
  }
};

struct Odometer {
  double x = 0, y = 0, th = 0, P[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  void operator()(const Message &in) {
    for (size_t i = 0; i + 1 < in.data.size(); i += 2) {
      double v = in.data[i], w = in.data[i + 1];
      th += w * 0.001; x += v * std::cos(th) * 0.001; y += v * std::sin(th) * 0.001;
      double F[9] = {1, 0, -v * std::sin(th) * 0.001, 0, 1, v * std::cos(th) * 0.001, 0, 0, 1}, T[9], R[9];
      for (int r = 0; r < 3; ++r) for (int c = 0; c < 3; ++c) { T[r * 3 + c] = 0; for (int k = 0; k < 3; ++k) T[r * 3 + c] += F[r * 3 + k] * P[k * 3 + c]; }
      for (int r = 0; r < 3; ++r) for (int c = 0; c < 3; ++c) { R[r * 3 + c] = 0; for (int k = 0; k < 3; ++k) R[r * 3 + c] += T[r * 3 + k] * F[c * 3 + k]; }
      for (int k = 0; k < 9; ++k) P[k] = 0.999 * R[k] + (k % 4 == 0 ? 1e-5 : 0);
    }
  }
};

struct CostMap {
  std::vector<float> grid = std::vector<float>(80 * 80, 0.f);
  void operator()(const Message &in) {
    for (size_t i = 0; i < in.data.size(); ++i) {
      double a = double(i) * 0.0174;
      for (float r = 0.5f; r < in.data[i]; r += 0.9f) {
        int cx = 40 + int(r * std::cos(a) * 4), cy = 40 + int(r * std::sin(a) * 4);
        if (cx >= 0 && cy >= 0 && cx < 80 && cy < 80) grid[size_t(cy * 80 + cx)] *= 0.95f;
      }
      int hx = 40 + int(in.data[i] * std::cos(a) * 4), hy = 40 + int(in.data[i] * std::sin(a) * 4);
      if (hx >= 0 && hy >= 0 && hx < 80 && hy < 80) grid[size_t(hy * 80 + hx)] += 0.4f;
    }
  }
};

struct Tracker {
  std::array<float, 24> px{}, pv{};
  void operator()(const Message &in) {
    for (size_t k = 0; k < px.size(); ++k) {
      float best = 1e9f, z = px[k];
      for (size_t i = 0; i < in.data.size(); ++i) { float d = std::abs(in.data[i] - px[k] - float(k) * 0.2f); if (d < best) { best = d; z = in.data[i]; } }
      float r = z - px[k];
      px[k] += 0.3f * r + 0.05f * pv[k]; pv[k] = 0.95f * pv[k] + 0.05f * r;
    }
  }
};

struct Diagnostics {
  uint64_t crc = 0;
  void operator()(const Message &in) {
    for (float f : in.data) { uint32_t u; std::memcpy(&u, &f, 4); crc = (crc ^ u) * 1099511628211ull; }
  }
};

struct SpeedGovernor {
  double out = 0;
  void operator()(const Message &in) {
    double nearest = 1e9, mean = 0;
    for (float f : in.data) { nearest = std::min(nearest, double(f)); mean += std::sqrt(double(f)); }
    out = 0.9 * out + 0.1 * std::tanh(nearest * 0.2 + mean / double(in.data.size() + 1));
  }
};

static MessagePtr makeScan(uint64_t seq, int rays, uint64_t &rng) {
  auto m = std::make_shared<Message>();
  m->seq = seq; m->stamp = double(seq) * 0.01; m->data.resize(size_t(rays));
  for (int i = 0; i < rays; ++i) {
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    m->data[size_t(i)] = 3.0f + 2.0f * std::sin(float(seq) * 0.01f + float(i) * 0.05f) + float(rng >> 44) / float(1 << 20) * 0.1f;
  }
  return m;
}

int main(int argc, char **argv) {
  if (argc < 2) { std::fprintf(stderr, "usage: rookery slow|fast [messages]\n"); return 2; }
  uint64_t n = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 120000;
  Executor executor(std::strcmp(argv[1], "fast") == 0);
  Bus bus;
  double simNow = 0;
  uint64_t expected = n * (3 + 3 + 3 + 2), done = 0;

  std::vector<std::shared_ptr<Node>> nodes;
  auto makeNode = [&](const std::string &name) {
    auto nd = std::make_shared<Node>();
    nd->name = name;
    for (int k = 0; k < 2; ++k) nd->timers.push_back(std::make_shared<Timer>(&simNow));
    for (int k = 0; k < 3; ++k) nd->services.push_back(std::make_shared<Service>());   // parameter services
    nodes.push_back(nd);
    executor.add(nd);
    return nd;
  };
  auto subscribe = [&](std::shared_ptr<Node> nd, const std::string &topic, std::function<void(const Message &)> fn) {
    auto s = std::make_shared<Subscription>([fn, &done](const Message &m) { fn(m); ++done; }, &executor);
    s->self(s);
    nd->subscriptions.push_back(s);
    bus.connect(topic, s);
  };

  ScanFilter filter; Odometer odom; CostMap cost; Tracker tracker; Diagnostics diag, diag2; SpeedGovernor gov;
  auto f = makeNode("scan_filter"), o = makeNode("odometry"), c = makeNode("costmap"), t = makeNode("tracker"),
       d = makeNode("diagnostics"), g = makeNode("governor");
  subscribe(f, "scan", [&](const Message &m) { bus.publish("scan/filtered", std::make_shared<const Message>(filter(m))); });
  subscribe(c, "scan/filtered", [&](const Message &m) { cost(m); });
  subscribe(t, "scan/filtered", [&](const Message &m) { tracker(m); });
  subscribe(g, "scan/filtered", [&](const Message &m) { gov(m); });
  subscribe(d, "scan", [&](const Message &m) { diag(m); });
  subscribe(g, "scan", [&](const Message &m) { gov.out += 1e-6 * double(m.seq % 3); });
  subscribe(o, "wheels", [&](const Message &m) { odom(m); });
  subscribe(d, "wheels", [&](const Message &m) { diag2(m); });
  subscribe(t, "bumper", [&](const Message &m) { tracker.pv[0] += 0.f * m.data[0]; });
  subscribe(c, "bumper", [&](const Message &m) { cost.grid[0] += 0.001f * m.data[0]; });
  subscribe(g, "bumper", [&](const Message &) {});
  for (int k = 0; k < 8; ++k) {
    auto nd = makeNode("aux_" + std::to_string(k));
    for (int s = 0; s < 3; ++s) { subscribe(nd, "quiet/" + std::to_string(k * 3 + s), [](const Message &) {}); }
  }

  auto driver = [&](const char *topic, int rays, uint64_t seed) {
    return std::thread([&bus, topic, rays, seed, n] { uint64_t r = seed; for (uint64_t i = 0; i < n; ++i) bus.publish(topic, makeScan(i, rays, r), true); });
  };
  std::vector<std::thread> drivers;
  drivers.push_back(driver("scan", 160, 1));
  drivers.push_back(driver("wheels", 40, 2));
  drivers.push_back(driver("bumper", 4, 3));

  while (done < expected && executor.spinOnce()) {}
  for (auto &th : drivers) th.join();
  double s = 0;
  for (float v : cost.grid) s += v;
  std::printf("done %llu, filter %.9g, odom %.9g %.9g, crc %llx %llx, tracker %.7g\n", (unsigned long long)done, filter.sum, odom.x, odom.y,
              (unsigned long long)diag.crc, (unsigned long long)diag2.crc, double(tracker.px[3]));
  (void)s;
}
