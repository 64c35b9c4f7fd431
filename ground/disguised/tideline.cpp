// defect: the path of a statistic is put together as text for each event of a packet, and looked up in a map
// kinds: text-keys-each-step
// guilty: Simulation::Path, Simulation::Note, Journal::Add
// phase: steady
// gain: 35
//
// tideline: a packet-level simulator of a coastal mesh network.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

struct Rng {
  uint64_t s;
  explicit Rng(uint64_t seed) : s(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t Next() { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return s; }
  double Uniform() { return double(Next() >> 11) / double(1ull << 53); }
};

// ---- statistics -----------------------------------------------------------
struct Gauge { uint64_t count = 0; double sum = 0, last = 0; };

class Journal {
 public:
  Gauge *Register(const std::string &path) { return &gauges_[path]; }
  void Add(const std::string &path, double v) {
    Gauge &g = gauges_[path];
    g.count++; g.sum += v; g.last = v;
  }
  static void Add(Gauge *g, double v) { g->count++; g->sum += v; g->last = v; }
  double Digest() const {
    double d = 0; uint64_t k = 1;
    for (const auto &kv : gauges_) d += kv.second.sum * double(1 + (k++ % 7)) + double(kv.second.count);
    return d;
  }
  size_t Size() const { return gauges_.size(); }

 private:
  std::map<std::string, Gauge> gauges_;
};

// ---- packets and events ----------------------------------------------------
struct Segment {
  uint32_t flow, seq;
  uint16_t src, dst, size;
  uint8_t ttl;
  bool ack;
  double born;
  uint8_t head[48];
};
using SegmentPtr = std::unique_ptr<Segment>;

enum class Kind : uint8_t { Arrive, TxDone, SourceTick, Beacon };

struct Event {
  double at;
  uint64_t order;
  Kind kind;
  uint16_t node, port;
  Segment *segment;
};
struct Later {
  bool operator()(const Event &a, const Event &b) const {
    return a.at > b.at || (a.at == b.at && a.order > b.order);
  }
};

struct Port {
  Port() = default;
  Port(Port &&) noexcept = default;
  Port &operator=(Port &&) = default;
  uint16_t peer = 0, peerPort = 0;
  double rate = 2e7, delay = 1e-3, snr = 20;
  std::deque<SegmentPtr> queue;
  bool busy = false;
  Gauge *sent = nullptr, *dropped = nullptr, *received = nullptr;
};

struct Station {
  double x = 0, y = 0, vx = 0, vy = 0;
  std::vector<Port> ports;
  std::vector<uint8_t> route;      // destination -> port
  Gauge *forwarded = nullptr, *latency = nullptr;
};

struct Flow { uint16_t src, dst; double cwnd = 4, rtt = 0.05; uint32_t next = 0, acked = 0, inflight = 0; };

class Simulation {
 public:
  explicit Simulation(bool handles) : rng_(7), handles_(handles) { BuildTopology(); }

  void Advance(double until) {
    while (!events_.empty() && events_.top().at <= until) {
      Event ev = events_.top();
      events_.pop();
      now_ = ev.at;
      switch (ev.kind) {
        case Kind::Arrive: OnArrive(ev.node, ev.port, SegmentPtr(ev.segment)); break;
        case Kind::TxDone: OnTxDone(ev.node, ev.port); break;
        case Kind::SourceTick: OnSourceTick(ev.node); break;
        case Kind::Beacon: OnBeacon(ev.node); break;
      }
      ++handled_;
    }
    now_ = until;
  }

  void DriftStations(double dt) {
    for (auto &s : stations_) {
      s.vx += 0.02 * (rng_.Uniform() - 0.5); s.vy += 0.02 * (rng_.Uniform() - 0.5);
      s.x += s.vx * dt; s.y += s.vy * dt;
    }
  }

  void RefreshLinks() {
    for (auto &s : stations_)
      for (auto &p : s.ports) {
        const Station &o = stations_[p.peer];
        double d = std::hypot(s.x - o.x, s.y - o.y) + 1;
        double loss = 20 * std::log10(d) + 12 * std::log10(1 + d / 40);
        p.snr = 70 - loss + 2 * std::sin(now_ * 3 + s.x);
      }
  }

