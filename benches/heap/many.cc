// Allocates very often: seven of eight blocks are freed at once, the others live for a while. Some 2,000 stacks of 26 frames.
#include <cstdio>
#include <cstdlib>

#define NOINLINE __attribute__((noinline))

static void *kept[4096];
static unsigned long state = 88172645463325252ul;
static long count = 0;

static inline unsigned long choice() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

NOINLINE void work(int allocations) {
    for (int i = 0; i < allocations; i++) {
        unsigned long chosen = choice();
        size_t size = 16 + (chosen & 511);
        if (chosen & (7ul << 20)) {
            void *temporary = malloc(size);
            *(volatile char *)temporary = 1;
            free(temporary);
        } else {
            void *&slot = kept[(chosen >> 32) & 4095];
            free(slot);
            slot = malloc(size);
        }
        count++;
    }
}

template <int Depth, int Way> NOINLINE void below(int allocations, unsigned path) {
    volatile char room[16];
    room[0] = (char)allocations;
    if constexpr (Depth == 0)
        work(allocations);
    else if (path & 1)
        below<Depth - 1, Way>(allocations, path >> 1);
    else
        below<Depth - 1, 1 - Way>(allocations, path >> 1);
    asm volatile("" ::: "memory");
}

int main(int, char **arguments) {
    long most = atol(arguments[1]);
    while (count < most)
        below<24, 0>(50, (unsigned)(choice() & 1023));
    printf("%ld allocations\n", count);
}
