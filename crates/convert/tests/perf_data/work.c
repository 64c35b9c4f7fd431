/* Busy in its own code by frame pointers and by tables, in an inlined function, in the C library and in the kernel. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <pthread.h>

volatile long sink;

__attribute__((noinline)) long burn(long turns) {
    long sum = 0;
    for (long i = 0; i < turns; i++) sum += i * i ^ sum;
    sink += sum;
    return sum;
}

static inline __attribute__((always_inline)) long burn_inlined(long turns) {
    long sum = 0;
    for (long i = 0; i < turns; i++) sum += i % 7;
    return sum;
}

__attribute__((noinline)) long around_inlined(long turns) {
    long sum = burn_inlined(turns);
    sink += sum;
    return sum;
}

__attribute__((noinline)) long descend(int depth, long turns) {
    if (depth == 0) return burn(turns) + 1;
    return descend(depth - 1, turns) + 1;
}

__attribute__((noinline)) void fault(void) {
    char *pages = mmap(0, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1 << 22; i += 4096) pages[i] = 1;
    munmap(pages, 1 << 22);
}

void *work(void *turns) {
    for (long i = 0; i < (long)turns; i++) {
        descend(20, 1000000);
        usleep(1000);
    }
    return 0;
}

int main(void) {
    pthread_t worker;
    pthread_create(&worker, 0, work, (void *)60L);
    for (int i = 0; i < 60; i++) {
        descend(5, 1000000);
        around_inlined(500000);
        fault();
    }
    pthread_join(worker, 0);
    if (fork() == 0) {
        descend(3, 50000000);
        execlp("sh", "sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done", (char *)0);
    }
    wait(0);
    return 0;
}
