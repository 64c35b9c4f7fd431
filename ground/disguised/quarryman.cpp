// defect: each change of a voxel or a mob is a message of its own to each client
// kinds: many-messages-each-step, small-writes-each-step
// guilty: GameServer::deliver, GameServer::post, GameServer::announce
// phase: steady
// gain: 40
//
// quarryman: a voxel world server; bots are connected to it by sockets.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

constexpr int kX = 96, kY = 40, kZ = 96;
enum Block : uint8_t { Air, Stone, Dirt, Grass, Water, Sand, Torch, Ore };

static inline int at(int x, int y, int z) { return (y * kZ + z) * kX + x; }

struct Edit { uint16_t x, z; uint8_t y, block; };

struct Mob { float x, y, z, vx, vy, vz, goalX, goalZ; int mood; uint32_t seed; };

struct Session {
  int fd = -1;
  float x = 48, z = 48, yaw = 0;
  uint32_t keepAlive = 0;
  std::vector<uint8_t> pending;
  uint64_t bytes = 0;
};

#pragma pack(push, 1)
struct Header { uint8_t kind; uint8_t len; };
struct EditMessage { Header h{1, 6}; uint16_t x, z; uint8_t y, block; };
struct MobMessage { Header h{2, 8}; uint16_t id; int16_t x, y, z; };
struct TickMessage { Header h{3, 4}; uint32_t tick; };
#pragma pack(pop)

class World {
 public:
  World() : blocks_(kX * kY * kZ, Air), light_(kX * kY * kZ, 0), flow_(kX * kZ, 0.f) {
    for (int z = 0; z < kZ; ++z)
      for (int x = 0; x < kX; ++x) {
        int h = 18 + int(6 * std::sin(x * 0.13) * std::cos(z * 0.11) + 2 * std::sin(x * 0.7 + z));
        for (int y = 0; y < h; ++y) blocks_[at(x, y, z)] = y < h - 4 ? Stone : y < h - 1 ? Dirt : Grass;
        for (int y = h; y < 16; ++y) blocks_[at(x, y, z)] = Water;
      }
  }
  uint32_t rnd() { seed_ = seed_ * 1664525u + 1013904223u; return seed_ >> 8; }

  void randomTicks() {
    for (int k = 0; k < 2600; ++k) {
      int x = 1 + int(rnd() % (kX - 2)), z = 1 + int(rnd() % (kZ - 2)), y = 1 + int(rnd() % (kY - 2));
      uint8_t &b = blocks_[at(x, y, z)];
      uint8_t above = blocks_[at(x, y + 1, z)];
      if (b == Dirt && above == Air) { b = Grass; note(x, y, z); }
      else if (b == Grass && above != Air) { b = Dirt; note(x, y, z); }
      else if (b == Grass && rnd() % 16 == 0) { b = Dirt; note(x, y, z); }
      else if (b == Stone && rnd() % 90 == 0) { b = Ore; note(x, y, z); }
      else if (b == Ore && rnd() % 20 == 0) { b = Stone; note(x, y, z); }
    }
  }

  void fluids() {
    for (int z = 1; z + 1 < kZ; ++z)
      for (int x = 1; x + 1 < kX; ++x) {
        float &f = flow_[z * kX + x];
        float n = flow_[z * kX + x - 1] + flow_[z * kX + x + 1] + flow_[(z - 1) * kX + x] + flow_[(z + 1) * kX + x];
        f = 0.96f * (f + 0.2f * (n - 4 * f)) + (blocks_[at(x, 15, z)] == Water ? 0.02f : 0.f);
      }
  }

  void daylight(uint32_t tick) {
    int slab = int(tick % 8) * (kZ / 8);
    for (int z = slab; z < slab + kZ / 8; ++z)
      for (int x = 0; x < kX; ++x) {
        int l = 15;
        for (int y = kY - 1; y >= 0; --y) {
          int i = at(x, y, z);
          if (blocks_[i] == Water) l = std::max(0, l - 2); else if (blocks_[i] != Air) l = 0;
          light_[i] = uint8_t(l);
        }
      }
  }

  int ground(float fx, float fz) const {
    int x = std::clamp(int(fx), 0, kX - 1), z = std::clamp(int(fz), 0, kZ - 1);
    int y = kY - 1;
    while (y > 0 && (blocks_[at(x, y, z)] == Air || blocks_[at(x, y, z)] == Water)) --y;
    return y;
  }

