/* Threads that share cache lines in a known way: see tests/sharing.rs. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 2 };

struct packed { volatile long count; };
struct padded { volatile long count; char rest[120]; };

_Alignas(64) struct packed packed_counters[8];
_Alignas(64) struct padded padded_counters[THREADS];
_Alignas(64) atomic_long one_counter;
_Alignas(64) volatile long published;

static const char *mode;
static atomic_int ends;

static void count_packed(long thread) {
    while (!ends)
        for (int i = 0; i < 1000; i++) packed_counters[thread].count++;
}

static void count_padded(long thread) {
    while (!ends)
        for (int i = 0; i < 1000; i++) padded_counters[thread].count++;
}

static void count_together(void) {
    while (!ends)
        for (int i = 0; i < 1000; i++) atomic_fetch_add(&one_counter, 1);
}

static void publish(void) {
    while (!ends)
        for (int i = 0; i < 1000; i++) published = i;
}

static void follow(void) {
    long sum = 0;
    while (!ends)
        for (int i = 0; i < 1000; i++) sum += published;
    packed_counters[7].count = sum;
}

static void *work(void *argument) {
    long thread = (long)argument;
    if (!strcmp(mode, "packed")) count_packed(thread);
    else if (!strcmp(mode, "padded")) count_padded(thread);
    else if (!strcmp(mode, "atomic")) count_together();
    else if (thread == 0) publish();
    else follow();
    return NULL;
}

int main(int count, char **arguments) {
    mode = count > 1 ? arguments[1] : "packed";
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    struct timespec end = {1, 0};
    nanosleep(&end, NULL);
    ends = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
