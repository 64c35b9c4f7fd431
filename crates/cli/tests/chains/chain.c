// Three processes in a row, joined by pipes: a sensor, a planner that drops every tenth scan, and a motor that says how
// long each command took since its scan.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stepscope.h"

struct message {
  long long id, sensed_ns;
};

static long long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void plan(int in, int out) {
  for (struct message m; read(in, &m, sizeof m) == sizeof m;) {
    STEPSCOPE_FLOW_END("/scan", m.id);
    if (m.id % 10 == 3) continue;
    for (long long since_ns = now_ns(); now_ns() < since_ns + 200000;) {
    }
    STEPSCOPE_FLOW_BEGIN("/cmd", m.id);
    if (write(out, &m, sizeof m) != sizeof m) exit(1);
  }
}

static void move(int in) {
  for (struct message m; read(in, &m, sizeof m) == sizeof m;) {
    long long moved_ns = now_ns();
    STEPSCOPE_FLOW_END("/cmd", m.id);
    printf("latency %lld\n", moved_ns - m.sensed_ns);
  }
  fflush(stdout);
}

int main(void) {
  int scan[2], cmd[2];
  if (pipe(scan) != 0 || pipe(cmd) != 0) return 1;
  if (fork() == 0) {
    close(scan[1]);
    close(cmd[0]);
    plan(scan[0], cmd[1]);
    exit(0);
  }
  close(scan[0]);
  close(cmd[1]);
  if (fork() == 0) {
    close(scan[1]);
    move(cmd[0]);
    exit(0);
  }
  close(cmd[0]);
  for (long long id = 0; id < 300; id++) {
    struct message m = {id, now_ns()};
    STEPSCOPE_FLOW_BEGIN("/scan", id);
    if (write(scan[1], &m, sizeof m) != sizeof m) return 1;
    usleep(1000);
  }
  close(scan[1]);
  while (wait(NULL) > 0) {
  }
  return 0;
}
