// Programs whose CPU time is hard to see: `pingpong N` switches at each step, `forks N` starts short processes, `exit MB` frees
// its memory in its exit, `late MB` too, but waits before that, `busy N` has N threads that never rest, and `headless` is a process
// whose first thread ends.
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

char* fill(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
  return static_cast<char*>(memory);
}

[[noreturn]] void spin() {
  for (;;) __asm__ volatile("");
}

void pass(int from, int to) {
  char token;
  if (read(from, &token, 1) != 1 || write(to, &token, 1) != 1) std::abort();
}

void pingpong(long rounds) {
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) std::abort();
  std::thread other([&] {
    for (long i = 0; i < rounds; ++i) pass(there[0], back[1]);
  });
  char token = 0;
  if (write(there[1], &token, 1) != 1) std::abort();
  for (long i = 1; i < rounds; ++i) pass(back[0], there[1]);
  if (read(back[0], &token, 1) != 1) std::abort();
  other.join();
}

void forks(long count) {
  char* memory = fill(8 << 20);
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (std::size_t at = 0; at < 1 << 20; at += 4096) memory[at] = 2;
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
}

// The kernel frees the memory of a file when it closes the file. It waits when it closes a watch.
void late(std::size_t bytes) {
  for (int file = 0; file < 2; ++file) {
    const int memory = memfd_create("late", 0);
    if (ftruncate(memory, static_cast<off_t>(bytes)) != 0) std::abort();
    const std::vector<char> page(4096, 1);
    for (std::size_t at = 0; at < bytes; at += page.size()) {
      if (write(memory, page.data(), page.size()) < 0) std::abort();
    }
    if (file == 0 && inotify_add_watch(inotify_init(), "/", IN_CREATE) < 0) std::abort();
  }
}

}  // namespace

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "";
  const long number = count > 2 ? std::atol(arguments[2]) : 0;
  if (std::strcmp(what, "pingpong") == 0) pingpong(number);
  if (std::strcmp(what, "forks") == 0) forks(number);
  if (std::strcmp(what, "exit") == 0) fill(static_cast<std::size_t>(number) << 20);
  if (std::strcmp(what, "late") == 0) late(static_cast<std::size_t>(number) << 20);
  if (std::strcmp(what, "busy") == 0) {
    for (long i = 1; i < number; ++i) std::thread(spin).detach();
    spin();
  }
  if (std::strcmp(what, "headless") == 0) {
    std::thread(spin).detach();
    pthread_exit(nullptr);
  }
  _exit(0);
}
