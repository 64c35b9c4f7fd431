// Allocates very often, in several threads: seven of eight blocks are freed at once, the others live for a while, some of them until another
// thread frees them. Some 2,000 stacks of 26 frames. Prints what it did: allocations, their bytes, blocks freed at once, and its largest RSS.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline))

// Blocks that live for a while. A thread puts one in, and frees what was there.
static std::atomic<void *> kept[65536];

struct Worker {
    unsigned long state;
    long most;
    long count = 0, bytes = 0, temporary = 0;

    unsigned long choice() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }

    NOINLINE void work(int allocations) {
        for (int i = 0; i < allocations && count < most; i++) {
            unsigned long chosen = choice();
            size_t size = 16 + (chosen & 511);
            count++;
            bytes += size;
            void *block = malloc(size);
            *(volatile char *)block = 1;
            if (chosen & (7ul << 20)) {
                free(block);
                temporary++;
            } else {
                free(kept[(chosen >> 32) & 65535].exchange(block));
            }
        }
    }
};

template <int Depth, int Way> NOINLINE void below(Worker &worker, int allocations, unsigned path) {
    volatile char room[16];
    room[0] = (char)allocations;
    if constexpr (Depth == 0)
        worker.work(allocations);
    else if (path & 1)
        below<Depth - 1, Way>(worker, allocations, path >> 1);
    else
        below<Depth - 1, 1 - Way>(worker, allocations, path >> 1);
    asm volatile("" ::: "memory");
}

static long largest_rss_kib() {
    char line[256];
    long found = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld", &found);
    return found;
}

int main(int, char **arguments) {
    long most = atol(arguments[1]);
    int threads = atoi(arguments[2]);
    std::vector<Worker> workers;
    for (int i = 0; i < threads; i++)
        workers.push_back({88172645463325252ul + i * 7919ul, most / threads + (i < most % threads)});
    std::vector<std::thread> running;
    for (Worker &worker : workers)
        running.emplace_back([&worker] {
            while (worker.count < worker.most)
                below<24, 0>(worker, 50, (unsigned)(worker.choice() & 1023));
        });
    for (std::thread &thread : running)
        thread.join();
    long count = 0, bytes = 0, temporary = 0;
    for (const Worker &worker : workers)
        count += worker.count, bytes += worker.bytes, temporary += worker.temporary;
    printf("calls %ld bytes %ld temporary %ld rss_kib %ld\n", count, bytes, temporary, largest_rss_kib());
}
