// defect: the open list of the path search is a plain array, in which the smallest is sought for each node that is taken
// kinds: list-search, full-scan-each-step, superlinear-lookup
// guilty: freight::OpenList::TakeBest, freight::Router::Find
// gain: 51
// build: -O2 -g
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <queue>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace freight {

struct Cell {
    int x = 0, y = 0;
    bool operator==(const Cell &other) const { return x == other.x && y == other.y; }
};

/// The hall: shelves in rows, with aisles.
class Hall {
public:
    Hall(int width, int height) : width_(width), height_(height), blocked_(size_t(width * height)), heat_(blocked_.size()) {
        for (int y = 0; y < height; ++y)
            for (int x = 0; x < width; ++x) blocked_[Index(x, y)] = y % 4 == 2 && x % 13 != 0 && x > 1 && x < width - 2;
    }
    int width() const { return width_; }
    int height() const { return height_; }
    size_t size() const { return blocked_.size(); }
    size_t Index(int x, int y) const { return size_t(y) * size_t(width_) + size_t(x); }
    bool IsFree(int x, int y) const { return x >= 0 && y >= 0 && x < width_ && y < height_ && !blocked_[Index(x, y)]; }
    float Crowd(size_t at) const { return heat_[at]; }
    void Visit(size_t at) { heat_[at] += 0.5f; }
    /// How crowded the aisles are: it spreads, and fades.
    void Diffuse() {
        std::vector<float> next(heat_.size());
        for (int y = 1; y + 1 < height_; ++y)
            for (int x = 1; x + 1 < width_; ++x) {
                size_t at = Index(x, y);
                float around = heat_[at - 1] + heat_[at + 1] + heat_[at - size_t(width_)] + heat_[at + size_t(width_)];
                next[at] = 0.93f * (0.6f * heat_[at] + 0.1f * around);
            }
        heat_.swap(next);
    }

private:
    int width_, height_;
    std::vector<char> blocked_;
    std::vector<float> heat_;
};

struct Node {
    float estimate;
    uint32_t at;
};

/// Nodes that are known and have not been looked at.
class OpenList {
public:
    explicit OpenList(bool plain) : plain_(plain) {}
    bool empty() const { return nodes_.empty(); }
    void clear() { nodes_.clear(); }
    void Add(Node node) {
        nodes_.push_back(node);
        if (!plain_) std::push_heap(nodes_.begin(), nodes_.end(), Later);
    }
    Node TakeBest() {
        size_t best = 0;
        if (plain_) {
            for (size_t i = 1; i < nodes_.size(); ++i)
                if (nodes_[i].estimate < nodes_[best].estimate) best = i;
            Node node = nodes_[best];
            nodes_[best] = nodes_.back();
            nodes_.pop_back();
            return node;
        }
        std::pop_heap(nodes_.begin(), nodes_.end(), Later);
        Node node = nodes_.back();
        nodes_.pop_back();
        return node;
    }

private:
    static bool Later(const Node &a, const Node &b) { return a.estimate > b.estimate; }
    bool plain_;
    std::vector<Node> nodes_;
};

class Router {
public:
    Router(const Hall &hall, bool plain) : hall_(hall), open_(plain), cost_(hall.size()), from_(hall.size()), round_(hall.size()) {}

    std::vector<Cell> Find(Cell start, Cell goal) {
        ++number_;
        open_.clear();
        size_t first = hall_.Index(start.x, start.y), last = hall_.Index(goal.x, goal.y);
        cost_[first] = 0;
        round_[first] = number_;
        open_.Add({0, uint32_t(first)});
        while (!open_.empty()) {
            Node node = open_.TakeBest();
            if (node.at == last) return Path(first, last);
            int x = int(node.at) % hall_.width(), y = int(node.at) / hall_.width();
            static constexpr std::array<std::pair<int, int>, 4> kWays{{{1, 0}, {-1, 0}, {0, 1}, {0, -1}}};
            for (auto [dx, dy] : kWays) {
                if (!hall_.IsFree(x + dx, y + dy)) continue;
                size_t next = hall_.Index(x + dx, y + dy);
                float cost = cost_[node.at] + 1 + hall_.Crowd(next);
                if (round_[next] == number_ && cost_[next] <= cost) continue;
                round_[next] = number_;
                cost_[next] = cost;
                from_[next] = node.at;
                float left = float(std::abs(goal.x - x - dx) + std::abs(goal.y - y - dy));
                open_.Add({cost + left, uint32_t(next)});
            }
        }
        return {};
    }

private:
    std::vector<Cell> Path(size_t first, size_t last) const {
        std::vector<Cell> path;
        for (size_t at = last; at != first; at = from_[at]) path.push_back({int(at) % hall_.width(), int(at) / hall_.width()});
        std::reverse(path.begin(), path.end());
        return path;
    }
    const Hall &hall_;
    OpenList open_;
    std::vector<float> cost_;
    std::vector<uint32_t> from_;
    std::vector<int> round_;
    int number_ = 0;
};

/// Three cells of a battery: a small circuit, solved in small steps.
class Battery {
public:
    void Drain(double power) {
        for (int i = 0; i < 250; ++i) {
            double open = 3.2 + 0.9 * charge_ + 0.05 * std::exp(-12 * charge_);
            double current = power / (3 * open + 1e-3);
            surface_ += 0.002 * (current - surface_ * 0.2);
            charge_ -= 1e-8 * current * (1 + 0.01 * surface_ * surface_);
            heat_ += 1e-3 * (current * current * 0.02 - 0.1 * (heat_ - 20));
        }
        if (charge_ < 0.1) charge_ = 1;
    }
    double charge() const { return charge_; }

private:
    double charge_ = 0.9, surface_ = 0, heat_ = 20;
};

struct Cart {
    Cell at, goal;
    std::deque<Cell> path;
    Battery battery;
    std::array<double, 6> wheel{};
    int waited = 0;
};

/// A scan of the surroundings: rays on the grid.
class Feelers {
public:
    explicit Feelers(const Hall &hall) : hall_(hall) {
        for (int i = 0; i < kRays; ++i) ways_[size_t(i)] = {float(std::cos(i * 6.2832 / kRays)), float(std::sin(i * 6.2832 / kRays))};
    }
    float Nearest(Cell from) const {
        float nearest = 30;
        for (auto [dx, dy] : ways_) {
            float x = float(from.x) + 0.5f, y = float(from.y) + 0.5f, far = 0;
            while (far < 24 && hall_.IsFree(int(x), int(y))) {
                x += dx * 0.5f;
                y += dy * 0.5f;
                far += 0.5f;
            }
            nearest = std::min(nearest, far);
        }
        return nearest;
    }

private:
    static constexpr int kRays = 48;
    const Hall &hall_;
    std::array<std::pair<float, float>, kRays> ways_;
};

class Warehouse {
public:
    explicit Warehouse(bool plain) : hall_(150, 120), router_(hall_, plain), feelers_(hall_), random_(7) {
        for (int i = 0; i < 160; ++i) {
            Cart cart;
            cart.at = cart.goal = Somewhere();
            carts_.push_back(cart);
        }
    }
    void Step() {
        Dispatch();
        for (auto &cart : carts_) Drive(cart);
        for (auto &cart : carts_) {
            Sense(cart);
            cart.battery.Drain(40 + double(cart.path.size()));
            Turn(cart);
        }
        hall_.Diffuse();
        Account();
    }
    double sum() const { return sum_; }

private:
    Cell Somewhere() {
        for (;;) {
            Cell cell{int(random_() % unsigned(hall_.width())), int(random_() % unsigned(hall_.height()))};
            if (hall_.IsFree(cell.x, cell.y)) return cell;
        }
    }
    void Dispatch() {
        int planned = 0;
        for (auto &cart : carts_) {
            if (!cart.path.empty()) continue;
            if (++planned > 2) break;
            cart.goal = Somewhere();
            auto path = router_.Find(cart.at, cart.goal);
            cart.path.assign(path.begin(), path.end());
        }
    }
    void Drive(Cart &cart) {
        if (cart.path.empty()) return;
        cart.at = cart.path.front();
        cart.path.pop_front();
        hall_.Visit(hall_.Index(cart.at.x, cart.at.y));
    }
    void Sense(Cart &cart) { cart.waited = feelers_.Nearest(cart.at) < 1 ? cart.waited + 1 : 0; }
    /// Six wheels with slip.
    void Turn(Cart &cart) {
        for (int i = 0; i < 12; ++i)
            for (auto &wheel : cart.wheel) {
                double slip = std::tanh(3 * (1 - wheel));
                wheel += 0.01 * (slip - 0.2 * wheel) + 0.001 * std::sin(wheel);
            }
        sum_ += cart.wheel[0];
    }
    void Account() {
        std::unordered_map<int, int> zones;
        for (const auto &cart : carts_) ++zones[cart.at.x / 10 * 100 + cart.at.y / 10];
        for (const auto &[zone, number] : zones) sum_ += number > 3 ? 1 : 0;
    }
    Hall hall_;
    Router router_;
    Feelers feelers_;
    std::mt19937 random_;
    std::vector<Cart> carts_;
    double sum_ = 0;
};

} // namespace freight

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : std::numeric_limits<long>::max();
    freight::Warehouse warehouse(slow);
    for (long i = 0; i < steps; ++i) warehouse.Step();
    std::printf("%g\n", warehouse.sum());
}
