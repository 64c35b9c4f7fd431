// defect: the pool has forty packets, but some hundreds are on their way at a time; most packets are allocated and set up for one journey, and freed at its end
// kinds: allocations-each-step
// guilty: PacketPool::get, PacketPool::put, Packet::Packet, Packet::~Packet
// gain: 27
//
// A packet network: sources, output queues with priorities, links with delay, routing by a table, drops, checksums.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

using Time = int64_t;       // nanoseconds

struct Packet {
    static constexpr size_t kBuffer = 9216;

    Packet() : data(new uint8_t[kBuffer]) {
        std::memset(data.get(), 0, kBuffer);
        hops.reserve(32);
        tags.reserve(16);
    }
    void reset() {
        hops.clear();
        tags.clear();
        size = 0;
    }

    std::unique_ptr<uint8_t[]> data;
    std::vector<uint16_t> hops;
    std::vector<std::pair<uint16_t, uint32_t>> tags;
    uint32_t size = 0;
    uint16_t source = 0, target = 0;
    uint8_t priority = 0;
    Time born = 0;
};

// Packets that are made once. If all of them are on their way, others are made for one journey.
class PacketPool {
public:
    explicit PacketPool(size_t size) : slab_(size) {
        free_.reserve(size);
        for (size_t i = size; i-- > 0;) free_.push_back(&slab_[i]);
    }

    Packet* get() {
        if (free_.empty()) return new Packet;
        Packet* p = free_.back();
        free_.pop_back();
        p->reset();
        return p;
    }
    void put(Packet* p) {
        if (p >= slab_.data() && p < slab_.data() + slab_.size()) {
            free_.push_back(p);
        } else {
            delete p;
        }
    }

private:
    std::vector<Packet> slab_;
    std::vector<Packet*> free_;
};

enum class Kind : uint8_t { kEmit, kArrive, kSent };

struct Event {
    Time at;
    uint64_t order;
    Kind kind;
    uint16_t node, port;
    Packet* packet;
};

class Calendar {
public:
    Calendar() { heap_.reserve(1 << 15); }
    void push(Time at, Kind kind, uint16_t node, uint16_t port, Packet* p) {
        heap_.push_back({at, order_++, kind, node, port, p});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    Event pop() {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        Event e = heap_.back();
        heap_.pop_back();
        return e;
    }

private:
    static bool later(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }
    std::vector<Event> heap_;
    uint64_t order_ = 0;
};

struct Port {
    uint16_t peer = 0;
    Time delay = 0;
    bool busy = false;
    std::array<std::deque<Packet*>, 3> queues;
    size_t waiting = 0;
};

struct Node {
    std::vector<Port> ports;
    uint32_t seed = 0;
    uint64_t forwarded = 0, delivered = 0, dropped = 0;
    double delay = 0, jitter = 0;
};

static uint32_t draw(uint32_t& s) {
    s ^= s << 13; s ^= s >> 17; s ^= s << 5;
    return s;
}

// The internet checksum of the headers and of the payload.
static uint16_t checksum(const uint8_t* p, size_t n) {
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < n; i += 2) sum += uint32_t(p[i]) << 8 | p[i + 1];
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return uint16_t(~sum);
}

class Lattice {
public:
    Lattice(int side, size_t poolSize) : side_(side), pool_(poolSize), nodes_(size_t(side) * side) {
        for (int n = 0; n < side * side; ++n) {
            Node& node = nodes_[n];
            node.seed = 77777u + 7919u * n;
            const int x = n % side, y = n / side;
            const int next[4] = {y * side + (x + 1) % side, y * side + (x + side - 1) % side,
                                 (y + 1) % side * side + x, (y + side - 1) % side * side + x};
            for (int q : next) {
                node.ports.emplace_back();
                node.ports.back().peer = uint16_t(q);
                node.ports.back().delay = 2000 + 400 * ((n * 7 + q) % 9);
            }
            calendar_.push(10 * n, Kind::kEmit, uint16_t(n), 0, nullptr);
        }
        routes();
    }

    Event next() {
        Event e = calendar_.pop();
        now_ = e.at;
        return e;
    }

