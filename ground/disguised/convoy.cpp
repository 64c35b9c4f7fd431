// defect: each of three lorries, a process each, looks 5,000 times a second whether the leader has moved
// kinds: polling
// guilty: convoy::Follow
// build: -O2 -g
#include <atomic>
#include <cmath>
#include <cstring>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace convoy {
struct Road { std::atomic<int> moved{0}; };
__attribute__((noinline)) void Follow(Road &road, bool looks) {
    int seen = 0;
    volatile double at = 0;
    for (;;) {
        if (looks) while (road.moved.load() == seen) usleep(150);
        else syscall(SYS_futex, &road.moved, FUTEX_WAIT, seen, nullptr, nullptr, 0);
        seen = road.moved.load();
        for (int i = 0; i < 2000; ++i) at = at + std::sin(at + i);
    }
}
__attribute__((noinline)) void Lead(Road &road) {
    volatile double at = 0;
    for (;;) {
        for (int i = 0; i < 20000; ++i) at = at + std::sin(at + i);
        ++road.moved;
        syscall(SYS_futex, &road.moved, FUTEX_WAKE, 3, nullptr, nullptr, 0);
        usleep(20000);
    }
}
}

int main(int argc, char **argv) {
    void *shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *road = new (shared) convoy::Road;
    for (int i = 0; i < 3; ++i) if (fork() == 0) convoy::Follow(*road, argc > 1 && !std::strcmp(argv[1], "slow"));
    convoy::Lead(*road);
}
