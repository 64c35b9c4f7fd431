// Half of the CPU time is that of short threads, one after the other; the other half is that of the main thread.
// Arguments: CPU time of each thread in microseconds, and of all threads in milliseconds. Prints both halves in ns.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "work.h"

NOINLINE void in_thread(int64_t ns) { BURN(ns); }
NOINLINE void in_main(int64_t ns) { BURN(ns); }

int main(int, char** arguments) {
  const int64_t each_ns = std::atoll(arguments[1]) * 1000;
  const int64_t all_ns = std::atoll(arguments[2]) * 1000000;
  int64_t threads_ns = 0, main_ns = 0;
  while (threads_ns < all_ns) {
    std::thread thread([&] {
      in_thread(each_ns);
      threads_ns += thread_cpu_ns();
    });
    const int64_t before = thread_cpu_ns();
    in_main(each_ns);
    main_ns += thread_cpu_ns() - before;
    thread.join();
  }
  std::printf("%lld %lld\n", static_cast<long long>(threads_ns), static_cast<long long>(main_ns));
}