    void emit(uint16_t n) {
        Node& node = nodes_[n];
        Packet* p = pool_.get();
        p->source = n;
        p->target = uint16_t(draw(node.seed) % nodes_.size());
        p->size = 64 + draw(node.seed) % 200;
        p->priority = uint8_t(draw(node.seed) % 3);
        p->born = now_;
        p->tags.emplace_back(uint16_t(1), draw(node.seed));
        fill(*p, node.seed);
        arrive(n, p);
        const double u = (draw(node.seed) + 1.0) / 4294967297.0;     // exponential gaps
        calendar_.push(now_ + 1 + Time(-1500 * std::log(u)), Kind::kEmit, n, 0, nullptr);
    }

    void arrive(uint16_t n, Packet* p) {
        Node& node = nodes_[n];
        p->hops.push_back(n);
        if (p->target == n || p->hops.size() > 30) return deliver(node, p);
        const uint16_t k = table_[size_t(n) * nodes_.size() + p->target];
        Port& port = node.ports[k];
        if (port.waiting >= 60) {
            ++node.dropped;
            return pool_.put(p);
        }
        port.queues[p->priority].push_back(p);
        ++port.waiting;
        if (!port.busy) send(n, k);
    }

    void send(uint16_t n, uint16_t k) {
        Port& port = nodes_[n].ports[k];
        port.busy = false;
        for (auto& q : port.queues) {
            if (q.empty()) continue;
            Packet* p = q.front();
            q.pop_front();
            --port.waiting;
            port.busy = true;
            ++nodes_[n].forwarded;
            const Time wire = Time(p->size) * 4;
            calendar_.push(now_ + wire, Kind::kSent, n, k, nullptr);
            calendar_.push(now_ + wire + port.delay * 4, Kind::kArrive, port.peer, 0, p);
            return;
        }
    }

    void print() const {
        uint64_t delivered = 0, dropped = 0;
        double delay = 0, jitter = 0;
        for (const Node& n : nodes_) {
            delivered = delivered * 31 + n.delivered;
            dropped += n.dropped;
            delay += n.delay;
            jitter += n.jitter;
        }
        std::printf("%llu %llu %llu %.6f %.6f\n", static_cast<unsigned long long>(delivered), static_cast<unsigned long long>(dropped),
                    static_cast<unsigned long long>(sums_), delay, jitter);
    }

private:
    void fill(Packet& p, uint32_t& seed) const {
        uint32_t word = draw(seed);
        for (uint32_t i = 0; i < p.size; i += 4) {
            word = word * 1664525u + 1013904223u;
            std::memcpy(&p.data[i], &word, 4);
        }
    }

    void deliver(Node& node, Packet* p) {
        const double d = double(now_ - p->born) * 1e-3;
        node.jitter += (std::fabs(d - node.delay / double(node.delivered + 1)) - node.jitter) / 16;
        node.delay += d;
        ++node.delivered;
        sums_ = sums_ * 33 + checksum(p->data.get(), p->size) + p->tags.front().second % 7;
        pool_.put(p);
    }

    void routes() {      // along x first, by the shorter way around the torus
        table_.resize(nodes_.size() * nodes_.size());
        for (int n = 0; n < side_ * side_; ++n)
            for (int t = 0; t < side_ * side_; ++t) {
                const int dx = (t % side_ - n % side_ + side_) % side_, dy = (t / side_ - n / side_ + side_) % side_;
                table_[size_t(n) * nodes_.size() + t] = uint16_t(dx ? (dx <= side_ / 2 ? 0 : 1) : (dy <= side_ / 2 ? 2 : 3));
            }
    }

    int side_;
    PacketPool pool_;
    std::vector<Node> nodes_;
    std::vector<uint16_t> table_;
    Calendar calendar_;
    Time now_ = 0;
    uint64_t sums_ = 0;
};

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s slow|fast [thousands of events]\n", argv[0]);
        return 1;
    }
    const bool sized = std::string(argv[1]) == "fast";
    const long thousands = argc > 2 ? std::atol(argv[2]) : 0;
    Lattice net(5, sized ? 4096 : 40);
    for (long n = 0; thousands == 0 || n < thousands * 1000; ++n) {
        const Event e = net.next();
        switch (e.kind) {
            case Kind::kEmit: net.emit(e.node); break;
            case Kind::kArrive: net.arrive(e.node, e.packet); break;
            case Kind::kSent: net.send(e.node, e.port); break;
        }
    }
    net.print();
}
