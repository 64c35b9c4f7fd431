// defect: the watcher reads the status of all processes of the machine three times per round, for three figures
// kinds: kernel-files-read-again
// guilty: health::Field, health::Round, health::Memory, health::Threads, health::State
// build: -O2 -g
// options: --with syscalls
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <string>
#include <thread>
#include <vector>

namespace health {
__attribute__((noinline)) long Field(int pid, const char *name) {
    char path[64], line[256];
    std::snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = std::fopen(path, "r");
    if (!file) return 0;
    long value = 0;
    while (std::fgets(line, sizeof line, file)) if (!std::strncmp(line, name, std::strlen(name))) value = std::atol(line + std::strlen(name) + 1);
    std::fclose(file);
    return value;
}
std::vector<int> pids;
__attribute__((noinline)) long Round(bool each) {
    long sum = 0;
    for (int pid : pids) {
        sum += Field(pid, "VmRSS");
        if (each) { sum += Field(pid, "Threads"); sum += Field(pid, "VmSize"); sum += Field(pid, "VmPeak"); }
    }
    return sum;
}
}

int main(int argc, char **argv) {
    bool each = argc > 1 && !std::strcmp(argv[1], "slow");
    for (DIR *dir = opendir("/proc"); dirent *one = readdir(dir);) if (int pid = std::atoi(one->d_name)) if (health::pids.size() < 40) health::pids.push_back(pid);
    volatile long sum;
    for (;;) { sum = health::Round(each); std::this_thread::sleep_for(std::chrono::milliseconds(10)); }
}
