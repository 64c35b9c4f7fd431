// A robot and its base station: `radio send PORT` publishes 200 messages by UDP, `radio receive` prints its port, receives
// until the last one, and prints the latency of each.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "stepscope.h"

enum { MESSAGES = 200 };

struct message {
  long long id, sent_ns;
};

static long long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **arguments) {
  int is_sender = count > 2 && strcmp(arguments[1], "send") == 0;
  int port = is_sender ? atoi(arguments[2]) : 0;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int udp = socket(AF_INET, SOCK_DGRAM, 0);
  if (is_sender) {
    for (long long id = 0; id < MESSAGES; id++) {
      struct timespec pause = {0, 5000000};
      nanosleep(&pause, 0);
      struct message m = {id, now_ns()};
      STEPSCOPE_FLOW_BEGIN("/radio", id);
      sendto(udp, &m, sizeof m, 0, (struct sockaddr *)&address, sizeof address);
    }
    return 0;
  }
  socklen_t length = sizeof address;
  if (bind(udp, (struct sockaddr *)&address, sizeof address) != 0) return 1;
  getsockname(udp, (struct sockaddr *)&address, &length);
  printf("port %d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (struct message m = {0}; m.id < MESSAGES - 1;) {
    if (recv(udp, &m, sizeof m, 0) != sizeof m) return 1;
    long long received_ns = now_ns();
    STEPSCOPE_FLOW_END("/radio", m.id);
    printf("latency %lld\n", received_ns - m.sent_ns);
  }
  return 0;
}
