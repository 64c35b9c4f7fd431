// defect: the server asks of each avatar and each object in the region whether it is near, though few are within sight: there is no grid
// kinds: list-search, full-scan-each-step, superlinear-lookup, same-data-each-call
// guilty: meadowlark::Region::Watch, meadowlark::Region::Interest, meadowlark::Server::Tell, meadowlark::Region::Near
// gain: 46
// build: -O2 -g
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace meadowlark {

struct Place {
    float x = 0, y = 0, z = 0;
};

class Thing {
public:
    Thing(int number, Place place) : number_(number), place_(place) {}
    virtual ~Thing() = default;
    virtual void Live(double t) = 0;
    int number() const { return number_; }
    const Place &place() const { return place_; }
    unsigned version() const { return version_; }

protected:
    void Go(float dx, float dy) {
        place_.x = std::clamp(place_.x + dx, 0.f, 511.f);
        place_.y = std::clamp(place_.y + dy, 0.f, 511.f);
        ++version_;
    }
    int number_;
    unsigned version_ = 0;
    Place place_;
};

class Prim : public Thing {
public:
    using Thing::Thing;
    void Live(double t) override {
        if (number_ % 20 == 0) Go(float(0.05 * std::sin(t)), 0);
        if (number_ % 5) return;
        for (auto &line : script_) line = 0.99 * line + std::sin(line + t) * 0.01;
    }

private:
    std::array<double, 8> script_{};
};

class Avatar : public Thing {
public:
    using Thing::Thing;
    void Live(double t) override {
        Go(float(0.1 * std::cos(t + number_)), float(0.1 * std::sin(t * 0.7 + number_)));
        for (size_t bone = 0; bone < bones_.size(); ++bone) {
            auto &one = bones_[bone];
            double angle = std::sin(t * 3 + double(bone) * 0.3) * 0.5;
            double parent = bone ? bones_[bone - 1][3] : 0;
            one[0] = std::cos(angle + parent);
            one[1] = std::sin(angle + parent);
            one[2] = one[0] * 0.3;
            one[3] = 0.5 * parent + angle;
        }
    }

private:
    std::array<std::array<double, 4>, 48> bones_{};
};

/// Bodies that fall on the terrain, and are pushed apart by a hash of cells.
class Physics {
public:
    explicit Physics(int number) : places_(size_t(number)), speeds_(size_t(number)), next_(size_t(number)) {
        std::mt19937 random(5);
        for (auto &place : places_) place = {float(random() % 5120) * 0.1f, float(random() % 5120) * 0.1f, 2};
    }
    void Step() {
        heads_.assign(kSide * kSide, -1);
        for (size_t i = 0; i < places_.size(); ++i) {
            auto &head = heads_[Cell(places_[i])];
            next_[i] = head;
            head = int(i);
        }
        for (size_t i = 0; i < places_.size(); ++i) {
            auto &p = places_[i];
            for (int k = heads_[Cell(p)]; k >= 0; k = next_[size_t(k)]) {
                if (size_t(k) == i) continue;
                float dx = p.x - places_[size_t(k)].x, dy = p.y - places_[size_t(k)].y, d = dx * dx + dy * dy + 0.01f;
                if (d < 4) {
                    speeds_[i].x += dx / d * 0.01f;
                    speeds_[i].y += dy / d * 0.01f;
                }
            }
            float ground = std::sin(p.x * 0.05f) + std::cos(p.y * 0.03f);
            speeds_[i].z = p.z < ground ? 0.3f : speeds_[i].z - 0.02f;
            p.x = std::clamp(p.x + speeds_[i].x, 0.f, 511.f);
            p.y = std::clamp(p.y + speeds_[i].y, 0.f, 511.f);
            p.z += speeds_[i].z;
        }
    }

private:
    static constexpr size_t kSide = 128;
    static size_t Cell(const Place &p) { return size_t(p.y / 4) * kSide + size_t(p.x / 4); }
    std::vector<Place> places_, speeds_;
    std::vector<int> heads_, next_;
};

/// Everything in a region.
class Region {
public:
    Region(bool plain, int avatars, int prims) : plain_(plain) {
        std::mt19937 random(9);
        for (int i = 0; i < avatars + prims; ++i) {
            Place place{float(random() % 5120) * 0.1f, float(random() % 5120) * 0.1f, 0};
            if (i < avatars) things_.push_back(std::make_unique<Avatar>(i, place));
            else things_.push_back(std::make_unique<Prim>(i, place));
        }
    }
    void Live(size_t from, size_t to, double t) {
        for (size_t i = from; i < to; ++i) things_[i]->Live(t);
    }
    void Sort() {
        if (plain_) return;
        for (auto &cell : cells_) cell.clear();
        for (const auto &thing : things_) cells_[Cell(thing->place().x, thing->place().y)].push_back(thing.get());
    }
    /// What somebody at a place sees.
    void Interest(const Place &eye, std::vector<const Thing *> &seen) const {
        seen.clear();
        if (plain_) {
            for (const auto &thing : things_)
                if (Near(eye, *thing)) seen.push_back(thing.get());
            return;
        }
        int x = int(eye.x / 32), y = int(eye.y / 32);
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
                if (x + dx < 0 || y + dy < 0 || x + dx > 15 || y + dy > 15) continue;
                for (const Thing *thing : cells_[size_t((y + dy) * 16 + x + dx)])
                    if (Near(eye, *thing)) seen.push_back(thing);
            }
    }
    const Thing &at(size_t i) const { return *things_[i]; }
    size_t size() const { return things_.size(); }

private:
    static bool Near(const Place &eye, const Thing &thing) {
        float dx = thing.place().x - eye.x, dy = thing.place().y - eye.y;
        return dx * dx + dy * dy < 30 * 30;
    }
    static size_t Cell(float x, float y) { return size_t(y / 32) * 16 + size_t(x / 32); }
    bool plain_;
    std::vector<std::unique_ptr<Thing>> things_;
    std::array<std::vector<const Thing *>, 256> cells_;
};

