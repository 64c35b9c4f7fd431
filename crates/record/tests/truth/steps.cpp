// A simulation with a known number of steps. Each step gets the simulated time as an argument; the program starts threads.
//
// usage: steps COUNT
#include <cstdio>
#include <cstdlib>
#include <thread>

struct World {
  long number;
  double time_s;
};

static volatile unsigned long sink;

extern "C" __attribute__((noinline)) void take_step(long now_ns, const World* world) {
  unsigned long x = now_ns + world->number + 1;
  for (int i = 0; i < 20000; ++i) x = x * 6364136223846793005UL + 1442695040888963407UL;
  sink = x;
}

int main(int argc, char** argv) {
  const long count = argc == 2 ? std::atol(argv[1]) : 0;
  World world{0, 0};
  // One more call than steps: a step ends where the next begins.
  for (; world.number <= count; ++world.number) {
    world.time_s = world.number * 0.002;
    take_step(world.number * 2000000, &world);
    if (world.number % 50 == 0) std::thread([] { sink = 1; }).join();
  }
  std::puts("done");
  return 0;
}
