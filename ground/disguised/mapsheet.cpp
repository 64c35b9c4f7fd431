// defect: none
// kinds: -
// guilty: -
// phase: steady
//
// A mapping robot in a hall of rooms: range scans, a scan matcher, a map of log odds, distances around what changed,
// frontiers, ways to them, landmarks with covariances, a pose graph, and a journal of what was decided.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

constexpr int SIDE = 360;
constexpr double CELL = 0.1;
constexpr int BEAMS = 240;

struct Pose {
    double x = 0, y = 0, turn = 0;
};
struct Scan {
    std::array<float, BEAMS> range;
};

struct Random {
    uint64_t s = 0x853c49e6748fea9bull;
    uint32_t next() {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t x = uint32_t(((s >> 18) ^ s) >> 27), r = uint32_t(s >> 59);
        return x >> r | x << (-r & 31);
    }
    double unit() { return next() / 4294967296.0; }
    double normal() { return std::sqrt(-2 * std::log(unit() + 1e-12)) * std::cos(6.2831853 * unit()); }
};

// The real hall.
class Hall {
public:
    Hall() : walls_(SIDE * SIDE) {
        for (int i = 0; i < SIDE; i++)
            for (int k = 0; k < 3; k++) walls_[k * SIDE + i] = walls_[(SIDE - 1 - k) * SIDE + i] = walls_[i * SIDE + k] = walls_[i * SIDE + SIDE - 1 - k] = 1;
        for (int r = 60; r < SIDE; r += 60)
            for (int i = 0; i < SIDE; i++) {
                if (i % 60 < 22 || i % 60 > 38) walls_[r * SIDE + i] = walls_[i * SIDE + r] = 1;
            }
        for (int k = 0; k < 120; k++) {
            int x = 10 + (k * 7919) % (SIDE - 20), y = 10 + (k * 104729) % (SIDE - 20);
            if (x % 60 < 10 || x % 60 > 50 || (y % 60 > 20 && y % 60 < 40)) continue;
            for (int dy = 0; dy < 4; dy++)
                for (int dx = 0; dx < 4; dx++) walls_[(y + dy) * SIDE + x + dx] = 1;
        }
    }
    bool wall(int x, int y) const { return x < 0 || y < 0 || x >= SIDE || y >= SIDE || walls_[y * SIDE + x]; }
    // The distance to a wall, from cell to cell.
    double shoot(double x, double y, double turn) const {
        double dx = std::cos(turn), dy = std::sin(turn);
        int cx = int(x / CELL), cy = int(y / CELL), sx = dx > 0 ? 1 : -1, sy = dy > 0 ? 1 : -1;
        double stepx = CELL / std::max(std::fabs(dx), 1e-9), stepy = CELL / std::max(std::fabs(dy), 1e-9);
        double tx = (dx > 0 ? (cx + 1) * CELL - x : x - cx * CELL) / std::max(std::fabs(dx), 1e-9);
        double ty = (dy > 0 ? (cy + 1) * CELL - y : y - cy * CELL) / std::max(std::fabs(dy), 1e-9), t = 0;
        while (t < 8) {
            if (tx < ty)
                t = tx, tx += stepx, cx += sx;
            else
                t = ty, ty += stepy, cy += sy;
            if (wall(cx, cy)) return t;
        }
        return 8;
    }

private:
    std::vector<uint8_t> walls_;
};

