// Work that knows what it costs: every function burns a given amount of its thread's CPU time.
#pragma once
#include <stdint.h>
#include <time.h>
#ifdef __cplusplus
#include <cstdint>
#include <ctime>
#endif

static inline int64_t thread_cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline int64_t wall_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// About 20 us of arithmetic between two looks at a clock, so that the clock is a small part of the work. A macro, so
// that the function that burns is the function that is sampled.
#define BURN_WHILE(condition)                                                 \
  do {                                                                        \
    uint64_t x = 88172645463325252ULL;                                        \
    for (int i = 0; i < 20000; ++i) {                                         \
      x ^= x << 13;                                                           \
      x ^= x >> 7;                                                            \
      x ^= x << 17;                                                           \
    }                                                                         \
    __asm__ volatile("" : : "r"(x));                                          \
  } while (condition)

#define BURN(ns)                                                              \
  do {                                                                        \
    const int64_t burn_until = thread_cpu_ns() + (ns);                        \
    BURN_WHILE(thread_cpu_ns() < burn_until);                                 \
  } while (0)

#define NOINLINE __attribute__((noinline, noclone))
// Keeps a call from becoming a jump, which no stack can show.
#define KEEP_FRAME() __asm__ volatile("" : : : "memory")
