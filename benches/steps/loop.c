// A loop that calls a step function a given number of times, each with some 100 microseconds of work. Prints the time that
// the loop took, in ns.
//
// usage: loop STEPS
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long work;

static unsigned long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ul + time.tv_nsec;
}

#ifdef PUSHES
// Begins with a push: the kernel emulates it.
__attribute__((noinline)) void step(unsigned long number) {
  volatile unsigned long kept[64];
  for (unsigned round = 0; round < 700; ++round) {
    for (unsigned i = 0; i < 64; ++i) kept[i] = number + i;
    for (unsigned i = 0; i < 64; ++i) work += kept[i];
  }
  printf("%s", number == ~0ul ? "" : "");
}
#else
// Begins with anything else: the kernel executes it out of line, one instruction at a time.
__attribute__((noinline)) void step(unsigned long number) {
  for (unsigned i = 0; i < 35000; ++i) work += number + i;
}
#endif

int main(int argc, char** argv) {
  const unsigned long steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
  const unsigned long start = now_ns();
  for (unsigned long number = 0; number < steps; ++number) step(number);
  fprintf(stderr, "loop_ns=%lu\n", now_ns() - start);
  return 0;
}
