// A program whose profile is known by construction. Each case prints lines `truth FUNCTION NANOSECONDS`: the CPU time that
// the function and its callees used, by the thread's own clock. Each process prints `truth total NANOSECONDS`.
//
// usage: truth CASE [PLUGIN | PERIOD]
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

namespace {

const std::int64_t MS = 1000000;

// Measures and prints the cost of a call.
#define TRUTH(function, call)                                                                           \
  do {                                                                                                  \
    const std::int64_t before = thread_cpu_ns();                                                        \
    call;                                                                                               \
    std::printf("truth %s %lld\n", function, static_cast<long long>(thread_cpu_ns() - before));         \
  } while (0)

}  // namespace

// The CPU time of this process, by its own clock. A recording on a busy machine also has the time that the hypervisor and
// interrupts took from it.
static void print_total() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  std::printf("truth total %lld\n", used.tv_sec * 1000000000LL + used.tv_nsec);
  std::fflush(stdout);
}

// Shares: 50, 30, 15 and 5 percent.
NOINLINE void fifty() { BURN(500 * MS); KEEP_FRAME(); }
NOINLINE void thirty() { BURN(300 * MS); KEEP_FRAME(); }
NOINLINE void fifteen() { BURN(150 * MS); KEEP_FRAME(); }
NOINLINE void five() { BURN(50 * MS); KEEP_FRAME(); }

// A paced loop: each step starts at a multiple of the period, and its parts have the same place in every step. It lasts
// for a CPU time, so that a busy machine leaves as many samples; steps that a preemption has missed are skipped.
NOINLINE void early(std::int64_t until_ns) { BURN_WHILE(wall_ns() < until_ns); KEEP_FRAME(); }
NOINLINE void late(std::int64_t until_ns) { BURN_WHILE(wall_ns() < until_ns); KEEP_FRAME(); }
void paced(std::int64_t period_ns) {
  std::int64_t cost[2] = {0, 0};
  const std::int64_t start = wall_ns(), cpu_end = thread_cpu_ns() + 1200 * MS;
  for (std::int64_t before = 0; (before = thread_cpu_ns()) < cpu_end;) {
    const std::int64_t now = wall_ns(), step = now - (now - start) % period_ns;
    early(step + period_ns * 3 / 10);
    const std::int64_t between = thread_cpu_ns();
    late(step + period_ns);
    cost[0] += between - before;
    cost[1] += thread_cpu_ns() - between;
  }
  std::printf("truth early %lld\ntruth late %lld\n", static_cast<long long>(cost[0]), static_cast<long long>(cost[1]));
}

// A hot leaf without a prologue, called from two places: frame pointers lose the caller. It takes no clock: its
// callers do, around many calls.
NOINLINE std::uint64_t hot_leaf(std::uint64_t x, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}
NOINLINE void leaf_often() {
  std::uint64_t x = 88172645463325252ULL;
  for (const std::int64_t until = thread_cpu_ns() + 300 * MS; thread_cpu_ns() < until;) x = hot_leaf(x, 50000);
  asm volatile("" : : "r"(x));
}
NOINLINE void leaf_seldom() {
  std::uint64_t x = 88172645463325252ULL;
  for (const std::int64_t until = thread_cpu_ns() + 100 * MS; thread_cpu_ns() < until;) x = hot_leaf(x, 50000);
  asm volatile("" : : "r"(x));
}

// A callback called by the C library.
NOINLINE int slow_compare(const void* a, const void* b) {
  const std::uint64_t x = hot_leaf(*static_cast<const int*>(a) + 1, 2000);
  asm volatile("" : : "r"(x));
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
NOINLINE void sorting() {
  std::vector<int> values(3000);
  for (const std::int64_t until = thread_cpu_ns() + 300 * MS; thread_cpu_ns() < until;) {
    std::uint64_t x = 88172645463325252ULL;
    for (int& value : values) value = static_cast<int>((x = hot_leaf(x, 1)) & 0xffff);
    std::qsort(values.data(), values.size(), sizeof(int), slow_compare);
  }
}

// Deep recursion with frames of about 300 bytes: 90 KB of stack.
NOINLINE int recurse(int depth, volatile char* up) {
  volatile char frame[256];
  frame[0] = up ? up[0] : 1;
  if (depth == 0) {
    BURN(3 * MS);
    return frame[0];
  }
  const int result = recurse(depth - 1, frame);
  KEEP_FRAME();
  return result + frame[0];
}
NOINLINE void deep() {
  for (int i = 0; i < 100; ++i) recurse(300, nullptr);
}

// A frame larger than any stack copy that fits a sample comfortably.
NOINLINE void under_big_frame() { BURN(300 * MS); KEEP_FRAME(); }
NOINLINE void big_frame() {
  volatile char frame[40 * 1024];
  frame[0] = 1;
  under_big_frame();
  frame[40 * 1024 - 1] = frame[0];
}

// The same, but the program has moved on when the recorder reads the stack beyond the copy: another call has left its
// return address at the same place.
NOINLINE void under_large_frame(std::int64_t ns) { BURN(ns); KEEP_FRAME(); }
NOINLINE void large_frame(std::int64_t ns) {
  volatile char frame[40 * 1024];
  frame[0] = 1;
  under_large_frame(ns);
  frame[40 * 1024 - 1] = frame[0];
}
NOINLINE void resting_frame() {
  volatile char frame[40 * 1024];
  frame[0] = 1;
  usleep(15000);
  frame[40 * 1024 - 1] = frame[0];
}
NOINLINE void works(std::int64_t ns) { large_frame(ns); KEEP_FRAME(); }
NOINLINE void rests() { resting_frame(); KEEP_FRAME(); }
void works_and_rests() {
  std::int64_t cost = 0;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t before = thread_cpu_ns();
    works((i == 0 ? 120 : 3) * MS);
    cost += thread_cpu_ns() - before;
    rests();
  }
  std::printf("truth works %lld\n", static_cast<long long>(cost));
}