// What the robot knows: log odds, and the distance to the nearest wall within some cells.
class Sheet {
public:
    Sheet() : odds_(SIDE * SIDE), near_(SIDE * SIDE, 8) {}
    void enter(const Pose& pose, const Scan& scan) {
        int x0 = int(pose.x / CELL), y0 = int(pose.y / CELL);
        for (int b = 0; b < BEAMS; b++) {
            double a = pose.turn + b * 6.2831853 / BEAMS, r = scan.range[b];
            int x1 = int((pose.x + r * std::cos(a)) / CELL), y1 = int((pose.y + r * std::sin(a)) / CELL);
            line(x0, y0, x1, y1);
            if (r < 7.9) add(x1, y1, 0.9f);
        }
    }
    // Distances again in the blocks where walls came or went.
    void spread() {
        for (int block : dirty_) {
            int bx = block % 64 * 12, by = block / 64 * 12;
            for (int y = std::max(by, 0); y < std::min(by + 12, SIDE); y++)
                for (int x = std::max(bx, 0); x < std::min(bx + 12, SIDE); x++) {
                    float best = 8;
                    for (int dy = -3; dy <= 3; dy++)
                        for (int dx = -3; dx <= 3; dx++)
                            if (x + dx >= 0 && y + dy >= 0 && x + dx < SIDE && y + dy < SIDE && odds_[(y + dy) * SIDE + x + dx] > 0.5f)
                                best = std::min(best, float(dx * dx + dy * dy));
                    near_[y * SIDE + x] = std::sqrt(best);
                }
        }
        dirty_.clear();
    }
    float near(double x, double y) const {
        int cx = int(x / CELL), cy = int(y / CELL);
        return cx < 0 || cy < 0 || cx >= SIDE || cy >= SIDE ? 8 : near_[cy * SIDE + cx];
    }
    float odds(int x, int y) const { return odds_[y * SIDE + x]; }
    bool passable(int x, int y) const { return odds_[y * SIDE + x] < -0.2f && near_[y * SIDE + x] > 2; }
    void forget(double by) {
        for (int i = row_; i < SIDE * SIDE; i += 97) odds_[i] *= float(1 - by);
        row_ = (row_ + 1) % 97;
    }

private:
    void add(int x, int y, float by) {
        if (x < 1 || y < 1 || x >= SIDE - 1 || y >= SIDE - 1) return;
        float& one = odds_[y * SIDE + x];
        bool before = one > 0.5f;
        one = std::clamp(one + by, -4.0f, 4.0f);
        if (before != (one > 0.5f)) dirty_.insert(y / 12 * 64 + x / 12);
    }
    void line(int x, int y, int x1, int y1) {
        int dx = std::abs(x1 - x), dy = -std::abs(y1 - y), sx = x < x1 ? 1 : -1, sy = y < y1 ? 1 : -1, error = dx + dy;
        while (x != x1 || y != y1) {
            add(x, y, -0.3f);
            int twice = 2 * error;
            if (twice >= dy) error += dy, x += sx;
            if (twice <= dx) error += dx, y += sy;
        }
    }
    std::vector<float> odds_, near_;
    std::unordered_set<int> dirty_;
    int row_ = 0;
};

// A corner seen in scans, with its covariance.
struct Mark {
    double x, y, pxx = 0.1, pxy = 0, pyy = 0.1;
    int seen = 1;
};