/// What one user's program knows.
class Client {
public:
    /// Packs what has changed: places in 16 bits, the name of the thing, a checksum.
    void Tell(const std::vector<const Thing *> &seen) {
        packet_.clear();
        for (const Thing *thing : seen) {
            auto &known = known_[thing->number()];
            if (known == thing->version() + 1) continue;
            known = thing->version() + 1;
            Put(uint32_t(thing->number()));
            Put(uint32_t(thing->place().x * 128) << 16 | uint32_t(thing->place().y * 128));
            Put(uint32_t((thing->place().z + 100) * 128));
        }
        uint32_t check = 0xffffffff;
        for (uint8_t byte : packet_) {
            check ^= byte;
            for (int bit = 0; bit < 8; ++bit) check = check >> 1 ^ (0xedb88320 & (0 - (check & 1)));
        }
        sent_ += packet_.size() + (check & 1);
    }
    size_t sent() const { return sent_; }

private:
    void Put(uint32_t value) {
        for (int i = 0; i < 4; ++i) packet_.push_back(uint8_t(value >> 8 * i));
    }
    std::unordered_map<int, unsigned> known_;
    std::vector<uint8_t> packet_;
    size_t sent_ = 0;
};

class Server {
public:
    Server(bool plain, long steps) : region_(plain, kAvatars, 6000), physics_(9000), clients_(kAvatars), steps_(steps), turn_(2) {}
    void Run() {
        std::thread other([this] { Serve(1); });
        Serve(0);
        other.join();
    }
    size_t sent() const {
        size_t sum = 0;
        for (const auto &client : clients_) sum += client.sent();
        return sum;
    }

private:
    static constexpr size_t kAvatars = 80;
    void Serve(size_t number) {
        std::vector<const Thing *> seen;
        for (long step = 0; step < steps_; ++step) {
            double t = double(step) * 0.05;
            region_.Live(number * region_.size() / 2, (number + 1) * region_.size() / 2, t);
            turn_.arrive_and_wait();
            if (number == 0) region_.Sort();
            else physics_.Step();
            turn_.arrive_and_wait();
            for (size_t i = number; i < kAvatars; i += 2) Tell(i, seen);
            turn_.arrive_and_wait();
        }
    }
    void Tell(size_t i, std::vector<const Thing *> &seen) {
        region_.Interest(region_.at(i).place(), seen);
        clients_[i].Tell(seen);
    }
    Region region_;
    Physics physics_;
    std::vector<Client> clients_;
    long steps_;
    std::barrier<> turn_;
};

} // namespace meadowlark

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : std::numeric_limits<long>::max();
    meadowlark::Server server(slow, steps);
    server.Run();
    std::printf("%zu\n", server.sent());
}
