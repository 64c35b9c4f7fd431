// Sleeps again and again, and touches new memory in between: a wait and page faults in known functions, until it is ended.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace {

__attribute__((noinline)) void nap() {
  usleep(2000);
  __asm__ volatile("");  // No tail call.
}

__attribute__((noinline)) void touch() {
  const std::size_t size = 64 << 12;
  auto* memory = static_cast<volatile char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t at = 0; at < size; at += 4096) memory[at] = 1;
  munmap(const_cast<char*>(memory), size);
}

}  // namespace

int main() {
  for (;;) {
    nap();
    touch();
  }
}
