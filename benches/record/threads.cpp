// The program that recorders are measured on: threads that work in steps, 60 calls deep, and wait for each other after
// each, like a simulator's workers. The work is a fixed amount, so that what it takes beyond the bare run is the
// recorder's doing.
//
// usage: threads THREADS STEPS
#include <pthread.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

// Somewhat under a millisecond of arithmetic on memory that fits the first cache.
static NOINLINE std::uint64_t integrate(std::uint64_t x, std::uint64_t* bodies) {
  for (int round = 0; round < 350; ++round) {
    for (int i = 0; i < 1024; ++i) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      bodies[i] += x;
    }
  }
  return x + bodies[x & 1023];
}

// Two ways down at each level of the upper half: many different stacks, as real programs have.
template <int Level>
NOINLINE std::uint64_t left(std::uint64_t x, std::uint64_t* bodies);
template <int Level>
NOINLINE std::uint64_t right(std::uint64_t x, std::uint64_t* bodies);

template <int Level>
static inline std::uint64_t down(std::uint64_t x, std::uint64_t* bodies) {
  if constexpr (Level == 0) {
    return integrate(x, bodies);
  } else {
    volatile std::uint64_t kept[12] = {x, x + 1};
    const bool turn = Level % 8 == 0 && (x >> Level) & 1;
    const std::uint64_t result = turn ? right<Level - 1>(x + kept[1], bodies) : left<Level - 1>(x + kept[0], bodies);
    return result + kept[0];
  }
}
template <int Level>
NOINLINE std::uint64_t left(std::uint64_t x, std::uint64_t* bodies) { return down<Level>(x, bodies) + 1; }
template <int Level>
NOINLINE std::uint64_t right(std::uint64_t x, std::uint64_t* bodies) { return down<Level>(x, bodies) + 2; }

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: threads THREADS STEPS\n"), 2;
  const int count = std::atoi(argv[1]), steps = std::atoi(argv[2]);
  pthread_barrier_t step_end;
  pthread_barrier_init(&step_end, nullptr, count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([i, steps, &step_end] {
      std::uint64_t bodies[1024] = {}, x = 88172645463325252ULL + i;
      for (int step = 0; step < steps; ++step) {
        x = left<55>(x, bodies);
        pthread_barrier_wait(&step_end);
      }
      asm volatile("" : : "r"(x));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}
