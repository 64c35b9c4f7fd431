// defect: each of four robots, a process each, reads and parses the same map by itself
// kinds: file-read-again
// guilty: fleet::ReadMap, fleet::Robot
// build: -O2 -g
// options: --with syscalls
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace fleet {
const char *kMap = "/dev/shm/stepscope_fleet_map.txt";
__attribute__((noinline)) std::vector<int> ReadMap() {
    std::vector<int> cells;
    FILE *file = std::fopen(kMap, "r");
    char line[128];
    while (std::fgets(line, sizeof line, file)) cells.push_back(std::atoi(line));
    std::fclose(file);
    return cells;
}
__attribute__((noinline)) void Robot(const std::vector<int> &cells, int number) {
    volatile double cost = 0;
    for (long at = number;; ++at) { for (int i = 0; i < 5000; ++i) cost = cost + std::sin(cells[(at * 17 + i) % cells.size()]); usleep(2000); }
}
}

int main(int argc, char **argv) {
    bool each = argc > 1 && !std::strcmp(argv[1], "slow");
    FILE *file = std::fopen(fleet::kMap, "w");
    for (int i = 0; i < 600000; ++i) std::fprintf(file, "%d\n", i % 5347 * 7919 % 255);
    std::fclose(file);
    std::vector<int> shared;
    if (!each) shared = fleet::ReadMap();
    for (int i = 0; i < 4; ++i)
        if (fork() == 0) fleet::Robot(each ? fleet::ReadMap() : shared, i);
    while (wait(nullptr) > 0) {}
}
