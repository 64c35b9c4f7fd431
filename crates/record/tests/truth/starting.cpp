// Each thread starts the next one after a millisecond, until there are as many as the argument says. All work now and then, until
// the program is ended.
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "work.h"

NOINLINE void work_now_and_then(int further) {
  usleep(1000);
  if (further > 0) std::thread(work_now_and_then, further - 1).detach();
  for (;;) {
    BURN_WHILE(false);
    usleep(10000);
  }
}

int main(int, char** arguments) { work_now_and_then(std::atoi(arguments[1]) - 1); }
