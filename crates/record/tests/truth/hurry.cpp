// hurry MILLISECONDS: four threads sleep 50 us again and again in `hurry`, and the main thread 10 ms in `nap`.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> over{false};

__attribute__((noinline)) void hurry() {
  usleep(50);
  __asm__ volatile("");  // No tail call.
}

__attribute__((noinline)) void nap() {
  usleep(10000);
  __asm__ volatile("");
}

}  // namespace

int main(int, char** words) {
  std::vector<std::thread> busy;
  for (int index = 0; index < 4; ++index) {
    busy.emplace_back([] {
      while (!over) hurry();
    });
  }
  for (int rest = std::atoi(words[1]); rest > 0; rest -= 10) nap();
  over = true;
  for (std::thread& thread : busy) thread.join();
}
