// A load for the soak test: `load KIND MS` does what KIND says for MS milliseconds, or until it is ended if MS is 0. Then it
// prints what it did by its own count, as `account threads T processes P switches S cpu_ns C`.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

namespace {

std::atomic<long> threads{1}, processes{1};
std::int64_t end_ns;
const char* self;

std::int64_t now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

bool goes_on() { return end_ns == 0 || now(CLOCK_MONOTONIC) < end_ns; }

// Looks at the clock some 50,000 times a second: the clock is in the kernel, which some users may not sample.
__attribute__((noinline)) void burn(std::int64_t ns) {
  for (const std::int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + ns; now(CLOCK_THREAD_CPUTIME_ID) < until;) {
    for (int i = 0; i < 30000; ++i) __asm__ volatile("");
  }
}

char* touched(std::size_t bytes) {
  auto* memory = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) std::abort();
  for (std::size_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
  return memory;
}

template <typename Work>
void in_threads(int count, Work work) {
  std::vector<std::thread> running;
  for (int i = 0; i < count; ++i) {
    ++threads;
    running.emplace_back([=] { work(i); });
  }
  for (std::thread& thread : running) thread.join();
}

// Waves of threads that live from 0.1 to 6.4 ms.
void brief() {
  while (goes_on()) in_threads(16, [](int i) { burn(100000LL << (i % 7)); });
}

// More threads than CPUs, which never rest.
void busy() {
  in_threads(12, [](int) {
    while (goes_on()) burn(1000000);
  });
}

// One child after the other; every fourth executes a program.
void forks() {
  char* memory = touched(4 << 20);
  for (int i = 0; goes_on(); ++i) {
    ++processes;
    ++threads;
    const pid_t child = fork();
    if (child < 0) std::abort();
    if (child == 0) {
      if (i % 4 == 3) execl(self, self, "burn", "1", nullptr);
      for (std::size_t at = 0; at < 1 << 20; at += 4096) memory[at] = 2;
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
}

// Two pairs of threads that wake each other: far above 10,000 switches a second.
void switches() {
  int pipes[4][2];
  for (auto& pipe : pipes) {
    if (::pipe(pipe) != 0) std::abort();
  }
  in_threads(4, [&pipes](int i) {
    const int pair = i / 2 * 2, from = pipes[pair + i % 2][0], to = pipes[pair + 1 - i % 2][1];
    char token = 0;
    if (i % 2 == 0 && write(to, &token, 1) != 1) std::abort();
    while (read(from, &token, 1) == 1) {
      if (!goes_on()) token = 1;
      if (write(to, &token, 1) != 1) std::abort();
      if (token == 1) return;
    }
  });
}

// Sleeps and waits for locks, a few hundred times a second.
__attribute__((noinline)) void nap() {
  usleep(2000);
  __asm__ volatile("");
}
void naps() {
  static std::mutex lock;
  in_threads(3, [](int) {
    while (goes_on()) {
      nap();
      const std::lock_guard<std::mutex> guard(lock);
      burn(300000);
    }
  });
}

// Page faults in one thread beside two that compute, and much to free in the exit.
void memory() {
  touched(100 << 20);
  in_threads(3, [](int i) {
    while (goes_on()) {
      if (i == 0) munmap(touched(1 << 20), 1 << 20);
      burn(500000);
    }
  });
}

// Recursion deeper than the copy of the stack.
__attribute__((noinline)) void descend(int depth) {
  volatile char frame[200];
  frame[0] = 1;
  if (depth == 0) {
    burn(2000000);
  } else {
    descend(depth - 1);
  }
  frame[199] = frame[0];
}
void deep() {
  in_threads(2, [](int) {
    while (goes_on()) descend(900);
  });
}

void everything() {
  void (*const kinds[])() = {brief, forks, switches, naps, memory, deep};
  in_threads(6, [&kinds](int i) { kinds[i](); });
}

std::int64_t cpu_ns(const rusage& used) {
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000LL + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000LL;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  self = arguments[0];
  const struct {
    const char* name;
    void (*run)();
  } kinds[] = {{"brief", brief}, {"busy", busy}, {"forks", forks}, {"switches", switches}, {"naps", naps},
               {"memory", memory}, {"deep", deep}, {"everything", everything}};
  const long ms = std::atol(arguments[2]);
  if (std::strcmp(arguments[1], "burn") == 0) {
    burn(ms * 1000000LL);
    return 0;
  }
  end_ns = ms == 0 ? 0 : now(CLOCK_MONOTONIC) + ms * 1000000LL;
  for (const auto& kind : kinds) {
    if (std::strcmp(arguments[1], kind.name) != 0) continue;
    kind.run();
    rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    const long switched = own.ru_nvcsw + own.ru_nivcsw + children.ru_nvcsw + children.ru_nivcsw;
    std::printf("account threads %ld processes %ld switches %ld cpu_ns %lld\n", threads.load(), processes.load(), switched,
                static_cast<long long>(cpu_ns(own) + cpu_ns(children)));
    return 0;
  }
  return 2;
}
