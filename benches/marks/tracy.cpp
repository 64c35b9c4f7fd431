// The same loop with Tracy's zones.
#include <tracy/Tracy.hpp>

extern "C" void loop(long times) {
  for (long i = 0; i < times; i++) {
    ZoneScopedN("scope");
    asm volatile("" ::: "memory");
  }
}
