// defect: each acknowledgement arms the retransmission timer again by one more event; the old events stay in the queue and are dropped when their time comes
// kinds: stale-entries
// guilty: Talker::touch, Almanac::put, Almanac::take, Almanac::settle, Almanac::lift, Network::turn, Network::run
// phase: steady
// gain: 28
//
// Radio backhaul of a fleet: packets of many senders over a mesh of relays, with queues, losses, acknowledgements,
// congestion windows, link budgets, routes, traces and statistics. One step is a millisecond of network time.
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
#include <unordered_map>
#include <vector>

using Nanos = int64_t;

struct Random {
    uint64_t s;
    uint64_t next() {
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        return s;
    }
    double unit() { return double(next() >> 11) / 9007199254740992.0; }
};

struct Packet {
    uint32_t flow, number;
    uint16_t source, target, bytes;
    uint8_t hops, is_ack;
    uint32_t check;
    Nanos sent;
};

// What happens at a time.
struct Entry {
    Nanos at;
    uint64_t order;
    uint32_t kind, who, tag;
    Packet packet;
};

// The times to come, earliest first: a heap of four children each.
class Almanac {
public:
    void put(Nanos at, uint32_t kind, uint32_t who, uint32_t tag, const Packet& packet) {
        heap_.push_back({at, order_++, kind, who, tag, packet});
        lift(heap_.size() - 1);
    }
    bool before(Nanos end) const { return !heap_.empty() && heap_[0].at < end; }
    Entry take() {
        Entry first = heap_[0];
        heap_[0] = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) settle(0);
        return first;
    }
    size_t size() const { return heap_.size(); }

private:
    static bool sooner(const Entry& a, const Entry& b) { return a.at != b.at ? a.at < b.at : a.order < b.order; }
    void lift(size_t i) {
        Entry one = heap_[i];
        while (i > 0 && sooner(one, heap_[(i - 1) / 4])) heap_[i] = heap_[(i - 1) / 4], i = (i - 1) / 4;
        heap_[i] = one;
    }
    void settle(size_t i) {
        Entry one = heap_[i];
        for (;;) {
            size_t first = i * 4 + 1, best = first;
            if (first >= heap_.size()) break;
            for (size_t k = first + 1; k < std::min(first + 4, heap_.size()); k++)
                if (sooner(heap_[k], heap_[best])) best = k;
            if (!sooner(heap_[best], one)) break;
            heap_[i] = heap_[best], i = best;
        }
        heap_[i] = one;
    }
    std::vector<Entry> heap_;
    uint64_t order_ = 0;
};

enum Kind : uint32_t { ARRIVES, LEAVES, EXPIRES, STARTS };

struct Talker {
    uint32_t id = 0;
    uint16_t source = 0, target = 0;
    uint32_t next = 0, acked = 0, tag = 0;
    double window = 8, threshold = 64, smooth = 2e6, spread = 1e6;
    Nanos deadline = 0;
    bool armed = false;
    std::vector<uint8_t> seen = std::vector<uint8_t>(256);

    // The timer begins again.
    void touch(Almanac& times, Nanos now, bool again) {
        deadline = now + std::max<Nanos>(Nanos(smooth + 4 * spread), 300'000'000);
        if (again) {
            times.put(deadline, EXPIRES, id, ++tag, {});
        } else if (!armed) {
            armed = true;
            times.put(deadline, EXPIRES, id, tag, {});
        }
    }
    void measure(double trip) {
        spread += 0.25 * (std::fabs(trip - smooth) - spread);
        smooth += 0.125 * (trip - smooth);
    }
    void grow() { window += window < threshold ? 1 : 1 / window; }
    void shrink() { threshold = std::max(2.0, window / 2), window = threshold; }
};

struct Port {
    std::deque<Packet> waiting;
    bool is_busy = false;
    double loss = 0.001, rate = 4e8;
    uint64_t drops = 0, bytes = 0;
};

