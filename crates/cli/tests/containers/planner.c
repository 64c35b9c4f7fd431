/* Two threads that compute, for a container without any library. */
#include <pthread.h>
#include <unistd.h>

__attribute__((noinline)) double plan_route(int steps) {
  double sum = 0;
  for (int i = 1; i < steps; i++) sum += 1.0 / i;
  return sum;
}

static void *work(void *nothing) {
  for (;;) {
    volatile double sum = plan_route(1000000);
    (void)sum;
    usleep(1000);
  }
  return nothing;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  work(NULL);
}
