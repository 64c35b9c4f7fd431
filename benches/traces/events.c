// Makes events of ROS 2's tracepoints: three threads, each with a timer whose callback publishes.
//
// usage: events EVENTS
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "provider.h"
#include <pthread.h>
#include <stdlib.h>

static long rounds;

static void *run(void *id) {
  const char *timer = (const char *)id + 0x1000, *callback = timer + 8;
  lttng_ust_tracepoint(ros2, rcl_timer_init, timer, 1000000);
  lttng_ust_tracepoint(ros2, rclcpp_timer_callback_added, timer, callback);
  for (long i = 0; i < rounds; i++) {
    lttng_ust_tracepoint(ros2, callback_start, callback, false);
    lttng_ust_tracepoint(ros2, rclcpp_publish, timer + i % 1000);
    lttng_ust_tracepoint(ros2, callback_end, callback);
  }
  return 0;
}

int main(int argc, char **argv) {
  rounds = (argc > 1 ? atol(argv[1]) : 1000000) / 9;
  pthread_t threads[3];
  for (long t = 0; t < 3; t++) pthread_create(&threads[t], 0, run, (void *)(t * 0x100000));
  for (int t = 0; t < 3; t++) pthread_join(threads[t], 0);
}