uint32_t checksum(const Packet& p) {
    uint8_t bytes[16];
    std::memcpy(bytes, &p.flow, 4), std::memcpy(bytes + 4, &p.number, 4), std::memcpy(bytes + 8, &p.source, 2);
    std::memcpy(bytes + 10, &p.target, 2), std::memcpy(bytes + 12, &p.bytes, 2), bytes[14] = p.is_ack, bytes[15] = 0;
    uint32_t a = 1, b = 0;
    for (uint8_t one : bytes) a = (a + one) % 65521, b = (b + a) % 65521;
    return b << 16 | a;
}

class Network {
public:
    Network(bool again, int side, int talkers) : again_(again), side_(side), count_(side * side), talkers_(talkers) {
        for (int i = 0; i < count_; i++)
            for (int to : around(i)) ports_[key(i, to)].loss = 0.0005 + random_.unit() * 0.001;
        chart();
        for (int i = 0; i < talkers; i++) {
            Talker& one = talkers_[i];
            one.id = uint32_t(i), one.source = uint16_t(random_.next() % count_);
            do one.target = uint16_t(random_.next() % count_);
            while (one.target == one.source);
            times_.put(Nanos(random_.unit() * 5e6), STARTS, one.id, 0, {});
        }
        positions_.resize(count_);
    }

