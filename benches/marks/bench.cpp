// What a mark costs the program that makes it, in nanoseconds, beside an empty loop and the reading of the time.
//
// The program is its own recorder: it raises the flag in its segment and, between batches that fit into a ring and
// outside of what is timed, says that everything was read. Each figure is the median over batches.
#include "stepscope.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include <dlfcn.h>

extern "C" void loop_compiled_out(long times);

extern "C" __attribute__((noinline)) void loop_empty(long times) {
  for (long i = 0; i < times; i++) asm volatile("" ::: "memory");
}

extern "C" __attribute__((noinline)) void loop_scope(long times) {
  for (long i = 0; i < times; i++) {
    STEPSCOPE_SCOPE("scope");
    asm volatile("" ::: "memory");
  }
}

extern "C" __attribute__((noinline)) void loop_clock(long times) {
  for (long i = 0; i < times; i++) {
    uint64_t now = stepscope_now_();
    asm volatile("" ::"r"(now) : "memory");
  }
}

extern "C" __attribute__((noinline)) void loop_step(long times) {
  for (long i = 0; i < times; i++) STEPSCOPE_STEP(static_cast<double>(i) * 0.001);
}

extern "C" __attribute__((noinline)) void loop_counter(long times) {
  for (long i = 0; i < times; i++) STEPSCOPE_COUNTER("counter", i);
}

extern "C" __attribute__((noinline)) void loop_named(long times) {
  for (long i = 0; i < times; i++) {
    STEPSCOPE_SCOPE_NAMED("name found while running");
    asm volatile("" ::: "memory");
  }
}

static const long BATCH = 20000;

static void everything_was_read() {
  stepscope_entry_ *entry = stepscope_thread_v1_.entry;
  if (entry) entry->tail_again = entry->tail = entry->head;
}

static void nothing() {}

static double median_ns(void (*loop)(long), void (*between)(), int batches) {
  std::vector<double> times;
  for (int i = 0; i < batches + 3; i++) {
    between();
    uint64_t started = stepscope_monotonic_ns_();
    loop(BATCH);
    uint64_t took = stepscope_monotonic_ns_() - started;
    // The first rounds touch memory for the first time.
    if (i >= 3) times.push_back(static_cast<double>(took) / BATCH);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

static void row(const char *what, double ns, double empty_ns, double clock_ns, int readings) {
  std::printf("%-34s %8.2f %8.1fx", what, ns, ns / empty_ns);
  // What is faster than the clock does not read it.
  if (readings && ns > readings * clock_ns) std::printf(" %12.2f", ns - readings * clock_ns);
  std::printf("\n");
}

typedef void (*set_recording)(int);
typedef void (*loop_of)(long);

int main(int count, char **arguments) {
  const int batches = 400;
  // The first mark makes the segment.
  loop_scope(1);
  double empty_ns = median_ns(loop_empty, nothing, batches);
  double clock_ns = median_ns(loop_clock, nothing, batches);
  std::printf("%-34s %8s %9s %12s\n", "", "ns", "to empty", "ns w/o clock");
  row("empty loop", empty_ns, empty_ns, clock_ns, 0);
  row("reading the clock once", clock_ns, empty_ns, clock_ns, 0);
  row("scope, compiled out", median_ns(loop_compiled_out, nothing, batches), empty_ns, clock_ns, 0);
  row("scope, nobody records", median_ns(loop_scope, nothing, batches), empty_ns, clock_ns, 0);
  row("step, nobody records", median_ns(loop_step, nothing, batches), empty_ns, clock_ns, 0);
  if (stepscope_state_v1_.segment) {
    stepscope_state_v1_.segment->beat_ns = stepscope_monotonic_ns_();
    stepscope_state_v1_.segment->recording = 1;
    loop_scope(40000); // Takes the whole ring's memory.
    row("scope, recorded", median_ns(loop_scope, everything_was_read, batches), empty_ns, clock_ns, 2);
    row("step, recorded", median_ns(loop_step, everything_was_read, batches), empty_ns, clock_ns, 1);
    row("counter, recorded", median_ns(loop_counter, everything_was_read, batches), empty_ns, clock_ns, 1);
    row("scope named while running", median_ns(loop_named, everything_was_read, batches), empty_ns, clock_ns, 2);
    row("scope, recorded, ring full", median_ns(loop_scope, nothing, batches), empty_ns, clock_ns, 2);
    stepscope_state_v1_.segment->recording = 0;
  }
  for (int i = 1; i + 1 < count; i += 2) {
    void *library = dlopen(arguments[i + 1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      std::fprintf(stderr, "%s\n", dlerror());
      continue;
    }
    loop_of loop = reinterpret_cast<loop_of>(dlsym(library, "loop"));
    void (*between)() = reinterpret_cast<void (*)()>(dlsym(library, "between"));
    row(arguments[i], median_ns(loop, between ? between : nothing, batches), empty_ns, clock_ns, 2);
  }
  return 0;
}
