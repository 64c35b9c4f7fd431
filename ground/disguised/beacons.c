// defect: the position of each vehicle is a datagram of its own, in each step
// kinds: many-messages-each-step
// guilty: send_position, broadcast
// build: -O2 -g
// options: --with syscalls
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VEHICLES = 300 };
static double x[VEHICLES], v[VEHICLES];
static int out;
static struct sockaddr_in to;

__attribute__((noinline)) static void send_position(const void *data, size_t size) {
    sendto(out, data, size, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to);
}

__attribute__((noinline)) static void broadcast(int alone) {
    if (!alone) { send_position(x, sizeof x); return; }
    for (int i = 0; i < VEHICLES; ++i) send_position(&x[i], sizeof x[i]);
}

__attribute__((noinline)) static void drive(void) {
    for (int round = 0; round < 40; ++round)
        for (int i = 0; i < VEHICLES; ++i) { v[i] += 1e-3 * sin(x[i] + round); x[i] += 1e-3 * v[i]; }
}

int main(int argc, char **argv) {
    int in = socket(AF_INET, SOCK_DGRAM, 0);
    out = socket(AF_INET, SOCK_DGRAM, 0);
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof to;
    bind(in, (struct sockaddr *)&to, sizeof to);
    getsockname(in, (struct sockaddr *)&to, &size);
    for (;;) {
        drive();
        broadcast(argc > 1 && !strcmp(argv[1], "slow"));
        char drop[8192];
        while (recv(in, drop, sizeof drop, MSG_DONTWAIT) > 0) {}
        usleep(300);
    }
}