  void RecomputeRoutes() {
    // a few destinations per round, Bellman-Ford on link quality
    size_t n = stations_.size();
    std::vector<double> dist(n);
    for (int k = 0; k < 2; ++k) {
      size_t dst = cursor_++ % n;
      std::fill(dist.begin(), dist.end(), 1e9);
      dist[dst] = 0;
      for (int round = 0; round < 12; ++round) {
        bool changed = false;
        for (size_t i = 0; i < n; ++i)
          for (size_t j = 0; j < stations_[i].ports.size(); ++j) {
            const Port &p = stations_[i].ports[j];
            double c = dist[p.peer] + 1 + (p.snr < 25 ? 0.5 : 0.1);
            if (c < dist[i] - 1e-9) { dist[i] = c; stations_[i].route[dst] = uint8_t(j); changed = true; }
          }
        if (!changed) break;
      }
    }
  }

  double Digest() const { return journal_.Digest() + double(handled_); }
  size_t Gauges() const { return journal_.Size(); }

 private:
  void Schedule(double at, Kind k, uint16_t node, uint16_t port, Segment *s = nullptr) {
    events_.push({at, order_++, k, node, port, s});
  }

  std::string Path(uint16_t node, const char *what) const {
    return "/mesh/station/" + std::to_string(node) + "/transport/" + what;
  }
  std::string Path(uint16_t node, uint16_t port, const char *what) const {
    return "/mesh/station/" + std::to_string(node) + "/port/" + std::to_string(port) + "/" + what;
  }

  void Note(uint16_t node, const char *what, Gauge *g, double v) {
    if (handles_) Journal::Add(g, v); else journal_.Add(Path(node, what), v);
  }
  void Note(uint16_t node, uint16_t port, const char *what, Gauge *g, double v) {
    if (handles_) Journal::Add(g, v); else journal_.Add(Path(node, port, what), v);
  }

  void BuildTopology() {
    const int side = 9;
    stations_.resize(side * side);
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) {
        Station &s = stations_[y * side + x];
        s.x = x * 30.0; s.y = y * 30.0;
        s.route.assign(stations_.size(), 0);
        auto link = [&](int ox, int oy) {
          if (ox < 0 || oy < 0 || ox >= side || oy >= side) return;
          Port p; p.peer = uint16_t(oy * side + ox);
          s.ports.push_back(std::move(p));
        };
        link(x - 1, y); link(x + 1, y); link(x, y - 1); link(x, y + 1);
      }
    for (size_t i = 0; i < stations_.size(); ++i) {
      for (size_t j = 0; j < stations_[i].ports.size(); ++j) {
        Port &p = stations_[i].ports[j];
        for (size_t k = 0; k < stations_[p.peer].ports.size(); ++k)
          if (stations_[p.peer].ports[k].peer == i) p.peerPort = uint16_t(k);
        p.sent = journal_.Register(Path(i, j, "bytesSent"));
        p.received = journal_.Register(Path(i, j, "bytesReceived"));
        p.dropped = journal_.Register(Path(i, j, "segmentsDropped"));
      }
      stations_[i].forwarded = journal_.Register(Path(i, "forwarded"));
      stations_[i].latency = journal_.Register(Path(i, "latency"));
      Schedule(0.1 * rng_.Uniform(), Kind::Beacon, uint16_t(i), 0);
    }
    RefreshLinks();
    for (size_t k = 0; k < stations_.size(); ++k) RecomputeRoutes();
    for (int f = 0; f < 60; ++f) {
      Flow fl; fl.src = uint16_t(rng_.Next() % stations_.size()); fl.dst = uint16_t(rng_.Next() % stations_.size());
      if (fl.src == fl.dst) fl.dst = uint16_t((fl.dst + 1) % stations_.size());
      flows_.push_back(fl);
      Schedule(0.01 * rng_.Uniform(), Kind::SourceTick, uint16_t(f), 0);
    }
  }

  static uint16_t Checksum(const Segment &s) {
    uint32_t sum = s.flow + s.seq + s.size;
    for (size_t i = 0; i < sizeof s.head; i += 2) sum += uint32_t(s.head[i] << 8 | s.head[i + 1]);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return uint16_t(~sum);
  }

  void Transmit(uint16_t node, uint16_t port) {
    Port &p = stations_[node].ports[port];
    p.busy = true;
    double bits = p.queue.front()->size * 8.0;
    Schedule(now_ + bits / p.rate, Kind::TxDone, node, port);
  }

  void Enqueue(uint16_t node, SegmentPtr s) {
    Station &st = stations_[node];
    uint16_t port = st.route[s->dst];
    Port &p = st.ports[port];
    if (p.queue.size() > 64) { Note(node, port, "segmentsDropped", p.dropped, 1); LoseOne(*s); return; }
    p.queue.push_back(std::move(s));
    if (!p.busy) Transmit(node, port);
  }