    void run(Nanos length) {
        Nanos end = now_ + length;
        while (times_.before(end)) turn(times_.take());
        now_ = end;
        steps_++;
        budget();
        if (steps_ % 25 == 0) chart();
        if (steps_ % 10 == 0) summary();
    }
    double sum() const { return double(delivered_) + double(lost_) * 1e-3 + double(trace_sum_ % 100000) * 1e-9 + quality_ * 1e-12; }
    size_t pending() const { return times_.size(); }

private:
    static uint32_t key(int from, int to) { return uint32_t(from) << 16 | uint32_t(to); }
    std::vector<int> around(int i) const {
        std::vector<int> out;
        int r = i / side_, c = i % side_;
        if (r > 0) out.push_back(i - side_);
        if (r + 1 < side_) out.push_back(i + side_);
        if (c > 0) out.push_back(i - 1);
        if (c + 1 < side_) out.push_back(i + 1);
        return out;
    }
    // The next relay towards each target.
    void chart() {
        hops_.assign(size_t(count_) * count_, 0);
        for (int target = 0; target < count_; target++) {
            std::vector<double> cost(count_, 1e18);
            std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> open;
            open.push({cost[target] = 0, target});
            while (!open.empty()) {
                auto [so_far, at] = open.top();
                open.pop();
                if (so_far > cost[at]) continue;
                for (int to : around(at)) {
                    double here = so_far + 1 + ports_[key(to, at)].loss * 100 + double((to * 7 + target) % 5) * 1e-3;
                    if (here < cost[to]) hops_[size_t(to) * count_ + target] = uint16_t(at), open.push({cost[to] = here, to});
                }
            }
        }
    }
    // Received powers between the relays, which drift.
    void budget() {
        for (int i = 0; i < count_; i++)
            positions_[i] = {double(i % side_) * 100 + 8 * std::sin(steps_ * 1e-3 + i), double(i / side_) * 100 + 8 * std::cos(steps_ * 1.3e-3 + i)};
        double sum = 0;
        for (int i = 0; i < count_; i++)
            for (int k = 0; k < count_; k++) {
                if (i == k) continue;
                double dx = positions_[i].first - positions_[k].first, dy = positions_[i].second - positions_[k].second;
                sum += 20 - 35 * std::log10(std::sqrt(dx * dx + dy * dy) + 1);
            }
        quality_ = sum;
    }
    void turn(const Entry& one) {
        now_ = one.at;
        switch (one.kind) {
        case STARTS: speak(talkers_[one.who]); break;
        case ARRIVES: arrive(one.who, one.packet); break;
        case LEAVES: leave(one.who); break;
        case EXPIRES: expire(talkers_[one.who], one.tag); break;
        }
    }
    void speak(Talker& one) {
        while (one.next - one.acked < uint32_t(one.window)) {
            Packet p{one.id, one.next++, one.source, one.target, 1200, 0, 0, 0, now_};
            p.check = checksum(p);
            forward(one.source, p);
        }
        one.touch(times_, now_, again_);
    }
    void forward(int at, Packet p) {
        int to = hops_[size_t(at) * count_ + p.target];
        Port& port = ports_[key(at, to)];
        if (port.waiting.size() > 200) {
            port.drops++, lost_++;
            return;
        }
        p.hops++;
        port.waiting.push_back(p);
        if (p.hops == 1) trace('+', at, p);
        if (!port.is_busy) {
            port.is_busy = true;
            times_.put(now_ + Nanos(p.bytes * 8e9 / port.rate), LEAVES, key(at, to), 0, {});
        }
    }
    void leave(uint32_t which) {
        Port& port = ports_[which];
        Packet p = port.waiting.front();
        port.waiting.pop_front();
        port.bytes += p.bytes;
        if (random_.unit() >= port.loss)
            times_.put(now_ + 30'000, ARRIVES, which & 0xffff, 0, p);
        else
            lost_++;
        if (port.waiting.empty())
            port.is_busy = false;
        else
            times_.put(now_ + Nanos(port.waiting.front().bytes * 8e9 / port.rate), LEAVES, which, 0, {});
    }
    void arrive(int at, const Packet& p) {
        if (checksum(p) != p.check) return;
        if (p.target != at) return forward(at, p);
        trace('r', at, p);
        Talker& one = talkers_[p.flow];
        if (!p.is_ack) {
            delivered_++;
            one.seen[p.number & 255] = 1;
            delays_[std::min<size_t>(size_t(now_ - p.sent) / 20'000, 999)]++;
            Packet back{p.flow, p.number, p.target, p.source, 64, 0, 1, 0, p.sent};
            back.check = checksum(back);
            return forward(at, back);
        }
        one.measure(double(now_ - p.sent));
        if (p.number >= one.acked) {
            one.acked = p.number + 1;
            one.grow();
            one.window = std::min(one.window, 24.0);
        }
        speak(one);
    }
    void expire(Talker& one, uint32_t tag) {
        if (again_ && tag != one.tag) return;
        one.armed = false;
        if (now_ < one.deadline) {
            one.armed = true;
            return times_.put(one.deadline, EXPIRES, one.id, one.tag, {});
        }
        one.shrink();
        one.next = one.acked;
        speak(one);
    }
    void trace(char what, int at, const Packet& p) {
        char line[96];
        int size = std::snprintf(line, sizeof line, "%c %lld /node/%d %u:%u", what, (long long)now_, at, p.flow, p.number);
        trace_sum_ += uint64_t(size) + uint64_t(line[size / 2]);
        if (trace_.size() > 100'000) trace_.clear();
        trace_.append(line, size);
    }
    void summary() {
        std::map<int, uint64_t> by_row;
        for (auto& [id, port] : ports_) by_row[int(id >> 16) / side_] += port.bytes;
        std::vector<std::pair<double, uint32_t>> slowest;
        for (Talker& one : talkers_) slowest.push_back({one.smooth, one.id});
        std::sort(slowest.rbegin(), slowest.rend());
        trace_sum_ += by_row.begin()->second + slowest[0].second;
    }

    bool again_;
    int side_, count_;
    Nanos now_ = 0;
    long steps_ = 0;
    Random random_{88172645463325252ull};
    Almanac times_;
    std::vector<Talker> talkers_;
    std::unordered_map<uint32_t, Port> ports_;
    std::vector<uint16_t> hops_;
    std::vector<std::pair<double, double>> positions_;
    std::vector<uint64_t> delays_ = std::vector<uint64_t>(1000);
    std::string trace_;
    uint64_t delivered_ = 0, lost_ = 0, trace_sum_ = 0;
    double quality_ = 0;
};

int main(int argc, char** argv) {
    bool again = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : 1L << 40;
    Network network(again, 9, 60);
    for (long i = 0; i < steps; i++) network.run(1'000'000);
    std::printf("sum %.12f\n", network.sum());
    if (argc > 3) std::printf("pending %zu\n", network.pending());
}
