// The same loop in a library that is loaded while running, where thread-local variables are further away.
#include "stepscope.h"

extern "C" void loop(long times) {
  for (long i = 0; i < times; i++) {
    STEPSCOPE_SCOPE("scope");
    asm volatile("" ::: "memory");
  }
}

extern "C" void between() {
  static bool started = false;
  if (!started) {
    started = true;
    loop(1);
    if (!stepscope_state_v1_.segment) return;
    stepscope_state_v1_.segment->beat_ns = stepscope_monotonic_ns_();
    stepscope_state_v1_.segment->recording = 1;
    loop(40000);
  }
  stepscope_entry_ *entry = stepscope_thread_v1_.entry;
  if (entry) entry->tail_again = entry->tail = entry->head;
}

__attribute__((destructor)) static void stop() {
  if (stepscope_state_v1_.segment) stepscope_state_v1_.segment->recording = 0;
}
