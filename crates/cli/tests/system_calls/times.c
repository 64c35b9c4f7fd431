// Waits of known lengths: of 1,000 at one place, 961 of 0.2 ms, 34 of 3 ms and 5 of 12 ms, so the 990th is of 3 ms. It prints that one in ns, as its own
// clock has it. Then 20,000 calls that wait for nothing.
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAITS = 1000 };

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

__attribute__((noinline)) static void nap(long us) {
    struct timespec time = {0, us * 1000};
    nanosleep(&time, NULL);
}

static int by_length(const void *one, const void *other) {
    long difference = *(const long *)one - *(const long *)other;
    return (difference > 0) - (difference < 0);
}

int main(void) {
    static long waits[WAITS];
    for (int wait = 0; wait < WAITS; wait++) {
        long start = now();
        nap(wait % 200 == 0 ? 12000 : wait % 29 == 0 ? 3000 : 200);
        waits[wait] = now() - start;
    }
    qsort(waits, WAITS, sizeof *waits, by_length);
    printf("%ld\n", waits[WAITS * 99 / 100 - 1]);
    for (int call = 0; call < 20000; call++) syscall(SYS_getppid);
    return 0;
}