  void dig(int x, int y, int z, uint8_t to) {
    if (x < 1 || z < 1 || y < 1 || x >= kX - 1 || z >= kZ - 1 || y >= kY - 1) return;
    blocks_[at(x, y, z)] = to; note(x, y, z);
  }

  std::vector<Edit> takeEdits() { std::vector<Edit> e; e.swap(edits_); return e; }
  uint64_t digest() const { uint64_t h = 1469598103934665603ull; for (uint8_t b : blocks_) h = (h ^ b) * 1099511628211ull; return h; }
  float flowSum() const { float s = 0; for (float f : flow_) s += f; return s; }

 private:
  void note(int x, int y, int z) { edits_.push_back({uint16_t(x), uint16_t(z), uint8_t(y), blocks_[at(x, y, z)]}); }
  std::vector<uint8_t> blocks_, light_;
  std::vector<float> flow_;
  std::vector<Edit> edits_;
  uint32_t seed_ = 12345;
};

// the other end: a thread which plays many bots
class Bots {
 public:
  void add(int fd) { fds_.push_back({fd, POLLIN, 0}); }
  void start() { worker_ = std::thread([this] { loop(); }); }
  void join() { worker_.join(); }
  uint64_t bytes() const { return bytes_; }
  uint64_t sum() const { return sum_; }

 private:
  void loop() {
    std::vector<uint8_t> buf(65536);
    size_t open = fds_.size();
    while (open > 0) {
      if (poll(fds_.data(), fds_.size(), -1) <= 0) continue;
      for (auto &p : fds_) {
        if (!(p.revents & (POLLIN | POLLHUP))) continue;
        ssize_t n = read(p.fd, buf.data(), buf.size());
        if (n <= 0) { close(p.fd); p.fd = -1; --open; continue; }
        bytes_ += uint64_t(n);
        for (ssize_t i = 0; i < n; ++i) sum_ += buf[i];
      }
      usleep(3000);   // a bot thinks a little before it looks again
    }
  }
  std::thread worker_;
  std::vector<pollfd> fds_;
  uint64_t bytes_ = 0, sum_ = 0;
};