// A frame that is aligned more than the stack is, and of changing size: its tables need expressions that read memory.
NOINLINE void under_realigned(volatile double* values) { values[0] = 1; BURN(3 * MS); KEEP_FRAME(); }
NOINLINE double realigned(long count) {
  alignas(64) volatile double own[8];
  volatile double* more = static_cast<volatile double*>(__builtin_alloca(count * sizeof(double)));
  under_realigned(own);
  more[0] = own[0];
  return more[0] + own[7];
}
NOINLINE void realigns() {
  for (int i = 0; i < 100; ++i) realigned(i + 1);
  KEEP_FRAME();
}

// An inlined function.
static inline __attribute__((always_inline)) void inlined_work() { BURN(300 * MS); }
NOINLINE void inlines() { inlined_work(); KEEP_FRAME(); }

// A plugin, closed before the end.
NOINLINE void plugs(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW);
  if (!plugin) std::exit(3);
  reinterpret_cast<void (*)(std::int64_t)>(dlsym(plugin, "plugin_work"))(300 * MS);
  dlclose(plugin);
}

// Many threads.
NOINLINE void crowd_work() { BURN(4 * MS); KEEP_FRAME(); }
std::int64_t crowd() {
  std::vector<std::thread> threads;
  std::int64_t total = 0;
  static std::int64_t each[200];
  for (int i = 0; i < 200; ++i) {
    threads.emplace_back([i] {
      const std::int64_t before = thread_cpu_ns();
      crowd_work();
      each[i] = thread_cpu_ns() - before;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::int64_t ns : each) total += ns;
  return total;
}

// Threads that live about as long as a sampling period, or less.
NOINLINE void brief_work() { BURN(1 * MS); KEEP_FRAME(); }
std::int64_t brief() {
  std::int64_t total = 0;
  for (int i = 0; i < 400; ++i) {
    std::thread([&total] {
      const std::int64_t before = thread_cpu_ns();
      brief_work();
      total += thread_cpu_ns() - before;
    }).join();
  }
  return total;
}

// Children: forked, and forked and executed.
NOINLINE void forked_work() { BURN(200 * MS); KEEP_FRAME(); }
NOINLINE void executed_work() { BURN(200 * MS); KEEP_FRAME(); }
void children(const char* self) {
  std::fflush(stdout);
  if (fork() == 0) {
    TRUTH("forked_work", forked_work());
    print_total();
    _exit(0);
  }
  wait(nullptr);
  if (fork() == 0) {
    execl(self, self, "executed", nullptr);
    _exit(1);
  }
  wait(nullptr);
}

// Generated code, named by a perf map: counts a register down. It has no unwind tables and no frame.
NOINLINE void calls_generated(void (*code)(std::uint64_t)) {
  for (const std::int64_t until = thread_cpu_ns() + 300 * MS; thread_cpu_ns() < until;) code(100000);
}
void generated() {
  // 1: dec %rdi; jnz 1b; ret
  static const unsigned char bytes[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(page, bytes, sizeof bytes);
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  if (FILE* map = std::fopen(path.c_str(), "w")) {
    std::fprintf(map, "%llx %zx generated_loop\n", reinterpret_cast<unsigned long long>(page), sizeof bytes);
    std::fclose(map);
  }
  TRUTH("calls_generated", calls_generated(reinterpret_cast<void (*)(std::uint64_t)>(page)));
}

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  if (which == "shares") {
    TRUTH("fifty", fifty());
    TRUTH("thirty", thirty());
    TRUTH("fifteen", fifteen());
    TRUTH("five", five());
  } else if (which == "paced" && argc > 2) {
    paced(std::atoll(argv[2]));
  } else if (which == "leaf") {
    TRUTH("leaf_often", leaf_often());
    TRUTH("leaf_seldom", leaf_seldom());
  } else if (which == "callback") {
    TRUTH("sorting", sorting());
  } else if (which == "recursion") {
    TRUTH("deep", deep());
  } else if (which == "big-frame") {
    TRUTH("big_frame", big_frame());
  } else if (which == "moved-on") {
    works_and_rests();
  } else if (which == "realigned") {
    TRUTH("realigns", realigns());
  } else if (which == "inlined") {
    TRUTH("inlines", inlines());
  } else if (which == "plugin") {
    TRUTH("plugs", plugs(argv[2]));
  } else if (which == "crowd") {
    std::printf("truth crowd_work %lld\n", static_cast<long long>(crowd()));
  } else if (which == "brief") {
    std::printf("truth brief_work %lld\n", static_cast<long long>(brief()));
    TRUTH("fifty", fifty());
  } else if (which == "children") {
    children(argv[0]);
  } else if (which == "executed") {
    TRUTH("executed_work", executed_work());
  } else if (which == "generated") {
    generated();
  } else {
    std::fprintf(stderr, "usage: truth CASE [PLUGIN | PERIOD]\n");
    return 2;
  }
  print_total();
  return 0;
}