  void OnTxDone(uint16_t node, uint16_t port) {
    Port &p = stations_[node].ports[port];
    SegmentPtr s = std::move(p.queue.front());
    p.queue.pop_front();
    Journal::Add(p.sent, s->size);
    double per = ErrorRate(p.snr, s->size);
    if (rng_.Uniform() < per) LoseOne(*s);
    else Schedule(now_ + p.delay, Kind::Arrive, p.peer, p.peerPort, s.release());
    if (p.queue.empty()) p.busy = false; else Transmit(node, port);
  }

  static double ErrorRate(double snr, uint16_t size) {
    double lin = std::pow(10.0, (snr - 14) / 10);
    double ber = 0.5 * std::erfc(std::sqrt(lin));
    return 1 - std::pow(1 - ber, size * 8.0);
  }

  void OnArrive(uint16_t node, uint16_t port, SegmentPtr s) {
    Station &st = stations_[node];
    Note(node, port, "bytesReceived", st.ports[port].received, s->size);
    crc_ += Checksum(*s);
    if (s->dst == node) { Deliver(node, std::move(s)); return; }
    if (--s->ttl == 0) { LoseOne(*s); return; }
    s->head[8] = s->ttl;
    Journal::Add(st.forwarded, 1);
    Enqueue(node, std::move(s));
  }

  void Deliver(uint16_t node, SegmentPtr s) {
    Flow &f = flows_[s->flow];
    if (s->ack) {
      if (f.inflight) --f.inflight;
      f.acked++;
      f.rtt = 0.9 * f.rtt + 0.1 * (now_ - s->born);
      f.cwnd = std::min(24.0, f.cwnd + 1 / f.cwnd);
      return;
    }
    Note(node, "latency", stations_[node].latency, now_ - s->born);
    Reassemble(*s);
    auto a = std::make_unique<Segment>(*s);
    a->ack = true; a->size = 60; a->dst = s->src; a->src = s->dst; a->ttl = 32;
    Enqueue(node, std::move(a));
  }

  void Reassemble(const Segment &s) {
    if (window_.size() < flows_.size()) window_.resize(flows_.size());
    auto &w = window_[s.flow];
    w.push_back(s.seq);
    std::sort(w.begin(), w.end());
    if (w.size() > 24) w.erase(w.begin(), w.begin() + 8);
  }

  void LoseOne(const Segment &s) {
    Flow &f = flows_[s.flow];
    if (f.inflight) --f.inflight;
    f.cwnd = std::max(2.0, f.cwnd / 2);
  }

  void OnSourceTick(uint16_t id) {
    Flow &f = flows_[id];
    while (f.inflight < uint32_t(f.cwnd)) {
      auto s = std::make_unique<Segment>();
      s->flow = id; s->seq = f.next++; s->src = f.src; s->dst = f.dst;
      s->size = uint16_t(200 + rng_.Next() % 1200); s->ttl = 32; s->ack = false; s->born = now_;
      for (size_t i = 0; i < sizeof s->head; ++i) s->head[i] = uint8_t(s->seq * 31 + i * 7);
      f.inflight++;
      Enqueue(f.src, std::move(s));
    }
    Schedule(now_ + 0.004 + 0.001 * rng_.Uniform(), Kind::SourceTick, id, 0);
  }

  void OnBeacon(uint16_t node) {
    Station &s = stations_[node];
    for (auto &p : s.ports) crc_ += uint64_t(p.snr * 100) & 0xff;
    Schedule(now_ + 0.1, Kind::Beacon, node, 0);
  }

  Rng rng_;
  bool handles_;
  double now_ = 0;
  uint64_t order_ = 0, handled_ = 0, crc_ = 0;
  size_t cursor_ = 0;
  std::vector<Station> stations_;
  std::vector<Flow> flows_;
  std::vector<std::vector<uint32_t>> window_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  Journal journal_;
};

int main(int argc, char **argv) {
  if (argc < 2) { std::fprintf(stderr, "usage: tideline slow|fast [slices]\n"); return 2; }
  int slices = argc > 2 ? std::atoi(argv[2]) : 3000;
  Simulation sim(std::strcmp(argv[1], "fast") == 0);
  double t = 0;
  for (int i = 0; i < slices; ++i) {
    sim.DriftStations(0.005);
    sim.RefreshLinks();
    if (i % 4 == 0) sim.RecomputeRoutes();
    t += 0.005;
    sim.Advance(t);
  }
  std::printf("%zu gauges, digest %.9g\n", sim.Gauges(), sim.Digest());
}
