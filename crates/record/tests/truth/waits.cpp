// A program whose waits are known by construction. At its end, each thread prints `thread NAME NOW RUNNING RUNNABLE OFF`:
// the time (CLOCK_MONOTONIC), and the nanoseconds until then that it was running (its CPU clock), runnable (the kernel's
// account; 0 if there is none), and in calls that wait.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

namespace {

const std::int64_t MS = 1000000;

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

std::int64_t run_delay_ns() {
  std::ifstream stat("/proc/thread-self/schedstat");
  std::int64_t running = 0, delay = 0;
  stat >> running >> delay;
  return delay;
}

// Time in a call.
std::int64_t timed(const std::function<void()>& call) {
  const std::int64_t before = now_ns();
  call();
  return now_ns() - before;
}

// Reads all clocks at one moment: again, if the thread was interrupted in between.
void print_times(const char* name, std::int64_t off) {
  std::int64_t now = 0, running = 0, delay = 0;
  for (int i = 0; i < 100; ++i) {
    now = now_ns();
    running = thread_cpu_ns();
    delay = run_delay_ns();
    if (now_ns() - now < 200000) break;
  }
  std::printf("thread %s %lld %lld %lld %lld\n", name, static_cast<long long>(now), static_cast<long long>(running),
              static_cast<long long>(delay), static_cast<long long>(off));
  std::fflush(stdout);
}

std::thread measured(const char* name, std::function<std::int64_t()> life) {
  return std::thread([name, life] {
    pthread_setname_np(pthread_self(), name);
    print_times(name, life());
  });
}

void pin_to_first() {
  cpu_set_t one;
  CPU_ZERO(&one);
  sched_getaffinity(0, sizeof one, &one);
  int first = 0;
  while (!CPU_ISSET(first, &one)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  sched_setaffinity(0, sizeof one, &one);
}

std::mutex contended;

}  // namespace

NOINLINE std::int64_t sleeps() {
  std::int64_t off = 0;
  for (int i = 0; i < 15; ++i) {
    off += timed([] { usleep(30000); });
    BURN(5 * MS);
  }
  return off;
}

NOINLINE std::int64_t holds() {
  std::int64_t off = 0;
  for (int i = 0; i < 8; ++i) {
    std::unique_lock<std::mutex> lock(contended);
    off += timed([] { usleep(50000); });
    lock.unlock();
    BURN(3 * MS);
  }
  return off;
}

// Nearly always waits for the lock that the other thread holds.
NOINLINE std::int64_t waits_for_lock() {
  std::int64_t off = 0;
  for (int i = 0; i < 8; ++i) {
    usleep(1000);
    off += timed([] { contended.lock(); });
    contended.unlock();
    BURN(3 * MS);
  }
  return off;
}

// Several of these share one CPU: each is starved most of the time.
NOINLINE std::int64_t starves() {
  pin_to_first();
  BURN(150 * MS);
  return 0;
}

int main() {
  std::vector<std::thread> threads;
  threads.push_back(measured("sleeper", sleeps));
  threads.push_back(measured("holder", holds));
  threads.push_back(measured("waiter", waits_for_lock));
  for (const char* name : {"starved1", "starved2", "starved3"}) threads.push_back(measured(name, starves));
  for (std::thread& thread : threads) thread.join();
  return 0;
}