class Robot {
public:
    Robot() {
        real_ = guess_ = {3, 3, 0};
        for (int b = 0; b < BEAMS; b++) towards_.push_back({std::cos(b * 6.2831853 / BEAMS), std::sin(b * 6.2831853 / BEAMS)});
        cost_.resize(SIDE * SIDE), stamp_.resize(SIDE * SIDE), from_.resize(SIDE * SIDE);
    }
    void step() {
        drive();
        look();
        match();
        sheet_.enter(guess_, scan_);
        sheet_.spread();
        landmarks();
        if (step_ % 4 == 0) relax();
        if (way_.empty() || blocked()) decide();
        sheet_.forget(0.002);
        journal();
        step_++;
    }
    double sum() const { return guess_.x + guess_.y * 0.1 + double(marks_.size()) + double(text_.size() % 1000) + double(nodes_.size()); }

private:
    void drive() {
        double speed = 0, spin = 0.2;
        if (!way_.empty()) {
            auto [x, y] = way_.back();
            double dx = x - guess_.x, dy = y - guess_.y, off = std::remainder(std::atan2(dy, dx) - guess_.turn, 6.2831853);
            if (std::hypot(dx, dy) < 0.3) way_.pop_back();
            spin = std::clamp(off, -0.6, 0.6), speed = std::fabs(off) < 0.8 ? 0.25 : 0.02;
        }
        Pose next{real_.x + speed * std::cos(real_.turn), real_.y + speed * std::sin(real_.turn), real_.turn + spin};
        if (!hall_.wall(int(next.x / CELL), int(next.y / CELL)))
            real_ = next;
        else
            real_.turn = next.turn, way_.clear(), speed = 0;
        guess_.x += speed * std::cos(guess_.turn) + 0.01 * random_.normal(), guess_.y += speed * std::sin(guess_.turn) + 0.01 * random_.normal();
        guess_.turn += spin + 0.004 * random_.normal();
    }
    void look() {
        for (int b = 0; b < BEAMS; b++) scan_.range[b] = float(std::min(8.0, hall_.shoot(real_.x, real_.y, real_.turn + b * 6.2831853 / BEAMS) + 0.01 * random_.normal()));
    }
    double score(const Pose& pose) const {
        double sum = 0, c = std::cos(pose.turn), s = std::sin(pose.turn);
        for (const auto& [x, y] : ends_) sum += sheet_.near(pose.x + c * x - s * y, pose.y + s * x + c * y);
        return sum;
    }
    // The pose from which the scan fits the map, by a search that gets finer.
    void match() {
        ends_.clear();
        for (int b = 0; b < BEAMS; b += 2)
            if (scan_.range[b] < 7.5) ends_.push_back({scan_.range[b] * towards_[b].first, scan_.range[b] * towards_[b].second});
        if (step_ < 5) {
            guess_ = real_;
            return;
        }
        double step = 0.06, turn = 0.02, best = score(guess_);
        for (int round = 0; round < 12 && step > 0.004; round++) {
            Pose winner = guess_;
            for (int k = 0; k < 6; k++) {
                Pose one = guess_;
                (k < 2 ? one.x : k < 4 ? one.y : one.turn) += (k % 2 ? -1 : 1) * (k < 4 ? step : turn);
                double now = score(one);
                if (now < best) best = now, winner = one;
            }
            if (winner.x == guess_.x && winner.y == guess_.y && winner.turn == guess_.turn) step /= 2, turn /= 2;
            guess_ = winner;
        }
        if (std::hypot(guess_.x - real_.x, guess_.y - real_.y) > 0.7) guess_ = real_;  // a beacon puts it right
    }
    // Corners of the scan, each to the nearest known one, by Kalman updates.
    void landmarks() {
        for (int b = 2; b < BEAMS - 2; b++) {
            double bend = scan_.range[b - 2] + scan_.range[b + 2] - 2 * scan_.range[b];
            if (std::fabs(bend) < 0.5 || scan_.range[b] > 7.5) continue;
            double a = guess_.turn + b * 6.2831853 / BEAMS, x = guess_.x + scan_.range[b] * std::cos(a), y = guess_.y + scan_.range[b] * std::sin(a);
            int cx = int(std::floor(x)), cy = int(std::floor(y));
            Mark* nearest = nullptr;
            double least = 0.5;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) {
                    auto bin = bins_.find((cy + dy) * 4096 + cx + dx);
                    if (bin == bins_.end()) continue;
                    for (int i : bin->second) {
                        double d = std::hypot(marks_[i].x - x, marks_[i].y - y);
                        if (d < least) least = d, nearest = &marks_[i];
                    }
                }
            if (!nearest) {
                bins_[cy * 4096 + cx].push_back(int(marks_.size()));
                marks_.push_back({x, y});
                continue;
            }
            Mark& m = *nearest;
            double sxx = m.pxx + 0.02, syy = m.pyy + 0.02, sxy = m.pxy, det = sxx * syy - sxy * sxy;
            double ix = (syy * (x - m.x) - sxy * (y - m.y)) / det, iy = (sxx * (y - m.y) - sxy * (x - m.x)) / det;
            double kxx = (m.pxx * syy - m.pxy * sxy) / det, kyy = (m.pyy * sxx - m.pxy * sxy) / det;
            m.x += m.pxx * ix + m.pxy * iy, m.y += m.pxy * ix + m.pyy * iy;
            m.pxx = std::max(1e-4, m.pxx * (1 - kxx)), m.pyy = std::max(1e-4, m.pyy * (1 - kyy)), m.seen++;
        }
    }
    // A pose graph over the last nodes.
    void relax() {
        nodes_.push_back(guess_);
        if (nodes_.size() > 400) nodes_.erase(nodes_.begin(), nodes_.begin() + 100);
        size_t first = nodes_.size() > 120 ? nodes_.size() - 120 : 1;
        for (int round = 0; round < 8; round++) {
            double most = 0;
            for (size_t i = first; i + 1 < nodes_.size(); i++) {
                double dx = (nodes_[i - 1].x + nodes_[i + 1].x) / 2 - nodes_[i].x, dy = (nodes_[i - 1].y + nodes_[i + 1].y) / 2 - nodes_[i].y;
                nodes_[i].x += 0.02 * dx, nodes_[i].y += 0.02 * dy;
                most = std::max(most, std::fabs(dx) + std::fabs(dy));
            }
            if (most < 1e-3) break;
        }
    }
    bool blocked() const {
        for (size_t i = 0; i < way_.size(); i += 3)
            if (sheet_.odds(int(way_[i].first / CELL), int(way_[i].second / CELL)) > 0.5f) return true;
        return false;
    }
    // The way to the nearest edge of the unknown, or to a place that was not visited for long.
    void decide() {
        way_.clear();
        serial_++;
        int x0 = int(guess_.x / CELL), y0 = int(guess_.y / CELL), target = -1;
        int rx = 20 + int(random_.next() % (SIDE - 40)), ry = 20 + int(random_.next() % (SIDE - 40));
        std::priority_queue<std::pair<float, int>, std::vector<std::pair<float, int>>, std::greater<>> open;
        cost_[y0 * SIDE + x0] = 0, stamp_[y0 * SIDE + x0] = serial_, from_[y0 * SIDE + x0] = -1;
        open.push({0, y0 * SIDE + x0});
        int turns = 0;
        while (!open.empty() && turns++ < 9000) {
            auto [so_far, at] = open.top();
            open.pop();
            int x = at % SIDE, y = at / SIDE;
            bool edge = false;
            for (int k = 0; k < 8; k++) {
                static const int DX[8] = {1, -1, 0, 0, 1, 1, -1, -1}, DY[8] = {0, 0, 1, -1, 1, -1, 1, -1};
                int nx = x + DX[k], ny = y + DY[k], n = ny * SIDE + nx;
                if (nx < 1 || ny < 1 || nx >= SIDE - 1 || ny >= SIDE - 1) continue;
                edge |= std::fabs(sheet_.odds(nx, ny)) < 0.05f;
                if (!sheet_.passable(nx, ny) && so_far > 0.5f) continue;
                float cost = cost_[at] + (k < 4 ? 1.0f : 1.414f) + 2.0f / (sheet_.near(nx * CELL, ny * CELL) + 0.5f);
                if (stamp_[n] == serial_ && cost_[n] <= cost) continue;
                stamp_[n] = serial_, cost_[n] = cost, from_[n] = at;
                open.push({cost, n});
            }
            target = at;
            if ((edge && so_far > 20) || (std::abs(x - rx) < 4 && std::abs(y - ry) < 4)) break;
        }
        for (int at = target, i = 0; at >= 0; at = from_[at], i++)
            if (i % 3 == 0) way_.push_back({(at % SIDE + 0.5) * CELL, (at / SIDE + 0.5) * CELL});
        if (way_.size() > 25) way_.erase(way_.begin(), way_.end() - 25);
    }
    void journal() {
        if (text_.size() > 200'000) text_.clear();
        char line[128];
        text_.append(line, size_t(std::snprintf(line, sizeof line, "%ld %.2f %.2f %.3f way=%zu marks=%zu\n", step_, guess_.x, guess_.y, guess_.turn, way_.size(), marks_.size())));
    }
    Hall hall_;
    Sheet sheet_;
    Random random_;
    Pose real_, guess_;
    Scan scan_{};
    std::vector<std::pair<double, double>> ends_, way_, towards_;
    std::vector<Mark> marks_;
    std::unordered_map<int, std::vector<int>> bins_;
    std::vector<Pose> nodes_;
    std::vector<float> cost_;
    std::vector<int> stamp_, from_;
    std::string text_;
    int serial_ = 0;
    long step_ = 0;
};

int main(int argc, char** argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : 1L << 40;
    Robot robot;
    for (long i = 0; i < steps; i++) robot.step();
    std::printf("sum %.9f\n", robot.sum());
}
