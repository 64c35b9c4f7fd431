// Programs whose profile is known by construction, where recorders differ most: short threads, short processes, switches, and
// the exit. Output as of crates/record/tests/truth/truth.cpp: `truth FUNCTION NANOSECONDS`, and `truth total NANOSECONDS`.
//
// usage: cases threads MS | forks | pingpong | exit
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "../../crates/record/tests/truth/work.h"

namespace {

const std::int64_t MS = 1000000;

std::int64_t process_cpu_ns() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1000000000LL + used.tv_nsec;
}

std::int64_t children_cpu_ns() {
  rusage used;
  getrusage(RUSAGE_CHILDREN, &used);
  const timeval user = used.ru_utime, kernel = used.ru_stime;
  return (user.tv_sec + kernel.tv_sec) * 1000000000LL + (user.tv_usec + kernel.tv_usec) * 1000LL;
}

void print(const char* name, std::int64_t ns) { std::printf("truth %s %lld\n", name, static_cast<long long>(ns)); }

template <typename T>
T* shared() {
  return static_cast<T*>(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

}  // namespace

NOINLINE void long_work(std::int64_t ns) { BURN(ns); KEEP_FRAME(); }

// One thread after the other, each as long as a few periods of the samples, beside one that lives long.
NOINLINE void brief_work(std::int64_t ns) { BURN(ns); KEEP_FRAME(); }
void threads(std::int64_t each_ns) {
  std::int64_t brief = 0;
  for (std::int64_t left = 600 * MS; left > 0; left -= each_ns) {
    std::thread([&] {
      const std::int64_t before = thread_cpu_ns();
      brief_work(each_ns);
      brief += thread_cpu_ns() - before;
    }).join();
  }
  const std::int64_t before = thread_cpu_ns();
  long_work(600 * MS);
  print("brief_work", brief);
  print("long_work", thread_cpu_ns() - before);
}

// Processes of a millisecond.
NOINLINE void child_work() { BURN(1 * MS); KEEP_FRAME(); }
void forks() {
  auto* in_children = shared<std::atomic<std::int64_t>>();
  for (int i = 0; i < 400; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const std::int64_t before = thread_cpu_ns();
      child_work();
      *in_children += thread_cpu_ns() - before;
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  const std::int64_t before = thread_cpu_ns();
  long_work(400 * MS);
  print("child_work", *in_children);
  print("long_work", thread_cpu_ns() - before);
}

// Two threads that wake each other, and work in between.
NOINLINE void ping_work() { BURN_WHILE(0); KEEP_FRAME(); }
void pingpong() {
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) std::abort();
  std::atomic<std::int64_t> worked{0};
  const auto plays = [&](int from, int to) {
    char token = 0;
    std::int64_t mine = 0;
    for (int i = 0; i < 8000; ++i) {
      if (read(from, &token, 1) != 1) std::abort();
      const std::int64_t before = thread_cpu_ns();
      ping_work();
      mine += thread_cpu_ns() - before;
      if (write(to, &token, 1) != 1) std::abort();
    }
    worked += mine;
  };
  std::thread other([&] { plays(there[0], back[1]); });
  if (write(there[1], "x", 1) != 1) std::abort();
  plays(back[0], there[1]);
  other.join();
  print("ping_work", worked);
}

// A process that frees much memory in its exit, which no clock of its own sees: its parent knows it by the kernel's account.
void exits() {
  auto* by_itself = shared<std::int64_t>();
  const std::int64_t before = children_cpu_ns();
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const std::size_t size = 256 << 20;
      auto* memory = static_cast<volatile char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      madvise(const_cast<char*>(memory), size, MADV_NOHUGEPAGE);
      for (std::size_t at = 0; at < size; at += 4096) memory[at] = 1;
      *by_itself += process_cpu_ns();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  print("do_exit", children_cpu_ns() - before - *by_itself);
}

int main(int count, char** arguments) {
  const std::string which = count > 1 ? arguments[1] : "";
  if (which == "threads" && count > 2) threads(std::atoll(arguments[2]) * MS);
  else if (which == "forks") forks();
  else if (which == "pingpong") pingpong();
  else if (which == "exit") exits();
  else return 2;
  print("total", process_cpu_ns() + children_cpu_ns());
  return 0;
}
