// defect: the visited set of the search is made again in each step, node by node
// kinds: allocations-each-step
// guilty: Planner::plan
// build: -O2
#include <cmath>
#include <cstring>
#include <queue>
#include <unordered_set>
#include <vector>

struct Planner {
    bool fresh;
    std::vector<int> stamp = std::vector<int>(200 * 200);
    int round = 0;
    __attribute__((noinline)) double plan(int start) {
        ++round;
        std::unordered_set<int> visited;
        std::vector<int> open{start};
        double cost = 0;
        for (std::size_t at = 0; at < open.size() && open.size() < 1500; ++at) {
            for (int step : {1, -1, 200, -200}) {
                int next = (open[at] + step + 40000) % 40000;
                bool is_new = fresh ? visited.insert(next).second : stamp[next] != round;
                stamp[next] = round;
                if (is_new) open.push_back(next);
            }
            for (int i = 0; i < 12; ++i) cost += std::sin(open[at] + i);
        }
        return cost;
    }
};

int main(int argc, char **argv) {
    Planner planner;
    planner.fresh = argc > 1 && !std::strcmp(argv[1], "slow");
    volatile double sink;
    for (int start = 0;; ++start) sink = planner.plan(start * 7 % 40000);
}
