/* Two threads that compute, for a container without any library. */
#include <pthread.h>
#include <unistd.h>

/* The compiler does not know them, so that no call can be left out. */
static volatile int steps = 1000000;
static volatile double distance;

__attribute__((noinline)) double plan_route(int steps) {
  double sum = 0;
  for (int i = 1; i < steps; i++) sum += 1.0 / i;
  return sum;
}

static void *work(void *nothing) {
  for (;;) {
    distance = plan_route(steps);
    usleep(1000);
  }
  return nothing;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  work(NULL);
}