class GameServer {
 public:
  explicit GameServer(bool gathered) : gathered_(gathered) {
    for (int i = 0; i < 180; ++i) {
      Mob m{float(4 + i * 7 % 88), 20, float(4 + i * 11 % 88), 0, 0, 0, 48, 48, 0, uint32_t(i * 77 + 1)};
      mobs_.push_back(m);
    }
    for (int i = 0; i < 6; ++i) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) { std::perror("socketpair"); std::exit(1); }
      int size = 1 << 20;
      setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
      auto s = std::make_unique<Session>();
      s->fd = pair[0]; s->x = float(10 + 7 * i); s->z = float(80 - 6 * i);
      sessions_.push_back(std::move(s));
      bots_.add(pair[1]);
    }
    bots_.start();
  }

  void serve(uint32_t ticks) {
    for (uint32_t tick = 0; tick < ticks; ++tick) {
      world_.randomTicks();
      for (int k = 0; k < 4; ++k) world_.fluids();
      world_.daylight(tick);
      thinkMobs(tick);
      moveMobs();
      movePlayers(tick);
      pathField(tick);
      announce(tick);
    }
    for (auto &s : sessions_) close(s->fd);
    bots_.join();
  }

  void report() const {
    double m = 0;
    for (auto &b : mobs_) m += b.x + b.z;
    std::printf("world %016llx, flow %.7g, mobs %.9g, bots got %llu bytes, sum %llu\n", (unsigned long long)world_.digest(),
                world_.flowSum(), m, (unsigned long long)bots_.bytes(), (unsigned long long)bots_.sum());
  }

 private:
  void thinkMobs(uint32_t tick) {
    for (auto &m : mobs_) {
      m.seed = m.seed * 1664525u + 1013904223u;
      if ((m.seed >> 8) % 64 == 0) { m.goalX = float((m.seed >> 12) % 90 + 3); m.goalZ = float((m.seed >> 20) % 90 + 3); }
      float best = 1e9f;
      for (auto &s : sessions_) best = std::min(best, std::hypot(s->x - m.x, s->z - m.z));
      float push = 0;
      for (auto &o : mobs_) { float dx = o.x - m.x, dz = o.z - m.z, d = dx * dx + dz * dz; if (d < 4 && d > 0) push += dx / (d + 0.1f); }
      float dx = m.goalX - m.x, dz = m.goalZ - m.z, d = std::sqrt(dx * dx + dz * dz) + 0.01f;
      m.vx = 0.9f * m.vx + 0.1f * (dx / d * (best < 10 ? 3.f : 1.f) - 0.05f * push);
      m.vz = 0.9f * m.vz + 0.1f * dz / d;
      m.mood = int(best) + int(tick % 3);
    }
  }

  void moveMobs() {
    for (auto &m : mobs_) {
      m.x = std::clamp(m.x + m.vx * 0.05f, 1.f, float(kX - 2));
      m.z = std::clamp(m.z + m.vz * 0.05f, 1.f, float(kZ - 2));
      int g = world_.ground(m.x, m.z);
      m.vy = m.y > g + 1 ? m.vy - 0.5f : 0;
      m.y = std::max(float(g + 1), m.y + m.vy * 0.05f);
    }
  }

  void movePlayers(uint32_t tick) {
    for (size_t i = 0; i < sessions_.size(); ++i) {
      Session &s = *sessions_[i];
      s.yaw += 0.02f * std::sin(0.01f * float(tick) + float(i));
      s.x = std::clamp(s.x + 0.1f * std::cos(s.yaw), 2.f, float(kX - 3));
      s.z = std::clamp(s.z + 0.1f * std::sin(s.yaw), 2.f, float(kZ - 3));
      int y = world_.ground(s.x, s.z);
      if ((tick + i) % 5 == 0) world_.dig(int(s.x), y, int(s.z), Air);
      if ((tick + i) % 5 == 2) world_.dig(int(s.x), y + 1, int(s.z), Sand);
    }
  }

  void pathField(uint32_t tick) {
    if (dist_.empty()) dist_.assign(kX * kZ, 0);
    std::fill(dist_.begin(), dist_.end(), -1);
    const Session &s = *sessions_[tick % sessions_.size()];
    queue_.clear();
    queue_.push_back(int(s.z) * kX + int(s.x));
    dist_[queue_[0]] = 0;
    for (size_t h = 0; h < queue_.size(); ++h) {
      int c = queue_[h], x = c % kX, z = c / kX;
      if (dist_[c] > 30) break;
      for (int d : {-1, 1, -kX, kX}) {
        int n = c + d, nx = n % kX, nz = n / kX;
        if (n < 0 || n >= kX * kZ || std::abs(nx - x) > 1 || std::abs(nz - z) > 1 || dist_[n] >= 0) continue;
        dist_[n] = dist_[c] + 1;
        queue_.push_back(n);
      }
    }
  }

  template <class M> void post(Session &s, const M &m) {
    if (gathered_) {
      const uint8_t *p = reinterpret_cast<const uint8_t *>(&m);
      s.pending.insert(s.pending.end(), p, p + sizeof m);
    } else {
      deliver(s, &m, sizeof m);
    }
  }

  void deliver(Session &s, const void *data, size_t len) {
    const uint8_t *p = static_cast<const uint8_t *>(data);
    while (len > 0) {
      ssize_t n = send(s.fd, p, len, MSG_NOSIGNAL);
      if (n <= 0) return;
      p += n; len -= size_t(n); s.bytes += uint64_t(n);
    }
  }

  void announce(uint32_t tick) {
    std::vector<Edit> edits = world_.takeEdits();
    for (auto &sp : sessions_) {
      Session &s = *sp;
      post(s, TickMessage{{3, 4}, tick});
      for (const Edit &e : edits) {
        if (std::abs(float(e.x) - s.x) > 40 || std::abs(float(e.z) - s.z) > 40) continue;
        post(s, EditMessage{{1, 6}, e.x, e.z, e.y, e.block});
      }
      for (size_t i = tick % 6; i < mobs_.size(); i += 6) {
        const Mob &m = mobs_[i];
        if (std::hypot(m.x - s.x, m.z - s.z) > 32) continue;
        post(s, MobMessage{{2, 8}, uint16_t(i), int16_t(m.x * 32), int16_t(m.y * 32), int16_t(m.z * 32)});
      }
      if (gathered_) { deliver(s, s.pending.data(), s.pending.size()); s.pending.clear(); }
    }
  }

  bool gathered_;
  World world_;
  std::vector<Mob> mobs_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<int> dist_, queue_;
  Bots bots_;
};

int main(int argc, char **argv) {
  if (argc < 2) { std::fprintf(stderr, "usage: quarryman slow|fast [ticks]\n"); return 2; }
  GameServer server(std::strcmp(argv[1], "fast") == 0);
  server.serve(argc > 2 ? uint32_t(std::atoi(argv[2])) : 8000);
  server.report();
}
