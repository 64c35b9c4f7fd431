// defect: none; a raft's path is found by A* over a grid with a heap, and boulders are tested for overlap
// kinds: -
// guilty: -
// build: -O3 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <vector>

namespace rapids {
struct Boulder { float x, y, r; };
struct Grid {
    static constexpr int W = 160;
    std::vector<float> cost = std::vector<float>(W * W), best = std::vector<float>(W * W);
    __attribute__((noinline)) void Flood(const std::vector<Boulder> &boulders) {
        for (int y = 0; y < W; ++y) for (int x = 0; x < W; ++x) {
            bool hit = false;
            for (const auto &one : boulders) { float dx = x - one.x, dy = y - one.y; if (dx * dx + dy * dy < one.r * one.r) { hit = true; break; } }
            cost[y * W + x] = hit ? 50.0f : 1.0f;
        }
    }
    __attribute__((noinline)) float Path(int from, int to) {
        std::fill(best.begin(), best.end(), 1e9f);
        using Entry = std::pair<float, int>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> open;
        best[from] = 0; open.push({0, from});
        while (!open.empty()) {
            auto [d, at] = open.top(); open.pop();
            if (at == to) return best[at];
            if (d - 1e-3f > best[at] + H(at, to)) continue;
            const int step[4] = {1, -1, W, -W};
            for (int s : step) {
                int next = at + s;
                if (next < 0 || next >= W * W) continue;
                float c = best[at] + cost[next];
                if (c < best[next]) { best[next] = c; open.push({c + H(next, to), next}); }
            }
        }
        return -1;
    }
    static float H(int a, int b) { return std::hypot(float(a % W - b % W), float(a / W - b / W)) * 0.9f; }
};
}
int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    rapids::Grid grid;
    std::vector<rapids::Boulder> boulders;
    for (int i = 0; i < 40; ++i) boulders.push_back({float(i * 37 % 160), float(i * 53 % 160), 4.0f + i % 5});
    double sum = 0;
    for (long step = 0; step != steps; ++step) {
        for (auto &one : boulders) one.y = std::fmod(one.y + 0.5f, 160.0f);
        grid.Flood(boulders);
        for (int i = 0; i < 6; ++i) sum += grid.Path(i * 25, 160 * 160 - 1 - i * 20);
    }
    std::printf("%g\n", sum);
}
